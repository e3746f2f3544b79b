"""Segments of sentences by `Transducer.spans`: lexicons of 1,000 to 1,000,000 entries, ten rules.

    python benchmarks/transduction.py --data mwe.tsv --texts sst2/test.tsv --out transduction

Peers, in the same run: a trie of dictionaries over words (`peers/token_trie.py`), which finds all
matches, as ours does, and, if it is installed, flashtext2, which finds the longest ones. Entries
are the first column of `--data`, which has a head; beyond its lines, compounds made up of its
words. Texts are the first column of `--texts`; without them, made up of words and entries.
Compiling, saving, loading and its memory are measured in processes of their own. All times of the
tables are the processor's, which a loaded machine does not stretch as much; the clock's are in the
result too.
"""

import argparse
import itertools
import random
import string
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from hf_alpha.transduction import Lexicon, Rule, Transducer
from measure import clocked_in_turns, finish, held, in_own_process, parser_of, ratios, table, three
from peers.token_trie import TokenTrie

LABEL = "COMPOUND"
OURS, RULES, TRIE, FLASHTEXT = "ours", "ours with ten rules", "token trie", "flashtext2"
MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
TEN_RULES = [
    Rule("/[0-9]{1,2}/ (st | nd | rd | th)?", "DAY"),
    Rule(MONTHS, "MONTH"),
    Rule("<MONTH> <DAY> (, /[0-9]{4}/)?", "DATE"),
    Rule("<DAY> of? <MONTH> /[0-9]{4}/?", "DATE"),
    Rule('/[0-9]+/ ("." /[0-9]+/)? (dollars | euros | "%")', "AMOUNT"),
    Rule('(mr | mrs | ms | dr) "."? /[A-Z].*/+', "PERSON"),
    Rule("/[A-Z][a-z]+/ (inc | corp | ltd)", "FIRM"),
    Rule("(on | in | since | until) <DATE>", "WHEN"),
    Rule("<AMOUNT> (per | a) (day | week | month | year)", "RATE"),
    Rule(f"(the | a) <{LABEL}>", "PHRASE"),
]


def phrases(data: Path | None, count: int) -> list[str]:
    """So many phrases, each once: those of a file, then made-up compounds of its words."""
    distinct_phrases: dict[str, None] = {}
    if data is not None:
        lines = data.read_text(encoding="utf-8").splitlines()[1:]
        distinct_phrases = dict.fromkeys(line.split("\t")[0].lower() for line in lines)
    draw = random.Random(0)
    words = sorted({word for phrase in distinct_phrases for word in phrase.split()})
    while len(words) < 5000:
        words.append("".join(draw.choices(string.ascii_lowercase, k=6)))
    while len(distinct_phrases) < count:
        distinct_phrases[" ".join(draw.choices(words, k=draw.choice((2, 2, 2, 3))))] = None
    return list(itertools.islice(distinct_phrases, count))


def sentences(texts: Path | None, entries: Sequence[str], count: int) -> list[str]:
    """Texts of a file, or made up."""
    if texts is not None:
        lines = texts.read_text(encoding="utf-8").splitlines()
        return [line.split("\t")[0] for line in lines[:count]]
    draw = random.Random(1)
    words = [word for phrase in entries[:5000] for word in phrase.split()]
    return [
        " ".join([*draw.choices(words, k=12), draw.choice(entries), *draw.choices(words, k=3)])
        for _ in range(count)
    ]


def flashtext_of(entries: Sequence[str]) -> Callable[[str], Any] | None:
    """The peer, if it is installed."""
    with suppress(ImportError):
        processor = import_module("flashtext2").KeywordProcessor(case_sensitive=False)
        processor.add_keywords_from_iter(entries)
        return processor.extract_keywords_with_span
    return None


def alone(work: str, lexicon: str, folder: str) -> dict[str, float]:
    """Seconds, and megabytes that it takes, of one work in this process."""
    import_module("ahocorasick"), import_module("pynini")  # not part of what is measured
    before, start = held(), time.process_time()
    if work == "compile":
        matcher: object = Transducer.compile(Lexicon.from_file(lexicon), TEN_RULES)
    elif work == "load":
        matcher = Transducer.load(folder)
    else:
        matcher = TokenTrie(entries_of(Path(lexicon)))
    costs = {"seconds": time.process_time() - start, "megabytes": held() - before}
    if work == "compile":
        start = time.process_time()
        matcher.save(folder)  # type: ignore[attr-defined]
        costs["saving"] = time.process_time() - start
    return costs


def entries_of(lexicon: Path) -> Iterator[tuple[str, str]]:
    for line in lexicon.open(encoding="utf-8"):
        phrase, _, label = line.rstrip("\n").partition("\t")
        yield phrase, label


def measure(args: argparse.Namespace, number: int, folder: Path) -> dict[str, Any]:
    """Everything about a lexicon of so many entries."""
    entries = phrases(args.data, number)
    lexicon, transducer_folder = folder / f"{number}.tsv", folder / f"{number}"
    lexicon.write_text("".join(f"{p}\t{LABEL}\n" for p in entries), encoding="utf-8")
    texts = sentences(args.texts, entries, args.sentences)
    processes = {
        work: in_own_process(alone, work, str(lexicon), str(transducer_folder))
        for work in ("compile", "load", "trie")
    }
    with_rules = Transducer.load(transducer_folder)
    plain = Transducer.compile(Lexicon.from_file(lexicon))
    calls: dict[str, Callable[[str], Any]] = {
        OURS: plain.spans, RULES: with_rules.spans, TRIE: TokenTrie(entries_of(lexicon)).spans,
    }  # fmt: skip
    if (flashtext := flashtext_of(entries)) is not None:
        calls[FLASHTEXT] = flashtext
    segments = {side: sum(len(call(text)) for text in texts) for side, call in calls.items()}
    sides = {
        side: (lambda call=call: [call(text) for text in texts]) for side, call in calls.items()
    }
    seconds, processor = clocked_in_turns(sides, args.rounds)
    return {
        "entries": number,
        "sentences": len(texts),
        "words": sum(len(text.split()) for text in texts) / len(texts),
        "segments": segments,
        "dropped": plain.dropped,
        "seconds": seconds,
        "processor_seconds": processor,
        "alone": processes,
        "file": (transducer_folder / "lexicon.tsv").stat().st_size / 1e6,
    }


def show(rows: Sequence[dict[str, Any]]) -> str:
    """Two tables: sentences a second; compiling, loading and memory."""
    speeds, costs = [], []
    for row in rows:
        for side, seconds in row["processor_seconds"].items():
            speeds.append([
                f"{row['entries']:,}", side, three([row["sentences"] / s for s in seconds], 0),
                three(ratios(row["processor_seconds"][TRIE], seconds)),
                f"{row['segments'][side]:,}",
            ])  # fmt: skip
        compiled, loaded, trie = (row["alone"][work] for work in ("compile", "load", "trie"))
        costs.append([
            f"{row['entries']:,}", f"{compiled['seconds']:.2f}", f"{compiled['saving']:.2f}",
            f"{row['file']:.1f}", f"{loaded['seconds']:.2f}", f"{loaded['megabytes']:.0f}",
            f"{trie['seconds']:.2f}", f"{trie['megabytes']:.0f}",
        ])  # fmt: skip
    columns = ["entries", "side", "sentences/s", "times the trie's speed", "segments"]
    cost_columns = [
        "entries", "read and compile, s", "save, s", "file, MB", "load, s", "loaded, MB",
        "token trie: read, s", "token trie, MB",
    ]  # fmt: skip
    first = rows[0]
    head = f"{first['sentences']:,} sentences of {first['words']:.1f} words, one thread"
    return f"{head}\n\n{table(columns, speeds, ['side'])}\n\n{table(cost_columns, costs)}"


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__)
    add = parser.add_argument
    add("--data", type=Path, help="tab-separated, with a head; phrases are the first column")
    add("--texts", type=Path, help="tab-separated, without a head; texts are the first column")
    add("--entries", type=int, nargs="+", default=[1_000, 100_000, 1_000_000])
    add("--sentences", type=int, default=2000, help="most of them (2000)")
    add("--rounds", type=int, default=5)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(args, number, Path(folder)) for number in args.entries]
    finish(show(rows), {"rows": rows}, args.out, argv)


if __name__ == "__main__":
    main()
