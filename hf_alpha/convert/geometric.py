"""Encoders of BERT's family into geometric ones, which see segments beside the tokens.

Every weight of a model is kept. What is new is gated, and every gate begins with 0: with or without
segments, a converted model says what the one before said, until it is trained. Every conversion
proves that by its outputs.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel

from hf_alpha.convert.shared import (
    ConversionError,
    check_fit,
    check_gap,
    for_proof,
    reject,
)
from hf_alpha.io.folders import new_folder
from hf_alpha.loading import load_config, load_for
from hf_alpha.modeling import modeling_geometric
from hf_alpha.modeling.choices import check_choice, token_digest
from hf_alpha.modeling.configuration_geometric import RELATION_ATTENTIONS, GeometricConfig
from hf_alpha.modeling.tokenization_geometric import GeometricTokenizer
from hf_alpha.transduction import Transducer

HEADS = {
    "masked": "ForMaskedLM",
    "tokens": "ForTokenClassification",
    "texts": "ForSequenceClassification",
    "none": "Model",
}
"""What a model is for -> the end of its class's name."""
ROUNDING = 1e-5  # of what is computed in another order, by the largest number
TYPES = "geometric.embeddings.token_type_embeddings.weight"
POOLER = "geometric.pooler.dense"
NEW = re.compile(r"segment_embeddings|relations|gate$")
SPECIAL = ("pad_token_id", "bos_token_id", "eos_token_id")

# Ours: theirs, with the same meaning.
SETTINGS = {name: name for name in (
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
    "hidden_act", "hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout",
    "max_position_embeddings", "type_vocab_size", "initializer_range", "layer_norm_eps",
)}  # fmt: skip
DISTILBERT = {
    "vocab_size": "vocab_size",
    "hidden_size": "dim",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "intermediate_size": "hidden_dim",
    "hidden_act": "activation",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
    "classifier_dropout": "seq_classif_dropout",
    "max_position_embeddings": "max_position_embeddings",
    "initializer_range": "initializer_range",
}
CLASSIFIER = {
    r"classifier\.dense\.": "geometric.pooler.dense.",
    r"classifier\.out_proj\.": "classifier.",
}
DISTILBERT_LAYERS = {
    "attention.q_lin": "attention.self.query",
    "attention.k_lin": "attention.self.key",
    "attention.v_lin": "attention.self.value",
    "attention.out_lin": "attention.output.dense",
    "sa_layer_norm": "attention.output.LayerNorm",
    "ffn.lin1": "intermediate.dense",
    "ffn.lin2": "output.dense",
    "output_layer_norm": "output.LayerNorm",
}
ALBERT_LAYERS = {
    "attention.query": "attention.self.query",
    "attention.key": "attention.self.key",
    "attention.value": "attention.self.value",
    "attention.dense": "attention.output.dense",
    "attention.LayerNorm": "attention.output.LayerNorm",
    "ffn": "intermediate.dense",
    "ffn_output": "output.dense",
    "full_layer_layer_norm": "output.LayerNorm",
}


@dataclass(frozen=True)
class FamilyNames:
    """The names that a family of models has for the parts of BERT.

    Attributes:
        prefix: of the encoder's weights.
        names: beginnings of names of weights, as regular expressions -> ours. What begins with
            none of them is called as with us.
        settings: ours -> theirs.
        fixed: settings of ours that they do not say.
        offset: how many rows of positions no token has: RoBERTa counts from behind the padding's.
    """

    prefix: str
    names: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=lambda: SETTINGS)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    offset: Callable[[PreTrainedConfig], int] = lambda config: 0


def _layers(path: str, names: Mapping[str, str]) -> dict[str, str]:
    """Return beginnings of names of weights in layers -> ours; `path` has the layer's number."""
    return {
        rf"geometric\.{path}\.{re.escape(theirs)}\.": rf"geometric.encoder.layer.\1.{ours}."
        for theirs, ours in names.items()
    }


BERT = FamilyNames(
    "bert",
    {
        r"cls\.predictions\.transform\.": "lm_head.",
        r"cls\.predictions\.decoder\.": "lm_head.decoder.",
        r"cls\.predictions\.bias": "lm_head.decoder.bias",
    },
)
ROBERTA = FamilyNames(
    "roberta",
    {
        r"lm_head\.layer_norm\.": "lm_head.LayerNorm.",
        r"lm_head\.bias": "lm_head.decoder.bias",
        **CLASSIFIER,
    },
    offset=lambda config: config.pad_token_id + 1,
)
ELECTRA = FamilyNames(
    "electra",
    {
        r"geometric\.embeddings_project\.": "geometric.embeddings.projection.",
        r"generator_predictions\.": "lm_head.",
        r"generator_lm_head\.": "lm_head.decoder.",
        **CLASSIFIER,
    },
    settings={**SETTINGS, "embedding_size": "embedding_size"},
    fixed={"pooler_act": "gelu"},
)
DISTIL = FamilyNames(
    "distilbert",
    {
        **_layers(r"transformer\.layer\.(\d+)", DISTILBERT_LAYERS),
        r"vocab_transform\.": "lm_head.dense.",
        r"vocab_layer_norm\.": "lm_head.LayerNorm.",
        r"vocab_projector\.": "lm_head.decoder.",
        r"pre_classifier\.": "geometric.pooler.dense.",
    },
    settings=DISTILBERT,
    fixed={"type_vocab_size": 1, "layer_norm_eps": 1e-12, "pooler_act": "relu"},
)
ALBERT = FamilyNames(
    "albert",
    {
        **_layers(r"encoder\.albert_layer_groups\.(\d+)\.albert_layers\.0", ALBERT_LAYERS),
        r"geometric\.encoder\.embedding_hidden_mapping_in\.": "geometric.embeddings.projection.",
        r"geometric\.pooler\.": "geometric.pooler.dense.",
        r"predictions\.bias": "lm_head.decoder.bias",
        r"predictions\.": "lm_head.",
    },
    settings={
        **SETTINGS,
        "classifier_dropout": "classifier_dropout_prob",
        "embedding_size": "embedding_size",
    },
)
FAMILIES = {
    "bert": BERT,
    "roberta": ROBERTA,
    "xlm-roberta": ROBERTA,
    "camembert": ROBERTA,
    "electra": ELECTRA,
    "distilbert": DISTIL,
    "albert": ALBERT,
}


def to_geometric(
    model: PreTrainedModel,
    segment_labels: Sequence[str],
    *,
    relation_attention: str = "graph",
    max_distance: int = 16,
    share_relations: bool = False,
    rope_theta: float = 10_000.0,
    gate: float = 0.0,
) -> PreTrainedModel:
    """Convert an encoder into a geometric one that gives the same outputs, and prove it.

    Attention to segments enters by gates. They are closed when this is proved, and open in
    training, slowly: where data are few, begin with open ones (`gate=1.0`).

    Padding has to come with an `attention_mask`: some of RoBERTa's kin find it by its id, too.

    Args:
        model: BERT, RoBERTa, XLM-RoBERTa, CamemBERT, ELECTRA, DistilBERT or ALBERT, whose layers
            share weights no more: the model itself, or for masked tokens, classes of tokens or of
            texts.
        segment_labels: labels of the segments that it is to see: a transducer's.
        relation_attention: `graph` or `two_layer_rotary`.
        max_distance, share_relations, rope_theta: as in [`GeometricConfig`].
        gate: what all gates are set to after the proof, 0 to 1. With more than 0 the model does not
            say any more what it said, until it is trained.

    Raises:
        ConversionError: the model is of another kind, or the outputs differ.
        ValueError: a setting is out of its range.

    Examples:
        >>> from transformers import BertConfig, BertModel
        >>> config = BertConfig(
        ...     vocab_size=20,
        ...     hidden_size=24,
        ...     num_hidden_layers=1,
        ...     num_attention_heads=2,
        ...     intermediate_size=24,
        ... )
        >>> bert = BertModel(config)
        >>> type(to_geometric(bert, ["DATE", "PLACE"])).__name__
        'GeometricModel'
    """
    if not 0 <= gate <= 1:
        raise ValueError(f"gate must be between 0 and 1, got {gate}")
    _check_family(model.config)
    if (head := _end(type(model).__name__)) is None:
        raise ConversionError(
            f"{type(model).__name__}: only models that end in {', '.join(HEADS.values())} can be "
            "converted; load this one by another Auto class, AutoModel for the encoder alone"
        )
    config = convert_config(
        model.config,
        segment_labels,
        relation_attention=relation_attention,
        max_distance=max_distance,
        share_relations=share_relations,
        rope_theta=rope_theta,
    )
    state = convert_weights(model, head)
    if TYPES not in state:  # DistilBERT has none
        width = config.embedding_size or config.hidden_size
        state[TYPES] = torch.zeros(config.type_vocab_size, width)
    made_class = getattr(modeling_geometric, f"Geometric{head}")
    pools = {} if head != "Model" else {"add_pooling_layer": f"{POOLER}.weight" in state}
    with torch.random.fork_rng(devices=[]):  # the same conversion gives the same model
        torch.manual_seed(0)
        converted = made_class(config, **pools)
    if head == "Model":
        state = {name.removeprefix("geometric."): tensor for name, tensor in state.items()}
    missing, unused_names = converted.load_state_dict(state, strict=False)
    missing_names = [name for name in missing if not NEW.search(name)]
    check_fit(missing_names, unused_names)
    converted.to(model.dtype).train(model.training)
    prove(model, converted)
    with torch.no_grad():
        for name, parameter in converted.named_parameters():
            if name.endswith("attention.self.gate"):
                parameter.fill_(gate)
    return converted


def convert_encoder(
    source: str | Path,
    out: str | Path,
    transducer: Transducer,
    *,
    head: str | None = None,
    **settings: Any,
) -> PreTrainedModel:
    """Convert a folder, or a model of the Hub; model, tokenizer and code are written to `out`.

    Args:
        source: an encoder of BERT's family with its tokenizer.
        transducer: finds the segments; it goes with the tokenizer.
        head: what is converted beside the encoder, one of `HEADS`; by default what the folder says
            that its model is for, and of other models nothing.
        settings: as of `to_geometric`.

    Raises:
        ConversionError: as `to_geometric`, or the folder has no such head; nothing is written.
        CheckpointError: weights are missing or damaged.
        FileExistsError: `out` exists; it stays as it is.
        FileNotFoundError: there is no such model.
    """
    with new_folder(Path(out)) as unfinished:
        config = load_config(source)
        _check_family(config)
        check_choice("head", head or "none", tuple(HEADS))
        head_name = _default_head(config) if head is None else HEADS[head]
        auto = getattr(transformers, f"AutoModel{head_name.removeprefix('Model')}")
        model, tokenizer, new = load_for(source, auto, {})
        _check_padding(config, tokenizer)
        if head_name == "Model" and all(name.startswith("pooler.") for name in new):
            model.pooler = None if new else getattr(model, "pooler", None)
        elif new:
            raise ConversionError(
                f"{source} lacks {', '.join(new[:3])}{', ...' * (len(new) > 3)}: it has no trained "
                'head of this kind. Take head="none" (--head none): training makes a new one'
            )
        converted = to_geometric(model, transducer.labels, **settings)
        converted.config.token_digest = token_digest(tokenizer)
        converted.save_pretrained(unfinished)
        GeometricTokenizer.from_tokenizer(tokenizer, transducer).save_pretrained(unfinished)
    return converted


def _default_head(config: PreTrainedConfig) -> str:
    """Return what a folder's model is for; BERT's pretraining has the head for masked tokens."""
    name = next(iter(config.architectures or []), "Model")
    return HEADS["masked"] if name == "BertForPreTraining" else _end(name) or "Model"


def _end(name: str) -> str | None:
    """Return what a class of models is for: the end of its name, if it is one of `HEADS`."""
    return next((head for head in HEADS.values() if name.endswith(head)), None)


def _check_padding(config: PreTrainedConfig, tokenizer: Any) -> None:
    """Check padding: RoBERTa finds it by its id when it counts positions."""
    pad_id, tokenizer_id = config.pad_token_id, tokenizer.pad_token_id
    reject(
        FAMILIES[config.model_type].offset(config) and pad_id != tokenizer_id,
        f"the model's pad_token_id is {pad_id} and the tokenizer's {tokenizer_id}: the model skips "
        "a position at each token of its own pad_token_id, which a converted one would not do. Set "
        "both to the same id, if the model was trained so",
    )


def _check_family(config: PreTrainedConfig) -> None:
    kind, is_decoder = config.model_type, getattr(config, "is_decoder", False)
    family = ", ".join(FAMILIES)
    reject(kind not in FAMILIES, f"a {kind!r} model is none of BERT's family: {family}")
    reject(is_decoder, "the model is a decoder (is_decoder), and segments are for encoders")


def convert_config(
    encoder_config: PreTrainedConfig, segment_labels: Sequence[str], **settings: Any
) -> GeometricConfig:
    """Return the converted model's configuration; `settings` are what is new in it."""
    if isinstance(segment_labels, str):
        raise ValueError(f"segment_labels is {segment_labels!r}: give a list of labels")
    check_choice("relation_attention", settings["relation_attention"], RELATION_ATTENTIONS[:2])
    family = FAMILIES[encoder_config.model_type]
    converted = {ours: getattr(encoder_config, name) for ours, name in family.settings.items()}
    converted["max_position_embeddings"] -= family.offset(encoder_config)
    if converted.get("embedding_size") == converted["hidden_size"]:
        del converted["embedding_size"]
    special = {name: getattr(encoder_config, name) for name in SPECIAL}
    labels = {"id2label": encoder_config.id2label, "label2id": encoder_config.label2id}
    return GeometricConfig(
        **{**converted, **family.fixed, **special, **labels, **settings},
        problem_type=encoder_config.problem_type,
        gated=True,
        segment_labels=list(segment_labels),
        absolute_positions=True,
        tie_word_embeddings=encoder_config.tie_word_embeddings,
    )


def convert_weights(model: PreTrainedModel, head: str) -> dict[str, Tensor]:
    """Return a model's weights under our names, those of the encoder behind `geometric.`."""
    family = FAMILIES[model.config.model_type]
    prefix = "" if head == "Model" else f"{family.prefix}."
    state = {}
    for name, tensor in model.state_dict().items():
        our_name = f"geometric.{name[len(prefix) :]}" if name.startswith(prefix) else name
        for pattern, replacement in family.names.items():
            if re.match(pattern, our_name):
                our_name = re.sub(pattern, replacement, our_name, count=1)
                break
        if our_name.endswith(".position_embeddings.weight"):
            tensor = tensor[family.offset(model.config) :]
        for copy in _copies(our_name, model.config):
            state[copy] = tensor.clone()
    return state


def _copies(name: str, config: PreTrainedConfig) -> list[str]:
    """Return the names of a weight in all layers that share it: ALBERT's are groups."""
    groups = getattr(config, "num_hidden_groups", None)
    match = re.match(r"(geometric\.encoder\.layer\.)(\d+)(.*)", name)
    if groups is None or match is None:
        return [name]
    beginning, layer, end = match.groups()
    size = config.num_hidden_layers / groups
    return [
        f"{beginning}{index}{end}"
        for index in range(config.num_hidden_layers)
        if int(index / size) == int(layer)
    ]


@torch.no_grad()
def prove(model: PreTrainedModel, converted: PreTrainedModel) -> None:
    """Compare the outputs of two models on random texts, with padding, without and with segments.

    Raises:
        ConversionError: they differ; the message names the largest difference.
    """
    before, after = for_proof(model), for_proof(converted)
    config = after.config
    generator = torch.Generator().manual_seed(0)
    length = min(12, config.max_position_embeddings)
    ids = torch.randint(config.vocab_size, (4, length), generator=generator)
    mask = (
        torch.arange(length) < torch.tensor([[length], [length], [1 + length // 2], [1]])
    ).long()
    padding = config.pad_token_id or 0
    ids[ids == padding] = (padding + 1) % config.vocab_size
    ids = ids.masked_fill(mask == 0, padding)
    segments = {
        "segment_ids": torch.randint(1 + len(config.segment_labels), (4, 3), generator=generator),
        "segment_starts": torch.zeros(4, 3, dtype=torch.long),
        "segment_ends": mask.sum(1, keepdim=True).expand(-1, 3) - 1,
    }
    expected = _outputs(before(input_ids=ids, attention_mask=mask), mask)
    for case, inputs in (("without segments", {}), ("with segments", segments)):
        outputs = _outputs(after(input_ids=ids, attention_mask=mask, **inputs), mask)
        for one, two in zip(expected, outputs, strict=True):
            scale = max(float(one.abs().max()), 1.0)
            gap = float((one - two).abs().max()) / scale
            check_gap(f"{case}, outputs differ, in parts of the largest number,", gap, ROUNDING)


def _outputs(outputs: Any, mask: Tensor) -> list[Tensor]:
    """Return what the two have in common, 0 at padding."""
    if "logits" in outputs:
        tensors = [outputs["logits"]]
    else:
        pooled = outputs.get("pooler_output")
        tensors = [outputs["last_hidden_state"], *([] if pooled is None else [pooled])]
    return [output * mask[..., None] if output.dim() == 3 else output for output in tensors]
