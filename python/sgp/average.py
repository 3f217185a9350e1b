# SPDX-License-Identifier: Apache-2.0
"""An average over time of a model that trains in a fleet; needs torch."""
from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Dict, Optional

if TYPE_CHECKING:
    import torch

    from .attachment import Mixed


class Ema:
    """The exponential moving average of a module's parameters and buffers, which is often the better model.

        ema = sgp.Ema(model, decay=0.999)
        for images, labels in node.shard(train_set, batch_size=32):
            ...
            ema.update(node.mix(loss=loss, rows=len(labels)))
        node.report(test_accuracy=evaluate(ema.module))

    `module` is a copy of the model in memory of its own: the fleet does not see it, and training does not change by it. Each node has
    an average of its own estimates, which differ as little as these. The decay begins low, as (1 + k) / (10 + k) after k updates, so
    that the first parameters are soon forgotten. Raises ValueError for a decay that is not from 0 to below 1."""

    def __init__(self, model: torch.nn.Module, decay: float = 0.999) -> None:
        if not 0 <= decay < 1:
            raise ValueError(f"decay is {decay}; from 0 to below 1")
        self.decay = decay
        self.module: Any = copy.deepcopy(model).eval().requires_grad_(False)  #: the average
        self._model, self._updates = model, 0

    def update(self, mixed: Optional[Mixed] = None) -> None:
        """Add the model to the average, as it is after a mix(). With the result of that mix(), a step that was `skipped` is left out,
        and after a jump the average begins anew, since the parameters are of another time. Integers are copied."""
        import torch
        if mixed is not None and mixed.skipped:
            return
        if mixed is not None and mixed.jumped:
            self._updates = 0
        kept = min(self.decay, (1 + self._updates) / (10 + self._updates)) if self._updates else 0.0
        self._updates += 1
        now = self._model.state_dict()
        with torch.no_grad():
            for name, mean in self.module.state_dict().items():
                if mean.is_floating_point():
                    mean.lerp_(now[name].to(mean), 1 - kept)
                else:
                    mean.copy_(now[name])

    def state_dict(self) -> Dict[str, Any]:
        """For node.checkpoint(..., ema=ema), and node.save()."""
        return {"updates": self._updates, "module": self.module.state_dict()}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Continue from there. Raises RuntimeError for the state of another model."""
        self.module.load_state_dict(state["module"])
        self._updates = state["updates"]
