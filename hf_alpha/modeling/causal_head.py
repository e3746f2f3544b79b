"""What decoders alone with a symbol layer have in common, whatever their backbone is.

A sample is one sequence: the problem as its tokenizer writes it, then the answer and an end token.

Shapes: B batch, T tokens at hand, M length of the text so far, S listed symbols.
"""

from typing import Any

import torch
from torch.nn import functional as F
from transformers.cache_utils import Cache
from transformers.generation import GenerationMixin

from .checks import IGNORE, check_label_rows
from .masks import full_mask, is_by_token, own_part
from .streams import Streams
from .symbol_model import SymbolHead
from .symbols import first_occurrence


class CausalHead(SymbolHead, GenerationMixin):
    """A decoder alone: its streams, what follows each token, and generation."""

    @property
    def first_free_slot(self) -> int:
        """The first slot of the cache that is not the layers'."""
        raise NotImplementedError

    def _next_tokens(
        self,
        ids_BT: torch.Tensor | None,
        labels_BT: torch.Tensor | None,
        kwargs: dict[str, Any],
    ) -> torch.Tensor | None:
        """Returns the label of each position, (B, T): the token behind it; None without labels.

        Raises:
            ValueError: there are no ids, or labels of another shape.
        """
        if ids_BT is None:
            raise ValueError("input_ids are missing")
        # No parameter: Trainer would ask for whatever is called labels.
        next_BT = kwargs.pop("shift_labels", None)
        if next_BT is None and labels_BT is not None:
            check_label_rows(labels_BT, *ids_BT.shape)
            next_BT = F.pad(labels_BT[:, 1:], (0, 1), value=IGNORE)
        check_label_rows(next_BT, *ids_BT.shape)
        return next_BT

    def _open(
        self,
        ids_BT: torch.Tensor,
        mask: Any,
        stream_ids: torch.Tensor | None,
        cache: Cache | None,
        learns: bool,
    ) -> Streams:
        """Opens the symbols of the problems, or of texts so far, and what the model calls them.

        Args:
            ids_BT: without the tokens that the cache holds.
            mask: 1 for tokens, 0 for padding: (B, M); or as it is prepared for attention.
            stream_ids: the problems' symbols by first occurrence, -1 padded: (B, S).
            cache: of the decoder.
            learns: whether there are labels.

        Raises:
            ValueError: the problems' symbols are needed, and only the cache holds the problems.
        """
        if self.config.needs_stream_ids and stream_ids is None and _length(cache):
            raise ValueError(
                "stream_ids are missing: the model names symbols by the problem, which only the "
                "cache holds; pass those that the tokenizer made for it"
            )
        mask_BT = mask[:, -ids_BT.shape[1] :] if is_by_token(mask) else None
        symbols = self.symbol_layer
        streams = symbols.open(ids_BT, mask_BT, stream_ids, self.training and learns)
        own_cache = own_part(cache)
        return symbols.go_on(streams, ids_BT, full_mask(mask), own_cache, self.first_free_slot)

    def generate(self, inputs: torch.Tensor | None = None, *args: Any, **kwargs: Any) -> Any:
        """Generates as Transformers does.

        The symbols of a sample are those of its prompt, and with `config.new_symbols` others of the
        same classes, by the order of their ids.
        """
        prompt = kwargs.get("input_ids") if inputs is None else inputs
        if self.config.needs_stream_ids and kwargs.get("stream_ids") is None and prompt is not None:
            symbol, mask = self.config.vocabulary.is_symbol(prompt), kwargs.get("attention_mask")
            symbol = symbol if mask is None else symbol & (mask > 0)
            kwargs["stream_ids"] = first_occurrence(prompt, symbol)
        return super().generate(inputs, *args, **kwargs)


def _length(cache: Cache | None) -> int:
    return 0 if cache is None else int(cache.get_seq_length())


__all__ = ["CausalHead"]
