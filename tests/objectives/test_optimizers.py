import math

import pytest
import torch
from transformers import TrainingArguments

from hf_alpha.objectives.optimizers import FusedAdam, FusedLamb, optimizer_of

BETA1, BETA2, EPS, RATE = 0.9, 0.999, 1e-6, 0.01
WEIGHTS = {"matrix": [30.0, -40.0, 0.5], "zeros": [0.0, 0.0], "bias": [0.3, -0.1]}
DECAYS = {"matrix": 0.01, "zeros": 0.01, "bias": 0.0}
GRADIENTS = [
    {"matrix": [3.0, 4.0, 0.0], "zeros": [0.0, 0.0], "bias": [12.0, -1.0]},  # norm above 1
    {"matrix": [0.1, -0.2, 0.3], "zeros": [0.5, 0.0], "bias": [0.1, 0.0]},  # below
    {"matrix": [-1.0, 0.0, 2.0], "zeros": [-0.1, 0.2], "bias": [0.0, 0.7]},
]


def norm(values):
    return math.sqrt(sum(value * value for value in values))


def lamb(corrects: bool, limit: float, adapts: bool) -> dict[str, list[float]]:
    """Three steps, number by number, as Apex's kernels take them."""
    weights = {name: list(values) for name, values in WEIGHTS.items()}
    means = {name: [0.0] * len(values) for name, values in WEIGHTS.items()}
    squares = {name: [0.0] * len(values) for name, values in WEIGHTS.items()}
    for step, gradients in enumerate(GRADIENTS, start=1):
        total = norm([g for values in gradients.values() for g in values])
        divisor = total / limit if limit and total > limit else 1.0
        c1, c2 = (1 - BETA1**step, 1 - BETA2**step) if corrects else (1.0, 1.0)
        for name, weight in weights.items():
            update = []
            for i, g in enumerate(g / divisor for g in gradients[name]):
                means[name][i] = BETA1 * means[name][i] + (1 - BETA1) * g
                squares[name][i] = BETA2 * squares[name][i] + (1 - BETA2) * g * g
                adam = means[name][i] / c1 / (math.sqrt(squares[name][i] / c2) + EPS)
                update.append(adam + DECAYS[name] * weight[i])
            ratio = 1.0
            if adapts and DECAYS[name] and norm(weight) and norm(update):
                ratio = norm(weight) / norm(update)
            weights[name] = [w - RATE * ratio * u for w, u in zip(weight, update, strict=True)]
    return weights


def taken(make, **settings) -> dict[str, list[float]]:
    weights = {
        name: torch.nn.Parameter(torch.tensor(values, dtype=torch.float64))
        for name, values in WEIGHTS.items()
    }
    groups = [{"params": [weights[name]], "weight_decay": decay} for name, decay in DECAYS.items()]
    optimizer = make(groups, lr=RATE, betas=(BETA1, BETA2), eps=EPS, **settings)
    for gradients in GRADIENTS:
        for name, weight in weights.items():
            weight.grad = torch.tensor(gradients[name], dtype=torch.float64)
        optimizer.step()
    return {name: weight.tolist() for name, weight in weights.items()}


@pytest.mark.parametrize("corrects", [True, False])
@pytest.mark.parametrize("limit", [1.0, 0.0])
def test_three_steps_of_lamb(corrects, limit):
    """A norm over 10, weights of zeros, a bias that does not decay; both kinds of gradients."""
    steps = taken(FusedLamb, bias_correction=corrects, max_grad_norm=limit)
    expected = lamb(corrects, limit, adapts=True)
    for name, values in expected.items():
        assert steps[name] == pytest.approx(values, rel=1e-9), name


@pytest.mark.parametrize("corrects", [True, False])
def test_three_steps_of_adam(corrects):
    steps = taken(FusedAdam, bias_correction=corrects)
    expected = lamb(corrects, limit=0.0, adapts=False)
    for name, values in expected.items():
        assert steps[name] == pytest.approx(values, rel=1e-9), name
    plain = taken(torch.optim.AdamW)
    assert (steps["matrix"] == pytest.approx(plain["matrix"], rel=1e-6)) == corrects


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ("lambda", "no optimiser 'lambda' in pytorch_optimizer, nor among fused_adam, fused_lamb"),
        ({"name": "lamb", "wings": 2}, "the optimiser 'lamb' takes no 'wings'"),
        ({"name": "fused_lamb", "clamp": 10}, "the optimiser 'fused_lamb' takes no 'clamp'"),
    ],
)
def test_optimisers_that_there_are_not(choice, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        optimizer_of(choice, TrainingArguments(tmp_path, use_cpu=True))
