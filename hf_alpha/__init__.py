"""hf_alpha: Transformers models for problems in which some tokens are only names.

The public names are those of `__all__`; each, like the modules, is imported when it is first used.
Importing the package alone is cheap: neither torch nor Transformers is loaded.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hf_alpha.auto import register_when_imported

# For type checkers; `X as X` says that it is public.
if TYPE_CHECKING:
    from hf_alpha.adapters import adapter_settings as adapter_settings
    from hf_alpha.canonical import CanonicalModel as CanonicalModel
    from hf_alpha.convert import to_dual_part as to_dual_part
    from hf_alpha.convert import to_geometric as to_geometric
    from hf_alpha.convert import to_relational as to_relational
    from hf_alpha.convert import to_streams as to_streams
    from hf_alpha.convert.retrofit import SymbolConfig as SymbolConfig
    from hf_alpha.convert.retrofit import get_symbol_model as get_symbol_model
    from hf_alpha.data.collate import AlphaCollator as AlphaCollator
    from hf_alpha.evaluation import alpha_covariance as alpha_covariance
    from hf_alpha.evaluation import evaluate as evaluate
    from hf_alpha.generation import generate_answers as generate_answers
    from hf_alpha.loading import load_checkpoint as load_checkpoint
    from hf_alpha.modeling.configuration_alpha import AlphaConfig as AlphaConfig
    from hf_alpha.modeling.configuration_folnet import FolnetConfig as FolnetConfig
    from hf_alpha.modeling.configuration_geometric import GeometricConfig as GeometricConfig
    from hf_alpha.modeling.configuration_symbols import SymbolModelConfig as SymbolModelConfig
    from hf_alpha.modeling.modeling_alpha import (
        AlphaForConditionalGeneration as AlphaForConditionalGeneration,
    )
    from hf_alpha.modeling.modeling_alpha import AlphaModel as AlphaModel
    from hf_alpha.modeling.modeling_alpha_decoder import AlphaForCausalLM as AlphaForCausalLM
    from hf_alpha.modeling.modeling_folnet import (
        FolnetForCausalLM as FolnetForCausalLM,
    )
    from hf_alpha.modeling.modeling_folnet import (
        FolnetForConditionalGeneration as FolnetForConditionalGeneration,
    )
    from hf_alpha.modeling.modeling_folnet import (
        FolnetForMaskedLM as FolnetForMaskedLM,
    )
    from hf_alpha.modeling.modeling_folnet import (
        FolnetForMultipleChoice as FolnetForMultipleChoice,
    )
    from hf_alpha.modeling.modeling_folnet import (
        FolnetForPreTraining as FolnetForPreTraining,
    )
    from hf_alpha.modeling.modeling_folnet import (
        FolnetForQuestionAnswering as FolnetForQuestionAnswering,
    )
    from hf_alpha.modeling.modeling_folnet import (
        FolnetForSequenceClassification as FolnetForSequenceClassification,
    )
    from hf_alpha.modeling.modeling_folnet import (
        FolnetForTokenClassification as FolnetForTokenClassification,
    )
    from hf_alpha.modeling.modeling_folnet import (
        FolnetModel as FolnetModel,
    )
    from hf_alpha.modeling.modeling_geometric import (
        GeometricForMaskedLM as GeometricForMaskedLM,
    )
    from hf_alpha.modeling.modeling_geometric import (
        GeometricForSequenceClassification as GeometricForSequenceClassification,
    )
    from hf_alpha.modeling.modeling_geometric import (
        GeometricForTokenClassification as GeometricForTokenClassification,
    )
    from hf_alpha.modeling.modeling_geometric import (
        GeometricModel as GeometricModel,
    )
    from hf_alpha.modeling.names_in_text import MarkedText as MarkedText
    from hf_alpha.modeling.streams import Streams as Streams
    from hf_alpha.modeling.symbol_encodings import SymbolEncoding as SymbolEncoding
    from hf_alpha.modeling.symbol_encodings import register_encoding as register_encoding
    from hf_alpha.modeling.symbol_layer import SymbolLayer as SymbolLayer
    from hf_alpha.modeling.symbol_model import SymbolHead as SymbolHead
    from hf_alpha.modeling.symbol_model import SymbolModel as SymbolModel
    from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer as AlphaTokenizer
    from hf_alpha.modeling.tokenization_canonical import CanonicalNames as CanonicalNames
    from hf_alpha.modeling.tokenization_canonical import CanonicalTokenizer as CanonicalTokenizer
    from hf_alpha.modeling.tokenization_geometric import GeometricTokenizer as GeometricTokenizer
    from hf_alpha.modeling.tokenization_text import TextTokenizer as TextTokenizer
    from hf_alpha.pipelines import NamesTextGenerationPipeline as NamesTextGenerationPipeline
    from hf_alpha.recipe import Recipe as Recipe
    from hf_alpha.recipe import read_recipe as read_recipe
    from hf_alpha.solving import solve as solve
    from hf_alpha.tasks import Task as Task
    from hf_alpha.tasks import Verdict as Verdict
    from hf_alpha.tasks import get_task as get_task
    from hf_alpha.tasks import register_task as register_task
    from hf_alpha.tasks.text import TextTask as TextTask
    from hf_alpha.train import AlphaTrainer as AlphaTrainer
    from hf_alpha.transduction import Lexicon as Lexicon
    from hf_alpha.transduction import Rule as Rule
    from hf_alpha.transduction import Transducer as Transducer

__version__ = "0.3.0.dev0"

_MODULES = {
    "AlphaCollator": "hf_alpha.data.collate",
    "AlphaConfig": "hf_alpha.modeling.configuration_alpha",
    "AlphaForCausalLM": "hf_alpha.modeling.modeling_alpha_decoder",
    "AlphaForConditionalGeneration": "hf_alpha.modeling.modeling_alpha",
    "AlphaModel": "hf_alpha.modeling.modeling_alpha",
    "AlphaTokenizer": "hf_alpha.modeling.tokenization_alpha",
    "AlphaTrainer": "hf_alpha.train",
    "CanonicalModel": "hf_alpha.canonical",
    "CanonicalNames": "hf_alpha.modeling.tokenization_canonical",
    "CanonicalTokenizer": "hf_alpha.modeling.tokenization_canonical",
    "FolnetConfig": "hf_alpha.modeling.configuration_folnet",
    "FolnetForCausalLM": "hf_alpha.modeling.modeling_folnet",
    "FolnetForConditionalGeneration": "hf_alpha.modeling.modeling_folnet",
    "FolnetForMaskedLM": "hf_alpha.modeling.modeling_folnet",
    "FolnetForMultipleChoice": "hf_alpha.modeling.modeling_folnet",
    "FolnetForPreTraining": "hf_alpha.modeling.modeling_folnet",
    "FolnetForQuestionAnswering": "hf_alpha.modeling.modeling_folnet",
    "FolnetForSequenceClassification": "hf_alpha.modeling.modeling_folnet",
    "FolnetForTokenClassification": "hf_alpha.modeling.modeling_folnet",
    "FolnetModel": "hf_alpha.modeling.modeling_folnet",
    "GeometricConfig": "hf_alpha.modeling.configuration_geometric",
    "GeometricForMaskedLM": "hf_alpha.modeling.modeling_geometric",
    "GeometricForSequenceClassification": "hf_alpha.modeling.modeling_geometric",
    "GeometricForTokenClassification": "hf_alpha.modeling.modeling_geometric",
    "GeometricModel": "hf_alpha.modeling.modeling_geometric",
    "GeometricTokenizer": "hf_alpha.modeling.tokenization_geometric",
    "Lexicon": "hf_alpha.transduction",
    "MarkedText": "hf_alpha.modeling.names_in_text",
    "NamesTextGenerationPipeline": "hf_alpha.pipelines",
    "Recipe": "hf_alpha.recipe",
    "Rule": "hf_alpha.transduction",
    "Streams": "hf_alpha.modeling.streams",
    "SymbolConfig": "hf_alpha.convert.retrofit",
    "SymbolModelConfig": "hf_alpha.modeling.configuration_symbols",
    "SymbolEncoding": "hf_alpha.modeling.symbol_encodings",
    "SymbolHead": "hf_alpha.modeling.symbol_model",
    "SymbolLayer": "hf_alpha.modeling.symbol_layer",
    "SymbolModel": "hf_alpha.modeling.symbol_model",
    "Task": "hf_alpha.tasks",
    "TextTask": "hf_alpha.tasks.text",
    "TextTokenizer": "hf_alpha.modeling.tokenization_text",
    "Transducer": "hf_alpha.transduction",
    "Verdict": "hf_alpha.tasks",
    "adapter_settings": "hf_alpha.adapters",
    "alpha_covariance": "hf_alpha.evaluation",
    "evaluate": "hf_alpha.evaluation",
    "generate_answers": "hf_alpha.generation",
    "get_symbol_model": "hf_alpha.convert.retrofit",
    "get_task": "hf_alpha.tasks",
    "load_checkpoint": "hf_alpha.loading",
    "read_recipe": "hf_alpha.recipe",
    "register_encoding": "hf_alpha.modeling.symbol_encodings",
    "register_task": "hf_alpha.tasks",
    "solve": "hf_alpha.solving",
    "to_dual_part": "hf_alpha.convert",
    "to_geometric": "hf_alpha.convert",
    "to_relational": "hf_alpha.convert",
    "to_streams": "hf_alpha.convert",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = globals()[name] = getattr(import_module(_MODULES[name]), name)
        return value
    if find_spec(f"{__name__}.{name}") is not None:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


register_when_imported()

__all__ = ["__version__", *_MODULES]
