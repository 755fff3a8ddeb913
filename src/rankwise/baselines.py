"""Rankers to compare with: chance, one feature, any regressor or classifier.

What a learned ranker is worth shows beside three simple ones. :class:`RandomRanker` is the floor,
:class:`FeatureRanker` the best single feature, and :class:`PointwiseRanker` a regressor or
classifier that predicts labels one by one and knows nothing of queries.

>>> import rankwise as rw
>>> train, test = rw.make_queries(n_queries=400).split([0.5, 0.5])
>>> chance = rw.RandomRanker(metric="ndcg@5").fit(train)
>>> feature = rw.FeatureRanker(metric="ndcg@5").fit(train)
>>> feature.feature_
0
>>> chance.score(test) < feature.score(test)
True
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import has_fit_parameter

from rankwise import _validate
from rankwise._estimator import Ranker, query_weights
from rankwise._inputs import column_of
from rankwise.data import Queries, mix, row_hashes
from rankwise.metrics import Metric, parse_metric

# Means that differ by less are equal; which is larger would depend on the order of summation.
_ROUNDING = 1e-12


class RandomRanker(Ranker):
    """Scores documents at random: uniform on [0, 1), reproducible, equal rows alike.

    The score is a hash of the document's features and the seed. So it does not depend on what else
    is in the batch or on the order of the rows, and equal documents tie, as with every ranker.

    Parameters
    ----------
    random_state : int or None, default=0
        Seed, 0 or more; None draws one in ``fit``.
    metric : str or Metric, default="ndcg@10"
        What :meth:`score` reports.

    Attributes
    ----------
    seed_ : int
        The seed in use.

    Examples
    --------
    >>> import rankwise as rw
    >>> queries = rw.make_queries()
    >>> ranker = rw.RandomRanker(metric="ndcg@5").fit(queries)
    >>> round(ranker.score(queries), 2)
    0.19
    """

    seed_: int

    def __init__(self, random_state: int | None = 0, metric: str | Metric = "ndcg@10") -> None:
        self.random_state = random_state
        self.metric = metric

    def _fit(self, train: Queries, valid: Queries | None) -> None:
        if self.random_state is None:
            self.seed_ = int(np.random.default_rng().integers(2**63))
            return
        self.seed_ = int(
            _validate.number("RandomRanker", "random_state", self.random_state, low=0, integer=True)
        )

    def _score(self, X: Any) -> NDArray[np.float64]:
        key = mix(np.array([(self.seed_ + 1) * 0x9E3779B97F4A7C15 % 2**64], np.uint64))
        bits: NDArray[np.uint64] = mix(row_hashes(X) ^ key) >> np.uint64(11)
        return bits.astype(np.float64) * 2.0**-53

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class FeatureRanker(Ranker):
    """Ranks by one feature: a given one, or the one that ranks the training queries best.

    Parameters
    ----------
    feature : int, str or None, default=None
        Column number, from 0, or name of the feature; None chooses feature and direction by the
        mean ``metric`` on the training queries.
    descending : bool, default=True
        Whether large values rank first. With ``feature=None`` both directions are tried.
    metric : str or Metric, default="ndcg@10"

    Attributes
    ----------
    feature_ : int
        Column number of the feature.
    sign_ : float
        1.0 if large values rank first, else -1.0.

    Notes
    -----
    A missing value ranks last in either direction. Among equally good features the first is
    taken, and large values first.

    Examples
    --------
    >>> import rankwise as rw
    >>> X = [[1.0, 0.3], [2.0, 0.2], [3.0, 0.9]]
    >>> rw.FeatureRanker().fit(X, [0, 1, 2], qid=["q", "q", "q"]).feature_
    0
    """

    feature_: int
    sign_: float

    def __init__(
        self,
        feature: int | str | None = None,
        *,
        descending: bool = True,
        metric: str | Metric = "ndcg@10",
    ) -> None:
        self.feature = feature
        self.descending = descending
        self.metric = metric

    def _fit(self, train: Queries, valid: Queries | None) -> None:
        if self.feature is not None:
            self.feature_ = _column(self.feature, train)
            self.sign_ = 1.0 if self.descending else -1.0
            return
        metric, groups = parse_metric(self.metric), train.groups
        weight = query_weights(groups, train.weight)
        best = -np.inf
        self.feature_, self.sign_ = 0, 1.0
        for column in range(train.n_features):
            for sign in (1.0, -1.0):
                y_score = _feature_scores(train.X, column, sign)
                value = metric.mean(train.y, y_score, qid=groups, query_weight=weight)
                if value > best + _ROUNDING:
                    best, self.feature_, self.sign_ = value, column, sign

    def _score(self, X: Any) -> NDArray[np.float64]:
        return _feature_scores(X, self.feature_, self.sign_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _column(feature: object, train: Queries) -> int:
    if isinstance(feature, str):
        names = train.feature_names or ()
        if feature not in names:
            raise ValueError(
                f"FeatureRanker.fit: feature must name a column of X, got {feature!r}; "
                + (f"known: {', '.join(names)}" if names else "the columns have no names")
            )
        return names.index(feature)
    return int(
        _validate.number(
            "FeatureRanker.fit", "feature", feature, low=0, high=train.n_features - 1, integer=True
        )
    )


def _feature_scores(X: Any, feature: int, sign: float) -> NDArray[np.float64]:
    y_score = column_of(X, feature) * sign
    return np.where(np.isnan(y_score), -np.finfo(np.float64).max, y_score)


class PointwiseRanker(Ranker):
    """Ranks by the labels that a scikit-learn estimator predicts, one document at a time.

    ``score(x) = prediction`` of a regressor, ``sum over labels of label P(label | x)`` of a
    classifier: the expected label, as in McRank.

    Parameters
    ----------
    estimator : scikit-learn regressor, or classifier with ``predict_proba``
        Fitted on ``(X, y)``; it does not see the queries. ``sample_weight`` is passed on. A
        classifier gets the labels as numbers of classes, so fractional ones are welcome.
    metric : str or Metric, default="ndcg@10"
        What :meth:`score` reports.

    Attributes
    ----------
    estimator_ : regressor or classifier
        The fitted clone.
    labels_ : float64 array of shape (n_labels,) or None
        The labels behind a classifier's classes; None for a regressor.

    Notes
    -----
    Equal rows of one batch get equal scores: each distinct row is scored once. Between batches
    they are as equal as the estimator makes them. An estimator of another library cannot be saved
    without pickle, so :meth:`save` refuses. Unjudged documents are left out of the fit.

    References
    ----------
    li2007

    Examples
    --------
    >>> import rankwise as rw
    >>> from sklearn.linear_model import Ridge
    >>> train, test = rw.make_queries(n_queries=400).split([0.5, 0.5])
    >>> ranker = rw.PointwiseRanker(Ridge(), metric="ndcg@5").fit(train)
    >>> ranker.score(test) > 0.5
    True
    """

    estimator_: Any
    labels_: NDArray[np.float64] | None

    def __init__(self, estimator: Any, *, metric: str | Metric = "ndcg@10") -> None:
        self.estimator = estimator
        self.metric = metric

    def _fit(self, train: Queries, valid: Queries | None) -> None:
        if not hasattr(self.estimator, "fit") or not hasattr(self.estimator, "predict"):
            raise TypeError(
                "PointwiseRanker.fit: estimator must be a scikit-learn regressor or classifier, "
                f"got {self.estimator!r}"
            )
        classes = is_classifier(self.estimator)
        if classes and not hasattr(self.estimator, "predict_proba"):
            raise TypeError(
                "PointwiseRanker.fit: a classifier must have predict_proba, for the expected "
                f"label, got {type(self.estimator).__name__}; wrap it in "
                "sklearn.calibration.CalibratedClassifierCV"
            )
        self.estimator_ = clone(self.estimator)
        judged = np.flatnonzero(~np.isnan(train.y))
        X, y = train.X, train.y[judged]
        if len(judged) < train.n_docs:
            X = X[judged]
        self.labels_ = None
        target: NDArray[Any] = y
        if classes:
            self.labels_, target = np.unique(y, return_inverse=True)
            if len(self.labels_) < 2:
                raise ValueError(
                    "PointwiseRanker.fit: a classifier needs at least two different labels, "
                    f"got 1 class ({y[0]:g} for all documents); there is no order to learn"
                )
        if train.weight is None:
            self.estimator_.fit(X, target)
            return
        if not has_fit_parameter(self.estimator, "sample_weight"):
            raise TypeError(
                "PointwiseRanker.fit: sample_weight needs an estimator whose fit takes it, "
                f"got {type(self.estimator).__name__}"
            )
        self.estimator_.fit(X, target, sample_weight=train.weight[judged])

    def _score(self, X: Any) -> NDArray[np.float64]:
        _, first, place = np.unique(row_hashes(X), return_index=True, return_inverse=True)
        if self.labels_ is None:
            predicted = np.asarray(self.estimator_.predict(X[first]), dtype=np.float64)
        else:
            chances = np.asarray(self.estimator_.predict_proba(X[first]), dtype=np.float64)
            classes = np.asarray(self.estimator_.classes_, dtype=np.int64)
            # A sum over each row by itself: equal chances give equal scores in any batch.
            predicted = (chances * self.labels_[classes]).sum(axis=1)
        if predicted.shape != first.shape:
            raise ValueError(
                "PointwiseRanker.predict: estimator must predict one number per document, "
                f"got shape {predicted.shape} for {len(first)} documents"
            )
        return predicted[place]

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            inner = get_tags(self.estimator)
            tags.input_tags.sparse = inner.input_tags.sparse
            tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags
