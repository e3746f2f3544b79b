"""Does a model know kinship, or the pairs of relations that its training has?

    python benchmarks/kinship_pairs.py --data FOLDER_OF_CLUTRR --out kinship-pairs

Families of four generations are drawn: everybody has two parents, who are married and have all
their children together, or parents who are unknown; nobody marries a relative. An aunt's husband is
an uncle, an uncle's wife an aunt. Two facts, "the R of Ann is Bob . the S of Bob is Cleo .", are
asked about if in all these families Cleo has the same relation to Ann, one of those that the model
knows; where Cleo can be Ann, somebody else is meant. Every pair is asked in both orders of its
facts. Pairs are those that CLUTRR's training tells as a story of two facts, others of relations
that its facts have, and those with a relation that no fact of it has: the model has no token for
the latter's words.
"""

import argparse
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import torch

import measure
from clutrr import file_name, read_stories
from hf_alpha.loading import load_checkpoint

MODEL = measure.ROOT / "model_cards" / "kinship-folnet"
FAMILIES = 60
GENERATIONS = 4
COUPLES = 8
"""Of the first generation."""
Pair = tuple[str, str]


@dataclass(eq=False)
class Person:
    """Somebody of a family."""

    female: bool
    parents: tuple["Person", ...] = ()
    spouse: "Person | None" = None
    children: Sequence["Person"] = ()

    def siblings(self) -> list["Person"]:
        """Brothers and sisters."""
        return [one for parent in self.parents[:1] for one in parent.children if one is not self]

    def related(self, steps: str) -> set["Person"]:
        """Everybody who is reached by steps: p(arent), c(hild), s(ibling), m(arried)."""
        people = {self}
        for step in steps:
            people = {other for one in people for other in one.next(step)}
        return people - {self}

    def next(self, step: str) -> Sequence["Person"]:
        """Everybody who is one step away."""
        married = [self.spouse] if self.spouse else []
        return {"p": self.parents, "c": self.children, "s": self.siblings(), "m": married}[step]


RELATIONS = {
    ("mother", "father"): ["p"],
    ("daughter", "son"): ["c"],
    ("wife", "husband"): ["m"],
    ("sister", "brother"): ["s"],
    ("grandmother", "grandfather"): ["pp"],
    ("granddaughter", "grandson"): ["cc"],
    ("aunt", "uncle"): ["ps", "psm"],
    ("niece", "nephew"): ["sc", "msc"],
    ("mother-in-law", "father-in-law"): ["mp"],
    ("daughter-in-law", "son-in-law"): ["cm"],
}
"""A woman's and a man's name, and the steps that lead to them."""


def family(rng: random.Random) -> list[Person]:
    """Draw the people of some families that marry one another."""
    generation = [Person(female) for _ in range(COUPLES) for female in (True, False)]
    people = list(generation)
    for last in range(GENERATIONS - 1, -1, -1):
        women = [one for one in generation if one.female]
        men = [one for one in generation if not one.female]
        rng.shuffle(men)
        generation = []
        for woman, man in zip(women, men, strict=False):
            if ancestors(woman) & ancestors(man) or rng.random() < 0.1:
                continue
            woman.spouse, man.spouse = man, woman
            if last:
                count = rng.choice([0, 2, 3, 4])
                children = [Person(rng.random() < 0.5, (woman, man)) for _ in range(count)]
                woman.children = man.children = children
                generation += children
        people += generation
    return people


def ancestors(person: Person) -> set[Person]:
    """A person, parents, and so on."""
    return {person, *(one for parent in person.parents for one in ancestors(parent))}


def named(person: Person) -> dict[Person, set[str]]:
    """How everybody is called who is related to a person."""
    found: dict[Person, set[str]] = defaultdict(set)
    for (woman, man), ways in RELATIONS.items():
        for other in {one for way in ways for one in person.related(way)}:
            found[other].add(woman if other.female else man)
    return found


def answers(families: int) -> dict[Pair, str]:
    """The pairs of relations that have one answer in all families, and that answer."""
    told: dict[Pair, set[frozenset[str]]] = defaultdict(set)
    for seed in range(families):
        people = family(random.Random(seed))
        names = {person: named(person) for person in people}
        for one in people:
            for two, firsts in names[one].items():
                for three, seconds in names[two].items():
                    if three is not one:
                        answer = frozenset(names[one].get(three, ()))
                        for pair in product(firsts, seconds):
                            told[pair].add(answer)
    single = {pair: next(iter(found)) for pair, found in told.items() if len(found) == 1}
    return {pair: next(iter(names)) for pair, names in sorted(single.items()) if len(names) == 1}


def groups(
    pairs: Mapping[Pair, str], training: Sequence[Mapping[str, Any]]
) -> dict[str, list[Pair]]:
    """The pairs by what training has of them."""
    stories = {tuple(row["edge_types"]) for row in training}
    words = {word for story in stories for word in story}
    found: dict[str, list[Pair]] = {TOLD: [], OTHERS: [], UNKNOWN: []}
    for pair in pairs:
        known = TOLD if pair in stories else OTHERS if {*pair} <= words else UNKNOWN
        found[known].append(pair)
    return found


TOLD = "training tells them"
OTHERS = "others, both words in facts of training"
UNKNOWN = "others, with a word that no fact of training has"


@torch.no_grad()
def asked(pairs: Sequence[Pair], folder: Path) -> dict[Pair, list[str]]:
    """What a model says of pairs, in both orders of their facts."""
    model, tokenizer = load_checkpoint(folder, answers=False)
    model.eval()
    texts = [
        " ".join(facts)
        for first, second in pairs
        for facts in both_orders(f"the {first} of Ann is Bob .", f"the {second} of Bob is Cleo .")
    ]
    batch = tokenizer(texts, ["Ann Cleo"] * len(texts), return_tensors="pt", padding=True)
    labels = model(**batch).logits.argmax(-1).view(-1, 2).tolist()
    said = [[model.config.id2label[label] for label in orders] for orders in labels]
    return dict(zip(pairs, said, strict=True))


def both_orders(one: str, two: str) -> Iterator[tuple[str, str]]:
    """Two facts, and the other way round."""
    yield one, two
    yield two, one


def table(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Right answers of each group, and what is said of pairs where that is wrong."""
    lines, wrong = [], []
    for name, rows in results.items():
        right = [said == row["answer"] for row in rows for said in row["said"]]
        lines.append([name, str(len(rows)), f"{100 * sum(right) / len(right):.1f}"])
        for row in rows:
            if {*row["said"]} != {row["answer"]}:
                wrong.append([*row["pair"], row["answer"], ", ".join(Counter(row["said"]))])
    heads = ["pairs of relations", "pairs", "right, %"]
    more = ["somebody's", "has as", "who is their", "the model says"]
    return "\n\n".join([
        measure.table(heads, lines), "Not right in both orders:",
        measure.table(more, wrong, words=more),
    ])  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Ask and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("data/clutrr"), help="CLUTRR's files")
    parser.add_argument("--model", type=Path, default=MODEL, help="a model that tells classes")
    measure.add_out(parser)
    args = parser.parse_args(argv)
    pairs = answers(FAMILIES)
    training = read_stories(args.data / file_name("k234", "train"))
    results = {}
    for name, chosen in groups(pairs, training).items():
        said = asked(chosen, args.model)
        results[name] = [
            {"pair": pair, "answer": pairs[pair], "said": said[pair]} for pair in chosen
        ]
    measure.finish(table(results), results, args.out, argv)


if __name__ == "__main__":
    main()
