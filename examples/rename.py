"""You have a model for code, and users call their variables as they like.

A small T5 of `model_cards/` inlines a variable of a Python function. Here it reads one function
twice, with other names, which were not in its training. The answers differ in names alone.
"""

from pathlib import Path

from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

import hf_alpha

folder = Path(__file__).resolve().parents[1] / "model_cards" / "inline-t5"
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForSeq2SeqLM.from_pretrained(folder)

question = """inline {t}
def {f}({a}, {b}):
    {t} = {a} * {b}
    {s} = {t} - {a}
    if {t} / {b} < {a}:
        return {s}
    return {s} + {t} * {b}"""
one = question.format(t="t", f="f", a="a", b="b", s="s")
two = question.format(t="total", f="price", a="count", b="each", s="rest")
for (answer,) in hf_alpha.generate_answers(model, tokenizer, [one, two], progress=False):
    print(answer, end="\n\n")

# How often is the answer the same, whatever the names? 1.0 is always.
print(hf_alpha.alpha_covariance(model, tokenizer, [one, two], max_renamings=12, progress=False))
