#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Rows a second of a network in training by PyTorch: torch_layers.py LAYERS BATCH THREADS SECONDS.

LAYERS is a text of layers for rows of 1x28x28, as in a configuration: conv, pool, norm batch, dropout, residual and
dense with relu. Otherwise as torch_learn.py. Prints one JSON object: rows a second, and rows a second of processor
time (all threads).
"""
import json
import sys
import time

import torch
from torch import nn

from torch_learn import ROWS, batch_of


class Layers(nn.Module):
    """Layers of a text; residual connections look back at what entered others."""

    def __init__(self, texts):
        super().__init__()
        self.words = [text.split() for text in texts]
        shape = torch.zeros(2, 1, 28, 28)
        self.parts = nn.ModuleList()
        entered = []
        for words in self.words:
            entered.append(shape)
            self.parts.append(self.part(words, shape))
            shape = self.apply_one(len(entered) - 1, shape, entered)

    def part(self, words, shape):
        kind, *rest = words
        if kind == "conv":
            window = int(rest[1].split("x")[0])
            return nn.Conv2d(shape.shape[1], int(rest[0]), window, padding=window // 2)
        if kind == "pool":
            return nn.AdaptiveAvgPool2d(1) if rest == ["avg", "all"] else nn.MaxPool2d(int(rest[0]))
        if kind == "norm":
            return nn.BatchNorm2d(shape.shape[1])
        if kind == "dropout":
            return nn.Dropout(float(rest[0]))
        if kind == "dense":
            return nn.Sequential(nn.Flatten(), nn.Linear(shape[0].numel(), int(rest[0])))
        return nn.Identity()

    def apply_one(self, number, x, entered):
        words = self.words[number]
        x = self.parts[number](x)
        if words[0] == "residual":
            x = x + entered[number - int(words[1])]
        return torch.relu(x) if words[-1] == "relu" else x

    def forward(self, x):
        entered = []
        for number in range(len(self.words)):
            entered.append(x)
            x = self.apply_one(number, x, entered)
        return x


def main():
    batch, threads, seconds = int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    rows, labels = torch.randint(256, (ROWS, 784), dtype=torch.uint8), torch.randint(10, (ROWS,))
    model = Layers(sys.argv[1].split(", "))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True, weight_decay=1e-4)
    order = torch.randperm(ROWS)
    place = 0

    def steps(count):
        nonlocal place
        for _ in range(count):
            chosen = order[place:place + batch]
            place = (place + batch) % (ROWS - batch)
            optimizer.zero_grad(set_to_none=True)
            x = batch_of(rows, chosen).reshape(-1, 1, 28, 28)
            torch.nn.functional.cross_entropy(model(x), labels[chosen]).backward()
            optimizer.step()

    steps(30)
    start, cpu, done = time.monotonic(), time.process_time(), 0
    while time.monotonic() - start < seconds:
        steps(10)
        done += 10 * batch
    print(json.dumps({"rows": done / (time.monotonic() - start), "rows_by_cpu": done / (time.process_time() - cpu)}))


if __name__ == "__main__":
    main()
