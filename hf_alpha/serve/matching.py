"""Holds answers to a form while they are written, by llguidance."""

import re
import threading
from collections.abc import Collection
from typing import Any, cast

import torch

from hf_alpha.serve.constraints import FIRST, JOINED, WHAT, Form, TokenBytes
from hf_alpha.wings import optional

with optional():
    from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

_OWN = re.compile(f"[{chr(FIRST)}-{JOINED}]")
_BITS = torch.arange(8, dtype=torch.uint8)


class Matcher:
    """Says what may come next in one answer."""

    def __init__(self, matcher: LLMatcher):
        self._matcher = matcher

    def again(self) -> "Matcher":
        """Return one for another answer to the same request."""
        return Matcher(self._matcher.deep_copy())

    def forbid(self, scores: torch.Tensor) -> bool:
        """Make the scores (V,) of tokens that may not come next impossible.

        Returns:
            Whether any is left.
        """
        mask = torch.frombuffer(bytearray(self._matcher.compute_bitmask()), dtype=torch.uint8)
        allowed = (mask[:, None] >> _BITS & 1).flatten()[: len(scores)].bool().to(scores.device)
        scores[: len(allowed)].masked_fill_(~allowed, float("-inf"))
        scores[len(allowed) :] = float("-inf")
        return not self._matcher.is_error() and bool(scores.max().isfinite())

    def take(self, token: int) -> bool:
        """Take the next token; return whether the answer is whole and nothing can follow."""
        self._matcher.consume_token(token)
        return self._matcher.is_stopped() and not self._matcher.is_error()


class Vocabulary:
    """A tokenizer as llguidance takes it: what its tokens write, and how it splits a text.

    Args:
        ends: tokens that end an answer.

    Attributes:
        table: for matchers.
    """

    def __init__(self, tokenizer: Any, ends: Collection[int]):
        self._spelling = TokenBytes(tokenizer)
        written = self._spelling.tokens
        own = [i for i, w in enumerate(written) if w and w[0] == 0xF4]
        names = tokenizer.convert_ids_to_tokens(own)
        self._own = {self._spelling.text([i]): name for i, name in zip(own, names, strict=True)}
        self.size, self.table = len(written), cast(LLTokenizer, None)
        # 0xFF begins what is no text; a model without an end gets one that it cannot write
        silent = [b"\xff<%d>" % index for index in range(len(written) + 1)]
        self.tokens = [*(w or silent[i] for i, w in enumerate(written)), silent[-1]]
        for index in ends:
            self.tokens[index] = silent[index]
        self.special_token_ids = [i for i, w in enumerate(self.tokens) if w[0] == 0xFF]
        self.bos_token_id, self.eos_token_id = None, min(ends, default=len(written))
        every = sorted(ends) or [len(written)]
        self.table = LLTokenizer(TokenizerWrapper(self), eos_token=every)

    def __call__(self, text: bytes) -> list[int]:
        """Split a text that has to come next, as the tokenizer does where that writes the same."""
        if self.table is None:
            return []
        wanted = text.decode()
        beneath = self._spelling.tokenizer.backend_tokenizer
        given = _OWN.sub(lambda match: self._own[match[0]], wanted)
        ids = beneath.encode(given, add_special_tokens=False).ids
        return ids if self._spelling.text(ids) == wanted else self.table.greedy_tokenize(wanted)


class Matchers:
    """Makes matchers.

    Args:
        ends: tokens that end an answer.
    """

    def __init__(self, tokenizer: Any, ends: Collection[int]):
        self._tokenizer, self._ends, self._lock = tokenizer, ends, threading.Lock()
        self._vocabulary: Vocabulary | None = None

    def matcher(self, form: Form) -> Matcher:
        """Return what holds an answer to a form.

        Raises:
            ValueError: there is none.
        """
        with self._lock:  # symbols may have been added
            if self._vocabulary is None or self._vocabulary.size != len(self._tokenizer):
                self._vocabulary = Vocabulary(self._tokenizer, self._ends)
            table = self._vocabulary.table
        matcher = LLMatcher(table, LLMatcher.grammar_from_lark(form.grammar), log_level=0)
        if matcher.is_error():
            raise ValueError(f"{WHAT}: {matcher.get_error()}")
        return Matcher(matcher)
