"""What every ranker shares: the scikit-learn contract with ``qid``, in one place.

A ranker subclasses :class:`Ranker`, stores its parameters in ``__init__`` and writes two methods:
``_fit(train, valid)`` on :class:`~rankwise.data.Queries` whose rows are in canonical order, and
``_score(X)`` on checked features. Everything a user touches (``fit``, ``predict``, ``rank``,
``score``) is here, so that unsorted, interleaved or string query ids, frames, weights and errors
behave alike everywhere.

A search fits one ranker many times to the same queries. What those fits have in common (binned
features, a kernel map) a ranker can do once by also writing ``_fit_sharing(train, valid, shared)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object
from sklearn.utils.validation import check_is_fitted

from rankwise import _core, _validate
from rankwise._inputs import (
    check_names,
    features_of,
    groups_of,
    note_features,
    same_features,
)
from rankwise.data import Groups, Pairs, Queries, canonical, gather_pairs, no_labels
from rankwise.metrics import Metric, parse_metric


class Ranker(BaseEstimator):
    """A scoring function learned from judged lists; higher scores rank first.

    What a ranker takes beyond the common is said by its scikit-learn tags and checked here:
    ``input_tags.allow_nan`` (missing values) and ``input_tags.sparse`` (CSR matrices).
    """

    # Requested by class attribute, so that metadata routing, once the user has switched it on,
    # carries them through GridSearchCV, cross_validate and Pipeline without set_fit_request.
    # eval_set is left open: scikit-learn then asks the user, who alone knows whether the steps
    # before the ranker transform it (Pipeline's transform_input).
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True, "sample_weight": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True, "sample_weight": True}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"qid": True}

    # Whether ``warm_start`` is only where a solver begins, so that fits along a path of penalties
    # may start from each other and end at the same models.
    _warm_path: ClassVar[bool] = False

    metric: str | Metric = "ndcg@10"
    n_features_in_: int
    # Further arguments of fit that a ranker's _fit takes.
    _fit_options: ClassVar[tuple[str, ...]] = ()
    # Whether the ranker learns from Pairs, where its loss does.
    takes_pairs: ClassVar[bool] = False
    # Whether `_fit` wants its rows moved to canonical order; one that finds that order itself
    # (:func:`rankwise.data.canonical_lists`) saves the copy.
    _moves_rows: ClassVar[bool] = True

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | Groups | None = None,
        sample_weight: ArrayLike | None = None,
        eval_set: Any = None,
        pairs: Pairs | None = None,
        **others: Any,
    ) -> Self:
        """Learn from judged lists.

        Parameters
        ----------
        X : array-like or CSR of shape (n_docs, n_features), frame, or Queries
            Features. A frame may hold the query ids in a column named ``qid``. When ``X`` is a
            :class:`~rankwise.Queries`, ``y`` and ``qid`` are left out.
        y : array-like of shape (n_docs,)
            Relevance labels, 0 or more, larger is better. NaN is a document without judgement: it
            takes part in no pair and teaches nothing by itself. May be left out with ``pairs``.
        qid : array-like of shape (n_docs,)
            Query id of each row, in any order and of any type.
        sample_weight : array-like of shape (n_docs,), optional
            Document weights, 0 or more.
        eval_set : Queries, (X, y, qid), or (X, y) with the ids in X, optional
            Validation queries, used by rankers that stop early.
        pairs : Pairs, optional
            Preferences between rows of ``X``, each inside one query: what losses over pairs learn
            from, instead of the pairs that labels form. Other losses refuse them.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If lengths differ, labels are negative or all missing, or ``qid`` is not given.
        TypeError
            For ``group=``: query sizes become ids by :func:`rankwise.qid_from_sizes`.

        Notes
        -----
        The fitted model does not depend on the order of the rows or on the names of the queries,
        to the last bit.
        """
        where = f"{type(self).__name__}.fit"
        options = {name: others.pop(name) for name in self._fit_options if name in others}
        _refuse_unknown(where, others)
        features, names = self._input(where, X)
        train = _lists(where, X, features, names, y, qid, sample_weight, pairs)
        self._check_pairs(where, train)
        valid = None
        if eval_set is not None:
            valid = self._eval_queries(f"{where} (eval_set)", eval_set, train)
        learn: Callable[..., None] = self._fit
        learn(canonical(train) if self._moves_rows else train, valid, **options)
        note_features(self, train.n_features, names)
        return self

    def fit_in_search(self, train: Queries, valid: Queries | None, shared: dict[Any, Any]) -> Self:
        """``fit(train, eval_set=valid)`` as one of many fits to the same queries.

        Parameters
        ----------
        train : Queries
        valid : Queries or None
        shared : dict
            Empty at the first fit of a search, and handed to each fit to these ``train`` and
            ``valid``. Holds what the fits have in common: the checked queries, and whatever the
            ranker's ``_fit_sharing`` keeps there.

        Returns
        -------
        self
        """
        where = f"{type(self).__name__}.fit"
        if "queries" not in shared:
            features, names = self._input(where, train)
            lists = _lists(where, train, features, names, None, None, None, None)
            self._check_pairs(where, lists)
            checked = None
            if valid is not None:
                checked = self._eval_queries(f"{where} (eval_set)", valid, lists)
            shared["queries"] = canonical(lists) if self._moves_rows else lists, checked, names
        in_order, checked, names = shared["queries"]
        self._fit_sharing(in_order, checked, shared)
        note_features(self, in_order.n_features, names)
        return self

    def predict(self, X: Any, *, qid: ArrayLike | Groups | None = None) -> NDArray[np.float64]:
        """Scores of documents, higher is better; comparable inside a query only.

        Parameters
        ----------
        X : array-like or CSR of shape (n_docs, n_features), frame, or Queries
        qid : array-like of shape (n_docs,), optional
            Needed by rankers whose score of a document depends on the rest of its list
            (:class:`~rankwise.NeuralRanker` with attention), unless ``X`` holds the ids; the
            others do not look at it.

        Returns
        -------
        float64 array of shape (n_docs,), in input order. Equal rows have equal scores, whatever
        else is in ``X``; from a ranker that looks at lists, equal rows of equal lists.
        """
        return self._scored(f"{type(self).__name__}.predict", X, qid)

    def rank(
        self, X: Any, qid: ArrayLike | Groups | None = None, k: int | None = None
    ) -> NDArray[np.int64]:
        """Rank of each document in its query, from 1 (best), in input order.

        Parameters
        ----------
        X : array-like or CSR of shape (n_docs, n_features), frame, or Queries
        qid : array-like of shape (n_docs,)
            Left out when ``X`` is a Queries or a frame with a column ``qid``.
        k : int, optional
            Only the first ``k`` places of each query are sorted; the other documents get 0.

        Returns
        -------
        int64 array of shape (n_docs,). Documents with equal scores keep their input order.
        """
        where = f"{type(self).__name__}.rank"
        cutoff = _validate.depth(where, k)
        y_score = self._scored(where, X, qid)
        groups = groups_of(where, X, qid, len(y_score))
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

        Parameters
        ----------
        X : array-like or CSR of shape (n_docs, n_features), frame, or Queries
        y : array-like of shape (n_docs,)
            Relevance labels. Left out, as ``qid``, when ``X`` is a Queries.
        qid : array-like of shape (n_docs,)
        sample_weight : array-like of shape (n_docs,), optional
            A query counts with the mean weight of its documents.

        Returns
        -------
        float
        """
        where = f"{type(self).__name__}.score"
        y_score = self._scored(where, X, qid)
        return _mean(where, parse_metric(self.metric), y_score, X, y, qid, sample_weight)

    def save(self, path: Any) -> None:
        """Write the fitted ranker to one file, without pickle; see :func:`rankwise.load`."""
        from rankwise.saving import save

        save(self, path)

    def _scored(self, where: str, X: Any, qid: Any) -> NDArray[np.float64]:
        features = self._checked(where, X)
        if self._looks_at_lists():
            groups = groups_of(where, X, qid, features.shape[0])
            y_score = groups.scatter(self._score_lists(groups.gather(features), groups.offsets))
        else:
            y_score = self._score(features)
        if not np.isfinite(y_score).all():
            row = int(np.argmin(np.isfinite(y_score)))
            raise ValueError(
                f"{where}: scores must be finite, got {y_score[row]} at row {row}; the features "
                "are too large for this ranker, scale them (rankwise.QueryScaler)"
            )
        return y_score

    def _fit(self, train: Queries, valid: Queries | None) -> None:
        raise TypeError(f"{type(self).__name__} must define _fit(train, valid)")

    def _fit_sharing(self, train: Queries, valid: Queries | None, shared: dict[Any, Any]) -> None:
        """``_fit`` inside a search: the same model, with the work that fits have in common done once.

        ``train`` and ``valid`` are the same objects in every fit that gets the same ``shared``. Keys
        are tuples that start with the ranker's own word and name every parameter the value depends
        on: ``shared["bins", max_bin]``.
        """
        self._fit(train, valid)

    def _stopped_at(self) -> dict[str, Any]:
        """Parameters that make a fit without validation queries stop where this one did."""
        return {}

    def _score(self, X: Any) -> NDArray[np.float64]:
        raise TypeError(f"{type(self).__name__} must define _score(X)")

    def _looks_at_lists(self) -> bool:
        """Whether a document's score depends on its list: then ``_score_lists`` gives the scores."""
        return False

    def _score_lists(self, X: Any, offsets: NDArray[np.int64]) -> NDArray[np.float64]:
        raise TypeError(f"{type(self).__name__} must define _score_lists(X, offsets)")

    def _input(self, where: str, X: Any) -> tuple[Any, list[str] | None]:
        """Checked features for learning, and their names."""
        features, names = features_of(where, X)
        self._accepts(where, features)
        nan = self.__sklearn_tags__().input_tags.allow_nan
        return _validate.matrix(where, features, nan=nan), names

    def _checked(self, where: str, X: Any) -> Any:
        """Checked features that agree with those of ``fit``, for scoring."""
        check_is_fitted(self, "n_features_in_")
        features, names = features_of(where, X)
        self._accepts(where, features)
        nan = self.__sklearn_tags__().input_tags.allow_nan
        return same_features(where, self, features, names, nan=nan)

    def _check_pairs(self, where: str, train: Queries) -> None:
        if train.pairs is not None and not self.takes_pairs:
            raise TypeError(
                f"{where}: pairs need a ranker with a loss over pairs, such as LinearRanker or "
                f"TreeRanker, got {type(self).__name__}, which learns from labels"
            )

    def _accepts(self, where: str, features: Any) -> None:
        if hasattr(features, "nnz") and not self.__sklearn_tags__().input_tags.sparse:
            raise TypeError(
                f"{where}: X must be dense, got a sparse {type(features).__name__}; "
                "pass X.toarray()"
            )

    def _eval_queries(self, where: str, eval_set: Any, train: Queries) -> Queries:
        X, y, qid = _unpack(where, eval_set)
        features, names = self._input(where, X)
        check_names(where, names, train.feature_names)
        _validate.matrix(where, features, n_features=train.n_features)
        return canonical(_lists(where, X, features, names, y, qid, None, None))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = False
        tags.non_deterministic = False
        return tags


class MetricScorer(BaseEstimator):
    """A metric as scikit-learn's model selection calls it: ``scorer(estimator, X, y, qid=qid)``.

    It asks metadata routing for ``qid`` and ``sample_weight`` by itself, and refuses to score rows
    whose queries it does not know. Made by :meth:`rankwise.Metric.scorer`.
    """

    def __init__(self, metric: Metric) -> None:
        self.metric = metric

    def __call__(
        self, estimator: Any, X: Any, y: Any = None, *, qid: Any = None, sample_weight: Any = None
    ) -> float:
        """Mean of the metric over the queries of ``X``, ranked by ``estimator.predict(X)``."""
        where = f"scorer of {self.metric}"
        y_score = _predict(estimator, X, qid)
        return _mean(where, self.metric, y_score, X, y, qid, sample_weight)

    def get_metadata_routing(self) -> MetadataRequest:
        """What the scorer asks for; see scikit-learn's user guide on metadata routing."""
        request = MetadataRequest(owner=type(self).__name__)
        for name in ("qid", "sample_weight"):
            request.score.add_request(param=name, alias=True)
        return request


def _predict(estimator: Any, X: Any, qid: Any) -> Any:
    """``estimator.predict(X)``; steps of a pipeline that ask for ``qid``, get it."""
    if qid is not None and hasattr(estimator, "get_metadata_routing"):
        routing = get_routing_for_object(estimator)
        if routing.consumes(method="predict", params=["qid"]):
            return estimator.predict(X, qid=qid)
    return estimator.predict(X)


def _mean(
    where: str, metric: Metric, y_score: Any, X: Any, y: Any, qid: Any, sample_weight: Any
) -> float:
    labels = _labels(where, X, y, len(y_score))
    groups = groups_of(where, X, qid, len(y_score))
    if isinstance(X, Queries) and sample_weight is None:
        sample_weight = X.weight
    weights = _validate.weights(where, sample_weight, len(y_score))
    return metric.mean(labels, y_score, qid=groups, query_weight=query_weights(groups, weights))


def query_weights(groups: Groups, weight: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    """The mean weight of each query's documents."""
    if weight is None:
        return None
    return np.add.reduceat(groups.gather(weight), groups.offsets[:-1]) / groups.sizes


def _refuse_unknown(where: str, unknown: dict[str, Any]) -> None:
    if "group" in unknown:
        raise TypeError(
            f"{where}: queries are given by qid (one id per row), got group= (sizes); "
            "pass qid=rankwise.qid_from_sizes(group)"
        )
    if unknown:
        raise TypeError(f"{where}: unexpected keyword argument {next(iter(unknown))!r}")


def _labels(where: str, X: Any, y: Any, n_docs: int, name: str = "y_true") -> NDArray[np.float64]:
    """The labels in ``X`` or ``y``, one per row; NaN where there is no judgement."""
    if isinstance(X, Queries):
        if y is not None:
            raise TypeError(f"{where}: a Queries holds y already; leave y out")
        y = X.y
    elif y is None:
        raise ValueError(
            f"{where}: requires y to be passed, but the target y is None; "
            "give one relevance label per document"
        )
    labels = _validate.labels(where, y, name)
    if len(labels) != n_docs:
        raise ValueError(
            f"{where}: y must have one entry per row of X, got {len(labels)} for {n_docs} rows"
        )
    return labels


def _lists(
    where: str,
    X: Any,
    features: Any,
    names: Any,
    y: Any,
    qid: Any,
    sample_weight: Any,
    pairs: Pairs | None,
) -> Queries:
    """Checked lists with labels or pairs, from checked features."""
    n_docs = features.shape[0]
    if isinstance(X, Queries):
        if pairs is not None and X.pairs is not None:
            raise TypeError(f"{where}: a Queries holds pairs already; leave pairs out")
        pairs = X.pairs if pairs is None else pairs
        sample_weight = X.weight if sample_weight is None else sample_weight
    if y is None and pairs is not None and not isinstance(X, Queries):
        labels = no_labels(n_docs)
    else:
        labels = _labels(where, X, y, n_docs, "y")
    if pairs is None and np.isnan(labels).all():
        raise ValueError(
            f"{where}: y must hold at least one label, got NaN for all {n_docs} documents; "
            "there is nothing to learn"
        )
    groups = groups_of(where, X, qid, n_docs)
    weight = _validate.weights(where, sample_weight, n_docs)
    if weight is not None and not weight.any():
        raise ValueError(
            f"{where}: sample_weight must be above 0 for at least one document, got zeros only"
        )
    return Queries(
        groups.gather(features),
        groups.gather(labels),
        groups.offsets,
        groups.ids,
        weight=None if weight is None else groups.gather(weight),
        feature_names=None if names is None else tuple(names),
        order=groups.order,
        pairs=gather_pairs(where, pairs, groups),
    )


def _unpack(where: str, eval_set: Any) -> tuple[Any, Any, Any]:
    if isinstance(eval_set, Queries):
        return eval_set, None, None
    if isinstance(eval_set, tuple | list) and len(eval_set) in (2, 3):
        X, y, *qid = eval_set
        return X, y, qid[0] if qid else None
    raise TypeError(
        f"{where}: eval_set must be a Queries or (X, y, qid), got {type(eval_set).__name__}"
    )
