# SPDX-License-Identifier: Apache-2.0
"""Eight daemons learn the digits of scikit-learn, and one of them lies in every share (lying_node.c): test_lying.py SGPD LYING.

Each lie is told with a guard at every node and without. The honest nodes must end with one model and right weights, and their
accuracy is bounded. The short form has two lies. Skipped without scikit-learn."""
import os
import statistics
import sys
import unittest

import fleet
from fleet import LONG, FleetTest

try:
    from sklearn import datasets
except ImportError:
    print("1..0 # SKIP without scikit-learn")
    sys.exit(0)

NODES, LIAR = 8, 1
ROUNDS = 240
LYING = ""
HONEST = ""
# For each lie the least accuracy with a guard, and the most without one. Without a liar it is 0.93.
BOUNDS = {"flip": (0.88, 0.4), "scale": (0.88, 0.88), "noise": (0.88, 0.4), "alie": (0.85, 1), "ipm": (0.88, 1), "drift": (0.85, 1),
          "dissensus": (0.88, 0.7)}
SHORT = ("flip", "dissensus")


def write_digits(path):
    table = datasets.load_digits()
    with open(path, "w", encoding="ascii") as file:
        file.write(",".join("p%d" % i for i in range(64)) + ",label\n")
        for row, label in zip(table.data / 16, table.target):
            file.write(",".join("%.4g" % value for value in row) + ",d%d\n" % label)


class LyingFleet(fleet.Fleet):
    lie = HONEST

    def command(self, node):
        return [LYING if node.index == LIAR and self.lie else fleet.SGPD, "-c", node.configuration]


class Lying(FleetTest):
    def teach(self, lie, guard):
        """The mean accuracy of the honest nodes."""
        options = {"train.guard": guard, "train.epochs": None, "train.rounds": str(ROUNDS), "train.batch": "16",
                   "train.checkpoint_seconds": "0", "model.layers": "dense 32 relu, dense 10", "optimizer.kind": "sgd",
                   "data.train": "digits.csv", "data.classes": " ".join("d%d" % i for i in range(10))}
        f = LyingFleet(NODES, options=options)
        f.lie = lie
        self.fleets = getattr(self, "fleets", []) + [f]
        self.addCleanup(f.close)
        write_digits(os.path.join(f.directory, "digits.csv"))
        for node in f.nodes:
            node.start(env={**os.environ, "LIE": lie})
        f.wait_state("finished")
        statuses = f.quiet()
        self.assertAlmostEqual(sum(status["weight"] for status in statuses), NODES, delta=1e-11)
        f.close()
        honest = [status["test_accuracy"] for status in statuses if status["name"] != "n%d" % LIAR]
        self.assertEqual(len(honest), NODES - 1)
        return statistics.mean(accuracy or 0 for accuracy in honest)

    def test_honest_nodes_learn_beside_a_liar(self):
        for lie in BOUNDS if LONG else SHORT:
            least, most = BOUNDS[lie]
            free, guarded = self.teach(lie, "off"), self.teach(lie, "1")
            print("# %s: accuracy %.3f without a guard, %.3f with one" % (lie, free, guarded), flush=True)
            self.assertGreater(guarded, least, lie)
            self.assertLess(free, most, lie)

    @unittest.skipUnless(LONG, "with SGP_LONG=1")
    def test_without_a_liar_a_guard_costs_little(self):
        free, guarded = self.teach(HONEST, "off"), self.teach(HONEST, "1")
        print("# nobody lies: accuracy %.3f without a guard, %.3f with one" % (free, guarded), flush=True)
        self.assertGreater(guarded, free - 0.02)


if __name__ == "__main__":
    fleet.take_sgpd()
    LYING = os.path.abspath(sys.argv.pop(1))
    fleet.main()
