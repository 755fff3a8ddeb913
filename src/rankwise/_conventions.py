"""The conventions of metrics in words, to print beside their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rankwise._metric import Metric

_WORDS: dict[str, dict[Any, str]] = {
    "gain": {"exp2": "gain 2^label - 1", "identity": "gain = label"},
    "discount": {
        "log2": "discount 1 / log2(1 + rank)",
        "letor": "discount 1, 1, 1 / log2(3), 1 / log2(4), ...",
    },
    "ties": {
        "average": "tied scores: mean over their orders",
        "stable": "tied scores: input order",
        "trec": "tied scores: document id, descending",
        "worst": "tied scores: worst order",
        "best": "tied scores: best order",
        "together": "tied scores: all at the last of their ranks",
    },
    "empty": {
        "skip": "queries without relevant documents: left out",
        0.0: "queries without relevant documents: 0",
        1.0: "queries without relevant documents: 1",
    },
}


def conventions(metrics: Sequence[Metric]) -> str:
    """One sentence; where metrics differ, each convention with the metrics that follow it."""
    parts = []
    for option, words in _WORDS.items():
        by_value: dict[str, list[str]] = {}
        for metric in metrics:
            if option in metric.options:
                value = metric.options[option]
                text = words.get(value, f"{option} {value}")
                by_value.setdefault(text, []).append(metric.name)
        if len(by_value) == 1:
            parts.append(next(iter(by_value)))
        else:
            parts += [f"{text} ({', '.join(dict.fromkeys(n))})" for text, n in by_value.items()]
    for metric in metrics:
        for option, value in metric.changed.items():
            if option not in _WORDS:
                parts.append(f"{metric.name}: {option}={value}")
    return "Conventions: " + "; ".join(dict.fromkeys(parts)) + "."


def short_names(metrics: Sequence[Metric]) -> dict[str, str]:
    """The texts of metrics, shortened to ``name@k`` where that tells them apart.

    For tables whose conventions are a preset that is named beside them.
    """
    short = [m.name if m.k is None else f"{m.name}@{m.k}" for m in metrics]
    full = [str(m) for m in metrics]
    return dict(zip(full, short if len(set(short)) == len(set(full)) else full, strict=True))
