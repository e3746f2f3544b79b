import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as sklearn

from hf_alpha.objectives.metrics import OF_CLASSES, OF_NUMBERS

CLASSES = st.integers(2, 4).flatmap(
    lambda n: st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), min_size=1)
)
NUMBERS = st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=3)


@settings(max_examples=25)
@given(CLASSES)
def test_metrics_of_classes_are_those_of_scikit_learn(pairs):
    found, right = np.array(pairs).T
    assert OF_CLASSES["accuracy"](found, right) == pytest.approx(
        sklearn.accuracy_score(right, found)
    )
    assert OF_CLASSES["matthews"](found, right) == pytest.approx(
        sklearn.matthews_corrcoef(right, found)
    )
    first = sklearn.f1_score(right == 1, found == 1, zero_division=0.0)
    assert OF_CLASSES["f1"](found, right) == pytest.approx(first)


@settings(max_examples=25)
@given(NUMBERS)
def test_correlations_are_those_of_scipy(pairs):
    found, right = np.array(pairs, float).T
    if len(set(found)) == 1 or len(set(right)) == 1:  # scipy has no number there
        assert OF_NUMBERS["pearson"](found, right) == OF_NUMBERS["spearman"](found, right) == 0
        return
    assert OF_NUMBERS["pearson"](found, right) == pytest.approx(stats.pearsonr(found, right)[0])
    assert OF_NUMBERS["spearman"](found, right) == pytest.approx(stats.spearmanr(found, right)[0])
