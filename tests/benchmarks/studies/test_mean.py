import pytest
import torch
from strategies import make_model

from benchmarks.studies.mean import mean_of
from hf_alpha.loading import load_checkpoint
from hf_alpha.recipe import RECIPE_FILE, read_recipe, write_recipe
from hf_alpha.tasks.build_tokenizer import build_tokenizer
from hf_alpha.train import TRAINER_STATE


def test_weights_lie_between_and_the_rest_is_of_the_later_one(tmp_path):
    places = before, after, other = [tmp_path / name for name in ("before", "after", "other")]
    for seed, place in enumerate(places):
        make_model(seed, d_model=24 if place is other else 16).save_pretrained(place)
        build_tokenizer("propositional", 5).save_pretrained(place)
        write_recipe(
            read_recipe("propositional/debug", [f"training.max_steps={seed + 1}"]),
            place / RECIPE_FILE,
        )
        (place / TRAINER_STATE).write_text("{}")
    mean_of(before, after, tmp_path / "mean")
    one, two, mean = (
        load_checkpoint(place)[0].state_dict() for place in (before, after, tmp_path / "mean")
    )
    for name, x in mean.items():
        torch.testing.assert_close(x, (one[name] + two[name]) / 2)
    assert read_recipe(tmp_path / "mean" / RECIPE_FILE) == read_recipe(after / RECIPE_FILE)
    with pytest.raises(ValueError, match="other names or shapes"):
        mean_of(before, other, tmp_path / "none")
    assert not (tmp_path / "none").exists()
