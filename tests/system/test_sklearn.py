# SPDX-License-Identifier: Apache-2.0
"""The tables of scikit-learn, a quarter at each of four nodes, with what `config new --scale fleet` writes, beside scikit-learn's
own models of all rows: test_sklearn.py SGPD SGPCTL. Each split is made twice: rows in random order, and rows sorted by label,
so that a node has few classes or a part of the numbers."""
import contextlib
import json
import os
import subprocess
import sys
import tempfile

import fleet
import tap

try:
    import numpy
    from sklearn import datasets, linear_model, pipeline, preprocessing
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


def split(table, by_label):
    """Rows to train on, in parts, and rows to test on."""
    order = numpy.random.RandomState(0).permutation(len(table.data))
    train, test = order[:len(order) * 4 // 5], order[len(order) * 4 // 5:]
    if by_label:
        train = train[numpy.argsort(table.target[train], kind="stable")]
    return numpy.array_split(train, NODES), test


def measures(table, by_label, name, *options):
    """Of the model of four nodes, on rows that none of them has."""
    parts, test = split(table, by_label)
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
        answer = json.loads(ctl("predict", "--model", home + "/model.safetensors", "--json", home + "/test.csv").splitlines()[-1])
        return answer.get("measures", answer)


def reference(table, model):
    parts, test = split(table, False)
    train = numpy.concatenate(parts)
    fitted = pipeline.make_pipeline(preprocessing.StandardScaler(), model).fit(table.data[train], table.target[train])
    return fitted, table.data[test], table.target[test]


def needs_sklearn():
    if numpy is None:
        raise tap.Skip("not installed: python3-sklearn")


def compare_classes(load, short):
    """Accuracy at most `short` below that of logistic regression of all rows."""
    needs_sklearn()
    table = getattr(datasets, load)()
    fitted, rows, labels = reference(table, linear_model.LogisticRegression(max_iter=2000))
    theirs = fitted.score(rows, labels)
    classes = "--classes", " ".join("k%d" % label for label in sorted(set(table.target)))
    for by_label in (False, True):
        ours = measures(table, by_label, "k%d".__mod__, *classes)["accuracy"]
        print("# sorted %s: accuracy %.4f, logistic regression of all rows %.4f" % (by_label, ours, theirs))
        assert ours >= theirs - short, (by_label, ours, theirs)


def test_digits():
    compare_classes("load_digits", 0.01)


def test_breast_cancer():
    compare_classes("load_breast_cancer", 0.02)  # two rows of 114


def test_wine():
    compare_classes("load_wine", 0.03)  # one row of 36


def test_diabetes():
    """Beside ridge regression: numbers that nobody scales, so sorted rows cost much."""
    needs_sklearn()
    table = datasets.load_diabetes()
    fitted, rows, labels = reference(table, linear_model.Ridge())
    theirs = float(((fitted.predict(rows) - labels) ** 2).mean())
    for by_label, most in ((False, 1.03), (True, 1.4)):
        ours = measures(table, by_label, lambda number: "%r" % float(number))["squared_error"]
        print("# sorted %s: squared error %.1f, ridge regression of all rows %.1f" % (by_label, ours, theirs))
        assert ours <= most * theirs, (by_label, ours, theirs)


if __name__ == "__main__":
    tap.run(dict(vars()))
