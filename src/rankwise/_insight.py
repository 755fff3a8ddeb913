"""What the modules that look inside a ranker share: scores, names, tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise import _validate
from rankwise.data import Queries
from rankwise.metrics import Metric, parse_metric

Floats = NDArray[np.float64]
Seed = int | np.random.Generator | None


def column_number(where: str, feature: object, queries: Queries) -> int:
    """The column of a feature given by name, or by number from 0."""
    if isinstance(feature, str):
        names = queries.feature_names or ()
        if feature not in names:
            raise ValueError(
                f"{where}: a feature must be a column of the data, got {feature!r}; "
                + (f"known: {', '.join(names)}" if names else "its columns have no names")
            )
        return names.index(feature)
    high = queries.n_features - 1
    return int(_validate.number(where, "a feature", feature, low=0, high=high, integer=True))


def feature_name(queries: Queries, column: int) -> str:
    """A feature's name, or its number from 1, as files count."""
    names = queries.feature_names
    return f"feature {column + 1}" if names is None else names[column]


def dense(X: Any) -> Floats:
    """Features in float64; sparse ones are filled up."""
    return np.asarray(X.toarray() if hasattr(X, "nnz") else X, dtype=np.float64)


def query_means(columns: Floats, queries: Queries) -> Floats:
    """The mean of each column over each query, repeated for its rows."""
    filled = queries.sizes > 0
    means = np.add.reduceat(columns, queries.offsets[:-1][filled], axis=0)
    means /= queries.sizes[filled][:, None]
    return np.repeat(means, queries.sizes[filled], axis=0)


def scores_of(ranker: Any, queries: Queries, X: Any) -> Floats:
    """What a ranker, or an estimator of scikit-learn's kind, gives changed features of the lists."""
    from rankwise._estimator import Ranker, _predict

    if isinstance(ranker, Ranker):
        return np.asarray(ranker.predict(queries.with_features(X)), dtype=np.float64)
    return np.asarray(_predict(ranker, X, queries.qid), dtype=np.float64)


def values_of(measure: Metric, queries: Queries, scores: Floats) -> Floats:
    """The metric of every query."""
    return measure.per_query(queries.y, scores, qid=queries.groups, docs=queries.docs)


def metric_of(where: str, ranker: Any, metric: str | Metric | None) -> Metric:
    """The metric asked for, or else the ranker's own."""
    own = getattr(ranker, "metric", None)
    if metric is None and not isinstance(own, str | Metric):
        raise ValueError(
            f"{where}: metric must be given, since {type(ranker).__name__} has none of its own"
        )
    return parse_metric(own if metric is None else metric)  # type: ignore[arg-type]


def label_text(label: float) -> str:
    """A label for a table; a dash where there is none."""
    return "-" if np.isnan(label) else f"{label:g}"


def table_text(head: list[str], rows: list[list[str]], left: Sequence[int] = (0,)) -> str:
    """Columns two spaces apart, those in ``left`` flush left and the others right."""
    lines = [head, *rows] if head else rows
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if i in left else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
