"""The end of a tour: what it showed."""

from collections.abc import Sequence

from hf_alpha.evaluation.report import Rates, Report


def closing(reports: Sequence[Report], most_trained: int) -> str:
    """Say in three lines what the models of a tour did with more names, and with other ones.

    Args:
        reports: one for each model, without the random answers beside them.
        most_trained: the most names in a problem of the training data.
    """
    more = [_right(report, most_trained) for report in reports]
    renamed = [
        f"{report.model} {100 * mean:.0f} %"
        for report in reports
        if report.alpha_covariance and (mean := report.alpha_covariance.mean) is not None
    ]
    return "\n".join(
        [
            f"Shown:   training had at most {most_trained} names in a problem, the test has more.",
            f"         Right answers with more: {', '.join(more)}.",
            f"         Same answer when names are renamed: {', '.join(renamed) or 'not measured'}.",
        ]
    )


def _right(report: Report, most_trained: int) -> str:
    rates = Rates.of(record for record in report.records if record.num_symbols > most_trained)
    return f"{report.model} {100 * rates.correct:.0f} %"


__all__ = ["closing"]
