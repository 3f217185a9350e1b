# SPDX-License-Identifier: Apache-2.0
"""What all programs decide alike: each tells a few numbers, and all compute the same of the same numbers."""
from __future__ import annotations

import struct
from typing import Callable, Dict, List, Sequence

from .errors import Error

VALUES_MAX = 8  #: numbers of one word


def word_of(call: str, values: Sequence[float]) -> str:
    """A call and its numbers, bit for bit. Raises Error for too many."""
    if not 1 <= len(values) <= VALUES_MAX:
        raise Error(f"{call} takes 1 to {VALUES_MAX} numbers; these are {len(values)}")
    return " ".join([call, *(struct.pack(">d", value).hex() for value in values)])


def common(own: str, words: List[str]) -> Dict[str, List[float]]:
    """The numbers of all members by name, in an order that is everybody's. Raises Error where programs are at unlike calls: all
    of them, for all see the same words."""
    rows: Dict[str, List[float]] = {}
    for line in words:
        name, call, *values = line.split(" ")
        mine = own.split(" ")
        if call != mine[0] or len(values) != len(mine) - 1:
            raise Error(f"{name} is at {call}() with {len(values)} numbers where this program is at {mine[0]}() with "
                        f"{len(mine) - 1}; all programs must come to the same calls in the same order")
        try:
            rows[name] = [struct.unpack(">d", bytes.fromhex(value))[0] for value in values]
        except (ValueError, struct.error):
            raise Error(f"{name} says {' '.join(values)!r} in {call}(), which are no numbers; a member runs another program, or "
                        "lies") from None
    return rows


def decided(call: str, values: Sequence[float], ask: Callable[[str], List[str]]) -> Dict[str, List[float]]:
    """What all members told in this call, by the daemon's `ask`. Empty: it was for the first decision, which has been."""
    word = word_of(call, values)
    return common(word, ask(word))


def means(rows: Sequence[List[float]]) -> List[float]:
    """Of each column, in float64, added up from the first row on: the same bits from the same rows."""
    sums = [0.0] * len(rows[0])
    for row in rows:
        sums = [total + value for total, value in zip(sums, row)]
    return [total / len(rows) for total in sums]
