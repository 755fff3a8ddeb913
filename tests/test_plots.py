"""The pictures: what they show, that nothing overlaps, and that they leave no trace."""

from __future__ import annotations

import itertools
import pathlib
import subprocess
import sys
import warnings

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

import rankwise as rw
from rankwise import plots

SYSTEMS = (
    "random",
    "pointwise linear",
    "RankNet linear",
    "ListNet linear",
    "RankSVM",
    "pointwise trees",
    "LambdaMART",
    "LambdaMART, deeper trees",
)


@pytest.fixture(scope="module")
def table():
    """Eight systems, four metrics; the last two systems nearly alike."""
    rng = np.random.default_rng(0)
    query = rng.normal(0, 0.15, 120)
    shifts = (-0.4, 0, 0, 0.01, 0.01, 0.1, 0.15, 0.152)
    values = {
        metric: {
            system: np.clip(0.6 + shift + query + rng.normal(0, 0.1, 120), 0, 1)
            for system, shift in zip(SYSTEMS, shifts, strict=True)
        }
        for metric in ("ndcg@5", "ndcg(gain='identity',discount='letor')@10", "ap", "rr")
    }
    for row in values.values():
        for x in row.values():
            x[:7] = np.nan
    return rw.compare(values, test="t", interval="t")


@pytest.fixture(scope="module")
def curves():
    queries = rw.make_queries(n_queries=60)
    rng = np.random.default_rng(0)
    return {
        system: rw.depth_curve(
            queries.y,
            queries.y + rng.normal(0, noise, queries.n_docs),
            qid=queries.groups,
            depths=range(1, 16),
        )
        # Several lines end within a hair of each other.
        for system, noise in zip(SYSTEMS, (9, 1.2, 1.2, 1.21, 1.2, 1, 0.8, 0.3), strict=True)
    }


def drawn_texts(figure: Figure):
    """Every text that is really drawn (not the ticks beyond an axis), with its box in pixels."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # settles the layout
    drawn = []
    with pytest.MonkeyPatch.context() as patch:
        plain = Text.draw
        patch.setattr(Text, "draw", lambda self, r: (drawn.append(self), plain(self, r)))
        canvas.draw()
    renderer = canvas.get_renderer()
    return [
        (t.get_text(), Text.get_window_extent(t, renderer))
        for t in dict.fromkeys(drawn)
        if t.get_visible() and t.get_text().strip()
    ]


def assert_legible(figure: Figure):
    texts = drawn_texts(figure)
    width, height = figure.canvas.get_width_height()
    for words, box in texts:
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1
        assert inside, f"{words!r} leaves the figure"
    for (one, a), (other, b) in itertools.combinations(texts, 2):
        # Half a pixel of shared border is no overlap.
        apart = a.x1 <= b.x0 + 0.5 or b.x1 <= a.x0 + 0.5 or a.y1 <= b.y0 + 0.5 or b.y1 <= a.y0 + 0.5
        assert apart, f"{one!r} and {other!r} overlap"


# ------------------------------------------------------------------------------------------ means


def test_means_have_a_panel_per_metric_and_a_row_per_system(table):
    figure = rw.plot_means(table)
    assert [axes.get_title(loc="left").replace("\n", "") for axes in figure.axes] == list(
        table.metrics
    )
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == list(SYSTEMS)
    assert_legible(figure)


def test_means_draw_the_numbers_of_the_comparison(table):
    figure = rw.plot_means(table)
    for axes, row in zip(figure.axes, table.results.values(), strict=True):
        lines = [line for line in axes.lines if len(line.get_xdata()) == 2]
        dots = [line for line in axes.lines if len(line.get_xdata()) == 1]
        for result, line, dot in zip(row.values(), lines, dots, strict=True):
            assert tuple(line.get_xdata()) == (result.interval.low, result.interval.high)
            assert dot.get_xdata()[0] == result.mean
        low, high = axes.get_xlim()
        assert all(low < r.interval.low and r.interval.high < high for r in row.values())


def test_shape_tells_what_is_significant(table):
    axes = rw.plot_means(table).axes[0]
    dots = [line for line in axes.lines if len(line.get_xdata()) == 1]
    best = table.baseline_of("ndcg@5")
    for (system, result), dot in zip(table.results["ndcg@5"].items(), dots, strict=True):
        filled = dot.get_markerfacecolor() != "white"
        if system == best:
            assert (dot.get_marker(), filled) == ("o", True)
        elif result.gap.p_corrected < 0.05:
            assert (dot.get_marker(), filled) == ("s", True)
        else:
            assert (dot.get_marker(), filled) == ("o", False)


def test_means_of_odd_comparisons():
    one = rw.plot_means(rw.compare({"ap": {"a": [0.1, 0.2, 0.4]}}, interval="t"))
    assert_legible(one)
    equal = rw.plot_means(rw.compare({"ap": {"a": [1, 1, 1], "b": [1, 1, 1]}}, interval="t"))
    assert_legible(equal)
    nothing = rw.plot_means(rw.compare({"ap": {"a": [np.nan] * 3, "b": [np.nan] * 3}}))
    assert [words for words, _ in drawn_texts(nothing)].count("no value") == 2
    single = rw.compare({"ap": {"a": [0.4, np.nan], "b": [0.3, np.nan]}})
    assert ".400" in [words for words, _ in drawn_texts(rw.plot_means(single))]
    many = rw.compare({f"m{i}": {"a": [0.1, 0.3], "b": [0.2, 0.3]} for i in range(6)}, interval="t")
    figure = rw.plot_means(many)
    assert len(figure.axes) == 6
    assert_legible(figure)


# ------------------------------------------------------------------------------------ differences


def test_differences_are_sorted_and_complete(table):
    figure = rw.plot_differences(table, metric="ap")
    best = table.baseline_of("ap")
    others = [s for s in SYSTEMS if s != best]
    assert [axes.get_title(loc="left") for axes in figure.axes] == others
    for axes, system in zip(figure.axes, others, strict=True):
        d = table.per_query["ap"][system] - table.per_query["ap"][best]
        gains, losses = (patch.get_data().values for patch in axes.patches[:2])
        np.testing.assert_array_equal(gains + losses, np.sort(d[7:])[::-1])
        gap = table.results["ap"][system].gap
        words = {text.get_text() for text in axes.texts}
        assert words == {f"{gap.wins} better", f"{gap.ties} equal", f"{gap.losses} worse"}
    assert_legible(figure)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_any_number_of_panels_is_legible(table, n):
    best = table.baseline_of("rr")
    systems = [s for s in SYSTEMS if s != best][:n]
    figure = rw.plot_differences(table, metric="rr", systems=systems)
    assert len(figure.axes) == n
    assert_legible(figure)


def test_differences_say_what_is_wrong(table):
    best = table.baseline_of("ndcg@5")
    for arguments, sentence in (
        ({"metric": "map"}, "unknown metric 'map'; known: ap,"),
        ({"systems": ["ranksvn"]}, r"unknown system 'ranksvn'; .*did you mean 'RankSVM'\?"),
        ({"systems": [best]}, "systems must not name the baseline itself"),
        ({"systems": []}, "systems must be a list of names, got"),
        ({"systems": "RankSVM"}, "systems must be a list of names, got 'RankSVM'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            rw.plot_differences(table, **arguments)
    alone = rw.compare({"ap": {"a": [0.1, 0.2]}}, interval="t")
    with pytest.raises(ValueError, match="must hold a system beside the baseline"):
        rw.plot_differences(alone)


# ------------------------------------------------------------------------------------------ depth


def test_depth_curve_is_the_metric_at_every_depth():
    queries = rw.make_queries(n_queries=40)
    score = queries.X[:, 0]
    depths = [1, 3, 10, 50]
    for metric in ("ndcg", "precision", "ndcg(gain='identity')", "ndcg@7"):
        curve = rw.depth_curve(queries.y, score, qid=queries.qid, metric=metric, depths=depths)
        chosen = rw.parse_metric(metric)
        for k, mean in zip(depths, curve.means, strict=True):
            values = (chosen @ k).per_query(queries.y, score, qid=queries.qid)
            assert mean == pytest.approx(np.nanmean(values), rel=1e-12)
        assert curve.n_queries == np.count_nonzero(~np.isnan(values))
        assert curve.metric == metric.removesuffix("@7")


def test_depth_curve_without_relevant_documents():
    curve = rw.depth_curve([0, 0], [1, 2], qid=[1, 1], depths=[1, 2])
    assert np.isnan(curve.means).all()
    assert curve.n_queries == 0
    assert isinstance(rw.plot_depth({"a": curve}), Figure)


@pytest.mark.parametrize("depths", [[], [0, 1], [2, 1], [1, 1], [1.5], [-1]])
def test_depths_must_increase(depths):
    with pytest.raises(ValueError, match="depth_curve: depths must be increasing integers"):
        rw.depth_curve([0, 1], [1, 2], qid=[1, 1], depths=depths)


def test_eight_lines_are_named_without_overlap(curves):
    figure = rw.plot_depth(curves)
    (axes,) = figure.axes
    assert {text.get_text() for text in axes.texts} == set(SYSTEMS)
    looks = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in axes.lines}
    assert len(looks) == len(SYSTEMS)
    for line, curve in zip(axes.lines, curves.values(), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), curve.means)
    assert_legible(figure)


def test_deep_curves_get_a_logarithmic_axis():
    depths = np.array([1, 10, 100, 1000])
    curve = rw.DepthCurve("recall", depths, np.array([0.1, 0.4, 0.7, 0.9]), 50)
    figure = rw.plot_depth({"a": curve})
    assert figure.axes[0].get_xscale() == "log"
    assert "1,000" in [words for words, _ in drawn_texts(figure)]


def test_more_lines_than_colours_stay_apart():
    depths = np.arange(1, 6)
    curves = {f"s{i}": rw.DepthCurve("ap", depths, np.full(5, i / 20), 9) for i in range(12)}
    axes = rw.plot_depth(curves).axes[0]
    looks = {(line.get_color(), line.get_linestyle()) for line in axes.lines}
    assert len(looks) == 12


def test_depth_says_what_is_wrong(curves):
    with pytest.raises(ValueError, match="at least one curve is needed"):
        rw.plot_depth({})
    other = rw.DepthCurve("recall", np.array([1]), np.array([0.5]), 3)
    with pytest.raises(ValueError, match="all curves must be of one metric, got ndcg, recall"):
        rw.plot_depth({**curves, "x": other})


def test_spread_keeps_order_and_distance():
    rng = np.random.default_rng(0)
    for n in (1, 2, 8, 20):
        wanted = np.sort(rng.random(n))
        placed = plots._spread(wanted, 0.05)
        assert (np.diff(placed) >= 0.05 - 1e-12).all()
        # Labels that are far enough apart stay where they are.
        assert plots._spread(np.arange(n) * 0.06, 0.05) == pytest.approx(np.arange(n) * 0.06)
        # Least squares: the mean is kept.
        assert placed.mean() == pytest.approx(wanted.mean())


# ------------------------------------------------------------------------------------ all of them


@pytest.fixture(params=["means", "differences", "depth"])
def draw(request):
    small = rw.compare({"ap": {"a": [0.1, 0.2, 0.4], "b": [0.2, 0.2, 0.7]}}, interval="t")
    curve = rw.DepthCurve("ap", np.arange(1, 6), np.linspace(0.1, 0.5, 5), 3)
    return {
        "means": lambda **kw: rw.plot_means(small, **kw),
        "differences": lambda **kw: rw.plot_differences(small, **kw),
        "depth": lambda **kw: rw.plot_depth({"a": curve}, **kw),
    }[request.param]


@pytest.mark.parametrize(
    ("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("PDF", b"%PDF")]
)
def test_saves_by_suffix(draw, tmp_path, suffix, magic):
    path = tmp_path / f"figure.{suffix}"
    assert isinstance(draw(path=path), Figure)
    assert path.read_bytes().startswith(magic)
    assert list(tmp_path.iterdir()) == [path], "no temporary file stays"


def test_refuses_other_suffixes(draw, tmp_path):
    for name in ("figure.xyz", "figure"):
        with pytest.raises(ValueError, match=r"must end in \.png, \.svg or \.pdf, got"):
            draw(path=tmp_path / name)


def test_a_path_that_cannot_be_written_is_an_os_error(draw, tmp_path):
    with pytest.raises(OSError, match="absent"):
        draw(path=tmp_path / "absent" / "figure.png")


def test_a_failed_save_keeps_the_old_file(table, tmp_path, monkeypatch):
    path = tmp_path / "figure.png"
    path.write_bytes(b"old")

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(pathlib.Path, "write_bytes", fail)
    with pytest.raises(OSError, match="disk full"):
        rw.plot_means(table, path=path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_matplotlibs_state_is_left_alone(draw):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # reading deprecated settings
        before = dict(mpl.rcParams)
        draw()
        assert dict(mpl.rcParams) == before


def test_pyplot_is_never_imported():
    code = """
import sys, rankwise as rw
c = rw.compare({"ap": {"a": [.1, .2, .3], "b": [.2, .2, .4]}}, interval="t")
rw.plot_means(c); rw.plot_differences(c)
sys.exit("pyplot" if "matplotlib.pyplot" in sys.modules else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
