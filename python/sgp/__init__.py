# SPDX-License-Identifier: Apache-2.0
"""Train through the sgpd of this machine: your script keeps its model, the daemon does the rest.

    import sgp
    with sgp.attach(model, optimizer) as node:
        for epoch in range(10):
            for images, labels in node.shard(train_set, batch_size=32):
                loss = criterion(model(images), labels)
                optimizer.zero_grad(); loss.backward(); optimizer.step()
                node.mix(loss=loss, rows=len(labels))
            node.report(test_accuracy=evaluate(model))
    # a clean end finishes: the fleet's model is in `model`

    $ sgpctl launch -n 4 -- python3 train.py       # on this machine

help(sgp.attach) tells the rest; sgp.join() knows the node before there is a model. sgp.Client asks a daemon what it is doing."""
from .attachment import Finished, Mixed
from .average import Ema
from .client import Client
from .enter import attach, join
from .errors import (AlreadyFinished, Busy, Disconnected, Error, LayoutMismatch, NoDaemon, NotFinite, Refused, TrainingWarning, ViewsLost)
from .node import Node
from .noise import FleetNoise
from .rows import Sampler
from .wrap import wrap

__all__ = ["attach", "join", "wrap", "FleetNoise", "Ema", "Node", "Mixed", "Finished", "Sampler", "Client", "Error", "NoDaemon", "Disconnected",
           "Busy", "Refused", "LayoutMismatch", "ViewsLost", "NotFinite", "AlreadyFinished", "TrainingWarning"]
__version__ = "0.1.0.dev0"
