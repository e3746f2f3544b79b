"""The mean weights of a model before and after it was trained on.

    python -m benchmarks.studies.mean BEFORE AFTER OUT

Between the two ends of a run, losses are hardly higher than at the ends and often lower (Wortsman
et al., 2022, average the weights of several runs): the mean keeps what the run learned of new data,
and what it would forget of old data. Settings, tokenizer, recipe and log are those of AFTER.
"""

import shutil
import sys
from pathlib import Path

import torch

from hf_alpha.io.folders import new_folder
from hf_alpha.loading import load_checkpoint
from hf_alpha.recipe import RECIPE_FILE
from hf_alpha.train import TRAINER_STATE


def mean_of(before: Path, after: Path, out: Path) -> None:
    """Write the mean of two checkpoints to a new folder, from which `hf-alpha release` goes on.

    Raises:
        ValueError: their weights have other names or shapes.
        FileExistsError: `out` exists.
    """
    (one, _), (two, tokenizer) = load_checkpoint(before), load_checkpoint(after)
    earlier, later = one.state_dict(), two.state_dict()
    shapes, others = ({name: x.shape for name, x in of.items()} for of in (earlier, later))
    if shapes != others:
        raise ValueError(f"the weights of {before} and {after} have other names or shapes")
    with new_folder(out) as unfinished, torch.no_grad():
        for name, x in later.items():
            if x.is_floating_point():
                x.copy_(earlier[name].lerp(x, 0.5))
        two.save_pretrained(unfinished)
        tokenizer.save_pretrained(unfinished)
        for name in (RECIPE_FILE, TRAINER_STATE):
            shutil.copy(after / name, unfinished / name)


if __name__ == "__main__":
    mean_of(*map(Path, sys.argv[1:]))
