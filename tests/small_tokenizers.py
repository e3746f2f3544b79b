"""A small tokenizer of each kind. All know `alice` and `bob`; `bartholomew` has many tokens."""

import json
import string
from itertools import product

from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizerFast

WORDS = ["alice", "bob", "carol", "sees", "and", "not", "x", "y", "z"]
NAMES = ["alice", "bob", "bartholomew"]
CHARACTERS = [*string.ascii_letters, *string.digits, *"&|!=()'.,:>$_-"]
SPECIAL = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
MARKS = list(SPECIAL.values())


def finish(tokenizer: Tokenizer, end: bool, **special: str) -> PreTrainedTokenizerFast:
    """Wrap it; with `end`, texts end with `</s>`."""
    if end:
        number = tokenizer.token_to_id("</s>")
        tokenizer.post_processor = processors.TemplateProcessing(
            single="$A </s>", special_tokens=[("</s>", number)]
        )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **(special or SPECIAL))


def word_level(end: bool = False, words: tuple[str, ...] = ()) -> PreTrainedTokenizerFast:
    """x, y, z and u are 4 to 7; split at spaces."""
    vocabulary = [*MARKS, "x", "y", "z", "u", "and", "not", "=", *words]
    model = models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token="<unk>")
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return finish(tokenizer, end)


def byte_level(end: bool = False) -> PreTrainedTokenizerFast:
    """As GPT-2's: `alice` and ` alice` are two tokens; no token is unknown, none is for padding."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=["</s>"], show_progress=False, min_frequency=2,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    lines = [f"{a} {b} {a}" for a in WORDS for b in WORDS]
    tokenizer.train_from_iterator(lines, trainer)
    return finish(tokenizer, end, eos_token="</s>")


def byte_level_of_chats(template: str) -> PreTrainedTokenizerFast:
    """As those of hosts that call tools: 800 tokens, with the marks of ChatML."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=800, special_tokens=["<pad>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
    )  # fmt: skip
    lines = []
    for verb, noun, kind in product(("get", "find", "read"), ("data", "item", "page"), WORDS):
        call = {"name": f"{verb}{noun}", "arguments": {kind: "Rome"}}
        parameters = {
            "type": "object",
            "properties": {kind: {"type": "string"}},
            "required": [kind],
        }
        tool = {"name": f"{verb}{noun}", "description": "Tells it.", "parameters": parameters}
        said = f"user\nWhat does {noun} cost?\nassistant\n<tool_call>{json.dumps(call)}</tool_call>"
        lines.append(f"{json.dumps({'type': 'function', 'function': tool})}\n{said}")
    tokenizer.train_from_iterator(lines, trainer)
    special = {"pad_token": "<pad>", "eos_token": "<|im_end|>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=template, **special)


def word_piece(end: bool = False) -> PreTrainedTokenizerFast:
    """As uncased BERT's: lower-cases, strips accents, splits at punctuation."""
    pieces = [*MARKS, *WORDS, *CHARACTERS, *(f"##{c}" for c in CHARACTERS)]
    vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return finish(tokenizer, end)


def unigram(end: bool = False) -> PreTrainedTokenizerFast:
    """As T5's: spaces are the letter `▁`, some characters are unknown."""
    pieces = [(mark, 0.0) for mark in MARKS] + [(f"▁{word}", -2.0) for word in WORDS]
    pieces += [(character, -5.0) for character in ["▁", *CHARACTERS]]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=MARKS.index("<unk>")))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return finish(tokenizer, end)


def smiles(end: bool = False) -> PreTrainedTokenizerFast:
    """Of molecules, as ANNalog's: no token has a space, and none is written."""
    tokens = "C N O S F B I c n o s p * = - # / \\ . > ( ) Cl Br [C@H] [13CH3] [NH+] [Cl-] [Na+]"
    vocabulary = dict.fromkeys([*MARKS, *tokens.split(), *"123456789"])
    table = {token: i for i, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordLevel(table, unk_token="<unk>"))
    split = pre_tokenizers.Split(Regex(r"\[[^\]]+\]|%\d{2}|Br|Cl|."), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), split])
    tokenizer.decoder = decoders.Fuse()
    return finish(tokenizer, end)


def characters():
    """A tokenizer that splits all words: one character, one token."""
    letters = [chr(i) for i in range(32, 127)] + ["\n"]
    tokenizer = Tokenizer(models.WordLevel({c: i for i, c in enumerate(letters)}, unk_token="~"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    return finish(tokenizer, False, unk_token="~", eos_token="~")


def digits():
    """A tokenizer of words and digits, without a letter alone: `v1` is two tokens."""
    tokenizer = Tokenizer(
        models.BPE({c: i for i, c in enumerate("~v0123456789")}, [], unk_token="~")
    )
    tokenizer.decoder = decoders.Fuse()
    return finish(tokenizer, False, unk_token="~", eos_token="~")


SUBWORD = [byte_level, word_piece, unigram]
