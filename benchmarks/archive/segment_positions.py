"""Where segments lie, told by sinusoids, by learned vectors, by a convolution, or by relations.

    python benchmarks/archive/segment_positions.py --data data --change training.disable_tqdm=true \\
        --change training.train_sampling_strategy=group_by_length --out segment-positions

Roche (2023) names two ways as future work: "the original position encoding of Vaswani et al. (2017)
[...] by encoding starting and ending positions", and "combining CNN and transformers to capture
two-dimensional positions". Here they are beside the package's own, in the tagger and with the data
of geometric_study.py: DiMSUM 2016, its `closed` lexicon, and no segments. The ways:

- `sinusoidal`: half of an element's vector is the sinusoids of its start, half those of its end,
  scaled as new embeddings are; attention is plain. `learned`: two tables in their place, whose
  vectors are added; without segments that is BERT.
- `convolution`: elements lie in the plane of starts and ends, tokens on its diagonal. To what
  attention gives an element, each layer adds its neighbours at most `--reach` away in start and
  end, each channel weighted by where the neighbour lies. Nothing else tells positions.
- `graph` and `rotary` are the package's; `graph, convolution` has both.

A run that was killed goes on where it stopped, and finished ones are not run again. Cells are F1 of
exact spans on the official test set in %, means over the seeds; +- is half the distance between the
largest and the smallest.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import nn

from hf_alpha.cli.options import integers
from hf_alpha.modeling import modeling_geometric
from hf_alpha.modeling.configuration_geometric import GeometricConfig
from hf_alpha.modeling.modeling_geometric import (
    Elements,
    GeometricEmbeddings,
    GeometricModel,
    GeometricSelfAttention,
)
from hf_alpha.modeling.positions import sinusoidal
from hf_alpha.modeling.segment_relations import RelationVectors, Segments

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what benchmarks share
import geometric_study
import measure

TASK = "dimsum"


# -- positions in embeddings ----------------------------------------------------------------------


class Sinusoids(nn.Module):
    """Sinusoids of starts beside those of ends; their ratio to embeddings is Vaswani et al.'s."""

    def __init__(self, config: GeometricConfig):
        super().__init__()
        self.width, self.scale = config.hidden_size // 2, config.initializer_range

    def forward(self, starts_BN: torch.Tensor, ends_BN: torch.Tensor) -> torch.Tensor:
        halves = [sinusoidal(x, self.width, torch.float32) for x in (starts_BN, ends_BN)]
        return self.scale * torch.cat(halves, dim=-1)


class Tables(nn.Module):
    """A learned vector of each start, and one of each end."""

    def __init__(self, config: GeometricConfig):
        super().__init__()
        self.starts, self.ends = (
            nn.Embedding(config.max_position_embeddings, config.hidden_size) for _ in range(2)
        )

    def forward(self, starts_BN: torch.Tensor, ends_BN: torch.Tensor) -> torch.Tensor:
        return self.starts(starts_BN) + self.ends(ends_BN)


class PlacedEmbeddings(GeometricEmbeddings):
    """Vectors that tell start and end."""

    places: nn.Module

    def forward(
        self,
        words_BTD: torch.Tensor,
        types_BT: torch.Tensor,
        positions: torch.Tensor,
        segments: Segments | None,
    ) -> torch.Tensor:
        vectors, starts, ends = words_BTD, positions, positions
        if segments is not None:
            vectors = torch.cat((vectors, self.segment_embeddings(segments.ids)), dim=1)
            starts, ends = segments.starting(positions), segments.ending(positions)
            types_BT = segments.starting(types_BT)
        vectors = vectors + self.token_type_embeddings(types_BT) + self.places(starts, ends)
        return self.dropout(self.LayerNorm(vectors))


# -- the convolution ------------------------------------------------------------------------------


class Convolution(nn.Module):
    """A weight of each channel for each offset in the plane of starts and ends: (O, D).

    Attributes:
        windows_OBNN: 1 where element j lies at that offset of element i, else 0; of the text that
            is read.
    """

    windows_OBNN: torch.Tensor

    def __init__(self, config: GeometricConfig, reach: int):
        super().__init__()
        side = 2 * reach + 1
        self.weights_OD = nn.Parameter(torch.randn(side * side, config.hidden_size) / side)

    def forward(self, hidden_BND: torch.Tensor) -> torch.Tensor:
        return torch.einsum("obij,bjd,od->bid", self.windows_OBNN, hidden_BND, self.weights_OD)


def windows(
    starts_BN: torch.Tensor, ends_BN: torch.Tensor, shown_BN: torch.Tensor, reach: int
) -> torch.Tensor:
    """Returns which elements lie at each offset of each element: (O, B, N, N), of 0 and 1."""
    starts, ends = (x[:, None] - x[:, :, None] for x in (starts_BN, ends_BN))
    steps = range(-reach, reach + 1)
    found = [(starts == start) & (ends == end) for start in steps for end in steps]
    return (torch.stack(found) & shown_BN[:, None]).float()


# -- models ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """How a model is told where elements lie.

    Attributes:
        recipe: what the recipe's name ends with, `graph` or `rotary`.
        own: whether attention is told by it; else it is plain.
        places: vectors of positions that embeddings get.
        convolves: whether there is a convolution beside attention.
    """

    recipe: str
    own: bool = False
    places: type[nn.Module] | None = None
    convolves: bool = False


WAYS = {
    "learned": Way("rotary", places=Tables),
    "sinusoidal": Way("rotary", places=Sinusoids),
    "convolution": Way("rotary", convolves=True),
    "rotary": Way("rotary", own=True),
    "graph": Way("graph", own=True),
    "graph, convolution": Way("graph", own=True, convolves=True),
}


@contextmanager
def told(way: Way, reach: int) -> Iterator[None]:
    """Models that are made meanwhile are told so."""

    class Embeddings(PlacedEmbeddings if way.places else GeometricEmbeddings):
        def __init__(self, config: GeometricConfig):
            super().__init__(config)
            if way.places:
                self.places = way.places(config)

    class SelfAttention(GeometricSelfAttention):
        def __init__(self, config: GeometricConfig):
            super().__init__(config)
            if way.convolves:
                self.convolution = Convolution(config, reach)

        def forward(
            self,
            hidden_BND: torch.Tensor,
            elements: Elements,
            shared_relations: RelationVectors | None = None,
        ) -> tuple[torch.Tensor, torch.Tensor | None]:
            out, weights = super().forward(hidden_BND, elements, shared_relations)
            return out + self.convolution(hidden_BND) if way.convolves else out, weights

    class Model(GeometricModel):
        def _elements(
            self,
            positions: torch.Tensor,
            mask_BT: torch.Tensor | None,
            segments: Segments | None,
            hidden_BND: torch.Tensor,
        ) -> Elements:
            elements = super()._elements(positions, mask_BT, segments, hidden_BND)
            starts = ends = positions.expand(hidden_BND.shape[0], -1)
            if segments is not None:
                starts, ends = segments.starting(positions), segments.ending(positions)
            shown_BN = torch.ones_like(starts, dtype=torch.bool)
            if elements.mask is not None:
                shown_BN = elements.mask[:, 0, 0] == 0
            for module in self.modules():
                if isinstance(module, Convolution):
                    module.windows_OBNN = windows(starts, ends, shown_BN, reach)
            return elements if way.own else elements._replace(starts=None, ends=None)

    parts = {
        "GeometricEmbeddings": Embeddings,
        "GeometricSelfAttention": SelfAttention,
        "GeometricModel": Model,
    }
    with patch.multiple(modeling_geometric, **parts):
        yield


# -- runs -----------------------------------------------------------------------------------------


def run(name: str, seed: int, args: argparse.Namespace) -> dict[str, float]:
    """F1 without segments and with them, in %; what is trained is not trained again."""
    way = WAYS[name]
    entries = {"none": way.recipe, "closed": f"{way.recipe}+closed"}
    runs = args.runs / name.replace(", ", "-")
    own = {"seeds": [seed], "only": ",".join(entries.values()), "runs": runs}
    with told(way, args.reach):
        cells, _ = geometric_study.run_task(TASK, argparse.Namespace(**{**vars(args), **own}))
    (size,) = cells[way.recipe]
    return {segments: cells[entry][size][0] for segments, entry in entries.items()}


def table(found: dict[str, dict[int, dict[str, float]]]) -> str:
    """A line for each way."""
    columns = ["DiMSUM, F1 in %; segments:", "none", "closed"]
    lines = [
        [name, *(measure.mean_and_spread([f1[of] for f1 in seeds.values()]) for of in columns[1:])]
        for name, seeds in found.items()
    ]
    return measure.table(columns, lines)


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, default=Path("data"), help="folder of the data's folders (data)")
    add("--sizes", type=integers, default=[0], help="training sentences, one number (0); 0 is all")
    add("--seeds", type=integers, default=[0, 1, 2], help="of weights and batches (0,1,2)")
    add("--steps", type=int, default=1000, help="of each model (1000)")
    add("--reach", type=int, default=2, help="of the convolution (2)")
    add("--change", action="append", default=[], metavar="KEY=VALUE", help="of every recipe")
    add("--runs", type=Path, default=Path("runs/segment-positions"), help="where models are")
    measure.add_out(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Train, test and print; a seed of all ways before the next seed."""
    args = parse(argv)
    found: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in WAYS}
    for seed in args.seeds:
        for name in WAYS:
            found[name][seed] = run(name, seed, args)
            print(name, seed, found[name][seed], file=sys.stderr, flush=True)
    measure.finish(table(found), found, args.out, argv)


if __name__ == "__main__":
    main()
