"""The machinery behind :mod:`rankwise.metrics`: metrics as values, their options, one kernel call.

A :class:`Metric` is a name, a cutoff and the options that differ from the defaults. Each name has
one entry in :data:`SPECS`, which says what options it takes and how the kernel is asked for it;
each option has one entry in :data:`OPTIONS`, which checks it.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise import _core, _validate
from rankwise._text import split_names
from rankwise.data import Groups, group_rows

Floats = NDArray[np.float64]
Options = Mapping[str, Any]
Qid = ArrayLike | Groups | None
Table = str | Sequence[float]

TIES = ("average", "stable", "trec", "worst", "best", "together")


class Mean(NamedTuple):
    """A mean over queries and how many queries it covers."""

    value: float
    n_queries: int
    n_skipped: int


# --- options --------------------------------------------------------------------------------


def _table(where: str, name: str, value: Any) -> tuple[float, ...]:
    try:
        table = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    steps = np.diff(table) if table.ndim == 1 else table
    falls = name == "discount"
    ok = table.ndim == 1 and len(table) > 0 and bool(np.isfinite(table).all())
    ok = ok and bool((table >= 0).all()) and bool(((steps <= 0) if falls else (steps >= 0)).all())
    if ok and not falls:
        ok = table[0] == 0
    if not ok:
        rule = (
            "a discount per rank, at least 0 and never rising"
            if falls
            else "a gain per label 0, 1, 2, ..., starting at 0 and never falling"
        )
        raise ValueError(f"{where}: {name} as a table must hold {rule}, got {value!r}")
    return tuple(float(v) for v in table)


def _word_or_table(words: tuple[str, ...]) -> Callable[[str, str, Any], Any]:
    def check(where: str, name: str, value: Any) -> Any:
        if isinstance(value, str) or value is None:
            return _validate.choice(where, name, value, words)
        return _table(where, name, value)

    return check


def _word(*words: str) -> Callable[[str, str, Any], Any]:
    return lambda where, name, value: _validate.choice(where, name, value, words)


def _number(**bounds: Any) -> Callable[[str, str, Any], Any]:
    return lambda where, name, value: _validate.number(where, name, value, **bounds)


def _empty(where: str, name: str, value: Any) -> Any:
    if isinstance(value, str) and value == "skip":
        return value
    if (
        isinstance(value, int | float | np.number)
        and not isinstance(value, bool)
        and value in (0, 1)
    ):
        return float(value)
    raise ValueError(f"{where}: {name} must be 'skip', 0.0 or 1.0, got {value!r}")


def _persistence(where: str, name: str, value: Any) -> float:
    p = _validate.number(where, name, value, low=0, high=1, open_low=True)
    if p == 1:
        raise ValueError(f"{where}: {name} must be below 1, got {value!r}")
    return p


def _recall_levels(where: str, name: str, value: Any) -> float | tuple[float, ...]:
    if isinstance(value, int | float | np.number):
        return _validate.number(where, name, value, low=0, high=1)
    levels = tuple(_validate.number(where, name, v, low=0, high=1) for v in value)
    if not levels:
        raise ValueError(f"{where}: {name} must hold at least one level, got {value!r}")
    return levels


def _four_weights(where: str, name: str, value: Any) -> tuple[float, ...]:
    weights = tuple(_validate.number(where, name, v) for v in value)
    if len(weights) != 4:
        raise ValueError(
            f"{where}: {name} must hold four numbers: for relevant and other documents retrieved, "
            f"relevant and other documents not retrieved; got {value!r}"
        )
    return weights


OPTIONS: dict[str, Callable[[str, str, Any], Any]] = {
    "gain": _word_or_table(("exp2", "identity")),
    "discount": _word_or_table(("log2", "letor")),
    "rel": _number(low=0, open_low=True),
    "ties": _word(*TIES),
    "empty": _empty,
    "short": _word("pad", "cut", "zero"),
    "norm": _word("R", "min"),
    "p": _persistence,
    "top": _number(low=0, open_low=True),
    "half_life": _number(low=1, open_low=True),
    "neutral": _number(low=0),
    "multiple": _number(low=0, open_low=True),
    "recall": _recall_levels,
    "rounding": _word("nearest", "up"),
    "weights": _four_weights,
    "relevance": _word("binary", "graded"),
    "tail": _word("always", "if_unjudged"),
    "scores": _word("float64", "float32"),
    "mean": _word("arithmetic", "geometric", "sum"),
}

# Options of a Metric that its plain function does not take: how the mean is formed and the
# precision in which scores are compared.
_VALUE_OPTIONS = {"scores": "float64", "mean": "arithmetic"}


# --- what each metric takes and how the kernel is asked --------------------------------------


@functools.lru_cache(maxsize=64)
def log_discounts(kind: str, n: int) -> Floats:
    """Discounts of ranks 1 to n."""
    ranks = np.arange(1, n + 1, dtype=np.float64)
    table = 1 / np.log2(1 + ranks) if kind == "log2" else 1 / np.log2(np.maximum(ranks, 2))
    table.flags.writeable = False
    return table


def _rank_discounts(options: Options, n: int) -> Floats:
    discount = options["discount"]
    if isinstance(discount, str):
        return log_discounts(discount, n)
    return np.asarray(discount[:n], dtype=np.float64)


def _powers(options: Options, n: int) -> Floats:
    p: float = options["p"]
    return np.asarray((1 - p) * p ** np.arange(n, dtype=np.float64))


def _half_lives(options: Options, n: int) -> Floats:
    return np.asarray(np.exp2(-np.arange(n, dtype=np.float64) / (options["half_life"] - 1)))


@dataclass(frozen=True)
class Spec:
    """One metric: its options with their defaults, and how the kernel is asked for it."""

    defaults: dict[str, Any]
    has_k: bool = True
    needs_all: bool = False  # every retrieved document, not only those with a label above 0
    pooled: bool = False  # label -1 is allowed: pooled, not judged
    ordered: bool = False  # no definition for ties="average"
    shorts: tuple[str, ...] = ()  # what may happen to a list shorter than k
    discounts: Callable[[Options, int], Floats] | None = None
    parameter: str | None = None  # the option the kernel takes as its parameter

    def request(self, name: str, k: int | None, options: Options, longest: int) -> Any:
        depth = longest if k is None else min(k, longest)
        gain = options.get("gain", "excess" if "neutral" in options else "exp2")
        table = not isinstance(gain, str)
        discounts = self.discounts(options, depth) if self.discounts else np.empty(0)
        empty = options.get("empty", "skip")
        return _core.Request(
            "graded_rbp" if options.get("relevance") == "graded" else name,
            k=-1 if k is None else k,
            rel=options.get("rel", 1.0),
            parameter=options[self.parameter] if self.parameter else 0.0,
            neutral=options.get("neutral", 0.0),
            gain="table" if table else gain,
            cut_short=options.get("short") == "cut",
            zero_short=options.get("short") == "zero",
            norm_min=options.get("norm") == "min",
            together=options.get("ties") == "together",
            tail_always=options.get("tail") != "if_unjudged",
            round_up=options.get("rounding") == "up",
            empty=np.nan if empty == "skip" else empty,
            gains=np.asarray(gain if table else (), dtype=np.float64),
            discounts=np.ascontiguousarray(discounts),
            weights=np.atleast_1d(options.get("weights", options.get("recall", 0.0))).astype(float),
        )


_COMMON = {"ties": "average", "empty": "skip"}
_BINARY = {"rel": 1.0, **_COMMON}
_GRADED = {"gain": "exp2", "discount": "log2", **_COMMON}
_BINARY_ORDERED = {**_BINARY, "ties": "stable"}
_GRADED_ORDERED = {**_GRADED, "ties": "stable"}
_SUM = {"mean": "sum"}
_ELEVEN = tuple(i / 10 for i in range(11))

SPECS: dict[str, Spec] = {
    "ndcg": Spec({"short": "pad", **_GRADED}, discounts=_rank_discounts, shorts=("pad", "zero")),
    "dcg": Spec(_GRADED, discounts=_rank_discounts),
    "mean_ndcg": Spec(_GRADED, has_k=False, discounts=_rank_discounts),
    "eru": Spec(
        {"half_life": 5.0, "neutral": 0.0, **_COMMON}, has_k=False, discounts=_half_lives
    ),
    "precision": Spec({"short": "pad", **_BINARY}, shorts=("pad", "cut", "zero")),
    "recall": Spec(_BINARY),
    "f1": Spec({"short": "pad", **_BINARY}, shorts=("pad", "cut")),
    "success": Spec(_BINARY),
    "r_precision": Spec({"multiple": 1.0, **_BINARY}, has_k=False, parameter="multiple"),
    "ap": Spec({"norm": "R", **_BINARY}),
    "rr": Spec(_BINARY),
    "err": Spec({"top": 4.0, **_COMMON}, parameter="top"),
    "rbp": Spec({"p": 0.8, "relevance": "binary", **_BINARY}, discounts=_powers),
    "rbp_residual": Spec(
        {"p": 0.8, "tail": "always", "ties": "average"},
        has_k=False, needs_all=True, discounts=_powers, parameter="p",
    ),
    "wta": Spec(_COMMON, has_k=False),
    "bpref": Spec(_BINARY, has_k=False, needs_all=True),
    "infap": Spec(_BINARY, has_k=False, needs_all=True, pooled=True),
    "judged": Spec({"short": "pad", "ties": "average"}, needs_all=True, shorts=("pad", "cut")),
    "unjudged": Spec({"ties": "average"}, needs_all=True),
    "pairwise_accuracy": Spec(_COMMON, has_k=False, needs_all=True),
    "auc": Spec(_BINARY, has_k=False, needs_all=True),
    "tau_a": Spec({"empty": "skip"}, has_k=False, needs_all=True),
    "tau_b": Spec({"empty": "skip"}, has_k=False, needs_all=True),
    "rho": Spec({"empty": "skip"}, has_k=False, needs_all=True),
    "relative_precision": Spec(_BINARY),
    "set_ap": Spec(_BINARY),
    "interpolated_precision": Spec(
        {"recall": _ELEVEN, "rounding": "nearest", **_BINARY_ORDERED}, has_k=False, ordered=True
    ),
    "utility": Spec({"weights": (1.0, -1.0, 0.0, 0.0), "rel": 1.0}, has_k=False),
    "bin_g": Spec(_BINARY_ORDERED, has_k=False, ordered=True),
    "g": Spec(
        {"gain": "identity", "ties": "stable", "empty": "skip"}, has_k=False, ordered=True
    ),
    "ndcg_rel": Spec(_GRADED_ORDERED, has_k=False, ordered=True, discounts=_rank_discounts),
    "r_ndcg": Spec(_GRADED_ORDERED, has_k=False, ordered=True, discounts=_rank_discounts),
    "retrieved": Spec(_SUM, has_k=False),
    "relevant": Spec({"rel": 1.0, **_SUM}, has_k=False),
    "relevant_retrieved": Spec({"rel": 1.0, **_SUM}, has_k=False),
    "nonrelevant_retrieved": Spec({"rel": 1.0, **_SUM}, has_k=False, needs_all=True),
}  # fmt: skip


# --- metrics as values -----------------------------------------------------------------------


@dataclass(frozen=True)
class Metric:
    """A ranking metric with its conventions: a value that prints, parses, hashes and compares.

    ``metric @ k`` sets the cutoff and ``metric(option=value)`` another convention; both return a
    new metric. The text form shows what differs from the default and reads back with
    :func:`parse_metric`.

    Attributes
    ----------
    name : str
        The metric's name, a key of :data:`rankwise.metrics.METRICS`.
    k : int or None
        Cutoff; None is the whole list.
    changed : dict
        The options that differ from the default.

    Examples
    --------
    >>> from rankwise.metrics import NDCG
    >>> NDCG(gain="identity") @ 10
    Metric("ndcg(gain='identity')@10")
    >>> str(NDCG @ 5)
    'ndcg@5'
    """

    name: str
    k: int | None = None
    changed: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.name not in SPECS:
            raise _validate.unknown("metric", self.name, SPECS)
        spec = SPECS[self.name]
        _validate.depth(self.name, self.k)
        if self.k is not None and not spec.has_k:
            raise ValueError(f"{self.name}: has no cutoff, got k={self.k!r}")
        object.__setattr__(self, "changed", _changed(self.name, spec, self.changed))
        _check_ties(self.name, spec, self.options["ties"])
        object.__setattr__(self, "k", None if self.k is None else int(self.k))

    def __hash__(self) -> int:
        return hash((self.name, self.k, tuple(self.changed.items())))

    def __call__(self, **options: Any) -> Metric:
        """The same metric with other options; ``k`` is one of them."""
        k = options.pop("k", self.k)
        return Metric(self.name, k, {**self.changed, **options})

    def __matmul__(self, k: int) -> Metric:
        return Metric(self.name, k, self.changed)

    def __str__(self) -> str:
        inside = ", ".join(f"{name}={_text(value)}" for name, value in self.changed.items())
        options = f"({inside})" if inside else ""
        return f"{self.name}{options}" + ("" if self.k is None else f"@{self.k}")

    def __repr__(self) -> str:
        return f'Metric("{self}")'

    @property
    def options(self) -> dict[str, Any]:
        """Every option with its value."""
        return {**_VALUE_OPTIONS, "ties": "average", **SPECS[self.name].defaults, **self.changed}

    def per_query(
        self,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        qid: ArrayLike | Groups | None = None,
        docs: ArrayLike | None = None,
    ) -> Floats:
        """One value per query, NaN for a query that is skipped.

        Parameters
        ----------
        y_true : array-like of shape (n_docs,)
            Relevance labels, at least 0; NaN is an unjudged document.
        y_score : array-like of shape (n_docs,)
            Scores, higher is better; -inf is a document that was not retrieved.
        qid : array-like of shape (n_docs,) or Groups, optional
            Query of each row, in any order; without it all rows are one query.
        docs : array-like of shape (n_docs,), optional
            Document ids, for ``ties="trec"``.

        Returns
        -------
        float64 array of shape (n_queries,), queries in order of first appearance.
        """
        values: Floats = compute(self.name, [self], y_true, y_score, qid, docs)[0]
        return values

    def mean(
        self,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        qid: ArrayLike | Groups | None = None,
        query_weight: ArrayLike | None = None,
        docs: ArrayLike | None = None,
    ) -> float:
        """Mean over the queries that are not skipped; NaN when there is none.

        ``query_weight`` holds one weight per query, in the order of :meth:`per_query`. See
        :meth:`average` for how many queries the mean covers.
        """
        values = self.per_query(y_true, y_score, qid=qid, docs=docs)
        return self.average(values, query_weight).value

    def swap_deltas(
        self, y_true: ArrayLike, y_score: ArrayLike, *, ties: str = "average"
    ) -> Floats:
        """What the metric of one query changes if two documents swap places.

        Parameters
        ----------
        y_true, y_score : array-like of shape (n_docs,)
            Labels (NaN: unjudged) and finite scores of one query.
        ties : {"average", "stable"}
            The expected change over the orders of tied documents, or that of the input order.

        Returns
        -------
        float64 array of shape (n_docs, n_docs), symmetric, at least 0
            0 for documents with equal labels or without one.

        Raises
        ------
        ValueError
            If the metric has no closed form and the list more than 200 documents.

        Examples
        --------
        >>> from rankwise.metrics import NDCG
        >>> NDCG.swap_deltas([0, 3, 1, 0, 2, 0], [6, 5, 4, 3, 2, 1])[1].round(3)
        array([0.275, 0.   , 0.084, 0.149, 0.104, 0.205])
        """
        from rankwise import _swaps

        return _swaps.swap_matrix(self, y_true, y_score, ties)

    def average(self, values: ArrayLike, query_weight: ArrayLike | None = None) -> Mean:
        """The mean of per-query values and the number of queries it covers.

        Examples
        --------
        >>> from rankwise.metrics import AP
        >>> AP.average([0.5, float("nan"), 1.0])
        Mean(value=0.75, n_queries=2, n_skipped=1)
        """
        per_query = _validate.vector(str(self), "values", values)
        weight = _query_weight(str(self), query_weight, len(per_query))
        kept = ~np.isnan(per_query) & (weight > 0)
        n_skipped = int(np.isnan(per_query).sum())
        if not kept.any():
            return Mean(float("nan"), 0, n_skipped)
        value = _MEANS[self.options["mean"]](per_query[kept], weight[kept])
        return Mean(float(value), int(kept.sum()), n_skipped)

    def scorer(self) -> Any:
        """A scikit-learn scorer that asks for ``qid``, and refuses to score without it.

        It works in ``GridSearchCV`` and ``cross_validate`` once the user has switched on
        scikit-learn's metadata routing (``sklearn.set_config(enable_metadata_routing=True)``), and
        without routing on frames that hold their query ids in a column ``qid``.
        """
        from rankwise._estimator import MetricScorer

        return MetricScorer(self)

    def gains(self, y_true: ArrayLike) -> Floats:
        """Gain of each label, for metrics that are sums of gain times discount.

        Unjudged documents (NaN) have gain 0. For nDCG this is the gain before the division by the
        query's ideal.

        Raises
        ------
        ValueError
            If the metric has no such form, or a gain overflows.
        """
        labels = _validate.labels(self.name, y_true)
        options = self.options
        judged = np.where(np.isnan(labels), 0.0, labels)
        _check_labels(self.name, self, float(judged.max(initial=0.0)), len(labels), labels)
        return np.asarray(_gain_function(self)(judged, options), dtype=np.float64)

    def check_labels(self, y_true: ArrayLike) -> None:
        """Refuses labels that the metric cannot take, with the sentence that says why."""
        labels = _validate.labels(self.name, y_true)
        judged = labels[~np.isnan(labels)]
        _check_labels(self.name, self, float(judged.max(initial=0.0)), len(labels), labels)

    def discounts(self, n: int) -> Floats:
        """Discounts of ranks 1 to n, 0 beyond the cutoff."""
        spec = SPECS[self.name]
        depth = n if self.k is None else min(n, self.k)
        out = np.zeros(n)
        if spec.discounts is not None:
            table = spec.discounts(self.options, depth)
            out[: len(table)] = table
        elif self.name == "precision":
            out[:depth] = 1 / (n if self.k is None else self.k)
        else:
            raise _no_gain_form(self.name)
        return out


_MEANS: dict[str, Callable[[Floats, Floats], Any]] = {
    "arithmetic": lambda x, w: np.average(x, weights=w),
    "geometric": lambda x, w: np.exp(np.average(np.log(np.maximum(x, _FLOOR)), weights=w)),
    "sum": lambda x, w: np.sum(w * x),
}
_FLOOR = 1e-5  # trec_eval's floor under the values of a geometric mean


def _binary_gain(labels: Floats, options: Options) -> Any:
    return labels >= options["rel"]


def _graded_gain(labels: Floats, options: Options) -> Any:
    gain = options["gain"]
    if gain == "exp2":
        return np.exp2(labels) - 1
    if gain == "identity":
        return labels
    return np.asarray(gain)[labels.astype(np.int64)]


def _excess_gain(labels: Floats, options: Options) -> Any:
    return np.maximum(labels - options["neutral"], 0.0)


_GAINS: dict[str, Callable[[Floats, Options], Any]] = {
    "ndcg": _graded_gain,
    "dcg": _graded_gain,
    "precision": _binary_gain,
    "rbp": _binary_gain,
    "eru": _excess_gain,
}


def _gain_function(metric: Metric) -> Callable[[Floats, Options], Any]:
    if metric.name not in _GAINS:
        raise _no_gain_form(metric.name)
    return _GAINS[metric.name]


def _no_gain_form(name: str) -> ValueError:
    known = ", ".join(sorted(_GAINS))
    return ValueError(
        f"{name}: is not a sum of gain times discount with one discount per rank; "
        f"metrics that are: {known}"
    )


def _query_weight(where: str, weight: ArrayLike | None, n_queries: int) -> Floats:
    if weight is None:
        return np.ones(n_queries)
    array = _validate.vector(where, "query_weight", weight)
    if len(array) != n_queries:
        raise ValueError(
            f"{where}: query_weight must hold one weight per query, "
            f"got {len(array)} for {n_queries} queries"
        )
    bad = np.flatnonzero(~(array >= 0) | (array == np.inf))
    if len(bad):
        raise ValueError(
            f"{where}: query_weight must be at least 0 and finite, "
            f"got {array[bad[0]]} for query {bad[0]}"
        )
    return array


def _changed(name: str, spec: Spec, options: Options) -> dict[str, Any]:
    """The options that differ from the default, checked, in the order of the defaults."""
    defaults = {**_VALUE_OPTIONS, **spec.defaults}
    for option in options:
        if option not in defaults:
            import difflib

            close = difflib.get_close_matches(str(option), defaults, n=1, cutoff=0.5)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise TypeError(
                f"{name}: unknown option {option!r}; known: "
                f"{', '.join(['k'] * spec.has_k + sorted(defaults))}{hint}"
            )
    checked = {o: OPTIONS[o](name, o, options[o]) for o in defaults if o in options}
    if "short" in checked:
        _validate.choice(name, "short", checked["short"], spec.shorts)
    return {o: value for o, value in checked.items() if value != defaults[o]}


def _check_ties(name: str, spec: Spec, ties: str) -> None:
    if spec.ordered and ties == "average":
        raise ValueError(
            f"{name}: has no definition under ties='average'; "
            "choose 'stable', 'trec', 'worst' or 'best'"
        )
    if ties == "together" and name != "ap":
        raise ValueError(
            f"{name}: has no definition under ties='together', which is for ap only; "
            "choose 'average', 'stable', 'trec', 'worst' or 'best'"
        )


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(_text(v) for v in value)}{',' * (len(value) == 1)})"
    return (
        f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else repr(value)
    )


# --- the kernel call ---------------------------------------------------------------------------


def compute(
    where: str,
    metrics: list[Metric],
    y_true: ArrayLike,
    y_score: ArrayLike,
    qid: ArrayLike | Groups | None,
    docs: ArrayLike | None,
    n_threads: int = 0,
) -> Floats:
    """Values of shape (n_metrics, n_queries), NaN where a query is skipped."""
    label = _validate.vector(where, "y_true", y_true)
    score = _validate.vector(where, "y_score", y_score)
    n_docs = _validate.same_length(where, y_true=label, y_score=score)
    groups = _groups(where, qid, n_docs)
    values = np.empty((len(metrics), len(groups)))
    calls: dict[tuple[str, str, bool], list[int]] = {}
    for i, metric in enumerate(metrics):
        options = metric.options
        ties = "average" if options["ties"] == "together" else options["ties"]
        key = (ties, options["scores"], SPECS[metric.name].pooled)
        calls.setdefault(key, []).append(i)
    for (ties, precision, _), members in calls.items():
        wanted = [metrics[i] for i in members]
        column = score if precision == "float64" else _as_float32(score)
        values[members] = _call(where, wanted, ties, label, column, groups, docs, n_threads)
    return values


def value(
    name: str, y_true: ArrayLike, y_score: ArrayLike, qid: Qid, docs: Any, **options: Any
) -> Floats:
    """What the plain function of a metric returns: one value per query."""
    metric = Metric(name, options.pop("k", None), options)
    return compute(name, [metric], y_true, y_score, qid, docs)[0]  # type: ignore[no-any-return]


def _call(
    where: str,
    metrics: list[Metric],
    ties: str,
    label: Floats,
    score: Floats,
    groups: Groups,
    docs: ArrayLike | None,
    n_threads: int,
) -> Floats:
    order = groups.order
    if ties == "trec":
        order, ties = _trec_order(where, groups, docs), "stable"
    y, s = (label, score) if order is None else (label[order], score[order])
    longest = int(groups.sizes.max(initial=0))
    requests = [SPECS[m.name].request(m.name, m.k, m.options, longest) for m in metrics]
    needs_all = any(SPECS[m.name].needs_all for m in metrics)
    pooled = SPECS[metrics[0].name].pooled
    values, largest, labels_ok, scores_ok = _core.compute_metrics(
        requests, ties, needs_all, pooled, y, s, groups.offsets, n_threads
    )
    if not (labels_ok and scores_ok):
        _validate.labels(where, np.where(label == -1, 0, label) if pooled else label)
        _validate.scores(where, score)
    if pooled and ((label < 0) & (label != -1)).any():
        _validate.labels(where, label[label != -1])
    for metric in metrics:
        _check_labels(where, metric, largest, len(label), label)
    return np.asarray(values)


def _groups(where: str, qid: ArrayLike | Groups | None, n_docs: int) -> Groups:
    if qid is None:
        return Groups(np.array([0, n_docs], dtype=np.int64), np.zeros(1, dtype=np.int64))
    groups = group_rows(qid, where=where)
    if groups.n_docs != n_docs:
        raise ValueError(
            f"{where}: qid must hold one id per document, "
            f"got {groups.n_docs} ids for {n_docs} documents"
        )
    return groups


def _as_float32(score: Floats) -> Floats:
    """Scores rounded to float32; finite ones stay finite, so that none becomes "not retrieved"."""
    limit = float(np.finfo(np.float32).max)
    clipped = np.where(np.isinf(score), score, np.clip(score, -limit, limit))
    return clipped.astype(np.float32).astype(np.float64)


def _trec_order(where: str, groups: Groups, docs: ArrayLike | None) -> NDArray[np.int64] | None:
    """Rows by query and descending document id, None when they already are."""
    if docs is None:
        if groups.docs_descending:
            return groups.order
        raise ValueError(
            f"{where}: ties='trec' orders tied documents by id, got no document ids; "
            "pass docs=, or lists joined by rankwise.join"
        )
    ids = np.asarray(docs)
    if ids.shape != (groups.n_docs,):
        raise ValueError(
            f"{where}: docs must hold one id per document, "
            f"got shape {ids.shape} for {groups.n_docs} documents"
        )
    if ids.dtype.kind not in "US":
        ids = ids.astype(str)  # trec_eval compares ids as text
    number = groups.spread(np.arange(len(groups)))
    return np.lexsort((-_descending_ranks(ids), number))


def _descending_ranks(ids: NDArray[Any]) -> NDArray[np.int64]:
    return np.unique(ids, return_inverse=True)[1].astype(np.int64)


def _check_labels(where: str, metric: Metric, largest: float, n: int, label: Floats) -> None:
    """Labels a metric cannot take: beyond the top grade, outside a gain table, or overflowing."""
    options = metric.options
    if "top" in options and largest > options["top"]:
        raise ValueError(
            f"{where}: labels must be at most the top grade {options['top']:g}, "
            f"got label {largest:g}; pass top={largest:g}"
        )
    gain = options.get("gain", "identity")
    if not isinstance(gain, str):
        judged = label[~np.isnan(label)]
        outside = judged[(judged != np.floor(judged)) | (judged >= len(gain))]
        if len(outside):
            raise ValueError(
                f"{where}: the gain table covers labels 0 to {len(gain) - 1}, "
                f"got label {outside.max():g}"
            )
    elif gain == "exp2" and largest + np.log2(max(n, 1)) >= 1023:
        raise ValueError(
            f"{where}: gain 'exp2' (2^label - 1) overflows for label {largest:g}, the largest one; "
            "use gain='identity' or a table"
        )


def evaluate(
    metrics: Metric | str | Iterable[Metric | str],
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: ArrayLike | Groups | None = None,
    docs: ArrayLike | None = None,
    preset: str | None = None,
    n_threads: int = 0,
) -> dict[str, Floats]:
    """Several metrics in one pass over the lists.

    Parameters
    ----------
    metrics : Metric, str, or several
        As text: ``"ndcg@10,ap,rr"``.
    y_true, y_score : array-like of shape (n_docs,)
        Labels (NaN: unjudged) and scores (-inf: not retrieved), higher is better.
    qid : array-like of shape (n_docs,) or Groups, optional
        Query of each row, in any order; without it all rows are one query.
    docs : array-like of shape (n_docs,), optional
        Document ids, for ``ties="trec"``.
    preset : str, optional
        Conventions for the metrics given as text, see :data:`rankwise.metrics.PRESETS`.
    n_threads : int
        0 uses the runtime's limit. Results do not depend on it.

    Returns
    -------
    dict of str to float64 array of shape (n_queries,)
        Keyed by the metric's text; NaN where a query is skipped.

    Examples
    --------
    >>> from rankwise.metrics import evaluate
    >>> evaluate("rr,precision@2", [0, 1, 0, 1], [4, 3, 2, 1], qid=[1, 1, 2, 2])
    {'rr': array([0.5, 0.5]), 'precision@2': array([0.5, 0.5])}
    """
    wanted = parse_metrics(metrics, preset=preset)
    values = compute("evaluate", wanted, y_true, y_score, qid, docs, n_threads)
    return {str(metric): row for metric, row in zip(wanted, values, strict=True)}


# --- reading metrics from text ---------------------------------------------------------------

_FORM = re.compile(r"\s*([^\s(@]+)\s*(?:\((.*)\))?\s*(?:@\s*([^()\s]+))?\s*", re.DOTALL)


def parse_metric(text: str | Metric, *, preset: str | None = None) -> Metric:
    """A metric from its text form: ``name``, ``name@k``, ``name(option=value, ...)@k``.

    Parameters
    ----------
    text : str or Metric
        A Metric is returned as it is. Names are those of :data:`rankwise.metrics.METRICS`; common
        spellings of other programs (``nDCG@10``, ``ndcg_cut_10``, ``map``, ``recip_rank``,
        ``P_5``) are understood too.
    preset : str, optional
        Conventions of another program, see :data:`rankwise.metrics.PRESETS`; options in the text
        go before the preset's.

    Raises
    ------
    ValueError
        If there is no such metric or preset, with the closest known one.

    Examples
    --------
    >>> from rankwise.metrics import parse_metric
    >>> parse_metric("nDCG@10")
    Metric("ndcg@10")
    >>> parse_metric("map", preset="lightgbm")
    Metric("ap(norm='min', ties='stable', empty=1)")
    """
    from rankwise import _presets

    if isinstance(text, Metric):
        return text
    if not isinstance(text, str):
        raise TypeError(f"parse_metric: a metric must be text or a Metric, got {text!r}")
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(
            f"metric {text!r}: must have the form name, name@k or name(option=value, ...)@k"
        )
    spelled, inside, cut = match.groups()
    name, k, options = _presets.canonical_name(spelled)
    if name not in SPECS:
        raise _unknown_metric(text, name)
    if cut is not None:
        if not re.fullmatch(r"[+-]?\d+", cut):
            raise ValueError(f"metric {text!r}: k must be a positive integer, got {cut!r}")
        k = int(cut)
    convention = _presets.options(preset, name) if preset is not None else {}
    return Metric(name, k, {**convention, **options, **_keywords(text, inside)})


def parse_metrics(
    metrics: Metric | str | Iterable[Metric | str], *, preset: str | None = None
) -> list[Metric]:
    """Metrics from one text with commas, one metric, or several of either.

    >>> from rankwise.metrics import parse_metrics
    >>> parse_metrics("ndcg(gain=identity, ties=worst)@10,ap")
    [Metric("ndcg(gain='identity', ties='worst')@10"), Metric("ap")]
    """
    if isinstance(metrics, Metric):
        return [metrics]
    if isinstance(metrics, str):
        metrics = split_names(metrics)
    return [parse_metric(metric, preset=preset) for metric in metrics]


def _unknown_metric(text: str, name: str) -> ValueError:
    import difflib

    close = difflib.get_close_matches(name.lower(), SPECS, n=1, cutoff=0.5)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return ValueError(f"unknown metric {text.strip()!r}; known: {', '.join(sorted(SPECS))}{hint}")


def _keywords(text: str, inside: str | None) -> dict[str, Any]:
    if inside is None or not inside.strip():
        return {}
    try:
        call = ast.parse(f"f({inside})", mode="eval").body
        assert isinstance(call, ast.Call)
        if call.args or any(keyword.arg is None for keyword in call.keywords):
            raise SyntaxError
        return {str(keyword.arg): _literal(keyword.value) for keyword in call.keywords}
    except (SyntaxError, ValueError):
        raise ValueError(
            f"metric {text!r}: options must have the form option=value, got ({inside})"
        ) from None


def _literal(node: ast.expr) -> Any:
    """A number, a word with or without quotes, or a list of numbers."""
    return node.id if isinstance(node, ast.Name) else ast.literal_eval(node)
