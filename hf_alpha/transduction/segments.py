"""The transducer that a recipe names, on top of a tokenizer."""

from collections.abc import Mapping
from typing import Any

from hf_alpha.modeling.tokenization_geometric import GeometricTokenizer
from hf_alpha.transduction.transducer import Transducer


def with_transducer(tokenizer: Any, transducer: str | Mapping[str, Any]) -> GeometricTokenizer:
    """Put the transducer that a recipe names on top of a tokenizer.

    Args:
        tokenizer: any fast one; a transducer that it has is replaced.
        transducer: a folder with a saved transducer, or what `Transducer.from_settings` takes.

    Raises:
        ValueError: the tokenizer has symbols, or the transducer cannot be made or read.
        OSError: a file is missing.
    """
    if isinstance(transducer, str):
        return GeometricTokenizer.from_tokenizer(tokenizer, Transducer.load(transducer))
    return GeometricTokenizer.from_tokenizer(tokenizer, Transducer.from_settings(transducer))
