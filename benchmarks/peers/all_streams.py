"""The symbol-invariant model as the papers' public code runs it: every stream, for every sample.

Each symbol of the vocabulary has a stream, whether the input holds it or not; streams are folded
into the batch throughout, aggregated keys and values copied once per stream; in generation each
beam has its own copy of the encoder's output and of its keys and values, as in Transformers' own
encoder-decoders. Otherwise plain and vectorised: scaled dot product attention, the ordinary caches,
the same `generate`, the same loss. Streams of symbols that an input lacks weigh nothing in the
means, so that the results are those of the package's model, up to the order of sums.

Shapes: B batch (beams included), S streams, N = B * S, L or T length, M keys, D model width, H
heads, K head width, V vocabulary, R rows of the embedding.
"""

from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import nn
from transformers.cache_utils import EncoderDecoderCache
from transformers.generation import GenerationMixin
from transformers.modeling_outputs import Seq2SeqLMOutput

from hf_alpha import AlphaConfig, AlphaForConditionalGeneration
from hf_alpha.modeling.cpu import BlockLinear
from hf_alpha.modeling.logit_scale import token_loss
from hf_alpha.modeling.new_symbols import UNUSABLE
from hf_alpha.modeling.positions import rotary, rotate, token_positions, tree
from hf_alpha.modeling.streams import SymbolEncoderOutput

Model = TypeVar("Model", bound=nn.Module)
CosSin = tuple[torch.Tensor, torch.Tensor] | None


class Encoder:
    """What `generate` expects of an encoder."""

    main_input_name = "input_ids"

    def __init__(self, forward: Any):
        self.forward = forward

    def __call__(self, *args: Any, **kwargs: Any) -> SymbolEncoderOutput:
        return self.forward(*args, **kwargs)


def without_onednn(model: Model) -> Model:
    """Make all linear layers PyTorch's own; returns the same model."""
    for module in model.modules():
        if isinstance(module, BlockLinear):
            module.__class__ = nn.Linear
    return model


class AllStreams(AlphaForConditionalGeneration):
    """The paper's default model (EP DP EA DA CP, one class of symbols), all streams folded."""

    def __init__(self, config: AlphaConfig):
        super().__init__(config)
        assert config.symbol_encoding == "streams" and len(config.symbol_classes) == 1
        assert config.encoder_position == "tree" and config.decoder_position == "rope"
        self.head_dim = config.d_model // config.encoder_attention_heads
        without_onednn(self)

    def get_encoder(self, *args: Any, **kwargs: Any) -> Any:
        return Encoder(self.encode)

    # What the package does better is switched off.
    _expand_inputs_for_generation = GenerationMixin._expand_inputs_for_generation
    _prepare_cache_for_generation = GenerationMixin._prepare_cache_for_generation

    def _reorder_cache(self, cache: EncoderDecoderCache, beam_idx: torch.Tensor) -> Any:
        cache.reorder_cache(beam_idx)
        return cache

    # -- embedding and views ----------------------------------------------------------------------

    def embed(self, ids_BL: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, S, L, D) embeddings, and where each stream's own symbol is: (B, S, L)."""
        base = self.config.num_base_tokens
        symbols = torch.arange(base, self.config.vocab_size, device=ids_BL.device)
        own_BSL = ids_BL[:, None] == symbols[:, None]
        rows_BSL = torch.where(own_BSL, base, ids_BL.clamp(max=base + 1)[:, None])
        rows_BSL = torch.where((ids_BL >= base)[:, None] & ~own_BSL, base + 1, rows_BSL)
        return F.embedding(rows_BSL, self.model.embedding_table()), own_BSL

    def view(
        self, hidden_NLD: torch.Tensor, own_BSL: torch.Tensor, weights_BS: torch.Tensor
    ) -> torch.Tensor:
        """Mean over the input's symbols, at a symbol its own stream: (B, L, D)."""
        hidden_BSLD = hidden_NLD.unflatten(0, own_BSL.shape[:2])
        mean = torch.einsum("bs,bsld->bld", weights_BS, hidden_BSLD)
        own = torch.einsum("bsl,bsld->bld", own_BSL.to(hidden_NLD.dtype), hidden_BSLD)
        return torch.where(own_BSL.any(1)[..., None], own, mean)

    # -- blocks -----------------------------------------------------------------------------------

    def heads(self, x: torch.Tensor, rope: CosSin = None) -> torch.Tensor:
        """(N, L, D) -> (N, H, L, K), turned to their positions."""
        x = x.unflatten(-1, (-1, self.head_dim))
        return rotate(x[:, None], rope)[:, 0].transpose(1, 2)

    def attend(
        self, block: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: Any
    ) -> torch.Tensor:
        out = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return block.out_proj(out.transpose(1, 2).flatten(-2))

    def add_and_norm(self, layer: Any, name: str, x: torch.Tensor, out: torch.Tensor) -> Any:
        return getattr(layer, f"{name}_layer_norm")(x + layer.dropout(out))

    def feed_forward(self, layer: Any, x: torch.Tensor) -> torch.Tensor:
        return self.add_and_norm(layer, "final", x, layer.fc2(layer.activation(layer.fc1(x))))

    def keys_values(
        self, block: Any, source: torch.Tensor, rope: CosSin, slot: int, cache: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values (rows of `source`, H, M, K), through a cache (B, ..., M, K)."""
        key, value = self.heads(block.k_proj(source), rope), self.heads(block.v_proj(source))
        if cache is None:
            return key, value
        rows, batch = len(source), self.batch
        folded = (x.reshape(batch, -1, *x.shape[2:]) for x in (key, value))
        key, value = cache.update(*folded, slot)
        shape = (rows, -1, *key.shape[2:])
        return key.reshape(shape), value.reshape(shape)

    def aggregated(
        self, layer: Any, x: torch.Tensor, view: torch.Tensor, mask: Any, rope: CosSin,
        query_rope: CosSin, slot: int = 0, cache: Any = None,
    ) -> torch.Tensor:  # fmt: skip
        """Attention to one view, whose keys and values are copied for each stream."""
        block = layer.aggregated_attn
        key, value = self.keys_values(block, view, rope, slot, cache)
        copies = len(x) // len(key)
        key, value = key.repeat_interleave(copies, 0), value.repeat_interleave(copies, 0)
        out = self.attend(block, self.heads(block.q_proj(x), query_rope), key, value, mask)
        return self.add_and_norm(layer, "aggregated_attn", x, out)

    # -- encoder and decoder ----------------------------------------------------------------------

    def encode(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, tree_paths: torch.Tensor,
        **kwargs: Any,
    ) -> SymbolEncoderOutput:  # fmt: skip
        """Returns hidden states (B, S, L, D), as `stream_ids` the streams' weights (B, S), and as
        `own_streams` which of their symbols the input holds: (B, S)."""
        hidden, own_BSL = self.embed(input_ids)
        own_BSL = own_BSL & (attention_mask > 0)[:, None]
        present = own_BSL.any(-1)
        counted = present | ~present.any(-1, keepdim=True)  # no symbol: all streams are alike
        weights = counted.to(hidden.dtype) / counted.sum(-1, keepdim=True)
        hidden = hidden + tree(tree_paths, self.config.d_model, hidden.dtype)[:, None]
        x = self.model.encoder.dropout(hidden).flatten(0, 1)
        mask = attention_mask.bool()[:, None, None].repeat_interleave(own_BSL.shape[1], 0)
        for layer in self.model.encoder.layers:
            block = layer.self_attn
            key, value = self.keys_values(block, x, None, 0, None)
            out = self.attend(block, self.heads(block.q_proj(x)), key, value, mask)
            x = self.add_and_norm(layer, "self_attn", x, out)
            x = self.aggregated(layer, x, self.view(x, own_BSL, weights), mask, None, None)
            x = self.feed_forward(layer, x)
        hidden = x.unflatten(0, own_BSL.shape[:2])
        return SymbolEncoderOutput(hidden, stream_ids=weights, own_streams=present)

    def decode(
        self, ids_BT: torch.Tensor, encoded: SymbolEncoderOutput, mask_BL: torch.Tensor,
        cache: EncoderDecoderCache | None,
    ) -> torch.Tensor:  # fmt: skip
        """Hidden states (N, T, D)."""
        weights, source = encoded.stream_ids, encoded.last_hidden_state.flatten(0, 1)
        hidden, own_BST = self.embed(ids_BT)
        self.batch, streams, t = own_BST.shape
        past = cache.get_seq_length() if cache is not None else 0
        rope = self.rope(past + torch.arange(t, device=ids_BT.device)[None])
        source_rope = self.rope(token_positions(mask_BL, ids_BT).repeat_interleave(streams, 0))
        mask = torch.ones(t, past + t, dtype=torch.bool, device=ids_BT.device).tril(past)
        mask = None if t == 1 else mask
        source_mask = mask_BL.bool()[:, None, None].repeat_interleave(streams, 0)
        own_cache = cache.self_attention_cache if cache is not None else None
        x = self.model.decoder.dropout(hidden).flatten(0, 1)
        for i, layer in enumerate(self.model.decoder.layers):
            block = layer.self_attn
            key, value = self.keys_values(block, x, rope, 2 * i, own_cache)
            out = self.attend(block, self.heads(block.q_proj(x), rope), key, value, mask)
            x = self.add_and_norm(layer, "self_attn", x, out)
            view = self.view(x, own_BST, weights)
            x = self.aggregated(layer, x, view, mask, rope, rope, 2 * i + 1, own_cache)
            key, value = self.source_keys(layer.encoder_attn, source, source_rope, 2 * i, cache)
            query = self.heads(layer.encoder_attn.q_proj(x), rope)
            out = self.attend(layer.encoder_attn, query, key, value, source_mask)
            x = self.add_and_norm(layer, "encoder_attn", x, out)
            x = self.feed_forward(layer, x)
        return x

    def rope(self, positions: torch.Tensor) -> CosSin:
        return rotary(positions, self.head_dim, self.config.rope_theta)

    def source_keys(
        self, block: Any, source: torch.Tensor, rope: CosSin, slot: int, cache: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The encoder's keys and values, computed in the first step."""
        if cache is not None and cache.is_updated.get(slot):
            layer = cache.cross_attention_cache.layers[slot]
            shape = (len(source), -1, *layer.keys.shape[2:])
            return layer.keys.reshape(shape), layer.values.reshape(shape)
        if cache is not None:
            cache.is_updated[slot] = True
        cross = cache.cross_attention_cache if cache is not None else None
        return self.keys_values(block, source, rope, slot, cross)

    # -- the model --------------------------------------------------------------------------------

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        tree_paths: torch.Tensor | None = None,
        decoder_input_ids: torch.Tensor | None = None,
        encoder_outputs: SymbolEncoderOutput | None = None,
        past_key_values: EncoderDecoderCache | None = None,
        labels: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> Seq2SeqLMOutput:
        if labels is not None:
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        if encoder_outputs is None:
            encoder_outputs = self.encode(input_ids, attention_mask, tree_paths)
        if self.training:
            self.settle_step()
        x = self.decode(decoder_input_ids, encoder_outputs, attention_mask, past_key_values)
        weights, present = encoder_outputs.stream_ids, encoder_outputs.own_streams
        usable = F.pad(present, (self.config.num_base_tokens, 0), value=True)
        logits = self.logits(x.unflatten(0, weights.shape), weights)
        logits = logits.masked_fill(~usable[:, None], UNUSABLE)
        loss = None
        if labels is not None:
            loss = token_loss(logits, labels, usable)
            if self.training:
                self.logit_scale.observe(
                    logits.detach(), labels, usable, self.symbol_layer.steps.count
                )
        return Seq2SeqLMOutput(loss=loss, logits=logits, past_key_values=past_key_values)

    def logits(self, x_BSTD: torch.Tensor, weights_BS: torch.Tensor) -> torch.Tensor:
        """(B, T, V)."""
        base = self.config.num_base_tokens
        features = F.normalize(x_BSTD, dim=-1) if self.config.normalize_features else x_BSTD
        scores = self.logit_scale(F.linear(features, self.model.embedding_table()))
        common = torch.einsum("bs,bstr->btr", weights_BS, scores[..., :base])
        return torch.cat((common, scores[..., base].transpose(1, 2)), -1)
