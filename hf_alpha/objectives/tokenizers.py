"""Tokenizers for one text or a pair: any fast one, or a new one as BERT's, made from the texts."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedConfig, PreTrainedTokenizerFast

from hf_alpha.loading import load_tokenizer
from hf_alpha.modeling.configuration_folnet import FolnetConfig
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.tokenization_geometric import GeometricTokenizer
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.modeling.tokenizer_beneath import NamesInData
from hf_alpha.transduction import Transducer

PAD, UNKNOWN, START, BETWEEN, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL = {
    "pad_token": PAD, "unk_token": UNKNOWN, "cls_token": START, "sep_token": BETWEEN,
    "mask_token": MASK,
}  # fmt: skip
INPUTS = ("input_ids", "token_type_ids", "attention_mask")
SMALLEST = 300


def make_tokenizer(
    kind: str, texts: Iterable[str], symbols: Mapping[str, Any] | None = None
) -> Any:
    """Return the tokenizer that a recipe names, with symbols on top where it has some.

    Args:
        kind: `words`, `characters`, `wordpiece:8000` or `bpe:8000`, made from the texts, with
            `[CLS] A [SEP] B [SEP]` and token types; or the folder or Hub name of any fast one.
        texts: of training, read several times; those that know their names are `MarkedText`.
        symbols: class -> rule by which names are found.

    Raises:
        ValueError: there is no such kind, no text, or no name in the texts.
    """
    finder = NameFinder(symbols) if symbols else None
    plain_texts = NamesInData(finder, texts).rest if finder is not None else lambda: iter(texts)
    beneath = _beneath(kind, plain_texts)
    if not symbols:
        return beneath
    names = [*beneath.model_input_names, "stream_ids"]
    return TextTokenizer.from_tokenizer(beneath, symbols, texts, model_input_names=names)


def with_transducer(tokenizer: Any, transducer: str | Mapping[str, Any]) -> GeometricTokenizer:
    """Put the transducer that a recipe names on top of a tokenizer.

    Args:
        tokenizer: any fast one; a transducer that it has is replaced.
        transducer: a folder with a saved transducer, or what `Transducer.from_settings` takes.

    Raises:
        ValueError: the tokenizer has symbols, or the transducer cannot be made or read.
        OSError: a file is missing.
    """
    if isinstance(transducer, str):
        return GeometricTokenizer.from_tokenizer(tokenizer, Transducer.load(transducer))
    return GeometricTokenizer.from_tokenizer(tokenizer, Transducer.from_settings(transducer))


def _beneath(kind: str, texts: Callable[[], Iterator[str]]) -> Any:
    name, _, size = kind.partition(":")
    if name in _KINDS and not size:
        backend, trainer = _KINDS[name]()
    elif name in _SIZED:
        if not size.isdecimal() or int(size) < SMALLEST:
            raise ValueError(f"{kind!r}: write {name}:8000, with at least {SMALLEST} tokens")
        backend, trainer = _SIZED[name](int(size))
    else:
        tokenizer = load_tokenizer(kind)
        if not tokenizer.is_fast:
            raise ValueError(f"{kind}: {type(tokenizer).__name__} is no fast tokenizer")
        return tokenizer
    backend.train_from_iterator(texts(), trainer)
    ids = [(token, backend.token_to_id(token)) for token in (START, BETWEEN)]
    backend.post_processor = processors.TemplateProcessing(
        single=f"{START} $A {BETWEEN}",
        pair=f"{START} $A {BETWEEN} $B:1 {BETWEEN}:1",
        special_tokens=ids,
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, model_input_names=list(INPUTS), **SPECIAL
    )


def _words() -> tuple[Tokenizer, Any]:
    backend = Tokenizer(models.WordLevel(unk_token=UNKNOWN))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    return backend, trainers.WordLevelTrainer(**_options(2**31 - 1))


def _characters() -> tuple[Tokenizer, Any]:
    backend = Tokenizer(models.WordLevel(unk_token=UNKNOWN))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    backend.decoder = decoders.Fuse()
    return backend, trainers.WordLevelTrainer(**_options(2**31 - 1))


def _wordpiece(size: int) -> tuple[Tokenizer, Any]:
    backend = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    return backend, trainers.WordPieceTrainer(**_options(size))


def _bpe(size: int) -> tuple[Tokenizer, Any]:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return backend, trainers.BpeTrainer(initial_alphabet=alphabet, **_options(size))


def _options(size: int) -> dict[str, Any]:
    return {
        "vocab_size": size, "special_tokens": list(SPECIAL.values()), "show_progress": False,
    }  # fmt: skip


_KINDS: dict[str, Callable[[], tuple[Tokenizer, Any]]] = {
    "words": _words, "characters": _characters,
}  # fmt: skip
_SIZED: dict[str, Callable[[int], tuple[Tokenizer, Any]]] = {"wordpiece": _wordpiece, "bpe": _bpe}


def check_pairs(tokenizer: Any, config: PreTrainedConfig) -> None:
    """Refuse a tokenizer that does not tell two texts apart.

    Args:
        tokenizer: has to write something between them.
        config: of the model; FOLNet, whose cross-segment atoms are of token types, needs those of
            the texts to differ.

    Raises:
        ValueError: naming the tokenizer.
    """
    alone, paired = (tokenizer.num_special_tokens_to_add(pair=pair) for pair in (False, True))
    if paired <= alone:
        raise ValueError(
            f"{type(tokenizer).__name__} is not made for pairs of texts: it writes no token "
            "between them. Take one that does, as BERT's, or words, wordpiece:8000 or bpe:8000"
        )
    told_apart = isinstance(config, FolnetConfig) and config.type_vocab_size > 1
    if told_apart and not _gives_types(tokenizer):
        raise ValueError(
            f"{type(tokenizer).__name__} gives both texts of a pair the same token types, or none, "
            "and FOLNet tells texts apart by them: take a tokenizer that gives token_type_ids, as "
            "BERT's, or words, wordpiece:8000 or bpe:8000; or set model.type_vocab_size to 1 for a "
            "new model without types"
        )


def _gives_types(tokenizer: Any) -> bool:
    """Whether two texts get token types that differ."""
    backend = getattr(tokenizer, "backend_tokenizer", None)  # asked first: it needs no names
    if backend is None:
        return len(set(tokenizer("a", "b").get("token_type_ids", ()))) > 1
    types = backend.encode("a", "b").type_ids
    return "token_type_ids" in tokenizer.model_input_names and len(set(types)) > 1


def check_room(tokenizer: Any, max_length: int, pair: bool) -> None:
    """Refuse a length that special tokens fill.

    Raises:
        ValueError: naming the shortest length that will do.
    """
    fewest_tokens = tokenizer.num_special_tokens_to_add(pair=pair) + 1 + pair
    if max_length < fewest_tokens:
        raise ValueError(
            f"max_length {max_length} leaves no room for texts: special tokens and a token of each "
            f"text take {fewest_tokens}"
        )


__all__ = ["MASK", "check_pairs", "check_room", "make_tokenizer", "with_transducer"]
