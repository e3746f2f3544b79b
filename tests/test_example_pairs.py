"""Files of pairs: tests have the same problems with other names, and none of training."""

import json
import random
import re
import sys
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hf_alpha.recipe import read_recipe
from hf_alpha.tasks.text.anf import OPERATORS, read_term

sys.path.append(str(Path(__file__).parents[1] / "examples" / "tasks"))  # as for a script there
import anf
import anf_steps
import extract
import proofs
import tseitin
from pair_files import PairFiles, main_of_operations, shape, write_term

TASKS = {task.__name__: task for task in (anf, anf_steps, tseitin, extract, proofs)}
tasks = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
seeds = st.integers(0, 2**32)


@cache
def check_of(task):
    module, _, name = read_recipe(f"text/{task.__name__}").check.partition(":")
    return getattr(import_module(module), name)


def drawn(task, seed):
    rng = random.Random(seed)
    return task.draw(rng, task.SEEN, *rng.choice([*task.FILES.train, *task.FILES.test]))


def is_constant(task, source):
    """Whether a formula is always true, or always false: no clause with its names is needed."""
    return task is tseitin and any(check_of(task)(source, clauses) for clauses in ("n", "n ; ~ n"))


def renamed(text, names):
    return re.sub(r"\w+", lambda word: names.get(word[0], word[0]), text)


@tasks
@given(seeds)
def test_a_drawn_pair_is_right_whatever_its_names_are(task, seed):
    row = drawn(task, seed)
    source, target = row["source"], row["target"]
    assert check_of(task)(source, target) is True
    others = random.Random(seed).sample(task.UNSEEN, len(task.SEEN))
    names = dict(zip(task.SEEN, others, strict=True))
    assert check_of(task)(renamed(source, names), renamed(target, names)) is True
    # New names may be called otherwise than in the data, names of the source may not.
    new = {name: name for name in task.UNSEEN} | {
        name: other for name, other in names.items() if not re.search(rf"\b{name}\b", source)
    }
    assert check_of(task)(source, renamed(target, new)) is True
    old = re.findall(r"\w+", source)
    assume(not is_constant(task, source))
    swapped = {name: other for name, other in names.items() if name in old}
    assert check_of(task)(source, renamed(target, swapped)) is False


@tasks
@given(seeds, st.data())
def test_an_answer_that_lacks_its_end_is_wrong_and_none_is_an_error(task, seed, data):
    row = drawn(task, seed)
    assume(not is_constant(task, row["source"]))
    start, _, _ = row["target"].rpartition("\n" if task is extract else " ; ")
    assert check_of(task)(row["source"], start) is False
    words = re.findall(r"\S+|\s+", row["target"])
    del words[data.draw(st.integers(0, len(words) - 1))]
    assert check_of(task)(row["source"], "".join(words)) in (True, False)


@tasks
def test_files_have_the_same_problems_with_names_seen_and_unseen(task, tmp_path):
    task.FILES.main([str(tmp_path), "--rows=300", "--tests=2", "--seed=3"])
    rows = {
        part: [json.loads(line) for line in (tmp_path / f"{part}.jsonl").open()]
        for part in ("train", "test", "new-names")
    }
    assert [len(part) for part in rows.values()] == [300, *[2 * len(task.FILES.test)] * 2]
    shapes = {
        part: [shape(f"{row['source']}\n{row['target']}", task.SEEN + task.UNSEEN) for row in pairs]
        for part, pairs in rows.items()
    }
    assert shapes["test"] == shapes["new-names"]
    sources = {
        part: {shape(row["source"], task.SEEN + task.UNSEEN) for row in pairs}
        for part, pairs in rows.items()
    }
    assert not sources["train"] & sources["test"]
    for part, pool in {"train": task.SEEN, "test": task.SEEN, "new-names": task.UNSEEN}.items():
        others = {*task.SEEN, *task.UNSEEN} - {*pool}
        words = {word for row in rows[part] for word in re.findall(r"\w+", row["source"])}
        assert words & {*pool} and not words & others
    for row in rows["test"]:
        names = {word for word in re.findall(r"\w+", row["source"]) if word in task.SEEN}
        assert len(names) == row["names"]
    most = max(row["names"] for row in rows["train"])
    assert max(row["names"] for row in rows["test"]) > most


def test_terms_of_more_operations_have_as_many_names(tmp_path):
    options = ["--operations=16", "--names=9", "--rows=200", "--tests=1"]
    main_of_operations(anf.draw, 7, [str(tmp_path), *options])
    train, test = (
        [json.loads(line) for line in (tmp_path / f"{part}.jsonl").open()]
        for part in ("train", "test")
    )
    assert max(row["operations"] for row in train) == 16
    assert max(row["names"] for row in train) == 9
    assert [row["names"] for row in test] == [*range(2, 18)]
    assert all(check_of(anf)(row["source"], row["target"]) for row in train + test)


def steps_of(terms):
    """Steps as they should be, whose new names are those of any step."""
    names = [f"new{number}" for number in range(30)]
    return [anf_steps.step(read_term(term, OPERATORS), names) for term in terms]


@given(seeds)
def test_steps_come_to_a_normal_form(seed):
    sources = [drawn(anf, seed + i)["source"] for i in range(2)] + ["t1 & ( t2 | t1 )", "a"]
    forms = anf_steps.normal_forms(steps_of, sources)
    assert all(map(check_of(anf), sources, forms))


def test_a_wrong_step_ends_its_form_alone():
    def ask(terms):
        return [step.replace("|", "^") for step in steps_of(terms)]

    forms = anf_steps.normal_forms(ask, ["( a & b ) | c", "( a & b ) & c"])
    assert forms == ["new0 = a & b ^ c", "let t1 = a & b ; let t2 = t1 & c ; t2"]


def test_a_size_of_which_training_has_all_problems_is_an_error(tmp_path):
    files = PairFiles(proofs.draw, proofs.SEEN, proofs.UNSEEN, [(2, 1)], [(2, 1)])
    with pytest.raises(ValueError, match=r"of the size \(2, 1\) are all in training"):
        files.save(tmp_path, rows=1, tests=1)


def test_formulas_of_many_names():
    """More than a table can hold: 40 names, and 39 new ones."""
    formula = "a0"
    for number in range(1, 40):
        formula = ("|", formula, ("~", f"a{number}"))
    target = tseitin.clauses_of(formula, [f"t{number}" for number in range(39)])
    assert check_of(tseitin)(write_term(formula), target) is True
    needed = "~ t20 | t19 | ~ a21 ; "
    assert (
        needed in target
        and check_of(tseitin)(write_term(formula), target.replace(needed, "")) is False
    )
    assert check_of(tseitin)(write_term(formula), f"{target} ; t38 | a0 ; ~ t30 | a0") is False


def test_one_way_only():
    """A name is left of one rule at most, and the way goes on behind some goals."""
    goes_on = 0
    for seed, steps in product(range(30), range(1, 5)):
        row = proofs.draw(random.Random(seed), proofs.UNSEEN, 12, steps)
        *rules, _fact, goal = row["source"].removesuffix(" .").split(" . ")
        lefts = [rule.split()[0] for rule in rules]
        assert len(set(lefts)) == len(lefts)
        goes_on += goal.split()[-1] in lefts
        assert check_of(proofs)(row["source"], row["target"]) is True
        assert row["target"].count("->") == steps
    assert 20 < goes_on < 120
