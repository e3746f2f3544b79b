"""Answers of a model to a list of problems: encoded once, batched by cost, in the order given."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from tqdm.auto import tqdm

from hf_alpha.evaluation.processes import gather, process_state, split
from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.modeling.modeling_alpha import AlphaForConditionalGeneration
from hf_alpha.modeling.tokenization_alpha import AlphaEncoding, AlphaTokenizer


def generate_answers(
    model: AlphaForConditionalGeneration,
    tokenizer: AlphaTokenizer,
    problems: Sequence[str],
    *,
    num_beams: int = 3,
    length_penalty: float = 1.0,
    max_new_tokens: int = 128,
    num_return_sequences: int = 1,
    batch_size: int = 64,
    progress: bool = True,
) -> list[list[str] | None]:
    """Generate answers by greedy or beam search.

    In several processes (accelerate) each answers a share, and all of them return everything.

    Args:
        model: on the device on which to work.
        tokenizer: the one that belongs to the model.
        problems: in any notation of the tokenizer's grammar.
        num_beams: width of the beam search; 1 is greedy.
        length_penalty: beams are ranked by log-probability / length ** length_penalty.
        max_new_tokens: limit of an answer's length, the end token included.
        num_return_sequences: answers to each problem (top-N), best first.
        batch_size: problems in a batch.
        progress: show a progress bar.

    Returns:
        For each problem its `num_return_sequences` answers in the problem's own names, or None if
        it is outside the vocabulary (it has more names than the tokenizer has symbols).

    Raises:
        FormulaError: a problem cannot be read; the message has its index.
        ValueError: fewer beams than answers.
    """
    settings = search_settings(num_beams, length_penalty, max_new_tokens, num_return_sequences)
    state = process_state()
    encodings = encode_problems(tokenizer, problems)
    batches = split(plan_batches(encodings, batch_size), state)
    found: list[tuple[int, list[str]]] = []
    with (
        evaluation_mode(model),
        tqdm(total=sum(map(len, batches)), desc="generating", disable=not progress) as bar,
    ):
        for batch in batches:
            answers = answer_batch(model, tokenizer, [encodings[i] for i in batch], settings)
            found += zip(batch, answers, strict=True)
            bar.update(len(batch))
    by_index = dict(gather(found, state))
    return [by_index.get(index) for index in range(len(problems))]


def search_settings(
    num_beams: int, length_penalty: float, max_new_tokens: int, num_return_sequences: int
) -> dict[str, object]:
    """Return the arguments of `model.generate` for a deterministic search.

    Raises:
        ValueError: fewer beams than answers.
    """
    if num_return_sequences > num_beams:
        raise ValueError(
            f"{num_beams} beams cannot give {num_return_sequences} answers: raise num_beams"
        )
    settings: dict[str, object] = {
        "do_sample": False,
        "num_beams": num_beams,
        "max_new_tokens": max_new_tokens,
        "num_return_sequences": num_return_sequences,
    }
    return settings | ({"length_penalty": length_penalty} if num_beams > 1 else {})


def encode_problem(tokenizer: AlphaTokenizer, problem: str) -> AlphaEncoding | None:
    """Encode one problem as plain lists; None if it is outside the vocabulary.

    Raises:
        FormulaError: if the problem itself cannot be read.
    """
    try:
        return tokenizer(problem)
    except ValueError as error:  # a FormulaError may be that of another copy of the class
        if _lacks_only_symbols(tokenizer, problem):
            return None
        text = str(error).removeprefix("row 0: ")
        raise FormulaError(text, getattr(error, "position", -1)) from None


def _lacks_only_symbols(tokenizer: AlphaTokenizer, problem: str) -> bool:
    """Whether the tokenizer could read a problem if it had a symbol for each possible name."""
    roomy = copy.deepcopy(tokenizer)
    roomy.extend_symbols({name: len(set(problem.split())) + len(set(problem))
                          for name in roomy.symbol_classes})  # fmt: skip
    try:
        roomy(problem)
    except ValueError:
        return False
    return True


def encode_problems(
    tokenizer: AlphaTokenizer, problems: Sequence[str]
) -> list[AlphaEncoding | None]:
    """Encode problems; see `encode_problem`. Errors have the problem's index."""
    encodings = []
    for index, problem in enumerate(problems):
        try:
            encodings.append(encode_problem(tokenizer, problem))
        except FormulaError as error:
            raise FormulaError(f"problem {index}: {error}", error.position) from None
    return encodings


def plan_batches(encodings: Sequence[AlphaEncoding | None], batch_size: int) -> list[list[int]]:
    """Group indices by (symbols, length), the most expensive first: memory runs out at once."""
    order = [index for index, encoding in enumerate(encodings) if encoding is not None]
    order.sort(key=lambda index: _cost(encodings[index]), reverse=True)
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]


def _cost(encoding: AlphaEncoding | None) -> tuple[int, int]:
    return (len(encoding["stream_ids"]), len(encoding["input_ids"])) if encoding else (0, 0)


def answer_batch(
    model: AlphaForConditionalGeneration,
    tokenizer: AlphaTokenizer,
    encodings: Sequence[AlphaEncoding | None],
    settings: dict[str, object],
) -> list[list[str]]:
    """Answer encoded problems together; `settings` come from `search_settings`."""
    batch = tokenizer.pad(list(encodings), return_tensors="pt")
    names = batch.names
    with torch.inference_mode():
        output = model.generate(**batch.to(model.device), **settings)
    texts = tokenizer.batch_decode(output, names=names)
    count = len(texts) // len(encodings)
    return [texts[start : start + count] for start in range(0, len(texts), count)]


@contextmanager
def evaluation_mode(model: torch.nn.Module) -> Iterator[None]:
    """Meanwhile switch dropout off, and the model's own limit of length: the caller has another.

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


__all__ = ["encode_problem", "generate_answers", "plan_batches"]
