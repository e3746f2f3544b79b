"""The walls of the package: which modules would fail if a wing were left out, and which name it."""

import code_wings
import pytest
import without

from hf_alpha import wings


@pytest.fixture(scope="module")
def package() -> code_wings.Package:
    """Read when a test asks, and not by each process that collects tests."""
    return code_wings.package()


@pytest.mark.parametrize("wing", code_wings.WINGS.values(), ids=[*code_wings.WINGS])
def test_no_other_module_needs_a_wing(wing, package):
    missing = package.part(wing.modules)
    failing = package.failing(missing)
    assert missing and not failing, sorted(failing)


@pytest.mark.parametrize(
    ("kind", "most_files", "most_lines"),
    [("formulas", 31, 8_600), ("decoder", 45, 12_500), ("geometric", 12, 2_700)],
)
def test_a_saved_model_carries_what_it_runs(kind, most_files, most_lines, package):
    """Raise a limit for what all such models run; else import less, or elsewhere."""
    modules = package.carried(code_wings.SAVED[kind].split())
    assert len(modules) <= most_files and package.lines(modules) <= most_lines, sorted(modules)


def test_the_core_imports_no_wing_in_functions_either(package):
    """But commands, which import theirs when they run. A wing may need another one, so the page."""
    missing = package.files.keys() - package.core
    core = package.core - package.part("cli")
    holes = {module: package.names[module] & missing for module in core}
    assert not {module: names for module, names in holes.items() if names}


def test_a_reader_can_hold_the_core(package):
    """What the core has no need of belongs into a wing."""
    assert package.lines(package.core) <= 31_300


def test_what_was_left_out_is_named():
    with pytest.raises(
        ImportError, match=r"hf_alpha\.logic\.chess is not in this copy of hf_alpha"
    ):
        wings.part("hf_alpha.logic.chess")


def test_tests_of_the_core_are_where_they_are_looked_for():
    assert all(without.existing(code_wings.CHECKOUT / "tests" / test) for test in without.TESTS)
