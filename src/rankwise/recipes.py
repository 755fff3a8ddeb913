"""The literature's rankers by name.

Each entry says what the published system is in this library's terms: a scoring function, a loss,
their parameters, the grid its hyperparameters are chosen from on validation queries, and the ranges
in which a random or model-based search looks for them.

>>> import rankwise as rw
>>> rw.make_ranker("ranksvm(C=0.1)")
RankSVM(C=0.1)
>>> {"ranknet", "listmle", "mcrank"} <= set(rw.RECIPES)
True
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rankwise import _validate
from rankwise._text import parse_call
from rankwise.space import Range

if TYPE_CHECKING:
    from rankwise._estimator import Ranker


@dataclass(frozen=True)
class Recipe:
    """A published ranker: how to make it and what to choose on validation queries.

    Attributes
    ----------
    name : str
        Its name in the literature, lower case.
    summary, reference : str
        One line each.
    make : callable
        Keyword parameters to an unfitted ranker.
    grid : mapping of str to tuple
        Values tried for each hyperparameter; the first combination that is best on the
        validation queries is kept. The last one varies fastest: strengths of a penalty come last,
        the strongest first, so that a ranker with ``warm_start`` walks along them.
    missing : bool
        Whether it takes missing values (NaN).
    ranges : mapping of str to Range or tuple
        Where a random or model-based search looks for a hyperparameter, instead of its grid.
    """

    name: str
    summary: str
    reference: str
    make: Callable[..., Ranker]
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    missing: bool = False
    ranges: Mapping[str, Any] = field(default_factory=dict)

    def combinations(self, fixed: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Every combination of the grid, without the parameters that the user fixed."""
        free = self.grid_of(fixed)
        for values in itertools.product(*free.values()):
            yield dict(zip(free, values, strict=True))

    def grid_of(self, fixed: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
        """The grid without the parameters that the user fixed."""
        return {k: v for k, v in self.grid.items() if k not in fixed}

    def space(self, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """Grid and ranges together, without the parameters that the user fixed."""
        return {k: v for k, v in {**self.grid, **self.ranges}.items() if k not in fixed}


def _made(module: str, name: str, **fixed: Any) -> Callable[..., Ranker]:
    """Makes a class of rankwise, whose module is imported only then; parameters given win."""

    def make(**params: Any) -> Ranker:
        kind = getattr(importlib.import_module(f"rankwise.{module}"), name)
        ranker: Ranker = kind(**{**fixed, **params})
        return ranker

    return make


def _trees(loss: str, **fixed: Any) -> Callable[..., Ranker]:
    return _made("trees", "TreeRanker", loss=loss, **fixed)


def _network(**fixed: Any) -> Callable[..., Ranker]:
    return _made("neural", "NeuralRanker", **fixed)


def _linear(loss: str) -> Callable[..., Ranker]:
    def make(**params: Any) -> Ranker:
        from rankwise.linear import LinearRanker

        if "loss" in params:
            raise TypeError(
                f"recipe: loss must be left out, as the recipe stands for {loss!r}, got "
                f"{params['loss']!r}; LinearRanker takes any loss"
            )
        return LinearRanker(loss=loss, **params)

    return make


def _mcrank(**params: Any) -> Ranker:
    from lightgbm import LGBMClassifier

    from rankwise.baselines import PointwiseRanker

    # Bit-equal on every machine: histograms summed feature by feature, by one thread.
    fixed = {"deterministic": True, "force_col_wise": True, "n_jobs": 1, "verbosity": -1}
    trees = LGBMClassifier(n_estimators=200, learning_rate=0.05, num_leaves=15, **fixed)
    return PointwiseRanker(**{"estimator": trees, **params})


def _mcrank_linear(**params: Any) -> Ranker:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from rankwise.baselines import PointwiseRanker

    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return PointwiseRanker(**{"estimator": classifier, **params})


# Losses are sums over documents or pairs, so the useful strength of the penalty moves with the
# size of the data: the grids step by factors of ten.
_C = tuple(10.0**e for e in range(-6, 2))
_ALPHA = tuple(10.0**e for e in range(4, -3, -1))
# Targets on the simplex are of size 1/n, and a query's loss is a mean.
_SMALL_ALPHA = tuple(10.0**e for e in range(1, -7, -1))
_ALPHA_RANGE = {"alpha": Range(1e-2, 1e4, log=True)}
# The grids of the published program, whose C is twice ours.
_KERNEL: dict[str, tuple[Any, ...]] = {
    "gamma": tuple(2.0**e for e in range(-12, 3)),
    "C": tuple(2.0**e for e in range(-13, 6, 2)),
}
_KERNEL_RANGES = {"gamma": Range(2.0**-12, 4.0, log=True), "C": Range(2.0**-13, 32.0, log=True)}
_TREES: dict[str, tuple[Any, ...]] = {
    "num_leaves": (7, 15, 31),
    "learning_rate": (0.05,),
    "n_estimators": (500,),
    "early_stopping_rounds": (50,),
    "subsample": (0.8,),
    "colsample_bytree": (0.8,),
}
_TREE_RANGES: dict[str, Any] = {
    "num_leaves": Range(4, 64, log=True, integer=True),
    "learning_rate": Range(0.02, 0.2, log=True),
    "min_child_samples": Range(5, 100, log=True, integer=True),
    "reg_lambda": Range(1e-3, 10, log=True),
    "subsample": Range(0.5, 1.0),
    "colsample_bytree": Range(0.3, 1.0),
}

_NETWORKS: dict[str, tuple[Any, ...]] = {
    "n_epochs": (100,),
    "early_stopping_rounds": (10,),
    "dropout": (0.1,),
    "learning_rate": (1e-3, 1e-2),
}
_NETWORK_RANGES: dict[str, Any] = {
    "scale": ("log1p", "quantile"),
    "dropout": Range(0.0, 0.5),
    "weight_decay": Range(1e-6, 1e-2, log=True),
    "learning_rate": Range(3e-4, 3e-2, log=True),
}

RECIPES: dict[str, Recipe] = {
    r.name: r
    for r in (
        Recipe(
            "random",
            "scores at random, the floor of every comparison",
            "none",
            _made("baselines", "RandomRanker"),
            missing=True,
        ),
        Recipe(
            "linear",
            "pointwise: linear least squares on the labels",
            "Fuhr 1989, ACM TOIS 7(3)",
            _linear("squared"),
            {"alpha": _ALPHA},
            ranges=_ALPHA_RANGE,
        ),
        Recipe(
            "ranknet",
            "pairwise: linear scores, logistic loss on score differences",
            "Burges et al. 2005, ICML",
            _linear("ranknet"),
            {"alpha": _ALPHA},
            ranges=_ALPHA_RANGE,
        ),
        Recipe(
            "listnet",
            "listwise: linear scores, cross entropy of top-one probabilities",
            "Cao et al. 2007, ICML",
            _linear("listnet"),
            {"alpha": _ALPHA},
            ranges=_ALPHA_RANGE,
        ),
        Recipe(
            "ranksvm",
            "pairwise: linear scores, squared hinge loss on score differences",
            "Joachims 2002, KDD; Chapelle & Keerthi 2010, Information Retrieval 13(3)",
            _made("linear", "RankSVM"),
            {"scale": (None, "std"), "C": _C},
            ranges={"C": Range(1e-6, 10, log=True)},
        ),
        Recipe(
            "dorm",
            "metric: linear scores, structured bound of nDCG by linear assignment",
            "Le & Smola 2007, arXiv:0704.3359",
            _made("dorm", "DORM"),
            {"C": (0.001, 0.01, 0.1, 1.0)},
            ranges={"C": Range(1e-5, 10, log=True)},
        ),
        Recipe(
            "svm_map",
            "metric: linear scores, structured bound of average precision",
            "Yue et al. 2007, SIGIR",
            _made("dorm", "DORM", measure="ap"),
            {"C": (0.001, 0.01, 0.1, 1.0)},
            ranges={"C": Range(1e-5, 10, log=True)},
        ),
        Recipe(
            "kernelranksvm",
            "pairwise: exact RBF kernel, squared hinge loss on score differences",
            "Kuo, Lee & Lin 2014, SDM; grid of Chen et al. 2017",
            _made("kernel_ranksvm", "KernelRankSVM"),
            _KERNEL,
            ranges=_KERNEL_RANGES,
        ),
        Recipe(
            "rankboost",
            "pairwise: thresholds on single features, boosted on the exponential loss of pairs",
            "Freund et al. 2003, JMLR 4",
            _made("boosting", "RankBoost"),
            {"n_estimators": (1000,), "early_stopping_rounds": (100,)},
            missing=True,
        ),
        Recipe(
            "frank",
            "pairwise: thresholds on single features, boosted on the fidelity loss of pairs",
            "Tsai et al. 2007, SIGIR",
            _trees("fidelity", num_leaves=2),
            {
                "learning_rate": (0.1,),
                "n_estimators": (500,),
                "early_stopping_rounds": (50,),
            },
            missing=True,
            ranges={"learning_rate": Range(0.02, 0.3, log=True)},
        ),
        Recipe(
            "adarank",
            "listwise: linear scores, single features boosted for a metric",
            "Xu & Li 2007, SIGIR",
            _made("boosting", "AdaRank"),
            {"objective": ("ap", "ndcg@10"), "repeats": ("apart", "never")},
        ),
        Recipe(
            "coordinate_ascent",
            "listwise: linear scores, one weight at a time moved to where a metric is best",
            "Metzler & Croft 2007, Information Retrieval 10(3)",
            _made("ascent", "CoordinateAscent"),
            {"objective": ("ap", "ndcg@10")},
        ),
        Recipe(
            "ranknystrom",
            "pairwise: RankSVM behind Nystrom's approximation of a kernel",
            "Chen et al. 2017, Computational Intelligence and Neuroscience",
            _made("kernel_ranker", "RankNystrom"),
            _KERNEL,
            ranges=_KERNEL_RANGES,
        ),
        Recipe(
            "rankrandomfourier",
            "pairwise: RankSVM behind random Fourier features",
            "Chen et al. 2017, Computational Intelligence and Neuroscience",
            _made("kernel_ranker", "RankRandomFourier"),
            _KERNEL,
            ranges=_KERNEL_RANGES,
        ),
        Recipe(
            "mart",
            "pointwise: boosted regression trees on the labels",
            "Friedman 2001, Annals of Statistics 29(5)",
            _trees("squared"),
            _TREES,
            missing=True,
            ranges=_TREE_RANGES,
        ),
        Recipe(
            "mcrank",
            "pointwise: boosted trees for the chance of each label, scored by the expected label",
            "Li et al. 2007, NIPS",
            _mcrank,
            missing=True,
        ),
        Recipe(
            "mcrank_linear",
            "pointwise: multinomial logistic regression, scored by the expected label",
            "Li et al. 2007, NIPS",
            _mcrank_linear,
        ),
        Recipe(
            "oc_svm",
            "pointwise: linear scores with large margins around thresholds between labels",
            "Shashua & Levin 2003, NIPS",
            _linear("ordinal_margin"),
            {"alpha": _ALPHA},
            ranges=_ALPHA_RANGE,
        ),
        Recipe(
            "listmle",
            "listwise: linear scores, Plackett-Luce likelihood of the order of labels",
            "Xia et al. 2008, ICML",
            _linear("listmle"),
            {"alpha": _ALPHA},
            ranges=_ALPHA_RANGE,
        ),
        Recipe(
            "mr",
            "listwise: monotone retargeting, linear scores and targets in the order of the labels",
            "Acharyya, Koyejo & Ghosh 2012, UAI",
            _made("retarget", "MonotoneRetargeting"),
            {"divergence": ("kl", "squared", "logistic"), "alpha": _SMALL_ALPHA},
            ranges={"alpha": Range(1e-6, 10, log=True)},
        ),
        Recipe(
            "memr",
            "listwise: monotone retargeting with margins between levels of labels",
            "Acharyya & Ghosh 2014, UAI",
            _made("retarget", "MonotoneRetargeting", divergence="squared", restriction="margin"),
            {"divergence": ("squared", "logistic"), "alpha": _ALPHA},
            ranges=_ALPHA_RANGE,
        ),
        Recipe(
            "lambdamart",
            "listwise: boosted trees on the lambda gradients of a metric",
            "Burges 2010, MSR-TR-2010-82",
            _trees("lambdarank"),
            {"loss": ("lambdarank", "lambdarank(normalize='both')"), **_TREES},
            missing=True,
            ranges=_TREE_RANGES,
        ),
        Recipe(
            "lambdaloss",
            "listwise: boosted trees on the pair weights of NDCG-Loss2++",
            "Wang et al. 2018, CIKM",
            _trees("lambdaloss"),
            _TREES,
            missing=True,
            ranges=_TREE_RANGES,
        ),
        Recipe(
            "dart",
            "listwise: LambdaMART that drops some of the earlier trees in each round",
            "Vinayak & Gilad-Bachrach 2015, AISTATS",
            _trees("lambdarank", boosting="dart"),
            {
                "loss": ("lambdarank", "lambdarank(normalize='both')"),
                "num_leaves": (7, 15, 31),
                "learning_rate": (0.1,),
                "n_estimators": (200,),
                "subsample": (0.8,),
                "colsample_bytree": (0.8,),
            },
            missing=True,
            ranges={**_TREE_RANGES, "drop_rate": Range(0.02, 0.3, log=True)},
        ),
        Recipe(
            "bl_mart",
            "listwise: LambdaMART on many random parts of the queries, the best of them averaged",
            "Ganjisaffar, Caruana & Lopes 2011, SIGIR",
            _made("ensembles", "BaggedRanker"),
            {"ranker": ("lambdamart(num_leaves=7)", "lambdamart(num_leaves=15)")},
            missing=True,
            ranges={"bag": Range(0.5, 0.9)},
        ),
        Recipe(
            "ranknet_mlp",
            "pairwise: two-layer network, logistic loss on score differences",
            "Burges et al. 2005, ICML",
            _network(loss="ranknet", hidden=(64,)),
            _NETWORKS,
            missing=True,
            ranges=_NETWORK_RANGES,
        ),
        Recipe(
            "lambdarank_mlp",
            "listwise: two-layer network on the lambda gradients of a metric",
            "Burges, Ragno & Le 2006, NIPS",
            _network(loss="lambdarank", hidden=(64,)),
            _NETWORKS,
            missing=True,
            ranges=_NETWORK_RANGES,
        ),
        Recipe(
            "listnet_mlp",
            "listwise: multilayer perceptron, cross entropy of top-one probabilities",
            "Cao et al. 2007, ICML; inputs as in Qin et al. 2021, ICLR",
            _network(loss="listnet", hidden=(128, 64)),
            _NETWORKS,
            missing=True,
            ranges=_NETWORK_RANGES,
        ),
        Recipe(
            "context",
            "listwise: self-attention over the list, cross entropy of top-one probabilities",
            "Pobrotyn et al. 2020, arXiv:2005.10084",
            _network(loss="listnet", network="attention", hidden=(64, 64)),
            _NETWORKS,
            missing=True,
            ranges=_NETWORK_RANGES,
        ),
    )
}


@dataclass(frozen=True)
class Request:
    """A recipe with the parameters a user fixed, as written: ``lambdamart(num_leaves=31)``."""

    recipe: Recipe
    fixed: Mapping[str, Any]

    @property
    def text(self) -> str:
        inner = ", ".join(f"{k}={v!r}" for k, v in self.fixed.items())
        return f"{self.recipe.name}({inner})" if inner else self.recipe.name

    def combinations(self) -> Iterator[dict[str, Any]]:
        """The part of the recipe's grid that is left to choose."""
        return self.recipe.combinations(self.fixed)

    def space(self) -> dict[str, Any]:
        """The part of the recipe's search space that is left to choose."""
        return self.recipe.space(self.fixed)

    def chosen(self, params: Mapping[str, Any]) -> str:
        """The text of the request with these parameters fixed as well."""
        return Request(self.recipe, {**self.fixed, **params}).text

    def make(self, params: Mapping[str, Any] | None = None, **defaults: Any) -> Ranker:
        """An unfitted ranker; ``defaults`` apply where the ranker takes them and nothing else is said."""
        chosen = params or {}
        nested = {
            k: v for k, v in chosen.items() if "__" in k
        }  # parameters of a part of the ranker
        ranker = self.recipe.make(**self.fixed, **{k: chosen[k] for k in chosen if k not in nested})
        ranker.set_params(**nested)
        known = ranker.get_params(deep=False)
        rest = {k: v for k, v in defaults.items() if k in known and k not in self.fixed}
        return ranker.set_params(**rest) if rest else ranker


@dataclass(frozen=True)
class Given:
    """A user's own ranker in the place of a :class:`Request`; nothing of it is searched by itself."""

    ranker: Ranker

    @property
    def text(self) -> str:
        return " ".join(repr(self.ranker).split())

    def combinations(self) -> Iterator[dict[str, Any]]:
        yield {}

    def space(self) -> dict[str, Any]:
        return {}

    def chosen(self, params: Mapping[str, Any]) -> str:
        return " ".join(repr(self.make(params)).split())

    def make(self, params: Mapping[str, Any] | None = None, **defaults: Any) -> Ranker:
        """A fresh copy; its own ``random_state`` stays, where it has one."""
        from sklearn.base import clone

        ranker: Ranker = clone(self.ranker)
        known = ranker.get_params(deep=False)
        if known.get("random_state") is not None:
            defaults.pop("random_state", None)
        rest = {k: v for k, v in defaults.items() if k in known}
        ranker.set_params(**{**rest, **(params or {})})
        return ranker


def parse_ranker(text: str) -> Request:
    """Read ``name`` or ``name(parameter=value, ...)``.

    Raises
    ------
    ValueError
        For an unknown name or parameter, with the known ones and the closest.
    """
    name, fixed = parse_call("ranker", text)
    name = name.lower()
    if name not in RECIPES:
        raise _validate.unknown("ranker", name, RECIPES)
    recipe = RECIPES[name]
    if fixed:
        known = recipe.make().get_params(deep=False)
        for key in fixed:
            if key not in known:
                raise _validate.unknown(f"parameter of {name}", key, known)
    return Request(recipe, fixed)


def make_ranker(text: str) -> Ranker:
    """An unfitted ranker by its published name, with parameters in brackets.

    Parameters
    ----------
    text : str
        ``"lambdamart"``, ``"ranksvm(C=0.01)"``, ...; :data:`RECIPES` lists the names.
    """
    return parse_ranker(text).make()
