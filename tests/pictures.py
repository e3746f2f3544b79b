"""Pictures, decoded and compared to the pixel."""

from pathlib import Path

import numpy as np
from matplotlib.image import imread


def is_picture(path: Path) -> bool:
    """Whether a file is a picture with something on it."""
    pixels = imread(path)
    return bool(pixels.size) and float(np.ptp(pixels[..., :3])) > 0
