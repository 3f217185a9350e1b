# SPDX-License-Identifier: Apache-2.0
"""The best model of a fleet: test_best.py SGPD SGPCTL. A model that learns its few rows by heart is kept as it was at its
best, by all held-out rows, on all nodes to the bit; and all nodes stop at one round, whatever is killed meanwhile."""
import json
import math
import os
import random
import signal
import struct
import subprocess
import sys

import fleet
import tls
from fleet import Fleet, FleetTest
from tls import TlsFleet

SGPCTL = tls.SGPCTL = os.path.abspath(sys.argv.pop(2))
FEATURES = 20
OPTIONS = {"train.epochs": None, "train.rounds": "200000", "train.keep_best": "log_loss", "train.evaluate_every": "100",
           "train.best_patience": "10", "data.holdout": None, "data.shards": "none", "optimizer.learning_rate": "0.002",
           "train.checkpoint_seconds": "1"}


def write_table(path, seed, rows):
    """Labels that follow the first column, and half of them do not: what is learned of the others is by heart."""
    draw = random.Random(seed)
    with open(path, "w") as file:
        file.write(",".join("f%d" % i for i in range(FEATURES)) + ",label\n")
        for _ in range(rows):
            x = [draw.gauss(0, 1) for _ in range(FEATURES)]
            label = "pos" if (x[0] > 0) == (draw.random() < 0.8) else "neg"
            file.write(",".join("%.5f" % v for v in x) + "," + label + "\n")


def head_of(data):
    size, = struct.unpack_from("<Q", data)
    return json.loads(data[8:8 + size])["__metadata__"], data[8 + size:]


class BestTest(FleetTest):
    def tables(self, n=4, options=None, own=None, phases=None, kind=Fleet):
        f = kind(n, phases=phases, options={**OPTIONS, **(options or {})}, own={i: {
            "data.train": "train%d.csv" % i, "data.test": "test%d.csv" % i, **(own or {}).get(i, {})} for i in range(n)})
        self.addCleanup(f.close)
        self.fleets = getattr(self, "fleets", []) + [f]
        for i in range(n):
            write_table(os.path.join(f.directory, "train%d.csv" % i), i, 12)
            write_table(os.path.join(f.directory, "test%d.csv" % i), 100 + i, 40 + 10 * i)
        return f

    def models(self, f):
        """The metadata and the values of each node's model.safetensors."""
        found = []
        for i in f.present:
            with open(os.path.join(f.nodes[i].directory, "model.safetensors"), "rb") as file:
                found.append(head_of(file.read()))
        return found

    def wait_alike(self, f, kept):
        """All model files are that of the best round, and the same to the bit."""
        def alike():
            models = self.models(f)
            same = all(values == models[0][1] and tags.get("fleet_measure") == kept["best_measure"] and
                       int(tags["round"]) == kept["best_round"] for tags, values in models)
            return same and models
        return f.wait("one model everywhere", alike, 60)

    def pooled(self, f, values):
        """The log loss of a model over the held-out rows of all nodes, computed here."""
        numbers = struct.unpack("<%df" % (len(values) // 4), values)
        layers = (numbers[:2 * FEATURES], numbers[2 * FEATURES:]), (numbers[2:], numbers[:2])
        total = {0: 0.0, 1: 0.0}
        count = 0
        for i in range(f.n):
            with open(os.path.join(f.directory, "test%d.csv" % i)) as file:
                for line in list(file)[1:]:
                    *x, label = line.strip().split(",")
                    count += 1
                    for order, (weights, bias) in enumerate(layers):
                        out = [bias[c] + sum(weights[c * FEATURES + k] * float(v) for k, v in enumerate(x)) for c in (0, 1)]
                        most = max(out)
                        own = out[label == "pos"]
                        total[order] += most - own + math.log(sum(math.exp(o - most) for o in out))
        return [total[order] / count for order in (0, 1)]  # weights or bias first in the file

    def assert_one_end(self, f):
        statuses = f.wait_state("finished", f.present, timeout=90)
        self.assertEqual(len({s["rounds"] for s in statuses}), 1, [s["rounds"] for s in statuses])
        self.assertLess(statuses[0]["rounds"], 200000)
        kept = f.wait("one best round", lambda: (s := [f.nodes[i].status() for i in f.present]) and all(
            x and x["best_round"] == s[0]["best_round"] and x["best_value"] == s[0]["best_value"] for x in s) and s[0])
        models = self.wait_alike(f, f.nodes[0].status())
        return kept, models


class Best(BestTest):
    def test_a_model_that_overfits_is_kept_at_its_best(self):
        f = self.tables()
        f.start()
        kept, models = self.assert_one_end(f)
        self.assertEqual(kept["best_measure"], "log_loss")
        self.assertGreaterEqual(kept["rounds"], kept["best_round"] + 1000)
        self.assertLess(min(abs(loss - kept["best_value"]) for loss in self.pooled(f, models[0][1])), 1e-4)
        found = f.nodes[0].json("/v1/evaluate/fleet", "POST")
        self.assertEqual((found["best"], found["rounds"]), (True, 2 * [kept["best_round"]]))
        self.assertLess(abs(kept["best_value"] - found["measures"]["log_loss"]), 1e-6)
        report = f.wait("all reports", lambda: (lambda r: r["told"] == 4 and r)(f.nodes[2].json("/v1/report")))
        self.assertEqual((report["best"], report["measures"]), (True, found["measures"]))
        alone = f.nodes[1].json("/v1/evaluate", "POST")
        self.assertEqual((alone["best"], alone["round"], alone["samples"]), (True, kept["best_round"], 50))
        said = subprocess.run([SGPCTL, "-s", f.nodes[1].socket, "evaluate"], check=True, stdout=subprocess.PIPE, text=True).stdout
        self.assertRegex(said, r"(?m)^best +(true|yes)$")
        code, body = f.nodes[3].get("/v1/model")
        self.assertEqual((code, head_of(body)[1]), (200, models[0][1]))
        card = subprocess.run([SGPCTL, "card", os.path.join(f.nodes[1].directory, "model.safetensors")], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        self.assertIn("log\\_loss", card)
        rows = f.nodes[0].json("/v1/history")["rows"]
        self.assertAlmostEqual(min(row["best_value"] for row in rows if row["best_value"] is not None), kept["best_value"])

    def test_a_node_that_is_killed_stops_with_the_others(self):
        f = self.tables(options={"train.best_patience": "40"})
        f.start()
        f.wait("a best model", lambda: (f.nodes[0].status() or {}).get("best_round"))
        f.nodes[2].end(signal.SIGKILL)
        f.wait("the others to wait for it", lambda: "n2" in ((f.nodes[0].status() or {}).get("best_waits") or ""))
        self.assertNotEqual(f.nodes[0].status()["state"], "finished")
        f.nodes[2].start()
        kept, models = self.assert_one_end(f)
        for node in f.nodes:  # nothing changes by a restart of all
            self.assertEqual(node.end(signal.SIGKILL), -signal.SIGKILL)
        f.start()
        f.wait_state("finished")
        again = self.wait_alike(f, kept)
        self.assertEqual(again[0][1], models[0][1])
        self.assertEqual([node.status()["best_value"] for node in f.nodes], [kept["best_value"]] * 4)

    def test_nodes_that_exit_when_done_have_the_copy_and_a_reset_begins_without(self):
        f = self.tables(2, options={"train.when_done": "exit", "train.rounds": "3000"})
        f.start()
        self.assertEqual([node.process.wait(90) for node in f.nodes], [0, 0])
        models = self.models(f)
        self.assertEqual(models[0][1], models[1][1])
        self.assertEqual([tags.get("fleet_measure") for tags, _ in models], ["log_loss"] * 2)
        self.assertEqual(models[0][0]["round"], models[1][0]["round"])
        f = self.tables(1, phases=[[]], options={"train.rounds": "3000"})
        f.start()
        f.wait_state("finished")
        f.wait("a best model", lambda: f.nodes[0].status()["best_round"])
        f.nodes[0].get("/v1/reset", "POST")
        f.wait("a run without a past", lambda: (f.nodes[0].status() or {}).get("run") == 2)
        directory = os.path.join(f.nodes[0].directory, "run-1")
        self.assertIn("best.json", os.listdir(directory))
        self.assertTrue([name for name in os.listdir(directory) if name.endswith(".safetensors") and "best" in name])

    def test_a_node_that_lost_its_disk_takes_the_copy(self):
        f = self.tables(2)
        f.start()
        kept, models = self.assert_one_end(f)
        f.nodes[1].end()
        for name in os.listdir(f.nodes[1].directory):
            if name.startswith(("best", "model")):
                os.remove(os.path.join(f.nodes[1].directory, name))
        os.mkfifo(os.path.join(f.nodes[1].directory, "best.json"))  # which nobody writes
        f.nodes[1].start()
        f.wait_state("finished")
        again = self.wait_alike(f, kept)
        self.assertEqual(again[1][1], models[0][1])

    def test_a_ring_whose_models_stay_apart_keeps_one_copy(self):
        f = self.tables(phases=[[(i, (i + 1) % 4) for i in range(4)]], options={
            "train.algorithm": "sgp", "train.keep_best": "accuracy", "model.layers": "dense 8 relu, dense 2"},
            own={3: {"data.test": None}})
        f.start()
        kept, models = self.assert_one_end(f)
        self.assertEqual(models[0][0]["fleet_count"], "150")  # n3 has no held-out rows, and keeps the model all the same

    def test_once_a_node_that_is_gone_is_struck_the_others_go_on(self):
        f = self.tables()
        f.start([0, 1, 2, 3])
        f.wait("a best model", lambda: (f.nodes[0].status() or {}).get("best_round"))
        f.nodes[3].end(signal.SIGKILL)
        f.wait("the others to wait for it", lambda: "n3" in ((f.nodes[0].status() or {}).get("best_waits") or ""))
        f.rewire([0, 1, 2], [[(0, 1), (1, 2), (2, 0)]])  # with a shorter cycle
        for i in f.present:
            self.assertEqual(f.nodes[i].get("/v1/reload", "POST")[0], 200)
        self.assert_one_end(f)
        self.assertEqual([f.nodes[i].status()["last_error"] for i in f.present], [None] * 3)

    def test_a_relay_hands_the_copy_on(self):
        class Relayed(Fleet):
            def says_of(self, index):
                return ", train=false" if index == 1 else ""

        f = self.tables(3, kind=Relayed, phases=[[(0, 1), (2, 1)], [(1, 0), (1, 2)]], own={1: {
            "data.train": None, "data.test": None, "data.label": None, "data.shards": None, "data.classes": "neg pos",
            "model.inputs": str(FEATURES)}})
        f.start()
        self.assert_one_end(f)

    def test_with_tls_all_sign_the_stop(self):
        class Signed(TlsFleet):
            def says(self):
                return super().says() + "  stops=2;\n"

        f = self.tables(3, kind=Signed)
        f.start()
        self.assert_one_end(f)

    def test_other_settings_are_named(self):
        f = self.tables(2, own={1: {"train.evaluate_every": "150"}})
        f.start()
        for node in f.nodes:
            f.wait("a line on the settings", lambda node=node: "evaluates by other settings" in (
                (node.status() or {}).get("last_error") or ""))

    def test_a_large_model_is_warned_of_and_its_memory_is_told(self):
        f = self.tables(options={"model.layers": "dense 9 relu, dense 2"})
        _, small = f.check()
        f = self.tables(options={"model.layers": "dense 60000 relu, dense 30, dense 2"})
        status, large = f.check()
        self.assertEqual(status, 0, large)
        self.assertRegex(large, r"keep_best: the model has 3060092 parameters, and a node takes the copy of another one only of "
                                r"up to 2000000; all nodes keep the model of the same round, but each its own")
        self.assertRegex(large, r"(?m)^  the best model, at most +46.7 MiB$")
        self.assertNotIn("takes the copy", small)
        self.assertRegex(small, r"(?m)^  the best model, at most +12\.2 KiB$")

    def refused(self, expected, **options):
        f = self.tables(options={key.replace("__", "."): value for key, value in options.items()})
        status, text = f.check()
        self.assertEqual(status, 6, text)
        self.assertIn(expected, text)
        self.assertEqual(text.count("\n"), 1, text)

    def test_values_that_make_no_sense_are_refused_in_one_line(self):
        self.refused("[train] evaluate_every: nothing is evaluated for it without keep_best", train__keep_best="none",
                     train__best_patience=None)
        self.refused("[train] best_patience: nothing is evaluated for it without keep_best", train__keep_best=None,
                     train__evaluate_every=None)
        self.refused("[train] keep_best: nothing says when the models are evaluated", train__evaluate_every=None)
        self.refused("has 2 rounds, and one without steps comes before each evaluation; give at least 4", train__evaluate_every="3")
        self.refused("each node keeps its own pace", train__algorithm="agp")
        self.refused("shares come in later rounds", train__algorithm="osgp")
        self.refused("[train] keep_best: the label is no number, so there is no squared_error; choose accuracy or log_loss",
                     train__keep_best="squared_error")
        self.refused("[train] keep_best: the model is a program's", model__kind="attached", model__layers=None)


if __name__ == "__main__":
    fleet.main()
