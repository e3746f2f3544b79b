"""The one engine that turns problems into answers.

It encodes problems, groups them into batches of equal cost, searches, decodes, and extends
vocabularies that are too small. `generate_answers` does all of it; tools that do something between
batches take the parts: `encode_problems`, `plan_batches`, `answer_batches`.
"""

import copy
import inspect
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from typing import Any, TypeAlias, TypeVar

import torch
from tqdm.auto import tqdm
from transformers import LogitsProcessor, PreTrainedModel, PreTrainedTokenizerBase

from hf_alpha.modeling.choices import check_list
from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.modeling.tokenization_alpha import AlphaEncoding, AlphaTokenizer
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.names.unknown_words import TOLD, listed, unknown_id, unknown_words
from hf_alpha.processes import gather, process_state, split
from hf_alpha.tasks.base import NUM_BEAMS, warn_once
from hf_alpha.tasks.checking import Answer

AnyTokenizer: TypeAlias = AlphaTokenizer | TextTokenizer
Job = TypeVar("Job")
Result = TypeVar("Result")

BATCH_TOKENS = 64 * 256
"""Tokens of a batch with its padding: long problems make smaller batches."""
MAX_NEW_TOKENS = 128
"""Limit of an answer's length where nothing says another one."""
NEW_SYMBOLS = 64
"""Symbols of each class that are free for names that an answer makes up, where it may."""
NEW_NAME = "t"
"""What such names begin with; a number follows."""


SCORE_BYTES = 2**29
"""Of logits that are kept where answers have scores."""


class InputTooLong(ValueError):
    """A problem has more tokens than the model has positions."""


def generate_answers(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    problems: Sequence[str],
    *,
    num_beams: int = NUM_BEAMS,
    length_penalty: float = 1.0,
    max_new_tokens: int | None = None,
    num_return_sequences: int = 1,
    batch_size: int = 64,
    progress: bool = True,
) -> list[list[Answer] | None]:
    """Generate answers by greedy or beam search.

    In several processes (accelerate) each answers a share, and all of them return everything. Words
    of problems that are unknown to the model, and no names, are logged as a warning.

    Args:
        problems: in any notation of the tokenizer's grammar.
        num_beams: number of beams; 1 is greedy.
        length_penalty: beams are ranked by log-probability / length ** length_penalty.
        max_new_tokens: limit of an answer's length, the end token included; by default the model's
            own. Answers that it cuts off are logged as a warning, and have `ended` False.
        num_return_sequences: answers to each problem (top-N), best first.

    Returns:
        For each problem its `num_return_sequences` answers in the problem's own names, or None if
        it is outside the vocabulary (it has more names than the tokenizer has symbols).

    Raises:
        FormulaError: a problem cannot be read; the message has its index.
        InputTooLong: a problem has more tokens than the model has positions.
        ValueError: fewer beams than answers, or the problems are one string.

    Examples:
        >>> generate_answers(model, tokenizer, ["rain & !snow"], progress=False)
        [['rain 1 snow 0']]
    """
    limit = configured_limit(model) if max_new_tokens is None else max_new_tokens
    settings = search_settings(num_beams, length_penalty, limit, num_return_sequences)
    state = process_state()
    encodings = encode_problems(tokenizer, problems)
    batches = split(plan_batches(encodings, batch_size), state)
    indexed_answers: list[tuple[int, list[Answer]]] = []
    answer = beam_search(model, tokenizer, encodings, settings)
    for batch, answers in answer_batches(model, batches, answer, "generating", progress):
        indexed_answers += zip(batch, answers, strict=True)
    by_index = dict(gather(indexed_answers, state))
    if cut := sum(not answers[0].ended for answers in by_index.values()):
        warn_once(
            f"{cut:,} of {len(problems):,} answers are cut off at {limit} tokens: max_new_tokens "
            "sets more"
        )
    return [by_index.get(index) for index in range(len(problems))]


def answer_batches(
    model: torch.nn.Module,
    batches: Sequence[list[Job]],
    answer: Callable[[list[Job]], Sequence[Result]],
    title: str,
    progress: bool = True,
) -> Generator[tuple[list[Job], Sequence[Result]], None, None]:
    """Answer one batch after the other, with a progress bar and without dropout.

    Args:
        model: is put into evaluation mode meanwhile.

    Yields:
        Each batch with its answers, as soon as they are there. Close it (`contextlib.closing`)
        where an error may end the work between two batches: the model's mode then comes back.
    """
    total = sum(map(len, batches))
    with evaluation_mode(model), tqdm(total=total, desc=title, disable=not progress) as bar:
        for batch in batches:
            yield batch, answer(batch)
            bar.update(len(batch))


def beam_search(
    model: PreTrainedModel,
    tokenizer: AnyTokenizer,
    encodings: Sequence[AlphaEncoding | None],
    settings: Mapping[str, Any],
    scores: bool = False,
) -> Callable[[list[int]], list[list[Answer]]]:
    """Return what answers the problems of a batch, given as indices into `encodings`.

    Args:
        encodings: by `encode_problems`.
        settings: by `search_settings`.
        scores: answers have their `score`; memory holds logits of all tokens, see `scored_rows`.
    """

    def answer(batch: list[int]) -> list[list[Answer]]:
        rows = [encodings[index] for index in batch]
        # A decoder goes on from the last token of its input.
        side = None if model.config.is_encoder_decoder else "left"
        inputs = tokenizer.pad(rows, padding_side=side, return_tensors="pt")
        length = inputs["input_ids"].shape[1]
        room = answer_room(model.config, length, settings["max_new_tokens"], "the longest problem")
        chosen = {**settings, "max_new_tokens": room}
        end, pad = end_and_pad(model, tokenizer, settings)
        rates: Iterable[float | None] = repeat(None)
        if scores:
            output, rates = _rated(model, inputs, chosen, end)
        else:
            output = generate_ids(model, inputs, chosen)
        spelling = NEW_NAME if getattr(model.config, "new_symbols", False) else None
        written = output.tolist()
        ended = [_until_end(row, end, pad) for row in written]
        texts = tokenizer.batch_decode(ended, names=inputs.names, new_names=spelling)
        has_end = [not end.isdisjoint(row) for row in written]
        answers = list(map(Answer, texts, has_end, rates))
        count = len(answers) // len(batch)
        return [answers[start : start + count] for start in range(0, len(answers), count)]

    return answer


def generate_ids(
    model: Any, inputs: Mapping[str, torch.Tensor], settings: Mapping[str, Any]
) -> torch.Tensor:
    """Generate the ids of answers to padded inputs: (answers, length).

    Inputs that the model has no use for, such as tree paths, are left out. So is, of what is
    generated, the token that starts an answer or, of a decoder, its input.
    """
    return _without_start(model, inputs, generate_output(model, inputs, settings))


def generate_output(
    model: Any, inputs: Mapping[str, torch.Tensor], settings: Mapping[str, Any]
) -> Any:
    """Return what `model.generate` does, for those of the inputs that it has a use for."""
    input_names = used_inputs(model)
    with torch.inference_mode():
        on_device = {
            name: x.to(model.device)
            for name, x in inputs.items()
            if not input_names or name in input_names
        }
        return model.generate(**on_device, **settings)


def _without_start(
    model: Any, inputs: Mapping[str, torch.Tensor], ids: torch.Tensor
) -> torch.Tensor:
    return ids[:, 1 if model.config.is_encoder_decoder else inputs["input_ids"].shape[1] :]


def _rated(
    model: Any, inputs: Mapping[str, torch.Tensor], settings: Mapping[str, Any], end: set[int]
) -> tuple[torch.Tensor, list[float]]:
    """Generate ids (answers, length), and return the log-probability of each answer too."""
    by_beams = settings["num_beams"] > 1
    wanted = {
        "return_dict_in_generate": True,
        "output_scores" if by_beams else "output_logits": True,
    }
    output = generate_output(model, inputs, {**settings, **wanted})
    ids = _without_start(model, inputs, output.sequences)
    rows = ids.tolist()
    lengths = [next((n for n, i in enumerate(row, 1) if i in end), len(row)) for row in rows]
    if by_beams:  # which were ranked by log-probability / length ** length_penalty
        powers = [length ** settings["length_penalty"] for length in lengths]
        return ids, [x * n for x, n in zip(output.sequences_scores.tolist(), powers, strict=True)]
    totals = [0.0] * len(rows)
    for step, logits in enumerate(output.logits):
        rates = logits.float().log_softmax(-1).gather(1, ids[:, step : step + 1].to(logits.device))
        for row, rate in enumerate(rates[:, 0].tolist()):
            totals[row] += rate if step < lengths[row] else 0.0
    return ids, totals


def scored_rows(model: Any, settings: Mapping[str, Any]) -> int:
    """Return how many problems are answered together where answers have scores.

    Their logits, of all tokens and beams, take at most `SCORE_BYTES`.
    """
    row = 4 * model.config.vocab_size * settings["num_beams"] * settings["max_new_tokens"]
    return max(SCORE_BYTES // row, 1)


class MaskedTokens(LogitsProcessor):
    """Make tokens impossible that may not come next; a function of the tokens so far.

    Args:
        mask: by `Task.answer_mask`, for answers of an encoder-decoder.
    """

    def __init__(self, mask: Callable[[torch.Tensor], torch.Tensor]):
        self._mask = mask

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return the scores (R, V) of the next token after `input_ids` (R, T) and its start."""
        allowed = self._mask(input_ids[:, 1:])
        columns = allowed.shape[1]  # the head may have more than the tokenizer
        masked = scores.clone()
        masked[:, :columns].masked_fill_(~allowed, float("-inf"))
        masked[:, columns:] = float("-inf")
        return masked


def generate_rows(
    model: Any,
    tokenizer: Any,
    rows: Sequence[Mapping[str, Sequence[int]]],
    settings: Mapping[str, Any],
) -> list[list[int]]:
    """Generate answers to inputs of one shape, with any model and tokenizer of Transformers.

    Args:
        rows: inputs by name, without padding.
        settings: of `model.generate`.

    Returns:
        The ids of each answer, without what comes before it and from its end token on.
    """
    batch = {key: torch.tensor([row[key] for row in rows]) for key in rows[0]}
    end, pad = end_and_pad(model, tokenizer, settings)
    settings = {**settings} if pad is None else {"pad_token_id": pad, **settings}
    if model.config.is_encoder_decoder and not _has_start(model):
        settings.setdefault("decoder_start_token_id", pad)
    return [_until_end(row, end, pad) for row in generate_ids(model, batch, settings).tolist()]


def _has_start(model: Any) -> bool:
    settings = getattr(model, "generation_config", None)
    keys = ("decoder_start_token_id", "bos_token_id")
    return settings is None or any(getattr(settings, key) is not None for key in keys)


def end_and_pad(
    model: Any, tokenizer: Any, settings: Mapping[str, Any]
) -> tuple[set[int], int | None]:
    """Return the tokens that end an answer, and the one for padding, if there is one."""
    config = getattr(model, "generation_config", None) or model.config
    end = settings.get("eos_token_id", config.eos_token_id)
    end = tokenizer.eos_token_id if end is None else end
    ends = {end} if isinstance(end, int) else set(end or ())
    pad = config.pad_token_id if config.pad_token_id is not None else tokenizer.pad_token_id
    return ends, min(ends) if pad is None and ends else pad


def _until_end(ids: Sequence[int], end: set[int], pad: int | None) -> list[int]:
    stop = next((position for position, i in enumerate(ids) if i in end), len(ids))
    while stop and ids[stop - 1] == pad:
        stop -= 1
    return list(ids[:stop])


def answer_room(
    config: Any, length: int, max_new_tokens: int | None, what: str = "the input"
) -> int | None:
    """Return how many new tokens a model has positions for, and at most as many as are wanted.

    Args:
        length: tokens of the input.
        max_new_tokens: new tokens; None for as many as there is room for.

    Returns:
        The number; None if there is no limit.

    Raises:
        InputTooLong: the input itself is too long.
    """
    config = getattr(config, "backbone_config", None) or config
    limit = _positions(config, "encoder" if config.is_encoder_decoder else "decoder")
    if limit is not None and length + (not config.is_encoder_decoder) > limit:
        raise InputTooLong(
            f"{what} has {length} tokens, but the model has {limit} positions"
            + ("" if config.is_encoder_decoder else ", for input and answer together")
        )
    positions = _positions(config, "decoder")
    if positions is None:
        return max_new_tokens
    first = 1 if config.is_encoder_decoder else length  # the start token, or the prompt
    room = positions - first
    return room if max_new_tokens is None else min(room, max_new_tokens)


@dataclass(frozen=True)
class PairRoom:
    """How many tokens a pair may have that a model is trained on; None is no limit.

    Attributes:
        source: of the source alone, and `target` of the target, as an encoder and a decoder take
            them.
        both: of the two together, as a decoder alone takes them.
    """

    source: int | None = None
    target: int | None = None
    both: int | None = None

    @classmethod
    def of(cls, config: Any, most: int | None = None) -> "PairRoom":
        """Return what a model has positions for, and at most what is asked for."""
        config = getattr(config, "backbone_config", None) or config

        def room(part: str) -> int | None:
            return min(filter(None, [_positions(config, part), most]), default=None)

        if config.is_encoder_decoder:
            return cls(room("encoder"), room("decoder"))
        return cls(both=room("decoder"))

    def holds(self, source: int, target: int) -> bool:
        """Whether it holds a pair of so many tokens."""
        counts = {"source": source, "target": target, "both": source + target}
        return all(counts[part] <= most for part, most in self._limits)

    @property
    def _limits(self) -> list[tuple[str, int]]:
        return [(part, most) for part, most in vars(self).items() if most is not None]

    def __str__(self) -> str:
        return ", ".join(f"{part} at most {most} tokens" for part, most in self._limits)


def room_for(longest: int) -> int:
    """Return the limit of answers of which the longest known one has so many tokens.

    It is half as many again, and some; `MAX_NEW_TOKENS` where none is known.
    """
    return longest + longest // 2 + 8 if longest else MAX_NEW_TOKENS


def configured_limit(model: Any) -> int:
    """Return how many tokens an answer may have by a model's own settings of generation.

    `MAX_NEW_TOKENS` where they do not say it.
    """
    config = model.generation_config
    if config.max_new_tokens is not None:
        return config.max_new_tokens
    if config.max_length is not None and model.config.is_encoder_decoder:
        return config.max_length - 1  # behind the start token
    return MAX_NEW_TOKENS


def raise_limit(model: Any, least: int = 0) -> None:
    """Have a model's `generate` write at least so many tokens, where its caller says no number.

    A limit of its own that is larger stays. Where it has none, Transformers would end answers after
    20 tokens: there, `MAX_NEW_TOKENS` is the least. A model with fewer positions gets those.
    """
    room = answer_room(model.config, 1, max(least, configured_limit(model)))
    assert room is not None
    config = model.generation_config
    if model.config.is_encoder_decoder and config.max_new_tokens is None:
        config.max_length = room + 1
    else:
        config.max_new_tokens = room


def _positions(config: Any, part: str) -> int | None:
    """Return how many positions the encoder or decoder has; None if there is no limit."""
    for holder in (getattr(config, part, None), getattr(config, "text_config", None), config):
        # LED has one for each part. GPT-2's `n_positions` goes by the other name too; that of T5,
        # whose positions are relative, does not and is no limit.
        for key in (f"max_{part}_position_embeddings", "max_position_embeddings"):
            size = getattr(holder, key, None)
            if isinstance(size, int) and size > 0:  # XLNet says -1: no limit
                return size
    return None


def used_inputs(model: Any) -> set[str]:
    """Return the inputs that a model's `forward` names; none if it does not say.

    The model may be compiled or have an adapter of PEFT: what they wrap around it takes anything.
    """
    while True:
        if (inner := getattr(model, "_orig_mod", None)) is not None:
            model = inner
        elif hasattr(model, "get_base_model"):
            model = model.get_base_model()
        else:
            break
    parameters = inspect.signature(model.forward).parameters.values()
    return {p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


def fit_tokenizer(tokenizer: Any, model: Any) -> None:
    """Have a tokenizer make batches for a model's `generate`, and keep no names in vain.

    It returns only what the model takes, and pads for a decoder alone, which goes on from the last
    token, on the left. Names of symbols' own stay where the model learns a vector for each symbol.

    Args:
        tokenizer: changed in place; the changes are saved with it.
    """
    model_inputs, names = used_inputs(model), tokenizer.model_input_names
    input_names = [name for name in names if name in model_inputs]
    if input_names and input_names != names:
        tokenizer.model_input_names = tokenizer.init_kwargs["model_input_names"] = input_names
    if not model.config.is_encoder_decoder:
        tokenizer.padding_side = tokenizer.init_kwargs["padding_side"] = "left"
    learns = getattr(model.config, "learns_names", True)
    if getattr(tokenizer, "symbol_names", None) and not learns:
        tokenizer.forget_names()


def extend_vocabulary(
    model: PreTrainedModel, tokenizer: AnyTokenizer, num_symbols: int | Mapping[str, int]
) -> None:
    """Extend a vocabulary to so many symbols, if the encoding needs no training for that.

    Args:
        num_symbols: class -> number of symbols that problems need; or a number, where there is one
            class only. Where answers may have new names, there are more.
    """
    have = tokenizer.symbol_classes
    if not isinstance(num_symbols, Mapping):
        num_symbols = dict.fromkeys(have, num_symbols) if len(have) == 1 else {}
    if getattr(model.config, "new_symbols", False):
        num_symbols = {name: num_symbols.get(name, 0) + NEW_SYMBOLS for name in have}
    missing = {
        name: num_symbols[name] - count
        for name, count in have.items()
        if num_symbols.get(name, 0) > count
    }
    if missing and not model.config.encoding.no_extension:
        model.extend_symbols(missing)
        tokenizer.extend_symbols(missing)


def search_settings(
    num_beams: int, length_penalty: float, max_new_tokens: int, num_return_sequences: int
) -> dict[str, Any]:
    """Return the arguments of `model.generate` for a deterministic search.

    Raises:
        ValueError: fewer beams than answers.
    """
    if num_return_sequences > num_beams:
        raise ValueError(
            f"{num_beams} beams cannot give {num_return_sequences} answers: raise num_beams"
        )
    settings: dict[str, Any] = {
        "do_sample": False,
        "num_beams": num_beams,
        "max_new_tokens": max_new_tokens,
        "num_return_sequences": num_return_sequences,
    }
    return settings | ({"length_penalty": length_penalty} if num_beams > 1 else {})


def encode_problem(tokenizer: AnyTokenizer, problem: str) -> AlphaEncoding | None:
    """Encode one problem as plain lists; None if it is outside the vocabulary.

    Raises:
        FormulaError: if the problem itself cannot be read.
    """
    try:
        return tokenizer(problem)
    except ValueError as error:  # a FormulaError may be that of another copy of the class
        if needed_symbols(tokenizer, problem) is not None:
            return None
        text = str(error).removeprefix("row 0: ")
        raise FormulaError(text, getattr(error, "position", -1)) from None


def needed_symbols(tokenizer: AnyTokenizer, problem: str) -> dict[str, int] | None:
    """Return class -> names of a problem; None if it could not be read with a symbol for each."""
    roomy = copy.deepcopy(tokenizer)
    roomy.extend_symbols({name: len(set(problem.split())) + len(set(problem))
                          for name in roomy.symbol_classes})  # fmt: skip
    try:
        symbols = roomy(problem)["stream_ids"]
    except ValueError:
        return None
    return dict(Counter(roomy.class_of(index) for index in symbols))


def encode_problems(tokenizer: AnyTokenizer, problems: Sequence[str]) -> list[AlphaEncoding | None]:
    """Encode problems; see `encode_problem`. Errors have the problem's index.

    A warning says which words are unknown to the model and no names.

    Raises:
        FormulaError: a problem cannot be read.
        ValueError: the problems are one string, or one of them is none.
    """
    check_list("problems", problems)
    encodings = []
    for index, problem in enumerate(problems):
        check_text(problem, index)
        try:
            encodings.append(encode_problem(tokenizer, problem))
        except FormulaError as error:
            raise FormulaError(f"problem {index}: {error}", error.position) from None
    warn_of_unknown(tokenizer, problems, [row and row["input_ids"] for row in encodings])
    return encodings


def check_text(problem: object, index: int) -> None:
    """Refuse a problem that is no string."""
    if not isinstance(problem, str):
        raise ValueError(f"problem {index} is no string but a {type(problem).__name__}")


def warn_of_unknown(
    tokenizer: Any, problems: Sequence[str], rows: Sequence[Sequence[int] | None]
) -> None:
    """Say which words of problems a model does not know, from their ids."""
    unknown = unknown_id(tokenizer)
    texts = [text for text, ids in zip(problems, rows, strict=True) if ids and unknown in ids]
    new = [[word for word in row if word not in TOLD] for row in unknown_words(tokenizer, texts)]
    if words := [word for row in new for word in row]:
        warn_once(
            f"{sum(map(bool, new)):,} of {len(problems):,} problems have words that the model does "
            f"not know and that are no names by its rules: {listed(words)}; answers can hardly be "
            "right"
        )


def plan_batches(encodings: Sequence[AlphaEncoding | None], batch_size: int) -> list[list[int]]:
    """Group indices by (symbols, length), the most expensive first: memory runs out at once.

    A batch has, with padding, at most `BATCH_TOKENS`; a problem alone may have more.

    Raises:
        ValueError: a batch would have no row.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}: give 1 or more")
    order = [index for index, encoding in enumerate(encodings) if encoding is not None]
    order.sort(key=lambda index: _cost(encodings[index]), reverse=True)
    batches: list[list[int]] = []
    longest = 0
    for index in order:
        size = _cost(encodings[index])[1]
        longest = max(longest, size)
        batch = batches[-1] if batches else []
        if not batch or len(batch) == batch_size or longest * (len(batch) + 1) > BATCH_TOKENS:
            batches.append(batch := [])
            longest = size
        batch.append(index)
    return batches


def _cost(encoding: AlphaEncoding | None) -> tuple[int, int]:
    return (len(encoding["stream_ids"]), len(encoding["input_ids"])) if encoding else (0, 0)


@contextmanager
def evaluation_mode(model: torch.nn.Module) -> Iterator[None]:
    """Switch off, within a `with` block, dropout and the model's own limit of length.

    (Transformers warns in every batch where both are set.)
    """
    training, config = model.training, getattr(model, "generation_config", None)
    limit = getattr(config, "max_length", None)
    model.eval()
    if config is not None:
        config.max_length = None
    try:
        yield
    finally:
        model.train(training)
        if config is not None:
            config.max_length = limit
