"""Every ranker, in settings quick enough to test; a ranker listed here is covered by its contract.

``RANKERS`` is what ``test_estimators.py`` and ``test_saving.py`` run over. ``EXPECTED_FAILURES``
lists the checks of scikit-learn that cannot hold for a ranker, each with its reason.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from lightgbm import LGBMClassifier
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeRegressor

import rankwise as rw

RANKERS = {
    "random": rw.RandomRanker(),
    "feature": rw.FeatureRanker(),
    "pointwise ridge": rw.PointwiseRanker(Ridge()),
    "pointwise tree": rw.PointwiseRanker(DecisionTreeRegressor(max_depth=4, random_state=0)),
    "pointwise classes": rw.PointwiseRanker(
        LGBMClassifier(n_estimators=5, num_leaves=8, n_jobs=1, verbosity=-1, deterministic=True)
    ),
    "pointwise logistic": rw.PointwiseRanker(LogisticRegression(max_iter=300)),
    "linear squared": rw.LinearRanker("squared"),
    "linear ranknet": rw.LinearRanker("ranknet"),
    "linear listnet": rw.LinearRanker("listnet"),
    "linear squared hinge": rw.LinearRanker("squared_hinge", scale=None),
    "mr": rw.MonotoneRetargeting(),
    "memr": rw.MonotoneRetargeting("squared", restriction="margin", alpha=1.0),
    "linear l1": rw.LinearRanker("ranknet", alpha=5.0, l1_ratio=0.5),
    "ranksvm": rw.RankSVM(C=0.1),
    "ranksvm hinge": rw.RankSVM(C=0.1, loss="hinge", tol=1e-3, max_iter=1000),
    "dorm": rw.DORM(C=0.01),
    "dorm linear": rw.DORM("ndcg@5", C=0.01, places="linear", solver="bundle", scale=None),
    "svm-map": rw.DORM("ap", C=0.1),
    "rankboost": rw.RankBoost(n_estimators=20, n_jobs=1),
    "adarank": rw.AdaRank("ap", n_estimators=10),
    "coordinate ascent": rw.CoordinateAscent(n_restarts=2, max_iter=2, random_state=0, n_jobs=1),
    "coordinate ascent exact": rw.CoordinateAscent(
        search="exact", n_restarts=1, max_iter=2, random_state=0, n_jobs=1
    ),
    "kernel ranksvm": rw.KernelRankSVM("rbf", C=0.1),
    "kernel ranksvm hinge": rw.KernelRankSVM("laplacian", C=0.1, loss="hinge", tol=1e-3),
    "kernel ranker": rw.KernelRanker(rw.Nystroem(40, gamma=0.1, random_state=0), C=0.1),
    "kernel ranker listnet": rw.KernelRanker(
        rw.RandomFourierFeatures(40, gamma=0.1, form="paired", random_state=0), loss="listnet"
    ),
    "kernel ranker squared": rw.KernelRanker(
        rw.Nystroem(40, gamma=0.1, landmarks="kmeans", random_state=0), loss="squared"
    ),
    "kernel ranker of sklearn": rw.KernelRanker(RBFSampler(gamma=0.1, random_state=0), C=0.1),
    "ranknystrom": rw.RankNystrom(40, gamma=0.1, C=0.1, random_state=0),
    "rankrandomfourier": rw.RankRandomFourier(40, gamma=0.1, C=0.1, random_state=0),
    # One thread: lists this short are done before another has woken up.
    "trees squared": rw.TreeRanker("squared", n_estimators=10, num_leaves=8, n_jobs=1),
    "lambdamart": rw.TreeRanker(n_estimators=10, num_leaves=8, n_jobs=1),
    "lambdamart sampled": rw.TreeRanker(
        n_estimators=30, num_leaves=8, subsample=0.7, colsample_bytree=0.7, random_state=3, n_jobs=1
    ),
    "mlp": rw.NeuralRanker(
        hidden=(16,), n_epochs=8, batch_queries=4, learning_rate=0.02, random_state=0
    ),
    "attention": rw.NeuralRanker(
        network="attention", hidden=(8,), heads=2, blocks=1, n_epochs=8, batch_queries=4,
        learning_rate=0.02, scale="quantile", random_state=0,
    ),
}  # fmt: skip

# Rankers whose score of a document depends on the rest of its list.
LISTWISE = {"attention"}

# Rankers whose model is an estimator of another library.
FOREIGN = {"pointwise ridge", "pointwise tree", "pointwise classes", "pointwise logistic"}
FOREIGN |= {"kernel ranker of sklearn"}


def one_query(ranker):
    """The ranker for scikit-learn's checks, which know no qid: all rows are one query."""
    kind = type(ranker)
    name = f"OneQuery{kind.__name__}"
    if name not in globals():

        class OneQuery(kind):
            def fit(self, X, y=None, *, qid=None, sample_weight=None, eval_set=None):
                qid = _zeros(X) if qid is None else qid
                return super().fit(X, y, qid=qid, sample_weight=sample_weight, eval_set=eval_set)

            def score(self, X, y=None, *, qid=None, sample_weight=None):
                qid = _zeros(X) if qid is None else qid
                return super().score(X, y, qid=qid, sample_weight=sample_weight)

            def predict(self, X, *, qid=None):
                if qid is None and self._looks_at_lists() and hasattr(X, "shape"):
                    qid = _zeros(X)
                return super().predict(X, qid=qid)

        if hasattr(kind, "partial_fit"):

            def partial_fit(self, X, y=None, *, qid=None, sample_weight=None):
                qid = _zeros(X) if qid is None else qid
                return kind.partial_fit(self, X, y, qid=qid, sample_weight=sample_weight)

            OneQuery.partial_fit = partial_fit
        OneQuery.__name__ = OneQuery.__qualname__ = name
        OneQuery.__init__ = kind.__init__
        globals()[name] = OneQuery  # so that it can be pickled
    return globals()[name](**ranker.get_params(deep=False))


def _zeros(X):
    return np.zeros(X.shape[0] if sp.issparse(X) else np.asarray(X).shape[:1], int)


_SPREAD = "scale='std' is the spread of all rows, whatever their weight"
_WINNER = "a weight is that of the pairs a document wins; a document of weight 0 still loses pairs"
_TARGET = "a weight is that of a share of the target; a document of weight 0 still competes"
_MEAN = "a query's weight is the mean of its documents', and a document of weight 0 is still ranked"
_COPIES = "a query counts with the mean weight of its documents, and scale='std' with all rows"
_SHARE = (
    "a document of weight 0 has its place in a list and in a batch, and in the scale of features"
)
_LISTS = "the score of a document depends on its list"
_ONE = "one document is refused with a sentence of ours: there is no order to learn"

_WEIGHTS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)

EXPECTED_FAILURES = {
    "linear squared": dict.fromkeys(_WEIGHTS, _SPREAD) | {"check_fit2d_1sample": _ONE},
    "linear ranknet": dict.fromkeys(_WEIGHTS, _WINNER) | {"check_fit2d_1sample": _ONE},
    "linear listnet": dict.fromkeys(_WEIGHTS, _TARGET) | {"check_fit2d_1sample": _ONE},
    "linear squared hinge": dict.fromkeys(_WEIGHTS, _WINNER) | {"check_fit2d_1sample": _ONE},
    "linear l1": dict.fromkeys(_WEIGHTS, _WINNER) | {"check_fit2d_1sample": _ONE},
    "ranksvm": dict.fromkeys(_WEIGHTS, _WINNER) | {"check_fit2d_1sample": _ONE},
    "kernel ranksvm": dict.fromkeys(_WEIGHTS, _WINNER) | {"check_fit2d_1sample": _ONE},
    "kernel ranksvm hinge": dict.fromkeys(_WEIGHTS, _WINNER) | {"check_fit2d_1sample": _ONE},
    "ranksvm hinge": dict.fromkeys(_WEIGHTS, _WINNER) | {"check_fit2d_1sample": _ONE},
    "dorm": dict.fromkeys(_WEIGHTS, _MEAN) | {"check_fit2d_1sample": _ONE},
    "dorm linear": dict.fromkeys(_WEIGHTS, _MEAN) | {"check_fit2d_1sample": _ONE},
    "svm-map": {"check_fit2d_1sample": _ONE},
    "rankboost": dict.fromkeys(_WEIGHTS, _WINNER) | {"check_fit2d_1sample": _ONE},
    "adarank": {"check_fit2d_1sample": _ONE},
    "coordinate ascent": dict.fromkeys(_WEIGHTS, _MEAN) | {"check_fit2d_1sample": _ONE},
    "coordinate ascent exact": dict.fromkeys(_WEIGHTS, _MEAN) | {"check_fit2d_1sample": _ONE},
    "mlp": dict.fromkeys(_WEIGHTS, _SHARE) | {"check_fit2d_1sample": _ONE},
    "attention": dict.fromkeys(_WEIGHTS, _SHARE)
    | {"check_fit2d_1sample": _ONE, "check_methods_subset_invariance": _LISTS},
    "kernel ranker": dict.fromkeys(_WEIGHTS, _WINNER) | {"check_fit2d_1sample": _ONE},
    "kernel ranker of sklearn": dict.fromkeys(_WEIGHTS, _WINNER) | {"check_fit2d_1sample": _ONE},
    "ranknystrom": dict.fromkeys(_WEIGHTS, _WINNER) | {"check_fit2d_1sample": _ONE},
    "rankrandomfourier": dict.fromkeys(_WEIGHTS, _WINNER) | {"check_fit2d_1sample": _ONE},
    "kernel ranker listnet": dict.fromkeys(_WEIGHTS, _TARGET) | {"check_fit2d_1sample": _ONE},
    "mr": dict.fromkeys(_WEIGHTS, _COPIES) | {"check_fit2d_1sample": _ONE},
    "memr": dict.fromkeys(_WEIGHTS, _COPIES) | {"check_fit2d_1sample": _ONE},
    "kernel ranker squared": {"check_fit2d_1sample": _ONE},
}


def fitted_values(ranker):
    """Everything that fit set, also in the map or ranker inside."""
    values = {}
    for name, value in vars(ranker).items():
        if not name.endswith("_") or name == "estimator_":
            continue
        if hasattr(value, "get_params"):
            inner = fitted_values(value) | {"params": repr(value)}
            values |= {f"{name}.{key}": v for key, v in inner.items()}
        else:
            values[name] = value
    return values
