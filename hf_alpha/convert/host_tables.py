"""The tables of tokens in a model of Transformers: more rows, and what is in a row.

They are found by Transformers' public methods, so no family is named here. Tables are grown in
place, as the parameters that they are. Two modules that share one still share it, and those that do
not still do not. (`resize_token_embeddings` ties again by the configuration: a T5 v1.1, whose
configuration says that its head is tied although it is not, would lose its head.)
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel

from hf_alpha.convert.shared import ConversionError

BLOCK = 1024
"""Rows of a table that are looked at together."""
COUNTS = {"num_embeddings", "out_features"}  # attributes of modules: the rows of their weight


def check_tables(host: PreTrainedModel) -> None:
    """Check that every table of tokens is found, and that there is one vocabulary.

    Raises:
        ConversionError: a table cannot be found or is not in memory; encoder and decoder have
            different vocabularies.
    """
    _entries(host)


def table_rows(host: PreTrainedModel) -> int:
    """Return how many tokens the host has rows for.

    Raises:
        ConversionError: it does not say where its output projection is.
    """
    return _output(host).weight.shape[0]


def resize_tables(host: PreTrainedModel, rows: int) -> None:
    """Give every table of tokens this many rows, in place; configurations say so too.

    Tables are the input embeddings of encoder and decoder, the output projection, its bias, and
    what the host itself holds for each token (`final_logits_bias`). Old rows stay as they are. A
    new row is the mean of the old ones, until `fill_row` puts something else there.

    Raises:
        ConversionError: there are more rows already; a table cannot be found or is not in memory;
            encoder and decoder have different vocabularies. The host is unchanged.
    """
    entries = _entries(host)
    old = table_rows(host)
    if rows < old:
        raise ConversionError(
            f"the host has rows for {old} tokens; {rows} would remove some: ask for {old} or more"
        )
    with torch.no_grad():
        for tensor, dim in entries:
            mean = tensor.mean(dim, keepdim=True, dtype=torch.float32).to(tensor.dtype)
            new = mean.repeat_interleave(rows - old, dim)
            tensor.data = torch.cat([tensor.data, new], dim)
            tensor.grad = None
    _state_rows(host, {id(tensor) for tensor, _ in entries}, old, rows)


def fill_row(host: PreTrainedModel, row: int, sources: Sequence[int]) -> None:
    """Put the mean of the rows `sources` into a row of every table of tokens, in place.

    One source is copied as it is.

    Raises:
        ConversionError: no sources, or a row that the tables do not have; as `resize_tables`.
    """
    _check_rows(host, [row], sources)
    with torch.no_grad():
        for tensor, dim in _entries(host):
            tensor.select(dim, row).copy_(_chosen(tensor, dim, sources).mean(dim))


def draw_rows(host: PreTrainedModel, rows: Sequence[int], like: Sequence[int]) -> None:
    """Put rows of average length and direction into every table of tokens, in place.

    They are drawn from the normal distribution that has the mean and the spread of the rows `like`,
    dimension by dimension; the same for the same row.

    Raises:
        ConversionError: as `fill_row`.
    """
    if not rows:
        return
    _check_rows(host, rows, like)
    generators = {row: torch.Generator().manual_seed(row) for row in rows}
    with torch.no_grad():
        for tensor, dim in _entries(host):
            like_rows = _chosen(tensor, dim, like)
            mean, spread = like_rows.mean(dim), like_rows.std(dim)
            one_number = tensor.dim() < 2 or tensor.shape[-1] == tensor.numel()  # for each token
            for row, generator in generators.items():
                entry = tensor.select(dim, row).copy_(mean)
                if not one_number:
                    noise = torch.randn(tensor.shape[-1], generator=generator).to(tensor.device)
                    entry.add_((spread * noise).to(tensor.dtype))


def _chosen(tensor: Tensor, dim: int, ids: Sequence[int]) -> Tensor:
    return tensor.index_select(dim, torch.tensor(list(ids), device=tensor.device)).float()


def _check_rows(host: PreTrainedModel, rows: Sequence[int], sources: Sequence[int]) -> None:
    """Raise a ConversionError unless there are sources, and the tables have all of these rows."""
    _entries(host)
    num_rows = table_rows(host)
    if not sources:
        raise ConversionError(
            f"row {rows[0]} is to be the mean of no rows: name one or more tokens"
        )
    if strange := [index for index in (*rows, *sources) if not 0 <= index < num_rows]:
        raise ConversionError(f"the host has no row {strange[0]}: its rows are 0 to {num_rows - 1}")


def row_length(host: PreTrainedModel, rows: Sequence[int]) -> list[float]:
    """Return the mean length of rows in the input's table, as they enter layers, and the head's.

    Raises:
        ConversionError: as `resize_tables`.
    """
    _entries(host)
    tables = _inputs(host)
    table = tables.get("encoder", tables["decoder"])
    ids = torch.tensor(list(rows), device=table.weight.device)
    return [_mean_length(read, ids) for read in (table, _output(host).weight.__getitem__)]


@torch.no_grad()
def _mean_length(read: Callable[[Tensor], Tensor], ids: Tensor) -> float:
    """Return the mean length of what is read for ids, in little memory."""
    lengths = torch.empty(len(ids), device=ids.device)  # what is kept in parts would scatter it
    for part, block in zip(lengths.split(BLOCK), ids.split(BLOCK), strict=True):
        part.copy_(read(block).float().norm(dim=-1))
    return float(lengths.mean())


# -- finding the tables ---------------------------------------------------------------------------


def _entries(host: PreTrainedModel) -> list[tuple[Tensor, int]]:
    """Return each tensor with an entry for each token, once, and the dimension of tokens."""
    inputs = _inputs(host)
    output = _output(host)
    tables = [(module.weight, 0) for module in (*inputs.values(), output)]
    rows = output.weight.shape[0]
    tensors = [*host.parameters(recurse=False), *host.buffers(recurse=False), output.bias]
    per_token = [
        (tensor, tensor.dim() - 1)
        for tensor in tensors
        if tensor is not None and tensor.dim() and tensor.shape[-1] == tensor.numel() == rows
    ]
    entries = list({id(tensor): (tensor, dim) for tensor, dim in (*tables, *per_token)}.values())
    if any(tensor.is_meta for tensor, _ in entries):
        raise ConversionError(
            f"tables of {_name(host)} are not in memory: load the model without offloading"
        )
    _check_one_vocabulary(host, inputs, rows)
    return entries


def _inputs(host: PreTrainedModel) -> dict[str, nn.Embedding]:
    """Return the input embeddings by the part that has them."""
    parts = {"model": host}
    if host.config.is_encoder_decoder:
        parts["encoder"] = host.get_encoder()
    parts["decoder"] = host.get_decoder()
    tables = {}
    for role, part in parts.items():
        try:
            table = part.get_input_embeddings()
        except (AttributeError, NotImplementedError):
            table = None
        if not isinstance(table, nn.Embedding):
            raise ConversionError(
                f"{_name(host)} does not say where the input embeddings of its {role} are "
                f"({_name(part)}.get_input_embeddings() gives {_name(table)}, not an Embedding): "
                "take a model whose parts have them, as those of T5 and BART have"
            )
        tables[role] = table
    return tables


def _output(host: PreTrainedModel) -> nn.Linear:
    """Return the projection onto tokens."""
    output = host.get_output_embeddings()
    if not isinstance(output, nn.Linear):
        raise ConversionError(
            f"{_name(host)} does not say where its output projection is "
            f"(get_output_embeddings() gives {_name(output)}, not a Linear): "
            "take a model with a language modeling head, as AutoModelForSeq2SeqLM or "
            "AutoModelForCausalLM loads it"
        )
    return output


def _check_one_vocabulary(
    host: PreTrainedModel, inputs: dict[str, nn.Embedding], rows: int
) -> None:
    """Check that ids mean the same everywhere: a symbol is one token, read and written.

    Tables of the same size are of one vocabulary (T5Gemma, Marian): the tokenizer has but one.
    """
    sizes = {role: table.weight.shape[0] for role, table in inputs.items()} | {"output": rows}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{role} {size}" for role, size in sizes.items())
        raise ConversionError(
            f"encoder and decoder of {_name(host)} have different vocabularies (rows: {listed}); "
            "a symbol needs one id for both: take a model with one vocabulary"
        )


def _name(thing: Any) -> str:
    return "nothing" if thing is None else type(thing).__name__


# -- what states the number of rows ---------------------------------------------------------------


def _state_rows(host: PreTrainedModel, tables: set[int], old: int, rows: int) -> None:
    """Write the number of rows wherever the old one is stated."""
    for module in host.modules():
        if id(getattr(module, "weight", None)) in tables:
            for name in COUNTS & vars(module).keys():
                setattr(module, name, rows)
    for holder in (*host.modules(), *_configs(host)):
        for name, value in list(vars(holder).items()):
            if name.endswith("vocab_size") and value == old:
                setattr(holder, name, rows)


def _configs(host: PreTrainedModel) -> Iterator[PreTrainedConfig]:
    """Return the configurations of all parts (T5's stacks have copies), and those inside."""
    queue = [module.config for module in host.modules() if isinstance(module, PreTrainedModel)]
    seen_ids: set[int] = set()
    while queue:
        config = queue.pop()
        if id(config) not in seen_ids:
            seen_ids.add(id(config))
            queue += [part for part in vars(config).values() if isinstance(part, PreTrainedConfig)]
            yield config
