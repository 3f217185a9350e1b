# SPDX-License-Identifier: Apache-2.0
"""Parameters that are copied, with real daemons: on a GPU, where there is one, and in half precision on any device.

The bits of the parameters are those of the memory that the daemon sees, in both directions, in every round."""
import unittest
from unittest import mock

import fleet
from attached import LOCK, AttachTest, flat, network, nn, rows, sgp, torch

PAIR = [[(0, 1), (1, 0)]]
ROUNDS = 50
GPU = torch is not None and torch.cuda.is_available()
needs_gpu = unittest.skipUnless(GPU, "no GPU that PyTorch can use")
BF16, FP16, FP32 = (torch.bfloat16, torch.float16, torch.float32) if torch else (None, None, None)


class Network(nn.Module if nn else object):
    """Convolutions (channels_last on request), a batch norm, a matrix that is used twice, and an embedding, on the 6 features
    of a row as a picture of 2 x 3."""

    def __init__(self, channels_last=False):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 8, 2, padding=1), nn.Conv2d(8, 4, (3, 2))
        self.norm, self.hidden, self.again, self.last = nn.BatchNorm1d(12), nn.Linear(12, 12), nn.Linear(12, 12), nn.Linear(12, 2)
        self.again.weight = self.hidden.weight
        self.table = nn.Embedding(5, 12)
        self.scale = nn.Parameter(torch.ones(()))
        if channels_last:
            self.to(memory_format=torch.channels_last)

    def forward(self, x):
        pictures = x.to(self.first.weight.device, self.first.weight.dtype).view(-1, 1, 2, 3)
        hidden = self.second(torch.tanh(self.first(pictures))).flatten(1).to(self.hidden.weight.device)
        words = (x[:, 0].abs() * 2).long().clamp(max=4).to(hidden.device)
        hidden = torch.tanh(self.hidden(self.norm(hidden))) + self.table(words)
        return self.last(torch.tanh(self.again(hidden))) * self.scale


def made(channels_last=False):
    with LOCK:
        torch.manual_seed(1)
        return Network(channels_last)


def loss_of(model, x, y):
    outputs = model(x)
    return (outputs.float() - y.to(outputs.device)).pow(2).mean()


@unittest.skipIf(torch is None, "not installed: python3-torch")
class DeviceTest(AttachTest):
    def memory_of(self, node):
        """The tensors that the daemon sees, by name, as copies; the program has its turn."""
        with node._memory.values() as values:
            flat = torch.frombuffer(bytearray(values), dtype=torch.float32)
        return {entry.name: flat[entry.first:entry.first + entry.count].view(entry.shape) for entry in node._memory.layout.tensors}

    def expect_memory(self, node, model, what):
        """Each tensor that travels is the memory's, rounded to its type, bit for bit."""
        state = model.state_dict()
        for name, values in self.memory_of(node).items():
            tensor = state[name].detach().cpu()
            self.assertTrue(torch.equal(tensor, values.to(tensor.dtype)), f"{what}: {name}, round {node.round}")

    def expect_gathered(self, node, model, before, kinds):
        """What the memory has once it is gathered: the tensors themselves, or in half precision their masters with the step."""
        node._model.gather()
        state = model.state_dict()
        for name, values in self.memory_of(node).items():
            tensor, master = state[name].detach().cpu(), before[name]
            if kinds[name] in (BF16, FP16):
                rounded = master.to(kinds[name])
                wanted = master + (tensor.float() - rounded.float())
                if "running" in name:
                    wanted = torch.where(tensor != rounded, tensor.float(), master)
            else:
                wanted = tensor.float()
            self.assertTrue(torch.equal(values, wanted), f"gathered: {name}, round {node.round}")

    def train(self, models, options=None, phases=None, rounds=ROUNDS):
        """Each node takes ROUNDS steps with its part of the rows: its losses and its memory at the end, and the fleet."""
        n = len(models)
        f = self.daemons(n, phases or PAIR, options)

        def act(i):
            model = models[i]
            optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
            x, y = (part[i::n] for part in rows(64 * n))
            with sgp.attach(model, optimizer, name=self.path(f, i), rounds=rounds, timeout=fleet.PATIENCE) as node:
                kinds = {name: tensor.dtype for name, tensor in model.state_dict().items()}
                self.expect_memory(node, model, "attached")
                losses = []
                while not node.stopped:
                    before = self.memory_of(node)
                    optimizer.zero_grad()
                    loss = loss_of(model, x, y)
                    loss.backward()
                    optimizer.step()
                    self.expect_gathered(node, model, before, kinds)
                    mixed = node.mix(loss=loss, rows=len(x))
                    self.assertFalse(mixed.skipped)
                    self.expect_memory(node, model, "mixed")
                    losses.append(loss.item())
                last = self.memory_of(node)
                self.pinned.append(getattr(node._model._copiers._pin, "done", None))
            return losses, last
        self.pinned = []
        results = self.each(n, act)
        for losses, _ in results:
            self.assertEqual(len(losses), ROUNDS)
            self.assertLess(losses[-1], 0.7 * losses[0])
        self.expect_one_model(f, models)
        return f, results

    def go_ahead(self, make):
        """Two programs that do not wait for their turns, each with its part of the rows; against the same in one process, to which
        what the other gave comes one step later."""
        f, steps = self.daemons(2, PAIR), 30

        def stepped(model, i):
            x, y = (part[i::2] for part in rows(128))
            device = model[0].weight.device
            model.zero_grad()
            (model(x.to(device)) - y.to(device)).pow(2).mean().backward()
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.2 * p.grad

        def act(i):
            model = make()
            with sgp.attach(model, name=self.path(f, i), rounds=steps, timeout=fleet.PATIENCE, overlap=True) as node:
                calls = 0
                while not node.stopped:
                    stepped(model, i)
                    node.mix(rows=64)
                    calls += 1
                self.assertEqual(calls, steps + 1, "the last of which says that all is over")
            return flat(model).cpu()
        ends = self.each(2, act)
        models = [make() for _ in range(2)]
        sent = mean = None
        for _ in range(steps):
            for i, model in enumerate(models):
                stepped(model, i)
            now = [flat(model) for model in models]
            sent = now if mean is None else [mean + (new - old) for new, old in zip(now, sent)]
            mean = (sent[0] + sent[1]) / 2
            for model, values in zip(models, sent):
                nn.utils.vector_to_parameters(values.clone(), model.parameters())
        for end in ends:
            torch.testing.assert_close(end, mean.cpu(), rtol=1e-4, atol=1e-5)
        statuses = f.quiet()
        self.assertAlmostEqual(sum(status["weight"] for status in statuses), 2, delta=1e-12)
        self.assertEqual([status["samples"] for status in statuses], [64 * steps] * 2)

    def half_against_one_process(self, kind, device):
        """Two nodes, each with its part of the rows and parameters in half precision; against one process, in which the mean of both
        masters is taken after each step. Where both round a value unlike, gradients differ by their last bits."""
        f, steps, rate = self.daemons(2, PAIR), 30, 0.2

        def stepped(model, i):
            x, y = (part[i::2].to(device) for part in rows(128))
            model.zero_grad()
            (model(x.to(kind)).float() - y).pow(2).mean().backward()
            with torch.no_grad():
                for p in model.parameters():
                    p -= rate * p.grad

        def act(i):
            model = network().to(device, kind)
            with sgp.attach(model, name=self.path(f, i), rounds=steps, timeout=fleet.PATIENCE) as node:
                while not node.stopped:
                    stepped(model, i)
                    node.mix(rows=64)
                values = torch.cat([tensor.reshape(-1) for tensor in self.memory_of(node).values()])
            return values, flat(model).cpu()
        ends = self.each(2, act)
        models = [network().to(device, kind) for _ in range(2)]
        mean = flat(models[0]).float()
        first = mean.clone()
        for _ in range(steps):
            masters = []
            for i, model in enumerate(models):
                nn.utils.vector_to_parameters(mean.to(kind), model.parameters())
                stepped(model, i)
                masters.append(mean + (flat(model).float() - mean.to(kind).float()))
            mean = (masters[0] + masters[1]) / 2
        moved = float((mean - first).norm())
        self.assertGreater(moved, 0.5)
        for values, rounded in ends:
            apart = float((values - mean.cpu()).norm())
            print(f"# {kind} on {device}: {apart:.2g} from one process, after a way of {moved:.2g}")
            self.assertLess(apart, 0.01 * moved)
            self.assertTrue(torch.equal(rounded, values.to(kind)))

    def expect_one_model(self, f, models):
        """The fleet's model is in the programs, rounded to their types, and in the daemons' files."""
        for node, model in zip(f.nodes, models):
            code, body = node.get("/v1/model")
            self.assertEqual(code, 200)
            values, first = torch.tensor(fleet.read_model(body)), 0
            for tensor in (t for t in traveling(model)):
                part = values[first:first + tensor.numel()].view(tensor.shape)
                first += tensor.numel()
                self.assertTrue(torch.equal(part.to(tensor.dtype), tensor.detach().cpu()))
            self.assertEqual(first, len(values))
        a, b = (torch.tensor(fleet.read_model(node.get("/v1/model")[1])) for node in f.nodes[:2])
        torch.testing.assert_close(a, b, rtol=0, atol=1e-3)  # what mixing on leaves


def traveling(model):
    """What travels of a model, in order: parameters, each once, then buffers of floating point."""
    return [*model.parameters(), *(buffer for buffer in model.buffers() if buffer.is_floating_point())]


class Copied(DeviceTest):
    def test_half_precision_on_the_processor(self):
        self.train([made().to(BF16) for _ in range(2)])

    def test_half_precision_against_one_process(self):
        self.half_against_one_process(BF16, "cpu")

    def test_half_precision_where_weights_differ(self):
        """n0 keeps a third of what it has; the weights are no powers of two."""
        self.train([made().to(BF16) for _ in range(3)], phases=[[(0, 1), (0, 2), (1, 0), (2, 0, 0.25)]])

    def test_nodes_of_unlike_precision(self):
        """One model to the fleet: float32 travels. Of each bfloat16 parameter the fleet has more bits than the node."""
        models = [made().to(BF16), made()]
        self.train(models)
        for ours, theirs in zip(models[0].parameters(), models[1].parameters()):
            torch.testing.assert_close(ours.float(), theirs, rtol=2.0 ** -7, atol=1e-3)

    def test_channels_last(self):
        """The daemon has rows; a tensor that is copied keeps its order in memory."""
        models = [made(channels_last=True).to(BF16) for _ in range(2)]
        strides = models[0].second.weight.stride()
        self.assertFalse(models[0].second.weight.is_contiguous())
        self.train(models)
        self.assertEqual(models[0].second.weight.stride(), strides)

    def test_copies_that_are_forced(self):
        """float32 on the processor, copied as from a device."""
        with mock.patch("sgp.torch_model.lies_here", lambda tensor: False):
            self.train([made(), made()])

    def test_local_steps_and_overlap(self):
        """Rounds of two turns, by osgp: shares travel while the next steps run."""
        self.train([made().to(BF16) for _ in range(2)],
                   {"train.local_steps": "2", "train.algorithm": "osgp"}, rounds=ROUNDS // 2)

    def test_programs_that_go_ahead(self):
        self.go_ahead(network)

    def test_programs_that_go_ahead_learn_by_osgp(self):
        f = self.daemons(4, None, {"train.algorithm": "osgp"})

        def act(i):
            model = made().to(BF16 if i == 0 else FP32)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
            with sgp.attach(model, optimizer, name=self.path(f, i), timeout=fleet.PATIENCE, overlap=True) as node:
                losses = []
                for _ in range(4):
                    for x, y in node.shard(rows(), batch_size=8):
                        optimizer.zero_grad()
                        loss = loss_of(model, x, y)
                        loss.backward()
                        optimizer.step()
                        losses.append(loss.item())
                        node.mix(loss=loss, rows=len(x))
            return sum(losses[:8]), sum(losses[-8:])
        for first, last in self.each(4, act):
            self.assertLess(last, 0.5 * first)
        self.assertAlmostEqual(sum(status["weight"] for status in f.quiet()), 4, delta=1e-9)

    def test_small_steps_are_not_lost_between_nodes(self):
        """n0 takes one step of one unit in the last place of its bfloat16, in every second round; n1 takes none. The mean of both
        is half of it, which bfloat16 cannot tell from nothing: masters have all of it, in the end and at any time."""
        f, unit = self.daemons(2, PAIR), 2.0 ** -7  # of numbers from 1 to 2

        def act(i):
            model = nn.Module()
            model.weight = nn.Parameter(torch.ones(8, dtype=BF16))
            with sgp.attach(model, name=self.path(f, i), rounds=40, timeout=fleet.PATIENCE) as node:
                while not node.stopped:
                    if i == 0 and node.round % 2 == 0:
                        with torch.no_grad():
                            model.weight += unit
                    node.mix()
                return self.memory_of(node)["weight"], model.weight.detach().clone()
        for values, weight in self.each(2, act):
            torch.testing.assert_close(values, torch.full((8,), 1 + 20 * unit / 2), rtol=1e-6, atol=0)
            self.assertTrue(torch.equal(weight, values.to(BF16)))

    def test_against_float32(self):
        """The masters follow a float32 reference as far as bfloat16 gradients let them: both come to the same loss."""
        ends = []
        for kind in (FP32, BF16):
            models = [made().to(kind) for _ in range(2)]
            _, results = self.train(models)
            ends.append([losses[-1] for losses, _ in results])
        print("# last losses in float32 %s, in bfloat16 %s" % tuple(" ".join("%.5f" % x for x in end) for end in ends))
        for exact, half in zip(*ends):
            self.assertLess(abs(half / exact - 1), 0.2)

    def test_a_program_that_comes_back(self):
        """Parameters in half precision get the node's masters, rounded."""
        f = self.daemons(1, [[]])

        def trained(rounds, value):
            model = made().to(BF16)
            with torch.no_grad():
                model.scale.fill_(value)
            node = sgp.attach(model, name=self.path(f, 0), timeout=fleet.PATIENCE)
            self.addCleanup(node.detach)
            self.expect_memory(node, model, "attached")
            for _ in range(rounds):
                with torch.no_grad():
                    model.scale += 0.25
                node.mix()
            node.detach()
            return model.scale.item()
        self.assertEqual(trained(4, 1), 2)
        f.wait_state("paused")
        self.assertEqual(trained(4, 9), 3)


@needs_gpu
class OnGpu(DeviceTest):
    def tell(self):
        print("# %s, PyTorch %s; pinned: %s" % (torch.cuda.get_device_name(), torch.__version__, self.pinned), flush=True)

    def test_float32(self):
        self.train([made().cuda() for _ in range(2)])
        self.tell()
        self.assertNotIn(None, self.pinned, "pinning was tried")

    def test_memory_that_is_not_pinned(self):
        """A driver that refuses: copies are those of ordinary memory, and no later kernel fails of it."""
        cudart = torch.cuda.cudart()
        refusing = mock.Mock(wraps=cudart)
        refusing.cudaHostRegister = lambda address, size, flags: cudart.cudaHostRegister(16, size, flags)  # no such memory
        with mock.patch.object(torch.cuda, "cudart", lambda: refusing), self.assertLogs("sgp", "WARNING") as told:
            self.train([made().cuda() for _ in range(2)])
        self.assertEqual(self.pinned, [False, False])
        self.assertEqual(len([line for line in told.output if "cannot be pinned" in line]), 2)

    def test_channels_last(self):
        models = [made(channels_last=True).cuda() for _ in range(2)]
        strides = models[0].second.weight.stride()
        self.train(models)
        self.assertEqual(models[0].second.weight.stride(), strides)

    def test_bfloat16(self):
        self.train([made(channels_last=True).cuda().to(BF16) for _ in range(2)])

    def test_float16(self):
        self.train([made(channels_last=True).cuda().to(FP16) for _ in range(2)])

    def test_half_precision_against_one_process(self):
        for kind in (BF16, FP16):
            self.half_against_one_process(kind, "cuda")

    def test_two_devices_in_one_model(self):
        """Convolutions on the processor, all else on the GPU, and the other way round on the other node."""
        models = [made().cuda(), made()]
        models[0].first.cpu()
        models[0].second.cpu()
        models[1].first.cuda()
        models[1].second.cuda()
        self.train(models)

    def test_one_node_with_a_gpu_and_one_without(self):
        self.train([made().cuda(), made()])

    def test_a_model_that_moves_in_mid_run(self):
        """To the GPU and back: an attached model stays attached."""
        f = self.daemons(1, [[]])
        model = made()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        x, y = rows(64)
        with sgp.attach(model, optimizer, name=self.path(f, 0), timeout=fleet.PATIENCE) as node:
            for device in ("cpu", "cuda", "cpu", "cuda"):
                model.to(device)
                for _ in range(3):
                    optimizer.zero_grad()
                    loss_of(model, x, y).backward()
                    optimizer.step()
                    self.assertFalse(node.mix().skipped)
                    self.expect_memory(node, model, device)

    def test_other_streams_and_a_busy_one(self):
        """The program computes on a stream of its own, which is far behind the processor when it mixes; and frees what it has
        copied from at once."""
        f = self.daemons(2, PAIR)
        large = 1 << 20

        def act(i):
            model = nn.Module()
            model.weight = nn.Parameter(torch.zeros(large, device="cuda"))
            busy = torch.randn(2048, 2048, device="cuda")
            torch.cuda.synchronize()
            own = torch.cuda.Stream()
            with torch.cuda.stream(own), sgp.attach(model, name=self.path(f, i), rounds=20, timeout=fleet.PATIENCE) as node:
                while not node.stopped:
                    for _ in range(20):
                        busy = torch.tanh(busy @ busy)
                    with torch.no_grad():
                        model.weight.data = model.weight.data + (1 + i) + 0 * busy[0, 0].clamp(0, 0)
                    node.mix()
                    seen = model.weight.detach().clone()
                    scratch = torch.full((large,), 1e6, device="cuda")  # may get the memory of the former weight
                    del scratch
                    self.assertTrue(bool((seen == seen[0]).all()), node.round)
                return float(seen[0])
        for end in self.each(2, act):
            self.assertAlmostEqual(end, 20 * 1.5, places=3)

    def test_programs_that_go_ahead(self):
        self.go_ahead(lambda: network().cuda())

    def test_a_forked_loader_beside_a_gpu(self):
        """Workers have no part in the memory, pinned or not."""
        f = self.daemons(1, [[]])
        model = made().cuda()
        with sgp.attach(model, name=self.path(f, 0), timeout=fleet.PATIENCE) as node:
            data = torch.utils.data.TensorDataset(*rows(64))
            for x, y in node.loader(data, batch_size=16, num_workers=2):
                loss_of(model, x, y).backward()
                with torch.no_grad():
                    model.scale += 0.25
                node.mix()
                self.expect_memory(node, model, "beside workers")


fleet.main()
