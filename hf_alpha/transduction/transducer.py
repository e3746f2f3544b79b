"""Transducers: from a text to its gamma-space, by a lexicon and rules."""

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

from hf_alpha.io.folders import lock_folder, replacing, write_text
from hf_alpha.io.records import read_json
from hf_alpha.io.settings import model_of
from hf_alpha.transduction.automaton import Cascade
from hf_alpha.transduction.gamma import GammaSpace, Match, Segment, leftmost_longest
from hf_alpha.transduction.lexicon import Lexicon, PhraseMatcher
from hf_alpha.transduction.rules import Rule, RuleError, compile_rules, read_rules, rules_of
from hf_alpha.transduction.units import Options, composed, unit_finder

logger = logging.getLogger(__name__)

SETTINGS_FILE = "transducer.json"
LEXICON_FILE = "lexicon.tsv"


class Transducer:
    """Finds labelled segments in texts; made by `compile`, `load` or `from_settings`.

    It can be pickled for worker processes: the pickle holds the lexicon's text and the settings,
    and the worker compiles them again.

    Attributes:
        labels: all labels, in order: those of the lexicon sorted, then those of the rules.
        dropped: segments left out so far in this process, as more than `max_per_position` elements
            started or ended at one unit.

    Examples:
        >>> lexicon = Lexicon.from_entries([("New York", "PLACE")])
        >>> Transducer.compile(lexicon, [Rule("to <PLACE>", "WAY")]).spans("fly to New York")
        [(4, 15, 'WAY'), (7, 15, 'PLACE')]
    """

    def __init__(self, table: str, rules: Sequence[Rule], options: Options) -> None:
        lines = table.split("\n")[:-1]
        labels = sorted({line.rpartition("\t")[2] for line in lines})
        self.labels = list(dict.fromkeys([*labels, *(rule.label for rule in rules)]))
        self.rules = tuple(rules)
        self.dropped = 0
        self._table, self._options = table, options
        self._pattern = unit_finder(options.unit)
        label_ids = {label: number for number, label in enumerate(self.labels)}
        self._phrases = PhraseMatcher(lines, label_ids)
        compiled, atoms = compile_rules(rules, labels, options)
        numbered = zip(compiled, (label_ids[rule.label] for rule in rules), strict=True)
        self._cascade = Cascade(numbered, atoms, self.labels, options)

    def __reduce__(self) -> tuple[Any, ...]:
        return Transducer, (self._table, self.rules, self._options)

    @classmethod
    def compile(
        cls,
        lexicon: Lexicon | None = None,
        rules: Sequence[Rule] = (),
        *,
        unit: str = "words",
        match: str = "all",
        lowercase: bool = True,
        max_per_position: int = 4,
        max_units: int = 16,
    ) -> "Transducer":
        """Make a transducer.

        Args:
            lexicon: phrases to find, of any length; they are split into units as texts are.
            rules: applied in order; each sees the lexicon's segments and those of the rules before.
            unit: `words` or `characters`; see `hf_alpha.transduction.units.unit_finder`.
            match: `all` segments, nested and overlapping ones too; or `longest`: of the lexicon's
                segments, and of each rule's, the leftmost longest ones, which do not overlap.
            lowercase: upper and lower case are the same.
            max_per_position: most elements that start at one unit, and most that end at one, the
                unit itself counted (D in the paper, Section 2.3). The longest segments are kept,
                among these those whose label comes first, then the leftmost.
            max_units: most units in a segment that a rule finds.

        Raises:
            ValueError: an argument is none of these, or a rule cannot be compiled: the message has
                its number, its text and the column.
            TypeError: `lexicon` is no `Lexicon`, or `rules` no list of `Rule`.
            ImportError: a library is missing; the message has the command that installs it.
        """
        if not isinstance(lexicon, Lexicon | None):
            raise TypeError(
                f"lexicon must be a Lexicon, not {lexicon!r:.80}: Lexicon.from_entries makes one"
            )
        if not isinstance(rules, Sequence) or not all(isinstance(r, Rule) for r in rules):
            raise TypeError(f"rules must be a list of Rule, not {rules!r:.80}")
        if not lexicon and not rules:
            logger.warning("the transducer has no phrase and no rule: it finds nothing")
        options = Options(unit, match, lowercase, max_per_position, max_units)
        return cls(_table(lexicon, options) if lexicon is not None else "", rules, options)

    def __call__(self, text: str) -> GammaSpace:
        """Return the gamma-space of a text."""
        units = tuple(match.span() for match in self._pattern(text).finditer(text))
        words = [text[start:stop] for start, stop in units]
        matches = self._segments(text, words)
        segments = (Segment(start, self.labels[n], end) for start, end, n in matches)
        return GammaSpace(text, units, tuple(segments))

    def spans(self, text: str) -> list[tuple[int, int, str]]:
        """Return first character, the one after the last, and label of each segment of a text.

        They are sorted by start, end and the order of labels.
        """
        pattern = self._pattern(text)
        matches = self._segments(text, pattern.findall(text))
        if not matches:
            return []
        units = [match.span() for match in pattern.finditer(text)]
        return [(units[start][0], units[end][1], self.labels[n]) for start, end, n in matches]

    def _segments(self, text: str, words: Sequence[str]) -> list[Match]:
        """Find the segments over a text's units, sorted and at most D at a unit."""
        options, words = self._options, composed(words, text)
        forms = [word.lower() for word in words] if options.lowercase else words
        matches = [(start, end, n) for start, end, ids in self._phrases.find(forms) for n in ids]
        if options.match == "longest":
            matches = leftmost_longest(matches)
        return self._limited(self._cascade.find(words, sorted(matches)))

    def _limited(self, segments: list[Match]) -> list[Match]:
        """Leave out segments where more than D elements start or end; the unit itself is one."""
        most = self._options.max_per_position - 1
        if len(segments) <= most:
            return segments
        starts, ends, remaining = Counter[int](), Counter[int](), []
        for segment in sorted(segments, key=lambda s: (s[0] - s[1], s[2], s[0])):
            start, end, _ = segment
            if starts[start] < most and ends[end] < most:
                starts[start] += 1
                ends[end] += 1
                remaining.append(segment)
        if (dropped := len(segments) - len(remaining)) and not self.dropped:
            logger.warning(
                "more than max_per_position=%d elements start or end at one unit: the longest "
                "segments are kept; `dropped` counts the others", most + 1,
            )  # fmt: skip
        self.dropped += dropped
        return sorted(remaining)

    def settings(self) -> dict[str, Any]:
        """Return all but the lexicon, as plain data."""
        return {**asdict(self._options), "rules": [asdict(rule) for rule in self.rules]}

    def save(self, folder: str | PathLike[str]) -> None:
        """Write `lexicon.tsv` and `transducer.json` to a folder, which is made if it is absent.

        Raises:
            FileExistsError: one is there that no transducer was saved with.
            ValueError: another process writes there.
        """
        folder = Path(folder)
        content = self._table.encode()
        sha256 = hashlib.sha256(content).hexdigest()
        record = {**self.settings(), "labels": self.labels, "sha256": sha256}
        settings = f"{json.dumps(record, indent=1, ensure_ascii=False)}\n"
        with lock_folder(folder):
            _check_saved(folder)
            with replacing(folder / LEXICON_FILE) as file:
                file.write_bytes(content)
            write_text(folder / SETTINGS_FILE, settings)

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> "Transducer":
        """Load what `save` wrote.

        Raises:
            ValueError: a file is damaged, or the two do not belong together.
            OSError: a file is absent.
        """
        path, lexicon = Path(folder) / SETTINGS_FILE, Path(folder) / LEXICON_FILE
        if not (path.exists() and lexicon.exists()):
            raise FileNotFoundError(
                f"there is no transducer in {folder}: hf-alpha transduce --save makes one"
            )
        record = read_json(path, "rules", "labels", "sha256")
        labels, sha256 = record.pop("labels"), record.pop("sha256")
        rules = rules_of(record.pop("rules"), f"{path}")
        model_of(Options).read(record, f"{path}")
        content = lexicon.read_bytes()
        if sha256 != hashlib.sha256(content).hexdigest():
            raise ValueError(
                f"{lexicon} is not the file that {SETTINGS_FILE} was saved with: compile the "
                "transducer again"
            )
        transducer = cls(content.decode(), rules, Options(**record))
        if transducer.labels != labels:
            raise ValueError(
                f"{path} is damaged: its labels are not those of the lexicon and the rules, "
                f"{', '.join(transducer.labels)}"
            )
        return transducer

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "Transducer":
        """Compile a transducer from plain data, such as a recipe has.

        Args:
            settings: `lexicon`: a file, or a mapping with `path` and other arguments of
                `Lexicon.from_file`, or a list of such. `rules`: a YAML file (see `read_rules`), or
                its content. And the other arguments of `compile`.

        Raises:
            ValueError: a key or a value is none of these, or a file is faulty.
            OSError: a file cannot be read.
        """
        options = dict(settings)
        lexicon, rules = options.pop("lexicon", None), options.pop("rules", None)
        model_of(cls.compile).read(options, "transducer")
        place = "transducer: rules"
        if isinstance(rules, str | PathLike):
            place, rules = f"{rules}", read_rules(rules)
        elif rules is not None:
            rules = rules_of(rules, place)
        try:
            return cls.compile(_lexicon_of(lexicon), rules or (), **options)
        except RuleError as error:
            raise RuleError(f"{place}: {error}") from None


def _check_saved(folder: Path) -> None:
    """Refuse to write over a user's own lexicon, or one that was changed since it was saved."""
    lexicon, settings = folder / LEXICON_FILE, folder / SETTINGS_FILE
    content = lexicon.read_bytes() if lexicon.is_file() else b""
    known = settings.is_file() and read_json(settings, "sha256")["sha256"]
    if (lexicon.exists() or settings.exists()) and known != hashlib.sha256(content).hexdigest():
        raise FileExistsError(
            f"{lexicon if lexicon.exists() else settings} is there already, and no transducer was "
            "saved with it: choose another folder, or move it"
        )


def _lexicon_of(sources: Any) -> Lexicon | None:
    """Read the lexicons that settings name, and join them."""
    if sources is None:
        return None
    lexicon = Lexicon({})
    for entry in sources if isinstance(sources, list) else [sources]:
        settings: Any = dict(entry) if isinstance(entry, Mapping) else {"path": str(entry)}
        model_of(Lexicon.from_file).read(settings, "transducer: lexicon")
        lexicon |= Lexicon.from_file(**settings)
    return lexicon


def _table(lexicon: Lexicon, options: Options) -> str:
    """Write a lexicon in normal form: sorted lines of words with one space between, tab, label."""
    pattern = unit_finder(options.unit)
    entries: dict[str, dict[str, None]] = {}  # labels are in order, each once
    for phrase, labels in lexicon.entries.items():
        words = " ".join(composed(pattern(phrase).findall(phrase), phrase))
        words = words.lower() if options.lowercase else words
        entries.setdefault(words, {}).update(dict.fromkeys(labels))
    several = [(words, labels) for words, labels in entries.items() if len(labels) > 1]
    if several:
        logger.warning(
            "%d of %d phrases of the lexicon have several labels, all of which are kept: %s%s",
            len(several), len(entries),
            "; ".join(f"{words!r}: {', '.join(labels)}" for words, labels in several[:3]),
            "; ..." * (len(several) > 3),
        )  # fmt: skip
    return "".join(sorted(f"{w}\t{label}\n" for w, labels in entries.items() for label in labels))
