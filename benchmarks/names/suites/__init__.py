"""The suites, each a class in a file of its own: a generator, a checker and pools of names."""

from benchmarks.names.questions import Suite

from .kinship import Kinship
from .people import People
from .programs import Programs
from .proofs import Proofs
from .propositional import Propositional
from .sql import Sql
from .temporal import Temporal
from .tools import Tools

SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        Propositional(), Temporal(), Proofs(), Kinship(), Programs(), Sql(), Tools(), People()
    )
}  # fmt: skip

__all__ = ["SUITES"]
