"""Networks as functions of a list of weights, in PyTorch; the only module that imports it.

A network takes the weights, the features ``x`` of shape ``(n_docs, n_features)``, the offsets of
the lists, and a random generator while it is trained with dropout; it returns ``(n_docs,)``
scores. All weights lie in one flat vector, which is what is trained, saved and restored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from rankwise._validate import Floats

Tensor = torch.Tensor
Offsets = NDArray[np.int64]

_ACTIVATE: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "elu": F.elu,
    "gelu": F.gelu,
}


@dataclass(frozen=True)
class Architecture:
    """What a built-in network is, apart from its weights."""

    kind: str
    sizes: tuple[int, ...]  # features, hidden layers
    activation: str
    heads: int = 0
    blocks: int = 0

    def shapes(self) -> list[tuple[int, ...]]:
        """Shapes of the weights in their flat vector: matrices input by output, and biases."""
        layers: list[tuple[int, ...]] = []
        for inputs, outputs in pairwise(self.sizes):
            layers += [(inputs, outputs), (outputs,)]
        w = self.sizes[-1]
        if self.kind == "attention":
            norm: list[tuple[int, ...]] = [(w,), (w,)]
            attention: list[tuple[int, ...]] = [(w, 3 * w), (3 * w,), (w, w), (w,)]
            feed: list[tuple[int, ...]] = [(w, 2 * w), (2 * w,), (2 * w, w), (w,)]
            layers += (norm + attention + norm + feed) * self.blocks + norm
        return [*layers, (w, 1), (1,)]

    def n_weights(self) -> int:
        return sum(int(np.prod(shape)) for shape in self.shapes())

    def first_weights(self, rng: np.random.Generator) -> NDArray[np.float32]:
        """Weights before training: uniform, as wide as keeps the size of what passes through.

        Biases and shifts are 0, scales of normalisation 1.
        """
        shapes, parts = self.shapes(), []
        gain = 6.0 if self.activation in ("relu", "elu", "gelu") else 3.0
        for i, shape in enumerate(shapes):
            if len(shape) == 2:
                bound = np.sqrt((gain if i + 2 < len(shapes) else 1.0) / shape[0])
                part = rng.uniform(-bound, bound, shape)
            else:
                # A scale is a vector that follows no matrix.
                scale = len(shapes[i - 1]) == 1 and len(shapes[i + 1]) == 1 if i else False
                part = np.full(shape, float(scale))
            parts.append(part.ravel())
        return np.concatenate(parts).astype(np.float32)

    def split(self, flat: Tensor) -> list[Tensor]:
        """The weights as views into their flat vector."""
        shapes = self.shapes()
        parts = torch.split(flat, [int(np.prod(shape)) for shape in shapes])
        return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]

    def __call__(
        self,
        weights: Sequence[Tensor],
        x: Tensor,
        offsets: Offsets,
        drop: Callable[[Tensor], Tensor],
    ) -> Tensor:
        """Scores of the documents, of shape (n_docs,)."""
        activate, left = _ACTIVATE[self.activation], iter(weights)

        def linear(values: Tensor) -> Tensor:
            matrix, bias = next(left), next(left)
            return torch.addmm(bias, values, matrix)

        def norm(values: Tensor) -> Tensor:
            return F.layer_norm(values, values.shape[-1:], next(left), next(left))

        for _ in range(len(self.sizes) - 1):
            x = drop(activate(linear(x)))
        if self.kind == "attention":
            lists = Lists(offsets)
            for _ in range(self.blocks):
                x = x + drop(linear(lists.attend(linear(norm(x)), self.heads)))
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
        parts = qkv.view(self.n, self.longest, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(*parts, attn_mask=self.mask)
        flat = mixed.transpose(1, 2).reshape(-1, width)
        return flat if self.mask is None else flat.index_select(0, self.place)


def no_drop(values: Tensor) -> Tensor:
    return values


def dropout(share: float, seed: int) -> Callable[[Tensor], Tensor]:
    """Sets a share of values to 0 and widens the others; draws from a generator of its own."""
    if share == 0:
        return no_drop
    rng = torch.Generator().manual_seed(seed)

    def drop(values: Tensor) -> Tensor:
        kept = torch.rand(values.shape, generator=rng, dtype=values.dtype) >= share
        return values * kept / (1 - share)

    return drop


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
    def forward(ctx: Any, scores: Tensor, loss: Any, y: Any, offsets: Offsets, weight: Any) -> Tensor:
        s = scores.detach().to("cpu", torch.float64).numpy()
        values = torch.from_numpy(np.array(loss.value(y, s, offsets, weight), dtype=np.float64))
        if ctx.needs_input_grad[0]:
            gradient = np.array(loss.derivatives(y, s, offsets, weight)[0], dtype=np.float64)
            ctx.save_for_backward(torch.from_numpy(gradient).to(scores))
            ctx.sizes = torch.from_numpy(np.diff(offsets)).to(scores.device)
        return values.to(scores)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, wanted: Tensor) -> tuple[Any, ...]:
        (gradient,) = ctx.saved_tensors
        return gradient * wanted.repeat_interleave(ctx.sizes), None, None, None, None


def column(values: Any) -> Any:
    """A tensor as a NumPy array; anything else as it is."""
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else values


def as_floats(tensor: Tensor) -> Floats:
    return np.ascontiguousarray(tensor.detach().to("cpu", torch.float64).numpy())
