"""Switching off single tests of a shared suite, each with its reason."""

from typing import ClassVar


class SwitchedOff:
    """A `unittest.TestCase` that skips tests by the beginning of their names."""

    switched_off: ClassVar[dict[str, str]] = {}

    def setUp(self):
        for name, reason in self.switched_off.items():
            if self._testMethodName.startswith(name):
                self.skipTest(reason)
        super().setUp()
