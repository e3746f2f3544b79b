"""What others wrote does nothing: shown by a parser of Markdown, and by what a terminal obeys."""

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from hf_alpha.io.plain_text import fenced, printable, within_line

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
MARKS = st.sampled_from([*"`~|<>&*_[]()!\\#-:\n a1\"'", "```", "<script>", "](x)", "&lt;", "www."])
HOSTILE = st.lists(MARKS, max_size=12).map("".join)


def test_what_a_terminal_obeys_is_written_out():
    text = "a\x1b]0;title\x07\r\x9b2J\x00\u202eb\u2066\ud800"
    assert printable(text) == (r"a\x1b]0;title\x07\r\x9b2J\x00\u202eb\u2066\ud800")
    assert eval(f'"{printable(text)}"') == text, "a text in code stays what it is"
    assert printable(printable(text)) == printable(text)
    plain = "\tÄ → 猫 שלום\n\u200d👩‍🚀\u200f"
    assert printable(plain) == plain


@given(HOSTILE)
def test_nothing_ends_a_fence(text):
    opened, code, closed, after = MARKDOWN.parse(f"{fenced(text, 'yaml')}\n\n# after")
    assert (opened.type, opened.info) == ("fence", "yaml")
    assert opened.content.rstrip("\n") == text.rstrip("\n")
    assert [token.type for token in (code, closed, after)] == [
        "heading_open", "inline", "heading_close",
    ]  # fmt: skip


@given(HOSTILE)
def test_nothing_is_markup_within_a_line(text):
    (shown,) = (t for t in MARKDOWN.parse(f"It is {within_line(text)}.") if t.type == "inline")
    assert {child.type for child in shown.children} == {"text"}
    assert shown.children[0].content == f"It is {' '.join(text.split())}."


@given(text=HOSTILE)
def test_nothing_ends_a_cell(text):
    row = f"| {within_line(text)} | after |"
    cells = [t for t in MARKDOWN.parse(f"| a | b |\n|---|---|\n{row}") if t.type == "inline"][2:]
    assert len(cells) == 2 and cells[1].content == "after"
    assert {child.type for child in cells[0].children} <= {"text"}
    if text.strip():
        (shown,) = cells[0].children
        assert shown.content == " ".join(text.split())
