#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Callbacks of trainers, against small stand-ins that call what Lightning and transformers call, in their order, and against these
libraries themselves where they are installed; the average over time; and marks for the profiler."""
import contextlib
import copy
import importlib.util
import logging
import os
import re
import sys
import tempfile
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


class Failing(nn.Linear):
    """Fails with its third batch."""

    batches = 0

    def forward(self, x):
        self.batches += 1
        return super().forward(x) if self.batches < 3 else 1 / 0


class Callback:
    """lightning.pytorch.callbacks.Callback has a method that does nothing for every event."""

    def on_train_start(self, trainer, pl_module): ...
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx): ...
    def on_train_end(self, trainer, pl_module): ...
    def on_exception(self, trainer, pl_module, exception): ...


class TrainerCallback:
    """transformers.TrainerCallback, too."""

    def on_train_begin(self, args, state, control, **objects): ...
    def on_substep_end(self, args, state, control, **objects): ...
    def on_step_end(self, args, state, control, **objects): ...
    def on_train_end(self, args, state, control, **objects): ...


class Lightning:
    """Trainer.fit of Lightning, without what no callback sees. `losses` are those of all batches, with their rows."""

    def __init__(self, callback, accumulate=1, epochs=2, fails_at=None):
        self.callback, self.accumulate_grad_batches, self.epochs, self.fails_at = callback, accumulate, epochs, fails_at
        self.global_step, self.should_stop, self.losses = 0, False, []

    def fit(self, module, loader):
        self.optimizers = [torch.optim.SGD(module.parameters(), lr=0.1)]
        try:
            self.callback.on_train_start(self, module)
            for _ in range(self.epochs):
                for number, batch in enumerate(loader):
                    if number == self.fails_at:
                        raise ZeroDivisionError
                    loss = module(batch).pow(2).mean()
                    self.losses.append((loss.item(), len(batch)))
                    loss = loss / self.accumulate_grad_batches
                    loss.backward()
                    if (number + 1) % self.accumulate_grad_batches == 0 or number + 1 == len(loader):
                        self.optimizers[0].step()
                        self.optimizers[0].zero_grad()
                        self.global_step += 1
                    self.callback.on_train_batch_end(self, module, {"loss": loss.detach()}, batch, number)
                    if self.should_stop:
                        break
                if self.should_stop:
                    break
        except Exception as error:
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
        loader, optimizer = self.get_train_dataloader(), torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.tell("on_train_begin", optimizer)
        for number, batch in enumerate(loader, 1):
            (self.model(batch).pow(2).mean() / self.args.gradient_accumulation_steps).backward()
            if number % self.args.gradient_accumulation_steps == 0 or number == len(loader):
                optimizer.step()
                optimizer.zero_grad()
                self.state.global_step += 1
                self.tell("on_step_end", optimizer)
            else:
                self.tell("on_substep_end", optimizer)
            if self.control.should_training_stop:
                break
        self.tell("on_train_end", optimizer)


class Accelerator:
    """That of Accelerate in one process."""

    device = "cpu"

    def __init__(self, gradient_accumulation_steps):
        self.gradient_accumulation_steps, self.count = gradient_accumulation_steps, 0

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
        self.sync_gradients = self.count % self.gradient_accumulation_steps == 0
        yield

    def backward(self, loss):
        (loss / self.gradient_accumulation_steps).backward()


class TrainersTest(unittest.TestCase):
    """What both kinds are tested by: stand-ins, and the libraries themselves."""

    def join(self, **options):
        self.daemon = FakeDaemon(**{"final": 2.0, "size": 2, **options})
        self.addCleanup(self.daemon.close)
        return sgp.join(name=self.daemon.path)

    def done(self):
        return [frame["rows"] for frame in self.daemon.of(DONE)]


class LightningCases:
    """Of `lightning(callback, accumulate=, fails_at=)`, which trains two epochs."""

    def test_lightning(self):
        """Each step of the optimizer is mixed, however many batches it is of."""
        for accumulate, rows in ((1, [8] * 8), (2, [16] * 4), (3, [24, 8] * 2)):
            node, module = self.join(), network()
            trainer = self.lightning(sgp.lightning.Fleet(node), accumulate=accumulate)
            trainer.fit(module, node.loader(ROWS, batch_size=8))
            self.assertEqual(self.done(), rows)
            for frame in self.daemon.of(DONE):
                batches = [trainer.losses.pop(0) for _ in range(frame["rows"] // 8)]
                self.assertAlmostEqual(frame["loss"], sum(loss * part for loss, part in batches) / frame["rows"], places=5)
            self.assertEqual(len(self.daemon.of(FINISH)), 1)
            self.assertTrue((module.weight == 2).all())
            node.detach()

    def test_lightning_stops_with_the_fleet(self):
        node = self.join(rounds=3)
        trainer = self.lightning(sgp.lightning.Fleet(node))
        trainer.fit(network(), node.loader(ROWS, batch_size=8))
        self.assertEqual((trainer.global_step, trainer.should_stop), (3, True))

    def test_lightning_fails(self):
        node = self.join()
        with self.assertRaises(ZeroDivisionError):
            self.lightning(sgp.lightning.Fleet(node), fails_at=2).fit(network(), node.loader(ROWS, batch_size=8))
        self.assertEqual((len(self.done()), self.daemon.of(FINISH)), (2, []))


class HuggingFaceCases:
    """Of `hugging_face(node, model, accumulate)`, which trains one epoch in batches of 8."""

    def test_hugging_face(self):
        """Each step is of as many batches as the Trainer says, and the last of an epoch of those that are left."""
        for accumulate, rows in ((1, [8] * 4), (2, [16] * 2), (3, [24, 8])):
            node, model = self.join(), network()
            with node:
                self.hugging_face(node, model, accumulate).train()
            self.assertEqual((self.done(), len(self.daemon.of(FINISH))), (rows, 1))
            self.assertTrue((model.weight == 2).all())

    def test_hugging_face_stops_with_the_fleet(self):
        node = self.join(rounds=1)
        trainer = self.hugging_face(node, network(), accumulate=1)
        trainer.train()
        self.assertEqual((trainer.state.global_step, trainer.control.should_training_stop), (1, True))

    def test_hugging_face_fails(self):
        node = self.join()
        with self.assertRaises(ZeroDivisionError), node:
            self.hugging_face(node, Failing(6, 2), accumulate=1).train()
        with self.assertRaises(sgp.Disconnected):
            node.mix()
        self.assertEqual((self.done(), self.daemon.of(FINISH)), ([8, 8], []))


class StandIns(LightningCases, HuggingFaceCases, TrainersTest):
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

    def lightning(self, callback, **options):
        return Lightning(callback, **options)

    def hugging_face(self, node, model, accumulate=2, **options):
        class Trainer(HuggingFace):
            def get_train_dataloader(self):
                return node.loader(self.train_dataset, self.args.per_device_train_batch_size)
        arguments = types.SimpleNamespace(per_device_train_batch_size=8, gradient_accumulation_steps=accumulate)
        return Trainer(model, arguments, ROWS, callbacks=[sgp.transformers.Fleet(node)], **options)

    def test_lightning_with_two_optimizers(self):
        trainer = types.SimpleNamespace(optimizers=[1, 2], global_step=0)
        with self.assertRaisesRegex(sgp.Error, "the module has 2 optimizers"):
            sgp.lightning.Fleet(self.join()).on_train_start(trainer, network())

    def test_rows_and_loss_of_what_lightning_gives(self):
        rows, loss = sgp.lightning.rows_of, sgp.lightning.loss_of
        self.assertEqual([rows(ROWS), rows((ROWS, 1)), rows([{"x": ROWS}]), rows({})], [64, 64, 64, 0])
        self.assertEqual([loss(None), loss(torch.tensor(2.0)), loss({"loss": 3.0}), loss({})], [None, 2.0, 3.0, None])

    def test_the_lines_of_the_page(self):
        """What docs/ATTACH.md tells people to write runs as it stands, with the stand-ins in the place of the libraries."""
        with open(os.path.join(common.ROOT, "docs/ATTACH.md"), encoding="utf-8") as file:
            page = file.read()
        for begin, rows in (("import sgp, sgp.lightning", [32] * 2), ("import sgp, sgp.transformers", [32]),
                            ("import sgp\nfrom accelerate", [64] * 2)):
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


def installed(*names):
    return unittest.skipUnless(any(importlib.util.find_spec(name) for name in names), f"not installed: {names[0]}")


@installed("lightning", "pytorch_lightning")
class LightningItself(LightningCases, TrainersTest):
    def setUp(self):
        import sgp.lightning
        logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)

    def lightning(self, callback, accumulate=1, fails_at=None):
        try:
            from lightning import pytorch
        except ImportError:
            import pytorch_lightning as pytorch

        class Module(pytorch.LightningModule):
            def __init__(self, inner):
                super().__init__()
                self.inner = inner

            def training_step(self, batch, number):
                if number == fails_at:
                    raise ZeroDivisionError
                loss = self.inner(batch).pow(2).mean()
                self.trainer.losses.append((loss.item(), len(batch)))
                return loss

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)

        class Trainer(pytorch.Trainer):
            def fit(self, module, loader):
                self.losses = []
                super().fit(Module(module), loader)
        return Trainer(callbacks=[callback], accumulate_grad_batches=accumulate, max_epochs=2, accelerator="cpu", devices=1,
                       use_distributed_sampler=False, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                       enable_model_summary=False)


@installed("transformers")
class HuggingFaceItself(HuggingFaceCases, TrainersTest):
    def setUp(self):
        import sgp.transformers

    def hugging_face(self, node, model, accumulate=2):
        import transformers

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = model

            def forward(self, x, labels=None):
                return {"loss": self.inner(x).pow(2).mean()}

        class Trainer(transformers.Trainer):
            def get_train_dataloader(self):
                return node.loader(self.train_dataset, self.args.per_device_train_batch_size, collate_fn=self.data_collator)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        arguments = transformers.TrainingArguments(
            folder.name, num_train_epochs=1, per_device_train_batch_size=8, gradient_accumulation_steps=accumulate,
            learning_rate=0.1, optim="sgd", report_to="none", save_strategy="no", disable_tqdm=True, use_cpu=True)
        return Trainer(Model(), arguments, train_dataset=ROWS, data_collator=lambda chosen: {"x": torch.stack(chosen)},
                       callbacks=[sgp.transformers.Fleet(node)])


class AverageAndProfile(unittest.TestCase):
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
