"""Which models of Transformers take names, with which encoding, and which are refused.

    python benchmarks/retrofit_families.py --out retrofit_families

prints and keeps the result `retrofit_families`: a small model with random weights of every family
behind `AutoModelForSeq2SeqLM` that goes from text to text, and of many behind
`AutoModelForCausalLM`, is converted into each encoding. `yes` means that the conversion's proof
holds; a number leads to the words of the refusal below the table.
`tests/test_benchmarks.py` compares them with the store.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSpeechSeq2Seq,
    BertConfig,
    EncoderDecoderConfig,
    GPT2Config,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    logging,
)

import measure
from hf_alpha import SymbolConfig, get_symbol_model
from hf_alpha.convert import ConversionError

WORDS = 40
ENCODINGS: dict[str, dict[str, Any]] = {
    "streams": {},
    "streams, aggregated": {"aggregated_attention": ["encoder", "decoder"]},
    "relational": {"encoding": "relational"},
    "dual_part": {"encoding": "dual_part"},
    "first_occurrence": {"encoding": "learned", "renaming": "first_occurrence"},
    "learned": {"encoding": "learned"},
}
"""Column -> how `get_symbol_model` is asked for it."""
IDS = {"vocab_size": WORDS, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
       "decoder_start_token_id": 2}  # fmt: skip
POSITIONS = {"max_position_embeddings": 64}
SIZES = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
         "num_attention_heads": 2}  # fmt: skip


def both(before: str = "", **sizes: int) -> dict[str, int]:
    """Settings of encoder and decoder, such as `encoder_layers`."""
    sides = ("encoder", "decoder")
    return {f"{before}{side}_{key}": value for side in sides for key, value in sizes.items()}


LAYERS = {"num_layers": 2, "num_decoder_layers": 2}
T5 = {**IDS, **LAYERS, "d_model": 16, "d_kv": 8, "d_ff": 24, "num_heads": 2}
PAIR = {**IDS, **POSITIONS, **both(layers=2, attention_heads=2, ffn_dim=24)}
BART = {**PAIR, "d_model": 16, "forced_eos_token_id": None}
LED = {**BART, "attention_window": 4, **both("max_", position_embeddings=64)}
EXPERTS = {"num_experts": 2, "expert_capacity": 64}
PROPHETNET = {**IDS, **POSITIONS, "hidden_size": 16, **both(ffn_dim=24),
              **both("num_", layers=2, attention_heads=2)}  # fmt: skip
GEMMA = {"vocab_size": WORDS, **SIZES, "num_key_value_heads": 1, "head_dim": 8, "sliding_window": 8}
GEMMA_2 = {
    "text_config": GEMMA,
    "vision_config": {**SIZES, "num_hidden_layers": 1, "image_size": 28, "patch_size": 14},
    "vocab_size": WORDS,
    "mm_tokens_per_image": 4,
}
SEAMLESS = {
    **PAIR,
    "hidden_size": 16,
    **{f"speech_encoder_{key}": n
       for key, n in {"layers": 1, "attention_heads": 2, "intermediate_size": 24}.items()},
    **both("t2u_", layers=1, attention_heads=2, ffn_dim=24),
    "t2u_vocab_size": 20,
    "unit_hifi_gan_vocab_size": 20,
    "unit_embed_dim": 8,
    "upsample_initial_channel": 16,
}  # fmt: skip
BERT = {"vocab_size": WORDS, **SIZES, **POSITIONS}
DECODER = {**IDS, **SIZES, **POSITIONS, "num_key_value_heads": 1}
GPT2 = {**IDS, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64}
OPT = {**IDS, "hidden_size": 16, "ffn_dim": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
       "max_position_embeddings": 64, "word_embed_proj_dim": 16}  # fmt: skip
DEEPSEEK = {"num_key_value_heads": 2, "kv_lora_rank": 8, "q_lora_rank": 8, "qk_rope_head_dim": 4,
            "qk_nope_head_dim": 4, "v_head_dim": 8, "n_routed_experts": 2, "num_experts_per_tok": 1,
            "n_group": 1, "topk_group": 1, "moe_intermediate_size": 8,
            "first_k_dense_replace": 1}  # fmt: skip
"""Its attention makes a key for each head."""


def of(model_type: str, **settings: Any) -> Callable[[], Any]:
    return lambda: AutoConfig.for_model(model_type, **settings)


def pair(decoder: Any) -> Callable[[], Any]:
    """A BERT whose states a decoder reads."""

    def make() -> Any:
        config = EncoderDecoderConfig.from_encoder_decoder_configs(BertConfig(**BERT), decoder())
        config.pad_token_id, config.eos_token_id, config.decoder_start_token_id = 0, 2, 1
        return config

    return make


def bert() -> Any:
    return BertConfig(**BERT, is_decoder=True, add_cross_attention=True)


def gpt2() -> Any:
    own = {key: n for key, n in GPT2.items() if not key.startswith(("pad", "decoder"))}
    return GPT2Config(**own, add_cross_attention=True)


FAMILIES: dict[str, Callable[[], Any]] = {
    "T5, FLAN-T5, ByT5": of("t5", **T5),
    "mT5": of("mt5", **T5),
    "UMT5": of("umt5", **T5),
    "LongT5, local": of("longt5", **T5, local_radius=4),
    "LongT5, global": of("longt5", **T5, local_radius=4, encoder_attention_type="transient-global"),
    "Switch Transformers": of(
        "switch_transformers", **T5, **EXPERTS, num_sparse_encoder_layers=1,
        num_sparse_decoder_layers=1,
    ),
    "Switch Transformers, decoder deeper than encoder": of(
        "switch_transformers", **{**T5, "num_decoder_layers": 3}, **EXPERTS
    ),
    "T5Gemma": of(
        "t5gemma", encoder=GEMMA, decoder=GEMMA, vocab_size=WORDS, decoder_start_token_id=2
    ),
    "T5Gemma 2": of(
        "t5gemma2", encoder=GEMMA_2, decoder=GEMMA, decoder_start_token_id=2,
        image_token_index=WORDS - 1, eoi_token_index=WORDS - 2,
    ),
    "BART": of("bart", **BART),
    "mBART": of("mbart", **BART),
    "PLBART": of("plbart", **BART),
    "MVP": of("mvp", **BART),
    "Pegasus": of("pegasus", **BART),
    "PegasusX": of("pegasus_x", **BART, block_size=8, num_global_tokens=4),
    "BigBirdPegasus, full attention": of("bigbird_pegasus", **BART, attention_type="original_full"),
    "BigBirdPegasus, sparse attention": of(
        "bigbird_pegasus", **BART, attention_type="block_sparse", block_size=2, num_random_blocks=1
    ),
    "Blenderbot": of("blenderbot", **BART),
    "BlenderbotSmall": of("blenderbot-small", **BART),
    "Marian": of("marian", **BART),
    "Marian, two vocabularies": of(
        "marian", **BART, share_encoder_decoder_embeddings=False, decoder_vocab_size=44
    ),
    "M2M100, NLLB": of("m2m_100", **BART),
    "NLLB-MoE": of(
        "nllb-moe", **BART, **EXPERTS, encoder_sparse_step=2, decoder_sparse_step=2
    ),
    "FSMT": of("fsmt", **{**BART, }, src_vocab_size=WORDS, tgt_vocab_size=WORDS),
    "LED": of("led", **LED),
    "ProphetNet": of("prophetnet", **PROPHETNET),
    "SeamlessM4T": of("seamless_m4t", **SEAMLESS),
    "SeamlessM4T v2": of("seamless_m4t_v2", **SEAMLESS),
    "Whisper": of("whisper", **{**BART, "num_mel_bins": 8}),
    "BERT and BERT": pair(bert),
    "BERT and GPT-2": pair(gpt2),
    "GPT-2": of("gpt2", **GPT2),
    "GPT-NeoX, Pythia": of("gpt_neox", **DECODER),
    "GPT-J": of("gptj", **GPT2, rotary_dim=4),
    "OPT": of("opt", **OPT),
    "BLOOM": of("bloom", **IDS, n_layer=2, n_head=2, hidden_size=16),
    "Falcon": of("falcon", **DECODER),
    "Llama": of("llama", **DECODER),
    "Mistral": of("mistral", **DECODER),
    "Mixtral": of("mixtral", **DECODER, num_local_experts=2),
    "Qwen2": of("qwen2", **DECODER),
    "Qwen3": of("qwen3", **DECODER, head_dim=8),
    "Qwen3-MoE": of("qwen3_moe", **DECODER, head_dim=8, num_experts=8, moe_intermediate_size=8),
    "Gemma": of("gemma", **DECODER, head_dim=8),
    "Gemma 2": of("gemma2", **DECODER, head_dim=8),
    "Gemma 3": of("gemma3_text", **DECODER, head_dim=8),
    "Phi-3": of("phi3", **DECODER),
    "OLMo 2": of("olmo2", **DECODER),
    "Granite": of("granite", **DECODER),
    "SmolLM3": of("smollm3", **DECODER),
    "gpt-oss": of("gpt_oss", **DECODER, head_dim=8, num_local_experts=4),
    "DeepSeek-V3": of("deepseek_v3", **DECODER | DEEPSEEK),
    "BERT as a decoder": of("bert", **BERT, is_decoder=True),
    "Mamba": of("mamba", **IDS, hidden_size=16, num_hidden_layers=2),
}  # fmt: skip


def tokenizer() -> PreTrainedTokenizerFast:
    marks = ["<pad>", "<s>", "</s>", "<unk>"]
    words = [*marks, *(f"w{i}" for i in range(len(marks), WORDS))]
    beneath = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    beneath.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    names = ("pad_token", "bos_token", "eos_token", "unk_token")
    return PreTrainedTokenizerFast(tokenizer_object=beneath, **dict(zip(names, marks, strict=True)))


def made(family: str) -> PreTrainedModel:
    torch.manual_seed(0)
    config = FAMILIES[family]()
    auto = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    if family == "Whisper":
        auto = AutoModelForSpeechSeq2Seq
    model: PreTrainedModel = auto.from_config(config).eval()
    return model


def refusal(family: str, settings: dict[str, Any]) -> str:
    """Why a family does not take an encoding; empty if it does."""
    rule = {"name": {"pattern": "[a-z]", "count": 3}}
    try:
        get_symbol_model(made(family), tokenizer(), SymbolConfig(symbols=rule, **settings))
    except ConversionError as error:
        return str(error)
    return ""


def refusals(family: str) -> list[str]:
    """For each encoding, why it is refused; empty if it is not."""
    return [refusal(family, settings) for settings in ENCODINGS.values()]


def show(families: Sequence[str]) -> str:
    """The table, and the words of all refusals under their numbers."""
    numbers: dict[str, int] = {}
    rows = []
    for family in families:
        words = refusals(family)
        cells = [f"{numbers.setdefault(why, len(numbers) + 1)}" if why else "yes" for why in words]
        rows.append([family, *cells])
    table = measure.table(["family", *(f"`{name}`" for name in ENCODINGS)], rows, list(ENCODINGS))
    return "\n".join([table, "", *(f"{number}. {why}" for why, number in numbers.items())])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = measure.parser_of(__doc__)
    args = parser.parse_args(arguments)
    logging.set_verbosity_error()
    measure.finish(show(list(FAMILIES)), {}, args.out, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
