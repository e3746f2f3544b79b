"""What a model of Transformers gives with a symbol layer around it, against the model by itself."""

import copy
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
import torch
from hosts import BERT_SIZES, HOSTS, VOCABULARY, make_host
from peft import LoraConfig, get_peft_model
from promises import Batch, logits
from retrofits import BOTH_SIDES, Seen, make_retrofit, random_batch
from torch import nn
from torch.nn import functional as F
from transformers import (
    BertConfig,
    EncoderDecoderConfig,
    EncoderDecoderModel,
    GPT2Config,
    PreTrainedModel,
)
from transformers.cache_utils import DynamicCache
from transformers.modeling_outputs import BaseModelOutput

from hf_alpha.modeling.modeling_retrofit import RetrofitForConditionalGeneration, layers_of

SETTINGS: dict[str, dict[str, Any]] = {
    "streams": {},
    "dual_part": {"symbol_encoding": "dual_part"},
    "canonical": {"symbol_encoding": "learned", "symbol_renaming": "first_occurrence"},
    "random": {"symbol_encoding": "learned", "symbol_renaming": "random"},
}
RELATIONAL = {"symbol_encoding": "relational"}
SIZES = [(7, 3), (6, 2), (5, 0)]
CLASSES = "middle, two classes"
hosts = pytest.mark.parametrize("name", HOSTS)


def prompt(batch: Batch) -> Batch:
    return {name: value for name, value in batch.items() if name != "decoder_input_ids"}


def without_symbols(model: RetrofitForConditionalGeneration, seed: int = 1) -> Batch:
    return random_batch(seed, model.config, [(7, 0), (5, 0)])


# -- without symbols ------------------------------------------------------------------------------


def only(host: PreTrainedModel, columns: list[int]) -> PreTrainedModel:
    """A host whose other tokens cannot be chosen, and have no share in scores."""
    others = sorted(set(range(VOCABULARY + 5)) - set(columns))

    def hide(module, args, output):
        output.logits[..., others] = -1e4
        return output

    host.register_forward_hook(hide)
    return host


SCALED = [("bart", True), ("m2m_100", True), ("marian", True), ("pegasus", True)]


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize(("name", "scaled"), [*((name, False) for name in HOSTS), *SCALED])
def test_without_symbols_it_is_its_backbone(name, scaled):
    """Logits of base tokens, and what is generated; some hosts can scale embeddings."""
    asked = {"scale_embedding": True} if scaled else {}
    host = make_host(name, 0, vocab_size=VOCABULARY + 5, **asked)
    for settings in SETTINGS.values():
        model = make_retrofit(copy.deepcopy(host), place=CLASSES, **settings)
        base, batch = model.config.vocabulary.base_ids, without_symbols(model)
        assert logits(model, batch)[..., base].equal(logits(host, batch)[..., base])
        if model.config.needs_stream_ids:  # others may answer with any symbol
            alone = only(copy.deepcopy(host), base)
            for search in ({}, {"num_beams": 3, "num_return_sequences": 2}):
                search |= {"max_new_tokens": 6}
                search |= {"decoder_start_token_id": model.config.decoder_start_token_id}
                expected = alone.generate(**prompt(batch), **search)
                assert model.generate(**prompt(batch), **search).equal(expected)


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_new_blocks_change_no_logit(name, tmp_path):
    """Made with the model, or missing in a folder: both are silent until they are trained."""
    plain = make_retrofit(name)
    plain.save_pretrained(tmp_path)
    batch = random_batch(1, plain.config, SIZES)
    expected = logits(plain, batch)
    config = copy.deepcopy(plain.config)
    config.aggregated_attention = ["encoder", "decoder"]
    made = RetrofitForConditionalGeneration(config, copy.deepcopy(plain.backbone)).eval()
    loaded, report = RetrofitForConditionalGeneration.from_pretrained(
        tmp_path, **BOTH_SIDES, output_loading_info=True
    )
    assert all("aggregated" in key for key in report["missing_keys"])
    for model in (made, loaded):
        assert len(model.encoder_aggregated) == len(model.decoder_aggregated) == 2
        assert logits(model, batch).equal(expected)
        answers = model.generate(**prompt(batch), num_beams=3, max_new_tokens=5)
        assert answers.equal(plain.generate(**prompt(batch), num_beams=3, max_new_tokens=5))


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_how_the_backbone_attends_is_said_where_the_model_is_loaded(name, tmp_path):
    model = make_retrofit(name, **BOTH_SIDES)
    model.save_pretrained(tmp_path)
    eager = RetrofitForConditionalGeneration.from_pretrained(tmp_path, attn_implementation="eager")
    for stack in (eager, eager.backbone, eager.get_decoder()):
        assert stack.config._attn_implementation == "eager"
    batch = random_batch(1, model.config, SIZES)
    asked = {"output_attentions": True, "output_hidden_states": True}
    with torch.no_grad():
        found = eager.eval()(**batch, **asked)
    torch.testing.assert_close(found.logits, logits(model, batch), atol=1e-5, rtol=1e-5)
    assert len(found.cross_attentions) == 2 and len(found.encoder_hidden_states) == 3
    assert found.cross_attentions[0].shape[:2] == (len(SIZES), 2 * 3)  # heads of all streams


def test_what_a_backbone_by_itself_would_not_save_is_saved(tmp_path):
    """Marian saves no positions, which are sinusoids; a host may have others."""
    host = make_host("marian", vocab_size=VOCABULARY + 5)
    for stack in (host.get_encoder(), host.get_decoder()):
        stack.embed_positions.weight.data.normal_()
    model = make_retrofit(host)
    model.save_pretrained(tmp_path)
    loaded = RetrofitForConditionalGeneration.from_pretrained(tmp_path).eval()
    batch = random_batch(1, model.config, SIZES)
    assert logits(loaded, batch).equal(logits(model, batch))


# -- written out ----------------------------------------------------------------------------------


@torch.no_grad()
def stream_by_stream(model: RetrofitForConditionalGeneration, batch: Batch) -> torch.Tensor:
    """Algorithms 1 and 5 over the backbone: each sample, each symbol, one run for itself."""
    config = model.config
    columns = []
    for row, sample in enumerate(batch["input_ids"].tolist()):
        real = batch["attention_mask"][row].bool()
        sample = [token for token, seen in zip(sample, real, strict=True) if seen]
        symbols = list(dict.fromkeys(i for i in sample if config.vocabulary.class_of(i)))

        def view(ids: list[int], own: int | None) -> torch.Tensor:
            """Each symbol as the actual or the placeholder row of its class."""
            kind = config.vocabulary.class_of
            shown = [i if not kind(i) else config.class_rows[kind(i)][int(i != own)] for i in ids]
            return torch.tensor([shown])

        answer = batch["decoder_input_ids"][row].tolist()
        found = []
        for own in symbols or [None]:
            ids = view(sample, own)
            ask = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
            found.append(model.backbone(**ask, decoder_input_ids=view(answer, own)).logits[0])
        joined = torch.full((len(answer), config.vocab_size), -1e4)
        base = config.vocabulary.base_ids
        joined[:, base] = (sum(found) / len(found))[:, base]
        for own, scores in zip(symbols, found, strict=False):
            joined[:, own] = scores[:, config.class_rows[config.vocabulary.class_of(own)][0]]
        columns.append(joined)
    return torch.stack(columns)


# The mean is taken before the head, which is not linear there: see below.
SQUASHED = ("t5gemma",)


@hosts
def test_streams_are_the_backbone_on_each_view_of_a_sample(name):
    for place in (CLASSES, "end"):
        model = make_retrofit(name, 2, place=place)
        batch = random_batch(3, model.config, SIZES)
        found, expected = logits(model, batch), stream_by_stream(model, batch)
        if name in SQUASHED:
            own = expected > -1e3
            own[..., model.config.vocabulary.base_ids] = False
            own[-1] = True  # one stream
            found, expected = found[own], expected[own]
        torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-4)


def test_a_head_that_squashes_its_logits_sees_the_mean_over_streams():
    """Base tokens: cap * tanh(mean / cap), in place of the mean of cap * tanh(logits / cap)."""
    model = make_retrofit("t5gemma", 2, place=CLASSES)
    batch = random_batch(3, model.config, SIZES)
    base = model.config.vocabulary.base_ids
    decoder = model.backbone.config.decoder
    cap, decoder.final_logit_softcapping = decoder.final_logit_softcapping, None
    before = stream_by_stream(model, batch)[..., base]
    decoder.final_logit_softcapping = cap
    expected = cap * (before / cap).tanh()
    torch.testing.assert_close(logits(model, batch)[..., base], expected, atol=1e-5, rtol=1e-4)
    assert not torch.allclose(stream_by_stream(model, batch)[..., base], expected, atol=1e-3)


@torch.no_grad()
def symbol_by_symbol(model: RetrofitForConditionalGeneration, batch: Batch) -> torch.Tensor:
    """`dual_part` over a backbone whose tables have a row for each symbol, written there."""
    config, host = model.config, copy.deepcopy(model.backbone)
    host.config.tie_word_embeddings = False
    parts = model.symbol_draws(model.training)
    stacks = [host.get_encoder(), host.get_decoder()]
    tables = [*{stack.get_input_embeddings() for stack in stacks}, host.get_output_embeddings()]
    for table in tables:  # nothing is shared from here on
        table.weight = torch.nn.Parameter(table.weight.clone())
    symbols = [i for i in range(config.vocab_size) if config.vocabulary.class_of(i)]
    for table, scale in zip(tables, [*[config.random_scale[0]] * (len(tables) - 1),
                                     config.random_scale[1]], strict=True):  # fmt: skip
        old = table.weight.data.clone()
        for part, symbol in zip(parts, symbols, strict=True):
            (row,) = config.class_rows[config.vocabulary.class_of(symbol)]
            factor = getattr(table, "embed_scale", 1.0)  # which such a table multiplies by
            table.weight.data[symbol] = old[row] + scale * F.pad(part, (16 - 10, 0)) / factor
    bias = getattr(host, "final_logits_bias", None)
    if bias is not None:
        for symbol in symbols:
            (row,) = config.class_rows[config.vocabulary.class_of(symbol)]
            bias[0, symbol] = model.backbone.final_logits_bias[0, row]
    return logits(host, batch)[..., : config.vocab_size]


ROWS = ["t5", "t5_v1_1", "bart", "bart_untied", "marian", "t5gemma", "led"]  # LED pads its input


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", ROWS)
def test_random_parts_are_rows_of_the_backbone(name, training):
    """In training, those that are drawn for it, in the input and before the head."""
    for place in (CLASSES, "end"):
        model = make_retrofit(name, 2, place=place, symbol_encoding="dual_part", random_dim=10)
        assert not model.symbol_draws(True).equal(model.symbol_draws(False))
        batch = random_batch(3, model.config, SIZES)
        expected = symbol_by_symbol(model.train(training), batch)
        torch.testing.assert_close(logits(model, batch), expected, atol=2e-5, rtol=1e-4)


# -- generation -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings", [{}, BOTH_SIDES, RELATIONAL, SETTINGS["dual_part"], SETTINGS["canonical"]]
)
def test_beams_that_change_places_take_their_cache_along(settings):
    """All streams of a row; answers are made of names and of a few tokens."""
    model = make_retrofit("t5", 3, **settings)
    batch = prompt(random_batch(5, model.config, [(9, 3), (9, 3), (7, 2)]))
    some = [[*row.tolist(), 3, 5, 7] for row in batch["input_ids"]]
    search = {"num_beams": 4, "num_return_sequences": 4, "max_new_tokens": 8, "eos_token_id": None}
    search["prefix_allowed_tokens_fn"] = lambda row, _: some[row]
    search |= {"return_dict_in_generate": True, "output_scores": True}
    one = model.generate(**batch, **search, use_cache=False)
    two = model.generate(**batch, **search)
    beams = one.beam_indices
    assert (beams != beams[:, :1]).any(), "no beam changes its place"
    torch.testing.assert_close(two.sequences_scores, one.sequences_scores, atol=1e-5, rtol=1e-5)
    assert two.sequences.equal(one.sequences)


def test_one_sample_whose_decoder_wants_contiguous_states():
    """GPT-2's layers do: flattened streams of a single row are not so by themselves."""
    states = BertConfig(**{**BERT_SIZES, "vocab_size": VOCABULARY + 5})
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 64}
    ids = {"bos_token_id": 1, "eos_token_id": 2, "vocab_size": VOCABULARY + 5}
    reader = GPT2Config(**sizes, **ids, add_cross_attention=True)
    pair = EncoderDecoderConfig.from_encoder_decoder_configs(states, reader)
    pair.pad_token_id, pair.eos_token_id, pair.decoder_start_token_id = 0, 2, 1
    model = make_retrofit(EncoderDecoderModel(pair).eval())
    batch = random_batch(3, model.config, [(12, 3)])
    assert model.config.vocabulary.is_symbol(batch["input_ids"]).sum() > 3
    twice = {name: value.repeat(2, 1) for name, value in batch.items()}
    torch.testing.assert_close(logits(model, batch), logits(model, twice)[:1])


# -- hooks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [BOTH_SIDES, {"symbol_encoding": "dual_part"}])
@pytest.mark.parametrize("name", ["t5", "bart"])
def test_a_copy_is_on_its_own(name, settings):
    model = make_retrofit(name, **settings)
    batch = random_batch(1, model.config, SIZES)
    expected = logits(model, batch)
    other = copy.deepcopy(model)
    hooks = [
        hook
        for module in other.modules()
        for hook in (*module._forward_hooks.values(), *module._forward_pre_hooks.values())
    ]
    assert len(hooks) == (5 if settings is BOTH_SIDES else 3)
    assert all(hook.model is other for hook in hooks)
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
    assert logits(other, batch).equal(expected)
    with torch.no_grad():
        for name_, weight in other.named_parameters():
            if "aggregated" in name_ and weight.dim() > 1:
                weight.mul_(2.0)
    if settings is BOTH_SIDES:
        assert not torch.allclose(logits(other, batch), expected, atol=1e-3)


def test_a_copy_of_a_part_belongs_to_the_same_model():
    """Adapters copy the head: not with all of the model."""
    model = make_retrofit("t5")
    (hook,) = copy.deepcopy(model.get_output_embeddings())._forward_pre_hooks.values()
    assert hook.model is model


def test_models_around_one_backbone_do_not_disturb_each_other():
    first = make_retrofit("t5", **BOTH_SIDES)
    host = make_host("t5", 0, vocab_size=VOCABULARY + 5)
    batch, plain = random_batch(1, first.config, SIZES), without_symbols(first)
    expected = logits(first, batch)
    second = make_retrofit(first.backbone, 1, symbol_encoding="dual_part")
    alone = make_retrofit(host, 1, symbol_encoding="dual_part")
    assert logits(first, batch).equal(expected)
    assert logits(second, batch).equal(logits(alone, batch))
    assert logits(first.backbone, plain).equal(logits(host, plain))
    answers = first.backbone.generate(**prompt(plain), num_beams=2)
    assert answers.equal(host.generate(**prompt(plain), num_beams=2))


@pytest.mark.parametrize(
    "settings", [BOTH_SIDES, {"symbol_encoding": "dual_part"}, {"symbol_encoding": "relational"}]
)
def test_threads_do_not_disturb_each_other(settings):
    """Each waits in its call until all have begun theirs."""
    model = make_retrofit("t5", **settings)
    batches = [random_batch(seed, model.config, [(5 + seed, 4)] * 2) for seed in range(3)]
    expected = [logits(model, batch) for batch in batches]
    meeting = Barrier(len(batches))

    def wait(*_: Any) -> None:
        meeting.wait(30)

    for module in model.backbone.modules():
        if module._forward_hooks or module._forward_pre_hooks:
            module.register_forward_pre_hook(wait)
    with ThreadPoolExecutor(len(batches)) as pool:
        found = list(pool.map(lambda batch: logits(model, batch), batches))
    for one, two in zip(found, expected, strict=True):
        assert one.equal(two)


# -- what it costs --------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, SETTINGS["canonical"]])
def test_the_backbone_has_a_row_for_each_name_of_the_batch(settings):
    """Not of the vocabulary, whose size no table of names has either."""
    model = make_retrofit("t5", **settings)
    if not settings:
        model.extend_symbols({"name": 100})
    rows: list[int] = []
    for stack in (model.backbone.get_encoder(), model.backbone.get_decoder()):
        stack.register_forward_hook(lambda stack, args, out: rows.append(out[0].shape[0]))
    for sizes in ([(9, 2), (9, 5), (8, 1)], [(6, 0), (6, 0)], [(9, 3)]):
        batch = random_batch(4, model.config, sizes)
        symbol = model.config.vocabulary.is_symbol(batch["input_ids"])
        names = [
            len(ids[seen].unique()) for ids, seen in zip(batch["input_ids"], symbol, strict=True)
        ]
        rows.clear()
        with Seen(torch.int64) as seen:
            logits(model, batch)
        streams = 1 if settings else max(1, *names)
        assert rows == [len(sizes) * streams] * 2
        large = [shape for shape in seen.shapes if len(shape) > 1 and shape[-1] >= VOCABULARY]
        assert not large


# -- what other code does -------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["streams", "relational", "dual_part"])
def test_states_of_the_encoder_alone_are_enough_with_the_input(encoding):
    model = make_retrofit("bart", symbol_encoding=encoding)
    batch = random_batch(1, model.config, SIZES)
    with torch.no_grad():
        encoded = model.encode(batch["input_ids"], batch["attention_mask"])
    states = BaseModelOutput(last_hidden_state=encoded.last_hidden_state)
    given = {**batch, "encoder_outputs": states, "stream_ids": encoded.streams.ids}
    assert logits(model, given).equal(logits(model, batch))


def test_attention_without_scores_is_refused():
    model = make_retrofit("bart", **BOTH_SIDES)
    model.config._attn_implementation_internal = "flash_attention_2"
    with pytest.raises(ValueError, match="use attn_implementation='sdpa'"):
        logits(model, random_batch(1, model.config, SIZES))


def test_arguments_that_do_not_fit_are_refused():
    model = make_retrofit("bart")
    batch = random_batch(1, model.config, SIZES)
    with pytest.raises(TypeError, match="'atention_mask', which the backbone does not take"):
        model(**batch, atention_mask=batch["attention_mask"])
    with pytest.raises(ValueError, match="is a DynamicCache: give an EncoderDecoderCache"):
        model(**batch, past_key_values=DynamicCache())


def test_squashed_logits_are_the_same_by_both_ways_through_the_head():
    """An adapter on the head, with no effect yet, lets it see each stream."""
    model = make_retrofit("t5gemma")
    batch = random_batch(1, model.config, SIZES)
    expected = logits(model, batch)
    adapted = get_peft_model(model, LoraConfig(target_modules=["out_proj"]))
    with torch.no_grad():
        found = adapted(**batch).logits
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_a_table_that_is_not_called_is_an_error():
    model = make_retrofit("t5", symbol_encoding="dual_part")
    table = model.backbone.encoder.embed_tokens
    forward = model.backbone.encoder.forward

    def embedding_by_itself(input_ids: torch.Tensor, **kwargs: Any) -> Any:
        return forward(
            inputs_embeds=torch.nn.functional.embedding(input_ids, table.weight), **kwargs
        )

    model.backbone.encoder.forward = embedding_by_itself
    with pytest.raises(RuntimeError, match="did not call its table of tokens"):
        logits(model, random_batch(1, model.config, SIZES))


def test_reentrant_checkpointing_of_layers_that_share_a_trained_mask_is_refused():
    model = make_retrofit("bart", symbol_encoding="relational").train()
    for settings in ({"use_reentrant": True}, {"preserve_rng_state": True}):
        with pytest.raises(ValueError, match="give use_reentrant=False"):
            model.activation_checkpointing_enable(settings)
    for settings in (None, {"use_reentrant": False}):
        model.activation_checkpointing_enable(settings)
        batch = random_batch(1, model.config, SIZES)
        model(**batch, labels=batch["decoder_input_ids"]).loss.backward()
    make_retrofit("bart").activation_checkpointing_enable({"use_reentrant": True})


class Stack(nn.Module):
    def __init__(self, **lists: nn.ModuleList):
        super().__init__()
        for name, members in lists.items():
            setattr(self, name, members)


def linears(count: int) -> nn.ModuleList:
    return nn.ModuleList(nn.Linear(2, 2) for _ in range(count))


def test_a_stack_without_such_a_list_or_with_two():
    inside = Stack(sublayers=linears(2))
    mixed = nn.ModuleList([nn.Linear(2, 2), inside])  # the list inside is a part of one layer
    assert layers_of(Stack(blocks=nn.ModuleList([inside]))) == [inside]
    assert len(layers_of(Stack(below=Stack(blocks=linears(3)), other=mixed))) == 3
    with pytest.raises(ValueError, match=r"layers of Stack: .* found none"):
        layers_of(Stack(blocks=mixed, empty=nn.ModuleList()))
    with pytest.raises(ValueError, match=r"layers of Stack: .* found first and below\.second"):
        layers_of(Stack(first=linears(2), below=Stack(second=linears(1))))
