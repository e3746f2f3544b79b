import copy
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest
import torch
from hosts import make_host
from peft import LoraConfig, get_peft_model
from retrofits import make_retrofit
from strategies import make_model
from transformers import AutoTokenizer, GenerationConfig, TextStreamer

from hf_alpha import generation
from hf_alpha.answer.solving import solve
from hf_alpha.evaluation import alpha_covariance, evaluate
from hf_alpha.evaluation.report import OUTSIDE
from hf_alpha.generation import (
    configured_limit,
    encode_problem,
    encode_problems,
    generate_answers,
    plan_batches,
    raise_limit,
)
from hf_alpha.loading import auto_class
from hf_alpha.logic.propositional import PropositionalTask
from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer
from hf_alpha.tasks.build_tokenizer import build_tokenizer
from hf_alpha.train import config_for

PROBLEMS = ["&a!b", "| request ! grant", "a", "^ab", "=&ab|cd", "&&&a^bc|de!a"]


def make_tokenizer(num_symbols: int = 5) -> AlphaTokenizer:
    return AlphaTokenizer(
        base_tokens=PropositionalTask.base_tokens,
        symbol_classes={"proposition": num_symbols},
        grammar=PropositionalTask.grammar,
    )


@pytest.mark.parametrize("encoding", ["learned", "streams", "relational"])
def test_answers_come_in_the_order_of_the_problems(encoding):
    model, tokenizer, count = make_model(symbol_encoding=encoding), make_tokenizer(), 3
    settings = {"max_new_tokens": 6, "num_return_sequences": count, "progress": False}
    together = generate_answers(model, tokenizer, PROBLEMS, batch_size=2, **settings)
    alone = [generate_answers(model, tokenizer, [p], **settings)[0] for p in PROBLEMS]
    assert together == alone
    assert all(len(answers) == count for answers in together)

    model.train()
    batch = tokenizer([PROBLEMS[1]], return_tensors="pt")
    with torch.inference_mode():
        out = model.eval().generate(
            **batch, num_beams=3, num_return_sequences=count, max_new_tokens=6
        )
    assert tokenizer.batch_decode(out, names=batch.names) == together[1]


def test_generation_stops_at_tokens_and_not_at_strings():
    model, tokenizer = make_model(), make_tokenizer()
    batch = tokenizer(["&x!y"], return_tensors="pt")
    with pytest.raises(ValueError, match=r"Stop at tokens: eos_token_id="):
        model.generate(**batch, stop_strings=["x"], tokenizer=tokenizer)
    (whole,) = model.generate(**batch, max_new_tokens=6, eos_token_id=2).tolist()
    (cut,) = model.generate(**batch, max_new_tokens=6, eos_token_id=[2, whole[2]]).tolist()
    assert cut == whole[: whole.index(whole[2], 1) + 1]


def test_streamers_write_the_names_that_they_are_given(capsys):
    model, tokenizer = make_model(), make_tokenizer()
    batch = tokenizer(["&x!y"], return_tensors="pt")
    names_only = {"prefix_allowed_tokens_fn": lambda *_: batch["stream_ids"][0].tolist()}
    streamer = TextStreamer(tokenizer, names=batch.names)
    (ids,) = model.generate(**batch, **names_only, max_new_tokens=6, streamer=streamer)
    written = capsys.readouterr().out.strip()
    assert written == tokenizer.decode(ids, names=batch.names) and {*written} <= {*"xy "}


def test_what_is_compiled_or_has_an_adapter_gets_the_same_inputs():
    model, tokenizer = make_model(), make_tokenizer()
    settings = {"num_beams": 1, "max_new_tokens": 4}

    def answers(model):
        covariance = alpha_covariance(
            model, tokenizer, PROBLEMS[:2], generate_kwargs=settings, progress=False
        )
        return generate_answers(model, tokenizer, PROBLEMS, **settings, progress=False), covariance

    expected = answers(model)
    compiled = torch.compile(model, backend="eager")
    assert answers(compiled) == expected
    # An adapter that is new changes no answer.
    adapter = LoraConfig(task_type="SEQ_2_SEQ_LM", target_modules=["q_proj", "v_proj"])
    assert answers(get_peft_model(model, adapter)) == expected


DECODERS = {
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32},
    "llama": {
        "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 32,
    },
}  # fmt: skip
RENAMINGS = ("none", "first_occurrence")


def make_decoder(kind, tokenizer, renaming="none"):
    """A decoder that says something else to each input."""
    torch.manual_seed(0)
    if kind == "folnet":
        settings = {"model_type": kind, "is_decoder": True, "hidden_size": 16, "head_size": 4,
                    "binary_hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
                    "intermediate_size": 24, "binary_intermediate_size": 12}  # fmt: skip
    else:
        backbone = {"model_type": kind, **DECODERS[kind]}
        settings = {"model_type": "alpha-retrofit", "backbone_config": backbone}
        settings["symbol_renaming"] = renaming
    config = config_for(tokenizer, {**settings, "symbol_encoding": "learned"})
    model = auto_class(config).from_config(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return model


def prompt_of(tokenizer, problem):
    """What any decoder takes: those with symbols find them in there."""
    batch = tokenizer([problem], return_tensors="pt")
    return batch.names, {name: batch[name] for name in ("input_ids", "attention_mask")}


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize(("kind", "renaming"), [("folnet", "none"), *product(DECODERS, RENAMINGS)])
def test_a_decoder_answers_in_a_batch_as_alone(kind, renaming):
    """Shorter problems are padded on the left, and what is given back is the answer alone."""
    tokenizer, beams = make_tokenizer(), 3
    model = make_decoder(kind, tokenizer, renaming)
    search = {"num_beams": beams, "max_new_tokens": 6}
    together = generate_answers(
        model, tokenizer, PROBLEMS, num_return_sequences=beams, **search, progress=False
    )
    assert len({answer for answers in together for answer in answers}) > 2
    for problem, answers in zip(PROBLEMS, together, strict=True):
        names, batch = prompt_of(tokenizer, problem)
        with torch.inference_mode():
            out = model.generate(**batch, **search, num_return_sequences=beams, do_sample=False)
        prompt = batch["input_ids"].shape[1]
        assert (out[:, :prompt] == batch["input_ids"]).all()
        assert tokenizer.batch_decode(out[:, prompt:], names=names) == answers
    found = alpha_covariance(
        model, tokenizer, PROBLEMS[:2], max_renamings=20, generate_kwargs=search, progress=False
    )
    assert found.used == 2 and (found.mean == 1) == (renaming == "first_occurrence")


@pytest.mark.parametrize("kind", DECODERS)
def test_answers_of_a_decoder_end_where_its_positions_do(kind):
    tokenizer = make_tokenizer()
    model = make_decoder(kind, tokenizer)
    model.generation_config.eos_token_id = None  # it never ends by itself
    for room in (1, 5):
        problem = "!" * (30 - room) + "a"  # the end token comes behind it
        (answers,) = generate_answers(model, tokenizer, [problem], progress=False)
        names, batch = prompt_of(tokenizer, problem)
        out = model.generate(**batch, num_beams=3, max_new_tokens=room, do_sample=False)
        assert out.shape[1] == 32
        assert answers == tokenizer.batch_decode(out[:, -room:], names=names)
    with pytest.raises(ValueError, match=r"problem has 32 tokens, .* 32 positions, for inp"):
        generate_answers(model, tokenizer, ["!" * 30 + "a"], progress=False)
    found = list(
        solve(["!" * 30 + "a", "a"], task="propositional", model=(model, tokenizer), method="model")
    )
    assert "the model has 32 positions" in found[0].error, "others are answered all the same"
    assert found[1].error is None and found[1].answers


def test_an_answer_has_the_models_own_limit_and_one_that_is_cut_off_says_so(caplog):
    model = make_model(encoder_position="rope")
    model.generation_config.eos_token_id = None  # it never ends by itself
    model.generation_config.max_new_tokens = 5
    (answers,) = generate_answers(model, make_tokenizer(), ["& a b"], num_beams=1, progress=False)
    (longer,) = generate_answers(
        model, make_tokenizer(), ["& a b"], num_beams=1, progress=False, max_new_tokens=9
    )
    assert not answers[0].ended and longer[0].startswith(answers[0]) and longer != answers
    assert "1 of 1 answers are cut off at 5 tokens: max_new_tokens sets more" in caplog.text


@pytest.mark.parametrize(
    ("host", "own", "wanted", "limit"),
    [
        ("t5", {}, 0, 128),  # Transformers ends answers after 20 tokens
        ("t5", {}, 200, 200),
        ("t5", {"max_length": 61}, 0, 60),
        ("t5", {"max_new_tokens": 60}, 70, 70),
        ("bart", {}, 0, 63),  # it has 64 positions
        ("gpt2", {}, 0, 63),
        ("gpt2", {"max_new_tokens": 30}, 40, 40),
    ],
)
def test_limits_of_answers_are_raised(host, own, wanted, limit):
    model = make_host(host)
    model.generation_config.update(**own)
    raise_limit(model, wanted)
    assert configured_limit(model) == limit


@pytest.mark.parametrize("kind", ["alpha", "retrofit"])
def test_a_callers_limit_counts_in_place_of_the_models(kind, caplog):
    """Whichever it is, and wherever it is said; the model keeps its own, in all threads."""
    model = make_model(encoder_position="rope") if kind == "alpha" else make_retrofit("t5")
    own = model.generation_config
    own.eos_token_id, own.max_length = None, 41  # it never ends by itself
    ids = torch.tensor([[5, 6]])

    def length(*args, **kwargs):
        return model.generate(ids, *args, **kwargs).shape[1]

    assert length() == length(own) == length(generation_config=copy.deepcopy(own)) == 41
    assert length(max_new_tokens=6) == length(own, max_new_tokens=6) == 7
    assert length(max_length=9) == 9
    blank = GenerationConfig(max_new_tokens=6)
    assert length(blank) == length(generation_config=blank) == 7
    own.max_length, own.max_new_tokens = None, 12
    assert (length(), length(max_length=9), length(max_new_tokens=20)) == (13, 9, 21)
    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(lambda n: length(max_new_tokens=n), range(3, 9))) == [*range(4, 10)]
    assert (own.max_length, own.max_new_tokens) == (None, 12)
    assert "seem to have been set" not in caplog.text


def test_dropout_is_off_while_a_model_in_training_answers():
    model, tokenizer = make_model(dropout=0.5), make_tokenizer()
    settings = {"max_new_tokens": 6, "progress": False}
    answers = generate_answers(model.eval(), tokenizer, PROBLEMS, **settings)
    assert generate_answers(model.train(), tokenizer, PROBLEMS, **settings) == answers
    assert model.training


def test_more_names_than_symbols_is_outside_the_vocabulary_and_nonsense_an_error():
    model, tokenizer = make_model(symbol_classes={"proposition": 2}), make_tokenizer(2)
    settings = {"max_new_tokens": 4, "num_beams": 1, "progress": False}
    answers = generate_answers(model.train(), tokenizer, ["a", "&&abc", "& x y"], **settings)
    assert answers[1] is None and answers[0] is not None and answers[2] is not None
    assert model.training, "the mode that the caller chose comes back"
    assert generate_answers(model, tokenizer, [], **settings) == []
    with pytest.raises(FormulaError, match="problem 1: "):
        generate_answers(model, tokenizer, ["a", "&a"], **settings)
    with pytest.raises(ValueError, match="`problems` is the string '&ab': give a list of strings"):
        generate_answers(model, tokenizer, "&ab", **settings)
    with pytest.raises(ValueError, match="3 beams cannot give 4 answers"):
        generate_answers(model, tokenizer, ["a"], num_return_sequences=4)


@pytest.mark.parametrize("remote", [False, True])
def test_the_copy_of_the_code_beside_a_model_works_like_the_package(tmp_path, remote):
    model = make_model(symbol_classes={"proposition": 3}, symbol_encoding="learned")
    model.save_pretrained(tmp_path)
    build_tokenizer("propositional", 3).save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path, trust_remote_code=remote)
    assert isinstance(tokenizer, AlphaTokenizer) is not remote
    settings = {"num_beams": 1, "max_new_tokens": 4}
    ours, problems = make_tokenizer(3), ["&a!b", "& x | y & z w", "| request ! grant"]
    answers = generate_answers(model, tokenizer, problems, **settings, progress=False)
    assert answers == generate_answers(model, ours, problems, **settings, progress=False)
    assert answers[1] is None
    rows = [{"problem": problem} for problem in problems]
    report = evaluate(model, tokenizer, "propositional", rows, **settings, progress=False)
    assert [r.outcome == OUTSIDE for r in report.records] == [False, True, False]
    found = alpha_covariance(model, tokenizer, problems, generate_kwargs=settings, progress=False)
    assert found.skipped == {1: "outside the vocabulary"} and found.used == 2
    solutions = list(
        solve(
            [*problems, "&a"],
            task="propositional",
            model=(model, tokenizer),
            method="model",
            num_beams=1,
        )
    )
    assert [s.error is None for s in solutions] == [True, False, True, False]
    assert "more names than the 3 symbols" in str(solutions[1].error)
    for call in (generate_answers, alpha_covariance):
        with pytest.raises(FormulaError, match="operand is missing"):
            call(model, tokenizer, ["a", "&a"], progress=False)


def test_outside_a_vocabulary_is_what_more_symbols_would_bring_inside():
    classes = {"variable": 2, "function": 1}
    tokenizer = AlphaTokenizer(
        base_tokens=PropositionalTask.base_tokens,
        symbol_classes=classes,
        name_patterns={"variable": "[x-z]", "function": "[f-h]"},
        grammar=PropositionalTask.grammar,
    )
    assert encode_problem(tokenizer, "&&xyf") is not None
    assert encode_problem(tokenizer, "&&xyz") is None and encode_problem(tokenizer, "&fg") is None
    assert tokenizer.symbol_classes == classes
    for text in ("&xq", "&&xyq", "& x", ""):
        with pytest.raises(FormulaError):
            encode_problem(tokenizer, text)


def test_batches_hold_problems_alike_the_most_expensive_first(monkeypatch):
    encodings = encode_problems(make_tokenizer(), [*PROBLEMS, "&&&&&abcdef"])
    batches = plan_batches(encodings, 4)
    assert sorted(i for batch in batches for i in batch) == list(range(len(PROBLEMS)))
    costs = [(len(encodings[i]["stream_ids"]), len(encodings[i]["input_ids"]))
             for batch in batches for i in batch]  # fmt: skip
    assert costs == sorted(costs, reverse=True)
    monkeypatch.setattr(generation, "BATCH_TOKENS", 18)
    sizes = [{"stream_ids": [], "input_ids": [0] * size} for size in (9, 8, 2, 1, 90)]
    assert plan_batches(sizes, 4) == [[4], [0, 1], [2, 3]]
    with pytest.raises(ValueError, match="batch_size is 0: give 1 or more"):
        plan_batches(encodings, 0)
    with pytest.raises(ValueError, match="problem 1 is no string but a NoneType"):
        encode_problems(make_tokenizer(), ["&ab", None])
