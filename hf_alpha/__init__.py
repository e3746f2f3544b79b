"""hf_alpha: Transformers models for problems in which some tokens are only names."""

from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, AutoTokenizer

from hf_alpha.modeling.configuration_alpha import AlphaConfig
from hf_alpha.modeling.modeling_alpha import AlphaForConditionalGeneration, AlphaModel
from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer

__version__ = "0.2.0"

# For users of the package: the Auto classes know the models without trust_remote_code.
AutoConfig.register("alpha", AlphaConfig)
AutoModel.register(AlphaConfig, AlphaModel)
AutoModelForSeq2SeqLM.register(AlphaConfig, AlphaForConditionalGeneration)
AutoTokenizer.register(AlphaConfig, slow_tokenizer_class=AlphaTokenizer)
# For users of a checkpoint: saving writes the code beside the weights.
AlphaConfig.register_for_auto_class()
AlphaModel.register_for_auto_class("AutoModel")
AlphaForConditionalGeneration.register_for_auto_class("AutoModelForSeq2SeqLM")
AlphaTokenizer.register_for_auto_class("AutoTokenizer")

__all__ = [
    "AlphaConfig",
    "AlphaForConditionalGeneration",
    "AlphaModel",
    "AlphaTokenizer",
    "__version__",
]
