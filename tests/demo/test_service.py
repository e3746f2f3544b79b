"""Answers of limited size, and the same under other names."""

import threading

import pytest

from hf_alpha.demo.service import MAX_CHARACTERS, MAX_TOKENS, Service, page_models

LTL, SAT = "ltl-relational", "propositional-relational"


def test_the_released_models_are_offered_task_by_task(service):
    assert service.tasks() == ["ltl", "propositional", "copying"]
    for name, first in (("ltl", LTL), ("propositional", SAT)):
        assert service.names(name)[0] == first and service.names(name)[-1] == f"{name}-solver"
    assert "copying-solver" not in service.names("copying")  # it has none
    assert len({choice.name for choice in service.choices}) == len(service.choices)


def test_answers_come_with_verdict_and_explanation(service):
    reply = service.solve("G(request -> F grant) & F request", LTL, answers=3)
    assert reply.solution.error is None and len(reply.answers) == 3
    assert reply.solution.found_by == LTL and reply.solution.seconds > 0
    assert reply.answers[0].label == "correct"
    assert reply.answers[0].explanation.rows[-1].cells[0] is True
    tautology = service.solve("a | !a", SAT)
    assert tautology.answers[0].label in ("correct", "exact")


def test_a_solver_answers_alone_or_behind_a_model_that_is_wrong(service):
    reply = service.solve("G(a -> F b) & F a", "ltl-solver", answers=10)
    assert reply.solution.found_by == "bounded search" and len(reply.answers) == 1
    hard = "a & X(b U !c) & G(c -> F d) & F G !b & X X a & X X X !a & G F d"
    reply = service.solve(hard, "ltl-learned-small")
    assert reply.answers[0].label == "correct" and reply.solution.found_by == "bounded search"


@pytest.mark.parametrize("asked", [SAT, "propositional-solver"])
def test_unsatisfiable_is_said_in_place_of_answers_with_what_contradicts(service, asked):
    reply = service.solve("a & b & !a", asked)
    assert reply.solution.unsatisfiable and reply.answers == () and reply.solution.error is None
    assert reply.solution.core == ("a", "!a") and reply.solution.found_by == "python-sat"


def test_the_same_answer_under_other_names(service):
    """Of models that promise it; another may answer differently, and then that is said."""
    renamed = service.rename("G(request -> F grant) & F request", LTL, seed=1)
    assert renamed.same is True and set(renamed.names) == {"request", "grant"}
    assert {*renamed.names.values()}.isdisjoint(renamed.names)
    for name, other in renamed.names.items():
        assert (
            other in renamed.after.solution.problem and name not in renamed.after.solution.problem
        )
    assert renamed.after.answers[0].label == "correct"
    assert service.rename("a & !a", SAT).same is True  # unsatisfiable under all names
    learned = "propositional-learned-small"
    problem = "(a | b) & (!a | c) & !(b & c)"
    by_hand = [service.solve(problem, learned).answers[0].text]
    renamed = service.rename(problem, learned, seed=1)
    assert (renamed.same is True) == (
        service.choice(learned).task.rename(by_hand[0], renamed.names).split()
        == [*renamed.after.answers[0].text.split()]
    )


@pytest.mark.parametrize(
    ("problem", "error"),
    [
        ("", "the problem is empty"),
        (" \n ", "the problem is empty"),
        ("a &", "the formula ends at character 3 where a name"),
        ("(" * 3_000, "the formula ends at character 3000"),
        ("(" * 1_500 + "a" + ")" * 1_500, None),
        ("a" * (MAX_CHARACTERS + 1), "characters, and this page takes 4,000"),
        ("X " * 10_000 + "a", "characters, and this page takes 4,000"),
        ("X" * (MAX_TOKENS + 1) + "a", "502 tokens, and this page takes 500"),
        ("a <-> " * 7 + "a", "tokens, and this page takes 500"),  # once it is rewritten
        ("a <-> " * 30 + "a", "tokens"),  # so many that it is not rewritten
        ("\ud800", "half"),
    ],
)
def test_bad_problems_get_an_error_that_says_why(service, problem, error):
    reply = service.solve(problem, LTL)
    assert (reply.solution.error is None) == (error is None)
    assert error is None or error in reply.solution.error
    assert service.rename(problem, LTL).after.solution.error == reply.solution.error
    assert len(reply.solution.problem) <= MAX_CHARACTERS


def test_names_of_any_script_and_with_markup_come_back_as_they_are(service):
    problem = '"<b>x</b>" & !名前 & "${alert(1)}" & X é'
    reply = service.solve(problem, LTL)
    assert reply.solution.error is None and len(reply.answers) == 1
    assert any(name in reply.answers[0].text for name in ('"<b>x</b>"', "名前"))


def test_what_cannot_be_asked(service):
    assert (
        "there is no model 'gpt': choose one of ltl-relational"
        in service.solve("a", "gpt").solution.error
    )
    assert service.solve("a", SAT, answers=11).solution.error == "ask for 1 to 10 answers, not 11"
    with pytest.raises(FileNotFoundError):
        page_models(["./runs/nowhere"])
    folder = service.choice(SAT).place
    with pytest.raises(ValueError, match="two models are called 'propositional-relational'"):
        page_models([folder, folder])


def test_requests_at_once_get_their_own_answers(service):
    """One model answers one at a time, and extends its vocabulary on the way."""
    problems = [" & ".join(f"n{i}_{j}" for j in range(i)) for i in range(1, 8)]
    replies: dict[int, object] = {}

    def ask(number: int) -> None:
        replies[number] = service.solve(problems[number], SAT)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(problems))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, problem in enumerate(problems):
        assert (
            replies[number].solution.problem == problem and replies[number].solution.error is None
        )
        assert f"n{number + 1}_0 1" in replies[number].answers[0].text


def test_a_model_of_texts_is_offered_by_its_folder(service):
    """Its names change places; the check that the package brings judges."""
    from hf_alpha.resources import released_models

    (choice,) = page_models([str(released_models()["anf-relational"])])
    own = Service([choice], "cpu")
    assert own.tasks() == ["text"]
    renamed = own.rename("f ( x , g ( y ) )", "anf-relational", seed=3)
    assert renamed.before.solution.error is None and renamed.before.answers
    assert renamed.names and renamed.same in (True, False)
    assert sorted(renamed.names) == sorted(renamed.names.values())
