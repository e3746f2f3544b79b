"""What is pinned stays: released models' answers, names of weights, losses of training steps."""

import golden
import pytest

# Kernels differ between processors by rounding; a change of what is computed is far larger.
TOLERANCE = 1e-4


@pytest.mark.parametrize("name", golden.released())
def test_a_released_model_answers_as_it_did(name):
    wanted, found = golden.pinned("answers")[name], golden.answers(name)
    assert {k: v for k, v in found.items() if k != "logits"} == {
        k: v for k, v in wanted.items() if k != "logits"
    }
    for ours, theirs in zip(found["logits"], wanted["logits"], strict=True):
        assert ours == pytest.approx(theirs, abs=TOLERANCE)


@pytest.mark.parametrize("variant", golden.VARIANTS)
def test_a_checkpoint_has_the_same_tensors(variant):
    assert golden.parameters(variant) == golden.pinned("parameters")[variant]


@pytest.mark.parametrize("variant", golden.VARIANTS)
def test_training_takes_the_same_steps(variant):
    assert golden.training(variant) == pytest.approx(golden.pinned("training")[variant], abs=1e-3)
