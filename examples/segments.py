"""You know much about your texts before a model reads them: products, places, dates.

A lexicon and a rule make a transducer, which finds such segments, nested ones too. A BERT, here a
tiny new one, is converted: it says the same as before, and training can teach it to use segments.
"""

from transformers import BertConfig, BertForMaskedLM, set_seed

from hf_alpha.geometric import to_geometric
from hf_alpha.transduction import Lexicon, Rule, Transducer

known = [("fire hose", "PRODUCT"), ("New York", "PLACE"), ("May", "MONTH")]
lexicon = Lexicon.from_entries(known, plurals=True)
rules = [
    Rule("<MONTH> /[0-9]{1,2}/ (, /[0-9]{4}/)?", label="DATE"),
    Rule("<PRODUCT> to <PLACE>", label="DELIVERY"),
]
transducer = Transducer.compile(lexicon, rules)
text = "We send fire hoses to New York on May 12, 1999"
for start, end, label in transducer.spans(text):
    print(f"{label:9} {text[start:end]}")
print(transducer("fire hoses, May 7"))  # the gamma-space of a text: its units, and what spans them

set_seed(0)
sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
bert = BertForMaskedLM(BertConfig(**sizes, intermediate_size=64, vocab_size=100))
model = to_geometric(bert, transducer.labels)  # proved: its logits are those of the BERT
print(type(model).__name__, "that knows", ", ".join(transducer.labels))
