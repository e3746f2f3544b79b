from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from hf_alpha.transduction import GammaSpace, Lexicon, Rule, Segment, Transducer

SVG = "{http://www.w3.org/2000/svg}"


def test_toy_example_of_the_paper():
    """Section 2.1: the gamma-space of six tokens, and b1, b2 and b3 as its matrix G has them."""
    text = "t1 t2 t3 t4 t5 t6"
    assert str(Transducer.compile()(text)) == (
        "{(1, t1, 1), (2, t2, 2), (3, t3, 3), (4, t4, 4), (5, t5, 5), (6, t6, 6)}"
    )
    lexicon = Lexicon.from_entries([("t1", "b1"), ("t3", "b2")])
    gamma = Transducer.compile(lexicon, [Rule("t2 <b2>", "b3")])(text)
    assert gamma.segments == (Segment(0, "b1", 0), Segment(1, "b3", 2), Segment(2, "b2", 2))
    assert str(gamma).endswith("(6, t6, 6), (1, b1, 1), (2, b3, 3), (3, b2, 3)}")
    assert [gamma.covered(segment) for segment in gamma.segments] == ["t1", "t2 t3", "t3"]


LABELS = st.sampled_from(["A", "<&>", "a very long label"])
SEGMENTS = st.lists(st.tuples(st.integers(0, 4), LABELS, st.integers(0, 4)), max_size=9)


@settings(max_examples=20)
@given(st.lists(st.text(min_size=1, max_size=5), min_size=5, max_size=5), SEGMENTS)
def test_drawing_shows_each_element_where_it_is(words, segments):
    """Boxes over their words, that do not overlap; any text makes a valid file."""
    segments = [Segment(min(a, b), label, max(a, b)) for a, label, b in segments]
    text, units = "".join(words), []
    for word in words:
        start = units[-1][1] if units else 0
        units.append((start, start + len(word)))
    gamma = GammaSpace(text, tuple(units), tuple(segments))
    picture = ElementTree.fromstring(gamma.svg())
    assert gamma._repr_svg_() == gamma.svg()
    texts = [element.text for element in picture.iter(f"{SVG}text")]
    assert texts[: len(segments)] == [segment.label for segment in segments]
    assert texts[-1] == "5"
    boxes = [
        [float(box.get(key)) for key in ("x", "y", "width", "height")]
        for box in list(picture.iter(f"{SVG}rect"))[1:]
    ]
    centres = [float(t.get("x")) for t in picture.iter(f"{SVG}text")][len(segments) :: 2]
    for (x, y, width, height), segment in zip(boxes, segments, strict=True):
        under = [number for number, at in enumerate(centres) if x < at < x + width]
        assert under == list(range(segment.start, segment.end + 1))
        assert y > 0 and len(segment.label) * 8 < width
        assert y + height < float(picture.get("height"))
    for one, box in enumerate(boxes):
        for other in boxes[:one]:
            apart = [
                box[i] + box[i + 2] < other[i] or other[i] + other[i + 2] < box[i] for i in (0, 1)
            ]
            assert any(apart)
