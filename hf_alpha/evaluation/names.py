"""Names in problems and answers: found, renamed and put back, as words of a text or as ids.

A text is a sequence of items, some of which are names: ids (`Ids`), or names and what stands
between them, as words (`WordNames`) or by rules (`RuledNames`). Renaming replaces items and moves
none. All three have the same methods. A sample has [`Renamings`], which a [`Renamer`] has a model
answer.
"""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import itemgetter
from typing import Any, cast

import regex  # type: ignore[import-untyped]

from hf_alpha.generation import answer_batches, answer_room, encode_problem, generate_rows
from hf_alpha.modeling.choices import check_list, refuse
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.spans import parts
from hf_alpha.modeling.words import name_pattern
from hf_alpha.processes import gather, process_state, split

Symbols = Sequence[str] | Mapping[str, Sequence[str]]
Features = dict[str, list[int]]
Name = int | str
Items = tuple[Name, ...]
Table = Mapping[Any, Any]  # name -> name; what is not in it stays
Group = tuple[Any, ...]
_Job = tuple[int, int, Group]

RENAMED_KEYS = ("input_ids", "stream_ids")
CHUNK = 1024
"""Renamings that are checked together: of ten names there are 3.6 million."""


def rename(items: Iterable[Name], table: Table) -> Items:
    """Return the items with names replaced by a table."""
    return tuple(table.get(item, item) for item in items)


class Ids:
    """Names as ids of a tokenizer with symbols, which itself maps a text's own names onto them.

    Args:
        tokenizer: an `AlphaTokenizer` or a `TextTokenizer`.
        symbols: tokens, or what a `TextTokenizer` calls them (`symbol_names`), or class -> tokens;
            by default all symbols.

    Raises:
        ValueError: a token is not one token of the vocabulary, or is given twice.
    """

    def __init__(self, tokenizer: Any, symbols: Symbols | None = None):
        self.tokenizer = tokenizer
        self.classes = self._classes(symbols)
        self.names = set(chain(*self.classes))

    def _classes(self, symbols: Symbols | None) -> list[list[int]]:
        if symbols is None:
            ranges = self.tokenizer.symbol_ranges
            if not ranges:
                raise ValueError("give `symbols`: this tokenizer has none of its own")
            return [[i for pair in pairs for i in range(*pair)] for pairs in ranges.values()]
        vocabulary = dict(self.tokenizer.get_vocab())
        called = getattr(self.tokenizer, "symbol_names", {})
        vocabulary |= {name: vocabulary[token] for token, name in called.items()}
        classes = name_classes(symbols)
        if unknown := [token for token in chain(*classes) if token not in vocabulary]:
            raise ValueError(
                f"symbol {unknown[0]!r} is not a single token of the vocabulary: choose symbols "
                "as they stand in tokenizer.get_vocab(), or leave `symbols` out to take them all"
            )
        return [[vocabulary[token] for token in tokens] for tokens in classes]

    def read(self, problem: str) -> Features | None:
        """Encode a problem; None if it is outside the vocabulary.

        Raises:
            FormulaError: it cannot be read.
        """
        encoding = encode_problem(self.tokenizer, problem)
        return None if encoding is None else {key: list(value) for key, value in encoding.items()}

    def items(self, source: Features) -> Items:
        """Return a problem's items, as `read` found them."""
        return tuple(source["input_ids"])

    def inputs(self, source: Features, tables: Iterable[Table]) -> list[Features]:
        """Return the model's inputs for renamings of a problem."""
        return [
            {
                key: [table.get(i, i) for i in values] if key in RENAMED_KEYS else values
                for key, values in source.items()
            }
            for table in tables
        ]

    def check(self, source: Features, tables: Sequence[Table], inputs: Sequence[Features]) -> None:
        """Accept all: ids are renamed one by one, so nothing can go wrong."""

    def answers(self, rows: Sequence[Sequence[int]], asked: Any = ()) -> list[Items]:
        """Return the items of generated ids."""
        return [tuple(row) for row in rows]

    def has_name(self, answer: Items) -> bool:
        """Whether an answer has a name in it."""
        return not self.names.isdisjoint(answer)


class WordNames:
    """Names as words of the text, for any tokenizer: a name is renamed before it gets its tokens.

    A name occurs where it stands as a whole word, spelled as it was given: `bob` is no part of
    `bobby` or `Bob`. Letters, digits, marks and the underscore make words, of all scripts, so that
    `bob's` has the name. Where names overlap (`New York`, `York`), the longest counts. Every such
    word is a name, whatever it means there: of names like `will` or `a` only the caller can know.

    Args:
        tokenizer: any Transformers tokenizer.
        symbols: names, or class -> names.

    Raises:
        ValueError: `symbols` are missing, no words, given twice, or the tokenizer does not keep one
            of them: it is unknown, in part too, or comes back in another spelling.
    """

    def __init__(self, tokenizer: Any, symbols: Symbols | None):
        if symbols is None:
            raise ValueError(
                "give `symbols`: this tokenizer does not say which words are interchangeable"
            )
        self.tokenizer = tokenizer
        self.classes = name_classes(symbols)
        self.names = set(chain(*self.classes))
        if odd := [name for name in self.names if not name or name != name.strip()]:
            raise ValueError(f"symbol {odd[0]!r} is no word: write names without spaces around")
        self.pattern = regex.compile(f"({name_pattern(tuple(self.names)).pattern})")
        self.marks = _marks(tokenizer, self.names)
        for name in chain(*self.classes):
            self._check_name(name)

    def read(self, problem: str) -> Items:
        """Split a text: every second item is a name."""
        return tuple(self.pattern.split(problem))

    def items(self, source: Items) -> Items:
        return source

    def inputs(self, source: Items, tables: Iterable[Table]) -> list[Features]:
        """Rename the text, then encode it."""
        rows = self._encode([self._join(rename(source, table)) for table in tables])
        return [{"input_ids": row, "attention_mask": [1] * len(row)} for row in rows]

    def check(self, source: Items, tables: Sequence[Table], inputs: Sequence[Features]) -> None:
        """Prove that every renamed input is a renaming of the text, and that the model sees one.

        As text: the renamed text has the renamed names, one by one, and nothing else is new, so
        that the inverse gives back the text. As tokens: they spell the renaming of what the tokens
        of the text itself spell, and its names are those of the text. What a tokenizer changes in
        other words, as lower-casing does, is the same in all renamings and does no harm. The first
        table has to be the identity.

        Raises:
            ValueError: with the text, the name and what became of it.
        """
        asked = [(source, table) for table in tables]
        texts = self._texts([row["input_ids"] for row in inputs], asked)
        decoded_rows = [self._compared(text) for text in texts]
        for table, decoded in zip(tables, decoded_rows, strict=True):
            renamed = rename(source, table)
            text = self._join(renamed)
            reread = self.read(text)
            turns = f"the tokenizer turns {text!r} into {self._join(decoded)!r}"
            refuse(
                reread != renamed,
                f"renamed to {text!r} it has the names {_list(reread)} instead of "
                f"{_list(renamed)}: a new name and what stands around it make another name. "
                "Leave that name out of `symbols`, or the text out",
            )
            refuse(
                decoded[1::2] != self._compared(text)[1::2],
                f"{turns}, which has the names {_list(decoded)} instead of {_list(renamed)}: "
                "choose names that it keeps apart from all other words",
            )
            refuse(
                decoded != rename(decoded_rows[0], table),
                f"{turns}, but {self._join(source)!r} into {self._join(decoded_rows[0])!r}: more "
                "than the names differs. Choose other names",
            )

    def _compared(self, text: str) -> Items:
        """Return what of a text has to come back from the tokenizer."""
        return self.read(text)

    def answers(
        self, rows: Sequence[Sequence[int]], asked: Sequence[tuple[Items, Table]] = ()
    ) -> list[Items]:
        """Return the items of the text of ids, without special tokens and spaces at its ends.

        Args:
            asked: of each, the problem and its renaming: a tokenizer may write names as words.
        """
        return [self.read(text) for text in self._texts(rows, asked)]

    def has_name(self, answer: Items) -> bool:
        return len(answer) > 1

    def _texts(
        self, rows: Sequence[Sequence[int]], asked: Sequence[tuple[Items, Table]]
    ) -> list[str]:
        names = {}
        if hasattr(self.tokenizer, "canonical"):
            texts = [self._join(rename(source, table)) for source, table in asked]
            names = {"names": self.tokenizer(texts).names}
        texts = self.tokenizer.batch_decode(
            [[i for i in row if i not in self.marks] for row in rows],
            skip_special_tokens=False,
            clean_up_tokenization_spaces=False,
            **names,
        )
        return [text.strip() for text in texts]

    def _encode(self, texts: list[str]) -> list[list[int]]:
        options = {"padding": False, "truncation": False, "verbose": False}
        return self.tokenizer(texts, return_attention_mask=False, **options)["input_ids"]

    def _check_name(self, name: str) -> None:
        text = f"{name} {name}"  # many tokenizers have a form for the start, and one after a space
        (ids,) = self._encode([text])
        (decoded,) = self.answers([ids], [(self.read(text), {})])
        if decoded[1::2] != self.read(text)[1::2]:
            raise ValueError(
                f"symbol {name!r} does not come back from the tokenizer: {text!r} becomes "
                f"{self._join(decoded)!r}. Choose names that it can write, and keeps"
            )

    def _join(self, items: Items) -> str:
        return "".join(map(str, items))


class RuledNames(WordNames):
    """Names that rules find in texts and answers, inside words too, and by what binds them.

    A renaming has the names of a class change places everywhere at once, so that each name keeps
    what binds it. In an answer the names of bindings are numbers: how they are spelled is no part
    of it.

    Args:
        tokenizer: any Transformers tokenizer.
        symbols: class -> the names that change places.
    """

    def __init__(self, tokenizer: Any, symbols: Mapping[str, Sequence[str]], finder: NameFinder):
        self.finder = finder
        self.known = {name: kind for kind, names in symbols.items() for name in names}
        items = {kind: [_item(kind, name) for name in names] for kind, names in symbols.items()}
        super().__init__(tokenizer, items)

    def read(self, problem: str) -> Items:
        """Split a text: every second item is a name, with its class."""
        return self._split(problem)

    def _compared(self, text: str) -> Items:
        """Return the items of a text; canonical spelling gives bindings other names, as an answer.

        So of bindings their numbers are compared.
        """
        return self._split(text, numbered=hasattr(self.tokenizer, "canonical"))

    def answers(
        self, rows: Sequence[Sequence[int]], asked: Sequence[tuple[Items, Table]] = ()
    ) -> list[Items]:
        """Return the items of the text of ids, see `WordNames`; of bindings their numbers."""
        return [self._split(text, self.known, True) for text in self._texts(rows, asked)]

    def _split(
        self, text: str, known: Mapping[str, str] | None = None, numbered: bool = False
    ) -> Items:
        items, bindings = list[str](), dict[str, int]()
        for part, span in parts(text, self.finder.find(text, known)):
            items.append(part)
            if span is not None:
                name = text[span.start : span.stop]
                if numbered and span.binding:
                    name = f"#{bindings.setdefault(span.key(text), len(bindings))}"
                items.append(_item(span.symbol_class, name))
        return tuple(items)

    def _check_name(self, name: str) -> None:
        """Accept all: a name alone is perhaps none, and `check` looks at those of texts."""

    def _join(self, items: Items) -> str:
        return "".join(str(item).rpartition("\0")[2] for item in items)


def names_in(problems: Iterable[str], finder: NameFinder) -> dict[str, dict[str, None]]:
    """Return class -> the names that rules find in texts, in order."""
    names: dict[str, dict[str, None]] = {}
    for text in problems:
        for start, stop, kind, _ in finder.find(text):
            names.setdefault(kind, {})[text[start:stop]] = None
    return names


def examples_of(rule: Any) -> Sequence[str]:
    """Return the names that a rule lists, or knows as examples."""
    return rule.tokens or (rule.ready.examples if rule.ready else ())


def found_by(
    tokenizer: Any, symbols: Symbols | WordNames | None, problems: Iterable[str]
) -> Symbols | WordNames | None:
    """Return the names that rules find in problems, if `symbols` are class -> rule.

    Names that the rules list, or know as examples (digits of rings), change places with them.

    Raises:
        ValueError: a rule is wrong, or finds no two names; or the tokenizer has symbols by other
            rules.
    """
    if not isinstance(symbols, Mapping) or not any(
        isinstance(rule, Mapping) for rule in symbols.values()
    ):
        return symbols
    finder = NameFinder(cast(Any, symbols))
    if (ranges := getattr(tokenizer, "symbol_ranges", None)) and hasattr(tokenizer, "finder"):
        return _own(tokenizer, finder, ranges)
    found = names_in(problems, finder)
    names = {
        kind: {**dict.fromkeys(examples_of(rule)), **found.get(kind, {})}
        for kind, rule in finder.rules.items()
    }
    if few := [kind for kind, some in names.items() if len(some) < 2]:
        raise ValueError(f"the rule of class {few[0]!r} finds no two names in the problems")
    return RuledNames(tokenizer, {kind: [*some] for kind, some in names.items()}, finder)


def _own(tokenizer: Any, finder: NameFinder, ranges: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the symbols of a tokenizer that finds names by the same rules itself."""

    def settings(rule: Any) -> dict[str, Any]:
        return {key: value for key, value in rule.to_dict().items() if key != "count"}

    own = {kind: settings(rule) for kind, rule in tokenizer.finder.rules.items()}
    symbols = {}
    for asked, rule in finder.rules.items():
        kind = next((name for name, one in own.items() if one == settings(rule)), None)
        if kind is None:
            raise ValueError(
                f"the tokenizer finds names itself, by {own}, and not by the rule of {asked!r}: "
                "leave out `symbols`, or give its rules"
            )
        ids = [i for pair in ranges[kind] for i in range(*pair)]
        symbols[asked] = tokenizer.convert_ids_to_tokens(ids)
    return symbols


def _item(symbol_class: str, name: str) -> str:
    return f"\0{symbol_class}\0{name}"


def names_of(tokenizer: Any, symbols: Symbols | WordNames | None) -> Ids | WordNames:
    """Return how to find the names in the texts of a tokenizer; see the classes for errors."""
    if isinstance(symbols, WordNames):
        return symbols
    # Not by class: code from the Hub has its own.
    has_symbols = hasattr(tokenizer, "symbol_ranges") and not hasattr(tokenizer, "canonical")
    return (Ids if has_symbols else WordNames)(tokenizer, symbols)


def name_classes(symbols: Symbols) -> list[list[str]]:
    """Return the names of each class.

    Raises:
        ValueError: a string instead of a list, or a name that is given twice.
    """
    classes = list(symbols.values()) if isinstance(symbols, Mapping) else [symbols]
    for listed in classes:
        check_list("symbols", listed, "names")
    names = list(chain(*classes))
    odd = next((name for name in names if not isinstance(name, str)), "")
    twice = next((name for name, count in Counter(names).items() if count > 1), "")
    refuse(not names, "`symbols` is empty: give the names")
    refuse(odd != "", f"symbol {odd!r} is no string but a {type(odd).__name__}")
    refuse(twice, f"symbol {twice!r} is given twice")
    return [list(listed) for listed in classes]


def _marks(tokenizer: Any, names: set[str]) -> set[int]:
    """Return ids of special tokens, which are no text: the `s` of `</s>` is no name.

    Unknown tokens are left in: they must not vanish. So are names that are special tokens.
    """
    added = tokenizer.added_tokens_decoder.items()
    special = {index: str(token) for index, token in added if token.special}
    special |= dict(zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True))
    written_tokens = names | {tokenizer.unk_token}
    return {index for index, token in special.items() if token not in written_tokens}


def _list(items: Items) -> str:
    names = (str(name).rpartition("\0")[2] for name in items[1::2])
    return ", ".join(map(repr, names)) or "none"


@dataclass(frozen=True)
class Renamings:
    """The renamings of one sample.

    Attributes:
        classes: names of each class, those of the sample first, by first occurrence.
        counts: how many of each class the sample has.
        numbers: the renamings that are run; 0, the first, is the identity.
    """

    classes: list[list[Any]]
    counts: list[int]
    possible: int
    numbers: list[int]

    @classmethod
    def of(
        cls,
        items: Items,
        classes: Sequence[Sequence[Any]],
        limit: int | None,
        rng: random.Random,
    ) -> "Renamings":
        """Find the sample's names and choose its renamings."""
        ordered, counts = [], []
        for names in classes:
            members = set(names)
            present_names = dict.fromkeys(item for item in items if item in members)
            ordered.append([*present_names, *(name for name in names if name not in present_names)])
            counts.append(len(present_names))
        possible = math.prod(math.perm(len(c), k) for c, k in zip(ordered, counts, strict=True))
        if limit is None or possible <= limit:
            return cls(ordered, counts, possible, list(range(possible)))
        numbers = {0: None}  # the identity, and a sample without repetition
        while len(numbers) < limit:
            numbers[rng.randrange(1, possible)] = None
        return cls(ordered, counts, possible, list(numbers))

    def without_new(self, items: Items) -> Items:
        """Return items in which names that the sample lacks are numbered by first occurrence.

        A model that makes up names takes the first ones that are unused, whichever they are.
        """
        pairs = zip(self.classes, self.counts, strict=True)
        lacking = {name for names, count in pairs for name in names[count:]}
        new_names = (item for item in dict.fromkeys(items) if item in lacking)
        return rename(items, {name: f"new {number}" for number, name in enumerate(new_names)})

    def renaming(self, number: int) -> dict[Any, Any]:
        """Return renaming `number` as name -> name; names not in it stay.

        It is a bijection: a chain x -> y -> z that starts at x and leaves the sample's symbols at z
        is closed by z -> x.
        """
        table: dict[Any, Any] = {}
        for names, count in zip(self.classes, self.counts, strict=True):
            free = list(names)
            for symbol in names[:count]:
                number, choice = divmod(number, len(free))
                table[symbol] = free.pop(choice)
        origin = {new: old for old, new in table.items()}
        for end in origin.keys() - table.keys():
            start = end
            while start in origin:
                start = origin[start]
            table[end] = start
        return table


Sample = tuple[Any, Renamings, list[Group]]
"""What `names` read of a problem; its renamings; the group of each: those of one make a batch."""


@dataclass(frozen=True)
class Renamer:
    """A model that answers renamings; a group has lengths of inputs and the room for an answer."""

    model: Any
    tokenizer: Any
    names: Ids | WordNames
    settings: dict[str, Any]

    def groups(self, source: Any, tables: Iterable[Table]) -> list[Group]:
        """Check that names come back from the tokenizer, and that the model has room."""
        shapes: list[tuple[int, ...]] = []
        longest, remaining = 0, iter(tables)
        while chunk := list(islice(remaining, CHUNK)):
            inputs = self.names.inputs(source, [{}, *chunk])
            self.names.check(source, [{}, *chunk], inputs)
            shapes += [tuple(len(values) for values in row.values()) for row in inputs[1:]]
            longest = max(longest, *(len(row["input_ids"]) for row in inputs))
        limit = self.settings["max_new_tokens"]
        room = answer_room(self.model.config, longest, limit, "its longest renaming")
        return [(shape, room) for shape in shapes]

    def answer(self, rows: Sequence[tuple[Any, Table]], group: Group) -> list[Items]:
        """Generate the answers to renamed problems."""
        inputs = [row for source, table in rows for row in self.names.inputs(source, [table])]
        settings = {**self.settings, "max_new_tokens": group[-1]}
        answers = generate_rows(self.model, self.tokenizer, inputs, settings)
        return self.names.answers(answers, rows)

    def predict(
        self, samples: Mapping[int, Sample], batch_size: int, progress: bool
    ) -> dict[int, list[tuple[Items, Items]]]:
        """Return the answers to all renamings of each sample, as they are and with it undone.

        A batch is of one group, the longest first.
        """
        state, title = process_state(), "alpha-covariance"
        makes_up_names = getattr(self.model.config, "new_symbols", False)
        jobs: list[_Job] = [
            (index, number, group)
            for index, (_, plan, groups) in samples.items()
            for number, group in zip(plan.numbers, groups, strict=True)
        ]
        batches = split(equal_batches(jobs, itemgetter(2), batch_size), state)

        def answer(batch: list[_Job]) -> list[tuple[Items, Items]]:
            plans = [samples[index][1] for index, *_ in batch]
            tables = [
                plan.renaming(number) for plan, (_, number, _) in zip(plans, batch, strict=True)
            ]
            sources = [samples[index][0] for index, *_ in batch]
            answers = []
            raws = self.answer(list(zip(sources, tables, strict=True)), batch[0][-1])
            for plan, table, raw in zip(plans, tables, raws, strict=True):
                undone = rename(raw, {new: old for old, new in table.items()})
                answers.append((raw, plan.without_new(undone) if makes_up_names else undone))
            return answers

        indexed: list[tuple[int, tuple[Items, Items]]] = []
        answered = answer_batches(self.model, batches, answer, title, progress)
        for batch, answers in answered:
            indexed += zip((index for index, *_ in batch), answers, strict=True)
        answers_to: dict[int, list[tuple[Items, Items]]] = {index: [] for index in samples}
        for index, pair in gather(indexed, state):
            answers_to[index].append(pair)
        return answers_to


def equal_batches(
    jobs: Iterable[_Job], key: Callable[[_Job], Any], batch_size: int
) -> list[list[_Job]]:
    """Group jobs by a key, the largest first, such as a length: they then need no padding."""
    groups: dict[Any, list[_Job]] = {}
    for job in jobs:
        groups.setdefault(key(job), []).append(job)
    return [
        groups[same][start : start + batch_size]
        for same in sorted(groups, reverse=True)
        for start in range(0, len(groups[same]), batch_size)
    ]
