import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from hf_alpha.logic.drawing.drawn import DrawnProblems
from hf_alpha.tasks import get_task
from hf_alpha.tasks.build_tokenizer import build_tokenizer

TOKENIZER = build_tokenizer("copying", 6)
FIRST = "eacdeb"


def drawn(**changes) -> DrawnProblems:
    settings = {"num_samples": 500, "sizes": (3, 9), "num_symbols": 5, **changes}
    return DrawnProblems("copying", TOKENIZER, **settings)


def rows_of(data: DrawnProblems) -> list[dict[str, list[int]]]:
    return [data[index] for index in range(len(data))]


@given(st.integers(0, 2**16), st.integers(1, 6), st.integers(1, 9), st.integers(0, 9))
def test_rows_are_tokenised_problems_with_their_keys(seed, num_symbols, smallest, more):
    sizes = (smallest, smallest + more)
    data = drawn(num_samples=40, sizes=sizes, num_symbols=num_symbols, seed=seed)
    for row, (count, size) in zip(rows_of(data), data.keys.tolist(), strict=True):
        problem = TOKENIZER.decode(row["input_ids"])
        assert row == TOKENIZER.encode_pair(problem, problem)
        assert len(row["stream_ids"]) == len(set(problem)) == count <= num_symbols
        assert len(problem) == size and sizes[0] <= size <= sizes[1]


def test_a_row_depends_on_seed_split_and_index_only():
    rows = rows_of(drawn())
    assert [drawn()[index] for index in (499, 0, 17)] == [rows[499], rows[0], rows[17]]
    # A fixed row, so that a run of today goes on with the data of yesterday.
    assert TOKENIZER.decode(rows[0]["input_ids"]) == FIRST
    assert rows_of(drawn(num_samples=1000))[:500] == rows
    for other in (drawn(seed=1), drawn(split="validation")):
        assert (other.keys == drawn().keys).all(axis=1).mean() < 0.2
        assert sum(a == b for a, b in zip(rows_of(other), rows, strict=True)) < 50
    loader = DataLoader(drawn(), num_workers=2, batch_size=50, collate_fn=list)
    assert [row for batch in loader for row in batch] == rows


def test_other_tasks_are_drawn_until_there_is_an_answer():
    tokenizer, task = build_tokenizer("propositional", 3), get_task("propositional")
    data = DrawnProblems(task, tokenizer, num_samples=200, sizes=(4, 6), num_symbols=3)
    for row, (count, size) in zip(rows_of(data), data.keys.tolist(), strict=True):
        problem = tokenizer.decode(row["input_ids"])
        assert row == tokenizer.encode_pair(problem, task.target(problem))
        assert len(task.symbols_of(problem)) == count and len(problem) == size


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_samples": 0}, "num_samples must be at least 1, got 0"),
        ({"sizes": (4, 3)}, r"sizes must be \(smallest, largest\) from 1 on, got \(4, 3\)"),
        ({"num_symbols": 7}, "the vocabulary has 6 symbols, so .* num_symbols = 7"),
        ({"num_symbols": 0}, "num_symbols must be at least 1, got 0"),
        ({"num_symbols": -1}, "num_symbols must be at least 1, got -1"),
    ],
)
def test_impossible_settings_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        drawn(**changes)
