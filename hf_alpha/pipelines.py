"""Pipelines of Transformers that answer in the names of each prompt."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from transformers import TextGenerationPipeline
from transformers.pipelines.text_generation import ReturnType

NEW_NAMES = "t"


@dataclass(frozen=True)
class NamedPrompt:
    """A prompt, and what its symbols stand for; `None` where there are none."""

    text: Any
    names: Any


class NamesTextGenerationPipeline(TextGenerationPipeline):
    """`text-generation` by a decoder with symbols, in the names of each prompt.

    ```python
    complete = pipeline("text-generation", model=folder, trust_remote_code=True,
                        pipeline_class=hf_alpha.NamesTextGenerationPipeline)
    ```

    Its arguments are those of Transformers' own pipeline, which writes symbols as their tokens, and
    draws answers at random unless `do_sample=False` is given.
    One more is `new_names`: how names that the prompt lacks are spelled, as `decode` of the
    tokenizer has it; by default t1, t2, ...
    """

    def _sanitize_parameters(self, new_names: Any = None, **kwargs: Any) -> tuple[dict, dict, dict]:
        preprocess, forward, postprocess = super()._sanitize_parameters(**kwargs)
        if new_names is not None:
            postprocess["new_names"] = new_names
        return preprocess, forward, postprocess

    def preprocess(self, prompt_text: Any, *args: Any, **kwargs: Any) -> Any:
        """Returns the prompt's tokens; its names travel with its text, which nothing changes."""
        inputs = super().preprocess(prompt_text, *args, **kwargs)
        inputs["prompt_text"] = NamedPrompt(prompt_text, getattr(inputs, "names", None))
        return inputs

    def postprocess(
        self,
        model_outputs: Mapping[str, Any],
        return_type: ReturnType = ReturnType.FULL_TEXT,
        new_names: Any = NEW_NAMES,
        skip_special_tokens: bool | None = None,
        **kwargs: Any,
    ) -> list[dict[str, Any]]:
        """Returns a record for each answer, as Transformers' pipeline does."""
        records = super().postprocess(model_outputs, return_type=ReturnType.TENSORS, **kwargs)
        if return_type == ReturnType.TENSORS:
            return records
        prompt, prompt_ids = model_outputs["prompt_text"], model_outputs["input_ids"]
        length = 0 if prompt_ids is None else prompt_ids.shape[-1]
        for record in records:
            ids = record.pop("generated_token_ids")
            # Together, since what is between two tokens may belong to neither.
            read, written = self.tokenizer.decode(
                [ids[:length], ids],
                skip_special_tokens=skip_special_tokens is not False,
                names=prompt.names,
                new_names=new_names,
            )
            answer = written[len(read) :]
            full = return_type == ReturnType.FULL_TEXT
            record["generated_text"] = with_answer(prompt.text, answer) if full else answer
        return records


def with_answer(prompt: Any, answer: str) -> Any:
    """Return a prompt with its answer: a text, or a chat's messages with one more."""
    if isinstance(prompt, str):
        return prompt + answer
    return [*prompt.messages, {"role": "assistant", "content": answer.strip()}]


__all__ = ["NamesTextGenerationPipeline"]
