"""A model type of a user's own, registered with the Auto classes from outside the package."""

from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer

from hf_alpha import AlphaConfig, AlphaForConditionalGeneration, AlphaTokenizer

MODEL_TYPE = "other"


class OtherConfig(AlphaConfig):
    model_type = MODEL_TYPE
    encoder_position: str = "none"
    other_setting: int = 3


class OtherModel(AlphaForConditionalGeneration):
    config_class = OtherConfig
    _auto_class = None


OtherConfig._auto_class = None
AutoConfig.register(MODEL_TYPE, OtherConfig)
AutoModelForSeq2SeqLM.register(OtherConfig, OtherModel)
AutoTokenizer.register(OtherConfig, slow_tokenizer_class=AlphaTokenizer)
