# SPDX-License-Identifier: Apache-2.0
"""[data] scale = fleet: daemons with rows of their own agree on one scaling before they train, without pooling a row."""
import contextlib
import csv
import json
import math
import os
import random
import signal
import socket
import struct
import subprocess
import sys
from fractions import Fraction

import fleet
import peer
from between import tap_all
from fleet import Fleet, FleetTest
import tls
from peer import BULLETIN, CALL, GOODBYE, PULL, Peer
from tls import TlsFleet

COLOURS = {0: ["red", "blue"], 1: ["red"], 2: ["green", "blue"], 3: ["blue"]}
SGPCTL = tls.SGPCTL = os.path.abspath(sys.argv.pop(2))
MIN_COUNT = 10
RARE = "zebra"  # the value of one row, which is told to nobody


def rows_of(index, rows):
    """Rows of one site: other means and deviations than elsewhere, a column far from 0, a constant one, missing values."""
    draw = random.Random(100 + index)
    for number in range(rows):
        near = draw.gauss(3 * index, 1 + index)
        yield {"near": "%.6g" % near, "far": "%.10g" % (1e8 + draw.gauss(0, 1)),
               "gap": "" if draw.random() < 0.2 else "%.4f" % draw.gauss(-index, 2), "same": "7",
               "colour": RARE if number == 5 and index == 0 else draw.choice(COLOURS[index % 4]),
               "label": "pos" if near > 3 else "neg"}


def moments(values):
    """Mean and deviation of numbers, by rational arithmetic: the mean and the variance are rounded once, and its root."""
    exact = [Fraction(float(v)) for v in values]
    mean = sum(exact) / len(exact)
    variance = sum(x * x for x in exact) / len(exact) - mean * mean
    return float(mean), math.sqrt(variance) if variance else 1.0


def irregular(n, seed):
    """Phases of one digraph: a ring through all nodes in some order, and as many edges more as chance draws."""
    draw = random.Random(seed)
    order = draw.sample(range(n), n)
    edges = set(zip(order, order[1:] + order[:1])) | {tuple(draw.sample(range(n), 2)) for _ in range(n if n > 1 else 0)}
    return [sorted(edge for edge in edges if edge[0] != edge[1])]


NO_ROWS = {key: None for key in ("data.train", "data.label", "data.classes", "data.holdout", "data.shards", "data.missing",
                                 "data.categories")}


def opens(pid, path):
    """Whether the process has this file open."""
    folder = "/proc/%d/fd/" % pid
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(folder + name) == path:
                return True
    return False


class Sites(Fleet):
    """n daemons, each with a table of its own; the configuration of a relay names none."""

    def __init__(self, n=4, relays=(), **arguments):
        options = {"data.scale": "fleet", "data.categories": "colour", "data.shards": "none", "data.missing": "mean",
                   "train.epochs": "3", "model.layers": "dense 4 relu, dense 2", **arguments.pop("options", {})}
        self.tables = {}
        self.version = 1
        self.relays = list(relays)
        own = {i: {**(NO_ROWS if i in relays else {"data.train": "rows%d.csv" % i}), **arguments.get("own", {}).get(i, {})}
               for i in range(n)}
        super().__init__(n, **{**arguments, "options": options, "own": own})
        for i in range(n):
            self.write_table(i, list(rows_of(i, 60 + 40 * i)))

    def says(self):
        return super().says() + "  version=%d;\n" % self.version

    def says_of(self, index):
        return super().says_of(index) + (", train=false" if index in self.relays else "")

    def write_table(self, index, rows):
        self.tables[index] = rows
        with open(os.path.join(self.directory, "rows%s.csv" % index), "w", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)

    def scale_bytes(self, index):
        with open(os.path.join(self.nodes[index].directory, "scale.json"), "rb") as file:
            return file.read()

    def reload(self, indices):
        for i in indices:
            self.nodes[i].kill(signal.SIGHUP)


class CipheredSites(Sites, TlsFleet):
    pass


class Hidden(Sites):
    """n1 has rows, and cannot be dialled: it dials the others."""

    def __init__(self):
        super().__init__(3, own={1: {"network.listen": "none"}})

    def address(self, index, other):
        return "none" if other == 1 else super().address(index, other)


class ScaleFleet(FleetTest):
    def sites(self, *arguments, **keywords):
        f = Sites(*arguments, **keywords)
        self.addCleanup(f.close)
        return f

    def check_scaling(self, f, members):
        """The file of every member is one text, and its numbers are those of the pooled rows."""
        texts = {f.scale_bytes(i) for i in members}
        self.assertEqual(len(texts), 1)
        told = json.loads(texts.pop())
        pooled = [row for i in members for row in f.tables[i]]
        columns = {column["name"]: column for column in told["columns"]}
        self.assertEqual(told["rows"], len(pooled))
        for name in pooled[0].keys() - {"colour", "label"}:
            found = columns[name]["mean"], columns[name]["deviation"]
            self.assertEqual(found, moments([row[name] for row in pooled if row[name]]), name)
        self.assertEqual(columns["same"]["deviation"], 1)
        self.assertEqual(columns["colour"]["values"], sorted({c for i in members for c in COLOURS[i % 4]}))
        for label in ("neg", "pos"):
            counts = [sum(row["label"] == label for row in f.tables[i]) for i in members]
            self.assertEqual(told["classes"].get(label, 0), sum(count for count in counts if count >= MIN_COUNT))
        return told

    def finish(self, f, members):
        f.wait_state("finished", members)
        models = [fleet.read_model(f.nodes[i].get("/v1/model")[1]) for i in members]
        for model in models[1:]:
            self.assertLess(max(abs(a - b) for a, b in zip(model, models[0])), 1e-4)

    def wait_for(self, f, name, members):
        def waits(status):
            return status and (status["waiting"] or {}).get("peer") == name
        f.wait("all to wait for " + name, lambda: all(waits(f.nodes[i].status()) for i in members))

    def test_nodes_with_rows_of_their_own_agree_to_the_bit(self):
        f = self.sites()
        f.start()
        self.finish(f, range(4))
        self.check_scaling(f, range(4))
        self.assertIn("1 values of columns of words are not in the scaling", f.nodes[0].log())
        for i in range(4):
            self.assertNotIn(RARE.encode(), f.scale_bytes(i))

    def test_names_with_a_control_character_are_told(self):
        """A DEL is no printable character, so a text that travels has it escaped. n2 comes late, and asks for the result."""
        f = self.sites(3)
        for i in range(3):
            f.write_table(i, [{**row, "o\x7fdd": row["near"], "colour": "\x7f"} for row in f.tables[i]])
        f.start()
        self.finish(f, range(3))
        os.remove(os.path.join(f.nodes[2].directory, "scale.json"))
        f.nodes[2].end()
        f.nodes[2].start()
        f.wait("n2 to adopt the scaling", lambda: os.path.exists(os.path.join(f.nodes[2].directory, "scale.json")))
        self.assertEqual({f.scale_bytes(i) for i in range(3)}, {f.scale_bytes(0)})
        self.assertIn(b"o\\u007fdd", f.scale_bytes(0))

    def test_any_number_of_nodes_on_irregular_digraphs(self):
        """Each node has a number of rows of its own; one fleet has a thousand columns more."""
        for n, more in ((1, 0), (3, 1000), (7, 0), (12, 0)):
            with self.subTest(nodes=n):
                f = self.sites(n, phases=irregular(n, n))
                for i in range(n):
                    draw = random.Random(i)
                    wide = ["%.6g" % draw.gauss(number, 1 + number % 7) for number in range(more)]
                    rows = [{"w%d" % c: wide[(c + k) % more] for c in range(more)} for k in range(60 + 7 * i)]
                    f.write_table(i, [{**row, **own} for row, own in zip(rows_of(i, len(rows)), rows)])
                f.start()
                for i in range(n):
                    f.wait_log(i, "event=scaling agreed=")
                self.check_scaling(f, range(n))
                f.close()

    def test_a_relay_passes_on_and_learns_the_inputs(self):
        """All that others hear of each other goes through n3."""
        f = self.sites(4, relays=[3], phases=[[(0, 3), (1, 3), (2, 3)], [(3, 0), (3, 1), (3, 2)]])
        f.start()
        self.finish(f, range(4))
        self.check_scaling(f, range(3))
        self.assertEqual(f.scale_bytes(3), f.scale_bytes(0))

    def test_with_tls_only_who_has_a_key_of_the_file_is_answered(self):
        f = CipheredSites(3)
        self.addCleanup(f.close)
        f.start([0, 1])
        self.wait_for(f, "n2", [0, 1])
        stranger = Peer(f.ports[0])
        self.addCleanup(stranger.close)
        stranger.send(PULL, "n2", "n0", 0)
        self.assertEqual(stranger.until_closed()[0], [GOODBYE])
        f.wait_log(0, "it speaks without TLS")
        f.start([2])
        self.finish(f, range(3))
        self.check_scaling(f, range(3))

    def test_who_restarts_uses_the_agreed_scaling(self):
        f = self.sites(2, options={"train.when_done": "exit"})
        f.start()
        for node in f.nodes:
            self.assertEqual(node.process.wait(fleet.PATIENCE), 0)
        before = f.scale_bytes(0)
        f.write_table(0, list(rows_of(1, 50)))
        f.nodes[0].start()
        f.wait_log(0, "event=start", fleet.PATIENCE)
        self.assertEqual(f.nodes[0].log().count("event=scaling"), 1)
        self.assertEqual(f.scale_bytes(0), before)

    def test_whoever_comes_between_the_wait_and_the_node_finds_a_daemon(self):
        """While the rows are read, clients can connect, and wait."""
        f = self.sites(2, options={"data.categories": None, "data.ignore": "colour"})
        f.write_table(0, list(rows_of(0, 40000)))
        f.start([0])
        f.wait_state("awaiting_scaling", [0])
        f.start([1])
        self.assertEqual(set(f.connect_until(0, "event=start")), {0})

    def test_a_silent_member_is_named_and_can_be_struck(self):
        f = self.sites()
        f.start([0, 1, 2])
        statuses = f.wait_state("awaiting_scaling", [0, 1, 2])
        code, body = f.nodes[0].get("/v1/predict", "POST", b"near,far\n1,2\n")
        self.assertEqual((code, b"not agreed on a scaling yet" in body), (409, True), body)
        self.wait_for(f, "n3", range(3))
        self.assertTrue(all(status["round"] is None for status in statuses))
        f.version += 1
        f.rewire([0, 1, 2], [[(0, 1), (1, 2), (2, 0)]])
        answer = f.nodes[0].json("/v1/reload", "POST")
        self.assertEqual((answer["nodes"], answer["nodes_removed"]), (3, 1))
        f.reload([1, 2])
        self.finish(f, [0, 1, 2])
        self.check_scaling(f, [0, 1, 2])

    def test_members_are_killed_at_every_stage(self):
        f = self.sites()
        f.start([0, 1, 2])
        self.wait_for(f, "n3", range(3))
        f.nodes[1].end(signal.SIGKILL)
        f.write_table(1, list(rows_of(1, 77)))  # other rows than those that it has told
        f.nodes[1].start()
        f.wait_state("awaiting_scaling", [1])
        f.nodes[3].start()
        f.wait_log(3, "event=scaling")
        f.nodes[3].end(signal.SIGKILL)
        os.remove(os.path.join(f.nodes[3].directory, "scale.json"))  # it has forgotten that it agreed
        f.nodes[3].start()
        self.finish(f, range(4))
        self.check_scaling(f, range(4))

    def voters(self, f, index):
        """The authors of the votes that a waiting node passes on."""
        asker = Peer(f.ports[index])
        self.addCleanup(asker.close)
        asker.send(PULL, "n1", "n%d" % index, 0)
        voters = set()
        while True:
            kind, fields = asker.receive(BULLETIN, PULL, GOODBYE)
            if kind != BULLETIN:
                return voters
            voters |= {fields[1]} if fields[0] == VOTE else set()

    def test_who_cannot_be_dialled_is_heard(self):
        f = Hidden()
        self.addCleanup(f.close)
        f.start()
        self.finish(f, range(3))
        self.check_scaling(f, range(3))

    def test_who_cannot_be_dialled_tells_the_result(self):
        """n1 learns the votes of all others in the answer for which it votes itself, so it freezes first."""
        f = Hidden()
        self.addCleanup(f.close)
        f.start([0, 1])
        self.wait_for(f, "n2", [0, 1])
        f.nodes[1].kill(signal.SIGSTOP)
        f.start([2])
        f.wait("the votes of both at both", lambda: all(self.voters(f, i) >= {"n0", "n2"} for i in (0, 2)))
        f.nodes[1].kill(signal.SIGCONT)
        self.finish(f, range(3))
        self.check_scaling(f, range(3))

    def test_a_reload_ends_no_node_at_any_stage(self):
        f = self.sites(2)
        f.start()
        def storm():
            f.reload([i for i in (0, 1) if "event=survey" in f.nodes[i].log()])
            self.assertEqual([node.process.poll() for node in f.nodes], [None, None])
            return all("event=start" in node.log() for node in f.nodes)
        f.wait("both to train", storm)
        self.finish(f, range(2))

    def test_a_relay_that_gets_rows_tells_them(self):
        f = self.sites(3)
        f.relays = [2]
        f.rewire(range(3), f.phases)
        f.start([1, 2])
        self.wait_for(f, "n0", [1, 2])
        f.version += 1
        f.relays = []
        f.rewire(range(3), f.phases)
        f.reload([1, 2])
        f.start([0])
        self.finish(f, range(3))
        self.check_scaling(f, range(3))

    def test_a_late_joiner_adopts(self):
        ring = [[(0, 1), (1, 2), (2, 0)]]
        f = self.sites(phases=ring, options={"train.epochs": "100000"})
        f.rewire([0, 1, 2], ring)
        f.start([0, 1, 2])
        f.wait_log(0, "event=start")
        f.wait_round(0, 5)
        f.rewire(range(4), [[(0, 1), (1, 2), (2, 3), (3, 0)]])
        f.reload([0, 1, 2])
        f.nodes[3].start()
        f.wait_log(3, "event=start")
        self.assertIn("event=scaling agreed=before", f.nodes[3].log())
        self.assertEqual(f.scale_bytes(3), f.scale_bytes(0))
        f.wait_state("training", [3])

    def test_words_among_numbers_are_told_to_all_and_mended_at_one(self):
        f = self.sites(3)
        good = f.tables[1]
        f.write_table(1, [dict(row, near="unknown") if number == 8 else row for number, row in enumerate(good)])
        f.start()
        f.wait("the reason everywhere", lambda: all(
            "'near'" in ((node.status() or {}).get("last_error") or "") for node in f.nodes))
        for node in f.nodes:
            self.assertRegex(node.status()["last_error"], "column 'near' .*n1.*categories")
        self.assertIn("rows1.csv:10:", f.nodes[1].log())
        self.assertNotIn("unknown", f.nodes[0].log())
        self.assertEqual(f.nodes[1].end(), 0)
        f.write_table(1, good)
        f.nodes[1].start()
        self.finish(f, range(3))
        self.check_scaling(f, range(3))

    def test_the_check_uses_the_rows_of_this_node(self):
        f = self.sites(2)
        status, text = f.check()
        self.assertEqual(status, 0, text)
        self.assertIn("scaling    of these rows alone", text)
        self.assertFalse(os.path.exists(f.nodes[0].directory))
        f.write_table(0, [dict(row, gap="much") if number == 2 else row for number, row in enumerate(f.tables[0])])
        status, text = f.check()
        self.assertEqual(status, 6)
        self.assertRegex(text, "rows0.csv:4: .*'gap'.*categories")

    def test_the_check_takes_columns_that_other_nodes_tell(self):
        """Empty columns, and values that each fewer than min_count rows of this node have, may be told by others."""
        f = self.sites(2, options={"data.categories": "colour, shade"})
        rows = f.tables[1]
        f.write_table(1, [dict(row, shade="dark", odd="%d" % (number % 5)) for number, row in enumerate(rows)])
        few = list(rows_of(0, 16))  # 8 of each class
        f.write_table(0, [dict(row, gap="", shade="", odd="3" if number < 4 else "", label=("neg", "pos")[number % 2],
                               colour=("red", "blue")[number % 2]) for number, row in enumerate(few)])
        status, text = f.check()
        self.assertEqual(status, 0, text)
        self.assertIn("rows0.csv: column 'gap' is not told by this node, because too few of its rows have it (min_count); another "
                      "node must tell it", text)
        f.start()
        self.finish(f, range(2))

    def test_the_check_names_a_label_that_no_row_has(self):
        f = self.sites(2)
        f.write_table(0, [dict(row, label="") for row in rows_of(0, 20)])
        status, text = f.check()
        self.assertEqual((status, text.count("\n")), (6, 1), text)
        self.assertRegex(text, "rows0.csv: no row has a value of the label 'label'; correct the table, or .* label")

    def test_keys_that_cannot_be_have_one_line(self):
        """It names the place and the remedy."""
        f = self.sites(2)
        for key, value, line in (
                ("data.min_count", "0", '"0" is not a whole number from 1 to 1000000; write digits'),
                ("data.min_count", "1000001", '"1000001" is not a whole number from 1 to 1000000; write digits'),
                ("data.missing", "maybe", '"maybe" does not exist; choose one of error|drop|mean'),
                ("data.categories", '"colour', "the quote before 'colour' is never closed; close it"),
                ("data.ignore", "label", "'label' is the label; ignore other columns"),
                ("data.ignore", '"near', "the quote before 'near' is never closed; close it"),
                ("data.label", "label, near", '2 columns, and classes are the values of one; leave classes out, or put'),
                ("data.label", "label, label", '2 columns, and classes are the values of one; leave classes out, or put'),
                ("data.holdout", "0.95", '"0.95" is not a number from 0 to 0.9; write it like'),
                ("data.shards", "some", "shards = some: unknown; round-robin, contiguous, sorted, dirichlet:A or none"),
                ("model.class_weights", "balancd", "'balancd' is not a number; list one number for each class"),
                ("model.class_weights", "1, -2", "class weight 2 is -2; numbers from 0 to 1e+06 would be right"),
                ("train.keep_best", "loss", '"loss" does not exist; choose one of none|accuracy|log_loss|absolute_error|squared_error'),
                ("train.evaluate_every", "1", '"1" is not a whole number from 2 to 1000000000000; write digits'),
                ("train.best_patience", "1000001", '"1000001" is not a whole number from 0 to 1000000; write digits')):
            with self.subTest(key=key, value=value):
                f.write_configuration(0, {"data.scale": "fleet", "data.categories": "colour", "data.shards": "none",
                                          "data.train": "rows0.csv", "data.missing": "mean", key: value}, {})
                section, name = key.split(".")
                with open(f.nodes[0].configuration, encoding="utf-8") as file:
                    number = 1 + [text.split(" = ")[0] for text in file].index(name)
                status, text = f.check()
                self.assertEqual((status, text.count("\n")), (6, 1), text)
                self.assertIn("n0.conf:%d: [%s] %s: %s" % (number, section, name, line), text)

    def test_files_that_cannot_be_have_one_line(self):
        f = self.sites(2, options={"data.categories": None})
        for data, line in (
                (b"", ":1: the file is empty; the first line names the columns"),
                (b"near,label\n", ":2: no rows; at least one is needed"),
                (b"near,label\n1\n", ":2: 1 fields, but the first line names 2 columns"),
                (b"near,near,label\n1,2,pos\n", ":1: two columns are named 'near'; the first line gives every column its own name"),
                (b"near,far\n1,2\n", ":1: there is no column 'label'; the columns are near, far"),
                (b"near,label\n1e400,pos\n", ":2: column 'near': '1e400' is not a number; name the column in categories or in ignore"),
                (b"near,la\0bel\n1,pos\n", ":1: a zero byte in field 2; CSV is text (is the file UTF-16?)"),
                (b"n\xe9ar,label\n" + 10 * b"1,pos\n", "is not UTF-8; convert the file, or name the column in ignore on every node"),
                (b"\x1f\x8b\x08 damaged", "the gzip data is damaged (unknown header flags set); copy the file again")):
            with self.subTest(line=line):
                with open(os.path.join(f.directory, "rows0.csv"), "wb") as file:
                    file.write(data)
                done = subprocess.run([*f.command(f.nodes[0]), "--check"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      timeout=fleet.PATIENCE, check=False)
                text = done.stdout.decode(errors="backslashreplace")
                self.assertEqual((done.returncode, text.count("\n")), (6, 1), text)
                self.assertIn(f.directory + "/rows0.csv", text)
                self.assertIn(line, text)

    def test_kept_scalings_that_cannot_be_have_one_line(self):
        f = self.sites(2)
        os.mkdir(f.nodes[0].directory)
        path = os.path.join(f.nodes[0].directory, "scale.json")
        whole = {"sgp_scaling": 1, "columns": [{"name": "near", "mean": 1, "deviation": 2}], "version": 1}
        for change, line in (
                ({"version": None}, "not a scaling on which a fleet has agreed; remove it, and all nodes agree again"),
                ({"version": -1}, "not a scaling on which a fleet has agreed; remove it, and all nodes agree again"),
                ({"sgp_scaling": 9}, "not a scaling file; "),
                ({"columns": []}, "0 columns; 1 to 65536 would be right"),
                ({"columns": [{"name": "near", "mean": 1, "deviation": 0}]},
                 "column 'near' has mean 1 and deviation 0; a finite mean and a deviation above 0 would be right")):
            with self.subTest(change=change):
                with open(path, "w", encoding="ascii") as file:
                    json.dump({**whole, **change}, file)
                status, text = f.check()
                self.assertEqual((status, text.count("\n")), (6, 1), text)
                self.assertIn(path + ": " + line, text)
        with open(path, "w", encoding="ascii") as file:
            file.write(json.dumps(whole)[:40])
        self.assertIn(path + ": not a scaling on which a fleet has agreed; remove it", f.check()[1])

    def test_sgpctl_shows_and_exports_it(self):
        def ctl(*words):
            return subprocess.run([SGPCTL, "-s", f.nodes[0].socket, *words], capture_output=True, text=True,
                                  timeout=fleet.PATIENCE, check=False)
        f = self.sites(2)
        f.start([0])
        f.wait_state("awaiting_scaling", [0])
        self.assertIn("agreed", ctl("scaling", "show").stderr)
        f.start([1])
        f.wait_state("finished")
        self.assertEqual(json.loads(ctl("scaling", "show", "--json").stdout), json.loads(f.scale_bytes(0)))
        shown = ctl("scaling", "show").stdout
        self.assertIn("rows: n0 60, n1 100", shown)
        self.assertRegex(shown, r"(?m)^far +1000000\d\d\.?\d* +\d")
        self.assertRegex(shown, r"(?m)^colour +blue, red$")
        path = os.path.join(f.directory, "again.json")
        self.assertIn("6 features", ctl("scaling", "export", path).stdout)
        with open(path, encoding="utf-8") as file:
            told = json.load(file)
        self.assertEqual(told, {"sgp_scaling": 1, "columns": json.loads(f.scale_bytes(0))["columns"]})

    def test_rows_of_a_class_that_nobody_told_are_left_out(self):
        """Fewer than MIN_COUNT rows of n1 alone are of the class `odd`, which no configuration names."""
        f = self.sites(2)
        rows = f.tables[1]
        f.write_table(1, [dict(row, label="odd") if number in (3, 50, 51) else row for number, row in enumerate(rows)])
        f.start()
        self.finish(f, range(2))
        self.assertNotIn(b"odd", f.scale_bytes(0))
        self.assertIn("rows1.csv: 3 rows are left out, the first in line 5: their class is not in [data] classes", f.nodes[1].log())
        self.assertRegex(f.nodes[1].log(), r'event=start .*data="97 rows')
        self.assertNotIn("left out", f.nodes[0].log())

    def test_a_class_that_is_told_must_be_named(self):
        f = self.sites(2)
        f.write_table(1, [dict(row, label="odd") if number < MIN_COUNT else row for number, row in enumerate(f.tables[1])])
        f.start()
        f.wait("n1 to end", lambda: f.nodes[1].process.poll() is not None)
        self.assertIn("'odd' is not among the classes; list every class", f.nodes[1].log())

    def test_a_scaling_of_other_columns(self):
        """The table has lost a column since the nodes agreed: their agreement is named, and no key of the configuration."""
        f = self.sites(2, options={"train.when_done": "exit"})
        f.start()
        for node in f.nodes:
            self.assertEqual(node.process.wait(fleet.PATIENCE), 0)
        f.write_table(0, [{k: v for k, v in row.items() if k != "gap"} for row in f.tables[0]])
        f.nodes[0].start()
        self.assertNotEqual(f.nodes[0].process.wait(fleet.PATIENCE), 0)
        [line] = [line for line in f.nodes[0].log().splitlines() if "'gap'" in line]
        self.assertRegex(line, r"rows0.csv:1: there is no column 'gap', on which the nodes have agreed \(near, far, gap.*; correct "
                         r"the table, or, to agree on other columns, stop all nodes, remove \S+/n0/scale.json on each")
        self.assertNotIn("[data] scale", line)

    def test_a_scaling_that_cannot_be_read(self):
        f = self.sites(2)
        os.mkdir(f.nodes[0].directory)
        path = os.path.join(f.nodes[0].directory, "scale.json")
        os.symlink("scale.json", path)  # ELOOP, also for root, who may read everything
        status, text = f.check()
        self.assertEqual(text.count("\n"), 1, text)
        self.assertNotEqual(status, 0)
        self.assertIn(path + ": the scaling on which the nodes have agreed cannot be read: Too many levels of symbolic links; let "
                      "the user of sgpd read", text)
        if os.getuid() != 0:
            os.remove(path)
            with open(path, "w", encoding="ascii"):
                os.chmod(path, 0)
            self.assertIn("cannot be read: Permission denied; let", f.check()[1])

    def test_two_nodes_do_not_wait_in_one_state_directory(self):
        f = self.sites(3, own={1: {"node.state_directory": "n0"}})
        f.start([0])
        f.wait_state("awaiting_scaling", [0])
        f.start([1])
        self.assertEqual(f.nodes[1].process.wait(fleet.PATIENCE), 1, f.nodes[1].log())
        self.assertEqual(f.nodes[1].log().count("\n"), 1, f.nodes[1].log())
        self.assertIn(f.nodes[0].directory + ": another sgpd uses this state directory; stop it", f.nodes[1].log())
        self.assertEqual(f.nodes[0].status()["state"], "awaiting_scaling")

    def test_a_state_directory_that_cannot_be_written_is_found_before_the_wait(self):
        f = self.sites(2)
        path = os.path.join(f.nodes[0].directory, "scale.json")
        os.makedirs(path + ".new")  # in the way of the file, also for root
        f.start([0])
        self.assertEqual(f.nodes[0].process.wait(fleet.PATIENCE), 1, f.nodes[0].log())  # not 78: it is tried again
        self.assertIn(path + ".new: cannot be written: File exists", f.nodes[0].log())
        os.rmdir(path + ".new")
        f.start()
        self.finish(f, range(2))

    def test_an_order_to_stop_ends_the_wait(self):
        f = self.sites(2)
        f.start([0])
        f.wait_state("awaiting_scaling", [0])
        self.assertEqual(f.nodes[0].end(), 0)
        self.assertFalse(os.path.exists(os.path.join(f.nodes[0].directory, "scale.json")))


    def test_an_order_to_stop_ends_the_reading_of_rows(self):
        """With an agreed scaling, too: a table may take longer than systemd waits."""
        f = self.sites(2)
        table = f.tables[0] * 400
        f.write_table(0, table)
        f.start()
        f.wait_state("finished")
        node = f.nodes[0]
        for one in f.nodes:
            one.end()
        path = os.path.join(f.directory, "rows0.csv")
        with open(path, "a", encoding="utf-8") as file:
            for _ in range(40):
                csv.DictWriter(file, list(table[0])).writerows(table)
        told = len(node.log())
        node.start()
        f.wait("n0 to read its rows", lambda: opens(node.process.pid, path), interval=0.001)
        node.kill(signal.SIGTERM)
        self.assertEqual(node.process.wait(fleet.PATIENCE), 0)
        self.assertNotIn("event=start", node.log()[told:])


class Wire(FleetTest):
    """All that passes between nodes is heard: figures, votes, training, evaluations, reports, copies of the best model."""

    def fleet_of(self, rows, options=None):
        f = Sites(3, options={"data.categories": None, "train.keep_best": "log_loss", "train.evaluate_every": "10",
                              **(options or {})})
        self.addCleanup(f.close)
        self.fleets = getattr(self, "fleets", []) + [f]
        for i in range(3):
            draw = random.Random(50 + i)
            f.write_table(i, [{name: repr(draw.gauss(3 * i, 2)) for name in ("near", "far", "gap")} | {
                "label": ("neg", "pos")[number % 2]} for number in range(rows[i])])
        taps = tap_all(f)
        for tap in taps.values():
            self.addCleanup(tap.close)
        return f, taps

    @staticmethod
    def traces_of(text, scaled):
        """What a value may look like on a line: its digits, a number of any size and order of bytes, in hexadecimal, and as an
        integer of the figures; and its scaled value, which is the feature."""
        value = float(text)
        digits = text.lstrip("-")[:12].encode()
        whole = b"%x" % (abs(int(Fraction(value) * 2 ** 192)))
        forms = {struct.pack(order + "d", number) for order in "<>" for number in (value, scaled)}
        return [digits, whole.rstrip(b"0"), *forms, *(form.hex().encode() for form in forms)]

    def found(self, f, taps, members):
        """How many rows of these nodes left a trace on any line, and what was heard."""
        everything = b"|".join(bytes(part) for tap in taps.values() for part in tap.heard)
        scales = {c["name"]: c for c in json.loads(f.scale_bytes(0))["columns"]}
        seen = 0
        for row in (row for i in members for row in f.tables[i]):
            features = [(float(row[name]) - scale["mean"]) / scale["deviation"] for name, scale in scales.items()]
            traces = [trace for name, feature in zip(scales, features) for trace in self.traces_of(row[name], feature)]
            for pair in zip(features, features[1:]), ((float(row[a]), float(row[b])) for a, b in zip(scales, list(scales)[1:])):
                traces += [struct.pack(order + "2f", *two) for order in "<>" for two in pair]
            seen += any(trace in everything for trace in traces)
        return seen, everything

    def test_no_row_is_on_any_line(self):
        f, taps = self.fleet_of((60, 80, 45))
        f.start()
        f.wait_state("finished")
        f.wait("the report of all", lambda: f.nodes[1].json("/v1/report").get("told") == 3)
        seen, everything = self.found(f, taps, range(3))
        self.assertEqual(seen, 0)
        for i in range(3):  # what is told of each node, and parameters of each
            total = sum(Fraction(float(row["near"])) for row in f.tables[i])
            self.assertIn(b"%x" % (abs(int(total * 2 ** 192))), everything)
        for way, tap in taps.items():
            self.assertGreater(sum(map(len, tap.heard)), 1000, way)

    def test_a_row_that_is_told_is_found(self):
        """One row of a node that tells whatever it has, which no configuration does unasked."""
        f, taps = self.fleet_of((60, 1, 45), {"data.min_count": "1", "data.holdout": "0", "train.keep_best": None,
                                              "train.evaluate_every": None})
        f.start()
        for i in range(3):
            f.wait_log(i, "event=scaling agreed=")
        f.wait("the figures on a line", lambda: self.found(f, taps, [1])[0] == 1)
        self.assertEqual(self.found(f, taps, [0, 2])[0], 0)


class Rare(Sites):
    """One row in 20 is of the class `ill`, and the two classes overlap. Sites have different parts of them."""

    OPTIONS = {}

    def __init__(self, seed, weights):
        super().__init__(3, options={"model.class_weights": weights, "data.holdout": None, "data.test": "rowstest.csv",
                                     "data.categories": None, "data.classes": "well ill", "model.layers": "dense 2",
                                     "train.epochs": "15", **self.OPTIONS})
        for i in range(3):
            self.write_table(i, self.rows_of(seed * 10 + i, 300 + 100 * i, (0.02, 0.05, 0.08)[i]))
        self.write_table("test", self.rows_of(seed * 10 + 9, 2000, 0.05))

    def rows_of(self, seed, rows, part):
        draw = random.Random(seed)
        for number in range(rows):
            ill = number < max(MIN_COUNT, part * rows)
            a, b = self.features_of(draw, ill)
            yield {"a": "%.5f" % a, "b": "%.5f" % b, "label": "ill" if ill else "well"}

    @staticmethod
    def features_of(draw, ill):
        return draw.gauss(50 + 8 * ill, 8), draw.gauss(-1 + 2 * ill, 2)

    def write_table(self, index, rows):
        rows = list(rows)
        random.Random(str(index)).shuffle(rows)
        super().write_table(index, rows)


class Risk(Rare):
    """One row in eight has a mark, and three in ten of these are ill; so no row is more likely ill than well. Steps are those of
    `sgpctl config new`."""

    OPTIONS = {"train.epochs": "80", "train.batch": "32", "optimizer.learning_rate": "0.02", "optimizer.schedule": "cosine",
               "optimizer.weight_decay": "0.01"}

    @staticmethod
    def features_of(draw, ill):
        return draw.random() < (0.75 if ill else 0.09), draw.gauss(-1, 2)


class Balanced(FleetTest):
    def train(self, *arguments, kind=Rare):
        f = kind(*arguments)
        self.addCleanup(f.close)
        f.start()
        f.wait_state("finished")
        return f

    def test_weights_are_those_of_the_rows_of_all(self):
        f = self.train(1, "balanced")
        rows = [row["label"] for i in range(3) for row in f.tables[i]]
        weights = [len(rows) / (2 * rows.count(name)) for name in ("well", "ill")]
        fleets = [f, self.train(1, "%.9g, %.9g" % tuple(weights)), self.train(1, "")]
        balanced, numbers, plain = (fleet.read_model(one.nodes[0].get("/v1/model")[1]) for one in fleets)
        self.assertLess(max(abs(a - b) for a, b in zip(balanced, numbers)), 1e-5)
        self.assertGreater(max(abs(a - b) for a, b in zip(balanced, plain)), 0.1)

    def test_a_rare_class_is_found_better(self):
        """More of its rows are found; the price is false alarms, so F1 may fall where classes overlap as much as here."""
        for seed in range(5 if fleet.LONG else 1):
            with self.subTest(seed=seed):
                recall = {}
                for weights in ("balanced", ""):
                    f = self.train(seed, weights)
                    measures = f.nodes[0].json("/v1/evaluate", "POST")["measures"]
                    recall[weights] = [one["recall"] for one in measures["classes"]]
                    f.close()
                self.assertGreater(recall["balanced"][1], recall[""][1] + 0.3)
                self.assertGreater(sum(recall["balanced"]), sum(recall[""]))

    def test_macro_f1_is_better_where_no_row_is_likely_of_the_rare_class(self):
        """Without weights the model never says it."""
        for seed in range(5 if fleet.LONG else 1):
            with self.subTest(seed=seed):
                found = {}
                for weights in ("balanced", ""):
                    f = self.train(seed, weights, kind=Risk)
                    found[weights] = f.nodes[0].json("/v1/evaluate", "POST")["measures"]["macro_f1"]
                    f.close()
                print("# seed %d: macro-F1 %.3f with weights, %.3f without" % (seed, found["balanced"], found[""]), flush=True)
                self.assertGreater(found["balanced"], found[""] + 0.1)

    def test_it_needs_the_classes_of_all(self):
        f = Rare(1, "balanced")
        self.addCleanup(f.close)
        f.write_configuration(0, {"model.class_weights": "balanced"}, {})
        self.assertRegex(f.check()[1], "class_weights: balanced needs .*scale = fleet")


FIGURES, VOTE, RESULT = 1, 2, 3


class Foreign(FleetTest):
    """n1 is no daemon of ours: it shares no line with lib/survey."""

    def setUp(self):
        self.f = Sites(2)
        self.addCleanup(self.f.close)
        self.f.write_table(0, list(rows_of(0, 60)))

    def start(self):
        self.f.start([0])
        self.f.wait_state("awaiting_scaling", [0])

    def pull(self, *heads, name="n1"):
        """What the daemon answers: {(kind, author, stamp, digest): text}."""
        asker = Peer(self.f.ports[0])
        self.addCleanup(asker.close)
        asker.send(PULL, name, "n0", len(heads))
        for head in heads:
            asker.send(BULLETIN, *head, 0, 0, "")
        told = {}
        while True:
            kind, fields = asker.receive(BULLETIN, PULL, GOODBYE)
            if kind != BULLETIN:
                return told, kind, fields
            label, author, stamp, digest, size, first, text = fields
            self.assertEqual(len(told.setdefault((label, author, stamp, digest), "")), first)
            told[label, author, stamp, digest] += text
            self.assertLessEqual(first + len(text), size)

    def test_what_leaves_a_machine(self):
        rows = [dict(row, rare="5" if number < 9 else "") for number, row in enumerate(rows_of(0, 60))]
        self.f.write_table(0, rows)
        self.start()
        told, kind, fields = self.pull()
        self.assertEqual((kind, fields), (PULL, ["n0", "n1", 0, 0, 0, 0]))
        [(head, text)] = told.items()
        self.assertEqual(head[:2], (FIGURES, "n0"))
        self.assertEqual(head[3], peer.checksum(text.encode()))
        self.assertNotIn(RARE, text)
        figures = json.loads(text)
        columns = {column[0]: column[1:] for column in figures["columns"]}
        self.assertEqual(figures["rows"], 60)
        self.assertEqual(columns["rare"][:2], ["numbers", 0])
        self.assertFalse(any(row["near"] in text for row in rows))
        self.assertEqual(self.pull(head)[0], {}, "what the asker holds is not sent")

    def test_a_member_that_votes_for_all_it_hears(self):
        """The daemon freezes when the votes of all are there, and trains with what it computed."""
        self.start()
        [(head, text)] = self.pull()[0].items()
        self.f.nodes[0].end()
        listener = self.listen()
        self.f.nodes[0].start()
        own = self.answer(listener, [(FIGURES, "n1", 5, text)])
        votes = [vote for vote in own if vote[0] == VOTE] or [vote for vote in self.answer(listener, []) if vote[0] == VOTE]
        self.answer(listener, [(VOTE, "n1", 0, votes[0][3])])
        self.f.wait_log(0, "event=scaling agreed=now")
        told = json.loads(self.f.scale_bytes(0))
        self.assertEqual(told["members"], {"n0": 60, "n1": 60})
        self.assertEqual(head[1], "n0")
        told = self.wait_result()
        [(head, text)] = told.items()
        self.assertEqual(head[:3], (RESULT, "n0", 1))
        self.assertEqual(text.encode() + b"\n", self.f.scale_bytes(0))

    def wait_result(self):
        """What the running node answers: it begins to listen again when its learner is there."""
        def ask():
            try:
                return self.pull()[0]
            except (OSError, peer.Closed):
                return None
        return self.f.wait("the result of a running node", ask)

    def listen(self):
        listener = socket.create_server(("127.0.0.1", self.f.ports[1]))
        listener.settimeout(fleet.PATIENCE)
        self.addCleanup(listener.close)
        return listener

    def answer(self, listener, bulletins):
        """The next question of the daemon: what it holds, after it was answered."""
        sock, _ = listener.accept()
        asker = Peer(sock=sock)
        self.addCleanup(asker.close)
        _, (_, _, count, *_) = asker.receive(PULL)
        heads = [asker.receive(BULLETIN)[1] for _ in range(count)]
        for kind, author, stamp, text in bulletins:
            if kind == VOTE:
                asker.send(BULLETIN, VOTE, author, 0, text, 0, 0, "")
                continue
            for first in range(0, len(text), 500):
                asker.send(BULLETIN, kind, author, stamp, peer.checksum(text.encode()), len(text), first,
                           text[first:first + 500])
        asker.send(PULL, "n1", "n0", 0)
        asker.until_closed()
        return heads

    def test_answers_that_break_the_rules_cost_one_question(self):
        listener = self.listen()
        self.start()
        digest = peer.checksum(b"abc")
        for bad in ([(1, "n1", 1, digest + 1, 3, 0, "abc")],                     # another text
                    [(1, "n1", 1, digest, 3, 1, "bc")],                          # no beginning
                    [(1, "n1", 1, digest, 6, 0, "abc"), (1, "n1", 2, digest, 6, 3, "def")],  # two texts
                    [(1, "n1", 1, digest, 3, 0, "")],                            # nothing
                    [(9, "n1", 1, digest, 3, 0, "abc")],                         # no kind
                    [(1, "n1", 1, digest, 1 << 30, 0, "abc")]):                  # beyond all bounds
            sock, _ = listener.accept()
            asker = Peer(sock=sock)
            self.addCleanup(asker.close)
            asker.receive(PULL)
            for piece in bad:
                asker.send(BULLETIN, *piece)
            asker.until_closed()  # it hangs up
        for bad in "no scaling", '{"sgp_scaling": 1, "columns": [{"name": "near", "mean": 1, "deviation": 2}]}':
            self.answer(listener, [(RESULT, "n1", 1, bad)])
        self.answer(listener, [(FIGURES, "n1", 1, "not what combine can read")])
        votes = []
        while not votes:
            votes = [head for head in self.answer(listener, []) if head[0] == VOTE]
        self.answer(listener, [(VOTE, "n1", 0, votes[0][3])])
        self.f.wait("the reason", lambda: "n1" in ((self.f.nodes[0].status() or {}).get("last_error") or ""))
        self.assertEqual(self.f.nodes[0].end(), 0)

    def test_many_askers_do_not_end_an_answer(self):
        """A long answer goes to its end, although more nodes ask meanwhile than are answered at a time."""
        f = Sites(20)
        self.addCleanup(f.close)
        f.write_table(0, [{**row, **{"wide%d" % i: number % 7 for i in range(3000)}}
                          for number, row in enumerate(rows_of(0, 60))])
        f.start([0])
        f.wait_state("awaiting_scaling", [0])
        askers = []
        for index in range(1, 20):
            askers.append(Peer(f.ports[0]))
            self.addCleanup(askers[-1].close)
            askers[-1].send(PULL, "n%d" % index, "n0", 0)
            askers[0].receive(BULLETIN)
        while askers[0].receive(BULLETIN, PULL)[0] == BULLETIN:
            pass

    def test_strangers_learn_nothing(self):
        self.start()
        told, kind, _ = self.pull(name="nobody")
        self.assertEqual((told, kind), ({}, GOODBYE))
        self.f.wait_log(0, "no node of the topology file")
        caller = Peer(self.f.ports[0])  # n1 has an address, and is asked there alone
        self.addCleanup(caller.close)
        caller.send(CALL, "n0", "n1")
        self.assertEqual(caller.until_closed()[0], [])
        for _ in range(40):  # more than it answers at a time; the latest is answered
            asker = Peer(self.f.ports[0])
            self.addCleanup(asker.close)
            asker.send(PULL, "n1", "n0", 60000)
        self.assertEqual(self.pull()[1], PULL)


if __name__ == "__main__":
    fleet.main()
