"""Features, their names and query ids out of whatever a user passes as ``X``.

Rankers and transformers take a matrix (NumPy, CSR), a frame (pandas, polars, pyarrow), which may
hold the query ids in a column ``qid``, or a :class:`~rankwise.data.Queries`. This is the one
place that tells them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise import _validate
from rankwise.data import Groups, Queries, group_rows

NO_QID = (
    "{where}: qid must say which query each row belongs to, got None; pass qid= (one id per row), "
    "a frame with a column 'qid', or a Queries. In scikit-learn's model selection and pipelines, "
    "qid= arrives after sklearn.set_config(enable_metadata_routing=True)"
)


def features_of(where: str, X: Any) -> tuple[Any, list[str] | None]:
    """The features in ``X``, not yet checked, and their names where it has any."""
    if isinstance(X, Queries):
        return X.X, None if X.feature_names is None else list(X.feature_names)
    frame = _frame(X)
    if frame is None:
        return X, None
    features = frame.drop("qid") if "qid" in frame.columns else frame
    columns = features.columns
    if not columns:
        raise ValueError(f"{where}: X must have at least one feature, got a frame without any")
    values = features.to_numpy()
    # As in scikit-learn, only text names a feature; pandas numbers columns that have no name.
    return values, columns if all(isinstance(c, str) for c in columns) else None


def column_of(X: Any, j: int) -> NDArray[np.float64]:
    """One feature of a checked matrix, dense or CSR."""
    values = X[:, [j]].toarray().ravel() if hasattr(X, "nnz") else X[:, j]
    return np.ascontiguousarray(values, dtype=np.float64)


def qid_of(X: Any) -> Any:
    """The query ids held by ``X`` itself, a Queries or a frame with a column ``qid``, or None."""
    if isinstance(X, Queries):
        return X.groups
    frame = _frame(X)
    return frame["qid"].to_native() if frame is not None and "qid" in frame.columns else None


def groups_of(where: str, X: Any, qid: Any, n_docs: int) -> Groups:
    """The grouping of the rows of ``X``, from ``qid`` or from ``X`` itself."""
    own = qid_of(X)
    if own is not None and qid is not None:
        raise TypeError(
            f"{where}: the query ids must be given once, got qid and a "
            f"{'Queries' if isinstance(X, Queries) else 'column qid'} in X; leave qid out"
        )
    if own is None and qid is None:
        raise ValueError(NO_QID.format(where=where))
    groups = group_rows(own if qid is None else qid, where=where)
    if groups.n_docs != n_docs:
        raise ValueError(
            f"{where}: qid must have one entry per row of X, got {groups.n_docs} for {n_docs} rows"
        )
    return groups


def note_features(estimator: Any, n_features: int, names: list[str] | None) -> None:
    """Sets ``n_features_in_`` and, where the features have names, ``feature_names_in_``."""
    estimator.n_features_in_ = n_features
    if names is not None:
        estimator.feature_names_in_ = np.asarray(names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def same_features(
    where: str, estimator: Any, features: Any, names: list[str] | None, *, nan: bool = True
) -> Any:
    """Checked features, as many as in ``fit`` and, if both have names, of the same names."""
    check_names(where, names, getattr(estimator, "feature_names_in_", None))
    return _validate.matrix(where, features, n_features=estimator.n_features_in_, nan=nan)


def with_features(X: Any, values: Any) -> Any:
    """``X`` with other values of its features, as the same kind of container."""
    if isinstance(X, Queries):
        return X.with_features(values)
    frame = _frame(X)
    if frame is None:
        return values
    import narwhals as nw

    features = [c for c in frame.columns if c != "qid"]
    scaled = [
        nw.new_series(c, np.ascontiguousarray(values[:, j]), backend=frame.implementation)
        for j, c in enumerate(features)
    ]
    return frame.with_columns(*scaled).to_native()


def _frame(X: Any) -> Any:
    """``X`` as a narwhals frame, or None when it is none."""
    if isinstance(X, np.ndarray | Queries) or not (
        hasattr(X, "columns") or hasattr(X, "column_names")
    ):
        return None
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def check_names(where: str, names: Sequence[str] | None, fitted: Sequence[str] | None) -> None:
    """Refuses features whose names are not those of ``fit``; without names, numbers must do."""
    if names is None or fitted is None or list(names) == list(fitted):
        return
    missing = [n for n in fitted if n not in set(names)]
    extra = [n for n in names if n not in set(fitted)]
    if missing or extra:
        found = [f"lacks {_some(missing)}"] * bool(missing) + [f"adds {_some(extra)}"] * bool(extra)
        problem = f"got a frame that {' and '.join(found)}"
    else:
        problem = "got them in another order"
    raise ValueError(
        f"{where}: the features must be those of fit, {problem}; "
        "pass X[ranker.feature_names_in_] or the values without names"
    )


def _some(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:3]))
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
