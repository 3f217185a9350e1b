# SPDX-License-Identifier: Apache-2.0
"""What daemons learn beside plain classes: several labels at once, numbers with outliers, classes with weights:
test_targets.py SGPD. Losses and predictions are compared with sums over the rows by this file's own arithmetic."""
import json
import math
import os
import random

import fleet
from fleet import FleetTest
from test_control_fields import read_safetensors

FEATURES, ROWS = 3, 300


def write_table(path, labels, seed):
    """`labels`: name -> a function of a row's features and of the source of chance."""
    draw = random.Random(seed)
    with open(path, "w", encoding="ascii") as file:
        file.write(",".join(["f%d" % i for i in range(FEATURES)] + list(labels)) + "\n")
        for _ in range(ROWS):
            x = [draw.gauss(0, 1) for _ in range(FEATURES)]
            file.write(",".join(["%.5f" % v for v in x] + [str(label(x, draw)) for label in labels.values()]) + "\n")


def read_table(path):
    with open(path, encoding="ascii") as file:
        lines = [line.rstrip().split(",") for line in file][1:]
    return [[float(v) for v in line[:FEATURES]] for line in lines], [line[FEATURES:] for line in lines]


class Targets(FleetTest):
    def train(self, labels, outputs, **options):
        """Two nodes until they have finished, and what the first says of the rows to test on."""
        f = self.fleet(2, options={"model.layers": "dense %d" % outputs, "data.train": "train.csv", "data.test": "test.csv",
                                   "data.holdout": None, "data.classes": None, "train.epochs": "20", **options})
        for seed, name in enumerate(("train.csv", "test.csv")):
            write_table(os.path.join(f.directory, name), labels, seed)
        f.start()
        f.wait_state("finished")
        node = f.nodes[0]
        self.rows, self.truth = read_table(os.path.join(f.directory, "test.csv"))
        self.metadata, tensors, _ = read_safetensors(node.get("/v1/model")[1])
        weights, bias = tensors["layers.0.weight"][1], tensors["layers.0.bias"][1]
        self.outputs = [[bias[k] + sum(w * v for w, v in zip(weights[k * FEATURES:], x)) for k in range(outputs)]
                        for x in self.rows]
        self.answer = json.loads(self.post(node, "/v1/predict", json.dumps({"rows": self.rows})))
        self.test = json.loads(self.post(node, "/v1/evaluate", ""))
        self.status = node.status()
        return node

    def post(self, node, path, body):
        status, content = node.get(path, "POST", body)
        self.assertEqual(status, 200, content)
        return content

    def assert_predictions(self, expected):
        for one, other in zip(expected, self.answer["outputs"], strict=True):
            self.assertLess(max(abs(a - b) / (1 + abs(a)) for a, b in zip(one, other, strict=True)), 1e-5)

    def test_several_labels(self):
        node = self.train({"warm": lambda x, _: int(x[0] > 0), "wet": lambda x, _: int(x[1] + x[2] > 0.5)}, 2,
                          **{"model.loss": "binary-cross-entropy", "model.class_weights": "1, 3", "data.label": "warm, wet"})
        self.assertIsNone(self.answer["labels"])
        probabilities = [[1 / (1 + math.exp(-z)) for z in row] for row in self.outputs]
        self.assert_predictions(probabilities)
        pairs = [(p, int(y), w) for ps, ys in zip(probabilities, self.truth) for p, y, w in zip(ps, ys, (1, 3))]
        loss = sum(-w * math.log(p) if y else -math.log(1 - p) for p, y, w in pairs) / len(pairs)
        self.assertAlmostEqual(self.test["loss"], loss, 5)
        self.assertAlmostEqual(self.test["accuracy"], sum((p > 0.5) == bool(y) for p, y, _ in pairs) / len(pairs), 9)
        self.assertGreater(self.test["accuracy"], 0.9)
        measures = self.test["measures"]
        self.assertEqual([c["class"] for c in measures["classes"]], ["warm", "wet"])
        self.assertEqual(measures["accuracy"], self.test["accuracy"])
        plain = sum(-math.log(p if y else 1 - p) for p, y, _ in pairs) / len(pairs)
        self.assertAlmostEqual(measures["log_loss"], plain, 5)
        self.assertAlmostEqual(self.status["test_accuracy"], self.test["accuracy"], 9)
        self.assertIsNone(self.status["diverging"])
        self.assertEqual(self.metadata["loss"], "binary-cross-entropy")
        self.assertAlmostEqual(node.json("/v1/history")["rows"][-1]["test_accuracy"], self.test["accuracy"], 4)

    def test_numbers_with_outliers(self):
        """One value in ten is 1,000 off; squares follow them, Huber's loss does not."""
        labels = {"a": lambda x, draw: round(x[0] - 2 * x[1] + (1000 if draw.random() < 0.1 else 0), 5),
                  "b": lambda x, draw: round(x[2] + 1, 5)}
        off = {}
        for loss in ("huber", "mse"):
            self.train(labels, 2, **{"model.loss": loss, "model.huber_delta": "0.5", "data.label": "a, b",
                                     "optimizer.learning_rate": "0.02"})
            self.assert_predictions(self.outputs)
            self.assertIsNone(self.test["accuracy"])
            measures = self.test["measures"]
            self.assertEqual([c["column"] for c in measures["columns"]], ["a", "b"])
            squares = [[(z[k] - float(y[k])) ** 2 for z, y in zip(self.outputs, self.truth)] for k in range(2)]
            for column, of in zip(measures["columns"], squares):
                mean = sum(of) / len(of)
                self.assertLess(abs(column["squared_error"] - mean) / (1 + mean), 1e-3)
            self.assertGreater(measures["columns"][1]["r2"], 0.9 if loss == "huber" else -1e9)
            off[loss] = max(abs(z[0] - (x[0] - 2 * x[1])) for z, x in zip(self.outputs, self.rows))
            if loss == "huber":
                sizes = [abs(z - float(y)) for zs, ys in zip(self.outputs, self.truth) for z, y in zip(zs, ys)]
                expected = sum(d * d / 2 if d <= 0.5 else 0.5 * (d - 0.25) for d in sizes) / len(sizes)
                self.assertAlmostEqual(self.test["loss"], expected, 3)
        self.assertLess(off["huber"], 0.5)
        self.assertGreater(off["mse"], 10)

    def test_classes_with_weights(self):
        """A class that is 1 row in 30, and cannot be told: with a weight of 60 the model says it, without it never does."""
        labels = {"kind": lambda x, draw: "rare" if draw.random() < 1 / 30 else "common"}
        said = {}
        for weights in (None, "1, 60"):
            self.train(labels, 2, **{"model.class_weights": weights, "model.label_smoothing": "0.1", "data.label": "kind",
                                     "data.classes": "common rare", "optimizer.learning_rate": "0.01"})
            said[weights] = self.answer["labels"].count("rare")
            rare = self.test["measures"]["classes"][1]
            self.assertEqual((rare["class"], rare["said"]), ("rare", said[weights]))
            self.assertEqual(rare["rows"], sum(word == "rare" for (word,) in self.truth))
            self.assertEqual(rare["recall"] > 0, weights is not None)
        self.assertEqual(said[None], 0)
        self.assertGreater(said["1, 60"], ROWS / 2)
        w, total = (1, 60), 0
        for z, (word,) in zip(self.outputs, self.truth):
            log_sum = math.log(sum(math.exp(v) for v in z))
            parts = [0.05 + 0.9 * (word == name) for name in ("common", "rare")]
            total += sum(w[c] * parts[c] * (log_sum - z[c]) for c in range(2))
        self.assertAlmostEqual(self.test["loss"], total / ROWS, 4)


if __name__ == "__main__":
    fleet.main()
