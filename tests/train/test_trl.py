"""TRL's own trainers on decoders with symbols: losses are those of a plain loop of PyTorch."""

import copy
import json
from functools import partial

import pytest
import sharded
import torch
import torch.multiprocessing
from datasets import Dataset
from families.test_alpha_decoder import make_decoder
from folnets import NO_DROPOUT, make_folnet
from hosts import make_host
from peft import LoraConfig, get_peft_model
from small_tokenizers import unigram
from torch.nn import functional as F
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from hf_alpha import SymbolConfig, adapter_settings, get_symbol_model
from hf_alpha.modeling.label_scores import label_scores
from hf_alpha.modeling.tokenization_text import TextTokenizer

IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
RULE = {"name": {"pattern": "[xyz]+", "count": 5}}
TEMPLATE = (
    "{% for tool in tools or [] %}{{ tool.function.name }}({{ tool.function.description }}) "
    "{% endfor %}{% for message in messages %}<s>{{ message.role }}:"
    "{% if message.role == 'assistant' %}"
    "{% generation %}{{ message.content }}</s>{% endgeneration %}{% else %}"
    "{{ message.content }}</s>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant:{% endif %}"
)
PAIRS = [
    {"prompt": "alice sees xyz and y:", "completion": " y not xyz"},
    {"prompt": "not zz", "completion": " zz"},
    {"prompt": "bob sees x and y and z", "completion": " not z"},
    {"prompt": "z not x", "completion": " x and z and x"},
]
CHATS = [
    {
        "prompt": [{"role": "user", "content": pair["prompt"]}],
        "completion": [{"role": "assistant", "content": pair["completion"]}],
    }
    for pair in PAIRS
]
MESSAGES = [{"messages": chat["prompt"] + chat["completion"]} for chat in CHATS]
RATE, STEPS = 1e-3, 3


def converted(encoding="relational", rule=RULE, **settings):
    """A tiny Llama with symbols, and its tokenizer."""
    torch.manual_seed(0)  # what a conversion adds begins at random
    tokenizer = unigram()
    tokenizer.chat_template = TEMPLATE
    host = make_host("llama", vocab_size=len(tokenizer), **IDS)
    return get_symbol_model(host, tokenizer, SymbolConfig(encoding, rule, **settings))


def own(**settings):
    """A decoder of this package, and a tokenizer for it."""
    tokenizer = TextTokenizer.from_tokenizer(unigram(), RULE)
    settings = {"symbol_encoding": "relational", "dropout": 0.0, **settings}
    base = {"num_base_tokens": len(tokenizer) - 5, "symbol_classes": {"name": 5}}
    return make_decoder(**base, **settings), tokenizer


MODELS = {
    "relational": converted,
    "streams": partial(converted, "streams"),
    "learned": partial(converted, "learned"),
    "own": own,
    "own with new symbols": partial(own, new_symbols=True),
}


def train(kind, out, model, rows, tokenizer, **settings):
    """Losses of a trainer of TRL that sees all rows in each step."""
    import trl  # here: it takes a second, of each process of the tests

    more = {name: settings.pop(name) for name in ("ref_model", "reward_funcs") if name in settings}
    arguments = {
        "max_steps": STEPS, "per_device_train_batch_size": len(rows), "learning_rate": RATE,
        "optim": "sgd", "lr_scheduler_type": "constant", "max_grad_norm": 0.0, "logging_steps": 1,
        "report_to": "none", "save_strategy": "no", "use_cpu": True, "disable_tqdm": True,
        "bf16": False, **settings,
    }  # fmt: skip
    data = Dataset.from_list(rows)
    if arguments.pop("streaming", False):
        data = data.to_iterable_dataset()
    trainer, config = (getattr(trl, f"{kind}{what}") for what in ("Trainer", "Config"))
    run = trainer(
        model, args=config(out, **arguments), train_dataset=data, processing_class=tokenizer, **more
    )
    run.train()
    return run, [entry["loss"] for entry in run.state.log_history if "loss" in entry]


def plain_loop(model, loss_of, steps=STEPS):
    """Losses of plain steps of SGD."""
    model = copy.deepcopy(model).train()
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer, losses = torch.optim.SGD(weights, RATE), []
    for _ in range(steps):
        loss = loss_of(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def log_probs(model, ids, start, temperature=1.0):
    """Logarithms of the probabilities of a text's tokens from one on, the text by itself."""
    logits = model(torch.tensor([ids])).logits[0, start - 1 : -1].float() / temperature
    return logits.log_softmax(-1).gather(-1, torch.tensor(ids[start:])[:, None])[:, 0]


def encode(tokenizer, prompt, completion):
    """Ids of both, the names of which are those of the whole, and where the completion begins."""
    ids = tokenizer(prompt + completion + "</s>")["input_ids"]
    return ids, len(tokenizer(prompt)["input_ids"])


def mean_loss(model, sequences):
    scores = torch.cat([log_probs(model, *sequence) for sequence in sequences])
    return -scores.mean()


close = partial(pytest.approx, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_scores_of_labels_are_those_of_the_logits(kind, temperature):
    model, tokenizer = MODELS[kind]()
    batch = tokenizer([p["prompt"] for p in PAIRS], padding=True, return_tensors="pt")
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
    inputs["labels"] = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100)
    inputs["labels"][1] = -100
    model.temperature = temperature
    scores = model(**inputs, fused_lm_head=True)
    mask = scores.label_mask
    assert mask.equal(inputs["labels"][:, 1:] != -100)
    if temperature == 1:
        torch.testing.assert_close(scores.loss, model(**inputs).loss)
    found = (model(**inputs).logits[:, :-1] / temperature).softmax(-1)[mask]
    expected = {
        "entropy": torch.distributions.Categorical(found).entropy(),
        "log_sum_sq_probs": found.square().sum(-1).log(),
    }
    for name, values in expected.items():
        torch.testing.assert_close(scores[name][mask], values)
        assert not scores[name][~mask].any()
    chosen = scores.log_probs[mask].exp()
    assert scores.is_top1[mask].equal(chosen > found.amax(-1) - 1e-6)
    assert scores.mean_logits.abs().max() < 100  # columns that are not used would be far below


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("relational", {}),
        ("relational", {"completion_only_loss": False}),
        ("relational", {"streaming": True}),
        ("relational", {"peft": True}),
        ("streams", {"packing": True, "max_length": 24}),
        ("relational", {"padding_free": True, "max_length": None}),
        ("learned", {"packing": True, "packing_strategy": "bfd_split", "max_length": 40}),
        ("own", {}),
        ("own with new symbols", {"gradient_accumulation_steps": 2}),
    ],
)
def test_supervised_training(kind, settings, tmp_path):
    model, tokenizer = MODELS[kind]()
    settings = dict(settings)
    if settings.pop("peft", False):
        lora = LoraConfig(
            task_type="CAUSAL_LM", target_modules=["q_proj"], **adapter_settings(model)
        )
        model = get_peft_model(model, lora)
    sequences = [encode(tokenizer, **pair) for pair in PAIRS]
    if settings.get("completion_only_loss") is False:
        sequences = [(ids, 1) for ids, _ in sequences]
    if "gradient_accumulation_steps" in settings:
        settings["per_device_train_batch_size"] = 2
    expected = plain_loop(model, partial(mean_loss, sequences=sequences))
    _, losses = train("SFT", tmp_path, model, PAIRS, tokenizer, **settings)
    assert losses == close(expected)
    assert losses[-1] < losses[0]


def shown(run, row, labelled=False):
    """Tokens of a row that was prepared, or of those that have a loss, as one text."""
    ids = row["labels" if labelled else "input_ids"]
    return "".join(run.processing_class.convert_ids_to_tokens([i for i in ids if i != -100]))


TOOL = {"type": "function", "function": {"name": "x", "description": "alice"}}


@pytest.mark.parametrize(
    ("rows", "settings", "learned"),
    [
        (MESSAGES, {}, "all"),
        (MESSAGES, {"assistant_only_loss": True}, "answer"),
        (CHATS, {}, "answer"),
    ],
)
def test_a_name_is_one_symbol_in_all_messages(rows, settings, learned, tmp_path):
    model, tokenizer = converted()
    run, losses = train("SFT", tmp_path, model, rows, tokenizer, **settings)
    assert losses[-1] < losses[0]
    (row,) = (r for r in run.train_dataset if "alice" in shown(run, r))
    whole = shown(run, row)
    names = [piece.split(">")[0] for piece in whole.split("<name_")[1:]]
    assert names == ["0", "1", "1", "0"]
    answer = whole[whole.index(":", whole.index("</s>")) + 1 :]
    assert shown(run, row, labelled=True) == (whole if learned == "all" else answer)
    assert whole.count("</s>") == 2


def test_names_and_tools_of_each_row(tmp_path):
    """By the columns that TRL hands on to the chat template."""
    model, tokenizer = converted(rule={"name": {"column": "names", "count": 5}})
    rows = [
        {**MESSAGES[0], "tools": json.dumps([TOOL]), "chat_template_kwargs": {"names": ["alice"]}},
        {**MESSAGES[1], "tools": None, "chat_template_kwargs": {"names": ["zz"]}},
    ]
    run, losses = train("SFT", tmp_path, model, rows, tokenizer)
    assert losses[-1] < losses[0]
    texts = sorted(shown(run, row) for row in run.train_dataset)
    assert [text.count("<name_0>") for text in texts] == [2, 2]
    with pytest.raises(ValueError, match="names"):
        train("SFT", tmp_path, model, MESSAGES, tokenizer)
    call = {"function": {"name": TOOL["function"]["name"], "arguments": {}}}
    answer = {"role": "assistant", "content": "", "tool_calls": [call]}
    rows = [{"messages": [*CHATS[0]["prompt"], answer], "chat_template_kwargs": {"names": []}}]
    with pytest.raises(ValueError, match="the chat template leaves out `tool_calls`"):
        train("SFT", tmp_path, model, rows, tokenizer)


def reference(model):
    return copy.deepcopy(model).eval().requires_grad_(False)


@pytest.mark.parametrize("kind", ["relational", "streams", "own"])
def test_preferences(kind, tmp_path):
    """DPO: a batch has what was chosen and what was rejected, of unequal lengths."""
    model, tokenizer = MODELS[kind]()
    rows = [
        {"prompt": p["prompt"], "chosen": p["completion"], "rejected": " not and" + p["completion"]}
        for p in PAIRS
    ]
    frozen = reference(model)

    def margin(row, name, model):
        ids, start = encode(tokenizer, row["prompt"], row[name])
        return (log_probs(model, ids, start) - log_probs(frozen, ids, start)).sum()

    def loss(model):
        margins = [margin(row, "chosen", model) - margin(row, "rejected", model) for row in rows]
        return -F.logsigmoid(0.1 * torch.stack(margins)).mean()

    expected = plain_loop(model, loss)
    _, losses = train("DPO", tmp_path, model, rows, tokenizer, ref_model=reference(model))
    assert losses == close(expected) and losses[-1] < losses[0] - 1e-5


def test_verdicts(tmp_path):
    """KTO: beside each answer, a prompt has that of the row before, of other names."""
    model, tokenizer = converted()
    rows = [{**pair, "label": number % 2 == 0} for number, pair in enumerate(PAIRS)]
    frozen = reference(model)
    sequences = [encode(tokenizer, **pair) for pair in PAIRS]
    answers = [ids[start:] for ids, start in sequences]
    mixed = [
        (ids[:start] + answers[number - 1], start) for number, (ids, start) in enumerate(sequences)
    ]

    def ratios(model, sequences):
        return torch.stack(
            [(log_probs(model, *s) - log_probs(frozen, *s)).sum() for s in sequences]
        )

    def loss(model):
        with torch.no_grad():
            divergence = ratios(model, mixed).mean().clamp(min=0)
        signs = torch.tensor([1.0 if row["label"] else -1.0 for row in rows])
        return (1 - torch.sigmoid(0.1 * signs * (ratios(model, sequences) - divergence))).mean()

    expected = plain_loop(model, loss)
    _, losses = train("KTO", tmp_path, model, rows, tokenizer, ref_model=reference(model))
    assert losses == close(expected) and losses[-1] < losses[0] - 1e-5


def encoded(tokenizer, prompts):
    """Prompts, or chats, as trainers encode them."""
    if isinstance(prompts[0], str):
        return tokenizer(prompts)
    return tokenizer.apply_chat_template(prompts, add_generation_prompt=True, return_dict=True)


@pytest.mark.parametrize(
    ("kind", "rows"), [("relational", PAIRS), ("streams", CHATS), ("own", PAIRS)]
)
def test_rewards_of_what_is_generated(kind, rows, tmp_path):
    """GRPO, two steps on what was generated; prompts are padded on the left, answers behind."""
    model, tokenizer = MODELS[kind]()
    seen, start_model, heat = [], copy.deepcopy(model), 0.7

    def reward(prompts, completion_ids, **_):
        names = encoded(tokenizer, prompts).names
        answers = tokenizer.batch_decode(completion_ids, skip_special_tokens=True, names=names)
        assert not any("<name" in answer for answer in answers)
        rewards = [float(sum(ids) % 7) for ids in completion_ids]
        seen.append((prompts, completion_ids, rewards))
        return rewards

    _, losses = train(
        "GRPO", tmp_path, model, rows, tokenizer, reward_funcs=reward,
        num_generations=2, max_completion_length=5, num_iterations=2, temperature=heat,
        loss_type="grpo", max_steps=2,
    )  # fmt: skip
    ((prompts, answers, rewards),) = seen
    prompt_ids = encoded(tokenizer, prompts)["input_ids"]
    sequences = [(p + a, len(p)) for p, a in zip(prompt_ids, answers, strict=True)]
    groups = torch.tensor(rewards).view(-1, 2)
    advantages = (groups - groups.mean(1, keepdim=True)) / (groups.std(1, keepdim=True) + 1e-4)
    with torch.no_grad():
        before = [log_probs(start_model, *s, heat) for s in sequences]

    def loss(model):
        parts = []
        for sequence, old, gain in zip(sequences, before, advantages.flatten(), strict=True):
            ratio = (log_probs(model, *sequence, heat) - old).exp()
            parts.append(-torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean())
        return torch.stack(parts).mean()

    expected = plain_loop(start_model, loss, 2)
    assert losses == close(expected, abs=1e-5) and abs(losses[1]) > 1e-4


def test_models_of_rewards(tmp_path):
    """An encoder with a score for each text: what is chosen and what is not are one batch."""
    _, tokenizer = own()
    base = len(tokenizer) - 5
    model = make_folnet(
        "AutoModelForSequenceClassification", symbol_classes={"name": 5}, num_base_tokens=base,
        num_labels=1, symbol_encoding="relational", **NO_DROPOUT,
    )  # fmt: skip
    rows = [{"chosen": p["prompt"], "rejected": p["completion"]} for p in PAIRS]

    def reward(model, text):
        return model(torch.tensor([tokenizer(text + "</s>")["input_ids"]])).logits[0, 0]

    def loss(model):
        gaps = [reward(model, row["chosen"]) - reward(model, row["rejected"]) for row in rows]
        return -F.logsigmoid(torch.stack(gaps)).mean()

    expected = plain_loop(model, loss)
    _, losses = train("Reward", tmp_path, model, rows, tokenizer)
    assert losses == close(expected) and losses[-1] < losses[0]


def test_what_trl_cannot_do_is_refused_in_words(tmp_path):
    model, tokenizer = converted()
    tune = partial(train, "SFT", tmp_path)
    with pytest.raises(ValueError, match="label_smoothing_factor"):
        tune(copy.deepcopy(model), PAIRS, tokenizer, label_smoothing_factor=0.1)
    with pytest.raises(AttributeError, match=r"SFT, DPO, KTO, GRPO and RLOO do that"):
        _ = model(torch.tensor([[5, 6]])).last_hidden_state
    rows = [{"chosen": p["prompt"], "rejected": p["completion"]} for p in PAIRS]
    with pytest.raises(ValueError, match="reward models require `num_labels=1`"):
        train("Reward", tmp_path, copy.deepcopy(model), rows, tokenizer)
    model.save_pretrained(tmp_path / "converted")
    with pytest.raises(ValueError, match="Unrecognized configuration class"):
        AutoModelForSequenceClassification.from_pretrained(tmp_path / "converted")
    smooth, tokenizer = own(label_smoothing=0.1)
    with pytest.raises(ValueError, match=r"model.config.label_smoothing = 0"):
        tune(smooth, PAIRS, tokenizer)
    with pytest.raises(ValueError, match="cu_seq_lens_q"):
        tune(own()[0], PAIRS, tokenizer, packing=True, max_length=24)


def test_names_that_are_never_written_are_told(recwarn, tmp_path):
    model, tokenizer = converted()
    rows = [*PAIRS, {"prompt": "not x", "completion": " not y"}]
    for settings, number in ({"completion_only_loss": False}, 0), ({}, 1):
        train(
            "SFT", tmp_path, copy.deepcopy(model), rows, tokenizer,
            max_steps=1, **settings,
        )  # fmt: skip
        told = [w for w in recwarn if "nothing before it has" in str(w.message)]
        assert len(told) == number


def test_no_label_gives_a_loss_of_zero_with_a_gradient():
    logits = torch.randn(2, 3, 5, requires_grad=True)
    nothing, usable = torch.full((2, 3), -100), torch.ones(2, 5, dtype=torch.bool)
    scores = label_scores(logits, nothing, usable)
    scores.loss.backward()
    assert scores.loss == 0 and not logits.grad.any()


@pytest.mark.slow
def test_a_sharded_model_is_trained_saved_and_loaded(tmp_path):
    """FSDP2 over gloo, by the scores that TRL asks for; accelerate itself shards on GPUs only."""
    model, tokenizer = converted()
    texts = [pair["prompt"] for pair in PAIRS]
    batch = tokenizer(texts, padding=True, padding_side="right", return_tensors="pt")
    batch = {**batch, "labels": batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)}
    model.save_pretrained(tmp_path / "start")
    torch.save(batch, tmp_path / "batch.pt")
    torch.multiprocessing.spawn(sharded.run_decoder, (tmp_path,), nprocs=2)
    expected = sharded.train_decoder(model, batch)
    for rank in (0, 1):
        assert json.loads((tmp_path / f"{rank}.json").read_text()) == close(expected)
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "trained")
    for name, weight in model.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], weight, atol=1e-5, rtol=1e-4)
