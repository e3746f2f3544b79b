"""What the shared suites of Transformers need from us: tests switched off, and small testers."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar
from unittest.mock import patch

from transformers.models.auto import modeling_auto


class SwitchedOff:
    """A `unittest.TestCase` that skips tests by the beginning of their names.

    Attributes:
        switched_off: beginning of a name -> the reason.
        model_type: of the models.
        tables: of the Auto classes -> name of our class: by these the shared tests know which
            class takes which labels.
    """

    switched_off: ClassVar[dict[str, str]] = {}
    model_type: ClassVar[str] = ""
    tables: ClassVar[dict[str, str]] = {}

    def setUp(self):
        for name, reason in self.switched_off.items():
            if self._testMethodName.startswith(name):
                self.skipTest(reason)
        super().setUp()
        for table, name in self.tables.items():
            patcher = patch.dict(getattr(modeling_auto, table), {self.model_type: name})
            patcher.start()
            self.addCleanup(patcher.stop)

    def subTest(self, *args: Any, **kwargs: Any) -> AbstractContextManager[None]:
        """Leave parts to their test, where there is one for each weight: reports take longer."""
        if self._testMethodName == "test_bc_torch_dtype":
            return nullcontext()
        return super().subTest(*args, **kwargs)


class ModelTester:
    """Sizes of inputs, in the form that the shared tests ask for."""

    batch_size = 5
    seq_length = encoder_seq_length = decoder_seq_length = key_length = 7
    num_hidden_layers = 2
    is_training = True

    def __init__(self, settings: dict[str, Any]):
        self.settings = settings
