# SPDX-License-Identifier: Apache-2.0
"""Statistics of tables, and the scaling of all: test_statistics.py SGPCTL COMBINE. The reference is Python's integers."""
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from fractions import Fraction

import tap

SGPCTL, COMBINE = map(os.path.abspath, sys.argv[1:])
HOME = tempfile.TemporaryDirectory()
UNIT = 192  # bits behind the point of a sum


def write(header, rows):
    handle, path = tempfile.mkstemp(suffix=".csv", dir=HOME.name)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        for row in [header, *rows]:
            file.write(",".join(map(str, row)) + "\n")
    return path


def statistics(path, *options, status=0):
    done = subprocess.run([SGPCTL, "--json", "data", "statistics", path, *options], capture_output=True, text=True, check=False,
                          timeout=60)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout)


def combine(*tables, options=(), names=None):
    """The scaling of tables [(header, rows)], or the one line that says why there is none."""
    arguments = []
    for i, (header, rows) in enumerate(tables):
        path = write(header, rows)
        with open(path + ".json", "w", encoding="ascii") as file:
            file.write(json.dumps(statistics(path, *options)["told"], separators=(",", ":")))
        arguments += [names[i] if names else f"n{i}", path + ".json"]
    done = subprocess.run([COMBINE, *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode in (0, 1) and (done.stdout == "") == (done.stderr != ""), done
    assert (done.stdout + done.stderr).count("\n") == 1 and done.stdout.isascii()
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr.strip()


# ---- the reference ----

def to_int(number):
    size = math.floor(abs(Fraction(number)) * 2 ** UNIT + Fraction(1, 2))
    return -size if number < 0 else size


def figures(numbers):
    integers = [to_int(x) for x in numbers]
    return len(integers), sum(integers), sum(x * x for x in integers)


def mean_deviation(numbers):
    """Quotients of integers have one rounding in Python."""
    n, total, squares = figures(numbers)
    spread = n * squares - total * total
    if spread == 0:
        return total / (n << UNIT), 1.0
    shift = spread.bit_length() - (n * n).bit_length()
    shift -= shift & 1
    variance = spread / ((n * n) << shift) if shift >= 0 else (spread << -shift) / (n * n)
    return total / (n << UNIT), math.ldexp(math.sqrt(variance), shift // 2 - UNIT)


def draw(rng, low, high):
    return math.copysign(math.ldexp(rng.random(), rng.randint(low, high)), rng.random() - 0.5)


RANGES = [(-30, 30), (0, 0), (99, 99), (-99, 99), (-200, 99), (-191, -180), (-140, -139), (-250, -193)]


# ---- tests ----

def test_told_sums_are_exact():
    rng = random.Random(1)
    for rows in (1, 2, 37):
        table = [[draw(rng, low, high) for low, high in RANGES] for _ in range(rows)]
        told = statistics(write([f"c{i}" for i in range(len(RANGES))], [map(repr, r) for r in table]), "--min-count", "1")["told"]
        assert told["rows"] == rows and told["labels"] == []
        for i, (name, kind, n, total, squares) in enumerate(told["columns"]):
            assert (name, kind) == (f"c{i}", "numbers")
            assert (n, int(total, 16), int(squares, 16)) == figures([r[i] for r in table]), (rows, RANGES[i])


def test_mean_and_deviation_have_the_bits_of_exact_arithmetic():
    rng = random.Random(2)
    for trial in range(12):
        rows = rng.choice((10, 11, 60, 200))
        centres = [draw(rng, low, high) if trial % 2 else 0 for low, high in RANGES]
        table = [[c + draw(rng, low - 30 * (trial % 2), high - 30 * (trial % 2)) for c, (low, high) in zip(centres, RANGES)]
                 for _ in range(rows)]
        header = [f"c{i}" for i in range(len(RANGES))]
        part = [(header, [map(repr, r) for r in table[i::3]]) for i in range(3)]
        columns = combine(*part, options=("--min-count", "1"))["columns"]
        for i, column in enumerate(columns):
            numbers = [r[i] for r in table]
            assert (column["mean"], column["deviation"]) == mean_deviation(numbers), (trial, RANGES[i])
            if RANGES[i][0] > -90:  # all bits of the numbers are in the sums
                n, exact = len(numbers), [Fraction(x) for x in numbers]
                mean = sum(exact) / n
                variance = sum((x - mean) ** 2 for x in exact) / n
                assert column["mean"] == mean.numerator / mean.denominator
                error = abs(Fraction(column["deviation"]) ** 2 / variance - 1) if variance else 0
                assert error < Fraction(3, 2 ** 53), float(error)


def test_a_great_mean_beside_a_small_deviation():
    for centre, step in ((10 ** 8, 1), (10 ** 12, Fraction(1, 1024)), (2 ** 99, 2 ** 47)):
        rows = [[repr(float(centre + (step if i % 2 else -step)))] for i in range(1000)]
        column = combine((["x"], rows[:300]), (["x"], rows[300:]))["columns"][0]
        assert column == {"name": "x", "mean": float(centre), "deviation": float(step)}, column


def test_any_cut_gives_the_same_bits():
    rng = random.Random(3)
    rows = [[repr(rng.gauss(50, 12)), rng.choice(("NA", "", repr(rng.expovariate(1e-3)))), rng.choice("abcd"),
             rng.choice(("0", "0.0", "1", "yes"))] for _ in range(700)]
    header = ["age", "dose", "group", "y"]
    options = ("--label", "y", "--classes", "--categories", "group", "--min-count", "1")
    whole = combine((header, rows), options=options)
    assert whole["classes"] == {c: sum(r[3] in v for r in rows) for c, v in (("0", ("0", "0.0")), ("1", ("1",)), ("yes", ("yes",)))}
    assert whole["members"] == {"n0": 700} and whole["rows"] == 700
    assert whole["columns"][2] == {"name": "group", "values": ["a", "b", "c", "d"]}
    for parts in (1, 3, 4, 7):
        for order in (rows, rng.sample(rows, 700), sorted(rows, key=lambda r: r[3])):
            ends = [0, *sorted(rng.sample(range(1, 700), parts - 1)), 700]
            cut = [order[a:b] for a, b in zip(ends, ends[1:])]
            combined = combine(*((header, c) for c in cut), options=options)
            assert combined.pop("members") == {f"n{i}": len(c) for i, c in enumerate(cut)}
            assert combined == {k: v for k, v in whole.items() if k != "members"}, parts


def test_label_columns_of_numbers_are_targets():
    rows = [[i, 2 * i, i % 5] for i in range(40)]
    combined = combine((["a", "y", "z"], rows[:15]), (["z", "a", "y"], [[z, a, y] for a, y, z in rows[15:]]),
                       options=("--label", "z,y"))
    assert [c["name"] for c in combined["columns"]] == ["a"] and "classes" not in combined
    for target, numbers in zip(combined["targets"], ([r[2] for r in rows], [r[1] for r in rows])):
        assert (target["mean"], target["deviation"]) == mean_deviation(numbers)


# Columns of some data sets that are in the package scikit-learn: mean, deviation.
KNOWN = [("load_breast_cancer", "mean radius", 14.127291739894552, 3.5209507607110622),
         ("load_wine", "alcohol", 13.000617977528091, 0.80954291452851679),
         ("load_diabetes", None, float.fromhex("0x1.3044580944581p+7"), float.fromhex("0x1.3405e23ec581cp+6"))]
NODE_COUNTS = (1, 3, 4, 7, 12)


def tables_of_scikit_learn():
    try:
        from sklearn import datasets  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise tap.Skip("needs scikit-learn") from error
    return datasets


def test_known_columns():
    datasets = tables_of_scikit_learn()
    for load, name, mean, deviation in KNOWN:
        data = getattr(datasets, load)()
        numbers = data.data[:, list(data.feature_names).index(name)] if name else data.target
        rows = [[repr(float(x))] for x in numbers]
        column = combine((["x"], rows[::2]), (["x"], rows[1::2]))["columns"][0]
        assert (column["mean"], column["deviation"]) == (mean, deviation), column


def expect_pooled(rng, table):
    """Nodes with unequal parts of a table, in any order, come to the mean and the deviation of all its numbers, to the bit. A
    missing number is None."""
    header = [f"c{i}" for i in range(len(table[0]))]
    expected = [mean_deviation([row[i] for row in table if row[i] is not None]) for i in range(len(header))]
    for parts in NODE_COUNTS:
        order = rng.sample(table, len(table))
        ends = [0, *sorted(rng.sample(range(1, len(table)), parts - 1)), len(table)]
        cut = [(header, [["" if x is None else repr(x) for x in row] for row in order[a:b]]) for a, b in zip(ends, ends[1:])]
        told = combine(*cut, options=("--min-count", "1"))
        assert told["members"] == {f"n{i}": len(rows) for i, (_, rows) in enumerate(cut)}
        assert [(c["name"], c["mean"], c["deviation"]) for c in told["columns"]] == [
            (name, *figure) for name, figure in zip(header, expected)], parts


def test_whole_tables_of_unequal_nodes():
    """All columns of four data sets and their labels, where one number in twelve is missing."""
    datasets, rng = tables_of_scikit_learn(), random.Random(6)
    for load in ("load_digits", "load_breast_cancer", "load_wine", "load_diabetes"):
        data = getattr(datasets, load)()
        expect_pooled(rng, [[float(x) if rng.random() < 11 / 12 else None for x in (*row, label)]
                            for row, label in zip(data.data, data.target)])


def test_a_thousand_columns_of_unequal_nodes():
    """Far ones (mean 1e8, deviation 1), constant ones, and ones of any size."""
    rng = random.Random(7)
    kinds = (lambda i: 1e8 + rng.gauss(0, 1), lambda i: i + 0.1, lambda i: draw(rng, -30, 30), lambda i: rng.gauss(i, 0.5))
    table = [[kinds[i % 4](i) if rng.random() < 0.9 else None for i in range(1000)] for _ in range(80)]
    expect_pooled(rng, table)
    far, constant = ([row[i] for row in table if row[i] is not None] for i in (0, 1))
    assert abs(mean_deviation(far)[0] - 1e8) < 1 and 0.7 < mean_deviation(far)[1] < 1.3
    assert mean_deviation(constant) == (1.1, 1.0)


def test_little_is_told_of_few_rows():
    rows = [[77 if i < 3 else "", "rare" if i == 4 else "red", "yes" if i < 2 else "no"] for i in range(20)]
    path = write(["age", "colour", "y"], rows)
    answer = statistics(path, "--label", "y", "--classes", "--categories", "colour")
    assert answer["told"] == {"sgp_statistics": 1, "rows": 20, "labels": [["y", "classes", {"no": 18}]],
                              "columns": [["age", "numbers", 0, "0", "0"], ["colour", "values", ["red"]]]}, answer
    assert answer["held_back"] == [{"column": "age", "values": 0, "rows": 3}, {"column": "colour", "values": 1, "rows": 1},
                                   {"column": "y", "values": 1, "rows": 2}], answer
    assert answer["bytes"] == len(json.dumps(answer["told"], separators=(",", ":"))) and answer["words"] == []
    out = subprocess.run([SGPCTL, "data", "statistics", path, "--label", "y", "--classes", "--categories", "colour"],
                         capture_output=True, text=True, check=True, timeout=60).stdout
    told = out.split("\n", 1)[1]  # without the name of the file, which is chance
    assert "rare" not in told and "77" not in told and "yes" not in told, out
    for line in ("age numbers - - - count 0 3 numbers", "colour values - - - red 1 value of 1 row",
                 "y classes (label) - - - no 18 1 value of 2 rows"):
        assert line.split() in [words.split() for words in told.splitlines()], out


def test_words_stay_in_the_log_of_their_node():
    path = write(["zip", "age"], [["1010", 3], ["A-1", 4]])
    answer = statistics(path)
    assert answer["told"]["columns"][0] == ["zip", "words"]
    line = (f"{path}:3: column 'zip': 'A-1' is not a number; name the column in categories or in ignore on every node, "
            "or correct the value")
    assert answer["words"] == [line]
    out = subprocess.run([SGPCTL, "data", "statistics", path], capture_output=True, text=True, check=True, timeout=60).stdout
    assert line in out, out
    told = statistics(write(["age", "y"], [[3, "yes"]]), "--label", "y")
    assert told["told"]["labels"] == [["y", "words"]] and "name the classes of the label on every node" in told["words"][0]


def test_a_file_that_cannot_be_told_is_refused_with_a_line():
    rows = [["1", "2"]] * 20
    for options, message in ((("--label", "w"), ":1: there is no column 'w'; the columns are a, y"),
                             (("--label", "y", "--ignore", "y"), "ignore: 'y' is the label; ignore other columns"),
                             (("--label", "y", "--ignore", "a"), ":1: no column is left as a feature"),
                             (("--label", "a,y", "--classes"), "classes are the values of one")):
        error = statistics(write(["a", "y"], rows), *options, status=6)["error"]["message"]
        assert message in error, error
    assert "--classes needs --label" in statistics(write(["a", "y"], rows), "--classes", status=2)["error"]["message"]
    assert "no rows" in statistics(write(["a", "y"], []), status=6)["error"]["message"]


try:
    tap.run(dict(vars()))
finally:
    HOME.cleanup()
