"""Rankers as files: equal after reading, refused where unsafe, never trusted."""

from __future__ import annotations

import io
import json
import re
import zipfile

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

import rankwise as rw
from rankers import FOREIGN, RANKERS, fitted_values
from rankwise._estimator import Ranker
from rankwise.metrics import NDCG
from rankwise.saving import CLASSES, check_trees

SAVABLE = sorted(RANKERS.keys() - FOREIGN)


@pytest.fixture(scope="module")
def queries():
    return rw.make_queries(n_queries=30)


@pytest.fixture(scope="module")
def fitted(queries):
    return {name: clone(RANKERS[name]).fit(queries) for name in SAVABLE}


@pytest.fixture(scope="module")
def files(fitted, tmp_path_factory):
    """The bytes of each ranker's file."""
    folder = tmp_path_factory.mktemp("rankers")
    found = {}
    for name, ranker in fitted.items():
        ranker.save(folder / "model.rank")
        found[name] = (folder / "model.rank").read_bytes()
    return found


def load_bytes(data, tmp_path):
    path = tmp_path / "model.rank"
    path.write_bytes(data)
    return rw.load(path)


def test_every_ranker_is_in_the_table():
    public = [getattr(rw, name) for name in rw.__all__]
    rankers = {k.__name__ for k in public if isinstance(k, type) and issubclass(k, Ranker)}
    assert rankers <= CLASSES.keys()
    for name, module in CLASSES.items():
        assert getattr(rw, name).__module__ == f"rankwise.{module}"


# --- writing and reading -----------------------------------------------------------------------


@pytest.mark.parametrize("name", SAVABLE)
def test_read_equals_written(name, fitted, files, queries, tmp_path):
    ranker, again = fitted[name], load_bytes(files[name], tmp_path)
    assert type(again) is type(ranker)
    assert repr(again) == repr(ranker)
    assert np.array_equal(again.predict(queries), ranker.predict(queries))
    new = rw.make_queries(n_queries=10, rng=5)
    assert np.array_equal(again.predict(new), ranker.predict(new))
    assert again.score(new) == ranker.score(new)
    read, written = fitted_values(again), fitted_values(ranker)
    assert read.keys() == written.keys()
    for key, value in written.items():
        assert type(read[key]) is type(value)
        assert np.array_equal(read[key], value)
        assert np.asarray(read[key]).dtype == np.asarray(value).dtype
    again.fit(queries)  # a fitted ranker like any other
    assert np.array_equal(again.predict(queries), ranker.predict(queries))


@pytest.mark.parametrize("name", SAVABLE)
def test_equal_rankers_give_equal_files(name, files, queries, tmp_path):
    rows = np.random.default_rng(0).permutation(queries.n_docs)
    shuffled = clone(RANKERS[name])
    shuffled.fit(queries.X[rows], queries.y[rows], qid=queries.qid[rows])
    shuffled.feature_names_in_ = np.array(queries.feature_names, dtype=object)
    shuffled.save(tmp_path / "a.rank")
    # Attributes are written in the order they were set; only their order may differ.
    a, b = (
        zipfile.ZipFile(io.BytesIO(d)) for d in (files[name], (tmp_path / "a.rank").read_bytes())
    )
    assert a.namelist() == b.namelist()
    for entry in a.namelist()[1:]:
        assert a.read(entry) == b.read(entry)
    assert json.loads(a.read("ranker.json")) == json.loads(b.read("ranker.json"))
    load_bytes(files[name], tmp_path).save(tmp_path / "b.rank")
    assert (tmp_path / "b.rank").read_bytes() == files[name]


def test_parameters_of_every_kind(queries, tmp_path):
    path = tmp_path / "model.rank"
    for ranker in (
        rw.LinearRanker(rw.RankNet(sigma=0.3), metric=NDCG(gain="identity", k=7), alpha=np.float32(2)),
        rw.LinearRanker("ranknet(sigma=2)", metric="err(top=5)@3", alpha=0.1 + 0.2),
        rw.TreeRanker(rw.LambdaRank(metric="dcg@5", sigma=1.5), n_estimators=2, n_jobs=1),
        rw.FeatureRanker(metric=NDCG(gain=(0, 1, 3, 7, 15))),
        rw.TreeRanker("listnet", n_estimators=np.int64(2), n_jobs=1),
        rw.RandomRanker(None),
        rw.FeatureRanker("x2", descending=False),
    ):  # fmt: skip
        ranker.fit(queries).save(path)
        again = rw.load(path)
        assert {k: str(v) for k, v in again.get_params().items()} == {
            k: str(v) for k, v in ranker.get_params().items()
        }
        assert all(type(again.get_params()[k]) is type(v) for k, v in ranker.get_params().items())
        assert again.get_params() == ranker.get_params()
        assert np.array_equal(again.predict(queries), ranker.predict(queries))


def test_the_scaler_too(queries, tmp_path):
    scaler = rw.QueryScaler("zscore").fit(queries)
    rw.save(scaler, tmp_path / "scaler.rank")
    again = rw.load(tmp_path / "scaler.rank")
    assert again.method == "zscore"
    assert np.array_equal(again.transform(queries).X, scaler.transform(queries).X)


def test_values_that_json_has_no_word_for(queries, tmp_path):
    ranker = rw.FeatureRanker().fit(queries)
    ranker.extra_ = (1, [2.5, "a", None, True], float("inf"), np.float32(0.1), "x" * 5000, -0.0)
    ranker.nothing_ = float("nan")
    ranker.arrays_ = [np.arange(6).reshape(2, 3).T, np.array(["a", "bc"]), np.array(2.5)]
    ranker.save(tmp_path / "model.rank")
    again = rw.load(tmp_path / "model.rank")
    assert again.extra_ == ranker.extra_
    assert isinstance(again.extra_[3], np.float32)
    assert np.signbit(again.extra_[5])
    assert np.isnan(again.nothing_)
    for a, b in zip(again.arrays_, ranker.arrays_, strict=True):
        assert np.array_equal(a, b)
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert a.flags.writeable


def test_caches_are_left_out(fitted, files):
    assert "_booster" in vars(fitted["lambdamart"])
    header = json.loads(zipfile.ZipFile(io.BytesIO(files["lambdamart"])).read("ranker.json"))
    assert not [k for k in header["fitted"] if k.startswith("_")]


def test_the_old_file_stays_when_writing_fails(fitted, tmp_path):
    path = tmp_path / "model.rank"
    fitted["feature"].save(path)
    before = path.read_bytes()
    bad = clone(fitted["feature"]).set_params(metric=len)
    bad.feature_, bad.sign_, bad.n_features_in_ = 0, 1.0, 6
    with pytest.raises(TypeError):
        bad.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.rank"]


# --- what is refused on writing ----------------------------------------------------------------


def a_loss(y, s, offsets, weight):
    return s - y, np.ones_like(s)


class Mine(rw.FeatureRanker):
    pass


def test_what_has_no_safe_form_is_named(queries, tmp_path):
    path = tmp_path / "model.rank"
    for ranker, text in [
        (rw.PointwiseRanker(Ridge()), "PointwiseRanker.estimator must have a form without pickle"),
        (rw.TreeRanker(a_loss, n_estimators=1, n_jobs=1), "TreeRanker.loss must have a form"),
        (
            rw.TreeRanker(n_estimators=1, n_jobs=1, random_state=np.random.RandomState(0)),
            "TreeRanker.random_state must have a form",
        ),
        (Mine(), "only rankers of rankwise have a form without pickle, got Mine of type"),
    ]:
        with pytest.raises(TypeError, match=f"^save: {re.escape(text)}"):
            ranker.fit(queries).save(path)
    for foreign in (Ridge(), make_pipeline(rw.QueryScaler(), rw.FeatureRanker()), 3):
        with pytest.raises(TypeError, match="only rankers of rankwise"):
            rw.save(foreign, path)
    odd = rw.FeatureRanker().fit(queries)
    odd.objects_ = np.array([{}, []], dtype=object)
    with pytest.raises(TypeError, match=r"FeatureRanker\.objects_ must be an array of numbers"):
        odd.save(path)
    assert not path.exists()


def test_unfitted_and_bad_paths(fitted, tmp_path):
    with pytest.raises(NotFittedError):
        rw.FeatureRanker().save(tmp_path / "model.rank")
    with pytest.raises(OSError, match="nowhere"):
        fitted["feature"].save(tmp_path / "nowhere" / "model.rank")
    with pytest.raises(ValueError, match=r"not compressed, got the ending '\.gz'"):
        fitted["feature"].save(tmp_path / "model.rank.gz")
    with pytest.raises(FileNotFoundError):
        rw.load(tmp_path / "nothing.rank")
    with pytest.raises(IsADirectoryError):
        rw.load(tmp_path)


# --- what is refused on reading ----------------------------------------------------------------


def rebuilt(data, change=None, entries=None, compression=zipfile.ZIP_STORED):
    """The archive with its header changed by ``change(header)`` and some entries replaced."""
    source = zipfile.ZipFile(io.BytesIO(data))
    contents = {name: source.read(name) for name in source.namelist()}
    header = json.loads(contents["ranker.json"])
    if change is not None:
        header = change(header) or header
    contents["ranker.json"] = json.dumps(header).encode()
    contents |= entries or {}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, content in contents.items():
            if content is not None:
                archive.writestr(name, content)
    return out.getvalue()


def npy(shape, data, descr="<f8"):
    header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data


def setting(*path_and_value):
    *path, last, value = path_and_value

    def change(header):
        at = header
        for key in path:
            at = at[key]
        at[last] = value

    return change


HOSTILE = {
    "nothing": (lambda d: b"", "an empty file"),
    "text": (lambda d: b"1 qid:1 1:0.5\n", "another kind of file"),
    "a pickle": (lambda d: b"\x80\x04\x95\x00.", "another kind of file"),
    "half a file": (lambda d: d[: len(d) // 2], "a damaged or truncated archive"),
    "the end cut": (lambda d: d[:-1], "a damaged or truncated archive"),
    "another archive": (lambda d: zip_of({"word.xml": b"<a/>"}), "an archive without ranker.json"),
    "a compressed archive": (
        lambda d: rebuilt(d, compression=zipfile.ZIP_DEFLATED),
        "compressed or encrypted entries",
    ),
    "a header that is no JSON": (lambda d: rebuilt(d, entries={"ranker.json": b"{"}), "Expecting"),
    "a header of another kind": (lambda d: rebuilt(d, lambda h: [1]), ""),
    "a deep header": (
        lambda d: rebuilt(d, entries={"ranker.json": b"[" * 200_000}),
        "RecursionError",
    ),
    "a header of bytes": (lambda d: rebuilt(d, entries={"ranker.json": b"\xff\xfe\xfd"}), ""),
    "a newer format": (
        lambda d: rebuilt(d, setting("format", 2)),
        "format 2 of rankwise '0.1.0', while this version (0.1.0) reads up to 1; upgrade rankwise",
    ),
    "format zero": (lambda d: rebuilt(d, setting("format", 0)), "format 0"),
    "a format of text": (lambda d: rebuilt(d, setting("format", "1")), "format '1'"),
    "an unknown class": (lambda d: rebuilt(d, setting("class", "Popen")), "unknown class 'Popen'"),
    "a class that is a list": (lambda d: rebuilt(d, setting("class", [])), ""),
    "another class": (lambda d: rebuilt(d, setting("class", "RankSVM")), "RankSVM with missing or"),
    "an unknown parameter": (
        lambda d: rebuilt(d, setting("params", "shell", "rm")),
        "LinearRanker with missing or unknown parameters (shell)",
    ),
    "a method as attribute": (
        lambda d: rebuilt(d, setting("fitted", "predict", 1)),
        "the odd attribute 'predict'",
    ),
    "a dunder": (lambda d: rebuilt(d, setting("fitted", "__class__", 1)), "the odd attribute"),
    "an unknown tag": (
        lambda d: rebuilt(d, setting("fitted", "coef_", {"pickle": "x"})),
        "the unknown kind of value 'pickle'",
    ),
    "two tags": (
        lambda d: rebuilt(d, setting("fitted", "coef_", {"text": "", "list": []})),
        "header",
    ),
    "a missing entry": (lambda d: rebuilt(d, entries={"coef_.npy": None}), "KeyError('coef_.npy')"),
    "an array that is none": (lambda d: rebuilt(d, entries={"coef_.npy": b"abc"}), ""),
    "an array with a huge shape": (
        lambda d: rebuilt(d, entries={"coef_.npy": npy((10**12,), b"")}),
        "the array coef_.npy of shape (1000000000000,) in",
    ),
    "an array with an overflowing shape": (
        lambda d: rebuilt(d, entries={"coef_.npy": npy((2**62, 4), b"")}),
        "the array coef_.npy of shape",
    ),
    "an array of objects": (
        lambda d: rebuilt(d, entries={"coef_.npy": npy((1,), b"\x80\x04N.", "|O")}),
        "the entry coef_.npy, which is no array of numbers or text",
    ),
    "an array of records": (
        lambda d: rebuilt(d, entries={"coef_.npy": npy((1,), b"12345678", [("a", "<f8")])}),
        "the entry coef_.npy, which is no array of numbers or text",
    ),
    "an array of code": (
        lambda d: rebuilt(d, entries={"coef_.npy": npy("__import__('os')", b"")}),
        "",
    ),
    "coefficients too few": (
        lambda d: rebuilt(d, entries={"coef_.npy": npy((1,), b"12345678")}),
        "",
    ),
    "coefficients of text": (lambda d: rebuilt(d, setting("fitted", "coef_", "abc")), ""),
    "no features": (lambda d: rebuilt(d, setting("fitted", "n_features_in_", 0)), ""),
    "very many features": (
        lambda d: rebuilt(d, setting("fitted", "n_features_in_", 10**15)),
        "",
    ),
    "a metric that is none": (
        lambda d: rebuilt(d, setting("params", "metric", {"metric": "os.system('x')"})),
        "",
    ),
    "a loss that is none": (
        lambda d: rebuilt(d, setting("params", "loss", {"loss": "open('x')"})),
        "",
    ),
    "a scalar of objects": (
        lambda d: rebuilt(d, setting("fitted", "intercept_", {"scalar": ["|O", 1]})),
        "a scalar of type object",
    ),
}


def zip_of(entries):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return out.getvalue()


@pytest.mark.parametrize("case", HOSTILE)
def test_foreign_and_hostile_files(case, files, tmp_path):
    change, text = HOSTILE[case]
    data = change(files["linear ranknet"])
    sentence = r"model\.rank: must be a ranker file written by rankwise\.save, got "
    with pytest.raises(ValueError, match=f"{sentence}.*{re.escape(text)}"):
        load_bytes(data, tmp_path)


def test_overlapping_entries(files, tmp_path):
    """Entries that share their bytes claim more than the file holds."""
    data = rebuilt(files["linear ranknet"], entries={"a.npy": b"x" * 4000, "b.npy": b"y"})
    archive = zipfile.ZipFile(io.BytesIO(data))
    a, b = archive.getinfo("a.npy"), archive.getinfo("b.npy")
    directory = data.rindex(b"PK\x01\x02")  # the record of b.npy, the last one
    record = bytearray(data[directory:])
    for position, value in (
        (16, a.CRC),
        (20, a.file_size),
        (24, a.file_size),
        (42, a.header_offset),
    ):
        record[position : position + 4] = value.to_bytes(4, "little")
    assert b.filename == "b.npy"
    with pytest.raises(ValueError, match="must be a ranker file"):
        load_bytes(data[:directory] + bytes(record), tmp_path)


@pytest.mark.parametrize("name", ["linear ranknet", "lambdamart", "random"])
def test_truncated_and_flipped_files(name, files, fitted, queries, tmp_path):
    """Every cut and every flipped bit is noticed, or changes nothing that counts."""
    data = files[name]
    rng = np.random.default_rng(0)
    expected = fitted[name].predict(queries)
    for cut in rng.integers(0, len(data), 60):
        with pytest.raises(ValueError, match="must be a ranker file"):
            load_bytes(data[:cut], tmp_path)
    survived = 0
    for _ in range(300):
        flipped = bytearray(data)
        flipped[rng.integers(len(data))] ^= 1 << rng.integers(8)
        try:
            again = load_bytes(bytes(flipped), tmp_path)
        except ValueError as error:
            text = str(error)
            assert "must be a ranker file" in text
        else:
            survived += 1
            assert np.array_equal(again.predict(queries), expected)
    assert survived < 150


@pytest.mark.parametrize("name", ["linear ranknet", "lambdamart"])
def test_mutated_contents_never_crash(name, files, queries, tmp_path):
    """Behind correct checksums, any content: a ranker that scores, or a sentence."""
    source = zipfile.ZipFile(io.BytesIO(files[name]))
    rng = np.random.default_rng(1)
    for _ in range(300):
        entry = source.namelist()[rng.integers(len(source.namelist()))]
        content = bytearray(source.read(entry))
        for _ in range(rng.integers(1, 4)):
            at = rng.integers(len(content))
            if rng.random() < 0.5:
                content[at] = rng.integers(256)
            else:
                digits = b"0123456789-. \n"
                content[at : at + rng.integers(0, 3)] = bytes([digits[rng.integers(14)]])
        try:
            again = load_bytes(rebuilt(files[name], entries={entry: bytes(content)}), tmp_path)
            again.predict(queries)
        except ValueError as error:
            text = str(error)
            assert "ranker file" in text or "predict" in text


# --- trees -------------------------------------------------------------------------------------


def test_trees_of_lightgbm_pass(fitted):
    for name in ("lambdamart", "trees squared", "lambdamart sampled"):
        ranker = fitted[name]
        check_trees(ranker.model_text_, ranker.n_features_in_, ranker.n_estimators_)


def test_a_model_without_a_split_passes(queries, tmp_path):
    ranker = rw.TreeRanker(n_estimators=3, min_child_samples=10_000, n_jobs=1)
    with pytest.warns(UserWarning, match="all scores are equal"):
        ranker.fit(queries)
    ranker.save(tmp_path / "model.rank")
    assert (rw.load(tmp_path / "model.rank").predict(queries) == ranker.predict(queries)).all()


def line(text, key, tree=0):
    """The first line of a key in a tree."""
    block = text[text.index(f"Tree={tree}\n") :]
    return next(found for found in block.split("\n") if found.startswith(f"{key}="))


def replaced(text, old, new):
    """The text with one line replaced, its tree's size corrected."""
    start = text.index("Tree=0\n")
    at = text.index(old, start)
    changed = text[:at] + new + text[at + len(old) :]
    size = re.search(r"tree_sizes=(\d+)", changed)
    first = int(size[1]) + len(new) - len(old)
    return changed[: size.start(1)] + str(first) + changed[size.end(1) :]


TREE_CHANGES = {
    "a loop": ("left_child", lambda v: ["0", *v[1:]]),
    "a child twice": ("left_child", lambda v: [*v[:-1], v[0]]),
    "a child that is not there": ("right_child", lambda v: [*v[:-1], "99"]),
    "a leaf that is not there": ("right_child", lambda v: [*v[:-1], "-99"]),
    "a feature that is not there": ("split_feature", lambda v: ["6", *v[1:]]),
    "a negative feature": ("split_feature", lambda v: ["-1", *v[1:]]),
    "a category": ("decision_type", lambda v: ["1", *v[1:]]),
    "a leaf short": ("leaf_value", lambda v: v[1:]),
    "a leaf more": ("leaf_value", lambda v: [*v, "1"]),
    "a leaf of text": ("leaf_value", lambda v: ["x", *v[1:]]),
    "an infinite leaf": ("leaf_value", lambda v: ["inf", *v[1:]]),
    "a threshold that is none": ("threshold", lambda v: ["nan", *v[1:]]),
    "more leaves than there are": ("num_leaves", lambda v: ["9999"]),
    "no leaves": ("num_leaves", lambda v: ["0"]),
    "negative leaves": ("num_leaves", lambda v: ["-5"]),
    "categories": ("num_cat", lambda v: ["1"]),
    "linear leaves": ("is_linear", lambda v: ["1"]),
    "an underscore in a number": ("left_child", lambda v: [*v[:-1], f"{v[-1][:-1]}0_{v[-1][-1]}"]),
    "two spaces": ("left_child", lambda v: [v[0], "", *v[1:]]),
    "a fraction of a child": ("left_child", lambda v: [v[0] + ".0", *v[1:]]),
    "a hexadecimal threshold": ("threshold", lambda v: ["0x1", *v[1:]]),
    "one line less": ("shrinkage", lambda v: None),
}


@pytest.mark.parametrize("case", TREE_CHANGES)
def test_trees_that_do_not_fit_together(case, fitted, files, tmp_path):
    key, change = TREE_CHANGES[case]
    text = fitted["lambdamart"].model_text_
    old = line(text, key)
    values = change(old.partition("=")[2].split())
    new = "" if values is None else f"{key}={' '.join(values)}"
    bad = replaced(text, old, new)
    data = rebuilt(files["lambdamart"], entries={"model_text_.txt": bad.encode()})
    with pytest.raises(ValueError, match="a tree model whose tree 0 does not fit together"):
        load_bytes(data, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("max_feature_idx=5", "max_feature_idx=4", "odd header"),
        ("num_class=1", "num_class=2", "odd header"),
        ("tree_sizes=", "tree_sizes=9", "tree 0 is cut"),
        ("tree_sizes=", "tree_sizes=-", "tree 0 is cut"),
        ("label_index=0", "label_index=0\nlinear_tree=1", "odd header"),
        ("Tree=1\n", "Tree=7\n", "tree 1 is cut"),
        ("end of trees", "end of tree", "odd end"),
        # Separators that Python knows and LightGBM does not, or the other way round.
        ("right_child=1 ", "right_child=1\x1c", "odd characters"),
        ("right_child=1 ", "right_child=1\t", "odd characters"),
        ("right_child=1 ", "right_child=1\r", "odd characters"),
        ("right_child=1 ", "right_child=1\u00a0", "odd characters"),
    ],
)
def test_tree_models_with_another_frame(old, new, text, fitted, files, tmp_path):
    model = fitted["lambdamart"].model_text_
    assert old in model
    bad = model.replace(old, new, 1)
    data = rebuilt(files["lambdamart"], entries={"model_text_.txt": bad.encode()})
    with pytest.raises(ValueError, match=text):
        load_bytes(data, tmp_path)


def test_number_of_trees_must_agree(files, tmp_path):
    data = rebuilt(files["lambdamart"], setting("fitted", "n_estimators_", 3))
    with pytest.raises(ValueError, match="odd header"):
        load_bytes(data, tmp_path)


def test_trees_inside_other_rankers_are_checked_too(fitted, queries, tmp_path):
    """Trees may sit in an ensemble, or under the trees that were added to them."""
    trees = fitted["lambdamart"]
    more = rw.TreeRanker(n_estimators=2, num_leaves=4, n_jobs=1)
    added = more.fit(queries, init_model=trees)
    bad = replaced(trees.model_text_, line(trees.model_text_, "left_child"), "left_child=0")
    for ranker in (rw.EnsembleRanker.of([trees], queries), added):
        ranker.save(tmp_path / "outer.rank")
        data = (tmp_path / "outer.rank").read_bytes()
        names = zipfile.ZipFile(io.BytesIO(data)).namelist()
        inner = next(n for n in names if "/" in n and n.endswith("model_text_.txt"))
        with pytest.raises(ValueError, match="a tree model whose tree 0 does not fit together"):
            load_bytes(rebuilt(data, entries={inner: bad.encode()}), tmp_path)
