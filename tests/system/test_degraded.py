# SPDX-License-Identifier: Apache-2.0
"""Ends that look right and are not: what `sgpctl status --check` says of a real node whose training went wrong,
and that it says nothing of one whose training is merely noisy: test_degraded.py SGPD SGPCTL."""
import json
import os
import random
import signal
import struct
import subprocess
import sys

import fleet
import peer
from fleet import FleetTest
from test_state_directory import FULL, Disk, own_mounts, sandbox
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
        losses = [row["loss"] for row in node.json("/v1/history")["rows"]]
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


def wait(node, timeout=fleet.PATIENCE):
    """What `wait --for finished` ends with, and what it says."""
    done = subprocess.run([SGPCTL, "-s", node.socket, "wait", "--for", "finished", "--timeout", str(timeout)], text=True,
                          capture_output=True, timeout=2 * fleet.PATIENCE, check=False)
    return done.returncode, done.stderr


class Spent(FleetTest):
    """A private node whose epsilon does not last."""

    SAYS = r"its epsilon is spent \(3\.\d+ so far\), so it takes no more steps on its rows%s; a larger \[privacy\] epsilon allows more"

    def start(self, **own):
        f = self.fleet(2, phases=[[(0, 1), (1, 0)]], own={0: own}, options={
            "train.epochs": None, "train.rounds": "60", "train.batch": "20", "privacy.epsilon": "4", "data.shards": "none",
            "optimizer.kind": "sgd", "optimizer.learning_rate": "4"})
        f.start()
        return f

    def told(self, node, more):
        """The node is finished and degraded for this reason alone, and each place says so."""
        code, said = wait(node)
        self.assertEqual(code, 7, said)
        self.assertRegex(said, "sgpctl: it has finished, and " + self.SAYS % more + "\n$")
        code, reasons = check(node)
        self.assertEqual((code, len(reasons)), (7, 1), reasons)
        self.assertRegex(reasons[0], "^" + self.SAYS % more + "$")
        self.assertTrue(node.status()["privacy_spent"])
        self.assertIn(b"\nsgpd_privacy_spent 1\n", node.get("/metrics")[1])

    def test_an_early_end_of_steps_is_told(self):
        f = self.start(**{"privacy.noise": "0.7"})
        self.told(f.nodes[0], "")
        self.assertEqual((wait(f.nodes[1])[0], check(f.nodes[1])), (0, (0, [])))
        self.assertIn(b"\nsgpd_privacy_spent 0\n", f.nodes[1].get("/metrics")[1])

    def test_a_later_process_tells_it_too(self):
        """Also if the former one was killed. Node 1 left out no step, though its epsilon does not allow another one."""
        f = self.start(**{"privacy.noise": "0.7"})
        for node in f.nodes:
            wait(node)
        for number in (signal.SIGTERM, signal.SIGKILL):
            for node in f.nodes:
                node.end(number)
            f.start()
            f.wait_state("finished")
            self.told(f.nodes[0], ", and has taken none since it started")
            self.assertEqual((wait(f.nodes[1])[0], check(f.nodes[1])), (0, (0, [])))
        self.assertEqual(f.nodes[0].log().count("event=privacy_spent"), 3)

    def test_a_second_run_that_finishes_untrained_is_told(self):
        f = self.start()
        for node in f.nodes:
            self.assertEqual((wait(node)[0], check(node)), (0, (0, [])))
        for node in f.nodes:
            self.assertEqual(node.get("/v1/reset", "POST")[0], 200)
        for node in f.nodes:
            f.wait("the second run", lambda n=node: (n.status() or {}).get("run") == 2)
            self.told(node, ", and has taken none since it started")
            self.assertEqual(node.status()["samples"], 0)


class FullDisk(FleetTest):

    def test_an_end_without_a_model_on_the_disk_is_degraded(self):
        own_mounts()
        f = self.fleet(2, options={"train.epochs": "3"})
        disk = Disk(f.nodes[0])
        self.addCleanup(sandbox.call, "umount", "--lazy", disk.directory)
        f.start([0])
        f.wait_state("joining", [0])
        self.assertIsNone(f.nodes[0].status().get("model_file"))
        disk.fill()
        f.start([1])
        ends = [wait(node) for node in f.nodes]
        self.assertEqual([code for code, _ in ends], [1, 0], ends)
        says = r"its model is not on the disk \(.*%s\); it is in the daemon's memory: make room, and sgpctl checkpoint writes it" % FULL
        self.assertRegex(ends[0][1], "it has finished, and " + says)
        self.assertEqual([node.status()["model_file"] for node in f.nodes], ["failed", "written"])
        code, reasons = check(f.nodes[0])
        self.assertEqual((code, check(f.nodes[1])), (7, (0, [])), reasons)
        self.assertRegex("\n".join(reasons), says)
        self.assertIn(b"\nsgpd_model_unwritten 1\n", f.nodes[0].get("/metrics")[1])
        disk.empty()

        def written():
            f.nodes[0].get("/v1/checkpoint", "POST")
            return f.nodes[0].status()["model_file"] == "written"
        f.wait("the model on the disk", written)
        self.assertEqual((wait(f.nodes[0])[0], check(f.nodes[0])), (0, (0, [])))
        self.assertIn(b"\nsgpd_model_unwritten 0\n", f.nodes[0].get("/metrics")[1])


if __name__ == "__main__":
    fleet.take_sgpd()
    SGPCTL = sys.argv.pop(1)
    fleet.tap.run_cases(sys.argv[1:])
