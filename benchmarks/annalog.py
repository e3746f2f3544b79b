"""ANNalog, a trained model from SMILES to SMILES, as a checkpoint of Transformers.

    pip download --no-deps -d runs/annalog annalog==1.0.6
    python benchmarks/annalog.py runs/annalog runs/annalog/host --data data/reactions/train.jsonl

It has 4 million weights (MIT) and 59 tokens. Those that pairs have besides get rows which begin as
the mean of its rows for atoms in brackets.
"""

import argparse
import json
import pickletools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import MarianConfig, MarianMTModel, PreTrainedTokenizerFast

from checkpoints import wheel
from measure import run

TOKEN = re.compile(r"\[[^\]]+\]|%\d{2}|Br|Cl|.")


def tokens(smiles: str) -> list[str]:
    """Split a text of molecules."""
    return TOKEN.findall(smiles)


def vocabulary(folder: Path) -> list[str]:
    """Return the tokens of ANNalog, read from its pickle without running it."""
    file = folder / "ckpt_and_vocab" / "stereo_experiment_vocab_ttf.pkl"
    words = [
        arg for op, arg, _ in pickletools.genops(file.read_bytes()) if op.name == "SHORT_BINUNICODE"
    ]
    return words[words.index("itos") + 1 : words.index("stoi")]


def tokenizer_of(words: Sequence[str]) -> PreTrainedTokenizerFast:
    """Return a tokenizer of SMILES, with or without spaces between tokens."""
    table = {word: number for number, word in enumerate(words)}
    base = Tokenizer(models.WordLevel(table, unk_token="<unk>"))
    split = pre_tokenizers.Split(Regex(TOKEN.pattern), "isolated")
    base.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), split])
    base.decoder = decoders.Fuse()
    ends = [(word, table[word]) for word in ("<sos>", "<eos>")]
    base.post_processor = processors.TemplateProcessing(
        single="<sos> $A <eos>", special_tokens=ends
    )
    names = {"unk": "<unk>", "pad": "<pad>", "bos": "<sos>", "eos": "<eos>"}
    special = {f"{name}_token": word for name, word in names.items()}
    return PreTrainedTokenizerFast(tokenizer_object=base, **special)


def annalog(folder: Path) -> Path:
    """Return the checkpoint of ANNalog as one of Marian, made once."""
    out = folder / "annalog-hf"
    if not (out / "tokenizer.json").exists():
        write(folder, out)
    return out


def write(folder: Path, out: Path, more: Sequence[str] = ()) -> None:
    """Write the checkpoint, with further tokens.

    Args:
        folder: of the wheel.
        out: where the checkpoint goes.
        more: tokens that it has not got.
    """
    source = wheel(folder, "annalog")
    state = torch.load(
        source / "ckpt_and_vocab" / "Lev_extended.pt", map_location="cpu", weights_only=True
    )
    words = vocabulary(source)
    old_names = (
        (r"tok_embedding", "embed_tokens"),
        (r"pos_embedding", "embed_positions"),
        (r"self_attention\.", "self_attn."),
        (r"encoder_attention\.", "encoder_attn."),
        (r"enc_attn_layer_norm", "encoder_attn_layer_norm"),
        (r"ff_layer_norm", "final_layer_norm"),
        (r"positionwise_feedforward\.fc_", "fc"),
        (r"attn\.fc_([qkv])\.", r"attn.\1_proj."),
        (r"attn\.fc_o\.", "attn.out_proj."),
    )
    new = {}
    for name, value in state.items():
        if name.startswith("decoder.fc_out"):
            continue
        for old, to in old_names:
            name = re.sub(old, to, name)
        new[f"model.{name}"] = value
    new["lm_head.weight"] = state["decoder.fc_out.weight"]
    new["final_logits_bias"] = state["decoder.fc_out.bias"][None]
    new = {name: with_rows(value, words, len(more)) for name, value in new.items()}
    words += more
    positions, width = state["encoder.pos_embedding.weight"].shape
    config = MarianConfig(
        vocab_size=len(words),
        share_encoder_decoder_embeddings=False,
        tie_word_embeddings=False,
        d_model=width,
        **{f"{side}_layers": 3 for side in ("encoder", "decoder")},
        **{f"{side}_attention_heads": 8 for side in ("encoder", "decoder")},
        **{f"{side}_ffn_dim": len(new["model.encoder.layers.0.fc1.bias"])
           for side in ("encoder", "decoder")},
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=positions,
        pad_token_id=1,
        bos_token_id=2,
        eos_token_id=3,
        decoder_start_token_id=2,
        forced_eos_token_id=None,
    )  # fmt: skip
    model = MarianMTModel(config)
    known = {name: value for name, value in new.items() if name in model.state_dict()}
    missing = model.state_dict().keys() - known.keys()
    assert not missing, f"{folder}: weights of another version of ANNalog, without {missing}"
    model.load_state_dict(known)
    model.save_pretrained(out)
    # Marian leaves positions out, since its own are sinusoids; these were trained.
    whole = {name: value.contiguous().clone() for name, value in model.state_dict().items()}
    save_file(whole, out / "model.safetensors", metadata={"format": "pt"})
    tokenizer_of(words).save_pretrained(out)


def with_rows(weight: torch.Tensor, words: Sequence[str], more: int) -> torch.Tensor:
    """Add so many rows (columns of a bias) to a table of tokens; others are returned as they are.

    They are the mean of the rows of atoms in brackets.
    """
    if not more or len(words) not in weight.shape[: 1 + (len(weight) == 1)]:
        return weight
    axis = 0 if len(weight) == len(words) else 1
    known = [number for number, word in enumerate(words) if word.startswith("[")]
    mean = weight.index_select(axis, torch.tensor(known)).mean(axis, keepdim=True)
    return torch.cat([weight, mean.repeat_interleave(more, axis)], axis)


def other_tokens(words: Iterable[str], data: Path) -> list[str]:
    """Return tokens that occur twice and more in pairs and are not among the words."""
    rows = map(json.loads, data.read_text(encoding="utf-8").splitlines())
    counts = Counter(token for row in rows for side in row.values() for token in tokens(side))
    known = {*words}
    return [token for token, n in counts.most_common() if n > 1 and token not in known]


def main(argv: Sequence[str] | None = None) -> None:
    """Write the checkpoint."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="of the wheel")
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="pairs whose tokens it shall have")
    args = parser.parse_args(argv)
    more = other_tokens(vocabulary(wheel(args.folder, "annalog")), args.data)
    write(args.folder, args.out, more)
    print(f"{args.out}: ANNalog with {len(more)} tokens more")


if __name__ == "__main__":
    run(main)
