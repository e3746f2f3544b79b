"""What models with a symbol layer have in common, whatever their backbone is.

Shapes: B batch, S streams, L or T length, D model width, V vocabulary.
"""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from transformers.modeling_utils import PreTrainedModel
from transformers.utils import ModelOutput

from .checks import check_dimensions, check_labels
from .configuration_symbols import SymbolModelConfig
from .cpu import suit_cpu
from .logit_scale import LogitScale, token_loss
from .new_symbols import UNUSABLE, NewSymbols
from .relations import match_rows
from .saving import SavesCode
from .streams import Streams, SymbolEncoderOutput
from .symbol_layer import SymbolLayer

OUTSIDE_LOSS = (
    "no labels in training: a loss is computed outside of the model, as by a trainer's "
    "label_smoothing_factor. It would count the columns of symbols that a sample lacks, which hold "
    f"{UNUSABLE:g}. For label smoothing, set label_smoothing in the model's configuration; for a "
    "loss of your own, leave out the columns that model.usable_columns(stream_ids) lacks and set "
    "model.accepts_loss_kwargs = False"
)


class SymbolModel(SavesCode, PreTrainedModel):
    """A model with a symbol layer.

    Its base model has the attribute `symbols`, a [`SymbolLayer`], and the module `symbol_draws`, a
    [`SymbolDraws`] or None; where relations are taken, also `symbol_memory`, a [`SymbolMemory`],
    [`TextMemory`] or None; where new symbols may be written, `new_symbols`, a [`NewSymbols`] or
    None.

    Examples:
        >>> isinstance(model.base_model, SymbolModel), type(model.base_model.symbols).__name__
        (True, 'SymbolLayer')
    """

    config: SymbolModelConfig

    @property
    def symbol_layer(self) -> SymbolLayer:
        """What turns ids into vectors and hidden states into logits."""
        return self.base_model.symbols

    def post_init(self) -> None:
        """Initialises as the base class does; what the model computes on a CPU, it does faster."""
        super().post_init()
        suit_cpu(self)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Draws what a checkpoint did not bring: of the symbol layer, then as the base class."""
        if (reset := getattr(module, "reset", None)) is not None:  # ours know how they begin
            reset()
        elif isinstance(module, NewSymbols):
            self._init_weights(module.as_linear())
        else:
            super()._init_weights(module)

    def recomputes(self) -> bool:
        """Returns whether layers compute their activations a second time for the gradients."""
        return self.training and self.is_activation_checkpointing

    def resize_token_embeddings(self, *args: Any, **kwargs: Any) -> nn.Embedding:
        """Resizes as the base class does, for a model without symbols.

        Raises:
            NotImplementedError: there are symbols; `extend_symbols` adds others.
        """
        if self.config.symbol_classes:
            more = dict.fromkeys(self.config.symbol_classes, 20)
            way_out = self.config.encoding.no_extension or (
                f"add symbols with model.extend_symbols({more}) and the same call on the tokenizer"
            )
            raise NotImplementedError(
                f"resize_token_embeddings would move the symbols' ids; {way_out}"
            )
        embedding = super().resize_token_embeddings(*args, **kwargs)
        self.config.num_base_tokens = self.config.vocab_size = embedding.num_embeddings
        return embedding

    def extend_symbols(self, counts: dict[str, int]) -> None:
        """Add symbols at the end of the vocabulary: class name -> how many. No training is needed.

        Old ids never move. Call the tokenizer's method of the same name too.

        Raises:
            ValueError: this encoding has one trained vector per symbol, the class is unknown, or
                there are not as many random parts.
        """
        if reason := self.config.encoding.no_extension:
            raise ValueError(reason)
        self.config.extend_symbols(counts)
        if (draws := self.symbol_layer.draws) is not None:
            draws.extend()

    def redraw_symbols(self, seed: int) -> None:
        """Draw the random parts of a `dual_part` model's symbols anew, for inference.

        The same seed gives the same vectors; `config.symbol_seed` starts the first draw and keeps
        the last one. Training draws from it too, in every step.

        Raises:
            ValueError: this encoding has no random parts.
        """
        draws = self.symbol_layer.draws
        if draws is None or not draws.has_parts:
            raise ValueError(
                f"symbol_encoding {self.config.symbol_encoding!r} has no random parts to draw"
            )
        self.config.symbol_seed = seed
        draws.redraw()

    def complete_encoder_output(
        self,
        outputs: ModelOutput | tuple,
        stream_ids: torch.Tensor | None,
        input_ids: torch.Tensor | None,
        attention_mask: torch.Tensor | None,
    ) -> SymbolEncoderOutput:
        """Accept what other code makes of an encoder output, as long as the streams are known.

        Args:
            outputs: with one row for each input, or for each of its beams.
            stream_ids: of the inputs; `input_ids` and `attention_mask` likewise.

        Raises:
            ValueError: they are not.
        """
        if isinstance(outputs, (tuple, list)):  # as with `return_dict=False`: streams come last
            streams = outputs[-1] if isinstance(outputs[-1], Streams) else None
            outputs = SymbolEncoderOutput(outputs[0], streams=streams)  # type: ignore[arg-type]
        if getattr(outputs, "streams", None) is not None:
            return outputs
        hidden = outputs.last_hidden_state
        ids, mask, stream_ids = (
            match_rows(x, hidden.shape[0]) for x in (input_ids, attention_mask, stream_ids)
        )
        streams = self.symbol_layer.resume(ids, mask, stream_ids, hidden, self.training)
        if streams is None:
            raise ValueError(
                "encoder_outputs lack streams: pass the output of "
                "model.get_encoder() as it is, or stream_ids and input_ids beside it"
            )
        return SymbolEncoderOutput(
            last_hidden_state=hidden,
            hidden_states=getattr(outputs, "hidden_states", None),
            attentions=getattr(outputs, "attentions", None),
            **self.remember(hidden, streams).fields(),
        )

    def remember(self, hidden_BLD: torch.Tensor, streams: Streams) -> Streams:
        """Returns the streams with what the encoder found about each symbol, if asked for."""
        return self.symbol_layer.remember(hidden_BLD, streams)

    def settle_step(self) -> None:
        """Bring what changes once per optimiser step up to date with the steps so far."""
        scale = getattr(self, "logit_scale", None)
        if scale is not None:
            scale.advance(self.symbol_layer.steps.settle())
        self.symbol_layer.settle_step()

    def advance_step(self) -> None:
        """Count an optimiser step that is done; for training loops, right after `step()`.

        The step is that of AdaCos, of random parts and of random renamings. [`AlphaTrainer`] calls
        it. A plain PyTorch loop may leave it out, unless its optimiser holds other tensors than the
        model's parameters (DeepSpeed, the first FSDP). A step that is reported counts once.
        """
        self.symbol_layer.steps.advance()
        self.settle_step()

    def save_pretrained(self, *args: Any, **kwargs: Any) -> Any:
        """Saves as the base class does, with the state after the last optimiser step."""
        self.settle_step()
        return super().save_pretrained(*args, **kwargs)


class SymbolHead(SymbolModel):
    """A model whose output is a score for each id, and its loss.

    It has the module `logit_scale`, a [`LogitScale`]; None where a backbone brings its own head.

    Examples:
        >>> isinstance(model, SymbolHead), model.logit_scale.initial
        (True, 10.0)
    """

    logit_scale: LogitScale | None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Note the signature of `forward`, for which `generate` asks at each token."""
        super().__init_subclass__(**kwargs)
        if (forward := vars(cls).get("forward")) is not None:
            forward.__signature__ = inspect.signature(forward)

    def predict(
        self,
        hidden_BSTD: Any,
        streams: Streams,
        labels_BT: torch.Tensor | None = None,
        num_items: torch.Tensor | int | None = None,
        loss_of: Callable[..., Any] = token_loss,
    ) -> tuple[torch.Tensor, Any]:
        """Returns logits (B, T, V) and, with labels, the loss.

        Args:
            hidden_BSTD: of each stream; whatever `_logits` takes in a model that has its own.
            streams: over the sequence of which these are the hidden states.
            labels_BT: ids, -100 where no loss is wanted.
            num_items: labelled tokens of the whole optimiser step; the loss is summed and divided
                by it.
            loss_of: what is returned as the loss; it gets what `token_loss` does.

        Raises:
            ValueError: labels that no output can give, or `num_items` without labels where columns
                are unusable.
        """
        if labels_BT is None:
            if num_items is not None and self.config.answers_are_listed:
                raise ValueError(OUTSIDE_LOSS)
            return self._logits(hidden_BSTD, streams), None
        adapting = torch.is_grad_enabled() and self.training and self._adapts_scale()
        if adapting:
            self._start_step()
        logits = self._logits(hidden_BSTD, streams)
        labels = labels_BT.to(logits.device)
        if streams.written is not None:
            labels = streams.written.to(labels.device).labels(labels)
        usable = partial(self.usable_columns, streams.ids.to(logits.device))
        check_labels(labels, logits, usable, UNUSABLE)
        loss = loss_of(logits, labels, usable, self.config.label_smoothing, num_items)
        if adapting:
            self._observe(logits, labels, usable())
        return logits, loss

    def _logits(self, hidden_BSTD: Any, streams: Streams) -> torch.Tensor:
        """Returns logits (B, T, V) from the symbol layer; backbones may have heads of their own."""
        assert self.logit_scale is not None
        new_BTC = self._scores_of_new(hidden_BSTD)
        scores_BSTR = self.logit_scale(self.symbol_layer.scores(hidden_BSTD, streams))
        return self.symbol_layer.logits(scores_BSTR, streams, new_BTC)

    def _scores_of_new(self, hidden_BSTD: torch.Tensor) -> torch.Tensor | None:
        """Returns scores of a symbol that the text lacks, (B, T, C), if there may be such."""
        if not self.config.new_symbols:
            return None
        assert self.logit_scale is not None
        hidden_BTD, rows = hidden_BSTD[:, 0], self.base_model.new_symbols
        if self.config.normalize_features:
            hidden_BTD = F.normalize(hidden_BTD, dim=-1)
        return self.logit_scale(rows(hidden_BTD, self.config.normalize_embeddings))

    # Compilers would make a condition of the number of steps.
    @torch.compiler.disable
    def _start_step(self) -> None:
        assert self.logit_scale is not None
        self.symbol_layer.steps.watch()
        self.logit_scale.advance(self.symbol_layer.steps.settle())

    @torch.compiler.disable
    def _observe(self, logits: torch.Tensor, labels: torch.Tensor, usable: torch.Tensor) -> None:
        assert self.logit_scale is not None
        count = self.symbol_layer.steps.count
        self.logit_scale.observe(logits.detach(), labels, usable, count)

    def usable_columns(self, stream_ids: torch.Tensor) -> torch.Tensor:
        """Returns which logits a sample can use: (B, V), from its symbols (B, S).

        All, or, where `config.answers_are_listed`, the base tokens and the symbols of its input.
        """
        return self.symbol_layer.usable_columns(stream_ids)

    def _prepare_generation_config(
        self, generation_config: Any, *args: Any, **kwargs: Any
    ) -> tuple[Any, dict[str, Any]]:
        """Prepares settings of generation; a caller's limit of length replaces the model's.

        Else there would be two: Transformers warns of that, and prefers `max_new_tokens`, whoever
        has said it. Layers that recompute their activations in training keep no cache, nor does a
        decoder without layers.
        """
        if self.recomputes() or getattr(self.config, "decoder_layers", None) == 0:
            kwargs["use_cache"] = False
        callers = None if generation_config is self.generation_config else generation_config
        limits = {
            name
            for name in ("max_length", "max_new_tokens")
            if kwargs.get(name) is not None or getattr(callers, name, None) is not None
        }
        chosen, rest = super()._prepare_generation_config(generation_config, *args, **kwargs)
        if self.config.is_encoder_decoder:  # it would cut the input's mask as the answer is long
            chosen.prefill_chunk_size = None
        if len(limits) == 1:  # of two, Transformers makes what it always does
            (other,) = {"max_length", "max_new_tokens"} - limits
            setattr(chosen, other, None)
        return chosen, rest

    def _get_stopping_criteria(self, generation_config: Any, *args: Any, **kwargs: Any) -> Any:
        """Returns criteria as `GenerationMixin` does; refuses strings to stop at.

        Raises:
            ValueError: there are stop strings, and symbols, which no string stands for: what they
                are called differs from row to row.
        """
        if generation_config.stop_strings is not None and self.config.symbol_classes:
            raise ValueError(
                "stop_strings cannot be found in what a model with symbols generates: names are "
                "known for each row only. Stop at tokens: eos_token_id=[tokenizer.eos_token_id, "
                "tokenizer.convert_tokens_to_ids(...)]"
            )
        return super()._get_stopping_criteria(generation_config, *args, **kwargs)

    def _adapts_scale(self) -> bool:
        """Returns whether AdaCos is at work."""
        return self.logit_scale is not None and self.logit_scale.adaptive


class QuickOutput:
    """An output whose fields are set in little time; Transformers lists all of them for each."""

    def __setattr__(self, name: str, value: Any) -> None:
        if value is not None and name in type(self).__dataclass_fields__:  # type: ignore[attr-defined]
            self[name] = value  # type: ignore[index]  # and the attribute
        else:
            object.__setattr__(self, name, value)


def shift_right(labels_BT: torch.Tensor, config: SymbolModelConfig) -> torch.Tensor:
    """Returns labels behind the start token, as a decoder's input; -100 becomes padding."""
    check_dimensions(labels_BT, 2, "labels")
    assert config.decoder_start_token_id is not None and config.pad_token_id is not None
    shifted = F.pad(labels_BT[:, :-1], (1, 0), value=config.decoder_start_token_id)
    return shifted.masked_fill(shifted == -100, config.pad_token_id)
