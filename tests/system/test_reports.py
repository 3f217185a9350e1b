# SPDX-License-Identifier: Apache-2.0
"""Measures of a whole fleet: test_reports.py SGPD SGPCTL. Each node tells counts of its own held-out rows, and every node
adds up what all have told. The sums are compared with those of the pooled rows, computed here with the exported model."""
import csv
import itertools
import json
import math
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import time

import fleet
import peer
from fleet import Fleet, FleetTest
from peer import BULLETIN, GOODBYE, PULL, Peer
from tls import TlsFleet
import tls

SGPCTL = tls.SGPCTL = os.path.abspath(sys.argv.pop(2))
CLASSES = ["a", "b", "c"]
REPORT, MEASURES = 4, 1  # a kind of bulletin, a subject
DAY = 24 * 3600 * 1000
RING = [[(i, (i + 1) % 4) for i in range(4)]]


def rows_of(seed, count, classes=CLASSES):
    draw = random.Random(seed)
    for number in range(count):
        label = classes[number % len(classes)]
        centre = CLASSES.index(label)
        yield {"x": "%.4f" % draw.gauss(centre, 1.2), "y": "%.4f" % draw.gauss(-centre % 2, 1.2), "label": label}


def tensors_of(data):
    """{name: (shape, values)} of a safetensors file."""
    size, = struct.unpack_from("<Q", data)
    head = json.loads(data[8:8 + size])
    found = {}
    for name, entry in head.items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            found[name] = entry["shape"], struct.unpack_from("<%df" % ((last - first) // 4), data, 8 + size + first)
    return found


def outputs_of(model, row):
    """Of a model of one dense layer."""
    weights = next(values for shape, values in model.values() if len(shape) == 2)
    bias = next(values for shape, values in model.values() if len(shape) == 1)
    return [b + sum(weights[c * len(row) + i] * x for i, x in enumerate(row)) for c, b in enumerate(bias)]


def auc_of(scores, labels, positive):
    """Pair by pair."""
    own = [s for s, label in zip(scores, labels) if label == positive]
    others = [s for s, label in zip(scores, labels) if label != positive]
    return sum((a > b) + (a == b) / 2 for a in own for b in others) / (len(own) * len(others))


class Tables(Fleet):
    """n daemons with tables of their own, and a table of held-out rows each (None: none)."""

    def __init__(self, n=4, tests=None, **arguments):
        self.relays = arguments.pop("relays", [])
        self.hidden = arguments.pop("hidden", [])
        own = arguments.pop("own", {})
        tests = {i: (50 + 10 * i, CLASSES) for i in range(n)} if tests is None else tests
        for i in range(n):
            own.setdefault(i, {})
            if i in self.relays:
                none = {key: None for key in ("data.train", "data.label", "data.shards", "data.test")}
                own[i] = {**none, "model.inputs": "2", **own[i]}
                continue
            own[i] = {"data.train": "rows%d.csv" % i, "data.test": "test%d.csv" % i if tests.get(i) else None} | own[i]
            if i in self.hidden:
                own[i]["network.listen"] = "none"
        options = {"data.shards": "none", "data.holdout": None, "data.classes": " ".join(CLASSES), "model.layers": "dense 3",
                   "train.epochs": "3", **arguments.pop("options", {})}
        super().__init__(n, own=own, options=options, **arguments)
        self.tests = {}
        for i in range(n):
            self.write_table("rows%d.csv" % i, rows_of(i, 60))
            if tests.get(i):
                self.tests[i] = list(rows_of(100 + i, *tests[i]))
                self.write_table("test%d.csv" % i, self.tests[i])

    def write_table(self, name, rows):
        with open(os.path.join(self.directory, name), "w", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ["x", "y", "label"])
            writer.writeheader()
            writer.writerows(rows)

    def says_of(self, index):
        return super().says_of(index) + (", train=false" if index in self.relays else "")

    def address(self, index, other):
        return "none" if other in self.hidden else super().address(index, other)

    def report(self, index):
        """The report of a node; None: there is none."""
        code, body = self.nodes[index].get("/v1/report")
        return json.loads(body) if code == 200 else None


class CipheredTables(Tables, TlsFleet):
    pass


class ReportTest(FleetTest):
    def tables(self, *arguments, kind=Tables, **keywords):
        f = kind(*arguments, **keywords)
        self.addCleanup(f.close)
        self.fleets = getattr(self, "fleets", []) + [f]
        return f

    def finished(self, f, indices=None, told=None):
        indices = list(range(f.n)) if indices is None else indices
        told = len(f.nodes) - len(f.relays) if told is None else told

        def all_told():
            """Nodes that disagree mix once more, and then there is a report of a later label."""
            statuses, reports = [f.nodes[i].status() for i in indices], [f.report(i) for i in indices]
            ended = all(status and status["state"] == "finished" for status in statuses)
            last = max(status["round"] for status in statuses) if ended else None
            good = ended and all(report and report["told"] == told and report["rounds"] == [last, last] for report in reports)
            return reports if good else None
        return f.wait("%d reports at %s" % (told, indices), all_told)

    def checked_end(self, f, indices, told):
        """The report at the end, checked with the models of the end. A fleet to which a node has come back may mix once more
        after its report: then the next report is checked."""
        while True:
            report = self.finished(f, indices, told=told)[0]
            try:
                self.check_sum(f, report["measures"], indices)
                return report
            except AssertionError:
                if all(f.nodes[i].status()["round"] == report["rounds"][1] for i in indices):
                    raise

    def check_sum(self, f, measures, indices):
        """The sum is that of the pooled rows of these nodes, with the model that each of them exports: counts exactly, the
        area under the curve within its bound."""
        pooled = []
        for i in indices:
            model = tensors_of(f.nodes[i].get("/v1/model")[1])
            pooled += [(outputs_of(model, (float(row["x"]), float(row["y"]))), row["label"]) for row in f.tests.get(i, [])]
        confusion = [[0] * len(CLASSES) for _ in CLASSES]
        loss = 0
        for outputs, label in pooled:
            confusion[CLASSES.index(label)][outputs.index(max(outputs))] += 1
            peak = max(outputs)
            loss += peak + math.log(sum(math.exp(o - peak) for o in outputs)) - outputs[CLASSES.index(label)]
        self.assertEqual(measures["rows"], len(pooled))
        self.assertEqual(measures["confusion"], confusion)
        self.assertAlmostEqual(measures["accuracy"], sum(confusion[i][i] for i in range(len(CLASSES))) / len(pooled), delta=1e-14)
        self.assertAlmostEqual(measures["log_loss"], loss / len(pooled), delta=1e-5)
        for c, told in enumerate(measures["classes"]):
            said, rows = sum(row[c] for row in confusion), sum(confusion[c])
            self.assertEqual((told["rows"], told["said"], told["correct"]), (rows, said, confusion[c][c]))
            self.assertAlmostEqual(told["f1"], 2 * confusion[c][c] / (said + rows) if said + rows else 0, delta=1e-14)
            scores = [outputs[c] - math.log(sum(math.exp(o) for i, o in enumerate(outputs) if i != c)) for outputs, _ in pooled]
            auc = auc_of(scores, [label for _, label in pooled], CLASSES[c])
            self.assertLessEqual(abs(told["auc"] - auc), told["auc_bound"] + 1e-9)

    def states(self, report):
        return {node["name"]: node["state"] for node in report["nodes"]}


class Final(ReportTest):
    def test_the_sum_is_that_of_the_pooled_rows(self):
        f = self.tables()
        f.start()
        reports = self.finished(f)
        for report in reports[1:]:
            self.assertEqual(report, reports[0], "equal on all nodes")
        report = reports[0]
        self.assertTrue(report["final"])
        self.assertEqual((report["members"], report["told"], report["silent"]), (4, 4, []))
        self.assertEqual(report["rounds"][0], report["rounds"][1])
        self.assertEqual([node["rows"] for node in report["nodes"]], [50, 60, 70, 80])
        self.check_sum(f, report["measures"], range(4))

    def test_one_class_and_no_rows(self):
        """A node with rows of one class alone has no curve of its own; a node without held-out rows says so."""
        f = self.tables(tests={0: (40, ["a"]), 1: (50, CLASSES), 2: None, 3: (30, ["b", "c"])})
        f.start()
        report = self.finished(f)[0]
        self.assertEqual(self.states(report), {"n0": "measured", "n1": "measured", "n2": "no_rows", "n3": "measured"})
        self.check_sum(f, report["measures"], range(4))
        self.assertNotIn("nan", json.dumps(report).lower())

    def test_few_rows_are_not_told(self):
        f = self.tables(2, tests={0: (9, CLASSES), 1: (10, CLASSES)})
        f.start()
        report = self.finished(f)[0]
        self.assertEqual(self.states(report), {"n0": "few_rows", "n1": "measured"})
        f.tests[0] = []
        self.check_sum(f, report["measures"], range(2))

    def test_a_node_that_is_struck_is_not_waited_for(self):
        f = self.tables(3, phases=[[(0, 1), (1, 2), (2, 0)]], options={"train.epochs": "400"})
        f.start()
        f.wait_round(0, 3)
        f.nodes[2].end(signal.SIGKILL)
        f.rewire([0, 1], [[(0, 1), (1, 0)]])
        for i in (0, 1):
            f.nodes[i].kill(signal.SIGHUP)
        report = self.finished(f, [0, 1], told=2)[0]
        self.assertEqual((report["members"], report["silent"]), (2, []))
        self.check_sum(f, report["measures"], range(2))

    def test_no_node_has_rows(self):
        f = self.tables(2, tests={})
        f.start()
        report = self.finished(f)[0]
        self.assertEqual((report["measures"], report["rows"], set(self.states(report).values())), (None, 0, {"no_rows"}))

    def test_a_relay_passes_on(self):
        """All that nodes hear of each other goes through n3, which has no rows."""
        f = self.tables(4, relays=[3], phases=[[(0, 3), (1, 3), (2, 3)], [(3, 0), (3, 1), (3, 2)]])
        f.start()
        reports = self.finished(f)
        self.assertEqual(len({json.dumps(report) for report in reports[:3]}), 1)
        self.assertEqual(reports[3]["nodes"], reports[0]["nodes"])  # it has no rows, and may not know the names of classes
        self.assertEqual(set(self.states(reports[0])), {"n0", "n1", "n2"})
        self.check_sum(f, reports[3]["measures"], range(3))

    def test_who_cannot_be_dialled_is_heard(self):
        f = self.tables(3, hidden=[1])
        f.start()
        report = self.finished(f)[0]
        self.check_sum(f, report["measures"], range(3))

    def test_with_tls(self):
        f = self.tables(3, kind=CipheredTables)
        f.start()
        self.check_sum(f, self.finished(f)[0]["measures"], range(3))

    def test_it_survives_restarts_and_a_lost_file(self):
        f = self.tables(3)
        f.start()
        before = self.finished(f)[0]
        path = os.path.join(f.nodes[0].directory, "report.json")
        f.wait("the file", lambda: os.path.exists(path))
        for node in f.nodes:
            self.assertEqual(node.end(), 0)
        f.nodes[0].start()  # alone: what it shows of others comes from its file, and it measures its own rows again
        self.assertEqual(f.wait("all reports", lambda: (lambda report: report and report["told"] == 3 and report)(f.report(0))), before)
        f.nodes[0].end(signal.SIGKILL)
        with open(path, "w", encoding="ascii") as file:
            file.write("{ damaged")
        f.start()
        after = self.finished(f)[0]  # nodes that come back mix again, so the last digits differ
        self.assertEqual(after["rows"], before["rows"])
        self.assertAlmostEqual(after["measures"]["log_loss"], before["measures"]["log_loss"], delta=1e-4)
        self.assertIn("not the reports of a fleet", f.nodes[0].log())

    def test_other_rows_are_measured_after_a_restart(self):
        """Nodes that had all reports before hear of it, too."""
        f = self.tables(3)
        f.start()
        before = self.finished(f)[0]
        self.assertEqual(f.nodes[1].end(), 0)
        f.tests[1] = f.tests[1][:-20]
        f.write_table("test1.csv", f.tests[1])
        f.nodes[1].start()
        for i in range(3):
            f.wait("the rows of now at n%d" % i, lambda i=i: (f.report(i) or {}).get("rows") == before["rows"] - 20)

    def test_the_file_is_written_when_its_content_changes(self):
        """Wishes make finished nodes tell again, but what they say of the final model stays the same."""
        f = self.tables(3)
        f.start()
        self.finished(f)
        paths = [os.path.join(node.directory, "report.json") for node in f.nodes]
        for path in paths:
            f.wait("all reports in the file", lambda path=path: os.path.exists(path) and len(self.kept(path)) == 3)
        before = [os.stat(path).st_ino for path in paths]
        for i in range(12):
            code, body = f.nodes[i % 3].get("/v1/evaluate/fleet?seconds=60", "POST")
            self.assertEqual((code, json.loads(body)["told"]), (200, 3))
        for node in f.nodes:
            self.assertEqual(node.end(), 0)
        self.assertEqual([os.stat(path).st_ino for path in paths], before)

    def kept(self, path):
        with open(path, encoding="ascii") as file:
            return [entry["report"] for entry in json.load(file)["nodes"]]

    def test_the_next_run_begins_without_it(self):
        f = self.tables(2)
        f.start()
        self.finished(f)
        f.wait("the file", lambda: os.path.exists(os.path.join(f.nodes[0].directory, "report.json")))
        for node in f.nodes:
            node.end()
        for i in range(2):
            f.write_configuration(i, {"data.shards": "none", "data.holdout": None, "data.classes": "a b c",
                                      "train.epochs": "200000", "model.layers": "dense 4 relu, dense 3"},
                                  {"data.train": "rows%d.csv" % i, "data.test": "test%d.csv" % i})
        f.start()
        f.wait_state("training")
        self.assertEqual(f.nodes[0].get("/v1/report")[0], 409)
        self.assertTrue(os.path.exists(os.path.join(f.nodes[0].directory, "run-1", "report.json")))

    def test_who_exits_when_done_has_the_report(self):
        f = self.tables(4, options={"train.when_done": "exit"})
        f.start()
        for node in f.nodes:
            self.assertEqual(node.process.wait(fleet.PATIENCE), 0)
        texts = set()
        for node in f.nodes:
            with open(os.path.join(node.directory, "report.json"), encoding="ascii") as file:
                texts.add(json.dumps([entry["report"] for entry in json.load(file)["nodes"]]))
        self.assertEqual(len(texts), 1)


class Now(ReportTest):
    """On demand, while the fleet trains."""

    def evaluate(self, f, index=0, seconds=30):
        code, body = self.call(f, index, "/v1/evaluate/fleet?seconds=%d" % seconds)
        self.assertEqual(code, 200, body)
        return json.loads(body)

    def call(self, f, index, path):
        connection = fleet.UnixConnection(f.nodes[index].socket)
        connection.connect()
        connection.sock.settimeout(fleet.PATIENCE)
        self.addCleanup(connection.close)
        connection.request("POST", path)
        response = connection.getresponse()
        return response.status, response.read()

    def training(self, **keywords):
        f = self.tables(options={"train.epochs": "1000000"}, phases=RING, **keywords)
        f.start()
        f.wait_state("training")
        return f

    def test_every_node_measures_its_own_model(self):
        f = self.training()
        answer = self.evaluate(f)
        self.assertEqual((answer["told"], answer["silent"], answer["final"]), (4, [], False))
        self.assertEqual(answer["measures"]["rows"], 50 + 60 + 70 + 80)
        self.assertEqual(sum(map(sum, answer["measures"]["confusion"])), 260)
        self.assertLessEqual(answer["rounds"][0], answer["rounds"][1])
        later = self.evaluate(f, 2)
        self.assertEqual(later["told"], 4)
        self.assertGreater(later["rounds"][1], answer["rounds"][0])
        self.assertEqual(f.nodes[0].get("/v1/report")[0], 409)

    def test_paused_nodes_are_measured_exactly(self):
        """The models stand still, so each exports the one that it has measured."""
        f = self.training()
        for node in f.nodes:
            node.get("/v1/pause", "POST")
        f.wait_state("paused")
        f.quiet()
        self.check_sum(f, self.evaluate(f)["measures"], range(4))

    def test_a_dead_node_is_named(self):
        f = self.training(tests={0: (40, CLASSES), 1: (40, CLASSES), 2: (40, CLASSES), 3: (40, CLASSES)})
        f.nodes[3].end(signal.SIGKILL)
        answer = self.evaluate(f, seconds=3)
        self.assertEqual((answer["told"], answer["silent"]), (3, ["n3"]))
        self.assertEqual(answer["measures"]["rows"], 120)
        self.assertEqual(self.states(answer)["n3"], "silent")

    def test_a_dead_node_is_named_at_the_end(self):
        f = self.tables(phases=RING, options={"train.epochs": "40"})
        f.start()
        f.wait_round(0, 3)
        f.nodes[3].end(signal.SIGKILL)
        report = self.checked_end(f, [0, 1, 2], told=3)
        self.assertEqual(report["silent"], ["n3"])
        f.nodes[3].start()
        f.wait_state("finished", [3])
        report = self.checked_end(f, range(4), told=4)
        self.assertEqual(report["silent"], [])

    def test_sgpctl_prints_both(self):
        def ctl(*words, status=0):
            done = subprocess.run([SGPCTL, "-s", f.nodes[1].socket, *words], capture_output=True, text=True,
                                  timeout=fleet.PATIENCE, check=False)
            self.assertEqual(done.returncode, status, done.stderr)
            return done.stdout + done.stderr
        f = self.training()
        text = ctl("evaluate", "--fleet", "--timeout", "30")
        self.assertRegex(text, r"(?m)^n2 +measured +\d+ +70$")
        self.assertRegex(text, r"(?m)^accuracy\s+0\.\d+$")
        self.assertEqual(json.loads(ctl("evaluate", "--fleet", "--json"))["told"], 4)
        self.assertIn("no node has told", ctl("report", status=1))
        self.assertIn("--timeout is for --fleet", ctl("evaluate", "--timeout", "3", status=2))
        self.assertEqual(self.call(f, 1, "/v1/evaluate/fleet?seconds=0")[0], 400)
        self.assertEqual(self.call(f, 1, "/v1/evaluate/fleet?minutes=1")[0], 400)

    def test_the_check_says_what_reports_may_take(self):
        f = self.tables()
        status, text = f.check()
        self.assertEqual(status, 0, text)
        self.assertRegex(text, r"(?m)^  an evaluation +47\.\d KiB$")
        self.assertRegex(text, r"(?m)^  reports of nodes, at most +3\d\d\.\d KiB\n  sum ")


def sure(rows, count=None):
    """The measures of a model of three classes that says the first of all rows, for certain, and is right. `count`: another count
    of rows in the confusion matrix."""
    bins = "1 500 0 {0} 1 500 {0} 0 1 500 {0} 0".format(rows)
    return f"1 3 {rows} {count or rows}{8 * ' 0'} {bins}{14 * ' 0 0 0'} {rows} {rows} {rows << 192:x} 0"


class Foreign(ReportTest):
    """The last node is no daemon of ours: it shares no line with lib/survey or lib/measures."""

    def start(self, epochs="1000000", daemons=1):
        self.me = "n%d" % daemons
        self.f = self.tables(daemons + 1, options={"train.epochs": epochs, "train.start": str(daemons)})
        self.random = random.getrandbits(43)
        self.numbers = itertools.count(1 + (self.random << 20))
        self.listener = socket.create_server(("127.0.0.1", self.f.ports[daemons]))
        self.listener.settimeout(fleet.PATIENCE)
        self.addCleanup(self.listener.close)
        self.f.start(range(daemons))
        self.f.wait("a node", self.f.nodes[0].status)

    def ask(self, number=0, milliseconds=60000, heads=(), target=0):
        """Ask a daemon with a wish; what it holds: {(author, stamp): text}. `heads`: bulletins that this node has."""
        asker = Peer(self.f.ports[target])
        self.addCleanup(asker.close)
        asker.send(PULL, self.me, "n%d" % target, len(heads), MEASURES, number, milliseconds)
        for head in heads:
            asker.send(BULLETIN, *head[:5], 0, "")
        told = {}
        while True:
            kind, fields = asker.receive(BULLETIN, PULL, GOODBYE)
            if kind != BULLETIN:
                asker.close()
                return kind, told
            self.assertEqual(fields[0], REPORT)
            key = fields[1], fields[2]
            self.assertEqual(len(told.setdefault(key, "")), fields[5])
            told[key] += fields[6]

    def wish(self):
        """A new wish of which the daemon has heard, as its own report says."""
        number = next(self.numbers)
        self.f.wait("a report", lambda: number in self.own(self.ask(number)[1])[0])
        return number

    def own(self, told):
        """The wishes that the report of n0 answers, and the words behind them."""
        words = next((text for (author, _), text in told.items() if author == "n0"), "1 0").split()
        count = int(words[1])
        return [int(word) for word in words[2:2 + count]], words[2 + count:]

    def question(self, source=None):
        """The next question of a daemon about measures."""
        while True:
            sock, _ = self.listener.accept()
            asker = Peer(sock=sock)
            self.addCleanup(asker.close)
            kind, fields = asker.receive(PULL, peer.HELLO)
            if kind == PULL and fields[3] == MEASURES and source in (None, fields[0]):
                return asker, fields
            asker.close()

    def answer(self, *pieces, source=None):
        """Answer the next question with these bulletins. Returns its wish, and the time that this has left."""
        asker, fields = self.question(source)
        for _ in range(fields[2]):
            asker.receive(BULLETIN)
        try:
            for piece in pieces:
                asker.send(BULLETIN, *piece)
            asker.send(PULL, self.me, fields[0], 0, MEASURES)
            asker.until_closed()
        except peer.Closed:
            pass
        return fields[4:6]

    def bulletin(self, text, stamp, **changes):
        fields = {"kind": REPORT, "author": self.me, "stamp": stamp, "digest": peer.checksum(text.encode()), "bytes": len(text),
                  "first": 0, "text": text, **changes}
        return tuple(fields.values())

    def own_run(self):
        """The run of the daemon, as its own report says."""
        self.wish()
        words = self.own(self.ask()[1])[1]
        self.assertEqual(words[2:7], ["0", "1", "1", "3", "50"])
        return words[0]

    def evaluation(self, seconds):
        """Begin an evaluation of the fleet."""
        connection = fleet.UnixConnection(self.f.nodes[0].socket)
        connection.connect()
        connection.sock.settimeout(fleet.PATIENCE)
        self.addCleanup(connection.close)
        connection.request("POST", "/v1/evaluate/fleet?seconds=%d" % seconds)
        return connection

    def wish_of_clients(self, but=()):
        """The daemon's next question with a wish of its own: the wish, and the time that it has left. `but`: random parts."""
        while True:
            wish, left = self.answer()
            if wish and wish >> 20 not in (self.random, *but):
                return wish, left

    def test_hostile_reports_cost_one_question(self):
        self.start()
        run = self.own_run()
        head = "1 0 %s 0 0 1 " % run
        none = "1 0 %s 0 0 2" % run
        scores = "2 2 1 0 1 0 1 500 1 1 1 500 1 1"
        one = "1" + 48 * "0"
        stamp = 0
        for bad in ({"text": head + "2 2 " + scores},                                   # a model of two outputs
                    {"text": head + "4 3 1 " + " ".join(3 * [one + "0", one + 48 * "0", one, one + 48 * "0"])},  # of numbers
                    {"text": head + "4 3 1" + 12 * " 0"},                                # ... which numbers may have
                    {"text": head + "1 3 2 1 0 0 0 1 0 0 0 0"},                          # it ends early
                    {"text": head + sure((1 << 36) + 1)},                                # more rows than anybody has
                    {"text": head + "1 3 18446744073709551616"},
                    {"text": head + sure(2, (1 << 64) - 1)},                             # a sum that overflows
                    {"text": none + " more"},
                    {"text": "1 9 1 2 3 4 5 6 7 8 9 %s 0 0 2" % run},                    # more wishes than a report has
                    {"text": "not a report"},
                    {"text": none, "digest": 1},
                    {"text": none, "kind": 1},                                           # of another subject
                    {"text": none, "bytes": 1 << 20},                                    # beyond the bound of this model
                    {"text": none, "stamp": 1 << 63}):
            stamp += 1
            self.wish()
            self.answer(self.bulletin(**{"stamp": stamp, **bad}))
        for left in {"text": "2 of a later form"}, {"text": none, "stamp": int(time.time() * 1000) + 2 * DAY}, \
                {"text": none, "author": "nobody"}:
            stamp += 1
            self.wish()
            self.answer(self.bulletin(**{"stamp": stamp, **left}))
        self.assertEqual({author for author, _ in self.ask()[1]}, {"n0"})
        for good in "1 0 %s 5 0 2" % run, head + sure(1 << 36):
            stamp += 1
            self.wish()
            self.answer(self.bulletin(good, stamp))
            self.assertIn(("n1", stamp), self.ask()[1])
        self.assertEqual(self.f.nodes[0].end(), 0)

    def test_an_answer_without_end(self):
        """Each text is later than the one before. The second one ends the connection, and the first is kept."""
        self.start()
        run = self.own_run()
        self.wish()
        self.answer(*(self.bulletin("1 0 %s 0 0 2" % run, stamp) for stamp in range(1, 100)))
        self.assertEqual([stamp for author, stamp in self.ask()[1] if author == "n1"], [1])

    def test_a_last_label_that_nobody_has_come_to(self):
        """A report of it leaves those of the fleet's own end in place."""
        self.start(epochs="3")
        self.f.wait_state("finished", [0])
        told = self.f.wait("its report", lambda: (lambda report: report and report["told"] == 1 and report)(self.f.report(0)))
        run = self.f.nodes[0].status()["run"]
        self.wish()
        self.answer(self.bulletin("1 0 %s 1000000000 1 2" % run, 1))
        self.assertIn(("n1", 1), self.ask()[1])
        self.assertEqual(self.f.report(0)["rounds"], told["rounds"])
        self.assertEqual(self.states(self.f.report(0)), self.states(told))

    def test_what_leaves_a_machine(self):
        """Counts and sums alone: after the head each word is a whole number, decimal or, of sums, hexadecimal."""
        self.start()
        self.own_run()
        words = self.own(self.ask()[1])[1]
        confusion = [int(word) for word in words[7:16]]
        self.assertEqual(sum(confusion), 50)
        self.assertEqual([sum(confusion[3 * i:3 * i + 3]) for i in range(3)],
                         [sum(row["label"] == name for row in self.f.tests[0]) for name in CLASSES])
        rest = iter(words[16:])
        for _ in CLASSES:
            used = [[int(next(rest)) for _ in range(3)] for _ in range(int(next(rest)))]
            self.assertEqual(sum(others + own for _, others, own in used), 50)
        parts = [(int(next(rest)), int(next(rest)), int(next(rest), 16)) for _ in range(15)]
        self.assertEqual(sum(rows for rows, _, _ in parts), 50)
        self.assertGreater(int(next(rest), 16), 0)  # the sum of the losses
        self.assertEqual(list(rest), [])  # and nothing else

    def test_questions_that_break_the_rules(self):
        self.start()
        for subject in (2, 7, 1 << 31):
            asker = Peer(self.f.ports[0])
            self.addCleanup(asker.close)
            asker.send(PULL, "n1", "n0", 0, subject)
            self.assertEqual(asker.until_closed()[0], [GOODBYE])
        stranger = Peer(self.f.ports[0])
        self.addCleanup(stranger.close)
        stranger.send(PULL, "nobody", "n0", 0, MEASURES, 1, 1000)
        self.assertEqual(stranger.until_closed()[0], [GOODBYE])
        self.assertEqual(self.ask(next(self.numbers), 0), (PULL, {}))  # without time: nobody measures
        self.own_run()

    def test_a_neighbour_that_does_not_know_measures(self):
        """As an earlier version of sgpd: it says goodbye, or hangs up."""
        self.start()
        for _ in range(2):
            self.wish()
            asker, _ = self.question()
            asker.send(GOODBYE, 12, "it broke the protocol")
            asker.until_closed()
        answer = json.loads(self.evaluation(2).getresponse().read())
        self.assertEqual((answer["told"], answer["silent"]), (1, ["n1"]))

    def test_a_report_of_an_earlier_question_is_no_answer(self):
        """Whatever its stamp: the clock of its author, or of the asker before, may be ahead."""
        self.start()
        run = self.own_run()
        later = int(time.time() * 1000) + 3600 * 1000
        evaluation = self.evaluation(300)
        self.wish_of_clients()
        self.answer(self.bulletin("1 1 %d %s 7 0 1 %s" % (random.getrandbits(60), run, sure(77)), later))
        self.assertIn(("n1", later), self.ask()[1])  # it is taken, but for no answer
        wish, left = self.wish_of_clients()
        self.assertGreater(left, 60000)  # a wish lasts as long as its client waits
        self.answer(self.bulletin("1 1 %d %s 8 0 1 %s" % (wish, run, sure(99)), later + 1))
        answer = json.loads(evaluation.getresponse().read())
        self.assertEqual((answer["told"], answer["rows"]), (2, 50 + 99))

    def test_a_wish_in_the_name_of_another(self):
        """A later one than n0 has made would keep others from its next one: n0 makes it again, under another number."""
        self.start()
        run = self.own_run()
        evaluation = self.evaluation(60)
        wish, _ = self.wish_of_clients()
        forged = wish | (1 << 20) - 1
        self.f.wait("n0 to hear of it", lambda: forged in self.own(self.ask(forged)[1])[0])  # then it has other numbers
        again, _ = self.wish_of_clients(but=[wish >> 20])
        self.answer(self.bulletin("1 1 %d %s 8 0 2" % (again, run), 1))
        self.assertEqual(json.loads(evaluation.getresponse().read())["told"], 2)

    def test_a_node_takes_back_its_name(self):
        """n0 hears a report in the name of n1, which has all reports and asks for none."""
        self.start(epochs="3", daemons=2)
        self.f.wait_state("finished", [0, 1])
        run, label = (lambda status: (status["run"], status["round"]))(self.f.nodes[1].status())
        self.answer(self.bulletin("1 0 %s %d 1 2" % (run, label), 1))
        self.f.wait("all reports", lambda: all((self.f.report(i) or {}).get("told") == 3 for i in (0, 1)))
        forged = self.bulletin("1 0 %s %d 1 2" % (run, label), int(time.time() * 1000) + 3600 * 1000, author="n1")
        self.f.wait("n0 to take it", lambda: self.ask(heads=[forged]) and self.answer(forged, source="n0") and any(
            author == "n1" and stamp >= forged[2] for author, stamp in self.ask()[1]))
        self.f.wait("a later report of n1", lambda: any(
            author == "n1" and stamp > forged[2] and text.split()[5] == "1" for (author, stamp), text in self.ask()[1].items()))
        report = self.f.wait("all reports", lambda: (lambda report: report["told"] == 3 and report)(self.f.report(0)))
        self.assertEqual(self.states(report), {"n0": "measured", "n1": "measured", "n2": "no_rows"})

    def test_a_node_that_waits_for_others_still_evaluates(self):
        self.start()
        self.own_run()
        waiting = [self.evaluation(60) for _ in range(8)]
        self.f.wait("refusals", lambda: sum(bool(select.select([c.sock], [], [], 0)[0]) for c in waiting) >= 4)
        self.assertEqual(self.f.nodes[0].get("/v1/evaluate", "POST")[0], 200)


if __name__ == "__main__":
    fleet.main()
