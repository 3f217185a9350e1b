#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fashion-MNIST in half precision, as one node of a fleet, or alone where no daemon is: in fp16 with a gradient scaler
on a GPU, in bf16 on the processor."""
import argparse
import gzip
import os
import sys

import numpy
import torch
from torch import nn
from torch.nn import functional as F

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))  # where not installed
import sgp

DATA = "/usr/share/datasets/fashion-mnist"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HALF = torch.float16 if DEVICE == "cuda" else torch.bfloat16
GradScaler = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler  # the latter before PyTorch 2.3


def read(kind):
    """Images (n, 784), of mean 0 and deviation 1 or so, and labels (n), on the device."""
    def values(name, head):
        with gzip.open(f"{DATA}/{kind}-{name}.gz") as file:
            return torch.from_numpy(numpy.frombuffer(file.read(), numpy.uint8, offset=head).copy())
    images = values("images-idx3-ubyte", 16).view(-1, 784).float()
    return ((images - 73) / 90).to(DEVICE), values("labels-idx1-ubyte", 8).long().to(DEVICE)


@torch.no_grad()
def accuracy(model, images, labels):
    return float((model(images).argmax(1) == labels).float().mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64, help="rows of a step, of this node (64)")
    parser.add_argument("--rows", type=int, default=60000, help="of the training set, for all nodes (60000)")
    parser.add_argument("--float32", action="store_true", help="for comparison: everything in float32")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    images, labels = read("train")
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)).to(DEVICE)  # float32: the master copy
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    # fp16 has few exponents, and small gradients would vanish: the loss is scaled. bf16 has those of float32.
    scaler = GradScaler(enabled=DEVICE == "cuda" and not options.float32)
    with sgp.attach(model, optimizer, scaler=scaler, required=False, timeout=60) as node:
        for _ in range(options.epochs):
            for x, y in node.shard((images[:options.rows], labels[:options.rows]), batch_size=options.batch):
                with torch.autocast(DEVICE, dtype=HALF, enabled=not options.float32):
                    loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                scaler.scale(loss).backward()
                scaler.step(optimizer)  # or not, where gradients have overflowed
                scaler.update()
                node.mix(loss=loss, rows=len(y))  # either way: the round needs this node
        name, skipped = node.name, node.skipped_steps
    test = accuracy(model, *read("t10k"))
    print(f"{name}: {DEVICE}, {skipped} steps left out, test accuracy {test:.4f}", flush=True)


main()
