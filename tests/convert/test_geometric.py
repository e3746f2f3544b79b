"""Encoders of BERT's family converted into geometric ones."""

import pytest
import torch
import transformers
from commands import hf_alpha
from geometrics import LABELS
from small_tokenizers import word_piece

from hf_alpha.convert import ConversionError, geometric
from hf_alpha.convert.geometric import to_geometric
from hf_alpha.modeling.tokenization_geometric import GeometricTokenizer
from hf_alpha.transduction import Lexicon, Transducer

SIZES = {
    "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 32,
    "vocab_size": 40, "max_position_embeddings": 20,
}  # fmt: skip
CONFIGS = {
    "Bert": SIZES,
    "Roberta": SIZES,
    "XLMRoberta": SIZES,
    "Camembert": SIZES,
    "Electra": {**SIZES, "embedding_size": 12},
    "DistilBert": {
        "dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 32, "vocab_size": 40,
        "max_position_embeddings": 20,
    },
    "Albert": {**SIZES, "embedding_size": 12, "num_hidden_groups": 2, "num_hidden_layers": 3},
}  # fmt: skip
HEADS = ("Model", "ForMaskedLM", "ForTokenClassification", "ForSequenceClassification")


def encoder(family: str, head: str = "ForMaskedLM", **settings):
    """A model of Transformers, with random biases and norms too."""
    config_class = getattr(transformers, f"{family}Config")
    torch.manual_seed(0)
    config = config_class(**{**CONFIGS[family], **settings}, num_labels=3)
    model = getattr(transformers, f"{family}{head}")(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("family", CONFIGS)
def test_a_converted_model_says_the_same(family, head, tmp_path):
    """With token types and segments; after saving and loading; every weight is taken over."""
    model = encoder(family, head)
    converted = to_geometric(model, LABELS, relation_attention="two_layer_rotary")
    converted.save_pretrained(tmp_path)
    again = type(converted).from_pretrained(tmp_path).eval()
    inputs, segments = batch_of()
    if getattr(model.config, "type_vocab_size", 1) > 1:
        inputs["token_type_ids"] = torch.randint(2, (2, 12))
    wanted, found = model(**inputs)[0], again(**inputs, **segments)[0]
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    assert converted.config.num_labels == 3
    kept = sum(p.numel() for n, p in converted.named_parameters() if not geometric.NEW.search(n))
    unused = 0
    if "oberta" in family or family == "Camembert":
        unused = 24 * model.config.pad_token_id + 24  # rows of positions that no token has
    if family == "DistilBert":
        unused = -24  # its one row of token types
    if family == "Albert":  # two of its three layers are one group
        unused -= sum(
            p.numel() for p in model.base_model.encoder.albert_layer_groups[0].parameters()
        )
    assert kept == model.num_parameters() - unused


def batch_of(count=2, length=12):
    """Random texts, and a segment in each."""
    ids, one = torch.randint(3, 40, (count, length)), torch.ones(count, 1, dtype=torch.long)
    segments = {"segment_ids": one, "segment_starts": one, "segment_ends": 3 * one}
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}, segments


def test_gates_open_in_training():
    """After a few steps the segments tell something, and the gates are open."""
    model = to_geometric(encoder("Bert"), LABELS).train()
    inputs, segments = batch_of(4, 8)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for step in range(8):
        kind = torch.randint(1, 4, (4, 1), generator=torch.Generator().manual_seed(step))
        given = {**inputs, **segments, "segment_ids": kind}
        loss = model(**given, labels=kind.expand(-1, 8)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert min(p.abs().max() for n, p in model.named_parameters() if n.endswith("gate")) > 0
    other = {**segments, "segment_ids": 2 * segments["segment_ids"]}
    one, two = (model.eval()(**inputs, **some).logits for some in (segments, other))
    assert not torch.allclose(one, two)


def test_the_same_conversion_gives_the_same_model():
    one, two = (to_geometric(encoder("Bert"), LABELS).state_dict() for _ in range(2))
    assert all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: transformers.T5Model(transformers.T5Config(
            d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, vocab_size=10)), "a 't5' model"),
        (lambda: encoder("Bert", "ForNextSentencePrediction"), "BertForNextSentencePrediction: on"),
        (lambda: encoder("Bert", is_decoder=True), "the model is a decoder"),
    ],
)  # fmt: skip
def test_other_models_are_refused(model, message):
    with pytest.raises(ConversionError, match=message):
        to_geometric(model(), LABELS)


def test_a_wrong_conversion_is_noticed(monkeypatch):
    """Open gates, and a table of names that mixes up two weights."""
    model = encoder("Bert")
    converted = to_geometric(model, LABELS)
    converted.geometric.encoder.layer[0].attention.self.gate.data.fill_(0.5)
    with pytest.raises(ConversionError, match="segments, outputs differ"):
        geometric.prove(model, converted)
    swapped = {
        **geometric.BERT.names,
        r"(.*self\.)query\.": r"\1key.",
        r"(.*self\.)key\.": r"\1query.",
    }
    monkeypatch.setitem(geometric.FAMILIES, "bert", geometric.FamilyNames("bert", swapped))
    with pytest.raises(ConversionError, match="without segments, outputs differ"):
        to_geometric(model, LABELS)


def test_a_folder_is_converted_whole(tmp_path):
    """By the command; what it writes is loaded, segments and all."""
    bert, fst, out = tmp_path / "bert", tmp_path / "fst", tmp_path / "out"
    tokenizer = word_piece()
    model = encoder("Bert", vocab_size=len(tokenizer))
    save(bert, model, tokenizer)
    lexicon = Lexicon.from_entries([("alice sees", "seen"), ("and bob", "name")])
    Transducer.compile(lexicon).save(fst)
    done = hf_alpha("convert", bert, out, "--transducer", fst)
    assert "GeometricForMaskedLM" in done.out and "2 kinds of segments" in done.out
    batch = GeometricTokenizer.from_pretrained(out)(
        ["alice sees carol and bob"], return_tensors="pt"
    )
    assert (batch["segment_ids"] > 0).all() and batch["segment_ids"].shape[1] == 2
    inputs = {name: batch[name] for name in batch if name != "token_type_ids"}
    found = transformers.AutoModelForMaskedLM.from_pretrained(out).eval()(**inputs).logits
    plain = {name: inputs[name] for name in ("input_ids", "attention_mask")}
    torch.testing.assert_close(found, model(**plain).logits, rtol=1e-4, atol=1e-4)
    assert "exists" in hf_alpha("convert", bert, out, "--transducer", fst).error
    transformers.T5Config(vocab_size=10).save_pretrained(tmp_path / "t5")
    error = hf_alpha("convert", tmp_path / "t5", tmp_path / "new", "--transducer", fst).error
    assert "a 't5' model is none of BERT's family" in error
    assert not (tmp_path / "new").exists()


def save(folder, model, tokenizer):
    for part in (model, tokenizer):
        part.save_pretrained(folder)
    return folder


@pytest.fixture
def transducer():
    return Transducer.compile(Lexicon.from_entries([("alice sees", "seen")]))


@pytest.mark.parametrize(
    ("family", "head", "asked", "wanted"),
    [
        ("Bert", "ForPreTraining", None, "GeometricForMaskedLM"),
        ("Bert", "ForPreTraining", "none", "GeometricModel"),
        ("Bert", "ForQuestionAnswering", None, "GeometricModel"),
        ("Electra", "ForPreTraining", None, "GeometricModel"),
        ("Electra", "ForMaskedLM", None, "GeometricForMaskedLM"),
        ("Roberta", "ForMaskedLM", "none", "GeometricModel"),
    ],
)
def test_heads_are_those_that_were_trained(family, head, asked, wanted, transducer, tmp_path):
    """No weight of a converted model is made up, and a summary of the text stays where it was."""
    tokenizer = word_piece()
    pad = tokenizer.pad_token_id
    model = encoder(family, head, vocab_size=len(tokenizer), pad_token_id=pad)
    folder = save(tmp_path / "model", model, tokenizer)
    made = geometric.convert_encoder(folder, tmp_path / "out", transducer, head=asked)
    assert type(made).__name__ == wanted
    kept = {tuple(weight.flatten().tolist()) for weight in model.state_dict().values()}
    cut = family == "Roberta"  # rows of positions that no token has
    for name, weight in made.state_dict().items():
        if not geometric.NEW.search(name) and not (cut and "position_embeddings" in name):
            assert tuple(weight.flatten().tolist()) in kept, name
    pools = hasattr(getattr(model, model.base_model_prefix), "pooler") and family == "Bert"
    if wanted == "GeometricModel":
        assert (made.pooler is not None) == (pools and head == "ForPreTraining")


def test_what_a_folder_lacks_is_not_made_up(transducer, tmp_path):
    tokenizer = word_piece()
    sizes = {"vocab_size": len(tokenizer)}
    discriminator = encoder("Electra", "ForPreTraining", **sizes)
    folder = save(tmp_path / "electra", discriminator, tokenizer)
    for head, message in (
        ("masked", "no trained head of this kind"),
        ("words", "head must be one of masked"),
    ):
        with pytest.raises(ValueError, match=message):
            geometric.convert_encoder(folder, tmp_path / "out", transducer, head=head)
    pad = tokenizer.pad_token_id + 1
    roberta = save(tmp_path / "r", encoder("Roberta", pad_token_id=pad, **sizes), tokenizer)
    with pytest.raises(
        ConversionError, match=f"pad_token_id is {pad} and the tokenizer's {pad - 1}"
    ):
        geometric.convert_encoder(roberta, tmp_path / "out", transducer)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"segment_labels": "ORG"}, "segment_labels is 'ORG': give a list"),
        ({"segment_labels": LABELS, "relation_attention": "none"}, "must be one of graph, two_lay"),
        ({"segment_labels": LABELS, "gate": 2}, "gate must be between 0 and 1, got 2"),
        ({"segment_labels": LABELS, "max_distance": 0}, "max_distance must be at least 1"),
    ],
)
def test_settings_that_are_none(settings, message):
    with pytest.raises(ValueError, match=message):
        to_geometric(encoder("Bert"), **settings)
