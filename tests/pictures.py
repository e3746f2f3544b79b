"""Pictures, decoded and compared to the pixel."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.image import imread

from hf_alpha.evaluation.heatmap import Heatmap, draw


def shows_reports(folder: Path, names: Sequence[str], again: Path) -> bool:
    """Whether `heatmap.png` is what these models' heatmap.json files give, drawn again there."""
    panels = [Heatmap.load(folder / name / "heatmap.json") for name in names]
    draw(panels, again)
    return np.array_equal(imread(folder / "heatmap.png"), imread(again))


def is_picture(path: Path) -> bool:
    """Whether a file is a picture with something on it."""
    pixels = imread(path)
    return bool(pixels.size) and float(np.ptp(pixels[..., :3])) > 0
