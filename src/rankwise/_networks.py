"""Everything that needs PyTorch: networks as functions of one flat vector of weights.

A network takes the weights, the features ``x`` of shape ``(n_docs, n_features)`` and the offsets of
the lists, and returns ``(n_docs,)`` scores. The vector is what is trained, saved and restored.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from rankwise._validate import Floats
from rankwise.neural import Architecture, Run

Offsets = NDArray[np.int64]
Drop = Callable[[Tensor], Tensor]
ForcesOnScores = Callable[[Floats], Floats]

_ACTIVATE: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "elu": F.elu,
    "gelu": F.gelu,
}


def split(architecture: Architecture, flat: Tensor) -> list[Tensor]:
    """The weights as views into their flat vector."""
    shapes = [shape for _, shape in architecture.shapes()]
    parts = torch.split(flat, [math.prod(shape) for shape in shapes])
    return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


def forward(
    architecture: Architecture, flat: Tensor, x: Tensor, offsets: Offsets, drop: Drop
) -> Tensor:
    """Scores of the documents, of shape (n_docs,)."""
    activate, left = _ACTIVATE[architecture.activation], iter(split(architecture, flat))

    def linear(values: Tensor) -> Tensor:
        matrix, bias = next(left), next(left)
        return torch.addmm(bias, values, matrix)

    def norm(values: Tensor) -> Tensor:
        return F.layer_norm(values, values.shape[-1:], next(left), next(left))

    for _ in architecture.sizes[1:]:
        x = drop(activate(linear(x)))
    if architecture.kind == "attention":
        lists = Lists(offsets)
        for _ in range(architecture.blocks):
            x = x + drop(linear(lists.attend(linear(norm(x)), architecture.heads)))
            x = x + drop(linear(drop(activate(linear(norm(x))))))
        x = norm(x)
    return linear(x)[:, 0]


class Lists:
    """Self-attention inside each of several lists that share a batch.

    Only the attention itself sees padded lists; all else works on the documents alone.
    """

    def __init__(self, offsets: Offsets) -> None:
        sizes = np.diff(offsets)
        self.n, self.longest = len(sizes), int(sizes.max(initial=0))
        place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
        self.place = torch.from_numpy(place + np.repeat(np.arange(self.n), sizes) * self.longest)
        inside = np.arange(self.longest) < sizes[:, None]
        self.mask = None if inside.all() else torch.from_numpy(inside)[:, None, None, :]

    def attend(self, qkv: Tensor, heads: int) -> Tensor:
        """``softmax(q k^T / sqrt(width)) v`` of each head and list; ``qkv`` is (n_docs, 3 width)."""
        width = qkv.shape[1] // 3
        if self.mask is not None:
            padded = qkv.new_zeros(self.n * self.longest, qkv.shape[1])
            qkv = padded.index_copy(0, self.place, qkv)
        q, k, v = qkv.view(self.n, self.longest, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask)
        flat = mixed.transpose(1, 2).reshape(-1, width)
        return flat if self.mask is None else flat.index_select(0, self.place)


def no_drop(values: Tensor) -> Tensor:
    """The values as they are, outside training."""
    return values


def dropout(share: float, seed: int) -> Drop:
    """Sets a share of values to 0 and widens the others; draws from a generator of its own."""
    if share == 0:
        return no_drop
    rng = torch.Generator().manual_seed(seed)

    def drop(values: Tensor) -> Tensor:
        kept = torch.rand(values.shape, generator=rng, dtype=values.dtype) >= share
        return values * kept / (1 - share)

    return drop


class Learner:
    """A built-in network while it is trained."""

    def __init__(self, architecture: Architecture, weights: Any, share: float) -> None:
        self.architecture, self.share = architecture, share
        self.flat = torch.from_numpy(weights)
        self.penalised = torch.cat(
            [
                torch.full((math.prod(shape),), float(kind == "matrix"))
                for kind, shape in architecture.shapes()
            ]
        )

    def gradient(self, X: Any, offsets: Offsets, seed: int, forces: ForcesOnScores) -> Tensor:
        """Gradient in the weights, from the forces on the scores."""
        flat = self.flat.detach().requires_grad_()
        drop = dropout(self.share, seed)
        scores = forward(self.architecture, flat, floats(X), offsets, drop)
        return torch.autograd.grad(scores, flat, _forces(scores, forces))[0]

    def follow(self) -> None:
        """The weights have moved; nothing else holds them."""

    def is_finite(self) -> bool:
        return bool(torch.isfinite(self.flat).all())

    def state(self) -> Tensor:
        return self.flat.clone()

    def restore(self, state: Tensor) -> None:
        self.flat.copy_(state)


class OwnLearner:
    """A user's module while it is trained: its parameters follow one flat vector."""

    def __init__(self, where: str, module: Any) -> None:
        if not isinstance(module, torch.nn.Module):
            raise TypeError(
                f"{where}: network must return a torch.nn.Module, got {type(module).__name__}"
            )
        self.where, self.module = where, module.float()
        self.parameters = [p for p in module.parameters() if p.requires_grad]
        if not self.parameters:
            raise ValueError(f"{where}: the network must have parameters to train, got none")
        self.flat = torch.nn.utils.parameters_to_vector(self.parameters).detach()
        self.penalised = torch.cat(
            [torch.full((p.numel(),), float(p.ndim > 1)) for p in self.parameters]
        )

    def gradient(self, X: Any, offsets: Offsets, seed: int, forces: ForcesOnScores) -> Tensor:
        scores = own_forward(self.where, self.module.train(), floats(X), offsets)
        found = torch.autograd.grad(
            scores, self.parameters, _forces(scores, forces), materialize_grads=True
        )
        return torch.nn.utils.parameters_to_vector(found)

    def follow(self) -> None:
        torch.nn.utils.vector_to_parameters(self.flat, self.parameters)

    def is_finite(self) -> bool:
        return bool(torch.isfinite(self.flat).all())

    def state(self) -> Any:
        return copy.deepcopy(self.module.state_dict())

    def restore(self, state: Any) -> None:
        self.module.load_state_dict(state)


def _forces(scores: Tensor, forces: ForcesOnScores) -> Tensor:
    return torch.from_numpy(forces(as_floats(scores))).to(scores.dtype)


def own_forward(where: str, module: Any, x: Tensor, offsets: Offsets) -> Tensor:
    """Scores by a user's module, as a vector."""
    given = (torch.from_numpy(offsets),) if getattr(module, "listwise", False) else ()
    scores = module(x, *given)
    if scores.shape not in ((len(x),), (len(x), 1)):
        raise ValueError(
            f"{where}: the network must return one score per document, got shape "
            f"{tuple(scores.shape)} for {len(x)} documents"
        )
    return scores.reshape(-1)


def own_scores(where: str, module: Any, X: Any) -> Floats:
    """Scores of one list, or of rows that need no list."""
    with torch.no_grad():
        return as_floats(own_forward(where, module, floats(X), np.array([0, len(X)])))


def scorer(architecture: Architecture, weights: Any) -> Callable[[Floats], Floats]:
    """Scores of one list in float64 as a function of its features."""
    flat = torch.from_numpy(weights.astype(np.float64))

    def score(X: Floats) -> Floats:
        with torch.no_grad():
            x = torch.tensor(X)
            return as_floats(forward(architecture, flat, x, np.array([0, len(X)]), no_drop))

    return score


def _one_thread() -> None:
    torch.set_num_threads(1)


@contextmanager
def threads(n: int) -> Iterator[Run]:
    """A map over arguments that returns a list in their order, on ``n`` threads.

    PyTorch's own threads would change the order of its sums: inside, each operation is done by the
    thread that calls it. Every thread has to be told, as BLAS keeps a number for each.
    """
    before = torch.get_num_threads()
    _one_thread()
    try:
        if n == 1:
            yield lambda function, *columns: list(map(function, *columns))
        else:
            with ThreadPoolExecutor(n, initializer=_one_thread) as pool:
                yield lambda function, *columns: list(pool.map(function, *columns))
    finally:
        torch.set_num_threads(before)


@contextmanager
def own_random_numbers(seed: int, wanted: bool) -> Iterator[None]:
    """A seeded global generator for a user's module; the program's own is put back after."""
    if not wanted:
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


class Adam:
    """Steps of Adam on one flat vector (Kingma & Ba 2015), with a quadratic penalty on some of it.

    ``g += penalty w``, ``m = .9 m + .1 g``, ``v = .999 v + .001 g^2``,
    ``w -= rate m' / (sqrt(v') + 1e-8)``, where ``m'`` and ``v'`` are divided by one minus the
    power of their factor.
    """

    def __init__(self, weights: Tensor, penalty: Tensor) -> None:
        self.weights, self.penalty, self.steps = weights, penalty, 0
        self.mean, self.square = torch.zeros_like(weights), torch.zeros_like(weights)

    def step(self, gradient: Tensor, rate: float) -> None:
        self.steps += 1
        gradient = gradient + self.penalty * self.weights
        self.mean.mul_(0.9).add_(gradient, alpha=0.1)
        self.square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        spread = (self.square / (1 - 0.999**self.steps)).sqrt_().add_(1e-8)
        self.weights.addcdiv_(self.mean, spread, value=-rate / (1 - 0.9**self.steps))


class RankingLoss(torch.autograd.Function):
    """The loss of each list, with the gradient that was computed along with it."""

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, loss: Any, y: Any, offsets: Offsets, weight: Any, pairs: Any
    ) -> Tensor:
        s = as_floats(scores)
        values = np.array(loss.value(y, s, offsets, weight, **pairs), dtype=np.float64)
        if ctx.needs_input_grad[0]:
            gradient = loss.derivatives(y, s, offsets, weight, **pairs)[0]
            ctx.save_for_backward(torch.from_numpy(np.array(gradient, dtype=np.float64)))
            ctx.sizes = torch.from_numpy(np.diff(offsets))
            ctx.joint = None if getattr(loss, "separable", True) else str(loss)
        return torch.from_numpy(values).to(scores)

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, *wanted: Tensor) -> tuple[Any, ...]:
        (gradient,) = ctx.saved_tensors
        factor = wanted[0].to("cpu", torch.float64)
        if ctx.joint is not None and (factor != factor[:1]).any():
            raise ValueError(
                f"torch_loss: all lists must have one factor in {ctx.joint}, whose parameters they "
                "share, got several; sum or average the values"
            )
        factor = factor.repeat_interleave(ctx.sizes)
        return (gradient * factor).to(wanted[0]), None, None, None, None, None


def array(values: Any) -> Any:
    """A tensor as a NumPy array; anything else as it is."""
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else values


def floats(X: Any) -> Tensor:
    """Features as float32, in memory that PyTorch has laid out."""
    return torch.tensor(X, dtype=torch.float32)


def as_floats(scores: Tensor) -> Floats:
    """Scores as a float64 array of their own."""
    return np.array(scores.detach().to("cpu", torch.float64).numpy())
