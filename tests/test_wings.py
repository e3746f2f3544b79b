"""The walls of the package: which modules would fail if a wing were left out, and which name it."""

import code_wings
import pytest

PACKAGE = code_wings.package()


@pytest.mark.parametrize("wing", code_wings.WINGS.values(), ids=[*code_wings.WINGS])
def test_few_modules_need_a_wing(wing):
    missing = PACKAGE.part(wing.modules)
    failing = PACKAGE.failing(missing)
    assert missing and len(failing) <= wing.goal, sorted(failing)
