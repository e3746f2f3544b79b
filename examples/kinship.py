"""You have facts about people, and ask how two of them are related.

A small FOLNet of `model_cards/` learned this from stories of 2 to 4 facts. It composes relations
further than that, often right, and people are names: what they are called has no influence.
"""

from pathlib import Path

from transformers import AutoModelForSequenceClassification, AutoTokenizer

import hf_alpha  # noqa: F401  registers FOLNet with the Auto classes

folder = Path(__file__).resolve().parents[1] / "model_cards" / "kinship-folnet"
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForSequenceClassification.from_pretrained(folder).eval()

two = "the son of {a} is {b} . the daughter of {b} is {c} . who is {c} , a woman , to {a} ?"
five = (
    "the sister of {a} is {b} . the son of {b} is {c} . the father of {c} is {d} . "
    "the mother of {d} is {e} . the daughter of {e} is {f} . who is {f} , a woman , to {d} ?"
)
people = {
    two: [("Ann", "Bob", "Cleo"), ("Zoë", "Yusuf", "X")],
    five: [("Ann", "Bea", "Carl", "Dan", "Eve", "Fay"), ("N", "M", "Jürgen", "O", "K2", "Q")],
}
for story, casts in people.items():
    for names in casts:
        text = story.format(**dict(zip("abcdef", names, strict=False)))
        scores = model(**tokenizer(text, return_tensors="pt")).logits
        print(model.config.id2label[int(scores.argmax(-1))], "<-", text)
