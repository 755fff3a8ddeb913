"""Neural rankers: small networks for any ranking loss.

:class:`NeuralRanker` trains a multilayer perceptron, a self-attention scorer that looks at the
whole list, or a network of yours on any loss of :mod:`rankwise.losses`. The loss gives the force on
each score, computed by the same kernels that linear models and trees use; PyTorch only carries the
forces back through the network, so nothing of it grows with the number of pairs (Burges 2010,
section 2). Batches are whole queries, one after the other without padding.

PyTorch is needed for training and for attention: ``pip install "rankwise[neural]"``. A trained
perceptron scores and loads without it.

>>> import rankwise as rw
>>> queries = rw.make_queries()
>>> train, valid, test = (queries.take(range(*r)) for r in ((0, 200), (200, 300), (300, 1300)))
>>> ranker = rw.NeuralRanker(
...     "listnet", hidden=(32,), n_epochs=30, learning_rate=0.01, early_stopping_rounds=5,
...     metric="ndcg@5", random_state=0,
... ).fit(train, eval_set=valid)
>>> bool(ranker.score(test) > 0.7)
True

:func:`torch_loss` is any of the losses as a function for your own training loop in PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from rankwise import _core, _validate
from rankwise._estimator import Ranker
from rankwise._progress import Progress
from rankwise._text import parse_call
from rankwise._transforms import TRANSFORMS, chunks, fit_table, transformed
from rankwise.data import Pairs, Queries, query_of, row_hashes
from rankwise.losses import pairs_for, parse_loss
from rankwise.metrics import Metric, parse_metric

Floats = NDArray[np.float64]
ACTIVATIONS = ("relu", "tanh", "sigmoid", "elu", "gelu")  # in the order of native/network.hpp
NETWORKS = ("mlp", "attention")
_PART = 2048  # documents that pass through a network at once; padded ones count as well


class NeuralRanker(Ranker):
    """A network trained on a ranking loss, batches of whole queries at a time.

    ``objective = mean over queries of loss(y, f(x)) + weight_decay / 2 |matrices of f|^2``

    Parameters
    ----------
    loss : str, loss or callable
        Any name of :data:`rankwise.losses.LOSSES` with its options, a loss value, or a function
        ``(y, s, offsets, weight) -> (gradient, curvature)`` on flat lists.
    network : {"mlp", "attention"} or callable
        ``"mlp"`` scores each document by itself: layers of ``hidden`` outputs with ``activation``
        between them, then one output. ``"attention"`` lets the documents of a list see each
        other: the same layers, then ``blocks`` of self-attention and feed-forward layers as wide
        as the last of ``hidden``, without positions, so that the order of the rows says nothing;
        then one output. A function ``n_features -> torch.nn.Module`` brings a network of your
        own, whose ``forward`` takes ``(n_docs, n_features)`` float32 features (and, if the module
        has ``listwise = True``, the offsets) and returns one score per document.
    hidden : sequence of int
        Outputs of the layers; empty makes ``"mlp"`` a linear model.
    activation : {"relu", "tanh", "sigmoid", "elu", "gelu"}
    dropout : float
        Share of the hidden outputs set to 0 while training, below 1.
    heads, blocks : int
        Of ``"attention"``; the last of ``hidden`` must be a multiple of ``heads``.
    scale : {"log1p", "std", "quantile"} or None
        Applied to each feature, fitted on the training documents: ``"std"`` takes off the mean and
        divides by the standard deviation; ``"log1p"`` does so after ``sign(x) log(1 + |x|)``;
        ``"quantile"`` gives the normal score of the value's place among the training values.
    n_epochs : int
        Passes over the training queries.
    batch_queries : int
        Queries per step.
    learning_rate : float
        Size of Adam's steps, above 0.
    weight_decay : float
        Strength of the penalty on the matrices (not on biases), 0 or more.
    early_stopping_rounds : int, optional
        Stop when ``metric`` on ``eval_set`` has not risen for this many epochs.
    metric : str or Metric
        Watched on ``eval_set`` and used by ``score``.
    random_state : int, RandomState or None
        Seed of the first weights, the batches and dropout; equal seeds give equal models.
    n_jobs : int, optional
        Threads; -1 uses all, None is 1. The model does not depend on it.
    verbose : bool
        Shows epochs on standard error while fitting.

    Attributes
    ----------
    n_epochs_ : int
        Epochs behind the weights that were kept: the best validation epoch when ``eval_set`` was
        given, with or without early stopping.
    validation_scores_ : float64 array of shape (n_epochs_run,) or None
        ``metric`` on ``eval_set`` after each epoch.
    architecture_ : str
        Kind and sizes of a built-in network.
    weights_ : float32 array of shape (n_weights,)
        Its weights, layer after layer.
    module_ : torch.nn.Module
        The trained network, where ``network`` is a function.

    Raises
    ------
    ValueError
        If a parameter is out of range, no query holds an order to learn, early stopping is asked
        for without ``eval_set``, or training diverges.
    ModuleNotFoundError
        Without PyTorch.

    Notes
    -----
    A missing value (NaN) counts as the mean of its feature in training (the middle, with
    ``"quantile"``); with ``scale=None`` it is refused. Sparse features are made dense batch by
    batch. Losses that are not sums over queries (the ordinal ones, whose thresholds all queries share)
    are taken batch by batch: give these large batches.

    The model depends neither on the order of the rows nor on the number of threads: a batch is cut
    into fixed parts, each computed by one thread, whose gradients are added in order. Scores of
    ``"mlp"`` depend on their row alone, to the last bit. Scores of ``"attention"`` depend on the list
    alone, whatever its row order and whatever else is scored along with it, to the last bit;
    ``predict`` then needs ``qid`` unless ``X`` holds the ids. For a network of your own neither is
    promised, and it is trained by one thread.

    Training takes time in proportion to documents times weights, plus what the loss takes;
    attention adds the squares of the list lengths.

    References
    ----------
    burges2005, burges2010, pobrotyn2020, qin2021, kingma2015

    Examples
    --------
    Without hidden layers, the network is a linear ranker:

    >>> import rankwise as rw
    >>> queries = rw.make_queries(n_queries=200)
    >>> linear = rw.NeuralRanker("ranknet", hidden=(), scale="std", random_state=0).fit(queries)
    >>> linear.weights_.shape  # six features and a bias
    (7,)
    """

    takes_pairs: ClassVar[bool] = True

    def __init__(
        self,
        loss: Any = "listnet",
        *,
        network: Any = "mlp",
        hidden: Any = (64, 32),
        activation: str = "relu",
        dropout: float = 0.0,
        heads: int = 2,
        blocks: int = 2,
        scale: str | None = "log1p",
        n_epochs: int = 50,
        batch_queries: int = 16,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        early_stopping_rounds: int | None = None,
        metric: str | Metric = "ndcg@10",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.network = network
        self.hidden = hidden
        self.activation = activation
        self.dropout = dropout
        self.heads = heads
        self.blocks = blocks
        self.scale = scale
        self.n_epochs = n_epochs
        self.batch_queries = batch_queries
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.early_stopping_rounds = early_stopping_rounds
        self.metric = metric
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # --- fitting -------------------------------------------------------------------------------

    def _fit(self, train: Queries, valid: Queries | None) -> None:
        self._fit_sharing(train, valid, {})

    def _fit_sharing(self, train: Queries, valid: Queries | None, shared: dict[Any, Any]) -> None:
        where = f"{type(self).__name__}.fit"
        self._check_parameters(where, valid)
        networks = _networks(where)
        forces = _Forces(where, self.loss)
        _check_order(where, forces, train)
        key = ("network inputs", self.scale)
        if key not in shared:
            table = fit_table(self.scale, train.X)
            shared[key] = table, _through(self.scale, table, train, np.float32)
            if valid is not None:
                shared[key] += (_through(self.scale, table, valid, np.float64),)
        self.scale_table_, lists, *watched = shared[key]
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        with networks.own_random_numbers(seed, callable(self.network)):
            self._train(networks, lists, watched, forces, np.random.default_rng(seed))

    def _train(
        self,
        networks: Any,
        lists: Queries,
        watched: list[Queries],
        forces: _Forces,
        rng: np.random.Generator,
    ) -> None:
        where = f"{type(self).__name__}.fit"
        learner = self._learner(where, networks, lists.n_features, rng)
        optimizer = networks.Adam(learner.flat, float(self.weight_decay) * learner.penalised)
        n_batches = -(-lists.n_queries // int(self.batch_queries))
        patience = self.early_stopping_rounds or self.n_epochs
        metric = parse_metric(self.metric)
        history: list[float] = []
        best, kept = 0, None
        # A user's module may draw from PyTorch's one generator and change what it remembers.
        threads = 1 if callable(self.network) else _n_threads(self.n_jobs)
        with networks.threads(threads) as run, Progress(quiet=not self.verbose) as progress:
            for epoch in range(int(self.n_epochs)):
                for batch in np.array_split(rng.permutation(lists.n_queries), n_batches):
                    gradient = self._gradient(learner, lists, batch, forces, rng, run)
                    optimizer.step(gradient, float(self.learning_rate))
                    learner.follow()
                if not learner.is_finite():
                    raise _diverged(where)
                text = f"epoch {epoch + 1}"
                for valid in watched:
                    self._take_weights(learner)
                    kind = self.scale if hasattr(valid.X, "nnz") else None
                    y_score = self._scores(kind, valid.X, valid.offsets, run)
                    history.append(metric.mean(valid.y, y_score, qid=valid.groups))
                    if kept is None or not history[epoch] <= history[best]:
                        best, kept = epoch, learner.state()
                    text += f": {metric} {history[epoch]:.4f}, best {history[best]:.4f}"
                progress(epoch + 1, int(self.n_epochs), text)
                if watched and epoch - best >= patience:
                    break
        if kept is not None:
            learner.restore(kept)
        self._take_weights(learner)
        self.n_epochs_ = best + 1 if watched else int(self.n_epochs)
        self.validation_scores_ = np.array(history) if watched else None

    def _gradient(
        self,
        learner: Any,
        lists: Queries,
        batch: NDArray[np.int64],
        forces: _Forces,
        rng: np.random.Generator,
        run: Run,
    ) -> Any:
        """Gradient of a batch's mean loss in all weights: sums of fixed parts, in order."""
        parts = [np.arange(len(batch))]
        if forces.separable:
            parts = _parts(lists.sizes[batch], padded=self._looks_at_lists())
        seeds = rng.integers(2**62, size=len(parts))

        def gradient_of(part: NDArray[np.int64], seed: int) -> Any:
            some = lists.take(batch[part])
            if hasattr(some.X, "nnz"):
                X = transformed(self.scale, self.scale_table_, some.X, slice(None))
                some = some.with_features(X)
            return learner.gradient(
                some.X, some.offsets, int(seed), lambda s: forces(some, s) / len(batch)
            )

        total: Any = sum(run(gradient_of, parts, seeds))
        if forces.shift_invariant and not callable(self.network):
            # The forces of a list sum to 0: the bias of the output would follow their rounding.
            total[-1] = 0.0
        return total

    def _learner(self, where: str, networks: Any, n_features: int, rng: np.random.Generator) -> Any:
        """The network before its first step."""
        if callable(self.network):
            return networks.OwnLearner(where, self.network(n_features))
        architecture = Architecture(
            self.network,
            (n_features, *map(int, self.hidden)),
            self.activation,
            **({"heads": int(self.heads), "blocks": int(self.blocks)} if self._attends() else {}),
        )
        self.architecture_ = str(architecture)
        return networks.Learner(architecture, architecture.first_weights(rng), float(self.dropout))

    def _take_weights(self, learner: Any) -> None:
        if callable(self.network):
            self.module_ = learner.module.eval()
        else:
            self.weights_ = learner.flat.detach().numpy().copy()

    def _stopped_at(self) -> dict[str, Any]:
        return {"n_epochs": self.n_epochs_, "early_stopping_rounds": None}

    # --- scoring -------------------------------------------------------------------------------

    def _attends(self) -> bool:
        return isinstance(self.network, str) and self.network == "attention"

    def _looks_at_lists(self) -> bool:
        return self._attends() or bool(getattr(getattr(self, "module_", None), "listwise", False))

    def _score(self, X: Any) -> Floats:
        return self._score_lists(X, np.array([0, X.shape[0]]))

    def _score_lists(self, X: Any, offsets: NDArray[np.int64]) -> Floats:
        return self._scores(self.scale, X, offsets)

    def _scores(
        self, kind: str | None, X: Any, offsets: NDArray[np.int64], run: Run | None = None
    ) -> Floats:
        """Scores of rows to which the transform ``kind`` is still to be applied."""

        def inputs(rows: Any) -> Floats:
            return transformed(kind, self.scale_table_, X, rows)

        if self._attends():
            return self._scores_by_attention(X, offsets, inputs, run)
        if callable(self.network):
            where = f"{type(self).__name__}.predict"
            networks = _networks(where)
            lists = [slice(a, b) for a, b in pairwise(offsets.tolist())]
            rows = lists if self._looks_at_lists() else chunks(X)
            with networks.threads(1):
                return np.concatenate(
                    [networks.own_scores(where, self.module_, inputs(r)) for r in rows]
                )
        architecture = Architecture.parse(self.architecture_, len(self.weights_))
        sizes = np.array([*architecture.sizes, 1])
        weights, activation = self.weights_.astype(np.float64), architecture.activation
        threads = _n_threads(self.n_jobs)
        return np.concatenate(
            [
                _core.network_scores(
                    inputs(rows), weights, sizes, ACTIVATIONS.index(activation), threads
                )
                for rows in chunks(X)
            ]
        )

    def _scores_by_attention(
        self,
        X: Any,
        offsets: NDArray[np.int64],
        inputs: Callable[[Any], Floats],
        run: Run | None,
    ) -> Floats:
        """List by list, each in an order that depends on its content alone.

        Rounding depends on the shape of a batch and on the place of a row in it; so neither may
        depend on what else is scored. Equal rows of a list share the score of the first.
        """
        networks = _networks(f"{type(self).__name__}.predict")
        architecture = Architecture.parse(self.architecture_, len(self.weights_))
        score = networks.scorer(architecture, self.weights_)
        hashes = row_hashes(X)
        query = query_of(offsets)
        order = np.lexsort((hashes, query))
        lists = [order[a:b] for a, b in pairwise(offsets.tolist()) if b > a]
        with networks.threads(_n_threads(self.n_jobs)) if run is None else nullcontext(run) as on:
            found = np.concatenate(on(lambda rows: score(inputs(rows)), lists))
        new = np.ones(len(order), bool)
        new[1:] = (np.diff(query) > 0) | (hashes[order][1:] != hashes[order][:-1])
        y_score = np.empty(len(order))
        y_score[order] = found[new][np.cumsum(new) - 1]
        return y_score

    # --- checks --------------------------------------------------------------------------------

    def _check_parameters(self, where: str, valid: Queries | None) -> None:
        def number(name: str, **bounds: Any) -> Any:
            return _validate.number(where, name, getattr(self, name), **bounds)

        if not callable(self.network):
            _validate.choice(where, "network", self.network, NETWORKS)
        _validate.choice(where, "activation", self.activation, ACTIVATIONS)
        if self.scale is not None:
            _validate.choice(where, "scale", self.scale, TRANSFORMS)
        for name in ("n_epochs", "batch_queries", "heads", "blocks"):
            number(name, low=1, integer=True)
        number("learning_rate", low=0, open_low=True)
        number("weight_decay", low=0)
        if number("dropout", low=0, high=1) == 1:
            raise ValueError(f"{where}: dropout must be below 1, got {self.dropout!r}")
        if isinstance(self.hidden, str) or not hasattr(self.hidden, "__iter__"):
            raise TypeError(
                f"{where}: hidden must be a sequence of layer sizes, got {self.hidden!r}; "
                "one layer is (64,)"
            )
        for size in self.hidden:
            _validate.number(where, "hidden", size, low=1, integer=True)
        if self._attends() and (len(self.hidden) == 0 or self.hidden[-1] % self.heads):
            raise ValueError(
                f"{where}: the last of hidden must be a multiple of heads={self.heads} for "
                f"attention, got hidden={tuple(self.hidden)}"
            )
        if self.n_jobs not in (None, -1):
            number("n_jobs", low=1, integer=True)
        _validate.patience(where, self.early_stopping_rounds, valid)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.scale is not None
        tags.non_deterministic = self.random_state is None
        return tags


def torch_loss(loss: Any) -> Callable[..., Any]:
    """A ranking loss for your own training loop in PyTorch.

    Parameters
    ----------
    loss : str or loss
        Any name of :data:`rankwise.losses.LOSSES` with its options, or a loss value.

    Returns
    -------
    callable
        ``(scores, y, offsets, weight=None, *, pairs=None) -> tensor of shape (n_queries,)``: the
        loss of each list. ``scores`` is a tensor of shape (n_docs,), the rest are arrays or
        tensors as in :meth:`rankwise.losses.Loss.value`. Sum or average it and call ``backward``.

    Raises
    ------
    ValueError, TypeError
        As :func:`rankwise.parse_loss` does, and for scores that are no vector.
    ModuleNotFoundError
        Without PyTorch.

    Notes
    -----
    One node of the graph holds the gradient in each score, computed along with the value in
    float64 on the CPU: time and memory are those of the loss, however many pairs there are. A
    loss without a function, such as LambdaRank, gives the value at its present weights and its
    gradient with the weights held fixed. A loss whose queries hang together (``separable`` is
    False: the ordinal ones, which share thresholds) can only be summed or averaged. There is no
    second derivative.

    References
    ----------
    burges2010

    Examples
    --------
    >>> import torch
    >>> import rankwise as rw
    >>> scores = torch.tensor([0.5, 1.0, 2.0, 0.0], requires_grad=True)
    >>> loss = rw.torch_loss("ranknet")(scores, [1, 0, 1, 0], [0, 2, 4])
    >>> loss
    tensor([0.9741, 0.1269], grad_fn=<RankingLossBackward>)
    >>> loss.sum().backward()
    >>> scores.grad
    tensor([-0.6225,  0.6225, -0.1192,  0.1192])
    """
    networks = _networks("torch_loss")
    value = parse_loss(loss)

    def of_lists(
        scores: Any, y: Any, offsets: Any, weight: Any = None, *, pairs: Pairs | None = None
    ) -> Any:
        if getattr(scores, "ndim", None) != 1:
            raise ValueError(
                "torch_loss: scores must be a tensor of shape (n_docs,), got "
                f"{getattr(scores, 'shape', type(scores).__name__)}; use scores[:, 0] or squeeze(-1)"
            )
        given = pairs_for("torch_loss", value, pairs)
        y, offsets, weight = map(networks.array, (y, offsets, weight))
        return networks.RankingLoss.apply(scores, value, y, np.asarray(offsets), weight, given)

    return of_lists


# --- networks without PyTorch ------------------------------------------------------------------


@dataclass(frozen=True)
class Architecture:
    """What a built-in network is, apart from its weights."""

    kind: str
    sizes: tuple[int, ...]  # features, hidden layers
    activation: str
    heads: int = 0
    blocks: int = 0

    @classmethod
    def parse(cls, text: str, n_weights: int) -> Architecture:
        """The architecture from its text; refused where the weights are not as many as it has."""
        kind, options = parse_call("network", text)
        found = cls(_validate.choice("network", "kind", kind, NETWORKS), **options)
        _validate.choice("network", "activation", found.activation, ACTIVATIONS)
        numbers = (*found.sizes, found.heads, found.blocks)
        attends = kind == "attention"
        if (
            not all(type(n) is int and 0 <= n <= n_weights for n in numbers)
            or not all(found.sizes)
            or (attends and (found.heads == 0 or found.sizes[-1] % found.heads))
            or found.n_weights() != n_weights
        ):
            raise ValueError(f"network: {n_weights} weights must fit the sizes, got {text}")
        return found

    def __str__(self) -> str:
        more = f", heads={self.heads}, blocks={self.blocks}" if self.heads else ""
        return f"{self.kind}(sizes={self.sizes}, activation={self.activation!r}{more})"

    def shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Kind and shape of each of the weights, in their order.

        A ``"layer"`` is a matrix, input by output, or the bias that follows it; a ``"scale"``
        belongs to a normalisation, whose shift follows it.
        """
        w = self.sizes[-1]
        norm: list[tuple[str, tuple[int, ...]]] = [("scale", (w,)), ("shift", (w,))]
        found = [part for a, b in pairwise(self.sizes) for part in _layer(a, b)]
        if self.kind == "attention":
            attention = [*norm, *_layer(w, 3 * w), *_layer(w, w)]
            feed = [*norm, *_layer(w, 2 * w), *_layer(2 * w, w)]
            found += (attention + feed) * self.blocks + norm
        return found + _layer(w, 1)

    def n_weights(self) -> int:
        return sum(math.prod(shape) for _, shape in self.shapes())

    def first_weights(self, rng: np.random.Generator) -> NDArray[np.float32]:
        """Weights before training.

        Matrices are uniform, as wide as keeps the size of what passes through (He et al. 2015 where
        the activation halves it); biases and shifts are 0, scales are 1.
        """
        gain = 3.0 if self.activation in ("tanh", "sigmoid") else 6.0
        shapes, parts = self.shapes(), []
        for i, (kind, shape) in enumerate(shapes):
            if kind == "matrix":
                last = i + 2 == len(shapes)
                bound = np.sqrt((1.0 if last else gain) / shape[0])
                parts.append(rng.uniform(-bound, bound, shape).ravel())
            else:
                parts.append(np.full(shape, float(kind == "scale")))
        return np.concatenate(parts).astype(np.float32)


def _layer(inputs: int, outputs: int) -> list[tuple[str, tuple[int, ...]]]:
    return [("matrix", (inputs, outputs)), ("shift", (outputs,))]


# --- the parts of fitting ----------------------------------------------------------------------

Run = Callable[..., list[Any]]


def _networks(where: str) -> Any:
    """The module of everything that needs PyTorch."""
    try:
        from rankwise import _networks
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            f'{where}: networks need PyTorch, which is not installed; pip install "rankwise[neural]"',
            name="torch",
        ) from None
    return _networks


class _Forces:
    """Gradient of the summed loss in the scores of some lists."""

    def __init__(self, where: str, loss: Any) -> None:
        self.where = where
        known = not callable(loss) or hasattr(loss, "derivatives")
        self.loss = parse_loss(loss) if known else loss
        self.shift_invariant = bool(getattr(self.loss, "shift_invariant", False))
        self.separable = bool(getattr(self.loss, "separable", True))

    def __call__(self, lists: Queries, scores: Floats) -> Floats:
        if not np.isfinite(scores).all():
            raise _diverged(self.where)
        y, offsets, weight = lists.y, lists.offsets, lists.weight
        given = pairs_for(self.where, self.loss, lists.pairs)
        if hasattr(self.loss, "prepare"):
            found = self.loss.prepare(y, offsets, weight, n_threads=1, **given)(scores)[0]
        else:
            function = getattr(self.loss, "derivatives", self.loss)
            found = function(y, scores, offsets, weight, **given)[0]
        if np.shape(found) != scores.shape or not np.isfinite(found).all():
            raise ValueError(
                f"{self.where}: the loss must return a finite gradient for each of the "
                f"{len(scores)} documents, got shape {np.shape(found)}"
            )
        return np.asarray(found, dtype=np.float64)


def _diverged(where: str) -> ValueError:
    return ValueError(
        f"{where}: scores must stay finite while the network learns, got NaN or infinity; "
        "lower learning_rate, or choose another scale"
    )


def _check_order(where: str, forces: _Forces, train: Queries) -> None:
    heaviest = 1.0 if train.weight is None else float(train.weight.max())
    if np.abs(forces(train, np.zeros(train.n_docs))).max() <= 1e-12 * heaviest:
        raise ValueError(
            f"{where}: some query must hold documents that the loss wants in an order, got "
            f"{train.n_queries} queries without any force on equal scores; check the labels"
        )


def _through(kind: str | None, table: Floats, lists: Queries, dtype: Any) -> Queries:
    """The lists with transformed features; sparse ones are left to be transformed in parts."""
    if hasattr(lists.X, "nnz"):
        return lists
    Z = np.empty(lists.X.shape, dtype)
    for rows in chunks(lists.X):
        Z[rows] = transformed(kind, table, lists.X, rows)
    return lists.with_features(Z)


def _parts(sizes: NDArray[np.int64], *, padded: bool) -> list[NDArray[np.int64]]:
    """A batch cut into parts of at most ``_PART`` documents, or of one longer list.

    Where lists are padded to a common length, lists of like lengths come together.
    """
    order = np.argsort(sizes, kind="stable") if padded else np.arange(len(sizes))
    parts: list[NDArray[np.int64]] = []
    start = documents = 0
    for i, size in enumerate(sizes[order].tolist()):
        documents = size * (i + 1 - start) if padded else documents + size
        if documents > _PART and i > start:
            parts.append(order[start:i])
            start, documents = i, size
    return [*parts, order[start:]]


def _n_threads(n_jobs: int | None) -> int:
    if n_jobs is None:
        return 1
    return _core.max_threads() if n_jobs == -1 else n_jobs
