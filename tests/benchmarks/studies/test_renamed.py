import json
import random

import pytest
from datasets import Dataset, load_dataset
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.studies.renamed import rename_training_data, renamed, renaming
from hf_alpha.logic.drawing.generate import generate
from hf_alpha.logic.ltl import LTLTask
from hf_alpha.tasks import get_task

TASKS = {"propositional": get_task("propositional"), "ltl": LTLTask()}
COMPACT, LONG = list("bdac"), ["request", "grant_1", "a", "idle"]


@given(
    st.sampled_from(sorted(TASKS)),
    st.permutations(range(4)),
    st.booleans(),
    st.integers(1, 20),
    st.integers(0, 2**32),
)
def test_renaming_changes_names_only(name, order, long, size, seed):
    task, rng = TASKS[name], random.Random(seed)
    names = [(LONG if long else COMPACT)[i] for i in order]
    if not task.is_feasible(size, 4):
        return
    problem = task.sample(rng, size, names)
    answer = rng.choice([task.target(problem) or "", task.random_answer(problem, rng)])
    mapping = renaming(task, problem, answer)
    row = {"problem": problem, "answer": answer, "size": size}
    after = renamed(Dataset.from_list([row]), task)[0]
    assert after["size"] == size and after.keys() == row.keys()
    tokens = task.parse(after["problem"])
    assert task.canonical_form(tokens) == task.canonical(problem)
    assert task.check(after["problem"], after["answer"]) == task.check(problem, answer)
    first = "abcd"[: len(mapping)]
    assert sorted(mapping.values()) == list(first)
    seen = [letter for letter in dict.fromkeys(after["answer"]) if letter in first]
    assert seen == list(first[: len(seen)])
    others = [token for token in task.symbols_in(tokens) if token not in seen]
    assert others == sorted(others)
    back = {new: old for old, new in mapping.items()}
    assert task.parse(task.rename(after["problem"], back)) == task.parse(problem)
    assert "".join(task.rename(after["answer"], back).split()) == "".join(answer.split())


def test_training_data_is_renamed_and_the_rest_copied(tmp_path):
    generate(LTLTask(), tmp_path / "data", 400, (4, 12), num_symbols=3, alpha=1.0, progress=False)
    rename_training_data(tmp_path / "data", tmp_path / "renamed", "ltl")
    before, after = (load_dataset(str(tmp_path / name)) for name in ("data", "renamed"))
    assert after.column_names == before.column_names
    for split in ("validation", "test"):
        assert after[split].to_dict() == before[split].to_dict()
    assert after["train"].to_dict() == renamed(before["train"], LTLTask()).to_dict()
    assert after["train"]["witness_length"] == before["train"]["witness_length"]
    assert after["train"]["problem"] != before["train"]["problem"]
    record = json.loads((tmp_path / "renamed" / "generation.json").read_text())
    assert record["settings"]["sizes"] == [4, 12]
    with pytest.raises(FileExistsError, match="choose another folder"):
        rename_training_data(tmp_path / "data", tmp_path / "renamed", "ltl")
