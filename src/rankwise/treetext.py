"""LightGBM's text format, as far as boosted trees need to be cut, joined and looked up in it.

A model is a header of ``key=value`` lines, one block ``Tree=i`` of such lines for each tree, and
after ``end of trees`` how often each feature was split on. :func:`rankwise.saving.check_trees`
says what a text must hold to be given to LightGBM.
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
from numpy.typing import NDArray

_TREE = re.compile(r"^Tree=\d+\n", re.MULTILINE)
_END = "end of trees\n"


def trees_only(text: str) -> str:
    """A model without the settings of the run, among them the number of threads."""
    return text[: text.index("\nparameters:")] + "\n"


def merged(first: str, second: str) -> str:
    """One model with the trees of two; the rest of the header is that of the second."""
    bodies = _bodies(first) + _bodies(second)
    blocks = [f"Tree={i}\n{body}" for i, body in enumerate(bodies)]
    header, _, _ = second.partition("\n\n")
    sizes = " ".join(str(len(block)) for block in blocks)
    header = re.sub(r"^tree_sizes=.*$", f"tree_sizes={sizes}", header, flags=re.MULTILINE)
    counts = _split_counts(first) + _split_counts(second)
    by_count = sorted(counts.items(), key=lambda item: (-item[1], int(item[0].split("_")[1])))
    importances = "".join(f"{name}={count}\n" for name, count in by_count)
    return f"{header}\n\n{''.join(blocks)}{_END}\nfeature_importances:\n{importances}\n"


def leaf_values(text: str) -> list[NDArray[np.float64]]:
    """What each tree adds to the score of a document in each of its leaves."""
    lines = re.findall(r"^leaf_value=(.*)$", text, re.MULTILINE)
    return [np.array(line.split(), dtype=np.float64) for line in lines]


def _bodies(text: str) -> list[str]:
    trees = text[text.index("\n\n") + 2 : text.index(_END)]
    return _TREE.split(trees)[1:]


def _split_counts(text: str) -> Counter[str]:
    lines = re.findall(r"^(\w+)=(\d+)$", text[text.index(_END) :], re.MULTILINE)
    return Counter({name: int(count) for name, count in lines})
