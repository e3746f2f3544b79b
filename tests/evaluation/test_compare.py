from dataclasses import replace

import pytest
from pictures import shows_reports
from strategies import make_model

from hf_alpha.answer.models import Model
from hf_alpha.build_tokenizer import build_tokenizer
from hf_alpha.evaluation.compare import choose_rows, compare, draw_problems
from hf_alpha.tasks import get_task


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    out = tmp_path_factory.mktemp("grid") / "problems"
    return draw_problems(get_task("copying"), out, range(1, 6), range(3, 6), 6, progress=False)


def test_rows_of_data_are_chosen(rows):
    """By number of symbols and size, then so many of each number; the seed says which."""
    some = choose_rows(rows, range(2, 5), {4, 5}, 3, seed=1)
    assert [row["num_symbols"] for row in some] == [2] * 3 + [3] * 3 + [4] * 3
    assert {row["size"] for row in some} == {4, 5} and all(row in rows for row in some)
    assert some == choose_rows(rows, range(2, 5), {4, 5}, 3, seed=1)
    assert some != choose_rows(rows, range(2, 5), {4, 5}, 3, seed=2)
    assert choose_rows(rows) == rows
    with pytest.raises(ValueError, match="no row of the data"):
        choose_rows(rows, [9])


def entrant(encoding: str) -> Model:
    settings = {"num_base_tokens": 3, "symbol_classes": {"character": 3}, "dropout": 0.0}
    model = make_model(symbol_encoding=encoding, encoder_position="rope", **settings)
    return Model(f"{encoding} one", model, build_tokenizer("copying", 3))


def test_problems_are_spread_over_the_sizes(rows):
    cells = {}
    for row in rows:
        assert row["num_symbols"] == len(set(row["problem"])) <= row["size"] == len(row["answer"])
        cells.setdefault(row["num_symbols"], []).append(row["size"])
    assert {k: sorted(sizes) for k, sizes in cells.items()} == {
        1: [3, 4, 5],  # there are no more
        2: [3, 3, 4, 4, 5, 5],
        3: [3, 3, 4, 4, 5, 5],
        4: [4, 4, 4, 5, 5, 5],
        5: [5] * 6,
    }


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


@pytest.mark.slow
def test_names_that_differ_in_signs_have_folders_of_their_own(rows, tmp_path):
    names = ["A_1", "a-1", "a-1-2", "ß", "ü", "Random string"]
    one = entrant("learned")
    entries = [replace(one, name=name) for name in names]
    compare(entries, get_task("copying"), rows[:2], tmp_path, covariance=0, progress=False)
    found = {path.parent.name for path in tmp_path.glob("*/report.json")}
    assert found == {"a-1", "a-1-2", "a-1-2-2", "ß", "ü", "random-string", "random-string-2"}
