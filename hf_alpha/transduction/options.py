"""The settings of a transducer."""

from dataclasses import asdict, dataclass

from hf_alpha.settings import model_of
from hf_alpha.transduction.units import unit_finder

MATCHES = ("all", "longest")


@dataclass(frozen=True)
class Options:
    """The settings of a transducer; `Transducer.compile` describes them.

    Raises:
        ValueError: a value is not possible.
    """

    unit: str = "words"
    match: str = "all"
    lowercase: bool = True
    max_per_position: int = 4
    max_units: int = 16

    def __post_init__(self) -> None:
        model_of(Options).read(asdict(self), "transducer")
        unit_finder(self.unit)
        if self.match not in MATCHES:
            raise ValueError(f"match={self.match!r}: choose all or longest")
        if self.max_per_position < 2:
            raise ValueError(
                f"max_per_position={self.max_per_position}: it counts the unit itself, so it is 2 "
                "or more"
            )
        if self.max_units < 1:
            raise ValueError(f"max_units={self.max_units}: it is 1 or more")


__all__ = ["Options"]
