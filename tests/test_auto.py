import own_process
import pytest

from hf_alpha.resources import released_models

FOLDER = released_models()["propositional-learned-small"]
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
    "import hf_alpha; from transformers import T5ForConditionalGeneration",
    "import hf_alpha",
    "from transformers import AutoModel, AutoTokenizer; import hf_alpha",
    "from hf_alpha import AlphaTokenizer",
    "from hf_alpha import AlphaConfig",
    "from hf_alpha import AlphaForConditionalGeneration",
    "from transformers import AutoConfig; import hf_alpha",
    "import hf_alpha; from transformers import Seq2SeqTrainer",
    "import hf_alpha; import transformers.generation",
    "import hf_alpha; import transformers.modeling_utils",
    "import hf_alpha; import transformers.pipelines",
    "import hf_alpha; import transformers.tokenization_utils_base",
    "import hf_alpha.cli, hf_alpha.train",
]


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("first", FIRST)
def test_auto_classes_know_the_models_whatever_is_imported_first(first, tmp_path):
    run = own_process.run("-c", SCRIPT, first, FOLDER, tmp_path)
    assert run.returncode == 0, run.stderr
    ours = "hf_alpha.modeling"
    assert run.stdout.split() == [
        f"{ours}.modeling_alpha.AlphaForConditionalGeneration",
        f"{ours}.tokenization_alpha.AlphaTokenizer",
        f"{ours}.configuration_alpha.AlphaConfig",
        f"{ours}.modeling_alpha.AlphaModel",
    ]


# A module of Transformers that needs an Auto class is half imported when that class is ready.
HALF_IMPORTED = [
    "import transformers.modeling_layers; import hf_alpha",
    "import hf_alpha; from transformers import BartForConditionalGeneration",
    "import hf_alpha; from transformers import BertModel",
    "import hf_alpha; from transformers import LlamaForCausalLM",
    "import hf_alpha; import transformers.modeling_layers",
]
KNOWN = """
from transformers import AutoConfig, AutoModelForSeq2SeqLM
import torch
with torch.device("meta"):
    model = AutoModelForSeq2SeqLM.from_config(
        AutoConfig.for_model("alpha", num_base_tokens=4, symbol_classes={"name": 2})
    )
print(type(model).__module__)
"""


@pytest.mark.slow  # the first case above is one, too
@pytest.mark.parametrize("order", HALF_IMPORTED)
def test_models_are_registered_once_nothing_is_half_imported(order):
    run = own_process.run("-c", f"{order}\n{KNOWN}")
    assert run.stdout.strip() == "hf_alpha.modeling.modeling_alpha", run.stderr
    assert not run.stderr


IMPORTED_AGAIN = """
import importlib, sys
import hf_alpha
importlib.reload(hf_alpha)
for name in [name for name in sys.modules if name.partition(".")[0] == "hf_alpha"]:
    del sys.modules[name]
import hf_alpha
assert [type(finder).__name__ for finder in sys.meta_path].count("_AfterImport") == 1


class Asking:
    # A finder of another package that, like ours, asks all others.
    def find_spec(self, name, path, target=None):
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(name, path, target)):
                return spec


sys.meta_path.append(Asking())
assert importlib.util.find_spec("hf_alpha.modeling.absent") is None
"""


def test_importing_the_package_again_leaves_one_finder():
    """Nor are its modules others: they can be read and run."""
    name = "hf_alpha.modeling.configuration_alpha"
    script = f"""{IMPORTED_AGAIN}{KNOWN}
import hf_alpha, importlib.util, runpy
loader = importlib.util.find_spec("{name}").loader
assert "class AlphaConfig" in loader.get_source("{name}") and loader.get_code("{name}")
assert hf_alpha.modeling.__name__ == "hf_alpha.modeling"
print(runpy.run_module("{name}", run_name="__main__")["AlphaConfig"].model_type)
"""
    run = own_process.run("-c", script)
    assert run.stdout.split() == ["hf_alpha.modeling.modeling_alpha", "alpha"], run.stderr


def test_checkpoints_name_the_classes_that_are_registered():
    """The table here is read without torch, that of the configuration travels with checkpoints."""
    from hf_alpha.auto import MODELS
    from hf_alpha.modeling.configuration_alpha import AUTO_MAPS

    classes = {auto: ".".join(place) for auto, place in MODELS["alpha"].items()}
    named = {**AUTO_MAPS[True], **AUTO_MAPS[False]}
    assert classes == {**named, "AutoTokenizer": "tokenization_alpha.AlphaTokenizer"}
