"""What lies in a folder, to compare it with another one."""

import os
from pathlib import Path


def files_of(folder: str | os.PathLike[str]) -> dict[str, bytes]:
    """The path in the folder and the content of each file beneath it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    }
