"""You have facts about people, and ask how two of them are related.

A small FOLNet of `model_cards/` learned this from stories of 2 to 8 facts. It takes longer
ones, mostly right, and people are names: what they are called has no influence.
"""

from pathlib import Path

from transformers import AutoModelForSequenceClassification, AutoTokenizer

import hf_alpha  # noqa: F401  registers FOLNet with the Auto classes

folder = Path(__file__).resolve().parents[1] / "model_cards" / "kinship-folnet"
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForSequenceClassification.from_pretrained(folder).eval()

short = "the son of {a} is {b} . the daughter of {b} is {c} ."
long = (
    "the sister of {a} is {b} . the son of {b} is {c} . the father of {c} is {d} . "
    "the mother of {d} is {e} . the daughter of {e} is {f} ."
)
people = {
    (short, "{a} {c}"): [("Ann", "Bob", "Cleo"), ("Zoë", "Yusuf", "X")],
    (long, "{d} {f}"): [
        ("Ann", "Bea", "Carl", "Dan", "Eve", "Fay"),
        ("N", "M", "Jürgen", "O", "K2", "Q"),
    ],
}
for texts, casts in people.items():
    for names in casts:
        told, asked = (text.format(**dict(zip("abcdef", names, strict=False))) for text in texts)
        scores = model(**tokenizer(told, asked, return_tensors="pt")).logits
        one, two = asked.split()
        print(f"{two} is the {model.config.id2label[int(scores.argmax(-1))]} of {one} <- {told}")
