"""Exact match and F1 of answers, as the evaluation of SQuAD 2.0 defines them."""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_SIGNS = str.maketrans("", "", string.punctuation)


def normalized(answer: str) -> str:
    """Return the answer in lower case, without ASCII punctuation, articles and surplus spaces."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_SIGNS)).split())


def exact(answer: str, right: str) -> float:
    """Return 1 if both answers are the same when normalised, else 0."""
    return float(normalized(answer) == normalized(right))


def f1(answer: str, right: str) -> float:
    """Return the F1 of the normalised words; 1 if neither side has words, 0 if only one has."""
    answer_words, right_words = normalized(answer).split(), normalized(right).split()
    if not answer_words or not right_words:
        return float(answer_words == right_words)
    num_shared = sum((Counter(answer_words) & Counter(right_words)).values())
    return 2 * num_shared / (len(answer_words) + len(right_words))


def best(measure: Callable[[str, str], float], answer: str, answers: Sequence[str]) -> float:
    """Return the best value over all right answers; a question without any is answered by ""."""
    right_answers = [right for right in answers if normalized(right)] or [""]
    return max(measure(answer, right) for right in right_answers)


__all__ = ["best", "exact", "f1", "normalized"]
