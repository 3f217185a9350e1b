# SPDX-License-Identifier: Apache-2.0
"""Optimisers that mix by themselves."""
from __future__ import annotations

import functools
from typing import Any, TypeVar

from .node import Node

Optimizer = TypeVar("Optimizer")


def _bare(kind: Any) -> Any:
    """An object of a class, before its state is set."""
    return kind.__new__(kind)


def wrap(optimizer: Optimizer, node: Node, *, every: int = 1) -> Optimizer:
    """Let each `every`-th ``optimizer.step()`` end with ``node.mix()``; returns the same object.

    For loops that cannot be changed: those of trainers and frameworks. Schedulers may be made before or after. Inside
    ``node.accumulate()`` no step mixes. Leave the loop when ``node.stopped``; ``node.mix`` is not to be called as well.
    A copy of it, by pickle or deepcopy, is the optimiser alone and does not mix: wrap it where it is used.
    Raises ValueError for `every` below 1."""
    if every < 1:
        raise ValueError(f"every is {every}; at least 1")
    original: Any = optimizer.__class__
    # A scheduler that is there already counts the steps in an attribute of the object: it stays below.
    inner = vars(optimizer).pop("step", None) or functools.partial(original.step, optimizer)
    taken = 0

    @functools.wraps(inner)
    def step(self: Any, *arguments: Any, **options: Any) -> Any:
        nonlocal taken
        result = inner(*arguments, **options)
        taken += 1
        if taken % every == 0:
            node.mix(loss=result)
        return result

    def reduce(self: Any, _: Any) -> Any:
        """For pickle and deepcopy: the optimiser as it was before it was wrapped. A node cannot travel."""
        return _bare, (original,), original.__reduce_ex__(self, 2)[2]

    optimizer.__class__ = type(original.__name__, (original,), {"step": step, "__reduce_ex__": reduce,
                                                                "__module__": original.__module__})
    return optimizer
