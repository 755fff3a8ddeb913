"""Fuse three runs, find weights on judged topics, and aggregate plain rank lists."""

import rankwise as rw

runs = {
    "terms": rw.Run.from_dict({"t1": {"a": 9.1, "b": 8.0, "c": 7.5}, "t2": {"d": 3.2, "a": 3.0}}),
    "vectors": rw.Run.from_dict({"t1": {"c": 0.9, "a": 0.8, "e": 0.1}, "t2": {"a": 0.7}}),
    "clicks": rw.Run.from_dict({"t1": {"e": 12.0, "a": 11.0}}),
}
qrels = rw.Qrels.from_dict({"t1": {"a": 2, "c": 1, "e": 0}, "t2": {"a": 1, "d": 0}})

fused = rw.fuse(runs, "rrf")
print(fused.to_dict())
print({name: rw.evaluate_run(qrels, run, "ap").means("ap")[0].value for name, run in runs.items()})
print("rrf", rw.evaluate_run(qrels, fused, "ap").means("ap")[0].value)

weights = rw.tune_weights(runs, qrels, "ap", "comb_sum", norm="minmax", topics=["t1"])
print(dict(zip(weights.names, weights.weights.round(3).tolist(), strict=True)), weights.value)
print(rw.fuse(runs, "comb_sum", norm="minmax", weights=weights, k=2).to_dict())

votes = rw.RankLists.from_rankings([["tea", "rum"], ["rum", ("milk", "tea")]], count=[3, 2])
for name in ("borda", "copeland", "mc4", "kemeny"):
    print(name, votes.ranking(rw.AGGREGATORS[name](votes)))
print(rw.agreement(runs, "rank_biased_overlap"))
