"""A server in this process with OpenAI's client, and small models for it to serve."""

import re
import signal
import socket
import threading
from contextlib import contextmanager
from itertools import pairwise

import openai
import torch
from hosts import make_host
from small_tokenizers import MARKS, byte_level, finish, unigram
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

from hf_alpha import CanonicalTokenizer, SymbolConfig, get_symbol_model
from hf_alpha.alias.plain import PlainTokenizer
from hf_alpha.serve import Limits
from hf_alpha.serve.engine import Engine
from hf_alpha.serve.http import Server
from hf_alpha.serve.server import Api

TEXTS = ["alice sees xa1 and ya1", "alice sees zb2 and xa1"]
NEW_NAMES = {"xa1": "zb2", "ya1": "xa1"}
PATTERN = "[xyz][a-z][0-9]"
CHAT = (
    "{% for t in tools or [] %}tool {{ t.function.name }} {% endfor %}"
    "{% for m in messages if m.role != 'tool' %}<{{ m.role }}> {{ m.content }} {% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def renamed(text):
    return re.sub("|".join(NEW_NAMES), lambda match: NEW_NAMES[match[0]], text)


def converted(
    kind="llama", encoding="relational", rule=PATTERN, positions=4096, beneath=unigram, **settings
):
    """A host with random weights, and a layer of two symbols around it."""
    tokenizer = beneath(end=kind == "t5")
    tokenizer.chat_template = CHAT
    ids = {} if kind == "t5" else {"eos_token_id": None, "max_position_embeddings": positions}
    host = make_host(kind, vocab_size=len(tokenizer), **ids)
    rule = {"pattern": rule} if isinstance(rule, str) else rule
    rules = {"name": {**rule, "count": 2}}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return get_symbol_model(
            host, tokenizer, SymbolConfig(symbols=rules, encoding=encoding, **settings)
        )


def canonical():
    """A host as it is, behind a tokenizer that spells names."""
    tokenizer = byte_level()
    host = make_host(
        "llama", vocab_size=len(tokenizer), eos_token_id=None, max_position_embeddings=4096
    )
    return host, CanonicalTokenizer.from_tokenizer(tokenizer, {"name": PATTERN})


def plain():
    """A host as it is, with its own tokenizer: names are words like any other."""
    return canonical()[0], PlainTokenizer.of(byte_level())


@contextmanager
def running(api):
    """A server in this process, and its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = Server(api, ["127.0.0.1"])
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    finally:
        server.handle_exit(signal.SIGTERM, None)
        thread.join(20)
    assert not thread.is_alive()


@contextmanager
def served(model, tokenizer, key="", **limits):
    """A model on a server in this process, and a client of it."""
    api = Api(Engine(model, tokenizer, Limits(**{"max_tokens": 3000, **limits})), "small", key)
    ask = {"api_key": key or "none", "max_retries": 0, "timeout": 120}
    with running(api) as url, openai.OpenAI(base_url=url, **ask) as client:
        client.engine = api.engine
        yield client


def complete(client, prompt, **options):
    options = {"max_tokens": 20, **options}
    return client.completions.create(model="small", prompt=prompt, **options)


def text_of(client, prompt, **options):
    """The answer, whole, after it has come in parts too."""
    (whole,) = complete(client, prompt, **options).choices
    parts = [chunk.choices[0] for chunk in complete(client, prompt, stream=True, **options)]
    assert "".join(part.text for part in parts) == whole.text
    assert {part.finish_reason for part in parts[:-1]} <= {None}
    assert parts[-1].finish_reason == whole.finish_reason
    return whole.text


def chat(client, content, names=None, **options):
    """The answer to a chat, whole, after it has come in parts too."""
    options = {"max_tokens": 20, "extra_body": {"names": names}, **options}
    ask = {"model": "small", "messages": [{"role": "user", "content": content}], **options}
    (whole,) = client.chat.completions.create(**ask).choices
    chunks = list(client.chat.completions.create(stream=True, **ask))
    deltas = [chunk.choices[0].delta for chunk in chunks]
    assert deltas[0].role == whole.message.role == "assistant"
    assert "".join(delta.content or "" for delta in deltas) == whole.message.content
    assert chunks[-1].choices[0].finish_reason == whole.finish_reason
    calls = {}
    for call in (call for delta in deltas for call in delta.tool_calls or ()):
        name, arguments = calls.get(call.index, (call.function.name, ""))
        calls[call.index] = name, arguments + call.function.arguments
    told = [call.function for call in whole.message.tool_calls or ()]
    assert [*calls.values()] == [(f.name, f.arguments) for f in told]
    return whole


SCRIPT = [
    *("<assistant>", "sure", "<tool_call>", '{"name":', '"b",', '"arguments":'),
    *('{"to":', '"c"}}', "</tool_call>", "</s>"),
]
TOOLS = [{"type": "function", "function": {"name": "send_mail", "parameters": {"type": "object"}}}]


def scripted(host, script):
    """A Llama whose next token is a function of the last one, behind a tokenizer that spells."""
    size = len(host) + len(host) % 2
    config = LlamaConfig(vocab_size=size, hidden_size=size, intermediate_size=2, pad_token_id=0,
                         num_hidden_layers=1, num_attention_heads=1)  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    model.generation_config.eos_token_id = host.eos_token_id
    with torch.no_grad():
        layer = model.model.layers[0]
        for weight in (layer.self_attn.o_proj.weight, layer.mlp.down_proj.weight):
            weight.zero_()
        model.model.embed_tokens.weight.copy_(torch.eye(size))
        model.lm_head.weight.zero_()
        for before, after in pairwise(host.convert_tokens_to_ids(script)):
            model.lm_head.weight[after, before] = 1
    return model, CanonicalTokenizer.from_tokenizer(host, {"name": "[a-z]+_[a-z]+"})


def caller(script=SCRIPT):
    """One that calls the first name as a tool, for the second."""
    words = {word: i for i, word in enumerate(dict.fromkeys([*MARKS, *script, *"bc"]))}
    beneath = Tokenizer(models.WordLevel(words, "<unk>"))
    beneath.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    host = finish(beneath, False)
    host.chat_template = CHAT.replace("assistant>{", "assistant> {") + "{# <tool_call> #}"
    return scripted(host, script)
