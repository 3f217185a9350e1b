# SPDX-License-Identifier: Apache-2.0
"""Models as ONNX: test_onnx.py SGPD SGPCTL.

`sgpctl export --model` makes a graph of a model file. ONNX's own checker reads it, and onnx_numpy.py runs it. The answers are
those of `sgpctl predict --model`, of the daemon that trained the model, and of this file's own arithmetic in float64, to 1e-6.
Where ONNX Runtime is installed (Debian has none), it runs every graph, too, and must answer the same.
Skipped without numpy or python3-onnx."""
import csv
import io
import json
import os
import random
import shutil
import subprocess
import sys
import unittest

import fleet
from fleet import FleetTest

SGPCTL = None  # the second argument
CLOSE = 1e-6
ROWS = 40
try:
    import numpy as np
    import onnx

    import onnx_numpy
    from tensors import read_model, write_model
    MISSING = None
except ImportError as error:
    MISSING = f"not installed: python3-{error.name}; scripts/setup --check installs it"
try:
    import onnxruntime
except ImportError:
    onnxruntime = None


def sgpctl(*arguments, status=0, data=None):
    done = subprocess.run([SGPCTL, *arguments], input=data, capture_output=True, timeout=fleet.PATIENCE, check=False)
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return done.stdout.decode(), done.stderr.decode()


def run(graph, inputs):
    """The answers of a graph by name: this interpreter's, which are ONNX Runtime's where that is installed. ValueError if a
    row is refused, as both must."""
    theirs = None
    if onnxruntime is not None:
        session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        try:
            theirs = dict(zip(names, session.run(names, inputs)))
        except Exception as error:  # it has several kinds
            theirs = error
    try:
        answers = onnx_numpy.run(graph, inputs)
    except ValueError:
        assert theirs is None or isinstance(theirs, Exception), "ONNX Runtime refuses nothing"
        raise
    if isinstance(theirs, Exception):
        raise AssertionError("ONNX Runtime refuses what the interpreter takes") from theirs
    if theirs is not None:
        assert set(theirs) == set(answers), (set(theirs), set(answers))
        for name, ours in answers.items():
            found = np.asarray(theirs[name])
            assert (found.dtype, found.shape) == (ours.dtype, ours.shape), (name, found.dtype, ours.dtype, found.shape, ours.shape)
            if ours.dtype == np.float32:
                assert (np.isnan(found) == np.isnan(ours)).all(), name
                scale = np.maximum(np.nanmax(np.abs(ours), axis=0), 1e-3)  # of the column: units of labels may be far from 0
                assert np.nanmax(np.abs(found - ours) / scale) < CLOSE, (name, found, ours)
            else:
                assert found.tolist() == ours.tolist(), (name, found, ours)
    return answers


def table(columns, rows):
    file = io.StringIO()
    csv.writer(file).writerows([columns, *rows])
    return file.getvalue().encode()


# ---- layers in float64, as docs/MODELS.md has them: pixel by pixel ----

FUNCTIONS = {"relu": lambda v: np.maximum(v, 0), "tanh": lambda v: np.tanh(v), "sigmoid": lambda v: 1 / (1 + np.exp(-v))}


def sides(word):
    return [int(side) for side in (word if "x" in word else f"{word}x{word}").split("x")]


def moved(x, words, window, default, same):
    """The part of the image below each window, by row and column of the output, and where in the window it begins."""
    stride = sides(words[words.index("stride") + 1]) if "stride" in words else default
    same = "same" in words or same and "valid" not in words
    sizes = x.shape[2:]
    counts = [-(-s // t) if same else (s - w) // t + 1 for s, w, t in zip(sizes, window, stride)]
    for i, j in np.ndindex(*counts):
        begins = [n * t - ((w - 1) // 2 if same else 0) for n, t, w in zip((i, j), stride, window)]
        (top, bottom), (left, right) = ((max(b, 0), min(b + w, s)) for b, w, s in zip(begins, window, sizes))
        yield (i, j), counts, x[:, :, top:bottom, left:right], (top - begins[0], left - begins[1])


def conv(x, words, weight, bias):
    y = None
    for (i, j), counts, part, (down, across) in moved(x, words, sides(words[1]), [1, 1], True):
        y = np.zeros((len(x), len(bias), *counts)) if y is None else y
        below = weight[:, :, down:down + part.shape[2], across:across + part.shape[3]]
        y[:, :, i, j] = (part[:, None] * below).sum(axis=(2, 3, 4)) + bias
    return y


def pool(x, words):
    reduce = np.mean if words[0] == "avg" else np.max
    words = words[words[0] in ("avg", "max"):]
    if words[0] == "all":
        return reduce(x, axis=(2, 3), keepdims=True)
    y, window = None, sides(words[0])
    for (i, j), counts, part, _ in moved(x, words, window, window, False):
        y = np.zeros((*x.shape[:2], *counts)) if y is None else y
        y[:, :, i, j] = reduce(part, axis=(2, 3))
    return y


def norm(x, words, weight, bias, mean=None, variance=None):
    weight, bias = weight[:, None, None], bias[:, None, None]
    if words[0] == "batch":
        return (x - mean[:, None, None]) / np.sqrt(np.maximum(variance, 0)[:, None, None] + 1e-5) * weight + bias
    groups = x.reshape(len(x), int(words[1]) if words[0] == "group" else 1, -1)
    groups = (groups - groups.mean(axis=2, keepdims=True)) / np.sqrt(groups.var(axis=2, keepdims=True) + 1e-5)
    return groups.reshape(x.shape) * weight + bias


def embedding(x, weight):
    x = x.reshape(len(x), 1, -1) if x.shape[1] > 1 else x[:, 0]
    return np.moveaxis(weight[x.astype(int)], 3, 1)


def outputs(tags, tensors, x):
    """Of features, [rows, inputs]; before softmax, sigmoid and units."""
    texts = tags["layers"].split(", ")
    shape = sides(texts.pop(0).split()[1]) if texts[0].startswith("input") else [x.shape[1], 1, 1]
    x, entered = x.astype("f8").reshape(len(x), *shape), []
    for number, text in enumerate(texts):
        kind, *words = text.split()
        own = [tensors[name] for name in (f"layers.{number}.{n}" for n in ("weight", "bias", "running_mean", "running_var"))
               if name in tensors]
        entered.append(x)
        if kind == "dense":
            x = (x.reshape(len(x), -1) @ own[0].T + own[1])[:, :, None, None]
        elif kind == "residual":
            x = x + entered[number - int(words[0])]
        elif kind != "dropout":
            x = {"conv": conv, "pool": pool, "norm": norm, "embedding": lambda x, words, weight: embedding(x, weight)}[kind](x, words, *own)
        x = FUNCTIONS.get(words[-1], lambda v: v)(x)
    return x.reshape(len(x), -1)


def softmax(z):
    z = np.exp(z - z.max(axis=1, keepdims=True))
    return z / z.sum(axis=1, keepdims=True)


# ---- models of random numbers ----

def shapes_of(layers, inputs):
    """The tensors of layers, in their order, by docs/MODELS.md."""
    shapes, texts = {}, layers.split(", ")
    shape = sides(texts.pop(0).split()[1]) if texts[0].startswith("input") else [inputs, 1, 1]
    x = np.zeros((1, *shape))
    for number, text in enumerate(texts):
        kind, *words = text.split()
        own = {"dense": lambda: {"weight": [int(words[0]), x[0].size], "bias": [int(words[0])]},
               "conv": lambda: {"weight": [int(words[0]), x.shape[1], *sides(words[1])], "bias": [int(words[0])]},
               "norm": lambda: {name: [x.shape[1]] for name in ["weight", "bias", "running_mean", "running_var"][:4 if words[0] == "batch" else 2]},
               "embedding": lambda: {"weight": [int(words[0]), int(words[2])]}}.get(kind, dict)()
        shapes |= {f"layers.{number}.{name}": size for name, size in own.items()}
        one = {"layers": f"input {'x'.join(map(str, x.shape[1:]))}, {text}"}
        if kind not in ("residual", "dropout"):
            zeros = {f"layers.0.{name}": np.zeros(size) for name, size in own.items()}
            width = {"dense": lambda: (int(words[0]), 1, 1), "conv": lambda: conv(x, words, *zeros.values()).shape[1:],
                     "pool": lambda: pool(x, words).shape[1:], "norm": lambda: x.shape[1:],
                     "embedding": lambda: embedding(x, *zeros.values()).shape[1:]}[kind]()
            x = np.zeros((1, *width))
            assert outputs(one, zeros, np.zeros((1, int(np.prod(sides(one["layers"].split()[1].rstrip(",")))))) ).size == x.size
    return shapes


def random_values(shapes, seed):
    """Weights that keep numbers near 1; and a variance below 0, as the mean of estimates may have."""
    draw, values = np.random.default_rng(seed), []
    for name, shape in shapes.items():
        size = np.prod(shape[1:]) if len(shape) > 1 else 1
        tensor = draw.normal(0, size ** -0.5, shape)
        if name.endswith("running_var"):
            tensor = np.abs(tensor) + 0.3
            tensor[0], values[-3][0] = -1e-7, 0.01  # its scale: the division by the root of 1e-5 would enlarge rounding
        values.append(tensor.ravel())
    return np.concatenate(values)


LAYERS = {  # layers: features
    "dense 3": 4,
    "dense 6 relu, dense 5 tanh, dense 7 sigmoid, dense 3 none": 5,
    "dense 5, norm batch relu, dropout 0.5, dense 3": 4,
    "dense 6 tanh, norm layer, norm group 3 sigmoid, dense 3": 4,
    "dense 4 relu, dense 4, residual 2 relu, norm batch, dense 4 tanh, residual 2, dense 3": 4,
    "input 2x6x5, conv 4 3x2 stride 2x1 relu, dense 3": 60,
    "input 1x7x9, conv 3 3x3 valid tanh, conv 2 1x1 stride 3 sigmoid, pool 2, dense 3": 63,
    "input 3x9x8, conv 5 2x3 stride 4 relu, norm batch relu, conv 5 3x1, norm layer, residual 3 relu, dropout 0.2, dense 3": 216,
    "input 4x6x6, norm group 2 tanh, pool 3 stride 2 same, pool avg 2x3 stride 1 same, pool avg 2, dense 3": 144,
    "input 2x5x6, pool max 3x2 stride 2x1 same, conv 6 3x3, pool avg all, dense 3": 60,
    "input 2x4x4, conv 3 2, pool max all": 32,
    "input 2x4x4, conv 3 4 valid": 32,
    "input 2x5x4, conv 4 5x4 valid relu, norm batch, conv 4 1 tanh, residual 2, pool avg all, norm layer, dense 3": 40,
    "input 1x4x5, dropout 0.1, dense 3": 20,
    "input 3x2x2, dense 5, dense 3": 12,
    "embedding 9 x 4, dense 3": 1,
    "embedding 9 x 4, norm batch, pool avg all, dense 3": 6,
    "input 1x4x5, embedding 9 x 3, conv 4 3x3 stride 2 relu, dense 3": 20,
    "input 1x4x5, embedding 9 x 3, conv 1 3x3, residual 2, dense 3": 20,
}


class OnnxTest(FleetTest):
    def assert_close(self, one, other, message=None):
        one, other = np.asarray(one, "f8"), np.asarray(other, "f8")
        self.assertEqual(one.shape, other.shape, message)
        self.assertTrue(np.isfinite(one).all() and np.isfinite(other).all(), message)
        self.assertLess((np.abs(one - other) / (1 + np.abs(other))).max(), CLOSE, message)

    def export(self, model):
        """The graph of a model file, which ONNX's checker has read."""
        path = model + ".onnx"
        out, err = sgpctl("export", path, "--model", model)
        self.assertEqual(err, "")
        self.assertRegex(out, r"^.*\.onnx: \d+ parameters in \d+ tensors\n$")
        graph = onnx.load(path)
        onnx.checker.check_model(graph, full_check=True)
        self.assertEqual((graph.producer_name, graph.ir_version), ("sgpd", 7))
        tags, _ = read_model(model)
        found = {entry.key: entry.value for entry in graph.metadata_props}
        self.assertEqual({key: found.pop(key) for key in tags}, tags)
        self.assertLessEqual(set(found), {"numbers", "categories"})
        return graph

    def random_model(self, layers, inputs, seed, **tags):
        shapes, path = shapes_of(layers, inputs), os.path.join(self.directory, "model.safetensors")
        write_model(path, {"layers": layers, "loss": "cross-entropy", "inputs": str(inputs), **tags}, random_values(shapes, seed), shapes)
        return path

    def setUp(self):
        folder = fleet.tempfile.TemporaryDirectory(prefix="sgpd-onnx-")
        self.addCleanup(folder.cleanup)
        self.directory = folder.name

    def predict(self, model, data):
        """What `sgpctl predict` prints, as lists by name."""
        out, err = sgpctl("predict", "--model", model, "-", data=data)
        self.assertEqual(err, "")
        rows = list(csv.DictReader(io.StringIO(out)))
        return {name: [row[name] for row in rows] for name in rows[0]}


@unittest.skipIf(MISSING, MISSING)
class Graphs(OnnxTest):
    """Models of random numbers."""

    def test_each_kind_of_layer(self):
        for seed, (layers, inputs) in enumerate(LAYERS.items()):
            model = self.random_model(layers, inputs, seed)
            draw = np.random.default_rng(seed)
            x = draw.integers(0, 9, (ROWS, inputs)) if "embedding" in layers else draw.normal(0, 1, (ROWS, inputs))
            x = x.astype("f4")
            said = self.predict(model, table([f"c{i}" for i in range(inputs)], [[repr(float(v)) for v in row] for row in x]))
            answers = run(self.export(model), {"features": x})
            truth = softmax(outputs(*read_model(model), x))
            self.assertEqual(set(answers), {"class", "probabilities"})
            self.assert_close(answers["probabilities"], truth, layers)
            self.assert_close(np.array([said[f"p({i})"] for i in range(truth.shape[1])]).T, answers["probabilities"], layers)
            self.assertEqual(answers["class"].tolist(), [int(name) for name in said["class"]], layers)
            self.assertEqual(answers["class"].dtype, np.int64)

    def test_each_loss(self):
        x = np.random.default_rng(1).normal(0, 1, (ROWS, 4)).astype("f4")
        data = table("abcd", [[repr(float(v)) for v in row] for row in x])
        targets = [{"name": "price", "mean": 251300.25, "deviation": 88120.5}, {"name": "x, y", "mean": -1e-3, "deviation": 1e-5}]
        for loss, tags, expected in (
                ("cross-entropy", {"classes": 'a "b c" d\u00e9', "label": "kind"}, {"class", "probabilities"}),
                ("binary-cross-entropy", {"label": "one, two, three"}, {"values", "probabilities"}),
                ("mse", {"classes": "a b c"}, {"class", "outputs"}),
                ("mse", {}, {"values"}),
                ("huber", {"label": "one, two, three"}, {"values"}),
                ("mse", {"label": 'price, "x, y"', "targets": json.dumps(targets)}, {"values"})):
            count = 2 if "targets" in tags else 3
            model = self.random_model(f"dense 6 tanh, dense {count}", 4, 7, **tags, loss=loss)
            answers, said = run(self.export(model), {"features": x}), self.predict(model, data)
            z = outputs(*read_model(model), x)
            self.assertEqual(set(answers), expected, loss)
            if "class" in expected:
                names = ["a", "b c", "d\u00e9"] if loss == "cross-entropy" else ["a", "b", "c"]
                self.assertEqual(answers["class"].tolist(), [names[i] for i in z.argmax(axis=1)])
                self.assertEqual(answers["class"].tolist(), said["class"])
                self.assert_close(answers[(expected - {"class"}).pop()], softmax(z) if loss == "cross-entropy" else z)
            elif "probabilities" in expected:
                self.assert_close(answers["probabilities"], 1 / (1 + np.exp(-z)))
                self.assertEqual(answers["values"].tolist(), (answers["probabilities"] > 0.5).astype(int).tolist())
                self.assertEqual(answers["values"].dtype, np.int64)
                self.assertEqual([list(map(int, said[name])) for name in ("one", "two", "three")], answers["values"].T.tolist())
            elif "targets" in tags:
                numbers = z * [t["deviation"] for t in targets] + [t["mean"] for t in targets]
                self.assert_close(answers["values"], numbers)
                self.assert_close(np.array([said["price"], said["x, y"]]).T.astype("f8"), answers["values"])
                self.assert_close((answers["values"][:, 1].astype("f8") - targets[1]["mean"]) / 1e-3, (numbers[:, 1] - targets[1]["mean"]) / 1e-3)
            else:
                self.assert_close(answers["values"], z)
                self.assert_close(np.array([said[name] for name in said]).T, answers["values"])

    def columns_model(self, missing, columns):
        inputs = sum(len(c.get("values", [1])) for c in columns)
        return self.random_model("dense 5 tanh, dense 3", inputs, 3, missing=missing,
                                 columns=json.dumps({"sgp_scaling": 1, "columns": columns}))

    def test_columns_in_any_order_and_missing_values(self):
        """A mean of 1e9 beside a deviation of 0.01 needs float64 up to the scaling."""
        far, near = {"name": "far", "mean": 1e9, "deviation": 0.01}, {"name": "near, \u00e9", "mean": 0.25, "deviation": 2.0}
        sex, zone = {"name": "sex", "values": ["f", "m"]}, {"name": "z\u00f6ne", "values": ["a b", "NA", "\u00e9", "3"]}
        draw = random.Random(4)
        for missing in ("mean", "error"):
            for columns in ([far, sex, near, zone], [far, near, sex], [zone, sex], [near, far], [sex, near]):
                model = self.columns_model(missing, columns)
                graph = self.export(model)
                found = {entry.key: json.loads(entry.value) for entry in graph.metadata_props if entry.key in ("numbers", "categories")}
                numbers, words = [c for c in columns if "mean" in c], [c for c in columns if "values" in c]
                self.assertEqual(found, {key: [c["name"] for c in part] for key, part in (("numbers", numbers), ("categories", words)) if part})
                rows = [{c["name"]: draw.choice(c["values"]) if "values" in c else draw.gauss(c["mean"], c["deviation"])
                         for c in columns} for _ in range(ROWS)]
                if missing == "mean":
                    for row in rows[::3]:
                        row[draw.choice(columns)["name"]] = ""
                x = np.array([[v for c in columns for v in (
                    [float(row[c["name"]] == value) for value in c["values"]] if "values" in c else
                    [(row[c["name"]] - c["mean"]) / c["deviation"] if row[c["name"]] != "" else 0.0])] for row in rows])
                truth = softmax(outputs(*read_model(model), x.astype("f4")))
                given = {}
                if numbers:
                    given["numbers"] = np.array([[np.nan if row[c["name"]] == "" else row[c["name"]] for c in numbers] for row in rows])
                if words:
                    given["categories"] = np.array([[row[c["name"]] for c in words] for row in rows], np.object_)
                answers = run(graph, given)
                self.assert_close(answers["probabilities"], truth)
                said = self.predict(model, table([c["name"] for c in columns], [[row[c["name"]] for c in columns] for row in rows]))
                self.assert_close(np.array([said[f"p({i})"] for i in range(3)]).T, answers["probabilities"])
                if missing == "error" and numbers:
                    given["numbers"][5, 0] = np.nan
                    refused = run(graph, given)
                    self.assertTrue(np.isnan(refused["probabilities"][5]).all())
                    self.assert_close(np.delete(refused["probabilities"], 5, 0), np.delete(truth, 5, 0))
                    self.assertEqual(refused["class"].tolist(), np.where(np.arange(ROWS) == 5, -1, answers["class"]).tolist())
                if missing == "error" and words:
                    given["categories"][7, 0] = "pink"
                    self.assertRaises(ValueError, run, graph, given)

    def test_a_row_that_is_refused(self):
        """Its answers are no answers, whatever the kind of the model; those of the other rows are what they are."""
        columns = json.dumps({"sgp_scaling": 1, "columns": [{"name": name, "mean": 1, "deviation": 2} for name in "ab"]})
        x = np.random.default_rng(3).normal(0, 1, (3, 2))
        gap = np.where(np.arange(6).reshape(3, 2) == 3, np.nan, x)  # row 1 lacks its second number
        for loss, tags in (("cross-entropy", {"classes": "u v w"}), ("cross-entropy", {}), ("mse", {"classes": "u v w"}),
                           ("binary-cross-entropy", {"label": "u, v, w"}), ("huber", {"label": "u, v, w"}),
                           ("mse", {"label": "u, v, w", "targets": json.dumps([{"name": n, "mean": 5, "deviation": 3} for n in "uvw"])})):
            graph = self.export(self.random_model("dense 4 relu, dense 3", 2, 5, columns=columns, loss=loss, **tags))
            whole, answers = run(graph, {"numbers": x}), run(graph, {"numbers": gap})
            for name, value in answers.items():
                self.assertEqual(np.delete(value, 1, 0).tolist(), np.delete(whole[name], 1, 0).tolist())
                if value.dtype == np.float32:
                    self.assertTrue(np.isnan(value[1]).all())
                else:
                    self.assertEqual(set(np.atleast_1d(value[1])), {"" if value.dtype == np.object_ else -1}, (loss, name))

    def test_columns_as_they_are(self):
        model = self.columns_model("error", [{"name": name, "mean": 0, "deviation": 1} for name in "ab"])
        graph = self.export(model)
        self.assertNotIn("Sub", [node.op_type for node in graph.graph.node])
        x = np.random.default_rng(2).normal(0, 1, (ROWS, 2))
        self.assert_close(run(graph, {"numbers": x})["probabilities"], softmax(outputs(*read_model(model), x.astype("f4"))))

    def test_what_is_refused(self):
        model = self.random_model("dense 3", 4, 1)
        path = os.path.join(self.directory, "m.onnx")
        for arguments, message in (
                (("m.txt",), "'m.txt' ends in none of .safetensors, .npz and .onnx"),
                ((path, "--format", "pickle"), "--format is safetensors, npz or onnx, not 'pickle'"),
                (("copy.safetensors",), "'copy.safetensors' would be a copy of the model file; name an .npz or .onnx"),
                ((path, "-n", "n0"), "--model asks no daemon; leave it out, or -n and -s")):
            _, err = sgpctl("export", "--model", model, *arguments, status=2)
            self.assertEqual(err, f"sgpctl: {message}; see sgpctl export --help\n")
        tags, _ = read_model(model)
        bare = {key: value for key, value in tags.items() if key != "layers"}
        write_model(model, bare, np.zeros(15), {"layers.0.weight": [3, 4], "layers.0.bias": [3]})
        self.assertEqual(sgpctl("export", "--model", model, path, status=6)[1],
                         f"sgpctl: {model}: it has no tag 'layers': the model is a program's, which alone can use it\n")
        self.assertTrue(sgpctl("export", "--model", path, path, status=6)[1].startswith(f"sgpctl: {path}: "))
        self.assertEqual(os.listdir(self.directory), ["model.safetensors"])
        model = self.random_model("dense 3", 4, 1)
        self.assertEqual(sgpctl("export", "--model", model, "/does/not/exist/m.onnx", status=1)[1].count("\n"), 1)

    def test_any_name_and_json(self):
        model = self.random_model("dense 3", 4, 1)
        path = os.path.join(self.directory, "for-others")
        out, _ = sgpctl("--json", "export", "--model", model, "--format=onnx", path)
        self.assertEqual(json.loads(out), {"file": path, "parameters": 15, "tensors": 2})
        onnx.checker.check_model(onnx.load(path), full_check=True)
        sgpctl("export", "--model", model, "--format", "npz", path)
        self.assertEqual(np.load(path)["layers.0.weight"].shape, (3, 4))


# ---- models that daemons have trained ----

WORDS = ["low", "high, dry", "d\u00e9j\u00e0"]


def draw_rows(count, seed):
    """Numbers far from 1, words, one value in ten missing, and labels of each kind."""
    draw = random.Random(seed)
    for _ in range(count):
        size, zone, year = draw.gauss(1e5, 30), draw.choice(WORDS), draw.gauss(-3, 0.01)
        side = (size - 1e5) / 30 + (zone == "low") - (year + 3) / 0.01
        row = {"year": "%.6f" % year, "zone": zone, "size": "%.4f" % size}
        for name in row:
            row[name] = "" if draw.random() < 0.1 else row[name]
        yield row | {"kind": "more" if side > 0.5 else "less" if side < -0.5 else "so, so", "warm": int(side > 0), "wet": int(size > 1e5),
                     "price": "%.2f" % (250e3 + 9e4 * side), "tax": "%.6f" % (3e-3 - 1e-4 * side)}


def write_idx(path, array):
    with open(path, "wb") as file:
        file.write(bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape) + array.astype("u1").tobytes())


@unittest.skipIf(MISSING, MISSING)
class Daemons(OnnxTest):
    """Models that were trained. The daemon predicts; then it is gone with all its files, and what it said is compared with its model as a graph."""
    CSV = {"data.train": "train.csv", "data.classes": None, "data.scale": "scale.json", "data.missing": "mean", "train.epochs": "6",
           "model.layers": "dense 6 tanh, dense 3"}

    def train(self, rows, prepare, options):
        """What the daemon says of rows, its model file, and the graph that `sgpctl export` made while it ran."""
        f = self.fleet(2, options=options)
        prepare(f.directory)
        f.start()
        f.wait_state("finished")
        f.wait("the model file", lambda: f.nodes[0].status()["model_file"] == "written")
        code, body = f.nodes[0].get("/v1/predict", "POST", rows)
        self.assertEqual(code, 200, body)
        model, path = (os.path.join(self.directory, name) for name in ("own.safetensors", "own.onnx"))
        sgpctl("-s", f.nodes[0].socket, "export", path)
        shutil.copy(os.path.join(f.nodes[0].directory, "model.safetensors"), model)
        f.close()
        self.assertFalse(os.path.exists(f.directory))
        graph = onnx.load(path)
        onnx.checker.check_model(graph, full_check=True)
        self.assertEqual(os.listdir(self.directory).count("own.onnx.part"), 0)
        return json.loads(body), model, graph

    def of_table(self, label, **options):
        """A model of columns with missing values: the answers of the daemon, of `predict`, of numpy and of the graph."""
        columns = ["year", "zone", "size"]
        labels = [name.strip() for name in label.split(",")]
        rows = list(draw_rows(200, 2))

        def prepare(folder):
            for name, names, lines in (("train.csv", columns + labels, draw_rows(300, 1)), ("rows.csv", columns, rows)):
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(table(names, [[row[c] for c in names] for row in lines]))
            sgpctl("scaling", os.path.join(folder, "train.csv"), os.path.join(folder, "scale.json"), "--label", label)

        data = table(columns, [[row[c] for c in columns] for row in rows])
        daemon, model, running = self.train(data, prepare, {**self.CSV, "data.label": label, **options})
        graph, (tags, tensors) = self.export(model), read_model(model)
        scales = {c["name"]: c for c in json.loads(tags["columns"])["columns"]}
        x = np.array([[v for name in scales for v in (
            [float(row[name] == value) for value in scales[name]["values"]] if "values" in scales[name] else
            [(float(row[name]) - scales[name]["mean"]) / scales[name]["deviation"] if row[name] else 0.0])] for row in rows])
        given = {"numbers": np.array([[float(row[c] or "nan") for c in ("year", "size")] for row in rows]),
                 "categories": np.array([[row["zone"]] for row in rows], np.object_)}
        answers = run(graph, given)
        for name, value in run(running, given).items():
            self.assertEqual(value.tolist(), answers[name].tolist())
        return daemon, self.predict(model, data), outputs(tags, tensors, x), answers, tags

    def test_classes_of_a_table(self):
        daemon, said, z, answers, _ = self.of_table("kind", **{"data.classes": 'more less "so, so"'})
        names = ["more", "less", "so, so"]
        self.assert_close(answers["probabilities"], softmax(z))
        self.assert_close(answers["probabilities"], daemon["outputs"])
        self.assert_close(answers["probabilities"], np.array([said[f"p({name})"] for name in names]).T)
        self.assertEqual(answers["class"].tolist(), [names[i] for i in z.argmax(axis=1)])
        self.assertEqual(answers["class"].tolist(), daemon["labels"])
        self.assertEqual(answers["class"].tolist(), said["class"])
        self.assertEqual(set(answers["class"]), set(names))

    def test_the_lines_of_the_page(self):
        """docs/MODELS.md, with this interpreter in the place of ONNX Runtime, unless that is installed."""
        _, said, _, _, _ = self.of_table("kind", **{"data.classes": 'more less "so, so"'})
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/MODELS.md"), encoding="utf-8") as file:
            code, = (block.removeprefix("python\n") for block in file.read().split("```")[1::2] if "import onnxruntime" in block)
        rows = list(draw_rows(200, 2))
        with open(os.path.join(self.directory, "rows.csv"), "wb") as file:
            file.write(table(list(rows[0]), [list(row.values()) for row in rows]))
        sgpctl("export", "--model", os.path.join(self.directory, "own.safetensors"), os.path.join(self.directory, "model.onnx"))
        done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, timeout=fleet.PATIENCE, check=False,
                              cwd=self.directory, env={**os.environ, "PYTHONPATH": self.runtime(), "PYTHONIOENCODING": "utf-8"})
        self.assertEqual(done.returncode, 0, done.stderr)
        if onnxruntime is None:  # which may warn of devices
            self.assertEqual(done.stderr, "")
        self.assertEqual(done.stdout.splitlines(), said["class"])

    def runtime(self):
        """Where a module onnxruntime is, and the interpreter: a module that is written here, unless ONNX Runtime is installed."""
        if onnxruntime is not None:
            return ""
        with open(os.path.join(self.directory, "onnxruntime.py"), "w", encoding="utf-8") as file:
            file.write("""
import types
import onnx, onnx_numpy

class InferenceSession:
    def __init__(self, path):
        self.model = onnx.load(path)

    def get_modelmeta(self):
        return types.SimpleNamespace(custom_metadata_map={entry.key: entry.value for entry in self.model.metadata_props})

    def run(self, names, inputs):
        answers = onnx_numpy.run(self.model, inputs)
        return [answers[name] for name in names]
""")
        return os.pathsep.join([self.directory, os.path.dirname(os.path.abspath(__file__))])

    def test_bits_of_a_table(self):
        daemon, said, z, answers, _ = self.of_table("warm, wet", **{
            "model.loss": "binary-cross-entropy", "model.layers": "dense 4 relu, norm batch, dropout 0.1, dense 2"})
        self.assert_close(answers["probabilities"], 1 / (1 + np.exp(-z)))
        self.assert_close(answers["probabilities"], daemon["outputs"])
        self.assert_close(answers["probabilities"], np.array([said["p(warm)"], said["p(wet)"]]).T)
        self.assertEqual(answers["values"].T.tolist(), [list(map(int, said[name])) for name in ("warm", "wet")])

    def test_scaled_numbers_of_a_table(self):
        for loss in ("mse", "huber"):
            daemon, said, z, answers, tags = self.of_table("price, tax", **{
                "model.loss": loss, "model.layers": "dense 6 tanh, dense 6, residual 1 sigmoid, dense 2"})
            targets = json.loads(tags["targets"])
            deviations = np.array([t["deviation"] for t in targets])
            truth = z * deviations + [t["mean"] for t in targets]
            self.assertGreater(deviations[0], 1e4)
            self.assertLess(deviations[1], 1e-3)
            for other in (truth, daemon["outputs"], np.array([said["price"], said["tax"]]).T):
                error = np.abs(answers["values"].astype("f8") - np.array(other, "f8")) / (np.abs(truth) + deviations)
                self.assertLess(error.max(), CLOSE)

    def test_images(self):
        draw = np.random.default_rng(5)
        train, rows = draw.integers(0, 256, (400, 8, 7)), draw.integers(0, 256, (60, 8, 7))

        def prepare(folder):
            write_idx(os.path.join(folder, "train.idx"), train)
            write_idx(os.path.join(folder, "labels.idx"), (train[:, :4].mean(axis=(1, 2)) > train[:, 4:].mean(axis=(1, 2))) + 1)

        for layers in ("conv 6 3x3 relu, conv 6 3x2, norm batch, residual 2 relu, pool avg 2x3 stride 2 same, dropout 0.1, norm group 2, dense 3",
                       "embedding 256 x 3, conv 4 3x3 stride 2 tanh, norm layer, pool max all, dense 3"):
            x = rows.reshape(60, 56).astype("f4") / np.float32(1 if "embedding" in layers else 255)
            daemon, model, running = self.train(json.dumps({"rows": x.tolist()}), prepare, {
                "data.train": "train.idx", "data.labels": "labels.idx", "data.label": None, "data.classes": None, "model.layers": layers,
                "train.epochs": "3", "optimizer.learning_rate": "0.02"})
            answers = run(self.export(model), {"features": x})
            said = self.predict(model, table([f"c{i}" for i in range(56)], x.tolist()))
            self.assert_close(answers["probabilities"], softmax(outputs(*read_model(model), x)))
            self.assert_close(answers["probabilities"], daemon["outputs"])
            self.assert_close(answers["probabilities"], np.array([said[f"p({i})"] for i in range(3)]).T)
            self.assertEqual(answers["class"].tolist(), [int(name) for name in said["class"]])
            self.assertEqual(answers["class"].tolist(), run(running, {"features": x})["class"].tolist())

if __name__ == "__main__":
    fleet.take_sgpd()
    SGPCTL = sys.argv.pop(1)
    fleet.tap.run_cases(sys.argv[1:])
