"""The settings of generated data: checked when they are made, and recorded beside the data."""

import hashlib
import random
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from hf_alpha.modeling.choices import check_known, refuse
from hf_alpha.tasks import DrawnTask, name_of
from hf_alpha.tasks.base import EQUIVALENCES

GENERATOR_VERSION = 2


def check_sizes(sizes: tuple[int, int]) -> None:
    """Raise a ValueError unless sizes are a smallest and a largest one, from 1 on."""
    pair = isinstance(sizes, list | tuple) and len(sizes) == 2
    if not pair or not 1 <= sizes[0] <= sizes[1]:
        raise ValueError(f"sizes must be (smallest, largest) from 1 on, got {sizes!r}")


@dataclass(frozen=True, kw_only=True)
class GenerationSettings(ABC):
    """What samples and grids have in common; `generate` describes what its arguments are called.

    Raises:
        ValueError: for impossible settings.
    """

    task: DrawnTask
    seed: int
    targets: str
    hard: float
    hardness: int = 1
    equivalence: str

    def __post_init__(self) -> None:
        check_known("equivalence", self.equivalence, EQUIVALENCES)
        check_known("targets", self.targets, self.task.targets)
        self._check()
        name, hard = self.task.name, self.hard
        refuse(
            (not 0 <= hard <= 1, f"hard is a share and must be between 0 and 1, got {hard}"),
            (
                hard and not self.task.hard,
                f"task {name!r} knows no hard problems: leave out hard = {hard}",
            ),
            (
                not 1 <= self.hardness <= self.task.hardest,
                f"hardness must be between 1 and {self.task.hardest} for task {name!r}, "
                f"got {self.hardness}",
            ),
            (
                self.hardness > 1 and not hard,
                f"hardness = {self.hardness} needs hard, the share of problems that are to be so",
            ),
        )

    @property
    def counted_as_one(self) -> str:
        """What may differ between problems that count as one; "" where their texts decide."""
        return self.equivalence if self.task.held_out else ""

    @property
    @abstractmethod
    def size_range(self) -> tuple[int, int]:
        """Smallest and largest size."""

    @property
    @abstractmethod
    def most_symbols(self) -> int:
        """The largest number of symbols of a problem."""

    @abstractmethod
    def constants_for(self, num_symbols: int) -> float:
        """Return the weight of the leaves 0 and 1 in problems over so many symbols."""

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """Return the settings as they are written to `generation.json`, in order."""

    def try_target(self) -> None:
        """Compute one answer: what cannot be drawn or answered is refused before any work is done.

        Raises:
            ValueError: there is no problem with these settings.
            ImportError: the targets need something that is not installed.
            NotImplementedError: walks are asked for, and the task has none.
        """
        self._try(*self._small_problem())

    def _try(self, tokens: list[str], symbols: list[str], constant_priority: float) -> None:
        """Do with one problem what is done with all; it was drawn from these symbols."""
        self.task.target_of(tokens, self.targets)

    def _small_problem(self) -> tuple[list[str], list[str], float]:
        """Draw tokens with as many of the symbols as fit, as small as can be.

        Returns them, the symbols they were drawn from, and the weight of constants.
        """
        task, most, (smallest, largest) = self.task, self.most_symbols, self.size_range
        for count in range(most, min(most, 1) - 1, -1):
            weight = self.constants_for(count)
            for size in range(smallest, largest + 1):
                if task.is_feasible(size, count, True, weight):
                    names = task.default_symbols(count)
                    tokens = task.draw(random.Random(0), size, names, True, weight)
                    return tokens, names, weight
        raise ValueError(
            f"task {task.name!r} has no problem of size {smallest} to {largest} over {most} "
            "symbol(s)"
        )

    def _check(self) -> None:
        """Check what is particular to one kind of settings."""
        return None

    def _optional(self) -> dict[str, Any]:
        """Return settings that are recorded only where they have an effect."""
        hard = {"hard": self.hard} if self.hard else {}
        hardness = {"hardness": self.hardness} if self.hardness > 1 else {}
        equivalence = {"equivalence": self.equivalence} if self.task.held_out else {}
        return {**hard, **hardness, **equivalence}


@dataclass(frozen=True, kw_only=True)
class SampleSettings(GenerationSettings):
    """Settings of training, validation and test data; see `generate`."""

    num_samples: int
    sizes: tuple[int, int]
    num_symbols: int
    alpha: float
    constant_priority: float
    few_symbols: int
    many_symbols: int = 0
    up_to_symbols: int = 0
    walk: int = 0

    def _check(self) -> None:
        check_sizes(self.sizes)
        few, many, up_to = self.few_symbols, self.many_symbols, self.up_to_symbols
        refuse(
            (self.num_samples < 1, f"num_samples must be at least 1, got {self.num_samples}"),
            (few < 0, f"few_symbols must be at least 0, got {few}"),
            (many < 0, f"many_symbols must be at least 0, got {many}"),
            (
                many and up_to <= self.num_symbols,
                f"many_symbols asks for rows with more than {self.num_symbols} symbol(s): "
                f"up_to_symbols must be larger than that, got {up_to}",
            ),
            (
                up_to and not many,
                "up_to_symbols needs many_symbols, the number of rows with so many",
            ),
            (self.walk < 0, f"walk must be at least 0, got {self.walk}"),
            (
                self.walk > 0 and not self.hard,
                f"walk = {self.walk} needs hard, the share of problems that walks start from",
            ),
            (not 0 <= self.alpha <= 1, f"alpha must be between 0 and 1, got {self.alpha}"),
        )

    def _try(self, tokens: list[str], symbols: list[str], constant_priority: float) -> None:
        super()._try(tokens, symbols, constant_priority)
        if self.walk:
            self.task.vary(random.Random(0), tokens, symbols, constant_priority)

    @property
    def size_range(self) -> tuple[int, int]:
        return self.sizes

    @property
    def most_symbols(self) -> int:
        return max(self.num_symbols, self.up_to_symbols)

    def constants_for(self, num_symbols: int) -> float:
        return self.constant_priority

    def record(self) -> dict[str, Any]:
        return {
            "kind": "samples",
            "version": GENERATOR_VERSION,
            "task": name_of(self.task),
            "num_samples": self.num_samples,
            "sizes": list(self.sizes),
            "num_symbols": self.num_symbols,
            "alpha": self.alpha,
            "seed": self.seed,
            "targets": self.targets,
            "constant_priority": self.constant_priority,
            **({"few_symbols": self.few_symbols} if self.few_symbols else {}),
            **(
                {"many_symbols": self.many_symbols, "up_to_symbols": self.up_to_symbols}
                if self.many_symbols
                else {}
            ),
            **self._optional(),
            **({"walk": self.walk} if self.walk else {}),
        }


@dataclass(frozen=True, kw_only=True)
class GridSettings(GenerationSettings):
    """Settings of a heatmap's test set; see `generate_grid`.

    Attributes:
        excluded: keys of problems that are kept out, sorted.
    """

    num_symbols: tuple[int, ...]
    sizes: tuple[int, ...]
    per_cell: int
    excluded: tuple[bytes, ...] = ()

    @property
    def size_range(self) -> tuple[int, int]:
        return min(self.sizes), max(self.sizes)

    @property
    def most_symbols(self) -> int:
        return max(self.num_symbols)

    def constants_for(self, num_symbols: int) -> float:
        return self.task.constant_priority if num_symbols else 1.0

    @property
    def digest(self) -> str:
        """Hash of the excluded keys."""
        return hashlib.blake2b(b"".join(self.excluded), digest_size=8).hexdigest()

    def record(self) -> dict[str, Any]:
        exclude = {"problems": len(self.excluded), "digest": self.digest}
        return {
            "kind": "grid",
            "version": GENERATOR_VERSION,
            "task": name_of(self.task),
            "num_symbols": list(self.num_symbols),
            "sizes": list(self.sizes),
            "per_cell": self.per_cell,
            "seed": self.seed,
            "targets": self.targets,
            **self._optional(),
            **({"exclude": exclude} if self.excluded else {}),
        }


__all__ = ["GENERATOR_VERSION", "GenerationSettings", "GridSettings", "SampleSettings"]
