# SPDX-License-Identifier: Apache-2.0
"""Marks for PyTorch's profiler."""
from __future__ import annotations

import contextlib
import sys
from typing import Any, ContextManager


def marked(name: str) -> ContextManager[Any]:
    """What runs inside is shown under this name by ``torch.profiler``. Nothing, in a program that has not imported torch."""
    torch = sys.modules.get("torch")
    return contextlib.nullcontext() if torch is None else torch.profiler.record_function(name)  # type: ignore[no-any-return]
