# SPDX-License-Identifier: Apache-2.0
"""What private steps cost in accuracy: test_privacy_long.py SGPD. The digits of scikit-learn, 359 rows at each of four nodes, one
dense layer, at epsilon 8, 3 and 1. Skipped without scikit-learn."""
import os
import sys

import fleet
from fleet import FleetTest

try:
    import numpy
    from sklearn import datasets
except ImportError:
    print("1..0 # SKIP without scikit-learn")
    sys.exit(0)

NODES, ROWS = 4, 359
# Of an implementation in numpy by the same rules, with the best of the same few batches and rates: mean of three seeds.
EXPECTED = {8: 0.928, 3: 0.906, 1: 0.778}
RATE = {8: 2, 3: 2, 1: 1}
SEEDS = {8: 4, 3: 6, 1: 12}  # a small epsilon is noisy


def split(seed):
    """The rows of each node, and rows that no node has."""
    table = datasets.load_digits()
    order = numpy.random.default_rng(seed).permutation(len(table.target))
    x, y = table.data[order] / 16, table.target[order]
    parts = [(x[i * ROWS:(i + 1) * ROWS], y[i * ROWS:(i + 1) * ROWS]) for i in range(NODES)]
    return parts, (x[NODES * ROWS:], y[NODES * ROWS:])


def write(path, x, y):
    with open(path, "w", encoding="ascii") as file:
        file.write(",".join("p%d" % i for i in range(64)) + ",label\n")
        for row, label in zip(x, y):
            file.write(",".join("%.6g" % value for value in row) + ",d%d\n" % label)


class Digits(FleetTest):
    def accuracy(self, epsilon, seed):
        options = {"train.epochs": None, "train.rounds": "180", "train.batch": "64", "train.seed": str(seed),
                   "model.layers": "dense 10", "data.classes": " ".join("d%d" % i for i in range(10)),
                   "data.shards": "none", "data.holdout": "0", "optimizer.kind": "sgd", "optimizer.schedule": "cosine",
                   "optimizer.learning_rate": str(RATE[epsilon]), "privacy.epsilon": str(epsilon),
                   "train.checkpoint_seconds": "0"}
        f = self.fleet(NODES, options=options, own={i: {"data.train": "rows%d.csv" % i} for i in range(NODES)})
        parts, (x, y) = split(seed)
        for i, part in enumerate(parts):
            write(os.path.join(f.directory, "rows%d.csv" % i), *part)
        f.start()
        for status in f.wait_state("finished"):
            self.assertLessEqual(status["privacy_epsilon"], epsilon)
            self.assertGreater(status["privacy_epsilon"], 0.98 * epsilon)
        values = numpy.array(fleet.read_model(f.nodes[0].get("/v1/model")[1]))
        weights, biases = values[:640].reshape(10, 64), values[640:]
        f.close()
        return (numpy.argmax(x @ weights.T + biases, 1) == y).mean()

    def test_accuracy_is_that_of_the_reference(self):
        for epsilon, expected in EXPECTED.items():
            found = [self.accuracy(epsilon, seed) for seed in range(SEEDS[epsilon])]
            print("# epsilon %g: accuracy %.3f +- %.3f, expected %.3f" % (epsilon, numpy.mean(found), numpy.std(found), expected))
            doubt = 2 * numpy.std(found) / len(found) ** 0.5
            self.assertGreater(numpy.mean(found) + doubt, expected - 0.01, (epsilon, found))


if __name__ == "__main__":
    fleet.main()
