"""The text task: names, canonical forms, verdicts, and checks of the user's own."""

import pickle
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_alpha.data.keys import pair_key
from hf_alpha.modeling.spans import MarkedText
from hf_alpha.names.first_look import LACKING, fault, mark
from hf_alpha.tasks import DrawnTask, Verdict, drawn_task, get_task
from hf_alpha.tasks.solver_process import SolverCrashError
from hf_alpha.tasks.text import TextTask

SYMBOLS = {"variable": {"pattern": "[a-z][0-9]*"}, "function": ["F", "G"]}
CHECKS = """
import time
from hf_alpha.tasks import Verdict

def same_length(source, answer, target):
    return len(answer) == len(target or source)

def verdict(source, answer, target):
    return Verdict.malformed if "(" in answer else "undecided"

def nothing(source, answer, target):
    return None

def nonsense(source, answer, target):
    return "perhaps"

def prints(source, answer, target):
    print("comparing", source)
    import numpy
    return (numpy.array([1]) == 1).all()

def share(source, answer, target):
    import numpy
    return numpy.float32(answer == "y x")

def says_why(source, answer, target):
    return len(answer) == len(source), f"{len(answer)} letters of {len(source)}"

def raises(source, answer, target):
    raise KeyError("no such thing")

def hangs(source, answer, target):
    time.sleep(100)

def lengths(predictions, references):
    return {"shorter": sum(len(p) < len(r) for p, r in zip(predictions, references)), "of": "all"}

def of_numpy(predictions, references):
    import numpy
    return {"mean": numpy.float32(0.5), "hits": numpy.int64(3), "counts": [1, 2]}

class Metric:
    @staticmethod
    def compute(predictions, references):
        return len(predictions)
"""


@pytest.fixture
def checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a user's module, from which a command is started."""
    (tmp_path / "own_checks.py").write_text(CHECKS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    TextTask.forget_checks()
    return tmp_path


def test_names_words_and_needed_symbols():
    task = TextTask(SYMBOLS)
    assert task.parse("F(x, y1)  max\n") == ["F", "(", "x", ",", "y1", ")", "max"]
    assert task.symbols_of("F(x, y1) max x") == ["F", "x", "y1"]
    assert task.needed_symbols(["F x", "x y z", "G F"]) == {"variable": 3, "function": 2}
    listed = TextTask({"person": {"column": "people"}})
    story = MarkedText("Ann met Di Ray", [(0, 3, "person"), (8, 14, "person")])
    assert listed.parse(story) == ["Ann", "met", "Di Ray"]
    assert listed.distance(story, "Di Ray", "Ann") == 1 and listed.distance(story, "x", "x") == 0
    with pytest.raises(ValueError, match="column 'people' of the data, which this text lacks"):
        listed.parse("Ann met Di Ray")
    marked = MarkedText("one two", [(0, 3, "variable")])
    assert task.symbols_of(marked) == ["one"]


@given(st.lists(st.sampled_from(["x", "y", "z", "+"]), min_size=1, max_size=8))
def test_canonical_forms_are_equal_for_renamings_only(words: list[str]):
    task = TextTask({"variable": {"pattern": "[a-z]"}})
    renamed = [{"x": "p", "y": "q", "z": "x"}.get(word, word) for word in words]
    assert task.canonical(" ".join(words)) == task.canonical(" ".join(renamed))
    both = TextTask({"one": ["x", "y"], "other": ["z"]})
    assert both.canonical("x y") == both.canonical("y x") != both.canonical("x z")
    merged = [word.replace("y", "x") for word in words]
    same = {"x", "y"} <= set(words)
    assert (task.canonical(" ".join(words)) == task.canonical(" ".join(merged))) != same


@pytest.mark.parametrize(
    ("answer", "target", "loose", "verdict"),
    [
        ("x + y", "x + y", False, "exact"),
        (" x + y\n", "x + y", False, "exact"),
        ("x+y", "x + y", False, "wrong"),
        ("x+y", "x + y", True, "exact"),
        ("x + z", "x + y", True, "wrong"),
        ("x + z", None, False, "undecided"),
    ],
)
def test_an_answer_is_right_if_it_is_the_target(answer, target, loose, verdict):
    task = TextTask(SYMBOLS, ignore_whitespace=loose)
    assert task.check("x y", answer, target) == verdict
    expected = None if target is None else {"x + z": 1, "x+y": 0}.get(answer, 0)
    assert task.distance("x y", answer, target) == expected


@pytest.mark.parametrize(
    ("answer", "verdict", "distance"),
    [
        ("let t1 = a & b ; t1", "exact", 0),
        ("let x9 = a & b ; x9", "exact", 0),
        ("let x9 = a & b ; y9", "wrong", 1),  # two names for one
        ("let a = a & b ; a", "wrong", 2),  # a name of the source
        ("let x9 = b & a ; x9", "wrong", 2),
        ("let x9 = a & b ;  x9", "wrong", 0),  # as ever, whitespace counts
        ("let u1 = a & t1 ; u1", "wrong", 1),  # `t1` is another new name here
    ],
)
def test_what_new_names_are_called_makes_no_difference(answer, verdict, distance):
    task = TextTask({"name": {"pattern": "[a-z][0-9]*"}})
    source, target = "a & b", "let t1 = a & b ; t1"
    assert task.check(source, answer, target) == verdict
    assert task.distance(source, answer, target) == distance


def test_how_bindings_are_spelled_makes_no_difference():
    """A ring is a binding, whatever its number; `C1CCC1` has no other one than `C1CC1`."""
    task = get_task("text").configured(symbols={"ring": {"rule": "smiles"}})
    first, second, other = "CC1CC1.C1CCC1", "CC3CC3.C%12CCC%12", "CC1CC1.C1CCC1C"
    assert task.needed_symbols([first]) == {"ring": 2}
    assert task.symbols_in(task.parse(first)) == ["1", "1"]
    forms = [task.canonical_form(task.parse(text)) for text in (first, second, other)]
    assert forms[0] == forms[1] != forms[2]
    assert pair_key(first, task.finder) == pair_key(second, task.finder)
    assert pair_key(first, task.finder) != pair_key(other, task.finder)
    for answer, verdict, distance in [
        ("C1CCC1", Verdict.exact, 0), ("C2CCC2", Verdict.exact, 0), ("C2CCC1", Verdict.wrong, 4),
    ]:  # fmt: skip
        assert task.check(first, answer, "C4CCC4") is verdict
        assert task.distance(first, answer, "C4CCC4") == distance
    pairs = [mark(first, product, task.finder) for product in ("C7CC7", "C1CC1C1CC1C1CC1")]
    assert [fault(pair, task.finder) for pair in pairs] == [None, (LACKING, "'1'")]
    assert (
        pickle.loads(pickle.dumps(task.read(MarkedText(first, pairs[0][0].spans)))).spans[0].binding
    )


def test_own_checks(checks: Path):
    def verdict_of(
        name: str, answer: str = "y x", target: str | None = "x y", timeout: float = 10
    ) -> Verdict:
        task = TextTask(SYMBOLS, check=f"own_checks:{name}")
        assert task.has_check
        return task.check("x y", answer, target, timeout=timeout)

    assert verdict_of("same_length") is Verdict.correct
    assert verdict_of("same_length", "x y") is Verdict.exact
    assert verdict_of("same_length", "x") is Verdict.wrong
    assert verdict_of("same_length", "c d", None) is Verdict.correct
    assert verdict_of("verdict", "(") is Verdict.malformed
    assert verdict_of("nothing") is Verdict.undecided
    assert verdict_of("nonsense") is Verdict.undecided
    assert verdict_of("prints") is Verdict.correct
    assert verdict_of("share") is Verdict.correct and verdict_of("share", "x") is Verdict.wrong
    assert verdict_of("raises") is Verdict.undecided
    assert verdict_of("hangs", timeout=0.1) is Verdict.timeout
    raised = r"check failed on the problem 'a' with the answer 'b': KeyError: 'no such thing'"
    with pytest.raises(SolverCrashError, match=raised):
        TextTask(SYMBOLS, check="own_checks:raises").ask("a", "b", "c")
    with pytest.raises(TimeoutError, match=r"the check took more than 0\.1 s"):
        TextTask(SYMBOLS, check="own_checks:hangs").ask("a", "b", "c", timeout=0.1)
    with pytest.raises(SolverCrashError, match="no attribute 'missing'"):
        TextTask(SYMBOLS, check="own_checks:missing").ask("a", "b", "c")


def test_a_check_lies_in_the_folder_that_is_current_when_it_is_asked(checks, tmp_path, monkeypatch):
    """Whatever folder its process was started in."""
    assert TextTask(SYMBOLS, check="own_checks:same_length").check("x", "y", "x") == "correct"
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "later_checks.py").write_text("def right(*texts):\n    return True\n")
    monkeypatch.chdir(tmp_path / "later")
    assert TextTask(SYMBOLS, check="later_checks:right").check("x", "y", "x") == "correct"


def test_the_first_failure_of_a_check_is_told(checks: Path, caplog):
    task = TextTask(SYMBOLS, check="own_checks:raises")
    task.forget_checks()
    for problem in ("a b", "c d"):
        assert task.check(problem, "y x") is Verdict.undecided
    assert caplog.messages == [
        "check own_checks:raises: the check failed on the problem 'a b' with the answer "
        "'y x': KeyError: 'no such thing'; such answers stay undecided"
    ]


def test_own_measures(checks: Path):
    measures = {"length": "own_checks:lengths", "count": "own_checks:Metric"}
    assert TextTask(SYMBOLS, measures=measures).measured(["a", "bc"], ["ab", "cd"]) == {
        "shorter": 1.0,
        "count": 2.0,
    }
    numbers = TextTask(SYMBOLS, measures={"all": "own_checks:of_numpy"}).measured(["a"], ["b"])
    assert numbers == {"mean": 0.5, "hits": 3.0}
    wrong = TextTask(SYMBOLS, measures={"name": "own_checks:nonsense_of"})
    with pytest.raises(ValueError, match="own_checks has no"):
        wrong.measured([], [])


@pytest.mark.parametrize("path", ["own_checks", ":f", "a:b:c", "own:"])
def test_paths_of_checks_are_looked_at(path: str):
    with pytest.raises(ValueError, match=r"package\.module:function"):
        TextTask(SYMBOLS, check=path)


def test_nothing_is_drawn():
    task = TextTask(SYMBOLS)
    assert not isinstance(task, DrawnTask) and not hasattr(task, "draw")
    with pytest.raises(ValueError, match="texts are not drawn: name a file of pairs"):
        drawn_task(task)
    assert task.random_answer("x y", random.Random(0)) == "x y"


def test_a_check_says_why(checks):
    """In words of its own beside the verdict; without them the verdict is named."""
    task = TextTask(SYMBOLS, check="own_checks:says_why")
    assert task.check("x y", "abc") == Verdict.correct
    assert task.check("x y", "ab") == Verdict.wrong
    assert task.explain("x y", "ab").text() == "2 letters of 3"
    silent = TextTask(SYMBOLS, check="own_checks:same_length")
    assert silent.explain("x y", "ab").text() == "check own_checks:same_length says wrong"
    assert TextTask(SYMBOLS).explain("x", "y").text() == "The task has no check of answers."
    broken = TextTask(SYMBOLS, check="own_checks:raises").explain("x", "y").text()
    assert broken.startswith("check own_checks:raises: ") and "no such thing" in broken
