from hf_alpha.transduction import Lexicon, Segment, Transducer

TEXT = "The EU's E.U. fire  hoses of the European Commission."
ENTRIES = [
    ("fire hose", "COMPOUND"),
    ("Fire", "NOUN"),
    ("E.U.", "ORG"),
    ("European Commission", "ORG"),
    ("the European Commission", "ORG"),
]


def make(**settings) -> Transducer:
    return Transducer.compile(Lexicon.from_entries(ENTRIES, plurals=True), **settings)


def covered(transducer: Transducer, text: str) -> list[tuple[str, str]]:
    return [(text[start:stop], label) for start, stop, label in transducer.spans(text)]


def test_all_matches_are_kept_or_the_leftmost_longest():
    longest = [
        ("E.U.", "ORG"),
        ("fire  hoses", "COMPOUND"),
        ("the European Commission", "ORG"),
    ]
    assert covered(make(match="longest"), TEXT) == longest
    assert sorted(covered(make(), TEXT)) == sorted(
        [*longest, ("fire", "NOUN"), ("European Commission", "ORG")]
    )


def test_gamma_space_and_spans_say_the_same():
    transducer = make()
    gamma = transducer(TEXT)
    assert Segment(8, "COMPOUND", 9) in gamma.segments
    assert transducer.spans(TEXT) == [
        (gamma.units[s.start][0], gamma.units[s.end][1], s.label) for s in gamma.segments
    ]
