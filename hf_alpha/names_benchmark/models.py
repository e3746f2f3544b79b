"""Models with symbols, asked as others are: their prompts say where names stand."""

from collections.abc import Mapping, Sequence
from typing import Any

from transformers import PreTrainedModel

from hf_alpha.evaluation.evaluate import digest, fingerprint
from hf_alpha.evaluation.instructed import SAMPLE, Keep, Reply
from hf_alpha.generation import beam_search, encode_problem, evaluation_mode, search_settings
from hf_alpha.modeling.names_in_text import MarkedText
from hf_alpha.modeling.tokenization_text import TextTokenizer

MAX_NEW_TOKENS = 128


class SymbolModel:
    """A model with symbols that reads texts; greedy search.

    A name in a prompt is of the model's class of that name, or else of its first class. A prompt
    with more names than the model has symbols, or that it cannot read, gets an empty reply.

    Args:
        model: on the device on which to work.
        tokenizer: the one that belongs to it.
        generation: `max_new_tokens`, if another one than 128.

    Raises:
        ValueError: the model reads formulas, not texts; or there are other settings.
    """

    plain = True
    sampled = False

    def __init__(
        self, model: PreTrainedModel, tokenizer: Any, generation: Mapping[str, Any] | None = None
    ):
        if type(tokenizer).__name__ != TextTokenizer.__name__:
            raise ValueError(
                f"a model of type {model.config.model_type} with {type(tokenizer).__name__} reads "
                "no texts with names: hf-alpha evaluate measures it on its own problems"
            )
        settings = {"max_new_tokens": MAX_NEW_TOKENS, **(generation or {})}
        if others := settings.keys() - {"max_new_tokens"}:
            raise ValueError(
                f"{min(others)} is no setting of a model with symbols: max_new_tokens is"
            )
        self.module, self.tokenizer = model, tokenizer
        self._search = search_settings(1, 1.0, settings["max_new_tokens"], 1)
        self.settings = {
            "weights": fingerprint(model),
            "encoded": digest(tokenizer(MarkedText(SAMPLE, ()))["input_ids"]),
            "generation": settings,
        }

    def length(self, prompt: str) -> tuple[int, int]:
        """Return the tokens and the names of a prompt, by which batches are formed."""
        encoding = encode_problem(self.tokenizer, self._in_own_classes(prompt))
        return (0, 0) if encoding is None else (
            len(encoding["input_ids"]), len(encoding["stream_ids"])
        )  # fmt: skip

    def ask(self, prompts: Sequence[str], keep: Keep) -> None:
        """Generate replies to prompts of one length.

        Raises:
            ValueError: the prompts are longer than the model's positions.
        """
        texts = [self._in_own_classes(prompt) for prompt in prompts]
        encodings = [encode_problem(self.tokenizer, text) for text in texts]
        readable = [index for index, encoding in enumerate(encodings) if encoding is not None]
        replies = [Reply("")] * len(prompts)
        if readable:
            answer = beam_search(self.module, self.tokenizer, encodings, self._search)
            with evaluation_mode(self.module):
                for index, (one,) in zip(readable, answer(readable), strict=True):
                    replies[index] = Reply(str(one).strip(), one.ended)
        for prompt, reply in zip(prompts, replies, strict=True):
            keep(prompt, reply)

    def _in_own_classes(self, prompt: str) -> MarkedText:
        """Mark names as of the model's own classes."""
        classes = list(self.tokenizer.symbol_classes)
        spans = prompt.spans if isinstance(prompt, MarkedText) else ()
        return MarkedText(
            prompt,
            [
                (span.start, span.stop, name if (name := span[2]) in classes else classes[0])
                for span in spans
            ],
        )


__all__ = ["SymbolModel"]
