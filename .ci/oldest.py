"""Prints a constraints file with the oldest version of each package that pyproject.toml allows.

Packages that these packages bring are left to pip, which takes their newest version that fits.
"""

import re
import tomllib
from pathlib import Path

project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())["project"]
groups = [project["dependencies"], *project["optional-dependencies"].values()]
for requirement in (line for group in groups for line in group):
    # Extras such as hf_alpha[ltl] name this package; everything else has to have a bound.
    if not re.match(r"hf_alpha\b", requirement):
        pattern = r"([\w.-]+)(?:\[[\w,-]+\])?[>=]=([^,;\s]+).*"
        name, bound = re.fullmatch(pattern, requirement, re.S).groups()
        print(f"{name}=={bound}")
