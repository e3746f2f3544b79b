"""How likely the tokens of an answer were, as OpenAI tells it: in the names of the text."""

import re
from collections.abc import Sequence
from typing import Any

import torch

from hf_alpha import generation
from hf_alpha.serve.decoding import BESIDE

LEAST = -9999.0
"""Of a token that is impossible: JSON has no infinity."""
_WORD = re.compile(r"(\W*)(\w+)(\W*)")
Entry = dict[str, Any]


class Logprobs:
    """The tokens of an answer, each with its log-probability and what else was likely.

    These are the model's own, whatever is drawn, cut off or forbidden.

    Args:
        encoding: what is answered.
        goes_on: the answer goes on from it, as a decoder's does.
        number: of likely tokens that are told beside each one.
    """

    def __init__(self, tokenizer: Any, encoding: Any, goes_on: bool, number: int):
        self._tokenizer, self._names, self._number = tokenizer, encoding.names, number
        self._spells = tokenizer.spells_names
        self._beside = [*encoding["input_ids"][-BESIDE:]] if goes_on else []
        self._nameless: set[int] = set()  # symbols, which get new names in the order of the text
        if not self._spells:
            self._take_names(self._beside)
        self._scores = torch.zeros(0)
        self._entries, self._raw, self._sent, self._at = list[Entry](), list[str](), 0, 0

    def rate(self, scores: torch.Tensor) -> None:
        """Take the model's scores (V,) of the next token."""
        self._scores = scores.float().log_softmax(-1)

    def add(self, token: int) -> None:
        """Take the next token."""
        best = self._scores.topk(min(self._number, len(self._scores)))
        rated = [(token, float(self._scores[token]))]
        rated += zip(best.indices.tolist(), best.values.tolist(), strict=True)
        raw = self._texts([index for index, _ in rated])
        first, *others = (_entry(self._named(t), r) for t, (_, r) in zip(raw, rated, strict=True))
        if self._spells and self._raw and re.match(r"\w", raw[0]):  # the last was no whole word
            self._entries[-1] |= _written(self._raw[-1])
        self._entries.append({**first, "top_logprobs": others})
        self._raw.append(raw[0])
        self._beside = [*self._beside, token][-BESIDE:]
        if token in self._nameless:
            self._take_names([token])

    def take(self, end: int, all_before: bool = False) -> list[Entry]:
        """Return tokens that have not been returned and end before this place of the answer.

        Args:
            all_before: those that begin before it; it is the answer's end.
        """
        first = self._sent
        while self._sent < len(self._entries):
            stop = self._at + len(self._entries[self._sent]["token"])
            if (self._at >= end) if all_before else (stop > end):
                break
            self._sent, self._at = self._sent + 1, stop
        return self._entries[first : self._sent]

    def _take_names(self, ids: list[int]) -> None:
        self._names = self._tokenizer.with_new_names(ids, self._names, generation.NEW_NAME)
        ids = self._tokenizer.symbol_ids
        tokens = zip(ids, self._tokenizer.convert_ids_to_tokens(ids), strict=True)
        self._nameless = {index for index, token in tokens if token not in self._names}

    def _texts(self, ids: list[int]) -> list[str]:
        """Return what each of these tokens would write next; names that are words, as words."""
        names = None if self._spells else self._names
        how = {"names": names, "new_names": None if self._spells else generation.NEW_NAME}
        beside = self._beside
        read, *texts = self._tokenizer.decode([beside, *([*beside, i] for i in ids)], **how)
        if not all(text.startswith(read) for text in texts):  # a character in several tokens
            return [self._tokenizer.decode([index], **how) for index in ids]
        return [text[len(read) :] for text in texts]

    def _named(self, text: str) -> str:
        """Put a name in place of a word for it."""
        word = self._spells and _WORD.fullmatch(text)
        if not word or word[2] not in self._names:
            return text
        goes_on = not word[1] and self._raw and re.search(r"\w$", self._raw[-1])
        return text if goes_on else f"{word[1]}{self._names[word[2]]}{word[3]}"


def _written(text: str) -> Entry:
    """Return a token as OpenAI writes it; a part of a character has no text to take bytes of."""
    return {"token": text, "bytes": None if "\ufffd" in text else [*text.encode()]}


def _entry(text: str, rate: float) -> Entry:
    return {**_written(text), "logprob": rate if rate > LEAST else LEAST}


def as_listed(entries: Sequence[Entry], start: int) -> dict[str, Any]:
    """Return tokens as completions of a text have them.

    Args:
        start: place of the first in the answer.
    """
    places = [start]
    for entry in entries:
        places.append(places[-1] + len(entry["token"]))
    tops: list[dict[str, float]] = [{} for _ in entries]
    for entry, top in zip(entries, tops, strict=True):
        for one in entry["top_logprobs"]:  # some are written alike: the likelier one stays
            top.setdefault(one["token"], one["logprob"])
    return {
        "tokens": [entry["token"] for entry in entries],
        "token_logprobs": [entry["logprob"] for entry in entries],
        "top_logprobs": tops if any(tops) else None,
        "text_offset": places[:-1],
    }
