# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C in work that must not be done by half."""
from __future__ import annotations

import contextlib
import signal
import threading
from typing import Any, Iterator, List


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """A Ctrl-C inside takes effect at the end. It raises nothing before, in the main thread; in others it never does."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is None:
        yield
        return
    came: List[Any] = []
    handler = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            signal.raise_signal(signal.SIGINT)
