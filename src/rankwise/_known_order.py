"""What is known of the order of some items, as a constraint on scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise import _core, _validate
from rankwise._rank_scores import Evidence, Floats, Offsets
from rankwise.data import Groups, gather_pairs

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class KnownOrder:
    """Labels (NaN unknown) or pairs of grouped items.

    :meth:`nearest` is the weighted least-squares projection onto the scores that agree with them:
    for labels by pooling, each level sorted by score; for pairs by the dual problem, a nonnegative
    least squares of as many variables as a query has pairs.
    """

    offsets: Offsets
    labels: Floats | None
    winner: Rows
    loser: Rows

    @classmethod
    def of(cls, where: str, y: Any, pairs: Any, groups: Groups) -> KnownOrder | None:
        if y is None and pairs is None:
            return None
        none = np.zeros(0, np.int64)
        if y is not None and pairs is not None:
            raise TypeError(f"{where}: the known order must be given once, got y and pairs")
        if y is not None:
            labels = _validate.labels(where, y, "y")
            if len(labels) != groups.n_docs:
                raise ValueError(
                    f"{where}: y must have one entry per item, got {len(labels)} for "
                    f"{groups.n_docs} items"
                )
            return cls(groups.offsets, groups.gather(labels), none, none)
        inside = gather_pairs(where, pairs, groups)
        assert inside is not None
        known = cls(groups.offsets, None, inside.winner, inside.loser)
        known._refuse_cycles(where)
        return known

    def nearest(self, values: Floats, weight: Floats) -> Floats:
        """The closest values, in squares with the weights, that keep the known order."""
        out = values.copy()
        if self.labels is not None:
            rows, offsets, _ = self._labelled()
            order = self._by_level(rows, values)
            out[order] = _core.isotonic(
                np.ascontiguousarray(values[order]), offsets, np.ascontiguousarray(weight[order])
            )
            return out
        from scipy.optimize import nnls

        for pick in self._components():
            winner, loser = self.winner[pick], self.loser[pick]
            if (values[winner] >= values[loser]).all():
                continue
            items, at = np.unique(np.concatenate([winner, loser]), return_inverse=True)
            A = np.zeros((len(items), len(pick)))
            A[at[: len(pick)], np.arange(len(pick))] = 1.0
            A[at[len(pick) :], np.arange(len(pick))] = -1.0
            root = np.sqrt(weight[items])
            force, _ = nnls(A / root[:, None], -root * values[items])
            out[items] = values[items] + (A @ force) / weight[items]
        return out

    def separated(self, values: Floats) -> Floats:
        """Values in which what the constraint tied is told apart, by next to nothing."""
        if len(values) == 0:
            return values
        step = 1e-9 * max(float(np.ptp(values)), 1e-300)
        if self.labels is not None:
            level = np.nan_to_num(np.unique(self.labels, return_inverse=True)[1].astype(np.float64))
            return np.where(np.isnan(self.labels), values, values + step * level)
        depth = np.zeros(len(values))
        for _ in range(len(self.winner)):
            deeper = np.zeros(len(values))
            np.maximum.at(deeper, self.winner, depth[self.loser] + 1)
            if (deeper <= depth).all():
                break
            depth = np.maximum(depth, deeper)
        return values + step * depth

    def start(self, evidence: Evidence, means: Floats) -> Floats:
        """Mean places, each list weighted by how it agrees with what is known."""
        agree = np.zeros(evidence.Z.shape[1])
        if self.labels is not None:
            rows, offsets, labels = self._labelled()
            sizes = np.diff(offsets)
            mean = np.add.reduceat(labels, offsets[:-1][sizes > 0]) / sizes[sizes > 0]
            agree = evidence.Z[rows].T @ (labels - np.repeat(mean, sizes[sizes > 0]))
        else:
            agree = (evidence.Z[self.winner] - evidence.Z[self.loser]).sum(axis=0)
        weight = np.maximum(agree, 0.0)
        if not weight.any():
            return self.nearest(means, np.ones(len(means)))
        mass = evidence.seen @ weight
        score = np.where(mass > 0, evidence.Z @ weight / np.where(mass > 0, mass, 1.0), 0.0)
        return self.nearest(score, np.ones(len(score)))

    def _labelled(self) -> tuple[Rows, Offsets, Floats]:
        """Rows with a label, their offsets, and the labels."""
        assert self.labels is not None
        has = ~np.isnan(self.labels)
        rows = np.flatnonzero(has)
        return rows, np.append(0, np.cumsum(has))[self.offsets], self.labels[rows]

    def _by_level(self, rows: Rows, values: Floats) -> Rows:
        assert self.labels is not None
        query = np.searchsorted(self.offsets, rows, side="right")
        return rows[np.lexsort((values[rows], self.labels[rows], query))]

    def _components(self) -> list[Rows]:
        """Numbers of the pairs, one array per set of items that pairs connect."""
        if len(self.winner) == 0:
            return []
        import scipy.sparse as sp
        from scipy.sparse.csgraph import connected_components

        n = int(self.offsets[-1])
        graph = sp.coo_matrix((np.ones(len(self.winner)), (self.winner, self.loser)), shape=(n, n))
        part = connected_components(graph, directed=False)[1][self.winner]
        order = np.argsort(part, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(part[order])) + 1)

    def _refuse_cycles(self, where: str) -> None:
        import scipy.sparse as sp
        from scipy.sparse.csgraph import connected_components

        n = int(self.offsets[-1])
        graph = sp.coo_matrix((np.ones(len(self.winner)), (self.winner, self.loser)), shape=(n, n))
        strong = connected_components(graph, directed=True, connection="strong")[1]
        inside = np.flatnonzero(strong[self.winner] == strong[self.loser])
        if len(inside):
            raise ValueError(
                f"{where}: pairs must not contradict each other, got {len(inside)} of them that go "
                "in circles"
            )
