"""One service of small models for all tests of the page."""

import pytest

from hf_alpha.demo.service import Service, page_models


@pytest.fixture(scope="package")
def service() -> Service:
    """The released models, on the CPU."""
    return Service(page_models(), "cpu")
