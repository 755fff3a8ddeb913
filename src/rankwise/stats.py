"""Statistics on per-query values: which difference between two systems is more than luck.

Two systems are compared on the same queries, so everything here works on the *paired
differences* ``d_i = a_i - b_i`` of one metric, one value per query, as every metric of rankwise
returns them. NaN marks a query a metric skips: a pair with NaN on either side is left out, and
counted in ``n_skipped``. A difference within rounding of zero is a tie.

What to use when

* :func:`randomization_test` for a p-value: no assumption on the distribution, exact for few
  queries. :func:`paired_t_test` is as good in practice and instant. Both ask about the mean.
* :func:`wilcoxon_test` and :func:`sign_test` ask another question (is a win as likely as a
  loss?); they are here because older papers report them.
* :func:`bootstrap_interval` for the interval of a mean or of a mean difference (pass ``a - b``);
  :func:`t_interval` where speed or a formula matters more.
* :func:`holm` over all the p-values of one table; :func:`benjamini_hochberg` to screen many.
* :func:`effect_size` and :func:`win_tie_loss` beside every p-value: with enough queries any
  difference is significant.

:func:`rankwise.compare` does all of it for a whole table.

>>> import numpy as np, rankwise as rw
>>> a = np.array([0.8, 0.6, 0.7, 0.9, np.nan])
>>> b = np.array([0.5, 0.6, 0.5, 0.8, 0.4])
>>> test = rw.randomization_test(a, b)
>>> test.p_value, test.n_queries, test.n_skipped
(0.25, 4, 1)
>>> rw.win_tie_loss(a, b)
WinTieLoss(wins=3, ties=1, losses=0)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise import _validate

Floats = NDArray[np.float64]
Seed = int | np.random.Generator | None

# The randomization test lists every sign pattern when at most this many pairs differ: half a
# million patterns, a few milliseconds.
EXACT_PAIRS = 20
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class PairedTest:
    """Outcome of a two-sided paired test.

    Attributes
    ----------
    test : str
        ``"t"``, ``"randomization"``, ``"wilcoxon"`` or ``"sign"``.
    statistic : float
        What the test measures; its docstring says.
    p_value : float
        Probability, if the systems were exchangeable, of a difference at least as large.
    n_queries : int
        Pairs the test rests on.
    n_skipped : int
        Pairs left out because a value was NaN.
    n_resamples : int or None
        Random sign patterns drawn; None when nothing was drawn (exact, or by formula).
    """

    test: str
    statistic: float
    p_value: float
    n_queries: int
    n_skipped: int
    n_resamples: int | None = None


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval.

    Attributes
    ----------
    mean, low, high : float
    confidence : float
        Nominal coverage, such as 0.95.
    method : str
        ``"bca"``, ``"percentile"`` or ``"t"``; for :func:`bootstrap_interval` the one really used.
    n_queries : int
        Values the mean covers.
    """

    mean: float
    low: float
    high: float
    confidence: float
    method: str
    n_queries: int


@dataclass(frozen=True)
class WinTieLoss:
    """On how many queries the first system is better, equal and worse."""

    wins: int
    ties: int
    losses: int


@dataclass(frozen=True)
class _Pairs:
    """Paired differences after NaN, and what their rounding allows to tell apart."""

    d: Floats
    magnitude: float
    n_skipped: int

    @property
    def constant(self) -> bool:
        return float(np.ptp(self.d)) <= 4 * _EPS * self.magnitude


def _pairs(where: str, a: ArrayLike, b: ArrayLike, *, least: int = 2) -> _Pairs:
    first = _validate.per_query(where, "a", a)
    second = _validate.per_query(where, "b", b)
    n = _validate.same_length(where, a=first, b=second)
    kept = ~(np.isnan(first) | np.isnan(second))
    first, second = first[kept], second[kept]
    if len(first) < least:
        raise ValueError(
            f"{where}: at least {least} queries must have a value in both a and b, "
            f"got {len(first)} ({n} queries, {n - len(first)} with NaN); evaluate on more queries"
        )
    magnitude = max(np.abs(first).max(initial=0.0), np.abs(second).max(initial=0.0))
    return _Pairs(differences(first, second), float(magnitude), n - len(first))


def differences(a: Floats, b: Floats) -> Floats:
    """``a - b`` with differences within rounding (four units in the last place) set to 0."""
    d = a - b
    d[np.abs(d) <= 4 * _EPS * np.maximum(np.abs(a), np.abs(b))] = 0.0
    return d


def paired_t_test(a: ArrayLike, b: ArrayLike) -> PairedTest:
    r"""Student's t test of the mean paired difference.

    .. math:: t = \frac{\bar d}{s_d / \sqrt n},\qquad p = 2 \Pr(T_{n-1} \ge |t|)

    with :math:`d_i = a_i - b_i` and their standard deviation :math:`s_d` (divisor ``n - 1``).

    Parameters
    ----------
    a, b : array-like of shape (n_queries,)
        Per-query values of two systems; NaN skips the query.

    Returns
    -------
    PairedTest
        ``statistic`` is t, positive when ``a`` is better. When all differences are equal it is 0
        with p = 1 if they are zero, and infinite with p = 0 otherwise.

    Raises
    ------
    ValueError
        For lengths that differ, infinite values, fewer than two pairs.

    Notes
    -----
    Assumes a mean that is about normal, which 50 queries give for the usual metrics: on TREC
    score matrices its error rate is the nominal one and its power the best
    [urbano2019]_.

    Examples
    --------
    >>> test = paired_t_test([0.8, 0.6, 0.7, 0.9], [0.5, 0.6, 0.5, 0.8])
    >>> round(test.statistic, 4), round(test.p_value, 4)
    (2.3238, 0.1027)
    """
    pairs = _pairs("paired_t_test", a, b)
    d, n = pairs.d, len(pairs.d)
    if pairs.constant:
        statistic = float(np.sign(d[0])) * np.inf if d[0] else 0.0
        return PairedTest("t", statistic, 0.0 if d[0] else 1.0, n, pairs.n_skipped)
    from scipy.special import stdtr

    statistic = float(d.mean() / (d.std(ddof=1) / np.sqrt(n)))
    return PairedTest("t", statistic, float(2 * stdtr(n - 1, -abs(statistic))), n, pairs.n_skipped)


def randomization_test(
    a: ArrayLike, b: ArrayLike, *, n_resamples: int = 100_000, rng: Seed = 0
) -> PairedTest:
    r"""Fisher's randomization test: if the systems were exchangeable, every sign is a coin toss.

    .. math:: p = \Pr\Bigl(\bigl|\sum_i \sigma_i d_i\bigr| \ge \bigl|\sum_i d_i\bigr|\Bigr),
       \qquad \sigma_i = \pm 1 \text{ with equal chance}

    with :math:`d_i = a_i - b_i`. When at most 20 pairs differ, all sign patterns are listed and p
    is exact. Otherwise ``n_resamples`` patterns are drawn and
    :math:`p = (b + 1) / (n_{resamples} + 1)` with ``b`` patterns at least as extreme: the
    observed pattern is one of them, so p is never 0 and the test keeps its level
    [phipson2010]_.

    Parameters
    ----------
    a, b : array-like of shape (n_queries,)
        Per-query values of two systems; NaN skips the query.
    n_resamples : int
        Sign patterns to draw; the standard error of p is ``sqrt(p (1 - p) / n_resamples)``.
    rng : int, Generator or None
        Seed of the draw; equal seeds give equal results.

    Returns
    -------
    PairedTest
        ``statistic`` is the mean difference; ``n_resamples`` is None when p is exact.

    Raises
    ------
    ValueError
        For lengths that differ, infinite values, fewer than two pairs, ``n_resamples < 1``.

    Notes
    -----
    The recommended test for information retrieval [smucker2007]_. The sums of eight
    differences under all their 256 sign patterns are tabulated, so a random byte flips eight
    signs: O(n_queries * n_resamples / 8) time, O(n_resamples) memory.

    Examples
    --------
    >>> randomization_test([0.8, 0.6, 0.7, 0.9], [0.5, 0.6, 0.5, 0.8]).p_value
    0.25
    """
    where = "randomization_test"
    draws = int(_validate.number(where, "n_resamples", n_resamples, low=1, integer=True))
    pairs = _pairs(where, a, b)
    d, n = pairs.d, len(pairs.d)
    moving = d[d != 0]
    # Sums that tie in exact arithmetic differ by at most this: the rounding of each difference,
    # and of adding n of them in some order.
    slack = _EPS * (2 * n * pairs.magnitude + n * float(np.abs(d).sum()))
    least = abs(float(moving.sum())) - slack
    if len(moving) <= EXACT_PAIRS:
        # Turning all signs leaves |sum| as it is, so the first may stay.
        sums = moving[:1].sum() + _signed_sums(moving[1:])
        p_value, drawn = float(np.mean(np.abs(sums) >= least)), None
    else:
        sums = _random_signed_sums(moving, draws, np.random.default_rng(rng))
        hits = int(np.count_nonzero(np.abs(sums) >= least))
        p_value, drawn = (hits + 1) / (draws + 1), draws
    return PairedTest("randomization", float(d.mean()), p_value, n, pairs.n_skipped, drawn)


def _signed_sums(d: Floats) -> Floats:
    """``sum(sigma * d)`` for each of the ``2 ** len(d)`` sign patterns."""
    sums = np.zeros(1)
    for x in d:
        sums = np.concatenate([sums + x, sums - x])
    return sums


def _random_signed_sums(d: Floats, n_resamples: int, rng: np.random.Generator) -> Floats:
    """``sum(sigma * d)`` for random sign patterns, eight signs a byte."""
    padded = np.concatenate([d, np.zeros(-len(d) % 8)])
    sums = np.zeros(n_resamples)
    for eight in padded.reshape(-1, 8):
        patterns = rng.integers(0, 2**64, size=-(-n_resamples // 8), dtype=np.uint64)
        sums += _signed_sums(eight)[patterns.view(np.uint8)[:n_resamples]]
    return sums


def wilcoxon_test(a: ArrayLike, b: ArrayLike) -> PairedTest:
    """Wilcoxon's signed-rank test, by SciPy: are the ranks of wins and losses alike?

    Ties are dropped (``zero_method="wilcox"``). It judges ranks of differences, not their mean,
    and can reject where the mean difference is zero; the randomization test is the better
    choice [smucker2007]_.

    Parameters
    ----------
    a, b : array-like of shape (n_queries,)
        Per-query values of two systems; NaN skips the query.

    Returns
    -------
    PairedTest
        ``statistic`` is the smaller sum of ranks. Without a win or a loss, p = 1.

    Raises
    ------
    ValueError
        For lengths that differ, infinite values, fewer than two pairs.

    Examples
    --------
    >>> wilcoxon_test([0.8, 0.6, 0.7, 0.9], [0.5, 0.7, 0.5, 0.8]).p_value
    0.375
    """
    pairs = _pairs("wilcoxon_test", a, b)
    moving = pairs.d[pairs.d != 0]
    if len(moving) == 0:
        return PairedTest("wilcoxon", 0.0, 1.0, len(pairs.d), pairs.n_skipped)
    from scipy.stats import wilcoxon

    # On whole steps, absolute differences that are equal but for rounding share a rank.
    result = wilcoxon(np.rint(moving / (2.0**-40 * pairs.magnitude)))
    return PairedTest(
        "wilcoxon", float(result.statistic), float(result.pvalue), len(pairs.d), pairs.n_skipped
    )


def sign_test(a: ArrayLike, b: ArrayLike) -> PairedTest:
    r"""Sign test: are wins and losses equally likely?

    .. math:: p = \min\bigl(1,\ 2 \Pr(X \le \min(w, l))\bigr), \qquad X \sim B(w + l, 1/2)

    for ``w`` wins and ``l`` losses; ties are dropped. Exact, but blind to how large a win is.

    Parameters
    ----------
    a, b : array-like of shape (n_queries,)
        Per-query values of two systems; NaN skips the query.

    Returns
    -------
    PairedTest
        ``statistic`` is the number of wins. Without a win or a loss, p = 1.

    Raises
    ------
    ValueError
        For lengths that differ, infinite values, fewer than two pairs.

    Examples
    --------
    >>> sign_test([0.8, 0.6, 0.7, 0.9], [0.5, 0.5, 0.5, 0.8]).p_value
    0.125
    """
    from scipy.special import bdtr

    pairs = _pairs("sign_test", a, b)
    wins, losses = int((pairs.d > 0).sum()), int((pairs.d < 0).sum())
    p_value = min(1.0, 2 * float(bdtr(min(wins, losses), wins + losses, 0.5)))
    return PairedTest("sign", float(wins), p_value, len(pairs.d), pairs.n_skipped)


def effect_size(a: ArrayLike, b: ArrayLike) -> float:
    r"""Cohen's d of the paired differences: the mean gap in units of its spread over queries.

    .. math:: d_z = \bar d / s_d, \qquad d_i = a_i - b_i

    It does not grow with the number of queries (t is :math:`d_z \sqrt n`). About 0.2 is called
    small, 0.5 medium, 0.8 large [cohen1988]_.

    Parameters
    ----------
    a, b : array-like of shape (n_queries,)
        Per-query values of two systems; NaN skips the query.

    Returns
    -------
    float
        Positive when ``a`` is better; 0 when all differences are zero, infinite when they all
        have one other value.

    Raises
    ------
    ValueError
        For lengths that differ, infinite values, fewer than two pairs.

    Examples
    --------
    >>> round(effect_size([0.8, 0.6, 0.7, 0.9], [0.5, 0.6, 0.5, 0.8]), 4)
    1.1619
    """
    pairs = _pairs("effect_size", a, b)
    if pairs.constant:
        return float(np.sign(pairs.d[0])) * np.inf if pairs.d[0] else 0.0
    return float(pairs.d.mean() / pairs.d.std(ddof=1))


def win_tie_loss(a: ArrayLike, b: ArrayLike) -> WinTieLoss:
    """On how many queries ``a`` is better than ``b``, equal (within rounding) and worse.

    Parameters
    ----------
    a, b : array-like of shape (n_queries,)
        Per-query values of two systems; a pair with NaN counts nowhere.

    Returns
    -------
    WinTieLoss

    Raises
    ------
    ValueError
        For lengths that differ or infinite values.

    Examples
    --------
    >>> win_tie_loss([0.8, 0.6, 0.7, 0.1 + 0.2], [0.5, 0.7, 0.5, 0.3])
    WinTieLoss(wins=2, ties=1, losses=1)
    """
    d = _pairs("win_tie_loss", a, b, least=0).d
    return WinTieLoss(int((d > 0).sum()), int((d == 0).sum()), int((d < 0).sum()))


def t_interval(values: ArrayLike, *, confidence: float = 0.95) -> Interval:
    r"""Student's interval of a mean, :math:`\bar x \pm t_{n-1} s / \sqrt n`.

    Parameters
    ----------
    values : array-like of shape (n_queries,)
        One value per query; NaN skips the query. Pass ``a - b`` for the interval of a gap.
    confidence : float
        Nominal coverage, between 0 and 1.

    Returns
    -------
    Interval
        Symmetric, and for means near a bound of the metric it may pass the bound.

    Raises
    ------
    ValueError
        For infinite values, fewer than two values, a confidence outside (0, 1).

    Examples
    --------
    >>> interval = t_interval([0.2, 0.4, 0.5, 0.9])
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.0316, 0.9684)
    """
    where = "t_interval"
    level = _validate.fraction(where, "confidence", confidence)
    return _t(_values(where, values), level)


def bootstrap_interval(
    values: ArrayLike, *, confidence: float = 0.95, n_resamples: int = 9_999, rng: Seed = 0
) -> Interval:
    r"""Bootstrap interval of a mean, bias-corrected and accelerated (BCa) [efron1987]_.

    Queries are drawn with replacement ``n_resamples`` times; the interval runs between the
    quantiles :math:`\alpha(\pm z)` of the resampled means, with
    :math:`z = \Phi^{-1}((1 + confidence) / 2)` and

    .. math:: \alpha(z) = \Phi\Bigl(z_0 + \frac{z_0 + z}{1 - \hat a (z_0 + z)}\Bigr),\qquad
       z_0 = \Phi^{-1}\bigl(\Pr(\bar x^* < \bar x) + \tfrac12 \Pr(\bar x^* = \bar x)\bigr),\qquad
       \hat a = \frac{\sum_i (x_i - \bar x)^3}{6 \bigl(\sum_i (x_i - \bar x)^2\bigr)^{3/2}}.

    Parameters
    ----------
    values : array-like of shape (n_queries,)
        One value per query; NaN skips the query. Pass ``a - b`` for the interval of a gap.
    confidence : float
        Nominal coverage, between 0 and 1.
    n_resamples : int
        Resampled means.
    rng : int, Generator or None
        Seed of the draw; equal seeds give equal results.

    Returns
    -------
    Interval
        Inside the range of the values, and not symmetric where they are skewed. If all values
        are equal it is that one point. ``method`` is ``"bca"``, or ``"percentile"`` where BCa is
        undefined: every resampled mean on one side, or :math:`\hat a (z_0 + z) \ge 1`, which
        needs a confidence beyond 0.9999999 and extreme skewness.

    Raises
    ------
    ValueError
        For infinite values, fewer than two values, a confidence outside (0, 1).

    Notes
    -----
    Of few values a bootstrap sees too little of the tails: on TREC topics the interval of a mean
    difference covers about 92 % from 50 topics and 94 % from 100, where :func:`t_interval` covers
    about 94 and 95 %.

    O(n_queries * n_resamples). Equal to ``scipy.stats.bootstrap`` on the same resamples; written
    out because for a mean everything but the resampling has a closed form, and a table of
    intervals can share the resamples.

    Examples
    --------
    >>> interval = bootstrap_interval([0.1, 0.1, 0.2, 0.3, 0.9])
    >>> round(interval.low, 2), round(interval.high, 2), interval.method
    (0.14, 0.74, 'bca')
    """
    where = "bootstrap_interval"
    level = _validate.fraction(where, "confidence", confidence)
    draws = int(_validate.number(where, "n_resamples", n_resamples, low=1, integer=True))
    x = _values(where, values)
    return intervals(x[None], "bca", level, draws, rng)[0]


def _values(where: str, values: ArrayLike) -> Floats:
    x = _validate.per_query(where, "values", values)
    kept = x[~np.isnan(x)]
    if len(kept) < 2:
        raise ValueError(
            f"{where}: at least 2 queries must have a value, got {len(kept)} "
            f"({len(x)} queries, {len(x) - len(kept)} with NaN); evaluate on more queries"
        )
    return kept


def _t(x: Floats, confidence: float) -> Interval:
    from scipy.special import stdtrit

    n, mean = len(x), float(x.mean())
    half = float(stdtrit(n - 1, (1 + confidence) / 2) * x.std(ddof=1) / np.sqrt(n))
    return Interval(mean, mean - half, mean + half, confidence, "t", n)


def intervals(
    rows: Floats, method: str, confidence: float, n_resamples: int, rng: Seed
) -> list[Interval]:
    """The interval of each row of finite values, all of them from the same resamples.

    A row's interval does not depend, to the last bit, on which others are there.
    """
    if method == "t":
        return [_t(x, confidence) for x in rows]
    resampled = _resampled_means(rows, n_resamples, np.random.default_rng(rng))
    return [_bca(x, means, confidence) for x, means in zip(rows, resampled, strict=True)]


def _resampled_means(rows: Floats, n_resamples: int, rng: np.random.Generator) -> Floats:
    """Means of each row under resampling of the columns, shape (n_rows, n_resamples).

    A resample is a vector of counts, so many of them are one matrix product. The deviations from
    the mean are first rounded to a grid (2e-10 of the largest for a million columns) on which
    sums of n of them are exact: the means then depend neither on the order in which the product
    adds nor on the number of its threads.
    """
    n = rows.shape[1]
    centre = rows.mean(axis=1, keepdims=True)
    deviations = rows - centre
    largest = np.abs(deviations).max(axis=1, keepdims=True)
    exponent = np.ceil(np.log2(np.maximum(largest, 1e-300))) + np.ceil(np.log2(n)) - 52
    grid = np.exp2(np.maximum(exponent, -1000))
    steps = np.rint(deviations / grid)
    means = np.empty((len(rows), n_resamples))
    block = max(1, 2**20 // n)
    for start in range(0, n_resamples, block):
        size = min(block, n_resamples - start)
        drawn = rng.integers(0, n, size=(size, n))
        drawn += n * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)
        means[:, start : start + size] = steps @ counts.T.astype(np.float64)
    means *= grid / n
    means += centre
    # Rounding to the grid must not carry a mean out of the range of the values.
    return np.clip(means, rows.min(axis=1, keepdims=True), rows.max(axis=1, keepdims=True))


def _bca(x: Floats, resampled: Floats, confidence: float) -> Interval:
    """The interval from a sample and the means of its resamples."""
    from statistics import NormalDist

    n, mean = len(x), float(x.mean())
    if float(np.ptp(x)) <= 4 * _EPS * float(np.abs(x).max()):
        return Interval(mean, mean, mean, confidence, "bca", n)
    normal = NormalDist()
    deviation = x - mean
    # Resampled means that equal the mean, as far as the grid they were computed on can tell.
    slack = 1e-9 * float(np.abs(deviation).max())
    below = float(np.mean(resampled < mean - slack))
    share = below + 0.5 * float(np.mean(np.abs(resampled - mean) <= slack))
    tail = (1 - confidence) / 2
    levels = [tail, 1 - tail]
    method = "percentile"
    if 0 < share < 1:
        z0 = normal.inv_cdf(share)
        skew = float((deviation**3).sum() / (6 * (deviation**2).sum() ** 1.5))
        shifted = [z0 + normal.inv_cdf(level) for level in levels]
        if all(skew * z < 1 for z in shifted):
            levels = [normal.cdf(z0 + z / (1 - skew * z)) for z in shifted]
            method = "bca"
    low, high = np.quantile(resampled, levels)
    return Interval(mean, float(low), float(high), confidence, method, n)


def holm(p_values: ArrayLike) -> Floats:
    r"""Holm's adjusted p-values: the chance of even one false claim stays below the level.

    .. math:: \tilde p_{(i)} = \max_{j \le i} \min\bigl(1, (m - j + 1)\, p_{(j)}\bigr)

    for the m p-values in increasing order. Valid under any dependence, and never weaker than
    Bonferroni's [holm1979]_.

    Parameters
    ----------
    p_values : array-like of shape (n_tests,)
        Between 0 and 1; NaN (no test) stays NaN and does not count.

    Returns
    -------
    float64 array of shape (n_tests,)

    Raises
    ------
    ValueError
        For values outside [0, 1].

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03, 0.005])
    array([0.03, 0.06, 0.06, 0.02])
    """
    p = _validate.p_values("holm", p_values)

    def adjusted(increasing: Floats) -> Floats:
        return np.maximum.accumulate(increasing * np.arange(len(increasing), 0, -1))

    return _adjust(p, adjusted)


def benjamini_hochberg(p_values: ArrayLike) -> Floats:
    r"""Benjamini and Hochberg's adjusted p-values: the expected share of false claims.

    .. math:: \tilde p_{(i)} = \min_{j \ge i} \min\bigl(1, m\, p_{(j)} / j\bigr)

    for the m p-values in increasing order. Weaker than :func:`holm`: among the claims made at
    .05, one in twenty may be false. Valid for independent and positively dependent tests
    [benjamini1995]_.

    Parameters
    ----------
    p_values : array-like of shape (n_tests,)
        Between 0 and 1; NaN (no test) stays NaN and does not count.

    Returns
    -------
    float64 array of shape (n_tests,)

    Raises
    ------
    ValueError
        For values outside [0, 1].

    Examples
    --------
    >>> benjamini_hochberg([0.01, 0.04, 0.03, 0.005])
    array([0.02, 0.04, 0.04, 0.02])
    """
    p = _validate.p_values("benjamini_hochberg", p_values)

    def adjusted(increasing: Floats) -> Floats:
        m = len(increasing)
        decreasing: Floats = (increasing * m / np.arange(1, m + 1))[::-1]
        return np.ascontiguousarray(np.minimum.accumulate(decreasing)[::-1])

    return _adjust(p, adjusted)


def _adjust(p: Floats, adjust_sorted: Callable[[Floats], Floats]) -> Floats:
    adjusted = np.full(len(p), np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    adjusted[order] = np.minimum(1.0, adjust_sorted(p[order]))
    return adjusted


TESTS: dict[str, Callable[..., PairedTest]] = {
    "randomization": randomization_test,
    "t": paired_t_test,
    "wilcoxon": wilcoxon_test,
    "sign": sign_test,
}
CORRECTIONS: dict[str, Callable[[ArrayLike], Floats]] = {
    "holm": holm,
    "bh": benjamini_hochberg,
}
