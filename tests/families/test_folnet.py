"""What FOLNet promises: the encoder-decoder, encoders with their heads, and decoders alone."""

import pytest
import torch
from folnets import DecoderFamily, EncoderFamily, FolnetFamily, PooledFamily
from promises import (
    Batching,
    Caching,
    DecoderPrompts,
    ExactExtension,
    Extension,
    NoExtension,
    Renaming,
    RoundTrip,
    Training,
)
from strategies import TWO_CLASSES

CANONICAL = {"symbol_encoding": "learned", "symbol_renaming": "first_occurrence"}

# -- an encoder with a decoder ---------------------------------------------------------------------


class TestStreams(FolnetFamily, ExactExtension, Batching, DecoderPrompts, Caching, Training):
    encoding = "streams"


class TestRelational(FolnetFamily, ExactExtension, Batching, DecoderPrompts, Caching, Training):
    encoding = "relational"


class TestCanonical(FolnetFamily, Renaming, NoExtension, Batching, Caching, Training):
    encoding, renaming_at_the_door = "learned", "first_occurrence"


class TestDualPart(FolnetFamily, Extension, Batching, DecoderPrompts, Caching, Training):
    encoding = "dual_part"
    answers_are_names_of_the_input = False


class TestLearned(FolnetFamily, NoExtension, Batching, DecoderPrompts, Caching, Training):
    encoding = "learned"


# -- an encoder with a head ------------------------------------------------------------------------


class MaskedLM(EncoderFamily):
    auto_class = "AutoModelForMaskedLM"

    def labelled(self, seed, config, sizes):
        batch = self.make_batch(seed, config, sizes)
        masked = batch["attention_mask"].cumsum(-1) % 2 * batch["attention_mask"] > 0
        return {**batch, "labels": batch["input_ids"].masked_fill(~masked, -100)}


class TestMaskedLMStreams(MaskedLM, ExactExtension, Batching, Training):
    encoding = "streams"


class TestMaskedLMRelational(MaskedLM, ExactExtension, Batching, Training):
    encoding = "relational"


class TestMaskedLMCanonical(MaskedLM, Renaming, NoExtension, Batching):
    encoding, renaming_at_the_door = "learned", "first_occurrence"


class TestMaskedLMDualPart(MaskedLM, Extension, Batching, Training):
    encoding = "dual_part"
    answers_are_names_of_the_input = False


class Classification(PooledFamily):
    auto_class = "AutoModelForSequenceClassification"
    batches = 3


@pytest.mark.slow  # of heads beside that of masked models, the quick run has relational
class TestClassificationStreams(Classification, ExactExtension, Batching):
    encoding = "streams"


class TestClassificationRelational(Classification, ExactExtension, Batching):
    encoding = "relational"


class TestClassificationCanonical(Classification, Renaming, NoExtension, Batching):
    encoding, renaming_at_the_door = "learned", "first_occurrence"


class TokenClassification(EncoderFamily):
    auto_class = "AutoModelForTokenClassification"
    scores_are_of_ids = False
    renamings, extensions, batches = 4, 2, 3


@pytest.mark.slow  # of heads beside that of masked models, the quick run has relational
class TestTokenClassificationStreams(TokenClassification, ExactExtension, Batching):
    encoding = "streams"


class TestTokenClassificationRelational(TokenClassification, ExactExtension, Batching):
    encoding = "relational"


class QuestionAnswering(EncoderFamily):
    auto_class = "AutoModelForQuestionAnswering"
    scores_are_of_ids = False
    renamings, extensions, batches = 4, 2, 3

    def scores(self, outputs):
        return torch.stack((outputs.start_logits, outputs.end_logits), dim=-1)


@pytest.mark.slow  # of heads beside that of masked models, the quick run has relational
class TestQuestionAnsweringStreams(QuestionAnswering, ExactExtension, Batching):
    encoding = "streams"


class TestQuestionAnsweringRelational(QuestionAnswering, ExactExtension, Batching):
    encoding = "relational"


# -- a decoder alone -------------------------------------------------------------------------------


class TestDecoder(DecoderFamily, NoExtension, Batching, Caching, Training):
    encoding = "learned"


class TestDecoderDualPart(DecoderFamily, Extension, Batching, Caching, Training):
    encoding = "dual_part"
    answers_are_names_of_the_input = False


# -- all of them, saved ----------------------------------------------------------------------------

HEADS = ("Seq2SeqLM", "CausalLM", "PreTraining", "MaskedLM", "SequenceClassification",
         "TokenClassification", "QuestionAnswering", "MultipleChoice")  # fmt: skip
ENCODINGS = ({"symbol_encoding": "streams", **TWO_CLASSES}, {"symbol_encoding": "relational"},
             CANONICAL, {"symbol_encoding": "dual_part"})  # fmt: skip


class TestSaved(FolnetFamily, RoundTrip):
    encoding = "learned"
    saved = (
        {"auto_class": "AutoModelForMaskedLM", "symbol_encoding": "relational"},
        *({"auto_class": "AutoModelForSeq2SeqLM", **encoding} for encoding in ENCODINGS),
        *({"auto_class": f"AutoModelFor{head}"} for head in HEADS),
        {"auto_class": "AutoModel", "symbol_encoding": "streams"},
    )

    def make_model(self, seed=0, auto_class="AutoModelForSeq2SeqLM", **settings):
        self.auto_class = auto_class
        self.writes = auto_class in ("AutoModelForSeq2SeqLM", "AutoModelForCausalLM")
        return super().make_model(seed, **settings)

    def make_batch(self, seed, config, sizes, side="right"):
        batch = super().make_batch(seed, config, sizes, "left" if config.is_decoder else side)
        if self.auto_class == "AutoModelForMultipleChoice":
            batch = {name: torch.stack((x, x.roll(1, 0)), 1) for name, x in batch.items()}
        return batch

    def scores(self, outputs):
        return next(x for x in outputs.values() if isinstance(x, torch.Tensor))
