"""A model of Transformers that takes names as names; a tiny T5 stands for yours."""

import os

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast as Fast
from transformers import Seq2SeqTrainingArguments, T5Config, T5ForConditionalGeneration, set_seed

import hf_alpha
from hf_alpha.tasks.text.swapping import SYMBOLS, swapping_pairs

steps = int(os.environ.get("RETROFIT_STEPS", 300))
set_seed(0)
# Yours: AutoTokenizer.from_pretrained("google-t5/t5-small"), and likewise the model.
words = {word: i for i, word in enumerate(["<pad>", "</s>", "<unk>", "swap", ":"])}
beneath = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
beneath.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
special = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
tokenizer = Fast(tokenizer_object=beneath, **special)
sizes = {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_heads": 4, "vocab_size": len(words)}
host = T5ForConditionalGeneration(T5Config(**sizes, num_layers=2, decoder_start_token_id=0))

# SYMBOLS say which words are names: [a-z] are variables, [A-Z] functions; 10 symbols for each.
config = hf_alpha.SymbolConfig(encoding="streams", symbols=SYMBOLS)
model, tokenizer = hf_alpha.get_symbol_model(host, tokenizer, config)

pairs = Dataset.from_list(list(swapping_pairs(16 * steps)))
rows = pairs.map(lambda row: tokenizer(row["source"], text_target=row["target"]), batched=True)
arguments = Seq2SeqTrainingArguments(
    "runs/retrofit", max_steps=steps, learning_rate=0.003, per_device_train_batch_size=16,
    logging_steps=50, save_strategy="no", report_to="none",
)  # fmt: skip
trainer = hf_alpha.AlphaTrainer(model, arguments, train_dataset=rows, processing_class=tokenizer)
trainer.train()
trainer.save_model()  # loads with trust_remote_code=True where hf_alpha is not installed
texts = ["swap x y : F x G y x", "swap k9 m : G k9 Q3 m k9"]  # the same but for names
print(*hf_alpha.generate_answers(model, tokenizer, texts, num_beams=1, progress=False), sep="\n")
