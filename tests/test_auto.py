import subprocess
import sys

import pytest

from hf_alpha.resources import resource_path

FOLDER = resource_path("model_cards", "propositional-learned-small")
SCRIPT = """
import pathlib, sys
exec(sys.argv[1])
from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, AutoTokenizer
loaded = [auto.from_pretrained(sys.argv[2]) for auto in
          (AutoModelForSeq2SeqLM, AutoTokenizer, AutoConfig, AutoModel)]
for one in loaded[:2]:
    one.save_pretrained(sys.argv[3])
files = {path.name for path in pathlib.Path(sys.argv[3]).iterdir()}
assert {"modeling_alpha.py", "configuration_alpha.py", "tokenization_alpha.py"} <= files, files
print(*(f"{type(one).__module__}.{type(one).__name__}" for one in loaded))
"""
# Whatever is imported first, of Transformers or of ours: each order could go in a circle.
FIRST = [
    "import hf_alpha",
    "from transformers import AutoModel, AutoTokenizer; import hf_alpha",
    "from hf_alpha import AlphaTokenizer",
    "from hf_alpha import AlphaConfig",
    "from hf_alpha import AlphaModel",
    "from transformers import AutoConfig; import hf_alpha",
    "import hf_alpha; from transformers import Seq2SeqTrainer",
    "import hf_alpha; import transformers.generation",
    "import hf_alpha; import transformers.modeling_utils",
    "import hf_alpha; import transformers.pipelines",
    "import hf_alpha; import transformers.tokenization_utils_base",
    "import hf_alpha.cli, hf_alpha.train",
]


@pytest.mark.parametrize(
    "first", [first if i < 3 else pytest.param(first, marks=pytest.mark.slow)
              for i, first in enumerate(FIRST)]
)  # fmt: skip
def test_auto_classes_know_the_models_whatever_is_imported_first(first, tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, first, str(FOLDER), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    ours = "hf_alpha.modeling"
    assert run.stdout.split() == [
        f"{ours}.modeling_alpha.AlphaForConditionalGeneration",
        f"{ours}.tokenization_alpha.AlphaTokenizer",
        f"{ours}.configuration_alpha.AlphaConfig",
        f"{ours}.modeling_alpha.AlphaModel",
    ]
