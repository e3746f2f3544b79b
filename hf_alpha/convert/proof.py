"""The proof that a model of Transformers with a symbol layer is still the model that it was.

On random inputs: rows added to its tables change no logit; without symbols, neither does the layer;
names that are renamed move columns of the logits; and neither a cache nor saving changes a thing.
Texts without names are the ids that they were.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel

from hf_alpha.convert.shared import ConversionError
from hf_alpha.loading import load_checkpoint
from hf_alpha.modeling.configuration_retrofit import RetrofitConfig
from hf_alpha.modeling.host_attention import UnreachedError
from hf_alpha.modeling.modeling_retrofit import RetrofitModel
from hf_alpha.modeling.spans import MarkedText
from hf_alpha.modeling.symbol_encodings import encoding_class
from hf_alpha.modeling.symbols import first_occurrence

IDS = ("input_ids", "decoder_input_ids")
TEXTS = (
    "", "the", " the", "the  end ", "a = (b + 1);\n\tc", "Don't, e.g.\n\n stop\n", "1 => 2",
    "\u00dcber e\u0301t\u00e9 \u6f22\u5b57 \u0928\u093f \U0001f642", "\u2581 _\u00a0x",
)  # fmt: skip
MOST_TOKENS = 256
"""Of a tokenizer's added tokens, so many are looked at in texts: the last ones."""


def random_probe(model: PreTrainedModel, base: list[int]) -> dict[str, Tensor]:
    """Return random inputs of these base tokens: two rows of 8 ids, and of 7 of answers.

    A decoder alone gets no answers.
    """
    generator = torch.Generator().manual_seed(0)
    pad = model.config.pad_token_id
    tokens = torch.tensor([i for i in base if i != pad])
    ids, decoder_ids = (
        tokens[torch.randint(len(tokens), (2, length), generator=generator)] for length in (8, 7)
    )
    batch = {"input_ids": ids}
    if model.config.is_encoder_decoder:
        batch["decoder_input_ids"] = decoder_ids
    return {name: value.to(model.device) for name, value in batch.items()} | {
        "attention_mask": torch.ones_like(ids).to(model.device)
    }


def prove_texts(tokenizer: Any, host: Any) -> None:
    """Check that texts are to a tokenizer with names what they are to its host.

    Without names the ids are the same, with what is written around them and without it; and what
    stands before a name is split as by itself.

    Raises:
        ConversionError: with the text.
    """
    added = [str(token) for token in host.added_tokens_decoder.values()][-MOST_TOKENS:]
    forms = ("{}", "the {} end", "({}) 1", " {}")
    kind = None if tokenizer.symbols_are_words else next(iter(tokenizer.finder.rules))
    for text in [*TEXTS, *(form.format(token) for token in added for form in forms)]:
        expected = host(text)["input_ids"]
        _check_ids(text, host, tokenizer(MarkedText(text, []))["input_ids"], expected)
        plain = [host(x, add_special_tokens=False)["input_ids"] for x in (text, f"{text} ")]
        if kind is not None:
            named = MarkedText(f"{text} name", [(len(text) + 1, len(text) + 5, kind)])
            ids = tokenizer(named, add_special_tokens=False)["input_ids"]
            ids = ids[: next(i for i, index in enumerate(ids) if index in tokenizer.symbol_ids)]
            _check_ids(named, host, ids, plain[ids != plain[0]])


def _check_ids(text: str, host: Any, ids: list[int], expected: list[int]) -> None:
    if ids != expected:
        read, was = (host.convert_ids_to_tokens(some) for some in (ids, expected))
        raise ConversionError(
            f"proof failed on texts: {str(text)!r} is read as {read}, and by the tokenizer beneath "
            f"as {was}: if a token was added to it that takes spaces beside it, or is looked for "
            "in normalized text, add that one otherwise (AddedToken(..., normalized=False))"
        )


@torch.no_grad()
def plain_logits(model: PreTrainedModel, probe: dict[str, Tensor]) -> Tensor:
    """Return the logits of a model without dropout: (B, T, V)."""
    training = model.training
    logits = model.eval()(**probe).logits
    model.train(training)
    return logits


def prove_growth(before: Tensor, grown: Tensor, base: list[int]) -> None:
    """Check that rows added to the tables change no logit of old tokens.

    Up to rounding: libraries may sum in another order in a product with more columns,
    which happens to vocabularies of a few tokens.

    Raises:
        ConversionError: with the largest difference.
    """
    columns = [i for i in base if i < before.shape[-1]]
    old, new = before[..., columns], grown[..., columns]
    gaps = (new - old).abs()
    # What a sum in another order may differ by goes with the logits of a position, and is rounded.
    usual = 32 * torch.finfo(torch.float32).eps * old.abs().median(dim=-1, keepdim=True).values
    if bool(((new == old) | (gaps <= usual + 2 * torch.finfo(old.dtype).eps * old.abs())).all()):
        return
    raise ConversionError(
        f"proof failed: with rows added to its tables, the backbone's logits differ by up to "
        f"{float(gaps.nan_to_num().max()):.2e}"
    )


class Family:
    """A family of models, an encoding that it is to take, and how it is refused."""

    def __init__(self, config: PreTrainedConfig, encoding: str, aggregated: bool):
        self.config = config
        self.encoding = f"{encoding!r} with aggregated attention" if aggregated else repr(encoding)
        self.relates = encoding_class(encoding).memories is not None

    def refusal(self, why: str) -> ConversionError:
        """Return the error that says what the family does not take, why, and which ones do."""
        pair = self.config.is_encoder_decoder
        examples = "T5, BART, mBART and Pegasus" if pair else "GPT-2, Llama, Mistral and Qwen"
        return ConversionError(
            f"a {self.config.model_type!r} model does not take symbol_encoding {self.encoding}: "
            f"{why}. {examples} take every encoding; docs/retrofit.md says what other families take"
        )

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Refuse the family where the backbone raises an error, which the refusal quotes."""
        try:
            yield
        except (ConversionError, torch.OutOfMemoryError):
            raise
        except UnreachedError as error:
            raise self.refusal(error.why) from error
        except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise self.refusal(f"the model says {' '.join(str(error).split())!r}") from error

    def check_shape(self, logits: Tensor, model: PreTrainedModel, batch: dict[str, Tensor]) -> None:
        """Raise a ConversionError unless there is a logit for each token of the vocabulary."""
        written = batch.get("decoder_input_ids", batch["input_ids"])
        expected = (*written.shape, model.config.vocab_size)
        if logits.shape != expected:
            raise self.refusal(f"its logits have the shape {tuple(logits.shape)}, not {expected}")


@torch.no_grad()
def prove_encoding(
    model: RetrofitModel,
    family: Family,
    probe: dict[str, Tensor],
    before: Tensor,
) -> None:
    """Check on random inputs what the encoding promises.

    Without symbols in the input the model is its backbone: identical logits. With names, it runs; a
    renaming moves columns of the logits and nothing else, where the encoding promises that; and
    generation with a cache sees what a forward pass without one does.

    Args:
        model: with symbols, in evaluation mode.
        family: what the model is of, and is to take.
        before: logits of the backbone, with its tables as they are now.

    Raises:
        ConversionError: with the largest difference; or the backbone cannot run with the encoding.
    """
    config = model.config
    probe_with_names = _with_names(probe, config)
    with family.refusing():
        if family.relates:  # what relations do not reach is said first
            model(**probe_with_names)
        after = model(**probe).logits
    family.check_shape(after, model, probe)
    columns = [i for i in config.vocabulary.base_ids if i < before.shape[-1]]
    if not torch.equal(after[..., columns], before[..., columns]):
        gap = float((after[..., columns] - before[..., columns]).abs().max())
        raise ConversionError(
            f"proof failed without symbols: logits differ from the backbone's by up to {gap:.2e}"
        )
    with family.refusing():
        _prove_renaming(model, family, {key: value[:1] for key, value in probe_with_names.items()})
        _prove_cache(model, family, probe_with_names)


class SavingProof:
    """That a model which is loaded from a folder says what the one that was saved says.

    The two need not be in memory together.

    Args:
        model: that was saved.
    """

    def __init__(self, model: RetrofitModel):
        config = model.config
        self.probe = _with_names(random_probe(model, config.vocabulary.base_ids), config)
        self.logits = plain_logits(model, self.probe)

    def load(self, folder: Path) -> RetrofitModel:
        """Return the loaded model.

        Raises:
            ConversionError: it says something else; with the largest difference.
            CheckpointError: weights are missing or left over.
        """
        loaded, _ = load_checkpoint(folder)
        probe = {name: value.to(loaded.device) for name, value in self.probe.items()}
        logits = plain_logits(loaded, probe).to(self.logits)
        if gap := _gap(self.logits, logits, loaded.dtype):
            raise ConversionError(
                f"proof failed: loaded from what was written, the model's logits differ by up to "
                f"{gap:.2e}"
            )
        return loaded


def _gap(one: Tensor, two: Tensor, dtype: torch.dtype) -> float:
    """Return the largest difference between logits; 0 if none is more than rounding."""
    gap = (one - two).masked_fill(one == two, 0.0).abs()
    usual = two.abs().median(dim=-1, keepdim=True).values  # what rounding goes with
    if bool((gap <= torch.finfo(dtype).eps ** 0.5 * usual).all()):
        return 0.0
    return float(gap.nan_to_num(torch.inf).max())


def _with_names(probe: dict[str, Tensor], config: RetrofitConfig) -> dict[str, Tensor]:
    """Return the inputs with names of every class: some in the first row, one in the second."""
    ranges = config.vocabulary.ranges.values()
    names = [i for pairs in ranges for i in [i for pair in pairs for i in range(*pair)][:2]][:4]
    named = {name: ids.clone() for name, ids in probe.items()}
    ids = named["input_ids"]
    ids[0, : 2 * len(names) : 2] = torch.tensor(names).to(ids)
    ids[0, -1], ids[1, 3] = names[0], names[-1]
    if "decoder_input_ids" in named:
        answers = named["decoder_input_ids"]
        answers[0, 1] = answers[0, -1] = names[0]
        answers[1, 1] = answers[1, -1] = names[-1]
    else:
        ids[1, -1] = names[-1]
    return named


def _prove_renaming(model: RetrofitModel, family: Family, probe: dict[str, Tensor]) -> None:
    """Check that every name called as the next of its class gives the same in moved columns."""
    config = model.config
    logits = model(**probe).logits
    family.check_shape(logits, model, probe)
    if "renaming" not in config.encoding.promises and not config.answers_are_listed:
        return
    renaming = torch.arange(config.vocab_size, device=logits.device)
    for pairs in config.vocabulary.ranges.values():
        members = torch.tensor([i for pair in pairs for i in range(*pair)]).to(renaming)
        renaming[members] = members.roll(-1)
    called = {name: renaming.to(probe[name].device)[probe[name]] for name in IDS if name in probe}
    moved = model(**{**probe, **called}).logits[..., renaming]
    if config.new_symbols:  # whose scores go to the first ones that are unused
        moved, logits = moved.sort(-1).values, logits.sort(-1).values
    if not torch.equal(moved, logits):
        gap = float((moved - logits).abs().max())
        raise family.refusal(f"renaming changes its logits by up to {gap:.2e}")


def _prove_cache(model: RetrofitModel, family: Family, probe: dict[str, Tensor]) -> None:
    """Check that names generated with a cache have the logits that they have without.

    The names are those of the row. What a caller's settings forbid may be generated in their place:
    any answer will do.
    """
    config, prompt = model.config, {key: probe[key] for key in ("input_ids", "attention_mask")}
    names = [
        [i for i in row if config.vocabulary.class_of(i)] for row in probe["input_ids"].tolist()
    ]
    start = (
        model.generation_config.decoder_start_token_id,
        config.eos_token_id,
        config.pad_token_id,
    )
    generated = model.generate(
        **prompt,
        max_new_tokens=3,  # two of them with what the cache holds
        num_beams=1,
        do_sample=False,
        num_return_sequences=1,
        use_cache=True,
        cache_implementation="dynamic",
        decoder_start_token_id=next(i for i in start if i is not None),
        prefix_allowed_tokens_fn=lambda row, _: names[row],
        return_dict_in_generate=True,
        output_logits=True,
    )
    cached = torch.stack(generated.logits, dim=1)
    whole = _uncached(model, prompt, generated.sequences, cached.shape[1]).to(cached)
    if gap := _gap(cached, whole, model.dtype):
        raise family.refusal(f"a cache changes its logits by up to {gap:.2e}")


def _uncached(
    model: RetrofitModel, prompt: dict[str, Tensor], sequences: Tensor, count: int
) -> Tensor:
    """Return the logits of the last `count` generated tokens, found without a cache."""
    if model.config.is_encoder_decoder:
        answers = sequences[:, :count]
        return model(**prompt, decoder_input_ids=answers, use_cache=False).logits
    ids = prompt["input_ids"]
    vocabulary = model.config.vocabulary
    listed = {"stream_ids": first_occurrence(ids, vocabulary.is_symbol(ids))}
    return model(input_ids=sequences[:, :-1], **listed, use_cache=False).logits[:, -count:]
