"""Which tool serves whom?"""

import random
import re
from collections.abc import Mapping
from typing import ClassVar

from benchmarks.names.questions import SLOT, Pool, Question, Suite, slot

FUNCTIONS = {
    "get_weather": ("tells the weather", "to know whether it will rain", "weather"),
    "send_mail": ("sends a mail", "to write to a colleague", "mail"),
    "set_alarm": ("sets an alarm", "to be woken at six", "alarm"),
    "book_room": ("books a room", "to stay for two nights", "room"),
    "play_music": ("plays music", "to hear a song", "music"),
    "pay_bill": ("pays a bill", "to settle an invoice", "invoice"),
    "find_route": ("finds a route", "to drive to the airport", "route"),
    "translate_text": ("translates a text", "to read a letter in Greek", "letter"),
    "order_food": ("orders food", "to have a pizza brought", "pizza"),
}
"""What a tool would be called -> what it does, what somebody wants who needs it, and in a word."""
CALL = re.compile(rf"({SLOT.pattern})\s*\(\s*[\"']?({SLOT.pattern})[\"']?\s*\)")


class Tools(Suite):
    """`difficulty` + 2 tools and two customers, of whom one is to be served.

    Misleading names of tools are those of other tools, and of customers what others want.
    """

    name: ClassVar[str] = "tools"
    title: ClassVar[str] = "which tool to call"
    instructions: ClassVar[str] = (
        "Choose the tool that does what a customer wants, and call it for that customer. Answer "
        "with the call alone, as in tool(customer)."
    )
    pools: ClassVar[Mapping[str, Pool]] = {
        "tool": Pool(
            ("amber", "birch", "cedar", "delta", "ember", "flint", "grove", "haven"),
            ("iris", "jade", "kelp", "lotus", "maple", "north", "ocean", "pearl"),
            tuple(FUNCTIONS),
        ),
        "customer": Pool(
            ("K12", "K25", "K31", "K48", "K53", "K67"),
            ("R14", "R29", "R36", "R41", "R58", "R62"),
            tuple(word for *_, word in FUNCTIONS.values()),
        ),
    }
    hardest: ClassVar[int] = 6

    def draw(self, rng: random.Random, difficulty: int) -> Question:
        """Draw tools, and what two customers want."""
        count = difficulty + 2
        tools = rng.sample(list(FUNCTIONS), count)
        wanted = rng.sample(range(count), 2)
        customers = slot(count), slot(count + 1)
        lines = [f"- {slot(number)} {FUNCTIONS[tool][0]}." for number, tool in enumerate(tools)]
        wishes = [
            f"Customer {customer} wants {FUNCTIONS[tools[number]][1]}."
            for customer, number in zip(customers, wanted, strict=True)
        ]
        asked = rng.randrange(2)
        text = "\n".join(["Tools:", *lines, *wishes, f"Serve customer {customers[asked]}."])
        fitting = [frozenset({tool}) for tool in tools]
        fitting += [frozenset({FUNCTIONS[tools[number]][2]}) for number in wanted]
        target = f"{slot(wanted[asked])}({customers[asked]})"
        classes = ("tool",) * count + ("customer",) * 2
        return Question(text, target, classes, None, tuple(fitting))

    def read(self, text: str) -> str | None:
        """Return the one call of a text."""
        calls = {f"{match[1]}({match[2]})" for match in CALL.finditer(text)}
        return calls.pop() if len(calls) == 1 else None
