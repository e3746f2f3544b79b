"""Who did what, in a text whose people have pseudonyms?"""

import random
from collections.abc import Mapping
from typing import ClassVar

from benchmarks.names.questions import Pool, Question, Suite, slot

from .one_name import the_name

EVENTS = (
    ("sold", "sold", "house", "Seller", "Buyer"),
    ("lent", "lent", "money", "Lender", "Borrower"),
    ("gave", "given", "ring", "Giver", "Owner"),
    ("sent", "sent", "parcel", "Sender", "Addressee"),
    ("rented", "rented", "garden", "Landlord", "Tenant"),
    ("taught", "taught", "song", "Teacher", "Pupil"),
    ("owed", "owed", "horse", "Debtor", "Creditor"),
    ("left", "left", "boat", "Testator", "Heir"),
)
"""What was done, also in the passive, the thing, and the roles of who did it and to whom."""


class People(Suite):
    """`difficulty` + 2 events among as many people; misleading names are roles of others."""

    name: ClassVar[str] = "people"
    title: ClassVar[str] = "who did what in pseudonymised text"
    instructions: ClassVar[str] = (
        "In the text, people have pseudonyms. Say who did something, or to whom; answer with the "
        "pseudonym alone."
    )
    pools: ClassVar[Mapping[str, Pool]] = {
        "person": Pool(
            ("P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8"),
            ("P21", "P34", "P42", "P57", "P63", "P76", "P85", "P98"),
            tuple(role for *_, giver, taker in EVENTS for role in (giver, taker)),
        )
    }
    hardest: ClassVar[int] = 6

    def draw(self, rng: random.Random, difficulty: int) -> Question:
        """Draw events, each between two people, told in the active or the passive."""
        count = difficulty + 2
        ring = rng.sample(range(count), count)
        events = rng.sample(EVENTS, count)
        pairs = [(ring[i], ring[(i + 1) % count]) for i in range(count)]
        told = [_tell(rng, event, *pair) for event, pair in zip(events, pairs, strict=True)]
        rng.shuffle(told)
        roles: dict[int, set[str]] = {person: set() for person in range(count)}
        for (*_, giver, taker), (one, other) in zip(events, pairs, strict=True):
            roles[one].add(giver)
            roles[other].add(taker)
        (done, passive, thing, *_), (one, other) = rng.choice(list(zip(events, pairs, strict=True)))
        if rng.random() < 0.5:
            asked, answer = f"Who {done} the {thing}?", one
        else:
            asked, answer = f"To whom was the {thing} {passive}?", other
        text = f"Text: {' '.join(told)}\nQuestion: {asked}"
        fitting = tuple(frozenset(roles[person]) for person in range(count))
        return Question(text, slot(answer), ("person",) * count, None, fitting)

    def read(self, text: str) -> str | None:
        """Return the one name of a text."""
        return the_name(text)


def _tell(rng: random.Random, event: tuple[str, str, str, str, str], one: int, other: int) -> str:
    done, passive, thing, *_ = event
    if rng.random() < 0.5:
        return f"{slot(one)} {done} the {thing} to {slot(other)}."
    return f"The {thing} was {passive} to {slot(other)} by {slot(one)}."
