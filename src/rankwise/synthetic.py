"""Judged queries with a known truth, for demonstrations, tests and benchmarks.

>>> import rankwise as rw
>>> queries = rw.make_queries()
>>> queries
Queries(1300 queries, 39000 documents, 6 features, dense float64)
>>> train, test = queries.take(range(300)), queries.take(range(300, 1300))
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise import _validate
from rankwise.data import Queries

# Shares of the labels 0 to 4 in MSLR-WEB30K.
_WEB_LABELS = np.array([0.515, 0.325, 0.134, 0.018, 0.008])


def make_queries(
    kind: str = "course",
    *,
    n_queries: int | None = None,
    n_docs: int | None = None,
    rng: int | np.random.Generator = 0,
    dtype: type[np.floating] = np.float64,
) -> Queries:
    """Synthetic judged queries.

    Parameters
    ----------
    kind : {"course", "web"}
        ``"course"``: 1,300 queries of 30 documents with 6 features, of which feature 5 is
        constant inside a query. With independent standard normal features and noise of standard
        deviation .7, ``z = x0 + .7 x1 + x2 x3 + 1.5 x5 + noise`` and the label counts how many of
        1, 2, 3, 4 ``z`` reaches. About 7 % of the queries have no relevant document. By convention
        the first 300 queries train.

        ``"web"``: lists of a web-search collection in size and shape: 1,000 queries, log-normal
        list lengths with a mean of about 120, 136 features, most of them skewed (counts, lengths,
        zero-inflated scores), some constant inside a query, labels 0 to 4 in the shares of
        MSLR-WEB30K (.515 .325 .134 .018 .008).
    n_queries : int, optional
        1,300 or 1,000 unless set.
    n_docs : int, optional
        Documents per query: 30 for ``"course"``, the mean length for ``"web"``.
    rng : int or Generator
        Seed; equal seeds give equal data.
    dtype : float32 or float64
        Type of the features.

    Returns
    -------
    Queries
    """
    where = "make_queries"
    _validate.choice(where, "kind", kind, ("course", "web"))
    course = kind == "course"
    queries = 1300 if course else 1000
    docs = 30 if course else 120
    if n_queries is not None:
        queries = int(_validate.number(where, "n_queries", n_queries, low=1, integer=True))
    if n_docs is not None:
        docs = int(_validate.number(where, "n_docs", n_docs, low=1, integer=True))
    generator = np.random.default_rng(rng)
    make = _course if course else _web
    return make(queries, docs, generator, dtype)


def _course(n_queries: int, n_docs: int, rng: np.random.Generator, dtype: type) -> Queries:
    X = rng.standard_normal((n_queries, n_docs, 6))
    X[:, :, 5] = rng.standard_normal((n_queries, 1))
    noise = rng.normal(0.0, 0.7, (n_queries, n_docs))
    z = X[..., 0] + 0.7 * X[..., 1] + X[..., 2] * X[..., 3] + 1.5 * X[..., 5] + noise
    y = np.digitize(z, [1.0, 2.0, 3.0, 4.0]).astype(np.float64)
    return Queries(
        X.reshape(-1, 6).astype(dtype, copy=False),
        y.ravel(),
        np.arange(n_queries + 1, dtype=np.int64) * n_docs,
        np.arange(1, n_queries + 1),
        feature_names=tuple(f"x{j}" for j in range(6)),
    )


def _web(n_queries: int, n_docs: int, rng: np.random.Generator, dtype: type) -> Queries:
    sizes = np.clip(rng.lognormal(np.log(n_docs) - 0.18, 0.6, n_queries), 1, 10 * n_docs)
    sizes = np.maximum(sizes.astype(np.int64), 1)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    n = int(offsets[-1])
    query = np.repeat(np.arange(n_queries), sizes.tolist())
    # Eight hidden causes: five belong to the document, three to the query alone.
    causes = rng.standard_normal((n, 8))
    causes[:, 5:] = rng.standard_normal((n_queries, 3))[query]
    X: NDArray[Any] = np.empty((n, 136), dtype=dtype)
    for j in range(136):
        a, b = causes[:, j % 8], causes[:, (j * 3 + 1) % 5]
        v = 0.8 * a + 0.4 * b * (j % 8 < 5) + 0.5 * rng.standard_normal(n) * (j % 8 < 5)
        form = j % 6
        if form == 0:
            v = np.floor(np.exp(0.8 * v))  # term counts
        elif form == 1:
            v = np.exp(1.5 * v + 4)  # lengths in bytes
        elif form == 2:
            v = np.where(v > 0.3, v, 0.0)  # scores that are often absent
        elif form == 3:
            v = 1 / (1 + np.exp(-v))  # ratios
        elif form == 4:
            v = np.round(np.abs(v) ** 3 * 10)  # link counts
        X[:, j] = v
    c = causes
    merit = (
        c[:, 0] + 0.6 * c[:, 1] + 0.8 * np.tanh(c[:, 2] * c[:, 3]) + 0.5 * np.maximum(c[:, 4], 0)
        + 0.4 * c[:, 5] + 0.3 * c[:, 0] * c[:, 6] + 0.9 * rng.standard_normal(n)
    )  # fmt: skip
    cuts = np.quantile(merit, np.cumsum(_WEB_LABELS)[:-1])
    return Queries(
        X,
        np.digitize(merit, cuts).astype(np.float64),
        offsets,
        np.arange(1, n_queries + 1),
        feature_names=tuple(f"f{j + 1}" for j in range(136)),
    )
