"""Models of Transformers as they are, among those with names."""

from collections.abc import Mapping
from typing import Any, cast

from hf_alpha.modeling.tokenization_canonical import CanonicalTokenizer


class PlainTokenizer(CanonicalTokenizer):
    """The tokenizer of a plain model, for tools that take texts with names: these stay as they are.

    What is saved is the model's own.
    """

    host: Any

    @classmethod
    def of(cls, host: Any) -> "PlainTokenizer":
        """Take the tokenizer of a model.

        Raises:
            ValueError: it is not a fast one.
        """
        self = cast(PlainTokenizer, cls.from_tokenizer(host, {}))
        self.host = host
        return self

    def use_rules(self, symbols: Mapping[str, Any]) -> None:
        """Leave names as they are, whatever their rules."""

    def _row(self, texts: tuple[str, ...], *args: Any, **kwargs: Any) -> Any:
        return super()._row(tuple(map(str, texts)), *args, **kwargs)

    def batch_decode(self, *args: Any, **kwargs: Any) -> list[str]:
        """Write answers, without spaces at their ends."""
        return [text.strip() for text in super().batch_decode(*args, **kwargs)]

    def save_pretrained(self, *args: Any, **kwargs: Any) -> Any:
        """Save the model's own tokenizer."""
        return self.host.save_pretrained(*args, **kwargs)
