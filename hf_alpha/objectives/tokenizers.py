"""Tokenizers for one text or a pair: any fast one, or a new one as BERT's, made from the texts."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
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
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.modeling.tokenizer_beneath import NamesInData

PAD, UNKNOWN, START, BETWEEN, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL = {
    "pad_token": PAD, "unk_token": UNKNOWN, "cls_token": START, "sep_token": BETWEEN,
    "mask_token": MASK,
}  # fmt: skip
INPUTS = ("input_ids", "token_type_ids", "attention_mask")
SMALLEST = 300
_MADE, _SIZED = ("words", "characters"), ("wordpiece", "bpe")
_PAIRS = (
    "Take one that does and that gives token_type_ids, as BERT's, or words, wordpiece:8000 or "
    "bpe:8000"
)


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


def _beneath(kind: str, texts: Callable[[], Iterator[str]]) -> Any:
    name, _, size = kind.partition(":")
    if name not in _SIZED and (size or name not in _MADE):
        tokenizer = load_tokenizer(kind)
        if not tokenizer.is_fast:
            raise ValueError(f"{kind}: {type(tokenizer).__name__} is no fast tokenizer")
        return tokenizer
    if name in _SIZED and (not size.isdecimal() or int(size) < SMALLEST):
        raise ValueError(f"{kind!r}: write {name}:8000, with at least {SMALLEST} tokens")
    backend, trainer = _untrained(name)
    options = {"vocab_size": int(size or 2**31 - 1), "special_tokens": list(SPECIAL.values())}
    backend.train_from_iterator(texts(), trainer(show_progress=False, **options))
    backend.post_processor = processors.TemplateProcessing(
        single=f"{START} $A {BETWEEN}",
        pair=f"{START} $A {BETWEEN} $B:1 {BETWEEN}:1",
        special_tokens=[(token, backend.token_to_id(token)) for token in (START, BETWEEN)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, model_input_names=list(INPUTS), **SPECIAL
    )


def _untrained(name: str) -> tuple[Tokenizer, Callable[..., Any]]:
    """Return a tokenizer without tokens, and what makes its trainer."""
    if name == "bpe":
        made = Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        return made, partial(trainers.BpeTrainer, initial_alphabet=alphabet)
    if name == "wordpiece":
        made = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
        made.normalizer = normalizers.BertNormalizer(lowercase=True)
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        made.decoder = decoders.WordPiece()
        return made, trainers.WordPieceTrainer
    made = Tokenizer(models.WordLevel(unk_token=UNKNOWN))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    if name == "characters":
        made.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
        made.decoder = decoders.Fuse()
    return made, trainers.WordLevelTrainer


def check_tokenizer(
    tokenizer: Any, config: PreTrainedConfig, max_length: int, *, pairs: bool
) -> None:
    """Refuse a tokenizer that does not tell two texts apart, and a length without room for texts.

    Args:
        tokenizer: for `pairs` it has to write something between the two texts.
        config: of the model; one with `tells_texts_apart` needs the token types of the texts to
            differ.
        max_length: tokens of a sequence.
        pairs: sequences are of two texts.

    Raises:
        ValueError: naming the tokenizer, or the shortest length that will do.
    """
    count = tokenizer.num_special_tokens_to_add(pair=pairs)
    if pairs and count <= tokenizer.num_special_tokens_to_add(pair=False):
        raise ValueError(
            f"{type(tokenizer).__name__} is not made for pairs of texts: it writes no token "
            f"between them. {_PAIRS}"
        )
    told_apart = getattr(config, "tells_texts_apart", False)
    if pairs and told_apart and not _gives_types(tokenizer):
        raise ValueError(
            f"{type(tokenizer).__name__} gives both texts of a pair the same token types, or none, "
            f"and a {config.model_type!r} model tells texts apart by them. {_PAIRS}; or set "
            "model.type_vocab_size to 1 for a new model without types"
        )
    if max_length <= count + pairs:
        raise ValueError(
            f"max_length {max_length} leaves no room for texts: special tokens and a token of each "
            f"text take {count + 1 + pairs}"
        )


def _gives_types(tokenizer: Any) -> bool:
    """Whether two texts get token types that differ."""
    backend = getattr(tokenizer, "backend_tokenizer", None)  # asked first: it needs no names
    if backend is None:
        return len(set(tokenizer("a", "b").get("token_type_ids", ()))) > 1
    types = backend.encode("a", "b").type_ids
    return "token_type_ids" in tokenizer.model_input_names and len(set(types)) > 1
