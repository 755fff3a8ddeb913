"""Each quantity again, slow and obvious: the oracles of the tests."""

from __future__ import annotations

import itertools

import numpy as np

# --- lambda gradients --------------------------------------------------------------------------


def orders_of(scores):
    """Every ranking (list of document numbers, best first) that the scores allow."""
    levels = sorted(set(scores), reverse=True)
    blocks = [[i for i, s in enumerate(scores) if s == level] for level in levels]
    for choice in itertools.product(*(itertools.permutations(block) for block in blocks)):
        yield [i for block in choice for i in block]


def swap_weights(gains, scores, discount, ideal, *, ties="average", truncation=None):
    """Matrix of |g_i - g_j| |D(p_i) - D(p_j)| / ideal, the mean over the orders of tied documents."""
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
    """Loss, gradient and curvature of one query from all pairs (winner, loser) with fixed weights."""
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
