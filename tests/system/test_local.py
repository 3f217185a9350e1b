# SPDX-License-Identifier: Apache-2.0
"""Local layers: test_local.py SGPD SGPCTL. What a node keeps local never leaves it, is worth having where labels differ, and
survives a restart; and every wrong value of the key has one line."""
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys

import fleet
from between import Tap, tap_all
from fleet import PATIENCE, FleetTest, free_ports
from owned import Owned

SGPCTL = os.path.abspath(sys.argv.pop(2))
LAYERS = "dense 16 relu, dense 8 tanh, dense 2"
UPPER = ("layers.1.weight", "layers.2.weight")


def open_file(data):
    """Tags and tensors of a safetensors file, each tensor as its bytes."""
    size, = struct.unpack_from("<Q", data)
    head = json.loads(data[8:8 + size])
    tags = head.pop("__metadata__")
    body = data[8 + size:]
    return tags, {name: body[slice(*entry["data_offsets"])] for name, entry in head.items()}


def model_of(node):
    return open_file(node.get("/v1/model")[1])


def traces_of(values):
    """All that a pair of neighbouring values may look like on a line, halved as often as a share may be, and as a text."""
    numbers = struct.unpack("<%df" % (len(values) // 4), values)
    for pair in zip(numbers[::2], numbers[1::2]):
        if 0.0 in pair:
            continue
        for halvings in range(8):
            yield struct.pack("<2f", *(value / 2**halvings for value in pair))
        yield struct.pack(">2f", *pair).hex().encode()


def found_in(heard, values):
    """How many pairs of the values are heard somewhere, and how many there are."""
    everything = b"|".join(bytes(part) for part in heard)
    traces = list(traces_of(values))
    return len([trace for trace in traces if trace in everything]), len(traces) // 9


class Wire(FleetTest):
    """The rate is so small that no step changes a weight. So what a node holds at any moment is known, and would be recognised
    on every line."""

    OPTIONS = {"model.layers": LAYERS, "optimizer.learning_rate": "1e-12", "train.epochs": None}

    def tapped(self, f):
        taps = tap_all(f)
        for tap in taps.values():
            self.addCleanup(tap.close)
        return taps

    def heard(self, taps):
        return [part for tap in taps.values() for part in tap.heard]

    def expect_local(self, f, first, indices):
        """No step changed the upper layers, nor did another node."""
        for i in indices:
            _, tensors = model_of(f.nodes[i])
            for name in UPPER:
                self.assertEqual(tensors[name], first[name], "%s of n%d" % (name, i))

    def run_best(self, local):
        """A run to its end at a usual rate, so that models differ and the best one is copied: its tensors, and what was heard."""
        ring = [[(i, (i + 1) % 4) for i in range(4)]]  # whose models stay apart
        f = self.fleet(4, phases=ring, options={**self.OPTIONS, "model.local": local, "train.rounds": "40", "train.keep_best": "log_loss",
                                   "train.evaluate_every": "10", "optimizer.learning_rate": "0.1"})
        taps = self.tapped(f)
        f.start()
        f.wait_state("finished")
        for i in (1, 2, 3):  # the first node's
            f.wait_log(i, "event=copied")
        for i in range(f.n):
            f.wait("the best model of n%d" % i, lambda i=i: "fleet_measure" in model_of(f.nodes[i])[0])
        _, tensors = model_of(f.nodes[0])
        for node in f.nodes:
            node.end()
        return tensors, self.heard(taps)

    def run_changes(self, local):
        """A node comes back without its state, and takes an estimate; another leaves, and gives all that it has."""
        f = self.fleet(4, options={**self.OPTIONS, "model.local": local, "train.rounds": "1000000"})
        taps = self.tapped(f)
        f.start()
        f.wait_round(3, 10)
        _, tensors = model_of(f.nodes[0])
        f.nodes[3].end(signal.SIGKILL)
        shutil.rmtree(f.nodes[3].directory)
        f.start([3])
        at = f.wait("n0", f.nodes[0].status)["round"]
        f.wait_round(3, at + 5)
        code, body = f.nodes[2].get("/v1/leave", "POST")
        self.assertEqual(code, 200, body)
        at = f.wait("n0", f.nodes[0].status)["round"]
        f.wait_round(0, at + 5)
        self.expect_local(f, tensors, (0, 1, 3) if local else ())
        for i in (0, 1, 3):
            f.nodes[i].end()
        return tensors, self.heard(taps)

    def test_no_line_carries_local_layers(self):
        for run in (self.run_best, self.run_changes):
            tensors, heard = run("layers.1, head")
            for name in UPPER:
                self.assertEqual(found_in(heard, tensors[name])[0], 0, name)
            self.expect_heard(heard, tensors, "layers.0.weight", run == self.run_best)

    def expect_heard(self, heard, tensors, name, copied):
        """In copies of the best model, as text; else in shares, as bytes."""
        everything = b"|".join(bytes(part) for part in heard)
        traces = list(traces_of(tensors[name]))
        shares = [trace for trace in traces if len(trace) == 8]
        copies = [trace for trace in traces if len(trace) == 16]
        if not copied:
            self.assertGreaterEqual(sum(trace in everything for trace in shares), len(copies), name)
        seen = sum(trace in everything for trace in copies)  # but for pairs on both sides of a frame's end
        self.assertTrue(seen >= len(copies) - 3 if copied else seen == 0, "%s: %d of %d" % (name, seen, len(copies)))

    def test_without_the_key_all_layers_are_heard(self):
        """What the test above cannot find, it would find."""
        for run in (self.run_best, self.run_changes):
            tensors, heard = run("")
            for name in UPPER:
                self.expect_heard(heard, tensors, name, run == self.run_best)

    def test_no_line_of_an_owner_carries_them(self):
        for local in ("head", ""):
            f = Owned(3, **{**self.OPTIONS, "model.local": local, "train.rounds": "40"})
            self.addCleanup(f.close)
            self.fleets = getattr(self, "fleets", []) + [f]
            taps, ports = {}, list(f.ports)
            for i in range(f.n):
                taps.update({(i, j): Tap(ports[j]) for j in range(f.n) if j != i})
                f.ports = [taps[i, j].port if j != i else ports[i] for j in range(f.n)]
                f.write_topology(i)
            f.ports = ports
            f.start()
            f.wait_state("finished")
            _, tensors = model_of(f.nodes[1])
            heard = self.heard(taps)
            seen, count = found_in(heard, tensors["layers.2.weight"])
            self.assertEqual(seen > 0, local == "", "%d of %d" % (seen, count))
            self.assertGreater(found_in(heard, tensors["layers.0.weight"])[0], 0)
            for tap in taps.values():
                tap.close()


# ---- labels that differ by node

CLASSES, FEATURES, NODES = 4, 10, 4


def write_clusters(path, seed, order, rows):
    """Rows around two centres a class, the same centres for all nodes. Class c is called by the c-th of `order`."""
    centres = random.Random(99)
    of_class = [[[centres.gauss(0, 1) for _ in range(FEATURES)] for _ in range(2)] for _ in range(CLASSES)]
    draw = random.Random(seed)
    with open(path, "w") as file:
        file.write(",".join("f%d" % i for i in range(FEATURES)) + ",label\n")
        for i in range(rows):
            centre = draw.choice(of_class[i % CLASSES])
            x = [value + draw.gauss(0, 0.9) for value in centre]
            file.write(",".join("%.4f" % v for v in x) + ",c%d\n" % order[i % CLASSES])


class LabelsTest(FleetTest):
    def accuracy(self, seed, local, alone=False):
        """The mean over the nodes of the accuracy on their own rows."""
        own = {i: {"data.train": "train%d.csv" % i, "data.test": "test%d.csv" % i} for i in range(NODES)}
        f = self.fleet(NODES, phases=[[]] if alone else None, own=own, options={
            "model.layers": "dense 24 relu, dense %d" % CLASSES, "model.local": local, "train.epochs": "40",
            "data.classes": " ".join("c%d" % i for i in range(CLASSES)), "data.holdout": None, "data.shards": "none",
            "optimizer.learning_rate": "0.1"})
        for i in range(NODES):
            order = list(range(CLASSES))
            random.Random(i).shuffle(order)
            write_clusters(os.path.join(f.directory, "train%d.csv" % i), 1000 * seed + i, order, 80)
            write_clusters(os.path.join(f.directory, "test%d.csv" % i), 1000 * seed + 500 + i, order, 1000)
        f.start()
        f.wait_state("finished")
        found = [node.json("/v1/evaluate", "POST")["accuracy"] for node in f.nodes]
        models = [model_of(node) for node in f.nodes]
        self.assertEqual(len({tensors["layers.1.weight"] for _, tensors in models}) == 1, not alone and not local)
        self.assertEqual(len({tensors["layers.0.weight"] for _, tensors in models}) == 1, not alone)
        self.assertEqual({tags.get("local") for tags, _ in models}, {"layers.1" if local else None})
        for node in f.nodes:
            node.end()
        return sum(found) / NODES

    def test_a_local_head_is_worth_its_while_where_labels_are_permuted(self):
        for seed in range(3 if fleet.LONG else 1):
            shared, local = self.accuracy(seed, ""), self.accuracy(seed, "head")
            alone = self.accuracy(seed, "", alone=True)
            said = "seed %d: all shared %.3f, local head %.3f, alone %.3f" % (seed, shared, local, alone)
            print("# " + said, flush=True)
            self.assertGreaterEqual(local, shared + 0.02, said)
            self.assertGreaterEqual(local, alone - 0.01, said)


# ---- restarts


class RestartTest(FleetTest):
    def test_a_restart_keeps_them(self):
        """In order, where the node goes on exactly; and killed after a checkpoint, where its estimate may be older."""
        f = self.fleet(2, options={"model.layers": "dense 8, norm batch relu, dense 2", "model.local": "norm, head",
                                   "train.epochs": "100000"})
        f.start()
        f.wait_round(0, 30)
        self.assertEqual(f.nodes[0].status()["local"], "layers.1, layers.2")
        text = subprocess.run([SGPCTL, "-s", f.nodes[0].socket, "status"], capture_output=True, text=True, timeout=PATIENCE).stdout
        self.assertRegex(text, r"(?m)^local +layers.1, layers.2$")
        for number, killed in ((signal.SIGTERM, False), (signal.SIGKILL, True)):
            at = f.nodes[0].status()["round"]
            f.wait_round(0, at + 30)
            f.nodes[0].get("/v1/pause", "POST")
            f.wait_state("paused", [0])
            _, before = model_of(f.nodes[0])
            if killed:
                self.assertEqual(f.nodes[0].get("/v1/checkpoint", "POST")[0], 200)
                f.wait("a checkpoint", lambda: "event=checkpoint" in f.nodes[0].log().rsplit("event=restored", 1)[-1])
            f.nodes[1].end(signal.SIGKILL)
            f.nodes[0].end(number)
            f.start([0])
            f.wait_log(0, "event=restored")
            _, after = f.wait("the model", lambda: f.nodes[0].get("/v1/model")[0] == 200 and model_of(f.nodes[0]))
            for name in before:
                if not name.startswith("layers.0"):
                    self.assertEqual(after[name], before[name], name)
            f.start([1])
            f.wait_state("training")

    def test_another_value_begins_another_run(self):
        f = self.fleet(1, phases=[[]], options={"model.local": "norm", "model.layers": "dense 8, norm batch relu, dense 2"})
        f.start()
        f.wait_state("finished")
        f.nodes[0].end()
        f.write_configuration(0, {"model.local": "head", "model.layers": "dense 8, norm batch relu, dense 2"}, {})
        code, said = f.check()
        self.assertEqual(code, 0, said)
        self.assertIn("the model has other layers", said)


# ---- the key


class KeyTest(FleetTest):
    def said(self, local, **more):
        f = self.fleet(1, phases=[[]], options={"model.layers": "dense 8, norm batch relu, dropout 0.1, dense 2",
                                                "model.local": local, **more})
        code, said = f.check()
        with open(f.nodes[0].configuration) as file:
            line = 1 + [text.split(" = ")[0] for text in file].index("local")
        return code, said, "%s:%d: [model] local: " % (f.nodes[0].configuration, line)

    def test_a_right_value_is_told(self):
        code, said, _ = self.said("norm, head")
        self.assertEqual(code, 0, said)
        self.assertIn("local      layers.1, layers.3: 50 parameters, which stay on this node\n", said)
        self.assertIn("local layers", said[said.index("memory\n"):])

    def test_every_wrong_value_has_one_line(self):
        for local, line in (
                ("hed", "'hed' names no layers; write head, a kind such as norm, or a layer such as layers.0, as a model file "
                        "names it"),
                ("conv", "no layer is conv; name a kind that [model] layers has, or head"),
                ("dropout", "dropout has no parameters, so there is nothing to keep local; name a layer that learns"),
                ("layers.7", "there is no layers.7; the model has layers.0 to layers.3"),
                ("norm head", "'norm' goes on with 'head'; separate names by commas"),
                ("norm,", "a name is empty; write one name between two commas, as in 'norm, head'"),
                ("head, head", "'head' names no layer that is not named before it; leave it out"),
                ("dense, norm", "all layers that learn are local, so the nodes would have nothing to share; leave one out")):
            code, said, place = self.said(local)
            self.assertNotEqual(code, 0, local)
            self.assertIn(place + line + "\n", said)

    def test_a_program_names_its_own(self):
        code, said, place = self.said("head", **{"model.kind": "attached"})
        self.assertNotEqual(code, 0)
        self.assertIn(place + "the model is a program's, which names them itself: sgp.attach(..., local=[...]); remove it\n", said)

    def test_a_relay_is_warned(self):
        f = Owned(3, **{"model.layers": "dense 8 relu, dense 2", "model.local": "head"})
        self.addCleanup(f.close)
        code, said = f.check(0)
        self.assertEqual(code, 0, said)
        self.assertIn("[model] local: this node has no rows, so its local layers keep their first values; take the model of a node "
                      "that trains", said)

    def test_nodes_of_unlike_values_refuse_each_other(self):
        f = self.fleet(2, options={"model.layers": "dense 8 relu, dense 2"}, own={0: {"model.local": "head"}})
        f.start()
        for i in range(2):
            f.wait_log(i, "the models have other layers ([model] layers and local must be the same)")


class ModelFileTest(FleetTest):
    def test_a_model_file_has_all_layers(self):
        f = self.fleet(2, options={"model.layers": "dense 8 relu, dense 2", "model.local": "layers.0"})
        f.start()
        f.wait_state("finished")
        found = [node.json("/v1/evaluate", "POST")["accuracy"] for node in f.nodes]
        for node in f.nodes:
            node.end()
        for node, accuracy in zip(f.nodes, found):
            path = os.path.join(node.directory, "model.safetensors")
            with open(path, "rb") as file:
                tags, tensors = open_file(file.read())
            self.assertEqual(list(tensors), ["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"])
            self.assertEqual(tags["local"], "layers.0")
            card = subprocess.run([SGPCTL, "card", path], text=True, stdout=subprocess.PIPE, timeout=PATIENCE, check=True)
            self.assertIn("| local layers | layers.0 |", card.stdout)
            rows = subprocess.run([SGPCTL, "--json", "predict", "--model", path, f.rows], text=True, stdout=subprocess.PIPE,
                                  timeout=PATIENCE, check=True)
            self.assertGreater(accuracy, 0.7)
            self.assertTrue(rows.stdout)


# ---- tuning


class TuneTest(FleetTest):
    LAYERS = "dense 24 relu, dense %d" % CLASSES

    def sgpd(self, node, *arguments):
        result = subprocess.run([fleet.SGPD, "-c", node.configuration, *arguments], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, timeout=PATIENCE, check=False)
        return result.returncode, result.stdout

    def trained(self):
        """A node that has trained all layers on labels of its own, and a node that calls them otherwise and has not trained."""
        f = self.fleet(2, phases=[[]], own={i: {"data.train": "rows%d.csv" % i} for i in range(2)}, options={
            "model.layers": self.LAYERS, "data.classes": " ".join("c%d" % i for i in range(CLASSES)), "data.shards": "none",
            "train.epochs": "20"})
        for i in range(2):
            order = list(range(CLASSES))
            write_clusters(os.path.join(f.directory, "rows%d.csv" % i), 7 + i, order if i == 0 else order[::-1], 400)
        f.start([0])
        f.wait_state("finished", [0])
        f.nodes[0].end()
        return f, os.path.join(f.nodes[0].directory, "model.safetensors"), os.path.join(f.directory, "tuned.safetensors")

    def configure(self, f, **options):
        f.write_configuration(1, {"model.layers": self.LAYERS, "data.classes": " ".join("c%d" % i for i in range(CLASSES)),
                                  "data.train": "rows1.csv", "data.shards": "none", "train.epochs": "20", **options}, {})

    def test_the_head_alone_is_trained(self):
        f, path, output = self.trained()
        self.configure(f, **{"model.local": "head"})
        code, said = self.sgpd(f.nodes[1], "--tune", path, "--output", output)
        self.assertEqual(code, 0, said)
        print("".join("# %s\n" % line for line in said.splitlines()[:3] + said.splitlines()[-1:]), end="", flush=True)
        accuracies = [float(line.split()[-1]) for line in said.splitlines()]
        self.assertEqual(len(accuracies), 21, said)
        self.assertLess(accuracies[0], 0.3)
        self.assertGreater(accuracies[-1], 0.8)
        files = []
        for name in (path, output):
            with open(name, "rb") as file:
                files.append(open_file(file.read()))
        for name in files[0][1]:
            self.assertEqual(files[0][1][name] == files[1][1][name], name.startswith("layers.0"), name)
        self.assertEqual(files[1][0]["local"], "layers.1")
        self.assertEqual((files[1][0]["node"], files[1][0]["round"]), ("n1", files[0][0]["round"]))
        self.assertFalse(os.path.exists(f.nodes[1].directory), "nothing is left in the state directory")

    def test_what_cannot_be_tuned_has_one_line(self):
        f, path, output = self.trained()
        self.configure(f)
        for options, line in (
                ({}, "[model] local: no layer is local, so there is nothing to tune; name some, as in local = head"),
                ({"model.local": "head", "model.layers": "dense 23 relu, dense 4"},
                 "%s: its layers are not those of the configuration: dense 24 relu, dense 4 in the file and dense 23 relu, dense 4 here"
                 % path),
                ({"model.local": "head", "data.classes": "c0 c1 c3 c2"},
                 "%s: its classes are not those of the configuration: c0 c1 c2 c3 in the file and c0 c1 c3 c2 here" % path)):
            self.configure(f, **options)
            code, said = self.sgpd(f.nodes[1], "--tune", path, "--output", output)
            self.assertEqual(code, 78, said)
            self.assertIn(line + "\n", said)
            self.assertFalse(os.path.exists(output))
        for arguments in (["--tune", path], ["--output", output], ["--check", "--tune", path, "--output", output]):
            code, said = self.sgpd(f.nodes[1], *arguments)
            self.assertEqual(code, 2)
            self.assertIn("sgpd: --tune and --output go together; of --tune, --check and --privacy-spent give one\n", said)


if __name__ == "__main__":
    fleet.main()
