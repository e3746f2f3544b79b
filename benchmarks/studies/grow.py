"""A trained model grows: more layers, and wider feed-forward blocks, from the weights that it has.

New layers are copies of a side's last one, as in progressive stacking (Gong et al., ICML 2019,
which copies all). New feed-forward units give nothing until they are trained. So all layers that
the model had still compute what they did, which is checked each time; new layers change what comes
behind them, and have to be trained.
"""

import copy
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import torch
import typer
from torch import Tensor
from transformers import PreTrainedModel

from hf_alpha.checkpoints.places import checkpoint_place
from hf_alpha.cli import run_command
from hf_alpha.cli.common import say
from hf_alpha.cli.convert import TRAIN_ON
from hf_alpha.cli.options import may_trust
from hf_alpha.convert.shared import (
    ConversionError,
    changed_config,
    class_members,
    for_proof,
    new_model,
    probe,
)
from hf_alpha.io.folders import new_folder
from hf_alpha.loading import load_checkpoint
from hf_alpha.modeling.configuration_alpha import AlphaConfig

LAYER = re.compile(r"model\.(encoder|decoder)\.layers\.(\d+)\.")
ROUNDING = 1e-4  # of states: products of wider blocks are summed in another order


def to_larger(
    model: PreTrainedModel,
    encoder_layers: int | None = None,
    decoder_layers: int | None = None,
    ffn_dim: int | None = None,
) -> PreTrainedModel:
    """Return a larger model with a model's weights, and check what they must agree on.

    Args:
        model: of this package, with any symbol encoding; left as it is.
        encoder_layers: of the larger model; as many as before if None. `decoder_layers` likewise.
        ffn_dim: width of the feed-forward blocks of both sides; as before if None.

    Raises:
        ConversionError: the model is of another kind, something would get smaller, nothing would
            get larger, or the check failed.
    """
    config = larger_config(model.config, encoder_layers, decoder_layers, ffn_dim)
    larger = new_model(model, config)
    larger.load_state_dict(larger_weights(model.state_dict(), larger.state_dict(), model.config))
    larger.generation_config = copy.deepcopy(model.generation_config)
    prove(model, larger)
    return larger.train(model.training)


def larger_config(
    config: AlphaConfig,
    encoder_layers: int | None = None,
    decoder_layers: int | None = None,
    ffn_dim: int | None = None,
) -> AlphaConfig:
    """The configuration of the larger model; arguments and errors as of `to_larger`."""
    if not isinstance(config, AlphaConfig):
        raise ConversionError(
            f"only models of type {AlphaConfig.model_type!r} grow; this is a {config.model_type!r}"
        )
    requested = {
        "encoder_layers": encoder_layers,
        "decoder_layers": decoder_layers,
        "encoder_ffn_dim": ffn_dim,
        "decoder_ffn_dim": ffn_dim,
    }
    changes = {key: value for key, value in requested.items() if value is not None}
    for key, value in changes.items():
        if value < (before := getattr(config, key)):
            raise ConversionError(f"{key} {value} would be smaller: the model has {before}")
    if all(value == getattr(config, key) for key, value in changes.items()):
        raise ConversionError("nothing to grow: name more layers or a wider feed-forward block")
    return changed_config(config, **changes)


def larger_weights(
    old: Mapping[str, Tensor], new: Mapping[str, Tensor], config: AlphaConfig
) -> dict[str, Tensor]:
    """The table of names: every tensor that the model had keeps its name and value.

    | larger model | from |
    |---|---|
    | layers that the model lacked | the last layer of their side |
    | `*.fc1.*`, new rows | the larger model's initialisation |
    | `*.fc2.weight`, new columns | zero |

    Args:
        old: the model's weights.
        new: the larger model's, as they were initialised.
        config: the model's.
    """
    return {name: _widened(old[_source(name, config)], value) for name, value in new.items()}


def _source(name: str, config: AlphaConfig) -> str:
    """The name of the weights that a tensor of the larger model begins with."""
    match = LAYER.match(name)
    if not match:
        return name
    side, index = match[1], int(match[2])
    last = getattr(config, f"{side}_layers") - 1
    return f"model.{side}.layers.{min(index, last)}.{name[match.end() :]}"


def _widened(old: Tensor, new: Tensor) -> Tensor:
    """The old values in the corner of a larger tensor: new rows are drawn, new columns zero."""
    if old.shape == new.shape:
        return old
    larger = new.clone()
    if old.shape[0] == new.shape[0]:
        larger.zero_()
    larger[tuple(slice(size) for size in old.shape)] = old
    return larger


@torch.no_grad()
def prove(model: PreTrainedModel, larger: PreTrainedModel) -> None:
    """Check that the layers which the model had compute the same states on random inputs.

    Both decoders read the states of the model's encoder, as new layers change those.

    Raises:
        ConversionError: with the side that failed and the largest difference.
    """
    one, two = for_proof(model), for_proof(larger)
    symbols = [ids[0] for ids in class_members(model.config)]
    batch = probe(model.config, symbols)
    decoder_ids = batch.pop("decoder_input_ids")
    encoded = one.get_encoder()(**batch, output_hidden_states=True)
    again = two.get_encoder()(**batch, output_hidden_states=True)
    _compare("encoder", encoded.hidden_states, again.hidden_states)
    inputs = {
        "encoder_outputs": encoded,
        "attention_mask": batch["attention_mask"],
        "decoder_input_ids": decoder_ids,
        "output_hidden_states": True,
    }
    states = [each(**inputs).decoder_hidden_states for each in (one, two)]
    _compare("decoder", *states)


def _compare(side: str, before: tuple[Tensor, ...], after: tuple[Tensor, ...]) -> None:
    pairs = zip(before, after[: len(before)], strict=True)
    gap = max(float((one - two).abs().max()) for one, two in pairs)
    if not gap <= ROUNDING:  # NaN is no agreement
        raise ConversionError(f"proof failed: states of the {side} differ by up to {gap:.2e}")


def grow_checkpoint(
    source: str | Path,
    out: str | Path,
    encoder_layers: int | None = None,
    decoder_layers: int | None = None,
    ffn_dim: int | None = None,
) -> PreTrainedModel:
    """Let the model of a folder grow; model, tokenizer and code are written to `out`.

    Raises:
        ConversionError: as `to_larger`; nothing is written.
        FileExistsError: `out` exists; it stays as it is.
    """
    with new_folder(Path(out)) as unfinished:
        model, tokenizer = load_checkpoint(source)
        larger = to_larger(model, encoder_layers, decoder_layers, ffn_dim)
        larger.save_pretrained(unfinished)
        tokenizer.save_pretrained(unfinished)
    return larger


@may_trust("model")
def grow(
    model: Annotated[str, typer.Argument(help="Folder or Hub name of a model of this package.")],
    out: Annotated[Path, typer.Argument(help="Folder for the larger model.")],
    encoder_layers: Annotated[
        int | None, typer.Option(help="Layers of its encoder; as many as before if left out.")
    ] = None,
    decoder_layers: Annotated[int | None, typer.Option(help="Likewise, of its decoder.")] = None,
    ffn_dim: Annotated[
        int | None, typer.Option(help="Width of feed-forward blocks; as before if left out.")
    ] = None,
) -> None:
    """Let a trained model grow, to train it further: more layers, wider feed-forward blocks.

    python -m benchmarks.studies.grow runs/my-task OUT --encoder-layers 6 --ffn-dim 512

    New layers begin as copies of the last one, new units without effect.
    """
    checkpoint_place(model)
    grown = grow_checkpoint(model, out, encoder_layers, decoder_layers, ffn_dim)
    say(
        f"{out}: {grown.num_parameters():,} parameters. Proved on random inputs: the layers "
        f"that the model had compute what they did. {TRAIN_ON}"
    )


def main() -> None:
    """Entry point."""
    run_command(grow, "python -m benchmarks.studies.grow")


__all__ = [
    "grow",
    "grow_checkpoint",
    "larger_config",
    "larger_weights",
    "main",
    "prove",
    "to_larger",
]

if __name__ == "__main__":
    main()
