"""Models with symbols: their names are those that a prompt marks, so renaming changes nothing."""

import pytest
from small_tokenizers import byte_level
from transformers import GPT2Config, GPT2LMHeadModel, T5Config, T5ForConditionalGeneration

from hf_alpha.convert import SymbolConfig, get_symbol_model
from hf_alpha.evaluation.instructed import KeptReplies, LocalModel
from hf_alpha.names_benchmark.models import SymbolModel
from hf_alpha.names_benchmark.questions import marked, slot, unnamed
from hf_alpha.names_benchmark.run import Plan, ask_all

PLAN = Plan(("kinship", "sql", "tools"), questions=3, difficulty=1, namings=2, examples=0)


def make_host(kind):
    tokenizer = byte_level()
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.eos_token_id}
    if kind == "gpt2":
        config = GPT2Config(n_embd=16, n_layer=1, n_head=2, n_positions=512, bos_token_id=None,
                            vocab_size=len(tokenizer), **ends)  # fmt: skip
        return GPT2LMHeadModel(config).eval(), tokenizer
    config = T5Config(d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, dropout_rate=0.0,
                      vocab_size=len(tokenizer), decoder_start_token_id=0, **ends)  # fmt: skip
    return T5ForConditionalGeneration(config).eval(), tokenizer


def make(kind, **counts):
    host, tokenizer = make_host(kind)
    rules = {name: {"column": "names", "count": count} for name, count in counts.items()}
    return get_symbol_model(host, tokenizer, SymbolConfig("relational", symbols=rules))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gpt2", "t5"])
def test_renaming_changes_nothing(kind):
    """Letter by letter, names put back, of a model with random weights; not so of its host."""
    items = list(PLAN.items())
    symbols = SymbolModel(*make(kind, name=20), {"max_new_tokens": 6})
    host = LocalModel(*make_host(kind), {"max_new_tokens": 6})
    differing = []
    for model in (symbols, host):
        assert model.plain and not model.sampled
        answers: dict[tuple[str, int], set[str]] = {}
        replies = KeptReplies(model, None)
        for item in items:
            prompt = item.prompt(True)
            (reply,) = replies.ask([prompt])
            place = item.suite.name, item.number
            answers.setdefault(place, set()).add(unnamed(reply.text, item.names))
        differing.append(sum(len(texts) > 1 for texts in answers.values()))
    assert differing[0] == 0
    assert differing[1] > 0 or kind == "t5", "this T5 says the same to all"
    assert len(ask_all("it", symbols, items, batch_size=3)) == len(items)


def test_classes_of_its_own_and_too_many_names():
    model = SymbolModel(*make("gpt2", person=2, table=1))
    people = marked(f"{slot(0)} {slot(1)}", ("Al", "Bo"), ("person", "column"))
    one_table = marked(f"{slot(0)} {slot(1)}", ("Al", "Bo"), ("person", "table"))
    assert model.length(people)[1] == model.length(one_table)[1] == 2
    many = marked("".join(map(slot, range(3))), ("a1", "b1", "c1"), ("person",) * 3)
    assert model.length(many) == (0, 0)
    replies = {}
    model.ask([many], lambda prompt, reply: replies.update({prompt: reply}))
    assert replies[many].text == ""


def test_settings_that_are_not_its_own_are_refused():
    with pytest.raises(ValueError, match="num_beams is no setting of a model with symbols"):
        SymbolModel(*make("gpt2", name=3), {"num_beams": 3})
