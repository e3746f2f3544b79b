import itertools
import json
import math
import random
import re
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_tokenizers import NAMES, SUBWORD, byte_level, word_level
from strategies import make_model
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    GenerationMixin,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedModel,
    T5Config,
    T5ForConditionalGeneration,
)
from transformers.modeling_outputs import CausalLMOutput

from hf_alpha.evaluation import AlphaCovariance, alpha_covariance, names
from hf_alpha.evaluation.names import Renamings
from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer
from hf_alpha.modeling.tokenization_canonical import CanonicalTokenizer
from hf_alpha.tasks.build_tokenizer import build_tokenizer

PROBLEMS = ["&a!b", "| request ! grant", "0", "^=ab|c!d", "&b!a"]
GREEDY = {"num_beams": 1, "max_new_tokens": 6}
BEAMS = {"num_beams": 3, "max_new_tokens": 6}


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
        Rule(rule, not causal), word_level(), problems, symbols, progress=False, **settings
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
    occurs = score(lambda ids: [9 if X in ids else 10], ["x"], causal=causal)
    assert (occurs.mean, occurs.constant, occurs.nameless) == (0.5, 0, 1)
    # "x and y" has 6 renamings; answers the smaller of its symbols: U = {x, y}. 1 - 1 / 5.
    smaller = score(lambda ids: [min(i for i in ids if i < 7)], ["x and y"], causal=causal)
    assert smaller.mean == 1 - 1 / 5
    assert smaller.by_num_symbols == {2: 0.8}
    # Says the symbol that is absent: the image of z, whatever x and y became.
    absent = score(lambda ids: [min({4, 5, 6} - set(ids))], ["x and y"], causal=causal)
    assert absent.mean == 1
    # Says the next symbol: y, z, x. The bijections are the identity, (x y) and (x z): y, z, z.
    following = score(lambda ids: [4 + (ids[0] - 3) % 3], ["x"], causal=causal)
    assert following.samples[0].renamings == following.samples[0].possible == 3
    assert following.mean == 1 - 1 / 2


def test_a_mask_is_given_even_if_the_tokenizer_makes_none():
    tokenizer = word_level()
    tokenizer.model_input_names = ["input_ids"]
    model = Rule(lambda ids: ids, is_encoder_decoder=False)  # looks at its mask
    assert alpha_covariance(model, tokenizer, ["x and y"], ["x", "y"], progress=False).mean == 1


def test_an_answer_ends_at_the_token_that_is_asked_for():
    found = score(lambda ids: [9, *ids], ["x"], generate_kwargs={"eos_token_id": 9})
    assert (found.constant, found.nameless) == (1, 1)
    assert score(lambda ids: [9, *ids], ["x"]).constant == 0


def test_the_mean_is_over_samples_with_two_renamings():
    found = score(lambda ids: [4], ["x", "and", "x and", "y z x"])
    assert found.skipped == {1: "has no such name"}
    assert str(found).split(";")[0].endswith("3 problems, 1 skipped (has no such name: 1)")
    assert [s.index for s in found.samples] == [0, 2, 3]
    # "y z x": six renamings, three things that x can stand for.
    assert [s.score for s in found.samples] == [0, 0, 1 - 2 / 5]
    assert found.mean == pytest.approx(0.2) and found.used == 3 and found.sampled == 0
    assert found.by_num_symbols == {1: 0.0, 3: 0.6}
    nothing = score(lambda ids: [4], ["and"])
    assert nothing.mean is None and nothing.used == 0
    for result in (found, nothing):
        assert AlphaCovariance.from_dict(json.loads(json.dumps(result.to_dict()))) == result


@given(st.lists(st.integers(1, 4), min_size=1, max_size=2), st.integers(0, 2**32))
def test_renamings_are_all_different_bijections_within_their_class(sizes, seed):
    rng = random.Random(seed)
    classes = [[10 * c + i for i in range(size)] for c, size in enumerate(sizes, 1)]
    ids = [i for ids in classes for i in rng.sample(ids, rng.randint(0, len(ids)))] + [0]
    rng.shuffle(ids)
    plan = Renamings.of(tuple(ids), classes, None, rng)
    tables = [plan.renaming(number) for number in plan.numbers]
    counts = [len(set(ids) & set(members)) for members in classes]
    expected = math.prod(
        len(list(itertools.permutations(members, k)))
        for members, k in zip(classes, counts, strict=True)
    )
    assert len(tables) == plan.possible == expected
    assert all(key == value for key, value in tables[0].items()), "the identity comes first"
    assert Renamings.of(tuple(ids), classes, plan.possible, rng) == plan
    assert len({tuple(t.get(i, i) for i in ids) for t in tables}) == expected
    for table, members in itertools.product(tables, classes):
        assert sorted(table.get(i, i) for i in members) == members


def test_any_renaming_may_be_one_of_the_sample():
    drawn = [Renamings.of((1,), [[1, 2, 3]], 2, random.Random(seed)).numbers for seed in range(30)]
    assert {*map(tuple, drawn)} == {(0, 1), (0, 2)}


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
    assert streams.skipped == {2: "has no such name", 5: "outside the vocabulary"}
    assert streams.mean == 1.0
    assert set(streams.by_num_symbols.values()) == {1.0}
    learned = alpha_covariance(
        make_model(3, symbol_classes=classes, symbol_encoding="learned"),
        tokenizer, problems, generate_kwargs=settings, **options,
    )  # fmt: skip
    assert [s.possible for s in learned.samples] == [s.possible for s in streams.samples]
    assert learned.mean < 1
    if len(classes) == 1:
        assert [s.possible for s in learned.samples][:3] == [20, 20, 120]


def random_bart(tokenizer, positions: int = 64) -> BartForConditionalGeneration:
    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=len(tokenizer), d_model=16, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=16,
        decoder_ffn_dim=16, init_std=1.0, pad_token_id=0, bos_token_id=1,
        eos_token_id=tokenizer.eos_token_id, decoder_start_token_id=1, forced_eos_token_id=None,
        max_position_embeddings=positions,
    )  # fmt: skip
    return BartForConditionalGeneration(config)


def random_t5(tokenizer) -> T5ForConditionalGeneration:
    """As a user makes one: nothing says how answers start, and `n_positions` is no limit."""
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=len(tokenizer), d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2,
        initializer_factor=9.0, pad_token_id=0, eos_token_id=tokenizer.eos_token_id, n_positions=2,
    )  # fmt: skip
    return T5ForConditionalGeneration(config)


def random_gpt2(tokenizer, positions: int = 64) -> GPT2LMHeadModel:
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_embd=16, n_layer=1, n_head=2, n_positions=positions,
        initializer_range=1.0, bos_token_id=None, eos_token_id=tokenizer.eos_token_id,
        pad_token_id=None,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


MODELS = [random_bart, random_t5, random_gpt2]
TEXTS = ["alice sees bob", "not bartholomew", "bob and not alice sees bob"]


def rename_text(text: str, table: dict[str, str]) -> str:
    return re.sub(r"\w+", lambda match: table.get(match[0], match[0]), text)


def scores_one_by_one(model, tokenizer, problems, names, settings) -> list[float]:
    """Renaming text, generating, decoding and undoing written out, without batches."""
    scores, is_t5 = [], model.config.model_type == "t5"
    end = tokenizer.eos_token_id
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
            text = rename_text(problem, table)
            batch = tokenizer(text, return_tensors="pt", return_token_type_ids=False)
            if model.config.is_encoder_decoder:
                start, skip = {"decoder_start_token_id": 0 if is_t5 else 1}, 1
            else:
                start, skip = {}, batch["input_ids"].shape[1]
            output = model.generate(**batch, do_sample=False, pad_token_id=0, **start, **settings)
            ids = list(itertools.takewhile(lambda i: i != end, output[0, skip:].tolist()))
            special = {0, 1, 2} if tokenizer.pad_token else set()
            answer = tokenizer.decode([i for i in ids if i not in special]).strip()
            results.add(rename_text(answer, {new: old for old, new in table.items()}))
        scores.append(1 - (len(results) - 1) / (math.perm(len(names), len(used)) - 1))
    return scores


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("settings", [GREEDY, BEAMS])
@pytest.mark.parametrize("make_tokenizer", [word_level, *SUBWORD])
def test_any_transformers_model_and_tokenizer(make, settings, make_tokenizer):
    words = {"words": ("alice", "bob", "bartholomew", "sees")}
    tokenizer = make_tokenizer(
        end=make is not random_gpt2, **(words if make_tokenizer is word_level else {})
    )
    model = make(tokenizer).eval()
    found, alone = (
        alpha_covariance(
            model, tokenizer, TEXTS, NAMES, generate_kwargs=settings, batch_size=size,
            progress=False,
        )
        for size in (64, 1)
    )  # fmt: skip
    expected = scores_one_by_one(model, tokenizer, TEXTS, NAMES, settings)
    assert [sample.score for sample in found.samples] == expected
    assert [sample.possible for sample in found.samples] == [6, 3, 6]
    assert found == alone
    assert found.mean < 1


class Speaker(PreTrainedModel, GenerationMixin):
    """A decoder that says a fixed answer, or, without one, what stands before the last token."""

    config_class = GPT2Config

    def __init__(self, tokenizer, answer: str | None = None):
        super().__init__(GPT2Config(
            vocab_size=len(tokenizer), n_positions=512, eos_token_id=tokenizer.eos_token_id,
            bos_token_id=None, use_cache=False,
        ))  # fmt: skip
        self.mark = tokenizer(":")["input_ids"][-1]
        self.answer = None if answer is None else tokenizer(answer)["input_ids"]
        self.nothing = torch.nn.Parameter(torch.zeros(()))

    def forward(self, input_ids, attention_mask=None, **kwargs) -> CausalLMOutput:
        logits = torch.zeros(*input_ids.shape, self.config.vocab_size)
        for row, ids in enumerate(input_ids.tolist()):
            width = ids.index(self.mark) + 1
            says = [*(self.answer or ids[: width - 1]), self.config.eos_token_id]
            logits[row, -1, says[len(ids) - width]] = 9.0
        return CausalLMOutput(logits=logits)


@pytest.mark.parametrize("make_tokenizer", SUBWORD)
def test_models_of_which_the_score_is_known(make_tokenizer):
    tokenizer = make_tokenizer()
    texts = ["alice sees bob:", "bartholomew sees bartholomew and not alice:", "bob:"]

    def measure(answer=None, problems=texts, names=NAMES, **settings):
        model = Speaker(tokenizer, answer)
        return alpha_covariance(
            model, tokenizer, problems, names, None, generate_kwargs=settings, progress=False
        )

    copied = measure(num_beams=1)
    assert copied.mean == 1.0 and (copied.constant, copied.nameless) == (0, 0)
    assert [(s.raw, s.named) for s in copied.samples] == [(6, 6), (6, 6), (3, 3)]
    assert str(copied) == "alpha-covariance 1.0000 over 3 problems"
    # Cut off in the middle of a name, an answer is no longer the renaming of the others.
    assert measure(num_beams=1, max_new_tokens=3).mean < 1

    # Says "alice" whatever it is asked. "bob:" becomes alice, bob, bartholomew; undone by
    # (alice bob), the identity and (bob bartholomew), that is bob, alice and alice.
    stubborn = measure("alice", ["bob:"], num_beams=1)
    assert stubborn.mean == 1 - 1 / 2
    assert (stubborn.samples[0].raw, stubborn.samples[0].named) == (1, 3)
    # With more names fewer renamings move it, and it comes close to 1: so it is shown.
    more = [*NAMES, *"defghijk"]
    stubborn = measure("alice", ["bob:"], more, num_beams=1)
    assert stubborn.mean == 1 - 1 / 10
    assert (stubborn.constant, stubborn.nameless) == (1, 0)
    # No name in the answer: 1 whatever it means.
    nameless = measure("not and not", num_beams=1)
    assert nameless.mean == 1 and (nameless.constant, nameless.nameless) == (3, 3)
    assert str(nameless) == (
        "alpha-covariance 1.0000 over 3 problems; no name in any answer: 3 of 3 problems"
    )
    for result in (copied, stubborn, nameless):
        assert AlphaCovariance.from_dict(json.loads(json.dumps(result.to_dict()))) == result


@pytest.mark.parametrize("canonical", [False, True])
def test_rules_say_which_names_change_places(canonical):
    tokenizer, rules = byte_level(), {"ring": {"rule": "smiles"}}
    if canonical:  # what comes back has other names, and the same bindings
        tokenizer = CanonicalTokenizer.from_tokenizer(tokenizer, rules)
    for answer in (None, "C1CC1", "C1CC"):  # rings of an answer are its own
        model, problems = Speaker(tokenizer, answer), iter(["C1CC1C2CC2:"])
        settings = {"generate_kwargs": {"num_beams": 1}, "progress": False}
        (sample,) = alpha_covariance(model, tokenizer, problems, rules, 9, **settings).samples
        assert (sample.distinct, sample.renamings) == (1, 9)


@pytest.mark.parametrize("make", [random_bart, random_gpt2])
def test_answers_end_where_the_positions_do(make):
    """32 positions, and 128 new tokens are wanted by default."""
    tokenizer = word_level()
    model = make(tokenizer, positions=32)
    seen = []
    generate = model.generate

    def watch(**kwargs):
        seen.append((kwargs["input_ids"].shape[1], kwargs["max_new_tokens"]))
        return generate(**kwargs)

    model.generate = watch
    short, fits = "x and y", " ".join(["x"] * (32 if make is random_bart else 31))
    found = alpha_covariance(model, tokenizer, [short, fits], ["x", "y"], progress=False)
    assert found.used == 2
    assert seen == ([(32, 31), (3, 31)] if make is random_bart else [(31, 1), (3, 29)])
    message = f"problem 1, '{fits} x': its longest renaming has .* the model has 32 positions"
    with pytest.raises(ValueError, match=message):
        alpha_covariance(model, tokenizer, [short, f"{fits} x"], ["x", "y"], progress=False)


@pytest.mark.parametrize("chunk", [1, 2, names.CHUNK])
def test_all_renamings_of_a_problem_have_the_same_room(chunk, monkeypatch):
    """However many tokens the names have: else the answers would be cut at different places.

    And however many renamings there are: their names are looked at chunk by chunk.
    """
    monkeypatch.setattr(names, "CHUNK", chunk)
    tokenizer = byte_level()
    model, rooms = random_gpt2(tokenizer, positions=32), set()
    generate = model.generate

    def watch(**kwargs):
        rooms.add((kwargs["input_ids"].shape[1], kwargs["max_new_tokens"]))
        return generate(**kwargs)

    model.generate = watch
    classes = {"people": ["bartholomew", "bob", "alice"], "letters": ["x", "y"]}
    problems = ["alice sees", "x sees"]
    measured = alpha_covariance(model, tokenizer, problems, classes, progress=False)
    assert [sample.renamings for sample in measured.samples] == [3, 2]
    longest = len(tokenizer("bartholomew sees")["input_ids"])
    assert rooms == {(2, 32 - longest), (longest, 32 - longest), (2, 30)}


def test_problems_and_names_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="symbol 'w' does not come back"):
        score(lambda ids: ids, ["x"], symbols=["x", "w"])
    with pytest.raises(ValueError, match=r"problem 1, 'x y.': the tokenizer turns 'x y.' into"):
        score(lambda ids: ids, ["x", "x y."])
    with pytest.raises(ValueError, match="`problems` is the string 'x y': give a list"):
        score(lambda ids: ids, "x y")
    with pytest.raises(ValueError, match="problem 1 is no string but a dict"):
        score(lambda ids: ids, ["x", {"content": "x"}])
    with pytest.raises(ValueError, match="give `symbols`"):
        score(lambda ids: ids, ["x"], symbols=None)
    with pytest.raises(ValueError, match="max_renamings must be at least 2"):
        score(lambda ids: ids, ["x"], max_renamings=1)
    with pytest.raises(ValueError, match="leave out do_sample"):
        score(lambda ids: ids, ["x"], generate_kwargs={"do_sample": True})
    with pytest.raises(ValueError, match="give max_new_tokens"):
        score(lambda ids: ids, ["x"], generate_kwargs={"max_length": 20})
