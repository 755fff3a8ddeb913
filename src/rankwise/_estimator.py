"""What every ranker shares: the scikit-learn contract with ``qid``, in one place.

A ranker subclasses :class:`Ranker`, stores its parameters in ``__init__`` and writes two methods:
``_fit(train, valid)`` on :class:`~rankwise.data.Queries` whose rows are in canonical order, and
``_score(X)`` on checked features. Everything a user touches (``fit``, ``predict``, ``rank``, ``score``)
is here, so that unsorted, interleaved or string query ids, frames, weights and errors behave
alike everywhere.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankwise import _core, _validate
from rankwise.data import Groups, Queries, canonical, group_rows
from rankwise.metrics import Metric, parse_metric


class Ranker(BaseEstimator):
    """A scoring function learned from judged lists; higher scores rank first."""

    # Requested by class attribute, so that metadata routing, once the user has switched it on,
    # carries them through GridSearchCV, cross_validate and Pipeline without set_fit_request.
    __metadata_request__fit = {"qid": True, "sample_weight": True, "eval_set": False}
    __metadata_request__score = {"qid": True, "sample_weight": True}

    metric: str | Metric = "ndcg@10"
    n_features_in_: int

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | Groups | None = None,
        sample_weight: ArrayLike | None = None,
        eval_set: Any = None,
        **unknown: Any,
    ) -> Self:
        """Learn from judged lists.

        Parameters
        ----------
        X : array-like or CSR of shape (n_docs, n_features), or Queries
            Features. A frame may hold the query ids in a column named ``qid``. When ``X`` is a
            :class:`~rankwise.data.Queries`, ``y`` and ``qid`` are left out.
        y : array-like of shape (n_docs,)
            Relevance labels, 0 or more, larger is better.
        qid : array-like of shape (n_docs,)
            Query id of each row, in any order and of any type.
        sample_weight : array-like of shape (n_docs,), optional
            Document weights.
        eval_set : Queries or (X, y, qid), optional
            Validation queries, used by rankers that stop early.

        Returns
        -------
        self
        """
        where = f"{type(self).__name__}.fit"
        _refuse_unknown(where, unknown)
        train, names = _lists(where, X, y, qid, sample_weight)
        valid = None
        if eval_set is not None:
            valid, _ = _lists(f"{where} (eval_set)", *_unpack(where, eval_set))
            _validate.matrix(where, valid.X, n_features=train.n_features)
        self.n_features_in_ = train.n_features
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._fit(canonical(train), valid)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Scores of documents, higher is better; comparable inside a query only.

        Parameters
        ----------
        X : array-like or CSR of shape (n_docs, n_features), or Queries

        Returns
        -------
        float64 array of shape (n_docs,), in input order. Equal rows have equal scores.
        """
        check_is_fitted(self, "n_features_in_")
        where = f"{type(self).__name__}.predict"
        features = _validate.matrix(where, self._features(X), n_features=self.n_features_in_)
        return self._score(features)

    def rank(
        self, X: Any, qid: ArrayLike | Groups | None = None, k: int | None = None
    ) -> NDArray[np.int64]:
        """Rank of each document in its query, from 1 (best), in input order.

        Parameters
        ----------
        X : array-like or CSR of shape (n_docs, n_features), or Queries
        qid : array-like of shape (n_docs,)
        k : int, optional
            Only the first ``k`` places of each query are sorted; the other documents get 0.

        Returns
        -------
        int64 array of shape (n_docs,). Documents with equal scores keep their input order.
        """
        where = f"{type(self).__name__}.rank"
        y_score = self.predict(X)
        groups = self._groups(where, X, qid, len(y_score))
        cutoff = _validate.depth(where, k)
        grouped = np.ascontiguousarray(groups.gather(y_score))
        return groups.scatter(_core.rank_within(grouped, groups.offsets, cutoff))

    def score(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | Groups | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Mean of the ranker's ``metric`` over the queries (nDCG@10 unless set).

        ``sample_weight`` weights documents; a query counts with the mean weight of its documents.
        """
        where = f"{type(self).__name__}.score"
        y_score = self.predict(X)
        if isinstance(X, Queries):
            y, sample_weight = X.y, X.weight if sample_weight is None else sample_weight
        if y is None:
            raise ValueError(f"{where}: y must be given, got None")
        groups = self._groups(where, X, qid, len(y_score))
        y_true = _validate.labels(where, y)
        _validate.same_length(where, X=y_score, y=y_true)
        weights = _validate.weights(where, sample_weight, len(y_score))
        per_query = None
        if weights is not None:
            sums = np.add.reduceat(groups.gather(weights), groups.offsets[:-1])
            per_query = sums / groups.sizes
        metric = parse_metric(self.metric)
        return metric.mean(y_true, y_score, qid=groups, query_weight=per_query)

    def save(self, path: Any) -> None:
        """Write the fitted ranker to one file, without pickle; see :func:`rankwise.load`."""
        from rankwise.saving import save

        save(self, path)

    def _fit(self, train: Queries, valid: Queries | None) -> None:
        raise TypeError(f"{type(self).__name__} must define _fit(train, valid)")

    def _score(self, X: Any) -> NDArray[np.float64]:
        raise TypeError(f"{type(self).__name__} must define _score(X)")

    def _features(self, X: Any) -> Any:
        if isinstance(X, Queries):
            return X.X
        frame, _ = _take_qid_column(X)
        return frame

    def _groups(self, where: str, X: Any, qid: Any, n_docs: int) -> Groups:
        if isinstance(X, Queries):
            return X.groups
        if qid is None:
            _, qid = _take_qid_column(X)
        if qid is None:
            raise ValueError(_NO_QID.format(where=where))
        groups = group_rows(qid, where=where)
        if groups.n_docs != n_docs:
            raise ValueError(
                f"{where}: qid must hold one id per row of X, "
                f"got {groups.n_docs} ids for {n_docs} rows"
            )
        return groups

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = False
        tags.non_deterministic = False
        return tags


_NO_QID = (
    "{where}: qid must say which query each row belongs to, got None; "
    "pass qid= (one id per row), a frame with a column 'qid', or a Queries"
)


def _refuse_unknown(where: str, unknown: dict[str, Any]) -> None:
    if "group" in unknown:
        raise TypeError(
            f"{where}: queries are given by qid (one id per row), got group= (sizes); "
            "pass qid=rankwise.qid_from_sizes(group)"
        )
    if unknown:
        raise TypeError(f"{where}: unexpected keyword argument {next(iter(unknown))!r}")


def _take_qid_column(X: Any) -> tuple[Any, Any]:
    """A frame without its ``qid`` column, and that column; anything else passes through."""
    if not hasattr(X, "columns") and not hasattr(X, "column_names"):
        return X, None
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame) or "qid" not in frame.columns:
        return X, None
    return frame.drop("qid").to_native(), frame["qid"].to_numpy()


def _lists(
    where: str, X: Any, y: Any, qid: Any, sample_weight: Any = None
) -> tuple[Queries, list[str] | None]:
    """Checked training lists and the names of their features, if they have any."""
    if isinstance(X, Queries):
        if y is not None or qid is not None:
            raise TypeError(f"{where}: a Queries holds y and qid already; leave them out")
        _validate.labels(where, X.y, unjudged=False)
        return X, None if X.feature_names is None else list(X.feature_names)
    frame, column = _take_qid_column(X)
    if y is None:
        raise ValueError(
            f"{where}: requires y to be passed, but the target y is None; "
            "give one relevance label per document"
        )
    names = [str(c) for c in frame.columns] if hasattr(frame, "columns") else None
    features = _validate.matrix(where, frame)
    n_docs = features.shape[0]
    labels = _validate.labels(where, y, unjudged=False)
    if qid is None:
        qid = column
    if qid is None:
        raise ValueError(_NO_QID.format(where=where))
    groups = group_rows(qid, where=where)
    for name, length in (("y", len(labels)), ("qid", groups.n_docs)):
        if length != n_docs:
            raise ValueError(
                f"{where}: {name} must have one entry per row of X, got {length} for {n_docs} rows"
            )
    weight = _validate.weights(where, sample_weight, n_docs)
    return Queries.from_arrays(features, labels, groups, weight=weight), names


def _unpack(where: str, eval_set: Any) -> tuple[Any, Any, Any]:
    if isinstance(eval_set, Queries):
        return eval_set, None, None
    if isinstance(eval_set, tuple | list) and len(eval_set) == 3:
        return eval_set[0], eval_set[1], eval_set[2]
    raise TypeError(
        f"{where}: eval_set must be a Queries or (X, y, qid), got {type(eval_set).__name__}"
    )
