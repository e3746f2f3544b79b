"""Pipelines of Transformers that answer in the names of each prompt."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from transformers import TextGenerationPipeline
from transformers.pipelines.text_generation import ReturnType
from transformers.utils.chat_template_utils import Chat, is_valid_message

NEW_NAMES = "t"


@dataclass(frozen=True)
class NamedPrompt:
    """A prompt and its names: those that are given, or, once read, what its symbols stand for."""

    text: Any
    names: Any


class NamesTextGenerationPipeline(TextGenerationPipeline):
    """`text-generation` by a decoder with symbols, in the names of each prompt.

    ```python
    complete = pipeline("text-generation", model=folder, trust_remote_code=True,
                        pipeline_class=hf_alpha.NamesTextGenerationPipeline)
    ```

    Its arguments are those of Transformers' own pipeline, which writes symbols as their tokens, and
    draws answers at random unless `do_sample=False` is given. Two more are `names`, those of the
    prompt or of each, as the tokenizer takes them, and `new_names`: how names that the prompt lacks
    are spelled, as `decode` of the tokenizer has it; by default t1, t2, ...

    Examples:
        >>> from transformers import pipeline
        >>> folder, kind = "model_cards/anf-relational", NamesTextGenerationPipeline
        >>> complete = pipeline("text-generation", model=folder, pipeline_class=kind)
        >>> complete("( x | y1 ) & z", do_sample=False, return_full_text=False)
        [{'generated_text': ' let t1 = x | y1 ; let t2 = t1 & z ; t2'}]
    """

    tokenizer: Any

    def __call__(self, text_inputs: Any, *, names: Any = None, **kwargs: Any) -> Any:
        """Returns the answers to a prompt or to several, texts or chats."""
        if names is None:
            return super().__call__(text_inputs, **kwargs)
        alone = isinstance(text_inputs, str) or is_valid_message(text_inputs[0])
        given = [(text_inputs, names)] if alone else zip(text_inputs, names, strict=True)
        prompts = [NamedPrompt(x if isinstance(x, str) else Chat(x), of) for x, of in given]
        answers = super().__call__(prompts, **kwargs)
        return answers[0] if alone else answers

    def _sanitize_parameters(self, new_names: Any = None, **kwargs: Any) -> tuple[dict, dict, dict]:
        preprocess, forward, postprocess = super()._sanitize_parameters(**kwargs)
        if new_names is not None:
            postprocess["new_names"] = new_names
        return preprocess, forward, postprocess

    def preprocess(self, prompt_text: Any, *args: Any, **kwargs: Any) -> Any:
        """Returns the prompt's tokens; its names travel with its text, which nothing changes."""
        if isinstance(prompt_text, NamedPrompt):
            given = {**(kwargs.get("tokenizer_encode_kwargs") or {}), "names": prompt_text.names}
            kwargs["tokenizer_encode_kwargs"], prompt_text = given, prompt_text.text
        inputs = super().preprocess(prompt_text, *args, **kwargs)
        inputs["prompt_text"] = NamedPrompt(prompt_text, getattr(inputs, "names", None))
        return inputs

    def postprocess(
        self,
        model_outputs: Mapping[str, Any],
        return_type: ReturnType = ReturnType.FULL_TEXT,
        new_names: Any = NEW_NAMES,
        **kwargs: Any,
    ) -> list[dict[str, Any]]:
        """Returns a record for each answer, as Transformers' pipeline does."""
        prompt, ids = model_outputs["prompt_text"], model_outputs["input_ids"]
        before = [] if ids is None else ids[0].tolist()
        outputs = {**model_outputs, "prompt_text": prompt.text}
        tokenizer = self.tokenizer
        self.tokenizer = InNames(tokenizer, before, {"names": prompt.names, "new_names": new_names})
        try:
            return super().postprocess(outputs, return_type=return_type, **kwargs)
        finally:
            self.tokenizer = tokenizer


@dataclass(frozen=True)
class InNames:
    """A tokenizer that decodes what follows a prompt, in its names."""

    tokenizer: Any
    prompt: list[int]
    names: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tokenizer, name)

    def decode(self, ids: list[int], skip_special_tokens: bool = True, **kwargs: Any) -> str:
        """Returns what ids write behind the prompt."""
        # Together, since what is between two tokens may belong to neither.
        rows = [self.prompt, [*self.prompt, *ids]]
        read, written = self.tokenizer.decode(rows, skip_special_tokens, **self.names)
        return written[len(read) :]
