"""The package's linear layer against PyTorch's: `BlockLinear` and `nn.Linear`.

    python benchmarks/archive/linear.py --threads 1 --out linear

For layers of the sizes that models with d 64 have: forward without gradients, forward and backward
with a gradient as another layer gives it, and `layer(x).sum().backward()`, whose gradient is
expanded. How the two compare depends on the processor: `BlockLinear` is oneDNN here, on Intel's
processors too, where models do not use it; `nn.Linear` is the library that PyTorch was built with,
on x86 MKL.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import nn

from hf_alpha.modeling import cpu
from hf_alpha.modeling.cpu import BlockLinear

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what benchmarks share
from measure import PRODUCTS, add_out, finish, in_turns, ratios, table, three

OURS, PEER = "BlockLinear", "nn.Linear"


def works(layer: nn.Linear, x_MD: torch.Tensor, grad_ME: torch.Tensor) -> dict[str, Callable]:
    """What is timed of a layer."""

    def forward() -> None:
        with torch.no_grad():
            layer(x_MD)

    return {
        "forward": forward,
        "forward, backward": lambda: layer(x_MD).backward(grad_ME),
        "sum().backward()": lambda: layer(x_MD).sum().backward(),
    }


def measure_layer(rows: int, width: int, new: int, rounds: int) -> dict[str, Any]:
    """Seconds of both layers, with the same weights, for each work."""
    torch.manual_seed(0)
    layers = {OURS: BlockLinear(width, new), PEER: nn.Linear(width, new)}
    layers[PEER].load_state_dict(layers[OURS].state_dict())
    x_MD, grad_ME = torch.randn(rows, width, requires_grad=True), torch.randn(rows, new)
    sides = {side: works(layer, x_MD, grad_ME) for side, layer in layers.items()}
    return {
        work: in_turns({side: works_of_side[work] for side, works_of_side in sides.items()}, rounds)
        for work in sides[OURS]
    }


def show(data: dict[str, dict[str, dict[str, list[float]]]]) -> str:
    lines = []
    for product, works in data.items():
        for work, seconds in works.items():
            times = [three([1e3 * s for s in seconds[side]]) for side in (OURS, PEER)]
            found_ratios = ratios(seconds[PEER], seconds[OURS])
            lines.append([f"{product}: {work}", *times, three(found_ratios, 2, "x")])
    return table(["rows x width x new width", f"{OURS}, ms", f"{PEER}, ms", "peer / ours"], lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--threads", type=int, help="CPU threads of torch")
    add_out(parser)
    args = parser.parse_args(argv)
    if args.threads:
        torch.set_num_threads(args.threads)
    with patch.object(cpu, "prefers_onednn", cpu.has_onednn):
        data = {
            f"{rows} x {width} x {new}": measure_layer(rows, width, new, args.rounds)
            for rows, width, new in PRODUCTS
        }
    finish(show(data), data, args.out, argv)


if __name__ == "__main__":
    main()
