"""A rule for people over whatever finds their names: their parts and addresses are names too."""

from collections.abc import Iterator
from functools import partial

import regex  # type: ignore[import-untyped]

from hf_alpha.modeling.name_rules import Find, ReadyRule
from hf_alpha.modeling.text_pieces import reads_on
from hf_alpha.modeling.words import name_pattern

_EDGE = regex.compile(r"(?i)^[^\w@]+|(?:['\N{RIGHT SINGLE QUOTATION MARK}]s?|[^\w.])+$")
"""What is no part of a name that a model has found: quotes, signs, a possessive."""
NO_NAMES = ("Mr", "Mrs", "Ms", "Miss", "Dr", "Prof", "Sir", "Jr", "Sr", "II", "III", "IV")
"""Words of full names that name nobody when they are alone."""


def people_rule(find: Find, label: str | None = None) -> ReadyRule:
    """Return a rule for names of people, by whatever finds these in a text.

    What `find` finds is a name wherever it stands in the text and in later messages of a chat. So
    are its parts (`Alice`, `Brenner`), capitals (`BRENNER`) and addresses (`alice.brenner@`).
    Canonical spelling gives all of these words that belong together: `PersonB`, `PersonB2`, ...

    Nothing is promised about what `find` finds: a name that it does not find goes out as it is.

    Args:
        find: from a text to (start, stop) of each name, or (start, stop, label).
        label: of those that are people; None for all.

    Examples:
        >>> from hf_alpha import CanonicalNames
        >>> rule = people_rule(lambda text: [(0, 13)])  # a model of yours
        >>> text = "Alice Brenner's mail is brenner@x.com"
        >>> CanonicalNames({"person": rule}).spell(text).text
        "PersonB's mail is PersonB2@x.com"
    """
    names_in = partial(_names_in, find, label)
    return ReadyRule(names_in, answers=False, variants=spellings, stem="Person")


def _names_in(find: Find, label: str | None, text: str) -> list[tuple[int, int]]:
    found: dict[str, None] = {}
    for start, stop, *kind in find(text):
        if label is None or not kind or kind[0] == label:
            found |= dict.fromkeys(_whole(text, start, stop))
    every = dict.fromkeys([*found, *(other for name in found for other in spellings(name))])
    return [m.span() for m in name_pattern((*every,)).finditer(text)] if every else []


def _whole(text: str, start: int, stop: int) -> Iterator[str]:
    """Yield a name as whole words, without what is no part of it."""
    while 0 < start < stop and reads_on(text[start - 1], text[start]):
        start -= 1
    while start < stop < len(text) and reads_on(text[stop - 1], text[stop]):
        stop += 1
    name = _EDGE.sub("", text[start:stop])
    if regex.search(r"\w", name):
        yield name


def parts_of(name: str) -> list[str]:
    """Return the words of a name that are names when they are alone: no initials, no particles."""
    words = name.split()
    long = (word for word in words if len(word) > 1 and word[-1] != "." and word not in NO_NAMES)
    return [word for word in long if word[0].isalpha() and not word[0].islower()]


def spellings(name: str) -> list[str]:
    """Return other spellings of a person's name, each at the same place for all names of a form."""
    words, parts = name.split(), parts_of(name)
    others = [name.upper()]
    if len(words) > 1:
        others += [*parts, *(part.upper() for part in parts)]
        others += [" ".join(words[i:]) for i in range(1, len(words) - 1)]
    if len(parts) > 1:
        first, last = parts[0].lower(), parts[-1].lower()
        others += [f"{parts[0]} {parts[-1]}", f"{parts[-1]}, {parts[0]}"]
        others += [f"{a}{sign}{b}" for sign in ("", ".", "_", "-")
                   for a, b in ((first, last), (last, first), (first[0], last))]  # fmt: skip
    others += [f"{part.lower()}@" for part in parts]
    return others
