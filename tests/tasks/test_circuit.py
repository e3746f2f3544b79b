from itertools import product

import pytest

from hf_alpha.tasks import circuit as circuits


@pytest.mark.parametrize("gate", ["and_", "or_", "xor"])
def test_gates_are_what_they_say_with_every_kind_of_input(gate):
    truth = {"and_": lambda x, y: x and y, "or_": lambda x, y: x or y, "xor": lambda x, y: x != y}
    for x, y in product([1, -1, 2, -2, 3, -3], repeat=2):
        circuit = circuits.Circuit(2)
        out = getattr(circuit, gate)(x, y)
        for a, b in product([2, -2], [3, -3]):
            with circuits.solver([*circuit.clauses, [a], [b]]) as asked:
                model = asked.model()
            assert (out in model) == truth[gate](x in model, y in model), (x, y, a, b)
