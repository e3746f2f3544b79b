"""Words of texts that a tokenizer does not know."""

from collections.abc import Sequence
from typing import Any

from hf_alpha.modeling.text_pieces import WORD

_LISTED = 3
"""Words that a note shows."""
TOLD = set[str]()
"""Words of training data that were told already, which no evaluation in the run tells again."""


def unknown_id(tokenizer: Any) -> int | None:
    """Return the id of what a tokenizer does not know; None if it knows every text.

    GPT-2 and its like give their end token as the unknown one too, and never write it for a word.
    """
    marks = (tokenizer.eos_token_id, tokenizer.bos_token_id, tokenizer.pad_token_id)
    unknown = tokenizer.unk_token_id
    return None if unknown in marks else unknown


def unknown_words(tokenizer: Any, texts: Sequence[str]) -> list[list[str]]:
    """Return the words of each text that have unknown tokens, in order, each as often as it occurs.

    Names are none of them, nor what a `MarkedText` says is one. Whitespace is named where no other
    word is unknown.

    Args:
        tokenizer: of the model; one that is not fast refuses what it does not know.
        texts: that it can encode.
    """
    unknown = unknown_id(tokenizer)
    if unknown is None or not tokenizer.is_fast or not texts:
        return [[] for _ in texts]
    encoding = tokenizer(list(texts), add_special_tokens=False, return_offsets_mapping=True)
    rows = []
    for text, ids, spans in zip(
        texts, encoding["input_ids"], encoding["offset_mapping"], strict=True
    ):
        places = {i for index, span in zip(ids, spans, strict=True) if index == unknown
                  for i in range(*span)}  # fmt: skip
        places.difference_update(*(range(s.start, s.stop) for s in getattr(text, "spans", ())))
        words = [
            match.group()
            for match in (WORD.finditer(text) if places else ())
            if not places.isdisjoint(range(*match.span()))
        ]
        rows.append([word for word in words if not word.isspace()] or words)
    return rows


def listed(words: Sequence[str]) -> str:
    """Write the first words of a list, each once."""
    distinct = list(dict.fromkeys(words))
    more = f" and {len(distinct) - _LISTED} more" if len(distinct) > _LISTED else ""
    return ", ".join(map(repr, distinct[:_LISTED])) + more
