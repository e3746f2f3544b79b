"""The text of an answer as it comes: what each token adds to it, and what no further one changes.

To decode all of an answer for each of its tokens takes time that grows with the square of its
length. So the last tokens are decoded, and what is new in their text belongs to the answer. That
is the text of all as long as it depends on nothing that is farther away:

- Symbols become names one by one, unless a rule spells the names of a whole text. A plain word that
  is spelled like a name gets another spelling, which depends on the text before it.
- Names that were spelled as words come back word by word (`BackStream`), unless a rule reads more
  of a text than a word.

Where a rule looks at more, and may spell names otherwise when a text goes on, all comes at its end.
Behind a plain word that is spelled like a name, and of formulas, all is decoded whenever an answer
has grown by an eighth. In each way the work is in proportion to the text.
"""

import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import regex  # type: ignore[import-untyped]

from hf_alpha import generation
from hf_alpha.modeling.batches import words_beside
from hf_alpha.modeling.text_pieces import Beginnings, last_word
from hf_alpha.modeling.words import WORDS, is_one_word

BESIDE = 8
"""Tokens that others are decoded behind: what stands between two belongs to the second."""
WINDOW = 32
"""Tokens that are decoded together at most, if each of them ends a character."""
GROWTH = 8
"""What has to wait is decoded again when it has grown by one part in so many."""
OPEN, CLOSE = "\ud800", "\ud801"
"""What stands around names, in no text: it is no character of Unicode."""
PARTLY = "\ufffd"
"""What bytes of a character that is not whole are written as."""
_NAMES = regex.compile(f"{OPEN}(.*?){CLOSE}", regex.DOTALL)
_NEW_NAME = regex.compile(rf"{generation.NEW_NAME}\d+")
_MARKS = str.maketrans("", "", OPEN + CLOSE)


class AnswerText:
    """The text of an answer, in the names of what it answers.

    Args:
        encoding: what is answered.
        goes_on: the answer goes on from it, as a decoder's does.
        ends: strings that end it.

    Attributes:
        begun: how many characters are settled: nobody looks at them again.
        open: what stands behind them, as far as it is known.
        sure: how many characters of that no further token changes, and begin no end.
    """

    def __init__(self, tokenizer: Any, encoding: Any, goes_on: bool, ends: Sequence[str] = ()):
        self._tokenizer, self._names = tokenizer, encoding.names or {}
        self._beside = [*encoding["input_ids"][-BESIDE:]] if goes_on else []
        self._ids, self._looked, self._due = list[int](), 0, 0
        self._settled, self.begun, self.open, self.sure = list[str](), 0, "", 0
        self._ends = Beginnings(ends)
        parts = _Words if tokenizer.spells_names else _Symbols
        self._parts: Any = None
        self._is_formula = not hasattr(tokenizer, "pieces")
        if not self._is_formula:
            self._parts = parts.of(tokenizer, self._names, self._beside)
        self._waits = not self._is_formula and parts.needs_all(tokenizer, self._names)

    @property
    def names(self) -> Mapping[str, str]:
        """The names of the text, and those that symbols without one got."""
        return getattr(self._parts, "names", self._names)

    def add(self, token: int) -> None:
        """Take the next token."""
        self._ids.append(token)

    def look(self) -> None:
        """See what the tokens so far add to the text."""
        while self._parts is not None and self._looked < len(self._ids):
            new = self._parts.add(self._ids[self._looked])
            self._looked += 1
            if new is None:  # from here on, all of the text is looked at
                self._waits |= self._parts.needs_end
                self._parts = None
            else:
                self.open += new
                self.sure = self._ends.place(self.open)
        if self._parts is None and not self._waits and len(self._ids) >= self._due:
            self._due = len(self._ids) + max(1, len(self._ids) // GROWTH)
            self._look_at_all()

    def end(self) -> bool:
        """See all of the text; return whether it begins with what is settled."""
        text, settled = self.whole(), self.settled
        self.open, self.sure = text[len(settled) :], max(0, len(text) - len(settled))
        return text.startswith(settled)

    def settle(self, length: int) -> str:
        """Return so many characters of what is open, which are settled now."""
        new, self.open = self.open[:length], self.open[length:]
        self._settled += [new] if new else []
        self.begun, self.sure = self.begun + len(new), self.sure - len(new)
        return new

    @property
    def settled(self) -> str:
        """What is settled."""
        return "".join(self._settled)

    def whole(self) -> str:
        """Decode all of the answer."""
        spells = self._tokenizer.spells_names
        how = {"names": None if spells else self._names, "new_names": generation.NEW_NAME}
        decode = partial(self._tokenizer.decode, **how)
        read, text = decode(self._beside), decode([*self._beside, *self._ids])
        # else a word of the text goes on in it
        text = text[len(read) :] if text.startswith(read) else decode(self._ids)
        is_spelled = spells and self._names
        return str(self._tokenizer.canonical.back(text, self._names) if is_spelled else text)

    def _look_at_all(self) -> None:
        text = self.whole()
        self.open, self.sure = text[self.begun :], 0
        if not text.startswith(self.settled):
            return
        end = len(self.open.rstrip(PARTLY))
        if self._is_formula and " " not in text:
            end = 0  # a formula has spaces from its first long name on, or none
        elif self._names:  # a word may go on to be spelled like a name, or not
            end = last_word(self.open[:end])
        end = Beginnings(self._names.values()).place(self.open[:end])
        self.sure = self._ends.place(self.open[:end])


class _Names:
    """What the end of a text may still be: a name, or the beginning of one.

    There may be many names, and long ones: only what is new is compared with them.
    """

    def __init__(self, names: Iterable[str]):
        self.all = [*names]
        self._beginnings = Beginnings(self.all)
        self.longest = max(map(len, self.all), default=0)

    def place(self, text: str) -> int:
        """Return where the end of a text begins that may be, or go on to be, one of the names."""
        if not self.all:
            return len(text)
        first = max(0, len(text) - self.longest - 1)
        word = first + last_word(text[first:])
        return self._beginnings.place(text[:word] if word > first or not first else text)


class _Symbols:
    """Parts of an answer whose names are symbols; each is written for itself.

    Attributes:
        names: of the text, and those that symbols without one got.
        needs_end: what a plain word like a name is spelled as may change: names are more than
            words, or a new name may be spelled so too.
    """

    def __init__(self, tokenizer: Any, names: Mapping[str, str], before: Sequence[int]):
        self.needs_end = False
        self._tokenizer = tokenizer
        self.names = tokenizer.with_new_names(before, names, generation.NEW_NAME)
        self._open, self._behind, self._length = list[str](), deque[str](), 0
        self._has_readers = self.needs_all(tokenizer, names)
        self._take_names()
        self._tail = _Tail(tokenizer, self._write, before)

    @classmethod
    def of(cls, tokenizer: Any, names: Mapping[str, str], before: Sequence[int]) -> Any:
        """Return them; None where a rule spells names by all of the text."""
        readers = map(tokenizer.finder.reader, tokenizer.finder.rules)
        are_alike = len({*map(str, names.values())}) < len(names)
        by_all = any(getattr(reader, "spell", None) for reader in readers)
        by_all |= are_alike and cls.needs_all(tokenizer, names)
        return None if by_all else cls(tokenizer, names, before)

    @staticmethod
    def needs_all(tokenizer: Any, names: Mapping[str, str]) -> bool:
        """Whether a rule may give names other spellings when a text goes on."""
        return any(map(tokenizer.finder.reader, tokenizer.finder.rules))

    def add(self, token: int) -> str | None:
        """Take the next token; return what is sure by now, None where all has to be looked at."""
        try:
            new = self._tail.add(token)
        except ValueError:
            return None
        self._open += [new] if new else []
        sizes = [len(part.translate(_MARKS)) for part in self._open]
        place = self._called.place("".join(self._open).translate(_MARKS)) if new else 0
        ready = list[str]()
        for size in sizes:
            if size > place:
                break
            place -= size
            ready.append(self._open.pop(0))
        if ready and self._may_have_name("".join([*self._behind, *ready])):
            return None
        for part in ready:
            self._behind.append(part)
            self._length += len(part)
            while self._length - len(self._behind[0]) > self._called.longest:
                self._length -= len(self._behind.popleft())
        return "".join(ready).translate(_MARKS)

    def _write(self, ids: list[int]) -> str:
        """Return the text of tokens, with marks around names."""
        pieces = self._tokenizer.pieces(ids)
        if any(token not in self.names for _, token in pieces if token is not None):
            self.names = self._tokenizer.with_new_names(ids, self.names, generation.NEW_NAME)
            self._take_names()
        spelled = [piece if token is None else self.names[token] for piece, token in pieces]
        segments = self._tokenizer.segments(pieces, spelled, self.names)
        return "".join([x if word is None else f"{OPEN}{x}{CLOSE}" for x, word in segments])

    def _take_names(self) -> None:
        self._called = _Names(self.names.values())
        beside = () if self._has_readers else words_beside(self.names)
        used = (str(name) for token, name in self.names.items() if name != token)
        self._asked = frozenset(used) - {*beside}
        self._are_words = not self._tokenizer.finder.inside and all(map(is_one_word, self._asked))

    def _may_have_name(self, text: str) -> bool:
        """Whether plain words of a text are spelled like a name; it says so rather too often."""
        parts = _NAMES.split(text)
        words = WORDS.findall("\n".join(parts[::2]))
        like_new = _NEW_NAME.search if self._tokenizer.finder.inside else _NEW_NAME.fullmatch
        self.needs_end = not self._are_words or any(map(like_new, words))
        if any(map(like_new, words)) or self._are_words:
            return self.needs_end or not self._asked.isdisjoint(words)
        text, written = "".join(parts), Counter(parts[1::2])
        return any(text.count(name) > written[name] for name in self._asked)


class _Words:
    """Parts of an answer whose names are words of the model, which come back word by word."""

    needs_end = False

    def __init__(self, tokenizer: Any, before: Sequence[int], back: Any):
        self._tail, self._back = _Tail(tokenizer, tokenizer.decode, before), back

    @classmethod
    def of(cls, tokenizer: Any, names: Mapping[str, str], before: Sequence[int]) -> Any:
        """Return them; None where a rule looks at more of an answer than a word."""
        if not names:
            return cls(tokenizer, before, None)
        if cls.needs_all(tokenizer, names):
            return None
        return cls(tokenizer, before, tokenizer.canonical.back_stream(names))

    @staticmethod
    def needs_all(tokenizer: Any, names: Mapping[str, str]) -> bool:
        """Whether a rule reads more of a text than a word, or two names are spelled alike."""
        canonical = tokenizer.canonical
        rules = canonical.finder.rules.values()
        by_words = all(replace(rule, rule=None, function=None).has_words_alone for rule in rules)
        by_words = by_words and not canonical.by_rule
        return bool(names) and not (by_words and not canonical.back_stream(names).at_once)

    def add(self, token: int) -> str | None:
        """Take the next token; return what is sure by now, None where all has to be looked at."""
        try:
            new = self._tail.add(token)
        except ValueError:
            return None
        return self._back.feed(new) if self._back and new else new


class _Tail:
    """The text of tokens as they come, without what further tokens may change.

    Args:
        write: from tokens to their text.
        before: tokens that stand before the first one.
    """

    def __init__(self, tokenizer: Any, write: Callable[[list[int]], str], before: Sequence[int]):
        self._write, self._silent = write, tokenizer.silent_ids
        self._parts = _parts_of_characters(tokenizer.backend_tokenizer)
        self._ids = [index for index in before if index not in self._silent]
        self._read, self._begin = write(self._ids), len(self._ids)
        self._due = self._whole = self._begin

    def add(self, token: int) -> str:
        """Take the next token; return what is whole by now.

        Raises:
            ValueError: the text of what came before is another one now.
        """
        if token in self._silent:
            return ""
        self._ids.append(token)
        if len(self._ids) < self._due or token in self._parts:
            return ""
        text = self._write(self._ids)
        if text.endswith(PARTLY):
            self._due = len(self._ids) + max(1, (len(self._ids) - self._whole) // GROWTH)
            return ""
        if not text.startswith(self._read):
            if not self._begin:
                raise ValueError("a text changes when it goes on")
            del self._ids[: self._begin]  # a word of the text before goes on in it
            self._read, text = "", self._write(self._ids)
        new, self._read, self._begin = text[len(self._read) :], text, 0
        if len(self._ids) > WINDOW:
            del self._ids[:-BESIDE]
            self._read = self._write(self._ids)
        self._due = self._whole = len(self._ids)
        return new


def _parts_of_characters(backend: Any) -> set[int]:
    """Return tokens that are a byte each, by a decoder that makes text of all bytes in a row."""
    decoder = json.loads(backend.decoder.__getstate__()) if backend.decoder else {}
    kinds = {part["type"] for part in (decoder, *decoder.get("decoders", ())) if part}
    found = [backend.token_to_id(f"<0x{byte:02X}>") for byte in range(256)]
    return {*found} - {None} if "ByteFallback" in kinds else set()
