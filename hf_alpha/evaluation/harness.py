"""A type of models for lm-evaluation-harness, whose answers have the names of each document.

    python -m hf_alpha.evaluation.harness run --model hf-alpha --model_args pretrained=FOLDER ...

is `lm_eval run ...` with that type: the harness has no other way to learn of one. Asked by
`--model hf`, a model with symbols answers `<name_0>`, which no task compares with a name.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from hf_alpha.data.rows import names_of_row
from hf_alpha.generation import encode_problem, extend_vocabulary, needed_symbols
from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.modeling.spans import MarkedText
from hf_alpha.wings import optional

with optional():
    from lm_eval.api.instance import Instance
    from lm_eval.api.registry import register_model
    from lm_eval.models.huggingface import HFLM

logger = logging.getLogger(__name__)


@register_model("hf-alpha")
class NamesLM(HFLM):
    """The harness' own `hf`, for models that find names in texts; arguments are the same.

    Where a rule reads names from a column, that is one of the task's documents. A prompt with more
    names than the model has symbols gets some, where the encoding needs no training for that; else
    its answer is empty, with a warning.

    Raises:
        ValueError: the model's tokenizer finds no names.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._names: Iterator[Any] = iter(())
        if not hasattr(self.tokenizer, "finder"):
            raise ValueError(f"{args or kwargs}: its tokenizer finds no names: take --model hf")

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Answer prompts, in the names of each."""
        prompts = [self._marked(one.args[0], one.doc or {}) for one in requests]
        taken = [self._grow(prompt) for prompt in prompts]
        if refused := taken.count(False):
            logger.warning("%d of %d prompts get an empty answer", refused, len(prompts))
        asked = [
            replace(request, arguments=(prompt, _without_names(request.args[1])))
            for request, prompt, fits in zip(requests, prompts, taken, strict=True)
            if fits
        ]
        answers = iter(super().generate_until(asked, disable_tqdm) if asked else [])
        return [next(answers) if fits else "" for fits in taken]

    def tok_batch_encode(self, strings: Sequence[str], *args: Any, **kwargs: Any) -> Any:
        """Encode prompts, whose names those who decode next take in turn."""
        self._names = iter(self.tokenizer(list(strings)).names)
        return super().tok_batch_encode(list(strings), *args, **kwargs)

    def tok_decode(self, tokens: Any, skip_special_tokens: bool = True) -> Any:
        """Write the next answer of a batch with its names; a token alone has none."""
        names = next(self._names, None) if isinstance(tokens, list) else None
        text = self.tokenizer.decode(tokens, skip_special_tokens=skip_special_tokens, names=names)
        return text if isinstance(tokens, list) else MarkedText(text, [])

    def _marked(self, prompt: str, document: dict[str, Any]) -> str:
        """Return a prompt with the names that its document lists; those of a chat are known."""
        finder = self.tokenizer.finder
        if isinstance(prompt, MarkedText) or not finder.columns:
            return prompt
        if missing := [column for column in finder.columns.values() if column not in document]:
            raise ValueError(
                f"the model's names are those of a column {missing[0]!r}, and documents of this "
                f"task have {', '.join(document) or 'none'}: have `process_docs` add it"
            )
        texts = [prompt, ""]  # of which no list of places can speak
        return finder.mark(prompt, names_of_row(document, finder.columns, texts, True))

    def _grow(self, prompt: str) -> bool:
        """Add symbols for the names of a prompt if need be; return whether there are enough."""
        try:
            if encode_problem(self.tokenizer, prompt) is not None:
                return True
            needed = needed_symbols(self.tokenizer, prompt) or {}
            extend_vocabulary(self.model, self.tokenizer, needed)
            return encode_problem(self.tokenizer, prompt) is not None
        except FormulaError as error:
            logger.warning("%r: %s", prompt[-80:], error)
            return False


def _without_names(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings of a generation whose ends, `until`, say that they have no names."""
    ends = settings.get("until") or []
    ends = [ends] if isinstance(ends, str) else ends
    return {**settings, "until": [MarkedText(end, []) for end in ends]}


if __name__ == "__main__":
    from lm_eval.__main__ import cli_evaluate

    cli_evaluate()
