"""Words that a model of Transformers has for names."""

from collections.abc import Iterable
from typing import Any

LETTERS = tuple("bcefghjklnpqruvwxyz")
"""Words for names. The others are words of English, or stand behind an apostrophe (isn't, I'm)."""


def host_words(tokenizer: Any, words: Iterable[str] = LETTERS) -> tuple[str, ...]:
    """Return the words for names that are one token of a tokenizer.

    There may be none, where each word is several tokens.

    Raises:
        ValueError: the tokenizer cannot write such words.
    """
    words = tuple(word for word in words if count_tokens(tokenizer, word) == 1)
    if not words and not count_tokens(tokenizer, "v1"):
        raise ValueError(
            "the tokenizer knows none of the words for names (b, c, ..., v1, v2, ...): say which "
            "ones it writes, words=['1', '2']"
        )
    return words


def count_tokens(tokenizer: Any, word: str) -> int:
    """Return how many tokens a word is; 0 if it comes back as another one."""
    ids = tokenizer(word, add_special_tokens=False)["input_ids"]
    written = tokenizer.decode(ids).replace(" ", "")
    return 0 if tokenizer.unk_token_id in ids or written != word else len(ids)
