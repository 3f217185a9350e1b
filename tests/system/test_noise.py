# SPDX-License-Identifier: Apache-2.0
"""The noise of a fleet with real daemons: `[optimizer] noise = fleet` of the built-in learner, and sgp.FleetNoise of programs.

What --check says of it, what it makes of the second moments, whose steps it takes, and a stop in the middle of a run."""
import array
import os
import random
import signal
import struct
import subprocess
import unittest

import fleet
from attached import LOCK, AttachTest, flat, nn, sgp, torch
from fleet import FleetTest

ALL = [[(i, j) for i in range(4) for j in range(4) if i != j]]  # the mean of all after each step
FLIPPED = 0.4  # labels, so that most of a batch's gradient is noise
OPTIONS = {"train.epochs": None, "train.rounds": "1500", "train.batch": "10", "optimizer.kind": "adamw", "optimizer.learning_rate": "0.01",
           "optimizer.noise": "fleet"}
VECTORS = {"x", "first moment", "second moment", "noise"}


def vectors_of(path):
    """The named vectors of a checkpoint, and its parameters as "x", as include/sgp/checkpoint.h lays them out."""
    with open(path, "rb") as file:
        data = file.read()
    named, count = struct.unpack_from("<IQ", data, 12)
    counters, = struct.unpack_from("<Q", data, 56)
    names = [data[128 + 32 * i:152 + 32 * i].split(b"\0")[0].decode() for i in range(named)]
    first = 128 + 32 * (named + counters)
    return {name: data[first + 4 * count * i:first + 4 * count * (i + 1)] for i, name in enumerate(["x", *names])}


def distance(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b)) ** 0.5


def write_noisy_rows(path, rows=4000, features=6):
    draw = random.Random(7)
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join("f%d" % i for i in range(features)) + ",label\n")
        for _ in range(rows):
            x = [draw.gauss(0, 1) for _ in range(features)]
            side = (sum(x) > 0) != (draw.random() < FLIPPED)
            file.write(",".join("%.5f" % v for v in x) + (",pos\n" if side else ",neg\n"))


def noisy_rows(count):
    draw = torch.Generator().manual_seed(5)
    x = torch.randn(count, 6, generator=draw)
    return x, ((x.sum(1) > 0) ^ (torch.rand(count, generator=draw) < FLIPPED)).long()


def sum_of(optimizer, name):
    """The sum of what an optimizer keeps by that name."""
    return sum(float(state[name].sum()) for state in optimizer.state.values())


class Noise(FleetTest):
    def test_check_names_the_part_and_the_memory(self):
        f = self.fleet(4, options=OPTIONS)
        said = subprocess.run([*f.command(f.nodes[0]), "--check"], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertIn("optimizer  adamw, with 0.25 of the noise of this node's gradients\n", said)
        self.assertIn("deviation of the gradient", said)
        self.assertNotIn("warning", said)

    def test_a_stop_in_mid_run_keeps_the_noise(self):
        """That a resumed rule goes on to the bit is tested in test_learner; here the file of a daemon has it, and is taken up."""
        f = self.fleet(4, options={**OPTIONS, "train.rounds": "6000"})
        f.start()
        for index in range(4):
            f.wait_round(index, 200)
        for node in f.nodes:
            node.kill(signal.SIGTERM)
        for node in f.nodes:
            self.assertEqual(node.process.wait(fleet.PATIENCE), 0)
        for node in f.nodes:
            kept = vectors_of(os.path.join(node.directory, "checkpoint"))
            self.assertEqual(set(kept), VECTORS)
            self.assertTrue(any(kept["noise"]))
        f.start()
        f.wait_state("finished")
        for node in f.nodes:
            self.assertRegex(node.log(), r"event=restored round=\d+ weight=\S+ parameters=exact")
            self.assertGreater(node.json("/v1/evaluate", "POST")["accuracy"], 0.8)

    def trained(self, n, noise):
        """The vectors of each node's checkpoint after three epochs of rows whose labels are noise for the most part."""
        f = self.fleet(n, phases=ALL if n > 1 else [[]], options={
            **OPTIONS, "train.rounds": "300", "train.batch": str(40 // n), "data.holdout": None,
            "optimizer.learning_rate": "0.001", "optimizer.noise": noise})
        write_noisy_rows(f.rows)
        f.start()
        last = f.wait_state("finished")[0]["round"]
        for index in range(n):
            f.wait_log(index, "event=checkpoint round=%d" % last)
        kept = [vectors_of(os.path.join(node.directory, "checkpoint")) for node in f.nodes]
        f.close()
        return [{name: array.array("f", values) for name, values in vectors.items()} for vectors in kept]

    def test_four_nodes_train_as_one_process_with_the_batches_of_all(self):
        alone, = self.trained(1, "node")
        with_fleet, with_node = self.trained(4, "fleet"), self.trained(4, "node")
        self.assertEqual(set(with_fleet[0]), VECTORS)
        self.assertEqual(set(with_node[0]), VECTORS - {"noise"})
        whole = sum(alone["second moment"])
        self.assertGreater(sum(with_node[0]["second moment"]) / whole, 2)
        left = [sum(kept["second moment"]) - 0.75 * sum(kept["noise"]) for kept in with_fleet]
        self.assertLess(abs(sum(left) / 4 / whole - 1), 0.15)
        off = distance(with_node[0]["x"], alone["x"])
        self.assertLess(distance(with_fleet[0]["x"], alone["x"]), 0.25 * off)


@unittest.skipIf(torch is None, "not installed: python3-torch")
class Programs(AttachTest):
    ROWS, BATCH = 4096, 64  # of all nodes together: an epoch is 64 steps
    results = {}  # by the arguments of trained()

    def steps(self, node, model, optimizer, noise, count):
        """So many epochs, each in the order of the rows: a step of all nodes has the rows of a step of one process."""
        for _ in range(count):
            for x, y in node.shard(noisy_rows(self.ROWS), batch_size=self.BATCH // node.size, shuffle=False):
                optimizer.zero_grad()
                for features, labels in zip(x.chunk(2), y.chunk(2)):
                    (nn.functional.cross_entropy(model(features), labels) * len(labels) / len(y)).backward()
                    noise.note()
                noise.step()
                node.mix(rows=len(y))

    def program(self, f, index, nodes, epochs, folder=None, leaves=False):
        """Model and optimizer of a program that takes up its state from the folder. If it leaves, it keeps its state there,
        and its node has not finished."""
        with LOCK:
            torch.manual_seed(1)
            model = nn.Linear(6, 2)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.002, weight_decay=0)
        with sgp.attach(model, optimizer, name=self.path(f, index), timeout=fleet.PATIENCE) as node:
            if folder:
                file = os.path.join(folder, "state%d" % index)
                self.assertEqual(node.load(file, optimizer=optimizer), node.resumed)
            node.mean(0)  # All programs begin together: a node without its program is paused, and the others train on.
            self.steps(node, model, optimizer, sgp.FleetNoise(optimizer, nodes), epochs)
            if leaves:
                node.save(file, optimizer=optimizer)
                node.detach()
        return model, optimizer

    def trained(self, n, nodes):
        """Model and optimizer of each of n programs that know of so many nodes. Each pair of numbers is run once."""
        if (n, nodes) not in self.results:
            self.results[n, nodes] = self.train(n, nodes)
        return self.results[n, nodes]

    def train(self, n, nodes):
        f = self.daemons(n, ALL if n > 1 else [[]])
        results = self.each(n, lambda index: self.program(f, index, nodes, 2))
        f.close()
        return results

    def test_four_programs_train_as_one_with_the_batches_of_all(self):
        (alone, whole), = self.trained(1, 1)
        with_fleet, with_node = self.trained(4, 4), self.trained(4, 1)
        second = sum_of(whole, "exp_avg_sq")
        self.assertGreater(sum_of(with_node[0][1], "exp_avg_sq") / second, 2)
        left = [sum_of(optimizer, "exp_avg_sq") - 0.75 * sum_of(optimizer, "noise") for _, optimizer in with_fleet]
        self.assertLess(abs(sum(left) / 4 / second - 1), 0.15)
        off = float((flat(with_node[0][0]) - flat(alone)).norm())
        self.assertLess(float((flat(with_fleet[0][0]) - flat(alone)).norm()), 0.4 * off)

    def test_the_noise_outlives_programs_and_daemons(self):
        straight = self.trained(4, 4)
        f = self.daemons(4, ALL)
        self.each(4, lambda index: self.program(f, index, 4, 1, f.directory, leaves=True))
        for node in f.nodes:
            self.assertEqual(node.end(), 0, node.log())
        f.start()
        again = self.each(4, lambda index: self.program(f, index, 4, 1, f.directory))
        for (model, optimizer), (expected, kept) in zip(again, straight):
            torch.testing.assert_close(flat(model), flat(expected), rtol=0, atol=1e-4)
            for name in ("exp_avg_sq", "noise"):
                self.assertLess(abs(sum_of(optimizer, name) / sum_of(kept, name) - 1), 1e-3)


if __name__ == "__main__":
    fleet.main()
