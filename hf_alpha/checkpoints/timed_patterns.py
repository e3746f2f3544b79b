"""Patterns of others that another library matches: tried out first, within a limit of time.

Where this package matches patterns of others itself, it does so by `regex`, which has such a limit.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping

LIMIT = 5.0
"""Seconds, of which the start of a process takes a hundredth."""
PLAIN = re.compile(r"[\w.-]*")
"""A pattern that takes no time."""
_MATCH = """
import json, re, sys
patterns, texts = json.load(sys.stdin)
for key, listed in patterns.items():
    print(key, flush=True)
    for pattern in listed:
        matches = re.compile(pattern).match
        for text in texts:
            matches(text)
"""


class SlowPatternError(ValueError):
    """A pattern takes too long, or is none."""


def check_patterns(patterns: Mapping[str, Iterable[str]], texts: Iterable[str]) -> None:
    """Match patterns by Python's `re`, in a process that is ended after `LIMIT` seconds.

    Args:
        patterns: key -> patterns that stand there.

    Raises:
        SlowPatternError: naming the key.
    """
    listed = {key: [*each] for key, each in patterns.items() if each}
    if not listed:
        return
    command = [sys.executable, "-I", "-S", "-c", _MATCH]
    told = json.dumps([listed, [*texts]]).encode()
    try:
        done = subprocess.run(command, input=told, capture_output=True, timeout=LIMIT)
    except subprocess.TimeoutExpired as error:
        key = (error.stdout or b"?").decode().split("\n")[-2:][0]
        raise SlowPatternError(
            f"{key}: its patterns take more than {LIMIT:g} seconds for the names of the "
            "model's modules: leave one way to match a name"
        ) from None
    if done.returncode:
        key = (done.stdout.decode().split() or ["?"])[-1]
        reason = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise SlowPatternError(f"{key}: a pattern cannot be read: {reason}")
