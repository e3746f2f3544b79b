import itertools
import json
import math
import random
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import make_model
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
)

from hf_alpha.build_tokenizer import build_tokenizer
from hf_alpha.evaluation import AlphaCovariance, alpha_covariance
from hf_alpha.evaluation.covariance import _Plan, symbol_ids
from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer

PROBLEMS = ["&a!b", "| request ! grant", "0", "^=ab|c!d", "&b!a"]
GREEDY = {"num_beams": 1, "max_new_tokens": 6}
BEAMS = {"num_beams": 3, "max_new_tokens": 6}


def word_tokenizer(end: bool = False) -> PreTrainedTokenizerFast:
    words = ["<pad>", "<s>", "</s>", "<unk>", "x", "y", "z", "u", "and", "not", "="]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if end:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="$A </s>", special_tokens=[("</s>", 2)]
        )
    special = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


class Rule(torch.nn.Module):
    """Answers by a rule: ids of the input -> ids of the output."""

    def __init__(self, rule, is_encoder_decoder: bool = True):
        super().__init__()
        self.rule = rule
        self.device = torch.device("cpu")
        self.config = SimpleNamespace(
            is_encoder_decoder=is_encoder_decoder, eos_token_id=2, pad_token_id=0
        )

    def forward(self, input_ids, attention_mask=None):
        raise AssertionError("only generate is called")

    def generate(self, input_ids, attention_mask=None, **settings):
        assert not self.training and attention_mask.all()
        answers = [[*self.rule(row), 2] for row in input_ids.tolist()]
        width = max(map(len, answers))
        output = torch.tensor([a + [0] * (width - len(a)) for a in answers])
        start = torch.ones_like(input_ids[:, :1]) if self.config.is_encoder_decoder else input_ids
        return torch.cat((start, output), dim=1)


def score(rule, problems, symbols=("x", "y", "z"), causal=False, **settings) -> AlphaCovariance:
    return alpha_covariance(
        Rule(rule, not causal), word_tokenizer(), problems, symbols, progress=False, **settings
    )


@pytest.mark.parametrize("causal", [False, True])
def test_hand_computed_values(causal):
    X = 4  # x, y, z are 4, 5, 6
    # Copies the input: U has one element.
    assert score(lambda ids: ids, ["x and y"], causal=causal).mean == 1
    # No symbol in the answer: neither does it depend on them.
    assert score(lambda ids: [9, 10, 9], ["x and y"], causal=causal).mean == 1
    # Always says x. "x": the three renamings x, y, z. Undone, x is x, y, z: |U| = |P| = 3.
    assert score(lambda ids: [X], ["x"], causal=causal).mean == 0
    # Says whether x occurs. "x": yes, no, no. 1 - (2 - 1) / (3 - 1).
    assert score(lambda ids: [9 if X in ids else 10], ["x"], causal=causal).mean == 0.5
    # "x and y" has 6 renamings; answers the smaller of its symbols: U = {x, y}. 1 - 1 / 5.
    smaller = score(lambda ids: [min(i for i in ids if i < 7)], ["x and y"], causal=causal)
    assert smaller.mean == 1 - 1 / 5
    assert smaller.by_num_symbols == {2: 0.8}
    # Says the symbol that is absent: the image of z, whatever x and y became.
    absent = score(lambda ids: [min({4, 5, 6} - set(ids))], ["x and y"], causal=causal)
    assert absent.mean == 1


def test_foreign_symbols_are_undone_by_one_fixed_bijection():
    # "x" renamed to x, y, z; the model says the next symbol: y, z, x. The bijections are the
    # identity, (x y) and (x z). Undone: y, z, z.
    found = score(lambda ids: [4 + (ids[0] - 3) % 3], ["x"])
    assert found.samples[0].renamings == found.samples[0].possible == 3
    assert found.mean == 1 - 1 / 2


def test_the_mean_is_over_samples_with_two_renamings():
    found = score(lambda ids: [4], ["x", "and", "x and", "y z x"])
    assert found.skipped == {1: "has a single renaming"}
    assert [s.index for s in found.samples] == [0, 2, 3]
    # "y z x": six renamings, three things that x can stand for.
    assert [s.score for s in found.samples] == [0, 0, 1 - 2 / 5]
    assert found.mean == pytest.approx(0.2) and found.used == 3 and found.sampled == 0
    assert found.by_num_symbols == {1: 0.0, 3: 0.6}
    nothing = score(lambda ids: [4], ["and"])
    assert nothing.mean is None and nothing.used == 0
    for result in (found, nothing):
        assert AlphaCovariance.from_dict(json.loads(json.dumps(result.to_dict()))) == result


def test_a_sample_of_renamings_is_seeded_and_stated():
    problems, rule = ["x y z u"], lambda ids: [4]
    symbols = ["x", "y", "z", "u"]
    capped = score(rule, problems, symbols, max_renamings=7)
    sample = capped.samples[0]
    assert (sample.renamings, sample.possible, capped.sampled) == (7, 24, 1)
    assert capped == score(rule, problems, symbols, max_renamings=7)
    seen = set()
    for seed in range(3):
        rows = []
        score(lambda ids, rows=rows: rows.append(tuple(ids)) or [9], problems, symbols,
              max_renamings=7, seed=seed)  # fmt: skip
        assert len(set(rows)) == 7 and (4, 5, 6, 7) in rows
        seen.add(frozenset(rows))
    assert len(seen) == 3
    assert score(rule, problems, symbols, max_renamings=None).samples[0].renamings == 24


@given(st.lists(st.integers(1, 4), min_size=1, max_size=2), st.integers(0, 2**32))
def test_renamings_are_all_different_bijections_within_their_class(sizes, seed):
    rng = random.Random(seed)
    classes = [[10 * c + i for i in range(size)] for c, size in enumerate(sizes, 1)]
    ids = [i for ids in classes for i in rng.sample(ids, rng.randint(0, len(ids)))] + [0]
    rng.shuffle(ids)
    plan = _Plan.of({"input_ids": ids}, classes, None, rng)
    tables = [plan.renaming(number) for number in plan.numbers]
    counts = [len(set(ids) & set(members)) for members in classes]
    expected = math.prod(
        len(list(itertools.permutations(members, k)))
        for members, k in zip(classes, counts, strict=True)
    )
    assert len(tables) == plan.possible == expected
    assert all(key == value for key, value in tables[0].items()), "the identity comes first"
    assert len({tuple(t.get(i, i) for i in ids) for t in tables}) == expected
    for table, members in itertools.product(tables, classes):
        assert sorted(table.get(i, i) for i in members) == members


@pytest.mark.parametrize("settings", [GREEDY, BEAMS])
@pytest.mark.parametrize("classes", [{"proposition": 5}, {"variable": 3, "function": 3}])
def test_streams_score_1_and_a_random_vanilla_model_does_not(settings, classes):
    tokenizer = AlphaTokenizer(
        base_tokens=build_tokenizer("propositional").base_tokens,
        symbol_classes=classes,
        name_patterns={"function": "[d-f]"} if len(classes) > 1 else None,
        grammar=build_tokenizer("propositional").grammar,
    )
    problems, options = (
        [*PROBLEMS, "&a&b&c&d&eg", "&&fed"],
        {"max_renamings": 12, "progress": False},
    )
    streams = alpha_covariance(
        make_model(symbol_classes=classes), tokenizer, problems, generate_kwargs=settings, **options
    )
    assert streams.skipped == {2: "has a single renaming", 5: "outside the vocabulary"}
    assert streams.mean == 1.0
    assert set(streams.by_num_symbols.values()) == {1.0}
    learned = alpha_covariance(
        make_model(1, symbol_classes=classes, symbol_encoding="learned"),
        tokenizer, problems, generate_kwargs=settings, **options,
    )  # fmt: skip
    assert [s.possible for s in learned.samples] == [s.possible for s in streams.samples]
    assert learned.mean < 1
    if len(classes) == 1:
        assert [s.possible for s in learned.samples][:3] == [20, 20, 120]


def random_bart() -> BartForConditionalGeneration:
    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=11, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, init_std=1.0,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        forced_eos_token_id=None, max_position_embeddings=32,
    )  # fmt: skip
    return BartForConditionalGeneration(config)


def random_gpt2() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=11, n_embd=16, n_layer=1, n_head=2, n_positions=32, initializer_range=1.0,
        bos_token_id=1, eos_token_id=2, pad_token_id=None,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


@pytest.mark.parametrize("settings", [GREEDY, BEAMS])
@pytest.mark.parametrize("make", [random_bart, random_gpt2])
def test_any_transformers_model(make, settings):
    """Against renaming, generating one by one and undoing written out."""
    model, tokenizer = make().eval(), word_tokenizer(end=make is random_bart)
    problems, names = ["x and y =", "not z", "x and not y = z"], ["x", "y", "z"]
    found = alpha_covariance(
        model, tokenizer, problems, names, generate_kwargs=settings, batch_size=4, progress=False
    )
    scores = []
    for problem in problems:
        used = [word for word in dict.fromkeys(problem.split()) if word in names]
        results = set()
        for image in itertools.permutations(names, len(used)):
            table = dict(zip(used, image, strict=True))
            for name in set(image) - set(used):
                start = name
                while start in image:
                    start = used[image.index(start)]
                table[name] = start
            text = " ".join(table.get(word, word) for word in problem.split())
            batch = tokenizer(text, return_tensors="pt", return_token_type_ids=False)
            output = model.generate(**batch, do_sample=False, pad_token_id=0, **settings)[0]
            start = 1 if model.config.is_encoder_decoder else batch["input_ids"].shape[1]
            words = tokenizer.convert_ids_to_tokens(output[start:].tolist())
            words = list(itertools.takewhile(lambda word: word != "</s>", words))
            undo = {new: old for old, new in table.items()}
            results.add(tuple(undo.get(word, word) for word in words))
        scores.append(1 - (len(results) - 1) / (math.perm(3, len(used)) - 1))
    assert [sample.score for sample in found.samples] == scores
    assert found.mean < 1


def test_symbols_have_to_be_single_tokens():
    tokenizer = word_tokenizer()
    assert symbol_ids(tokenizer, {"names": ["x", "y"], "more": ["z"]}) == [[4, 5], [6]]
    with pytest.raises(ValueError, match="symbol 'x y' is not a single token of the vocabulary"):
        symbol_ids(tokenizer, ["x y"])
    with pytest.raises(ValueError, match="symbol 'w' is not a single token"):
        symbol_ids(tokenizer, ["w"])
    with pytest.raises(ValueError, match="'x' and 'x' are the same token"):
        symbol_ids(tokenizer, ["x", "y", "x"])
    with pytest.raises(ValueError, match="give `symbols`"):
        symbol_ids(tokenizer)
    with pytest.raises(ValueError, match="give a list of tokens"):
        symbol_ids(tokenizer, "xyz")
    with pytest.raises(ValueError, match="max_renamings must be at least 2"):
        score(lambda ids: ids, ["x"], max_renamings=1)
    with pytest.raises(ValueError, match="leave out do_sample"):
        score(lambda ids: ids, ["x"], generate_kwargs={"do_sample": True})
