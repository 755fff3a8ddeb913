r"""Fits in order: the nondecreasing (or nonincreasing) values nearest to given ones, list by list.

Pool adjacent violators walks once along a list and replaces every stretch that breaks the order by
its mean. It calibrates scores, and it is the step by which monotone retargeting
(:mod:`rankwise.retarget`) moves a target as far as its order allows.

>>> import rankwise as rw
>>> rw.isotonic([1.0, 3.0, 2.0, 4.0, 0.0], increasing=False)
array([2.5, 2.5, 2.5, 2.5, 0. ])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise import _core, _validate
from rankwise.data import group_rows

if TYPE_CHECKING:
    from rankwise.data import Groups

_LARGEST = 1e140  # products of sums with weights must stay finite


def isotonic(
    y: ArrayLike,
    *,
    qid: ArrayLike | Groups | None = None,
    weight: ArrayLike | None = None,
    increasing: bool = True,
) -> NDArray[np.float64]:
    """The least-squares fit to each list whose values never fall (or never rise).

    ``minimise sum of w_i (y_i - x_i)^2  subject to  x_1 <= x_2 <= ... <= x_n``

    Parameters
    ----------
    y : array-like of shape (n_docs,)
        Finite values, in the order they are to be fitted in.
    qid : array-like of shape (n_docs,), optional
        One list per id, in any order; a single list unless given.
    weight : array-like of shape (n_docs,), optional
        Above 0.
    increasing : bool
        False for values that never rise.

    Returns
    -------
    float64 array of shape (n_docs,), in input order

    Raises
    ------
    ValueError
        If values or weights are not finite or too large, or a weight is not above 0.

    Notes
    -----
    O(n); lists in parallel. The result has the weighted mean of ``y``, is at most as far from another
    fit as ``y`` is from its values, and a list already in order is returned bit for bit.

    References
    ----------
    barlow1972

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.isotonic([3.0, 1.0, 2.0], weight=[1, 3, 1])
    array([1.5, 1.5, 2. ])
    """
    where = "isotonic"
    values = _validate.vector(where, "y", y)
    weights = None if weight is None else _validate.vector(where, "weight", weight)
    _validate.same_length(where, y=values, weight=weights)
    # NaN is neither.
    if len(values) and not (values.min() >= -_LARGEST and values.max() <= _LARGEST):
        bad = np.flatnonzero(~(np.abs(values) <= _LARGEST))
        raise ValueError(
            f"{where}: y must be finite and at most {_LARGEST:g} in size, "
            f"got {values[bad[0]]} at row {bad[0]}"
        )
    if (
        weights is not None
        and len(values)
        and not (weights.min() >= 1 / _LARGEST and weights.max() <= _LARGEST)
    ):
        bad = np.flatnonzero(~((weights >= 1 / _LARGEST) & (weights <= _LARGEST)))
        raise ValueError(
            f"{where}: weight must be above 0 and of a size that can be multiplied, "
            f"got {weights[bad[0]]} at row {bad[0]}; leave out what counts nothing"
        )
    values = values if increasing else -values
    if qid is None:
        offsets = np.array([0, len(values)], np.int64)
        fitted = _core.isotonic(values, offsets, weights)
        return np.asarray(fitted if increasing else -fitted)
    groups = group_rows(qid, where=where)
    if groups.n_docs != len(values):
        raise ValueError(
            f"{where}: qid must have one entry per value, got {groups.n_docs} for {len(values)}"
        )
    grouped = np.ascontiguousarray(groups.gather(values))
    spread = None if weights is None else np.ascontiguousarray(groups.gather(weights))
    fitted = groups.scatter(_core.isotonic(grouped, groups.offsets, spread))
    return np.asarray(fitted if increasing else -fitted)
