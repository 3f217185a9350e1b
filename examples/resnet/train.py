#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A small residual convolutional network on Fashion-MNIST, as one node of a fleet, or alone where no daemon is."""
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


def read(kind):
    """Images (n, 1, 28, 28), of mean 0 and deviation 1 or so, and labels (n), on the device."""
    def values(name, head):
        with gzip.open(f"{DATA}/{kind}-{name}.gz") as file:
            return torch.from_numpy(numpy.frombuffer(file.read(), numpy.uint8, offset=head).copy())
    images = values("images-idx3-ubyte", 16).view(-1, 1, 28, 28).float()
    return ((images - 73) / 90).to(DEVICE), values("labels-idx1-ubyte", 8).long().to(DEVICE)


class Block(nn.Module):
    """Two convolutions and what goes past them (He et al. 2016)."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride=outputs // inputs, padding=1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outputs) for _ in range(2))
        self.past = nn.Conv2d(inputs, outputs, 1, stride=2, bias=False) if inputs != outputs else nn.Identity()

    def forward(self, x):
        y = F.relu(self.norms[0](self.first(x)))
        return F.relu(self.norms[1](self.second(y)) + self.past(x))


def network():
    return nn.Sequential(nn.Conv2d(1, 16, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
                         Block(16, 16), Block(16, 32), Block(32, 64), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(64, 10))


@torch.no_grad()
def accuracy(model, images, labels):
    model.eval()
    right = sum(int((model(x).argmax(1) == y).sum()) for x, y in zip(images.split(500), labels.split(500)))
    model.train()
    return right / len(labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64, help="rows of a step, of this node (64)")
    parser.add_argument("--sorted", action="store_true", help="each node has the rows of a few labels only")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    images, labels = read("train")
    if options.sorted:  # row i of the file is node i % size's: sort so that a node's rows lie together
        order = labels.argsort(stable=True)
        size = int(os.environ.get("SGP_NODES", "4"))
        order = order[:len(order) // size * size].view(size, -1).t().reshape(-1)
        images, labels = images[order], labels[order]
    model = network().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    with sgp.attach(model, optimizer, required=False, timeout=60) as node:
        steps = options.epochs * -(-(len(images) // node.size) // options.batch)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=steps + 1)
        for _ in range(options.epochs):
            for x, y in node.shard((images, labels), batch_size=options.batch):
                loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                node.mix(loss=loss, rows=len(y))
        name = node.name
    print(f"{name}: test accuracy {accuracy(model, *read('t10k')):.4f}", flush=True)


main()
