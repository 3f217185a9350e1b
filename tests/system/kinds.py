# SPDX-License-Identifier: Apache-2.0
"""Kinds of training scripts, all trained at once, as parts of one model. kinds.py SOCKET prints the loss of each kind before
and after, as JSON. Each node needs a process of its own: the workers of a loader are forked, and a fork while another thread
computes may copy a lock that is held."""
import faulthandler
import json
import sys
import warnings

import fleet
from attached import network, nn, rows, sgp, torch

if torch is not None:
    import torch.utils.checkpoint

EPOCHS, ROWS, BATCH, WORDS = 6, 256, 32, 12  # rows, and those of a batch, are of all nodes


def words_of(x):
    """A walk over WORDS words for each row, by the signs of its features."""
    return (x > 0).long().cumsum(1) % WORDS


def square(outputs, y):
    return (outputs - y).pow(2).mean()


class Kind:
    """A part of the model, and its loop. `apart` is by how much its loss may differ, relative to that of one process."""

    apart = 0.01

    def make(self):
        return network()

    def begin(self, part, node):
        self.part, self.node = part, node
        self.optimizer = torch.optim.SGD(part.parameters(), lr=0.1)

    def loss(self, x, y):
        return square(self.part(x), y)

    def step(self, x, y):
        self.optimizer.zero_grad()
        self.loss(x, y).backward()
        self.optimizer.step()

    def mixed(self, mixed):
        """After the mix."""

    def epoch(self):
        """At its end."""

    def judged(self, x, y):
        """What is compared."""
        with torch.no_grad():
            return float(self.loss(x, y))


class Adadelta(Kind):
    """Its steps are divided by the size of the node's own gradient, which has the noise of half the rows: they are shorter than those
    of one process, and the loss is behind."""

    apart = 0.15

    def begin(self, part, node):
        super().begin(part, node)
        self.optimizer = torch.optim.Adadelta(part.parameters(), lr=1.0)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 2, 0.7)

    def epoch(self):
        self.scheduler.step()


class TiedLstm(Kind):
    """Words in and words out have one matrix."""

    def make(self):
        network()  # seeds
        part = nn.ModuleDict({"words": nn.Embedding(WORDS, 16), "lstm": nn.LSTM(16, 16, batch_first=True),
                              "next": nn.Linear(16, WORDS)})
        part["next"].weight = part["words"].weight
        return part

    def loss(self, x, y):
        words = words_of(x)
        hidden, _ = self.part["lstm"](self.part["words"](words[:, :-1]))
        return nn.functional.cross_entropy(self.part["next"](hidden).flatten(0, 1), words[:, 1:].flatten())


class AdamWithGroups(Kind):
    """AdamW with groups, gradients of two halves added up, and clipped. FleetNoise takes the noise of half the rows out of its steps,
    but not out of the norm by which gradients are clipped. Without it the loss is behind by 2.8 %."""

    apart = 0.02

    def begin(self, part, node):
        super().begin(part, node)
        weights = [p for p in part.parameters() if p.dim() > 1]
        biases = [p for p in part.parameters() if p.dim() == 1]
        self.optimizer = torch.optim.AdamW([{"params": weights, "weight_decay": 0.1}, {"params": biases, "weight_decay": 0.0}], lr=0.01)
        self.noise = sgp.FleetNoise(self.optimizer, node.size)

    def step(self, x, y):
        self.optimizer.zero_grad()
        for half in zip(x.chunk(2), y.chunk(2)):
            (self.loss(*half) / 2).backward()
            self.noise.note()
        nn.utils.clip_grad_norm_(self.part.parameters(), 0.5)
        self.noise.step()


class Vae(Kind):
    """Its noise is drawn by the node's own seed. Compared is the loss without noise."""

    def make(self):
        network()
        return nn.ModuleDict({"encoder": nn.Linear(6, 8), "decoder": nn.Linear(4, 6)})

    def begin(self, part, node):
        super().begin(part, node)
        self.draw = torch.Generator().manual_seed(node.seed)

    def loss(self, x, y):
        mean, log_variance = self.part["encoder"](x).chunk(2, 1)
        noise = torch.randn(mean.shape, generator=self.draw) if torch.is_grad_enabled() else 0.0
        again = self.part["decoder"](mean + (log_variance / 2).exp() * noise)
        apart = (mean.pow(2) + log_variance.exp() - 1 - log_variance).sum(1).mean() / 2
        return (again - x).pow(2).sum(1).mean() + 0.1 * apart


class SparseEmbedding(Kind):
    def make(self):
        network()
        return nn.Sequential(nn.EmbeddingBag(WORDS, 8, mode="mean", sparse=True), nn.Linear(8, 2))

    def loss(self, x, y):
        return square(self.part(words_of(x)), y)


class FrozenBackbone(Kind):
    def make(self):
        part = network()
        part[0].requires_grad_(False)
        return part

    def begin(self, part, node):
        super().begin(part, node)
        self.optimizer = torch.optim.SGD([p for p in part.parameters() if p.requires_grad], lr=0.1)


class Averaged(Kind):
    def begin(self, part, node):
        super().begin(part, node)
        self.ema = sgp.Ema(part, decay=0.95)

    def mixed(self, mixed):
        self.ema.update(mixed)

    def judged(self, x, y):
        with torch.no_grad():
            return float(square(self.ema.module(x), y))


class Checkpointed(Kind):
    """Activations are computed again in the backward pass."""

    def loss(self, x, y):
        hidden = torch.utils.checkpoint.checkpoint(self.part[:2], x, use_reentrant=False)
        return square(self.part[2](hidden), y)


class HalfPrecision(Kind):
    def loss(self, x, y):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            outputs = self.part(x)
        return square(outputs.float(), y)


class Workers(Kind):
    """Rows come from processes that read ahead."""

    def begin(self, part, node):
        super().begin(part, node)
        data = torch.utils.data.TensorDataset(*rows(ROWS))
        self.loader = node.loader(data, BATCH // node.size, shuffle=False, num_workers=1, prefetch_factor=4, persistent_workers=True)
        self.epoch()

    def epoch(self):
        self.rows = iter(self.loader)

    def step(self, x, y):
        super().step(*next(self.rows))


class Stream(torch.utils.data.IterableDataset if torch else object):
    def __iter__(self):
        return zip(*rows(ROWS))


class Iterable(Workers):
    def begin(self, part, node):
        Kind.begin(self, part, node)
        self.loader = node.loader(Stream(), BATCH // node.size)
        self.epoch()


KINDS = [Adadelta, TiedLstm, AdamWithGroups, Vae, SparseEmbedding, FrozenBackbone, Averaged, Checkpointed, HalfPrecision, Workers,
         Iterable]


def train(**where):
    """All kinds at once; their losses before and after."""
    kinds = {kind.__name__: kind() for kind in KINDS}
    model = nn.ModuleDict({name: kind.make() for name, kind in kinds.items()})
    x, y = rows(ROWS)
    with sgp.attach(model, **where) as node:
        for name, kind in kinds.items():
            kind.begin(model[name], node)
        before = {name: kind.judged(x, y) for name, kind in kinds.items()}
        for _ in range(EPOCHS):
            for batch in node.shard((x, y), batch_size=BATCH // node.size, shuffle=False):
                for kind in kinds.values():
                    kind.step(*batch)
                mixed = node.mix(rows=len(batch[0]))
                for kind in kinds.values():
                    kind.mixed(mixed)
            for kind in kinds.values():
                kind.epoch()
    return before, {name: kind.judged(x, y) for name, kind in kinds.items()}


if __name__ == "__main__":
    faulthandler.dump_traceback_later(1.5 * fleet.PATIENCE, exit=True)  # a program that hangs says where
    warnings.simplefilter("ignore")
    if len(sys.argv) > 1:
        print(json.dumps(train(name=sys.argv[1], timeout=fleet.PATIENCE)))
    else:
        print(json.dumps(train(name="/none-such.sock", required=False)))
