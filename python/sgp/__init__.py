# SPDX-License-Identifier: Apache-2.0
"""Train a model together with other machines, through the sgpd of this machine. The script keeps its model, rows and optimizer.

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

Where to look (docs/ATTACH.md shows each of these in a script):

    sgp.attach, sgp.join      how a program becomes a node, with a model or before there is one
    node.mix                  after each step of the optimizer
    node.shard, .loader, .sampler     this node's rows
    node.name, .index, .size, .is_first, .seed, .round, .epoch, .stopped
    node.mean, .any, .all     decisions that must be equal on all nodes
    node.checkpoint, .resume  script, optimizer, rows and parameters as one unit; .save and .load without the parameters
    node.report, .stop        figures for the status; the end for all nodes
    node.privacy              what the program claims of differential privacy
    node.assign, .accumulate  parameters that are values; steps that do not mix
    sgp.Ema, sgp.FleetNoise, sgp.wrap   an average over time; Adam in a fleet; loops that cannot be changed
    sgp.lightning.Fleet, sgp.transformers.Fleet   callbacks for trainers of other libraries
    sgp.Client                asks a daemon what it is doing
    sgp.Writer                figures for TensorBoard, which is not needed

Every error is an sgp.Error, but for TimeoutError, ValueError for an argument out of range, and OSError for files.
One thread at a time uses a node. Ctrl-C ends every wait, and the next call continues it."""
from .attachment import Finished, Mixed
from .average import Ema
from .client import Client
from .enter import attach, join
from .errors import (AlreadyFinished, Busy, Disconnected, Error, LayoutMismatch, NoDaemon, NotFinite, Refused, TrainingWarning, ViewsLost)
from .node import Node
from .noise import FleetNoise
from .rows import Sampler
from .wrap import wrap
from .writer import Writer

__all__ = ["attach", "join", "wrap", "FleetNoise", "Ema", "Node", "Mixed", "Finished", "Sampler", "Client", "Writer", "Error", "NoDaemon", "Disconnected",
           "Busy", "Refused", "LayoutMismatch", "ViewsLost", "NotFinite", "AlreadyFinished", "TrainingWarning"]
__version__ = "0.1.0.dev0"
