"""Pictures, decoded and compared to the pixel."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.image import imread

from hf_alpha.evaluation.heatmap import Heatmap, draw
from hf_alpha.evaluation.report import Report


def shows_reports(folder: Path, names: Sequence[str], again: Path, *shown: Any) -> bool:
    """Whether `heatmap.png` is what these models' reports give, drawn again there.

    Args:
        shown: rate and region of the training data.
    """
    panels = [Heatmap.of(Report.load(folder / name), *shown) for name in names]
    draw(panels, again)
    return np.array_equal(imread(folder / "heatmap.png"), imread(again))


def is_picture(path: Path) -> bool:
    """Whether a file is a picture with something on it."""
    pixels = imread(path)
    return bool(pixels.size) and float(np.ptp(pixels[..., :3])) > 0
