"""All phrases of a lexicon in a text by a trie of dictionaries, the way it is mostly written."""

import re
from collections.abc import Iterable
from typing import Any

WORD = re.compile(r"\w+|[^\w\s]")
END = 0  # no word is a number


class TokenTrie:
    """Words lead from node to node; the labels of a phrase are in its last one."""

    def __init__(self, entries: Iterable[tuple[str, str]]) -> None:
        self.root: dict[Any, Any] = {}
        for phrase, label in entries:
            node = self.root
            for word in WORD.findall(phrase):
                node = node.setdefault(word.lower(), {})
            node.setdefault(END, []).append(label)

    def spans(self, text: str) -> list[tuple[int, int, str]]:
        """First character, the one after the last, and label of each phrase."""
        places = [match.span() for match in WORD.finditer(text)]
        words = [text[start:stop].lower() for start, stop in places]
        spans_found = []
        for first, (start, _) in enumerate(places):
            node = self.root
            for at in range(first, len(words)):
                if (node := node.get(words[at])) is None:
                    break
                spans_found += [(start, places[at][1], label) for label in node.get(END, ())]
        return spans_found
