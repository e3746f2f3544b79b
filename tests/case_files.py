"""Cases in files of data_files/: `### name` heads a part of one, `#### ...` is a remark."""

import re
from pathlib import Path

DATA = Path(__file__).parent / "data_files"


def parts_of(name: str) -> dict[str, str]:
    """What each part of a file holds, such as a program."""
    text = (DATA / name).read_text(encoding="utf-8")
    return dict(re.findall(r"(?ms)^### (.*?)\n(.*?)(?=^### |\Z)", text))


def cases_of(name: str) -> dict[str, list[str]]:
    """The lines of each part, of which each is a case; a line ends within one by `\\n`."""
    return {
        part: [
            line.replace("\\n", "\n")
            for line in text.splitlines()
            if line and not line.startswith("#### ")
        ]
        for part, text in parts_of(name).items()
    }
