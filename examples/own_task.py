"""A model for pairs of texts in which some words are only names; about a minute on one core."""

import os

from datasets import Dataset
from transformers import Seq2SeqTrainingArguments, set_seed

import hf_alpha
from hf_alpha.tasks.text.swapping import swapping_pairs

steps = int(os.environ.get("OWN_TASK_STEPS", 800))
# {"source": "swap x y : F x G y x", "target": "F y G x y"}: 2 or 3 variables, 1 to 3 functions.
pairs = Dataset.from_list(list(swapping_pairs(25 * steps)))
tests = list(swapping_pairs(400, range(2, 7), range(1, 6), leaves=[6], seed=1))
symbols = {  # what is a name: a rule for each class
    "variable": {"pattern": "[a-z]", "count": 26}, "function": {"pattern": "[A-Z]", "count": 26},
}  # fmt: skip
sizes = {
    "d_model": 64, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 128,
    "dropout": 0.0, "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 128,
}  # fmt: skip
training = {"max_steps": steps, "learning_rate": 0.003, "lr_scheduler_type": "cosine",
            "warmup_steps": 50, "adam_beta2": 0.98, "per_device_train_batch_size": 32,
            "logging_steps": 100, "save_strategy": "no", "report_to": "none"}  # fmt: skip

tokenizer = hf_alpha.TextTokenizer.from_texts([*pairs["source"], *pairs["target"]], symbols)
config = hf_alpha.AlphaConfig.for_tokenizer(tokenizer, symbol_encoding="relational", **sizes)
set_seed(0)  # of the first weights
model = hf_alpha.AlphaForConditionalGeneration(config)
rows = pairs.map(lambda row: tokenizer(row["source"], text_target=row["target"]), batched=True)
arguments = Seq2SeqTrainingArguments("runs/own_task", **training)
hf_alpha.AlphaTrainer(model, arguments, train_dataset=rows, processing_class=tokenizer).train()

report = hf_alpha.evaluate(model, tokenizer, hf_alpha.TextTask(symbols), tests, max_new_tokens=16)
for number, rates in sorted(report.by_num_symbols.items()):
    print(f"{number:>2} names: {rates.exact:.0%} right{', as in training' if number < 7 else ''}")
sources = [test["source"] for test in tests[:10]]
print(hf_alpha.alpha_covariance(model, tokenizer, sources, max_renamings=12))
