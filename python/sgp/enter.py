# SPDX-License-Identifier: Apache-2.0
"""How a program becomes a node."""
from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal, Mapping, Optional, Union

from .attachment import Alone, Seat, Seated, identify
from .entry import entered, housed, model_of
from .errors import Error, NoDaemon, TrainingWarning
from .node import Node, Scaler
from .protocol import socket_of
from .questions import Evaluate, Predict

if TYPE_CHECKING:
    import numpy
    import torch

    from .node import Optimizers


def attach(model: Union[torch.nn.Module, Mapping[str, numpy.ndarray[Any, Any]]],
           optimizer: Optional[Optimizers] = None, *, name: Optional[str] = None,
           rounds: Optional[int] = None, required: bool = True, reconnect: bool = True, fresh: bool = False,
           timeout: Optional[float] = None, buffers: Literal["average", "local"] = "average",
           params: Literal["trainable", "all"] = "trainable", scaler: Optional[Scaler] = None,
           on_evaluate: Optional[Evaluate] = None, on_predict: Optional[Predict] = None) -> Node:
    """Make this program a node of the fleet, with the daemon of this machine.

        with sgp.attach(model, optimizer, name="n0") as node:
            for epoch in range(10):
                for images, labels in node.shard(train_set, batch_size=32):
                    loss = criterion(model(images), labels)
                    optimizer.zero_grad(); loss.backward(); optimizer.step()
                    node.mix(loss=loss, rows=len(labels))
        # here `model` is the fleet's

    It waits until the node is ready, for which its neighbours must be there; Ctrl-C ends the wait. Then the parameters
    are what training begins with: the same on all nodes, those of the first in the topology. Or they are what a node
    with a past has learned.

    model      A module of PyTorch: its parameters, float32 of any shape, become views of shared memory, on a device
               they are copied to it and back. Or arrays of numpy by name, float32 of any shape: they stay in place and
               are copied; change them in place, or replace them in the mapping.
    optimizer  Whose learning rate the status tells, and whose momentum is forgotten when the parameters are suddenly
               another's. It may be any, and may be made before or after. Several are given as a list, as those of a
               generator and a discriminator: the rate is that of the first, the rest holds for all.
    name       The node's name ("n0": /run/sgpd/n0/attach.sock) or the path of a socket. None: $SGP_SOCKET, which
               ``sgpctl launch`` sets; else the only node of this machine.
    rounds     How many rounds this node trains. None: as the daemon is configured, else until finish().
    required   False: where no daemon is, the node is a fleet of one and the script trains alone, on all rows. A
               TrainingWarning says so, for the name may be mistyped.
    reconnect  True: a daemon that goes is waited for, and training goes on from its checkpoint; the step under way is
               then `skipped`. False: sgp.Disconnected.
    fresh      True: the node begins another run at round 0 with the parameters of its first node; what it has trained is set
               aside. Nothing happens to a run that has completed no round yet. Say it in the programs of all nodes.
               False: a node with a past goes on, and one that has finished raises AlreadyFinished.
    timeout    Seconds that attach() may take in all: until the daemon is there, and then until the neighbours are. A daemon that
               goes later must be back within as many. None: the daemon must be there now; the neighbours, and a daemon's
               return, are waited for without a limit. After 5 s the logger "sgp" says for whom the node waits.
    buffers    "average": buffers of floating point (a batch norm's averages) are averaged over the fleet.
               "local": each node keeps its own. Integers stay local always.
    params     "trainable": what requires no gradient stays local, and must be the same on all nodes. "all": it travels.

    scaler     The gradient scaler of a program that computes in fp16 (``torch.cuda.amp.GradScaler``, or any object
               with ``get_scale()`` and ``update()``). The node counts the steps that it leaves out
               (Node.skipped_steps), and an optimiser that wrap() knows mixes after them, too.

    on_evaluate  What ``sgpctl evaluate`` and ``sgp.Client.evaluate`` ask: a function of nothing that measures the model
               as it is and returns figures by name, of ``test_loss``, ``test_accuracy`` (0 to 1) and ``rows``.
    on_predict What ``sgpctl predict`` asks: a function of an array of numpy, float32 (rows, columns), whatever was
               sent, that returns one row of outputs for each, as an array or a tensor.
               Both are called between two turns, by the thread that waits in mix(), finish() or here, with the
               parameters of the estimate; what they write to parameters is lost, and they may not mix. An exception
               is told to whoever asked, and training goes on. None: whoever asks is told that the program does not.

    Returns the Node, a context manager: a clean end finishes, and waits for the fleet; an exception detaches.

    Raises NoDaemon; AlreadyFinished; Busy (another program is attached); LayoutMismatch (the node, or a neighbour, trains another model); Refused
    (anything else that the daemon minds); Error (a model that cannot travel, in one line); TimeoutError (it names the nodes that are missing)."""
    shared = model_of(model, buffers, params)
    try:
        path = socket_of(name)
        fleet, memory = entered(path, shared, rounds=rounds, reconnect=reconnect, fresh=fresh, timeout=timeout,
                                on_evaluate=on_evaluate, on_predict=on_predict)
    except NoDaemon as error:
        if required:
            raise
        warn_alone(error)
        return Node(Alone(rounds), shared, housed(shared), optimizer, scaler=scaler, fresh=fresh)
    return Node(fleet, shared, memory, optimizer, scaler=scaler, fresh=fresh)


def join(*, name: Optional[str] = None, required: bool = True, timeout: Optional[float] = None) -> Node:
    """Which node of the fleet this program is, before there is a model.

        with sgp.join() as node:
            torch.manual_seed(node.seed)
            loader = node.loader(train_set, batch_size=32)
            model = build(classes=count_classes(loader))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            node.attach(model, optimizer)
            for images, labels in loader:
                ...

    The node knows its name, index, size and seed, and gives samplers and loaders. It begins with node.attach(); until then nobody
    waits for it, and other calls raise Error. ``sgp.attach(model, optimizer)`` is join() and attach() in one.

    name, required  As in sgp.attach().
    timeout         Seconds until the daemon must be there, and answer. None: it must be there now.

    Raises NoDaemon, TimeoutError, Error."""
    try:
        path = socket_of(name)
        return Node(Seated(identify(path, timeout)), None, None, None, path)
    except NoDaemon as error:
        if required:
            raise
        warn_alone(error)
        return Node(Seated(Seat("alone", 0, 1, 0, 1, False)), None, None, None)


def warn_alone(why: Error) -> None:
    """Warn the caller of attach() or join() that the fleet has one node."""
    warnings.warn(f"{str(why).split('; start')[0]}: this program trains alone, on all rows", TrainingWarning, stacklevel=3)
