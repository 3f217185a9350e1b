#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tensors that are copied to the shared memory and back: the copiers of devices, with a GPU that is none, float32 masters of tensors
of half precision, and programs that do not wait for their turns. tests/system/test_device.py has both with real daemons, and with a GPU where one is."""
import contextlib
import copy
import faulthandler
import signal
import tempfile
import types
import unittest
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import common
import fake_daemon
import sgp
from fake_daemon import FakeDaemon

try:
    import torch
    from torch import nn
except ImportError:
    print("1..0 # SKIP not installed: python3-torch")
    raise SystemExit from None
from sgp import torch_model
from sgp.interrupt import uninterrupted
from sgp.device import CudaCopier, Copier, Copiers, Pin, copier_of
from sgp.memory import Layout, Memory

torch.set_num_threads(1)
BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32


class Stream:
    """Work is done when a caller waits for it, and no sooner. A caller that forgets to wait sees the former values."""

    def __init__(self, device=None):
        self.late = []

    def wait_stream(self, other):
        other.synchronize()

    def synchronize(self):
        while self.late:
            self.late.pop(0)()


class Cuda:
    """What is used of torch.cuda. `refuses` is the error that pinning ends with, or an exception."""

    Stream = Stream

    def __init__(self, refuses=0):
        self.own, self.refuses, self.calls, self.on = Stream(), refuses, [], None

    def current_stream(self, device):
        return self.own

    @contextlib.contextmanager
    def stream(self, stream):
        self.on = stream
        yield
        self.on = None

    def cudart(self):
        if isinstance(self.refuses, Exception):
            raise self.refuses
        return types.SimpleNamespace(cudaHostRegister=self.register, cudaHostUnregister=self.unregister)

    def register(self, address, size, flags):
        self.calls.append(("register", address, size, flags))
        return self.refuses

    def unregister(self, address):
        self.calls.append(("unregister", address))
        return 0


class LateCopier(CudaCopier):
    """The copier of a GPU, whose work is late; `adopted` are the addresses of tensors that it was told of."""

    def __init__(self, device, cuda):
        super().__init__(device, cuda)
        self.adopted = []

    def adopt(self, tensor):
        self.adopted.append(tensor.data_ptr())

    def run(self, work):
        super().run(lambda: self.cuda.on.late.append(work))


def network(seed=1, kind=torch.float32):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 2))
    return model.to(kind)


def step(model, optimizer, seed=0):
    kind = model[0].weight.dtype
    x = torch.randn(16, 6, generator=torch.Generator().manual_seed(seed)).to(kind)
    optimizer.zero_grad()
    loss = (model(x) - x[:, :2]).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss


class DeviceTest(unittest.TestCase):
    def setUp(self):
        faulthandler.dump_traceback_later(common.PATIENCE, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)

    def attach(self, model, optimizer=None, daemon=None, **options):
        """A node, and its daemon."""
        self.fake = FakeDaemon(**(daemon or {}))
        self.addCleanup(self.fake.close)
        node = sgp.attach(model, optimizer, name=self.fake.path, **options)
        self.addCleanup(node.detach)
        return node

    def in_memory(self):
        """What the daemon sees."""
        return torch.from_numpy(self.fake.program.z.copy())

    @contextlib.contextmanager
    def on_a_late_gpu(self, cuda):
        """All tensors of a model are on a GPU that is none; yields its copiers."""
        copiers = []

        def make(device):
            copiers.append(LateCopier(device, cuda))
            return copiers[-1]
        with mock.patch("sgp.torch_model.lies_here", lambda tensor: False), mock.patch("sgp.device.copier_of", make):
            yield copiers


class CopierTest(DeviceTest):
    def train(self, kind=torch.float32):
        """The parameters and buffers after each of ten steps, and what the daemon saw of them."""
        model = network(kind=kind)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        seen = []
        with self.attach(model, optimizer, {"drift": 0.01, "weight": 0.5}) as node:
            for number in range(10):
                node.mix(loss=step(model, optimizer, number))
                seen += [tensor.clone() for tensor in model.state_dict().values()] + [self.in_memory()]
        return seen + list(model.state_dict().values())

    def test_late_copies_give_the_same_bits(self):
        """Whatever is copied on a stream is waited for: by the processor before the daemon has the memory, and by the program's
        stream before it reads the parameters."""
        for kind in (torch.float32, BF16):
            here, cuda = self.train(kind), Cuda()
            with self.on_a_late_gpu(cuda) as copiers:
                there = self.train(kind)
            self.assertEqual(len(copiers), 1)
            self.assertFalse(copiers[0].stream.late)
            for ours, theirs in zip(there, here):
                self.assertTrue(torch.equal(ours, theirs), kind)
            self.assertEqual([call[0] for call in cuda.calls], ["register", "unregister"])
            self.assertEqual(cuda.calls[0][1], cuda.calls[1][1])

    def test_a_kept_graph_raises(self):
        """Of tensors that were copied together, by one call of PyTorch or in a loop."""
        def one_by_one(targets, sources):
            together.append(len(targets))
            for target, source in zip(targets, sources):
                target.copy_(source)
        together = []
        for name in (None, one_by_one):
            for kind in (FP32, BF16):
                with self.on_a_late_gpu(Cuda()), mock.patch.object(torch, "_foreach_copy_", name, create=True) if name else \
                        contextlib.nullcontext():
                    model = network(kind=kind)
                    node = self.attach(model, daemon={"drift": 1.0})
                    loss = model(torch.ones(4, 6, dtype=kind)).sum()
                    node.mix()
                    with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                        loss.backward()
        self.assertTrue(together)

    def test_a_question_leaves_no_copy_under_way(self):
        """The daemon has the memory again with the answer, even where the program did not look at its parameters."""
        settled = []
        with self.on_a_late_gpu(Cuda()) as copiers:
            model = network()
            with self.attach(model, daemon={"questions": [None]},
                             on_evaluate=lambda: settled.append(not copiers[0].stream.late) or {"rows": 1}) as node:
                node.mix()
        self.assertEqual(settled, [True])

    def test_tensors_that_move_are_adopted_anew(self):
        """The allocator is told of each memory once."""
        with self.on_a_late_gpu(Cuda()) as copiers:
            model = network()
            node = self.attach(model)
            tensors = [t for t in model.state_dict().values() if t.is_floating_point()]
            self.assertEqual(sorted(copiers[0].adopted), sorted(t.data_ptr() for t in tensors))
            node.mix()
            kept = model[0].weight.data
            model[0].weight.data = kept + 1
            node.mix()
            self.assertEqual(copiers[0].adopted[len(tensors):], [model[0].weight.data_ptr()])
            self.assertTrue(torch.equal(self.in_memory()[:36].view(6, 6), kept + 1))

    def test_the_allocator_learns_of_the_stream(self):
        told = []
        copier = CudaCopier(torch.device("cpu"), Cuda())
        copier.adopt(types.SimpleNamespace(detach=lambda: types.SimpleNamespace(record_stream=told.append)))
        self.assertEqual(told, [copier.stream])

    def test_two_devices_work_side_by_side(self):
        """Work of both is given out before either is waited for."""
        memory, order = Memory(Layout({"a": (2,)}, {}), {}), []
        self.addCleanup(memory.close)
        with mock.patch("sgp.device.copier_of", lambda device: LateCopier(device, Cuda())):
            copiers = Copiers(memory)
            both = [copiers.of(torch.device("cuda", number)) for number in range(2)]
            self.assertEqual(copiers.all(), both)
            self.assertIs(copiers.of(torch.device("cuda", 0)), both[0])
            for number, copier in enumerate(both):
                copier.run(lambda number=number: order.append(number))
            self.assertEqual(order, [])
            copiers.synchronize()
            self.assertEqual(order, [0, 1])
            self.assertEqual([len(copier.cuda.calls) for copier in both], [1, 0], "pinned once, for all GPUs")
            copiers.close()
            self.assertEqual([len(copier.cuda.calls) for copier in both], [2, 0])

    def test_other_devices_copy_at_once(self):
        copier, done = copier_of(torch.device("cpu")), []
        self.assertIs(type(copier), Copier)
        copier.run(lambda: done.append(1))
        self.assertEqual(done, [1])

    def test_memory_that_is_not_pinned(self):
        """One line says so, and training goes on."""
        for refuses, words in ((801, "error 801 of cudaHostRegister"), (RuntimeError("no driver\nat all"), "cannot be pinned: no driver;"),
                               (AttributeError("no cudart"), "no cudart")):
            cuda = Cuda(refuses)
            with self.assertLogs("sgp", "WARNING") as told, self.on_a_late_gpu(cuda):
                self.train()
            self.assertEqual(len(told.output), 1)
            self.assertIn(words, told.output[0])
            self.assertNotIn("unregister", [call[0] for call in cuda.calls])

    def test_all_of_the_mapping_is_pinned(self):
        memory, cuda = Memory(Layout({"a": (3, 5)}, {}), {}), Cuda()
        self.addCleanup(memory.close)
        pin = Pin(memory, cuda)
        first = torch.frombuffer(memory.map, dtype=torch.uint8).data_ptr()
        self.assertEqual(cuda.calls, [("register", first, memory.size, 1)])
        pin.close()
        pin.close()
        self.assertEqual(cuda.calls[1:], [("unregister", first)])


def one_value(kind, value=1.0, is_buffer=False):
    """A module with one number beside a parameter of its own."""
    model = nn.Module()
    if is_buffer:
        model.register_buffer("number", torch.tensor([value], dtype=kind))
        model.weight = nn.Parameter(torch.zeros(1))
    else:
        model.number = nn.Parameter(torch.tensor([value], dtype=kind))
    return model


class HalfTest(DeviceTest):
    def test_alone_as_without(self):
        """With nobody to mix with, half parameters train as in PyTorch alone, to the bit: their masters are what they are."""
        for kind in (BF16, FP16):
            model = network(kind=BF16).to(kind) if kind is BF16 else one_value(kind)
            reference = copy.deepcopy(model)
            ours, theirs = (torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (model, reference))
            with self.attach(model, ours) as node:
                for number in range(30):
                    if kind is BF16:
                        step(model, ours, number)
                        step(reference, theirs, number)
                    else:  # Debian's PyTorch has no products of fp16 on the processor
                        for m, o in ((model, ours), (reference, theirs)):
                            m.number.grad = m.number.detach().clone()
                            o.step()
                    node.mix()
            for a, b in zip(model.parameters(), reference.parameters()):
                self.assertEqual(a.dtype, kind)
                self.assertTrue(torch.equal(a, b))

    def test_what_travels_is_the_master(self):
        """What neighbours give is kept although it is far below what a half can tell apart, and comes to something in time."""
        model = one_value(BF16)
        node = self.attach(model, daemon={"drift": 2.0 ** -12})  # the next bf16 above 1 is 1 + 2^-7
        for number in range(1, 129):
            node.mix()
            self.assertEqual(float(self.in_memory()[0]), 1 + number * 2.0 ** -12)
            self.assertEqual(model.number.item(), float(torch.tensor(1 + number * 2.0 ** -12).to(BF16)))
        self.assertEqual(model.number.item(), 1 + 2.0 ** -5)

    def test_an_update_is_added_to_the_master(self):
        model = one_value(BF16)
        node = self.attach(model, daemon={"drift": 2.0 ** -12})
        node.mix()
        with torch.no_grad():
            model.number += 0.25
        node.mix()
        self.assertEqual(float(self.in_memory()[0]), 1.25 + 2 * 2.0 ** -12)

    def test_a_step_below_the_resolution_is_lost_where_the_optimizer_rounds_it(self):
        """As in PyTorch alone; neither more nor less."""
        model = one_value(BF16)
        node = self.attach(model, daemon={"drift": 2.0 ** -12})
        node.mix()
        with torch.no_grad():
            model.number += 2.0 ** -10
        node.mix()
        self.assertEqual(float(self.in_memory()[0]), 1 + 2 * 2.0 ** -12)

    def test_assigned_values(self):
        """A value that was written is just that, whatever the master's error of rounding was; the others keep their masters."""
        model = nn.Module()
        model.number = nn.Parameter(torch.tensor([1000.0, 1000.0], dtype=BF16))
        node = self.attach(model, daemon={"drift": 0.75, "weight": 0.5})
        node.mix()
        with node.assign():
            with torch.no_grad():
                model.number[0] = 0.015625
        # 0.75 is added to x in each round, and z is twice x
        self.assertEqual(self.in_memory().tolist(), [0.015625 + 1.5, 1000 + 3])
        self.assertEqual(model.number.tolist(), torch.tensor([1.515625, 1003]).to(BF16).tolist())

    def test_half_buffers_are_values(self):
        model = one_value(BF16, is_buffer=True)
        node = self.attach(model, daemon={"drift": 2.0 ** -12, "weight": 0.5})
        node.mix()
        node.mix()
        self.assertEqual(float(self.in_memory()[1]), 1 + 4 * 2.0 ** -12, "not rounded in between")
        model.number.fill_(3)
        node.mix()
        self.assertEqual(float(self.in_memory()[1]), 3 + 2 * 2.0 ** -12)

    def test_a_unit_has_the_master(self):
        """checkpoint() changes nothing, and what is resumed is the master's bits."""
        with tempfile.TemporaryDirectory() as folder:
            model = one_value(BF16)
            node = self.attach(model, daemon={"drift": 2.0 ** -12})
            node.mix()
            with torch.no_grad():
                model.number += 0.25
            master = 1.25 + 2.0 ** -12
            self.assertTrue(node.checkpoint(directory=folder))
            self.assertTrue(node.checkpoint(directory=folder) is False)
            self.assertEqual(float(self.in_memory()[0]), master)
            node.mix()
            self.assertEqual(float(self.in_memory()[0]), master + 2.0 ** -12)
            node.detach()
            model = one_value(BF16, 7.0)
            node = self.attach(model)
            self.assertEqual(node.resume(directory=folder), {})
            self.assertEqual(float(self.in_memory()[0]), master)
            self.assertEqual(model.number.item(), 1.25)

    def test_an_overflow_is_seen_by_the_daemon(self):
        """Which refuses the step, as it does in float32."""
        model = one_value(FP16, 60000.0)
        node = self.attach(model)
        with torch.no_grad():
            model.number *= 2
        node._model.gather()
        self.assertEqual(float(self.in_memory()[0]), float("inf"))
        node.detach()

    def test_a_kept_graph_raises(self):
        model = network(kind=BF16)
        node = self.attach(model, daemon={"drift": 1.0})
        loss = (model(torch.ones(4, 6, dtype=BF16))).sum()
        node.mix()
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            loss.backward()

    def test_a_replaced_tensor_is_an_update_of_its_master(self):
        model = one_value(BF16)
        node = self.attach(model, daemon={"drift": 2.0 ** -12})
        node.mix()
        model.number = nn.Parameter(torch.tensor([2.0], dtype=BF16))
        node.mix()
        self.assertEqual(float(self.in_memory()[0]), 2 + 2 * 2.0 ** -12)
        self.assertEqual(model.number.item(), 2)

    def test_another_type_in_mid_run_is_named(self):
        model = network(kind=BF16)
        node = self.attach(model)
        model.float()
        with self.assertRaisesRegex(sgp.ViewsLost, "was of torch.bfloat16, and is now of torch.float32"):
            node.mix()


class AheadTest(DeviceTest):
    """With overlap=True."""

    def add(self, model, value):
        with torch.no_grad():
            model.number += value

    def test_mix_does_not_wait(self):
        """The daemon holds the turn back until the program has taken its next step."""
        model = one_value(FP32)
        node = self.attach(model, overlap=True)
        self.fake.ready.clear()
        self.add(model, 1)
        self.assertEqual(node.mix().round, 0)
        self.add(model, 1)
        self.assertEqual(model.number.item(), 3)
        self.fake.ready.set()
        mixed = node.mix()
        self.assertEqual((mixed.round, mixed.exchanged, mixed.skipped), (1, True, False))
        self.assertEqual(model.number.item(), 3)

    def steps(self, kind, late):
        """Ten steps of 1/4 of one number, neighbours that give 1/8 of x in each round, and a weight of 1/2: what it is after each,
        what of x is the program's own, and the end."""
        gpu = self.on_a_late_gpu(Cuda()) if late else contextlib.nullcontext()
        with gpu:
            model, seen = one_value(kind), []
            with self.attach(model, daemon={"drift": 0.125, "weight": 0.5}, overlap=True) as node:
                for _ in range(10):
                    self.add(model, 0.25)
                    node.mix()
                    seen.append(model.number.item())
            return seen, float(self.fake.x[0]), model.number.item()

    def test_steps_and_shares_are_added_up(self):
        """Each step counts once, unscaled, and each share once, one call later than it does without overlap."""
        z, x, change, wanted = 1.0, 0.5, 0.25, []
        for number in range(10):
            if number == 0:  # no neighbour has sent a share yet
                now = z + change
            else:
                z = x / 0.5
                now = z + change
            x += change + 0.125
            wanted.append(now)
        for kind in (FP32, BF16):
            for late in (False, True):
                with self.subTest(kind=kind, late=late):
                    seen, mass, end = self.steps(kind, late)
                    self.assertEqual(seen, wanted)
                    self.assertEqual(mass, x)
                    self.assertEqual(end, x / 0.5)

    def test_what_an_optimizer_does_meanwhile(self):
        """A network with a batch norm: on the processor and on a GPU that is late, the same bits; x has all steps and shares."""
        ends = []
        for late in (False, True):
            with self.on_a_late_gpu(Cuda()) if late else contextlib.nullcontext():
                model = network()
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
                with self.attach(model, optimizer, {"drift": 0.01, "weight": 0.5}, overlap=True) as node:
                    for number in range(10):
                        node.mix(loss=step(model, optimizer, number), rows=16)
                    self.assertEqual(node.round, 9)
                self.assertEqual(len(self.fake.of(fake_daemon.DONE)), 10)
                ends.append(torch.cat([t.detach().reshape(-1) for t in model.state_dict().values() if t.is_floating_point()]))
        self.assertTrue(torch.equal(*ends))

    def test_the_end(self):
        """A step of after the last round is void, and the parameters are the estimate."""
        model = one_value(FP32)
        node = self.attach(model, rounds=3, overlap=True)
        calls = 0
        while not node.stopped:
            self.add(model, 1)
            mixed = node.mix()
            calls += 1
        self.assertEqual((calls, mixed.stop, mixed.skipped), (4, True, True))
        self.assertEqual(model.number.item(), 4)
        self.assertTrue(node.mix().skipped)
        self.assertEqual(node.finish().round, 3)

    def test_a_jump_voids_what_was_done_meanwhile(self):
        model = one_value(FP32)
        node = self.attach(model, daemon={"acts": {1: fake_daemon.jump}}, overlap=True)
        for _ in range(2):
            self.add(model, 1)
            mixed = node.mix()
        self.assertTrue(mixed.jumped and mixed.skipped)
        self.assertEqual(model.number.item(), 5)
        self.add(model, 1)
        node.mix()
        self.assertEqual(model.number.item(), 6)

    def test_a_turn_that_was_taken_back(self):
        """Its step is lost, and the step after it is not."""
        model = one_value(FP32)
        node = self.attach(model, daemon={"acts": {1: fake_daemon.take_back}}, overlap=True)
        self.add(model, 16)
        node.mix()
        self.add(model, 1)
        self.assertTrue(node.mix().skipped)
        self.assertEqual(model.number.item(), 2)

    def test_a_step_that_is_not_finite(self):
        model = one_value(FP32)
        node = self.attach(model, overlap=True)
        self.add(model, float("nan"))
        node.mix()
        with self.assertRaises(sgp.NotFinite):
            node.mix()
        self.assertEqual(model.number.item(), 1)
        node.mix()
        self.add(model, 1)
        node.mix()
        self.assertEqual(model.number.item(), 2)

    def test_a_daemon_that_goes(self):
        """It comes back with what it had; the steps that it does not have are void."""
        model = one_value(FP32)
        node = self.attach(model, daemon={"acts": {2: fake_daemon.hang_up}}, overlap=True)
        for _ in range(4):
            self.add(model, 1)
            node.mix()
        self.assertLess(abs(model.number.item() - 4), 1.5)
        self.assertEqual(float(self.in_memory()[0]), model.number.item())

    def test_values_and_units(self):
        """assign() and checkpoint() wait for the turn that is out."""
        with tempfile.TemporaryDirectory() as folder:
            model = one_value(FP32)
            node = self.attach(model, daemon={"weight": 0.5}, overlap=True)
            self.add(model, 1)
            node.mix()
            with node.assign():
                with torch.no_grad():
                    model.number.fill_(7)
            self.assertEqual(model.number.item(), 7)
            self.add(model, 1)
            node.mix()
            self.assertTrue(node.checkpoint(directory=folder))
            self.assertEqual(float(self.in_memory()[0]), 9, "z, that is x / w: a step counts unscaled")
            self.add(model, 0.5)
            node.mix()
            node.detach()
            model = one_value(FP32)
            node = self.attach(model, overlap=True)
            self.assertEqual(node.resume(directory=folder), {})
            self.assertEqual(model.number.item(), 9)

    def test_units_are_of_the_rounds_of_other_programs(self):
        """A program that goes ahead writes units of the rounds in which the others do, so that a round is everybody's."""
        for local_steps, wanted in ((1, [2, 4, 6, 8]), (3, [0, 2])):
            for overlap in (False, True):
                with self.subTest(local_steps=local_steps, overlap=overlap), tempfile.TemporaryDirectory() as folder:
                    model, written = one_value(FP32), []
                    node = self.attach(model, daemon={"local_steps": local_steps}, overlap=overlap)
                    for _ in range(9):
                        self.add(model, 1)
                        node.mix()
                        if node.checkpoint(directory=folder, every=2):
                            written.append(node.round)
                            self.assertEqual(float(self.in_memory()[0]), model.number.item())
                    self.assertEqual(written, wanted)
                    node.detach()

    def test_decisions_pass_a_turn_that_is_out(self):
        model = one_value(FP32)
        node = self.attach(model, overlap=True)
        for _ in range(3):
            self.add(model, 1)
            node.mix()
            self.assertEqual(node.mean(2.5), 2.5)
        self.assertEqual(model.number.item(), 4)

    def test_what_cannot_overlap(self):
        model = one_value(FP32)
        for given, options, words in ((model, {"on_evaluate": lambda: {}}, "leave out on_evaluate"),
                                      ({"a": None}, {}, "overlap=True is for modules of PyTorch")):
            with self.assertRaisesRegex(sgp.Error, words):
                self.attach(given, overlap=True, **options)

    def test_alone(self):
        """Without a daemon there is nothing to wait for."""
        model = one_value(BF16)
        with self.assertWarns(sgp.TrainingWarning), sgp.attach(model, name="/none-such.sock", required=False, overlap=True) as node:
            self.add(model, 1)
            self.assertEqual(node.mix().round, 1)
        self.assertEqual(model.number.item(), 2)


class InterruptTest(DeviceTest):
    """Ctrl-C anywhere in mix() and finish(): a second call loses no step and no share, and counts none twice."""

    COPIES = ("part_of", "copy_all", "values_of")  # in each of which Ctrl-C comes once

    def run_with(self, when, kind, overlap):
        """Six steps of 1, with Ctrl-C in the copy of number `when`: whether it came, the rows that the daemon and the program
        count, and what x and the model are."""
        model = nn.ParameterDict({name: nn.Parameter(torch.ones(1, dtype=kind)) for name in ("a", "b")})
        node = self.attach(model, daemon={"drift": 0.125}, overlap=overlap)
        own = len(node.sampler(range(64)))
        count = 0

        def counted(work):
            def copy(*given, **more):
                nonlocal count
                count += 1
                if count == when:
                    signal.raise_signal(signal.SIGINT)
                return work(*given, **more)
            return copy

        def patiently(call):
            nonlocal interrupts
            try:
                return call()
            except KeyboardInterrupt:
                interrupts += 1
                return call()
        interrupts = 0
        with contextlib.ExitStack() as patches:
            for name in self.COPIES:
                patches.enter_context(mock.patch(f"sgp.torch_model.{name}", counted(getattr(torch_model, name))))
            for _ in range(6):
                with torch.no_grad():
                    for parameter in model.values():
                        parameter += 1
                patiently(lambda: node.mix(rows=2))
            patiently(node.finish)
        told = sum(frame["rows"] for frame in self.fake.of(fake_daemon.DONE)), round(node.epoch * own)
        return interrupts, told, self.fake.x.tolist(), [parameter.item() for parameter in model.values()]

    def test_in_each_copy(self):
        for kind, overlap in ((FP32, True), (BF16, True), (BF16, False)):
            came, when = 1, 0
            while came:
                when += 1
                with self.subTest(kind=kind, overlap=overlap, when=when):
                    came, told, x, z = self.run_with(when, kind, overlap)
                    self.assertEqual(x, [7.75] * 2, "1, six steps, six shares of 1/8")
                    self.assertEqual(z, x)
                    self.assertEqual(told, (12, 12))
                    self.fake.close()
            self.assertGreater(when, 20)

    def test_before_a_turn_is_shown(self):
        """The turn has been read, and the model does not have its parameters."""
        for kind, overlap in ((FP32, True), (BF16, True), (BF16, False), (FP32, False)):
            with self.subTest(kind=kind, overlap=overlap):
                model = one_value(kind)
                node = self.attach(model, daemon={"drift": 0.125}, overlap=overlap)
                for _ in range(3):
                    with torch.no_grad():
                        model.number += 1
                    with mock.patch.object(node, "_follow", side_effect=KeyboardInterrupt):
                        with contextlib.suppress(KeyboardInterrupt):
                            node.mix()
                    node.mix()
                node.finish()
                self.assertEqual(float(self.fake.x[0]), 1 + 3 + self.fake.round * 0.125)

    def test_a_handler_of_the_program_is_called_afterwards(self):
        """It is the program's again, and a thread has none."""
        calls = []
        before = signal.signal(signal.SIGINT, lambda *_: calls.append("called"))
        try:
            with uninterrupted():
                signal.raise_signal(signal.SIGINT)
                self.assertEqual(calls, [])
            self.assertEqual(calls, ["called"])
            with ThreadPoolExecutor() as pool:
                pool.submit(self.in_a_thread).result()
        finally:
            signal.signal(signal.SIGINT, before)

    @staticmethod
    def in_a_thread():
        with uninterrupted():
            pass


if __name__ == "__main__":
    common.main()
