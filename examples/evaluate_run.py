"""Measure two TREC runs against judgements and test the difference."""

from pathlib import Path

import rankwise as rw

Path("qrels.txt").write_text("1 0 a 2\n1 0 b 0\n1 0 c 1\n2 0 a 1\n2 0 d 0\n3 0 b 1\n3 0 c 1\n")
Path("first.run").write_text(
    "1 Q0 a 1 9.1 first\n1 Q0 b 2 8.0 first\n1 Q0 c 3 7.5 first\n"
    "2 Q0 d 1 3.2 first\n2 Q0 a 2 3.0 first\n3 Q0 c 1 1.0 first\n3 Q0 e 2 0.5 first\n"
)
Path("second.run").write_text(
    "1 Q0 c 1 9.1 second\n1 Q0 a 2 8.0 second\n2 Q0 a 1 3.2 second\n2 Q0 d 2 3.0 second\n3 Q0 b 1 1.0 second\n"
)

qrels = rw.read_qrels("qrels.txt")
for name in ("first.run", "second.run"):
    judged = rw.join(qrels, rw.read_run(name))
    values = rw.evaluate(["ndcg@10", "ap", "rr"], judged.y_true, judged.y_score, qid=judged.groups)
    print(name, {metric: v.round(3).tolist() for metric, v in values.items()})
