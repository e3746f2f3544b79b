"""The command line as a whole: help, completion, versions, endings."""

import re
import subprocess
import sys
from importlib import metadata
from itertools import pairwise
from pathlib import Path

import own_process
import pytest
import typer.main
from commands import any_command, hf_alpha
from hosts import make_host
from small_tokenizers import word_level

import hf_alpha as hf_alpha_package
from hf_alpha.cli import PANELS, app
from hf_alpha.io.folders import locked

ROOT = Path(__file__).resolve().parents[2]
RECIPE = """
task: text
data: {train: rows.jsonl, test: rows.jsonl}
symbols: {name: "[a-z]"}
model: {d_model: 16, encoder_layers: 1, decoder_layers: 1}
training: {max_steps: 1, output_dir: run}
"""
COMMANDS = {
    name: command
    for name, command in typer.main.get_command(app).commands.items()  # type: ignore[attr-defined]
    if not command.hidden
}


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_has_everything_within_80_columns(monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    done = hf_alpha(*([command] if command else []), "--help")
    assert done.code == 0
    text = re.sub(r"\x1b\[[\d;]*m", "", done.out)
    assert max(map(len, text.splitlines())) <= 80
    if command is None:
        words = set(COMMANDS)
        assert words == {
            *("generate-data", "train", "convert", "evaluate", "solve", "release", "push"),
            *("quickstart", "info", "compare", "transduce", "demo", "serve", "certify"),
        }
        assert len(words) <= 14 and all(f"─ {panel} ─" in text for panel in PANELS)
    else:
        words = {max(parameter.opts, key=len) for parameter in COMMANDS[command].params}
        assert all(getattr(parameter, "help", "") for parameter in COMMANDS[command].params)
        for line, following in pairwise(text[: text.index("╭")].splitlines()):
            if line.strip() and (word := following.split()[:1]):  # which has no room in the line
                assert len(f"{line.strip()} {word[0]}") > 78
    assert all(re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) for word in words)


def test_alone_it_names_five_commands_that_there_are():
    done = hf_alpha()
    assert done.code == 0 and not done.err
    *lines, blank, end = done.out.splitlines()
    named = [line.split()[1] for line in lines]
    assert len(named) == 5 and set(named) <= set(COMMANDS)
    assert not blank and max(map(len, done.out.splitlines())) <= 100
    for page in re.findall(r"docs/[\w-]+\.md", done.out):
        assert (ROOT / page).is_file()
    assert "docs/start.md" in end


@pytest.mark.parametrize("command", [["solve", "request & !grant"], ["info", "MODEL"]])
def test_other_libraries_say_nothing(command):
    model = str(ROOT / "model_cards" / "small" / "propositional-streams-small")
    done = hf_alpha(*[model if word == "MODEL" else word for word in command])
    assert done.code == 0 and not done.err


DOCUMENTED = re.compile(r"`(hf-alpha [^`\n]+)`|^[#\s]*(hf-alpha [^\n`]+?)(?:   .*)?$", re.MULTILINE)
TAKEN_AWAY = {"--draws", "--exclude", "--hard"}
"""Options of `evaluate` in commands that are quoted as they were given (docs/results-models.md)."""


def test_documented_commands_have_their_options():
    """But for the pages that tell what has changed."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("model_cards/**/*.md"),
             *ROOT.glob("training/**/*.yaml"), *ROOT.glob("examples/**/*.py")]  # fmt: skip
    seen = 0
    for page in pages:
        if page.name in ("CHANGELOG.md", "LOG.md"):
            continue
        for one in DOCUMENTED.findall(page.read_text(encoding="utf-8").replace("\\\n", " ")):
            line = re.split(r"\s(?:[|>]|&&)\s", one[0] or one[1])[0]
            _, name, *words = line.split()
            if name.startswith("-") or name == "COMMAND":
                continue
            assert name in COMMANDS, (page, line)
            known = {
                o for each in COMMANDS[name].params for o in (*each.opts, *each.secondary_opts)
            }
            known |= {"-h", "--help"} | (TAKEN_AWAY if name == "evaluate" else set())
            given = {word.split("=")[0] for word in words if re.match("--?[a-z]", word)}
            assert given <= known, (page, line, given - known)
            seen += 1
    assert seen > 200


OPTIONS = [
    (command, option)
    for command, made in COMMANDS.items()
    for option in made.params
    if option.param_type_name == "option" and not option.is_eager
]


@pytest.mark.slow
def test_an_option_is_given_once_unless_it_takes_several_values():
    assert len(OPTIONS) > 80
    for command, option in OPTIONS:
        name, value = option.opts[0], [] if option.is_flag else ["1"]
        twice = [command, name, *value, name, *value]
        done = hf_alpha(*twice)
        assert (f"{name} is given twice" in done.err) != option.multiple, (twice, done)


@pytest.mark.parametrize("names", ["a", "x=a,x=b", "x=a"])
def test_a_class_is_named_once(tmp_path, vanilla, names):
    """Of several values too: each is for a class of its own."""
    t5 = tmp_path / "t5"
    make_host("t5").save_pretrained(t5)
    word_level().save_pretrained(t5)
    done = hf_alpha("convert", t5, tmp_path / "out", "--names", names, "--names", names)
    assert "twice" in done.error


# What another process writes into, as each command is told of it.
WRITERS = {
    "train": ["propositional/debug", "training.output_dir=out"],
    "quickstart": ["--output", "OUT"],
    "evaluate": ["MODEL", "--out", "OUT", "--data", "DATA"],
    "compare": ["RECIPE", "--out", "OUT"],
    "transduce": ["a", "--rules", "RULES", "--save", "OUT"],
}
MAKERS = {
    "convert": ["MODEL", "OUT"],
    "convert original": ["CFG", "OUT"],
    "convert --transducer": ["MODEL", "OUT", "--transducer", "FST"],
    "studies.grow": ["MODEL", "OUT", "--encoder-layers", "2"],
    "release": ["MODEL", "OUT"],
}
WRITE_NONE = {"solve", "info", "push", "demo", "serve", "certify"}
WRITE_TOGETHER = {"generate-data"}
STUDIES = {"studies.grow"}


@pytest.mark.parametrize("command", [*WRITERS, *MAKERS])
def test_two_commands_do_not_write_one_folder(tmp_path, monkeypatch, vanilla, data, command):
    name, *_ = command.split()
    writing = {each.split()[0] for each in (*WRITERS, *MAKERS)}
    assert COMMANDS.keys() | STUDIES == {*writing, *WRITE_NONE, *WRITE_TOGETHER}
    monkeypatch.chdir(tmp_path)
    Path("rules.yaml").write_text("- {pattern: '/[0-9]+/', label: DATE}\n")
    Path("rows.jsonl").write_text('{"sentence": "a", "source": "a", "target": "a", "label": 0}\n')
    Path("own.yaml").write_text(RECIPE)
    Path("original.cfg").write_text("")
    Path("original.pt").write_text("")
    if command == "convert --transducer":
        assert hf_alpha("transduce", "--rules", "rules.yaml", "--save", "fst").code == 0
    places = {"OUT": "out", "MODEL": vanilla, "RECIPE": "own.yaml", "RULES": "rules.yaml",
              "ROWS": "rows.jsonl", "DATA": data, "FST": "fst",
              "CFG": "original.cfg"}  # fmt: skip
    arguments = [places.get(part, part) for part in {**WRITERS, **MAKERS}[command]]
    busy = Path("out") if command in WRITERS else Path(f".out.{'a' * 32}")
    with locked(busy):
        errors = any_command(name, *arguments).err
    assert re.search(r"error: another process writes \S*out: wait", errors), errors
    assert len(errors[errors.index("error: ") :].splitlines()) == 1


def test_short_option_for_help_and_the_version():
    assert hf_alpha("-h").out == hf_alpha("--help").out
    assert hf_alpha("solve", "-h").out == hf_alpha("solve", "--help").out
    assert hf_alpha("--version").out == f"hf_alpha {metadata.version('hf_alpha')}\n"


def test_commands_print_what_terminals_do_not_obey(tmp_path):
    folder = tmp_path / "\x1b]0;title\x07"
    folder.mkdir()
    assert r"/\x1b]0;title\x07 is neither a model" in hf_alpha("push", folder, "me/it").error
    for file in Path(hf_alpha_package.__file__).parent.joinpath("cli").glob("*.py"):
        assert ("typer.echo" in file.read_text()) == (file.name == "common.py"), "by `say` alone"


MISTYPED = """
import sys, hf_alpha.cli
for line in sys.stdin.read().splitlines():
    sys.argv[1:] = line.split()
    try:
        hf_alpha.cli.main()
    except SystemExit as stop:
        print(stop.code, "torch" in sys.modules)
"""


MISSPELT = """
train no
train own.yaml data.train=no.jsonl
train own.yaml data.source=sauce
train own.yaml data.train=rows.csv data.target=sauce
train own.yaml data.validation=no.csv
train own.yaml symbols.name.column=sauce
compare no
compare own.yaml data.source=sauce
compare own.yaml --data no.jsonl
evaluate no
evaluate model --data no.jsonl
evaluate model --data other.jsonl
evaluate model --data rows.csv --target sauce
solve --model no a
solve --model runs/no a
solve --model model --file no.jsonl
solve --model model --file other.jsonl
solve --model model --file rows.csv --source sauce
convert no x
convert model x --transducer no
release no out
push no a/b
info no
serve no
demo --model no
certify no.jsonl --names a
certify rows.jsonl --names a --model no
transduce a --lexicon no.tsv
transduce a --transducer no
generate-data out --task no
quickstart --steps no
"""


def test_a_misspelt_file_or_column_is_told_before_torch_is_loaded(tmp_path):
    """Of every command: torch takes many seconds on a busy machine."""
    assert {line.split()[0] for line in MISSPELT.split("\n") if line} == COMMANDS.keys()
    (tmp_path / "own.yaml").write_text(RECIPE)
    for folder in ("model", "runs/one"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "config.json").touch()  # so runs/no is no name on the Hub
    (tmp_path / "model" / "recipe.yaml").write_text(RECIPE)
    (tmp_path / "rows.csv").write_text("source,target\na,a\n")
    (tmp_path / "rows.jsonl").write_text('{"source": "a", "target": "a"}\n')
    (tmp_path / "other.jsonl").write_text('{"sauce": "a", "target": "a"}\n')
    done = subprocess.run(
        [sys.executable, "-c", MISTYPED], input=MISSPELT.strip(), capture_output=True,
        text=True, timeout=120, cwd=tmp_path,
    )  # fmt: skip
    commands = MISSPELT.strip().splitlines()
    assert done.stdout.splitlines() == ["2 False"] * len(commands), done.stderr
    assert len(re.findall(r"\berror: |─ Error ─", done.stderr)) == len(commands)


def test_the_installed_command_ends_with_these_codes(tmp_path):
    done = own_process.run("-m", "hf_alpha", "solve", "--model", tmp_path / "absent", "a")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: no checkpoint folder '{tmp_path / 'absent'}'\n"
