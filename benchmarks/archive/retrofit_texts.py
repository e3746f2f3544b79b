"""Names among words: what a T5 and a BART make of names that they never saw, converted or not.

    python benchmarks/archive/retrofit_texts.py --clutrr FOLDER_OF_CLUTRR --out retrofit-texts
    python benchmarks/archive/retrofit_texts.py --tasks inline --hosts t5    # a part of it

Two tasks of texts: a variable of a Python function is inlined (`examples/tasks/inline.py`), and who
is whose aunt (`kinship.py` there, data of CLUTRR). A host is trained from scratch as Transformers
made it, with a byte-level BPE of `--tokens` tokens; a name is what its subwords make of it. Then it
is converted, names found by the rules of the task's recipe, and every conversion is trained for
`--tuning-steps` steps on the same pairs; so is the host itself (`untouched`). New rows begin as
rows of the vocabulary are on average.

Names of training come from a large pool, row by row. All models are tested on the same problems
twice: with names of that pool, and with names that are in no pair of training, longer ones too. An
answer is right if it is the data's. Alpha-covariance renames the text of `untouched` within the
pool of the test, and the symbols of the others. A run that was killed goes on where it stopped.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerFast

from hf_alpha.convert import get_symbol_model
from hf_alpha.data.pairs import evaluation_rows, read_pairs
from hf_alpha.evaluation import alpha_covariance
from hf_alpha.evaluation.evaluate import evaluate
from hf_alpha.evaluation.report import Report
from hf_alpha.loading import load_checkpoint
from hf_alpha.modeling.names_in_text import MarkedText, parts
from hf_alpha.recipe import Recipe, read_recipe
from hf_alpha.tasks import Task

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what benchmarks share
import measure
from retrofit_study import VARIANTS
from runs import train_once

Pools = Mapping[str, Sequence[str]]  # class -> names

SCRIPTS = measure.ROOT / "examples" / "tasks"
PLAIN = {"name": 1}  # a rule that finds nothing: names are words as others
UNTOUCHED = "untouched"
SIZES: dict[str, dict[str, Any]] = {
    "t5": {
        "d_kv": 16,
        "num_heads": 4,
        "num_layers": 2,
        "num_decoder_layers": 2,
        "d_ff": 256,
        "dropout_rate": 0.0,
    },
    "bart": {
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 256,
        "decoder_ffn_dim": 256,
        "max_position_embeddings": 1024,
        "dropout": 0.0,
    },
}
SETS = {"known": "names of training", "new": "names never seen in training"}


# -- names ----------------------------------------------------------------------------------------

WORDS = """
    account action address amount area array author balance base batch begin block body bound buffer
    cache center chunk client code color column cost count cursor data date default delta depth
    distance edge entry error event factor field file flag frame goal grid group head height hour
    image index input item kernel key label last layer left length level limit line list margin mask
    matrix max_len message minute mode month name node number offset old order output owner page
    parent path peak period phase pixel point price queue range rate record region result right row
    sample scale score second section shape share side signal size speed stack start state step sum
    table target tax temp text time title token total user value vector volume width window year
"""
NEW_WORDS = """
    alpha velocity threshold remainder customer_id temperature_in_celsius wing u q5 density harvest
    elapsed_seconds weight_of_evidence rainfall zoom bicycle jungle
"""
SYLLABLES = """
    ba do fi ga he ja ka li mo na pe ro sa ti va wi zo der lin mar nel rick son ton
"""


def identifiers(text: str) -> list[str]:
    """Words, with a number behind them, and each with one other word."""
    words = text.split()
    numbered = [f"{word}{number}" for word in words for number in ("", 1, 2, 3)]
    return numbered + [f"{one}_{two}" for one, two in pairwise(words)]


def invented(classes: Sequence[str], known_pools: Pools) -> dict[str, list[str]]:
    """First names that nobody has, of two to four syllables."""
    rng, taken_names = random.Random(0), {name for names in known_pools.values() for name in names}
    syllables, names_by_class = SYLLABLES.split(), dict[str, list[str]]()
    for number in range(40 * len(classes)):
        name = ""
        while not name or name in taken_names:
            name = "".join(rng.choices(syllables, k=rng.randint(2, 4))).capitalize()
        taken_names.add(name)
        names_by_class.setdefault(classes[number % len(classes)], []).append(name)
    return names_by_class


def people(rows: Sequence[MarkedText]) -> dict[str, list[str]]:
    """The names of each class in texts, without those of two classes."""
    names_by_kind: dict[str, dict[str, None]] = {}
    for text in rows:
        for name, kind in names_in(text).items():
            names_by_kind.setdefault(kind, {})[name] = None
    classes = Counter(name for names in names_by_kind.values() for name in names)
    return {
        kind: [n for n in names if classes[n] == 1] for kind, names in sorted(names_by_kind.items())
    }


def names_in(text: MarkedText) -> dict[str, str]:
    """Name -> class, by first occurrence."""
    return {text[start:stop]: kind for start, stop, kind, *_ in text.spans}


def pools_of(task: str, texts: Sequence[MarkedText]) -> dict[str, Pools]:
    """The names of each set of problems."""
    if task == "inline":
        return {"known": {"identifier": identifiers(WORDS)},
                "new": {"identifier": identifiers(NEW_WORDS)}}  # fmt: skip
    known_pools = people(texts)
    return {"known": known_pools, "new": invented(list(known_pools), known_pools)}


# -- data -----------------------------------------------------------------------------------------


@dataclass
class Data:
    """The pairs of a task.

    Attributes:
        recipe_name: of the task, in training/text.
        recipe: that recipe, by whose rules names are found.
        folder: of train.jsonl, known.jsonl and new.jsonl.
        pools: the names of known.jsonl, which are those of training, and of new.jsonl.
    """

    recipe_name: str
    recipe: Recipe
    folder: Path
    pools: dict[str, Pools]

    @property
    def task(self) -> Task:
        """The task as it is for models with symbols."""
        return self.recipe.configured_task

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The problems of a set, their names marked."""
        return read_rows(self.recipe, self.folder / f"{name}.jsonl")


def read_rows(recipe: Recipe, file: Path) -> list[dict[str, Any]]:
    """Pairs of a file as evaluation takes them, their names marked."""
    task: Any = recipe.configured_task
    rows = evaluation_rows(read_pairs(recipe.data, str(file), task.finder, "test"), task)
    for row in rows:
        row["problem"] = MarkedText(row["problem"], task.finder.find(row["problem"]))
    return rows


def make_data(task: str, args: argparse.Namespace) -> Data:
    """Make a task's pairs, once."""
    recipe, folder = read_recipe(f"text/{task}"), args.runs / f"data-{task}"
    original = folder / "original"
    if not (original / "test.jsonl").is_file():
        source = [args.clutrr] if task == "kinship" else []
        script = [sys.executable, SCRIPTS / f"{task}.py", *source, original]
        subprocess.run(list(map(str, script)), check=True)
    rows = {part: read_rows(recipe, original / f"{part}.jsonl") for part in ("train", "test")}
    texts = [row["problem"] for part in rows.values() for row in part]
    data = Data(task, recipe, folder, pools_of(task, texts))
    write_pairs(data, "train", "known", rows["train"][: args.pairs])
    test_rows = [
        row for row in few_of_each(rows["test"], args.samples) if row["num_symbols"] <= args.most
    ]
    for name in SETS:
        write_pairs(data, name, name, test_rows)
    return data


def few_of_each(rows: Sequence[dict[str, Any]], samples: int) -> Iterator[dict[str, Any]]:
    """The first problems of each number of names."""
    counts: Counter[int] = Counter()
    for row in rows:
        counts[row["num_symbols"]] += 1
        if counts[row["num_symbols"]] <= samples:
            yield row


def write_pairs(data: Data, name: str, pool: str, rows: Sequence[dict[str, Any]]) -> None:
    """Write pairs with other names, each of the pool of its class, drawn row by row."""
    task: Any = data.task
    finder, rng = task.finder, random.Random(name)
    lines = []
    for row in rows:
        kinds = names_in(row["problem"])
        new_names: dict[str, str] = {}
        columns: dict[str, list[str]] = {}
        for kind, rule in finder.rules.items():
            names = [name for name, name_kind in kinds.items() if name_kind == kind]
            drawn = rng.sample(data.pools[pool][kind], len(names))
            new_names.update(zip(names, drawn, strict=True))
            if rule.column:
                columns[rule.column] = drawn
        answer = MarkedText(row["answer"], finder.find(row["answer"], kinds))
        pair = {"source": renamed(row["problem"], new_names), "target": renamed(answer, new_names)}
        lines.append(json.dumps({**pair, **columns}) + "\n")
    (data.folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")


def renamed(text: MarkedText, new_names: Mapping[str, str]) -> str:
    """A text with other names."""
    return "".join(
        part + ("" if span is None else new_names[text[span.start : span.stop]])
        for part, span in parts(text, text.spans)
    )


# -- training -------------------------------------------------------------------------------------


def train(recipe: Recipe, out: Path, args: argparse.Namespace, steps: int) -> Path:
    """Train a model, or go on with it, unless it is done."""
    recipe.training |= {
        "output_dir": str(out),
        "max_steps": steps,
        "warmup_steps": min(100, steps // 4),
        "save_strategy": "steps",
        "save_steps": 500,
        "save_total_limit": 1,
        "learning_rate": args.learning_rate,
        "per_device_train_batch_size": args.batch,
    }
    return train_once(recipe, out)


def recipe_for(data: Data, is_plain: bool) -> Recipe:
    """The task's recipe on the pairs that were made, with its names or with none."""
    recipe = read_recipe(f"text/{data.recipe_name}")
    recipe.data.train, recipe.data.test = str(data.folder / "train.jsonl"), None
    if is_plain:
        recipe.symbols = dict(PLAIN)
    return recipe


def train_host(data: Data, host: str, out: Path, args: argparse.Namespace) -> Path:
    """Train a host from scratch, names being words as others."""
    recipe = recipe_for(data, is_plain=True)
    recipe.tokenizer = f"bpe:{args.tokens}"
    backbone = {"model_type": host, "d_model": args.d_model, **SIZES[host]}
    recipe.model = {
        "model_type": "alpha-retrofit",
        "symbol_encoding": "learned",
        "backbone_config": backbone,
    }
    return train(recipe, out, args, args.steps)


def convert(data: Data, vanilla: Path, out: Path, variant: str) -> Path:
    """Convert a trained host, once; a host that stays as it is needs nothing."""
    if variant == UNTOUCHED:
        return vanilla
    if not (out / "config.json").is_file():
        shutil.rmtree(out, ignore_errors=True)
        config = replace(
            VARIANTS[variant], symbols=data.recipe.symbols, actual=None, placeholder=None
        )
        model, tokenizer = load_checkpoint(vanilla)
        symbol_model, symbols = get_symbol_model(model, plain_tokenizer(tokenizer), config)
        symbols.save_pretrained(out)
        symbol_model.save_pretrained(out)
    return out


def plain_tokenizer(tokenizer: Any) -> PreTrainedTokenizerFast:
    """The fast tokenizer beneath, for which no word is a name."""
    special = tokenizer.special_tokens_map
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer, **special)


# -- testing --------------------------------------------------------------------------------------


def test(data: Data, name: str, folder: Path, args: argparse.Namespace) -> Report:
    """Let a trained model answer a set of problems, and rename some of them."""
    model, tokenizer = load_checkpoint(folder)
    is_plain = dict(tokenizer.symbol_classes) == PLAIN
    task, rows = data.task, data.rows(name)
    if is_plain:
        task = recipe_for(data, is_plain).configured_task
        rows = [{**row, "problem": str(row["problem"])} for row in rows]
    out = folder / f"test-{name}"
    report = evaluate(
        model,
        tokenizer,
        task,
        rows,
        name=folder.name,
        num_beams=1,
        folder=out,
    )
    if report.alpha_covariance is None:
        probes = [row["problem"] for row in few_of_each(rows, args.covariance)]
        report.alpha_covariance = alpha_covariance(
            model,
            plain_tokenizer(tokenizer) if is_plain else tokenizer,
            probes,
            data.pools[name] if is_plain else None,
            max_renamings=args.renamings,
            generate_kwargs={key: report.settings[key] for key in ("num_beams", "max_new_tokens")},
        )
        report.save(out)
    return report


def splits(data: Data, folder: Path) -> dict[str, Any]:
    """How many subwords a name of each pool has, and how many of them are rare in training."""
    _, tokenizer = load_checkpoint(folder)
    plain = plain_tokenizer(tokenizer)

    def tokens(names: Sequence[str]) -> list[list[int]]:
        return plain([f" {name}" for name in names], add_special_tokens=False)["input_ids"]

    texts = [text for row in data.rows("train") for text in (str(row["problem"]), row["answer"])]
    token_counts = Counter(token for ids in plain(texts)["input_ids"] for token in ids)
    results = {}
    for name, pool in data.pools.items():
        rows = tokens([one for names in pool.values() for one in names])
        every = [token for row in rows for token in row]
        results[name] = {
            "names": len(rows),
            "subwords of a name": len(every) / len(rows),
            "seen 100 times": sum(token_counts[token] >= 100 for token in every) / len(every),
        }
    return results


def summarise(report: Report) -> dict[str, Any]:
    """Rates of a report, as numbers."""
    covariance = report.alpha_covariance
    return {
        "correct": {k: rates.correct for k, rates in report.by_num_symbols.items()},
        "all": report.overall.correct,
        "covariance": None if covariance is None else covariance.mean,
        "samples": {k: rates.count for k, rates in report.by_num_symbols.items()},
    }


def make_table(task: str, name: str, results: Mapping[str, Mapping[str, Any]]) -> str:
    """Right answers of all models on one set of problems, in per cent."""
    numbers = list(next(iter(results.values()))["correct"])
    columns = ["correct, %; names:", *map(str, numbers), "all", "alpha-covariance"]
    lines = [
        [
            label,
            *(f"{100 * rate:.1f}" for rate in (*row["correct"].values(), row["all"])),
            "-" if row["covariance"] is None else f"{100 * row['covariance']:.1f}",
        ]
        for label, row in results.items()
    ]
    return f"{task}, {SETS[name]}:\n\n{measure.table(columns, lines)}"


# -- the command ----------------------------------------------------------------------------------


def run(data: Data, host: str, args: argparse.Namespace) -> dict[str, Path]:
    """Train a host and its conversions: label -> folder."""
    start = f"{data.recipe_name}-{host}"
    vanilla = train_host(data, host, args.runs / start, args)
    folders = {}
    for variant in args.only.split(";"):
        name = args.runs / f"{start}-{variant.replace(', ', '-')}"
        recipe = recipe_for(data, variant == UNTOUCHED)
        recipe.model = {}
        recipe.checkpoint = str(
            convert(data, vanilla, name.with_name(f"{name.name}-start"), variant)
        )
        folders[f"{host}: {variant}"] = train(recipe, name, args, args.tuning_steps)
    return folders


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--tasks", default="inline,kinship", help="(inline,kinship)")
    add("--hosts", default="t5,bart", help="(t5,bart)")
    add("--only", default=";".join(VARIANTS), help=f"of {';'.join(VARIANTS)}")
    add("--clutrr", type=Path, help="folder with k23_train.jsonl.gz and k23_test.jsonl.gz")
    add("--pairs", type=int, default=20_000, help="of training, at most (20,000)")
    add("--tokens", type=int, default=400, help="of the tokenizer (400)")
    add("--d-model", type=int, default=64, help="(64)")
    add("--batch", type=int, default=32, help="pairs in a batch (32)")
    add("--learning-rate", type=float, default=0.003, help="(0.003)")
    add("--steps", type=int, default=1500, help="of a host's training (1500)")
    add("--tuning-steps", type=int, default=500, help="behind each conversion (500)")
    add("--most", type=int, default=9, help="names in a problem of the test (9)")
    add("--samples", type=int, default=30, help="problems of each number of names (30)")
    add("--covariance", type=int, default=2, help="of these, for alpha-covariance (2)")
    add("--renamings", type=int, default=12, help="of each of those (12)")
    add("--runs", type=Path, default=Path("runs/retrofit-texts"), help="where models are")
    measure.add_out(parser)
    args = parser.parse_args(argv)
    if "kinship" in args.tasks and args.clutrr is None:
        parser.error("kinship needs --clutrr: the folder of CLUTRR's files")
    if unknown := set(args.only.split(";")) - set(VARIANTS):
        parser.error(f"{sorted(unknown)[0]!r} is none of {'; '.join(VARIANTS)}")
    return args


def main(argv: Sequence[str] | None = None) -> None:
    """Train, test and print."""
    args = parse(argv)
    results: dict[str, Any] = {}
    tables = []
    for task in args.tasks.split(","):
        data, folders = make_data(task, args), dict[str, Path]()
        for host in args.hosts.split(","):
            folders |= run(data, host, args)
        sets = {
            name: {k: summarise(test(data, name, folder, args)) for k, folder in folders.items()}
            for name in SETS
        }
        results[task] = {"sets": sets, "names": splits(data, next(iter(folders.values())))}
        tables += [make_table(task, name, rows) for name, rows in sets.items()]
    measure.finish("\n\n".join(tables), results, args.out, argv)


if __name__ == "__main__":
    main()
