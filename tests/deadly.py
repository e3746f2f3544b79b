"""A task whose solver crashes; in a module that worker processes of any pytest run can import."""

import os

from hf_alpha.tasks import Verdict
from hf_alpha.tasks.propositional import PropositionalTask


class DeadlyTask(PropositionalTask):
    """Its solver takes the process down on one problem."""

    def check(self, problem: str, *args, **kwargs) -> Verdict:
        if problem == "&a!b":
            os._exit(1)
        return super().check(problem, *args, **kwargs)
