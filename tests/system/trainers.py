#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small model with a library as a node of the fleet that `sgpctl launch` makes: `trainers.py LIBRARY [FAILS]`, with
LIBRARY lightning, transformers, gpt2 (a model of transformers) or accelerate. On a GPU where PyTorch can use one. The libraries
write their own checkpoints meanwhile. With FAILS the program fails after so many batches. Prints the device, the optimizer's
steps, the loss over all rows before and after, a digest of the parameters, and the round of those that it began with."""
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
FAILS = int(sys.argv[2]) if len(sys.argv) > 2 else None
WORDS, LENGTH = 16, 12  # of the language of gpt2

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


def sentences():
    """(ROWS, LENGTH) words, each the one before it and 3."""
    return (torch.arange(ROWS)[:, None] + 3 * torch.arange(LENGTH)) % WORDS


batches = 0


def loss_of(outputs, y):
    """Of a batch; the batch of number FAILS has none."""
    global batches
    batches += 1
    if batches == FAILS:
        raise ZeroDivisionError
    return nn.functional.mse_loss(outputs, y)


def with_lightning(folder):
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
            return loss_of(self.inner(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    node, module = sgp.join(), Module()
    trainer = lightning.Trainer(
        max_epochs=EPOCHS, callbacks=[sgp.lightning.Fleet(node, timeout=60)], accelerator="gpu" if DEVICE == "cuda" else "cpu",
        devices=1, use_distributed_sampler=False, logger=False, default_root_dir=folder, enable_progress_bar=False,
        enable_model_summary=False)
    trainer.fit(module, node.loader(DATA, batch_size=BATCH))
    return node, module.inner, trainer.global_step


def trained(folder, node, model, data, collate, optim="sgd", rate=0.1):
    """The steps of the Trainer of transformers, which saves the model after each pass."""
    import transformers

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self):
            return node.loader(self.train_dataset, self.args.per_device_train_batch_size, collate_fn=self.data_collator)

    arguments = transformers.TrainingArguments(
        folder, num_train_epochs=EPOCHS, per_device_train_batch_size=BATCH, learning_rate=rate, optim=optim,
        report_to="none", save_strategy="epoch", disable_tqdm=True, use_cpu=DEVICE == "cpu")
    trainer = Trainer(model, arguments, train_dataset=data, data_collator=collate,
                      callbacks=[sgp.transformers.Fleet(node, timeout=60)])
    with node:
        trainer.train()
    trainer.save_model(folder)
    return trainer.state.global_step


def with_transformers(folder):
    import sgp.transformers

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = network()

        def forward(self, x, labels):
            return {"loss": loss_of(self.inner(x), labels)}

    def collate(chosen):
        return {"x": torch.stack([x for x, _ in chosen]), "labels": torch.stack([y for _, y in chosen])}

    node, model = sgp.join(), Model()
    steps = trained(folder, node, model, DATA, collate)
    return node, model.inner, steps


def gpt2():
    """A model of transformers, of which one matrix is the first layer and the last."""
    import transformers
    torch.manual_seed(1)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=WORDS, n_positions=LENGTH, n_embd=32, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0))


def with_gpt2(folder):
    import sgp.transformers
    node, model = sgp.join(), gpt2()
    steps = trained(folder, node, model, sentences(),
                    lambda chosen: {"input_ids": torch.stack(chosen), "labels": torch.stack(chosen)}, "adamw_torch", 0.02)
    again = type(model).from_pretrained(folder)
    for (name, saved), now in zip(again.state_dict().items(), model.cpu().state_dict().values()):
        assert torch.equal(saved, now), f"{name} is another after save_model and from_pretrained"
    return node, model, steps


def with_accelerate(_):
    from accelerate import Accelerator
    accelerator = Accelerator(gradient_accumulation_steps=2, cpu=DEVICE == "cpu")
    model = network()
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    steps = 0
    node = sgp.attach(accelerator.unwrap_model(model), optimizer, timeout=60)
    for _ in range(EPOCHS):
        for x, y in node.loader(DATA, batch_size=BATCH):
            with accelerator.accumulate(model):
                loss = loss_of(model(x.to(accelerator.device)), y.to(accelerator.device))
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                steps += 1
                node.mix(loss=loss, rows=len(y) * accelerator.gradient_accumulation_steps)
    node.finish()
    return node, accelerator.unwrap_model(model), steps


@torch.no_grad()
def loss_of_all(model):
    model.eval()
    if isinstance(model, nn.Sequential):
        return float(nn.functional.mse_loss(model(X), Y))
    return float(model(input_ids=sentences(), labels=sentences()).loss)


def main():
    library = sys.argv[1]
    before = loss_of_all(gpt2() if library == "gpt2" else network())
    with tempfile.TemporaryDirectory() as folder:
        node, model, steps = {"lightning": with_lightning, "transformers": with_transformers, "gpt2": with_gpt2,
                              "accelerate": with_accelerate}[library](folder)
    after = loss_of_all(model.cpu())
    bits = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    print(f"{DEVICE} {steps} steps, loss {before:.4f} {after:.4f}, model {hashlib.sha256(bits).hexdigest()[:16]}, "
          f"from round {node.parameters_round}")
    node.detach()


main()
