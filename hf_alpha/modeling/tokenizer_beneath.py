"""What is beneath a tokenizer of texts with names: made from data, or a fast tokenizer's own."""

import json
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import regex  # type: ignore[import-untyped]
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import ByT5Tokenizer, PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import bytes_to_unicode

from .batches import copied_backend
from .choices import check_list
from .names_in_text import NameFinder
from .spans import Span, parts
from .text_pieces import BETWEEN, JOIN, MOST, SHORT, WORD, Cut

PAD, START, END, UNKNOWN = "<pad>", "<s>", "</s>", "<unk>"
OWN_TOKENS = [
    *(AddedToken(token, normalized=False, special=True) for token in (PAD, START, END, UNKNOWN)),
    AddedToken(JOIN, normalized=False),
]
"""Of tokenizers that are made here."""


class AddedTokens:
    """Finds the tokens that a tokenizer takes from a text before all else: the special ones too.

    Attributes:
        inside: those that part nothing: what stands behind one does not begin anew.
    """

    def __init__(self, tokens: Iterable[AddedToken], normalizer: Any = None):
        tokens = list(tokens)
        # A tokenizer of these tokens alone, to which the rest of a text is one unknown word: so
        # they are found as it finds them, with the spaces beside them that they take.
        self._finder = Tokenizer(models.WordLevel({"": 0}, unk_token=""))
        if normalizer is not None:
            self._finder.normalizer = normalizer
        self._finder.add_tokens(tokens)
        self._any: Any = None
        self.inside = frozenset[str]()
        if normalizer is None or not any(token.normalized for token in tokens):
            self._any = regex.compile(r"\L<tokens>", tokens=[token.content for token in tokens])

    @classmethod
    def of(
        cls,
        beneath: Tokenizer,
        without: Container[int] = (),
        begins_parts: Sequence[Any] | None = None,
    ) -> "AddedTokens":
        """The added tokens of a tokenizer, but for those with some ids.

        Args:
            begins_parts: see `TextTokenizer`.
        """
        added = beneath.get_added_tokens_decoder()
        tokens = [token for index, token in added.items() if index not in without]
        if not begins_parts or not any(begins_parts[2:]):
            return cls(tokens, beneath.normalizer)
        steps = [normalizers.Prepend(begins_parts[0]), beneath.normalizer]
        normalizer = normalizers.Sequence([step for step in steps if step is not None])
        made = cls(tokens, normalizer)
        inside = (normalizer.normalize_str(t.content) for t in tokens if t.normalized)
        made.inside = frozenset(inside)  # as they are found
        return made

    def find(self, text: str, split_special_tokens: bool = False) -> list[tuple[int, int, str]]:
        """Return start, stop and token of each one in a text, in order.

        Args:
            split_special_tokens: special tokens are text like any other.
        """
        if self._any is not None and not self._any.search(text):
            return []
        self._finder.encode_special_tokens = split_special_tokens
        encoding = self._finder.encode(text)
        tokens = map(self._finder.id_to_token, encoding.ids)  # without spaces that one takes
        return [
            (*span, token) for span, token in zip(encoding.offsets, tokens, strict=True) if token
        ]


class PartIds:
    """Ids of texts that are cut at symbols, part by part; those of short parts are kept.

    A tokenizer splits what stands between two added tokens without a look at anything else, but for
    whether it begins the text: so each part but the first is given to it behind a symbol.

    Args:
        symbols: id -> token.
    """

    def __init__(self, beneath: Tokenizer, symbols: Mapping[int, str]):
        self._beneath, self._symbols = beneath, symbols
        added = beneath.get_added_tokens_decoder()
        self._apart = bool(symbols) and all(
            (token := added.get(index)) is not None
            and not (token.normalized or token.lstrip or token.rstrip or token.single_word)
            for index in symbols
        )
        self._kept: dict[tuple[bool, str], dict[str, list[int]]] = {}

    def __reduce__(self) -> Any:
        return type(self), (self._beneath, self._symbols)

    def of_texts(self, texts: Sequence[Cut]) -> list[list[int]]:
        """Return the ids of texts, with what is written around them."""
        model = self._beneath.model
        drawn = getattr(model, "dropout", None) or getattr(model, "alpha", None)
        if drawn or not self._apart:  # splits are drawn, or symbols are words like any other
            encodings = self._beneath.encode_batch_fast([text.written for text in texts])
            return [encoding.ids for encoding in encodings]
        index, symbol = next(iter(self._symbols.items()))
        around = self._beneath.encode(symbol).ids
        at = around.index(index)
        before, behind = around[:at], around[at + 1 :]
        firsts = self._of_parts([text.parts[:1] for text in texts], "")
        others = self._of_parts([text.parts[1:] for text in texts], symbol)
        return [[*before, *a, *b, *behind] for a, b in zip(firsts, others, strict=True)]

    def _of_parts(self, texts: Sequence[Sequence[str]], mark: str) -> Iterator[Iterable[int]]:
        """The ids of the parts of each text, each of which is put behind a mark."""
        kind = (self._beneath.encode_special_tokens, mark)
        kept = self._kept.setdefault(kind, {})
        parts = dict.fromkeys(chain.from_iterable(texts))
        ids = {part: kept[part] for part in parts if part in kept}
        if new := [part for part in parts if part not in ids]:
            encodings = self._beneath.encode_batch_fast(
                [mark + part for part in new], add_special_tokens=False
            )
            ids |= zip(new, (each.ids[bool(mark) :] for each in encodings), strict=True)
            short = {part: ids[part] for part in new if len(part) <= SHORT}
            if len(kept) + len(short) > MOST:  # another thread may be reading the old one
                kept = self._kept[kind] = {}
            kept.update(islice(short.items(), MOST))
        return (chain.from_iterable(map(ids.__getitem__, row)) for row in texts)


class NamesInData:
    """The names of each class in data, the most in a text, and how spaces are used.

    Args:
        added: finds tokens that are no names.

    Attributes:
        most: class -> the most names in one text.
        spacing: "before" if most names have a space before them, else "kept".
    """

    def __init__(self, finder: NameFinder, texts: Iterable[str], added: AddedTokens | None = None):
        check_list("texts", texts)
        self.finder, self.texts, self._added = finder, texts, added
        self.names: dict[str, Counter[str]] = {name: Counter() for name in finder.rules}
        self.most = dict.fromkeys(finder.rules, 0)
        text, num_spaced, num_names = None, 0, 0
        for text in texts:
            spans = self._find(text)
            num_names += len(spans)
            num_spaced += sum(start == 0 or text[start - 1] == " " for start, *_ in spans)
            for kind in finder.rules:
                names = Counter(span.key(text) for span in spans if span.symbol_class == kind)
                self.names[kind].update(names)
                self.most[kind] = max(self.most[kind], len(names))
        if text is None:
            raise ValueError("there are no texts to make a tokenizer from")
        if not num_names and any(rule.is_sought for rule in finder.rules.values()):
            rules = ", ".join(f"{name} {rule.to_dict()}" for name, rule in finder.rules.items())
            raise ValueError(f"no text has a name: look at the rules of `symbols` ({rules})")
        self.spacing = "before" if 2 * num_spaced >= num_names else "kept"

    def frequent(self, kind: str) -> list[str]:
        """The names of a class: those of its rule, else the most frequent ones first."""
        listed = self.finder.rules[kind].tokens
        names = (name for name, _ in self.names[kind].most_common() if not name.startswith("\0"))
        return list(listed) or [*names]  # a binding has no name of its own

    def rest(self) -> Iterator[str]:
        """The texts between names."""
        for text in self.texts:
            yield from (part for part, _ in parts(text, self._find(text)) if part)

    def _find(self, text: str) -> tuple[Span, ...]:
        return self.finder.find(text, kept=self._added.find(text) if self._added else ())


def writes_spaces(beneath: Tokenizer) -> bool:
    """Whether a tokenizer's decoder writes spaces of its own between tokens, as BERT's."""
    return beneath.decoder is None or " " in beneath.decoder.decode(["a", "b"])


def keeps_spaces(beneath: Tokenizer) -> bool:
    """Whether spaces beside a token that was added need no other token.

    They come back, or the tokenizer writes no spaces at all.
    """
    beneath = Tokenizer.from_str(beneath.to_str())
    beneath.post_processor = None
    beneath.no_truncation()
    beneath.no_padding()
    beneath.add_tokens([AddedToken(JOIN, normalized=False)])
    texts = (f"{JOIN} {JOIN}{JOIN}", f"{JOIN}{JOIN}")
    if all(beneath.decode(beneath.encode(text).ids, False) == text for text in texts):
        return True
    return " " not in beneath.decode([*beneath.get_vocab().values()], skip_special_tokens=False)


def is_made(kind: str) -> bool:
    """Whether this is a tokenizer to be made from data, and not the name of one."""
    return kind in ("words", "characters") or kind.startswith("bpe:")


def tokenizer_beneath(kind: str, data_names: NamesInData) -> tuple[Tokenizer, str, dict[str, Any]]:
    """The tokenizer beneath, made from data, how it keeps spaces, and its special tokens."""
    spacing = data_names.spacing
    if kind == "words":
        words = Counter(word for text in data_names.rest() for word in WORD.findall(text))
        spacing = "words"
        beneath = _of_words(words, pre_tokenizers.CharDelimiterSplit(BETWEEN))
    elif kind == "characters":
        characters = Counter(character for text in data_names.rest() for character in text)
        beneath = _of_words(characters, pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated"))
        beneath.decoder = decoders.Fuse()
    else:
        beneath = _bpe(kind, data_names)
    beneath.post_processor = ends_with(END, beneath.token_to_id(END))
    return beneath, spacing, _SPECIAL


_SPECIAL = {"pad_token": PAD, "bos_token": START, "eos_token": END, "unk_token": UNKNOWN}


def _of_words(words: Counter[str], split: Any) -> Tokenizer:
    ordered = [word for word, _ in sorted(words.items(), key=lambda item: (-item[1], item[0]))]
    tokens = dict.fromkeys([*map(str, OWN_TOKENS), *ordered])
    beneath = Tokenizer(
        models.WordLevel({token: i for i, token in enumerate(tokens)}, unk_token=UNKNOWN)
    )
    beneath.add_tokens(OWN_TOKENS)
    beneath.pre_tokenizer = split
    return beneath


def _bpe(kind: str, data_names: NamesInData) -> Tokenizer:
    size = kind.removeprefix("bpe:")
    if not size.isdecimal() or int(size) < 300:
        raise ValueError(f"tokenizer {kind!r}: write bpe:8000, with at least 300 tokens")
    beneath = Tokenizer(models.BPE())
    beneath.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    beneath.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=int(size),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[PAD, START, END, UNKNOWN],
        show_progress=False,
    )
    beneath.train_from_iterator(data_names.rest(), trainer)
    return beneath


def ends_with(end: str, index: int | None) -> Any:
    """What writes an end token behind each text, and nothing else."""
    return processors.TemplateProcessing(
        single=f"$A {end}", pair=f"$A {end} $B:1 {end}:1", special_tokens=[(end, index)]
    )


_WORD = Tokenizer(models.WordLevel({"": 0}, unk_token="")).encode("word")


def fast_backend(tokenizer: Any, symbols: bool = True) -> tuple[Tokenizer, dict[str, Any]]:
    """The backend of a fast tokenizer, a copy, and its special tokens and other settings.

    It is made ready for `symbols`, and has tokens for end and padding then. Else it is as it was,
    and padding, if it has none, is its end token.
    """
    if isinstance(tokenizer, str):
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(tokenizer, trust_remote_code=False)
    if isinstance(tokenizer, ByT5Tokenizer):
        tokenizer = fast_bytes(tokenizer)
    beneath, special = copied_backend(tokenizer)
    state = json.loads(beneath.to_str())
    if symbols:
        if (begins := _begin_once(state)) is not None:
            special["begins_parts"] = begins
        beneath = Tokenizer.from_str(json.dumps(state))
    else:
        special["model_input_names"] = list(tokenizer.model_input_names)
    end = str(special.setdefault("eos_token", special.get("sep_token", END)))
    pad = str(special.setdefault("pad_token", PAD if symbols else end))
    added = {token.content for token in beneath.get_added_tokens_decoder().values()}
    if symbols:
        beneath.add_special_tokens([token for token in (end, pad) if token not in added])
    elif beneath.token_to_id(end) is None:
        raise ValueError("the tokenizer has no end token for answers: set its eos_token to one")
    if (template := _around_answers(tokenizer, beneath, end)) not in (
        None,
        state["post_processor"],
    ):
        special["target_template"] = template
    return beneath, special


def fast_bytes(tokenizer: ByT5Tokenizer) -> PreTrainedTokenizerFast:
    """Return a fast tokenizer with ByT5's ids, a token for each byte: ByT5's is in Python."""
    added = tokenizer.added_tokens_decoder
    first = next(i for i in range(len(added)) if i not in added)  # behind padding, end and unknown
    vocabulary = {str(token): index for index, token in added.items()}
    vocabulary |= {letter: first + byte for byte, letter in bytes_to_unicode().items()}
    fast = Tokenizer(models.BPE(vocabulary, []))
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    fast.decoder = decoders.ByteLevel()
    fast.add_special_tokens(
        [
            AddedToken(added[i].content, lstrip=added[i].lstrip, rstrip=added[i].rstrip)
            for i in sorted(added)
        ]
    )
    fast.post_processor = ends_with(tokenizer.eos_token, tokenizer.eos_token_id)
    special = {key: str(token) for key, token in tokenizer.special_tokens_map.items()}
    return PreTrainedTokenizerFast(tokenizer_object=fast, **special)


def _around_answers(tokenizer: Any, beneath: Tokenizer, end: str) -> dict[str, Any] | None:
    """What is written around answers, as JSON; None for what is written around texts.

    That is the end token, where texts have none, as a decoder's: an answer is what follows a text.
    A tokenizer of translations says it itself (mBART, NLLB).
    """
    index = beneath.token_to_id(end)
    written = beneath.post_process(_WORD)
    if index not in written.ids[written.special_tokens_mask.index(0) + 1 :]:
        return json.loads(ends_with(end, index).__getstate__())
    if getattr(tokenizer, "tgt_lang", None) is None or not hasattr(
        tokenizer, "_switch_to_target_mode"
    ):
        return None
    tokenizer._switch_to_target_mode()
    template = json.loads(tokenizer.backend_tokenizer.to_str())["post_processor"]
    tokenizer._switch_to_input_mode()
    return template


def post_processor(template: Mapping[str, Any]) -> Any:
    """What writes special tokens around texts, from its JSON."""
    state = json.loads(Tokenizer(models.WordLevel({}, unk_token=UNKNOWN)).to_str())
    return Tokenizer.from_str(json.dumps({**state, "post_processor": template})).post_processor


def _begin_once(state: dict[str, Any]) -> list[Any] | None:
    """Have what a tokenizer puts before a text put there only.

    A name cuts the text into parts, each of which the tokenizer would take for a text that begins.

    Returns:
        How it begins parts behind special tokens, see `TextTokenizer`; None if it does not.
    """
    steps = _steps(state, "pre_tokenizer")
    begins = [[s["replacement"], False] for s in steps if s.get("prepend_scheme") == "always"]
    always, first = '"prepend_scheme": "always"', '"prepend_scheme": "first"'
    for part in ("pre_tokenizer", "decoder"):  # SentencePiece's spaces, wherever they are
        state[part] = json.loads(json.dumps(state[part]).replace(always, first))
    normalizing, splits = _steps(state, "normalizer"), _steps(state, "pre_tokenizer")
    prefixes = [step["prepend"] for step in normalizing if step["type"] == "Prepend"]
    normalizing = [step for step in normalizing if step["type"] != "Prepend"]
    if prefixes:
        # Written before the text itself, and looked for before tokens that are normalized.
        begins.append([prefixes[0], True, True])
        normalizing = [*_begun(state["added_tokens"], prefixes.pop(0)), *normalizing]
    kinds = [step["type"] for step in splits]
    if "WhitespaceSplit" in kinds and "Metaspace" in kinds:  # T5: each word would get its space
        splits = [step for step in splits if step["type"] != "WhitespaceSplit"]
        begins = [[" ", False]]  # nothing, where nothing but space follows
        normalizing.append({"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "})
        # Not by a normalizer: parts end before tokens that are looked for in normalized text, too.
        end = {"type": "Split", "pattern": {"Regex": r" +\z"}, "behavior": "Removed"}
        splits = [{**end, "invert": False}, *splits]
    if spaced := [step for step in splits if step.get("add_prefix_space")]:
        prefixes.append(" ")
        begins.append([" ", False])
        for step in spaced:
            step["add_prefix_space"] = False
        strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
        state["decoder"] = _sequence("decoder", [*_steps(state, "decoder"), strip])
    # A step that begins a text, and no part behind a name, with a space.
    first_space = {"type": "Metaspace", "prepend_scheme": "first", "split": False}
    splits = [{**first_space, "replacement": prefix} for prefix in prefixes] + splits
    state["normalizer"] = _sequence("normalizer", normalizing)
    state["pre_tokenizer"] = _sequence("pre_tokenizer", splits)
    return begins[0] if begins else None


def _begun(added: Iterable[dict[str, Any]], prefix: str) -> Iterator[dict[str, Any]]:
    """What puts a prefix before each token that is normalized itself, and nothing else."""
    for token in added:
        if token["normalized"]:
            pattern = {"Regex": rf"\A{re.escape(token['content'])}\z"}
            yield {"type": "Replace", "pattern": pattern, "content": prefix + token["content"]}


_LISTS = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers", "decoder": "decoders"}


def _steps(state: dict[str, Any], part: str) -> list[dict[str, Any]]:
    """The steps of a part of a tokenizer, in order."""
    value = state[part]
    if value is None:
        return []
    return list(value[_LISTS[part]]) if value["type"] == "Sequence" else [value]


def _sequence(part: str, steps: list[dict[str, Any]]) -> dict[str, Any] | None:
    if len(steps) > 1:
        return {"type": "Sequence", _LISTS[part]: steps}
    return steps[0] if steps else None
