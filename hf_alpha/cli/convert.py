"""`hf-alpha convert`, `convert-folnet`, `convert-geometric`: a model becomes another."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hf_alpha.cli.common import check_places, say
from hf_alpha.cli.options import Seed, by_class, may_trust, refuse

TARGETS = "streams, relational or dual_part"  # what a vanilla model is converted into
TAKES: dict[str, set[str]] = {
    "streams": {"actual", "placeholder", "add_aggregated_attention"},
    "relational": {"actual"},
    "dual_part": {"actual", "random_dim", "random_method"},
    "learned": set(),
}
"""Options that a target takes, beside those that all take."""
TRAIN_ON = "It has to be trained before it is of use: `checkpoint:` in a recipe."


@may_trust("model")
def convert(
    command: typer.Context,
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
    check_places(model)
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
    ours = has_symbols and not hasattr(config, "backbone_config")
    if to in TAKES:
        taken = TAKES[to] - ({"actual"} if ours and to == "dual_part" else set())
        refuse(command, sorted(set.union(*TAKES.values()) - taken), f"has no effect with --to {to}")
    if ours:
        if renaming:
            raise ValueError(f"--renaming is for models of Transformers; {model} is none")
        made = _convert_vanilla(model, out, to, actual, placeholder, sides, {**parts, "seed": seed})
        say(made)
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
    convert_host(model, out, chosen, say)


@may_trust("tokenizer")
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
    say(
        f"{type(model).__name__} with {model.num_parameters():,} parameters: the same outputs as "
        f"the original code's, on random texts without padding; it is in {out}"
    )


@may_trust("model")
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
    say(
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
        found = by_class(text)
        if twice := patterns.keys() & found.keys():
            raise ValueError(f"--names is given twice for {min(twice) or 'no class'}: {text}")
        patterns |= found
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


__all__ = ["convert", "convert_folnet", "convert_geometric"]
