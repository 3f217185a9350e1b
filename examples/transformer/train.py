#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A small Transformer that predicts the letters of the King James Bible, as one node of a fleet, or alone."""
import argparse
import math
import os
import subprocess
import sys

import torch
from torch import nn
from torch.nn import functional as F

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))  # where not installed
import sgp

CONTEXT, WIDTH, HEADS, LAYERS = 64, 64, 4, 2
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def read():
    """Windows of CONTEXT + 1 letters: (n, CONTEXT + 1) to train on, some to validate, and how many letters there are."""
    text = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], capture_output=True, text=True, check=True).stdout
    letters = sorted(set(text))
    places = {letter: place for place, letter in enumerate(letters)}
    codes = torch.tensor([places[letter] for letter in text])
    windows = codes[:len(codes) // (CONTEXT + 1) * (CONTEXT + 1)].view(-1, CONTEXT + 1)
    held_out = torch.arange(len(windows)) % 50 == 0
    return windows[~held_out].to(DEVICE), windows[held_out][:1000].to(DEVICE), len(letters)


class Transformer(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.letter = nn.Embedding(letters, WIDTH)
        self.place = nn.Parameter(torch.randn(CONTEXT, WIDTH) * 0.02)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, activation="gelu", batch_first=True,
                                           norm_first=True)
        self.layers = nn.TransformerEncoder(layer, LAYERS)
        self.norm = nn.LayerNorm(WIDTH)
        self.output = nn.Linear(WIDTH, letters)
        self.register_buffer("mask", torch.full((CONTEXT, CONTEXT), -math.inf).triu(1), persistent=False)

    def forward(self, x):
        return self.output(self.norm(self.layers(self.letter(x) + self.place, self.mask)))


def loss_of(model, windows):
    """Nats a letter."""
    return F.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())


@torch.no_grad()
def bits(model, windows):
    """Bits a letter over all windows."""
    losses = [float(loss_of(model, part)) * len(part) for part in windows.split(100)]
    return sum(losses) / len(windows) / math.log(2)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--batch", type=int, default=16, help="windows of a step, of this node (16)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    train, held_out, letters = read()
    model = Transformer(letters).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.012, weight_decay=0.01)
    half = options.steps / 2
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / 50) * min(1, max(0.05, 2 - (step + 1) / half)))
    with sgp.attach(model, optimizer, required=False, timeout=60) as node:
        done = 0
        noise = sgp.FleetNoise(optimizer, node.size)
        while done < options.steps and not node.stopped:
            for windows in node.shard(train, batch_size=options.batch):
                optimizer.zero_grad()
                loss = 0.0
                for part in windows.chunk(2):
                    part_loss = loss_of(model, part) * len(part) / len(windows)
                    part_loss.backward()
                    noise.note()
                    loss += part_loss.item()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                noise.step()  # AdamW's, as of one process with the windows of all
                schedule.step()
                node.mix(loss=loss, rows=len(windows))
                done += 1
                if done == options.steps:
                    break
        name = node.name
    print(f"{name}: validation bits a letter {bits(model, held_out):.4f}", flush=True)


main()
