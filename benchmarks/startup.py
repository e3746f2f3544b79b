"""How long it takes to start: the command line and the package, against Transformers alone.

    python benchmarks/startup.py --out startup
    python benchmarks/startup.py --rounds 1

Whole processes in turns, from their start to their end. `hf-alpha --help` is compared with
`import transformers`; `import hf_alpha` with the use of a model class, which registers four Auto
classes, with the least that a package with a model can do: to import and to register an empty model
class. Start-up of the interpreter itself is shown beside them.
"""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import measure

EMPTY_MODEL = """
from transformers import AutoConfig, AutoModel, PreTrainedConfig, PreTrainedModel

class EmptyConfig(PreTrainedConfig):
    model_type = "empty"

class EmptyModel(PreTrainedModel):
    config_class = EmptyConfig

AutoConfig.register("empty", EmptyConfig)
AutoModel.register(EmptyConfig, EmptyModel)
"""
SIDES = {
    "python": ["-c", "pass"],
    "import transformers": ["-c", "import transformers"],
    "hf-alpha --help": [str(Path(sys.executable).with_name("hf-alpha")), "--help"],
    "an empty model class, registered": ["-c", EMPTY_MODEL],
    "import hf_alpha": ["-c", "import hf_alpha; hf_alpha.AlphaForConditionalGeneration"],
}
GOALS = {
    "hf-alpha --help": ("import transformers", 1.2),
    "import hf_alpha": ("an empty model class, registered", 1.2),
}


def process(arguments: Sequence[str]) -> Callable[[], object]:
    command = [sys.executable, *arguments]
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def show(seconds: dict[str, list[float]]) -> str:
    rows = []
    for side, values in seconds.items():
        peer, goal = GOALS.get(side, (None, None))
        ratio = measure.three(measure.ratios(values, seconds[peer]), 2, "x") if peer else ""
        cells = [measure.three(values), ratio, peer or "", f"{goal}x" if goal else ""]
        rows.append([side, *cells])
    return measure.table(["process", "seconds", "ratio", "to", "goal: at most"], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = measure.parser_of(__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args(arguments)
    seconds = measure.in_turns(
        {side: process(command) for side, command in SIDES.items()}, options.rounds
    )
    measure.finish(show(seconds), seconds, options.out, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
