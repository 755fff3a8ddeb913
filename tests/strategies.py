"""Random judged lists for hypothesis: tied, missing and unjudged documents are common."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

LEVELS = [-2.5, -1.0, 0.0, 0.25, 1.0, 1e300]


@st.composite
def ranked_lists(draw, *, max_docs=6, max_queries=4, unjudged=True, missed=True, labels=None):
    """(y_true, y_score, qid) of a few short queries, rows of a query not always contiguous."""
    sizes = draw(st.lists(st.integers(1, max_docs), min_size=1, max_size=max_queries))
    label = st.sampled_from(labels if labels is not None else [0.0, 0.0, 1.0, 2.0, 0.5, 4.0])
    if unjudged:
        label = st.one_of(label, label, st.just(np.nan))
    score = st.sampled_from(LEVELS)
    if missed:
        score = st.one_of(score, score, st.just(-np.inf))
    n = sum(sizes)
    y = np.array(draw(st.lists(label, min_size=n, max_size=n)))
    s = np.array(draw(st.lists(score, min_size=n, max_size=n)))
    qid = np.repeat(np.arange(len(sizes)), sizes)
    if draw(st.booleans()):
        qid = qid[draw(st.permutations(range(n)))]
    return y, s, qid
