from collections import Counter

import pytest
from pictures import shows_reports
from strategies import make_model

from hf_alpha.answer.models import Model
from hf_alpha.evaluation.compare import compare, draw_problems
from hf_alpha.tasks import get_task
from hf_alpha.tasks.build_tokenizer import build_tokenizer


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    out = tmp_path_factory.mktemp("grid") / "problems"
    return draw_problems(get_task("copying"), out, range(1, 6), range(3, 6), 6, progress=False)


def entrant(encoding: str) -> Model:
    settings = {"num_base_tokens": 3, "symbol_classes": {"character": 3}, "dropout": 0.0}
    model = make_model(symbol_encoding=encoding, encoder_position="rope", **settings)
    return Model(f"{encoding} one", model, build_tokenizer("copying", 3))


@pytest.mark.parametrize("samples", [4, 9])
def test_few_problems_are_of_many_sizes(samples, tmp_path):
    task, sizes = get_task("copying"), range(3, 9)
    drawn = draw_problems(task, tmp_path / "grid", [2, 3], sizes, samples, progress=False)
    for number in (2, 3):
        found = Counter(row["size"] for row in drawn if row["num_symbols"] == number)
        counts = [found[size] for size in sizes]
        assert sum(counts) == samples and max(counts) - min(counts) == 1


@pytest.mark.slow
def test_edit_distances_side_by_side(rows, tmp_path):
    def run():
        return compare(
            [entrant("streams"), entrant("learned")], get_task("copying"), rows, tmp_path,
            region=((1, 3), (3, 5)), covariance=1, max_renamings=3, progress=False,
        )  # fmt: skip

    text, reports = run()
    assert [report.model for report in reports] == ["streams one", "learned one", "random string"]
    streams, learned, _ = reports
    assert streams.settings["num_beams"] == 1, "greedy, as in the paper"
    assert streams.settings["vocabulary"] == 8 and learned.settings["vocabulary"] == 6
    assert learned.by_num_symbols[4].is_outside and not streams.by_num_symbols[4].is_outside
    far = [record for record in learned.records if record.num_symbols > 3]
    assert len(far) == 12 and all(record.distance == record.size for record in far)
    assert text.startswith("%") and "edit_distance" in text
    assert (tmp_path / "table.txt").read_text() == text + "\n"
    shown, again = ("edit_distance", ((1, 3), (3, 5))), tmp_path / "again.png"
    assert shows_reports(tmp_path, ["streams-one", "learned-one"], again, *shown)
    assert run()[0] == text
