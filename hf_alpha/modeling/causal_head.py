"""What decoders alone with a symbol layer have in common, whatever their backbone is.

A sample is one sequence: the problem as its tokenizer writes it, then the answer and an end token.

Shapes: B batch, T tokens at hand, M length of the text so far, S listed symbols.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.nn import functional as F
from transformers.cache_utils import Cache, DynamicCache
from transformers.generation import GenerationMixin
from transformers.modeling_outputs import CausalLMOutputWithPast

from .checks import IGNORE, can_look, check_by_token, check_dimensions
from .choices import refuse
from .label_scores import label_scores, temperature_of
from .logit_scale import token_loss
from .masks import full_mask, is_by_token, self_attention_part
from .new_symbols import TextSoFar
from .relations import MadeOnce
from .streams import Streams
from .symbol_model import OUTSIDE_LOSS, QuickOutput, SymbolHead
from .symbols import first_occurrence
from .token_reader import TokenReader

NO_LAST_STATE = (
    "scores of symbols are more than a product of the last states with the head's matrix, so a "
    "model with symbols has no last states that a loss could be computed from: take one of labels, "
    "or of logits. Of TRL's trainers, SFT, DPO, KTO, GRPO and RLOO do that, and distillation does "
    "not"
)
NEW_NAMES = (
    "rows have names in what is to be learned that nothing before it has: this model answers with "
    "names that it was told, and will never write them. Leave such rows out, or learn what the "
    "assistant says alone (assistant_only_loss) if others bring the names"
)


@dataclass
class CausalOutput(QuickOutput, CausalLMOutputWithPast):
    """What a decoder alone returns; without last states, which say too little by themselves."""

    @property
    def last_hidden_state(self) -> torch.Tensor:
        raise AttributeError(NO_LAST_STATE)


def next_tokens(
    ids_BT: torch.Tensor | None,
    labels_BT: torch.Tensor | None,
    kwargs: dict[str, Any],
    logits_to_keep: int = 0,
) -> torch.Tensor | None:
    """Returns the label of each position, (B, T): the token behind it; None without labels.

    Args:
        labels_BT: the same, -100 where no loss is wanted.
        kwargs: of `forward`; `shift_labels`, in place of labels, are taken out.
        logits_to_keep: how many of the last positions get logits; 0 for all.

    Raises:
        ValueError: there are no ids, labels of another shape, or of positions without logits.
    """
    check_dimensions(ids_BT, 2)
    assert ids_BT is not None
    # No parameter: Trainer would ask for whatever is called labels.
    next_BT = kwargs.pop("shift_labels", None)
    if next_BT is None and labels_BT is not None:
        check_by_token(*ids_BT.shape, labels=labels_BT)
        next_BT = F.pad(labels_BT[:, 1:], (0, 1), value=IGNORE)
    check_by_token(*ids_BT.shape, labels=next_BT)
    if next_BT is not None and logits_to_keep:
        raise ValueError("logits_to_keep beside labels: leave it out, a loss needs all logits")
    return next_BT


class CausalHead(SymbolHead, GenerationMixin):
    """A decoder alone: its streams, what follows each token, and generation.

    Attributes:
        num_slots: of the cache, that are the layers'.
        temperature: of the scores of labels, see `label_scores`.
    """

    num_slots: int
    temperature: float = 1.0

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets as PyTorch does; of TRL's `forward` it takes the temperature alone.

        What TRL's returns if `fused_lm_head` is set, a decoder's own does.
        """
        temperature = temperature_of(value) if name == "forward" else None
        if temperature is None:
            super().__setattr__(name, value)
        else:
            self.temperature = temperature

    def _loss_of(
        self, fused_lm_head: bool, ids_BT: torch.Tensor, next_BT: torch.Tensor | None
    ) -> Callable[..., Any]:
        """Returns what computes the loss: a number, or the scores of labels that TRL asks for.

        Warns of answers to learn that have names which nothing before them has, and cannot have.
        """
        if not fused_lm_head:
            return token_loss
        config = self.config
        bounded = config.needs_stream_ids and not config.new_symbols
        # Nothing is learned from what else trainers ask for: KTO puts answers behind other prompts.
        learns = self.training and torch.is_grad_enabled() and can_look(ids_BT)
        if bounded and learns and next_BT is not None:
            text = TextSoFar.of(ids_BT, None, None, 0, config.vocabulary).written()
            has_prompt_B1 = next_BT[:, :1] == IGNORE
            if bool((text.is_new(next_BT) & has_prompt_B1).any()):
                warnings.warn(NEW_NAMES, stacklevel=3)
        return partial(label_scores, temperature=self.temperature)

    def _with_cache(
        self, use_cache: bool | None, cache: Cache | None, learns: bool
    ) -> Cache | None:
        """Returns the cache to go on from, or a new one where one is to be used."""
        use_cache = self.config.use_cache if use_cache is None else use_cache
        if cache is not None or not use_cache or learns or self.recomputes():
            return cache
        return DynamicCache(config=self.config.get_text_config(decoder=True))

    def _open(
        self,
        ids_BT: torch.Tensor,
        mask: Any,
        stream_ids: torch.Tensor | None,
        cache: Cache | None,
        learns: bool,
        kept: MadeOnce | None,
    ) -> Streams:
        """Opens the symbols of the problems, or of texts so far, and what the model calls them.

        Args:
            ids_BT: without the tokens that the cache holds.
            mask: 1 for tokens, 0 for padding: (B, M); or as it is prepared for attention.
            stream_ids: the problems' symbols by first occurrence, -1 padded: (B, S).
            kept: of a generation.
        """
        if kept is not None and kept.goes_on and ids_BT.shape[1] == 1:
            prompt: tuple[Any, ...] = kept.once("prompt", tuple)
            reader = kept.once("reader", lambda: TokenReader.behind(*prompt) if prompt else None)
            if reader is not None and cache is not None:
                return reader(ids_BT, cache)
        from_trl = "temperature" in vars(self) and self.training and torch.is_grad_enabled()
        refuse(from_trl and not learns and self.config.needs_stream_ids, OUTSIDE_LOSS)
        unlisted = self.config.needs_stream_ids and stream_ids is None
        if unlisted and cache is not None and int(cache.get_seq_length()):
            raise ValueError(
                "stream_ids are missing: the model names symbols by the problem, which only the "
                "cache holds; pass those that the tokenizer made for it"
            )
        mask_BT = mask[:, -ids_BT.shape[1] :] if is_by_token(mask) else None
        symbols = self.symbol_layer
        streams = symbols.open(ids_BT, mask_BT, stream_ids, self.training and learns, kept)
        own_cache = self_attention_part(cache)
        if symbols.encoding.opens_streams and own_cache is not None:
            self._check_streams(own_cache, streams.ids)
        return symbols.go_on(streams, ids_BT, full_mask(mask), own_cache, self.num_slots)

    def _check_streams(self, cache: Cache, stream_ids_BS: torch.Tensor) -> None:
        """Raise a ValueError for a cache that does not hold a stream for each name of the texts."""
        keys = getattr(cache.layers[0], "keys", None) if cache.layers else None
        number = stream_ids_BS.numel()
        if keys is None or not keys.numel() or self._number_of_streams(keys) == number:
            return
        raise ValueError(
            f"past_key_values holds {self._number_of_streams(keys)} streams, and the texts have "
            f"{number}, one for each of their names: of a name that is new it has none. Leave "
            "past_key_values out, so that the text is read anew, or list all names from the start "
            "on (stream_ids)"
        )

    def _number_of_streams(self, keys: torch.Tensor) -> int:
        """Returns how many streams of all samples a layer's keys are of."""
        return keys.shape[0]

    def generate(self, inputs: torch.Tensor | None = None, *args: Any, **kwargs: Any) -> Any:
        """Generates as Transformers does.

        The symbols of a sample are those of its prompt, and with `config.new_symbols` others of the
        same classes, by the order of their ids.
        """
        prompt = kwargs.get("input_ids") if inputs is None else inputs
        if self.config.needs_stream_ids and prompt is not None:
            if kwargs.get("stream_ids") is None:
                symbol = self.config.vocabulary.is_symbol(prompt)
                if (mask := kwargs.get("attention_mask")) is not None:
                    symbol = symbol & (mask > 0)
                kwargs["stream_ids"] = first_occurrence(prompt, symbol)
            kwargs["kept"] = MadeOnce(of_generation=True)
        return super().generate(inputs, *args, **kwargs)
