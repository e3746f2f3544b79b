import pytest
from commands import hf_alpha

from hf_alpha.cli.old_names import RENAMED, renewed

SERVICE = "--address=http://localhost:1/v1"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("env", "info"),
        ("perturb --kind reduced in out --samples=5",
         "generate-data --kind=reduced --samples=5 out --copy-of in"),
        ("perturb --kind renamed -- in out", "generate-data --kind=renamed out --copy-of in"),
        ("convert-folnet a.cfg a.pt out --tokenizer bert",
         "convert --tokenizer=bert a.cfg out --weights a.pt"),
        ("convert-geometric --trust-remote-code bert fst out --head none",
         "convert --trust-remote-code --head=none bert out --transducer fst"),
        ("convert-folnet --help", "convert --help"),
        ("evaluate a --few-shot --task ltl b", "ask --task=ltl -- a b"),
        (f"evaluate {SERVICE} --served x/y --quiet a", "ask --quiet -- a x/y@http://localhost:1/v1"),
        ("evaluate a --generation {}", "ask --generation={} -- a"),
    ],
)  # fmt: skip
def test_old_command_lines_are_read_as_new_ones(old, new, capsys):
    name, *arguments = old.split()
    assert renewed(name, arguments) == new.split()
    assert capsys.readouterr().err.startswith(f"`hf-alpha {name}")
    assert renewed(*new.split()[:1], new.split()[1:]) == new.split()
    assert capsys.readouterr().err == "", "what is written now says nothing"


@pytest.mark.parametrize("name", sorted(RENAMED.keys() - {"env"}))
def test_too_few_arguments_are_told_the_new_command(name):
    assert f"`hf-alpha {name}` is now `hf-alpha {RENAMED[name][1]}`" in hf_alpha(name, "a").error
    assert name not in hf_alpha("--help").out


def test_a_service_needs_a_name():
    assert "write a service as NAME@ADDRESS" in hf_alpha("evaluate", SERVICE).error


@pytest.mark.parametrize("option", ["--draws", "--top-n=1", "--by"])
def test_what_only_evaluate_has_is_refused_in_words(option):
    name = option.partition("=")[0]
    error = hf_alpha("evaluate", "a", "--few-shot", option, "5").error
    assert f"{name} is for hf-alpha evaluate" in error and f"leave out {name}" in error


def test_an_old_command_does_what_the_new_one_does(tmp_path, data):
    done = hf_alpha("perturb", data, tmp_path / "old", "--kind", "renamed")
    hint = "`hf-alpha perturb` is now `hf-alpha generate-data OUT --copy-of DATA`\n"
    assert (done.code, done.err) == (0, hint)
    new = hf_alpha("generate-data", tmp_path / "new", "--copy-of", data, "--kind", "renamed")
    assert done.out.replace("/old:", "/new:") == new.out
