"""A model with symbols as a model of lm-evaluation-harness: it is told where the names are.

A model whose tokenizer finds names by a rule needs nothing of this: `lm_eval --model hf` asks it.
"""

from collections.abc import Sequence
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.model import LM

from benchmarks.names.tasks import item_of
from hf_alpha.generation import generate_answers
from hf_alpha.modeling.spans import MarkedText


class SymbolModel(LM):
    """Greedy answers of a model with symbols to the questions of `tasks`.

    A name in a prompt is of the model's class of that name, or else of its first class. A prompt
    with more names than the model has symbols gets an empty reply.

    Args:
        model: on the device on which to work.
        tokenizer: the one that belongs to it; it reads texts.
        max_new_tokens: limit of an answer's length.
    """

    def __init__(self, model: Any, tokenizer: Any, max_new_tokens: int = 128):
        super().__init__()
        self.model, self.tokenizer, self.max_new_tokens = model, tokenizer, max_new_tokens

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Answer the rows of the requests."""
        prompts = [self._marked(item_of(request.doc).prompt) for request in requests]
        answers = generate_answers(
            self.model, self.tokenizer, prompts, num_beams=1,
            max_new_tokens=self.max_new_tokens, progress=False,
        )  # fmt: skip
        return [str(one[0]).strip() if one else "" for one in answers]

    def loglikelihood(self, requests: list[Instance]) -> Any:
        """Refuse it: no task here asks for it."""
        raise NotImplementedError("questions are answered by generate_until")

    loglikelihood_rolling = loglikelihood

    def _marked(self, prompt: MarkedText) -> MarkedText:
        """Mark names as of the model's own classes."""
        classes: Sequence[str] = list(self.tokenizer.symbol_classes)
        return MarkedText(
            str(prompt),
            [
                (span.start, span.stop, span[2] if span[2] in classes else classes[0])
                for span in prompt.spans
            ],
        )
