"""hf_alpha: Transformers models for problems in which some tokens are only names.

The public names are those of `__all__`; each is imported when it is first used. Importing the
package alone is cheap: neither torch nor Transformers is loaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hf_alpha.auto import register_when_imported

if TYPE_CHECKING:
    from hf_alpha.convert import to_dual_part, to_streams
    from hf_alpha.data.collate import AlphaCollator
    from hf_alpha.evaluation import alpha_covariance, evaluate
    from hf_alpha.generation import generate_answers
    from hf_alpha.loading import load_checkpoint
    from hf_alpha.modeling.configuration_alpha import AlphaConfig
    from hf_alpha.modeling.modeling_alpha import AlphaForConditionalGeneration, AlphaModel
    from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer
    from hf_alpha.recipe import Recipe, read_recipe
    from hf_alpha.tasks import Task, Verdict, get_task
    from hf_alpha.train import AlphaTrainer

__version__ = "0.2.0"

_MODULES = {
    "AlphaCollator": "hf_alpha.data.collate",
    "AlphaConfig": "hf_alpha.modeling.configuration_alpha",
    "AlphaForConditionalGeneration": "hf_alpha.modeling.modeling_alpha",
    "AlphaModel": "hf_alpha.modeling.modeling_alpha",
    "AlphaTokenizer": "hf_alpha.modeling.tokenization_alpha",
    "AlphaTrainer": "hf_alpha.train",
    "Recipe": "hf_alpha.recipe",
    "Task": "hf_alpha.tasks",
    "Verdict": "hf_alpha.tasks",
    "alpha_covariance": "hf_alpha.evaluation",
    "evaluate": "hf_alpha.evaluation",
    "generate_answers": "hf_alpha.generation",
    "get_task": "hf_alpha.tasks",
    "load_checkpoint": "hf_alpha.loading",
    "read_recipe": "hf_alpha.recipe",
    "to_dual_part": "hf_alpha.convert",
    "to_streams": "hf_alpha.convert",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})


register_when_imported()

__all__ = [
    "AlphaCollator",
    "AlphaConfig",
    "AlphaForConditionalGeneration",
    "AlphaModel",
    "AlphaTokenizer",
    "AlphaTrainer",
    "Recipe",
    "Task",
    "Verdict",
    "__version__",
    "alpha_covariance",
    "evaluate",
    "generate_answers",
    "get_task",
    "load_checkpoint",
    "read_recipe",
    "to_dual_part",
    "to_streams",
]
