"""People in texts of the web: do their names come back as they were, and what reaches a model?

    pip install spacy && python -m spacy download en_core_web_sm
    python benchmarks/people.py --data data --out people

Texts are documents of UNER's English Web Treebank (`data/uner_ewt`) in which spaCy finds somebody.
Its spans are taken as they are, and by `people_rule`. No model is asked.
"""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from hf_alpha import CanonicalNames, people_rule
from hf_alpha.alias.certificate import OTHERS, SWAPPED, certify
from hf_alpha.alias.chat import CanonicalRequest
from measure import finish, parser_of, run, table

FORMS = ("{} wrote it.", "**{}**'s", "_{}_", "`{}`", "<a>{}</a>", '{{"x": "{}"}}')
"""Answers that say a name."""
PLAIN = "<b>Note</b> Plan b is vitamin c, said Person."
"""An answer that says none."""


def documents(folder: Path) -> list[str]:
    """Return the texts of documents, of 60 to 1,500 characters."""
    texts: list[list[str]] = []
    for part in ("dev", "test"):
        for line in (folder / f"{part}.iob2").read_text(encoding="utf-8").splitlines():
            if line.startswith("# newdoc id"):
                texts.append([])
            elif line.startswith("# text"):
                texts[-1].append(line.partition("=")[2].strip())
    joined = (" ".join(sentences) for sentences in texts)
    return [text for text in joined if 60 < len(text) < 1500]


def measured(texts: Sequence[str], rule: Any) -> dict[str, int]:
    """Return counts of texts, and of what `certify` counts."""
    names = CanonicalNames({"person": rule}, words={"person": "Person"})
    counts = dict.fromkeys(("texts", "exact", "forms", "own words", "with parts left"), 0)
    for text in texts:
        spelled = names.spell(text)
        (name, word), *_ = ((n, w) for w, n in spelled.table.items() if w != n)
        counts["texts"] += 1
        counts["exact"] += spelled.back(spelled.text) == text
        counts["forms"] += all(spelled.back(f.format(word)) == f.format(name) for f in FORMS)
        counts["own words"] += spelled.back(PLAIN) == PLAIN
        counts["with parts left"] += bool(CanonicalRequest(names, {"prompt": text}).parts_left)
    made = certify(({"prompt": text} for text in texts), names)
    return counts | {
        "names": made.names,
        "renamings": sum(made.renamings.values()),
        "sent otherwise": len(made.differing),
        "not found": len(made.missed),
        "swapped": made.renamings[SWAPPED],
        "of these sent otherwise": sum(kind == SWAPPED for _, kind in made.differing),
        "other people": made.renamings[OTHERS],
        "of them sent otherwise": sum(kind == OTHERS for _, kind in made.differing),
    }


def finder(model: str) -> Callable[[str], list[tuple[int, int, str]]]:
    """Return a model of spaCy, which reads each text once."""
    import spacy

    nlp = spacy.load(model)

    @cache
    def find(text: str) -> list[tuple[int, int, str]]:
        return [(e.start_char, e.end_char, e.label_) for e in nlp(text).ents]

    return find


def main(argv: Sequence[str] | None = None) -> None:
    """Measure both rules on the same texts."""
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="with uner_ewt")
    parser.add_argument("--model", default="en_core_web_sm", help="of spaCy")
    options = parser.parse_args(argv)
    find = finder(options.model)

    def alone(text: str) -> list[tuple[int, int]]:
        return [(start, stop) for start, stop, label in find(text) if label == "PERSON"]

    texts = [text for text in documents(options.data / "uner_ewt") if alone(text)]
    rules = {"as it is": alone, "`people_rule`": people_rule(find, "PERSON")}
    data = {name: measured(texts, rule) for name, rule in rules.items()}
    columns = ["spaCy", *next(iter(data.values()))]
    lines = [[name, *(f"{count:,}" for count in counts.values())] for name, counts in data.items()]
    finish(table(columns, lines), data, options.out, argv)


if __name__ == "__main__":
    run(main)
