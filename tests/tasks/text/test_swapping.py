"""The example task: pairs, and what the names in them are."""

from hf_alpha.tasks.text import TextTask
from hf_alpha.tasks.text.swapping import SYMBOLS, swapping_pairs


def test_pairs_are_what_they_say():
    task = TextTask(SYMBOLS)
    rows = list(swapping_pairs(300, [2, 3], [1, 3], range(3, 7), seed=5))
    assert rows == list(swapping_pairs(300, [2, 3], [1, 3], range(3, 7), seed=5))
    for row in rows:
        swap, one, two, colon, *term = row["source"].split()
        assert (swap, colon) == ("swap", ":")
        swapped = {one: two, two: one}
        assert row["target"].split() == [swapped.get(token, token) for token in term]
        assert row["target"].split() != term
        variables = {token for token in term if token.islower()}
        functions = {token for token in term if token.isupper()}
        assert len(variables) in (2, 3) and len(functions) in (1, 3)
        assert set(task.symbols_of(row["source"])) == variables | functions
        assert len([t for t in term if t.islower()]) == len([t for t in term if t.isupper()]) + 1
