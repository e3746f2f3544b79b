from collections import Counter

import pytest

from hf_alpha.evaluation.compare import draw_problems
from hf_alpha.tasks import get_task


@pytest.mark.parametrize("samples", [4, 9])
def test_few_problems_are_of_many_sizes(samples, tmp_path):
    task, sizes = get_task("copying"), range(3, 9)
    drawn = draw_problems(task, tmp_path / "grid", [2, 3], sizes, samples, progress=False)
    for number in (2, 3):
        found = Counter(row["size"] for row in drawn if row["num_symbols"] == number)
        counts = [found[size] for size in sizes]
        assert sum(counts) == samples and max(counts) - min(counts) == 1
