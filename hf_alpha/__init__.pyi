"""The public names and where they are, for type checkers; `__init__.py` reads them too."""

from hf_alpha.alias.people import people_rule as people_rule
from hf_alpha.alias.transport import CanonicalTransport as CanonicalTransport
from hf_alpha.convert.adapters import adapter_settings as adapter_settings
from hf_alpha.canonical import CanonicalModel as CanonicalModel
from hf_alpha.convert.retrofit import (
    SymbolConfig as SymbolConfig,
    get_symbol_model as get_symbol_model,
)
from hf_alpha.evaluation import alpha_covariance as alpha_covariance, evaluate as evaluate
from hf_alpha.generation import generate_answers as generate_answers
from hf_alpha.loading import load_checkpoint as load_checkpoint
from hf_alpha.modeling.configuration_alpha import AlphaConfig as AlphaConfig
from hf_alpha.modeling.configuration_symbols import SymbolModelConfig as SymbolModelConfig
from hf_alpha.modeling.encoding import SymbolEncoding as SymbolEncoding
from hf_alpha.modeling.modeling_alpha import (
    AlphaForConditionalGeneration as AlphaForConditionalGeneration,
)
from hf_alpha.modeling.modeling_alpha_decoder import AlphaForCausalLM as AlphaForCausalLM
from hf_alpha.modeling.names_in_text import MarkedText as MarkedText
from hf_alpha.modeling.streams import Streams as Streams
from hf_alpha.modeling.symbol_encodings import register_encoding as register_encoding
from hf_alpha.modeling.symbol_layer import SymbolLayer as SymbolLayer
from hf_alpha.modeling.symbol_model import SymbolHead as SymbolHead, SymbolModel as SymbolModel
from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer as AlphaTokenizer
from hf_alpha.modeling.canonical_names import CanonicalNames as CanonicalNames
from hf_alpha.modeling.tokenization_canonical import CanonicalTokenizer as CanonicalTokenizer
from hf_alpha.modeling.tokenization_text import TextTokenizer as TextTokenizer
from hf_alpha.answer.pipelines import NamesTextGenerationPipeline as NamesTextGenerationPipeline
from hf_alpha.answer.solving import solve as solve
from hf_alpha.tasks import Task as Task, Verdict as Verdict, register_task as register_task
from hf_alpha.tasks.text import TextTask as TextTask
from hf_alpha.train import AlphaTrainer as AlphaTrainer

__version__: str
