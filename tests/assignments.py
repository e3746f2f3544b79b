"""Problems with answers, and a small model whose random parts can be drawn anew."""

from strategies import make_model

from hf_alpha.tasks.build_tokenizer import build_tokenizer

FAST = {"batch_size": 8, "progress": False}
ROWS = [
    {"problem": problem, "answer": answer}
    for problem, answer in (
        ("& a b", "a 1 b 1"), ("| a ! c", "a 1"), ("! b", "b 0"), ("^ a d", "a 1 d 0"),
        ("= c e", "c 0 e 0"), ("& ! a c", "a 0 c 1"), ("& & a b & c d", "a 1 b 1 c 1 d 1"),
    )
]  # fmt: skip


def make_drawn_model(**settings):
    shared = {"symbol_encoding": "dual_part", "random_dim": 8, "adacos": False, "logit_scale": 5.0}
    return make_model(**shared, **settings)


def make_tokenizer():
    return build_tokenizer("propositional", 5)
