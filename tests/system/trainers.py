#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small model with a library as a node of the fleet that `sgpctl launch` makes: `trainers.py LIBRARY`, with
LIBRARY lightning, transformers or accelerate. On a GPU where PyTorch can use one. Prints the device, the optimizer's
steps, the loss over all rows before and after, and a digest of the parameters."""
import hashlib
import os
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
import sgp  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

ROWS, EPOCHS, BATCH = 256, 6, 16
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def rows():
    """(ROWS, 6) values and what a linear model of 2 outputs makes of them."""
    generator = torch.Generator().manual_seed(1)
    x, w = torch.randn(ROWS, 6, generator=generator), torch.randn(6, 2, generator=generator)
    return x, x @ w


X, Y = rows()
DATA = torch.utils.data.TensorDataset(X, Y)


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))


def with_lightning():
    import sgp.lightning
    try:
        from lightning import pytorch as lightning
    except ImportError:
        import pytorch_lightning as lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.inner = network()

        def training_step(self, batch, _):
            return nn.functional.mse_loss(self.inner(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    node, module = sgp.join(), Module()
    trainer = lightning.Trainer(
        max_epochs=EPOCHS, callbacks=[sgp.lightning.Fleet(node, timeout=60)], accelerator="gpu" if DEVICE == "cuda" else "cpu",
        devices=1, use_distributed_sampler=False, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False)
    trainer.fit(module, node.loader(DATA, batch_size=BATCH))
    return node, module.inner, trainer.global_step


def with_transformers():
    import sgp.transformers
    import transformers

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = network()

        def forward(self, x, labels):
            return {"loss": nn.functional.mse_loss(self.inner(x), labels)}

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self):
            return node.loader(self.train_dataset, self.args.per_device_train_batch_size, collate_fn=self.data_collator)

    def collate(chosen):
        return {"x": torch.stack([x for x, _ in chosen]), "labels": torch.stack([y for _, y in chosen])}

    node, model = sgp.join(), Model()
    with tempfile.TemporaryDirectory() as directory:
        arguments = transformers.TrainingArguments(
            directory, num_train_epochs=EPOCHS, per_device_train_batch_size=BATCH, learning_rate=0.1, optim="sgd",
            report_to="none", save_strategy="no", disable_tqdm=True, use_cpu=DEVICE == "cpu")
        trainer = Trainer(model, arguments, train_dataset=DATA, data_collator=collate,
                          callbacks=[sgp.transformers.Fleet(node, timeout=60)])
        trainer.train()
    return node, model.inner, trainer.state.global_step


def with_accelerate():
    from accelerate import Accelerator
    accelerator = Accelerator(gradient_accumulation_steps=2, cpu=DEVICE == "cpu")
    model = network()
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    steps = 0
    node = sgp.attach(accelerator.unwrap_model(model), optimizer, timeout=60)
    for _ in range(EPOCHS):
        for x, y in node.loader(DATA, batch_size=BATCH):
            with accelerator.accumulate(model):
                loss = nn.functional.mse_loss(model(x.to(accelerator.device)), y.to(accelerator.device))
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                steps += 1
                node.mix(loss=loss, rows=len(y))
    node.finish()
    return node, accelerator.unwrap_model(model), steps


def main():
    before = float(nn.functional.mse_loss(network()(X), Y))
    node, model, steps = {"lightning": with_lightning, "transformers": with_transformers,
                          "accelerate": with_accelerate}[sys.argv[1]]()
    model.requires_grad_(False).cpu()
    after = float(nn.functional.mse_loss(model(X), Y))
    bits = b"".join(p.numpy().tobytes() for p in model.parameters())
    print(f"{DEVICE} {steps} steps, loss {before:.4f} {after:.4f}, model {hashlib.sha256(bits).hexdigest()[:16]}")
    node.detach()


main()
