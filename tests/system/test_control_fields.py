# SPDX-License-Identifier: Apache-2.0
"""The control socket of a running node, as curl sees it: every field that the manual names, the model against
an independent computation, orders, and who may give them."""
import json
import math
import os
import re
import shutil
import stat
import struct
import subprocess
import unittest

import fleet
import peer
from fleet import FleetTest, UnixConnection

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
NOBODY = 65534
FEATURES = 6
NUMBER = (int, float)
STATES = ("joining", "training", "settling", "finished", "paused", "draining")

PLACE = {"file": str, "digest": str, "nodes": int, "phase": int, "phases": int, "tls": str,
         "tls_before": (str, type(None))}
# What a node knows that has trained, and that measures itself.
KNOWN = ["uptime_seconds", "round", "epoch", "samples", "samples_per_second", "loss", "test_loss", "test_accuracy",
         "weight", "weight_in_flight", "disagreement", "learning_rate", "epochs"]
PEER_KNOWN = ["round", "lag_rounds", "last_heard_seconds", "rtt_ms", "node_state"]
HISTORY = {
    "number": int, "round": int, "seconds": NUMBER, "epoch": NUMBER, "loss": NUMBER, "test_loss": NUMBER,
    "test_accuracy": NUMBER, "disagreement": NUMBER, "weight": NUMBER, "bytes_sent": int,
    "bytes_received": int, "compression_error": type(None), "bytes_spared": int,
    "best_value": type(None),
}
PATHS = ["GET /v1/status", "GET /v1/peers", "GET /v1/topology", "GET /v1/history", "GET /v1/scaling", "GET /v1/model",
         "GET /v1/fleet", "GET /v1/report", "GET /v1/invitations", "GET /v1/rollout", "GET /v1/rollout/log", "GET /v1/rollout/document",
         "GET /metrics", "POST /v1/predict", "POST /v1/evaluate", "POST /v1/evaluate/fleet", "POST /v1/pause",
         "POST /v1/resume", "POST /v1/checkpoint", "POST /v1/reload", "POST /v1/rollout", "POST /v1/stop", "POST /v1/reset",
         "POST /v1/reset/join", "POST /v1/invite", "POST /v1/leave", "POST /v1/restore"]


def documented(behind, page="CONFIGURATION.md"):
    """The names in the first column of the table behind this line of a page."""
    with open(os.path.join(ROOT, "docs", page), encoding="utf-8") as file:
        table = file.read().split(behind)[1].split("\n| --- | --- |\n")[1].split("\n\n")[0]
    return {name for line in table.splitlines() for name in re.findall(r"`(\w+)`", line.split("|")[1])}


def read_safetensors(content):
    """(metadata, {name: (shape, values)}, the bytes of the values)"""
    [length] = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + length])
    body = content[8 + length:]
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, tensor in header.items():
        begin, end = tensor["data_offsets"]
        values = struct.unpack("<%df" % ((end - begin) // 4), body[begin:end])
        tensors[name] = (tensor["shape"], values)
    return metadata, tensors, body


def softmax_regression(tensors, row):
    weights, bias = tensors["layers.0.weight"][1], tensors["layers.0.bias"][1]
    logits = [bias[k] + sum(weights[k * FEATURES + i] * x for i, x in enumerate(row))
              for k in range(2)]
    powers = [math.exp(v - max(logits)) for v in logits]
    return [p / sum(powers) for p in powers]


class Control(FleetTest):
    def setUp(self):
        self.fleet_ = self.fleet(2, options={"train.epochs": "100000", "data.test": "test.csv",
                                             "data.holdout": None})
        fleet.write_rows(os.path.join(self.fleet_.directory, "test.csv"), rows=100, seed=2)
        self.fleet_.start([1])
        self.fleet_.wait_log(1, "event=start") # so that n0 is not refused at its first dial
        self.fleet_.start([0])
        self.fleet_.wait_round(0, 50)
        self.node = self.fleet_.nodes[0]

    def exchange(self, method, path, body=None):
        """(status, content type, body)"""
        connection = UnixConnection(self.node.socket)
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            return response.status, response.getheader("Content-Type"), response.read()
        finally:
            connection.close()

    def error(self, status, code, *request):
        """The message of an answer that must be an error of this kind."""
        got, kind, body = self.exchange(*request)
        error = json.loads(body)["error"]
        self.assertEqual((got, kind), (status, "application/json"))
        self.assertEqual((error["status"], error["code"]), (status, code))
        return error["message"]

    def assert_typed(self, types, values):
        self.assertEqual(set(types), set(values))
        for name, kind in types.items():
            right = isinstance(values[name], kind) and (isinstance(values[name], bool) == (kind is bool))
            self.assertTrue(right, f"{name} = {values[name]!r}")

    def rest(self):
        """Both nodes paused and everything acknowledged."""
        for node in self.fleet_.nodes:
            self.assertEqual(node.get("/v1/pause", "POST")[0], 200)
        self.fleet_.wait_state("paused")
        self.fleet_.wait("all to be acknowledged", lambda: all(
            node.status()["weight_in_flight"] == 0 for node in self.fleet_.nodes))


class Reading(Control):
    def measured(self):
        self.fleet_.wait("a measurement",
                         lambda: self.node.status()["test_loss"] is not None
                         and self.node.status()["disagreement"] is not None)

    def check_status(self, status):
        self.assertEqual(documented("Of the node, `status` says:"), set(status))
        self.assertEqual([key for key in KNOWN if status[key] is None], [])
        self.assert_typed(PLACE, status["topology"])
        self.assertEqual((status["schema"], status["protocol"]), (1, 3))
        self.assertEqual((status["name"], status["algorithm"]), ("n0", "sgp"))
        self.assertIn(status["state"], STATES)
        self.assertRegex(status["incarnation"], r"\A[0-9a-f]{16}\Z")
        self.assertRegex(status["topology"]["digest"], r"\A[0-9a-f]{16}\Z")
        self.assertEqual(status["parameters"], 2 * FEATURES + 2)
        self.assertEqual(status["weight_minted"], 0)
        self.assertEqual([status["topology"][k] for k in ("nodes", "phase", "phases")], [2, 0, 1])
        self.assertEqual(status["topology"]["file"], self.fleet_.directory + "/n0.dot")

    def check_peer(self, of_peer):
        self.assertEqual(documented("`peers` has an entry for each link"), set(of_peer))
        self.assertEqual([key for key in PEER_KNOWN if of_peer[key] is None], [])

    def test_status_has_every_field(self):
        self.measured()
        status, kind, body = self.exchange("GET", "/v1/status")
        self.assertEqual((status, kind), (200, "application/json"))
        self.check_status(json.loads(body))

    def test_peers_has_every_field_of_both_directions(self):
        status, kind, body = self.exchange("GET", "/v1/peers")
        self.assertEqual((status, kind), (200, "application/json"))
        peers = json.loads(body)
        self.assertEqual([p["direction"] for p in peers], ["out", "in"])
        for p in peers:
            self.check_peer(p)
            self.assertEqual((p["name"], p["state"], p["absent"], p["last_error"]),
                             ("n1", "up", False, None))
            self.assertEqual(p["address"], "127.0.0.1:%d" % self.fleet_.ports[1])
            self.assertGreater(min(p["bytes_sent"], p["bytes_received"]), 0)
        self.assertGreater(peers[0]["shares_sent"], 0)
        self.assertGreater(peers[1]["shares_received"], 0)

    def test_topology_has_the_edges(self):
        status, kind, body = self.exchange("GET", "/v1/topology")
        self.assertEqual((status, kind), (200, "application/json"))
        topology = json.loads(body)
        self.assert_typed({"file": str, "digest": str, "version": int, "slices": int, "exact": bool, "tls": str, "round": int,
                           "phase": int, "nodes": list, "phases": list}, topology)
        self.assertEqual(topology["digest"], self.node.status()["topology"]["digest"])
        self.assertEqual([n["name"] for n in topology["nodes"]], ["n0", "n1"])
        self.assertEqual([n["address"] for n in topology["nodes"]],
                         ["127.0.0.1:%d" % port for port in self.fleet_.ports])
        self.assertEqual(topology["phases"], [{
            "name": "phase0", "rounds": 1, "once": False, "train": True, "outer": False, "backup": 0,
            "staleness": "none", "compensation": 0.0, "staleness_max": 0, "edge_count": 2,
            "edges": [{"source": "n0", "target": "n1", "fraction": 0.5},
                      {"source": "n1", "target": "n0", "fraction": 0.5}]}])

    def test_the_fleet_has_every_field_of_every_node(self):
        def told():
            _, _, body = self.exchange("GET", "/v1/fleet")
            fleet_ = json.loads(body)
            return fleet_ if all(node["state"] for node in fleet_["nodes"]) else None
        fleet_ = self.fleet_.wait("a row of each node", told)
        self.assertEqual(fleet_["name"], "n0")
        self.assertEqual(set(fleet_["refused"]), {"strangers", "earlier", "ahead", "forged", "malformed"})
        self.assertEqual([node["name"] for node in fleet_["nodes"]], ["n0", "n1"])
        status = self.node.status()
        for node in fleet_["nodes"]:
            self.assertEqual(documented("`GET /v1/fleet` answers", "FLEET.md"), set(node))
            self.assertFalse(node["stale"])
            self.assertEqual(set(node) - set(status), {"age", "stale", "rounds_per_second", "device", "interval_seconds", "promised",
                                                   "promised_epsilon", "promised_delta"})
            self.assertEqual(node["topology"]["digest"], status["topology"]["digest"])

    def test_history_has_a_row_an_epoch(self):
        rows = self.fleet_.wait("history", lambda: self.node.json("/v1/history?since=0&limit=3")["rows"])
        for number, row in enumerate(rows):
            self.assert_typed(HISTORY, row)
            self.assertEqual(row["number"], number)
        page = self.node.json("/v1/history?since=1&limit=1")
        self.assertEqual((page["rows"], page["oldest"], page["every"], page["next"]), (rows[1:2], 0, 1, 2))
        self.assertEqual(set(page), {"rows", "total", "oldest", "every", "next"})
        self.assertEqual([row["epoch"] for row in rows], sorted(row["epoch"] for row in rows))

    def test_metrics_is_prometheus_text(self):
        status, kind, body = self.exchange("GET", "/metrics")
        self.assertEqual((status, kind), (200, "text/plain; version=0.0.4; charset=utf-8"))
        typed, seen = {}, set()
        for line in body.decode().splitlines():
            if line.startswith("# TYPE "):
                name, typed[name] = line.split()[2:]
            elif not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                self.assertTrue(math.isfinite(float(value)), line)
                seen.add(name)
                self.assertIn(name.split("{")[0], typed)
        self.assertEqual(set(typed.values()), {"gauge", "counter"})
        for name in ("sgpd_round", "sgpd_weight", "sgpd_weight_in_flight", "sgpd_samples_total",
                     'sgpd_state{state="training"}', 'sgpd_link_up{peer="n1",direction="out"}',
                     'sgpd_link_shares_returned_total{peer="n1",direction="in"}'):
            self.assertIn(name, seen)
        self.assertNotIn(b"rollout", body)  # nobody signs files here

    def test_what_is_not_there(self):
        status, _, body = self.exchange("GET", "/v1/nothing")
        self.assertEqual(status, 404)
        self.assertEqual(json.loads(body)["error"]["paths"], PATHS)
        self.assertEqual(self.error(404, "not_found", "GET", "/v1/nothing"),
                         "there is no GET /v1/nothing")
        self.assertEqual(self.error(405, "method_not_allowed", "GET", "/v1/stop"),
                         "GET is not for /v1/stop")
        self.assertEqual(self.error(405, "method_not_allowed", "DELETE", "/v1/model"),
                         "DELETE is not for /v1/model")

    def test_the_socket_is_for_owner_and_group(self):
        mode = os.stat(self.node.socket).st_mode
        self.assertTrue(stat.S_ISSOCK(mode))
        self.assertEqual(stat.S_IMODE(mode), 0o660)

    @unittest.skipUnless(shutil.which("curl"), "curl is not installed")
    def test_curl(self):
        self.measured()
        got = subprocess.run(["curl", "-sS", "--fail", "--max-time", "10", "--unix-socket",
                              self.node.socket, "http://n/v1/status", "http://n/v1/peers"],
                             capture_output=True, check=False)
        self.assertEqual((got.returncode, got.stderr), (0, b""))
        status, peers = [json.loads(line) for line in got.stdout.splitlines()]
        self.check_status(status)
        self.check_peer(peers[0])


class Model(Control):
    def setUp(self):
        super().setUp()
        self.rest()
        self.metadata, self.tensors, self.body = read_safetensors(self.node.get("/v1/model")[1])
        with open(os.path.join(self.fleet_.directory, "test.csv"), encoding="ascii") as file:
            lines = [line.rstrip().split(",") for line in file][1:]
        self.rows = [[float(v) for v in line[:-1]] for line in lines]
        self.labels = [line[-1] for line in lines]

    def test_the_file_is_safetensors(self):
        self.assertEqual({name: tensor[0] for name, tensor in self.tensors.items()},
                         {"layers.0.weight": [2, FEATURES], "layers.0.bias": [2]})
        self.assertEqual(len(self.body), 4 * (2 * FEATURES + 2))
        self.assertEqual([self.metadata[k] for k in ("node", "layers", "loss", "classes")],
                         ["n0", "dense 2", "cross-entropy", "neg pos"])

    def test_the_digest_covers_every_byte(self):
        """XXH3 of what stands before the digits seeds that of the rest of the head, and so on."""
        content = self.node.get("/v1/model")[1]
        metadata, _, body = read_safetensors(content)
        head = len(content) - len(body)
        digits = content.index(metadata["xxh3"].encode())
        digest = peer.checksum(content[:digits])
        digest = peer.checksum(content[digits + 16:head], digest)
        self.assertEqual(metadata["xxh3"], "%016x" % peer.checksum(body, digest))

    def test_predict_says_what_the_model_says(self):
        bodies = {
            "json": json.dumps({"rows": self.rows}),
            "csv": "\n".join([",".join("f%d" % i for i in range(FEATURES))] +
                             [",".join(map(repr, row)) for row in self.rows])}
        for kind, body in bodies.items():
            status, _, answer = self.exchange("POST", "/v1/predict", body)
            self.assertEqual(status, 200, (kind, answer))
            answer = json.loads(answer)
            self.assert_typed({"rows": int, "labels": list, "outputs": list}, answer)
            self.assertEqual(answer["rows"], len(self.rows))
            for row, label, outputs in zip(self.rows, answer["labels"], answer["outputs"]):
                expected = softmax_regression(self.tensors, row)
                self.assertLess(max(abs(a - b) for a, b in zip(expected, outputs)), 1e-5)
                self.assertEqual(label, "neg" if expected[0] > expected[1] else "pos")

    def test_predict_refuses_what_is_no_row(self):
        for body, message in (
                ("", "the body is empty; send {\"rows\": [[...], ...]}, or CSV with a line of names"),
                ('{"rows": [[1, 2]]}',
                 "row 1 has 2 features; the model takes arrays of 6 numbers"),
                ('{"rows": [[1, 2, 3, 4, 5, "x"]]}',
                 "row 1, feature 6 is not a number that a float32 can hold"),
                ('{"rows": [[1, 2, 3, 4, 5, 1e99]]}',
                 "row 1, feature 6 is not a number that a float32 can hold"),
                ('{"lines": []}', "the body has no array of rows; send {\"rows\": [[...], ...]}"),
                ("f1,f0,f2,f3,f4,f5\n1,2,3,4,5,6\n",
                 "body:1: other columns than the training data has, or in another order; send its line of "
                 "names without the label"),
                ("a,b\n1,2\n",
                 "the rows have 2 features and the model takes 6; send the feature columns alone")):
            self.assertEqual(self.error(400, "bad_request", "POST", "/v1/predict", body), message)

    def test_evaluate_agrees_with_the_rows(self):
        status, _, body = self.exchange("POST", "/v1/evaluate")
        answer = json.loads(body)
        self.assertEqual(status, 200)
        self.assert_typed({"round": int, "best": bool, "samples": int, "loss": NUMBER, "accuracy": NUMBER, "measures": dict}, answer)
        outputs = [softmax_regression(self.tensors, row) for row in self.rows]
        right = [p["neg pos".split().index(label)] for p, label in zip(outputs, self.labels)]
        self.assertEqual(answer["samples"], len(self.rows))
        self.assertAlmostEqual(answer["loss"], sum(-math.log(p) for p in right) / len(right), 5)
        self.assertAlmostEqual(answer["accuracy"], sum(p > 0.5 for p in right) / len(right), 9)
        confusion = [[0, 0], [0, 0]]
        for p, label in zip(outputs, self.labels):
            confusion["neg pos".split().index(label)][int(p[1] > p[0])] += 1
        measures = answer["measures"]
        self.assertEqual((measures["rows"], measures["confusion"]), (len(self.rows), confusion))
        self.assertEqual([(c["class"], c["rows"], c["correct"]) for c in measures["classes"]],
                         [("neg", sum(confusion[0]), confusion[0][0]), ("pos", sum(confusion[1]), confusion[1][1])])
        self.assertAlmostEqual(measures["log_loss"], answer["loss"], 6)
        self.assertEqual(measures["accuracy"], answer["accuracy"])


class Orders(Control):
    def order(self, name):
        status, _, body = self.exchange("POST", "/v1/" + name)
        self.assertEqual(status, 200)
        return json.loads(body)

    def test_pause_holds_conserves_and_resume_goes_on(self):
        self.assertEqual(self.order("pause"), {"state": "paused"})
        self.rest()
        before = [node.status() for node in self.fleet_.nodes]
        self.assertLessEqual(abs(sum(s["weight"] for s in before) - 2), 1e-12)
        self.assertEqual(self.order("pause"), {"state": "paused"})
        self.order("evaluate")
        self.assertEqual(self.node.status()["round"], before[0]["round"])
        for node in self.fleet_.nodes:
            self.assertEqual(node.json("/v1/resume", "POST"), {"state": "training"})
        self.fleet_.wait_round(0, before[0]["round"] + 20)

    def test_stop_ends_the_process_with_the_model_written(self):
        self.assertEqual(self.order("stop"), {"state": "draining"})
        self.assertEqual(self.node.process.wait(fleet.PATIENCE), 0)
        self.assertFalse(os.path.exists(self.node.socket))
        with open(os.path.join(self.node.directory, "model.safetensors"), "rb") as file:
            metadata, tensors, _ = read_safetensors(file.read())
        self.assertEqual((metadata["node"], sorted(tensors)),
                         ("n0", ["layers.0.bias", "layers.0.weight"]))

    def as_user(self, user, group, *requests):
        """What another user gets: [(status, message or None)], or the error of connecting."""
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setgid(group)
                os.setuid(user)
                answers = []
                for request in requests:
                    status, _, body = self.exchange(*request)
                    error = json.loads(body).get("error", {})
                    answers.append([status, error.get("message")])
            except Exception as error:  # the child must not go on as a second runner of tests
                answers = type(error).__name__
            finally:
                os.write(write_end, json.dumps(answers).encode())
                os._exit(0)
        os.close(write_end)
        with os.fdopen(read_end) as pipe:
            answers = json.load(pipe)
        os.waitpid(child, 0)
        return answers

    @unittest.skipUnless(os.geteuid() == 0, "only root can become somebody else")
    def test_the_group_reads_and_only_the_owner_changes(self):
        os.chmod(self.fleet_.directory, 0o711)
        os.chown(self.node.socket, 0, NOBODY)
        self.assertEqual(
            self.as_user(NOBODY, NOBODY, ("GET", "/v1/status"), ("POST", "/v1/evaluate"),
                         ("POST", "/v1/pause"), ("POST", "/v1/resume"), ("POST", "/v1/stop"),
                         ("POST", "/v1/leave")),
            [[200, None], [200, None]] +
            [[403, f"only root and the user of the daemon may {name} it; reading is for the whole "
              "group"] for name in ("pause", "resume", "stop", "leave")])
        self.assertEqual(self.as_user(NOBODY, NOBODY - 1, ("GET", "/v1/status")), "PermissionError")
        self.assertEqual(self.node.status()["state"], "training")
        before = self.node.status()["round"]
        self.fleet_.wait_round(0, before + 20)


if __name__ == "__main__":
    fleet.main()
