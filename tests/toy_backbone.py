"""A backbone from outside the package: means in place of attention, and nothing else of its own.

What a backbone has to bring is all here: a configuration with a `hidden_size`, a base model with
`symbols` and `symbol_draws`, and a head with `logit_scale`. It knows no encoding.
"""

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer
from transformers.generation import GenerationMixin
from transformers.modeling_outputs import Seq2SeqLMOutput

from hf_alpha.modeling.configuration_symbols import SymbolModelConfig
from hf_alpha.modeling.logit_scale import LogitScale
from hf_alpha.modeling.streams import Streams, SymbolEncoderOutput
from hf_alpha.modeling.symbol_layer import SymbolDraws, SymbolLayer
from hf_alpha.modeling.symbol_model import SymbolHead, SymbolModel
from hf_alpha.modeling.symbols import pack_streams, unpack_streams
from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer


class ToyConfig(SymbolModelConfig):
    model_type = "toy"

    hidden_size: int = 16
    is_encoder_decoder: bool = True
    use_cache: bool = False


class ToyModel(SymbolModel):
    config: ToyConfig
    base_model_prefix = "model"

    def __init__(self, config: ToyConfig):
        super().__init__(config)
        encoding = config.encoding(config)
        self.shared = nn.Embedding(*encoding.shape)
        self.symbol_draws = SymbolDraws.of(config)
        self.symbols = SymbolLayer(config, self.symbol_draws, self)
        self.mix = nn.Linear(3 * config.hidden_size, config.hidden_size)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.shared

    def forward(
        self, input_ids, attention_mask=None, stream_ids=None, return_dict=True, **kwargs
    ) -> SymbolEncoderOutput:
        """The encoder: embeddings of each stream; padding is zero."""
        streams = self.symbols.open(input_ids, attention_mask, stream_ids, self.training)
        hidden = self.symbols.embed(input_ids, streams)
        if attention_mask is not None:
            hidden = hidden * attention_mask[:, None, :, None]
        return SymbolEncoderOutput(pack_streams(hidden), **streams.fields())

    def decode(self, ids_BT: torch.Tensor, source: torch.Tensor, streams: Streams) -> torch.Tensor:
        """Each token from itself, the mean of those before it and that of the source."""
        hidden = self.symbols.embed(ids_BT, streams)
        count = torch.arange(1, ids_BT.shape[1] + 1, device=hidden.device)[:, None]
        past = hidden.cumsum(2) / count
        source = source.mean(2, keepdim=True).expand_as(hidden)
        return self.mix(torch.cat((hidden, past, source), -1)).tanh()


class ToyForConditionalGeneration(SymbolHead, GenerationMixin):
    config: ToyConfig
    base_model_prefix = "model"
    main_input_name = "input_ids"

    def __init__(self, config: ToyConfig):
        super().__init__(config)
        self.model = ToyModel(config)
        self.logit_scale = LogitScale(config.initial_logit_scale, config.adacos)
        self.post_init()

    def get_encoder(self, *args, **kwargs) -> nn.Module:
        return self.model

    def get_input_embeddings(self) -> nn.Module:
        return self.model.shared

    def forward(
        self, input_ids=None, attention_mask=None, stream_ids=None, decoder_input_ids=None,
        encoder_outputs=None, labels=None, num_items_in_batch=None, **kwargs,
    ) -> Seq2SeqLMOutput:  # fmt: skip
        if encoder_outputs is None:
            encoder_outputs = self.model(input_ids, attention_mask, stream_ids)
        if decoder_input_ids is None:
            start = torch.full_like(labels[:, :1], self.config.decoder_start_token_id)
            decoder_input_ids = torch.cat((start, labels[:, :-1].clamp(min=0)), 1)
        source = unpack_streams(encoder_outputs.last_hidden_state, self.config.hidden_size)
        streams = Streams.of(encoder_outputs, source.dtype)
        streams = self.symbol_layer.follow(streams, decoder_input_ids)
        hidden = self.model.decode(decoder_input_ids, source, streams)
        logits, loss = self.predict(hidden, streams, labels, num_items_in_batch)
        return Seq2SeqLMOutput(loss=loss, logits=logits)


AutoConfig.register("toy", ToyConfig)
AutoModelForSeq2SeqLM.register(ToyConfig, ToyForConditionalGeneration)
AutoTokenizer.register(ToyConfig, slow_tokenizer_class=AlphaTokenizer)
