"""Fitted rankers as files: one file, no pickle, nothing executed on reading.

A ranker file is a plain zip archive that any tool opens. ``ranker.json`` says which class it
holds, with its parameters, small fitted values and the format's version; every array is a ``.npy``
entry and every long text a ``.txt`` entry, uncompressed. Equal rankers give equal files, and a
ranker that was read predicts what the one that was written did, to the last bit.

>>> import os, tempfile
>>> import rankwise as rw
>>> queries = rw.make_queries(n_queries=20)
>>> ranker = rw.FeatureRanker().fit(queries)
>>> path = os.path.join(tempfile.mkdtemp(), "model.rank")
>>> ranker.save(path)
>>> bool((rw.load(path).predict(queries) == ranker.predict(queries)).all())
True

What has no safe form is refused and named: functions (a loss of your own), estimators of other
libraries, random number generators. Reading trusts nothing: sizes are checked before memory is
taken, only classes of rankwise are made, and a truncated or foreign file is refused with a
sentence.
"""

from __future__ import annotations

import importlib
import io
import json
import math
import os
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rankwise import __version__
from rankwise._files import COMPRESSED, atomic_write
from rankwise.losses import has_text, parse_loss
from rankwise.metrics import Metric, parse_metric

# What may be in a file: class -> module. Nothing else is ever made.
CLASSES = {
    "AdaRank": "boosting",
    "CoordinateAscent": "ascent",
    "BaggedRanker": "ensembles",
    "DORM": "dorm",
    "EnsembleRanker": "ensembles",
    "FeatureRanker": "baselines",
    "KernelRanker": "kernel_ranker",
    "KernelRankSVM": "kernel_ranksvm",
    "LinearRanker": "linear",
    "MonotoneRetargeting": "retarget",
    "NeuralRanker": "neural",
    "Nystroem": "maps",
    "PointwiseRanker": "baselines",
    "QueryScaler": "prepare",
    "RandomRanker": "baselines",
    "RankBoost": "boosting",
    "RandomFourierFeatures": "maps",
    "RankNystrom": "kernel_ranker",
    "RankRandomFourier": "kernel_ranker",
    "RankSVM": "linear",
    "RetargetedAggregation": "retarget_aggregation",
    "TreeRanker": "trees",
}

_FORMAT = 1
_HEADER = "ranker.json"
_LONG = 1000  # characters from which a text gets an entry of its own
_FITTED = re.compile(r"[A-Za-z][A-Za-z0-9_]*_")
_KINDS = "biufUS"  # kinds of arrays that hold no Python objects


def save(ranker: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted ranker (or :class:`~rankwise.QueryScaler`) to one file, without pickle.

    Parameters
    ----------
    ranker : fitted ranker of rankwise
    path : str or path-like
        Replaced only once the new file is complete.

    Raises
    ------
    TypeError
        If something in it has no safe form; the sentence names it.
    NotFittedError
        If it has not been fitted.
    OSError
        If the file cannot be written.

    See Also
    --------
    load
    """
    if Path(path).suffix in COMPRESSED:
        raise ValueError(
            f"save: a ranker file is not compressed, got the ending {Path(path).suffix!r}; "
            "leave it out"
        )
    entries: dict[str, bytes] = {}
    if type(ranker).__name__ in CLASSES:
        check_is_fitted(ranker)
    packed = _pack_object(ranker, type(ranker).__name__, "", entries)
    header = {"format": _FORMAT, "rankwise": __version__, **packed}
    text = json.dumps(header, indent=1, ensure_ascii=False, allow_nan=False)
    with atomic_write(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, data in {_HEADER: text.encode(), **entries}.items():
            # No time inside: equal rankers give equal files.
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a ranker written by :func:`save`.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    The fitted ranker.

    Raises
    ------
    ValueError
        If the file is no ranker file, is damaged, or was written by a newer version.
    OSError
        If it cannot be read.
    """
    data = Path(path).read_bytes()
    try:
        header, entries = _open(data)
        return _checked(_unpack_object(header, entries))
    except ModuleNotFoundError:  # an extra that this ranker needs; the sentence says which
        raise
    # Whatever a hostile file provokes is the file's fault; the sentence says which file.
    except (Exception, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError | _Damaged) else repr(error)
        raise ValueError(
            f"{os.fspath(path)}: must be a ranker file written by rankwise.save, got {reason}"
        ) from None


class _Damaged(Exception):
    """A reason why a file cannot be read."""


# --- packing ---------------------------------------------------------------------------------


def _pack_object(ranker: Any, where: str, prefix: str, entries: dict[str, bytes]) -> dict[str, Any]:
    kind = type(ranker)
    if CLASSES.get(kind.__name__) != kind.__module__.removeprefix("rankwise."):
        raise TypeError(
            f"save: only rankers of rankwise have a form without pickle, got {where} of type "
            f"{kind.__module__}.{kind.__name__}; known: {', '.join(CLASSES)}"
        )
    if hasattr(ranker, "model_text_"):
        check_trees(ranker.model_text_, ranker.n_features_in_, ranker.n_estimators_)
    params = ranker.get_params(deep=False)
    fitted = {
        name: value
        for name, value in vars(ranker).items()
        if name not in params and _FITTED.fullmatch(name)
    }

    def pack_all(values: Mapping[str, Any], folder: str) -> dict[str, Any]:
        return {
            name: _pack(value, f"{where}.{name}", f"{prefix}{folder}{name}", entries)
            for name, value in values.items()
        }

    return {
        "class": kind.__name__,
        "params": pack_all(params, "params/"),
        "fitted": pack_all(fitted, ""),
    }


def _pack(value: Any, where: str, entry: str, entries: dict[str, bytes]) -> Any:
    """A value as JSON; arrays and long texts become entries. ``where`` names it in errors."""
    if value is None or isinstance(value, bool):
        return value
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return value
    if type(value) is float:
        return {"float": repr(value)}
    if type(value) is str:
        if len(value) < _LONG:
            return value
        entries[f"{entry}.txt"] = value.encode()
        return {"text": f"{entry}.txt"}
    if type(value) in (list, tuple):
        items = [_pack(v, f"{where}[{i}]", f"{entry}/{i}", entries) for i, v in enumerate(value)]
        return {type(value).__name__: items}
    if type(value) is dict:
        return {"pairs": _pack(list(value.items()), where, entry, entries)}
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return {"scalar": [value.dtype.str, _pack(value.item(), where, entry, entries)]}
    if type(value) is np.ndarray:
        return _pack_array(value, where, entry, entries)
    if isinstance(value, Metric):
        return {"metric": str(value)}
    if has_text(value):
        return {"loss": str(value)}
    if type(value).__name__ in CLASSES:
        return {"object": _pack_object(value, where, f"{entry}/", entries)}
    raise TypeError(
        f"save: {where} must have a form without pickle (numbers, text, arrays, metrics, losses "
        f"and rankers of rankwise), got {value!r} of type {type(value).__name__}"
    )


def _pack_array(
    value: NDArray[Any], where: str, entry: str, entries: dict[str, bytes]
) -> dict[str, Any]:
    if value.dtype.kind == "O" and value.ndim == 1 and all(type(v) is str for v in value):
        return {"names": value.tolist()}
    if value.dtype.kind not in _KINDS:
        raise TypeError(
            f"save: {where} must be an array of numbers or text, got dtype {value.dtype}"
        )
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, value, version=(1, 0), allow_pickle=False)
    entries[f"{entry}.npy"] = buffer.getvalue()
    return {"array": f"{entry}.npy"}


# --- unpacking -------------------------------------------------------------------------------


def _open(data: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The header and the entries of an archive, none of which can be larger than the file."""
    if not data.startswith(b"PK"):
        raise _Damaged("another kind of file" if data else "an empty file")
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        members = archive.infolist()
        if any(m.compress_type != zipfile.ZIP_STORED or m.flag_bits & 1 for m in members):
            raise _Damaged("an archive with compressed or encrypted entries")
        if sum(m.file_size for m in members) > len(data):
            raise _Damaged("an archive whose entries are larger than the file")
        entries = {m.filename: archive.read(m) for m in members}
    except (zipfile.BadZipFile, EOFError) as error:
        raise _Damaged(f"a damaged or truncated archive ({error})") from None
    if _HEADER not in entries:
        raise _Damaged(f"an archive without {_HEADER}")
    header = json.loads(entries[_HEADER])
    version = header["format"]
    if type(version) is not int or version < 1:
        raise _Damaged(f"format {version!r}")
    if version > _FORMAT:
        raise _Damaged(
            f"format {version} of rankwise {header.get('rankwise')!r}, while this version "
            f"({__version__}) reads up to {_FORMAT}; upgrade rankwise"
        )
    return header, entries


def _unpack_object(packed: Any, entries: dict[str, bytes]) -> Any:
    name = packed["class"]
    if name not in CLASSES:
        raise _Damaged(f"the unknown class {name!r}")
    kind = getattr(importlib.import_module(f"rankwise.{CLASSES[name]}"), name)
    known = kind._get_param_names()
    params = {key: _unpack(value, entries) for key, value in packed["params"].items()}
    if set(params) != set(known):
        odd = sorted(set(params) ^ set(known))
        raise _Damaged(f"{name} with missing or unknown parameters ({', '.join(odd)})")
    ranker = kind(**params)
    for key, value in packed["fitted"].items():
        if not _FITTED.fullmatch(key) or hasattr(kind, key):
            raise _Damaged(f"{name} with the odd attribute {key!r}")
        setattr(ranker, key, _unpack(value, entries))
    if hasattr(ranker, "model_text_"):
        check_trees(ranker.model_text_, ranker.n_features_in_, ranker.n_estimators_)
    return ranker


def _unpack(packed: Any, entries: dict[str, bytes]) -> Any:
    if packed is None or isinstance(packed, bool | int | float | str):
        return packed
    if not isinstance(packed, dict) or len(packed) != 1:
        raise _Damaged("a header that cannot be read")
    ((tag, content),) = packed.items()
    if tag not in _TAGS:
        raise _Damaged(f"the unknown kind of value {tag!r}")
    return _TAGS[tag](content, entries)


# Version 1.0 of NumPy's format, as written: magic, two bytes of length, and this header.
_NPY_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<>|][biufUS]\d+)', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d+, ?)*\d*)\), \} *\n",
    re.DOTALL,
)


def _unpack_array(name: str, entries: dict[str, bytes]) -> NDArray[Any]:
    data = entries[name]
    header = _NPY_HEADER.match(data)
    if header is None or header.end() != 10 + int.from_bytes(data[8:10], "little"):
        raise _Damaged(f"the entry {name}, which is no array of numbers or text")
    dtype = np.dtype(header[1].decode())
    shape = tuple(int(n) for n in header[3].decode().replace(",", " ").split())
    # The size is checked before anything is allocated for the shape.
    if math.prod(shape) * dtype.itemsize != len(data) - header.end():
        raise _Damaged(f"the array {name} of shape {shape} in {len(data)} bytes")
    flat = np.frombuffer(data, dtype, offset=header.end())
    order: Any = "F" if header[2] == b"True" else "C"
    return flat.reshape(shape, order=order).copy(order="K")


def _unpack_scalar(content: Any, entries: dict[str, bytes]) -> Any:
    dtype = np.dtype(content[0])
    if dtype.kind not in "biuf":
        raise _Damaged(f"a scalar of type {dtype}")
    return dtype.type(_unpack(content[1], entries))


_TAGS: dict[str, Callable[[Any, dict[str, bytes]], Any]] = {
    "float": lambda content, _: float(content),
    "text": lambda content, entries: entries[content].decode(),
    "list": lambda content, entries: [_unpack(v, entries) for v in content],
    "tuple": lambda content, entries: tuple(_unpack(v, entries) for v in content),
    "pairs": lambda content, entries: dict(_unpack(content, entries)),
    "scalar": _unpack_scalar,
    "array": _unpack_array,
    "names": lambda content, _: np.array([str(v) for v in content], dtype=object),
    "metric": lambda content, _: parse_metric(content),
    "loss": lambda content, _: parse_loss(content),
    "object": _unpack_object,
}


def _checked(ranker: Any) -> Any:
    """The ranker, if its parts fit together: it must score a document of zeros."""
    import scipy.sparse as sp

    # An aggregation of lists without features predicts nothing.
    if not hasattr(ranker, "predict") or not hasattr(ranker, "n_features_in_"):
        return ranker
    row = sp.csr_matrix((1, int(ranker.n_features_in_)), dtype=np.float64)
    score = ranker.predict(row, qid=[0])
    if not isinstance(score, np.ndarray) or score.shape != (1,):
        raise _Damaged("a ranker whose parts do not fit together")
    return ranker


# --- trees -----------------------------------------------------------------------------------

# Values as LightGBM writes them, one space between two: Python and LightGBM must not differ in
# what they take for a number or a separator.
_ONE_INTEGER = r"-?\d{1,9}"
_ONE_NUMBER = r"-?(\d+(\.\d+)?(e[+-]?\d+)?|inf|nan)"
_ONE_WORD = r"\d{1,10}"
_INTEGERS, _NUMBERS, _WORDS = (
    re.compile(rf"({one}( {one})*)?", re.ASCII) for one in (_ONE_INTEGER, _ONE_NUMBER, _ONE_WORD)
)
# Lines of a tree in LightGBM's text: how many values (one, per inner node, per leaf, per end of a
# set of categories, per 32 categories of the sets) of what kind.
_TREE_LINES = {
    "num_leaves": ("one", _INTEGERS),
    "num_cat": ("one", _INTEGERS),
    "split_feature": ("node", _INTEGERS),
    "split_gain": ("node", _NUMBERS),
    "threshold": ("node", _NUMBERS),
    "decision_type": ("node", _INTEGERS),
    "left_child": ("node", _INTEGERS),
    "right_child": ("node", _INTEGERS),
    "leaf_value": ("leaf", _NUMBERS),
    "leaf_weight": ("leaf", _NUMBERS),
    "leaf_count": ("leaf", _INTEGERS),
    "internal_value": ("node", _NUMBERS),
    "internal_weight": ("node", _NUMBERS),
    "internal_count": ("node", _INTEGERS),
    "cat_boundaries": ("boundary", _INTEGERS),
    "cat_threshold": ("word", _WORDS),
    "is_linear": ("one", _INTEGERS),
    "shrinkage": ("one", _NUMBERS),
}
# The lines of a tree that splits by sets of categories.
_OF_SETS = ("boundary", "word")
_HEADER_LINES = [
    "tree",
    "version",
    "num_class",
    "num_tree_per_iteration",
    "label_index",
    "max_feature_idx",
    "feature_names",
    "monotone_constraints",
    "feature_infos",
    "tree_sizes",
]
_END = re.compile(r"end of trees\n\nfeature_importances:\n(\w+=\d+\n)*\n", re.ASCII)


def check_trees(text: str, n_features: int, n_trees: int) -> None:
    """Refuses a model text that LightGBM, which trusts what it reads, should not be given.

    Every tree must be complete, use features that exist and reach each of its nodes and leaves
    once.
    """
    if not re.fullmatch(r"[\n -~]*", text):
        raise _Damaged("a tree model with odd characters")
    head, _, body = text.partition("\n\n")
    lines = [line.split("=") for line in head.split("\n")]
    header = {key: "=".join(values) for key, *values in lines}
    signs = header.get("monotone_constraints")
    if (
        [key for key, *_ in lines]
        != [key for key in _HEADER_LINES if key != "monotone_constraints" or signs is not None]
        or (signs is not None and not re.fullmatch(rf"(-?[01] ?){{{n_features}}}", signs))
        or any(len(parts) > 2 for parts in lines)
        or (header["num_class"], header["num_tree_per_iteration"]) != ("1", "1")
        or (header["label_index"], header["max_feature_idx"]) != ("0", str(n_features - 1))
        or len(header["feature_names"].split(" ")) != n_features
        or len(header["feature_infos"].split(" ")) != n_features
        or not _INTEGERS.fullmatch(header["tree_sizes"])
        or len(header["tree_sizes"].split()) != n_trees
    ):
        raise _Damaged("a tree model with an odd header")
    start = 0
    for i, size in enumerate(map(int, header["tree_sizes"].split())):
        block = body[start : start + size]
        if size < 1 or not (block.startswith(f"Tree={i}\n") and block.endswith("\n\n\n")):
            raise _Damaged(f"a tree model whose tree {i} is cut")
        if not _is_tree(block.removeprefix(f"Tree={i}\n").removesuffix("\n\n\n"), n_features):
            raise _Damaged(f"a tree model whose tree {i} does not fit together")
        start += size
    if not _END.fullmatch(body[start:]):
        raise _Damaged("a tree model with an odd end")


def _is_tree(block: str, n_features: int) -> bool:
    lines = [line.partition("=") for line in block.split("\n")]
    values = {key: text.split() for key, _, text in lines}
    some_sets = values.get("num_cat") != ["0"]
    expected = [k for k, (kind, _) in _TREE_LINES.items() if some_sets or kind not in _OF_SETS]
    if [key for key, _, _ in lines] != expected:
        return False
    if not all(_TREE_LINES[key][1].fullmatch(text) for key, _, text in lines):
        return False
    n_leaves, n_sets = (int((values[key] or ["0"])[0]) for key in ("num_leaves", "num_cat"))
    n_nodes = n_leaves - 1
    n_words = int(values["cat_boundaries"][-1]) if some_sets and values["cat_boundaries"] else 0
    counts = {
        "one": 1, "leaf": n_leaves, "node": n_nodes, "boundary": n_sets + 1, "word": n_words
    }  # fmt: skip
    if not all(len(values[key]) == counts[_TREE_LINES[key][0]] for key in expected):
        return False

    def column(key: str, dtype: type = np.int64) -> NDArray[Any]:
        return np.array(values[key], dtype=dtype)

    left, right, nodes = column("left_child"), column("right_child"), np.arange(n_nodes)
    # Leaf i is the child -i - 1. Each leaf and each node but the first is a child once, and nodes
    # come after their parents, so that everything hangs on node 0 and nothing loops.
    children = np.setdiff1d(np.arange(-n_leaves, n_nodes), [0]) if n_nodes else nodes
    feature, decision = column("split_feature"), column("decision_type")
    threshold, by_set = column("threshold", np.float64), column("decision_type") % 2 == 1
    ends = column("cat_boundaries") if some_sets else np.zeros(1, np.int64)
    return bool(
        np.array_equal(np.sort(np.concatenate([left, right])), children)
        and ((left < 0) | (left > nodes)).all()
        and ((right < 0) | (right > nodes)).all()
        and ((feature >= 0) & (feature < n_features)).all()
        # Odd: the threshold is the number of a set of categories, each used once. Bit 1 says where
        # missing values go, bits 2 and 3 what counts as missing.
        and np.isin(decision, np.arange(12)).all()
        and np.array_equal(np.sort(threshold[by_set]), np.arange(n_sets))
        and ends[0] == 0
        and (np.diff(ends) > 0).all()
        and np.isfinite(column("leaf_value", np.float64)).all()
        and not np.isnan(threshold).any()
        and values["is_linear"] == ["0"]
    )
