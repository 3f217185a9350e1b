# SPDX-License-Identifier: Apache-2.0
"""A node of the fleet, as a program has it."""
from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import math
import os
import pickle
import types
import warnings
import weakref
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Literal, Mapping, Optional, Protocol, Sequence, SupportsFloat, Tuple, Type, Union, overload

from .attachment import Alone, Attachment, Finished, Mixed, Seated, Step
from .claim import claim_text
from .decide import decided, means
from .entry import entered, housed, model_of
from .errors import Error, NotFinite, TrainingWarning
from .memory import Memory
from .model import Model
from .questions import Evaluate, Predict
from .points import Points, check_kept, restore, states_of
from .profile import marked
from .protocol import real
from .rows import Sampler, batches, check_data, is_stream, length_of
from .units import UNITS_MAX, Units, agreed

if TYPE_CHECKING:
    import numpy
    import torch

    Optimizers = Union[torch.optim.Optimizer, Sequence[torch.optim.Optimizer]]

_ROUNDS_UNDER_WAY = 2  # after which a share of before a restart has come, or has been given back

@dataclasses.dataclass
class Tally:
    """Figures of the steps since a turn was handed back."""

    rows: int = 0
    parts: float = 0.0  # what the losses are divided by
    losses: float = 0.0

    def plus(self, loss: Optional[SupportsFloat], rows: Optional[int]) -> Tally:
        part = 1 if rows is None else rows
        return Tally(self.rows + (rows or 0), self.parts + part, self.losses + (math.nan if loss is None else real(loss) * part))

    def loss(self) -> Optional[float]:
        """The mean over rows, or None."""
        return self.losses / self.parts if self.parts and math.isfinite(self.losses) else None


def check_overlap(overlap: bool, *functions: Any) -> None:
    """Raises Error where a program that goes ahead would have to answer questions: its parameters are not the estimate."""
    if overlap and any(function is not None for function in functions):
        raise Error("with overlap=True the program cannot answer: leave out on_evaluate and on_predict, or overlap")


def optimizers_of(given: Any) -> Tuple[Any, ...]:
    """What attach() was given for optimizers: one, several as a list or tuple, or None. Error if one of them is none."""
    found = tuple(given) if isinstance(given, (list, tuple)) else () if given is None else (given,)
    for one in found:
        if not hasattr(one, "param_groups"):
            raise Error(f"an optimizer that is a {type(one).__name__} has no param_groups; give an optimizer, or a list of them")
    return found


class Scaler(Protocol):
    """What is used of a gradient scaler, as of torch.amp.GradScaler."""

    def get_scale(self) -> float:
        """The factor of the loss. It falls when gradients have overflowed, and then alone."""

    def update(self) -> Any:
        """Called once after each step, taken or left out."""


class Node:
    """The node of this program; sgp.attach() and sgp.join() make it. As a context manager it calls finish() at a clean end, and
    detach() at an exception. One thread at a time uses it."""

    def __init__(self, fleet: Union[Attachment, Alone, Seated], model: Optional[Model], memory: Optional[Memory],
                 optimizer: Optional[Any], path: Optional[str] = None, scaler: Optional[Scaler] = None,
                 fresh: bool = False, overlap: bool = False) -> None:
        """`path` is the socket at which a node that is only seated attaches its model; None: it trains alone."""
        self._fleet, self._model, self._memory, self._optimizers = fleet, model, memory, optimizers_of(optimizer)
        self._path, self._ahead = path, overlap and isinstance(fleet, Attachment)
        self._owes = False  # a turn was handed back without a wait, and steps are taken meanwhile
        self._skipped_steps = self._skipped_told = 0
        self._use_scaler(scaler)
        self._tally = Tally()
        self._told = False  # the figures of a call that has not ended are in the tally
        self._silent = 0  # how many accumulate() are open
        self._rows = self._step_rows = 0  # of all steps, and of the last one
        self._passes = 0.0  # over the rows of `_sampler`
        self._sampler: Optional[Sampler] = None  # the latest
        self._points = Points(fresh)
        self._finished: Optional[Finished] = None
        self._detached = False
        self._forked = False  # this is a forked child's copy
        _attached.add(self)
        self._follow(fleet.first)

    def attach(self, model: Union[torch.nn.Module, Mapping[str, numpy.ndarray[Any, Any]]],
               optimizer: Optional[Optimizers] = None, *, rounds: Optional[int] = None, reconnect: bool = True,
               fresh: bool = False, timeout: Optional[float] = None, buffers: Literal["average", "local"] = "average",
               params: Literal["trainable", "all"] = "trainable", on_evaluate: Optional[Evaluate] = None,
               on_predict: Optional[Predict] = None, scaler: Optional[Scaler] = None, overlap: bool = False,
               local: Sequence[str] = ()) -> Node:
        """After sgp.join(): attach a model, and wait until the node is ready. Arguments and errors are those of sgp.attach();
        Error also if the node has a model. Returns the node itself. Its samplers and loaders stay as they are."""
        self._check_owner()
        if not isinstance(self._fleet, Seated) or self._detached:
            raise Error(f"{self.name}: a node gets one model, and this one has had it; join again with sgp.join()")
        shared, optimizers = model_of(model, buffers, params, overlap, local), optimizers_of(optimizer)
        check_overlap(overlap, on_evaluate, on_predict)
        if self._path is None:
            self._fleet, self._memory = Alone(rounds), housed(shared)
        else:
            self._fleet, self._memory = entered(self._path, shared, rounds=rounds, reconnect=reconnect, fresh=fresh,
                                                timeout=timeout, on_evaluate=on_evaluate, on_predict=on_predict)
        self._model, self._optimizers, self._points.fresh = shared, optimizers, fresh
        self._ahead = overlap and isinstance(self._fleet, Attachment)
        self._use_scaler(scaler)
        self._follow(self._fleet.first)
        return self

    # ---- who it is

    @property
    def name(self) -> str:
        """The node's name in the topology file; "alone" without a daemon."""
        return self._fleet.seat.name

    @property
    def index(self) -> int:
        """The node's place among the nodes of the topology file that train, from 0. A reload may change it."""
        return self._fleet.seat.index

    @property
    def is_first(self) -> bool:
        """Whether `index` is 0. True in one program, which writes the files and logs that the fleet needs once."""
        return self.index == 0

    @property
    def size(self) -> int:
        """How many nodes of the topology file train: all but the relays. A reload may change it."""
        return self._fleet.seat.size

    @property
    def seed(self) -> int:
        """A seed of this node, from 0 to 2^32 - 1, for all that the program draws itself: ``torch.manual_seed(node.seed)``
        before the first batch. The seed differs by node, and is a function of the fleet's `[node] seed` and of `index`
        alone, so a run repeats. With one seed on all nodes, all would train on the same rows."""
        run = hashlib.sha256(str(self._fleet.seat.seed).encode()).digest()
        return (int.from_bytes(run[:4], "little") + self.index) % 2**32

    @property
    def round(self) -> int:
        """The round that the node is in, from 0. A round has `[train] local_steps` calls of mix()."""
        return self._fleet.mixed.round

    @property
    def rounds(self) -> Optional[int]:
        """The number of rounds that the node trains; None: until finish()."""
        return self._fleet.rounds

    @property
    def weight(self) -> float:
        """The push-sum weight w of this node; 1 on average over the fleet."""
        return self._fleet.mixed.weight

    @property
    def epoch(self) -> float:
        """Epochs over this node's rows so far, fractional: the `rows` given to mix(), divided by the rows that shard(),
        loader() or sampler() gave it. NaN before one of these was called."""
        return math.nan if self._sampler is None else self._passes

    @property
    def stopped(self) -> bool:
        """Whether training is over: no further step counts."""
        return self._fleet.over

    @property
    def resumed(self) -> bool:
        """Whether the node had trained before this program attached. Its parameters then replaced the program's."""
        return self._fleet.seat.resumed

    @property
    def parameters_round(self) -> int:
        """The round of the parameters that the node had when this program attached. It is before `round` if the daemon and its
        neighbours lost later parameters, in a power cut for example."""
        older = self._fleet.parameters_round
        return self._fleet.first.round if older is None else older

    @property
    def skipped_steps(self) -> int:
        """How many steps the `scaler` given to attach() has left out, because gradients had overflowed. Such a step changes no
        parameter, and is a step of its round all the same: mix() takes part in the exchange."""
        self._look_at_scale()
        return self._skipped_steps

    def _use_scaler(self, scaler: Optional[Scaler]) -> None:
        self._scaler = scaler
        self._scale = 0.0 if scaler is None else scaler.get_scale()

    def _look_at_scale(self) -> None:
        """Once after each update of the scaler."""
        if self._scaler is not None:
            scale = self._scaler.get_scale()
            self._skipped_steps += scale < self._scale
            self._scale = scale

    # ---- steps

    def mix(self, *, loss: Optional[SupportsFloat] = None, rows: Optional[int] = None) -> Mixed:
        """Call it after each step of the optimizer: it adds the step to the node's parameters, exchanges with the neighbours, and
        waits for the parameters of the next step.

        Every `local_steps`-th call exchanges; the others only add the step. Afterwards the parameters are another estimate, and
        gradients and graphs from before it are void. Inside accumulate() nothing is added yet. After the end (`Mixed.stop`) no
        step counts.

        loss  The mean loss over the rows of this step: a number, or a tensor with one value. It is for the status alone.
        rows  How many rows this step used. For `epoch`, the status, and the places of samplers in checkpoint().

        torch.profiler shows the call as "sgp.mix", and in it the wait for daemon and neighbours as "sgp.wait".

        Ctrl-C raises KeyboardInterrupt. The next call continues what was interrupted: the step and its rows count once, and the
        arguments of that call are not used.
        Raises Disconnected, ViewsLost, NotFinite, and Refused if a daemon that was restarted refuses this program."""
        self._check_owner()
        self._look_at_scale()
        with self._telling(loss, rows):
            if self._silent:
                return Mixed(self.round, self.weight, stop=self.stopped)
            with marked("sgp.mix"):
                return self._go_ahead() if self._ahead and not self.stopped else self._hand_back(assigned=False)

    @contextlib.contextmanager
    def _telling(self, loss: Optional[SupportsFloat], rows: Optional[int]) -> Iterator[None]:
        """Add the figures of a call to the tally, unless the call continues one that Ctrl-C has interrupted."""
        if not self._told:
            self._tally, self._told = self._tally.plus(loss, rows), True
        try:
            yield
        except Exception:
            self._told = False
            raise
        self._told = False

    def _hand_back(self, assigned: bool, renews: Optional[int] = None) -> Mixed:
        """Give the memory to the daemon, and take it again with the next turn."""
        if self._has_turn() and self._model is not None:
            self._model.gather(assigned)
        step = self._step(assigned, renews)
        with self._counted():
            with self._restored(), marked("sgp.wait"):
                mixed = self._fleet.mix(step)
            return self._follow(mixed)

    def _has_turn(self) -> bool:
        """Whether the program has the memory, and the model what came with it."""
        return self._fleet.turn != 0 and self._fleet.turn == self._fleet.shown

    def _go_ahead(self) -> Mixed:
        """Take the memory with the turn that the call before has not waited for, and give it to the daemon without a wait."""
        mixed = self._land()
        if not mixed.stop and self._model is not None and isinstance(self._fleet, Attachment):
            self._model.advance(self._owes)
            self._owes = True
            with self._counted():
                self._fleet.hand_back(self._step())
        return mixed

    def _land(self, timeout: Optional[float] = None) -> Mixed:
        """Wait for the turn that is out. What has become of the parameters meanwhile is void after the end, and where they jumped;
        else it is still to be added."""
        fleet = self._fleet
        if not isinstance(fleet, Attachment) or self._has_turn():
            return dataclasses.replace(fleet.mixed, exchanged=False, jumped=False, skipped=False)
        with self._restored(), marked("sgp.wait"):
            mixed = fleet.await_turn(timeout)
        void = mixed.stop or mixed.jumped
        self._owes = self._owes and not void
        self._follow(mixed, scatter=not self._owes)
        return dataclasses.replace(mixed, skipped=mixed.skipped or void)

    def _catch_up(self, timeout: Optional[float] = None) -> None:
        """Have a turn, and in the memory the parameters as they are; where no program goes ahead it is so already."""
        if self._ahead and self._owes and not self.stopped and self._model is not None:
            if not self._land(timeout).stop:
                self._model.advance(self._owes)
            self._owes = False

    def _step(self, assigned: bool = False, renews: Optional[int] = None) -> Step:
        """The figures of the steps since a turn was handed back."""
        return Step(self._tally.rows, self._tally.loss(), math.nan if self._sampler is None else self._passes_told(),
                    self._learning_rate(), assigned, overflowed=self._skipped_steps > self._skipped_told, renews=renews)

    def _passes_told(self) -> float:
        """Over the rows of the sampler, with those of the tally."""
        return self._passes + (self._tally.rows / len(self._sampler) if self._sampler else 0)

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        """The figures of a step count when its call ends. After Ctrl-C it is the next call that ends the step."""
        try:
            yield
        except Exception:
            self._count()
            raise
        self._count()

    def _count(self) -> None:
        rows = self._tally.rows
        self._rows, self._step_rows, self._passes, self._tally, self._skipped_told = (
            self._rows + rows, rows, self._passes_told(), Tally(), self._skipped_steps)

    @contextlib.contextmanager
    def _restored(self) -> Iterator[None]:
        """After a step that was not finite the parameters are those before it."""
        try:
            yield
        except NotFinite:
            if self._model is not None:
                self._model.scatter()
            raise

    def _follow(self, mixed: Mixed, scatter: bool = True) -> Mixed:
        """The parameters are what the memory holds, unless `scatter` is false."""
        if self._model is not None and scatter:
            self._model.scatter()
        if mixed.jumped:
            self._forget_momentum()
        self._fleet.shown = self._fleet.turn
        if self._fleet.same_updates is not None:
            warnings.warn(f"the updates of {self._fleet.same_updates} were another node's, bit for bit, for 8 rounds: they "
                          "train on the same rows; seed what this program draws by node.seed, or take rows from "
                          "node.shard() or node.sampler()", TrainingWarning, stacklevel=4)
            self._fleet.same_updates = None
        return mixed

    def _learning_rate(self) -> Optional[float]:
        groups = getattr(self._optimizers[0], "param_groups", None) if self._optimizers else None
        return real(groups[0]["lr"]) if groups and "lr" in groups[0] else None

    def _forget_momentum(self) -> None:
        """The optimizers' averages of gradients are of other parameters."""
        for optimizer in self._optimizers:
            for state in getattr(optimizer, "state", {}).values():
                for key in ("momentum_buffer", "exp_avg"):
                    if state.get(key) is not None:
                        state[key].zero_()

    @contextlib.contextmanager
    def accumulate(self) -> Iterator[None]:
        """Steps inside ``with node.accumulate():`` do not mix: mix(), and an optimizer that wrap() knows, only count rows and loss.
        The first mix() afterwards adds all of them as one step."""
        self._silent += 1
        try:
            yield
        finally:
            self._silent -= 1

    @contextlib.contextmanager
    def assign(self) -> Iterator[None]:
        """Parameters that are written inside ``with node.assign():`` are values, not an update: afterwards this node's estimate is
        these values, whatever its weight, and the fleet moves towards them. For load_state_dict, and for averages that are
        swapped in. Steps of an optimizer are updates, and belong outside. The end of the block takes a turn, as mix() does, so
        begin it right after a mix(). Raises as mix() does."""
        self._check_owner()
        self._catch_up()
        yield
        self._hand_back(assigned=True)

    # ---- rows

    def sampler(self, data: Any, *, shuffle: bool = True, seed: int = 0) -> Sampler:
        """The indices of this node's rows of `data` (anything with a length), for a DataLoader's ``sampler=``. Node i of n has the
        rows i, i + n, i + 2 n, ..., equally many on each node. Each iter() of the sampler, and so of the DataLoader, begins
        another epoch; see sgp.Sampler. Raises Error for fewer rows than nodes, and for a DataLoader in the place of its data
        set."""
        check_data(data)
        self._sampler = Sampler(length_of(data), self, shuffle, seed)
        self._points.made(self._sampler)
        return self._sampler

    def loader(self, data: Any, batch_size: int = 1, *, shuffle: bool = True, seed: int = 0, **options: Any) -> Any:
        """A DataLoader of PyTorch over this node's rows; `options` are its own (num_workers, collate_fn, drop_last, ...).

            loader = node.loader(train_set, batch_size=32, num_workers=2)
            for epoch in range(10):
                for images, labels in loader:

        `data` is a data set of PyTorch, with a length or iterable; or arrays or tensors whose first dimension is the rows: one,
        several as a tuple, or by name as a dictionary. Batches have the same form. Each iter() is another epoch, in another
        order if `shuffle`; set_epoch() sets the next one. An epoch ends early when training is over.

        Of an iterable data set each node takes every `size`-th item, so it must yield the same items in the same order on all
        nodes; `shuffle` and `seed` have no effect. As in PyTorch, a data set that is read by several workers divides its items
        among them itself. With workers, a reload that changes `size` takes effect in the next epoch, else at once.

        Raises Error for fewer rows than nodes, for a DataLoader in the place of its data set, for the options ``sampler`` and
        ``batch_sampler``, for a batch size below 1, and if torch is not installed."""
        check_data(data)
        try:
            from .loader import rows_loader, stream_loader
        except ImportError:
            raise Error("a loader is PyTorch's DataLoader, and torch is not installed; node.shard() reads arrays of "
                        "numpy without") from None
        if is_stream(data):
            return stream_loader(data, self, batch_size, options)
        return rows_loader(data, self.sampler(data, shuffle=shuffle, seed=seed), batch_size, options)

    def _trained(self) -> Tuple[int, int]:
        """The rows that mix() was told of: of all steps, and of the last one."""
        return self._rows + self._tally.rows, self._tally.rows or self._step_rows

    def shard(self, data: Any, *, batch_size: int, shuffle: bool = True, seed: int = 0) -> Iterator[Any]:
        """One epoch over this node's rows, in batches; it ends early when training is over.

        `data` is an array or tensor whose first dimension is the rows (batches are rows of it), a tuple of these (batches are
        tuples), a dictionary of these by name (batches are dictionaries), or a data set of PyTorch (batches are what its
        DataLoader makes). The last batch may be smaller. Each call is another epoch over all rows of the node, in another order
        if `shuffle`, also after a ``break``. Raises Error for fewer rows than nodes, for a DataLoader in the place of its data
        set, and for a batch size below 1."""
        check_data(data)
        if is_stream(data):
            return iter(self.loader(data, batch_size))
        self._sampler = sampler = Sampler(length_of(data), self, shuffle, seed)
        self._epochs = self._points.sharded(sampler, self._epochs)
        return batches(data, sampler, batch_size)

    _epochs = 0  # that shard() began

    # ---- words

    def report(self, **figures: float) -> None:
        """Figures for ``sgpctl status`` and history.csv: `test_loss`, `test_accuracy` (0 to 1) and `epoch`. Others of any name go
        to the journal. Each is a number. No other node is asked or waited for."""
        self._check_owner()
        others = " ".join(f"{name}={real(value):.6g}" for name, value in figures.items()
                          if name not in ("test_loss", "test_accuracy", "epoch"))
        epoch = figures.get("epoch", self.epoch)
        self._fleet.report(figures.get("test_loss"), figures.get("test_accuracy"), epoch, others)

    def privacy(self, epsilon: float, delta: float, *, noise_multiplier: Optional[float] = None,
                sample_rate: Optional[float] = None, clip: Optional[float] = None) -> None:
        """Claim that the steps of this program are differentially private: everything that the fleet sees of this run depends on
        each row of this node by at most (`epsilon`, `delta`). Call it after attach() and before the first step.

            node.privacy(3, 1e-5, noise_multiplier=1.1, sample_rate=0.05, clip=1)

        The program clips and adds noise itself, so nobody can verify the claim. It is shown as a claim: `sgpctl status`, the
        metrics, the journal, and of all nodes epsilon and delta in `sgpctl fleet`. From this call on, the losses, accuracies and
        rows that mix() and report() are told stay on this machine. The words of mean(), any() and all() travel, and so does
        the decision of stop(): give them nothing that depends on rows.

        epsilon, delta    At least 0, and delta below 1. Best are those of the whole training. In a run neither falls.
        noise_multiplier  Deviation of the noise, as a multiple of `clip`. These three are for the status alone.
        sample_rate       Probability with which a step takes a row.
        clip              Greatest length of the gradient of a row.

        The claim belongs to the run: a node and a program that are started again keep it. Another run begins without one.
        Raises ValueError for numbers out of range, and Refused if the node has a larger claim of this run, if its configuration
        has `stop_at_accuracy`, or if its disk does not take the claim. A daemon that comes back hears the claim again; if it
        refuses, the next call that waits raises Refused. Waits and raises as mix() does otherwise."""
        self._check_owner()
        self._fleet.claim(claim_text(epsilon, delta, noise_multiplier, sample_rate, clip))

    def stop(self, reason: str) -> None:
        """Ask the whole fleet to stop training; `reason` is for the journals. A later mix() of every program returns
        `Mixed.stop`, and shard() and loader() end."""
        self._check_owner()
        self._fleet.enough(reason)

    # ---- decisions

    @overload
    def mean(self, x: SupportsFloat, *, timeout: Optional[float] = None) -> float: ...

    @overload
    def mean(self, x: Sequence[SupportsFloat], *, timeout: Optional[float] = None) -> List[float]: ...

    def mean(self, x: Union[SupportsFloat, Sequence[SupportsFloat]], *,
             timeout: Optional[float] = None) -> Union[float, List[float]]:
        """The mean of the numbers that all programs give in this call, in the same bits on all nodes, whatever the topology. For
        decisions that must be equal on all nodes, such as a learning rate by the loss of held-out rows.

            scheduler.step(node.mean(validation_loss))

        `x` is a number (or a tensor with one value), or a list or tuple of 1 to 8 numbers, of which each has its own mean. Every
        node counts once. All programs must make the same calls of mean(), any() and all() in the same order. A program waits for
        all others, also for a node that is down, until that is back or is removed from the topology file. A program that was
        started again takes part in the next call.

        `timeout` in seconds; None: no limit. Raises TimeoutError with the names of the missing nodes: another call continues the
        wait, with the number that was given first. Raises Error, on all nodes, if programs make different calls, and for more
        than 8 numbers; Refused if the edges of the topology file do not connect all nodes; Disconnected."""
        several: List[Any] = list(x) if isinstance(x, (list, tuple)) else [x]
        result = means(list(self._decide("mean", [real(value) for value in several], timeout).values()))
        return result if isinstance(x, (list, tuple)) else result[0]

    def any(self, flag: object, *, timeout: Optional[float] = None) -> bool:
        """Whether `flag` is true in any program; the answer is the same on all nodes: ``if node.any(time_is_over): break``.
        Waits and raises as mean() does."""
        return any(row[0] for row in self._decide("any", [float(bool(flag))], timeout).values())

    def all(self, flag: object, *, timeout: Optional[float] = None) -> bool:
        """Whether `flag` is true in all programs; the answer is the same on all nodes. Waits and raises as mean() does."""
        return all(row[0] for row in self._decide("all", [float(bool(flag))], timeout).values())

    def _decide(self, call: str, values: List[float], timeout: Optional[float], first: bool = False) -> Dict[str, List[float]]:
        self._check_owner()
        return decided(call, values, lambda word: self._fleet.decide(word, timeout, first))

    # ---- one resume point

    def checkpoint(self, state: Mapping[str, Any] = types.MappingProxyType({}), *, every: int = 1, keep: int = 3,
                   directory: Union[str, os.PathLike[str]] = "checkpoints", **objects: Any) -> bool:
        """Write one *unit*, from which resume() continues: the script's `state`, the states of the optimizers and the scaler that
        attach() was given, the places of samplers and of shard(), the states of `objects` (a scheduler for example: anything
        with state_dict()), the parameters, and the model's buffers and `local` parameters, which are not sent. The unit is of `node.round`.

            node.mix(loss=loss, rows=len(labels))
            node.checkpoint({"epoch": epoch}, every=100, scheduler=scheduler)

        Call it right after each mix(). It writes in the rounds that `every` (at least 1) divides, so all nodes have units of the
        same rounds, and returns whether it wrote. A unit appears whole or not at all, and is on the disk when the call returns.
        The call takes the time of writing the parameters and the optimizers' states, and waits for no other node. The last `keep`
        units stay, 1 to 7. With one, a node that is killed while others write has none in common with them.

        `state` is a dictionary that pickle takes. The units of this node are in `directory`/NAME. Raises ValueError for numbers
        out of range, Error if a mix() was interrupted and has not been called again, ViewsLost, and OSError."""
        self._check_owner()
        if every < 1 or not 1 <= keep <= UNITS_MAX:
            raise ValueError(f"every is {every} and keep is {keep}; at least 1, and 1 to {UNITS_MAX}")
        model, memory = self._shared("checkpoint")
        rounds = {self.round, self.round + self._owes} - {self._points.written}  # that the next turn may be of
        if self._silent or all(number % every for number in rounds):
            return False
        self._catch_up()
        if not self._has_turn() and not self.stopped:
            raise Error("the parameters are the daemon's: a mix() was interrupted; call it again first")
        if self.round % every or self.round == self._points.written:
            return False
        model.gather()
        kept = {"state": dict(state), "objects": states_of(objects), "own": states_of(self._own_objects()),
                "passes": self._passes, "epochs": self._epochs, "places": self._points.places(),
                "layout": [(entry.name, entry.shape) for entry in model.layout.tensors], "local": model.local()}
        with memory.values() as parameters:
            self._units(directory).write(self.round, kept, parameters, keep)
        self._points.written = self.round
        return True

    def resume(self, *, directory: Union[str, os.PathLike[str]] = "checkpoints", timeout: Optional[float] = None,
               **objects: Any) -> Optional[Dict[str, Any]]:
        """Continue from the latest unit that checkpoint() wrote on *every* node; returns its `state`, or None if no node has a unit.

            with sgp.attach(model, optimizer) as node:
                state = node.resume(scheduler=scheduler) or {"epoch": 0}
                for epoch in range(state["epoch"], 10):

        Call it once, before the first step, and before mean(), any() and all(). If the daemons of all nodes were down, by a power
        cut or in order, all programs wait here for each other, agree on a round, and put the parameters of that round back; units
        of later rounds are removed. `node.round` does not go back, since weights and shares are counted by it; putting back takes
        three rounds or a few more. If the rounds are limited, the lost rounds and these are missing at the end.

        If this program, or its daemon, was restarted while the fleet trains, the parameters stay those of the fleet, and the rest
        is that of the latest unit of this node. The same holds if the programs of all nodes were restarted, and the daemons
        were not.

        A unit that is not whole is passed over, and a line of the logger "sgp" names it. With attach(fresh=True) there is nothing
        to resume: units of the former run are moved to `directory`/NAME/former, or former-2 and so on if that exists. Load only
        files that you have written yourself, because a pickle may run anything.

        `timeout` in seconds, for the other programs to come; None: no limit. Raises TimeoutError with the names of the missing
        nodes. Raises Error, on all nodes, if some have units and no round is common, and if the unit is of another model, of other
        `objects`, or has `local` parameters of another shape. Raises as mean() does."""
        model, _ = self._shared("resume")
        self._catch_up()
        units = self._units(directory)
        if self._points.fresh:
            units.set_aside()
        sound = units.sound()
        padded = (sound + [-1] * UNITS_MAX)[:UNITS_MAX]
        rows = self._decide("resume", [self.round, *padded], timeout, first=True)
        number = agreed({name: [int(value) for value in row[1:] if value >= 0] for name, row in rows.items()}) if rows else \
            (sound[0] if sound else None)
        if number is None:
            return None
        kept, parameters = units.read(number)
        check_kept(kept, model.layout, objects, f"the unit of round {number}")
        model.set_local(kept["local"])  # first, as it may raise
        if rows:
            self._put_back(parameters, number, int(max(row[0] for row in rows.values())))
            units.take(number, self.round)
        restore(self._own_objects(), kept["own"])
        restore(objects, kept["objects"])
        self._passes, self._epochs = kept["passes"], kept["epochs"]
        self._points.resume(kept["places"], self.round)
        state: Dict[str, Any] = kept["state"]
        return state

    def _put_back(self, parameters: bytes, number: int, latest: int) -> None:
        """Assign parameters, and let the fleet begin again with them and weight 1 each, some rounds after that of the node which is
        ahead. Under a method that does not begin again, assign them in every turn until then, when no share of before is under
        way. So all nodes leave it in one round."""
        start, written, renewed = latest + _ROUNDS_UNDER_WAY, False, False
        while not self.stopped and (not written or self.round < start):
            self._lay(parameters)
            if isinstance(self._fleet, Alone):
                self._fleet.go_on(number)
                return
            before = self.round
            written = not self._hand_back(assigned=True, renews=start).skipped
            renewed = self.round > before + 1 and self.weight == 1
        if renewed and not self.stopped:
            self._lay(parameters)  # a share may have returned beside the turn; with weight 1 values are an update like any other

    def _lay(self, parameters: bytes) -> None:
        """Write parameters into the memory and the model."""
        model, memory = self._shared("resume")
        with memory.values() as values:
            values[:] = parameters
        model.scatter()

    def _shared(self, call: str) -> Tuple[Model, Memory]:
        """Raises Error for a node without a model, or whose model is its own again."""
        if self._model is None or self._memory is None:
            raise Error(f"{self.name}: {call}() is for a model that is attached; node.attach(model, optimizer) comes first, and "
                        "finish() and detach() later")
        return self._model, self._memory

    def _own_objects(self) -> Dict[str, Any]:
        """What attach() was given, and has a state."""
        own = {f"optimizer {number}" if number > 1 else "optimizer": optimizer for number, optimizer in enumerate(self._optimizers, 1)}
        own["scaler"] = self._scaler
        return {name: thing for name, thing in own.items() if hasattr(thing, "state_dict")}

    def _units(self, directory: Union[str, os.PathLike[str]]) -> Units:
        return Units(os.path.join(os.fspath(directory), self.name))

    # ---- keeping

    def save(self, path: Union[str, os.PathLike[str]], **objects: Any) -> None:
        """Save the states of `objects` that the daemon does not have (optimizer, scheduler, scaler, sampler: anything with
        state_dict()), and the `local` parameters and buffers of the model. The parameters that are sent are not in the file: the
        daemon is asked for a checkpoint of the same round. The file appears whole or not at all; it is a pickle. Raises OSError.
        checkpoint() saves all parameters."""
        self._check_owner()
        self._fleet.keep()
        states = {name: value.state_dict() for name, value in objects.items()}
        local = {} if self._model is None else self._model.local()
        kept = {"round": self.round, "passes": self._passes, "epochs": self._epochs, "objects": states, "local": local}
        with open(f"{os.fspath(path)}.new", "wb") as file:
            pickle.dump(kept, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{os.fspath(path)}.new", path)

    def load(self, path: Union[str, os.PathLike[str]], **objects: Any) -> bool:
        """Give `objects` the states that save() wrote under the same names, and the model what stays local; returns False if there is
        no such file. Raises Error
        if the file has other objects or `local` parameters of another shape, or is of a later round than the parameters, since the script would then be ahead of its
        model. Load only files that you have written yourself, because a pickle may run anything."""
        try:
            with open(path, "rb") as file:
                kept = pickle.load(file)
        except FileNotFoundError:
            return False
        if set(kept["objects"]) != set(objects):
            raise Error(f"{os.fspath(path)} holds {', '.join(sorted(kept['objects'])) or 'nothing'}; asked for was "
                        f"{', '.join(sorted(objects)) or 'nothing'}")
        held = self.parameters_round + self.round - self._fleet.first.round  # those of this program count
        if isinstance(self._fleet, Attachment) and kept["round"] > held:
            raise Error(f"{os.fspath(path)} is of round {kept['round']}, and the parameters are of round {held}: the node has lost later ones, or begins another run; remove the file and "
                        "begin the epochs anew, or give the node its checkpoint back")
        if self._model is not None:
            self._model.set_local(kept.get("local", {}))  # first, as it may raise
        for name, value in objects.items():
            value.load_state_dict(kept["objects"][name])
        self._passes, self._epochs = kept["passes"], kept["epochs"]
        return True

    # ---- the end

    def finish(self, *, timeout: Optional[float] = None) -> Finished:
        """Call it when this program has taken all its steps: it waits until the fleet has finished, and takes the fleet's model.
        The node stays attached, and the parameters are in memory of their own again. A step since the last mix() does not
        count. The end of ``with sgp.attach(...)`` calls it.

        A TrainingWarning names the neighbours that are not known to have ended with this model (Finished.peers): they
        were stopped, or cannot be reached. `timeout` in seconds; None: no limit. Raises TimeoutError (another call continues the
        wait) and Disconnected. A second call returns the result of the first."""
        self._check_owner()
        if self._finished is None:
            self._catch_up(timeout)
            self._finished = self._fleet.finish(timeout)
        if self._model is not None:  # still so after an interrupt
            self._model.scatter()
            self._let_go()
            if self._finished.disagrees:
                warnings.warn(f"{', '.join(self._finished.peers) or 'a neighbour'} has not ended with this model",
                              TrainingWarning, stacklevel=2)
        return self._finished

    def detach(self) -> None:
        """Leave the node. Unless it has finished, it pauses, and no other node waits for it. The parameters are in memory of their
        own again, as they are. Inside ``with`` the block then ends without finish(). A second call does nothing."""
        if self._forked:
            return
        self._detached = True
        self._let_go()
        self._fleet.detach()

    def _let_go(self) -> None:
        if self._model is not None:
            self._model.release()
        if self._memory is not None:
            self._memory.close()
        self._model, self._memory = None, None

    def __enter__(self) -> Node:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[types.TracebackType]) -> None:
        try:
            if kind is None and not self._detached and not isinstance(self._fleet, Seated):
                self.finish()
        finally:
            self.detach()

    # ---- forked children

    def _check_owner(self) -> None:
        if self._forked:
            raise Error("this process was forked from the one that is attached; only that one can mix")

    def _in_child(self) -> None:
        """A DataLoader's worker: it has a copy, and no say."""
        self._forked = True
        self._fleet.forget()
        if self._model is not None:
            self._model.fork()


_attached: weakref.WeakSet[Node] = weakref.WeakSet()


def _after_fork() -> None:
    for node in list(_attached):
        node._in_child()


os.register_at_fork(after_in_child=_after_fork)
