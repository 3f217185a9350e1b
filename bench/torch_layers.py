#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Rows a second of a network in training by PyTorch: torch_layers.py LAYERS BATCH THREADS SECONDS [PRECISION].

LAYERS is a text of layers for rows of 1x28x28, as in a configuration: conv, pool, norm batch, dropout, residual and
dense with relu. The loop and what it prints are those of torch_learn.py.
"""
import sys

import torch
from torch import nn

import torch_learn


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


if __name__ == "__main__":
    torch_learn.main(lambda: Layers(sys.argv[1].split(", ")), (1, 28, 28), 10)
