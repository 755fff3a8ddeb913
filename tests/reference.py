"""Each quantity again, slow and obvious: the oracles of the tests."""

from __future__ import annotations

import itertools
import math

import numpy as np

# --- lambda gradients --------------------------------------------------------------------------


def orders_of(scores):
    """Every ranking (list of document numbers, best first) that the scores allow."""
    levels = sorted(set(scores), reverse=True)
    blocks = [[i for i, s in enumerate(scores) if s == level] for level in levels]
    for choice in itertools.product(*(itertools.permutations(block) for block in blocks)):
        yield [i for block in choice for i in block]


def swap_weights(gains, scores, discount, ideal, *, ties="average", truncation=None):
    """Matrix of |g_i - g_j| |D(p_i) - D(p_j)| / ideal, the mean over the orders of ties."""
    orders = list(orders_of(scores))
    if ties == "stable":
        orders = [sorted(range(len(gains)), key=lambda i: (-scores[i], i))]
    total = 0.0
    for order in orders:
        place = np.argsort(order)
        change = np.abs(np.subtract.outer(discount[place], discount[place]))
        if truncation is not None:
            change[np.minimum.outer(place, place) >= truncation] = 0
        total = total + change
    return np.abs(np.subtract.outer(gains, gains)) * total / len(orders) / ideal


def lambda_loss(gains, scores, weights, *, sigma=1.0, documents=None):
    """Loss, gradient and curvature of one query: all pairs (winner, loser), fixed weights."""
    wins = np.greater.outer(gains, gains)
    if documents is not None:
        weights = weights * documents[:, None]
    w = np.where(wins, weights, 0.0)
    margin = sigma * np.subtract.outer(scores, scores)
    rho = 1 / (1 + np.exp(np.minimum(margin, 700)))
    value = (w * np.logaddexp(0, -margin)).sum()
    pull = sigma * w * rho
    bend = sigma**2 * w * rho * (1 - rho)
    return value, pull.sum(axis=0) - pull.sum(axis=1), bend.sum(axis=0) + bend.sum(axis=1)


# --- losses --------------------------------------------------------------------------------


def loss_by_pairs(pair_loss, y, s, offsets, weight=None):
    """Values, gradient and Hessian of a sum over pairs, one pair at a time.

    ``pair_loss(s_winner, s_loser)`` gives the loss and its two derivatives in the margin.
    """
    n = len(y)
    values, gradient, hessian = np.zeros(len(offsets) - 1), np.zeros(n), np.zeros((n, n))
    for q in range(len(offsets) - 1):
        members = range(offsets[q], offsets[q + 1])
        for i in members:
            for j in members:
                if y[i] > y[j]:
                    w = 1.0 if weight is None else weight[i]
                    loss, slope, bend = pair_loss(s[i], s[j])
                    values[q] += w * loss
                    gradient[i] += w * slope
                    gradient[j] -= w * slope
                    for a, b, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
                        hessian[a, b] += sign * w * bend
    return values, gradient, hessian


def ranknet_pair(sigma):
    def pair(s_i, s_j):
        x = sigma * (s_i - s_j)
        loss = max(-x, 0.0) + math.log1p(math.exp(-abs(x)))
        small = math.exp(-abs(x))
        wrong = (1.0 if x < 0 else small) / (1 + small)
        return loss, -sigma * wrong, sigma**2 * small / (1 + small) ** 2

    return pair


def squared_hinge_pair(s_i, s_j):
    if not s_i < s_j + 1:
        return 0.0, 0.0, 0.0
    short = 1 - (s_i - s_j)
    return short**2, -2 * short, 2.0


def listnet(y, s, offsets, weight=None):
    """Values, gradient and Hessian of ListNet, one query at a time."""
    n = len(y)
    values, gradient, hessian = np.zeros(len(offsets) - 1), np.zeros(n), np.zeros((n, n))
    for q in range(len(offsets) - 1):
        rows = [i for i in range(offsets[q], offsets[q + 1]) if not np.isnan(y[i])]
        if not rows:
            continue
        target = [math.exp(y[i] - max(y[k] for k in rows)) for i in rows]
        target = [t / sum(target) for t in target]
        if weight is not None:
            target = [t * weight[i] for t, i in zip(target, rows, strict=True)]
        top = max(s[i] for i in rows)
        log_sum = top + math.log(sum(math.exp(s[i] - top) for i in rows))
        chance = [math.exp(s[i] - log_sum) for i in rows]
        mass = sum(target)
        for a, i in enumerate(rows):
            values[q] -= target[a] * (s[i] - log_sum)
            gradient[i] = mass * chance[a] - target[a]
            for b, j in enumerate(rows):
                hessian[i, j] = mass * chance[a] * ((a == b) - chance[b])
    return values, gradient, hessian


def squared(y, s, offsets, weight=None):
    w = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    w = np.where(np.isnan(y), 0.0, w)
    miss = np.where(np.isnan(y), 0.0, s - y)
    values = [0.5 * (w * miss**2)[a:b].sum() for a, b in itertools.pairwise(offsets)]
    return np.array(values), w * miss, np.diag(w)


# --- TREC files -------------------------------------------------------------------------------


def join(
    qrels: dict[str, dict[str, float]], run: dict[str, dict[str, float]]
) -> dict[str, dict[str, list[tuple[str, float | None, float]]]]:
    """For each judged topic its retrieved and its missed documents: (doc, label or None, score)."""
    joined = {}
    for qid, judged in qrels.items():
        answers = run.get(qid, {})
        labels = {doc: label for doc, label in judged.items() if label >= 0}
        joined[qid] = {
            "retrieved": [(doc, labels.get(doc), score) for doc, score in answers.items()],
            "missed": [(d, y, float("-inf")) for d, y in labels.items() if d not in answers],
        }
    return joined
