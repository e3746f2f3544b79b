"""The command line: `hf-alpha COMMAND`. Each command imports what it needs when it runs."""

import contextlib
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from hf_alpha.reproduce import FOLDER
from hf_alpha.tasks.registry import DEFAULT_TASK, built_in_tasks

if TYPE_CHECKING:
    from hf_alpha.evaluation.compare import Entrant
    from hf_alpha.evaluation.report import Report
    from hf_alpha.recipe import Recipe
    from hf_alpha.solve import Solution
    from hf_alpha.tasks import Task as AnyTask
    from hf_alpha.transduction import Transducer

TARGETS = "streams, relational or dual_part"  # what a vanilla model is converted into
TRIED = 10  # answers among which solve looks for a correct one
LATE = ("solve", "env", "transduce")
"""They do not begin by importing Transformers: formulas are read first, env is for what cannot be
imported, and transducers do not need it."""
TRAIN_ON = "It has to be trained before it is of use: `checkpoint:` in a recipe."

app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Train, convert, evaluate and share models that do not care how symbols are named.",
)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"hf_alpha {version('hf_alpha')}")
        raise typer.Exit


@app.callback()
def prepare(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Quiet the bars of loading and saving; our own say more."""
    if not sys.stderr.isatty():  # a log file is no place for bars
        os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    if context.invoked_subcommand not in LATE:
        quiet_bars()


def quiet_bars() -> None:
    """Switch off the bars of Transformers, whose import takes a second or more."""
    from transformers.utils import logging

    logging.disable_progress_bar()


def integers(text: str) -> list[int]:
    """Read `3`, `1-8` or `1,2,5-7` as sorted numbers.

    Raises:
        ValueError: the text is something else.
    """
    numbers: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if match is None:
            raise ValueError(f"{text!r} is no range of numbers: write 3, 1-8 or 1,2,5-7")
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last:
            raise ValueError(f"{part.strip()!r} is an empty range: write {last}-{first}")
        numbers.update(range(first, last + 1))
    return sorted(numbers)


def row_names(models: list[str]) -> list[str]:
    """Call each model by the last part of its name, or by all of it where that says too little.

    Raises:
        ValueError: a model is given twice.
    """
    if len(set(models)) < len(models):
        raise ValueError(f"a model is given twice: {' '.join(models)}")
    names = [Path(model).expanduser().resolve().name for model in models]
    return names if len(set(names)) == len(names) else models


def renamings(text: str) -> int | None:
    """Read a limit on renamings; None for `all`.

    Raises:
        ValueError: the text is neither a number from 2 on nor `all`.
    """
    if text == "all":
        return None
    if not re.fullmatch(r"\d+", text) or int(text) < 2:
        raise ValueError(f"--renamings {text}: write a number from 2 on, or all")
    return int(text)


def fraction(text: str) -> tuple[int, int]:
    """Read `3/16` as two numbers.

    Raises:
        ValueError: the text is something else.
    """
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match is None:
        raise ValueError(f"--shard {text}: write 3/16 for the third of sixteen")
    return int(match[1]), int(match[2])


TASKS = ", ".join(built_in_tasks())

Task = Annotated[
    str, typer.Option(help=f"What is solved: {TASKS}, or package.module:Class of your own.")
]
ModelsTask = Annotated[
    str | None,
    typer.Option(
        help=f"What is solved: {TASKS}, or package.module:Class of your own; by default what the "
        f"model's recipe.yaml or tokenizer says; without one, {DEFAULT_TASK}."
    ),
]
Beams = Annotated[
    int | None, typer.Option(min=1, help="Number of beams, 1 for greedy; by default the task's.")
]
Hard = Annotated[
    float,
    typer.Option(
        min=0, max=1, help="Least share of hard formulas; the data's README.md says what is hard."
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        help="Training data of a model: no formula tested is equivalent to one of its rows, those "
        "of a split called test left aside. For models trained on data of another version; may be "
        "repeated."
    ),
]
Workers = Annotated[int, typer.Option(min=1, help="Processes; they do not change the result.")]
Seed = Annotated[int, typer.Option(help="Everything drawn is a function of it.")]
Device = Annotated[str, typer.Option(help="auto (an accelerator if there is one), cpu, cuda:1")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bars.")]
ASKED = "Models that follow instructions"  # a panel of options


@app.command("generate-data")
def generate_data(
    out: Annotated[Path, typer.Argument(help="Folder to make; a killed run there continues.")],
    task: Task = DEFAULT_TASK,
    samples: Annotated[int, typer.Option(min=1, help="Formulas in all splits together.")] = 10_000,
    sizes: Annotated[
        str | None,
        typer.Option(help="Sizes in tokens, e.g. 1-35; by default the papers', with --grid 1-50."),
    ] = None,
    symbols: Annotated[
        str | None,
        typer.Option(help="Symbols to draw from, by default 5; with --grid a range, 0-10."),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(help="How far sizes may depart from uniform where small ones run out."),
    ] = None,
    targets: Annotated[
        str | None,
        typer.Option(
            help="How answers are computed; by default as short as can be. Other ways are the "
            "task's own, such as the papers'; a wrong name lists them."
        ),
    ] = None,
    constants: Annotated[
        float | None, typer.Option(help="Weight of the leaves 0 and 1 beside a symbol's 1.")
    ] = None,
    few_symbols: Annotated[
        int, typer.Option(min=0, help="So many more training formulas with at most one symbol.")
    ] = 0,
    many_symbols: Annotated[
        int,
        typer.Option(min=0, help="So many more training formulas with more symbols than that."),
    ] = 0,
    up_to_symbols: Annotated[
        int, typer.Option(min=0, help="With --many-symbols: most symbols of those.")
    ] = 0,
    hard: Hard = 0.0,
    equivalence: Annotated[
        str,
        typer.Option(
            help="What may differ between formulas that count as one: commuting (names, and the "
            "order of operands of commutative operators), or renaming (names only, as the papers)."
        ),
    ] = "commuting",
    grid: Annotated[
        bool, typer.Option("--grid", help="A heatmap's test set: each (symbols, size) alike.")
    ] = False,
    per_cell: Annotated[int, typer.Option(min=1, help="With --grid: formulas in a cell.")] = 100,
    exclude: Exclude = None,
    shard: Annotated[
        str | None,
        typer.Option(
            help="3/16: do a sixteenth of the work, for a dataset that the same command without "
            "--shard then makes. Counted from 1."
        ),
    ] = None,
    workers: Workers = 1,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Generate a dataset of formulas and answers; equivalent formulas are in one split."""
    from hf_alpha.data.generate import generate, generate_grid
    from hf_alpha.data.read import training_problems
    from hf_alpha.tasks import get_task

    smallest, largest = (1, 50) if grid else get_task(task).sizes
    numbers = integers(sizes or f"{smallest}-{largest}")
    counts = integers(symbols or ("0-10" if grid else "5"))
    if not grid and len(numbers) != numbers[-1] - numbers[0] + 1:
        raise ValueError(f"--sizes {sizes}: without --grid sizes are one range, e.g. 1-35")
    shared = {
        "seed": seed,
        "targets": targets,
        "hard": hard,
        "equivalence": equivalence,
        "shard": None if shard is None else fraction(shard),
        "num_workers": workers,
        "progress": not quiet,
    }
    if exclude and not grid:
        raise ValueError("--exclude is for test data: leave it out without --grid")
    if grid:
        known = [problem for data in exclude or () for problem in training_problems(data)]
        made = generate_grid(
            task,
            out,
            counts,
            numbers,
            per_cell,
            exclude=known,
            **shared,  # type: ignore[arg-type]
        )
    else:
        made = generate(
            task,
            out,
            samples,
            (numbers[0], numbers[-1]),
            max(counts),
            alpha,
            constant_priority=constants,
            few_symbols=few_symbols,
            many_symbols=many_symbols,
            up_to_symbols=up_to_symbols,
            **shared,  # type: ignore[arg-type]
        )
    if shard is None or made:
        typer.echo(f"{out}: {_rows(made)}")
    else:
        typer.echo(f"{out}: shard {shard} has ended; when all have, the same command without it")


@app.command()
def perturb(
    data: Annotated[Path, typer.Argument(help="A dataset.")],
    out: Annotated[Path, typer.Argument(help="Folder to make.")],
    kind: Annotated[
        str,
        typer.Option(
            help="renamed (names in order of first occurrence in the answer), or reduced (fewer "
            "training rows)."
        ),
    ],
    samples: Annotated[int, typer.Option(min=1, help="Rows that reduced keeps.")] = 80_000,
    task: Annotated[
        str | None, typer.Option(help="What is solved, if the dataset does not say.")
    ] = None,
) -> None:
    """Make a perturbed copy of a dataset: its training data, the rest stays as it is."""
    from datasets import disable_progress_bars

    from hf_alpha.data.perturb import perturb as run

    disable_progress_bars()
    typer.echo(f"{out}: {_rows(run(data, out, kind, task, samples))}")


def _rows(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {split}" for split, count in counts.items())


def _print_settings(asked: bool) -> None:
    if asked:
        from hf_alpha.recipe import describe_settings

        typer.echo(describe_settings())
        raise typer.Exit


def _print_schema(asked: bool) -> None:
    if asked:
        from hf_alpha.recipe import recipe_schema

        typer.echo(json.dumps(recipe_schema(), indent=1))
        raise typer.Exit


@app.command()
def train(
    recipe: Annotated[str, typer.Argument(help=f"A YAML file, or a name: {DEFAULT_TASK}/debug.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Changes: training.max_steps=100 model.d_model=64")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Refuse to resume what is in the output folder.")
    ] = False,
    allow_changes: Annotated[
        bool,
        typer.Option("--allow-changes", help="Resume with other settings than the run so far."),
    ] = False,
    drop_bad: Annotated[
        bool,
        typer.Option("--drop-bad", help="Your own pairs: leave out those that cannot be learned."),
    ] = False,
    help_recipe: Annotated[
        bool,
        typer.Option(
            "--help-recipe",
            is_eager=True,
            callback=_print_settings,
            help="Print every key of a recipe: its type, default and meaning.",
        ),
    ] = False,
    recipe_schema: Annotated[
        bool,
        typer.Option(
            "--recipe-schema",
            is_eager=True,
            callback=_print_schema,
            help="Print the JSON schema of recipes, for editors.",
        ),
    ] = False,
) -> None:
    """Train as a recipe says; a run that was killed, or stopped by Ctrl-C, is resumed.

    On several GPUs: accelerate launch -m hf_alpha.cli train RECIPE

    In several processes on CPUs: torchrun --nproc-per-node 2 -m hf_alpha.cli train RECIPE
    """
    from hf_alpha.resources import recipe_file

    recipe_file(recipe)  # a mistyped name is said before torch is loaded
    from hf_alpha.recipe import read_recipe
    from hf_alpha.train import Interrupted
    from hf_alpha.train import train as run

    try:
        changes = [*(overrides or []), *["data.drop_bad=true"] * drop_bad]
        trainer = run(read_recipe(recipe, changes), not fresh, allow_changes, typer.echo)
    except Interrupted as stop:
        typer.echo(str(stop), err=True)
        raise typer.Exit(130) from None
    if trainer.is_world_process_zero():
        typer.echo(f"the trained model is in {trainer.args.output_dir}")


@app.command()
def convert(
    model: Annotated[
        str,
        typer.Argument(
            help="Folder or Hub name: any encoder-decoder of Transformers, or a 'learned' model."
        ),
    ],
    out: Annotated[Path, typer.Argument(help="Folder for the converted model.")],
    to: Annotated[
        str,
        typer.Option(
            help=f"What it becomes: {TARGETS}; Transformers' models also learned, which leaves "
            "them as they are."
        ),
    ] = "streams",
    symbols: Annotated[
        str | None,
        typer.Option(
            help="Transformers' models: how many symbols are added, 32, or name=32,number=16 for "
            "several classes."
        ),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            help="Transformers' models: a regular expression that says which words are names, "
            "'\\[a-z]+', or variable='\\[a-z]+', once for each class. Left out, the recipe "
            "says it."
        ),
    ] = None,
    symbol_tokens: Annotated[
        str | None,
        typer.Option(
            help="Transformers' models: tokens that become the symbols, in place of --symbols: "
            "'a b c', or 'name=a b c,number=1 2'."
        ),
    ] = None,
    actual: Annotated[
        str | None,
        typer.Option(
            help="Symbol whose vector becomes the actual one (a), or, with --to relational, that "
            "of its class (the mean); commas for classes. Of Transformers' models any tokens, for "
            "their mean, or name=a,number=1."
        ),
    ] = None,
    placeholder: Annotated[
        str | None,
        typer.Option(help="streams: likewise, whose vector becomes the placeholder (b)."),
    ] = None,
    add_aggregated_attention: Annotated[
        str, typer.Option(help="streams: sides that get silent new blocks: encoder,decoder")
    ] = "",
    renaming: Annotated[
        str | None,
        typer.Option(
            help="Transformers' models: rename symbols inside the model, random or "
            "first_occurrence; with --to learned, the cheap baselines."
        ),
    ] = None,
    random_dim: Annotated[
        int, typer.Option(help="dual_part: width of the random part; 0 for the default.")
    ] = 0,
    random_method: Annotated[
        str,
        typer.Option(help="dual_part: normal, neighboring_points or hypercube_vertices."),
    ] = "hypercube_vertices",
    seed: Seed = 0,
) -> None:
    """Convert a model into one that does not care how symbols are named, and prove it by logits.

    hf-alpha convert google-t5/t5-small OUT --symbols 32

    Any encoder-decoder of Transformers: T5, BART, and so on. Then train it on texts with names.

    A vanilla model of this package: of use at once with --to streams, else after training.
    """
    _check_places(model)
    from hf_alpha.loading import load_config

    if out.resolve() == Path(model).expanduser().resolve():
        raise ValueError(f"{out} holds the model itself: choose another folder for the new one")
    sides = [side.strip() for side in add_aggregated_attention.split(",") if side.strip()]
    config = load_config(model)
    has_symbols = hasattr(config, "symbol_classes")
    given = {"symbols": symbols, "names": names, "symbol-tokens": symbol_tokens}
    if option := next((key for key, value in given.items() if value and has_symbols), None):
        raise ValueError(f"--{option} is for models without symbols; {model} has some")
    parts = {"random_dim": random_dim, "random_method": random_method}
    if has_symbols and not hasattr(config, "backbone_config"):
        if renaming:
            raise ValueError(f"--renaming is for models of Transformers; {model} is none")
        made = _convert_vanilla(model, out, to, actual, placeholder, sides, {**parts, "seed": seed})
        typer.echo(made)
        return
    from hf_alpha.convert.retrofit import SymbolConfig, convert_host

    if symbol_tokens and (symbols or names):
        raise ValueError("--symbol-tokens are the symbols: leave out --symbols and --names")
    chosen = SymbolConfig(
        encoding=to,
        symbols=_symbol_rules(symbols, names or []),
        symbol_tokens=_tokens_by_class(symbol_tokens),
        actual=_tokens_by_class(actual),
        placeholder=_tokens_by_class(placeholder),
        renaming=renaming or "none",
        aggregated_attention=sides,
        settings={"symbol_seed": seed, **(parts if to == "dual_part" else {})},
    )
    convert_host(model, out, chosen, typer.echo)


@app.command("convert-folnet")
def convert_folnet(
    settings: Annotated[Path, typer.Argument(help="The original's settings, a .cfg file.")],
    weights: Annotated[Path, typer.Argument(help="The original's weights, a .pt file.")],
    out: Annotated[Path, typer.Argument(help="Folder for the converted model.")],
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="Folder or Hub name of the tokenizer that the model was trained with; it goes "
            "with the model."
        ),
    ] = None,
) -> None:
    """Convert a checkpoint of FOLNet's original code, and prove it by logits.

    hf-alpha convert-folnet base.step8000.cfg base.step8000.pt OUT --tokenizer bert-base-uncased
    """
    from hf_alpha import convert as conversions

    model = conversions.convert_folnet(settings, weights, out, tokenizer)
    typer.echo(
        f"{type(model).__name__} with {model.num_parameters():,} parameters: the same outputs as "
        f"the original code's, on random texts without padding; it is in {out}"
    )


@app.command("convert-geometric")
def convert_geometric(
    model: Annotated[
        str,
        typer.Argument(
            help="Folder or Hub name: BERT, RoBERTa, ELECTRA, DistilBERT and their kin."
        ),
    ],
    transducer: Annotated[
        Path, typer.Argument(help="Folder of a transducer: hf-alpha transduce --save.")
    ],
    out: Annotated[Path, typer.Argument(help="Folder for the converted model.")],
    relation_attention: Annotated[
        str, typer.Option(help="How attention sees segments: graph or two_layer_rotary.")
    ] = "graph",
    head: Annotated[
        str | None,
        typer.Option(
            help="What is converted beside the encoder: masked, tokens, texts or none; by default "
            "what the folder says that its model is for."
        ),
    ] = None,
) -> None:
    """Let an encoder see symbolic segments, and prove that it still says the same.

    hf-alpha convert-geometric google-bert/bert-base-uncased fst/ OUT

    To train it on classes of texts, --head none keeps BERT's summary of the first token.
    """
    from hf_alpha.convert import convert_encoder
    from hf_alpha.transduction import Transducer

    made = convert_encoder(
        model, out, Transducer.load(transducer), head=head, relation_attention=relation_attention
    )
    typer.echo(
        f"{out}: {type(made).__name__} with {made.num_parameters():,} parameters and "
        f"{len(made.config.segment_labels)} kinds of segments. Proved on random texts: with and "
        "without segments it says what the model before said; its gates open in training"
    )


def _convert_vanilla(
    vanilla: str,
    out: Path,
    to: str,
    actual: str | None,
    placeholder: str | None,
    sides: list[str],
    parts: dict[str, Any],
) -> str:
    """Convert a vanilla model; returns what was made and what was proved."""
    from hf_alpha import convert as conversions

    if to == "streams":
        chosen = actual or "a"
        model = conversions.convert_checkpoint(vanilla, out, chosen, placeholder or "b", sides)
        proved = (
            f"without symbols, and with {chosen} only, the logits are identical to the vanilla "
            "model's."
        )
    elif to == "relational":
        model = conversions.convert_checkpoint_to_relational(vanilla, out, actual)
        alone = f", and with {actual} only," if actual else ""
        proved = (
            f"without symbols{alone} all states are identical to the vanilla model's. {TRAIN_ON}"
        )
    elif to == "dual_part":
        model = conversions.convert_checkpoint_to_dual_part(vanilla, out, **parts)
        proved = (
            "with the vanilla model's embeddings in place of its own, the logits are identical. "
            f"{TRAIN_ON}"
        )
    else:
        raise ValueError(f"--to {to}: choose {TARGETS}")
    return f"{out}: {model.num_parameters():,} parameters. Proved on random inputs: {proved}"


def by_class(text: str) -> dict[str, str]:
    """Read `name=a b,number=1` as class -> text; a text without classes as that of the class ''."""
    from hf_alpha.modeling.names_in_text import CLASS_NAME

    parts = re.split(rf",(?={CLASS_NAME}=)", text)
    found = [re.fullmatch(rf"({CLASS_NAME})=(.+)", part, re.DOTALL) for part in parts]
    if all(found):
        return {match[1]: match[2] for match in found if match}
    return {"": text}


def _tokens_by_class(text: str | None) -> Any:
    if text is None:
        return None
    found = by_class(text)
    return found.get("", found)


def _symbol_rules(symbols: str | None, names: list[str]) -> dict[str, Any]:
    """What a conversion is told about symbols: class -> how many, and how names are found.

    Raises:
        ValueError: a number is none, or it is not clear which class a pattern is for.
    """
    from hf_alpha.convert.retrofit import CLASS

    counts = by_class(symbols or "32")
    patterns: dict[str, str] = {}
    for text in names:
        patterns |= by_class(text)
    if bad := [text for text in counts.values() if not text.isdecimal()]:
        raise ValueError(f"--symbols {bad[0]}: write 32, or name=32,number=16")
    if "" in counts:  # so many of each class
        counts = dict.fromkeys((name or CLASS for name in patterns or [CLASS]), counts[""])
    if set(patterns) == {""} and len(counts) == 1:
        patterns = {name: patterns[""] for name in counts}
    if patterns and patterns.keys() != counts.keys():
        said = ", ".join(f"{name or 'no class'}" for name in patterns)
        raise ValueError(
            f"--names is for {said}, --symbols for {', '.join(counts)}: name the same classes, "
            "such as --symbols x=32,f=16 --names x='[a-z]' --names f='[A-Z]'"
        )
    ways = {name: {"pattern": pattern} for name, pattern in patterns.items()}
    return {name: {"count": int(count), **ways.get(name, {})} for name, count in counts.items()}


@app.command()
def evaluate(
    models: Annotated[
        list[str] | None, typer.Argument(help="Folders or Hub names, one row for each.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the report, where a killed run continues; of one model, by default "
            "`evaluation` in the folder of its training run, else runs/evaluation/NAME."
        ),
    ] = None,
    task: ModelsTask = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="Dataset to use; by default formulas are drawn, and of your own pairs the "
            "recipe's data.test is taken."
        ),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Its split; by default test, or the only one.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(help="Models that do not answer: a column; metrics for each of its values."),
    ] = None,
    symbols: Annotated[
        str | None,
        typer.Option(help="Numbers of symbols, 1-8 of formulas that are drawn; of data, all."),
    ] = None,
    sizes: Annotated[
        str | None, typer.Option(help="Sizes, 1-15 of formulas that are drawn; of data, all.")
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            min=1, help="Problems for each number of symbols, 100 if they are drawn; of data, all."
        ),
    ] = None,
    hard: Hard = 0.0,
    exclude: Exclude = None,
    trained_symbols: Annotated[
        str | None,
        typer.Option(help="For the picture: symbols seen in training, 3 (at most) or 1-5."),
    ] = None,
    trained_size: Annotated[
        str | None,
        typer.Option(help="For the picture: sizes seen in training, 15 (at most) or 3-20."),
    ] = None,
    beams: Beams = None,
    top_n: Annotated[int, typer.Option(min=1, help="Also: is one of N answers correct?")] = 1,
    covariance: Annotated[
        int, typer.Option(min=0, help="Formulas for each number of symbols; 0 for none.")
    ] = 10,
    max_renamings: Annotated[
        str, typer.Option("--renamings", help="For alpha-covariance: most of a formula, or all.")
    ] = "24",
    draws: Annotated[
        int, typer.Option(min=0, help="Of the random parts of dual_part models; shows the spread.")
    ] = 0,
    batch_size: Annotated[int, typer.Option(min=1, help="Formulas in a batch.")] = 64,
    workers: Annotated[
        int, typer.Option(min=0, help="Processes that check; 0 checks between batches.")
    ] = 0,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds for a call of a solver.")] = 10.0,
    device: Device = "auto",
    card: Annotated[
        bool, typer.Option("--card", help="Write each model's README.md from the results.")
    ] = False,
    license: Annotated[
        str | None, typer.Option(help="For --card: the model's, such as cc-by-nc-4.0.")
    ] = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    few_shot: Annotated[
        bool,
        typer.Option(
            "--few-shot",
            help="Ask models without symbols by the task's prompt: any of Transformers.",
            rich_help_panel=ASKED,
        ),
    ] = False,
    address: Annotated[
        str | None,
        typer.Option(
            help="Ask a service that speaks OpenAI's protocol: http://localhost:8000/v1. Problems "
            "are sent there, and nowhere else.",
            rich_help_panel=ASKED,
        ),
    ] = None,
    served: Annotated[
        str | None,
        typer.Option(help="What the service calls its model.", rich_help_panel=ASKED),
    ] = None,
    key_from: Annotated[
        str | None,
        typer.Option(
            help="Environment variable that holds the service's key.", rich_help_panel=ASKED
        ),
    ] = None,
    parallel: Annotated[
        int | None,
        typer.Option(
            min=1, help="Requests to the service at a time; by default 4.", rich_help_panel=ASKED
        ),
    ] = None,
    generation: Annotated[
        str | None,
        typer.Option(
            help="As JSON, arguments of generate, or fields of a request: "
            """'{"max_new_tokens": 512}', '{"max_tokens": 512}'.""",
            rich_help_panel=ASKED,
        ),
    ] = None,
) -> None:
    """Measure correctness, exactness, edit distance and alpha-covariance beside random answers.

    Of models that do not answer with text: the metrics of their recipe's objective. Models that
    follow instructions are asked by a prompt: docs/instructed.md.
    """
    models = models or []
    _check_places(*models)
    from datasets import disable_progress_bars

    from hf_alpha.data.read import leave_out, load, training_problems
    from hf_alpha.evaluation.compare import choose_rows, compare, draw_problems
    from hf_alpha.loading import ANSWERING, auto_class, load_config
    from hf_alpha.processes import choose_device
    from hf_alpha.tasks import get_task

    if not models and address is None:
        raise ValueError("name a model: a folder, a name on the Hub, or --address and --served")
    if (trained_symbols is None) != (trained_size is None):
        raise ValueError("--trained-symbols and --trained-size outline a region together")
    if data is not None and hard:
        raise ValueError("--hard is for formulas that are drawn: leave it out with --data")
    if card and (few_shot or address):
        raise ValueError("--card is for trained models: leave it out with --few-shot and --address")
    if card and (elsewhere := [model for model in models if not Path(model).is_dir()]):
        raise ValueError(f"--card writes beside a model, and {elsewhere[0]} is no folder here")
    if license is not None and not card:
        raise ValueError("--license is what a card says: give --card too")
    _check_asked(few_shot, address, served, key_from, parallel, generation)
    limit, where = renamings(max_renamings), choose_device(device)
    if quiet:
        disable_progress_bars()
    if models and auto_class(load_config(models[0])) not in ANSWERING:
        if few_shot or address is not None:
            option = "--few-shot" if address is None else "--address"
            raise ValueError(f"{models[0]} does not write answers: leave out {option}")
        for option, given in (("symbols", symbols), ("sizes", sizes), ("samples", samples)):
            if given is not None:
                raise ValueError(f"--{option} is for models that write answers: leave it out")
        out = out or _beside(models, data)
        written = _evaluate_objective(
            models, data, split, by, out, batch_size, device, card, license
        )
        typer.echo(written)
        return
    if by is not None:
        raise ValueError("--by is for models that do not answer with text: leave it out")
    told = _json_object("--generation", generation)
    loaded = _entrants(models, told if few_shot else None, where, seed)
    if address is not None:
        loaded.append(_service(address, served, key_from, told, parallel))
    recipe = _recipe_of(models, task, few_shot)
    solved = recipe.solved if recipe is not None else get_task(task or DEFAULT_TASK)
    if out is None and address is not None:
        raise ValueError("name a folder for the report with --out")
    own = recipe is not None and solved.own_data
    drawn = data is None and not own
    out = out or _beside(models, data, *([] if drawn else [symbols, sizes, samples]))
    if own and (hard or exclude):
        option = "--hard" if hard else "--exclude"
        raise ValueError(f"{option} is for formulas: leave it out with pairs of your own")
    known = [problem for each in exclude or () for problem in training_problems(each)]
    if drawn:
        rows = draw_problems(
            solved,
            out / "problems",
            integers(symbols or "1-8"),
            integers(sizes or "1-15"),
            samples or 100,
            seed,
            hard,
            known,
            progress=not quiet,
        )
    else:
        if recipe is not None and own:
            rows = _own_rows(recipe, data, split)
        else:
            dataset = load(str(data), split, solved, preferred_split="test")
            rows = list(leave_out(dataset, known, solved) if known else dataset)
        many, long = (None if text is None else integers(text) for text in (symbols, sizes))
        rows = choose_rows(rows, many, long, samples, seed)
    table, reports = compare(
        loaded,
        solved,
        rows,
        out,
        region=_region(trained_symbols, trained_size),
        num_beams=beams,
        top_n=top_n,
        covariance=covariance,
        max_renamings=limit,
        draws=draws,
        batch_size=batch_size,
        timeout=timeout,
        num_workers=workers,
        seed=seed,
        progress=not quiet,
    )
    if card:
        _write_cards(models, reports, license)
    typer.echo(table)
    typer.echo(f"report and pictures are in {out}")


def _recipe_of(models: list[str], task: str | None, few_shot: bool) -> "Recipe | None":
    """What the first model says of its task; None where it says nothing, and may."""
    from hf_alpha.recipe import recipe_for, recipe_of

    if not models or (few_shot and task is not None):
        return None
    return recipe_of(models[0]) if few_shot else recipe_for(models[0], task)


def _entrants(
    models: list[str], generation: dict[str, Any] | None, where: Any, seed: int
) -> "list[Entrant]":
    """Load models to be measured.

    Args:
        generation: how models without symbols generate; None where there shall be none.
        where: the device.
        seed: of what is drawn.
    """
    from hf_alpha.evaluation.compare import EvaluatedModel
    from hf_alpha.evaluation.instructed import AskedModel, LocalModel
    from hf_alpha.loading import auto_class, load_checkpoint, load_config, load_host

    loaded: list[Entrant] = []
    for name, folder in zip(row_names(models), models, strict=True):
        config = load_config(folder)
        if generation is None or hasattr(config, "symbol_classes"):
            model, tokenizer = load_checkpoint(folder)
            loaded.append(EvaluatedModel(name, model.to(where), tokenizer))
        else:
            model, tokenizer = load_host(folder, auto_class(config))
            asked = LocalModel(model.to(where), tokenizer, generation, seed)
            loaded.append(AskedModel(name, asked))
    return loaded


def _check_asked(
    few_shot: bool,
    address: str | None,
    served: str | None,
    key_from: str | None,
    parallel: int | None,
    generation: str | None,
) -> None:
    """Raise ValueError for an option that would do nothing, or would be for two kinds of models."""
    if generation is not None and few_shot and address is not None:
        raise ValueError("--generation is for models here or for a service: ask one of them")
    if generation is not None and not few_shot and address is None:
        raise ValueError("--generation is for models that are asked: add --few-shot or --address")
    options = {"--served": served, "--key-from": key_from, "--parallel": parallel}
    given = [option for option, value in options.items() if value is not None]
    if given and address is None:
        raise ValueError(f"{given[0]} is for a service: name it with --address, or leave it out")


def _service(
    address: str,
    served: str | None,
    key_from: str | None,
    request: dict[str, Any],
    parallel: int | None,
) -> "Entrant":
    """A model behind an address."""
    from hf_alpha.evaluation.instructed import AskedModel
    from hf_alpha.evaluation.service import Service

    if served is None:
        raise ValueError("say with --served what the service at --address calls its model")
    if key_from is not None and not os.environ.get(key_from):
        raise ValueError(f"there is no environment variable {key_from}, which --key-from names")
    key = None if key_from is None else os.environ[key_from]
    return AskedModel(served, Service(address, served, key, request, parallel or 4))


def _check_places(*models: str) -> None:
    """Refuse a mistyped folder before torch is loaded, which takes seconds."""
    from hf_alpha.folders import checkpoint_place

    for model in models:
        checkpoint_place(model)


def _json_object(option: str, text: str | None) -> dict[str, Any]:
    """Read the value of an option."""
    try:
        found = json.loads(text or "{}")
    except ValueError as error:
        raise ValueError(f"{option} {text}: no JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{option} {text}: write a JSON object")
    return found


def _beside(models: list[str], data: str | None, *chosen: object) -> Path:
    """The folder `evaluation` in that of a training run; of data and choices, one of their own.

    Of other models it is under `runs`: what was released or converted stays as it is.
    """
    from hf_alpha.train import TRAINER_STATE

    if len(models) > 1:
        raise ValueError("name a folder for the report with --out")
    given = [] if data is None else [Path(data).name.partition(".")[0]]
    name = "-".join(["evaluation", *given, *(str(x) for x in chosen if x is not None)])
    folder = Path(models[0])
    if (folder / TRAINER_STATE).is_file():
        return folder / name
    return Path("runs") / name / "-".join(part for part in folder.parts if part.strip("./"))


def _own_rows(recipe: "Recipe", data: str | None, split: str | None) -> list[dict[str, Any]]:
    """Rows of the user's own pairs: those given, or the recipe's test."""
    from hf_alpha.data.own import own_rows, read_own

    where = _test_data(recipe, data)
    solved = recipe.solved
    pairs = read_own(recipe.data, where, solved.finder, "test", split)  # type: ignore[attr-defined]
    return own_rows(pairs, solved)


def _test_data(recipe: "Recipe", data: str | None) -> Any:
    """Where test data is: what is given, or what a recipe says."""
    where = data or recipe.data.test
    if where is None:
        raise ValueError("name a file of pairs with --data: no recipe of the model has data.test")
    path = where if isinstance(where, str) else where["path"]
    if data is None and not Path(path).exists() and path.count("/") != 1:
        raise ValueError(
            f"the recipe's data.test, {path}, is not here (it is relative to the folder in which "
            "training was started): name a file of pairs with --data"
        )
    return where


def _evaluate_objective(
    models: list[str],
    data: str | None,
    split: str | None,
    by: str | None,
    out: Path,
    batch_size: int,
    device: str,
    card: bool,
    license: str | None,
) -> str:
    """Score models that do not answer with text by the first one's recipe; returns the table."""
    from hf_alpha.folders import write_text
    from hf_alpha.objectives.evaluate import evaluate_checkpoint, table
    from hf_alpha.processes import choose_device
    from hf_alpha.recipe import recipe_of

    scores = {}
    recipe = recipe_of(models[0])
    if recipe is None or recipe.aim is None:
        raise ValueError(f"{models[0]} has no recipe.yaml that says what it is trained for")
    where = _test_data(recipe, data)
    for name, folder in zip(row_names(models), models, strict=True):
        found = evaluate_checkpoint(
            folder, recipe.aim, recipe.data, where, split=split, by=by, batch_size=batch_size,
            device=choose_device(device),
        )  # fmt: skip
        parts = [part for part in Path(name).parts if part not in ("/", "..")]
        found.save(out.joinpath(*parts) if len(models) > 1 else out)
        scores[name] = found
    written = table(scores, by)
    write_text(out / "report.txt", f"{written}\n")
    if card:
        from hf_alpha.score_card import write_score_card

        rows = recipe.aim.read(recipe.data, where, "test", split)
        for folder, found in zip(models, scores.values(), strict=True):
            write_score_card(
                Path(folder), recipe.aim, found, rows, recipe.data, by=by,
                command=_this_command(), date=f"{date.today()}", license=license,
            )  # fmt: skip
    return f"{written}\nmetrics and predictions are in {out}"


@app.command("zero-shot")
def zero_shot(
    model: Annotated[
        str, typer.Argument(help="Folder or Hub name: any masked language model of Transformers.")
    ],
    task: Annotated[
        str, typer.Option(help="Of GLUE: sst2, cola, mnli, qnli, rte, mrpc, qqp or stsb.")
    ],
    data: Annotated[
        str | None, typer.Option(help="File to use; by default GLUE's validation data of the Hub.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Its split, if it has several.")] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Of texts and label, by default GLUE's: premise,hypothesis,label"),
    ] = None,
    data_format: Annotated[
        str | None, typer.Option("--format", help="How the file is written: cola, mrpc or sst2.")
    ] = None,
    template: Annotated[str | None, typer.Option(help="Another prompt: '{0}? {mask}, {1}'")] = None,
    words: Annotated[
        str | None,
        typer.Option(help="Other words for labels: entailment=Yes,not_entailment=No"),
    ] = None,
    max_length: Annotated[int, typer.Option(min=1, help="Tokens in a prompt.")] = 128,
    batch_size: Annotated[int, typer.Option(min=1, help="Rows in a batch.")] = 32,
    samples: Annotated[int | None, typer.Option(min=1, help="Only the first rows.")] = None,
    device: Device = "auto",
    out: Annotated[
        Path | None, typer.Option(help="Folder for metrics.json and predictions.jsonl.")
    ] = None,
) -> None:
    """Let a masked language model solve a task of GLUE by a prompt, without any training.

    Prompts and metrics are those of Gao et al. (2021).
    """
    from hf_alpha.objectives.evaluate import Scores, table
    from hf_alpha.objectives.zero_shot import label_words, read_task, solve_task
    from hf_alpha.processes import choose_device

    prompt, rows = read_task(
        task,
        data,
        split=split,
        columns=columns.split(",") if columns else None,
        data_format=data_format,
        template=template,
        words=label_words(words) if words else None,
        most=samples,
    )
    where = choose_device(device)
    scores: Scores = solve_task(model, prompt, rows, max_length, batch_size, where)
    if out is not None:
        scores.save(out)
    typer.echo(table({row_names([model])[0]: scores}))


@app.command("compare")
def compare_command(
    recipe: Annotated[str, typer.Argument(help="A recipe for your own pairs.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Changes: training.max_steps=100 model.d_model=64")
    ] = None,
    encodings: Annotated[
        str, typer.Option(help="learned, renaming, canonical, dual_part, streams, relational")
    ] = "relational,streams,canonical,learned",
    out: Annotated[Path, typer.Option(help="Folder for models, table and pictures.")] = Path(
        "comparison"
    ),
    minutes: Annotated[
        float | None,
        typer.Option(min=0.01, help="Train each for so long; by default for the recipe's steps."),
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="Pairs to test on; by default the recipe's data.test.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Their split; by default test.")] = None,
    covariance: Annotated[
        int, typer.Option(min=0, help="Problems for each number of names; 0 for none.")
    ] = 10,
    quiet: Quiet = False,
) -> None:
    """Train a recipe once with each encoding, and draw all of them side by side."""
    from hf_alpha.recipe import read_recipe
    from hf_alpha.side_by_side import CURVES_FILE, compare_encodings

    chosen = read_recipe(recipe, overrides)
    if chosen.data.train is None:
        raise ValueError(f"{recipe} is no recipe for pairs of your own: its data has no 'train'")
    names = [name.strip() for name in encodings.split(",") if name.strip()]
    table, _ = compare_encodings(
        chosen,
        names,
        _own_rows(chosen, data, split),
        out,
        seconds=None if minutes is None else 60 * minutes,
        covariance=covariance,
        say=typer.echo,
        progress=not quiet,
    )
    typer.echo(f"\n{table}\n\npicture: {out / CURVES_FILE}")


def _region(
    symbols: str | None, size: str | None
) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Smallest and largest number of symbols, and size, seen in training; None if not given."""
    if symbols is None or size is None:
        return None
    return _bounds(symbols, 0), _bounds(size, 1)


def _write_cards(models: list[str], reports: "list[Report]", license: str | None) -> None:
    from hf_alpha.card import write_card

    for folder, report in zip(models, reports, strict=False):
        write_card(Path(folder), report, reports[-1], _this_command(), f"{date.today()}", license)


def _this_command() -> str:
    return shlex.join(["hf-alpha", *sys.argv[1:]])


def _bounds(text: str, smallest: int) -> tuple[int, int]:
    numbers = integers(text)
    return (numbers[0] if len(numbers) > 1 else smallest), numbers[-1]


@app.command()
def reproduce(
    table: Annotated[
        str | None, typer.Argument(help="Which one; without it they are listed.")
    ] = None,
    size: Annotated[
        str, typer.Option(help="cpu (minutes for each row), or full (the papers', for a GPU).")
    ] = "cpu",
    seeds: Annotated[str, typer.Option(help="Of weights and batches.")] = "0,1",
    only: Annotated[
        str | None, typer.Option(help="Rows, or patterns such as '*-normal', with commas.")
    ] = None,
    runs: Annotated[Path, typer.Option(help="Folder for models, problems and reports.")] = Path(
        "runs/reproduce"
    ),
    out: Annotated[Path, typer.Option(help="Folder for the results, a file each.")] = FOLDER,
    write_document: Annotated[
        bool,
        typer.Option(
            "--write-document",
            help="Write docs/results.md (results.md in another --out) and its pictures.",
        ),
    ] = False,
) -> None:
    """Measure a table of the papers again: train and test what is missing of it.

    A run that was killed goes on where it stopped. What is done is not done again.
    """
    from hf_alpha.reproduce.document import write_document as write
    from hf_alpha.reproduce.run import overview
    from hf_alpha.reproduce.run import reproduce as run
    from hf_alpha.reproduce.sizes import SIZES
    from hf_alpha.reproduce.tables import TABLES
    from hf_alpha.train import Interrupted

    chosen, numbers = _one_of(SIZES, "size", size), integers(seeds)
    if table is not None:
        rows = [] if only is None else only.split(",")
        try:
            run(_one_of(TABLES, "table", table), chosen, numbers, rows, runs, out, typer.echo)
        except Interrupted as stop:
            typer.echo(str(stop), err=True)
            raise typer.Exit(130) from None
    if write_document:
        typer.echo(f"{write(TABLES.values(), SIZES.values(), out)} is written")
    elif table is None:
        typer.echo(overview(TABLES.values(), chosen, numbers, runs, out))


def _one_of(known: dict[str, Any], what: str, name: str) -> Any:
    if name not in known:
        raise ValueError(f"no {what} {name!r}: choose from {', '.join(known)}")
    return known[name]


@app.command()
def solve(
    formulas: Annotated[
        list[str] | None, typer.Argument(help="Prefix or infix; standard input if there are none.")
    ] = None,
    file: Annotated[Path | None, typer.Option(help="File with a formula in each line.")] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Folder or Hub name; by default the released one of the task."),
    ] = None,
    task: ModelsTask = None,
    top: Annotated[
        int | None, typer.Option(min=1, help="Print the N best answers; 1 by default.")
    ] = None,
    first_correct: Annotated[
        bool,
        typer.Option(
            "--first-correct",
            help="Print the first of the N best answers (--top, 10 by default, of as many beams) "
            "that is correct, or else the best.",
        ),
    ] = False,
    beams: Beams = None,
    notation: Annotated[
        str | None, typer.Option(help="prefix, compact or infix; detected by default.")
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            help="Texts, where a rule reads names from a column: those of your texts, zoe,max, or "
            "person=zoe,max, once for each class."
        ),
    ] = None,
    device: Device = "auto",
) -> None:
    """Solve formulas, and check every answer with a solver; or have a model answer your texts.

    hf-alpha solve 'request & !grant' '|a&bc'

    Models always answer. Where no answer is right and the solver proves that the formula has none,
    it says unsatisfiable in place of them.

    Formulas that begin with - come after --: hf-alpha solve --top 2 -- '->ab'
    """
    problems = _inputs(formulas, file, "formula")
    solved = _task_of(task, model)
    if first_correct and not solved.has_check:
        raise ValueError(f"--first-correct: task {solved.name!r} has no check of answers")
    if names:
        problems = _with_names(problems, names, solved)
    faults = _faults(solved.name, problems, notation)
    readable = [problem for problem, fault in zip(problems, faults, strict=True) if fault is None]
    top = top or (TRIED if first_correct else 1)
    solutions = _solutions(readable, model, solved, top, first_correct, beams, notation, device)
    unsolved = 0
    for problem, fault in zip(problems, faults, strict=True):
        solution = next(solutions) if fault is None else None
        answered = solution is not None and bool(solution.answers) and not solved.has_check
        unsolved += solution is None or not (solution.solved or answered)
        typer.echo(problem)
        if solution is not None and solution.read_as is not None:
            typer.echo(f"  {'read as':<10} {solution.read_as}")
        if error := fault if solution is None else solution.error:
            typer.echo(f"  error: {error}", err=True)
        if solution is None:
            continue
        if solution.unsatisfiable:
            typer.echo("  unsatisfiable")
            continue
        for answer, verdict in solution.answers:
            label = verdict.value if solved.has_check else "answer"
            typer.echo(f"  {label:<10} {answer or solved.empty_answer}")
    if unsolved:
        raise typer.Exit(1)


def _task_of(task: str | None, model: str | None) -> "AnyTask":
    """The task that is asked for, or that of the model."""
    if model is not None:
        _check_places(model)
        quiet_bars()
        from hf_alpha.recipe import recipe_for

        return recipe_for(model, task).solved
    from hf_alpha.tasks import get_task

    return get_task(task or DEFAULT_TASK)


def _with_names(texts: list[str], names: list[str], solved: "AnyTask") -> list[str]:
    """Mark names in texts, as the column of a rule does for a row.

    Raises:
        ValueError: the task finds no names by rules, it is not clear of which class names are, or
            one stands in no text.
    """
    finder = getattr(solved, "finder", None)
    if finder is None:
        raise ValueError(f"--names is for texts with rules for names: {solved.name!r} has none")
    by_row = [name for name, rule in finder.rules.items() if rule.by_row]
    classes = by_row or list(finder.rules)
    listed: dict[str, list[str]] = {}
    for option in names:
        for kind, said in by_class(option).items():
            if kind not in finder.rules and (kind or len(classes) > 1):
                known = ", ".join(finder.rules)
                raise ValueError(
                    f"--names {option}: write {classes[0]}=..., with one of the classes {known}"
                )
            some = filter(None, map(str.strip, said.split(",")))
            listed.setdefault(kind or classes[0], []).extend(some)
    marked = [finder.mark(text, listed) for text in texts]
    found = {text[start:stop] for text in marked for start, stop, _ in text.spans}
    if absent := [name for some in listed.values() for name in some if name not in found]:
        raise ValueError(f"--names: {absent[0]!r} stands in no text, or not as a whole word")
    return marked


def _faults(task: str, problems: list[str], notation: str | None) -> list[str | None]:
    """What is wrong with the syntax of each formula; found without importing torch.

    A task that is unknown, or has no grammar, finds no fault here.
    """
    from hf_alpha.modeling.grammar import FormulaError, Grammar
    from hf_alpha.resources import resource_path

    data = None
    with contextlib.suppress(FileNotFoundError):
        path = resource_path("tokenizer", task, "tokenizer_config.json")
        data = json.loads(path.read_text(encoding="utf-8"))["grammar"]
    faults: list[str | None] = [None] * len(problems)
    if data is not None:
        grammar = Grammar.from_dict(data)
        for index, problem in enumerate(problems):
            try:
                grammar.parse(problem, notation)
            except FormulaError as error:
                faults[index] = str(error)
    return faults


def _solutions(
    problems: list[str],
    model: str | None,
    solved: "AnyTask",
    top: int,
    first_correct: bool,
    beams: int | None,
    notation: str | None,
    device: str,
) -> "Iterator[Solution]":
    """Load a model, at the first problem, and solve."""
    quiet_bars()
    from hf_alpha.loading import load_checkpoint
    from hf_alpha.processes import choose_device
    from hf_alpha.resources import resource_path
    from hf_alpha.solve import solve as run
    from hf_alpha.tasks import name_of

    work_on = choose_device(device)
    if model is None and solved.released_model is None:
        raise ValueError(f"no model of task {name_of(solved)!r} is released: name one with --model")
    where = model or resource_path("model_cards", f"{solved.released_model}")
    loaded, tokenizer = load_checkpoint(where)
    yield from run(
        loaded.to(work_on),
        tokenizer,
        solved,
        problems,
        top=top,
        first_correct=first_correct,
        num_beams=beams,
        notation=notation,
    )


def _inputs(given: list[str] | None, file: Path | None, what: str) -> list[str]:
    """Texts given as arguments and in the lines of a file, or else on standard input."""
    texts = list(given or [])
    if file is not None:
        try:  # some editors begin a file with a mark of its encoding
            texts += file.read_text(encoding="utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise ValueError(f"{file} is no text in UTF-8: {error}") from None
    elif not texts:
        if sys.stdin.isatty():
            raise ValueError(
                f"no {what}: give one as an argument, with --file or on standard input"
            )
        try:
            texts = sys.stdin.read().splitlines()
        except UnicodeDecodeError as error:
            raise ValueError(f"standard input is no text in UTF-8: {error}") from None
    texts = [text for text in texts if text.strip()]
    if not texts:
        raise ValueError(f"no {what}: the input is empty")
    return texts


@app.command()
def transduce(
    texts: Annotated[
        list[str] | None, typer.Argument(help="Sentences; standard input if there are none.")
    ] = None,
    file: Annotated[Path | None, typer.Option(help="File with a text in each line.")] = None,
    lexicon: Annotated[
        list[Path] | None,
        typer.Option(help="File with phrase, tab, label in each line; may be repeated."),
    ] = None,
    rules: Annotated[
        Path | None, typer.Option(help="YAML file: a list of rules with pattern and label.")
    ] = None,
    transducer: Annotated[
        Path | None, typer.Option(help="Folder that --save made, in place of the two above.")
    ] = None,
    plurals: Annotated[
        bool, typer.Option("--plurals", help="Find regular English plurals of phrases too.")
    ] = False,
    unit: Annotated[str | None, typer.Option(help="words (by default) or characters.")] = None,
    match: Annotated[
        str | None, typer.Option(help="all segments (by default), or the leftmost longest.")
    ] = None,
    svg: Annotated[Path | None, typer.Option(help="Draw the text: a file to write.")] = None,
    save: Annotated[Path | None, typer.Option(help="Folder to save the transducer in.")] = None,
) -> None:
    """Find labelled segments in texts by a lexicon and rules, and print their gamma-spaces.

    hf-alpha transduce 'They deliver fire hoses' --lexicon compounds.tsv --rules rules.yaml
    """
    read = [{"path": str(path), "plurals": plurals} for path in lexicon or []]
    compiled = _transducer_of(read, rules, transducer, {"unit": unit, "match": match})
    if save is not None:
        compiled.save(save)
        typer.echo(f"the transducer is in {save}")
        if not texts and file is None:
            return
    spaces = [compiled(text) for text in _inputs(texts, file, "text")]
    if svg is not None:
        from hf_alpha.folders import write_text

        if len(spaces) > 1:
            raise ValueError(f"--svg draws one text, and there are {len(spaces)}")
        write_text(svg, spaces[0].svg())
    for space in spaces:
        typer.echo(f"{space}")
        width = max((len(segment.label) for segment in space.segments), default=0)
        for segment in space.segments:
            place = f"{segment.start + 1}-{segment.end + 1}"
            typer.echo(f"  {place:<7} {segment.label:<{width}}  {space.covered(segment)}")


def _transducer_of(
    lexicon: list[dict[str, Any]],
    rules: Path | None,
    folder: Path | None,
    settings: dict[str, str | None],
) -> "Transducer":
    """Load a transducer, or compile one."""
    from hf_alpha.transduction import Transducer

    given: dict[str, Any] = {
        "lexicon": lexicon,
        "rules": None if rules is None else str(rules),
        **settings,
    }
    given = {key: value for key, value in given.items() if value}
    if folder is None:
        if not given.keys() & {"lexicon", "rules"}:
            raise ValueError("nothing to find: name a --lexicon, --rules or a --transducer")
        return Transducer.from_settings(given)
    if given:
        raise ValueError(f"the transducer in {folder} has its own {', '.join(given)}: leave it out")
    return Transducer.load(folder)


@app.command()
def release(
    run: Annotated[
        Path,
        typer.Argument(help="Output folder of a finished training run, or one of its checkpoints."),
    ],
    out: Annotated[
        Path | None, typer.Argument(help="Folder to make; left out, RUN's code is renewed.")
    ] = None,
) -> None:
    """Make the folder to share from a training run: model, code, recipe and log, no more."""
    from hf_alpha.release import refresh
    from hf_alpha.release import release as make

    if out is None:
        refresh(run)
        typer.echo(f"{run} has this version's code")
    else:
        make(run, out)
        typer.echo(f"{out}: add a card with hf-alpha evaluate {out} --out DIR --card")


@app.command()
def info(
    models: Annotated[list[str], typer.Argument(help="Folders or Hub names.")],
) -> None:
    """Say what a model is: encoding and promises, sizes, vocabulary, training, how to load it."""
    _check_places(*models)
    from hf_alpha.info import describe_model

    typer.echo("\n\n".join(describe_model(model) for model in models))


@app.command()
def env() -> None:
    """Print the versions of everything that matters, for a bug report."""
    from hf_alpha.environment import describe_environment

    typer.echo(describe_environment())


@app.command()
def push(
    folder: Annotated[Path, typer.Argument(help="Model folder, or dataset folder.")],
    repository: Annotated[str, typer.Argument(help="owner/name on the Hub.")],
    private: Annotated[
        bool, typer.Option("--private", help="Make the repository private.")
    ] = False,
) -> None:
    """Share a model with its tokenizer, card and code, or a dataset, on the Hugging Face Hub."""
    from hf_alpha.push import push as run

    typer.echo(run(folder, repository, private=private))


@app.command()
def quickstart(
    task: Annotated[
        str,
        typer.Option(help="What is solved: text, or another task that has a tour."),
    ] = "text",
    output: Annotated[
        Path | None,
        typer.Option(help="Folder for model, table and picture; quickstart or quickstart-TASK."),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Training steps; by default as many as fit into two minutes."),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(min=1, help="Problems for each number of names in the evaluation."),
    ] = None,
    seed: Seed = 0,
) -> None:
    """See in minutes what it is about: models on more names than they were trained on.

    text: four encodings of names, trained on pairs for the same time. propositional, ltl: a vanilla
    model is converted and tuned, and a solver checks every answer.
    """
    from hf_alpha.tours import DEFAULT_TOUR, run_tour

    folder = "quickstart" if task == DEFAULT_TOUR else f"quickstart-{task}"
    run_tour(output or Path(folder), task, steps=steps, samples=samples, seed=seed)


def main() -> None:
    """Entry point: errors that the user can mend are one line, others keep their traceback."""
    try:
        app(prog_name="hf-alpha")
    except Exception as error:
        message = _what_to_mend(error)
        if message is None:
            raise
        _fail(message)


def _fail(message: str) -> NoReturn:
    typer.secho("error: ", fg="red", bold=True, nl=False, err=True)
    typer.echo(message, err=True)
    sys.exit(2)


def _what_to_mend(error: Exception) -> str | None:
    """What a user reads of an error that can be mended; None for any other."""
    from huggingface_hub.errors import StrictDataclassError
    from huggingface_hub.utils import httpx
    from safetensors import SafetensorError

    if isinstance(error, httpx.RequestError):
        return f"{error.request.url} cannot be reached: {error}"
    named = (ValueError, OSError, ImportError, StrictDataclassError, SafetensorError)
    return str(error) if isinstance(error, (*named, httpx.HTTPError)) else None


if __name__ == "__main__":
    main()
