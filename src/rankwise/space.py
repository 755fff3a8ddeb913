"""Where hyperparameters are searched: a list of values, or a :class:`Range`.

A search space is a dictionary of parameter name to either. scikit-learn's ``RandomizedSearchCV``
takes the same dictionaries, as a :class:`Range` can be drawn from.

>>> import rankwise as rw
>>> space = {"alpha": rw.Range(1e-2, 1e4, log=True), "scale": (None, "std")}
>>> space["alpha"].values(4)
(0.01, 1.0, 100.0, 10000.0)
>>> rw.Range.parse("4..64 log integer")
Range(low=4, high=64, log=True, integer=True)
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwise import _validate


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, both included.

    Parameters
    ----------
    low, high : float
        Finite, ``low < high``.
    log : bool
        Draw the logarithm evenly: for strengths and rates, whose size in powers of ten is what
        is not known. Needs ``low > 0``.
    integer : bool
        Whole numbers only.

    Examples
    --------
    >>> import rankwise as rw
    >>> str(rw.Range(0.02, 0.2, log=True))
    '0.02..0.2 log'
    >>> 0.5 in rw.Range(0.02, 0.2)
    False
    """

    low: float
    high: float
    log: bool = False
    integer: bool = False

    def __post_init__(self) -> None:
        where = "Range"
        low = _validate.number(where, "low", self.low, integer=self.integer)
        high = _validate.number(where, "high", self.high, integer=self.integer)
        if not (low < high and math.isfinite(low) and math.isfinite(high)):
            raise ValueError(
                f"{where}: low must be below high and both finite, got {self.low!r} and "
                f"{self.high!r}; a single value is given as a list"
            )
        if self.log and not low > 0:
            raise ValueError(f"{where}: low must be above 0 when log=True, got {self.low!r}")

    def rvs(self, size: Any = None, random_state: Any = None) -> Any:
        """Random values, as SciPy's distributions and scikit-learn's searches spell it.

        Parameters
        ----------
        size : int, optional
            None is a single Python number.
        random_state : int, RandomState or None
        """
        from sklearn.utils import check_random_state

        # A whole number stands for the interval that rounds to it, so that both ends get their share.
        half = 0.5 if self.integer else 0.0
        low, high = self.low - half, self.high + half
        share = check_random_state(random_state).random_sample(1 if size is None else size)
        if self.log:
            drawn = np.exp(math.log(low) + share * (math.log(high) - math.log(low)))
        else:
            drawn = low + share * (high - low)
        drawn = np.clip(np.round(drawn) if self.integer else drawn, self.low, self.high)
        if self.integer:
            drawn = drawn.astype(np.int64)
        return drawn[0].item() if size is None else drawn

    def values(self, n: int) -> tuple[float, ...]:
        """``n`` values from end to end, evenly spaced (their logarithms where ``log``), for a grid."""
        _validate.number("Range.values", "n", n, low=2, integer=True)
        if self.log:
            steps = np.log10(self.low) + np.arange(n) / (n - 1) * np.log10(self.high / self.low)
            # Powers of ten come out as such, without the last digits of a logarithm.
            spaced = np.array([float(f"{10.0**e:.12g}") for e in steps])
        else:
            spaced = np.linspace(self.low, self.high, n)
        if self.integer:
            return tuple(dict.fromkeys(int(v) for v in np.round(spaced)))
        return tuple(spaced.tolist())

    def __contains__(self, value: object) -> bool:
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not number:
            return False
        whole = not self.integer or float(value) == int(float(value))  # type: ignore[arg-type]
        return bool(self.low <= value <= self.high and whole)  # type: ignore[operator]

    def __str__(self) -> str:
        words = [f"{self.low:g}..{self.high:g}", *["log"] * self.log, *["integer"] * self.integer]
        return " ".join(words)

    @staticmethod
    def parse(text: str) -> Range:
        """A range from its text form, ``LOW..HIGH``, then ``log``, ``integer`` or both."""
        ends, *flags = text.split()
        low, dots, high = ends.partition("..")
        try:
            bounds = (ast.literal_eval(low), ast.literal_eval(high))
        except (SyntaxError, ValueError):
            bounds = None
        if not dots or bounds is None or not set(flags) <= {"log", "integer"}:
            raise ValueError(
                "Range: must have the form LOW..HIGH, then log, integer or both, "
                f"got {text!r}; for example 1e-3..1e3 log"
            )
        return Range(bounds[0], bounds[1], log="log" in flags, integer="integer" in flags)


def parse_space(texts: list[str]) -> dict[str, Any]:
    """A space from ``name=LOW..HIGH [log] [integer]`` and ``name=value,value,...``.

    >>> parse_space(["alpha=1e-3..10 log", "scale=None,std"])
    {'alpha': Range(low=0.001, high=10, log=True, integer=False), 'scale': (None, 'std')}
    """
    from rankwise._text import split_names

    space: dict[str, Any] = {}
    for text in texts:
        name, equals, values = (part.strip() for part in text.partition("="))
        if not (equals and name.replace("__", "a").isidentifier() and values):
            raise ValueError(
                f"space: must have the form NAME=LOW..HIGH [log] [integer] or NAME=VALUE,VALUE,..., "
                f"got {text!r}"
            )
        if ".." in values:
            space[name] = Range.parse(values)
        else:
            space[name] = tuple(_value(v) for v in split_names(values))
    return space


def _value(text: str) -> Any:
    """A literal, or the text itself (``ndcg@10``)."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def checked_space(where: str, space: Any, known: Mapping[str, Any]) -> dict[str, Any]:
    """A space whose names a ranker knows; lists become tuples."""
    if not isinstance(space, Mapping):
        raise TypeError(
            f"{where}: space must be a dictionary of parameter name to Range or list of values, "
            f"got {type(space).__name__}"
        )
    result: dict[str, Any] = {}
    for name, values in space.items():
        if name not in known:
            raise _validate.unknown("parameter to search", name, known)
        if hasattr(values, "rvs"):
            result[name] = values
            continue
        if isinstance(values, str | bytes) or not hasattr(values, "__len__") or not len(values):
            raise ValueError(
                f"{where}: the space of {name} must be a Range or a list of at least one value, "
                f"got {values!r}"
            )
        result[name] = tuple(values.tolist() if hasattr(values, "tolist") else values)
    return result
