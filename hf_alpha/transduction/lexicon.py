"""Lexicons: phrases and their labels, and how all of them are found in a text at once."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

from hf_alpha.wings import optional

CONTROL = re.compile(r"[\t\n\r\v\f]")


class Lexicon:
    """Phrases with one label or more; made by `from_file` or `from_entries`, which check them.

    Args:
        entries: phrase -> its labels.

    Examples:
        >>> lexicon = Lexicon.from_entries([("fire hose", "PRODUCT")], plurals=True)
        >>> Transducer.compile(lexicon).spans("fire hoses")
        [(0, 10, 'PRODUCT')]
    """

    def __init__(self, entries: Mapping[str, tuple[str, ...]]) -> None:
        self.entries = dict(entries)

    @classmethod
    def from_file(
        cls,
        path: str | PathLike[str],
        label: str | None = None,
        *,
        header: bool = False,
        plurals: bool = False,
    ) -> "Lexicon":
        """Read a text file in UTF-8 with an entry in each line: phrase, tab, label.

        Further columns are not read, nor are empty lines. A phrase may stand in several lines: it
        has all of their labels.

        Args:
            label: a label for all entries; the phrase then ends at the first tab or at the end of
                the line, and the file's own labels are not read.
            header: the first line holds the names of the columns.
            plurals: see `from_entries`.

        Raises:
            ValueError: a line has no tab, or its phrase or label is empty, or the file is no text
                in UTF-8; the message has file and line number.
            OSError: the file cannot be read.
        """
        return cls.from_entries(_entries_of_file(Path(path), label, header), plurals=plurals)

    @classmethod
    def from_entries(
        cls, entries: Iterable[tuple[str, str]], *, plurals: bool = False
    ) -> "Lexicon":
        """Make a lexicon of pairs (phrase, label).

        Args:
            plurals: each phrase has its plural as a second form. That is a rule of thumb for
                English: `s` after the last word, `es` after s, x, z, ch and sh, and `ies` for a y
                after a consonant. It knows no irregular plural (`men`), and makes forms that no
                one writes of verbs, adjectives and plurals; texts do not hold these.

        Raises:
            ValueError: a phrase or a label is empty, or a label has a tab or a line break; the
                message has the number of the entry, from 1.
            TypeError: an entry is no pair of texts.
        """
        labels: dict[str, tuple[str, ...]] = {}
        for number, entry in enumerate(entries, start=1):
            match entry:
                case (str(phrase), str(label)):
                    pass
                case _:
                    raise TypeError(f"entry {number}: {entry!r} is no pair of phrase and label")
            _check_entry(phrase, label, f"entry {number}")
            for form in (phrase, *([plural(phrase)] if plurals else ())):
                if label not in (form_labels := labels.get(form, ())):
                    labels[form] = (*form_labels, label)
        return cls(labels)

    def __len__(self) -> int:
        return len(self.entries)

    def __or__(self, other: "Lexicon") -> "Lexicon":
        """Return the entries of both; a phrase of both has the labels of both."""
        entries = dict(self.entries)
        for phrase, labels in other.entries.items():
            entries[phrase] = tuple(dict.fromkeys((*entries.get(phrase, ()), *labels)))
        return Lexicon(entries)


def plural(phrase: str) -> str:
    """Return the regular English plural of a phrase's last word; see `Lexicon.from_entries`."""
    phrase = phrase.rstrip()
    if not phrase[-1].isalpha():
        return phrase
    if re.search(r"(s|x|z|ch|sh)$", phrase, re.IGNORECASE):
        return f"{phrase}es"
    if re.search(r"[^\W\d_aeiou]y$", phrase, re.IGNORECASE):
        return f"{phrase[:-1]}ies"
    return f"{phrase}s"


def _entries_of_file(path: Path, label: str | None, header: bool) -> Iterator[tuple[str, str]]:
    with path.open(encoding="utf-8-sig") as lines:
        try:
            for number, line in enumerate(lines, start=1):
                line = line.rstrip("\n")
                if not line.strip() or (header and number == 1):
                    continue
                place = f"{path}, line {number}"
                phrase, tab, tail = line.partition("\t")
                if not tab and label is None:
                    raise ValueError(
                        f"{place}: {line!r} has no tab: write phrase, tab, label, or give one "
                        "label for the whole file"
                    )
                entry_label = tail.partition("\t")[0].strip() if label is None else label
                _check_entry(phrase, entry_label, place)
                yield phrase, entry_label
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is no text in UTF-8: {error}") from None


def _check_entry(phrase: str, label: str, place: str) -> None:
    if not phrase.strip():
        raise ValueError(f"{place}: the phrase is empty (its label is {label!r})")
    if not label.strip():
        raise ValueError(f"{place}: the label of {phrase!r} is empty")
    if CONTROL.search(label):
        raise ValueError(f"{place}: the label {label!r} has a tab or a line break")


class _Codes(dict[str, str]):
    """Word -> its code: three characters of three alphabets; a new word gets the next one.

    So the automaton has 3 steps for a word, and few branches at each.
    """

    def __missing__(self, word: str) -> str:
        number = len(self) + 1
        code = f"{chr(0x10000 + number // 1024)}{chr(64 + number // 32 % 32)}{chr(number % 32)}"
        self[word] = code
        return code


_WIDTH = 3
_UNKNOWN = _WIDTH * "\uffff"  # the code of words that are in no phrase


class PhraseMatcher:
    """Finds all phrases of a table in a sequence of words, in time linear in the sequence.

    Args:
        lines: `word word ...<TAB>label`, with one space between words.
        label_ids: label -> its number.

    Raises:
        ImportError: pyahocorasick is not installed.
    """

    def __init__(self, lines: Iterable[str], label_ids: Mapping[str, int]) -> None:
        with optional():
            automaton = import_module("ahocorasick").Automaton()
        codes = _Codes()
        code, shared = codes.__getitem__, dict[Any, Any]()
        for line in lines:
            phrase, _, label = line.rpartition("\t")
            key = "".join(map(code, phrase.split(" ")))
            length, ids = automaton.get(key, (len(key) // _WIDTH, ()))
            value = (length, (*ids, label_ids[label]))
            automaton.add_word(key, shared.setdefault(value, value))  # few objects for many entries
        automaton.make_automaton()
        self._code: Callable[..., str] = dict(codes).get
        self._find = automaton.iter if codes else lambda text: ()

    def find(self, words: Sequence[str]) -> list[tuple[int, int, tuple[int, ...]]]:
        """Return first word, last word and label numbers of each phrase in `words`."""
        code = self._code
        return [
            ((last := end // _WIDTH) - length + 1, last, ids)
            for end, (length, ids) in self._find("".join([code(w, _UNKNOWN) for w in words]))
        ]
