#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Callbacks of trainers, against small stand-ins that call what the documentation of Lightning and transformers says, in its order;
the average over time; and marks for the profiler."""
import contextlib
import copy
import os
import re
import sys
import types
import unittest
import warnings
from unittest import mock

import common
import fake_daemon
import sgp
from fake_daemon import DONE, FINISH, FakeDaemon

try:
    import torch
    from torch import nn
except ImportError:
    print("1..0 # SKIP not installed: python3-torch")
    raise SystemExit from None

torch.set_num_threads(1)
warnings.filterwarnings("ignore", "a neighbour has not ended")
ROWS = torch.randn(64, 6, generator=torch.Generator().manual_seed(1))


def network():
    torch.manual_seed(1)
    return nn.Linear(6, 2)


class Callback:
    """lightning.pytorch.callbacks.Callback has a method that does nothing for every event."""

    def on_train_start(self, trainer, pl_module): ...
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx): ...
    def on_train_end(self, trainer, pl_module): ...
    def on_exception(self, trainer, pl_module, exception): ...


class TrainerCallback:
    """transformers.TrainerCallback, too."""


class Lightning:
    """Trainer.fit of Lightning, without what no callback sees."""

    def __init__(self, callback, accumulate=1, epochs=2, fails_at=None):
        self.callback, self.accumulate, self.epochs, self.fails_at = callback, accumulate, epochs, fails_at
        self.global_step, self.should_stop = 0, False

    def fit(self, module, loader):
        self.optimizers = [torch.optim.SGD(module.parameters(), lr=0.1)]
        self.callback.on_train_start(self, module)
        try:
            for _ in range(self.epochs):
                for number, batch in enumerate(loader):
                    if number == self.fails_at:
                        raise ZeroDivisionError
                    loss = module(batch).pow(2).mean()
                    (loss / self.accumulate).backward()
                    if (number + 1) % self.accumulate == 0 or number + 1 == len(loader):
                        self.optimizers[0].step()
                        self.optimizers[0].zero_grad()
                        self.global_step += 1
                    self.callback.on_train_batch_end(self, module, {"loss": loss.detach()}, batch, number)
                    if self.should_stop:
                        break
        except ZeroDivisionError as error:
            self.callback.on_exception(self, module, error)
            raise
        self.callback.on_train_end(self, module)


class HuggingFace:
    """Trainer of transformers, without what no callback sees."""

    def __init__(self, model, args, train_dataset=None, data_collator=None, callbacks=()):
        self.model, self.args, self.train_dataset, self.data_collator, self.callbacks = model, args, train_dataset, data_collator, callbacks
        self.control = types.SimpleNamespace(should_training_stop=False)
        self.state = types.SimpleNamespace(global_step=0)

    def tell(self, event, optimizer):
        for callback in self.callbacks:
            getattr(callback, event)(self.args, self.state, self.control, model=self.model, optimizer=optimizer, lr_scheduler=None,
                                     train_dataloader=None)

    def train(self):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.tell("on_train_begin", optimizer)
        for number, batch in enumerate(self.get_train_dataloader(), 1):
            self.model(batch).pow(2).mean().backward()
            if number % self.args.gradient_accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
                self.state.global_step += 1
                self.tell("on_step_end", optimizer)
            if self.control.should_training_stop:
                break
        self.tell("on_train_end", optimizer)


class Accelerator:
    """That of Accelerate in one process."""

    device = "cpu"

    def __init__(self, gradient_accumulation_steps):
        self.every, self.count = gradient_accumulation_steps, 0

    def prepare(self, model, optimizer):
        self.step, self.zero_grad = optimizer.step, optimizer.zero_grad
        optimizer.step = lambda: self.step() if self.sync_gradients else None
        optimizer.zero_grad = lambda: self.zero_grad() if self.sync_gradients else None
        return model, optimizer

    def unwrap_model(self, model):
        return model

    @contextlib.contextmanager
    def accumulate(self, model):
        self.count += 1
        self.sync_gradients = self.count % self.every == 0
        yield

    def backward(self, loss):
        (loss / self.every).backward()


class TrainersTest(unittest.TestCase):
    def setUp(self):
        pytorch = types.ModuleType("lightning.pytorch")
        pytorch.Trainer = lambda callbacks, **options: Lightning(*callbacks)
        modules = {"lightning": types.ModuleType("lightning"), "lightning.pytorch": pytorch,
                   "lightning.pytorch.callbacks": types.SimpleNamespace(Callback=Callback),
                   "transformers": types.SimpleNamespace(TrainerCallback=TrainerCallback, Trainer=HuggingFace),
                   "accelerate": types.SimpleNamespace(Accelerator=Accelerator)}
        patch = mock.patch.dict(sys.modules, modules)
        patch.start()
        self.addCleanup(patch.stop)
        import sgp.lightning
        import sgp.transformers

    def join(self, **options):
        self.daemon = FakeDaemon(**{"final": 2.0, "size": 2, **options})
        self.addCleanup(self.daemon.close)
        return sgp.join(name=self.daemon.path)

    def done(self):
        return [frame["rows"] for frame in self.daemon.of(DONE)]

    # ---- Lightning

    def test_lightning(self):
        """Each step of the optimizer is mixed, however many batches it is of."""
        for accumulate, rows in ((1, [8] * 8), (2, [16] * 4), (3, [24, 8] * 2)):
            node, module = self.join(), network()
            Lightning(sgp.lightning.Fleet(node), accumulate).fit(module, node.loader(ROWS, batch_size=8))
            self.assertEqual(self.done(), rows)
            self.assertFalse(any(frame["loss"] != frame["loss"] for frame in self.daemon.of(DONE)))
            self.assertEqual(len(self.daemon.of(FINISH)), 1)
            self.assertTrue((module.weight == 2).all())
            node.detach()

    def test_lightning_stops_with_the_fleet(self):
        node = self.join(rounds=3)
        trainer = Lightning(sgp.lightning.Fleet(node))
        trainer.fit(network(), node.loader(ROWS, batch_size=8))
        self.assertEqual((trainer.global_step, trainer.should_stop), (3, True))

    def test_lightning_fails(self):
        node = self.join()
        with self.assertRaises(ZeroDivisionError):
            Lightning(sgp.lightning.Fleet(node), fails_at=2).fit(network(), node.loader(ROWS, batch_size=8))
        self.assertEqual((len(self.done()), self.daemon.of(FINISH)), (2, []))

    def test_lightning_with_two_optimizers(self):
        trainer = types.SimpleNamespace(optimizers=[1, 2], global_step=0)
        with self.assertRaisesRegex(sgp.Error, "the module has 2 optimizers"):
            sgp.lightning.Fleet(self.join()).on_train_start(trainer, network())

    def test_rows_and_loss_of_what_lightning_gives(self):
        rows, loss = sgp.lightning.rows_of, sgp.lightning.loss_of
        self.assertEqual([rows(ROWS), rows((ROWS, 1)), rows([{"x": ROWS}]), rows({})], [64, 64, 64, 0])
        self.assertEqual([loss(None), loss(torch.tensor(2.0)), loss({"loss": 3.0}), loss({})], [None, 2.0, 3.0, None])

    # ---- transformers

    def hugging_face(self, node, model, accumulate=2, **options):
        class Trainer(HuggingFace):
            def get_train_dataloader(self):
                return node.loader(self.train_dataset, self.args.per_device_train_batch_size)
        arguments = types.SimpleNamespace(per_device_train_batch_size=8, gradient_accumulation_steps=accumulate)
        return Trainer(model, arguments, ROWS, callbacks=[sgp.transformers.Fleet(node)], **options)

    def test_hugging_face(self):
        node, model = self.join(), network()
        with node:
            self.hugging_face(node, model).train()
        self.assertEqual((self.done(), len(self.daemon.of(FINISH))), ([16, 16], 1))
        self.assertTrue((model.weight == 2).all())

    def test_hugging_face_stops_with_the_fleet(self):
        node = self.join(rounds=1)
        trainer = self.hugging_face(node, network(), accumulate=1)
        trainer.train()
        self.assertEqual((trainer.state.global_step, trainer.control.should_training_stop), (1, True))

    def test_hugging_face_fails(self):
        node = self.join()
        trainer = self.hugging_face(node, network())
        trainer.get_train_dataloader = lambda: 1 / 0
        with self.assertRaises(ZeroDivisionError), node:
            trainer.train()
        with self.assertRaises(sgp.Disconnected):
            node.mix()
        self.assertEqual(self.daemon.of(FINISH), [])

    # ---- the page

    def test_the_lines_of_the_page(self):
        """What docs/ATTACH.md tells people to write runs as it stands, with the stand-ins in the place of the libraries."""
        with open(os.path.join(common.ROOT, "docs/ATTACH.md"), encoding="utf-8") as file:
            page = file.read()
        for begin, rows in (("import sgp, sgp.lightning", [32] * 2), ("import sgp, sgp.transformers", [32]),
                            ("import sgp\nfrom accelerate", [32] * 2)):
            code = re.search(r"```python\n(%s.*?)```" % re.escape(begin), page, re.DOTALL).group(1)
            pairs = "for x, y" in code
            count = {"import sgp\nfrom accelerate": 256}.get(begin, 64)
            data = torch.randn(count, 6, generator=torch.Generator().manual_seed(1))
            model = network()
            names = {"module": model, "model": model, "sgp": sgp, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
                     "criterion": nn.CrossEntropyLoss(),
                     "train_set": (data, torch.zeros(count, dtype=torch.long)) if pairs else data,
                     "arguments": types.SimpleNamespace(per_device_train_batch_size=32, gradient_accumulation_steps=1)}
            self.join()
            with mock.patch.dict(os.environ, {"SGP_SOCKET": self.daemon.path}):
                exec(compile(code, "docs/ATTACH.md", "exec"), names)
            self.assertEqual((self.done(), len(self.daemon.of(FINISH))), (rows, 1), begin)
            self.assertTrue((model.weight == 2).all(), begin)

    # ---- an average

    def test_the_average_follows_its_formula(self):
        model = nn.BatchNorm1d(2)
        ema = sgp.Ema(model, decay=0.5)
        values = [float(k * k) for k in range(1, 8)]
        mean = None
        for count, value in enumerate(values):
            with torch.no_grad():
                model.weight.fill_(value)
                model.num_batches_tracked += 1
            ema.update()
            kept = min(0.5, (1 + count) / (10 + count)) if count else 0.0
            mean = value if mean is None else kept * mean + (1 - kept) * value
        self.assertAlmostEqual(float(ema.module.weight[0]), mean, places=4)
        self.assertEqual((int(ema.module.num_batches_tracked), float(model.weight[0].detach())), (7, 49.0))
        again = sgp.Ema(nn.BatchNorm1d(2), decay=0.5)
        again.load_state_dict(copy.deepcopy(ema.state_dict()))
        for one in (ema, again):
            one._model = model
            one.update()
        self.assertTrue((ema.module.weight == again.module.weight).all())
        with self.assertRaisesRegex(ValueError, "decay is 1; from 0 to below 1"):
            sgp.Ema(model, decay=1)

    def test_the_average_is_no_part_of_the_fleet(self):
        """It has memory of its own, leaves out steps that did not count, and begins anew after a jump."""
        self.daemon = FakeDaemon(acts={3: fake_daemon.take_back, 4: fake_daemon.jump})
        self.addCleanup(self.daemon.close)
        model = network()
        with sgp.attach(model, name=self.daemon.path) as node:
            ema = sgp.Ema(model, decay=0.9)
            for number in range(4):
                with torch.no_grad():
                    model.weight += 1
                before = ema.module.weight.clone()
                mixed = node.mix()
                ema.update(mixed)
                self.assertEqual(bool((ema.module.weight == before).all()), number == 2)
            self.assertTrue((ema.module.weight == 5).all())
            node.detach()

    # ---- the profiler

    def test_a_profile_shows_the_mix(self):
        self.daemon = FakeDaemon()
        self.addCleanup(self.daemon.close)
        with sgp.attach(network(), name=self.daemon.path) as node:
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
                for _ in range(3):
                    node.mix()
            node.detach()
        counts = {event.key: event.count for event in profile.key_averages()}
        self.assertEqual((counts["sgp.mix"], counts["sgp.wait"]), (3, 3))


if __name__ == "__main__":
    common.main()
