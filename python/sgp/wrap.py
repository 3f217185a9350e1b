# SPDX-License-Identifier: Apache-2.0
"""Optimisers that mix by themselves."""
from __future__ import annotations

import functools
from typing import Any, Callable, TypeVar

from .node import Node

Optimizer = TypeVar("Optimizer")


def _bare(kind: Any) -> Any:
    """An object of a class, before its state is set."""
    return kind.__new__(kind)


def wrap(optimizer: Optimizer, node: Node, *, every: int = 1) -> Optimizer:
    """Let each `every`-th ``optimizer.step()`` end with ``node.mix()``; returns the same object.

    For loops that cannot be changed, such as those of libraries. Schedulers may be made before or after. Inside
    ``node.accumulate()`` no step mixes. Leave the loop when ``node.stopped``, and do not call ``node.mix`` as well.
    A copy by pickle or deepcopy is the optimizer alone and does not mix: wrap it in the process that uses it.
    With the `scaler` of attach(), a step that the scaler leaves out counts as well, and mixes in ``scaler.update()``.
    Raises ValueError for `every` below 1."""
    if every < 1:
        raise ValueError(f"every is {every}; at least 1")
    taken, called = 0, False

    def end_step(loss: Any) -> None:
        nonlocal taken
        taken += 1
        if taken % every == 0:
            node.mix(loss=loss)

    def step(inner: Any) -> Any:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            nonlocal called
            result = inner(*arguments, **options)
            called = True
            end_step(result)
            return result
        return wrapped

    def update(inner: Any) -> Any:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            nonlocal called
            result = inner(*arguments, **options)
            node._look_at_scale()  # before another step raises it again
            if not called:  # the optimiser: gradients had overflowed
                end_step(None)
            called = False
            return result
        return wrapped

    _replace(optimizer, "step", step)
    if node._scaler is not None:
        _replace(node._scaler, "update", update)
    return optimizer


def _replace(thing: Any, name: str, wrapped_of: Callable[[Any], Any]) -> None:
    """Replace a method of one object, by a class of its own; its copies are as the object was before."""
    original: Any = thing.__class__
    # A scheduler that is there already counts the steps in an attribute of the object: it stays below.
    inner = vars(thing).pop(name, None) or functools.partial(getattr(original, name), thing)
    wrapped = wrapped_of(inner)

    @functools.wraps(inner)
    def method(_: Any, *arguments: Any, **options: Any) -> Any:
        return wrapped(*arguments, **options)

    def reduce(self: Any, _: Any) -> Any:
        """For pickle and deepcopy: the object as it was before it was wrapped. A node cannot travel."""
        return _bare, (original,), original.__reduce_ex__(self, 2)[2]

    thing.__class__ = type(original.__name__, (original,), {name: method, "__reduce_ex__": reduce,
                                                            "__module__": original.__module__})
