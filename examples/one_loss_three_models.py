"""One loss, one data set, three scoring functions: linear, boosted trees, a network.

The network needs PyTorch: pip install "rankwise[neural]".
"""

import rankwise as rw

queries = rw.make_queries()
train, valid, test = (queries.take(range(*r)) for r in ((0, 200), (200, 300), (300, 800)))

for loss in ("ranknet", "listnet", "lambdarank"):
    models = {
        "trees": rw.TreeRanker(
            loss, n_estimators=150, num_leaves=8, early_stopping_rounds=20, random_state=0
        ),
        "network": rw.NeuralRanker(
            loss, hidden=(64,), n_epochs=40, learning_rate=0.01, early_stopping_rounds=8,
            random_state=0,
        ),
    }  # fmt: skip
    # LambdaRank's gradient belongs to no function, so no convex solver minimises it; a network
    # without hidden layers is a linear model that follows the gradient.
    linear = (
        rw.NeuralRanker(loss, hidden=(), n_epochs=40, learning_rate=0.01, random_state=0)
        if loss == "lambdarank"
        else rw.LinearRanker(loss)
    )
    for name, model in {"linear": linear, **models}.items():
        model.fit(train, eval_set=valid)
        print(f"{loss:11} {name:8} nDCG@10 {model.score(test):.3f}")
