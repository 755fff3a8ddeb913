"""Fit a few rankers on judged queries and say which is better, and how surely."""

import rankwise as rw

queries = rw.make_queries()
train, valid, test = (
    queries.take(range(200)),
    queries.take(range(200, 300)),
    queries.take(range(300, 800)),
)

experiment = rw.run_experiment(
    ["linear", "ranksvm(C=0.01)", "lambdamart(num_leaves=8, n_estimators=100)"],
    [rw.Fold(train, valid, test)],
    ["ndcg@10", "ap"],
)
comparison = experiment.compare()
print(comparison.to_text())
for outcome in experiment.outcomes:
    print(outcome.name, outcome.choices[0].params)
