# SPDX-License-Identifier: Apache-2.0
"""The tables of scikit-learn, a quarter at each of four nodes, with what `config new --scale fleet` writes, beside scikit-learn's
own models of all rows: test_sklearn.py SGPD SGPCTL. Each split is made twice: rows in random order, and rows sorted by label,
so that a node has few classes or a part of the numbers. Where a split leaves few rows to test on, one of them is worth more than
the bound, and the mean over several splits is what counts."""
import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
from fractions import Fraction

import fleet
import tap

try:
    import numpy
    from sklearn import datasets, linear_model, metrics, pipeline, preprocessing
except ImportError:
    numpy = None

SGPD, SGPCTL = (os.path.abspath(path) for path in sys.argv[1:3])
NODES = 4


def ctl(*arguments):
    done = subprocess.run([SGPCTL, *arguments], text=True, capture_output=True, timeout=200, check=False)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def write_table(path, table, rows, name):
    with open(path, "w", encoding="ascii") as file:
        file.write(",".join("c%d" % i for i in range(table.data.shape[1])) + ",label\n")
        for row in rows:
            file.write(",".join("%r" % float(value) for value in table.data[row]) + "," + name(table.target[row]) + "\n")


def write_topology(path):
    """Each node gives to the next, and to the one after."""
    edges = [(i, (i + hop) % NODES) for i in range(NODES) for hop in (1, 2)]
    with open(path, "w", encoding="ascii") as file:
        file.write("digraph p {\n")
        for i, port in enumerate(fleet.free_ports(NODES)):
            file.write('  n%d [address="127.0.0.1:%d"];\n' % (i, port))
        file.write("".join("  n%d -> n%d;\n" % edge for edge in edges) + "}\n")


@contextlib.contextmanager
def daemons(home):
    running = [subprocess.Popen([SGPD, "-c", "%s/n%d.conf" % (home, i)], stderr=subprocess.DEVNULL) for i in range(NODES)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def split(table, by_label, seed=0):
    """Rows to train on, in parts, and rows to test on."""
    order = numpy.random.RandomState(seed).permutation(len(table.data))
    train, test = order[:len(order) * 4 // 5], order[len(order) * 4 // 5:]
    if by_label:
        train = train[numpy.argsort(table.target[train], kind="stable")]
    return numpy.array_split(train, NODES), test


def measures(table, by_label, seed, name, *options):
    """Of the model of four nodes, on rows that none of them has."""
    parts, test = split(table, by_label, seed)
    with tempfile.TemporaryDirectory(prefix="sgpd-") as home:
        write_topology(home + "/fleet.dot")
        write_table(home + "/test.csv", table, test, name)
        for i, rows in enumerate(parts):
            write_table("%s/rows%d.csv" % (home, i), table, rows, name)
            ctl("-n", "n%d" % i, "config", "new", "%s/n%d.conf" % (home, i), "--data", "%s/rows%d.csv" % (home, i), "--label",
                "label", "--topology", home + "/fleet.dot", "--scale", "fleet", "--holdout", "0", "--state-directory",
                "%s/n%d" % (home, i), "--socket", "%s/n%d.sock" % (home, i), *options)
        with daemons(home):
            ctl("-s", home + "/n0.sock", "wait", "--for", "finished", "--timeout", "150")
            ctl("-s", home + "/n0.sock", "export", home + "/model.safetensors")
        if seed == 0:
            check_scaling(home, table.data[numpy.concatenate(parts)])
        answer = json.loads(ctl("predict", "--model", home + "/model.safetensors", "--json", home + "/test.csv").splitlines()[-1])
        return answer.get("measures", answer)


def check_scaling(home, rows):
    """All nodes have one scaling, that of the pooled rows to the bit: the mean rounded once, and the root of the rounded variance."""
    texts = set()
    for i in range(NODES):
        with open("%s/n%d/scale.json" % (home, i), encoding="utf-8") as file:
            texts.add(file.read())
    assert len(texts) == 1, texts
    for column, numbers in zip(json.loads(texts.pop())["columns"], rows.T, strict=True):
        exact = [Fraction(float(number)) for number in numbers]
        mean = sum(exact) / len(exact)
        variance = sum(x * x for x in exact) / len(exact) - mean * mean
        assert (column["mean"], column["deviation"]) == (float(mean), math.sqrt(variance) or 1.0), column


def reference(table, seed, model):
    parts, test = split(table, False, seed)
    train = numpy.concatenate(parts)
    fitted = pipeline.make_pipeline(preprocessing.StandardScaler(), model).fit(table.data[train], table.target[train])
    return fitted, table.data[test], table.target[test]


def needs_sklearn():
    if numpy is None:
        raise tap.Skip("not installed: python3-sklearn")


def compare_classes(load, splits, short=0.01):
    """Accuracy at most 0.01 below that of logistic regression of all rows, as the mean over splits; in the first at most `short`."""
    needs_sklearn()
    table = getattr(datasets, load)()
    classes = "--classes", " ".join("k%d" % label for label in sorted(set(table.target)))
    for by_label in (False, True):
        ours, theirs = [], []
        for seed in range(splits):
            fitted, rows, labels = reference(table, seed, linear_model.LogisticRegression(max_iter=2000))
            theirs.append(fitted.score(rows, labels))
            ours.append(measures(table, by_label, seed, "k%d".__mod__, *classes)["accuracy"])
        print("# sorted %s: accuracy %.4f, logistic regression of all rows %.4f, means of %d splits; at most %.4f short" % (
            by_label, numpy.mean(ours), numpy.mean(theirs), splits, max(numpy.subtract(theirs, ours))), flush=True)
        assert ours[0] >= theirs[0] - short, (by_label, ours, theirs)
        assert numpy.mean(ours) >= numpy.mean(theirs) - 0.01, (by_label, ours, theirs)


def test_digits():
    compare_classes("load_digits", 3)


def test_breast_cancer():
    compare_classes("load_breast_cancer", 5)  # one row of 114 is 0.009


def test_wine():
    compare_classes("load_wine", 10, 0.03)  # one row of 36 is 0.028


def test_diabetes():
    """Beside ridge regression: numbers far from 1, which the nodes agree to scale. Half of their variance is noise, which a model of
    few rows must not learn by heart."""
    needs_sklearn()
    table = datasets.load_diabetes()
    for by_label in (False, True):
        ratios = []
        for seed in range(10):
            fitted, rows, labels = reference(table, seed, linear_model.Ridge())
            theirs = float(((fitted.predict(rows) - labels) ** 2).mean())
            ratios.append(measures(table, by_label, seed, lambda number: "%r" % float(number))["squared_error"] / theirs)
        print("# sorted %s: the squared error is %.4f times that of ridge regression of all rows, mean of 10 splits; %.4f to %.4f" % (
            by_label, numpy.mean(ratios), min(ratios), max(ratios)), flush=True)
        assert ratios[0] <= 1.03 and numpy.mean(ratios) <= 1.03, (by_label, ratios)


# ---- measures of the whole fleet, beside those of scikit-learn ----

def tensors_of(path):
    """The tensors of a model file, in the order of its layers."""
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        head = json.loads(file.read(size))
        data = file.read()
    entries = sorted(((name, entry) for name, entry in head.items() if name != "__metadata__"),
                     key=lambda item: item[1]["data_offsets"])
    return [numpy.frombuffer(data[entry["data_offsets"][0]:entry["data_offsets"][1]], "<f4").reshape(entry["shape"]).astype(float)
            for _, entry in entries]


def outputs_of(home, rows):
    """What the exported model of n0 says of rows, with the scaling on which the nodes have agreed: dense layers, relu between.
    Labels that are numbers are scaled, too, so the outputs are brought back to their units."""
    with open(home + "/n0/scale.json", encoding="utf-8") as file:
        scaling = json.load(file)
    columns, targets = scaling["columns"], scaling.get("targets", [])
    values = (rows - [column["mean"] for column in columns]) / [column["deviation"] for column in columns]
    values = values.astype(numpy.float32).astype(float)
    tensors = tensors_of(home + "/model.safetensors")
    for layer in range(0, len(tensors), 2):
        values = values @ tensors[layer].T + tensors[layer + 1]
        if layer + 2 < len(tensors):
            values = numpy.maximum(values, 0)
    for number, target in enumerate(targets):
        values[:, number] = values[:, number] * target["deviation"] + target["mean"]
    return values


def report_of_fleet(table, name, *options, decay=None):
    """The measures that four nodes tell, each with a quarter of the rows to train on, and of all rows to test on; the outputs of
    the final model for all rows, and their labels. The more rows, the less a bin of the score hides of the curve. `decay` is the
    line that replaces the weight decay."""
    parts, _ = split(table, True)
    test = numpy.random.RandomState(1).permutation(len(table.data))
    with tempfile.TemporaryDirectory(prefix="sgpd-") as home:
        write_topology(home + "/fleet.dot")
        for i, (rows, own) in enumerate(zip(parts, numpy.array_split(test, NODES))):
            write_table("%s/rows%d.csv" % (home, i), table, rows, name)
            write_table("%s/test%d.csv" % (home, i), table, own, name)
            path = "%s/n%d.conf" % (home, i)
            ctl("-n", "n%d" % i, "config", "new", path, "--data", "%s/rows%d.csv" % (home, i), "--label", "label", "--topology",
                home + "/fleet.dot", "--scale", "fleet", "--holdout", "0", "--state-directory", "%s/n%d" % (home, i), "--socket",
                "%s/n%d.sock" % (home, i), *options)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            assert "\nholdout = 0\n" in text and "\nweight_decay = 0.01\n" in text or decay is None, text
            text = text.replace("\nholdout = 0\n", "\ntest = %s/test%d.csv\n" % (home, i))
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace("\nweight_decay = 0.01\n", "\n%s\n" % decay) if decay else text)
        with daemons(home):
            for i in range(NODES):
                ctl("-s", "%s/n%d.sock" % (home, i), "wait", "--for", "finished", "--timeout", "150")
            reports = [json.loads(ctl("-s", "%s/n%d.sock" % (home, i), "evaluate", "--fleet", "--timeout", "60", "--json"))
                       for i in range(NODES)]
            ctl("-s", home + "/n0.sock", "export", home + "/model.safetensors")
        assert all(report["final"] and report["silent"] == [] and report["measures"] == reports[0]["measures"]
                   for report in reports), reports
        return reports[0]["measures"], outputs_of(home, table.data[test]), table.target[test]


def compare_report(load, mislead=0.0, options=(), decay=None, most=1e-4):
    """Counts and F1 are those of scikit-learn on the pooled rows; the area under the curve is at most `most` away. A part of the
    labels is drawn by lot. Returns what the nodes told."""
    needs_sklearn()
    table = getattr(datasets, load)()
    draw = numpy.random.RandomState(2)
    table.target = numpy.where(draw.rand(len(table.target)) < mislead, draw.permutation(table.target), table.target)
    labels = sorted(set(table.target))
    told, outputs, truth = report_of_fleet(table, "k%d".__mod__, "--classes", " ".join("k%d" % label for label in labels), *options,
                                           decay=decay)
    said = outputs.argmax(1)
    assert told["confusion"] == metrics.confusion_matrix(truth, said, labels=labels).tolist()
    for key, score in ("f1", metrics.f1_score), ("precision", metrics.precision_score), ("recall", metrics.recall_score):
        theirs = score(truth, said, average=None, labels=labels)
        assert numpy.abs(numpy.array([one[key] for one in told["classes"]]) - theirs).max() < 1e-12, key
    worst = 0
    for c in labels:
        score = outputs[:, c] - numpy.logaddexp.reduce(numpy.delete(outputs, c, 1), axis=1)
        off = abs(metrics.roc_auc_score(truth == c, score) - told["classes"][c]["auc"])
        assert off <= told["classes"][c]["auc_bound"] + 1e-9, (c, off)
        worst = max(worst, off)
    logs = outputs - numpy.logaddexp.reduce(outputs, axis=1)[:, None]  # scikit-learn's log_loss cuts small probabilities off
    loss = -logs[numpy.arange(len(truth)), numpy.searchsorted(labels, truth)].mean()
    assert logs.min() < -30 or abs(loss - metrics.log_loss(truth, numpy.exp(logs), labels=labels)) < 1e-9
    print("# %s: accuracy %.4f; area under the curve off by %.1e at most, log loss by %.1e" % (
        load, told["accuracy"], worst, abs(loss - told["log_loss"])), flush=True)
    assert worst < most and abs(loss - told["log_loss"]) < 1e-5 * max(1, loss), (worst, loss, told["log_loss"])
    return told


def test_report_of_digits():
    compare_report("load_digits")


def test_report_of_breast_cancer():
    compare_report("load_breast_cancer")


def test_report_of_a_model_that_is_far_too_sure():
    """It is sure of nearly all rows, also of those that it gets wrong. Where a third of the labels is drawn by lot, no model of these
    few rows parts the classes, and bins hide more of the curve."""
    for mislead, most in ((0, 1e-4), (0.3, 1e-3)):
        told = compare_report("load_digits", mislead, ("--layers", "dense 128 relu, dense 10", "--epochs", "300", "--learning-rate",
                                                       "0.1"), "weight_decay = 0", most)
        sure = told["calibration"][-1]
        assert sure["rows"] > 0.9 * told["rows"] and sure["correct"] < sure["rows"], told
        assert told["log_loss"] > -3 * math.log(told["accuracy"]), told


def test_report_of_diabetes():
    needs_sklearn()
    told, outputs, truth = report_of_fleet(datasets.load_diabetes(), lambda number: "%r" % float(number))
    for key, ours in (("r2", metrics.r2_score(truth, outputs[:, 0])),
                      ("absolute_error", metrics.mean_absolute_error(truth, outputs[:, 0])),
                      ("squared_error", metrics.mean_squared_error(truth, outputs[:, 0]))):
        print("# %s %.9g, scikit-learn %.9g" % (key, told[key], ours))
        assert abs(told[key] - ours) < 1e-5 * abs(ours), (key, told[key], ours)


if __name__ == "__main__":
    tap.run(dict(vars()))
