"""The same small models for all tests of the page."""

from types import ModuleType

import pytest

from hf_alpha.demo.choices import Choice, page_choices
from hf_alpha.resources import released_model

LEARNED = ("ltl-learned-small", "propositional-learned-small")


@pytest.fixture(scope="package")
def page_server() -> ModuleType:
    """The module that serves the page, imported when a test asks: Gradio takes two seconds."""
    pytest.importorskip("gradio", reason="needs Gradio: pip install 'hf_alpha[demo]'")
    from hf_alpha.demo import server

    return server


@pytest.fixture(scope="package")
def choices() -> dict[str, Choice]:
    """The released models that the page offers by itself, and some for which names matter."""
    learned = page_choices([str(released_model(name)) for name in LEARNED], device="cpu")
    return page_choices(device="cpu") | learned
