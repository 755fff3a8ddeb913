"""The comparison table for the terminal, Markdown, LaTeX, CSV and JSON.

One list, ``COLUMNS``, says what is known about a system under a metric: which numbers (the fields
of CSV and JSON) and how they read (the cells of the printed tables). The wide layout arranges
four of its columns in a block of two lines; the long layout prints them all.

Printed numbers are rounded; the zero before the point is left out where all of a metric's values
lie between -1 and 1.
"""

from __future__ import annotations

import math
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any

from rankwise import _validate

if TYPE_CHECKING:
    from rankwise.comparison import Comparison

Record = Mapping[str, Any]

NAME_WIDTH = 24
PLAIN_WIDTH = 100
LAYOUTS = ("wide", "long")


@dataclass(frozen=True)
class Style:
    """How numbers read in one output format."""

    zero: bool = False
    minus: str = "-"
    dash: str = "\N{EN DASH}"
    less: str = "<"
    equals: str = "="
    star: str = "*"
    missing: str = "-"
    digits: int = 3

    def number(self, value: float, digits: int | None = None, *, sign: bool = False) -> str:
        if not math.isfinite(value):
            if math.isnan(value):
                return self.missing
            return (self.minus if value < 0 else "+" if sign else "") + "inf"
        text = f"{abs(value):.{self.digits if digits is None else digits}f}"
        negative = value < 0 and float(text) != 0
        if not self.zero and text.startswith("0."):
            text = text[1:]
        return (self.minus if negative else "+" if sign and float(text) else "") + text

    def range(self, low: float, high: float) -> str:
        """Low to high; in brackets where a dash could be taken for a minus."""
        if low < 0:
            return self.brackets(low, high)
        if math.isnan(low):
            return self.missing
        return f"{self.number(low)}{self.dash}{self.number(high)}"

    def brackets(self, low: float, high: float) -> str:
        if math.isnan(low):
            return self.missing
        return f"[{self.number(low)}, {self.number(high)}]"

    def probability(self, p: float) -> str:
        if math.isnan(p):
            return self.missing
        if p < 0.001:
            return f"{self.less}.001"
        return "1" if p > 0.9995 else f"{p:.3f}"[1:]


TEXT = Style()
MARKDOWN = Style(star="\\*")
LATEX = Style(minus="$-$", dash="--", less="$<$", equals="$=$", star="$^{*}$", missing="--")


@dataclass(frozen=True)
class Column:
    """A column: its title, the fields it holds, and how a record reads in it."""

    title: str
    fields: tuple[str, ...]
    text: Callable[[Record, Style], str]
    of_gap: bool = True


COLUMNS = {
    "queries": Column("queries", ("n_queries",), lambda r, s: f"{r['n_queries']:,}", False),
    "mean": Column("mean", ("mean",), lambda r, s: s.number(r["mean"]), False),
    "interval": Column(
        "interval", ("low", "high"), lambda r, s: s.range(r["low"], r["high"]), False
    ),
    "gap": Column("gap", ("gap",), lambda r, s: s.number(r["gap"], sign=True) + _star(r, s)),
    "gap interval": Column(
        "interval", ("gap_low", "gap_high"), lambda r, s: s.brackets(r["gap_low"], r["gap_high"])
    ),
    "p": Column("p", ("p_value",), lambda r, s: s.probability(r["p_value"])),
    "corrected": Column("corr. p", ("p_corrected",), lambda r, s: s.probability(r["p_corrected"])),
    "effect": Column("d", ("effect_size",), lambda r, s: s.number(r["effect_size"], 2)),
    "outcomes": Column(
        "win/tie/loss",
        ("wins", "ties", "losses"),
        lambda r, s: f"{r['wins']}/{r['ties']}/{r['losses']}",
    ),
}


def _star(record: Record, style: Style) -> str:
    return style.star if record["significant"] else ""


def record(comparison: Comparison, metric: str, system: str) -> dict[str, Any]:
    """Everything known about a system under a metric, flat; NaN or None where undefined."""
    result = comparison.results[metric][system]
    flat: dict[str, Any] = {
        "metric": metric,
        "system": system,
        "n_queries": result.n_queries,
        "mean": result.mean,
        "low": result.interval.low,
        "high": result.interval.high,
        "baseline": None,
        "n_paired": None,
    }
    gap = result.gap
    for column in COLUMNS.values():
        if column.of_gap:
            flat.update(dict.fromkeys(column.fields))
    if gap is not None:
        flat |= {
            "baseline": gap.baseline,
            "n_paired": gap.n_queries,
            "gap": gap.mean,
            "gap_low": gap.interval.low,
            "gap_high": gap.interval.high,
            "p_value": gap.p_value,
            "p_corrected": gap.p_corrected,
            "effect_size": gap.effect_size,
            "wins": gap.wins,
            "ties": gap.ties,
            "losses": gap.losses,
        }
    # Only drawn, as a star; the level is 1 - confidence.
    flat["significant"] = gap is not None and gap.p_corrected < 1 - comparison.confidence
    return flat


FIELDS = (
    "metric",
    "system",
    *(field for column in COLUMNS.values() for field in column.fields if not column.of_gap),
    "baseline",
    "n_paired",
    *(field for column in COLUMNS.values() for field in column.fields if column.of_gap),
)


def _records(comparison: Comparison) -> list[dict[str, Any]]:
    return [record(comparison, m, s) for m in comparison.metrics for s in comparison.systems]


def _style_of(comparison: Comparison, metric: str, style: Style) -> Style:
    """Keeps the zero before the point where a value of the metric reaches 1."""
    edges = [
        abs(x)
        for result in comparison.results[metric].values()
        for x in (result.mean, result.interval.low, result.interval.high)
    ]
    return replace(style, zero=any(x >= 1 - 0.5 * 10**-style.digits for x in edges))


def _cell(comparison: Comparison, metric: str, system: str, name: str, style: Style) -> str:
    """One cell of ``COLUMNS``; the baseline's own gap reads "best" or "base", the rest is empty."""
    r = record(comparison, metric, system)
    column = COLUMNS[name]
    if column.of_gap and r["baseline"] is None:
        if (
            len(comparison.systems) == 1
            or name != "gap"
            or comparison.baseline_of(metric) != system
        ):
            return ""
        return "best" if comparison.baseline == "best" else "base"
    return column.text(r, style)


def _block(comparison: Comparison, metric: str, system: str, style: Style) -> list[list[str]]:
    """Mean and gap; below them the interval of the mean and the corrected p-value."""
    style = _style_of(comparison, metric, style)
    mean, gap, interval, p = (
        _cell(comparison, metric, system, name, style)
        for name in ("mean", "gap", "interval", "corrected")
    )
    if p and p != style.missing:
        p = f"p{p}" if p.startswith(style.less) else f"p{style.equals}{p}"
    return [[mean, gap], [interval, p]]


def _top(comparison: Comparison, metric: str) -> str | None:
    """The system with the largest mean, printed bold."""
    known = {s: r.mean for s, r in comparison.results[metric].items() if r.n_queries}
    return max(known, key=lambda s: known[s]) if known else None


def _facts(comparison: Comparison) -> tuple[list[str], list[str]]:
    """Titles of the further columns: those that hold numbers, those that hold text."""
    numbers = [
        title
        for title, facts in comparison.columns.items()
        if not any(isinstance(v, str) for v in facts.values())
    ]
    return numbers, [title for title in comparison.columns if title not in numbers]


def _fact(value: float | str | None) -> str:
    """A number to two or three digits."""
    if value is None or isinstance(value, str):
        return value or ""
    size = abs(value)
    if size >= 1e6 or size < 1:
        return f"{value:.2g}"
    digits = 0 if isinstance(value, int) or size >= 100 else 1 if size >= 10 else 2
    return f"{value:,.{digits}f}"


# ---------------------------------------------------------------------------------------- notes


def notes(comparison: Comparison, layout: str = "wide") -> list[str]:
    """What the numbers mean, how many queries they cover, and how they were made."""
    c = comparison
    lines = []
    many = len(c.systems) > 1
    level = f"{100 * c.confidence:g} %"
    how = {"bca": "BCa bootstrap", "t": "Student's t"}[c.interval]
    against = "the best of each metric" if c.baseline == "best" else c.baseline
    if layout == "wide":
        gap = f" and gap to {against}" if many else ""
        p = ", corrected p" if c.correction else ", p"
        below = f"{level} interval of the mean ({how})" + (p if many else "")
        lines.append(f"Each cell: mean{gap}; below, {below}.")
    else:
        gap = f" Gap: difference to {against}; d: its effect size." if many else ""
        lines.append(f"Intervals: {level}, {how}, not corrected.{gap}")
    lines.append(_coverage(c))
    if c.n_tests:
        lines.append(_testing(c))
        if c.baseline == "best":
            lines.append(
                "The best is chosen on these queries: the gaps to it are slightly too large."
            )
    weak = [
        m
        for m, row in c.results.items()
        if min(x.n_queries for r in row.values() for x in (r, r.gap or r)) < 2
    ]
    if weak:
        lines.append(f"Too few queries for an interval or a test: {', '.join(weak)}.")
    methods = {
        interval.method
        for row in c.results.values()
        for r in row.values()
        for interval in (r.interval, r.gap.interval if r.gap else r.interval)
    }
    if methods - {c.interval}:
        lines.append("Where BCa is undefined the interval is the bootstrap percentile interval.")
    for title in _facts(c)[1]:
        facts = "; ".join(f"{s}: {v}" for s, v in c.columns[title].items() if v != "")
        lines.append(f"{title[:1].upper()}{title[1:]}: {facts}.")
    return [*lines, *c.notes]


def _coverage(c: Comparison) -> str:
    """Over how many queries each mean runs, said once where it is the same for all."""
    of = f"of {c.n_queries:,} queries"
    counts = {m: {s: r.n_queries for s, r in row.items()} for m, row in c.results.items()}
    distinct = {n for row in counts.values() for n in row.values()}
    if len(distinct) == 1:
        n = distinct.pop()
        if n == c.n_queries:
            return f"Every mean covers all {n:,} queries."
        return f"Every mean covers {n:,} {of}; the others have no value."
    parts = []
    uneven = False
    for m, row in counts.items():
        usual = max(row.values(), key=list(row.values()).count)
        odd = [f"{s} {n:,}" for s, n in row.items() if n != usual]
        uneven = uneven or bool(odd)
        parts.append(f"{m} {usual:,}" + (f" ({', '.join(odd)})" if odd else ""))
    tail = " Gaps are taken on shared queries." if uneven else ""
    return f"Means cover, {of}: {'; '.join(parts)}.{tail}"


def _testing(c: Comparison) -> str:
    names = {"randomization": "randomization test", "t": "paired t test"}
    test = names.get(c.test, f"{c.test} test")
    if c.correction is None:
        correction = "not corrected"
    else:
        label = {"holm": "Holm", "bh": "Benjamini-Hochberg"}[c.correction]
        correction = f"{label} correction over {c.n_tests} test{'s' * (c.n_tests != 1)}"
    return f"p: two-sided {test}, {correction}; * below {TEXT.number(1 - c.confidence, 2)}."


# ----------------------------------------------------------------------------------------- text


@dataclass(frozen=True)
class _Stack:
    """A column of printed cells of several lines each."""

    header: list[str]
    cells: list[list[str]]
    strong: list[bool]
    right: bool = False

    @property
    def width(self) -> int:
        return max(len(line) for lines in (self.header, *self.cells) for line in lines)


def _stacks(c: Comparison, layout: str) -> tuple[_Stack, list[_Stack]]:
    if layout == "long":
        return _long_stacks(c)
    names = _Stack([""], [wrap(s, NAME_WIDTH) for s in c.systems], [False] * len(c.systems))
    stacks = []
    for m in c.metrics:
        blocks = [_block(c, m, s, TEXT) for s in c.systems]
        wide = max(len(line[0]) for block in blocks for line in block)
        cells = [[f"{a:<{wide}} {b}".rstrip() for a, b in block] for block in blocks]
        body = max(len(line) for lines in cells for line in lines)
        strong = [s == _top(c, m) for s in c.systems]
        stacks.append(_Stack(wrap(m, max(body, 12)), cells, strong))
    titles = _facts(c)[0]
    for pair in (titles[i : i + 2] for i in range(0, len(titles), 2)):
        cells = [[_fact(c.columns[title].get(s)) for title in pair] for s in c.systems]
        stacks.append(_Stack(list(pair), cells, [False] * len(c.systems), right=True))
    return names, stacks


def _long_stacks(c: Comparison) -> tuple[_Stack, list[_Stack]]:
    """All columns; each metric's systems under a line with its name."""
    names: list[list[str]] = []
    strong: list[bool] = []
    for m in c.metrics:
        names += [[m], *([f"  {line}" for line in wrap(s, NAME_WIDTH)] for s in c.systems)]
        strong += [False, *(s == _top(c, m) for s in c.systems)]
    stacks = []
    for name in _long_columns(c):
        cells = []
        for m in c.metrics:
            style = _style_of(c, m, TEXT)
            cells += [[""], *([_cell(c, m, s, name, style)] for s in c.systems)]
        right = name not in ("gap", "interval", "gap interval")
        stacks.append(_Stack([COLUMNS[name].title], cells, strong, right))
    return _Stack([""], names, strong), stacks


def _long_columns(c: Comparison) -> list[str]:
    """Names of the columns of the long layout, without those that would say nothing."""
    counts = {r.n_queries for row in c.results.values() for r in row.values()}
    idle = {
        "queries": len(counts) == 1,  # the notes say it once
        "corrected": c.correction is None,
    }
    return [
        name
        for name, column in COLUMNS.items()
        if not idle.get(name) and (len(c.systems) > 1 or not column.of_gap)
    ]


def _panels(names: _Stack, stacks: list[_Stack], width: int) -> list[list[_Stack]]:
    """The stacks in as few groups as fit beside the names, at least one each."""
    panels: list[list[_Stack]] = []
    room = 0
    for stack in stacks:
        if not panels or stack.width + 2 > room:
            panels.append([])
            room = width - names.width
        panels[-1].append(stack)
        room -= stack.width + 2
    return panels


def text(comparison: Comparison, layout: str, width: int) -> str:
    _validate.choice("to_text", "layout", layout, LAYOUTS)
    _validate.number("to_text", "width", width, low=20, integer=True)
    names, stacks = _stacks(comparison, layout)
    lines: list[str] = []
    for panel in _panels(names, stacks, width):
        columns = [names, *panel]
        head = _join([c.header for c in columns], columns)
        lines += [*([""] if lines else []), *head]
        lines.append("-" * (sum(c.width for c in columns) + 2 * (len(columns) - 1)))
        for i in range(len(names.cells)):
            lines += _join([c.cells[i] for c in columns], columns)
    lines.append("")
    for note in notes(comparison, layout):
        lines += textwrap.wrap(note, width, subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join(lines) + "\n"


def _join(cells: list[list[str]], columns: list[_Stack]) -> list[str]:
    """Side by side, line after line."""
    height = max(map(len, cells))
    lines = []
    for i in range(height):
        parts = []
        for cell, column in zip(cells, columns, strict=True):
            part = cell[i] if i < len(cell) else ""
            parts.append(part.rjust(column.width) if column.right else part.ljust(column.width))
        lines.append("  ".join(parts).rstrip())
    return lines


def wrap(name: str, width: int) -> list[str]:
    """A name in lines of at most ``width``, broken after a comma, bracket or sign if possible."""
    lines = []
    while len(name) > width:
        cut = max((name.rfind(mark, 0, width) for mark in ",(@/_- "), default=-1) + 1
        cut = cut if cut > width // 3 else width
        lines.append(name[:cut].rstrip())
        name = name[cut:].lstrip()
    return [*lines, name]


def rich(comparison: Comparison, width: int, layout: str = "wide") -> Iterable[Any]:
    """Rich tables of the panels, then the notes."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    names, stacks = _stacks(comparison, layout)
    for panel in _panels(names, stacks, width):
        columns = [names, *panel]
        # The box adds a space between columns: two in all, as in the plain text.
        table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False)
        for column in columns:
            header = Text("\n".join(column.header), style="bold")
            table.add_column(header, no_wrap=True, justify="right" if column.right else "left")
        for i in range(len(names.cells)):
            row = []
            for column in columns:
                first, *rest = column.cells[i]
                cell = Text()
                cell.append(first, style="bold green" if column.strong[i] else "")
                for line in rest:
                    cell.append(f"\n{line}", style="" if column is names else "dim")
                row.append(cell)
            table.add_row(*row)
        yield table
        yield Text()
    for note in notes(comparison, layout):
        yield Text(note, style="dim")


def show(comparison: Comparison, layout: str, file: IO[str] | None) -> None:
    _validate.choice("show", "layout", layout, LAYOUTS)
    out = sys.stdout if file is None else file
    if out.isatty() and "NO_COLOR" not in os.environ:
        from rich.console import Console, Group

        console = Console(file=out, highlight=False)
        console.print(Group(*rich(comparison, console.width, layout)))
        return
    plain = text(comparison, layout, PLAIN_WIDTH)
    try:
        plain.encode(getattr(out, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        plain = plain.replace(TEXT.dash, "-")
    out.write(plain)


# ------------------------------------------------------------------------- Markdown and LaTeX


def markdown(comparison: Comparison, layout: str) -> str:
    _validate.choice("to_markdown", "layout", layout, LAYOUTS)
    c = comparison
    header, rows, right = _document(c, layout, MARKDOWN, _markdown_text, "**{}**")
    if layout == "wide":
        rows = [
            [lines if isinstance(lines, str) else "<br>".join(_spaced(lines)) for lines in row]
            for row in rows
        ]
    rule = ["---:" if r else "---" for r in right]
    table = [f"| {' | '.join(map(str, row))} |" for row in [header, rule, *rows]]
    below = [f"- {_markdown_text(note)}" for note in notes(c, layout)]
    return "\n".join([*table, "", *below]) + "\n"


def _spaced(block: list[list[str]]) -> list[str]:
    return [" ".join(filter(None, line)) for line in block]


def _markdown_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")


def _document(
    c: Comparison, layout: str, style: Style, escape: Callable[[str], str], bold: str
) -> tuple[list[str], list[list[Any]], list[bool]]:
    """Header, rows and alignments; in the wide layout a metric's cell is a two by two block."""
    rows: list[list[Any]] = []
    if layout == "long":
        columns = _long_columns(c)
        for m in c.metrics:
            ours = _style_of(c, m, style)
            for s in c.systems:
                name = bold.format(escape(s)) if s == _top(c, m) else escape(s)
                rows.append([escape(m), name, *(_cell(c, m, s, n, ours) for n in columns)])
        titles = [COLUMNS[n].title for n in columns]
        return ["metric", "system", *titles], rows, [False, False, *[True] * len(columns)]
    titles = _facts(c)[0]
    for s in c.systems:
        row: list[Any] = [escape(s)]
        for m in c.metrics:
            block = _block(c, m, s, style)
            if s == _top(c, m):
                block[0][0] = bold.format(block[0][0])
            row.append(block)
        rows.append([*row, *(_fact(c.columns[title].get(s)) for title in titles)])
    header = ["system", *map(escape, c.metrics), *map(escape, titles)]
    return header, rows, [False, *[False] * len(c.metrics), *[True] * len(titles)]


def latex(comparison: Comparison, layout: str) -> str:
    _validate.choice("to_latex", "layout", layout, LAYOUTS)
    c = comparison
    header, rows, right = _document(c, layout, LATEX, _latex_text, r"\textbf{{{}}}")
    if layout == "long":
        body = [f"{' & '.join(row)} \\\\" for row in rows]
        # A rule between metrics.
        for i in range(len(c.systems), len(body), len(c.systems)):
            body[i] = rf"\midrule {body[i]}"
        aligns = "".join("r" if r else "l" for r in right)
        head = [f"{' & '.join(header)} \\\\"]
    else:
        n_metrics = len(c.metrics)
        aligns = "l" + "rl" * n_metrics + "r" * (len(header) - 1 - n_metrics)
        spans = [rf"\multicolumn{{2}}{{c}}{{{m}}}" for m in header[1 : 1 + n_metrics]]
        rules = "".join(rf"\cmidrule(lr){{{2 * i + 2}-{2 * i + 3}}}" for i in range(n_metrics))
        head = [f"{' & '.join([header[0], *spans, *header[1 + n_metrics :]])} \\\\", rules]
        body = []
        for name, *cells in rows:
            blocks, facts = cells[:n_metrics], cells[n_metrics:]
            small = [rf"{{\footnotesize {x}}}" if x else "" for b in blocks for x in b[1]]
            body.append(f"{' & '.join([name, *(x for b in blocks for x in b[0]), *facts])} \\\\")
            body.append(f"{' & '.join(['', *small, *[''] * len(facts)]).lstrip()} \\\\[2pt]")
    lines = [
        r"% needs \usepackage{booktabs}",
        rf"\begin{{tabular}}{{{aligns}}}",
        r"\toprule",
        *head,
        *([r"\midrule"] if layout == "long" else [r"\addlinespace"]),
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        "",
        r"{\footnotesize",
        *(f"{_latex_text(note)}\\\\" for note in notes(c, layout)),
        "}",
    ]
    return "\n".join(lines) + "\n"


_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "\N{EN DASH}": "--",
    **{c: f"\\{c}" for c in "&%$#_{}"},
}


def _latex_text(text: str) -> str:
    return "".join(_LATEX_SPECIAL.get(c, c) for c in text)


# ------------------------------------------------------------------------------- CSV and JSON


def csv(comparison: Comparison) -> str:
    import csv as csv_module
    import io

    out = io.StringIO()
    writer = csv_module.writer(out, lineterminator="\n")
    writer.writerow([*FIELDS, *comparison.columns])
    for r in _records(comparison):
        facts = [facts.get(r["system"]) for facts in comparison.columns.values()]
        writer.writerow([_defined(x) for x in [*(r[field] for field in FIELDS), *facts]])
    return out.getvalue()


def json(comparison: Comparison, per_query: bool) -> str:
    import json as json_module

    c = comparison
    whole: dict[str, Any] = {
        "n_queries": c.n_queries,
        "systems": c.systems,
        "metrics": c.metrics,
        "baseline": c.baseline,
        "test": c.test,
        "correction": c.correction,
        "n_tests": c.n_tests,
        "n_resamples": c.n_resamples,
        "interval": c.interval,
        "confidence": c.confidence,
        "seed": c.seed,
        "results": [{field: _defined(r[field]) for field in FIELDS} for r in _records(c)],
        "columns": {t: {s: _defined(v) for s, v in f.items()} for t, f in c.columns.items()},
        "notes": c.notes,
    }
    if per_query:
        whole["ids"] = c.ids.tolist()
        whole["per_query"] = {
            m: {s: [_defined(x) for x in values.tolist()] for s, values in row.items()}
            for m, row in c.per_query.items()
        }
    return json_module.dumps(whole, indent=1, allow_nan=False) + "\n"


def _defined(value: Any) -> Any:
    """JSON and CSV have no NaN; an infinite effect size or statistic is written as text."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value
