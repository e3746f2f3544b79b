"""Metrics as the benchmarks define them, between what was predicted and what is right."""

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

Values = Sequence[float] | np.ndarray
Metric = Callable[[Values, Values], float]
OfAnswers = Callable[[str, str], float]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_SIGNS = str.maketrans("", "", string.punctuation)


def accuracy(predicted: Values, right: Values) -> float:
    """Return the share of rows whose class is the right one."""
    return float(np.mean(np.asarray(predicted) == np.asarray(right)))


def f1(predicted: Values, right: Values) -> float:
    """Return the F1 of class 1, as MRPC and QQP are measured; 0 where nothing is found."""
    predicted_ones, right_ones = np.asarray(predicted) == 1, np.asarray(right) == 1
    shared = 2 * np.sum(predicted_ones & right_ones)
    return float(shared / (predicted_ones.sum() + right_ones.sum())) if shared else 0.0


def matthews(predicted: Values, right: Values) -> float:
    """Return Matthews' correlation of the classes; 0 where one side has one class only."""
    predictions, targets = np.asarray(predicted, int), np.asarray(right, int)
    classes = int(max(predictions.max(), targets.max())) + 1
    counts = np.zeros((classes, classes))
    np.add.at(counts, (targets, predictions), 1)
    total, rows, columns = counts.sum(), counts.sum(1), counts.sum(0)
    spread = (total**2 - columns @ columns) * (total**2 - rows @ rows)
    return float((np.trace(counts) * total - rows @ columns) / math.sqrt(spread)) if spread else 0.0


def pearson(predicted: Values, right: Values) -> float:
    """Return Pearson's correlation; 0 where one side does not vary."""
    one, two = (np.asarray(side, float) - np.mean(side) for side in (predicted, right))
    spread = math.sqrt(float(one @ one) * float(two @ two))
    return float(one @ two) / spread if spread else 0.0


def spearman(predicted: Values, right: Values) -> float:
    """Return Spearman's rank correlation; equal values share their mean rank."""
    return pearson(_ranks(predicted), _ranks(right))


def _ranks(values: Values) -> np.ndarray:
    _, place, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def normalized(answer: str) -> str:
    """Return the answer in lower case, without ASCII punctuation, articles and surplus spaces."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_SIGNS)).split())


def exact_answer(answer: str, right: str) -> float:
    """Return 1 if both answers are the same when normalised, else 0, as SQuAD 2.0 has it."""
    return float(normalized(answer) == normalized(right))


def f1_of_words(answer: str, right: str) -> float:
    """Return the F1 of the normalised words; 1 if neither side has words, 0 if only one has."""
    answer_words, right_words = normalized(answer).split(), normalized(right).split()
    if not answer_words or not right_words:
        return float(answer_words == right_words)
    num_shared = sum((Counter(answer_words) & Counter(right_words)).values())
    return 2 * num_shared / (len(answer_words) + len(right_words))


def best_answer(metric: OfAnswers, answer: str, answers: Sequence[str]) -> float:
    """Return the best value over all right answers; a question without any is answered by ""."""
    right_answers = [right for right in answers if normalized(right)] or [""]
    return max(metric(answer, right) for right in right_answers)


OF_CLASSES: dict[str, Metric] = {"accuracy": accuracy, "f1": f1, "matthews": matthews}
OF_NUMBERS: dict[str, Metric] = {"pearson": pearson, "spearman": spearman}
OF_ANSWERS: dict[str, OfAnswers] = {"exact": exact_answer, "f1": f1_of_words}
