"""`hf-alpha transduce`: labelled segments of texts."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hf_alpha.answer.solving import Line
from hf_alpha.cli.common import say, stream_inputs
from hf_alpha.cli.options import argument, flag, option, refuse_options

if TYPE_CHECKING:
    from hf_alpha.transduction import Transducer


def transduce(
    command: typer.Context,
    texts: list[str] | None = argument(
        "Sentences; standard input if there are none, and nothing is saved.", None
    ),
    file: Path | None = option("File with a text in each line."),
    lexicon: list[Path] | None = option(
        "File with phrase, tab, label in each line; may be repeated."
    ),
    rules: Path | None = option("YAML file: a list of rules with pattern and label."),
    transducer: Path | None = option("Folder that --save made, in place of the two above."),
    plurals: bool = flag("--plurals", "Find regular English plurals of phrases too."),
    unit: str | None = option("words (by default) or characters."),
    match: str | None = option("all segments (by default), or the leftmost longest."),
    svg: Path | None = option("Draw the text: a file to write."),
    save: Path | None = option("Folder to save the transducer in."),
) -> None:
    """Find labelled segments in texts by a lexicon and rules, and print their gamma-spaces.

    hf-alpha transduce 'They deliver fire hoses' --lexicon compounds.tsv --rules rules.yaml
    """
    if not lexicon:
        refuse_options(command, ["plurals"], "is for a --lexicon")
    only_saved = save is not None and not texts and file is None
    if only_saved:
        refuse_options(command, ["svg"], "draws a text, and none is named")
    lexicons = [{"path": str(path), "plurals": plurals} for path in lexicon or []]
    compiled = _transducer_of(lexicons, rules, transducer, {"unit": unit, "match": match})
    if save is not None:
        compiled.save(save)
        say(f"the transducer is in {save}")
        if only_saved:
            return
    spaces = [compiled(text) for text in _read(texts, file)]
    if svg is not None:
        from hf_alpha.io.folders import write_text

        if len(spaces) > 1:
            raise ValueError(f"--svg draws one text, and there are {len(spaces)}")
        if svg.is_file() and not svg.read_bytes().lstrip().startswith(b"<svg"):
            raise FileExistsError(f"{svg} is there already, and no picture: choose another name")
        write_text(svg, spaces[0].svg())
    for space in spaces:
        say(f"{space}")
        width = max((len(segment.label) for segment in space.segments), default=0)
        for segment in space.segments:
            place = f"{segment.start + 1}-{segment.end + 1}"
            say(f"  {place:<7} {segment.label:<{width}}  {space.covered(segment)}")


def _read(arguments: list[str] | None, file: Path | None) -> list[str]:
    """Return the texts; a line that cannot be read is an error.

    Raises:
        ValueError: there are no texts, or one cannot be read.
    """
    texts = [text for text, _ in stream_inputs(arguments, file, "text")]
    for text in texts:
        if isinstance(text, Line) and text.error is not None:
            raise ValueError(text.error)
    return texts


def _transducer_of(
    lexicon: list[dict[str, Any]],
    rules: Path | None,
    folder: Path | None,
    settings: dict[str, str | None],
) -> "Transducer":
    """Load a transducer, or compile one."""
    from hf_alpha.transduction import Transducer

    every: dict[str, Any] = {
        "lexicon": lexicon,
        "rules": None if rules is None else str(rules),
        **settings,
    }
    given_settings = {key: value for key, value in every.items() if value}
    if folder is None:
        if not given_settings.keys() & {"lexicon", "rules"}:
            raise ValueError("nothing to find: name a --lexicon, --rules or a --transducer")
        return Transducer.from_settings(given_settings)
    if given_settings:
        raise ValueError(
            f"the transducer in {folder} has its own {', '.join(given_settings)}: leave it out"
        )
    return Transducer.load(folder)
