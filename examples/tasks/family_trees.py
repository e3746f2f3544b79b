"""Families that are drawn, and stories about them: who is one person to another?

Families of four generations: everybody has two parents, who are married and have all their children
together, or parents who are unknown; nobody marries a relative. An aunt's husband is an uncle, an
uncle's wife an aunt. `answers` says which two relations, one after the other, have one answer in
all families: a mother's husband is the father. `python examples/tasks/kinship.py` with `families`
has such stories beside CLUTRR's.
"""

import itertools
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

FAMILIES = 60
GENERATIONS = 4
COUPLES = 8
"""Of the first generation."""
Pair = tuple[str, str]
"""Two relations, one after the other."""


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

    def related(self, steps: str) -> list["Person"]:
        """Everybody who is reached by steps: p(arent), c(hild), s(ibling), m(arried)."""
        people = [self]
        for step in steps:
            people = list(dict.fromkeys(other for one in people for other in one.next(step)))
        return [one for one in people if one is not self]

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


Relatives = Mapping[Person, Mapping[Person, list[str]]]
"""Person -> somebody who is related to them -> how that one is called."""


def named(person: Person) -> dict[Person, list[str]]:
    """How everybody is called who is related to a person, in an order that is always the same."""
    found: dict[Person, list[str]] = defaultdict(list)
    for (woman, man), ways in RELATIONS.items():
        for other in dict.fromkeys(one for way in ways for one in person.related(way)):
            found[other].append(woman if other.female else man)
    return found


@cache
def answers(families: int = FAMILIES) -> dict[Pair, str]:
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


# -- stories --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Teller:
    """Tells stories about families.

    Attributes:
        told: the pairs of relations that facts may have, one after the other, by which a fact is
            told by two; with the relation that they tell.
        forbidden: pairs that no two facts of a story have, one after the other.
    """

    told: Mapping[Pair, str]
    forbidden: Set[Pair]

    def stories(self, rng: random.Random, counts: Iterable[int]) -> Iterator[dict[str, Any]]:
        """Draw stories as CLUTRR's files have them; each family is tried a thousand times.

        Args:
            rng: the random numbers.
            counts: of each story's facts. Half of them have one more, at the end, that does not
                matter.
        """
        tries = itertools.count()
        for count in counts:
            drawn = None
            while drawn is None:
                if next(tries) % 1000 == 0:
                    names = {person: named(person) for person in family(rng)}
                drawn = self._story(rng, names, count)
            yield drawn

    def _story(self, rng: random.Random, names: Relatives, count: int) -> dict[str, Any] | None:
        one = rng.choice(list(names))
        others = [two for two, words in names[one].items() if len(words) == 1]
        if not others:
            return None
        two = rng.choice(others)
        (relation,) = names[one][two]
        path, facts = [one, two], [relation]
        while len(facts) < count:
            if not self._tell_by_two(rng, names, path, facts):
                return None
        if rng.random() < 0.5:
            self._go_on(rng, names, path, facts)
        return story(path, facts, (one, two), relation)

    def _tell_by_two(
        self, rng: random.Random, names: Relatives, path: list[Person], facts: list[str]
    ) -> bool:
        """Tell one fact by two, of somebody between; every pair that can is as likely."""
        between: dict[tuple[int, Pair], list[Person]] = defaultdict(list)
        for place, (one, two) in enumerate(itertools.pairwise(path)):
            for other, firsts in names[one].items():
                if other not in path:
                    for pair in product(firsts, names[other].get(two, ())):
                        around = [*facts[:place], *pair, *facts[place + 1 :]]
                        if self.told.get(pair) == facts[place] and self.allows(around):
                            between[place, pair].append(other)
        if not between:
            return False
        place, pair = rng.choice(list(between))
        path.insert(place + 1, rng.choice(between[place, pair]))
        facts[place : place + 1] = pair
        return True

    def _go_on(
        self, rng: random.Random, names: Relatives, path: list[Person], facts: list[str]
    ) -> None:
        """Add a fact at the end that nobody asks about."""
        further = [
            (other, word)
            for other, words in names[path[-1]].items()
            for word in words
            if other not in path and self.allows([facts[-1], word])
        ]
        if further:
            other, word = rng.choice(further)
            path.append(other)
            facts.append(word)

    def allows(self, facts: Sequence[str]) -> bool:
        """Whether no two facts, one after the other, are a forbidden pair."""
        return not any(pair in self.forbidden for pair in itertools.pairwise(facts))


def story(
    path: Sequence[Person], facts: Sequence[str], asked: Pair | Any, relation: str
) -> dict[str, Any]:
    """Write a story as CLUTRR's files have it: facts that lead from each person to the next."""
    called = {person: f"Person{number}" for number, person in enumerate(path)}
    genders = [f"{called[one]}:{'female' if one.female else 'male'}" for one in path]
    return {
        "story": "",
        "genders": ",".join(genders),
        "story_edges": [[number, number + 1] for number in range(len(facts))],
        "edge_types": list(facts),
        "query": [called[person] for person in asked],
        "query_edge": [path.index(person) for person in asked],
        "target": relation,
    }
