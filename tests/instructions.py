"""How much work a call is, whatever the machine does besides."""

import sys
from collections.abc import Callable
from pathlib import Path

import hf_alpha

PACKAGE = str(Path(hf_alpha.__file__).parent)


def instructions(run: Callable[[], object]) -> int:
    """How many instructions of the package's own code a call executes."""
    counted = 0

    def trace(frame, event, _):
        nonlocal counted
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        counted += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return counted
