# SPDX-License-Identifier: Apache-2.0
"""The dialogue of a program with its daemon, and of a program that has none."""
from __future__ import annotations

import dataclasses
import errno
import glob
import logging
import math
import os
import re
import time
from typing import Iterator, List, Optional, Tuple

from .errors import AlreadyFinished, Busy, Disconnected, Error, LayoutMismatch, NoDaemon, NotFinite, Refused
from .memory import Layout, Memory
from .protocol import DIVERGED, RUN, Closed, Connection, Flag, Frame, Type, number
from .questions import Questions

_log = logging.getLogger("sgp")
_RETRY_SECONDS = 0.1  # between two looks for a daemon
_QUIET_SECONDS = 5.0  # of a wait for other nodes, until it is told


@dataclasses.dataclass(frozen=True)
class Mixed:
    """The result of a step, as mix() returns it.

    round      The node's round now, from 0.
    weight     The push-sum weight w of this node; 1 on average over the fleet.
    exchanged  Whether a round was exchanged since the step before.
    jumped     Whether the parameters are another node's, or of another time. The optimizers' momentum was then reset.
    skipped    Whether the step did not count, as when the daemon was restarted meanwhile.
    stop       Whether training is over. No further step counts."""

    round: int
    weight: float
    exchanged: bool = False
    jumped: bool = False
    skipped: bool = False
    stop: bool = False


@dataclasses.dataclass(frozen=True)
class Finished:
    """The end of training, as finish() returns it.

    round      The node's last round.
    disagrees  Whether a neighbour has ended with another model, or is not known to have ended with this one: it was stopped, or
               cannot be reached.
    distance   |z - z'| / max(|z|, |z'|), for the neighbour z' whose model is furthest away; NaN if none is known.
    peers      The names of the neighbours that disagree."""

    round: int
    disagrees: bool = False
    distance: float = math.nan
    peers: Tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Step:
    """What a turn came to; None where not known."""

    rows: int = 0
    loss: Optional[float] = None
    epoch: Optional[float] = None
    learning_rate: Optional[float] = None
    assigned: bool = False
    overflowed: bool = False  # gradients did, and a scaler left a step out
    renews: Optional[int] = None  # with `assigned`: the round in which all nodes begin again with weight 1


@dataclasses.dataclass(frozen=True)
class Seat:
    """Who this node is."""

    name: str
    index: int
    size: int
    seed: int
    local_steps: int
    resumed: bool


def dial(path: str, patience: float, timeout: Optional[float]) -> Connection:
    """A daemon that is not there yet is looked for again, for `patience` seconds. Raises NoDaemon, Error."""
    end = time.monotonic() + patience
    while True:
        try:
            return Connection(path, timeout)
        except (FileNotFoundError, ConnectionRefusedError) as error:
            if time.monotonic() >= end:
                raise NoDaemon(f"no daemon listens at {path}: {error.strerror}{others_than(path)}; "
                               "start sgpd, or attach with required=False to train alone") from None
        except OSError as error:
            raise Error(f"cannot connect to {path}: {error.strerror or error}") from error
        time.sleep(_RETRY_SECONDS)


def identify(path: str, timeout: Optional[float]) -> Seat:
    """Which node the daemon behind a socket is, whether a program is attached or not. `timeout` in seconds, until the daemon
    is there and has answered; None: it must be there now. Raises NoDaemon, TimeoutError, Error."""
    connection = dial(path, timeout or 0.0, timeout)
    try:
        connection.send(Frame(Type.IDENTIFY))
        frame = connection.receive(timeout)
    except Closed:
        raise Error(f"the daemon at {path} hung up without an answer; its journal says why") from None
    finally:
        connection.close()
    if frame.type == Type.REFUSED:
        raise Refused(frame.text, frame.code)
    if frame.type != Type.IDENTITY:
        raise Error(f"the daemon answered IDENTIFY with {frame.type.name}")
    return Seat(frame.text, frame.index, frame.size, frame.seed, frame.local_steps, False)


class Attachment:
    """The program's side of docs/ATTACH-PROTOCOL.md. `turn` is the turn that it has, 0 while the memory is the daemon's. `shown` is
    the turn whose parameters its model has: the node says so, and an interrupt may come before it can."""

    def __init__(self, path: str, memory: Memory, questions: Questions, *, program: str, rounds: Optional[int],
                 timeout: Optional[float], reconnect: bool, fresh: bool = False) -> None:
        """Connect, hand the memory over and wait for the first turn, `timeout` seconds in all; Ctrl-C ends the wait."""
        end = None if timeout is None else time.monotonic() + timeout
        self.rounds = rounds
        self.over = False
        self.turn = self.shown = 0
        self.mixed = Mixed(round=0, weight=1.0)
        self.same_updates: Optional[str] = None  # neighbours that a warning is due of
        self._path, self._memory, self._questions, self._program = path, memory, questions, program
        self._wanted, self._timeout, self._reconnect = rounds, timeout, reconnect
        self._answered = 0  # the last turn that was handed back
        self._lost = False  # the daemon went while a step was under way
        self._finishing = False  # FINISH has been said on this connection, or lies in the outbox
        self._outbox: Iterator[bytes] = iter([])  # what is to be said once, however often a signal interrupts
        self._enough: Optional[str] = None
        self._claim: Optional[str] = None  # of privacy, the latest that the daemon has taken
        self._claims = 0  # how many were made
        self._awaited: Optional[int] = None  # the one whose answer is waited for
        self._answering = False  # a function of the program is at work
        self._asking = False  # for whom the node waits, and the answer is waited for
        self._early: Optional[Frame] = None  # a turn that came while words were waited for
        self._connection: Optional[Connection] = None
        self.parameters_round: Optional[int] = None  # of the first turn's parameters, if that is not the node's round
        try:
            self.seat = self._enter(fresh)
            if self._ended:
                raise AlreadyFinished(f"{self.seat.name}: the node has finished its run and takes no more steps; begin "
                                      f"another run with sgp.attach(..., fresh=True), or sgpctl reset {self.seat.name}, on "
                                      "every node; sgpctl export fetches the model")
            self.first = self._await_first(end)
        except BaseException:
            self.detach()
            raise

    # ---- attaching

    def _enter(self, fresh: bool) -> Seat:
        """HELLO, which may ask for another run. A daemon that starts anew, for that or to forget a model, is greeted again."""
        patience, anew = self._timeout or 0.0, fresh
        while True:
            try:
                return self._greet(patience, Flag.FRESH if fresh else Flag.NONE)
            except Refused as error:
                if error.code != -errno.EAGAIN:
                    raise
                anew = True
            except Disconnected:
                if not anew:  # else it was just about to go
                    raise
            patience = 60.0 if self._timeout is None else self._timeout
            time.sleep(_RETRY_SECONDS)

    def _greet(self, patience: float, flags: Flag = Flag.NONE) -> Seat:
        """HELLO with the memory, and WELCOME."""
        connection = dial(self._path, patience, self._timeout)
        try:
            connection.send(Frame(Type.HELLO, self._questions.flags | flags, parameters=self._memory.layout.parameters, text=self._program,
                                  rounds=-1 if self._wanted is None else self._wanted), [self._memory.descriptor])
            frame = connection.receive(self._timeout)
            if frame.type == Type.REFUSED:
                raise refusal(frame)
            if frame.type != Type.WELCOME:
                raise Error(f"the daemon answered HELLO with {frame.type.name}")
            connection.done_with()
        except Closed:
            connection.close()
            raise Disconnected("the daemon hung up without an answer; its journal says why") from None
        except BaseException:
            connection.close()
            raise
        self._connection, self._answered, self._early = connection, 0, None
        self.turn = self.shown = 0
        self._finishing, self._outbox = False, iter([])
        self._ended = Flag.OVER in frame.flags
        self.rounds = self._wanted if frame.rounds < 0 else frame.rounds
        return Seat(frame.text, frame.index, frame.size, frame.seed, frame.local_steps, Flag.RESUMED in frame.flags)

    def _drop(self) -> None:
        """The daemon has gone."""
        if self._connection is not None:
            self._connection.close()
        self._connection, self.turn, self._lost = None, 0, True
        if not self._reconnect:
            raise Disconnected("the daemon has gone; start it and attach again, or attach with reconnect=True")
        _log.warning("%s: the daemon has gone; waiting for its return", self.seat.name)

    def _link(self) -> Connection:
        """The connection; while the daemon is away, wait until it is back, and greet it again."""
        if self._connection is None and not self._reconnect:
            raise Disconnected("the program is no longer attached; attach again")
        if self._connection is None:
            try:
                self.seat = self._greet(math.inf if self._timeout is None else self._timeout)
            except NoDaemon:
                raise Disconnected(f"the daemon has gone, and was not back after {self._timeout} s") from None
            _log.warning("%s: the daemon is back", self.seat.name)
            if self._claim is not None:  # to a daemon that may have lost its state; a refusal of this claim 0 ends the wait
                self._say(Frame(Type.PRIVACY, text=self._claim))
            if self._enough is not None:
                self.enough(self._enough)
        assert self._connection is not None
        return self._connection

    # ---- turns

    def mix(self, step: Step) -> Mixed:
        """Hand the turn back, and wait for the next. Without a turn (an earlier wait was interrupted) only wait."""
        if self._answering:
            raise Error("a program that answers a question has no turn: on_evaluate and on_predict may not mix")
        if self.over:
            return dataclasses.replace(self.mixed, exchanged=False, jumped=False, skipped=True, stop=True)
        self.hand_back(step)
        return self.await_turn()

    def hand_back(self, step: Step) -> None:
        """The daemon has the memory from now on. Without a turn that is shown nothing is done."""
        if self.turn and self.turn == self.shown:
            flags = Flag.ASSIGNED if step.assigned else Flag.NONE
            if step.overflowed:
                flags |= Flag.OVERFLOWED
            if step.renews is not None:
                flags |= Flag.RENEWS
            self._outbox = iter([Frame(Type.DONE, flags, turn=self.turn, round=step.renews or 0,
                                       rows=step.rows, loss=number(step.loss), epoch=number(step.epoch),
                                       learning_rate=number(step.learning_rate)).pack()])
            self._answered, self.turn = max(self._answered, self.turn), 0
            try:
                if self._connection is not None:
                    self._connection.post(self._outbox)
            except Closed:
                self._drop()

    def _say(self, frame: Frame) -> None:
        """Send what needs no answer. To a daemon that is away it is not said."""
        try:
            if self._connection is not None:
                self._connection.send(frame)
        except Closed:
            self._drop()

    def _await_first(self, end: Optional[float]) -> Mixed:
        """The first turn, for which other nodes must be there. After a while the daemon is asked for whom it waits, and a line
        tells it; at `end` a TimeoutError does."""
        since, told = time.monotonic(), False
        while True:
            tell = math.inf if told else since + _QUIET_SECONDS
            until = tell if end is None else min(tell, end)
            try:
                return self._await_turn(None if until == math.inf else until)
            except TimeoutError:
                over = end is not None and time.monotonic() >= end
            whom = self._whom()
            if whom is None:  # the turn came just now
                continue
            if over:
                raise TimeoutError(f"{self.seat.name}: waited {self._timeout:g} s for {whom}")
            told = True
            _log.warning("%s: waits for %s", self.seat.name, whom)

    def _whom(self) -> Optional[str]:
        """For whom the node waits, in the daemon's words; None: a turn came instead."""
        self._asking = True
        try:
            link = self._link()
            link.send(Frame(Type.AWAITS))
            frame = self._receive(link, time.monotonic() + _QUIET_SECONDS)
        except (Closed, TimeoutError):
            return "its daemon, which does not answer"
        finally:
            self._asking = False
        if frame.type == Type.AWAITED:
            link.done_with()
            return frame.text or "the first turn"
        self._early = frame
        return None

    def _receive(self, link: Connection, end: Optional[float]) -> Frame:
        """The frame that is waited for, until `end`; questions that come before it are answered."""
        while True:
            frame = link.receive(None if end is None else max(0.001, end - time.monotonic()))
            if frame.type == Type.AWAITED and not self._asking:  # an answer that a turn has overtaken
                link.done_with()
                continue
            if frame.type == Type.CLAIMED and frame.turn != self._awaited:  # nobody waits for it any more
                link.done_with()
                if frame.turn == 0 and frame.code and self._awaited is None:  # the claim from before the daemon came back holds no more
                    raise Refused(frame.text, frame.code)
                continue
            if frame.type not in (Type.EVALUATE, Type.PREDICT):
                return frame
            self._answering = True
            descriptors: List[int] = []
            try:
                answer, descriptors = self._questions.answer(frame, link.descriptor)
                link.send(answer, descriptors)
            finally:
                self._answering = False
                for descriptor in descriptors:
                    os.close(descriptor)
            link.done_with()

    def await_turn(self, timeout: Optional[float] = None) -> Mixed:
        """Wait for the next turn, which may have come already; `timeout` in seconds. Raises TimeoutError."""
        if self.turn:  # an interrupt came before it was shown
            return self.mixed
        return self._await_turn(None if timeout is None else time.monotonic() + timeout)

    def _await_turn(self, end: Optional[float] = None) -> Mixed:
        while True:
            try:
                link = self._link()
                link.post(self._outbox)
                frame = self._early or self._receive(link, end)
            except Closed:
                self._drop()
                continue
            self._early = None
            if frame.type == Type.REFUSED:  # a neighbour trains another model
                raise refusal(frame)
            if frame.type not in (Type.TURN, Type.STOP):
                raise Error(f"the daemon sent {frame.type.name} in the place of a turn")
            if frame.type == Type.STOP or frame.code or frame.turn > self._answered:
                break
            link.done_with()  # a signal made us read it twice
        if frame.code:
            self._lost = True  # steps until the next turn do not count
            link.done_with()
            raise bad_step(frame, self._memory.layout)
        self._take(frame)
        link.done_with()
        return self.mixed

    def _take(self, frame: Frame) -> None:
        """A turn, or the end of all turns; of an open end it is the program that knows it."""
        self.over = frame.type == Type.STOP
        if frame.type == Type.STOP:
            self.mixed = dataclasses.replace(self.mixed, exchanged=False, jumped=Flag.JUMPED in frame.flags,
                                             skipped=self._lost or Flag.SKIPPED in frame.flags, stop=True)
        else:
            self.rounds = self._wanted if frame.rounds < 0 else frame.rounds
            self.over = frame.rounds < 0 and self._wanted is not None and frame.round >= self._wanted
            self.mixed = Mixed(frame.round, frame.weight, Flag.EXCHANGED in frame.flags, Flag.JUMPED in frame.flags,
                               self._lost or Flag.SKIPPED in frame.flags, stop=self.over)
            if frame.size > 0 and (frame.index, frame.size) != (self.seat.index, self.seat.size):  # after a reload
                self.seat = dataclasses.replace(self.seat, index=frame.index, size=frame.size)
            if frame.rows > 0:
                self.parameters_round = frame.rows - 1
                _log.warning("%s: the node is in round %d, and its parameters are those of round %d", self.seat.name,
                             frame.round, frame.rows - 1)
            if Flag.SAME_UPDATES in frame.flags:
                self.same_updates = frame.text
        self._lost = False
        self.turn = 0 if frame.type == Type.STOP else frame.turn  # last: before it, an interrupt lets the frame be read again

    def decide(self, word: str, timeout: Optional[float], first: bool = False) -> List[str]:
        """Tell a word, and wait for those of all members, in an order that is everybody's. Raises TimeoutError with the
        names of those that are missing; called again it goes on, with the word that was told first. With `first` the word is
        for the first decision since the daemons came up. If the fleet has made that decision before, the list is empty."""
        if self._answering:
            raise Error("a program that answers a question cannot decide: on_evaluate and on_predict may not call this")
        end = None if timeout is None else time.monotonic() + timeout
        told: Optional[Connection] = None
        words: List[str] = []
        while True:
            try:
                link = self._link()
                if told is not link:  # the first, or the daemon has come back and knows nothing of it
                    link.send(Frame(Type.TELL, Flag.FIRST if first else Flag.NONE, text=word))
                    told, words = link, []
                frame = self._receive(link, end)
            except Closed:
                self._drop()
                continue
            except TimeoutError:
                assert told is not None
                told.send(Frame(Type.TELL, code=-errno.ETIMEDOUT))
                end = None  # the answer comes at once
                continue
            if frame.type in (Type.TURN, Type.STOP):
                self._early = frame
            elif frame.type != Type.TOLD:
                raise Error(f"the daemon answered a word with {frame.type.name}")
            link.done_with()
            if frame.code == -errno.EALREADY:
                return []
            if frame.code == -errno.EAGAIN:
                raise TimeoutError(f"waited {timeout:g} s for {frame.text}, who have not come to this call")
            if frame.code:
                raise Refused(frame.text, frame.code)
            if frame.type == Type.TOLD:
                words += frame.text.splitlines()
                if len(words) >= frame.size:
                    return words

    def claim(self, text: str) -> None:
        """Claim privacy, and wait until the daemon has taken the claim. Raises Refused; what was claimed before then holds on."""
        if self._answering:
            raise Error("a program that answers a question has no turn: on_evaluate and on_predict may not call this")
        told: Optional[Connection] = None
        self._claims += 1
        self._awaited = number = self._claims
        try:
            while True:
                try:
                    link = self._link()
                    if told is not link:  # the first, or the daemon has come back
                        link.send(Frame(Type.PRIVACY, turn=number, text=text))
                        told = link
                    frame = self._receive(link, None)
                except Closed:
                    self._drop()
                    continue
                link.done_with()
                if frame.type in (Type.TURN, Type.STOP):
                    self._early = frame
                elif frame.type != Type.CLAIMED:
                    raise Error(f"the daemon answered a claim of privacy with {frame.type.name}")
                elif frame.code:
                    raise Refused(frame.text, frame.code)
                else:
                    self._claim = text
                    return
        finally:
            self._awaited = None

    def finish(self, timeout: Optional[float]) -> Finished:
        """Own steps are done: wait until the fleet has finished. Raises TimeoutError; called again it goes on."""
        end = None if timeout is None else time.monotonic() + timeout
        self.over, self.turn = True, 0
        while True:
            try:
                link = self._link()
                if not self._finishing:
                    self._outbox = iter([Frame(Type.FINISH).pack()])
                    self._finishing = True
                link.post(self._outbox)
                frame = self._receive(link, end)
            except Closed:
                self._drop()
                continue
            if frame.type not in (Type.TURN, Type.STOP, Type.FINISHED):
                raise Error(f"the daemon answered FINISH with {frame.type.name}")
            link.done_with()
            if frame.type == Type.FINISHED:
                self.mixed = dataclasses.replace(self.mixed, round=frame.round, stop=True)
                peers = tuple(frame.text.split(", ")) if frame.text else ()
                return Finished(frame.round, Flag.DISAGREES in frame.flags, frame.distance, peers)

    def report(self, test_loss: Optional[float], test_accuracy: Optional[float], epoch: Optional[float],
               others: str) -> None:
        self._say(Frame(Type.REPORT, test_loss=number(test_loss), test_accuracy=number(test_accuracy),
                        epoch=number(epoch), text=others))

    def keep(self) -> None:
        """The daemon writes a checkpoint of this round."""
        self._say(Frame(Type.KEEP))

    def enough(self, why: str) -> None:
        self._enough = why  # to be said again to a daemon that comes back
        self._say(Frame(Type.ENOUGH, text=why))

    def detach(self) -> None:
        """Leave: the node pauses, unless it has finished."""
        if self._connection is not None:
            try:
                self._connection.send(Frame(Type.DETACH))
            except (Closed, OSError):
                pass  # a daemon that is gone knows
        self.forget()

    def forget(self) -> None:
        """Close without a word; for a forked child, whose parent goes on."""
        if self._connection is not None:
            self._connection.close()
        self._connection, self._reconnect, self.turn = None, False, 0


class Seated:
    """A node whose program has no model yet: it knows who it is, and can do nothing."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        self.rounds: Optional[int] = None
        self.over = False
        self.turn = self.shown = 0
        self.same_updates: Optional[str] = None
        self.parameters_round: Optional[int] = None
        self.mixed = self.first = Mixed(round=0, weight=1.0)

    def _refuse(self) -> Error:
        return Error(f"{self.seat.name}: no model is attached yet; node.attach(model, optimizer) comes first")

    def mix(self, step: Step) -> Mixed:
        raise self._refuse()

    def decide(self, word: str, timeout: Optional[float], first: bool = False) -> List[str]:
        raise self._refuse()

    def finish(self, timeout: Optional[float]) -> Finished:
        raise self._refuse()

    def report(self, test_loss: Optional[float], test_accuracy: Optional[float], epoch: Optional[float],
               others: str) -> None:
        raise self._refuse()

    def keep(self) -> None:
        raise self._refuse()

    def claim(self, text: str) -> None:
        raise self._refuse()

    def enough(self, why: str) -> None:
        raise self._refuse()

    def detach(self) -> None:
        """Nobody knows of it."""

    def forget(self) -> None:
        """There is nothing to close."""


class Alone:
    """A fleet of one, without a daemon: every step is a round, and nobody is waited for."""

    def __init__(self, rounds: Optional[int]) -> None:
        self.rounds = rounds
        self.over = rounds == 0
        self.turn = self.shown = 1
        self.same_updates = None
        self.parameters_round: Optional[int] = None
        self.seat = Seat("alone", 0, 1, 0, 1, False)
        self.mixed = self.first = Mixed(round=0, weight=1.0, stop=self.over)

    def mix(self, step: Step) -> Mixed:
        if self.over:
            return dataclasses.replace(self.mixed, skipped=True)
        done = self.mixed.round + 1
        self.over = done == self.rounds
        self.mixed = Mixed(done, 1.0, stop=self.over)
        return self.mixed

    def decide(self, word: str, timeout: Optional[float], first: bool = False) -> List[str]:
        return [f"{self.seat.name} {word}"]

    def go_on(self, number: int) -> None:
        """The steps that are still to come are those after this round."""
        self.over = self.rounds is not None and number >= self.rounds
        self.mixed = Mixed(number, 1.0, stop=self.over)

    def finish(self, timeout: Optional[float]) -> Finished:
        self.over = True
        return Finished(self.mixed.round)

    def report(self, test_loss: Optional[float], test_accuracy: Optional[float], epoch: Optional[float],
               others: str) -> None:
        """Nobody asks."""

    def keep(self) -> None:
        """The script keeps its parameters itself."""

    def claim(self, text: str) -> None:
        """Nothing leaves this machine."""

    def enough(self, why: str) -> None:
        self.over = True

    def detach(self) -> None:
        """There is nobody to leave."""

    def forget(self) -> None:
        """There is nothing to close."""


def others_than(path: str) -> str:
    """For a name that may be mistyped: the nodes of this machine, in words; empty if the path is no node's, or none is
    there. In a script that was launched, no name is right."""
    if os.path.dirname(os.path.dirname(path)) != RUN:
        return ""
    if os.environ.get("SGP_SOCKET", "none") != "none":
        return f"; without a name, the script attaches to $SGP_SOCKET ({os.environ['SGP_SOCKET']})"
    names = sorted(glob.glob(f"{RUN}/*/attach.sock*"))
    return f"; nodes here: {', '.join(os.path.basename(os.path.dirname(name)) for name in names)}" if names else ""


def bad_step(frame: Frame, layout: Layout) -> Error:
    """Why a daemon did not take a step: the text is the tensor's name."""
    if frame.code != DIVERGED:
        return Refused(f"the daemon did not take the step: {frame.text}", frame.code)
    tensor = frame.text if any(entry.name == frame.text for entry in layout.tensors) else None
    return NotFinite(f"the step left values of '{frame.text}' that are not finite; nothing of it was taken, and the "
                     "node is paused", tensor)


def refusal(frame: Frame) -> Refused:
    """What a daemon that does not take this program meant."""
    if frame.code == -errno.EBUSY:
        return Busy(frame.text, frame.code)
    apart = re.search(r": (tensor \d+ is )?(.+?) here and (.+?) at (\S+?);", frame.text)
    if apart is not None:
        tensor, here, there, peer = apart.groups()
        named = there if here == "nothing" else here
        return LayoutMismatch(frame.text, frame.code, named.split(" ")[0] if tensor else None, here, there, peer)
    differs = re.search(r"tensor \d+ is (.+?) here and (.+?) in the program", frame.text)
    if differs is not None:
        there, here = differs.groups()
        named = there if here == "nothing" else here
        return LayoutMismatch(frame.text, frame.code, named.split(" ")[0], here, there)
    layout = "another model" in frame.text or "frozen parameters" in frame.text
    return LayoutMismatch(frame.text, frame.code) if layout else Refused(frame.text, frame.code)
