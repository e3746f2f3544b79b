"""People as GLiNER finds them, in many languages; see people_spacy.py.

pip install --no-deps gliner && pip install sentencepiece  # it runs with newer Transformers, too
hf-alpha serve --upstream http://localhost:8001/v1 --names 'person={function: people_gliner:people}'
"""

import os

from gliner import GLiNER

from hf_alpha import people_rule

model = GLiNER.from_pretrained(os.environ.get("GLINER_MODEL", "urchade/gliner_multi-v2.1"))


def find(text):
    """Yield where names of people stand."""
    for entity in model.predict_entities(text, ["person"]):
        yield entity["start"], entity["end"]


people = people_rule(find)
