#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Modules of PyTorch behind the package sgp: views that stay views, or are named."""
import copy
import faulthandler
import io
import os
import pickle
import tempfile
import unittest
import warnings
from unittest import mock

import common
import fake_daemon
import sgp
from fake_daemon import DONE, FakeDaemon
from scaler import Scaler
from sgp.protocol import Flag

try:
    import torch
    from torch import nn
except ImportError:
    print("1..0 # SKIP not installed: python3-torch")
    raise SystemExit from None

torch.set_num_threads(1)
warnings.filterwarnings("ignore", "Lazy modules")


def network(seed=1):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 2))


def loss_of(model, seed=0):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(16, 6, generator=draw)
    return (model(x) - x[:, :2]).pow(2).mean()


def step(model, optimizer, seed=0):
    optimizer.zero_grad()
    loss = loss_of(model, seed)
    loss.backward()
    optimizer.step()
    return loss


def flat(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


class Worker(torch.utils.data.Dataset):
    """Each item writes to the model, in whatever process it is read."""

    def __init__(self, model):
        self.model = model

    def __len__(self):
        return 8

    def __getitem__(self, index):
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.fill_(1e6)
        return float(self.model[0].weight[0, 0])


class TorchTest(unittest.TestCase):
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
        """What the daemon sees of the updates."""
        return torch.from_numpy(self.fake.program.z[:self.fake.program.values_from].copy())

    # ---- training

    def test_every_optimizer_trains_as_alone(self):
        """With nobody to mix with, and a weight of 1, each gives what it gives alone but for rounding."""
        for kind, options in ((torch.optim.SGD, {"momentum": 0.9, "nesterov": True}), (torch.optim.AdamW, {}),
                              (torch.optim.Adam, {"foreach": True}), (torch.optim.RMSprop, {"momentum": 0.5}),
                              (torch.optim.Adagrad, {}), (torch.optim.Adamax, {}), (torch.optim.NAdam, {}),
                              (torch.optim.RAdam, {}), (torch.optim.ASGD, {}), (torch.optim.Adadelta, {})):
            alone, model = network(), network()
            reference = kind(alone.parameters(), lr=0.01, **options)
            optimizer = kind(model.parameters(), lr=0.01, **options)
            with self.attach(model, optimizer) as node:
                for number in range(30):
                    step(alone, reference, number)
                    node.mix(loss=step(model, optimizer, number), rows=16)
            torch.testing.assert_close(flat(model), flat(alone), rtol=1e-4, atol=1e-5, msg=kind.__name__)
            self.assertAlmostEqual(self.fake.of(DONE)[0]["learning_rate"], 0.01)

    def test_a_small_weight_scales_no_step(self):
        """x moves by what the optimiser did, whatever the weight."""
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        node = self.attach(model, optimizer, {"weight": 0.17})
        x, before = self.fake.x.copy(), flat(model)
        step(model, optimizer)
        change = flat(model) - before
        node.mix()
        torch.testing.assert_close(torch.from_numpy(self.fake.x - x), change, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(flat(model), torch.from_numpy(self.fake.x / 0.17), rtol=1e-5, atol=1e-6)

    def test_one_beginning(self):
        model = network()
        self.attach(model, daemon={"begin": 0.5})
        self.assertTrue((flat(model) == 0.5).all())

    def test_loaded_state_is_a_value(self):
        model, other = network(1), network(2)
        node = self.attach(model, daemon={"weight": 0.25})
        with node.assign():
            model.load_state_dict(other.state_dict())
        torch.testing.assert_close(flat(model), flat(other))
        node.mix()
        torch.testing.assert_close(flat(model), flat(other))

    def test_what_is_no_optimizer(self):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        for given, kind in (({"all": optimizer}, "dict"), ([optimizer, 0.5], "float"), ({"all": optimizer}.values(), "dict_values")):
            with self.assertRaisesRegex(sgp.Error, f"an optimizer that is a {kind} has no param_groups; give an optimizer, or a list"):
                self.attach(model, given)

    def test_several_optimizers(self):
        """All are kept in a unit and forget their momentum at a jump; the learning rate is that of the first."""
        def halves(model):
            return [torch.optim.SGD(model[0].parameters(), lr=0.5, momentum=0.9), torch.optim.Adam(model[2].parameters(), lr=0.1)]

        def momenta(optimizers):
            return [state[key] for optimizer, key in zip(optimizers, ("momentum_buffer", "exp_avg")) for state in optimizer.state.values()]
        with tempfile.TemporaryDirectory() as folder:
            model = network()
            both = halves(model)
            node = self.attach(model, both, {"acts": {2: fake_daemon.jump}})
            loss_of(model).backward()
            for optimizer in both:
                optimizer.step()
            node.mix()
            self.assertEqual(self.fake.of(DONE)[0]["learning_rate"], 0.5)
            self.assertTrue(node.checkpoint(directory=folder))
            self.assertTrue(all(momentum.abs().sum() > 0 for momentum in momenta(both)))
            kept = [momentum.clone() for momentum in momenta(both)]
            self.assertTrue(node.mix().jumped)
            self.assertTrue(all(momentum.abs().sum() == 0 for momentum in momenta(both)))
            node.detach()
            model = network()
            both = halves(model)
            node = self.attach(model, both)
            self.assertEqual(node.resume(directory=folder), {})
            self.assertEqual(len(kept), 4)
            for now, before in zip(momenta(both), kept):
                torch.testing.assert_close(now, before, rtol=0, atol=0)
            node.detach()

    def test_a_jump_forgets_momentum(self):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        node = self.attach(model, optimizer, {"acts": {2: fake_daemon.jump}})
        step(model, optimizer)
        self.assertFalse(node.mix().jumped)
        self.assertTrue(any(s["momentum_buffer"].abs().sum() > 0 for s in optimizer.state.values()))
        self.assertTrue(node.mix().jumped)
        self.assertTrue(all(s["momentum_buffer"].abs().sum() == 0 for s in optimizer.state.values()))
        self.assertTrue((flat(model) == 5).all())

    # ---- what travels

    def test_buffers(self):
        model = nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3))
        model.register_buffer("scratch", torch.ones(2), persistent=False)
        node = self.attach(model, daemon={"weight": 0.25})
        self.assertEqual(list(self.fake.program.layout), ["0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean",
                                                         "1.running_var"])
        self.assertEqual(self.fake.program.values_from, 27)
        model(torch.randn(50, 6) * 3)
        variance = model[1].running_var.clone()
        node.mix()
        torch.testing.assert_close(model[1].running_var, variance)  # 4 times as much if it were an update
        model[1].running_mean = torch.full((3,), 2.0)  # replaced, not written to
        node.mix()
        self.assertTrue((model[1].running_mean == 2).all())
        self.assertEqual(int(model[1].num_batches_tracked), 1)

    def test_local_buffers(self):
        model = nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3))
        self.attach(model, buffers="local", daemon={"begin": 7.0})
        self.assertEqual(len(self.fake.program.layout), 4)
        self.assertTrue((model[1].running_var == 1).all())
        self.assertTrue((model[1].weight == 7).all())

    def test_local_parameters_stay(self):
        """Neither their names nor their bytes are in the memory. They are trained all the same, and no other node's come."""
        model = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Linear(6, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        node = self.attach(model, optimizer, {"begin": 7.0, "drift": 0.5}, local=["1", "2.weight"])
        self.assertEqual(list(self.fake.program.layout), ["0.weight", "0.bias", "2.bias"])
        self.assertTrue((model[0].weight == 7).all())
        before = model[2].weight.detach().clone()
        self.assertFalse((before == 7).any())
        loss_of(model).backward()
        optimizer.step()
        stepped = model[2].weight.detach().clone()
        self.assertFalse(torch.equal(stepped, before))
        node.mix()
        self.assertTrue(torch.equal(model[2].weight, stepped))
        for values in (model[2].weight, model[1].running_mean):
            self.assertNotIn(values.detach().numpy().tobytes()[:8], self.fake.program.map[:])
        self.assertEqual(node.finish().round, 1)
        self.assertTrue(torch.equal(model[2].weight, stepped))

    def test_what_stays_is_kept(self):
        for keeps in ("unit", "file"):
            with tempfile.TemporaryDirectory() as folder:
                model, file = network(), os.path.join(folder, "state")
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                node = self.attach(model, optimizer, local=["2"])
                step(model, optimizer)
                node.mix()
                kept = [tensor.detach().clone() for tensor in model[2].parameters()]
                if keeps == "unit":
                    self.assertTrue(node.checkpoint(directory=folder))
                else:
                    node.save(file, optimizer=optimizer)
                node.detach()
                model = network(2)
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                node = self.attach(model, optimizer, {"rounds": 9}, local=["2"])
                if keeps == "unit":
                    self.assertEqual(node.resume(directory=folder), {})
                else:
                    node._fleet.parameters_round = 1  # as of a daemon that has kept its checkpoint
                    self.assertTrue(node.load(file, optimizer=optimizer))
                for now, before in zip(model[2].parameters(), kept):
                    self.assertTrue(torch.equal(now, before), keeps)
                node.detach()

    def test_a_local_layer_of_another_shape_is_not_put_back(self):
        """Copying one row to all would pass unseen, and the shared layers have not changed."""
        with tempfile.TemporaryDirectory() as folder:
            model = nn.Sequential(nn.Linear(6, 3), nn.Linear(3, 1))
            node = self.attach(model, local=["1"])
            node.mix()
            self.assertTrue(node.checkpoint(directory=folder))
            node.detach()
            model = nn.Sequential(nn.Linear(6, 3), nn.Linear(3, 2))
            before = model[1].weight.detach().clone()
            node = self.attach(model, local=["1"])
            with self.assertRaisesRegex(sgp.Error, r"'1.weight' is local, and was \[1, 3\] when it was saved; it is \[2, 3\] now"):
                node.resume(directory=folder)
            self.assertTrue(torch.equal(model[1].weight, before))

    def test_buffers_alone_are_nothing_to_share(self):
        model = nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3))
        with self.assertRaisesRegex(sgp.Error, "local names all parameters that are trained"):
            sgp.attach(model, None, name="/none-such.sock", local=["0", "1.weight", "1.bias"])

    def test_wrong_names_of_local_parameters(self):
        model = network()
        model.add_module("again", nn.Linear(6, 6))
        model.again.weight = model[0].weight
        for local, error, text in (
                (["hed"], sgp.Error, "local names 'hed', and the model has no such parameter or module; it has 0.weight, again.weight, "
                 "0.bias, 2.weight, 2.bias, again.bias"),
                (["0.weigh"], sgp.Error, "local names '0.weigh'"),
                (["again"], sgp.Error, "'again.weight' is to stay local, and is tied to '0.weight', which is shared; name both in "
                 "local, or neither"),
                (["0", "2", "again"], sgp.Error, "local names all parameters that are trained, so there is nothing to share; leave one "
                 "out of it"),
                ("2", ValueError, "local is '2'; a list of names"),
                (None, ValueError, "local is None; a list of names"),
                ([""], ValueError, "a list of names"),
                ([2], ValueError, "a list of names")):
            with self.assertRaises(error) as caught:
                sgp.attach(model, None, name="/none-such.sock", local=local)
            self.assertIn(text, str(caught.exception))
        self.attach(model, local=["0.weight", "again"])
        self.assertEqual(list(self.fake.program.layout), ["0.bias", "2.weight", "2.bias"])

    def test_frozen_parameters_stay(self):
        digests = []
        for seed in (1, 1, 2):
            model = network(seed)
            model[0].requires_grad_(False)
            node = self.attach(model)
            self.assertEqual(list(self.fake.program.layout), ["2.weight", "2.bias"])
            digests.append(self.fake.program.tags["frozen"])
            node.mix()
            node.detach()
        self.assertEqual(digests[0], digests[1])
        self.assertNotEqual(digests[0], digests[2])
        node = self.attach(model)
        model[0].requires_grad_(True)
        with self.assertRaisesRegex(sgp.Error, "'0.weight' was frozen"):
            node.mix()
        node.detach()
        model[0].requires_grad_(False)
        self.attach(model, params="all")
        self.assertEqual(len(self.fake.program.layout), 4)
        self.assertNotIn("frozen", self.fake.program.tags)

    def test_names_without_wrappers(self):
        self.attach(nn.DataParallel(network()))
        self.assertEqual(list(self.fake.program.layout), ["0.weight", "0.bias", "2.weight", "2.bias"])

    def test_tied_parameters_travel_once(self):
        model = network()
        model.add_module("again", nn.Linear(6, 6))
        model.again.weight = model[0].weight
        node = self.attach(model)
        self.assertEqual(len(self.fake.program.layout), 5)
        node.mix()
        model.again.weight = nn.Parameter(torch.zeros(6, 6))
        with self.assertRaisesRegex(sgp.ViewsLost, "'0.weight' was tied"):
            node.mix()

    def test_shapes_travel_in_rows(self):
        model = nn.Sequential(nn.Conv2d(3, 4, 3)).to(memory_format=torch.channels_last)
        self.assertFalse(model[0].weight.is_contiguous())
        before = model[0].weight.detach().clone()
        node = self.attach(model)
        torch.testing.assert_close(model[0].weight.detach(), before)
        torch.testing.assert_close(self.in_memory()[:108].view(4, 3, 3, 3), before)
        node.mix()

    def test_what_cannot_travel(self):
        for change, text in ((lambda m: m.double(), "torch.float64; parameters are float32, bfloat16 or float16: .*float\\(\\)"),
                             (lambda m: nn.Sequential(nn.LazyLinear(3)), "no shape yet"),
                             (lambda m: m.requires_grad_(False), "nothing to share")):
            with self.assertRaisesRegex(sgp.Error, text):
                self.attach(change(network()))

    # ---- silent breaks

    def test_breaks_that_are_mended(self):
        """Copied in and bound again: the memory has what the model has, and goes on having it."""
        def assign_data(model):
            model[0].weight.data = model[0].weight.data + 1

        def transpose(model):
            model[0].weight.data = model[0].weight.data.t()  # the same address and shape, other strides

        def replace_parameter(model):
            model[0].weight = nn.Parameter(torch.full((6, 6), 4.0))

        def replace_layer(model):
            model[0] = nn.Linear(6, 6)

        def to_double_and_back(model):
            model.double().float()

        def load_and_assign(model):
            model.load_state_dict(network(3).state_dict())

        for change in (assign_data, transpose, replace_parameter, replace_layer, to_double_and_back, load_and_assign,
                       lambda model: model.share_memory(), lambda model: model.to(memory_format=torch.channels_last),
                       lambda model: model.apply(lambda module: None)):
            model = network()
            node = self.attach(model)
            change(model)
            meant = flat(model).clone()
            self.assertFalse(node.mix().skipped)
            torch.testing.assert_close(self.in_memory(), meant)
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.add_(1)
            torch.testing.assert_close(self.in_memory(), meant + 1)
            node.detach()

    def test_breaks_that_are_named(self):
        def prune(model):
            torch.nn.utils.prune.l1_unstructured(model[0], "weight", 0.5)

        def other_shape(model):
            model[0].weight = nn.Parameter(torch.zeros(6, 7))

        def more(model):
            model.add_module("more", nn.Linear(2, 2))

        import torch.nn.utils.prune
        for change, name, text in ((lambda m: m.double(), "0.weight", "float64"),
                                   (lambda m: m.half(), "0.weight", "float16"), (prune, "0.weight", "no longer there"),
                                   (lambda m: torch.nn.utils.weight_norm(m[0]), "0.weight", "no longer there"),
                                   (other_shape, "0.weight", r"was of shape \[6, 6\], and is now of \[6, 7\]"),
                                   (more, "more.weight", "came after"), (lambda m: m.pop(2), "2.weight", "no longer")):
            model = network()
            node = self.attach(model)
            change(model)
            with self.assertRaisesRegex(sgp.ViewsLost, text) as caught:
                node.mix()
            self.assertEqual(caught.exception.tensor, name)
            node.detach()

    def test_what_keeps_the_views(self):
        model = network()
        optimizer = torch.optim.Adam(model.parameters())
        node = self.attach(model, optimizer)
        pointers = [p.data_ptr() for p in model.parameters()]
        step(model, optimizer)
        model.load_state_dict(copy.deepcopy(model).state_dict())
        optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss_of(model).backward()
        model.train().eval().float().to("cpu")
        node.mix()
        self.assertEqual([p.data_ptr() for p in model.parameters()], pointers)
        copied = copy.deepcopy(model)
        with torch.no_grad():
            copied[0].weight.fill_(99)
        self.assertNotEqual(model[0].weight[0, 0].item(), 99)
        saved = io.BytesIO()
        torch.save(model[2].bias, saved)
        self.assertLess(saved.tell(), 2000)  # the tensor, not the memory that it is a view of

    def test_a_kept_graph_raises(self):
        model = network()
        node = self.attach(model, daemon={"drift": 1.0})
        loss = loss_of(model)
        node.mix()
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            loss.backward()
        loss_of(model).backward()

    def test_workers_cannot_change_the_model(self):
        model = network()
        node = self.attach(model)
        before = self.in_memory()
        loader = torch.utils.data.DataLoader(Worker(model), num_workers=2, multiprocessing_context="fork")
        self.assertEqual([float(batch) for batch in loader], [1e6] * 8)  # in their own copies
        torch.testing.assert_close(self.in_memory(), before)
        torch.testing.assert_close(flat(model), before)
        self.assertFalse(node.mix().skipped)

    def test_copied_as_from_a_device(self):
        """Parameters that cannot lie in shared memory give the same, to the bit."""
        results = []
        for here in (True, False):
            with mock.patch("sgp.torch_model.lies_here", lambda tensor: here):
                model = network()
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
                pointers = [p.data_ptr() for p in model.parameters()]
                with self.attach(model, optimizer, {"drift": 0.01, "weight": 0.5}) as node:
                    for number in range(10):
                        loss = step(model, optimizer, number)
                        node.mix(loss=loss)
                    self.assertEqual(pointers == [p.data_ptr() for p in model.parameters()], not here)
                    kept = loss_of(model)
                    node.mix()
                    with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                        kept.backward()
                results.append(flat(model))
        torch.testing.assert_close(results[0], results[1], rtol=0, atol=0)

    def test_the_end_gives_the_memory_back(self):
        model = network()
        with self.attach(model, daemon={"final": 3.0}) as node:
            node.mix()
            program = self.fake.program
        self.assertTrue((flat(model) == 3).all())
        with torch.no_grad():
            model[0].weight.fill_(8)
        self.assertTrue((program.z == 3).all())
        child = os.fork()  # nothing of it is left out of a child either
        if child == 0:
            os._exit(0 if model[0].weight.sum().item() == 288 else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    # ---- loops that mix by themselves

    def test_wrapped_optimizers(self):
        for scheduler_first in (True, False):
            model = network()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            with self.attach(model, optimizer) as node:
                schedule = [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)] if scheduler_first else []
                self.assertIs(sgp.wrap(optimizer, node, every=2), optimizer)
                schedule = schedule or [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]
                self.assertIsInstance(optimizer, torch.optim.SGD)
                for number in range(4):
                    step(model, optimizer, number)
                    schedule[0].step()
                with node.accumulate():
                    step(model, optimizer)
                    step(model, optimizer)
            self.assertEqual([f["turn"] for f in self.fake.of(DONE)], [1, 2])
            self.assertAlmostEqual(optimizer.param_groups[0]["lr"], 0.1 / 16)
            if hasattr(optimizer, "_step_count"):  # as the scheduler counts
                self.assertEqual(optimizer._step_count, 6)
            else:  # the scheduler of a newer PyTorch notes that there was a step
                self.assertTrue(optimizer._opt_called)
        with self.assertRaisesRegex(ValueError, "every is 0"):
            sgp.wrap(optimizer, node, every=0)

    def test_steps_that_a_scaler_leaves_out(self):
        """They are steps all the same: mix() is called, or a wrapped optimiser mixes, and they are counted."""
        overflows = {0, 2, 3, 6}
        for wrapped in (False, True):
            model, scaler = network(), Scaler(overflows)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            with self.attach(model, optimizer, scaler=scaler) as node:
                self.assertEqual(node.skipped_steps, 0)
                if wrapped:
                    sgp.wrap(optimizer, node)
                counted = []
                for number in range(8):
                    before = flat(model).clone()
                    optimizer.zero_grad()
                    scaler.scale(loss_of(model)).backward()
                    scaler.step(optimizer)
                    self.assertEqual(bool((flat(model) == before).all()), number in overflows)
                    scaler.update()
                    if not wrapped:
                        node.mix()
                    counted.append(node.skipped_steps)
                self.assertEqual(counted, [1, 1, 2, 3, 3, 3, 4, 4])
                self.assertEqual([bool(f["flags"] & Flag.OVERFLOWED) for f in self.fake.of(DONE)],
                                 [number in overflows for number in range(8)])
                self.assertEqual(scaler.get_scale(), 128, "halved four times, and doubled once")
            self.assertEqual(len(self.fake.of(DONE)), 8)
        self.assertIs(type(pickle.loads(pickle.dumps(scaler))), Scaler)

    def test_a_scaler_and_every_second_step(self):
        model, scaler = network(), Scaler({0, 3})
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with self.attach(model, optimizer, scaler=scaler) as node:
            sgp.wrap(optimizer, node, every=2)
            for _ in range(5):
                optimizer.zero_grad()
                scaler.scale(loss_of(model)).backward()
                scaler.step(optimizer)
                scaler.update()
            self.assertEqual(len(self.fake.of(DONE)), 2)
            self.assertEqual(node.skipped_steps, 2)

    def test_figures_that_require_a_gradient(self):
        """A newer PyTorch warns of a conversion that could lose one; a loss is given as it is."""
        class Loss:
            def __float__(self):
                raise AssertionError("it requires a gradient")

            def detach(self):
                return 0.5
        node = self.attach(network())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for loss in (Loss(), torch.tensor(0.5, requires_grad=True)):
                node.mix(loss=loss)
                self.assertEqual(self.fake.of(DONE)[-1]["loss"], 0.5)
                node.report(test_loss=loss, other=loss)
                self.assertEqual(node.mean(loss), 0.5)
                self.assertEqual(node.mean([loss, 1]), [0.5, 1])

    def test_data_sets(self):
        data = torch.utils.data.TensorDataset(torch.arange(10.0), torch.arange(10))
        node = self.attach(network(), daemon={"index": 1, "size": 2})
        batches = list(node.shard(data, batch_size=2, shuffle=False))
        self.assertEqual([x.tolist() for x, _ in batches], [[1, 3], [5, 7], [9]])
        loader = torch.utils.data.DataLoader(data, batch_size=5, sampler=node.sampler(data, shuffle=False))
        self.assertEqual([y.tolist() for _, y in loader], [[1, 3, 5, 7, 9]])

    def test_a_pass_with_workers_that_read_ahead(self):
        """What workers have fetched beyond a break, or beyond a save, comes again."""
        data = torch.arange(40)
        node = self.attach(network(), daemon={"index": 1, "size": 2})
        own = list(range(1, 40, 2))
        sampler = node.sampler(data)
        loader = torch.utils.data.DataLoader(data, batch_size=4, sampler=sampler, num_workers=2)
        next(iter(loader))
        for _ in zip(loader, range(2)):
            pass
        self.assertEqual(sorted(int(x) for batch in loader for x in batch), own)
        path = os.path.join(self.fake.folder.name, "state")
        seen = []
        for batch in loader:
            node.mix(rows=len(batch))
            seen += map(int, batch)
            if len(seen) == 8:
                break
        node.save(path, sampler=sampler)
        again = node.sampler(data)
        node.load(path, sampler=again)
        self.assertEqual(sorted(seen + list(again)), own)
        self.assertEqual(sorted(again), own)

    def test_a_tail_that_is_left_out_is_no_pass(self):
        data = torch.arange(22)
        node = self.attach(network(), daemon={"index": 0, "size": 2})
        sampler = node.sampler(data)
        for batch in torch.utils.data.DataLoader(data, batch_size=4, sampler=sampler, drop_last=True):
            node.mix(rows=len(batch))
        path = os.path.join(self.fake.folder.name, "state")
        node.save(path, sampler=sampler)
        again = node.sampler(data)
        node.load(path, sampler=again)
        self.assertEqual(sorted(again), list(range(0, 22, 2)))

    def test_a_wrapped_optimizer_is_pickled(self):
        """The copy is the optimiser alone: a node cannot travel."""
        model = network()
        node = self.attach(model)
        optimizer = sgp.wrap(torch.optim.Adam(model.parameters(), lr=0.03), node)
        step(model, optimizer)
        for copied in (pickle.loads(pickle.dumps(optimizer)), copy.deepcopy(optimizer)):
            self.assertIs(type(copied), torch.optim.Adam)
            self.assertEqual(copied.param_groups[0]["lr"], 0.03)
            self.assertEqual(len(copied.state), 4)
            copied.step()
        file = io.BytesIO()
        torch.save(optimizer, file)
        self.assertEqual(len(self.fake.of(DONE)), 1)
        step(model, optimizer)
        self.assertEqual(len(self.fake.of(DONE)), 2)

    def noisy_steps(self, kind, nodes, steps, **options):
        """A model after steps with gradients of two halves, and what FleetNoise and the formulas in float64 make of them."""
        torch.manual_seed(3)
        parameter = nn.Parameter(torch.randn(50))
        optimizer = kind([parameter], lr=0.01, weight_decay=0.1, **options)
        noise = sgp.FleetNoise(optimizer, nodes)
        x, p, s, h = (parameter.detach().double().clone(), *(torch.zeros(50).double() for _ in range(3)))
        for t in range(1, steps + 1):
            halves = [0.1 + torch.randn(50) for _ in range(2)]
            parameter.grad = halves[0] / 2
            noise.note()
            parameter.grad = parameter.grad + halves[1] / 2
            noise.note()
            noise.step()
            a, b = (half.double() for half in halves)
            g, d = (a + b) / 2, (a - b) / 2
            if kind is torch.optim.Adam:
                g = g + 0.1 * x
            p = 0.9 * p + 0.1 * g
            s = 0.99 * s + 0.01 * g * g
            h = 0.99 * h + 0.01 * d * d
            f = 1 / nodes
            kept = s if t == 1 else torch.maximum(f * s, s - (1 - f) * h)
            r = p / (1 - 0.9 ** t) / ((kept / (1 - 0.99 ** t)).sqrt() + 1e-8)
            x = x - 0.01 * (r + (0.1 * x if kind is torch.optim.AdamW else 0))
            self.assertLess(float((parameter.detach() - x).norm() / x.norm()), 1e-6, t)
        return parameter, optimizer, noise

    def test_fleet_noise_follows_its_formula(self):
        for kind in (torch.optim.Adam, torch.optim.AdamW):
            for nodes in (1, 2, 8):
                with self.subTest(kind=kind.__name__, nodes=nodes):
                    _, optimizer, _ = self.noisy_steps(kind, nodes, 50, betas=(0.9, 0.99))
                    state, = optimizer.state.values()
                    self.assertEqual("noise" in state, nodes > 1)

    def test_one_node_takes_the_steps_of_pytorch(self):
        """To the bit, with the same halves."""
        models = [network(), network()]
        optimizers = [torch.optim.AdamW(model.parameters(), lr=0.01) for model in models]
        noise = sgp.FleetNoise(optimizers[0], 1)
        for number in range(20):
            for model in models:
                model.zero_grad()
                for half in range(2):
                    (loss_of(model, 2 * number + half) / 2).backward()
                    noise.note()
            noise.step()
            optimizers[1].step()
        for ours, theirs in zip(models[0].parameters(), models[1].parameters()):
            self.assertTrue(torch.equal(ours, theirs))

    def test_fleet_noise_is_saved_and_goes_on(self):
        def take(model, noise, first, last):
            for number in range(first, last):
                model.zero_grad()
                for half in range(2):
                    (loss_of(model, 2 * number + half) / 2).backward()
                    noise.note()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                noise.step()
        straight, model = network(), network()
        take(straight, sgp.FleetNoise(torch.optim.Adam(straight.parameters(), lr=0.01), 4), 0, 30)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        take(model, sgp.FleetNoise(optimizer, 4), 0, 13)
        again = torch.optim.Adam(model.parameters(), lr=0.01)
        again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        take(model, sgp.FleetNoise(again, 4), 13, 30)
        for ours, theirs in zip(model.parameters(), straight.parameters()):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=0)

    def test_fleet_noise_refuses_what_it_does_not_know(self):
        parameters = [nn.Parameter(torch.zeros(2))]
        for optimizer, nodes, why in ((torch.optim.SGD(parameters, lr=1), 2, "SGD is neither torch.optim.Adam nor AdamW"),
                                      (torch.optim.Adam(parameters, amsgrad=True), 2, "amsgrad=True"),
                                      (torch.optim.AdamW(parameters, maximize=True), 2, "maximize=True"),
                                      (torch.optim.AdamW(parameters), 0, "nodes is 0; at least 1")):
            with self.assertRaisesRegex(ValueError, why):
                sgp.FleetNoise(optimizer, nodes)

    def test_saved_optimizer_goes_on(self):
        model = network()
        optimizer = torch.optim.Adam(model.parameters())
        node = self.attach(model, optimizer)
        step(model, optimizer)
        path = os.path.join(self.fake.folder.name, "state")
        node.save(path, optimizer=optimizer)
        fresh = torch.optim.Adam(model.parameters())
        self.assertTrue(node.load(path, optimizer=fresh))
        torch.testing.assert_close(fresh.state[model[0].weight]["exp_avg"],
                                   optimizer.state[model[0].weight]["exp_avg"])


if __name__ == "__main__":
    common.main()
