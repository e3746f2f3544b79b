"""Build a task's tokenizer: `python -m hf_alpha.tasks.build_tokenizer TASK OUT`."""

import argparse
from pathlib import Path

from hf_alpha.checkpoints.code_links import link_code
from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer
from hf_alpha.tasks import Task, get_task, task_names
from hf_alpha.tasks.registry import DEFAULT_TASK

NUM_SYMBOLS = 10


def build_tokenizer(task: str | Task, num_symbols: int = NUM_SYMBOLS) -> AlphaTokenizer:
    """Make the tokenizer of a task with `num_symbols` symbols in each of its classes.

    Args:
        task: a task, or what `get_task` finds one by.
        num_symbols: at least 1.

    Raises:
        ValueError: there is no such task.
    """
    task = get_task(task)
    return AlphaTokenizer(
        base_tokens=task.base_tokens,
        symbol_classes=dict.fromkeys(task.symbol_classes, num_symbols),
        grammar=task.model_grammar,
    )


def main() -> None:
    """Write the tokenizer that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", help=f"one of {', '.join(task_names())}, or package.module:Class")
    parser.add_argument("folder", help=f"where to write, for example tokenizer/{DEFAULT_TASK}")
    parser.add_argument("--symbols", type=int, default=NUM_SYMBOLS, help="symbols of each class")
    arguments = parser.parse_args()
    build_tokenizer(arguments.task, arguments.symbols).save_pretrained(arguments.folder)
    link_code(Path(arguments.folder))


if __name__ == "__main__":
    main()
