"""Aggregate the opinions of experts on items that have features; most experts know nothing."""

import numpy as np

import rankwise as rw

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))  # 10 queries of 20 items
qid = np.repeat(np.arange(10), 20)
truth = X @ [2.0, -1.0, 1.0, 0.0]
good = [truth + 3 * rng.normal(size=200) for _ in range(5)]
R = np.column_stack(good + [rng.normal(size=200) for _ in range(10)])
R[rng.random(R.shape) < 0.3] = np.nan  # each expert rated 70 % of the items

model = rw.RetargetedAggregation(missing="ignore").fit(X, R, qid=qid)
labels = np.digitize(truth, [-1.5, 1.5]).astype(float)
ndcg = rw.Metric("ndcg") @ 5
borda = rw.borda(R, qid=qid, missing="skip")
print(f"Borda        nDCG@5 {ndcg.mean(labels, borda, qid=qid):.3f}")
print(f"retargeted   nDCG@5 {ndcg.mean(labels, model.scores_, qid=qid):.3f}")
print(f"X alone      nDCG@5 {ndcg.mean(labels, model.predict(X), qid=qid):.3f}")
print("experts kept", np.flatnonzero(model.keep_ > 0.5) + 1)
rw.plot_experts(model, path="experts.png")
