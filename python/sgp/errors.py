# SPDX-License-Identifier: Apache-2.0
"""What can go wrong. Every text is one line that says what was wrong and what would be right."""
from __future__ import annotations

from typing import Optional


class Error(Exception):
    """The base of all errors of this package. It is raised itself if no class below fits. The text is one line."""


class TrainingWarning(UserWarning):
    """Training continues, but probably not as you intended. ``warnings.simplefilter("error", sgp.TrainingWarning)`` makes it an
    error."""


class NoDaemon(Error):
    """No daemon listens at the socket: start sgpd, or attach with ``required=False`` to train alone."""


class Disconnected(Error):
    """The daemon has gone while the program was attached. The steps since its last checkpoint may be lost, no others.
    With ``reconnect=True`` this is raised only when its return took longer than ``timeout``."""


class Refused(Error):
    """The daemon refuses this program; the text says why. ``code`` is a number of sgp/status.h, or -errno."""

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = code


class Busy(Refused):
    """Another program is attached to this daemon: end it first, or attach to another daemon."""


class LayoutMismatch(Refused):
    """The node, or a neighbour, trains another model. ``tensor`` is the first that differs, ``here`` what it is in this program
    ("conv1.weight [16, 1, 3, 3]", or "nothing") and ``there`` in the other model. ``peer`` is the neighbour that trains it; None: it is
    the model of this node. If the frozen parameters differ, ``tensor`` is None, and ``here`` and ``there`` are digests of them."""

    def __init__(self, text: str, code: int = 0, tensor: Optional[str] = None, here: Optional[str] = None,
                 there: Optional[str] = None, peer: Optional[str] = None) -> None:
        super().__init__(text, code)
        self.tensor, self.here, self.there, self.peer = tensor, here, there, peer


class AlreadyFinished(Error):
    """The node has finished its run, and would take no step of this program. Either begin another run
    (``sgp.attach(..., fresh=True)``, or ``sgpctl reset NAME`` on every node), or fetch the model with
    ``sgpctl export``."""


class ViewsLost(Error):
    """A parameter no longer lies where the daemon sees it, and cannot be put back: ``tensor`` names it, ``cause`` says
    what became of it. Change the model before attaching to it."""

    def __init__(self, tensor: str, cause: str) -> None:
        super().__init__(f"parameter '{tensor}' {cause}")
        self.tensor, self.cause = tensor, cause


class NotFinite(Error):
    """The step left a value that is not finite. Nothing of it was taken, the parameters are what they were before it,
    and the node is paused. ``sgpctl resume`` lets it go on: the next mix() waits for that, and what was done meanwhile
    does not count. ``tensor`` names the first, or is None."""

    def __init__(self, text: str, tensor: Optional[str] = None) -> None:
        super().__init__(text)
        self.tensor = tensor
