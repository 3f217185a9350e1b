# SPDX-License-Identifier: Apache-2.0
"""How a program becomes a node."""
from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal, Mapping, Optional, Sequence, Union

from .attachment import Alone, Seat, Seated, identify
from .entry import entered, housed, model_of
from .errors import Error, NoDaemon, TrainingWarning
from .node import Node, Scaler, check_overlap, optimizers_of
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
           params: Literal["trainable", "all"] = "trainable", scaler: Optional[Scaler] = None, overlap: bool = False,
           on_evaluate: Optional[Evaluate] = None, on_predict: Optional[Predict] = None, local: Sequence[str] = ()) -> Node:
    """Make this program a node of the fleet, by the daemon of this machine.

        with sgp.attach(model, optimizer, name="n0") as node:
            for epoch in range(10):
                for images, labels in node.shard(train_set, batch_size=32):
                    loss = criterion(model(images), labels)
                    optimizer.zero_grad(); loss.backward(); optimizer.step()
                    node.mix(loss=loss, rows=len(labels))
        # here `model` is the fleet's

    The call waits until the programs of all neighbours have attached; Ctrl-C ends the wait. Afterwards the parameters are
    those that training begins with: the first node's of the topology file, on all nodes. If the node has trained before,
    they are what it has learned.

    model      A module of PyTorch, with parameters of any shape. On the processor, those of float32 become views of the shared
               memory. Those on a GPU stay there and are copied at each mix(): the memory is pinned, and the copies run on a
               stream of their own. Those of bfloat16 and float16 are float32 in the shared memory; mix() adds what the optimizer
               made of them and rounds the result. Or arrays of numpy by name, float32 of any shape, which stay in place and are
               copied: change them in place, or replace them in the mapping.
    optimizer  Any optimizer, made before or after this call. The status shows its learning rate, its momentum is reset if the
               parameters jump (Mixed.jumped), and Node.checkpoint() keeps its state. A list gives several, as for a generator
               and a discriminator; the rate is that of the first. None: the package does none of this.
    name       The node's name ("n0": /run/sgpd/n0/attach.sock) or the path of a socket. None: $SGP_SOCKET, which
               ``sgpctl launch`` sets; else the only node of this machine.
    rounds     Rounds that this node trains. None: as the daemon is configured, else until finish().
    required   False: without a daemon the node is a fleet of one, and the script trains alone, on all rows. A
               TrainingWarning says so, because the name may be mistyped.
    reconnect  True: if the daemon ends, the program waits for it and continues from its checkpoint; the step under way is
               then `skipped`. False: sgp.Disconnected.
    fresh      True: the node begins another run at round 0, with the parameters of the first node, and the files of the former
               run are set aside. A run that has completed no round yet stays. Give it in the programs of all nodes.
               False: a node that has trained before continues, and a node that has finished raises AlreadyFinished.
    timeout    Seconds that attach() may take in all: until the daemon listens, and then until the neighbours are there. A daemon
               that ends later must be back within as many. None: the daemon must listen now; the waits for neighbours, and for a
               daemon's return, have no limit. After 5 s the logger "sgp" names the nodes that are missing.
    buffers    "average": buffers of floating point (the averages of a batch norm) are averaged over the fleet.
               "local": each node keeps its own. Integers always stay local.
    params     "trainable": parameters that require no gradient stay local, and must be the same on all nodes. "all": they
               are sent, too.
    scaler     The gradient scaler of a program that computes in fp16 (``torch.amp.GradScaler``, or any object
               with ``get_scale()`` and ``update()``). The node counts the steps that it leaves out
               (Node.skipped_steps), and an optimizer that wrap() knows mixes after them, too.
    overlap    True: mix() does not wait for the daemon and the neighbours. The program computes its next step meanwhile, and the
               call after that step adds what the neighbours gave (docs/ATTACH.md). For modules of PyTorch, without on_evaluate
               and on_predict; each tensor that is sent takes four bytes a number more.
    on_evaluate  For ``sgpctl evaluate`` and ``sgp.Client.evaluate``: a function without arguments. It measures the model as
               it is, and returns figures by name: ``test_loss``, ``test_accuracy`` (0 to 1) and ``rows``.
    on_predict For ``sgpctl predict``: a function of an array of numpy, float32 (rows, columns), that returns a row of
               outputs for each row, as an array or a tensor (rows, outputs).
               Both are called between two steps, by the thread that waits in mix(), finish() or here, with the
               parameters of the estimate. What they write to parameters is lost, and they must not mix. The user who asked
               gets the text of an exception, and training continues. None: the request is refused.
    local      Names of parameters that this program trains alone, as ``["head"]``: a parameter's name, or that of a module, for all
               its parameters and buffers. They are not put into the shared memory, so the daemon does not have them, and no other
               node gets them. Node.checkpoint() and Node.save() keep them. All nodes must name the same ones.

    Returns the Node, a context manager: a clean end calls finish() and waits for the fleet; an exception detaches.

    Raises NoDaemon; AlreadyFinished; Busy (another program is attached); LayoutMismatch (the node, or a neighbour, trains
    another model); Refused (the daemon refuses for another reason); Error (a model that cannot be sent, no optimizer, or names in
    `local` that the model does not have); TimeoutError (it names the nodes that are missing); ValueError (`buffers` or `params` is
    another word, or `local` no list of names)."""
    shared, optimizers = model_of(model, buffers, params, overlap, local), optimizers_of(optimizer)
    check_overlap(overlap, on_evaluate, on_predict)
    try:
        path = socket_of(name)
        fleet, memory = entered(path, shared, rounds=rounds, reconnect=reconnect, fresh=fresh, timeout=timeout,
                                on_evaluate=on_evaluate, on_predict=on_predict)
    except NoDaemon as error:
        if required:
            raise
        warn_alone(error)
        return Node(Alone(rounds), shared, housed(shared), optimizers, scaler=scaler, fresh=fresh)
    return Node(fleet, shared, memory, optimizers, scaler=scaler, fresh=fresh, overlap=overlap)


def join(*, name: Optional[str] = None, required: bool = True, timeout: Optional[float] = None) -> Node:
    """Say which node of the fleet this program is, before there is a model.

        with sgp.join() as node:
            torch.manual_seed(node.seed)
            loader = node.loader(train_set, batch_size=32)
            model = build(classes=count_classes(loader))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            node.attach(model, optimizer)
            for images, labels in loader:
                ...

    The node knows its name, index, size and seed, and makes samplers and loaders. Training begins with node.attach(); until then
    no other node waits for this one, and other calls raise Error. ``sgp.attach(model, optimizer)`` is join() and attach() in one.

    name, required  As in sgp.attach().
    timeout         Seconds in which the daemon must listen and answer. None: it must listen now.

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
