# SPDX-License-Identifier: Apache-2.0
"""A claim of differential privacy as it travels (include/sgp/claim.h)."""
from __future__ import annotations

import sys
from typing import Optional

_MAX = 1e9


def claim_text(epsilon: float, delta: float, noise_multiplier: Optional[float], sample_rate: Optional[float],
               clip: Optional[float]) -> str:
    """The text of a claim; None: not known. Raises ValueError for a number out of range."""
    least = sys.float_info.min
    parts = [("epsilon", "epsilon", epsilon, 0.0, _MAX, "0 to 1e9"),
             ("delta", "delta", delta, 0.0, 1 - sys.float_info.epsilon, "0 to below 1"),
             ("noise_multiplier", "noise", noise_multiplier, least, _MAX, "above 0 to 1e9"),
             ("sample_rate", "chance", sample_rate, least, 1.0, "above 0 to 1"),
             ("clip", "clip", clip, least, _MAX, "above 0 to 1e9")]
    words = []
    for name, key, given, low, high, span in parts:
        if given is None:
            continue
        value = float(given)
        if not low <= value <= high:
            raise ValueError(f"{name} is {value!r}; it must be {span}")
        words.append(f"{key}={value!r}")
    return " ".join(words)
