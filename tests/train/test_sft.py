"""TRL's trainer on decoders with symbols: what a row becomes, what the loss is of, and training."""

import copy

import pytest
import torch
from datasets import Dataset
from families.test_alpha_decoder import make_decoder
from hosts import make_host
from peft import LoraConfig
from small_tokenizers import unigram
from trl import DPOConfig, DPOTrainer, SFTConfig

from hf_alpha import SymbolConfig, adapter_settings, get_symbol_model
from hf_alpha.train.sft import AlphaSFTTrainer

IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
RULE = {"name": {"pattern": "[xyz]+", "count": 5}}
TEMPLATE = (
    "{% for message in messages %}<s>{{ message.role }}:{% if message.role == 'assistant' %}"
    "{% generation %}{{ message.content }}</s>{% endgeneration %}{% else %}"
    "{{ message.content }}</s>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant:{% endif %}"
)
PAIRS = [
    {"prompt": "alice sees xyz and y", "completion": "y not xyz"},
    {"prompt": "not zz", "completion": "zz"},
]
CHATS = [
    {
        "prompt": [{"role": "user", "content": pair["prompt"]}],
        "completion": [{"role": "assistant", "content": pair["completion"]}],
    }
    for pair in PAIRS
]
MESSAGES = [{"messages": chat["prompt"] + chat["completion"]} for chat in CHATS]


def trainer(rows, out, encoding="relational", peft=False, **settings):
    tokenizer = unigram()
    tokenizer.chat_template = TEMPLATE
    host = make_host("llama", vocab_size=len(tokenizer), **IDS)
    config = SymbolConfig(encoding=encoding, symbols=RULE)
    model, tokenizer = get_symbol_model(host, tokenizer, config)
    arguments = SFTConfig(
        out, report_to="none", save_strategy="no", logging_steps=1, use_cpu=True, disable_tqdm=True,
        bf16=False, learning_rate=0.02,
        **{"max_steps": 8, "per_device_train_batch_size": 4, "max_length": 64, **settings},
    )  # fmt: skip
    lora = LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], **adapter_settings(model))
    return AlphaSFTTrainer(
        model, args=arguments, train_dataset=Dataset.from_list(rows * 4),
        processing_class=tokenizer, peft_config=lora if peft else None,
    )  # fmt: skip


def tokens(run, row, labelled=False):
    """Tokens of a row that was prepared, or of those that have a loss."""
    ids = row["labels" if labelled else "input_ids"]
    return run.processing_class.convert_ids_to_tokens([i for i in ids if i != -100])


def test_a_pair_is_what_it_is_elsewhere(tmp_path):
    """The completion has an end token; its names are those of the prompt."""
    run = trainer(PAIRS, tmp_path)
    encode = run.processing_class.encode_pair
    expected = [encode(pair["prompt"], pair["completion"]) for pair in PAIRS]
    for row, pair in zip(run.train_dataset, expected, strict=False):
        assert row["input_ids"] == pair["input_ids"] + pair["labels"]
        assert row["labels"] == [-100] * len(pair["input_ids"]) + pair["labels"]
        assert row["input_ids"].count(IDS["eos_token_id"]) == 1
    whole = trainer(PAIRS, tmp_path, completion_only_loss=False).train_dataset[0]
    assert whole["labels"] == whole["input_ids"] == run.train_dataset[0]["input_ids"]
    with pytest.raises(ValueError, match=r"row 1: .* has the name 'z', which the input lacks"):
        trainer([PAIRS[0], {"prompt": "not x", "completion": "z"}], tmp_path)


def test_a_text_has_one_end_token(tmp_path):
    run = trainer([{"text": pair["prompt"]} for pair in PAIRS], tmp_path)
    encode = run.processing_class
    for row, pair in zip(run.train_dataset, PAIRS, strict=False):
        assert row["input_ids"] == [*encode(pair["prompt"])["input_ids"], IDS["eos_token_id"]]


def test_only_what_an_assistant_says_is_learned(tmp_path):
    """Where the template says which part that is; a name is a token of it as any other."""
    run = trainer(MESSAGES, tmp_path, assistant_only_loss=True)
    for row, pair in zip(run.train_dataset, PAIRS, strict=False):
        encode = run.processing_class.encode_pair
        learned = encode(pair["prompt"], pair["completion"])["labels"]
        assert [i for i in row["labels"] if i != -100] == learned


@pytest.mark.parametrize("rows", [CHATS, MESSAGES])
def test_a_name_is_one_symbol_in_all_messages(rows, tmp_path):
    """Loss of a conversation is that of all messages, of a prompt and a completion the latter's."""
    run = trainer(rows, tmp_path)
    (row, *_) = run.train_dataset
    text = "".join(tokens(run, row))
    names = [token for token in tokens(run, row) if token.startswith("<name")]
    assert names == [f"<name_{i}>" for i in (0, 1, 1, 0)]
    assert text.startswith("<s>") and text.endswith("</s>") and text.count("</s>") == 2
    learned = "".join(tokens(run, row, labelled=True))
    answer = text.index(":", text.index("</s>")) + 1
    assert learned == (text if rows is MESSAGES else text[answer:])


@pytest.mark.parametrize(
    ("rows", "settings"),
    [
        (PAIRS, {"encoding": "relational"}),
        (CHATS, {"encoding": "relational", "peft": True}),
        (MESSAGES, {"encoding": "learned"}),
        (PAIRS, {"encoding": "streams", "packing": True}),
    ],
)
def test_decoders_are_trained(rows, settings, tmp_path):
    run = trainer(rows, tmp_path, **settings)
    run.train()
    losses = [entry["loss"] for entry in run.state.log_history if "loss" in entry]
    assert len(losses) == 8 and losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize("encoding", ["relational", "streams", "learned"])
def test_the_loss_is_the_models_and_packing_changes_nothing(encoding, tmp_path):
    losses = []
    for packing in (False, True):
        settings = {"packing": True, "max_length": 32} if packing else {}
        torch.manual_seed(0)  # what a conversion adds begins at random
        run = trainer(PAIRS, tmp_path, encoding, per_device_train_batch_size=8, **settings)
        (batch,) = run.get_train_dataloader()
        assert ("position_ids" in batch) == packing
        run.model.eval()
        with torch.no_grad():
            losses.append(run.compute_loss(run.model, dict(batch)))
            if not packing:
                assert losses[0].equal(run.model(**batch).loss)
    torch.testing.assert_close(*losses)


@pytest.mark.parametrize("settings", [{"symbol_encoding": "streams"}, {}], ids=["host", "own"])
def test_a_loss_from_last_states_alone_says_what_to_train_with(settings, tmp_path):
    """TRL's other trainers, whose rows need no answer of the model's own loss."""
    tokenizer = unigram(end=True)
    if settings:
        host = make_host("llama", vocab_size=len(tokenizer), **IDS)
        model, tokenizer = get_symbol_model(host, tokenizer, SymbolConfig("streams", RULE))
    else:
        model = make_decoder(num_base_tokens=len(tokenizer))
    preferences = [{"prompt": "not zz", "chosen": "zz", "rejected": "y"}] * 2
    run = DPOTrainer(
        model, copy.deepcopy(model), processing_class=tokenizer,
        args=DPOConfig(tmp_path, report_to="none", use_cpu=True, bf16=False, disable_tqdm=True),
        train_dataset=Dataset.from_list(preferences),
    )  # fmt: skip
    with pytest.raises((AttributeError, TypeError), match="Train it on answers by AlphaSFTTrainer"):
        run.train()
