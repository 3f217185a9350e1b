#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Parameters on a GPU: the time of their copies in a round, and what runs meanwhile.

The package copies them from and to pinned memory, on a stream of their own, small tensors together.
The baseline copies one tensor after the other, from and to ordinary memory, and waits for each.
A round copies all parameters to the host and back.
`host` is the time until the call returns, while copies may be under way.
`overlap` is the part of the shorter of two, copies and kernels, that passes during the other: 1 if all of it does.
The kernels are products of matrices on another stream of the program.
The last cases are whole calls of `mix` of one node with its daemon, if BUILD has one.
With `overlap` the daemon works during the next step, which takes as long as a `mix` that waits.

Without a GPU, small models are copied on the processor, and only show that the program runs.
"""
import contextlib
import os
import statistics
import time
import unittest.mock

import figures
import fleet
from counted import ATTACHED

try:
    import torch
    from torch import nn
except ImportError:
    torch = nn = None
else:
    import sys
    sys.path.insert(0, os.path.join(figures.ROOT, "python"))
    import sgp
    import sgp.device
    import sgp.torch_model
    from sgp.entry import housed, model_of

GPU = torch is not None and torch.cuda.is_available()
WARMUP = 3
SECONDS = 0.2  # that the rounds of one run are to take


class Residual(nn.Module if nn else object):
    """The tensors of a residual network of blocks of two convolutions with batch norms (He et al. 2016)."""

    def __init__(self, inputs, widths, blocks):
        super().__init__()
        self.layers, before = nn.ModuleList([nn.Conv2d(inputs, widths[0], 3, bias=False), nn.BatchNorm2d(widths[0])]), widths[0]
        for width in widths:
            for _ in range(blocks):
                if width != before:
                    self.layers.extend([nn.Conv2d(before, width, 1, bias=False), nn.BatchNorm2d(width)])
                self.layers.extend([nn.Conv2d(before, width, 3, bias=False), nn.BatchNorm2d(width),
                                    nn.Conv2d(width, width, 3, bias=False), nn.BatchNorm2d(width)])
                before = width
        self.layers.append(nn.Linear(before, 10))


class Gpt(nn.Module if nn else object):
    """The tensors of a GPT-2: embeddings, of which that of words is also the last layer, and blocks."""

    def __init__(self, layers, width, words, places):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(places, width)
        self.layers = nn.ModuleList()
        for _ in range(layers):
            self.layers.extend([nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width), nn.LayerNorm(width),
                                nn.Linear(width, 4 * width), nn.Linear(4 * width, width)])
        self.last = nn.LayerNorm(width)


MODELS = {
    "residual 0.3M": lambda: Residual(1, (16, 32, 64), 3),
    "residual 11M": lambda: Residual(3, (64, 128, 256, 512), 2),
    "GPT 10M": lambda: Gpt(6, 384, 65, 256),
    "GPT 124M": lambda: Gpt(12, 768, 50304, 1024),
}
TINY = {"residual 0.02M": lambda: Residual(1, (8, 16), 2), "GPT 0.1M": lambda: Gpt(2, 64, 65, 32)}


def finished():
    if GPU:
        torch.cuda.synchronize()


class Package:
    """A module as the package shares it; copied, wherever it is."""

    def __init__(self, module):
        self.shared = model_of(module, "average", "trainable")
        self.memory = housed(self.shared)
        self.gather, self.scatter = self.shared.gather, self.shared.scatter
        pin = self.shared._copiers._pin
        self.pinned = pin is not None and pin.done
        self.stream = getattr(self.shared._copiers.all()[0], "stream", None)

    def close(self):
        self.shared.release()
        self.memory.close()


class Plain:
    """The same tensors, copied one after the other from and to ordinary memory."""

    def __init__(self, module):
        self.tensors = [*module.parameters(), *(buffer for buffer in module.buffers() if buffer.is_floating_point())]
        self.views = [torch.empty(tensor.shape) for tensor in self.tensors]

    def gather(self):
        with torch.no_grad():
            for tensor, view in zip(self.tensors, self.views):
                view.copy_(tensor)

    def scatter(self):
        with torch.no_grad():
            for tensor, view in zip(self.tensors, self.views):
                tensor.copy_(view)

    def close(self):
        pass


def seconds_of(act, wait=finished):
    """Of one call, the median of several; `wait` is called before the clock is read again."""
    times, end = [], None
    while end is None or len(times) < WARMUP + 3 or (time.perf_counter() < end and len(times) < 300):
        finished()
        begin = time.perf_counter()
        end = end or begin + SECONDS
        act()
        wait()
        times.append(time.perf_counter() - begin)
        finished()
    return statistics.median(times[WARMUP:])


def made(make, kind=None):
    module = make().to("cuda" if GPU else "cpu")
    return module if kind is None else module.to(kind)


def compare_copies(options, name, module):
    """Rounds, and the time that the host spends in the second half of one."""
    ours, plain = Package(module), Plain(module)
    try:
        def of_both(contender):
            def act():
                contender.gather()
                contender.scatter()
            return seconds_of(act)

        count = sum(tensor.numel() for tensor in plain.tensors)
        case = f"{name}, {len(plain.tensors)} tensors"
        rounds = figures.alternate(options.runs, {"ours": lambda: of_both(ours), "plain": lambda: of_both(plain)})
        figures.tell("device", f"{case}: a round", "ms", [1e3 * s for s in rounds["ours"]], "plain copies",
                     [1e3 * s for s in rounds["plain"]], pinned=ours.pinned)
        both_ways = 2 * 4 * count / 1e9  # what travels is float32
        figures.tell("device", f"{case}: bytes of a round", "GB/s", [both_ways / s for s in rounds["ours"]], "plain copies",
                     [both_ways / s for s in rounds["plain"]])
        for what in ("gather", "scatter"):
            host = figures.alternate(options.runs, {
                "ours": lambda what=what: seconds_of(getattr(ours, what), lambda: None),
                "plain": lambda what=what: seconds_of(getattr(plain, what), lambda: None)})
            figures.tell("device", f"{case}: {what}, host", "ms", [1e3 * s for s in host["ours"]], "plain copies",
                         [1e3 * s for s in host["plain"]])
        if GPU:
            overlap(options, case, ours)
    finally:
        ours.close()


def products(size, count):
    """Kernels that keep the GPU busy: a function that gives them out."""
    a = torch.randn(size, size, device="cuda")
    out = torch.empty_like(a)

    def act():
        for _ in range(count):
            torch.mm(a, a, out=out)
    return act


def overlap(options, case, ours):
    """By events: kernels on one stream and the copies of a round on another, each alone and together."""
    own = torch.cuda.Stream()
    single = seconds_of(products(2048, 1))
    alone = seconds_of(lambda: (ours.gather(), ours.scatter()))
    kernels = products(2048, max(1, round(alone / single)))

    def event(stream):
        mark = torch.cuda.Event(enable_timing=True)
        mark.record(stream)
        return mark

    def run(with_kernels, with_copies):
        """Milliseconds from the beginning to: the end of the kernels, the begin and the end of the copies."""
        finished()
        begin = event(torch.cuda.current_stream())
        ends = [begin, begin, begin]
        if with_kernels:
            own.wait_event(begin)
            with torch.cuda.stream(own):
                kernels()
            ends[0] = event(own)
        if with_copies:
            ours.stream.wait_event(begin)
            ends[1] = event(ours.stream)
            ours.gather()
            ours.scatter()
            ends[2] = event(ours.stream)
        finished()
        return [begin.elapsed_time(end) for end in ends]

    for _ in range(WARMUP):
        run(True, True)
    parts, during = [], []
    for _ in range(max(options.runs, 5)):
        compute, copies = run(True, False)[0], run(False, True)[2]
        end, first, last = run(True, True)
        parts.append((compute + copies - max(end, last)) / min(compute, copies))
        during.append(max(0.0, min(end, last) - first))
    figures.tell("device", f"{case}: overlap of copies and kernels", "part", parts)
    figures.tell("device", f"{case}: copies under way while kernels ran", "ms", during)


# ---- with a daemon


class WaitingCopier(sgp.device.Copier if torch else object):
    """As copies were: on the program's own stream, which the processor waits for."""

    def synchronize(self):
        finished()

    fence = synchronize


def mix_seconds(module, turns, plain=False, busy=None, **options):
    """Of one call of mix(), of one node without neighbours; after `busy`, if given, and with it."""
    f = fleet.Fleet(1, phases=[[]], options=ATTACHED, own={0: {"control.attach": "n0.attach"}})
    with contextlib.ExitStack() as stack:
        stack.callback(f.close)
        if plain:
            stack.enter_context(unittest.mock.patch.object(sgp.device, "copier_of", lambda device: WaitingCopier()))
        f.start()
        path = os.path.join(f.directory, "n0.attach")
        f.wait("the socket", lambda: os.path.exists(path))
        node = sgp.attach(module, name=path, timeout=60, **options)
        times = []
        try:
            for _ in range(WARMUP + turns):
                begin = time.perf_counter()
                if busy is not None:
                    busy()
                    finished()  # as a program that looks at its loss
                node.mix()
                finished()
                times.append(time.perf_counter() - begin)
        finally:
            node.detach()
        return statistics.median(times[WARMUP:])


def busy_for(seconds):
    """What takes so long: kernels, or a wait in the place of them."""
    if not GPU:
        return lambda: time.sleep(seconds)
    single = seconds_of(products(2048, 10)) / 10
    return products(2048, max(1, round(seconds / single)))


def with_a_daemon(options, models):
    fleet.SGPD = os.path.join(options.build, "daemon/sgpd")
    if not os.path.exists(fleet.SGPD):
        raise figures.Skip(f"no daemon at {fleet.SGPD}: the calls of mix with one")
    for name, module in models.items():
        large = sum(tensor.numel() for tensor in module.parameters()) > 5e7
        turns, runs = 6 if large else 50, min(options.runs, 3)
        results = figures.alternate(runs, {"ours": lambda: mix_seconds(module, turns),
                                           "plain": lambda: mix_seconds(module, turns, plain=True)})
        figures.tell("device", f"{name}: mix of one node with its daemon", "ms", [1e3 * s for s in results["ours"]],
                     "plain copies", [1e3 * s for s in results["plain"]])
        busy = busy_for(statistics.median(results["ours"]))
        results = figures.alternate(runs, {"ahead": lambda: mix_seconds(module, turns, busy=busy, overlap=True),
                                           "waits": lambda: mix_seconds(module, turns, busy=busy)})
        figures.tell("device", f"{name}: a step as long as its mix, and mix, with overlap", "ms",
                     [1e3 * s for s in results["ahead"]], "without overlap", [1e3 * s for s in results["waits"]])


def measure(options):
    if torch is None:
        raise figures.Skip("PyTorch is not installed: apt-get install python3-torch")
    if not GPU:
        figures.skipped("device", "no GPU: copies on the processor")
        torch.set_num_threads(1)
        sgp.torch_model.lies_here = lambda tensor: False  # tensors are copied, as on a GPU
    torch.manual_seed(1)
    chosen = dict(MODELS if GPU else TINY)
    if options.quick and GPU:
        del chosen["GPT 124M"]
    if GPU and options.model != "all":
        chosen = {options.model: MODELS[options.model]}
    models = {name: made(make) for name, make in chosen.items()}
    if options.part in ("all", "copies"):
        for name, module in models.items():
            compare_copies(options, name, module)
        name = list(chosen)[-1]
        compare_copies(options, name + " in bfloat16", made(chosen[name], torch.bfloat16))
    if options.part in ("all", "mix"):
        figures.attempt("device", lambda _: with_a_daemon(options, models), options)


if __name__ == "__main__":
    figures.main("device", measure, __doc__, part=("all", "copies", "mix"), model=("all", *MODELS))
