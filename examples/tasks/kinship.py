"""Make pairs about kinship of CLUTRR; people are names, women and men.

    python examples/tasks/kinship.py FOLDER_OF_CLUTRR data/kinship [stories] [k234] [pairs] \
        [longer] [families] [4]

The source has facts in random order, or with `stories` CLUTRR's sentences, and a question about two
people; the target is a sentence with their relation. Training has 2 or 3 facts (with `k234` 2, 3 or
4) that lead from one of the two to the other, the test 2 to 10. Models that tell classes read the
columns `told`, the facts alone, and `people`, "Ann Bob" for who Bob is to Ann, and answer with the
`relation`. `k` is the number of facts. With a number, training has each story so often, its facts
in other orders. With `pairs`, half of its questions are about any two people of a story whose
relation other stories of training tell, by the facts between the two. With `longer`, half of its
stories get more facts, up to 8: one after another is told by two in its place, as stories of two
facts tell it. With `families`, as many stories again are about families that are drawn
(family_trees.py), in which a fact is told by two as long as those have one answer in all families.
Of such pairs of facts that no story of CLUTRR's training tells, every fourth is held out: no story
of training has them one after the other. `families.jsonl` are new stories about other families.
"""

import gzip
import itertools
import json
import random
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from family_trees import Pair, Teller, answers
from pair_files import parser_of, run

OPTIONS = ("stories", "k234", "pairs", "longer", "families")
FOR_TRAINING = ("pairs", "longer", "families")
MOST_FACTS = 8
TURNS = 4
NEW_PERSON = "Person"

Story = dict[str, Any]
"""A story as CLUTRR's files have it."""
Facts = tuple[str, ...]
"""Relations on the way from one person to another."""
Relation = tuple[str, str]
"""The gender of a person, and what another one is to them."""


def genders_of(story: Story) -> list[tuple[str, str]]:
    """Return name and gender of each person."""
    people = [person.split(":") for person in story["genders"].split(",")]
    return [(name, gender) for name, gender in people]


def facts_in_words(row: Story, rng: random.Random, name: str = "{}") -> str:
    """Return the facts of a row in words, in random order; `name` is how a name is written."""
    people = [name.format(person) for person, _ in genders_of(row)]
    found = [
        f"the {relation} of {people[one]} is {people[two]} ."
        for (one, two), relation in zip(row["story_edges"], row["edge_types"], strict=True)
    ]
    return " ".join(rng.sample(found, len(found)))


def pair(row: Story, rng: random.Random, options: Collection[str]) -> dict[str, Any]:
    """Return source and target of a row, and its names: women and men."""
    one, two = row["query"]
    people = genders_of(row)
    plain = row["story"].translate(str.maketrans("", "", "[]"))
    told = plain if "stories" in options else facts_in_words(row, rng)
    source = f"{told} who is {two} to {one} ?"
    words = re.findall(r"\w+", source)
    women = [name for name, gender in people if gender == "female" and name in words]
    men = [name for name, gender in people if gender == "male" and name in words]
    target = f"{two} is the {row['target']} of {one}"
    return {
        "source": source,
        "target": target,
        "told": told,
        "people": f"{one} {two}",
        "relation": row["target"],
        "k": len(row["edge_types"]),
        "women": women,
        "men": men,
    }


def told_relations(rows: Iterable[Story]) -> dict[Facts, str]:
    """Return the relations that rows tell: facts on the way to a person -> that to the person."""
    known: dict[Facts, str] = {}
    for row in rows:
        known |= {(fact,): fact for fact in row["edge_types"]}
        known[tuple(row["edge_types"])] = row["target"]
    return known


def asked_otherwise(row: Story, known: Mapping[Facts, str], rng: random.Random) -> Story:
    """Return a row with a question about any two of its people whose relation is known."""
    facts, edges = row["edge_types"], row["story_edges"]
    questions = [
        ([edges[first][0], edges[last][1]], relation)
        for first, last in itertools.combinations_with_replacement(range(len(facts)), 2)
        if (relation := known.get(tuple(facts[first : last + 1])))
        and edges[first][0] != edges[last][1]
    ]
    people, relation = rng.choice(questions)
    names = [name for name, _ in genders_of(row)]
    query = [names[person] for person in people]
    return {**row, "query": query, "query_edge": people, "target": relation}


def with_other_questions(rows: Collection[Story], rng: random.Random) -> list[Story]:
    """Return rows, half of them with a question about any two people whose relation is told."""
    known = told_relations(rows)
    return [asked_otherwise(row, known, rng) if rng.random() < 0.5 else row for row in rows]


def longer_stories(stories: list[Story], most: int, rng: random.Random) -> list[Story]:
    """Return the stories, half of them with more facts, up to `most`; 0 for none."""
    if not most:
        return stories
    told_by, genders = what_two_tell(stories)
    return [
        with_facts(story, rng.randint(len(story["edge_types"]) + 1, most), told_by, genders, rng)
        if rng.random() < 0.5
        else story
        for story in stories
    ]


def what_two_tell(
    stories: Iterable[Story],
) -> tuple[dict[Relation, list[Facts]], dict[str, str]]:
    """Return the pairs of facts that tell a relation, and the gender that a fact leads to."""
    pairs: dict[Relation, set[Facts]] = defaultdict(set)
    genders: dict[str, str] = {}
    for story in stories:
        people = [gender for _, gender in genders_of(story)]
        if len(story["edge_types"]) == 2:
            pairs[people[story["query_edge"][0]], story["target"]].add(tuple(story["edge_types"]))
        for (_, person), relation in zip(story["story_edges"], story["edge_types"], strict=True):
            genders[relation] = people[person]
    return {relation: sorted(told) for relation, told in pairs.items()}, genders


def with_facts(
    story: Story,
    count: int,
    told_by: Mapping[Relation, Sequence[tuple[str, ...]]],
    genders: Mapping[str, str],
    rng: random.Random,
) -> Story:
    """Return a story of so many facts: one after another is told by two, of a new person between.

    `told_by` has the pairs of relations that tell one, `genders` those of the people that relations
    lead to.
    """
    edges, relations = ([*story[key]] for key in ("story_edges", "edge_types"))
    people = genders_of(story)
    while len(relations) < count:
        facts = [
            (place, edge, told)
            for place, (edge, relation) in enumerate(zip(edges, relations, strict=True))
            if (told := told_by.get((people[edge[0]][1], relation)))
        ]
        place, (one, two), told = rng.choice(facts)
        first, second = rng.choice(told)
        new = len(people)
        people.append((f"{NEW_PERSON}{new}", genders[first]))
        edges[place : place + 1] = [[one, new], [new, two]]
        relations[place : place + 1] = [first, second]
    genders_text = ",".join(map(":".join, people))
    return {**story, "story_edges": edges, "edge_types": relations, "genders": genders_text}


def pairs_held_out(stories: Iterable[Story], turn: int = 0) -> list[Pair]:
    """Return every fourth pair of relations with one answer in all families that no story tells.

    Args:
        turn: of the four, which hold out each of these pairs once.
    """
    told = {tuple(story["edge_types"]) for story in stories}
    return [pair for pair in answers() if pair not in told][turn::TURNS]


def teller(held_out: Collection[Pair]) -> Teller:
    """Return what tells stories about families without some pairs."""
    told = {pair: answer for pair, answer in answers().items() if pair not in held_out}
    return Teller(told, frozenset(held_out))


def with_families(
    rows: Collection[Story], families: Teller, rng: random.Random, most: int = MOST_FACTS
) -> list[Story]:
    """Return rows but those with pairs held out, and as many about families, up to `most` facts."""
    kept = [row for row in rows if families.allows(row["edge_types"])]
    # More short ones: every pair is to be told by itself, too.
    counts = [min(rng.randint(2, most) for _ in range(2)) for _ in kept]
    return [*kept, *families.stories(rng, counts)]


def read(original: Path) -> list[Story]:
    """Return the stories of a file of CLUTRR."""
    with gzip.open(original, "rt", encoding="utf-8") as rows:
        return [json.loads(row) for row in rows]


def convert(
    stories: list[Story],
    file: Path,
    options: Collection[str],
    orders: int,
    families: Teller | None = None,
    most: int = MOST_FACTS,
) -> None:
    """Write the pairs of stories, each with so many orders of its facts.

    Args:
        families: tells as many more, where there is one.
        most: facts of a story that is made.
    """
    rng = random.Random(0)
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = [row for _ in range(orders) for row in stories]
    rows = longer_stories(rows, most if "longer" in options else 0, rng)
    if "pairs" in options:
        rows = with_other_questions(rows, rng)
    if families is not None:
        rows = with_families(rows, families, rng, most)
    pairs = [pair(row, rng, options) for row in rows]
    file.write_text("".join(json.dumps(pair) + "\n" for pair in pairs), encoding="utf-8")


def main(clutrr: Path, folder: Path, options: list[str]) -> None:
    """Write the files.

    Raises:
        ValueError: an option is not known.
    """
    if unknown := [o for o in options if o not in OPTIONS and not o.isdecimal()]:
        raise ValueError(f"unknown: {unknown[0]}; known are {', '.join(OPTIONS)} and a number")
    split = "k234" if "k234" in options else "k23"
    told = {part: read(clutrr / f"{split}_{part}.jsonl.gz") for part in ("train", "test")}
    families = teller(pairs_held_out(told["train"])) if "families" in options else None
    orders = [int(option) for option in options if option.isdecimal()] or [1]
    convert(told["train"], folder / "train.jsonl", options, orders[0], families)
    convert(told["test"], folder / "test.jsonl", {*options} - {*FOR_TRAINING}, 1)
    if families is not None:
        counts = [count for count in range(2, 11) for _ in range(100)]
        about_families = list(families.stories(random.Random("families"), counts))
        convert(about_families, folder / "families.jsonl", (), 1)


if __name__ == "__main__":
    arguments = parser_of(__doc__)
    arguments.add_argument("clutrr", type=Path, help="the folder of its files")
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("options", nargs="*")
    run(main, arguments)
