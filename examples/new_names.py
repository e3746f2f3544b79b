"""You write a compiler pass, and its output needs names that its input lacks.

A decoder of `model_cards/` brings terms into A-normal form: each step gets a name. Training had 2
to 4 names; which names a term has makes no difference, and new ones never clash with them.
"""

from pathlib import Path

from transformers import AutoModelForCausalLM, AutoTokenizer

import hf_alpha

folder = Path(__file__).resolve().parents[1] / "model_cards" / "anf-relational"
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder)

terms = [
    "( a | b ) & ( c ^ a )",
    "( price | tax ) & ( rate ^ price )",
    "( t1 | t2 ) & ( t3 ^ t1 )",  # t1, t2 and t3 are taken
]
answers = hf_alpha.generate_answers(model, tokenizer, terms, progress=False)
for term, (answer,) in zip(terms, answers, strict=True):
    print(term, "->", answer, sep="\n  ")
