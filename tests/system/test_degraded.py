# SPDX-License-Identifier: Apache-2.0
"""Ends that look right and are not: what `sgpctl status --check` says of a real node whose training went wrong,
and that it says nothing of one whose training is merely noisy: test_degraded.py SGPD SGPCTL."""
import json
import os
import random
import struct
import subprocess
import sys

import fleet
import peer
from fleet import FleetTest
from trio import Trio

SGPCTL = None  # the second argument


def write_prices(path, area, rows=200):
    """A regression: prices by area and rooms; `area` is the mean of the first column."""
    draw = random.Random(7)
    with open(path, "w", encoding="ascii") as file:
        file.write("area,rooms,price\n")
        for _ in range(rows):
            size, rooms = draw.gauss(1, 0.3), draw.randint(1, 5)
            price = size + 0.1 * rooms + draw.gauss(0, 0.2)
            file.write("%.5f,%d,%.5f\n" % (area * size, rooms, price))


def check(node):
    """What `status --check` ends with, and its reasons."""
    done = subprocess.run([SGPCTL, "-s", node.socket, "status", "--check", "--json"], text=True,
                          capture_output=True, timeout=fleet.PATIENCE, check=False)
    return done.returncode, json.loads(done.stdout)["degraded"]


class Degraded(FleetTest):
    def train(self, area, state="finished", **options):
        """Two nodes on prices with mean squared error, at the default rate, until they are in this state."""
        f = self.fleet(2, options={"model.layers": "dense 1", "model.loss": "mse", "data.label": "price",
                                   "data.classes": None, "optimizer.learning_rate": None,
                                   "data.train": "prices.csv", **options})
        write_prices(os.path.join(f.directory, "prices.csv"), area)
        f.start()
        if state:
            f.wait_state(state)
        return f

    def test_divergence_is_no_success(self):
        f = self.train(20, **{"train.epochs": "1"})
        for node in f.nodes:
            loss = f.wait("a test", lambda n=node: (n.status() or {}).get("test_loss"))
            self.assertGreater(loss, 1e6)
            code, reasons = check(node)
            self.assertEqual(code, 7, f"test_loss {loss:.2g}, finished, status --check {code}")
            self.assertRegex(reasons[0], r"^training diverges: its test_loss is \S+e\+\d+; try a smaller \[optimizer\] "
                                         r"learning_rate, or bring the columns to one size with \[data\] scale$")
            self.assertIn("event=diverging what=", node.log())

    def test_without_rows_to_test_on_an_epoch_is_judged(self):
        f = self.train(20, **{"train.epochs": "2", "data.holdout": None, "train.batch": "40"})
        for node in f.nodes:
            code, reasons = check(node)
            self.assertEqual((code, reasons[0].split(" is ")[0]), (7, "training diverges: its loss"), reasons)

    def test_a_loss_that_is_not_finite_pauses_and_is_told(self):
        f = self.train(20, state="paused", **{"train.epochs": "100"})
        code, reasons = check(f.nodes[0])
        self.assertEqual((code, reasons[0]), (7, "the node is paused"))
        self.assertIn("training diverged: a loss was not finite; try a smaller", reasons[1])

    def test_noise_is_no_divergence(self):
        """One row a step, at the highest rate that holds, and at the end of every epoch a look."""
        f = self.train(1, state=None, **{"train.epochs": "40", "train.batch": "1", "optimizer.kind": "sgd"})
        node = f.nodes[0]
        seen = set()

        def over():
            status = node.status()
            seen.add(status["diverging"] if status else None)
            return status and status["state"] == "finished"

        f.wait("the end", over)
        losses = [row["loss"] for row in node.json("/v1/history")]
        self.assertGreater(max(losses), 10 * min(losses))
        self.assertEqual((seen, check(node)), ({None}, (0, [])))


class Outsized(Trio):
    def test_shares_that_are_refused_again_and_again_are_told_until_one_is_accepted(self):
        def reasons():
            return [reason for reason in check(self.node)[1] if reason.startswith("the latest")]

        told = []
        for number, value in enumerate([-1e30] * 4 + [0.0], 1):
            n2, round_ = self.credited()
            payload = struct.pack("<%df" % self.parameters, *[value] * self.parameters)
            self.share(n2, round_, payload, number=number)
            n2.chunk(payload)
            n2.receive(peer.ACK)
            n2.close()
            told.append(reasons())
        self.assertEqual(told, [[], []] + [[
            f"the latest {count} shares of n2 were refused: their values are out of all proportion to our own; try a "
            "smaller [optimizer] learning_rate, or bring the columns to one size with [data] scale"]
            for count in (3, 4)] + [[]])


if __name__ == "__main__":
    fleet.take_sgpd()
    SGPCTL = sys.argv.pop(1)
    fleet.tap.run_cases(sys.argv[1:])
