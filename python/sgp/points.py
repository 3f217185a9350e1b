# SPDX-License-Identifier: Apache-2.0
"""What a resume point has beside the parameters: states of objects, and how far samplers have come."""
from __future__ import annotations

import weakref
from typing import Any, Dict, List, Mapping, Optional

from .errors import Error
from .memory import Layout
from .rows import Sampler


class Points:
    """The samplers of a node, in the order in which the script made them. What is resumed waits for those that it will make."""

    def __init__(self, fresh: bool) -> None:
        self.fresh = fresh  #: the node was attached for another run
        self.written = -1  #: the round of the latest unit
        self._made: List[weakref.ref[Sampler]] = []
        self._shard: Optional[Sampler] = None  # of the latest shard()
        self._to_come: List[Dict[str, int]] = []
        self._shard_to_come: Optional[Dict[str, int]] = None

    def _living(self) -> List[Sampler]:
        found = [sampler for sampler in (reference() for reference in self._made) if sampler is not None]
        self._made = [weakref.ref(sampler) for sampler in found]
        return found

    def made(self, sampler: Sampler) -> None:
        """A sampler of sampler() or loader()."""
        self._made.append(weakref.ref(sampler))
        if self._to_come:
            sampler.load_state_dict(self._to_come.pop(0))

    def sharded(self, sampler: Sampler, epoch: int) -> int:
        """A sampler of shard(), which begins this epoch; returns the next. The first after a resume goes on where that was."""
        self._shard, place = sampler, self._shard_to_come or {"epoch": epoch, "position": 0}
        self._shard_to_come = None
        sampler.load_state_dict(place)
        return place["epoch"] + 1

    def places(self) -> Dict[str, Any]:
        """The places of all samplers, as a unit keeps them."""
        shard = self._shard_to_come if self._shard is None else self._shard.place()
        return {"samplers": [sampler.place() for sampler in self._living()] + self._to_come, "shard": shard}

    def resume(self, places: Mapping[str, Any], now: int) -> None:
        """Existing samplers continue from these places, and so do samplers that the script makes later."""
        self._to_come = list(places["samplers"])
        for sampler in self._living()[:len(self._to_come)]:
            sampler.load_state_dict(self._to_come.pop(0))
        self._shard, self._shard_to_come, self.written = None, places["shard"], now


def states_of(objects: Mapping[str, Any]) -> Dict[str, Any]:
    """The states of the objects, by name."""
    return {name: thing.state_dict() for name, thing in objects.items()}


def restore(objects: Mapping[str, Any], states: Mapping[str, Any]) -> None:
    """Give the objects the states of their names."""
    for name, thing in objects.items():
        if name in states:
            thing.load_state_dict(states[name])


def check_kept(kept: Mapping[str, Any], layout: Layout, objects: Mapping[str, Any], what: str) -> None:
    """Raises Error if a unit is of another model, or of other objects."""
    if kept["layout"] != [(entry.name, entry.shape) for entry in layout.tensors]:
        raise Error(f"{what} is of another model; begin another run with fresh=True, or move the units away")
    if set(kept["objects"]) != set(objects):
        raise Error(f"{what} holds {', '.join(sorted(kept['objects'])) or 'nothing'}; asked for was "
                    f"{', '.join(sorted(objects)) or 'nothing'}")
