# SPDX-License-Identifier: Apache-2.0
"""What the tests of programs that attach by the package sgp share: daemons for them, a small network and its rows."""
import faulthandler
import os
import subprocess
import sys
import threading

import fleet
from fleet import FleetTest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # all nodes of a test share the machine; PyTorch reads it when it is imported
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
import sgp  # noqa: E402

try:
    import torch
    from torch import nn
except ImportError:
    torch = nn = None

ATTACHED = {"model.kind": "attached", "model.layers": None, "data.train": None, "data.label": None, "data.classes": None,
            "data.holdout": None, "train.epochs": None, "train.batch": None, "optimizer.learning_rate": None}
RING = [[(i, (i + 1) % 4) for i in range(4)]]
# n0 keeps 1/3 of its mass, n1 and n2 a half, n3 a quarter: weights down to 0.3
IRREGULAR = [[(0, 1), (0, 2), (1, 2), (2, 0), (2, 3), (3, 0), (3, 1), (3, 2)]]

# n3 is given to by n2 alone, and little: its weight falls to 0.17
LIGHT = [[(0, 1), (1, 2), (2, 0), (2, 1), (2, 3, 0.094), (3, 0), (3, 1), (3, 2)]]


def rows(count=512):
    """Features (count, 6), and two numbers each that a plane and a little noise make of them."""
    draw = torch.Generator().manual_seed(5)
    x = torch.randn(count, 6, generator=draw)
    y = x @ torch.randn(6, 2, generator=draw) + 0.05 * torch.randn(count, 2, generator=draw)
    return x, y.tanh()


def network(seed=1):
    with LOCK:
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))


LOCK = threading.Lock()  # of PyTorch's one generator


def step(model, optimizer, x, y):
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def loss_of(model, x, y):
    with torch.no_grad():
        return float((model(x) - y).pow(2).mean())


def flat(model):
    return torch.cat([tensor.detach().reshape(-1) for tensor in model.parameters()])


class AttachTest(FleetTest):
    def daemons(self, n, phases, options=None, present=None):
        """n daemons, of which those of `present` (else all) are in the topology file and started."""
        own = {i: {"control.attach": "n%d.attach" % i} for i in range(n)}
        f = self.fleet(n, phases=[[]] if present else phases, options=dict(ATTACHED, **(options or {})), own=own)
        if present:
            f.rewire(present, phases)
        f.start(present)
        return f

    def path(self, f, index):
        return os.path.join(f.directory, "n%d.attach" % index)

    def each(self, n, act):
        """act(i) for each node, side by side; what each returned. The first exception is raised here. `act` must not make a
        loader with workers: a fork while another thread computes may copy a lock that is held. start() has programs for that."""
        results = [None] * n

        def run(i):
            try:
                results[i] = act(i)
            except BaseException as error:
                results[i] = error
        threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(n)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(fleet.PATIENCE * 2)
        if any(thread.is_alive() for thread in threads):
            faulthandler.dump_traceback()  # on stderr: where each hangs
        for thread, result in zip(threads, results):
            self.assertFalse(thread.is_alive(), self.logs())
            if isinstance(result, BaseException):
                raise result
        return results

    def start(self, code, *arguments):
        """A program of its own, ended with the test."""
        here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python")
        program = subprocess.Popen([sys.executable, "-c", code, *arguments], text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": here, "OMP_NUM_THREADS": "1"})
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program
