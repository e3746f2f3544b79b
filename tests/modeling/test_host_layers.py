import pytest
import torch
from hosts import HOSTS, make_host
from torch import nn

from hf_alpha.modeling.host_layers import hidden_of, layers_of, with_hidden

hosts = pytest.mark.parametrize("name", HOSTS)


@torch.no_grad()
def logits_of(host):
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(4, 39, (3, 7), generator=generator)
    decoder_ids = torch.randint(4, 39, (3, 5), generator=generator)
    mask = torch.ones_like(ids)
    mask[0, -1] = 0
    return host(input_ids=ids, attention_mask=mask, decoder_input_ids=decoder_ids).logits


def add(number: int):
    def hook(layer, args, output):
        changed = hidden_of(output) + number
        return with_hidden(output, changed)

    return hook


@hosts
def test_layers_take_hooks(name):
    host = make_host(name)
    expected = logits_of(host)
    encoder, decoder = layers_of(host.get_encoder()), layers_of(host.get_decoder())
    assert (len(encoder), len(decoder)) == (3 if name == "byt5" else 2, 2)
    shapes = []
    for layer in (*encoder, *decoder):
        layer.register_forward_hook(add(0))
        layer.register_forward_hook(lambda *call: shapes.append(hidden_of(call[2]).shape))
    assert torch.equal(logits_of(host), expected)
    length = 8 if name == "led" else 7  # padded to whole windows
    assert shapes == [(3, length, 16)] * len(encoder) + [(3, 5, 16)] * len(decoder)
    encoder[-1].register_forward_hook(add(1))
    assert not torch.equal(logits_of(host), expected)


@hosts
def test_layers_are_called_in_their_order(name):
    host, order = make_host(name), []
    layers = [*layers_of(host.get_encoder()), *layers_of(host.get_decoder())]
    for number, layer in enumerate(layers):
        layer.register_forward_hook(lambda *_, number=number: order.append(number))
    logits_of(host)
    assert order == list(range(len(layers)))


class Stack(nn.Module):
    def __init__(self, **lists: nn.ModuleList):
        super().__init__()
        for name, members in lists.items():
            setattr(self, name, members)


def linears(count: int) -> nn.ModuleList:
    return nn.ModuleList(nn.Linear(2, 2) for _ in range(count))


def test_a_stack_without_such_a_list_or_with_two():
    inside = Stack(sublayers=linears(2))
    mixed = nn.ModuleList([nn.Linear(2, 2), inside])  # the list inside is a part of one layer
    assert layers_of(Stack(blocks=nn.ModuleList([inside]))) == [inside]
    assert len(layers_of(Stack(below=Stack(blocks=linears(3)), other=mixed))) == 3
    with pytest.raises(ValueError, match=r"layers of Stack: .* found none"):
        layers_of(Stack(blocks=mixed, empty=nn.ModuleList()))
    with pytest.raises(ValueError, match=r"layers of Stack: .* found first and below\.second"):
        layers_of(Stack(first=linears(2), below=Stack(second=linears(1))))
