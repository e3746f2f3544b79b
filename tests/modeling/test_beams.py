import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds

from hf_alpha.modeling.beams import FIRST, BeamCache


@given(
    seed=seeds,
    samples=st.integers(1, 3),
    beams=st.integers(1, 4),
    steps=st.lists(st.integers(1, 3), min_size=1, max_size=5),
)
def test_each_beam_sees_what_its_own_copy_would_hold(seed, samples, beams, steps):
    """Against the plain way: a copy for each beam, rearranged in each step."""
    generator = torch.Generator().manual_seed(seed)
    cache, rows = BeamCache(beams), samples * beams
    copies = torch.zeros(rows, 2, 0, 4)
    for length in steps:
        new = torch.randn(rows, 2, length, 4, generator=generator)
        visible = cache.visible(torch.zeros(rows, length))
        keys, values = cache.update(new, 2 * new, 0)
        copies = torch.cat((copies, new), dim=2)
        assert torch.equal(values, 2 * keys)
        assert cache.get_seq_length() == copies.shape[2]
        seen = visible.view(samples, beams, length, -1)
        for row in range(rows):
            sample, beam = divmod(row, beams)
            for token in range(length):
                past = copies.shape[2] - length + token + 1
                found = keys[sample, :, seen[sample, beam, token]]
                assert torch.equal(found, copies[row, :, :past])
        local = torch.randint(beams, (samples, beams), generator=generator)
        order = (local + torch.arange(samples)[:, None] * beams).flatten()
        cache.reorder_cache(order)
        copies = copies[order]


def test_pool_grows():
    cache = BeamCache(2)
    parts = [torch.randn(4, 3, 1, 5) for _ in range(3 * FIRST)]
    for part in parts:
        keys, _ = cache.update(part, part, 0)
    expected = torch.stack(parts).view(len(parts), 2, 2, 3, 5)
    found = keys.view(2, 3, len(parts), 2, 5).permute(2, 0, 3, 1, 4)
    assert torch.equal(found, expected)
