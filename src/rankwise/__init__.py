"""rankwise: learning to rank with one set of conventions.

Names are loaded when first used, so that evaluating a run starts with NumPy alone.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankwise.aggregate import AGGREGATORS as AGGREGATORS
    from rankwise.aggregate import Consensus as Consensus
    from rankwise.aggregate import RankLists as RankLists
    from rankwise.aggregate import borda as borda
    from rankwise.aggregate import bradley_terry as bradley_terry
    from rankwise.aggregate import comb_anz as comb_anz
    from rankwise.aggregate import comb_max as comb_max
    from rankwise.aggregate import comb_med as comb_med
    from rankwise.aggregate import comb_min as comb_min
    from rankwise.aggregate import comb_mnz as comb_mnz
    from rankwise.aggregate import comb_sum as comb_sum
    from rankwise.aggregate import condorcet as condorcet
    from rankwise.aggregate import copeland as copeland
    from rankwise.aggregate import footrule as footrule
    from rankwise.aggregate import isr as isr
    from rankwise.aggregate import kemeny as kemeny
    from rankwise.aggregate import kemeny_consensus as kemeny_consensus
    from rankwise.aggregate import kemeny_distance as kemeny_distance
    from rankwise.aggregate import log_isr as log_isr
    from rankwise.aggregate import markov_chain as markov_chain
    from rankwise.aggregate import mc1 as mc1
    from rankwise.aggregate import mc2 as mc2
    from rankwise.aggregate import mc3 as mc3
    from rankwise.aggregate import mc4 as mc4
    from rankwise.aggregate import normalise_scores as normalise_scores
    from rankwise.aggregate import pairwise_preferences as pairwise_preferences
    from rankwise.aggregate import plackett_luce as plackett_luce
    from rankwise.aggregate import robust_rank_aggregation as robust_rank_aggregation
    from rankwise.aggregate import rra_p_values as rra_p_values
    from rankwise.aggregate import rrf as rrf
    from rankwise.approximation import MapQuality as MapQuality
    from rankwise.approximation import map_quality as map_quality
    from rankwise.ascent import CoordinateAscent as CoordinateAscent
    from rankwise.baselines import FeatureRanker as FeatureRanker
    from rankwise.baselines import PointwiseRanker as PointwiseRanker
    from rankwise.baselines import RandomRanker as RandomRanker
    from rankwise.bins import BinnedQueries as BinnedQueries
    from rankwise.bins import bin_queries as bin_queries
    from rankwise.boosting import AdaRank as AdaRank
    from rankwise.boosting import RankBoost as RankBoost
    from rankwise.comparison import Comparison as Comparison
    from rankwise.comparison import compare as compare
    from rankwise.correlation import Agreement as Agreement
    from rankwise.correlation import agreement as agreement
    from rankwise.correlation import footrule_top_k as footrule_top_k
    from rankwise.correlation import kendall_distance as kendall_distance
    from rankwise.correlation import kendall_distance_top_k as kendall_distance_top_k
    from rankwise.correlation import kendall_tau as kendall_tau
    from rankwise.correlation import overlap_at_k as overlap_at_k
    from rankwise.correlation import plot_agreement as plot_agreement
    from rankwise.correlation import rank_biased_overlap as rank_biased_overlap
    from rankwise.correlation import spearman_rho as spearman_rho
    from rankwise.correlation import weighted_tau as weighted_tau
    from rankwise.data import Groups as Groups
    from rankwise.data import Pairs as Pairs
    from rankwise.data import Queries as Queries
    from rankwise.data import concatenate as concatenate
    from rankwise.data import group_rows as group_rows
    from rankwise.data import pairs_from_labels as pairs_from_labels
    from rankwise.data import qid_from_sizes as qid_from_sizes
    from rankwise.dorm import DORM as DORM
    from rankwise.ensembles import BaggedRanker as BaggedRanker
    from rankwise.ensembles import EnsembleRanker as EnsembleRanker
    from rankwise.evaluation import Evaluation as Evaluation
    from rankwise.evaluation import evaluate_files as evaluate_files
    from rankwise.evaluation import evaluate_run as evaluate_run
    from rankwise.experiment import Fold as Fold
    from rankwise.experiment import choose as choose
    from rankwise.experiment import run_experiment as run_experiment
    from rankwise.folds import FoldPaths as FoldPaths
    from rankwise.folds import fold_paths as fold_paths
    from rankwise.folds import read_folds as read_folds
    from rankwise.formats import read as read
    from rankwise.formats import read_letor as read_letor
    from rankwise.formats import read_npz as read_npz
    from rankwise.formats import write as write
    from rankwise.formats import write_letor as write_letor
    from rankwise.formats import write_npz as write_npz
    from rankwise.fusion import FusionWeights as FusionWeights
    from rankwise.fusion import align_runs as align_runs
    from rankwise.fusion import fuse as fuse
    from rankwise.fusion import tune_weights as tune_weights
    from rankwise.insight import partial_dependence as partial_dependence
    from rankwise.insight import permutation_importance as permutation_importance
    from rankwise.kernel_ranker import KernelRanker as KernelRanker
    from rankwise.kernel_ranker import RankNystrom as RankNystrom
    from rankwise.kernel_ranker import RankRandomFourier as RankRandomFourier
    from rankwise.kernel_ranksvm import KernelRankSVM as KernelRankSVM
    from rankwise.kernels import Kernel as Kernel
    from rankwise.kernels import kernel_matrix as kernel_matrix
    from rankwise.lambdas import ARPLoss as ARPLoss
    from rankwise.lambdas import LambdaLoss as LambdaLoss
    from rankwise.lambdas import LambdaRank as LambdaRank
    from rankwise.linear import LinearRanker as LinearRanker
    from rankwise.linear import RankSVM as RankSVM
    from rankwise.linear import linear_path as linear_path
    from rankwise.linear import ranksvm_C as ranksvm_C
    from rankwise.losses import LOSSES as LOSSES
    from rankwise.losses import ApproxNDCG as ApproxNDCG
    from rankwise.losses import BoltzRank as BoltzRank
    from rankwise.losses import ExponentialPairs as ExponentialPairs
    from rankwise.losses import Fidelity as Fidelity
    from rankwise.losses import HingePairs as HingePairs
    from rankwise.losses import ListMLE as ListMLE
    from rankwise.losses import ListNet as ListNet
    from rankwise.losses import Logistic as Logistic
    from rankwise.losses import LossSum as LossSum
    from rankwise.losses import OrdinalLogit as OrdinalLogit
    from rankwise.losses import OrdinalMargin as OrdinalMargin
    from rankwise.losses import Poisson as Poisson
    from rankwise.losses import RankNet as RankNet
    from rankwise.losses import SoftmaxCrossEntropy as SoftmaxCrossEntropy
    from rankwise.losses import Squared as Squared
    from rankwise.losses import SquaredHingePairs as SquaredHingePairs
    from rankwise.losses import StructuredAP as StructuredAP
    from rankwise.losses import StructuredBound as StructuredBound
    from rankwise.losses import parse_loss as parse_loss
    from rankwise.maps import Nystroem as Nystroem
    from rankwise.maps import RandomFourierFeatures as RandomFourierFeatures
    from rankwise.metrics import METRICS as METRICS
    from rankwise.metrics import PRESETS as PRESETS
    from rankwise.metrics import Metric as Metric
    from rankwise.metrics import evaluate as evaluate
    from rankwise.metrics import parse_metric as parse_metric
    from rankwise.metrics import parse_metrics as parse_metrics
    from rankwise.mistakes import contributions as contributions
    from rankwise.mistakes import explain_query as explain_query
    from rankwise.mistakes import worst_queries as worst_queries
    from rankwise.neural import NeuralRanker as NeuralRanker
    from rankwise.neural import torch_loss as torch_loss
    from rankwise.plots import DepthCurve as DepthCurve
    from rankwise.plots import depth_curve as depth_curve
    from rankwise.plots import plot_dependence as plot_dependence
    from rankwise.plots import plot_depth as plot_depth
    from rankwise.plots import plot_differences as plot_differences
    from rankwise.plots import plot_experts as plot_experts
    from rankwise.plots import plot_importance as plot_importance
    from rankwise.plots import plot_means as plot_means
    from rankwise.plots import plot_mistakes as plot_mistakes
    from rankwise.plots import plot_search as plot_search
    from rankwise.pooling import isotonic as isotonic
    from rankwise.prepare import QueryKFold as QueryKFold
    from rankwise.prepare import QueryScaler as QueryScaler
    from rankwise.rank_files import read_rankings as read_rankings
    from rankwise.recipes import RECIPES as RECIPES
    from rankwise.recipes import make_ranker as make_ranker
    from rankwise.retarget import MonotoneRetargeting as MonotoneRetargeting
    from rankwise.retarget import Retargeted as Retargeted
    from rankwise.retarget_aggregation import RetargetedAggregation as RetargetedAggregation
    from rankwise.saving import load as load
    from rankwise.saving import save as save
    from rankwise.space import Range as Range
    from rankwise.stats import benjamini_hochberg as benjamini_hochberg
    from rankwise.stats import bootstrap_interval as bootstrap_interval
    from rankwise.stats import effect_size as effect_size
    from rankwise.stats import holm as holm
    from rankwise.stats import paired_t_test as paired_t_test
    from rankwise.stats import randomization_test as randomization_test
    from rankwise.stats import sign_test as sign_test
    from rankwise.stats import t_interval as t_interval
    from rankwise.stats import wilcoxon_test as wilcoxon_test
    from rankwise.stats import win_tie_loss as win_tie_loss
    from rankwise.summary import Description as Description
    from rankwise.summary import describe as describe
    from rankwise.synthetic import make_queries as make_queries
    from rankwise.tables import from_frame as from_frame
    from rankwise.tables import read_csv as read_csv
    from rankwise.tables import read_parquet as read_parquet
    from rankwise.tables import to_frame as to_frame
    from rankwise.tables import write_csv as write_csv
    from rankwise.tables import write_parquet as write_parquet
    from rankwise.trec import Judged as Judged
    from rankwise.trec import Qrels as Qrels
    from rankwise.trec import Run as Run
    from rankwise.trec import join as join
    from rankwise.trec import read_qrels as read_qrels
    from rankwise.trec import read_run as read_run
    from rankwise.trec import write_qrels as write_qrels
    from rankwise.trec import write_run as write_run
    from rankwise.trees import TreeRanker as TreeRanker
    from rankwise.tuning import Trial as Trial
    from rankwise.tuning import Tuned as Tuned
    from rankwise.tuning import tune as tune

# module -> public names; the one list of what rankwise offers.
_PUBLIC = {
    "aggregate": [
        "AGGREGATORS",
        "Consensus",
        "RankLists",
        "borda",
        "bradley_terry",
        "comb_anz",
        "comb_max",
        "comb_med",
        "comb_min",
        "comb_mnz",
        "comb_sum",
        "condorcet",
        "copeland",
        "footrule",
        "isr",
        "kemeny",
        "kemeny_consensus",
        "kemeny_distance",
        "log_isr",
        "markov_chain",
        "mc1",
        "mc2",
        "mc3",
        "mc4",
        "normalise_scores",
        "pairwise_preferences",
        "plackett_luce",
        "robust_rank_aggregation",
        "rra_p_values",
        "rrf",
    ],
    "approximation": ["MapQuality", "map_quality"],
    "ascent": ["CoordinateAscent"],
    "baselines": ["FeatureRanker", "PointwiseRanker", "RandomRanker"],
    "bins": ["BinnedQueries", "bin_queries"],
    "boosting": ["AdaRank", "RankBoost"],
    "comparison": ["Comparison", "compare"],
    "correlation": [
        "Agreement",
        "agreement",
        "footrule_top_k",
        "kendall_distance",
        "kendall_distance_top_k",
        "kendall_tau",
        "overlap_at_k",
        "plot_agreement",
        "rank_biased_overlap",
        "spearman_rho",
        "weighted_tau",
    ],
    "data": [
        "Groups",
        "Pairs",
        "Queries",
        "concatenate",
        "group_rows",
        "pairs_from_labels",
        "qid_from_sizes",
    ],
    "dorm": ["DORM"],
    "ensembles": ["BaggedRanker", "EnsembleRanker"],
    "evaluation": ["Evaluation", "evaluate_files", "evaluate_run"],
    "experiment": ["Fold", "choose", "run_experiment"],
    "folds": ["FoldPaths", "fold_paths", "read_folds"],
    "formats": ["read", "read_letor", "read_npz", "write", "write_letor", "write_npz"],
    "fusion": ["FusionWeights", "align_runs", "fuse", "tune_weights"],
    "insight": ["partial_dependence", "permutation_importance"],
    "kernel_ranker": ["KernelRanker", "RankNystrom", "RankRandomFourier"],
    "kernel_ranksvm": ["KernelRankSVM"],
    "kernels": ["Kernel", "kernel_matrix"],
    "lambdas": ["ARPLoss", "LambdaLoss", "LambdaRank"],
    "linear": ["LinearRanker", "RankSVM", "linear_path", "ranksvm_C"],
    "losses": [
        "ApproxNDCG",
        "BoltzRank",
        "ExponentialPairs",
        "Fidelity",
        "HingePairs",
        "LOSSES",
        "ListMLE",
        "ListNet",
        "Logistic",
        "LossSum",
        "OrdinalLogit",
        "OrdinalMargin",
        "Poisson",
        "RankNet",
        "SoftmaxCrossEntropy",
        "Squared",
        "SquaredHingePairs",
        "StructuredAP",
        "StructuredBound",
        "parse_loss",
    ],
    "maps": ["Nystroem", "RandomFourierFeatures"],
    "metrics": ["METRICS", "Metric", "PRESETS", "evaluate", "parse_metric", "parse_metrics"],
    "mistakes": ["contributions", "explain_query", "worst_queries"],
    "neural": ["NeuralRanker", "torch_loss"],
    "plots": [
        "DepthCurve",
        "depth_curve",
        "plot_dependence",
        "plot_depth",
        "plot_differences",
        "plot_experts",
        "plot_importance",
        "plot_means",
        "plot_mistakes",
        "plot_search",
    ],
    "pooling": ["isotonic"],
    "prepare": ["QueryKFold", "QueryScaler"],
    "rank_files": ["read_rankings"],
    "recipes": ["RECIPES", "make_ranker"],
    "retarget": ["MonotoneRetargeting", "Retargeted"],
    "retarget_aggregation": ["RetargetedAggregation"],
    "saving": ["load", "save"],
    "space": ["Range"],
    "stats": [
        "benjamini_hochberg",
        "bootstrap_interval",
        "effect_size",
        "holm",
        "paired_t_test",
        "randomization_test",
        "sign_test",
        "t_interval",
        "wilcoxon_test",
        "win_tie_loss",
    ],
    "summary": ["Description", "describe"],
    "synthetic": ["make_queries"],
    "tables": ["from_frame", "read_csv", "read_parquet", "to_frame", "write_csv", "write_parquet"],
    "trec": [
        "Judged",
        "Qrels",
        "Run",
        "join",
        "read_qrels",
        "read_run",
        "write_qrels",
        "write_run",
    ],
    "trees": ["TreeRanker"],
    "tuning": ["Trial", "Tuned", "tune"],
}
_HOME = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = sorted(_HOME)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return importlib.import_module(f"rankwise.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'rankwise' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"rankwise.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOME))
