"""Evaluation: correctness, alpha-covariance, reports and heatmaps."""

from hf_alpha.evaluation.covariance import AlphaCovariance, alpha_covariance
from hf_alpha.evaluation.evaluate import evaluate, run
from hf_alpha.evaluation.heatmap import Heatmap, draw
from hf_alpha.evaluation.report import Rates, Record, Report, table

__all__ = [
    "AlphaCovariance", "Heatmap", "Rates", "Record", "Report", "alpha_covariance",
    "draw", "evaluate", "run", "table",
]  # fmt: skip
