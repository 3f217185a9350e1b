# SPDX-License-Identifier: Apache-2.0
"""A callback for the Trainer of Hugging Face's transformers, which is not in Debian."""
from __future__ import annotations

from typing import Any

from transformers import TrainerCallback  # type: ignore[import]

from .node import Node


class Fleet(TrainerCallback):  # type: ignore[misc]
    """Lets ``Trainer.train`` train as a node of the fleet.

        node = sgp.join()

        class FleetTrainer(transformers.Trainer):
            def get_train_dataloader(self):
                return node.loader(self.train_dataset, self.args.per_device_train_batch_size, collate_fn=self.data_collator)

        FleetTrainer(model, arguments, train_dataset=train_set, callbacks=[sgp.transformers.Fleet(node)]).train()

    `node` comes from sgp.join(); `options` are those of node.attach(), such as ``timeout``. The model is attached when training
    begins, and mixed after each step of the optimizer, for which gradients of several batches may have been added up. Every batch
    counts as whole, also a shorter one at the end of an epoch. train() ends
    early when the fleet stops. Its end finishes, so that the model then is the fleet's. The Trainer tells no callback of an
    exception: call train() inside ``with node:``, which detaches then. Options of the Trainer say
    which nodes evaluate and log; see ``node.is_first``."""

    def __init__(self, node: Node, **options: Any) -> None:
        self.node, self._options = node, options
        self._rows = 0  # of the step that is under way

    def on_train_begin(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        """Attach the model and its optimizer. Raises as Node.attach()."""
        self._rows = 0
        self.node.attach(objects["model"], objects.get("optimizer"), **self._options)

    def on_substep_end(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        """Count a batch of a step, which later batches end."""
        self._rows += args.per_device_train_batch_size

    def on_step_end(self, args: Any, state: Any, control: Any, **objects: Any) -> Any:
        """Mix the parameters, and stop the Trainer when the fleet stops."""
        rows, self._rows = self._rows + args.per_device_train_batch_size, 0
        if self.node.mix(rows=rows).stop:
            control.should_training_stop = True
        return control

    def on_train_end(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        """Finish: the model is the fleet's."""
        self.node.finish()
