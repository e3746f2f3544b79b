"""Who is whose grandmother, by facts?"""

import random
from collections.abc import Mapping
from typing import ClassVar

from benchmarks.names.questions import Pool, Question, Suite, slot

from .one_name import the_name

Parents = dict[int, int]  # child -> its parent, of whom one is told
ROLES = {
    "parent": ("mother", "father"),
    "grandparent": ("grandmother", "grandfather"),
    "great-grandparent": ("great-grandmother", "great-grandfather"),
    "sibling": ("sister", "brother"),
    "aunt or uncle": ("aunt", "uncle"),
}


class Kinship(Suite):
    """Families of `difficulty` + 3 people; facts tell a mother or father of each but one.

    Names of the first two kinds are those of women and men: none fits a fact better than another.
    """

    name: ClassVar[str] = "kinship"
    title: ClassVar[str] = "kinship by facts"
    instructions: ClassVar[str] = (
        "The facts tell of a family. Say who stands in a relation to somebody; answer with the "
        "name alone."
    )
    pools: ClassVar[Mapping[str, Pool]] = {
        "person": Pool.of(
            "Alex Robin Kim Sasha Noel Quinn Jamie Riley Morgan Casey",
            "Taylor Jordan Avery Rowan Skyler Emery Finley Harper Dana Jules",
            "Mother Father Sister Brother Aunt Uncle Grandmother Grandfather Daughter Son",
        )
    }
    hardest: ClassVar[int] = 7

    def draw(self, rng: random.Random, difficulty: int) -> Question:
        """Draw a family, and a relation in which exactly one of it stands to somebody."""
        count = difficulty + 3
        parents = {1: 0, 2: 1} | {child: rng.randrange(child - 1) for child in range(3, count)}
        genders = [rng.randrange(2) for _ in range(count)]
        numbers = rng.sample(range(count), count)
        facts = [
            f"{slot(numbers[parent])} is the {ROLES['parent'][genders[parent]]} of "
            f"{slot(numbers[child])}."
            for child, parent in parents.items()
        ]
        rng.shuffle(facts)
        role, person, answer = rng.choice(_askable(parents, genders))
        text = f"Facts: {' '.join(facts)}\nQuestion: Who is the {role} of {slot(numbers[person])}?"
        return Question(text, slot(numbers[answer]), ("person",) * count)

    def read(self, text: str) -> str | None:
        """Return the one name of a text."""
        return the_name(text)


def _askable(parents: Parents, genders: list[int]) -> list[tuple[str, int, int]]:
    """Return role, person and answer where the answer is unique, and its gender is told."""
    tellers = set(parents.values())  # of a parent is told whether it is a mother or a father
    found: dict[tuple[str, int], list[int]] = {}
    for person in range(len(genders)):
        for relation, other in _relatives(parents, person):
            if other in tellers:
                role = ROLES[relation][genders[other]]
                found.setdefault((role, person), []).append(other)
    # Whose gender is not told may be another one who stands in the relation.
    return [
        (role, person, others[0])
        for (role, person), others in found.items()
        if len(others) == 1 and not _untold(parents, person, role, tellers)
    ]


def _untold(parents: Parents, person: int, role: str, tellers: set[int]) -> bool:
    """Whether somebody of untold gender may have a role too."""
    relations = {relation for relation, roles in ROLES.items() if role in roles}
    return any(
        relation in relations and other not in tellers
        for relation, other in _relatives(parents, person)
    )


def _relatives(parents: Parents, person: int) -> list[tuple[str, int]]:
    """Return the relations of others to a person that take two facts or more."""
    parent = parents.get(person)
    if parent is None:
        return []
    relatives = [("sibling", other) for other in _children(parents, parent) if other != person]
    grandparent = parents.get(parent)
    if grandparent is None:
        return relatives
    relatives.append(("grandparent", grandparent))
    aunts = [other for other in _children(parents, grandparent) if other != parent]
    relatives += [("aunt or uncle", other) for other in aunts]
    if grandparent in parents:
        relatives.append(("great-grandparent", parents[grandparent]))
    return relatives


def _children(parents: Parents, person: int) -> list[int]:
    return [child for child, parent in parents.items() if parent == person]
