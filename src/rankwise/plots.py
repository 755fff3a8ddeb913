"""Pictures of a comparison, as matplotlib figures.

* :func:`plot_means`: the mean of every system with its interval, a panel per metric.
* :func:`plot_differences`: how the difference to the baseline is spread over the queries.
* :func:`plot_depth`: a metric against the depth ``k``, from :func:`depth_curve`.
* :func:`plot_search`: the trials of a search for hyperparameters, from :func:`rankwise.tune`.
* :func:`plot_importance`, :func:`plot_dependence`, :func:`plot_mistakes`: what
  :mod:`rankwise.insight` and :mod:`rankwise.mistakes` found in a ranker.
* :func:`plot_experts`: what each rank list counts in a consensus
  (:class:`rankwise.RetargetedAggregation`).

Every function returns a ``matplotlib.figure.Figure`` and, given a ``path``, also writes it: PNG,
SVG or PDF by the suffix, under a temporary name first, so that a reader never meets half a file.
Nothing here touches pyplot, its current figure or matplotlib's settings, so it works without a
display and inside other people's figures. Colours are those of Okabe and Ito, which colour-blind
readers can tell apart; what colour says is also said by shape or words.

>>> import numpy as np, rankwise as rw
>>> rng = np.random.default_rng(0)
>>> query = rng.beta(2, 2, size=50)
>>> values = {"old": query, "new": np.clip(query + rng.normal(0.05, 0.1, 50), 0, 1)}
>>> figure = rw.plot_means(rw.compare({"ap": values}))
>>> [axes.get_title(loc="left") for axes in figure.axes]
['ap']
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import ArrayLike, NDArray

from rankwise import _validate
from rankwise._render import TEXT, wrap
from rankwise.comparison import Comparison, Gap, Result

if TYPE_CHECKING:
    from rankwise.data import Groups
    from rankwise.insight import Dependence, Importance
    from rankwise.metrics import Metric
    from rankwise.mistakes import QueryExplanation
    from rankwise.tuning import Tuned

Floats = NDArray[np.float64]

INK, MUTED, FAINT = "#222222", "#6b6b6b", "#e4e4e4"
BLUE, VERMILION = "#0072B2", "#D55E00"
OKABE_ITO = (BLUE, VERMILION, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C7A00")
MARKERS = "os^Dv<>P"
SUFFIXES = (".png", ".svg", ".pdf")


# ----------------------------------------------------------------------------------------- means


def plot_means(comparison: Comparison, *, path: str | os.PathLike[str] | None = None) -> Figure:
    """The mean of every system with its interval, a panel per metric.

    A filled blue disc is the best system (or the named baseline), an open circle one whose gap
    to it is not significant after correction, a filled grey square one whose gap is.

    Parameters
    ----------
    comparison : Comparison
    path : path-like, optional
        Where to save the figure: ``.png``, ``.svg`` or ``.pdf``.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        For a path with another suffix.
    OSError
        If the file cannot be written.
    """
    kind = file_kind(path)
    c = comparison
    n_columns = min(len(c.metrics), 4)
    n_rows = math.ceil(len(c.metrics) / n_columns)
    names = [_short(system) for system in c.systems]
    width = 0.085 * max(map(len, names)) + 0.2 + 2.35 * max(n_columns, 2)
    height = n_rows * (0.8 + 0.29 * len(names))
    legend = _legend_entries(c)
    stacked = width < 7  # inches, what the entries take side by side
    height += 0.5 + 0.2 * (len(legend) if stacked else 1)
    figure = Figure(figsize=(width, height), layout="constrained")
    grid = figure.subplots(n_rows, n_columns, sharey=True, squeeze=False)
    for axes, metric in zip(grid.flat, c.metrics, strict=False):
        _clean(axes, grid_axis="x")
        _means_panel(axes, c, metric)
        axes.set_title("\n".join(wrap(metric, 26)), fontsize=10, color=INK, loc="left")
        if axes not in grid[:, 0]:
            axes.tick_params(axis="y", length=0)
    for axes in grid.flat[len(c.metrics) :]:
        axes.remove()
    for axes in grid[:, 0]:
        axes.set_yticks(range(len(names)), names, fontsize=9, color=INK)
        axes.set_ylim(len(names) - 0.5, -0.5)
    covered = {r.n_queries for row in c.results.values() for r in row.values()}
    figure.legend(
        handles=legend,
        title=f"mean over {_span(covered)} of {c.n_queries:,} queries with its "
        f"{100 * c.confidence:g} % interval",
        title_fontsize=9,
        loc="outside lower center",
        ncols=1 if stacked else len(legend),
        frameon=False,
        fontsize=8.5,
        labelcolor=INK,
        handlelength=2.2,
    )
    return _saved(figure, path, kind)


def _means_panel(axes: Any, c: Comparison, metric: str) -> None:
    row = list(c.results[metric].values())
    limits = [x for r in row for x in (r.mean, r.interval.low, r.interval.high) if np.isfinite(x)]
    low, high = (min(limits), max(limits)) if limits else (0.0, 1.0)
    span = (high - low) or 0.1
    # Room on the right for the number beside each interval.
    axes.set_xlim(low - 0.06 * span, high + 0.36 * span)
    for y, result in enumerate(row):
        if not np.isfinite(result.mean):
            axes.text(low, y, "no value", va="center", fontsize=8, color=MUTED)
            continue
        look = _LOOKS[_verdict(c, metric, y, result)]
        # Caps taller than the mark of the mean, so that a short interval shows behind it.
        ends = [result.interval.low, result.interval.high]
        axes.plot(ends, [y, y], color=look["color"], lw=1.4, marker="|", ms=9, mew=1.2)
        axes.plot([result.mean], [y], ls="", **look)
        right = np.nanmax([result.interval.high, result.mean])
        axes.annotate(
            TEXT.number(result.mean),
            (right, y),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=INK,
        )
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))


_DISC = {"marker": "o", "ms": 5, "color": BLUE, "mec": BLUE, "mew": 1.2, "zorder": 3}
_LOOKS: dict[str, dict[str, Any]] = {
    "baseline": _DISC,
    "alike": {**_DISC, "mfc": "white"},
    "different": {**_DISC, "marker": "s", "ms": 4.2, "color": MUTED, "mec": MUTED},
}


def _verdict(c: Comparison, metric: str, position: int, result: Result) -> str:
    if c.systems[position] == c.baseline_of(metric):
        return "baseline"
    if result.gap is not None and result.gap.p_corrected < 1 - c.confidence:
        return "different"
    return "alike"


def _legend_entries(c: Comparison) -> list[Line2D]:
    best = "best" if c.baseline == "best" else f"baseline: {_short(c.baseline)}"
    p = f"{'corrected p' if c.correction else 'p'} < {TEXT.number(1 - c.confidence, 2)}"
    labels = {"baseline": best}
    if len(c.systems) > 1:
        labels |= {"alike": "gap to it not significant", "different": f"gap significant ({p})"}
    return [
        Line2D([], [], ls="-", lw=1.4, label=label, **_LOOKS[verdict])
        for verdict, label in labels.items()
    ]


def _span(counts: set[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


# ----------------------------------------------------------------------------------- differences


def plot_differences(
    comparison: Comparison,
    *,
    metric: str | None = None,
    systems: Sequence[str] | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Per-query differences to the baseline, sorted, a panel per system.

    Shows what the mean hides: whether a gap comes from many queries or a few. The line is the
    mean difference, the band its interval.

    Parameters
    ----------
    comparison : Comparison
    metric : str, optional
        One of ``comparison.metrics``; the first unless given.
    systems : sequence of str, optional
        The systems to show; all but the baseline unless given.
    path : path-like, optional
        Where to save the figure: ``.png``, ``.svg`` or ``.pdf``.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        For an unknown metric or system, the baseline itself, a comparison without a second
        system, or a path with another suffix.
    OSError
        If the file cannot be written.
    """
    kind = file_kind(path)
    c = comparison
    chosen = c.metrics[0] if metric is None else metric
    baseline = c.baseline_of(chosen)
    gaps = _chosen_gaps(c, chosen, systems)
    # As square as possible, at most four to a row.
    n_columns = min(math.ceil(math.sqrt(len(gaps))) + (len(gaps) in (3, 7, 8)), 4)
    n_rows = math.ceil(len(gaps) / n_columns)
    width, height = max(2.6 * n_columns, 4.5) + 0.4, 2.1 * n_rows + 0.9
    figure = Figure(figsize=(width, height), layout="constrained")
    grid = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
    against = c.per_query[chosen][baseline] if baseline else np.empty(0)
    for axes, (system, gap) in zip(grid.flat, gaps.items(), strict=False):
        d = c.per_query[chosen][system] - against
        _clean(axes, grid_axis="y")
        _differences_panel(axes, np.sort(d[~np.isnan(d)])[::-1], gap)
        axes.set_title(_short(system), fontsize=10, color=INK, loc="left")
    for axes in grid.flat[len(gaps) :]:
        axes.remove()
    for axes in grid.flat[max(len(gaps) - n_columns, 0) : len(gaps)]:
        axes.tick_params(axis="x", labelbottom=True)  # also where the panel below is missing
    up = f"{chosen}: system minus {_short(str(baseline))}"
    along = (
        "% of the queries, from the largest win to the largest loss; "
        f"line: mean difference, band: its {100 * c.confidence:g} % interval"
    )
    figure.supylabel(_filled(up, height), fontsize=9, color=MUTED)
    figure.supxlabel(_filled(along, width), fontsize=9, color=MUTED)
    return _saved(figure, path, kind)


def _chosen_gaps(c: Comparison, metric: str, systems: Sequence[str] | None) -> dict[str, Gap]:
    where = "plot_differences"
    baseline = c.baseline_of(metric)
    gaps = {s: r.gap for s, r in c.results[metric].items() if r.gap is not None}
    if not gaps:
        raise ValueError(
            f"{where}: the comparison must hold a system beside the baseline with values under "
            f"{metric!r}, got {len(c.systems)} system{'s' * (len(c.systems) != 1)}"
        )
    if systems is None:
        return gaps
    if isinstance(systems, str) or not systems:
        raise ValueError(f"{where}: systems must be a list of names, got {systems!r}")
    for system in systems:
        if system == baseline:
            raise ValueError(f"{where}: systems must not name the baseline itself, got {system!r}")
        if system not in gaps:
            raise _validate.unknown("system", system, gaps)
    return {system: gaps[system] for system in systems}


def _differences_panel(axes: Any, d: Floats, gap: Gap) -> None:
    edges = 100 * np.arange(len(d) + 1) / max(len(d), 1)
    for part, colour in ((np.maximum(d, 0), BLUE), (np.minimum(d, 0), VERMILION)):
        axes.stairs(part, edges, fill=True, color=colour, lw=0)
    axes.axhline(0, color=INK, lw=0.8)
    if np.isfinite(gap.interval.low):
        axes.axhspan(gap.interval.low, gap.interval.high, color=INK, alpha=0.18, lw=0)
    if np.isfinite(gap.mean):
        axes.axhline(gap.mean, color=INK, lw=1.1, ls=(0, (4, 2)))
    axes.set_xlim(0, 100)
    axes.set_xticks([0, 25, 50, 75, 100])
    corners = (
        (0.97, 0.96, "right", "top", f"{gap.wins:,} better", BLUE),
        (0.97, 0.86, "right", "top", f"{gap.ties:,} equal", MUTED),
        (0.03, 0.04, "left", "bottom", f"{gap.losses:,} worse", VERMILION),
    )
    for x, y, ha, va, words, colour in corners:
        axes.text(x, y, words, ha=ha, va=va, fontsize=8.5, color=colour, transform=axes.transAxes)


# ----------------------------------------------------------------------------------------- depth


@dataclass(frozen=True, eq=False)
class DepthCurve:
    """A system's mean under a metric cut at several depths.

    Attributes
    ----------
    metric : str
        Without the cut, such as ``"ndcg"``.
    depths : int64 array of shape (n_depths,)
        Increasing.
    means : float64 array of shape (n_depths,)
        NaN where no query has a value.
    n_queries : int
        Queries the means cover (at the largest depth).
    """

    metric: str
    depths: NDArray[np.int64]
    means: Floats
    n_queries: int


def depth_curve(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: ArrayLike | Groups,
    metric: str | Metric = "ndcg",
    depths: Iterable[int] = range(1, 21),
) -> DepthCurve:
    """The mean of ``metric @ k`` for each depth ``k``, from one ranking of the documents.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_docs,)
        Labels and scores, as for every metric.
    qid : array-like of shape (n_docs,) or Groups
    metric : str or Metric
        A metric that takes a cut; a cut it already has is replaced.
    depths : iterable of int
        Positive and increasing.

    Returns
    -------
    DepthCurve

    Raises
    ------
    ValueError
        For depths that are not positive and increasing, and what the metric refuses.

    Examples
    --------
    >>> import rankwise as rw
    >>> labels, scores, qid = [0, 1, 1], [3, 2, 1], [7, 7, 7]
    >>> rw.depth_curve(labels, scores, qid=qid, metric="recall", depths=[1, 2, 3]).means
    array([0. , 0.5, 1. ])
    """
    from rankwise.metrics import evaluate, parse_metric

    ks = np.asarray(list(depths))
    if (
        ks.ndim != 1
        or not len(ks)
        or ks.dtype.kind not in "iu"
        or (np.diff(ks, prepend=0) < 1).any()
    ):
        raise ValueError(
            "depth_curve: depths must be increasing integers of at least 1, "
            f"got {ks.tolist()[:5]!r}{'...' if len(ks) > 5 else ''}"
        )
    chosen = parse_metric(metric)
    per_query = list(evaluate([chosen @ int(k) for k in ks], y_true, y_score, qid=qid).values())
    counts = [int(np.count_nonzero(~np.isnan(x))) for x in per_query]
    means = [np.nansum(x) / n if n else np.nan for x, n in zip(per_query, counts, strict=True)]
    # The text of a metric ends in its cut; the curve is about the metric without one.
    name = str(chosen @ int(ks[0])).rsplit("@", 1)[0]
    return DepthCurve(name, ks.astype(np.int64), np.array(means), counts[-1])


def plot_depth(
    curves: Mapping[str, DepthCurve], *, path: str | os.PathLike[str] | None = None
) -> Figure:
    """A metric against the depth ``k``, a line per system, each named at its end.

    Parameters
    ----------
    curves : mapping of system to DepthCurve
        Of one metric; made by :func:`depth_curve`.
    path : path-like, optional
        Where to save the figure: ``.png``, ``.svg`` or ``.pdf``.

    Returns
    -------
    matplotlib.figure.Figure
        With a logarithmic axis where the depths span more than a factor of 50.

    Raises
    ------
    ValueError
        For no curve, curves of different metrics, or a path with another suffix.
    OSError
        If the file cannot be written.
    """
    where = "plot_depth"
    kind = file_kind(path)
    if not curves:
        raise ValueError(f"{where}: at least one curve is needed, got none")
    metrics = sorted({curve.metric for curve in curves.values()})
    if len(metrics) > 1:
        raise ValueError(f"{where}: all curves must be of one metric, got {', '.join(metrics)}")
    height = max(3.6, 0.24 * len(curves) + 1.2)
    widest = max(len(_short(system)) for system in curves)
    figure = Figure(figsize=(5.6 + 0.085 * widest, height), layout="constrained")
    axes = figure.subplots()
    _clean(axes, grid_axis="both")
    for i, curve in enumerate(curves.values()):
        # Few enough markers that the lines stay visible, and not all at the same depths.
        step = max(1, len(curve.depths) // 8)
        axes.plot(
            curve.depths,
            curve.means,
            color=OKABE_ITO[i % len(OKABE_ITO)],
            marker=MARKERS[i % len(MARKERS)],
            ls="-" if i < len(OKABE_ITO) else "--",
            markevery=(i % step, step),
            ms=4.5,
            lw=1.6,
        )
    first = min(int(curve.depths[0]) for curve in curves.values())
    last = max(int(curve.depths[-1]) for curve in curves.values())
    if last / first > 50:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        pad = 0.02 * max(last - first, 1)
        axes.set_xlim(first - pad, last + pad)
    axes.set_xlabel("depth k", fontsize=9, color=MUTED)
    covered = _span({curve.n_queries for curve in curves.values()})
    up = f"{metrics[0]}@k, mean over {covered} queries"
    axes.set_ylabel(_filled(up, height), fontsize=9, color=MUTED)
    _end_labels(figure, axes, curves)
    return _saved(figure, path, kind)


def _end_labels(figure: Figure, axes: Any, curves: Mapping[str, DepthCurve]) -> None:
    """The name of each line to the right of its end, moved apart where lines end close together."""
    ends = {
        system: float(curve.means[-1])
        for system, curve in curves.items()
        if np.isfinite(curve.means[-1])
    }
    low, high = axes.get_ylim()
    order = sorted(ends, key=lambda s: ends[s])
    wanted = np.array([(ends[s] - low) / (high - low) for s in order])
    line = 0.155 / (figure.get_figheight() - 0.7)
    places = _spread(wanted, line)
    colours = {s: OKABE_ITO[i % len(OKABE_ITO)] for i, s in enumerate(curves)}
    ranks = {s: int(curve.depths[-1]) for s, curve in curves.items()}
    for system, place in zip(order, places, strict=True):
        axes.annotate(
            _short(system),
            (ranks[system], ends[system]),
            xytext=(1.04, place),
            textcoords="axes fraction",
            va="center",
            fontsize=9,
            color=colours[system],
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colours[system],
                "lw": 0.7,
                "relpos": (0, 0.5),
                "shrinkA": 1,
                "shrinkB": 3,
            },
        )


def _spread(wanted: Floats, least: float) -> Floats:
    """Increasing places as near as possible (least squares) to those wanted, ``least`` apart.

    With ``least * i`` taken off, that is isotonic regression: pool neighbours that violate it.
    """
    pools: list[list[float]] = []
    for i, x in enumerate(wanted):
        pools.append([x - least * i])
        while len(pools) > 1 and np.mean(pools[-2]) >= np.mean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    flat = [float(np.mean(pool)) for pool in pools for _ in pool]
    return np.array([x + least * i for i, x in enumerate(flat)])


# ---------------------------------------------------------------------------------------- search

_PANELS = 8  # parameters shown at most


def plot_search(tuned: Tuned, *, path: str | os.PathLike[str] | None = None) -> Figure:
    """The trials of a search: their values in order, then against each parameter that varied.

    Grey discs are trials, the blue one is the best with its interval; the line of the first panel
    is the best value so far.

    Parameters
    ----------
    tuned : Tuned
        Made by :func:`rankwise.tune`.
    path : path-like, optional
        Where to save the figure: ``.png``, ``.svg`` or ``.pdf``.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        For a path with another suffix.
    OSError
        If the file cannot be written.
    """
    kind = file_kind(path)
    trials = [t for t in tuned.trials if np.isfinite(t.value)]
    varied = [n for n in tuned.space if len({repr(t.params[n]) for t in trials}) > 1][:_PANELS]
    n_columns = min(3, 1 + len(varied))
    n_rows = math.ceil((1 + len(varied)) / n_columns)
    figure = Figure(figsize=(0.6 + 3.1 * n_columns, 0.5 + 2.5 * n_rows), layout="constrained")
    grid = figure.subplots(n_rows, n_columns, sharey=True, squeeze=False)
    values = np.array([t.value for t in trials])
    panels: list[tuple[str, list[Any]]] = [("trial", [t.number for t in trials])]
    panels += [(name, [t.params[name] for t in trials]) for name in varied]
    for axes, (name, at) in zip(grid.flat, panels, strict=False):
        _clean(axes, grid_axis="y")
        places = _places(axes, at, getattr(tuned.space.get(name), "log", False))
        axes.plot(places, values, "o", ms=4.5, mfc=FAINT, mec=MUTED, mew=0.8, ls="")
        best = [i for i, t in enumerate(trials) if t.number == tuned.best.number]
        if tuned.interval is not None:
            low, high = tuned.interval.low, tuned.interval.high
            axes.vlines(places[best], low, high, color=BLUE, lw=1.2)
        axes.plot(places[best], values[best], "o", ms=6.5, color=BLUE)
        axes.set_xlabel(name, fontsize=9, color=MUTED)
    grid.flat[0].step(panels[0][1], np.maximum.accumulate(values), where="post", color=BLUE, lw=1.2)
    grid.flat[0].xaxis.set_major_locator(MaxNLocator(integer=True))
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    for axes in grid[:, 0]:
        axes.set_ylabel(
            _filled(f"{tuned.metric} on {tuned.n_queries:,} validation queries", 2.2),
            fontsize=9,
            color=MUTED,
        )
    figure.suptitle(_short(tuned.ranker, 40 * n_columns), fontsize=10, color=INK, x=0.02, ha="left")
    return _saved(figure, path, kind)


def _places(axes: Any, values: list[Any], log: bool) -> Floats:
    """Where values stand on the horizontal axis: numbers as they are, others one tick each."""
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    if not numbers:
        kinds = list(dict.fromkeys(map(str, values)))
        axes.set_xticks(range(len(kinds)), [_short(k, 18) for k in kinds], rotation=20)
        axes.set_xlim(-0.5, len(kinds) - 0.5)
        return np.array([float(kinds.index(str(v))) for v in values])
    places = np.array(values, dtype=np.float64)
    if log or (places.min() > 0 and places.max() / places.min() > 50):
        axes.set_xscale("log")
        if places.max() / places.min() < 50:
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
            axes.xaxis.set_minor_locator(NullLocator())
    return places


# --------------------------------------------------------------------------------------- insight

_BARS = 25  # features shown at most


def plot_importance(
    importance: Importance, *, path: str | os.PathLike[str] | None = None
) -> Figure:
    """How much the metric falls when each feature is shuffled, with its interval.

    A filled blue disc is a feature whose interval lies above 0, an open circle one whose does not.

    Parameters
    ----------
    importance : Importance
        Made by :func:`rankwise.permutation_importance`; its first 25 features are shown.
    path : path-like, optional
        Where to save the figure: ``.png``, ``.svg`` or ``.pdf``.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        For a path with another suffix.
    OSError
        If the file cannot be written.
    """
    kind = file_kind(path)
    n = min(len(importance.names), _BARS)
    names = [_short(name) for name in importance.names[:n]]
    figure = Figure(figsize=(1.2 + 0.085 * max(map(len, names)) + 4, 1.1 + 0.27 * n))
    figure.set_layout_engine("constrained")
    axes = figure.subplots()
    _clean(axes, grid_axis="x")
    axes.axvline(0, color=MUTED, lw=0.8)
    for y, (drop, interval) in enumerate(
        zip(importance.drops[:n], importance.intervals[:n], strict=True)
    ):
        sure = interval.low > 0
        color = BLUE if sure else MUTED
        axes.plot([interval.low, interval.high], [y, y], color=color, lw=1.4, marker="|", ms=8)
        axes.plot([drop], [y], "o", ms=6, mec=color, mfc=color if sure else "white", ls="")
    axes.set_yticks(range(n), names, fontsize=9, color=INK)
    axes.set_ylim(n - 0.5, -0.5)
    where = "inside each query" if importance.within == "query" else "over all documents"
    axes.set_xlabel(
        f"fall of {importance.metric} when shuffled {where}, "
        f"{100 * importance.confidence:g} % interval over {importance.n_queries:,} queries",
        fontsize=9,
        color=MUTED,
    )
    return _saved(figure, path, kind)


def plot_experts(
    aggregation: Any,
    *,
    names: Sequence[str] | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """The weight of every rank list in a consensus, the heaviest first.

    A filled blue disc is a list that is kept, an open circle one whose chance to be of use is below
    one half; a vermilion square counts against itself (a reversed list).

    Parameters
    ----------
    aggregation : RetargetedAggregation
        Fitted.
    names : sequence of str, optional
        One per list; ``list 1``, ``list 2``, ... unless given.
    path : path-like, optional
        Where to save the figure: ``.png``, ``.svg`` or ``.pdf``.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If there are not as many names as lists, or for a path with another suffix.
    OSError
        If the file cannot be written.
    """
    kind = file_kind(path)
    weights, keep = aggregation.expert_weights_, aggregation.keep_
    if names is None:
        names = [f"list {j + 1}" for j in range(len(weights))]
    if len(names) != len(weights):
        raise ValueError(
            f"plot_experts: names must hold one name per list, got {len(names)} for {len(weights)}"
        )
    order = np.argsort(-weights, kind="stable")
    labels = [_short(str(names[j])) for j in order]
    size = 1.2 + 0.085 * max(map(len, labels)) + 4, 1.1 + 0.27 * len(order)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    _clean(axes, grid_axis="x")
    axes.axvline(0, color=MUTED, lw=0.8)
    for y, j in enumerate(order):
        used, reversed_ = keep[j] >= 0.5, weights[j] < 0
        color = VERMILION if reversed_ else BLUE if used else MUTED
        axes.plot([0, weights[j]], [y, y], color=color, lw=1.4)
        marker = "s" if reversed_ else "o"
        axes.plot([weights[j]], [y], marker, ms=6, mec=color, mfc=color if used else "white")
    axes.set_yticks(range(len(order)), labels, fontsize=9, color=INK)
    axes.set_ylim(len(order) - 0.5, -0.5)
    axes.set_xlabel(
        "weight of a standardised place in the consensus; open: chance to be of use below 1/2",
        fontsize=9,
        color=MUTED,
    )
    return _saved(figure, path, kind)


def plot_dependence(
    dependence: Dependence, *, path: str | os.PathLike[str] | None = None
) -> Figure:
    """The score as a function of one feature, with the band that 80 % of the documents lie in.

    Parameters
    ----------
    dependence : Dependence
        Made by :func:`rankwise.partial_dependence`.
    path : path-like, optional
        Where to save the figure: ``.png``, ``.svg`` or ``.pdf``.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        For a path with another suffix.
    OSError
        If the file cannot be written.
    """
    kind = file_kind(path)
    d = dependence
    figure = Figure(figsize=(5.2, 3.4), layout="constrained")
    axes = figure.subplots()
    _clean(axes, grid_axis="y")
    axes.fill_between(d.values, d.low, d.high, color=FAINT, lw=0)
    axes.plot(d.values, d.scores, color=BLUE, lw=1.6, marker="o", ms=3.5)
    if d.missing is not None:
        axes.axhline(d.missing, color=VERMILION, lw=1.2, ls="--")
        axes.annotate(
            "missing", (1, d.missing), xycoords=("axes fraction", "data"), xytext=(-2, 3),
            textcoords="offset points", ha="right", fontsize=8.5, color=VERMILION,
        )  # fmt: skip
    axes.set_xlabel(_short(d.name, 60), fontsize=9, color=MUTED)
    what = "score relative to the mean of the query" if d.centred else "score"
    axes.set_ylabel(what, fontsize=9, color=MUTED)
    axes.set_title(
        f"mean over {d.n_docs:,} documents, band of 80 %", fontsize=9, color=MUTED, loc="left"
    )
    return _saved(figure, path, kind)


def plot_mistakes(
    explanation: QueryExplanation, *, path: str | os.PathLike[str] | None = None
) -> Figure:
    """The largest mistakes of a query and the features that pushed them, a panel per pair.

    Bars to the right (vermilion) pushed the worse document up, bars to the left (blue) held it
    down; they sum to the score gap.

    Parameters
    ----------
    explanation : QueryExplanation
        Made by :func:`rankwise.explain_query`, with at least one pair.
    path : path-like, optional
        Where to save the figure: ``.png``, ``.svg`` or ``.pdf``.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        For a query without mistakes, or a path with another suffix.
    OSError
        If the file cannot be written.
    """
    kind = file_kind(path)
    pairs = explanation.pairs[:_PANELS]
    if not pairs:
        raise ValueError(
            f"plot_mistakes: query {explanation.query} must hold a pair in the wrong order that is "
            "listed, got none"
        )
    heights = [len(p.pushes) + 1 for p in pairs]
    figure = Figure(figsize=(7, 0.95 * len(pairs) + 0.24 * sum(heights)), layout="constrained")
    grid = figure.subplots(len(pairs), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
    for axes, p in zip(grid[:, 0], pairs, strict=True):
        _clean(axes, grid_axis="x")
        names = [_short(f.name) for f in p.pushes] + ["all else"]
        amounts = [f.amount for f in p.pushes] + [p.rest]
        colors = [VERMILION if a > 0 else BLUE for a in amounts]
        axes.barh(range(len(names)), amounts, color=colors, height=0.62)
        axes.axvline(0, color=MUTED, lw=0.8)
        axes.set_yticks(range(len(names)), names, fontsize=8.5, color=INK)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_title(
            f"{_short(p.worse_doc)} (label {p.worse_label:g}, rank {p.worse_rank}) above "
            f"{_short(p.better_doc)} (label {p.better_label:g}, rank {p.better_rank})\n"
            f"cost {p.cost:.4f}, score gap {p.gap:.4g}",
            fontsize=9,
            color=INK,
            loc="left",
        )
    grid[-1, 0].set_xlabel("part of the score gap", fontsize=9, color=MUTED)
    figure.suptitle(
        f"query {explanation.query}: {explanation.metric} {explanation.value:.4f}",
        fontsize=10,
        color=INK,
        x=0.02,
        ha="left",
    )
    return _saved(figure, path, kind)


# ---------------------------------------------------------------------------------------- shared


def _clean(axes: Any, *, grid_axis: str) -> None:
    """Light axes: no box, faint grid behind the data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(MUTED)
    axes.grid(axis=grid_axis, color=FAINT, lw=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8.5, color=MUTED, labelcolor=MUTED, length=3)


def _short(name: str, width: int = 28) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}…"


def _filled(words: str, inches: float) -> str:
    """Text of 9 points broken into lines that fit a length."""
    return "\n".join(wrap(words, int(inches / 0.08)))


def file_kind(path: str | os.PathLike[str] | None) -> str:
    """The format a path asks for, checked before anything is drawn."""
    if path is None:
        return ""
    suffix = Path(path).suffix
    if suffix.lower() not in SUFFIXES:
        raise ValueError(
            f"{Path(path)}: a figure's file must end in .png, .svg or .pdf, got {suffix!r}"
        )
    return suffix.lower()[1:]


def _saved(figure: Figure, path: str | os.PathLike[str] | None, kind: str) -> Figure:
    if path is None:
        return figure
    target = Path(path)
    drawn = io.BytesIO()
    figure.savefig(drawn, format=kind, dpi=160, facecolor="white")
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        unfinished.write_bytes(drawn.getvalue())
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
    return figure
