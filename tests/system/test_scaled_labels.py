# SPDX-License-Identifier: Apache-2.0
"""A label that is a number, far from 1: test_scaled_labels.py SGPD SGPCTL. Daemons learn it scaled, and everything that they
and `sgpctl` say of it is in the units of the rows. This is compared with sums over the rows by this file's own arithmetic."""
import csv
import json
import math
import os
import random
import subprocess
import sys
from fractions import Fraction

import fleet
from fleet import Fleet, FleetTest
from test_control_fields import read_safetensors

SGPCTL = os.path.abspath(sys.argv.pop(2)) if len(sys.argv) > 2 else None
CLOSE = 1e-6
RING = [[(0, 1), (1, 0)]]
NUMBERS = {"data.classes": None, "data.holdout": None, "data.label": "price", "data.test": "test.csv", "data.scale": "fleet",
           "data.ignore": "tax", "data.shards": "none", "model.loss": "mse", "model.layers": "dense 1", "optimizer.kind": "adam",
           "optimizer.learning_rate": "0.02", "train.epochs": "30"}


def moments(numbers):
    """Mean and deviation by rational arithmetic."""
    exact = [Fraction(float(number)) for number in numbers]
    mean = sum(exact) / len(exact)
    variance = sum(x * x for x in exact) / len(exact) - mean * mean
    return float(mean), math.sqrt(variance) if variance else 1.0


def draw_rows(count, seed):
    """A price of some 250,000, and a tax of some thousandths; both follow from two columns."""
    draw = random.Random(seed)
    for _ in range(count):
        rooms, age = draw.gauss(4, 1.5), draw.gauss(30, 12)
        yield {"rooms": "%.4f" % rooms, "age": "%.3f" % age, "price": "%.1f" % (250e3 + 40e3 * (rooms - 4) - 2e3 * (age - 30)),
               "tax": "%.7f" % (0.003 + 0.0005 * (age - 30) / 12), "same": "-7.5"}


def ctl(*arguments):
    done = subprocess.run([SGPCTL, *arguments], text=True, capture_output=True, timeout=fleet.PATIENCE, check=False)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


class Prices(Fleet):
    """Daemons with rows of their own: sorted by price, so that no two of them have seen like numbers."""

    def __init__(self, n=2, options=None, own=None, **arguments):
        own = {i: {"data.train": "rows%d.csv" % i, **(own or {}).get(i, {})} for i in range(n)}
        super().__init__(n, options={**NUMBERS, **(options or {})}, own=own, **arguments)
        self.rows = sorted(draw_rows(320, 1), key=lambda row: float(row["price"]))
        self.tests = list(draw_rows(80, 2))
        for i in range(n):
            self.write_table("rows%d.csv" % i, self.rows[i * 320 // n:(i + 1) * 320 // n])
        self.write_table("rows.csv", self.rows)
        self.write_table("test.csv", self.tests)

    def path(self, name):
        return os.path.join(self.directory, name)

    def write_table(self, name, rows):
        with open(self.path(name), "w", encoding="ascii") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


class ScaledLabels(FleetTest):
    def prices(self, *arguments, **keywords):
        f = Prices(*arguments, **keywords)
        self.fleets = getattr(self, "fleets", []) + [f]
        self.addCleanup(f.close)
        return f

    def finish(self, f):
        """Train to the end, and keep what the first node exports and predicts."""
        f.start()
        f.wait_state("finished")
        self.model = f.path("model.safetensors")
        ctl("-s", f.nodes[0].socket, "export", self.model)
        with open(self.model, "rb") as file:
            self.tags, self.tensors, _ = read_safetensors(file.read())
        self.test = f.nodes[0].json("/v1/evaluate", "POST")
        return f

    def scaled_outputs(self, rows):
        """What the tensors of the file say of rows, of one dense layer."""
        columns = json.loads(self.tags["columns"])["columns"]
        x = [[(float(row[c["name"]]) - c["mean"]) / c["deviation"] for c in columns] for row in rows]
        weights, bias = self.tensors["layers.0.weight"][1], self.tensors["layers.0.bias"][1]
        return [[b + sum(w * v for w, v in zip(weights[k * len(r):], r)) for k, b in enumerate(bias)] for r in x]

    def check_units(self, f, labels):
        """Predictions and errors are those of the rows' numbers; losses are those of the scaled ones."""
        targets = json.loads(self.tags["targets"])
        self.assertEqual([t["name"] for t in targets], labels)
        z = self.scaled_outputs(f.tests)
        numbers = [[t["mean"] + t["deviation"] * v for t, v in zip(targets, row)] for row in z]
        columns = [column["name"] for column in json.loads(self.tags["columns"])["columns"]]
        f.write_table("features.csv", [{name: row[name] for name in columns} for row in f.tests])
        with open(f.path("features.csv"), "rb") as file:
            code, body = f.nodes[0].get("/v1/predict", "POST", file.read())
        self.assertEqual(code, 200, body)
        of_daemon = json.loads(body)["outputs"]
        told = [json.loads(line) for line in ctl("predict", "--model", self.model, "--json", f.path("test.csv")).splitlines()]
        of_file = [[row["values"][name] for name in labels] for row in told[:-1]]
        for expected, one, other in zip(numbers, of_daemon, of_file, strict=True):
            for t, a, b, c in zip(targets, expected, one, other, strict=True):
                self.assertLess(abs(a - b), CLOSE * (abs(a) + t["deviation"]))
                self.assertLess(abs(a - c), CLOSE * (abs(a) + t["deviation"]))
        errors = [[a - float(row[name]) for a, name in zip(numbers_, labels)] for numbers_, row in zip(numbers, f.tests)]
        for measures in (self.test["measures"], told[-1]["measures"]):
            for k, column in enumerate(measures["columns"]):
                self.assertEqual(column["column"], labels[k])
                squared, absolute = (sum(abs(e[k]) ** power for e in errors) / len(errors) for power in (2, 1))
                spread = moments([row[labels[k]] for row in f.tests])[1]
                self.assertLess(abs(column["squared_error"] - squared), 1e-4 * squared + 1e-9 * spread ** 2)
                self.assertLess(abs(column["absolute_error"] - absolute), 1e-4 * absolute + 1e-6 * spread)
                self.assertAlmostEqual(column["r2"], 1 - squared / spread ** 2, 4)
        loss = sum((e / t["deviation"]) ** 2 for row in errors for e, t in zip(row, targets)) / len(errors) / len(targets)
        self.assertAlmostEqual(self.test["loss"], loss, 5)
        self.assertAlmostEqual(f.nodes[0].status()["test_loss"], self.test["loss"], 5)
        self.assertAlmostEqual(float(self.tags["test_loss"]), self.test["loss"], 5)
        self.assertAlmostEqual(f.nodes[0].json("/v1/history")["rows"][-1]["test_loss"], self.test["loss"], 3)
        return targets

    def test_nodes_agree_on_the_scale_of_their_label(self):
        f = self.finish(self.prices(4, phases=fleet.exponential(4), options={"train.epochs": "60"}))
        targets = self.check_units(f, ["price"])
        mean, deviation = moments([row["price"] for row in f.rows])
        self.assertEqual(targets[0]["mean"], mean)
        self.assertAlmostEqual(targets[0]["deviation"] / deviation, 1, delta=4e-16)
        self.assertGreater(self.test["measures"]["columns"][0]["r2"], 0.99)
        self.assertLess(self.test["loss"], 0.01)
        with open(os.path.join(f.nodes[3].directory, "scale.json"), encoding="ascii") as file:
            told = json.load(file)
        self.assertEqual((told["sgp_scaling"], told["targets"]), (2, targets))
        self.assertRegex(ctl("-s", f.nodes[0].socket, "scaling", "show"), r"(?m)^label +mean +deviation\nprice +2\d{5}")
        exported = f.path("again.json")
        ctl("-s", f.nodes[0].socket, "scaling", "export", exported)
        with open(exported, encoding="ascii") as file:
            self.assertEqual(json.load(file)["targets"], targets)
        self.assertRegex(ctl("card", self.model), r"(?m)^\| scale of price \| mean 2\d{5}, deviation \d+")

    def test_a_scaling_file_scales_several_labels(self):
        f = self.prices(options={"data.scale": "scale.json", "data.ignore": None, "data.label": "price, tax",
                                 "model.layers": "dense 2"})
        said = ctl("scaling", f.path("rows.csv"), f.path("scale.json"), "--label", "price,tax", "--ignore", "same")
        self.assertIn("2 features, 2 scaled label columns", said)
        self.assertNotIn("warning", f.check()[1])
        self.finish(f)
        self.check_units(f, ["price", "tax"])
        for column in self.test["measures"]["columns"]:
            self.assertGreater(column["r2"], 0.95)

    def test_hubers_delta_is_in_deviations(self):
        f = self.finish(self.prices(options={"model.loss": "huber", "model.huber_delta": "0.5"}))
        [target] = json.loads(self.tags["targets"])
        sizes = [abs(z[0] - (float(row["price"]) - target["mean"]) / target["deviation"])
                 for z, row in zip(self.scaled_outputs(f.tests), f.tests)]
        loss = sum(d * d / 2 if d <= 0.5 else 0.5 * (d - 0.25) for d in sizes) / len(sizes)
        self.assertAlmostEqual(self.test["loss"], loss, 5)

    def test_a_constant_label(self):
        f = self.finish(self.prices(options={"data.label": "same"}))
        [target] = json.loads(self.tags["targets"])
        self.assertEqual((target["mean"], target["deviation"]), (-7.5, 1))
        self.assertLess(self.test["loss"], 0.01)
        [column] = self.test["measures"]["columns"]
        self.assertLess(column["absolute_error"], 0.1)
        self.assertIsNone(column.get("r2"))
        self.assertIsNone(f.nodes[0].status()["diverging"])

    def test_a_scaling_of_format_1_keeps_its_meaning(self):
        """Its targets were told by an earlier sgpd, which did not scale them. Nobody asks what the fleet would agree on now."""
        f = self.prices(options={"data.label": "tax", "data.ignore": "price"})
        f.start()
        for i in range(2):
            f.wait_log(i, "event=start")
        for i in range(2):
            f.wait_round(i, 2)  # with the other scaling, both begin another run
        former = os.path.join(f.nodes[0].directory, "scale.json")
        with open(former, encoding="ascii") as file:
            told = json.load(file)
        for node in f.nodes:
            self.assertEqual(node.end(), 0)
        told["sgp_scaling"] = 1
        with open(former, "w", encoding="ascii") as file:
            json.dump(told, file)
        f.start()
        for i, other in ((0, "n1"), (1, "n0")):
            f.wait("%s to refuse the other's scaling" % f.nodes[i].name, lambda i=i: "scal" in (
                (f.nodes[i].status() or {}).get("last_error") or ""))
            self.assertIn("scaling", f.nodes[i].status()["last_error"])
        for node in f.nodes:
            self.assertEqual(node.end(), 0)
        with open(former, "rb") as file:
            content = file.read()
        with open(os.path.join(f.nodes[1].directory, "scale.json"), "wb") as file:
            file.write(content)
        self.finish(f)
        self.assertNotIn("targets", self.tags)
        self.assertEqual(json.loads(self.tags["columns"])["columns"], told["columns"])

    def test_a_relay_predicts_in_the_same_units(self):
        none = {key: None for key in ("data.label", "data.ignore", "data.shards", "data.test")}

        class Relayed(Prices):
            def says_of(self, index):
                return ", train=false" if index == 2 else ""

        f = Relayed(3, phases=[[(0, 2), (1, 2)], [(2, 0), (2, 1)]], own={2: {**none, "data.train": None}})
        self.addCleanup(f.close)
        self.finish(f)
        row = b"rooms,age,same\n4,30,-7.5\n"
        answers = [json.loads(node.get("/v1/predict", "POST", row)[1])["outputs"][0][0] for node in f.nodes]
        self.assertLess(abs(answers[2] / answers[0] - 1), 1e-3, answers)
        self.assertLess(abs(answers[0] / 250e3 - 1), 0.2, answers)
        tags = read_safetensors(f.nodes[2].get("/v1/model")[1])[0]
        self.assertEqual(tags["targets"], self.tags["targets"])
        self.assertNotIn("columns", tags)


if __name__ == "__main__":
    fleet.main()
