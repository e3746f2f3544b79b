from hf_alpha.tasks.text import TextTask


def test_a_task_without_a_solver_says_so():
    task = TextTask()
    assert not task.decides and "has no solver" in task.decide("ab").reason
