import pytest

from benchmarks.studies.ablation import Ablation
from benchmarks.studies.sizes import FULL
from benchmarks.studies.table import papers
from hf_alpha.train import prepare_model

ROWS = [row for row in Ablation().rows(FULL)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_models_of_full_size_have_the_papers_parameters(row, tmp_path):
    model, _ = prepare_model(row.model.recipe_at(FULL, 0, tmp_path))
    assert f"{model.num_parameters():,}" == papers()["ablation"]["rows"][row.name][-1]
