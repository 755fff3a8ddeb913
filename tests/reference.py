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


def one_list(y, s, weight):
    """The judged documents of a query as (label, score, weight)."""
    weight = [1.0] * len(y) if weight is None else weight
    return [(a, b, w) for a, b, w in zip(y, s, weight, strict=True) if a == a]


def pair_sum(pair):
    """Value of one query as a sum of ``pair(s_winner, s_loser)``."""

    def value(y, s, weight):
        docs = one_list(y, s, weight)
        return sum(w * pair(a - b) for i, a, w in docs for j, b, _ in docs if i > j)

    return value


def even_ranknet(y, s, weight):
    docs = one_list(y, s, weight)
    soft = [math.log1p(math.exp(-(a - b))) for _, a, _ in docs for _, b, _ in docs]
    soft = iter(soft)
    total = 0.0
    for i, (y_i, _, w_i) in enumerate(docs):
        for j, (y_j, _, _) in enumerate(docs):
            loss = next(soft)
            # Both directions of an even pair count half.
            total += w_i * loss * (1.0 if y_i > y_j else 0.5 if y_i == y_j and i != j else 0.0)
    # The weight of an even pair is the mean of both, not the first one's for each direction.
    for i, j in itertools.combinations(range(len(docs)), 2):
        (y_i, a, w_i), (y_j, b, w_j) = docs[i], docs[j]
        if y_i == y_j:
            up, down = math.log1p(math.exp(-(a - b))), math.log1p(math.exp(a - b))
            total += (w_i + w_j) / 2 * (up + down) / 2 - (w_i * up + w_j * down) / 2
    return total


def logistic(target):
    def value(y, s, weight):
        total = 0.0
        for label, score, w in one_list(y, s, weight):
            p = 1 / (1 + math.exp(-score))
            total -= w * (target(label) * math.log(p) + (1 - target(label)) * math.log(1 - p))
        return total

    return value


def poisson(y, s, weight):
    total = 0.0
    for label, score, w in one_list(y, s, weight):
        entropy = label * math.log(label) if label else 0.0
        total += w * (math.exp(score) - label * score - label + entropy)
    return total


def softmax(gain):
    def value(y, s, weight):
        docs = one_list(y, s, weight)
        gains, mass = sum(gain(a) for a, _, _ in docs), sum(math.exp(b) for _, b, _ in docs)
        if gains == 0:
            return 0.0
        return -sum(w * gain(a) / gains * (b - math.log(mass)) for a, b, w in docs)

    return value


def listmle(position):
    def value(y, s, weight):
        docs = sorted(one_list(y, s, weight), key=lambda doc: -doc[0])
        places = {}
        for place, (label, _, _) in enumerate(docs, 1):
            places.setdefault(label, []).append(position(place))
        total = 0.0
        for label, score, w in docs:
            if label > docs[-1][0]:
                left = sum(math.exp(b - score) for a, b, _ in docs if a <= label)
                total += w * sum(places[label]) / len(places[label]) * math.log(left)
        return total

    return value


def approx_ndcg(gain, alpha):
    def value(y, s, weight):
        docs = one_list(y, s, weight)
        if len(docs) < 2:
            return 0.0
        weighted = sorted((w * gain(a) for a, _, w in docs), reverse=True)
        plain = sorted((gain(a) for a, _, _ in docs), reverse=True)
        best, ideal = (
            sum(g / math.log2(1 + r) for r, g in enumerate(gains, 1)) for gains in (weighted, plain)
        )
        if ideal == 0:
            return 0.0
        reached = 0.0
        for i, (a, b, w) in enumerate(docs):
            others = [c for j, (_, c, _) in enumerate(docs) if j != i]
            rank = 1 + sum(1 / (1 + math.exp(alpha * (b - c))) for c in others)
            reached += w * gain(a) / math.log2(1 + rank)
        return (best - reached) / ideal

    return value


def ordinal(cost, gaps):
    """Value of all queries together: the thresholds by a general minimiser."""
    from scipy.optimize import minimize

    def value(y, s, weight):
        docs = one_list(y, s, weight)
        levels = sorted({a for a, _, _ in docs})

        def total(theta):
            if gaps and any(b <= a for a, b in itertools.pairwise(theta)):
                return 1e9
            loss = 0.0
            for label, score, w in docs:
                k = levels.index(label)
                if gaps:
                    upper = 1.0 if k == len(theta) else 1 / (1 + math.exp(score - theta[k]))
                    lower = 0.0 if k == 0 else 1 / (1 + math.exp(score - theta[k - 1]))
                    loss -= w * math.log(upper - lower)
                    continue
                loss += w * cost(score - theta[k]) if k < len(theta) else 0.0
                loss += w * cost(theta[k - 1] - score) if k > 0 else 0.0
            return loss

        start = np.linspace(-0.5, 0.5, len(levels) - 1)
        options = {"xatol": 1e-10, "fatol": 1e-13, "maxiter": 4000, "maxfev": 4000}
        return minimize(total, start, method="Nelder-Mead", options=options).fun

    return value


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


# --- metrics -----------------------------------------------------------------------------------
# One query as plain lists: `ranked` are the labels of the retrieved documents, best rank first;
# `labels` those of all its documents. NaN is unjudged, -1 pooled and not judged (infAP only).


def metric(name, y, s, *, ties="average", docs=None, **options):
    """Value of a metric for one query; average ties by going through every order."""
    if name in CORRELATIONS:
        return CORRELATIONS[name](list(y), list(s), **options)
    labels = [float(v) for v in y]
    if ties == "together":
        return _ap_together(labels, list(s), **options)
    measure = MEASURES[name]
    values = [
        measure([labels[i] for i in order], labels, **options)
        for order in _orders(labels, list(s), ties, docs)
    ]
    return sum(values) / len(values)


def _orders(y, s, ties, docs):
    """Rankings of the retrieved documents that a tie rule allows."""
    kept = [i for i in range(len(s)) if s[i] != -np.inf]

    def low(i):
        return y[i] if y[i] == y[i] else -1.0

    if ties == "average":
        return [[kept[i] for i in order] for order in orders_of([s[i] for i in kept])]
    if ties == "trec":
        first = sorted(kept, key=lambda i: docs[i], reverse=True)
        return [sorted(first, key=lambda i: -s[i])]
    within = {"stable": lambda i: 0, "worst": low, "best": lambda i: -low(i)}[ties]
    return [sorted(kept, key=lambda i: (-s[i], within(i)))]


def _gain(gain):
    if gain == "exp2":
        return lambda y: 2.0**y - 1 if y == y else 0.0
    if gain == "identity":
        return lambda y: y if y == y else 0.0
    return lambda y: gain[int(y)] if y == y else 0.0


def _discount(discount):
    if discount == "log2":
        return lambda rank: 1 / np.log2(1 + rank)
    if discount == "letor":
        return lambda rank: 1.0 if rank <= 2 else 1 / np.log2(rank)
    return lambda rank: discount[rank - 1] if rank <= len(discount) else 0.0


def _dcg(ranked, k, gain, discount):
    kept = ranked if k is None else ranked[:k]
    return sum(gain(y) * discount(rank) for rank, y in enumerate(kept, 1))


def _ideal_order(labels):
    return sorted((y for y in labels if y == y), reverse=True)


def _or_empty(value, empty):
    return value if empty == "skip" or value == value else empty


def dcg(ranked, labels, k=None, gain="exp2", discount="log2", empty="skip"):
    g = _gain(gain)
    value = _dcg(ranked, k, g, _discount(discount)) if any(g(y) > 0 for y in labels) else np.nan
    return _or_empty(value, empty)


def ndcg(ranked, labels, k=None, gain="exp2", discount="log2", short="pad", empty="skip"):
    g, d = _gain(gain), _discount(discount)
    if not any(g(y) > 0 for y in labels):
        return _or_empty(np.nan, empty)
    if short == "zero" and k is not None and len(ranked) < k:
        return 0.0
    return _dcg(ranked, k, g, d) / _dcg(_ideal_order(labels), k, g, d)


def mean_ndcg(ranked, labels, gain="exp2", discount="log2", empty="skip"):
    if not any(_gain(gain)(y) > 0 for y in labels):
        return _or_empty(np.nan, empty)
    each = [ndcg(ranked, labels, k, gain, discount) for k in range(1, len(ranked) + 1)]
    return sum(each) / len(each) if each else 0.0


def eru(ranked, labels, half_life=5.0, neutral=0.0, empty="skip"):
    def worth(order):
        return sum(
            2 ** (-(rank - 1) / (half_life - 1)) * max(y - neutral, 0)
            for rank, y in enumerate(order, 1)
            if y == y
        )

    best = worth(_ideal_order(labels))
    return worth(ranked) / best if best > 0 else _or_empty(np.nan, empty)


def _hits(ranked, k, rel):
    return sum(y >= rel for y in (ranked if k is None else ranked[:k]))


def _n_relevant(labels, rel):
    return sum(y >= rel for y in labels)


def _needs_relevant(measure):
    def value(ranked, labels, rel=1.0, empty="skip", **options):
        if _n_relevant(labels, rel) == 0:
            return _or_empty(np.nan, empty)
        return measure(ranked, labels, rel=rel, **options)

    return value


def _size(ranked, k, short="pad"):
    if k is None:
        return len(ranked)
    return min(k, len(ranked)) if short == "cut" else k


def precision(ranked, labels, rel, k=None, short="pad"):
    size = _size(ranked, k, short)
    if short == "zero" and len(ranked) < size:
        return 0.0
    return _hits(ranked, k, rel) / size if size else 0.0


def recall(ranked, labels, rel, k=None):
    return _hits(ranked, k, rel) / _n_relevant(labels, rel)


def f1(ranked, labels, rel, k=None, short="pad"):
    p, r = precision(ranked, labels, rel, k, short), recall(ranked, labels, rel, k)
    return 2 * p * r / (p + r) if p + r > 0 else 0.0


def success(ranked, labels, rel, k=None):
    return float(_hits(ranked, k, rel) > 0)


def relative_precision(ranked, labels, rel, k=None):
    best = min(_n_relevant(labels, rel), len(ranked) if k is None else k)
    return _hits(ranked, k, rel) / best if best else 0.0


def set_ap(ranked, labels, rel, k=None):
    return precision(ranked, labels, rel, k) * recall(ranked, labels, rel, k)


def r_precision(ranked, labels, rel, multiple=1.0):
    cut = max(1, int(multiple * _n_relevant(labels, rel) + 0.9))
    return _hits(ranked, cut, rel) / cut


def ap(ranked, labels, rel, k=None, norm="R"):
    R = _n_relevant(labels, rel)
    kept = ranked if k is None else ranked[:k]
    total = sum(precision(ranked, labels, rel, j) for j, y in enumerate(kept, 1) if y >= rel)
    return total / (min(R, k) if norm == "min" and k is not None else R)


def _ap_together(y, s, k=None, rel=1.0, empty="skip"):
    """AP where each threshold on the score admits all documents that reach it."""
    R = _n_relevant(y, rel)
    if R == 0:
        return _or_empty(np.nan, empty)
    total = 0.0
    for label, score in zip(y, s, strict=True):
        admitted = [a for a, b in zip(y, s, strict=True) if b >= score]
        if label >= rel and score > -np.inf and (k is None or len(admitted) <= k):
            total += sum(a >= rel for a in admitted) / len(admitted)
    return total / R


def rr(ranked, labels, rel, k=None):
    places = [j for j, y in enumerate(ranked if k is None else ranked[:k], 1) if y >= rel]
    return 1 / places[0] if places else 0.0


def err(ranked, labels, k=None, top=4.0, empty="skip"):
    if not any(y > 0 for y in labels):
        return _or_empty(np.nan, empty)
    value, reach = 0.0, 1.0
    for rank, y in enumerate(ranked if k is None else ranked[:k], 1):
        stop = (2.0**y - 1) / 2.0**top if y == y else 0.0
        value += reach * stop / rank
        reach *= 1 - stop
    return value


def rbp(ranked, labels, k=None, p=0.8, relevance="binary", rel=1.0, empty="skip"):
    if relevance == "graded":
        top = max([y for y in labels if y == y], default=0.0)
        if top <= 0:
            return _or_empty(np.nan, empty)
        worth = [y / max(top, 1.0) if y > 0 else 0.0 for y in ranked]
    else:
        if _n_relevant(labels, rel) == 0:
            return _or_empty(np.nan, empty)
        worth = [float(y >= rel) for y in ranked]
    kept = worth if k is None else worth[:k]
    return (1 - p) * sum(p ** (rank - 1) * w for rank, w in enumerate(kept, 1))


def rbp_residual(ranked, labels, p=0.8, tail="always"):
    unseen = [(1 - p) * p ** (rank - 1) for rank, y in enumerate(ranked, 1) if y != y]
    if tail == "if_unjudged" and not unseen:
        return 0.0
    return sum(unseen) + p ** len(ranked)


def wta(ranked, labels, empty="skip"):
    top = max((y for y in labels if y == y), default=0.0)
    if top <= 0:
        return _or_empty(np.nan, empty)
    return float(bool(ranked) and ranked[0] == top)


def bpref(ranked, labels, rel):
    R = _n_relevant(labels, rel)
    N = sum(y < rel for y in labels)
    total, above = 0.0, 0
    for y in ranked:
        if y >= rel:
            total += 1 - (min(above, R) / min(N, R) if above else 0.0)
        elif y == y:
            above += 1
    return total / R


def infap(ranked, labels, rel):
    total, relevant, other, pooled, eps = 0.0, 0, 0, 0, 1e-5
    for rank, y in enumerate(ranked, 1):
        if y >= rel:
            if rank == 1:
                total += 1
            else:
                seen = (relevant + other + pooled) / (rank - 1)
                share = (relevant + eps) / (relevant + other + 2 * eps)
                total += 1 / rank + (rank - 1) / rank * seen * share
            relevant += 1
        elif y >= 0:
            other += 1
        elif y == -1:
            pooled += 1
    return total / _n_relevant(labels, rel)


def judged(ranked, labels, k=None, short="pad"):
    size = _size(ranked, k, short)
    return sum(y == y for y in (ranked if k is None else ranked[:k])) / size if size else 0.0


def unjudged(ranked, labels, k=None):
    size = _size(ranked, k)
    return sum(y != y for y in (ranked if k is None else ranked[:k])) / size if size else 0.0


def _pair_share(ranked, labels, better):
    """Share of pairs (i, j) with better(i, j) of which i is retrieved and j is not above it."""
    everything = sum(better(a, b) for a in labels for b in labels)
    if everything == 0:
        return np.nan
    missed = list(labels)
    for y in ranked:
        missed.remove(next(v for v in missed if v is y or v == y or (v != v and y != y)))
    right = sum(better(a, b) for i, a in enumerate(ranked) for b in ranked[i + 1 :] + missed)
    return right / everything


def pairwise_accuracy(ranked, labels, empty="skip"):
    return _or_empty(_pair_share(ranked, labels, lambda a, b: a > b), empty)


def auc(ranked, labels, rel=1.0, empty="skip"):
    return _or_empty(_pair_share(ranked, labels, lambda a, b: a >= rel > b), empty)


def interpolated_precision(ranked, labels, rel, recall=(0.0, 0.5, 1.0), rounding="nearest"):
    R = _n_relevant(labels, rel)
    points = []
    for level in recall:
        need = int(level * R + 0.9) if rounding == "up" else int(level * R + 0.5)
        cuts = [j for j in range(1, len(ranked) + 1) if _hits(ranked, j, rel) >= need]
        points.append(max((precision(ranked, labels, rel, j) for j in cuts), default=0.0))
    return sum(points) / len(points)


def bin_g(ranked, labels, rel):
    total = sum(
        1 / np.log2(2 + sum(not v >= rel for v in ranked[:j]))
        for j, y in enumerate(ranked)
        if y >= rel
    )
    return total / _n_relevant(labels, rel)


def g(ranked, labels, gain="identity", empty="skip"):
    worth = _gain(gain)
    best = [worth(y) for y in _ideal_order(labels)] + [0.0] * len(ranked)
    if not best or best[0] <= 0:
        return _or_empty(np.nan, empty)
    total = 0.0
    for j in range(len(ranked)):
        cost = sum(max(b, 1.0) for b in best[: j + 1])
        total += worth(ranked[j]) / np.log2(2 + cost - sum(worth(y) for y in ranked[: j + 1]))
    return total / sum(best)


def ndcg_rel(ranked, labels, gain="exp2", discount="log2", empty="skip"):
    worth = _gain(gain)
    n = sum(worth(y) > 0 for y in labels)
    if n == 0:
        return _or_empty(np.nan, empty)
    at = [j for j, y in enumerate(ranked, 1) if worth(y) > 0]
    total = sum(ndcg(ranked, labels, j, gain, discount) for j in at)
    return (total + (n - len(at)) * ndcg(ranked, labels, None, gain, discount)) / n


def r_ndcg(ranked, labels, gain="exp2", discount="log2", empty="skip"):
    worth = _gain(gain)
    best = [y for y in _ideal_order(labels) if worth(y) > 0]
    if not best:
        return _or_empty(np.nan, empty)
    cuts = [j for j in range(1, len(best) + 1) if j == len(best) or best[j] != best[j - 1]]
    points = [ndcg(ranked, labels, j, gain, discount) for j in cuts]
    if len(ranked) > len(best) + 1:
        points.append(ndcg(ranked, labels, None, gain, discount))
    return sum(points) / len(points)


def _retrieved_pairs(y, s):
    kept = [(a, b) for a, b in zip(y, s, strict=True) if a == a and b != -np.inf]
    return [(kept[i], kept[j]) for i in range(len(kept)) for j in range(i)], len(kept)


def _tau(y, s, empty, norm):
    if len({v for v in y if v == v}) < 2:
        return _or_empty(np.nan, empty)
    pairs, _ = _retrieved_pairs(y, s)
    agree = sum(np.sign(a[0] - b[0]) * np.sign(a[1] - b[1]) for a, b in pairs)
    scale = norm(pairs)
    return agree / scale if scale > 0 else 0.0


def tau_a(y, s, empty="skip"):
    return _tau(y, s, empty, len)


def tau_b(y, s, empty="skip"):
    def norm(pairs):
        free_y = sum(a[0] != b[0] for a, b in pairs)
        free_s = sum(a[1] != b[1] for a, b in pairs)
        return np.sqrt(free_y * free_s)

    return _tau(y, s, empty, norm)


def rho(y, s, empty="skip"):
    if len({v for v in y if v == v}) < 2:
        return _or_empty(np.nan, empty)
    kept = [(a, b) for a, b in zip(y, s, strict=True) if a == a and b != -np.inf]

    def mid_ranks(values):
        return [sum(v < w for v in values) + (sum(v == w for v in values) + 1) / 2 for w in values]

    if len(kept) < 2:
        return 0.0
    a, b = mid_ranks([v for v, _ in kept]), mid_ranks([w for _, w in kept])
    if np.std(a) == 0 or np.std(b) == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


MEASURES = {
    **{f.__name__: f for f in (dcg, ndcg, mean_ndcg, eru, err, rbp, rbp_residual, wta, judged)},
    **{f.__name__: f for f in (unjudged, pairwise_accuracy, auc, g, ndcg_rel, r_ndcg)},
    **{
        f.__name__: _needs_relevant(f)
        for f in (precision, recall, f1, success, relative_precision, set_ap, r_precision, ap, rr)
    },
    **{f.__name__: _needs_relevant(f) for f in (bpref, infap, interpolated_precision, bin_g)},
}
CORRELATIONS = {"tau_a": tau_a, "tau_b": tau_b, "rho": rho}
