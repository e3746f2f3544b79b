"""Ways to tell where segments lie, and the study of them."""

import pytest
import torch
from geometrics import batch, small_config
from hypothesis import given, settings
from hypothesis import strategies as st
from scripts import load, prints_and_stores

from hf_alpha.modeling.modeling_geometric import GeometricForMaskedLM

STUDY = load("archive/segment_positions")
RECIPES = {"rotary": "two_layer_rotary", "graph": "graph"}


def make_model(name: str, layers: int = 2) -> GeometricForMaskedLM:
    torch.manual_seed(0)
    way = STUDY.WAYS[name]
    config = small_config(relation_attention=RECIPES[way.recipe], num_hidden_layers=layers)
    with STUDY.told(way, reach=2):
        return GeometricForMaskedLM(config).eval()


@pytest.mark.parametrize("name", STUDY.WAYS)
def test_a_model_sees_where_tokens_and_segments_lie_and_no_padding(name):
    model = make_model(name)
    ids = torch.tensor([[5, 6, 7, 8, 9, 10]])
    starts, ends = torch.tensor([[[1], [2], [2]], [[2], [2], [3]]])
    segments = {"segment_ids": torch.ones_like(starts)}
    segments |= {"segment_starts": starts, "segment_ends": ends}
    with torch.no_grad():
        moved = model(ids.expand(3, -1), **segments).logits
        assert all((moved[i] - moved[i - 1]).abs().max() > 1e-4 for i in range(3))
        turned = model(ids[:, [0, 1, 3, 2, 4, 5]]).logits[0, 1] - model(ids).logits[0, 1]
        assert turned.abs().max() > 1e-4

        narrow = batch(rows=2, length=6, segments=2)
        wide = dict(narrow)
        for key in ("input_ids", "token_type_ids"):
            wide[key] = torch.nn.functional.pad(narrow[key], (0, 3), value=1)
        wide["attention_mask"] = torch.tensor([[1] * 6 + [0] * 3] * 2)
        torch.testing.assert_close(model(**wide).logits[:, :6], model(**narrow).logits)


def test_beside_a_convolution_attention_sees_no_order():
    model, ids = make_model("convolution", layers=1), torch.arange(5, 11)[None]
    turned = ids[:, [0, 1, 2, 4, 3, 5]]  # out of the first token's reach
    with torch.no_grad():
        torch.testing.assert_close(model(turned).logits[:, 0], model(ids).logits[:, 0])


@settings(deadline=None, max_examples=25)
@given(data=st.data(), reach=st.integers(0, 2), count=st.integers(1, 5))
def test_a_convolution_weights_neighbours_by_their_offset(data, reach, count):
    places = st.lists(st.integers(0, 4), min_size=count, max_size=count)
    starts, lengths, shown = (torch.tensor([data.draw(places)]) for _ in range(3))
    ends, shown = starts + lengths, shown > 0
    layer, side = STUDY.Convolution(small_config(), reach), 2 * reach + 1
    layer.windows_OBNN = STUDY.windows(starts, ends, shown, reach)
    x = torch.randn(1, count, small_config().hidden_size)
    expected = torch.zeros_like(x)
    for i in range(count):
        for j in range(count):
            start, end = int(starts[0, j] - starts[0, i]), int(ends[0, j] - ends[0, i])
            if shown[0, j] and max(abs(start), abs(end)) <= reach:
                offset = (start + reach) * side + end + reach
                expected[0, i] += layer.weights_OD[offset] * x[0, j]
    torch.testing.assert_close(layer(x), expected)


@pytest.mark.slow
def test_the_study_prints_and_stores_what_it_measures(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(STUDY.geometric_study, "HELD_OUT", 2)
    tags = {"she": "O", "takes": "B", "part": "I", "now": "O"}
    rows = [f"{n}\t{word}\t_\t_\t{tag}\t0\t_\t_\t_" for n, (word, tag) in enumerate(tags.items())]
    (tmp_path / "data/dimsum").mkdir(parents=True)
    for part in ("train", "test"):
        text = "\n".join(rows) + "\n\n"
        (tmp_path / f"data/dimsum/dimsum16.{part}").write_text(4 * text)
    arguments = (
        "--seeds=0 --steps=1 --runs=runs --change=model.hidden_size=8 "
        "--change=model.intermediate_size=8 --change=model.num_hidden_layers=1"
    )
    prints_and_stores("archive/segment_positions", arguments, capsys)
