"""People as spaCy finds them, for the gateway, `certify` and clients (docs/alias.md).

pip install spacy && python -m spacy download en_core_web_sm
hf-alpha serve --upstream http://localhost:8001/v1 --names 'person={function: people_spacy:people}'
"""

import os

import spacy

from hf_alpha import people_rule

nlp = spacy.load(os.environ.get("SPACY_MODEL", "en_core_web_sm"))


def find(text):
    """Yield where names stand, and of what they are."""
    for entity in nlp(text).ents:
        yield entity.start_char, entity.end_char, entity.label_


people = people_rule(find, "PERSON")

if __name__ == "__main__":
    from hf_alpha import CanonicalNames

    text = "Alice Brenner met Bob Stone. Brenner's mail is alice.brenner@x.com."
    spelled = CanonicalNames({"person": people}).spell(text)
    print(spelled.text, spelled.back("PersonB2's friend: **PersonC**"), sep="\n")
