"""Tiny models of Transformers with random weights: what a symbol layer can be put around.

Each is built from a configuration. What such a model begins with as zeros or ones (norms, biases,
`final_logits_bias`) is random too, so that no test passes because a part does nothing.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BlenderbotConfig,
    BlenderbotForConditionalGeneration,
    EncoderDecoderConfig,
    EncoderDecoderModel,
    FSMTConfig,
    FSMTForConditionalGeneration,
    GPT2Config,
    GPT2LMHeadModel,
    LEDConfig,
    LEDForConditionalGeneration,
    LlamaConfig,
    LlamaForCausalLM,
    M2M100Config,
    M2M100ForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    MBartConfig,
    MBartForConditionalGeneration,
    PegasusConfig,
    PegasusForConditionalGeneration,
    PreTrainedConfig,
    PreTrainedModel,
    SwitchTransformersConfig,
    SwitchTransformersForConditionalGeneration,
    T5Config,
    T5ForConditionalGeneration,
    T5GemmaConfig,
    T5GemmaForConditionalGeneration,
)

VOCABULARY = 40  # ids 3 to 38 are ordinary tokens everywhere
T5_SIZES = {
    "vocab_size": VOCABULARY,
    "d_model": 16,
    "d_kv": 8,
    "d_ff": 24,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "num_heads": 2,
    "decoder_start_token_id": 0,
}
BART_SIZES = {
    "vocab_size": VOCABULARY,
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "encoder_layerdrop": 0.0,
    "decoder_layerdrop": 0.0,
    "activation_dropout": 0.0,
}
BERT_SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 64,
}
GEMMA_SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,  # the first with a sliding window, the second with full attention
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "query_pre_attn_scalar": 8,
    "sliding_window": 4,
    "attn_logit_softcapping": 5.0,
    "final_logit_softcapping": 3.0,
}

Make = Callable[..., PreTrainedModel]


def t5_like(model: type[PreTrainedModel], config: type[PreTrainedConfig], **fixed: Any) -> Make:
    def make(dropout: float = 0.0, **settings: Any) -> PreTrainedModel:
        return model(config(**{**T5_SIZES, "dropout_rate": dropout, **fixed, **settings}))

    return make


def bart_like(model: type[PreTrainedModel], config: type[PreTrainedConfig], **fixed: Any) -> Make:
    def make(dropout: float = 0.0, **settings: Any) -> PreTrainedModel:
        rates = {"dropout": dropout, "attention_dropout": dropout}
        return model(config(**{**BART_SIZES, **rates, **fixed, **settings}))

    return make


def untied(make_tied: Make) -> Make:
    """A T5 with a head of its own, as `from_pretrained` leaves T5 v1.1 and its heirs.

    Every T5Config says that the head is tied. The checkpoint has two different tables, so
    loading leaves them apart.
    """

    def make(**settings: Any) -> PreTrainedModel:
        host = make_tied(**settings)
        host.lm_head.weight = nn.Parameter(torch.randn_like(host.lm_head.weight))
        host.all_tied_weights_keys.pop("lm_head.weight")
        return host

    return make


def t5gemma(dropout: float = 0.0, **settings: Any) -> PreTrainedModel:
    top = {key: settings.pop(key) for key in ("tie_word_embeddings",) if key in settings}
    part = {**GEMMA_SIZES, **settings}
    config = T5GemmaConfig(
        encoder=part,
        decoder=part,
        vocab_size=part["vocab_size"],
        dropout_rate=dropout,
        attention_dropout=dropout,
        decoder_start_token_id=2,
        **top,
    )
    return T5GemmaForConditionalGeneration(config)


def bert2bert(dropout: float = 0.0, **settings: Any) -> PreTrainedModel:
    rates = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    part = {**BERT_SIZES, **rates, **settings}
    config = EncoderDecoderConfig.from_encoder_decoder_configs(
        BertConfig(**part),
        BertConfig(**part, is_decoder=True, add_cross_attention=True),
        pad_token_id=0,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    return EncoderDecoderModel(config)


GATED = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
POSITIONS = {"max_position_embeddings": 64}
# Of a Llama that learns in a minute to call tools.
SIZES_OF_CHATS = {
    "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 128,
    "max_position_embeddings": 1024,
}  # fmt: skip
MARIAN_IDS = {
    "pad_token_id": VOCABULARY - 1,
    "decoder_start_token_id": VOCABULARY - 1,
    "eos_token_id": 0,
    "forced_eos_token_id": 0,
}

HOSTS: dict[str, Make] = {
    "t5": t5_like(T5ForConditionalGeneration, T5Config),
    "t5_v1_1": untied(t5_like(T5ForConditionalGeneration, T5Config, **GATED)),
    # ByT5 has three encoder layers for each decoder layer.
    "byt5": untied(t5_like(T5ForConditionalGeneration, T5Config, **GATED, num_layers=3)),
    "switch_transformers": t5_like(
        SwitchTransformersForConditionalGeneration,
        SwitchTransformersConfig,
        num_experts=2,
        num_sparse_encoder_layers=1,
        num_sparse_decoder_layers=1,
        expert_capacity=64,
        router_jitter_noise=0.0,
    ),
    "bart": bart_like(BartForConditionalGeneration, BartConfig, **POSITIONS),
    # Five tables: one for both sides that is not used, one for each side, and the head.
    "bart_untied": bart_like(
        BartForConditionalGeneration, BartConfig, **POSITIONS, tie_word_embeddings=False
    ),
    "mbart": bart_like(MBartForConditionalGeneration, MBartConfig, **POSITIONS),
    "marian": bart_like(MarianMTModel, MarianConfig, **POSITIONS, **MARIAN_IDS),
    "pegasus": bart_like(PegasusForConditionalGeneration, PegasusConfig, **POSITIONS),
    "blenderbot": bart_like(BlenderbotForConditionalGeneration, BlenderbotConfig, **POSITIONS),
    "m2m_100": bart_like(M2M100ForConditionalGeneration, M2M100Config, **POSITIONS),
    "led": bart_like(
        LEDForConditionalGeneration,
        LEDConfig,
        attention_window=4,
        max_encoder_position_embeddings=64,
        max_decoder_position_embeddings=64,
    ),
    "t5gemma": t5gemma,  # a table of the encoder and one of the decoder, for one vocabulary
    "bert2bert": bert2bert,
}


def gpt2(dropout: float = 0.0, **settings: Any) -> PreTrainedModel:
    rates = {"resid_pdrop": dropout, "embd_pdrop": dropout, "attn_pdrop": dropout}
    sizes = {"vocab_size": VOCABULARY, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64}
    return GPT2LMHeadModel(GPT2Config(**{**sizes, **rates, **IDS, **settings}))


def llama(dropout: float = 0.0, **settings: Any) -> PreTrainedModel:
    sizes = {**BERT_SIZES, "num_key_value_heads": 1, "attention_dropout": dropout}
    return LlamaForCausalLM(LlamaConfig(**{**sizes, **IDS, **settings}))


IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
DECODERS: dict[str, Make] = {"gpt2": gpt2, "llama": llama}  # tied and learned; untied and rotary


def fsmt(dropout: float = 0.0, **settings: Any) -> PreTrainedModel:
    rates = {"dropout": dropout, "attention_dropout": dropout}
    sizes = {key: value for key, value in BART_SIZES.items() if key != "vocab_size"}
    tables = {"src_vocab_size": VOCABULARY, "tgt_vocab_size": VOCABULARY}
    config = FSMTConfig(**{**sizes, **tables, **rates, **POSITIONS, **settings})
    return FSMTForConditionalGeneration(config)


MARIAN_APART = {**POSITIONS, **MARIAN_IDS, "share_encoder_decoder_embeddings": False}

# Encoder and decoder number their tokens apart: these are refused.
HOSTS_OF_TWO_VOCABULARIES: dict[str, Make] = {
    "marian_apart": bart_like(MarianMTModel, MarianConfig, **MARIAN_APART, decoder_vocab_size=44),
    "fsmt": fsmt,
}


def make_host(name: str, seed: int = 0, **settings: Any) -> PreTrainedModel:
    """A small host with random weights, in evaluation mode.

    Args:
        settings: `dropout`, and what the family's configuration takes.
    """
    make = {**HOSTS, **DECODERS, **HOSTS_OF_TWO_VOCABULARIES}[name]
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        host = make(**settings)
        # Positions that are computed, not learned, are parameters without a gradient.
        own = [parameter for parameter in host.parameters() if parameter.requires_grad]
        for tensor in [*own, *host.buffers(recurse=False)]:
            tensor.add_(0.2 * torch.randn_like(tensor))
    return host.eval()
