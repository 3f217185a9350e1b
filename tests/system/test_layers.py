# SPDX-License-Identifier: Apache-2.0
"""Networks of more than dense layers, trained by real daemons without Python."""
import gzip
import json
import os
import struct

import fashion
import fleet
from fleet import FleetTest

LAYERS = "conv 8 3x3 relu, pool 2, conv 16 3x3, norm batch relu, pool 2, dropout 0.1, dense 10"
OTHERS = "conv 8 5x5 stride 4 relu, conv 8 3x3, norm batch relu, conv 8 3x3, norm layer, residual 3 relu, dropout 0.2, dense 10"
PATIENCE = 300  # seconds; a test takes some
ROWS, TEST_ROWS = 4000, 1000
ACCURACY = 0.84  # with the same rows and steps `dense 10` reaches 0.82, and `dense 32 relu, dense 10` 0.833


def cut(source, target, rows, head, width):
    """The first rows of a file of IDX."""
    with gzip.open(source) as file:
        data = file.read(head + rows * width)
    with open(target, "wb") as file:
        file.write(data[:4] + struct.pack(">I", rows) + data[8:])


def tensors_of(data):
    """name -> (shape, first value) of a safetensors file, and its tags."""
    size, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + size])
    return header, header.pop("__metadata__")


class Layers(FleetTest):
    def images(self, n, **more):
        """A fleet on a small part of Fashion-MNIST."""
        options = fashion.options()
        f = self.fleet(n, **({"phases": [[]]} if n == 1 else {}))
        for key, rows, head, width in (("train", ROWS, 16, 784), ("labels", ROWS, 8, 1), ("test", TEST_ROWS, 16, 784),
                                       ("test_labels", TEST_ROWS, 8, 1)):
            path = os.path.join(f.directory, key + ".idx")
            cut(options["data." + key], path, rows, head, width)
            options["data." + key] = path
        options.update({"model.layers": LAYERS, "train.epochs": "10", "optimizer.kind": "nesterov", "optimizer.momentum": "0.9",
                        "optimizer.learning_rate": "0.05", **more})
        for i in range(n):
            f.write_configuration(i, options, {})
        return f, options

    def test_four_daemons_train_a_convolutional_network(self):
        f, _ = self.images(4)
        f.start()
        f.wait_state("finished", timeout=PATIENCE)
        statuses = [f.wait("a status", node.status) for node in f.nodes]
        models = [node.get("/v1/model")[1] for node in f.nodes]
        for status in statuses:
            self.assertGreater(status["test_accuracy"], ACCURACY)
        accuracies = [status["test_accuracy"] for status in statuses]
        self.assertLess(max(accuracies) - min(accuracies), 0.03)
        values = [fleet.read_model(model) for model in models]
        length = sum(value * value for value in values[0]) ** 0.5
        for other in values[1:]:
            apart = sum((a - b) ** 2 for a, b in zip(values[0], other)) ** 0.5
            self.assertLess(apart / length, 0.05)
        self.look_at(models[0])

    def look_at(self, model):
        """The tensors have the names, shapes and tags that another program expects."""
        tensors, tags = tensors_of(model)
        self.assertEqual(tags["layers"], "input 1x28x28, " + LAYERS)
        self.assertEqual({name: tensor["shape"] for name, tensor in tensors.items()}, {
            "layers.0.weight": [8, 1, 3, 3], "layers.0.bias": [8],
            "layers.2.weight": [16, 8, 3, 3], "layers.2.bias": [16],
            "layers.3.weight": [16], "layers.3.bias": [16],
            "layers.3.running_mean": [16], "layers.3.running_var": [16],
            "layers.6.weight": [10, 784], "layers.6.bias": [10]})

    def test_a_run_that_was_stopped_ends_as_one_that_was_not(self):
        """Dropout and running statistics go on from a checkpoint as if nothing had been."""
        ends = []
        for stopped in (False, True):
            f, _ = self.images(1, **{"train.epochs": "2", "model.layers": OTHERS})
            f.start()
            if stopped:
                f.wait_round(0, 20)
                self.assertEqual(f.nodes[0].end(), 0)
                f.start()
            f.wait_state("finished", timeout=PATIENCE)
            ends.append(fleet.read_model(f.nodes[0].get("/v1/model")[1]))
            f.close()
        self.assertEqual(ends[0], ends[1])

    def test_another_program_computes_the_same(self):
        """The lines of PyTorch in docs/MODELS.md, with the tensors of the model file."""
        try:
            import numpy
        except ImportError:
            self.skipTest("not installed: python3-torch")
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/MODELS.md")) as file:
            code, = (block for block in file.read().split("```")[1::2] if "import torch" in block)
        page = {}
        try:
            exec(code.removeprefix("python\n"), page)
        except ImportError:
            self.skipTest("not installed: python3-torch")
        for layers in (OTHERS,
                       "conv 6 4x3 stride 3x2 tanh, pool avg 3 stride 2 same, norm group 3 relu, pool 2 same, norm batch, "
                       "pool max all, dense 10",
                       "conv 3 3x3 stride 2 valid sigmoid, conv 4 1x1, pool avg 4x3 stride 3, pool 2x1 stride 1 same, dense 10",
                       "embedding 256 x 3, conv 4 3x3 stride 4 relu, dense 10"):
            f, _ = self.images(1, **{"model.layers": layers, "train.epochs": "1"})
            f.start()
            f.wait_state("finished", timeout=PATIENCE)
            with open(os.path.join(f.directory, "test.idx"), "rb") as file:
                rows = numpy.frombuffer(file.read(), "u1", offset=16)[:20 * 784].reshape(20, 784).astype("f4")
            rows = rows if layers.startswith("embedding") else rows / numpy.float32(255)
            said = json.loads(f.nodes[0].get("/v1/predict", "POST", json.dumps({"rows": rows.tolist()}))[1])["outputs"]
            data = f.nodes[0].get("/v1/model")[1]
            header, tags = tensors_of(data)
            body = data[8 + struct.unpack_from("<Q", data)[0]:]
            tensors = {name: numpy.frombuffer(body[slice(*t["data_offsets"])], "<f4").reshape(t["shape"])
                       for name, t in header.items()}
            found = page["outputs"](rows, tags, tensors).softmax(1).numpy()
            self.assertLess(numpy.abs(found - numpy.array(said)).max(), 1e-4, layers)
            f.close()

    def test_a_relay_says_the_shape_of_the_rows(self):
        """It has no rows; its text names their shape, and is the same model as that of the others."""
        f, options = self.images(2, **{"train.epochs": "1", "model.layers": OTHERS})
        f.says_of = lambda index: " train=false" if index == 1 else ""
        relay = {key: None for key in options if key.startswith("data.")}
        relay.update({"model.layers": "input 1x28x28, " + OTHERS, "train.epochs": None,
                      "train.batch": None})
        for i in range(2):
            f.write_topology(i)
        f.write_configuration(1, options, relay)
        f.start()
        f.wait_state("finished", [0], timeout=PATIENCE)

    def test_the_check_shows_layers_and_refuses_what_does_not_suit(self):
        f, options = self.images(1)
        code, said = f.check()
        self.assertEqual(code, 0, said)
        self.assertIn("input 1x28x28, " + LAYERS, said)
        for layers, complaint in (
                ("conv 8 30x3, dense 10", "layer 1 has a window of 30x3, larger than its input of 28x28 pixels"),
                ("conv 10 3x3", "the last layer puts out images of 28x28; end with dense N, or with pool avg all"),
                ("embedding 200 x 4, pool avg all, dense 10", "an embedding of 200 takes whole numbers from 0 to 199"),
                ("convolution 8, dense 10", "layer 1 begins with 'convolution'")):
            f.write_configuration(0, {**options, "model.layers": layers}, {})
            code, said = f.check()
            self.assertNotEqual(code, 0, said)
            self.assertIn(complaint, said)
            self.assertEqual(said.count("\n"), 1, said)


if __name__ == "__main__":
    fleet.main()
