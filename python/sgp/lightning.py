# SPDX-License-Identifier: Apache-2.0
"""A callback for Lightning (lightning.pytorch, or pytorch_lightning), which is not in Debian."""
from __future__ import annotations

import contextlib
from typing import Any, Mapping, Optional

try:
    from lightning.pytorch.callbacks import Callback  # type: ignore[import]
except ImportError:
    from pytorch_lightning.callbacks import Callback  # type: ignore[import]

from .errors import Error
from .node import Node
from .protocol import real


class Fleet(Callback):  # type: ignore[misc]
    """Lets ``Trainer.fit`` train as a node of the fleet.

        node = sgp.join()
        trainer = Trainer(callbacks=[sgp.lightning.Fleet(node)], accelerator="cpu", devices=1, use_distributed_sampler=False)
        trainer.fit(module, node.loader(train_set, batch_size=32))

    `node` comes from sgp.join(); `options` are those of node.attach(), such as ``timeout``. The model is attached when training starts, and
    each step of the optimizer is mixed: with ``accumulate_grad_batches=k``, after every k-th batch. fit() ends early when the
    fleet stops. A clean end finishes, so that the module then has the fleet's model; an exception detaches. The module has one
    optimizer. A checkpoint of Lightning that is loaded afterwards is a value: load it before fit()."""

    def __init__(self, node: Node, **options: Any) -> None:
        super().__init__()
        self.node, self._options = node, options
        self._steps = 0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Attach. Raises Error for several optimizers, and as Node.attach()."""
        if len(trainer.optimizers) != 1:
            raise Error(f"the module has {len(trainer.optimizers)} optimizers; the callback mixes after the steps of one")
        self.node.attach(pl_module, trainer.optimizers[0], **self._options)
        self._steps = trainer.global_step

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Mix, if the optimizer has taken a step since the last time; else count the batch as a part of that step."""
        part = contextlib.nullcontext() if trainer.global_step != self._steps else self.node.accumulate()
        self._steps, loss = trainer.global_step, loss_of(outputs)
        if loss is not None:
            loss *= trainer.accumulate_grad_batches  # by which Lightning has divided it
        with part:
            mixed = self.node.mix(loss=loss, rows=rows_of(batch))
        trainer.should_stop = trainer.should_stop or mixed.stop

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Finish: the module has the fleet's model."""
        self.node.finish()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Detach: the node pauses, and nobody waits for it."""
        self.node.detach()


def loss_of(outputs: Any) -> Optional[float]:
    """Of what training_step() returned: a loss, a dictionary that has one, or None."""
    loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
    return None if loss is None else real(loss)


def rows_of(batch: Any) -> int:
    """Rows of a batch: of its first tensor."""
    if isinstance(batch, Mapping):
        return rows_of(next(iter(batch.values()), ()))
    return rows_of(batch[0]) if isinstance(batch, (tuple, list)) and batch else len(batch)
