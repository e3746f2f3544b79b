"""Models that read and write canonical spelling, asked in names; and folders that do so themselves.

The model may be a folder, a pipeline, or behind an address: see `CanonicalNames`. By random words
in place of the first ones, a model is asked several times, and the answers vote.
"""

import copy
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

from hf_alpha.modeling.canonical_names import CanonicalNames
from hf_alpha.modeling.tokenization_canonical import CanonicalTokenizer


@dataclass(frozen=True)
class Vote:
    """The answer that most spellings give, and which share of them give another one."""

    answer: str
    doubt: float


@dataclass(frozen=True)
class CanonicalModel:
    """A model that reads and writes canonical spelling, for those who ask it in their own names.

    Args:
        ask: the model: from a text to its answer, or for `stream` to the parts of it.

    Examples:
        >>> names = CanonicalNames({"variable": "[a-z]+[0-9]"}, words=["x", "y"])
        >>> CanonicalModel(lambda text: f"I read {text[0]}", names)("apple1 + pear2")
        'I read apple1'
    """

    ask: Callable[[str], Any]
    names: CanonicalNames

    def __call__(self, text: str) -> str:
        """Return the answer to a text."""
        spelled = self.names.spell(text)
        return spelled.back(self.ask(spelled.text))

    def stream(self, text: str) -> Iterator[str]:
        """Yield the parts of an answer as they come."""
        spelled = self.names.spell(text)
        return spelled.stream(self.ask(spelled.text))

    def vote(self, text: str, spellings: int = 5) -> Vote:
        """Return the answer that most of so many spellings give, the first ones of equally many.

        The first spelling is canonical, the others are drawn, by no name.

        Raises:
            ValueError: there is none.
        """
        if spellings < 1:
            raise ValueError(f"spellings is {spellings}: give 1 or more")
        asked = [self.names.spell(text, draw) for draw in range(spellings)]
        answers = [self.ask(spelled.text) for spelled in asked]
        keys = [spelled.key(answer) for spelled, answer in zip(asked, answers, strict=True)]
        best, votes = Counter(keys).most_common(1)[0]
        first = keys.index(best)
        return Vote(asked[first].back(answers[first]), (spellings - votes) / spellings)


def generating(model: Any, tokenizer: Any, **options: Any) -> Callable[[str], str]:
    """Return a model of Transformers as what answers a text.

    Args:
        model: an encoder-decoder, or a decoder, whose answer is what follows the text.
    """
    from hf_alpha.generation import generate_rows  # with torch, which an address does not need

    def ask(text: str) -> str:
        encoded = tokenizer(text)
        row = {key: encoded[key] for key in ("input_ids", "attention_mask")}
        (ids,) = generate_rows(model, tokenizer, [row], options)
        return str(tokenizer.decode(ids, skip_special_tokens=True))

    return ask


def answering(model: Any, tokenizer: Any, max_tokens: int) -> Callable[[dict[str, Any]], Any]:
    """Return a decoder as what answers requests in OpenAI's form, greedily, with one choice.

    Calls of tools stay in the content, as the model writes them. The same input is read once.
    """
    from hf_alpha.generation import answer_room, generate_rows

    @lru_cache(maxsize=2)  # as it is, and in canonical spelling
    def generated(ids: tuple[int, ...]) -> tuple[list[int], bool]:
        room = answer_room(model.config, len(ids), max_tokens)
        row = {"input_ids": [*ids], "attention_mask": [1] * len(ids)}
        options = {"max_new_tokens": room, "do_sample": False}
        (answer,) = generate_rows(model, tokenizer, [row], options)
        return answer, len(answer) == room

    def ask(body: dict[str, Any]) -> Any:
        encoded = _encoded(tokenizer, body)
        ids, is_cut = generated(tuple(encoded["input_ids"]))
        names = getattr(encoded, "names", None)
        text = tokenizer.decode(ids, True, **({} if names is None else {"names": names}))
        reason = "length" if is_cut else "stop"
        return {"choices": [{"message": {"content": text}, "finish_reason": reason}]}

    return ask


def _encoded(tokenizer: Any, body: Mapping[str, Any]) -> Any:
    """Return a request as a model reads it.

    Raises:
        ValueError: the chat template is missing, or leaves out tools or calls of tools.
    """
    if "messages" not in body:
        return tokenizer(body["prompt"])
    if not tokenizer.chat_template:
        raise ValueError("the tokenizer has no chat template: take an instruct model, or a text")
    from hf_alpha.modeling.chats import check_told

    def write(messages: Any, tools: Any) -> str:
        how = {"tokenize": False, "add_generation_prompt": True}
        return tokenizer.apply_chat_template(messages, tools, **how)

    messages, tools = [*map(_read, body["messages"])], body.get("tools") or None
    text = write(messages, tools)
    check_told(write, messages, tools, text)
    return tokenizer(text, add_special_tokens=False)


def _read(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message as templates read it: one text, and arguments of calls as data."""
    read, content = {**message}, message.get("content")
    if isinstance(content, list):
        read["content"] = "\n".join(part["text"] for part in content if "text" in part)
    for call in (calls := copy.deepcopy(message.get("tool_calls") or [])):
        with suppress(ValueError, KeyError, TypeError):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return {**read, "tool_calls": calls} if calls else read


def convert_to_canonical(
    source: str | Path,
    out: str | Path,
    symbols: Mapping[str, Any],
    say: Callable[[str], object] = print,
    **options: Any,
) -> CanonicalTokenizer:
    """Write a folder with a model as it is, whose tokenizer spells names canonically.

    Args:
        source: any model of Transformers with a fast tokenizer: one that writes answers, or an
            encoder with its head, to which texts are spelled.
        symbols: class -> rule by which its names are found.

    Raises:
        CheckpointError: weights are missing or damaged.
        FileExistsError: `out` exists; it stays as it is.
        FileNotFoundError: there is no such model.
        ValueError: its tokenizer is not a fast one, or a rule is wrong.
    """
    from hf_alpha.generation import fit_tokenizer
    from hf_alpha.io.folders import new_folder
    from hf_alpha.io.progress import without_bars
    from hf_alpha.loading import ANSWERING, auto_class, load_config, load_host

    with new_folder(Path(out)) as unfinished, without_bars():
        kind = auto_class(load_config(source))
        model, host_tokenizer = load_host(source, kind)
        tokenizer = CanonicalTokenizer.from_tokenizer(host_tokenizer, symbols, **options)
        if kind in ANSWERING:
            fit_tokenizer(tokenizer, model)
        model.save_pretrained(unfinished)
        tokenizer.save_pretrained(unfinished)
    first = {words: [*islice(words, 3)] for words in tokenizer.canonical.words.values()}
    words = ", ".join([*chain.from_iterable(first.values()), "..."])
    written = f"as {words}" if first else "as their rule spells them"
    if first and kind in ANSWERING:
        written += " and answers in the names of their text"
    gap = tokenizer.tools_gap()
    say(
        f"{out}: the {model.config.model_type!r} model as it was, {model.num_parameters():,} "
        f"parameters; its tokenizer writes names {written}"
        f"\nnext: fine-tune it on texts with names, hf-alpha train my-task.yaml checkpoint={out}"
        + (f"\n{gap}" if gap else "")
    )
    return tokenizer
