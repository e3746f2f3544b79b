"""Any encoder-decoder or decoder of Transformers with a symbol layer around it.

The backbone keeps its weights: what is added to its tables are rows for what its tokenizer gets
(see `TextTokenizer`) and a few rows that the symbols of a class share. What the two models have in
common is checked on every conversion, by `proof`.
"""

import copy
import gc
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    ByT5Tokenizer,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING,
)

from hf_alpha.convert.backbone_rows import CLASS, BackboneRows, Tokens, by_class, token_id
from hf_alpha.convert.host_tables import check_tables, table_rows
from hf_alpha.convert.proof import (
    Family,
    SavingProof,
    plain_logits,
    prove_encoding,
    prove_growth,
    prove_texts,
    random_probe,
)
from hf_alpha.convert.shared import ConversionError, check_learned, check_sides
from hf_alpha.generation import AnyTokenizer, fit_tokenizer, raise_limit
from hf_alpha.io.folders import new_folder
from hf_alpha.io.plain_text import counted
from hf_alpha.loading import load_checkpoint, load_config, load_host
from hf_alpha.modeling.choices import token_digest
from hf_alpha.modeling.configuration_retrofit import RetrofitConfig
from hf_alpha.modeling.modeling_retrofit import RetrofitForConditionalGeneration, RetrofitModel
from hf_alpha.modeling.modeling_retrofit_decoder import RetrofitForCausalLM, check_keeps_keys
from hf_alpha.modeling.name_rules import NameRule
from hf_alpha.modeling.relations import START
from hf_alpha.modeling.spans import MarkedText
from hf_alpha.modeling.symbol_encodings import encoding_class
from hf_alpha.modeling.tokenization_symbols import SymbolTokenizer
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.modeling.tokenizer_beneath import fast_bytes

logger = logging.getLogger(__name__)

UNWRAP = (
    "Give the model alone, with its adapters merged (merge_and_unload() of a PeftModel) and "
    "without what torch.compile or others put around it"
)

GATE, POINTER = 1.0, 2.0
"""What a gate adds to the scores of a decoder's head, and the score of a symbol to which all heads
of its pointer go, at first."""


@dataclass
class SymbolConfig:
    """How a model of Transformers becomes one with symbols: for `get_symbol_model`.

    Args:
        encoding: of any name, such as `"streams"`; `"learned"` leaves the model
            as it is: with a `renaming` it is the cheap baseline.
        symbols: class -> how many, or a rule for its names in texts (see `NameRule`), whose `count`
            says how many. An int, or a rule alone, is for the only class, `name`.
        symbol_tokens: tokens of the tokenizer that become the symbols, by class or for the only
            one, in place of `symbols`; ids stay.
        actual: words, names for one, by class if there are several. `relational`: the rows of a
            class begin as theirs, and the names of a text have them in order of first occurrence,
            again from the first where there are more. Without it, those of symbols that were
            tokens before, else of words that the tokenizer has (`host_words`), or of the few that
            the rule takes. Others: with the mean of their tokens' rows begins the actual row of a
            class (`streams`), or the one that it has. Without it, rows of symbols that were tokens
            before count, of `streams` that of the first symbol that is not the placeholder, else
            the mean of all; rows of new symbols begin as those of the vocabulary are on average.
        placeholder: likewise for the placeholder row of `streams`, which without it is that of the
            first symbol that is not the actual one.
        renaming: what happens to symbols inside the model, see `SymbolModelConfig`.
        aggregated_attention: sides that get blocks of aggregated attention, `"encoder"` and
            `"decoder"`, which do nothing until they are trained.
        settings: others of the configuration, see `RetrofitConfig`: `{"new_symbols": True}`.

    Examples:
        >>> rule = {"pattern": "[a-z]", "count": 8}
        >>> config = SymbolConfig("relational", symbols={"variable": rule})
        >>> with_names, names_tokenizer = get_symbol_model(host, host_tokenizer, config)
    """

    encoding: str = "streams"
    symbols: Any = field(default_factory=lambda: {CLASS: 32})
    symbol_tokens: Tokens | None = None
    actual: Tokens | None = None
    placeholder: Tokens | None = None
    renaming: str = "none"
    aggregated_attention: Sequence[str] = ()
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def rules(self) -> dict[str, Any]:
        """Class -> how many symbols, or a rule for its names."""
        by_class = isinstance(self.symbols, Mapping) and not _is_rule(self.symbols)
        return dict(self.symbols) if by_class else {CLASS: self.symbols}

    def __post_init__(self) -> None:
        try:
            encoding = encoding_class(self.encoding)
        except ValueError as error:
            raise ConversionError(str(error)) from None
        check_sides(self.aggregated_attention)
        if self.aggregated_attention and not encoding.opens_streams:
            raise ConversionError("aggregated attention joins streams: use the encoding 'streams'")


def _is_rule(symbols: Mapping[str, Any]) -> bool:
    """Return whether symbols are a rule alone, not rules by class: of a class `function`, say."""
    return symbols.keys() <= NameRule.__dataclass_fields__.keys() and not any(
        isinstance(value, Mapping) or (isinstance(value, int) and key != "count")
        for key, value in symbols.items()
    )


def get_symbol_model(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, config: SymbolConfig | None = None
) -> tuple[RetrofitModel, AnyTokenizer]:
    """Put a symbol layer around a model, and symbols on top of its tokenizer.

    Args:
        model: any encoder-decoder or decoder of Transformers with a language modelling head. It
            becomes part of the result, with more rows in its tables; nothing else in it changes.
        tokenizer: its fast tokenizer; or one with symbols, whose symbols these are then.
        config: how; by default 32 new symbols and `streams`. Without a rule for names, of which a
            warning tells, only the tokens of symbols are names: `<name_0>` and so on.

    Returns:
        The model and its tokenizer. `save_pretrained` of both makes a folder that `AutoModel...`
        loads with `trust_remote_code=True`, or where hf_alpha is imported.

    Raises:
        ConversionError: the model or the tokenizer cannot be used, or the proof failed; the message
            says what to do. The model is as it was, but for rows in its tables.

    Examples:
        >>> rules = {"variable": {"pattern": "[a-z][0-9]*", "count": 4}}
        >>> config = SymbolConfig("relational", symbols=rules)
        >>> with_names, names_tokenizer = get_symbol_model(host, host_tokenizer, config)
        >>> names_tokenizer(["add x7 y"]).names
        [{'<variable_0>': 'x7', '<variable_1>': 'y'}]
    """
    retrofit, symbol_tokenizer = _symbol_model(model, tokenizer, config or SymbolConfig())
    if gap := _tools_gap(symbol_tokenizer):
        logger.warning("%s", gap)
    if gap := _without_rule(symbol_tokenizer):
        logger.warning(
            "%s: give SymbolConfig a rule, such as symbols={'%s': {'pattern': '[a-z][0-9]*', "
            "'count': 32}}, or call use_rules of the tokenizer",
            gap,
            next(iter(symbol_tokenizer.symbol_classes)),
        )
    return retrofit, symbol_tokenizer


def _symbol_model(
    model: PreTrainedModel, tokenizer: Any, config: SymbolConfig
) -> tuple[RetrofitModel, Any]:
    if isinstance(model, RetrofitModel):
        model = _plain_backbone(model)
    check_host(model)
    plain = fast_bytes(tokenizer) if isinstance(tokenizer, ByT5Tokenizer) else tokenizer
    symbol_tokenizer = _with_symbols(plain, config)
    _check_vocabulary(model, plain)
    if isinstance(symbol_tokenizer, TextTokenizer) and not isinstance(plain, SymbolTokenizer):
        prove_texts(symbol_tokenizer, plain)
    plan = BackboneRows(model, symbol_tokenizer, plain, config)
    probe = random_probe(model, plan.base)
    before = plain_logits(model, probe)
    aggregated = bool(config.aggregated_attention)
    family = Family(model.config, config.encoding, aggregated)
    if family.relates and getattr(model.config, "attention_type", None) == "block_sparse":
        # Inputs as short as those of the proof get full attention.
        raise family.refusal("its sparse attention takes no relations")
    try:
        # Before a row changes.
        settings = _configuration(model, symbol_tokenizer, config, plan.settings())
    except NotImplementedError as error:  # some configurations let no layer be added to the cache
        raise family.refusal(f"its configuration says {str(error)!r}") from error
    plan.apply()
    grown = plain_logits(model, probe)
    prove_growth(before, grown, plan.base)
    with family.refusing():
        kind = (
            RetrofitForConditionalGeneration if settings.is_encoder_decoder else RetrofitForCausalLM
        )
        retrofit = kind(settings, model).to(model.device)  # what is new lies there, too
    _begin_new_symbols(retrofit)
    if settings.decodes_alone and retrofit.relations is not None:
        _begin_relations(retrofit.relations, retrofit.config.random_scale[1])
    retrofit.generation_config = _generation(model, retrofit.config)
    raise_limit(retrofit)
    fit_tokenizer(symbol_tokenizer, retrofit)
    training = model.training
    retrofit.eval()
    prove_encoding(retrofit, family, probe, grown)
    retrofit.train(training)
    return retrofit, symbol_tokenizer


@torch.no_grad()
def _begin_new_symbols(model: RetrofitModel) -> None:
    """Have the head's rows for new symbols begin as those of symbols are, class by class."""
    if model.new_symbols is None:
        return
    config, head = model.config, model.get_output_embeddings()
    assert isinstance(head.weight, torch.Tensor)
    for number, (name, pairs) in enumerate(config.symbol_ranges.items()):
        rows = [i for pair in pairs for i in range(*pair)]
        if config.encoding.rows_per_class is not None:
            rows = config.class_rows[name]
        model.new_symbols.weight[number] = head.weight[rows].mean(0)


@torch.no_grad()
def _begin_relations(relations: Any, row_length: float) -> None:
    """Have a decoder's relations begin with what a pretrained one makes use of untrained.

    Heads of the first layers see where the same name stands, heads of later ones what followed it,
    and the pointer goes to the names that followed it. Tried on SmolLM2 (docs/LOG.md).

    Args:
        row_length: mean length of rows of the head, by which the pointer's scores are multiplied.
    """
    scale, layers, memory = relations.scale, len(relations.gate_bias), relations.memory
    relations.gate_bias[: max(layers // 10, 1), :, 0] = GATE / scale
    relations.gate_bias[layers * 6 // 10 : layers * 8 // 10, :, 1] = GATE / scale
    memory.gates.bias.view(2, -1).copy_(torch.tensor([[0.0], [2 * START / scale]]))
    memory.query_proj.weight.mul_(0.3)  # of random directions, which should count for less
    memory.strength.fill_(POINTER / (len(memory.strength) * row_length * scale))


def _without_rule(tokenizer: Any) -> str:
    """Say which classes have names that no rule finds; "" if there are none."""
    if not isinstance(tokenizer, TextTokenizer) or tokenizer.symbols_are_words:
        return ""
    rules = tokenizer.finder.rules.items()
    tokens = ", ".join(f"<{name}_0>, <{name}_1>, ..." for name, rule in rules if not rule.is_sought)
    return f"only {tokens} are names until a rule says which words are" if tokens else ""


def _tools_gap(tokenizer: Any) -> str:
    return tokenizer.tools_gap() if isinstance(tokenizer, TextTokenizer) else ""


# -- what can be converted ------------------------------------------------------------------------


def _plain_backbone(model: RetrofitModel) -> PreTrainedModel:
    """Return the backbone of a `learned` model, in which each symbol has a row of its own."""
    check_learned(model.config)
    model.backbone.generation_config = copy.deepcopy(model.generation_config)
    return model.backbone


def check_host(model: PreTrainedModel) -> None:
    """Raise a ConversionError for a model that does not write text, or is not Transformers' own."""
    if not isinstance(model, PreTrainedModel):
        raise ConversionError(f"a {type(model).__name__} is no model of Transformers: {UNWRAP}")
    config = model.config
    if hasattr(config, "symbol_classes"):
        raise ConversionError(
            f"this {config.model_type!r} model has symbols already; convert_checkpoint converts "
            "'learned' models of that kind"
        )
    if not _writes_text(config):
        _refuse(config)
    if not config.is_encoder_decoder:
        try:
            check_keeps_keys(model)
        except ValueError as error:
            raise ConversionError(str(error)) from None
    if model.get_output_embeddings() is None:
        raise ConversionError(
            f"{type(model).__name__} has no language modelling head: load it by "
            "AutoModelForSeq2SeqLM or AutoModelForCausalLM"
        )
    _check_whole(model)


def _check_whole(model: PreTrainedModel) -> None:
    """Raise a ConversionError for weights that are not those of a model of its configuration.

    What is written names the configuration alone, and such a model is made when it is loaded.
    """
    auto = AutoModelForSeq2SeqLM if model.config.is_encoder_decoder else AutoModelForCausalLM
    with torch.device("meta"):  # shapes without numbers
        plain = auto.from_config(model.config)
    own, wanted = (
        {name: tuple(tensor.shape) for name, tensor in each.state_dict().items()}
        for each in (model, plain)
    )
    if strange := sorted(name for name, _ in own.items() ^ wanted.items()):
        raise ConversionError(
            f"weights of this {type(model).__name__} are not those of its configuration, of which "
            f"it would be made again: {strange[0]} is {own.get(strange[0], 'missing')}, and "
            f"{wanted.get(strange[0], 'missing')} there. {UNWRAP}"
        )


def _writes_text(config: Any) -> bool:
    """Return whether a configuration is that of an encoder-decoder, or a decoder, of texts."""
    if getattr(config, "is_encoder_decoder", False):
        return type(config) in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING
    encodes = type(config) in MODEL_FOR_MASKED_LM_MAPPING and not config.is_decoder
    return type(config) in MODEL_FOR_CAUSAL_LM_MAPPING and not encodes


def _refuse(config: Any) -> None:
    """Raise a ConversionError that says what kind of model a configuration is of."""
    if getattr(config, "is_encoder_decoder", False):
        raise ConversionError(
            f"a {config.model_type!r} model reads no text, or writes none; take an encoder-decoder "
            "from text to text, such as T5, BART or Pegasus"
        )
    raise ConversionError(
        f"a {config.model_type!r} model is an encoder alone, and writes no answers; take an "
        "encoder-decoder, such as T5, BART or Pegasus, or a decoder, such as Llama or Qwen"
    )


def _check_vocabulary(model: PreTrainedModel, tokenizer: Any) -> None:
    check_tables(model)
    num_tokens = len(tokenizer)
    if num_tokens > table_rows(model):
        raise ConversionError(
            f"the tokenizer has {num_tokens} tokens, the model rows for {table_rows(model)}: they "
            "do not belong together, or the model lacks what was added to the tokenizer; call "
            f"model.resize_token_embeddings({num_tokens})"
        )


def _configuration(
    model: PreTrainedModel, tokenizer: Any, config: SymbolConfig, vocabulary: dict[str, Any]
) -> RetrofitConfig:
    """Return the configuration of the result.

    Raises:
        ConversionError: settings contradict one another, or a special token is a symbol.
    """
    settings = {
        "symbol_encoding": config.encoding,
        "symbol_renaming": config.renaming,
        "aggregated_attention": list(config.aggregated_attention),
        "token_digest": token_digest(tokenizer),
        **_special_tokens(model, tokenizer),
        **vocabulary,
        **config.settings,
    }
    # A configuration of Transformers would keep it, and nothing would read it.
    if unknown := sorted(config.settings.keys() - RetrofitConfig.__dataclass_fields__.keys()):
        raise ConversionError(
            f"a converted model has no setting {unknown[0]!r}: see RetrofitConfig for those it has"
        )
    try:
        return RetrofitConfig(backbone_config=model.config, **settings)
    except (ValueError, TypeError, StrictDataclassError) as error:
        raise ConversionError(str(error)) from error


def _special_tokens(model: PreTrainedModel, tokenizer: Any) -> dict[str, Any]:
    """Return the special ids, from wherever the model says them."""
    ids = {}
    for name in ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"):
        places = (model.config, model.generation_config, tokenizer)
        values = (getattr(place, name, None) for place in places)
        ids[name] = next((value for value in values if value is not None), None)
    ids["pad_token_id"] = tokenizer.pad_token_id  # what batches are padded with
    return ids


def _generation(model: PreTrainedModel, config: RetrofitConfig) -> GenerationConfig:
    """Return how the model generated before; special ids that it lacks are filled in."""
    generation = copy.deepcopy(model.generation_config)
    for name in ("bos_token_id", "eos_token_id", "decoder_start_token_id"):
        if getattr(generation, name) is None:
            setattr(generation, name, getattr(config, name))
    generation.pad_token_id = config.pad_token_id  # what the tokenizer takes for padding
    _allow_symbols(generation, config)
    _drop_idle(generation)
    return generation


def _drop_idle(generation: GenerationConfig) -> None:
    """Drop settings that Transformers ignores, with which it saves no file: temperature, say.

    They are ignored beside others, as long as these are not set to sample or to search.
    """
    if _can_be_saved(generation):
        return
    unset = vars(GenerationConfig())
    left = {name: vars(generation)[name] for name in unset if name in generation.to_diff_dict()}
    for name in left:
        setattr(generation, name, unset[name])
    tried = 0
    while tried != (tried := len(left)):  # what was ignored alone need not be beside the others
        for name, value in list(left.items()):
            setattr(generation, name, value)
            if _can_be_saved(generation):
                del left[name]
            else:
                setattr(generation, name, unset[name])
    logger.warning(
        "generation_config has %s, which had no effect and cannot be saved: dropped; give them to "
        "generate where they are wanted",
        ", ".join(f"{name}={value!r}" for name, value in left.items()),
    )


def _can_be_saved(generation: GenerationConfig) -> bool:
    try:
        generation.validate(strict=True)
    except ValueError:
        return False
    return True


def _allow_symbols(generation: GenerationConfig, config: RetrofitConfig) -> None:
    """Drop what forbids ids that are symbols now: before, they were unused, or other tokens."""
    is_symbol = config.vocabulary.class_of
    suppressed, bad = generation.suppress_tokens or [], generation.bad_words_ids or []
    kept_tokens = [i for i in suppressed if is_symbol(i) is None]
    kept_words = [word for word in bad if all(is_symbol(i) is None for i in word)]
    if len(kept_tokens) + len(kept_words) < len(suppressed) + len(bad):
        logger.warning(
            "generation_config forbids symbols (suppress_tokens %s, bad_words_ids %s): what names "
            "ids of symbols is dropped",
            suppressed,
            bad,
        )
        generation.suppress_tokens = kept_tokens or None
        generation.bad_words_ids = kept_words or None


# -- symbols on top of the tokenizer --------------------------------------------------------------


def _with_symbols(tokenizer: Any, config: SymbolConfig) -> Any:
    if isinstance(tokenizer, SymbolTokenizer) and tokenizer.symbol_ranges:
        return copy.deepcopy(tokenizer)  # that of the model before may be needed
    if not getattr(tokenizer, "is_fast", False):
        raise ConversionError(
            f"{type(tokenizer).__name__} is no fast tokenizer, on top of which names are found in "
            "texts. If there is a fast one of the same ids, save it as tokenizer.json; else make a "
            "TextTokenizer with these ids of your own and give it to get_symbol_model"
        )
    try:
        if config.symbol_tokens is not None:
            return _over_tokens(tokenizer, config.symbol_tokens)
        symbol_tokenizer = _over_texts(tokenizer, config.rules)
        # With the names that rules list: a model that learns none forgets them.
        symbol_tokenizer.name_symbols()
        return symbol_tokenizer
    except ValueError as error:
        raise ConversionError(str(error)) from error


def _over_texts(tokenizer: Any, rules: Mapping[str, Any]) -> TextTokenizer:
    """Return the tokenizer with new symbols on top.

    Where it has a token for a space alone, no other token tells how a name touches what it follows:
    `<join>` would be one that the model knows nothing of.
    """
    kept = TextTokenizer.from_tokenizer(tokenizer, rules, spacing="kept")
    sample, kind = "(name, name)\nname name", next(iter(kept.symbol_classes))
    spans = [(*found.span(), kind) for found in re.finditer("name", sample)]
    ids = kept(MarkedText(sample, spans), add_special_tokens=False)["input_ids"]
    written = sample.replace("name", kept.convert_ids_to_tokens(kept.symbol_ids[0]))
    if kept.decode(ids) == written and kept.unk_token_id not in ids:
        return kept
    return TextTokenizer.from_tokenizer(tokenizer, rules)


def _over_tokens(tokenizer: Any, tokens: Tokens) -> TextTokenizer:
    """Return the tokenizer with tokens of its own as symbols."""
    tokens_of = by_class(tokens, [CLASS])
    ids = {name: [token_id(tokenizer, token) for token in some] for name, some in tokens_of.items()}
    _warn_of_spellings(tokenizer, {index for some in ids.values() for index in some})
    return TextTokenizer.over_tokens(tokenizer, ids)


def _warn_of_spellings(tokenizer: Any, symbols: set[int]) -> None:
    """Say which names are another token behind a space: then one name is no symbol, or two."""
    faults = []
    words = dict.fromkeys(tokenizer.decode([index]).strip() for index in sorted(symbols))
    for word in filter(None, words):
        alone, twice = (
            tokenizer(text, add_special_tokens=False)["input_ids"]
            for text in (word, f"{word} {word}")
        )
        spellings = [alone, twice[len(alone) :]]
        symbols_in = [symbols.intersection(ids) for ids in spellings]
        if symbols_in[0] == symbols_in[1]:  # one; or none, of a token that is a part of words
            continue
        texts = [" ".join(tokenizer.convert_ids_to_tokens(ids)) for ids in spellings]
        two = f"{texts[0]} and {texts[1]} are two symbols for one name"
        faults.append(two if all(symbols_in) else f"{texts[symbols_in.index(set())]} is no symbol")
    if faults:
        logger.warning(
            "words are other tokens behind a space than at the start of a text: %s. Take new "
            "symbols and a rule in place of symbol_tokens, so that a name is one symbol wherever "
            "it stands: symbols={'%s': {'tokens': [...], 'count': 32}}, or on the command line "
            "--symbols 32 --names 'alice|bob'",
            "; ".join(faults),
            CLASS,
        )


# -- folders --------------------------------------------------------------------------------------


def convert_host(
    source: str | Path,
    out: str | Path,
    config: SymbolConfig,
    say: Callable[[str], object] = print,
) -> RetrofitModel:
    """Convert a folder, or a model of the Hub; model, tokenizer and code are written to `out`.

    Args:
        source: an encoder-decoder or decoder of Transformers with its tokenizer; or a `learned`
            model that this has made of one.

    Raises:
        ConversionError: as `get_symbol_model`; nothing is written.
        CheckpointError: weights are missing or damaged.
        FileExistsError: `out` exists; it stays as it is.
        FileNotFoundError: there is no such model.
    """
    with new_folder(Path(out)) as unfinished:
        host_config = load_config(source)
        if not _writes_text(host_config):
            _refuse(host_config)
        has_symbols = hasattr(host_config, "symbol_classes")
        pair = host_config.is_encoder_decoder
        auto = AutoModelForSeq2SeqLM if pair else AutoModelForCausalLM
        host, tokenizer = load_checkpoint(source) if has_symbols else load_host(source, auto)
        before = table_rows(host)
        model, tokenizer = _symbol_model(host, tokenizer, config)
        added = table_rows(host) - before
        model.save_pretrained(unfinished)
        tokenizer.save_pretrained(unfinished)
        proof = SavingProof(model)
        del host, model  # so that memory never holds both
        gc.collect()
        model = proof.load(unfinished)
    say(_what_was_made(Path(out), model, tokenizer, added))
    return model


def _what_was_made(out: Path, model: RetrofitModel, tokenizer: Any, added: int) -> str:
    config, gap = model.config, _without_rule(tokenizer)
    symbols = ", ".join(
        f"{config.symbol_classes[name]:,} of class {name}" for name in tokenizer.symbol_ranges
    )
    renamed = "renaming moves columns of the logits only; " if config.answers_are_listed else ""
    rows = f"{counted(added, 'row')} added to its tables" if added else "no rows added"
    trainers = "Seq2SeqTrainer"
    if config.decodes_alone:
        trainers = "TRL's SFTTrainer (then DPO, KTO, GRPO)"
    lines = [
        f"{out}: a {config.host_config.model_type!r} model with {config.symbol_encoding!r} symbols "
        f"({symbols}), {model.num_parameters():,} parameters; {rows}",
        "proved on random inputs: without symbols, the logits are identical to the backbone's, "
        "and so are tokens of texts; "
        f"with names, {renamed}a cache changes nothing, nor does saving and loading",
        f"next: fine-tune it on texts with names: {trainers}, or hf-alpha train my-task.yaml "
        f"checkpoint={out}" + (f"; {gap}: --names, or the recipe's symbols" if gap else ""),
    ]
    return "\n".join([*lines, *filter(None, [_tools_gap(tokenizer)])])
