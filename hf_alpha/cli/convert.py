"""`hf-alpha convert`: a model becomes another; what it is given says which way."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import typer

from hf_alpha.checkpoints.places import base_of, checkpoint_place
from hf_alpha.cli.common import say
from hf_alpha.cli.options import (
    argument,
    flag,
    grouped,
    may_trust,
    names_of,
    option,
    refuse_options,
)
from hf_alpha.names.given_names import by_class, patterns_of, read_rule

TARGETS = "streams, relational or dual_part"  # what a vanilla model is converted into
TAKES: dict[str, set[str]] = {
    "streams": {"actual", "placeholder", "add_aggregated_attention"},
    "relational": {"actual"},
    "dual_part": {"actual"},
    "learned": set(),
    "canonical": set(),
}
"""Options that a target takes, beside those that all take."""
ITS = "the vanilla model's"
TRAIN_ON = "It has to be trained before it is of use: `checkpoint:` in a recipe."


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """The encoding of symbols that a model gets, and what its vectors begin with."""

    PANEL: ClassVar[str] = "The encoding of names"
    to: str = option(
        f"What it becomes: {TARGETS}; Transformers' models also learned, which leaves "
        "them as they are, or canonical, whose tokenizer writes names as words of the model.",
        "streams",
    )
    actual: str | None = option(
        "Symbol whose vector becomes the actual one (a), or, with --to relational, that "
        "of its class (the mean); commas for classes. Of Transformers' models any words, for "
        "the mean of their tokens (relational: for the names of a text in turn), or "
        "name=a,number=1."
    )
    placeholder: str | None = option("streams: likewise, whose vector becomes the placeholder (b).")
    add_aggregated_attention: str = option(
        "streams: sides that get silent new blocks: encoder,decoder", ""
    )

    @property
    def sides(self) -> list[str]:
        """The sides that get blocks of aggregated attention."""
        sides = self.add_aggregated_attention.split(",")
        return [side.strip() for side in sides if side.strip()]


@dataclass(frozen=True, kw_only=True)
class HostSymbols:
    """The symbols that a model of Transformers gets."""

    PANEL: ClassVar[str] = "Models of Transformers"
    symbols: str | None = option(
        "How many symbols are added, 32, or name=32,number=16 for several classes."
    )
    names: list[str] | None = option(
        "A regular expression that says which words are names, '\\[a-z]+', or "
        "variable='\\[a-z]+', once for each class; or a rule as in a recipe, '{rule: python}'. "
        "Left out, the recipe says it."
    )
    symbol_tokens: str | None = option(
        "Tokens that become the symbols, in place of --symbols: 'a b c', or "
        "'name=a b c,number=1 2'."
    )
    renaming: str | None = option(
        "Rename symbols inside the model, random or first_occurrence; with --to learned, "
        "the cheap baselines. With --to canonical, which words names become."
    )
    new_symbols: bool = flag(
        "--new-symbols",
        "Answers may have names that their input lacks; with any encoding but streams.",
    )


@dataclass(frozen=True, kw_only=True)
class SegmentOptions:
    """How an encoder of BERT's family sees symbolic segments."""

    PANEL: ClassVar[str] = "Encoders of BERT's family, to see symbolic segments"
    transducer: Path | None = option("Folder of a transducer: hf-alpha transduce --save.")
    gate: float = option(
        "Share of attention to segments with which training begins, set after the proof: "
        "1 is better where data are few.",
        0.0,
        min=0,
        max=1,
    )
    head: str | None = option(
        "What is converted beside the encoder: masked, tokens, texts or none; by default "
        "what the folder says that its model is for. To train it on classes of texts, none "
        "keeps BERT's summary of the first token."
    )


@grouped
@may_trust("model", "tokenizer")
def convert(
    command: typer.Context,
    model: str = argument(
        "Folder or Hub name of a model of Transformers that writes text, a 'learned' "
        "model, or with --transducer an encoder; or the settings of an original FOLNet, a "
        ".cfg file that has its weights beside it, as .pt."
    ),
    out: Path = argument("Folder for the converted model."),
    *,
    encoding: Encoding,
    symbols: HostSymbols,
    segments: SegmentOptions,
    tokenizer: str | None = option(
        "Folder or Hub name of the tokenizer that an original FOLNet was trained with; "
        "it goes with the model."
    ),
) -> None:
    """Convert a model into one that does not care how symbols are named, and prove it by logits.

    hf-alpha convert google-t5/t5-small OUT --symbols 32

    Any encoder-decoder or decoder of Transformers: T5, BART, Llama, Qwen. Then train it on texts.

    An adapter of PEFT is merged into its model, and nothing else: hf-alpha convert lora/ OUT

    A vanilla model of this package: of use at once with --to streams, else after training.

    An encoder, which then sees segments: BERT, RoBERTa, ELECTRA, DistilBERT, ALBERT and others.

    hf-alpha convert google-bert/bert-base-uncased OUT --transducer fst/

    A checkpoint of FOLNet's original code:

    hf-alpha convert base.step8000.cfg OUT --tokenizer bert-base-uncased

    From Python (`get_symbol_model`, `to_dual_part`, `to_geometric`) there are further settings.
    """
    if Path(model).suffix == ".cfg":
        refused = names_of(Encoding, HostSymbols, SegmentOptions)
        refuse_options(command, refused, f"has no effect on {model}")
        say(_convert_original(Path(model), out, tokenizer))
        return
    refuse_options(command, ["tokenizer"], "is for a .cfg file of FOLNet's original code")
    checkpoint_place(model)
    if out.resolve() == Path(model).expanduser().resolve():
        raise ValueError(f"{out} holds the model itself: choose another folder for the new one")
    if (base := base_of(model)) is not None:
        merged = f"which is merged (hf-alpha convert {model} MERGED) before MERGED is converted"
        why = f"is for whole models, and {model} is an adapter (PEFT) for {base!r}, {merged}"
        refuse_options(command, names_of(Encoding, HostSymbols, SegmentOptions), why)
        say(_merge(model, out))
        return
    if segments.transducer is not None:
        refuse_options(command, names_of(Encoding, HostSymbols), "has no effect with --transducer")
        say(_convert_encoder(model, out, segments.transducer, segments))
        return
    refuse_options(command, names_of(SegmentOptions), "is for encoders, with --transducer")
    _convert_names(command, model, out, encoding, symbols)


def _merge(adapter: str, out: Path) -> str:
    """Merge an adapter into the model that it names; returns what was made."""
    from hf_alpha.hub.release import merge
    from hf_alpha.loading import load_config

    base = merge(adapter, out)
    plain = not hasattr(load_config(str(out)), "symbol_classes")
    then = f"; it has no symbols yet: hf-alpha convert {out} OUT gives it some" * plain
    return f"{out}: {base} with the adapter {adapter} in its weights{then}"


def _convert_original(settings: Path, out: Path, tokenizer: str | None) -> str:
    """Convert a checkpoint of FOLNet's original code; returns what was made and proved."""
    from hf_alpha.convert.folnet import convert_folnet

    model = convert_folnet(settings, settings.with_suffix(".pt"), out, tokenizer)
    return (
        f"{type(model).__name__} with {model.num_parameters():,} parameters: the same outputs as "
        f"the original code's, on random texts without padding; it is in {out}"
    )


def _convert_encoder(encoder: str, out: Path, transducer: Path, segments: SegmentOptions) -> str:
    """Convert an encoder into one that sees segments; returns what was made and proved."""
    from hf_alpha.transduction import Transducer

    finder = Transducer.load(transducer)  # a mistyped folder is said before torch is loaded
    from hf_alpha.convert.geometric import convert_encoder

    model = convert_encoder(encoder, out, finder, head=segments.head, gate=segments.gate)
    gates = f"then they were set to {segments.gate:g}" if segments.gate else "they open in training"
    return (
        f"{out}: {type(model).__name__} with {model.num_parameters():,} parameters and "
        f"{len(model.config.segment_labels)} kinds of segments. Proved on random texts: with "
        f"closed gates it says what the model before said, with and without segments; {gates}"
    )


def _convert_names(
    command: typer.Context, model: str, out: Path, encoding: Encoding, symbols: HostSymbols
) -> None:
    """Convert a model of Transformers, or a vanilla one, into one that does not care about names.

    Raises:
        ValueError: an option would have no effect on a model of this kind.
    """
    from hf_alpha.loading import load_config

    config = load_config(model)
    has_symbols = hasattr(config, "symbol_classes")
    vanilla = has_symbols and not hasattr(config, "backbone_config")
    if has_symbols:
        new = ["symbols", "names", "symbol_tokens"]
        refuse_options(command, new, f"is for models without symbols, and {model} has some")
    if (to := encoding.to) in TAKES:
        takes = TAKES[to] - ({"actual"} if vanilla and to == "dual_part" else set())
        refuse_options(
            command, sorted(set.union(*TAKES.values()) - takes), f"has no effect with --to {to}"
        )
    if to == "canonical" and not has_symbols:
        from hf_alpha.canonical import convert_to_canonical
        from hf_alpha.convert.backbone_rows import CLASS

        refuse_options(
            command,
            ["symbols", "symbol_tokens", "new_symbols"],
            "has no effect with --to canonical",
        )
        renaming = symbols.renaming or "first_occurrence"
        patterns = patterns_of(symbols.names or []).items()
        rules = {name or CLASS: read_rule(text) for name, text in patterns}
        convert_to_canonical(model, out, rules, say, symbol_renaming=renaming)
    elif vanilla:
        transformers_only = f"is for models of Transformers; {model} is none"
        refuse_options(command, ["renaming", "new_symbols"], transformers_only)
        say(_convert_vanilla(model, out, encoding))
    else:
        _convert_host(model, out, encoding, symbols)


def _convert_host(model: str, out: Path, encoding: Encoding, symbols: HostSymbols) -> None:
    """Convert a model of Transformers; what was made and proved is said on the way.

    Raises:
        ValueError: symbols are both tokens and new.
    """
    if symbols.symbol_tokens and (symbols.symbols or symbols.names):
        raise ValueError("--symbol-tokens are the symbols: leave out --symbols and --names")
    from hf_alpha.convert.retrofit import SymbolConfig, convert_host

    config = SymbolConfig(
        encoding=encoding.to,
        symbols=_symbol_rules(symbols.symbols, symbols.names or []),
        symbol_tokens=_tokens_by_class(symbols.symbol_tokens),
        actual=_tokens_by_class(encoding.actual),
        placeholder=_tokens_by_class(encoding.placeholder),
        renaming=symbols.renaming or "none",
        aggregated_attention=encoding.sides,
        settings={"new_symbols": symbols.new_symbols},
    )
    convert_host(model, out, config, say)


def _convert_vanilla(vanilla: str, out: Path, encoding: Encoding) -> str:
    """Convert a vanilla model; returns what was made and what was proved."""
    from hf_alpha import convert as conversions

    actual, settings = encoding.actual, dict[str, Any]()
    if encoding.to == "streams":
        actual = actual or "a"
        settings = {"actual": actual, "placeholder": encoding.placeholder or "b",
                    "add_aggregated_attention": encoding.sides}  # fmt: skip
        proved = f"without symbols, and with {actual} only, the logits are identical to {ITS}."
    elif encoding.to == "relational":
        settings = {"actual": actual}
        inputs = f"without symbols, and with {actual} only," if actual else "without symbols"
        proved = f"{inputs} all states are identical to {ITS}. {TRAIN_ON}"
    elif encoding.to == "dual_part":
        embeddings = "with the vanilla model's embeddings in place of its own"
        proved = f"{embeddings}, the logits are identical. {TRAIN_ON}"
    else:
        raise ValueError(f"--to {encoding.to}: choose {TARGETS}")
    model = conversions.convert_checkpoint(vanilla, out, encoding.to, **settings)
    return f"{out}: {model.num_parameters():,} parameters. Proved on random inputs: {proved}"


def _tokens_by_class(text: str | None) -> Any:
    if text is None:
        return None
    tokens = by_class(text)
    return tokens.get("", tokens)


def _symbol_rules(symbols: str | None, names: list[str]) -> dict[str, Any]:
    """Return class of symbols -> how many there are, and how names are found."""
    from hf_alpha.convert.backbone_rows import CLASS

    counts = by_class(symbols or "32")
    patterns = patterns_of(names)
    if bad := [text for text in counts.values() if not text.isdecimal()]:
        raise ValueError(f"--symbols {bad[0]}: write 32, or name=32,number=16")
    if "" in counts:  # so many of each class
        counts = dict.fromkeys((name or CLASS for name in patterns or [CLASS]), counts[""])
    if set(patterns) == {""} and len(counts) == 1:
        patterns = {name: patterns[""] for name in counts}
    if patterns and patterns.keys() != counts.keys():
        with_patterns = ", ".join(f"{name or 'no class'}" for name in patterns)
        raise ValueError(
            f"--names is for {with_patterns}, --symbols for {', '.join(counts)}: name the same "
            "classes, such as --symbols x=32,f=16 --names x='[a-z]' --names f='[A-Z]'"
        )
    rules = {name: read_rule(text) for name, text in patterns.items()}
    return {name: {"count": int(count), **rules.get(name, {})} for name, count in counts.items()}
