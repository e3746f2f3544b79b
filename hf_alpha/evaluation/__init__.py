"""Evaluation: correctness, alpha-covariance, reports and heatmaps."""

from hf_alpha.evaluation.covariance import AlphaCovariance, alpha_covariance
from hf_alpha.evaluation.draws import Spread, sensitivity, use_median_draw
from hf_alpha.evaluation.evaluate import evaluate, evaluate_random
from hf_alpha.evaluation.generation import generate_answers
from hf_alpha.evaluation.heatmap import Heatmap, draw
from hf_alpha.evaluation.report import Rates, Record, Report, table

__all__ = [
    "AlphaCovariance",
    "Heatmap",
    "Rates",
    "Record",
    "Report",
    "Spread",
    "alpha_covariance",
    "draw",
    "evaluate",
    "evaluate_random",
    "generate_answers",
    "sensitivity",
    "table",
    "use_median_draw",
]
