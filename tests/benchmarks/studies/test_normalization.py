import pytest

from benchmarks.studies.normalization import Normalization
from benchmarks.studies.sizes import CPU, FULL
from hf_alpha.train import prepare_model

ROWS = {row.name: row for row in Normalization().rows(FULL)}


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("name", [name for name in ROWS if name.startswith("ltl")])
def test_models_have_the_norms_of_their_row(name, tmp_path):
    row = ROWS[name]
    for size in (FULL, CPU):
        (own,) = (r for r in Normalization().rows(size) if r.name == name)
        config = prepare_model(own.model.recipe_at(size, 0, tmp_path))[0].config
        assert config.normalize_embeddings == config.normalize_features == ("f_fn" in row.cells[1])
        assert bool(config.adacos) == (row.cells[2] == "AdaCos")
        if "dual_part" in name:
            assert config.normalize_parts == ("f_bn" in row.cells[1])
        expected = {"fixed": 10.0, "none": 1.0}.get(row.cells[2])
        assert expected is None or config.initial_logit_scale == expected


@pytest.mark.parametrize("size", [FULL, CPU], ids=lambda size: size.name)
def test_the_recipes_model_is_not_trained_twice(size):
    shared = [row.name for row in Normalization().rows(size) if row.model.name.endswith("-normal")]
    usual = "adacos" if size is FULL else "fixed"
    assert all(name.endswith(f"fn-{usual}") for name in shared) and len(shared) == 6
