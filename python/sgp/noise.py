# SPDX-License-Identifier: Apache-2.0
"""Adam in a fleet: steps that are divided by the noise of the fleet's gradient, and not by that of one node's.

The formulas are those of include/sgp/optimizer.h, "Noise of a fleet". `optimizer` stays as it is, PyTorch's own: before each step
the mean of squares is replaced by what a step is to be divided by, and put back after it."""
from __future__ import annotations

from typing import Any, Dict, Iterator, Tuple

_KEY = "noise"  # in the optimiser's state, beside PyTorch's own, so that state_dict() has it


class FleetNoise:
    """Takes the steps of a ``torch.optim.Adam`` or ``AdamW`` of one of `nodes` nodes as of one process with the batches of all.

    The noise is seen in how the parts of a batch differ. So backward is called for each of two equal parts, or more, and ``note``
    after each of them::

        noise = sgp.FleetNoise(optimizer, node.size)
        for batch in node.shard(train, batch_size=16):
            optimizer.zero_grad()
            for half in batch.chunk(2):
                (loss_of(model, half) * len(half) / len(batch)).backward()
                noise.note()
            noise.step()                       # in the place of optimizer.step()
            node.mix()

    The first step is the optimizer's own, and so is every step if `nodes` is 1. Set `nodes` when the fleet changes. The measured
    noise is part of ``optimizer.state_dict()``. It takes three times the memory of the gradients. A gradient may be clipped between ``note``
    and ``step``. Raises ValueError for another optimiser, for ``amsgrad`` and ``maximize``, and for `nodes` below 1."""

    def __init__(self, optimizer: Any, nodes: int) -> None:
        kind = next((c.__name__ for c in type(optimizer).__mro__ if c.__name__ in ("Adam", "AdamW")), None)
        if kind is None:
            raise ValueError(f"{type(optimizer).__name__} is neither torch.optim.Adam nor AdamW")
        for option in ("amsgrad", "maximize"):
            if any(group.get(option) for group in optimizer.param_groups):
                raise ValueError(f"the optimizer has {option}=True, of which the noise is not known; leave it out")
        if nodes < 1:
            raise ValueError(f"nodes is {nodes}; at least 1")
        self.nodes = nodes  #: whose steps are averaged; may be set when the fleet changes
        self._optimizer, self._coupled = optimizer, kind == "Adam"
        self._parts = 0  # that were noted since the last step
        self._sums: Dict[Any, Any] = {}  # by parameter: the gradient of these parts
        self._squares: Dict[Any, Any] = {}  # the sum of the parts' squares

    def _gradients(self) -> Iterator[Tuple[Any, Any]]:
        """Parameters that have a gradient, with their groups."""
        for group in self._optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    yield parameter, group

    def note(self) -> None:
        """Call it after each ``backward()`` of a part of the batch, whose mean loss is multiplied by its part of the rows."""
        if self.nodes == 1:
            return
        for parameter, _ in self._gradients():
            gradient = parameter.grad.detach()
            if self._parts == 0 or parameter not in self._sums:
                self._sums[parameter] = gradient.clone()
                self._squares[parameter] = gradient.square()
            else:
                self._squares[parameter] += (gradient - self._sums[parameter]).square()
                self._sums[parameter].copy_(gradient)
        self._parts += 1

    def step(self) -> None:
        """``optimizer.step()``, with the fleet's noise. Without two parts noted, what was seen of it before is left out."""
        true = {}  # the means of squares, as they are without this class
        for parameter, group in self._gradients():
            state = self._optimizer.state[parameter]
            deviation = self._deviation(parameter)
            if self.nodes > 1 and "exp_avg_sq" in state:
                true[parameter] = self._replace(parameter, group, state, deviation)
        first = [(parameter, group) for parameter, group in self._gradients() if parameter not in true]
        self._optimizer.step()
        for parameter, squares in true.items():
            self._optimizer.state[parameter]["exp_avg_sq"].copy_(squares)
        for parameter, group in first:
            deviation = self._deviation(parameter)
            if self.nodes > 1 and deviation is not None:
                self._optimizer.state[parameter][_KEY] = deviation * (1 - group["betas"][1])
        self._parts = 0

    def _deviation(self, parameter: Any) -> Any:
        """D squared; None if it is not known. A gradient that was clipped since has a deviation that is as much shorter."""
        if self._parts < 2 or parameter not in self._sums:
            return None
        whole, parts = self._sums[parameter], self._parts
        square = (self._squares[parameter] - whole.square() / parts).clamp_(min=0) * (parts / (parts - 1))
        before = whole.norm()
        return square * (parameter.grad.detach().norm() / before).square() if before > 0 else square

    def _replace(self, parameter: Any, group: Any, state: Any, deviation: Any) -> Any:
        """Let the next step be divided by the root of what is kept. Returns the mean of squares after it."""
        beta, fraction, squares = group["betas"][1], 1 / self.nodes, state["exp_avg_sq"]
        gradient = parameter.grad.detach()
        if self._coupled and group["weight_decay"]:
            gradient = gradient + group["weight_decay"] * parameter.detach()
        news = gradient.square() * (1 - beta)
        true = squares * beta + news
        if _KEY not in state:
            state[_KEY] = squares.new_zeros(squares.shape)
        if deviation is not None:
            state[_KEY].mul_(beta).add_(deviation, alpha=1 - beta)
        kept = (true - (1 - fraction) * state[_KEY]).maximum(fraction * true)
        squares.copy_((kept - news) / beta)
        return true
