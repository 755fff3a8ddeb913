"""What is in a set of judged lists, before anything is learnt from it.

>>> import rankwise as rw
>>> summary = rw.describe(rw.make_queries())
>>> summary.n_docs, summary.query_constant_features
(39000, (6,))
>>> print(summary)  # doctest: +ELLIPSIS
queries            1300
documents          39000
features           6 (dense float64)
...
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.data import Queries


@dataclass(frozen=True)
class Description:
    """Counts over judged lists. Features are numbered from 1, as in files.

    Attributes
    ----------
    n_queries, n_docs, n_features : int
    storage : str
        ``"dense float32"`` and the like.
    labels : dict of float to int
        Documents of each label, ascending.
    n_unjudged : int
        Documents without a label (NaN).
    shortest, median_length, mean_length, longest : float
        Documents per query.
    constant_features : tuple of int
        Features with one value throughout.
    query_constant_features : tuple of int
        Features that vary, but never inside a query: they cannot change a ranking on their own.
    missing : dict of int to int
        Missing values (NaN) of each feature that has any.
    n_repeated : int
        Documents whose features equal those of an earlier document of the file; every ranker
        that looks at features alone gives both the same score.
    n_repeated_in_query : int
        Those whose earlier document is in the same query.
    n_without_relevant : int
        Queries in which no label is above 0.
    n_single_document : int
        Queries with one document.
    n_single_label : int
        Queries whose judged documents, two or more, all have the same label.
    """

    n_queries: int
    n_docs: int
    n_features: int
    storage: str
    labels: dict[float, int]
    n_unjudged: int
    shortest: int
    median_length: float
    mean_length: float
    longest: int
    constant_features: tuple[int, ...]
    query_constant_features: tuple[int, ...]
    missing: dict[int, int]
    n_repeated: int
    n_repeated_in_query: int
    n_without_relevant: int
    n_single_document: int
    n_single_label: int

    def as_dict(self) -> dict[str, Any]:
        """The counts as plain types, ready for JSON."""
        return {
            **asdict(self),
            "labels": {f"{label:g}": n for label, n in self.labels.items()},
            "missing": {str(feature): n for feature, n in self.missing.items()},
            "constant_features": list(self.constant_features),
            "query_constant_features": list(self.query_constant_features),
        }

    def __str__(self) -> str:
        shares = [f"{label:g}: {n} ({n / self.n_docs:.1%})" for label, n in self.labels.items()]
        if self.n_unjudged:
            shares.append(f"unjudged: {self.n_unjudged} ({self.n_unjudged / self.n_docs:.1%})")
        missing = sum(self.missing.values())
        rows = [
            ("queries", f"{self.n_queries}"),
            ("documents", f"{self.n_docs}"),
            ("features", f"{self.n_features} ({self.storage})"),
            ("labels", ", ".join(shares)),
            (
                "list length",
                f"{self.shortest} to {self.longest}, median {self.median_length:g}, "
                f"mean {self.mean_length:.1f}",
            ),
            ("constant", _listed(self.constant_features)),
            ("query-constant", _listed(self.query_constant_features)),
            (
                "missing values",
                f"{missing} in features {_ranges(tuple(self.missing))}" if missing else "none",
            ),
            (
                "repeated rows",
                f"{self.n_repeated}, {self.n_repeated_in_query} of them inside their query",
            ),
            ("without relevant", f"{self.n_without_relevant} queries"),
            ("with one document", f"{self.n_single_document} queries"),
            ("with one label", f"{self.n_single_label} queries"),
        ]
        return "\n".join(f"{name:<18} {text}".rstrip() for name, text in rows)


def describe(queries: Queries) -> Description:
    """Counts what a reader of a file wants to know first.

    Parameters
    ----------
    queries : Queries

    Returns
    -------
    Description
        Prints as a table; :meth:`Description.as_dict` is for programs.

    Notes
    -----
    Two passes over the features, and a sort of one hash per document.
    """
    sizes = queries.sizes
    judged = ~np.isnan(queries.y)
    values, counts = np.unique(queries.y[judged], return_counts=True)
    missing, varies, query_varies = _features(queries)
    repeated, in_query = _repeated(queries)
    top = _per_query(np.fmax, queries)
    low = _per_query(np.fmin, queries)
    kind = "sparse" if hasattr(queries.X, "nnz") else "dense"
    has_missing = np.flatnonzero(missing)
    return Description(
        n_queries=queries.n_queries,
        n_docs=queries.n_docs,
        n_features=queries.n_features,
        storage=f"{kind} {queries.X.dtype}",
        labels={float(v): int(n) for v, n in zip(values, counts, strict=True)},
        n_unjudged=int((~judged).sum()),
        shortest=int(sizes.min()),
        median_length=float(np.median(sizes)),
        mean_length=float(sizes.mean()),
        longest=int(sizes.max()),
        constant_features=_numbers(varies == 0),
        query_constant_features=_numbers((varies != 0) & (query_varies == 0)),
        missing={int(j) + 1: int(missing[j]) for j in has_missing},
        n_repeated=repeated,
        n_repeated_in_query=in_query,
        n_without_relevant=int((~(top > 0)).sum()),
        n_single_document=int((sizes == 1).sum()),
        n_single_label=int(((top == low) & (sizes > 1)).sum()),
    )


def _per_query(reduce: np.ufunc, queries: Queries) -> NDArray[np.float64]:
    """Smallest or largest label of each query; NaN where none is judged."""
    filled = queries.sizes > 0
    out = np.full(queries.n_queries, np.nan)
    out[filled] = reduce.reduceat(queries.y, queries.offsets[:-1][filled])
    return out


def _features(queries: Queries) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    from rankwise import _core

    X = queries.X
    if hasattr(X, "nnz"):
        missing, varies, query_varies = _core.summarize_features_csr(
            X.data, X.indices, X.indptr, queries.n_features, queries.offsets
        )
    else:
        X = np.ascontiguousarray(X)
        missing, varies, query_varies = _core.summarize_features(X, queries.offsets)
    return missing, varies, query_varies


def _repeated(queries: Queries) -> tuple[int, int]:
    """Rows equal to an earlier row, anywhere and in the same query."""
    from rankwise import _core

    X = queries.X
    if hasattr(X, "nnz"):
        hashes = _core.hash_rows_csr(X.data, X.indices, X.indptr)
    else:
        hashes = _core.hash_rows(np.ascontiguousarray(X))
    query = np.repeat(np.arange(queries.n_queries), queries.sizes)
    # Sorted by hash, then by query: equal rows of a query end up side by side.
    order = np.lexsort((query, hashes))
    same = hashes[order][1:] == hashes[order][:-1]
    same_query = same & (query[order][1:] == query[order][:-1])
    return int(same.sum()), int(same_query.sum())


def _numbers(mask: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(j) + 1 for j in np.flatnonzero(mask))


def _listed(numbers: tuple[int, ...]) -> str:
    return f"{len(numbers)}: features {_ranges(numbers)}" if numbers else "none"


def _ranges(numbers: tuple[int, ...]) -> str:
    """1, 2, 3, 7 as ``1-3, 7``."""
    spans: list[list[int]] = []
    for n in numbers:
        if spans and n == spans[-1][1] + 1:
            spans[-1][1] = n
        else:
            spans.append([n, n])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in spans)
