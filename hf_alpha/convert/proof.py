"""The proof that a model of Transformers with a symbol layer is still the model that it was.

On random inputs: rows added to its tables change no logit; without symbols, neither does the layer;
names that are renamed move columns of the logits; and a cache changes nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from transformers import PreTrainedModel

from hf_alpha.convert.shared import ConversionError
from hf_alpha.modeling.configuration_retrofit import RetrofitConfig
from hf_alpha.modeling.modeling_retrofit import RetrofitForConditionalGeneration
from hf_alpha.modeling.symbol_encodings import encoding_class

IDS = ("input_ids", "decoder_input_ids")


def random_probe(model: PreTrainedModel, base: list[int]) -> dict[str, Tensor]:
    """Return random inputs of these base tokens: two rows of 8 ids, and as many of answers."""
    generator = torch.Generator().manual_seed(0)
    pad = model.config.pad_token_id
    tokens = torch.tensor([i for i in base if i != pad])
    shape = (2, 8)
    ids, decoder_ids = (
        tokens[torch.randint(len(tokens), shape, generator=generator)] for _ in range(2)
    )
    batch = {"input_ids": ids, "decoder_input_ids": decoder_ids}
    return {name: value.to(model.device) for name, value in batch.items()} | {
        "attention_mask": torch.ones_like(ids).to(model.device)
    }


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
    """A family of models, an encoding that it is to take, and how it is refused.

    Args:
        model_type: of the family.
        encoding: name of the encoding.
        aggregated: whether blocks of aggregated attention are added.
    """

    def __init__(self, model_type: str, encoding: str, aggregated: bool):
        self.model_type = model_type
        self.encoding = f"{encoding!r} with aggregated attention" if aggregated else repr(encoding)
        self.relates = encoding_class(encoding).relates

    def refusal(self, why: str) -> ConversionError:
        """Return the error that says what the family does not take, why, and which ones do."""
        return ConversionError(
            f"a {self.model_type!r} model does not take symbol_encoding {self.encoding}: {why}. "
            "T5, BART, mBART and Pegasus take every encoding; docs/retrofit.md says what other "
            "families take"
        )

    @contextmanager
    def refusing(self, masks: bool = False) -> Iterator[None]:
        """Refuse the family where the backbone raises an error, which the refusal quotes.

        Args:
            masks: it gets masks for the first time, where the encoding gives such.
        """
        try:
            yield
        except (ConversionError, torch.OutOfMemoryError):
            raise
        except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            reason = f"the model says {' '.join(str(error).split())!r}"
            if masks and self.relates:
                reason = f"its attention does not take a mask for each head ({reason})"
            raise self.refusal(reason) from error

    def check_shape(self, logits: Tensor, model: PreTrainedModel, batch: dict[str, Tensor]) -> None:
        """Raise a ConversionError unless there is a logit for each token of the vocabulary."""
        expected = (*batch["decoder_input_ids"].shape, model.config.vocab_size)
        if logits.shape != expected:
            raise self.refusal(f"its logits have the shape {tuple(logits.shape)}, not {expected}")


@torch.no_grad()
def prove_encoding(
    model: RetrofitForConditionalGeneration,
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
        probe: random inputs of base tokens.
        before: logits of the backbone, with its tables as they are now.

    Raises:
        ConversionError: with the largest difference; or the backbone cannot run with the encoding.
    """
    config = model.config
    with family.refusing(masks=True):
        after = model(**probe).logits
    family.check_shape(after, model, probe)
    columns = [i for i in config.vocabulary.base_ids if i < before.shape[-1]]
    if not torch.equal(after[..., columns], before[..., columns]):
        gap = float((after[..., columns] - before[..., columns]).abs().max())
        raise ConversionError(
            f"proof failed without symbols: logits differ from the backbone's by up to {gap:.2e}"
        )
    probe_with_names = _with_names(probe, config)
    with family.refusing():
        _prove_renaming(model, family, {key: value[:1] for key, value in probe_with_names.items()})
        _prove_cache(model, family, probe_with_names)


def _with_names(probe: dict[str, Tensor], config: RetrofitConfig) -> dict[str, Tensor]:
    """Return the inputs with names of every class: some in the first row, one in the second."""
    ranges = config.vocabulary.ranges.values()
    names = [i for pairs in ranges for i in [i for pair in pairs for i in range(*pair)][:2]][:4]
    ids, answers = probe["input_ids"].clone(), probe["decoder_input_ids"].clone()
    ids[0, : 2 * len(names) : 2] = torch.tensor(names).to(ids)
    ids[0, -1] = answers[0, 1] = answers[0, -1] = names[0]
    ids[1, 3] = answers[1, 1] = answers[1, -1] = names[-1]
    return {**probe, "input_ids": ids, "decoder_input_ids": answers}


def _prove_renaming(
    model: RetrofitForConditionalGeneration, family: Family, probe: dict[str, Tensor]
) -> None:
    """Check that every name called as the next of its class gives the same in moved columns."""
    config = model.config
    logits = model(**probe).logits
    family.check_shape(logits, model, probe)
    if not config.needs_stream_ids:  # nothing is promised
        return
    renaming = torch.arange(config.vocab_size, device=logits.device)
    for pairs in config.vocabulary.ranges.values():
        members = torch.tensor([i for pair in pairs for i in range(*pair)]).to(renaming)
        renaming[members] = members.roll(-1)
    renamed_ids = {name: renaming.to(probe[name].device)[probe[name]] for name in IDS}
    renamed_logits = model(**{**probe, **renamed_ids}).logits[..., renaming]
    if not torch.equal(renamed_logits, logits):
        gap = float((renamed_logits - logits).abs().max())
        raise family.refusal(f"renaming changes its logits by up to {gap:.2e}")


def _prove_cache(
    model: RetrofitForConditionalGeneration, family: Family, probe: dict[str, Tensor]
) -> None:
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
    answers = generated.sequences[:, : cached.shape[1]]
    full_logits = model(**prompt, decoder_input_ids=answers, use_cache=False).logits.to(cached)
    gap = (cached - full_logits).masked_fill(cached == full_logits, 0.0).abs()
    usual = full_logits.abs().median(dim=-1, keepdim=True).values  # what rounding goes with
    if not bool((gap <= torch.finfo(model.dtype).eps ** 0.5 * usual).all()):
        largest = float(gap.nan_to_num(torch.inf).max())
        raise family.refusal(f"a cache changes its logits by up to {largest:.2e}")


__all__ = ["Family", "plain_logits", "prove_encoding", "prove_growth", "random_probe"]
