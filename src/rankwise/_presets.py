"""What other programs call the metrics, and the conventions under which they compute them.

A preset is a dictionary from a metric's name to the options that differ from ours; a metric that
is not listed is not computed by that program, or not in a form that we reproduce.
"""

from __future__ import annotations

import re
from typing import Any

from rankwise import _validate

Options = dict[str, Any]

_COUNTS = ("retrieved", "relevant", "relevant_retrieved", "nonrelevant_retrieved", "utility")
_BINARY = ("precision", "recall", "f1", "success", "ap", "r_precision", "rr")


def _letor(*, precision: str) -> dict[str, Options]:
    counted: Options = {"ties": "stable", "empty": 0.0}
    graded: Options = {**counted, "discount": "letor"}
    return {
        "ndcg": {**graded, "short": "zero"},
        "mean_ndcg": graded,
        "dcg": graded,
        "precision": {**counted, "short": precision},
        "ap": counted,
    }


def _trec(rounding: str, **extra: Any) -> dict[str, Options]:
    tied: Options = {"ties": "trec", **extra}
    counted: Options = {**tied, "empty": 0.0}
    graded: Options = {**counted, "gain": "identity"}
    return {
        **dict.fromkeys(
            (*_BINARY, "bpref", "infap", "relative_precision", "set_ap", "bin_g"), counted
        ),
        **dict.fromkeys(("ndcg", "dcg", "ndcg_rel", "r_ndcg"), graded),
        "g": counted,
        "rbp": {**counted, "p": 0.9, "relevance": "graded"},
        "rbp_residual": {**tied, "p": 0.9, "tail": "if_unjudged"},
        "judged": tied,
        "unjudged": tied,
        "interpolated_precision": {**counted, "rounding": rounding},
        **{name: {} for name in _COUNTS},
    }


def _tables() -> dict[str, dict[str, Options]]:
    letor4 = _letor(precision="pad")
    stable: Options = {"ties": "stable"}
    return {
        "trec_eval": _trec("nearest"),
        "trec_eval9": _trec("up", scores="float32"),
        "letor3": _letor(precision="zero"),
        "letor4": letor4,
        "mslr": {
            name: {**options, "rel": 2.0} if name in _BINARY else options
            for name, options in letor4.items()
        },
        "lightgbm": {
            "ndcg": {**stable, "empty": 1.0},
            "ap": {**stable, "empty": 1.0, "norm": "min"},
        },
        "xgboost": {
            "ndcg": {**stable, "empty": 1.0, "scores": "float32"},
            "ap": {**stable, "empty": 1.0, "norm": "min", "scores": "float32"},
            "precision": {**stable, "empty": 0.0, "short": "cut", "scores": "float32"},
        },
        "catboost": {
            "ndcg": {"ties": "worst", "empty": 1.0, "gain": "identity"},
            "dcg": {"ties": "worst", "empty": 0.0, "gain": "identity"},
            "ap": {"ties": "worst", "empty": 0.0, "norm": "min"},
            "precision": {"ties": "worst", "empty": 0.0, "short": "cut"},
            "recall": {"ties": "worst", "empty": 1.0},
            "rr": {"ties": "worst", "empty": 0.0},
            "pairwise_accuracy": {"empty": 0.0},
            "auc": {"empty": 0.0},
        },
        "sklearn": {
            "ndcg": {"gain": "identity", "empty": 0.0},
            "dcg": {"gain": "identity", "empty": 0.0},
            "ap": {"ties": "together", "empty": 0.0},
            "auc": {},
        },
    }


PRESETS = _tables()


def options(preset: str, name: str) -> Options:
    """The options of a metric under a preset."""
    if preset not in PRESETS:
        raise _validate.unknown("preset", preset, PRESETS)
    if name not in PRESETS[preset]:
        known = ", ".join(sorted(PRESETS[preset]))
        raise ValueError(f"preset {preset!r} has no metric {name!r}; it covers: {known}")
    return PRESETS[preset][name]


# Spellings in other programs, lower case without "_", "-" and spaces.
_SPELLINGS: dict[str, tuple[str, Options]] = {
    "map": ("ap", {}),
    "averageprecision": ("ap", {}),
    "mapcut": ("ap", {}),
    "gmmap": ("ap", {"mean": "geometric"}),
    "gmap": ("ap", {"mean": "geometric"}),
    "mrr": ("rr", {}),
    "reciprank": ("rr", {}),
    "p": ("precision", {}),
    "prec": ("precision", {}),
    "pre": ("precision", {}),
    "setp": ("precision", {}),
    "r": ("recall", {}),
    "setrecall": ("recall", {}),
    "setf": ("f1", {}),
    "rprec": ("r_precision", {}),
    "ndcgcut": ("ndcg", {}),
    "hit": ("success", {}),
    "hits": ("success", {}),
    "hitrate": ("success", {}),
    "rbpresid": ("rbp_residual", {}),
    "gmbpref": ("bpref", {"mean": "geometric"}),
    "unj": ("unjudged", {}),
    "relativep": ("relative_precision", {}),
    "setrelativep": ("relative_precision", {}),
    "setmap": ("set_ap", {}),
    "11ptavg": ("interpolated_precision", {}),
    "rndcg": ("r_ndcg", {}),
    "numret": ("retrieved", {}),
    "numrel": ("relevant", {}),
    "numrelret": ("relevant_retrieved", {}),
    "numnonreljudgedret": ("nonrelevant_retrieved", {}),
    "kendall": ("tau_b", {}),
    "spearman": ("rho", {}),
}
# Spellings that end in a number which is not a cutoff.
_NUMBERED: dict[str, tuple[str, str]] = {
    "iprecatrecall": ("interpolated_precision", "recall"),
    "rprecmult": ("r_precision", "multiple"),
}


def canonical_name(spelled: str) -> tuple[str, int | None, Options]:
    """Our name for a metric as other programs spell it, with the cutoff and options in the name."""
    from rankwise._metric import SPECS

    if spelled in SPECS:
        return spelled, None, {}
    match = re.fullmatch(r"(.*?)[_.](\d*\.?\d+)", spelled)
    word, number = (match[1], match[2]) if match else (spelled, None)
    plain = re.sub(r"[_\-\s]", "", word.lower())
    if number is not None and plain in _NUMBERED:
        name, option = _NUMBERED[plain]
        return name, None, {option: float(number)}
    if number is not None and "." in number:
        return spelled, None, {}
    k = None if number is None else int(number)
    for name in SPECS:
        if plain == name.replace("_", ""):
            return name, k, {}
    name, options = _SPELLINGS.get(plain, (spelled, {}))
    return name, k, options
