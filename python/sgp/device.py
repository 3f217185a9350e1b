# SPDX-License-Identifier: Apache-2.0
"""The copiers of a model: how tensors that cannot be views of the shared memory are copied to it and back.

A tensor on a GPU is copied on a stream of its own, from and to memory that the GPU's copy engines read directly (pinned). The
processor waits only before the memory changes hands; the program's own stream waits for the copies that it needs."""
from __future__ import annotations

import logging
from typing import Any, Callable, Dict, List, Optional

import torch

from .memory import Memory

_log = logging.getLogger("sgp")
_PORTABLE = 1  # cudaHostRegisterPortable: pinned for every GPU of the process


class Copier:
    """Copies of tensors on one device, in order. Here they are done when a call returns: so it is on the processor, which copies
    tensors of half precision, and on devices whose streams this package does not know."""

    non_blocking = False  #: how tensors are copied; with True a copy may be under way when its call returns
    small = 0  #: a tensor of fewer values is copied together with its neighbours, because a copy takes some time at any size

    def adopt(self, tensor: torch.Tensor) -> None:
        """A tensor of the program is copied from now on, as long as it has its present memory."""

    def run(self, work: Callable[[], None]) -> None:
        """Do copies, and the arithmetic between them, after all that the program has computed so far."""
        work()

    def fence(self) -> None:
        """What the program computes from now on sees the work done so far. The processor does not wait."""

    def synchronize(self) -> None:
        """Wait until all work is done: nothing reads or writes the shared memory any more."""


class CudaCopier(Copier):
    """Copies on a stream of a GPU. The program's own stream is the current one of the thread that calls.

    `device` is the GPU; `cuda` has what is used of torch.cuda."""

    non_blocking = True
    small = 1 << 16

    def __init__(self, device: torch.device, cuda: Any = torch.cuda) -> None:
        self.cuda, self._device = cuda, device
        self.stream = cuda.Stream(device=device)  #: on which the copies run

    def adopt(self, tensor: torch.Tensor) -> None:
        # When the program frees it, its memory is not given to another tensor before its copies are done.
        tensor.detach().record_stream(self.stream)

    def run(self, work: Callable[[], None]) -> None:
        self.stream.wait_stream(self.cuda.current_stream(self._device))
        with self.cuda.stream(self.stream):
            work()

    def fence(self) -> None:
        self.cuda.current_stream(self._device).wait_stream(self.stream)

    def synchronize(self) -> None:
        self.stream.synchronize()


class Pin:
    """The shared memory, pinned, so that a GPU copies it at full rate and while the processor goes on."""

    def __init__(self, memory: Memory, cuda: Any = torch.cuda) -> None:
        """Pin it. If the driver refuses, a line of the logger "sgp" says so, and copies are those of ordinary memory: slower, and
        the processor waits for them."""
        self._cuda, self._address = cuda, torch.frombuffer(memory.map, dtype=torch.uint8).data_ptr()
        self.done = False  #: whether it is pinned
        try:
            code = int(cuda.cudart().cudaHostRegister(self._address, memory.size, _PORTABLE))
            self.done, why = code == 0, f"error {code} of cudaHostRegister"
        except Exception as error:  # there is no driver, or its binding knows no such call or no such answer
            why = str(error).split("\n", maxsplit=1)[0]
        if not self.done:
            _log.warning("the memory that is shared with the daemon cannot be pinned: %s; copies to the GPU and back take longer", why)
            self._forget_error()

    @staticmethod
    def _forget_error() -> None:
        """The runtime keeps an error until it is asked, and PyTorch would take it for one of the next kernel."""
        try:
            torch.zeros(1, device="cuda").add_(1)
        except (RuntimeError, AssertionError):
            pass

    def close(self) -> None:
        """Nothing is copied any more, and the memory is still mapped."""
        if self.done:
            self._cuda.cudart().cudaHostUnregister(self._address)
        self.done = False


def copier_of(device: torch.device) -> Copier:
    """A copier for the tensors of a device."""
    return CudaCopier(device) if device.type == "cuda" else Copier()


class Copiers:
    """Those of one model, each made when it is first asked for. With the first GPU's the memory is pinned."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._copiers: Dict[torch.device, Copier] = {}
        self._pin: Optional[Pin] = None

    def of(self, device: torch.device) -> Copier:
        """The copier of a device."""
        if device not in self._copiers:
            copier = self._copiers[device] = copier_of(device)
            if isinstance(copier, CudaCopier) and self._pin is None:
                self._pin = Pin(self._memory, copier.cuda)
        return self._copiers[device]

    def all(self) -> List[Copier]:
        """The copiers that were asked for."""
        return list(self._copiers.values())

    def synchronize(self) -> None:
        """Wait for all of them. They have worked side by side."""
        for copier in self._copiers.values():
            copier.synchronize()

    def close(self) -> None:
        """Wait for all, and unpin the memory."""
        self.synchronize()
        if self._pin is not None:
            self._pin.close()
        self._copiers, self._pin = {}, None
