"""Build a task's tokenizer: `python -m hf_alpha.build_tokenizer propositional OUT`."""

import argparse
from pathlib import Path

from hf_alpha.code_links import link_code
from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer
from hf_alpha.tasks import get_task

NUM_SYMBOLS = 10


def build_tokenizer(task_name: str, num_symbols: int = NUM_SYMBOLS) -> AlphaTokenizer:
    """Make the tokenizer of a task with `num_symbols` symbols in each of its classes.

    Raises:
        ValueError: there is no such task.
    """
    task = get_task(task_name)
    return AlphaTokenizer(
        base_tokens=task.base_tokens,
        symbol_classes=dict.fromkeys(task.symbol_classes, num_symbols),
        grammar=task.grammar,
    )


def main() -> None:
    """Write the tokenizer that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", help="name of the task, for example propositional")
    parser.add_argument("folder", help="where to write, for example tokenizer/propositional")
    parser.add_argument("--symbols", type=int, default=NUM_SYMBOLS, help="symbols of each class")
    arguments = parser.parse_args()
    build_tokenizer(arguments.task, arguments.symbols).save_pretrained(arguments.folder)
    link_code(Path(arguments.folder))


if __name__ == "__main__":
    main()
