# SPDX-License-Identifier: Apache-2.0
"""A model file that stands alone: test_predict_file.py SGPD SGPCTL.

Daemons train models of each kind; `sgpctl predict --model` is compared with the daemon's own predictions and with numpy in
float64, to 1e-6. Then rows and files that are wrong. Exit status 77 (skipped) without numpy."""
import csv
import gzip
import io
import json
import os
import random
import subprocess
import sys

try:
    import numpy as np
except ImportError:
    print("not installed: python3-numpy")
    sys.exit(77)

import fleet
from fleet import FleetTest
from tensors import read_model, write_model

SGPCTL = None  # the second argument
CLOSE = 1e-6
COLOURS = ["red", "dark, green", "blue"]
SCALE = {"sgp_scaling": 1, "columns": [{"name": "width", "mean": 2.5, "deviation": 0.7},
                                       {"name": "colour", "values": COLOURS},
                                       {"name": "high ", "mean": -1e3, "deviation": 250.0}]}


def draw_rows(count, seed):
    """Rows as a user has them: numbers that are not near 1, a column of words, one that nobody needs, labels of each kind."""
    draw = random.Random(seed)
    for number in range(count):
        width, colour, high = draw.gauss(2.5, 0.7), draw.choice(COLOURS), draw.gauss(-1e3, 250)
        tall = (high + 1e3) / 250
        side = (width - 2.5) / 0.7 + tall + (1 if colour == "red" else -0.5)
        yield {"id": "row %d" % number, "colour": colour, "high ": "%.4f" % high, "width": "%.5f" % width,
               "kind": "so, so" if abs(side) < 0.5 else "more" if side > 0 else "less than",
               "warm": int(side > 0.3), "wet": int(tall > 0), "price": "%.4f" % (3 * side + 2), "cost": "%.4f" % (tall - side)}


def write_rows(path, rows, columns=None):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns or list(rows[0]), extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def features(rows):
    """The scaled columns, by this file's own arithmetic."""
    return np.array([[(float(r["width"]) - 2.5) / 0.7, *(float(r["colour"] == c) for c in COLOURS), (float(r["high "]) + 1e3) / 250]
                     for r in rows])


def outputs(tags, tensors, x):
    functions = {"relu": lambda v: np.maximum(v, 0), "tanh": np.tanh, "sigmoid": lambda v: 1 / (1 + np.exp(-v))}
    for number, layer in enumerate(tags["layers"].split(", ")):
        x = x @ tensors[f"layers.{number}.weight"].T + tensors[f"layers.{number}.bias"]
        x = functions.get(layer.split()[-1], lambda v: v)(x)
    return x


def softmax(z):
    z = np.exp(z - z.max(axis=1, keepdims=True))
    return z / z.sum(axis=1, keepdims=True)


def sgpctl(*arguments, status=0, data=None):
    done = subprocess.run([SGPCTL, *arguments], input=data, capture_output=True, timeout=fleet.PATIENCE, check=False)
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return done.stdout.decode(), done.stderr.decode()


class PredictFile(FleetTest):
    def train(self, outputs_, scaled=True, **options):
        """Two nodes until they have finished; their model and rows to predict, in another order of columns."""
        columns = {"data.label": "kind"} | options
        f = self.fleet(2, options={"model.layers": "dense 6 tanh, dense %d" % outputs_, "data.train": "train.csv",
                                   "data.classes": None, "train.epochs": "6", "data.scale": "scale.json" if scaled else None,
                                   **columns})
        with open(os.path.join(f.directory, "scale.json"), "w", encoding="utf-8") as file:
            json.dump(SCALE, file)
        labels = [name.strip() for name in columns["data.label"].split(",")]
        names = ["width", "colour", "high "] if scaled else ["width", "high "]
        write_rows(os.path.join(f.directory, "train.csv"), list(draw_rows(300, 1)), names + labels)
        f.start()
        f.wait_state("finished")
        self.directory = f.directory
        self.model = os.path.join(f.nodes[0].directory, "model.safetensors")
        f.wait("the model file", lambda: f.nodes[0].status()["model_file"] == "written")
        self.rows = list(draw_rows(700, 2))
        self.path = os.path.join(f.directory, "raw.csv")
        write_rows(self.path, self.rows)
        unlabelled = os.path.join(f.directory, "unlabelled.csv")
        write_rows(unlabelled, self.rows, names)
        with open(unlabelled, "rb") as file:
            self.unlabelled = file.read()
        code, body = f.nodes[0].get("/v1/predict", "POST", self.unlabelled)
        self.assertEqual(code, 200, body)
        self.daemon = json.loads(body)
        self.tags, tensors = read_model(self.model)
        x = features(self.rows) if scaled else np.array([[float(r["width"]), float(r["high "])] for r in self.rows])
        self.outputs = outputs(self.tags, tensors, x)
        return f

    def predict(self, *more):
        """Rows as they are printed, without labels in them: name -> text; and the same with JSON."""
        out, err = sgpctl("predict", "--model", self.model, "-", *more, data=self.unlabelled)
        self.assertEqual(err, "")
        return list(csv.DictReader(io.StringIO(out))) if not more else [json.loads(line) for line in out.splitlines()]

    def assert_close(self, one, other):
        one, other = np.asarray(one, "f8"), np.asarray(other, "f8")
        self.assertEqual(one.shape, other.shape)
        self.assertTrue(np.isfinite(one).all() and np.isfinite(other).all(), (one, other))
        self.assertLess((np.abs(one - other) / (1 + np.abs(other))).max(), CLOSE)

    def score(self):
        """What --json says last, of the table with labels; the lines on standard error say the same."""
        _, err = sgpctl("predict", "--model", self.model, self.path)
        last = json.loads(sgpctl("predict", "--model", self.model, self.path, "--json")[0].splitlines()[-1])
        self.assertEqual((list(last), last["scored_rows"]), (["scored_rows", "measures"], 700))
        measures = last["measures"]
        self.assertEqual(measures["rows"], 700)
        first, *lines = err.splitlines()
        self.assertEqual(first, f"sgpctl: {self.path}: 700 rows scored: " + ", ".join(
            f"{key} {value:.6g}" for key, value in measures.items() if isinstance(value, float)))
        for row in measures.get("classes", []) + (measures.get("columns", []) if len(measures.get("columns", [])) > 1 else []):
            values = [value for key, value in row.items() if key != "auc_bound"]
            text = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in values[1:]]
            self.assertTrue(any(line.startswith(values[0]) and line.split()[-len(text):] == text for line in lines), (err, row))
        return measures

    def judge_classes(self, measures, scores, truth, said):
        """The figures of each class, beside those of this file's own arithmetic: its rows, a mask each, and scores."""
        for row, score, own, claimed in zip(measures["classes"], scores.T, truth.T, said.T, strict=True):
            hits = int((own & claimed).sum())
            self.assertEqual((row["rows"], row["said"], row["correct"]), (own.sum(), claimed.sum(), hits))
            self.assert_close([row["precision"], row["recall"], row["f1"]],
                              [hits / max(claimed.sum(), 1), hits / max(own.sum(), 1), 2 * hits / max(own.sum() + claimed.sum(), 1)])
            pairs = score[own][:, None] - score[~own][None, :]
            auc = ((pairs > 0) + 0.5 * (pairs == 0)).mean()
            self.assertLessEqual(abs(row["auc"] - auc), row["auc_bound"] + 1e-9)
            self.assertLess(abs(row["auc"] - auc), 1e-3)
        present = [row["f1"] for row in measures["classes"] if row["rows"] + row["said"] > 0]
        self.assert_close([measures["macro_f1"], measures["macro_auc"]],
                          [np.mean(present), np.mean([row["auc"] for row in measures["classes"]])])

    def judge_calibration(self, measures, confidence, correct):
        part = np.minimum((confidence * 15).astype(int), 14)
        error = sum(abs(confidence[part == i].sum() - correct[part == i].sum()) for i in range(15)) / len(part)
        self.assertLess(abs(measures["calibration_error"] - error), 1e-6)
        self.assertEqual([(p["rows"], p["correct"]) for p in measures["calibration"]],
                         [((part == i).sum(), correct[part == i].sum()) for i in range(15) if (part == i).any()])

    def test_classes(self):
        classes = ["more", "less than", "so, so"]
        f = self.train(3, **{"data.classes": 'more "less than" "so, so"', "model.label_smoothing": "0.1",
                             "model.class_weights": "1, 2, 1"})
        probabilities = softmax(self.outputs)
        expected = [classes[i] for i in probabilities.argmax(axis=1)]
        table = self.predict()
        self.assertEqual(list(table[0]), ["class"] + [f"p({name})" for name in classes])
        self.assert_close([[row[f"p({name})"] for name in classes] for row in table], probabilities)
        self.assert_close([[row[f"p({name})"] for name in classes] for row in table], self.daemon["outputs"])
        self.assertEqual([row["class"] for row in table], expected)
        self.assertEqual(self.daemon["labels"], expected)
        for number, (row, p) in enumerate(zip(self.predict("--json"), probabilities, strict=True), 1):
            self.assertEqual((row["row"], row["class"], list(row["probabilities"])), (number, expected[number - 1], classes))
            self.assert_close(list(row["probabilities"].values()), p)
        truth = [classes.index(row["kind"]) for row in self.rows]
        measures = self.score()
        self.assert_close([measures["accuracy"], measures["log_loss"]], [
            np.mean(probabilities.argmax(axis=1) == truth), -np.log(probabilities[range(700), truth]).mean()])
        confusion = np.zeros((3, 3), int)
        np.add.at(confusion, (truth, probabilities.argmax(axis=1)), 1)
        self.assertEqual(measures["confusion"], confusion.tolist())
        self.assertEqual([row["class"] for row in measures["classes"]], classes)
        one = np.eye(3, dtype=bool)
        self.judge_classes(measures, np.log(probabilities / (1 - probabilities)), one[truth], one[probabilities.argmax(axis=1)])
        self.judge_calibration(measures, probabilities.max(axis=1), probabilities.argmax(axis=1) == truth)
        self.assertEqual(json.loads(self.tags["columns"]), SCALE)
        status = f.nodes[0].status()
        for tag, value in (("label", "kind"), ("missing", "error"), ("inputs", "5"), ("label_smoothing", "0.1"),
                           ("node", "n0"), ("version", status["version"]), ("test_rows", "30")):
            self.assertEqual(self.tags[tag], value)
        self.assertAlmostEqual(float(self.tags["test_accuracy"]), status["test_accuracy"], 6)
        self.assertRegex(self.tags["created"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        other, _ = read_model(os.path.join(f.nodes[1].directory, "model.safetensors"))
        self.assertEqual(self.tags["fingerprint"], other["fingerprint"])
        self.card()
        self.wrong_rows()
        self.wrong_files()

    def card(self):
        """Markdown of the tags; what they say is text, whatever it looks like."""
        out, err = sgpctl("card", self.model)
        self.assertEqual(err, "")
        for line in ("Of each row the model says the class of kind, one of 3: more, less than and so, so.",
                     "Predict with `sgpctl predict --model FILE rows.csv`, or make a graph of ONNX with "
                     "`sgpctl export --model FILE model.onnx`.",
                     "| width | a number; mean 2.5, deviation 0.7 |", "| colour | one of red; dark, green; blue |",
                     "| layers | dense 6 tanh, dense 3 |", "| parameters | 57 |", "| label smoothing | 0.1 |",
                     "| accuracy | %s |" % self.tags["test_accuracy"], "| fingerprint | %s |" % self.tags["fingerprint"]):
            self.assertIn(line + "\n", out)
        said = json.loads(sgpctl("card", self.model, "--json")[0])
        self.assertEqual((said.pop("file"), said.pop("parameters")), (self.model, 57))
        self.assertEqual(said, self.tags)

    def wrong_rows(self):
        good = "colour,high ,width\nblue,1,2\n"
        for text, message in (
                ("colour,width\nblue,2\n", "standard input:1: there is no column 'high '; the columns are colour, width"),
                (good + "pink,1,2\n", "standard input:3: column 'colour': 'pink' is not among the values that the model knows; "
                                      "give one of them: red, dark, green, blue"),
                (good + "red,1,two\n", "standard input:3: column 'width': 'two' is not a number; the model takes a number"),
                (good + "red,,2\n", "standard input:3: column 'high ': '' is a missing value; give it"),
                (good + "red,1e39,2\n", "standard input:3: column 'high ': '1e39' is not a number; the model takes a number"),
                (good + "red,1\n", "standard input:3: 2 fields, but the first line names 3 columns"),
                ("colour,high ,width,kind\nblue,1,2,odd\n",
                 "standard input:2: column 'kind': 'odd' is not among the classes; give one that the model knows"),
                ("colour,high ,width,kind\nblue,1,2,\n",
                 "standard input:2: column 'kind': '' is a missing value; give it, or leave the column out"),
                ("", "standard input:1: the file is empty; the first line names the columns")):
            for more in ((), ("--json",)):
                out, err = sgpctl("predict", "--model", self.model, "-", *more, status=6, data=text.encode())
                told = json.loads(out.splitlines()[-1])["error"]["message"] if more else err.removeprefix("sgpctl: ").rstrip("\n")
                self.assertEqual(told, message)
        self.rows_before_a_wrong_one()
        _, err = sgpctl("-n", "n0", "predict", "--model", self.model, self.path, status=2)
        self.assertTrue(err.startswith("sgpctl: --model asks no daemon; leave it out, or -n and -s; "), err)
        out, err = sgpctl("predict", "--model", self.model, self.path + ".no", status=6)
        self.assertEqual((out, err), ("", f"sgpctl: {self.path}.no: No such file or directory\n"))
        self.assertEqual(sgpctl("predict", "--model", self.model, "-", data=b"colour,high ,width\n"), ("", ""))

    def rows_before_a_wrong_one(self):
        """As the documents say, they are printed, whether or not they fill a block."""
        head, *lines = self.unlabelled.splitlines(keepends=True)
        for count in (1, 199, 300):
            table = b"".join([head, *lines[:count], b"1,pink,2\n", *lines])
            whole, _ = sgpctl("predict", "--model", self.model, "-", data=b"".join([head, *lines[:count]]))
            out, err = sgpctl("predict", "--model", self.model, "-", status=6, data=table)
            self.assertEqual((out.count("\n"), out), (count + 1, whole))
            self.assertTrue(err.startswith("sgpctl: standard input:%d: column 'colour': 'pink' " % (count + 2)), err)
            out, _ = sgpctl("predict", "--model", self.model, "-", "--json", status=6, data=table)
            self.assertEqual([json.loads(line).get("row") for line in out.splitlines()], [*range(1, count + 1), None])

    def wrong_files(self):
        """Files whose digest is right and whose tags are not, and files that are cut and damaged: one line, status 6."""
        shapes = {"layers.0.weight": [6, 5], "layers.0.bias": [6], "layers.1.weight": [3, 6], "layers.1.bias": [3]}
        values = np.zeros(6 * 5 + 6 + 3 * 6 + 3)
        path = os.path.join(self.directory, "hostile.safetensors")
        rows = os.path.join(self.directory, "rows.csv")
        with open(rows, "wb") as file:
            file.write(self.unlabelled)
        write_model(path, self.tags, values, shapes)
        self.assertEqual(sgpctl("predict", "--model", path, rows)[1], "")

        def refused(message, **tags):
            kept = {k: v for k, v in (self.tags | tags).items() if v is not None}
            write_model(path, kept, values, shapes)
            self.assertEqual(sgpctl("predict", "--model", path, rows, status=6), ("", f"sgpctl: {path}: {message}\n"))

        refused("it has no tag 'layers': the model is a program's, which alone can use it", layers=None)
        refused("tag 'layers': layer 1 begins with 'sparse'; write for example 'dense 512 relu', or another of dense, conv, pool, norm, dropout, embedding, residual", layers="sparse 3")
        refused("its 57 values in 4 tensors do not fit its layers, which take 18 in 2", layers="dense 3")
        refused("tag 'loss' is missing, or no loss of this build", loss="hinge")
        refused("tag 'inputs' is no number of inputs", inputs="-1")
        refused("tag 'inputs' is no number of inputs", inputs="99999999999999999999")
        refused("tag 'classes' does not name one class for each output", classes="a b")
        refused("tag 'classes' does not name one class for each output", loss="binary-cross-entropy")
        refused("tag 'classes': the quote before 'a' is never closed; close it, and mind that a blank and # or ; begin a comment",
                classes='"a')
        refused("tag 'label' does not name a column for each output", label="a, b")
        refused("tag 'columns:1: '[' or '{' expected near 'x'; a scaling file is JSON'", columns="x")
        refused("tag 'columns' does not make as many features as the model takes",
                columns=json.dumps({"sgp_scaling": 1, "columns": SCALE["columns"][:2]}))
        write_model(path, self.tags | {"node": "a|b\n# <b>\x1b[1m"}, values, shapes)
        self.assertIn("| node | a\\|b?\\# \\<b\\>?\\[1m |\n", sgpctl("card", path)[0])
        write_model(path, self.tags, values * np.nan, shapes)
        self.assertEqual(sgpctl("predict", "--model", path, rows, status=1)[1], f"sgpctl: {rows}: row 1: output 1 of the model "
                         "is not a finite number; the features are too large, or the model has diverged\n")
        with open(self.model, "rb") as file:
            content = file.read()
        for damaged in (content[:-1], content[:40], b"", content[:-5] + b"\1" + content[-4:], content[:300] + b"\0" + content[301:],
                        b"\xff" * 8 + content[8:], os.urandom(4096)):
            with open(path, "wb") as file:
                file.write(damaged)
            for command in (("predict", "--model", path, rows), ("card", path)):
                out, err = sgpctl(*command, status=6)
                self.assertEqual((out, err.count("\n"), err.startswith(f"sgpctl: {path}: ")), ("", 1, True), err)
        out, err = sgpctl("predict", "--model", self.directory, rows, status=6)
        self.assertEqual((out, err.count("\n")), ("", 1), err)

    def test_several_labels(self):
        self.train(2, **{"data.label": "warm, wet", "model.loss": "binary-cross-entropy"})
        probabilities = 1 / (1 + np.exp(-self.outputs))
        table = self.predict()
        self.assertEqual(list(table[0]), ["warm", "p(warm)", "wet", "p(wet)"])
        self.assert_close([[row["p(warm)"], row["p(wet)"]] for row in table], probabilities)
        self.assert_close(self.daemon["outputs"], probabilities)
        self.assertEqual([[row["warm"], row["wet"]] for row in table], [["01"[int(p > 0.5)] for p in row] for row in probabilities])
        line = self.predict("--json")[0]
        self.assertEqual((list(line), line["values"]), (["row", "values", "probabilities"],
                                                        {"warm": int(probabilities[0][0] > 0.5), "wet": int(probabilities[0][1] > 0.5)}))
        truth = np.array([[row["warm"], row["wet"]] for row in self.rows])
        loss = -np.log(np.where(truth == 1, probabilities, 1 - probabilities)).mean()
        measures = self.score()
        self.assert_close([measures["accuracy"], measures["log_loss"]], [np.mean((probabilities > 0.5) == truth), loss])
        self.assertEqual([row["class"] for row in measures["classes"]], ["warm", "wet"])
        self.assertNotIn("confusion", measures)
        self.judge_classes(measures, self.outputs, truth == 1, self.outputs > 0)
        self.judge_calibration(measures, np.maximum(probabilities, 1 - probabilities).ravel(),
                               ((probabilities > 0.5) == truth).ravel())

    def test_numbers(self):
        """Of columns as they are, and with a large table, packed, from standard input."""
        self.train(2, scaled=False, **{"data.label": "price, cost", "model.loss": "huber", "model.layers": "dense 6 tanh, dense 2",
                                       "data.missing": None})
        table = self.predict()
        self.assertEqual(list(table[0]), ["price", "cost"])
        self.assert_close([[row["price"], row["cost"]] for row in table], self.outputs)
        self.assert_close(self.daemon["outputs"], self.outputs)
        self.assertEqual([c["name"] for c in json.loads(self.tags["columns"])["columns"]], ["width", "high "])
        truth = np.array([[float(row["price"]), float(row["cost"])] for row in self.rows])
        off = self.outputs - truth
        r2 = np.mean(1 - (off ** 2).sum(axis=0) / ((truth - truth.mean(axis=0)) ** 2).sum(axis=0))
        measures = self.score()
        self.assert_close([measures["r2"], measures["absolute_error"], measures["squared_error"]],
                          [r2, np.abs(off).mean(), (off ** 2).mean()])
        self.assertEqual([row["column"] for row in measures["columns"]], ["price", "cost"])
        self.assert_close([row["squared_error"] for row in measures["columns"]], (off ** 2).mean(axis=0))
        self.assertEqual(set(measures), {"rows", "r2", "absolute_error", "squared_error", "columns"})
        head, body = self.unlabelled.split(b"\r\n", 1)
        out, _ = sgpctl("predict", "--model", self.model, "-", data=gzip.compress(head + b"\r\n" + 60 * body))
        self.assertEqual(out.count("\n"), 60 * 700 + 1)
        lines = out.splitlines()
        self.assertEqual(lines[1:701], lines[-700:])


if __name__ == "__main__":
    fleet.take_sgpd()
    SGPCTL = sys.argv.pop(1)
    fleet.tap.run_cases(sys.argv[1:])
