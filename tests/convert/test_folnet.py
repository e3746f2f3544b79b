import json

import pytest
import torch
from commands import hf_alpha
from reference.folnet import FolnetReference
from small_tokenizers import word_level
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from hf_alpha.convert import ConversionError
from hf_alpha.convert.folnet import (
    convert_folnet,
    convert_state,
    prove,
    read_settings,
    read_weights,
)
from hf_alpha.convert.folnet_original import OriginalFolnet

HEADS = ["pretraining", "classification", "regression", "choice", "answers"]
# D1 and D2, the hidden widths of both, H and S: no two are equal, no product either.
D1, D2, F1, F2, H, S, DISTANCE, WORDS = 24, 10, 28, 14, 3, 6, 4, 40
SETTINGS = {
    "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "layer_norm_eps": 1e-12,
    "initializer_range": 0.02, "max_position_offset": DISTANCE, "absolute_position": False,
    "relative_position": True, "vocab_size": WORDS, "type_vocab_size": 2, "diag_link": False,
    "num_layers": 2, "boolean_type": "mlp", "predicate_dims": [0, D1, D2],
    "mixer_ops": {"0": None, "1": ["join", "mu", "cjoin"], "2": ["assoc", "trans", "prod"]},
    "intermediate_dims": [0, F1, F2], "num_heads": H, "head_size": S, "max_span": 12,
    "span_dim": 8, "aux_length": 64, "glob_size": 64, "span_size": 48, "unit_size": 16,
    "hidden_size": D1, "pretrain_loss": "MLM.SOP",
}  # fmt: skip
VARIANTS = [
    {},
    {"hidden_act": "relu"},
    {"absolute_position": True, "relative_position": False},
    {"relative_position": False},
    {"mixer_ops": {"0": None, "1": ["cjoin", "join"], "2": ["prod", "assoc"]}},
    {"mixer_ops": {"0": None, "1": ["mu"], "2": ["trans"]}, "num_layers": 1},
]
# Modules of each operator: (output width, input width, whether it has a bias).
OPERATORS = {
    "join": {"reader.1": (H * S, D1, 1), "reader.2": (H, D2, 0), "writer": (D1, H * S, 1)},
    "mu": {"reader.2": (H + S, D2, 0), "writer": (D1, H * S, 1)},
    "cjoin": {"kernel": (H * S, D1, 0), "premise": (S, D2, 1), "output": (D1, H * S, 1)},
    "assoc": {"reader.1": (2 * H * S, D1, 1), "writer": (D2, H, 1)},
    "prod": {"reader.1": (H * S, D1, 1), "reader.2": (S, D2, 1), "writer": (D2, H, 1)},
    "trans": {"reader.2": (2 * D2, D2, 0), "writer": (D2, D2, 1)},
}
HEAD_MODULES = {
    "pretraining": {
        "cls.heads.predictions.transform.dense": (D1, D1, 1),
        "cls.heads.seq_relationship": (2, D1, 1),
    },
    "classification": {"classifier": (3, D1, 1)},
    "regression": {"classifier": (1, D1, 1)},
    "choice": {"classifier": (1, D1, 1)},
    "answers": {f"classifier.{side}_logits.dense": (1, D1, 1) for side in ("start", "end")},
}
LABELS = {"classification": 3, "regression": 1, "choice": 4, "answers": 2}


def original_modules(settings, head):
    """The modules of the original, as its classes lay them out."""
    encoder, modules = "folnet.encoder", dict(HEAD_MODULES[head])
    modules[f"{encoder}.word_embd"] = (settings["vocab_size"], D1, 0)
    modules[f"{encoder}.type_embd"] = (2, D1, 0)
    if settings["absolute_position"]:
        modules[f"{encoder}.abs_pos_embd"] = (512, D1, 0)
    if settings["relative_position"]:
        modules[f"{encoder}.rel_pos_embd"] = (2 * DISTANCE + 2, D2, 0)
    modules["folnet.dense"] = (D1, D1, 1)
    for number in range(settings["num_layers"]):
        deducers = f"folnet.reasoner.layers.{number}.deducers"
        for arity in ("1", "2"):
            for place, name in enumerate(settings["mixer_ops"][arity]):
                for part, size in OPERATORS[name].items():
                    modules[f"{deducers}.0.operators.{arity}.{place}.{part}"] = size
        modules[f"{deducers}.1.operators.1.0.clause_in"] = (F1, D1, 1)
        modules[f"{deducers}.1.operators.2.0.clause_in"] = (F2, 2 * D2, 1)
        modules[f"{deducers}.1.operators.1.0.clause_out"] = (D1, F1, 1)
        modules[f"{deducers}.1.operators.2.0.clause_out"] = (D2, F2, 1)
        modules[f"{deducers}.1.operators.2.0.clause_skip"] = (D2, D2, 1)
    return modules


def make_original(head="pretraining", seed=0, **changes):
    """Settings as in a .cfg file, and random weights as the original lays them out."""
    settings = {**SETTINGS, **changes}
    if head in LABELS:
        settings["num_classes"] = LABELS[head]
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(shape, generator=generator) * (shape[-1] ** -0.5)

    state = {}
    for name, (width, taken, bias) in original_modules(settings, head).items():
        state[f"{name}.weight"] = draw(width, taken)
        if bias:
            state[f"{name}.bias"] = draw(width)
    if head == "pretraining":
        state["cls.heads.predictions.bias"] = draw(settings["vocab_size"])
        state["cls.heads.predictions.decoder.weight"] = state["folnet.encoder.word_embd.weight"]
    return settings, state


def write(folder, settings, state):
    (folder / "a.cfg").write_text(json.dumps(settings))
    torch.save(state, folder / "a.pt")
    return folder / "a.cfg", folder / "a.pt"


def read(folder, settings, state):
    config_file, weights_file = write(folder, settings, state)
    return read_settings(config_file), read_weights(weights_file)


def converted(tmp_path, *arguments, **changes):
    settings, state = read(tmp_path, *make_original(*arguments, **changes))
    return settings, state, convert_state(state, settings)


def draw_pairs(seed, rows=5, length=11):
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(WORDS, (rows, length), generator=generator)
    border = torch.randint(1, length, (rows, 1), generator=generator)
    return ids, (torch.arange(length) >= border).long()


@pytest.mark.parametrize("changes", VARIANTS)
def test_converted_models_compute_what_the_original_does(tmp_path, changes):
    """So does the plain reference of the paper, with the code's form of the options."""
    settings, state, model = converted(tmp_path, **changes)
    model = model.double()
    weights = model.state_dict()
    ids, types = draw_pairs(seed=1)
    old = OriginalFolnet({name: x.double() for name, x in state.items()}, settings)
    expected = old.outputs(ids, types)
    with torch.no_grad():
        found = model(input_ids=ids, token_type_ids=types)
        atoms = model.folnet(input_ids=ids, token_type_ids=types)
    for name, right in expected.items():
        got = atoms[name] if name in atoms else found[name]
        torch.testing.assert_close(got, right, atol=1e-10, rtol=1e-10, msg=name)
    reference = FolnetReference(model.config, weights)
    for row, (unary, binary) in enumerate(map(reference.encode, ids, types)):
        close = {"atol": 1e-10, "rtol": 1e-10}
        torch.testing.assert_close(unary, expected["last_hidden_state"][row], **close)
        torch.testing.assert_close(binary, expected["binary_hidden_state"][row], **close)


@pytest.mark.parametrize("head", HEADS)
def test_every_head_of_the_original(tmp_path, head):
    settings, state, model = converted(tmp_path, head)
    ids, types = draw_pairs(seed=2, rows=4)
    expected = OriginalFolnet(state, settings).outputs(ids, types)
    batch = {"input_ids": ids, "token_type_ids": types}
    if head == "choice":  # one question with as many choices as rows
        assert type(model).__name__ == "FolnetForMultipleChoice"
        batch = {name: x[None] for name, x in batch.items()}
        expected["logits"] = expected["logits"].T
    with torch.no_grad():
        found = model(**batch)
    logits = [name for name in expected if name.endswith("logits")]
    assert len(logits) == {"pretraining": 2, "answers": 2}.get(head, 1)
    for name in logits:
        torch.testing.assert_close(found[name], expected[name], atol=1e-5, rtol=1e-5)


def test_from_files_to_a_folder_that_loads(tmp_path):
    """Half precision, names of parallel training, a padded vocabulary, a tokenizer."""
    settings, state = make_original("classification", vocab_size=WORDS)
    settings["vocab_size"] = WORDS - 5  # the settings of before the padding
    state = {f"module.{name}": x.half() for name, x in state.items()}
    words = word_level(words=("[CLS]",))
    words.add_special_tokens({"cls_token": "[CLS]"})
    words.save_pretrained(tmp_path / "words")
    files, out = write(tmp_path, settings, state), tmp_path / "out"
    done = hf_alpha("convert", files[0], out, "--tokenizer", tmp_path / "words")
    assert done.code == 0 and "FolnetForSequenceClassification" in done.out, done.err
    config = json.loads((out / "config.json").read_text())
    assert config["vocab_size"] == WORDS and config["pad_token_id"] == words.pad_token_id
    ids, types = draw_pairs(seed=3)
    rounded = {name.removeprefix("module."): x.float() for name, x in state.items()}
    expected = OriginalFolnet(rounded, read_settings(files[0])).outputs(ids, types)["logits"]
    assert AutoTokenizer.from_pretrained(out).cls_token == "[CLS]"
    model = AutoModelForSequenceClassification.from_pretrained(out).eval()
    with torch.no_grad():
        logits = model(input_ids=ids, token_type_ids=types).logits
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.slow
def test_proof_notices_every_weight(tmp_path):
    """Another value of any tensor shows."""
    settings, state, model = converted(tmp_path)
    generator = torch.Generator().manual_seed(1)
    assert prove(state, settings, model) < 1e-4
    for parameter in model.parameters():
        before = parameter.detach().clone()
        with torch.no_grad():
            parameter += torch.randn(parameter.shape, generator=generator)
        with pytest.raises(ConversionError, match=r"proof failed: \w+ differs by up to"):
            prove(state, settings, model)
        with torch.no_grad():
            parameter.copy_(before)


def without(name):
    return lambda settings, state: state.pop(name)


def with_weight(name, *shape):
    return lambda settings, state: state.update({name: torch.zeros(shape)})


def with_setting(**changes):
    return lambda settings, state: settings.update(changes)


FIRST = "folnet.reasoner.layers.0.deducers.0.operators.1.0.reader.1.bias"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without(FIRST), rf"missing \['{FIRST}'\], left over \[\]"),
        (with_weight("folnet.extra.weight", 3), r"left over \['folnet.extra.weight'\]"),
        (with_weight("sch.dense.weight", 3), "sch.dense.weight belongs to the head of"),
        (with_weight("folnet.encoder.glob_embd.weight", 3), r"global branch \(mixer_ops\[0\]\)"),
        (with_weight("cls.heads.predictions.decoder.weight", WORDS, D1), "a projection of its own"),
        (without("folnet.encoder.word_embd.weight"), "is no FOLNet: it lacks folnet.encoder.word"),
        (with_setting(num_heads=H + 1), r"settings say \("),
        (with_setting(num_layers=3), r"missing \['folnet.reasoner.layers.2.deducers"),
        (with_setting(num_layers=1), r"left over \['folnet.reasoner.layers.1.deducers"),
        (with_setting(vocab_size=7), f"has {WORDS} rows, the settings say vocab_size 7"),
        (with_setting(color="red"), "has settings that FOLNet has not: color"),
        (with_setting(absolute_position=True), "cannot both be on"),
        (with_setting(boolean_type="reglu"), "boolean_type is 'reglu'"),
        (with_setting(diag_link=True), "diag_link is True"),
        (with_setting(predicate_dims=[0, D1]), "predicate_dims has 2 numbers, not 3"),
        (lambda settings, state: settings.pop("num_heads"), "lacks settings: num_heads"),
        (with_setting(mixer_ops={"0": ["join"], "1": ["join"], "2": ["assoc"]}), "global branch"),
        (with_setting(mixer_ops={"1": ["join", "xor"], "2": ["assoc"]}), "one or more of join, mu"),
        (with_setting(mixer_ops={"1": ["join"], "2": None}), "one or more of assoc, trans, prod"),
    ],
)  # fmt: skip
def test_files_that_do_not_fit(tmp_path, change, message):
    settings, state = make_original()
    change(settings, state)
    with pytest.raises(ConversionError, match=message):
        convert_folnet(*write(tmp_path, settings, state), tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.cfg", "a.pt"]


def test_files_that_are_something_else(tmp_path):
    settings, weights = write(tmp_path, *make_original())
    out = tmp_path / "out"
    with pytest.raises(ConversionError, match=r"a\.pt is no \.cfg file of FOLNet"):
        convert_folnet(weights, settings, out)
    with pytest.raises(ConversionError, match=r"a\.cfg cannot be read as weights"):
        convert_folnet(settings, settings, out)
    torch.save({"model": 3}, weights)
    with pytest.raises(ConversionError, match="holds no dict of tensors"):
        convert_folnet(settings, weights, out)
    torch.save(make_original("answers")[1] | {"x": print}, weights)
    with pytest.raises(ConversionError, match="more than tensors is not loaded"):
        convert_folnet(settings, weights, out)
    torch.save(make_original()[1], weights)
    large = word_level(words=tuple(f"w{i}" for i in range(WORDS)))
    large.save_pretrained(tmp_path / "words")
    with pytest.raises(ConversionError, match=f"tokenizer has {len(large)} tokens, the model"):
        convert_folnet(settings, weights, out, tmp_path / "words")
    assert not out.exists()
