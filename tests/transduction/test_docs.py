"""docs/transduction.md: its code runs as written, prints what it says, and draws its picture."""

import os
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_code_prints_what_the_document_says(tmp_path):
    blocks = BLOCK.findall((DOCS / "transduction.md").read_text(encoding="utf-8"))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    python = "\n".join(code for language, code in blocks if language == "python")
    bash = "\n".join(code for language, code in blocks if language == "bash")
    printed = ""
    for command in (["bash", "-e", "-c", bash], [sys.executable, "-c", python]):
        done = subprocess.run(
            command, cwd=tmp_path, env={**os.environ, "PATH": path},
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        printed += done.stdout
    assert printed == "".join(code for language, code in blocks if not language)
    assert (tmp_path / "party.svg").read_text() == (DOCS / "transduction.svg").read_text()
