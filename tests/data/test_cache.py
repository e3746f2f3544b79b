"""Where there is no room for a copy of data, the folder is named, and what to do."""

import json
import os
import textwrap

import own_process
import pytest

from hf_alpha.data.files import filling_cache

SCRIPT = """
import json, resource, signal, sys
from hf_alpha.build_tokenizer import build_tokenizer
from hf_alpha.data.collate import tokenize
from hf_alpha.data.rows import load

rows = load("rows.jsonl")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
for read in (lambda: tokenize(rows, build_tokenizer("propositional")), lambda: load("more.jsonl")):
    try:
        read()
    except Exception as error:
        print(type(error).__name__, error)
"""


@pytest.mark.slow
def test_a_full_disk_is_named_while_data_is_read(tmp_path):
    row = json.dumps({"problem": "& a b", "answer": "a1b1"}) + "\n"
    for name, count in [("rows", 2000), ("more", 3000)]:
        (tmp_path / f"{name}.jsonl").write_text(count * row)
    cache = tmp_path / "cache"
    env = {**os.environ, "HF_DATASETS_CACHE": str(cache)}
    done = own_process.run("-c", textwrap.dedent(SCRIPT), env=env, cwd=tmp_path)
    said = done.stdout.splitlines()
    assert len(said) == 2, (done.stdout, done.stderr[-2000:])
    for line in said:
        assert f"CacheFullError the cache of datasets, {cache}, has no room for a copy" in line
        assert "File too large; free some space, or name another folder in the env" in line


def test_other_errors_pass():
    for error in (FileNotFoundError(2, "no file", "some"), ValueError("row 3")):
        with pytest.raises(type(error)) as raised, filling_cache():
            raise error
        assert raised.value is error


def test_an_error_that_is_its_own_cause_passes():
    """As one is that was taken out of another, of which it is the cause, and raised again."""
    cause = ValueError("row 3")
    with pytest.raises(ValueError, match="row 3"), filling_cache():
        try:
            raise RuntimeError("generation") from cause
        except RuntimeError as error:
            raise error.__cause__ from None
