"""From samples to medians, ratios and a table."""

from __future__ import annotations

from typing import Any

from .subjects import LINK, Subject

Medians = dict[str, dict[str, float]]


def better(metric: str, ours: float, theirs: float) -> float:
    """How many times better than the other: more throughput, less of everything else."""
    return ours / theirs if metric.endswith("_mbps") else theirs / ours


def summary(subjects: list[Subject], reference: str | None) -> dict[str, Any]:
    """Of one kind of link. `reference` is the subject that ratios refer to."""
    medians: Medians = {
        subject.name: {
            metric: round(value, 3)
            for metric in subject.samples
            if (value := subject.median(metric)) is not None
        }
        for subject in subjects
    }
    base = medians.get(reference or "", {})
    return {
        "medians": medians,
        "times_better": {
            name: {
                metric: round(better(metric, value, base[metric]), 2)
                for metric, value in values.items()
                if base.get(metric) and value
            }
            for name, values in medians.items()
        },
        "of_link": {
            name: {
                metric: round(value / medians[LINK][metric], 3)
                for metric, value in values.items()
                if metric.endswith("_mbps") and medians[LINK].get(metric)
            }
            for name, values in medians.items()
        },
    }


def table(kind: str, result: dict[str, Any], rounds: int, reference: str | None) -> str:
    medians, ratios = result["medians"], result["times_better"]
    names = list(medians)
    metrics = list(dict.fromkeys(metric for values in medians.values() for metric in values))
    title = f"{kind} link, median of {rounds}"
    lines = [f"{title:<30}" + "".join(f"{name:>25}" for name in names)]
    for metric in metrics:
        cells = (_cell(medians[name].get(metric), ratios[name].get(metric)) for name in names)
        lines.append(f"{metric:<30}" + "".join(f"{cell:>25}" for cell in cells))
    if reference is not None:
        lines.append(f"(N x): times better than {reference}; more Mbit/s, or less of the rest")
    return "\n".join(lines)


def _cell(value: float | None, ratio: float | None) -> str:
    if value is None:
        return "-" + " " * 8
    text = f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    return text + (f" ({ratio:.2f}x)" if ratio is not None else " " * 8)
