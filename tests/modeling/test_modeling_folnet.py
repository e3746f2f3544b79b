"""Whole stacks of FOLNet against tests/reference/folnet.py, and what masks and caches promise."""

import pytest
import torch
from reference.folnet import FolnetReference

from hf_alpha.modeling.configuration_folnet import FolnetConfig
from hf_alpha.modeling.modeling_folnet import (
    FolnetForCausalLM,
    FolnetForConditionalGeneration,
    FolnetForPreTraining,
    FolnetForSequenceClassification,
    FolnetModel,
)
from hf_alpha.modeling.relations import START

CLOSE = {"atol": 1e-9, "rtol": 1e-9}
WORDS, PAD = 17, 0
SIZES = {
    "hidden_size": 14, "binary_hidden_size": 9, "num_hidden_layers": 2,
    "num_attention_heads": 3, "head_size": 4, "intermediate_size": 11, "max_distance": 3,
    "binary_intermediate_size": 10, "vocab_size": WORDS, "pad_token_id": PAD, "bos_token_id": 1,
    "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip
OPTIONS = [
    {},
    {"trans_channels": "binary", "cjoin_premise": "size"},
    {"boolean_cascade": False, "implication": "softplus", "transposed_boolean": False},
    {"position_scheme": "shaw", "implication": "relu", "hidden_act": "relu"},
    {"position_scheme": "absolute", "cls_atoms": False},
    {"position_scheme": "none", "unary_operators": "mc", "binary_operators": "t"},
]  # fmt: skip
IN_DECODERS = {"cjoin_premise": "heads"}
SIDES = pytest.mark.parametrize("left", [False, True], ids=["right", "left"])
LENGTHS = [6, 1, 4]
NAMES = {"vocab_size": WORDS + 4, "symbol_classes": {"person": 4}, "symbol_encoding": "relational"}
RELATED = [*OPTIONS[:4], {"unary_operators": "cj", "binary_operators": "ta"}]
ALSO_RELATIONAL = pytest.mark.parametrize(
    "options",
    [*OPTIONS, *({**options, **NAMES} for options in RELATED)],
    ids=[*map(str, range(len(OPTIONS))), *(f"relational {n}" for n in range(len(RELATED)))],
)
DRAWN = (1, LENGTHS), (3, [3, 5, 1])
"""Seeds and lengths of sources, and of targets."""
ENCODER, DECODER, BOTH = {}, {"is_decoder": True}, {"is_encoder_decoder": True, "decoder_layers": 3}


def make_model(cls, seed=0, dtype=torch.float64, **settings):
    """Weights of the size that keeps numbers near 1."""
    model = cls(FolnetConfig(**{**SIZES, **settings})).to(dtype).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            size = parameter.shape[-1] ** -0.5
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * size)
    return model


def draw(seed, lengths, most=WORDS, least=3):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(least, most, (n,), generator=generator) for n in lengths]


def padded(rows, left):
    """Rows of ids as a batch, and its mask."""
    side = "left" if left else "right"
    stack = torch.nn.utils.rnn.pad_sequence
    return tuple(
        stack(values, batch_first=True, padding_value=PAD, padding_side=side)
        for values in (rows, [torch.ones_like(row) for row in rows])
    )


def assert_same(model, pairs):
    """Each (ours, the reference's) is the same, and so are the gradients of all weights."""
    generator = torch.Generator().manual_seed(1)
    ours = theirs = torch.zeros((), dtype=torch.float64)
    for one, two in pairs:
        torch.testing.assert_close(one, two, **CLOSE)
        weight = torch.randn(one.shape, generator=generator, dtype=one.dtype)
        ours, theirs = ours + (one * weight).sum(), theirs + (two * weight).sum()
    weights = dict(model.named_parameters())
    gradients = [
        torch.autograd.grad(loss, list(weights.values()), allow_unused=True,
                            materialize_grads=True)
        for loss in (ours, theirs)
    ]  # fmt: skip
    for name, one, two in zip(weights, *gradients, strict=True):
        torch.testing.assert_close(one, two, **CLOSE, msg=name)


def draw_names(seed, lengths):
    """Words and, two of three times, one of two names: some of them stand in several places."""
    return [torch.where(ids % 3 > 0, WORDS + ids % 2, ids) for ids in draw(seed, lengths)]


def reference_of(model):
    return FolnetReference(model.config, dict(model.named_parameters()))


@SIDES
@ALSO_RELATIONAL
def test_encoders_equal_the_reference(options, left):
    """Where the same name stands is a binary atom, and adds to the scores of join."""
    relational = "symbol_encoding" in options
    kind = FolnetForSequenceClassification if relational else FolnetForPreTraining
    model = make_model(kind, **options)
    texts = (draw_names if relational else draw)(1, LENGTHS)
    types = draw(2, LENGTHS, most=2, least=0)
    ids, mask = padded(texts, left)
    given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": padded(types, left)[0]}
    atoms, logits = model.folnet(**given), model(**given).logits
    reference, pairs = reference_of(model), []
    for n, (text, kinds) in enumerate(zip(texts, types, strict=True)):
        real = mask[n] > 0
        unary, binary = reference.encode(text, kinds)
        pairs += [
            (atoms.last_hidden_state[n, real], unary),
            (atoms.binary_hidden_state[n, real][:, real], binary),
            (atoms.pooler_output[n], reference.pooled(unary)),
        ]
        if not relational:
            pairs.append((logits[n, real], reference.masked_lm(unary)))
    assert_same(model, pairs)


@SIDES
@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_decoders_equal_the_reference(options, left):
    """Causal ones, and those whose first tokens see each other."""
    model = make_model(FolnetForCausalLM, **{**options, **IN_DECODERS, **DECODER})
    texts, prefixes = draw(1, LENGTHS), [3, 0, 4]
    ids, mask = padded(texts, left)
    inside = [(torch.arange(n) < k).long() for n, k in zip(LENGTHS, prefixes, strict=True)]
    reference, pairs = reference_of(model), []
    for prefix_mask in (None, padded(inside, left)[0]):
        given = {"input_ids": ids, "attention_mask": mask, "prefix_mask": prefix_mask}
        atoms, logits = model.folnet(**given), model(**given).logits
        for n, text in enumerate(texts):
            real = mask[n] > 0
            prefix = 0 if prefix_mask is None else prefixes[n]
            unary, binary = reference.decode_alone(text, prefix)
            pairs += [
                (atoms.last_hidden_state[n, real], unary),
                (atoms.binary_hidden_state[n, real][:, real], binary),
                (logits[n, real], reference.next_tokens(unary)),
            ]
    assert_same(model, pairs)


@SIDES
@ALSO_RELATIONAL
def test_encoder_decoders_equal_the_reference(options, left):
    """With three relations: within the target, across to the source, and written before."""
    relational = "symbol_encoding" in options
    model = make_model(FolnetForConditionalGeneration, **{**options, **IN_DECODERS, **BOTH})
    sources, targets = ((draw_names if relational else draw)(n, m) for n, m in DRAWN)
    if relational:  # each has all names
        sources = [torch.cat((torch.arange(4) + WORDS, ids)) for ids in sources]
    types = draw(2, map(len, sources), most=2, least=0)
    ids, mask = padded(sources, left)
    decoder_ids, decoder_mask = padded(targets, left=False)
    given = {
        "input_ids": ids, "attention_mask": mask, "token_type_ids": padded(types, left)[0],
        "decoder_input_ids": decoder_ids, "decoder_attention_mask": decoder_mask,
    }  # fmt: skip
    atoms, logits = model.folnet(**given), model(**given).logits
    reference, pairs = reference_of(model), []
    for n, target in enumerate(targets):
        real = decoder_mask[n] > 0
        unary, binary = reference.decode(sources[n], target, types[n])
        columns = torch.cat((mask[n] > 0, real))
        pairs += [
            (atoms.last_hidden_state[n, real], unary),
            (atoms.binary_hidden_state[n, real][:, columns], binary),
        ]
        if not relational:
            pairs.append((logits[n, real], reference.next_tokens(unary)))
    assert_same(model, pairs)


def test_half_of_the_heads_begin_with_the_same_name():
    """A name's own heads look e^2 times as much at it as at another; gates are all there is new."""
    torch.manual_seed(0)
    sizes = {**SIZES, "num_attention_heads": 4, "initializer_range": 1e-3}
    for form, stack, relations in ((ENCODER, "encoder", 1), (BOTH, "decoder", 3)):
        config = FolnetConfig(**{**sizes, **form, **NAMES})
        model = FolnetModel(config).eval()
        ids = torch.tensor([[3, WORDS, 4, WORDS + 1, 5, WORDS]])
        given = {"decoder_input_ids": ids} if form else {}
        outputs = model(ids, **given, output_attentions=True)
        kernels = outputs.decoder_attentions if form else outputs.attentions
        for kernel in kernels:  # of the last token, the name at 1
            same, other = kernel[0, :, -1, [1, 5]], kernel[0, :, -1, [0, 2, 3, 4]]
            ratios = (same.mean(-1) / other.mean(-1)).log()
            torch.testing.assert_close(
                ratios, torch.tensor([START, START, 0.0, 0.0]), atol=0.05, rtol=0.0
            )
        new = {name for name, _ in model.named_parameters() if "gates" in name}
        assert {name for name in new if stack in name} == {
            f"{stack}.layers.{n}.join.gates.{part}"
            for n in range(len(kernels))
            for part in ("weight", "bias")
        }
        gates = model.get_parameter(f"{stack}.layers.0.join.gates.weight")
        assert gates.shape == (4 * relations, config.hidden_size)


def logits_of(model, ids, **given):
    name = "decoder_input_ids" if model.config.is_encoder_decoder else "input_ids"
    with torch.no_grad():
        return model(**{name: ids}, **given).logits


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_later_tokens_tell_nothing(options):
    """Earlier logits are identical, whatever follows; beyond a prefix likewise."""
    options = {**options, **IN_DECODERS}
    causal = make_model(FolnetForCausalLM, dtype=torch.float32, **options, **DECODER)
    both = make_model(FolnetForConditionalGeneration, dtype=torch.float32, **options, **BOTH)
    ids, source = torch.stack(draw(1, [7, 7])), torch.stack(draw(2, [5, 5]))
    prefix = {"prefix_mask": torch.tensor([[1, 1, 1]]).expand(2, -1)}
    for model, given, first in (
        (causal, {}, 1), (causal, prefix, 3), (both, {"input_ids": source}, 1),
    ):  # fmt: skip
        expected = logits_of(model, ids, **given)
        for place in range(first, ids.shape[1]):
            other = ids.clone()
            other[:, place:] = (other[:, place:] + 1) % WORDS
            found = logits_of(model, other, **given)
            assert torch.equal(found[:, :place], expected[:, :place])
            assert not torch.equal(found[:, place], expected[:, place])
    within = ids.clone()
    within[:, 2] = (within[:, 2] + 1) % WORDS
    before = [logits_of(causal, x, **prefix)[:, 0] for x in (ids, within)]
    assert not torch.equal(*before)


@pytest.mark.parametrize(
    "name", ["token_type_ids", "decoder_input_ids", "encoder_outputs", "attention_maks"]
)
def test_a_decoder_refuses_what_it_does_not_know(name):
    ids = torch.stack(draw(1, [3, 3]))
    for kind in (FolnetForCausalLM, FolnetModel):
        model = make_model(kind, **DECODER)
        with pytest.raises(ValueError, match=f"a decoder alone takes no {name}: look at the spell"):
            model(ids, **{name: torch.zeros_like(ids)})
        model(ids, **{name: None})


def generators(options):
    options = {**options, **IN_DECODERS}
    yield make_model(FolnetForCausalLM, **options, **DECODER)
    yield make_model(FolnetForCausalLM, **options, **DECODER, prefix_lm=True)
    yield make_model(FolnetForConditionalGeneration, **options, **BOTH)


@pytest.mark.quick_cases(2)  # in families, caches are tested with other options
@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_generation_with_a_cache_is_generation_without(options):
    """One token after the other gives the logits of all at once: greedy and beam search."""
    for model in generators(options):
        ids, mask = padded(draw(1, LENGTHS), left=not model.config.is_encoder_decoder)
        for beams in (1, 3):
            ways = [
                model.generate(
                    ids, attention_mask=mask, num_beams=beams, max_new_tokens=5, do_sample=False,
                    min_new_tokens=5, use_cache=use_cache, output_logits=True,
                    return_dict_in_generate=True,
                )
                for use_cache in (True, False)
            ]  # fmt: skip
            assert torch.equal(ways[0].sequences, ways[1].sequences)
            for one, two in zip(ways[0].logits, ways[1].logits, strict=True):
                torch.testing.assert_close(one, two, **CLOSE)


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_a_cropped_cache_goes_on_with_other_tokens(options):
    for model in generators(options):
        given = {}
        if model.config.is_encoder_decoder:
            given = {"input_ids": torch.stack(draw(1, [4, 4]))}
        text, other = (torch.stack(draw(seed, [5, 5])) for seed in (2, 3))
        name = "decoder_input_ids" if given else "input_ids"
        with torch.no_grad():
            cache = model(**given, **{name: text}, use_cache=True).past_key_values
            cache.crop(-2)
            found = model(**given, **{name: other}, past_key_values=cache).logits
        expected = logits_of(model, torch.cat((text[:, :3], other), dim=1), **given)
        torch.testing.assert_close(found, expected[:, 3:], **CLOSE)
