"""What other programs call the metrics, and the conventions under which they compute them.

A preset is a dictionary from a metric's name to the options that differ from ours; a metric that
is not listed is not computed by that program, or not in a form that we reproduce.
"""

from __future__ import annotations

import re
from typing import Any

from rankwise import _validate

Options = dict[str, Any]

_BINARY = ("precision", "recall", "f1", "success", "ap", "r_precision", "rr")


def _letor(**ndcg: Any) -> dict[str, Options]:
    counted: Options = {"ties": "stable", "empty": 0.0}
    graded: Options = {**counted, "discount": "letor"}
    return {
        "ndcg": {**graded, **ndcg},
        "mean_ndcg": graded,
        "dcg": graded,
        "precision": counted,
        "ap": counted,
    }


def _trec(**extra: Any) -> dict[str, Options]:
    counted: Options = {"ties": "trec", "empty": 0.0, **extra}
    preset: dict[str, Options] = {name: counted for name in (*_BINARY, "bpref")}
    preset["ndcg"] = preset["dcg"] = {**counted, "gain": "identity"}
    preset["judged"] = {"ties": "trec", **extra}
    return preset


def _tables() -> dict[str, dict[str, Options]]:
    letor4 = _letor(short="zero")
    stable: Options = {"ties": "stable"}
    return {
        "trec_eval": _trec(),
        "trec_eval9": _trec(scores="float32"),
        "letor3": _letor(),
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
            "ap": {"ties": "worst", "empty": 0.0, "norm": "min"},
            "precision": {"ties": "worst", "empty": 0.0, "short": "cut"},
        },
        "sklearn": {
            "ndcg": {"gain": "identity", "empty": 0.0},
            "dcg": {"gain": "identity", "empty": 0.0},
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
_SPELLINGS: dict[str, str] = {
    "map": "ap",
    "averageprecision": "ap",
    "mapcut": "ap",
    "mrr": "rr",
    "reciprank": "rr",
    "p": "precision",
    "prec": "precision",
    "pre": "precision",
    "r": "recall",
    "rprec": "r_precision",
    "rprecision": "r_precision",
    "ndcgcut": "ndcg",
    "meanndcg": "mean_ndcg",
    "hit": "success",
    "hits": "success",
    "hitrate": "success",
    "rbpresid": "rbp_residual",
    "rbpresidual": "rbp_residual",
    "f": "f1",
    "setp": "precision",
    "setrecall": "recall",
    "setf": "f1",
}
_GEOMETRIC: dict[str, str] = {"gmmap": "ap", "gmap": "ap", "gmbpref": "bpref"}


def canonical_name(spelled: str) -> tuple[str, int | None, Options]:
    """Our name for a metric as other programs spell it, with the cutoff and options in the name."""
    from rankwise._metric import SPECS

    if spelled in SPECS:
        return spelled, None, {}
    match = re.fullmatch(r"(.*?)[_.](\d+)", spelled)
    word, k = (match[1], int(match[2])) if match else (spelled, None)
    plain = re.sub(r"[_\-\s]", "", word.lower())
    for name in SPECS:
        if plain == name.replace("_", ""):
            return name, k, {}
    if plain in _GEOMETRIC:
        return _GEOMETRIC[plain], k, {"mean": "geometric"}
    return _SPELLINGS.get(plain, spelled), k, {}
