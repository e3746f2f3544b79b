from commands import hf_alpha


def test_transduce(tmp_path):
    """Gamma-spaces of texts, by files or a saved transducer; a drawing; bad calls."""
    lexicon, months, rules = tmp_path / "a.tsv", tmp_path / "b.tsv", tmp_path / "rules.yaml"
    lexicon.write_text("fire hose\tCOMPOUND\nfire\tNOUN\n")
    months.write_text("May\tMONTH\n")
    rules.write_text("- {pattern: '<MONTH> /[0-9]+/', label: DATE}\n")
    files = ["--lexicon", lexicon, "--lexicon", months, "--rules", rules]
    svg, folder = tmp_path / "a.svg", tmp_path / "fst"
    text = "A fire  hose, May 7"
    done = hf_alpha("transduce", text, *files, "--svg", svg, "--save", folder)
    assert done.out.splitlines() == [
        f"the transducer is in {folder}",
        "{(1, A, 1), (2, fire, 2), (3, hose, 3), (4, ,, 4), (5, May, 5), (6, 7, 6), "
        "(2, NOUN, 2), (2, COMPOUND, 3), (5, MONTH, 5), (5, DATE, 6)}",
        "  2-2     NOUN      fire",
        "  2-3     COMPOUND  fire  hose",
        "  5-5     MONTH     May",
        "  5-6     DATE      May 7",
    ]
    assert svg.read_text().startswith("<svg ")
    again = hf_alpha("transduce", "--transducer", folder, stdin=f"{text}\n\n{text}\n")
    assert again.out.splitlines() == 2 * done.out.splitlines()[1:]
    longest = hf_alpha("transduce", text, *files, "--match", "longest")
    assert "NOUN" not in longest.out and "DATE" in longest.out
    assert "hoses" not in hf_alpha("transduce", "fire hoses", *files).out.splitlines()[-1]
    assert "fire hoses" in hf_alpha("transduce", "fire hoses", *files, "--plurals").out
    assert hf_alpha("transduce", *files, "--save", tmp_path / "other").code == 0
    for arguments, message in [
        (["a"], "name a --lexicon, --rules or a --transducer"),
        (["a", "--transducer", folder, "--match", "all"], "has its own match: leave it out"),
        (["a", "b", *files, "--svg", svg], "--svg draws one text, and there are 2"),
        (["a", "--lexicon", tmp_path / "c.tsv"], "c.tsv"),
        (["a", "--transducer", tmp_path], f"there is no transducer in {tmp_path}: hf-alpha trans"),
        (
            ["a", *files, "--svg", tmp_path / "no" / "a.svg"],
            f"no folder {tmp_path / 'no'} to write",
        ),
        (["--transducer", folder], "no text: the input is empty"),
        (["a", "--transducer", folder, "--plurals"], "--plurals is for a --lexicon: leave it out"),
        (
            [*files, "--save", tmp_path / "no", "--svg", svg],
            "--svg draws a text, and none is named",
        ),
    ]:
        assert message in hf_alpha("transduce", *arguments).error
    assert not (tmp_path / "no").exists()
