"""The command `hf-alpha`. It stands beside the package, because importing that loads torch."""

import runpy
from importlib.util import find_spec


def main() -> None:
    """Run the package's `cli.py` as a script, which imports the package once a command needs it."""
    package = find_spec("hf_alpha")
    assert package is not None and package.submodule_search_locations
    runpy.run_path(f"{package.submodule_search_locations[0]}/cli.py", run_name="__main__")


if __name__ == "__main__":
    main()
