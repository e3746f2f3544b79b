"""The kinds of heads, on both families and on an encoder of neither, and what they refuse."""

from types import SimpleNamespace

import pytest
import torch
from folnets import folnet_batch, make_folnet
from geometrics import batch, small_model
from torch import nn
from torch.nn import functional as F
from transformers import BertConfig, PreTrainedConfig, PreTrainedModel
from transformers.utils.generic import find_labels

from hf_alpha.modeling.encoder_heads import (
    EncoderHead,
    SequenceClassification,
    TokenClassification,
    TokenLabels,
    head_dropout,
    labels_for_loss,
)
from hf_alpha.modeling.modeling_folnet import FolnetForCausalLM
from hf_alpha.modeling.modeling_geometric import (
    GeometricForMaskedLM,
    GeometricForSequenceClassification,
    GeometricForTokenClassification,
)
from hf_alpha.modeling.modeling_retrofit_decoder import RetrofitForCausalLM

TEXTS, TOKENS = "AutoModelForSequenceClassification", "AutoModelForTokenClassification"
GEOMETRIC = {TEXTS: GeometricForSequenceClassification, TOKENS: GeometricForTokenClassification}
FAMILIES = pytest.mark.parametrize("family", ["folnet", "geometric"])


def make(family, auto_class, **settings):
    """A small model with a head, and a batch of three rows for it."""
    if family == "geometric":
        return small_model(GEOMETRIC[auto_class], **settings), batch()
    model = make_folnet(auto_class, symbol_encoding="streams", **settings)
    return model, folnet_batch(1, model.config, [(8, 4), (5, 2), (7, 3)])


class Positions(PreTrainedModel):
    """An encoder of neither family: it gives each token the vector of its id."""

    config: BertConfig
    base_model_prefix = "words"
    main_input_name = "input_ids"


class PositionsHead(EncoderHead, Positions):
    def __init__(self, config):
        super().__init__(config)
        self.words = nn.Embedding(config.vocab_size, config.hidden_size)
        self.dropout = head_dropout(config)

    def forward(self, input_ids, labels=None, num_items_in_batch=None):
        states = self.words(input_ids)
        outputs = SimpleNamespace(last_hidden_state=states, pooler_output=states[:, 0])
        return SimpleNamespace(**self.answer(outputs, labels, num_items_in_batch))


class PositionsForTokenClassification(TokenClassification, PositionsHead):
    pass


class PositionsForSequenceClassification(SequenceClassification, PositionsHead):
    pass


def test_a_new_family_has_its_heads_from_a_base_class_and_names():
    config = BertConfig(vocab_size=11, hidden_size=6, num_labels=3, classifier_dropout=0.25)
    tokens = PositionsForTokenClassification(config).eval()
    texts = PositionsForSequenceClassification(config).eval()
    ids = torch.tensor([[1, 2, 3], [4, 5, 6]])
    for model, labels in ((tokens, ids % 3), (texts, torch.tensor([2, 0]))):
        assert model.dropout.p == 0.25 and model.classifier.out_features == model.num_labels == 3
        outputs = model(ids, labels)
        theirs = F.cross_entropy(outputs.logits.flatten(0, -2), labels.flatten())
        torch.testing.assert_close(outputs.loss, theirs)
        assert model(ids).loss is None
    assert (tokens.pools, texts.pools, texts.accepts_loss_kwargs) == (False, True, False)


@FAMILIES
def test_heads_of_both_families_are_of_the_same_kinds(family):
    for auto_class, kind in ((TEXTS, SequenceClassification), (TOKENS, TokenClassification)):
        model, _ = make(family, auto_class)
        assert isinstance(model, kind)
        assert "forward" not in vars(type(model)), "its family says it for all kinds"
    assert issubclass(GeometricForMaskedLM, TokenLabels)


@FAMILIES
def test_tokens_are_read_as_the_family_gives_them(family):
    """With streams a token's states are several, of which the head reads one view."""
    model, inputs = make(family, TOKENS)
    outputs = model.base_model(**inputs)
    states = model.folnet.view(outputs) if family == "folnet" else outputs.last_hidden_state
    logits = model.classifier(states)
    torch.testing.assert_close(model(**inputs).logits, logits)
    labels = inputs["token_type_ids"].masked_fill(inputs["input_ids"] % 2 == 0, -100)
    theirs = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
    torch.testing.assert_close(model(**inputs, labels=labels).loss, theirs)


@FAMILIES
@pytest.mark.parametrize("auto_class", [TEXTS, TOKENS])
def test_dropout_of_the_head_is_that_of_the_encoder_unless_it_has_its_own(family, auto_class):
    shares = [
        make(family, auto_class, hidden_dropout_prob=0.2, classifier_dropout=own)[0].dropout.p
        for own in (None, 0.0, 0.5)
    ]
    assert shares == [0.2, 0.0, 0.5]


def test_a_loss_of_tokens_is_shared_among_the_labels_of_the_whole_step():
    model, inputs = make("geometric", TOKENS)
    labels = inputs["token_type_ids"]
    mean = model(**inputs, labels=labels).loss
    part = model(**inputs, labels=labels, num_items_in_batch=2 * labels.numel()).loss
    torch.testing.assert_close(part, mean / 2)


@FAMILIES
def test_labels_that_do_not_fit_are_named_in_the_same_words(family):
    model, inputs = make(family, TOKENS)
    labels = torch.zeros_like(inputs["input_ids"])
    with pytest.raises(ValueError, match=r"labels is \(3, \d\), and there are 3 rows of"):
        model(**inputs, labels=labels[:, 1:])
    with pytest.raises(ValueError, match="is 2, but the model has 2 classes, 0 to 1"):
        model(**inputs, labels=labels + 2)
    model, inputs = make(family, TEXTS)
    with pytest.raises(ValueError, match=r"labels is \(2,\), and there are 3 inputs"):
        model(**inputs, labels=torch.zeros(2, dtype=torch.long))
    with pytest.raises(ValueError, match=r"labels\[1, 0\] is 5.0: in multi_label"):
        model(**inputs, labels=torch.tensor([[0.0, 1.0], [5.0, 0.0], [1.0, 1.0]]))


@pytest.mark.parametrize(
    ("classes", "kind", "labels", "wanted"),
    [
        (3, None, torch.tensor([2, 0], dtype=torch.int32), torch.tensor([2, 0])),
        (3, "single_label_classification", torch.tensor([2.0, 0.0]), torch.tensor([2, 0])),
        (1, None, torch.tensor([7, 100_001]), torch.tensor([[7.0], [100_001.0]])),
        (1, "multi_label_classification", torch.tensor([1, 0]), torch.tensor([[1.0], [0.0]])),
        (2, None, torch.tensor([[1.0, 0], [0, 1]]), torch.tensor([[1.0, 0], [0, 1]])),
        (2, "regression", torch.tensor([[5, 0], [0, -1]]), torch.tensor([[5.0, 0], [0, -1]])),
    ],
)
def test_labels_have_the_shape_and_dtype_of_their_loss(classes, kind, labels, wanted):
    config = PreTrainedConfig(num_labels=classes, problem_type=kind)
    found = labels_for_loss(labels, torch.zeros(2, classes, dtype=torch.float16), config)
    assert found.dtype == wanted.dtype and torch.equal(found, wanted)


def test_numbers_are_not_rounded_in_mixed_precision():
    model, inputs = small_model(GeometricForSequenceClassification, num_labels=1), batch()
    labels = torch.tensor([3.801, 1001.0, 100_100.0])
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", dtype):
            found = model(**inputs, labels=labels)
        exact = (found.logits.float()[:, 0] - labels).square().mean()
        torch.testing.assert_close(found.loss, exact)


@pytest.mark.parametrize("model", [FolnetForCausalLM, RetrofitForCausalLM])
def test_trainer_asks_for_labels_alone(model):
    assert find_labels(model) == ["labels"]
