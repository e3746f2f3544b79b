"""A model against its reference: a padded batch at once, and sample by sample in loops."""

import torch
from strategies import random_batch
from transformers import PreTrainedModel

from .streams import ReferenceModel


def check_reference(
    model: PreTrainedModel, reference_class: type[ReferenceModel], seed: int = 1
) -> None:
    """Compare forward and gradients of a padded batch, in float64."""
    model = model.double()
    batch = random_batch(seed, model.config, [(6, 3), (4, 1), (2, 0)])
    out = model(**batch).logits
    weights = torch.randn(
        out.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    usable = out > -1e3
    (out * weights)[usable].sum().backward()
    reference_state = {
        name: value.detach().clone().requires_grad_(value.is_floating_point())
        for name, value in model.state_dict().items()
    }
    reference = reference_class(reference_state, model.config)
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        total = 0
        for row in range(len(out)):
            real = batch["attention_mask"][row].bool()
            expected = reference(
                batch["input_ids"][row][real].tolist(),
                batch["tree_paths"][row][real].tolist(),
                batch["decoder_input_ids"][row].tolist(),
            )
            seen = ~expected.isnan()
            assert torch.equal(seen, usable[row])
            torch.testing.assert_close(out[row][seen], expected[seen], rtol=1e-6, atol=1e-7)
            total = total + (expected[seen] * weights[row][seen]).sum()
        total.backward()
    finally:
        torch.set_default_dtype(default)
    for name, parameter in model.named_parameters():
        grad = reference_state[name].grad
        torch.testing.assert_close(parameter.grad, grad, rtol=1e-5, atol=1e-6, msg=name)
