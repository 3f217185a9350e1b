# SPDX-License-Identifier: Apache-2.0
"""What a daemon is doing, for notebooks: its control socket as Python."""
from __future__ import annotations

import http.client
import json
import socket
import struct
import time
from typing import Any, Callable, Dict, List, Optional

from .errors import Error, NoDaemon
from .protocol import socket_of

_POLL_SECONDS = 0.2
_ANSWER_SECONDS = 30.0
_PAGE_ROWS = 1024  # the most that the daemon gives at a time


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: Optional[float]) -> None:
        super().__init__("localhost")
        self._path, self._timeout = path, timeout

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # A connect that blocks waits its turn where the daemon's queue is full; one with settimeout() would not.
        if self._timeout is not None:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", int(self._timeout), 0))
        self.sock.connect(self._path)
        self.sock.settimeout(self._timeout)


class Client:
    """Asks the daemon behind a control socket.

    `socket` is the node's name ("n0": /run/sgpd/n0/control.sock) or the socket's path. Every call raises NoDaemon if no daemon
    listens, and Error with the daemon's line if it refuses."""

    def __init__(self, socket: str) -> None:
        self.path = socket_of(socket, "control.sock")

    def _ask(self, method: str, path: str, timeout: Optional[float] = _ANSWER_SECONDS) -> Any:
        connection = _Connection(self.path, timeout)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            body = answer.read()
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise NoDaemon(f"no daemon listens at {self.path}: {error.strerror}") from None
        except ConnectionError:  # it ends, or begins with the model that a program has brought
            raise NoDaemon(f"the daemon at {self.path} hung up") from None
        except (OSError, http.client.HTTPException) as error:
            raise Error(f"{self.path} did not answer: {error}") from error
        finally:
            connection.close()
        value = json.loads(body)
        if answer.status != 200:
            raise Error(str(value["error"]["message"]))
        return value

    def status(self) -> Dict[str, Any]:
        """The fields of ``sgpctl status``: state, round, epoch, loss, test_accuracy (0 to 1), weight, and others
        (docs/CONFIGURATION.md)."""
        value: Dict[str, Any] = self._ask("GET", "/v1/status")
        return value

    def peers(self) -> List[Dict[str, Any]]:
        """The node's links, one for a neighbour and direction."""
        value: List[Dict[str, Any]] = self._ask("GET", "/v1/peers")
        return value

    def history(self) -> List[Dict[str, Any]]:
        """Figures over time, oldest first: the rows of history.csv that the daemon still has."""
        rows: List[Dict[str, Any]] = []
        since = 0
        while True:
            page: Dict[str, Any] = self._ask("GET", f"/v1/history?since={since}&limit={_PAGE_ROWS}")
            rows += page["rows"]
            since = page["next"]
            if since >= page["total"]:
                return rows

    def evaluate(self) -> Dict[str, Any]:
        """Measure the estimate on the held-out rows now, however long that takes: samples, loss, accuracy (0 to 1), and
        "measures" by class or column (docs/OWN-DATA.md), None for a program's model or for more than 100 outputs."""
        value: Dict[str, Any] = self._ask("POST", "/v1/evaluate", None)
        return value

    def wait(self, condition: str = "finished", timeout: Optional[float] = None) -> Dict[str, Any]:
        """Wait until the node meets a condition, and return its status then. `condition` is as in ``sgpctl wait``: "ready",
        "round:N", "epoch:N", "accuracy:A" (0 to 1), "disagreement:D" (at most), "peers:N" (connected) or "finished".
        `timeout` in seconds; None: no limit. The call also waits for a daemon that does not listen yet. Raises TimeoutError,
        Error (the node has finished without meeting the condition), ValueError (another condition)."""
        met = self._condition(condition)
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            status = self._status_if_there()
            if status is not None and met(status):
                return status
            if status is not None and status["state"] == "finished":
                raise Error(f"{status['name']} has finished, and '{condition}' was not met")
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"waited {timeout:g} s for '{condition}'")
            time.sleep(_POLL_SECONDS)

    def _status_if_there(self) -> Optional[Dict[str, Any]]:
        try:
            return self.status()
        except NoDaemon:
            return None

    def _condition(self, condition: str) -> Callable[[Dict[str, Any]], bool]:
        word, _, text = condition.partition(":")
        if condition == "ready":
            return lambda status: True
        if condition == "finished":
            return lambda status: bool(status["state"] == "finished")
        conditions: Dict[str, Callable[[Dict[str, Any], float], bool]] = {
            "round": lambda status, goal: status["round"] is not None and status["round"] >= goal,
            "epoch": lambda status, goal: bool((status["epoch"] or 0) >= goal),
            "accuracy": lambda status, goal: status["test_accuracy"] is not None and status["test_accuracy"] >= goal,
            "disagreement": lambda status, goal: status["disagreement"] is not None and status["disagreement"] <= goal,
            "peers": lambda status, goal: self._connected() >= goal}
        try:
            test, goal = conditions[word], float(text)
        except (KeyError, ValueError):
            raise ValueError(f"'{condition}' is no condition; one of ready, finished, "
                             f"{', '.join(name + ':N' for name in conditions)}") from None
        return lambda status: test(status, goal)

    def _connected(self) -> int:
        return len({peer["name"] for peer in self.peers() if peer["state"] == "up"})
