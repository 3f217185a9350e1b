# SPDX-License-Identifier: Apache-2.0
"""Nodes that use signed topology files alone: who must have signed, and that no earlier file comes back.

test_signed_file.py SGPD SGPCTL
"""
import json
import os
import subprocess
import sys

import fleet
from fleet import FleetTest

SGPCTL = os.path.abspath(sys.argv.pop(2))
FOREVER = {"train.epochs": "1000000"}


def ctl(*arguments, text=None):
    return subprocess.run([SGPCTL, *arguments], input=text, text=True, timeout=fleet.PATIENCE, check=True,
                          stdout=subprocess.PIPE).stdout


class SignedFile(FleetTest):
    def signed_fleet(self, n=3, options=None):
        """Nodes whose file two of the administrators a, b and c must sign; r is the recovery key, x nobody's."""
        self.f = self.fleet(n, options={**FOREVER, **(options or {})})
        self.keys = {}
        for name in "abcrx":
            path = self.path(name + ".key")
            self.keys[name] = json.loads(ctl("key", "generate", name, "--file", path, "--json"))["key"]
        administrators = {"topology.file": "fleet.signed", "administrators.fleet": "mill", "administrators.threshold": "2",
                          "administrators.keys": " ".join(self.keys[name] for name in "abc"),
                          "administrators.recovery": self.keys["r"]}
        for i in range(n):
            self.f.write_configuration(i, {**FOREVER, **administrators, **(options or {})}, {})
        return self.f

    def path(self, name):
        return os.path.join(self.f.directory, name)

    def plain(self):
        with open(self.path("n0.dot"), encoding="ascii") as file:
            return file.read()

    def sign(self, signers, *options, text=None):
        document = text or self.plain()
        for name in signers:
            document = ctl("topology", "sign", "-", *options, "--key", self.path(name + ".key"), text=document)
            options = ()
        return document

    def write(self, document, name="fleet.signed"):
        with open(self.path(name + ".new"), "w", encoding="ascii") as file:
            file.write(document)
        os.replace(self.path(name + ".new"), self.path(name))

    def refused(self, document, reason):
        """By --check, with one line."""
        self.write(document)
        code, said = self.f.check()
        self.assertNotEqual(code, 0, said)
        self.assertIn(reason, said)
        self.assertEqual(said.count("\n"), 1, said)

    def test_only_what_enough_administrators_have_signed_is_used(self):
        self.signed_fleet(2)
        fleet_of = ("--fleet", "mill")
        good = self.sign("ab", *fleet_of)
        for signers in ("ab", "cb", "abc", "r"):
            self.write(self.sign(signers, *fleet_of))
            code, said = self.f.check()
            self.assertEqual(code, 0, said)
        self.refused(self.plain(), "it is not signed, and [administrators] are given")
        self.refused(self.sign("a", *fleet_of), "2 of 3 administrators must sign, and 1 did")
        self.refused(self.sign("abx", *fleet_of), self.keys["x"] + " has signed, and is no administrator of the fleet mill")
        self.refused(self.sign("ab", "--fleet", "barn"), "is of the fleet barn, and this node is of mill")
        self.refused(good.replace("version=1", "version=2"), "is wrong")
        self.refused(good[:-20] + "\n", "has a file of another size than its manifest says")
        self.write(good)
        self.f.start()
        for i in range(2):
            self.f.wait_round(i, 5)

    def reload(self, index):
        code, body = self.f.nodes[index].get("/v1/reload", "POST")
        return code, json.loads(body)

    def test_no_earlier_file_comes_back_at_a_reload_or_after_a_restart(self):
        f = self.signed_fleet(3)
        first = self.sign("ab", "--fleet", "mill")
        self.write(first)
        self.write(first, "1.signed")
        f.start()
        for i in range(3):
            f.wait_round(i, 5)
        f.rewire([0, 1], [[(0, 1), (1, 0)]])  # without n2
        second = self.sign("ca", "--after", self.path("1.signed"))
        other = self.sign("bc", "--after", self.path("1.signed"), text=self.plain() + "\n")
        f.nodes[2].end()
        self.write(second)
        for i in range(2):  # or the second follows the first
            code, answer = self.reload(i)
            self.assertEqual((code, answer["nodes"]), (200, 2), answer)
        for document, reason in ((first, "it is version 1, and this node has used version 2; copy the latest"),
                                 (other, "it is another file of version 2, and this node has used version 2"),
                                 (self.plain(), "it is not signed")):
            self.write(document)
            code, answer = self.reload(0)
            self.assertGreaterEqual(code, 400, answer)
            self.assertIn(reason, str(answer))
            self.assertEqual(len(f.nodes[0].json("/v1/topology")["nodes"]), 2)
        f.wait_round(0, f.nodes[0].status()["round"] + 20)  # it goes on
        f.nodes[0].end()
        self.write(first)
        code, said = f.check()
        self.assertEqual(code, 0, said)
        self.assertIn("fleet.signed has an earlier version; this node uses version 2 of mill, which it has stored", said)
        f.nodes[0].start()
        f.wait_round(0, 5)
        self.assertEqual(len(f.nodes[0].json("/v1/topology")["nodes"]), 2)
        f.wait_round(1, f.nodes[1].status()["round"] + 20)
        f.nodes[0].end()
        self.refused(other, "it is another file of version 2, and this node has used version 2")
        self.refused(self.plain(), "it is not signed")

    def test_a_node_that_died_after_it_stored_does_not_go_back(self):
        f = self.signed_fleet(2)
        first = self.sign("ab", "--fleet", "mill")
        self.write(first)
        self.write(first, "1.signed")
        f.start()
        f.wait_round(0, 5)
        self.write(self.sign("ab", "--after", self.path("1.signed"), "--number", "7"))
        self.assertEqual(self.reload(0)[0], 200)
        f.nodes[0].end(9)
        self.write(first)
        code, said = f.check()
        self.assertEqual(code, 0, said)
        self.assertIn("this node uses version 7 of mill", said)

    def test_no_earlier_file_comes_back_while_nodes_agree_on_a_scaling(self):
        """Before the first round, that is: a node that never trained has used a file, too."""
        f = self.signed_fleet(2, {"data.scale": "fleet", "data.shards": "none"})
        first = self.sign("ab", "--fleet", "mill")
        self.write(first)
        self.write(first, "1.signed")
        second = self.sign("ab", "--after", self.path("1.signed"))
        third = self.sign("ab", "--after", self.path("1.signed"), "--number", "3")
        self.write(second)
        f.start([0])  # it waits for what n1 has to tell
        f.wait_state("awaiting_scaling", [0])
        f.nodes[0].end(9)
        self.write(first)
        f.start([0])
        f.wait_state("awaiting_scaling", [0])
        self.assertIn("an earlier version; this node uses version 2 of mill", str(self.reload(0)))
        self.write(third)
        self.assertEqual(self.reload(0)[0], 200)
        self.write(second)
        self.assertIn("an earlier version; this node uses version 3 of mill", str(self.reload(0)))
        self.write(third)
        f.start([1])
        f.wait_state("training")

    def test_a_node_leaves_for_good_from_a_signed_file(self):
        f = self.signed_fleet(3)
        first = self.sign("ab", "--fleet", "mill")
        self.write(first)
        f.start()
        f.wait_round(0, 5)
        ctl("-s", f.nodes[2].socket, "leave", "--for-good", "--output", self.path("last.dot"))
        f.wait("n2 to end", lambda: f.nodes[2].process.poll() is not None)
        with open(self.path("last.dot"), encoding="ascii") as file:
            text = file.read()
        self.write(text)
        code, answer = self.reload(0)
        self.assertGreaterEqual(code, 400, answer)
        self.assertIn("it is not signed", str(answer))
        self.write(first, "1.signed")
        self.write(self.sign("ab", "--after", self.path("1.signed"), text=text))
        for i in range(2):
            code, answer = self.reload(i)
            self.assertEqual((code, answer["nodes"]), (200, 2), answer)  # or the second follows the first
        f.wait_round(0, f.nodes[0].status()["round"] + 20)

    def test_half_a_document_of_a_node_that_died_is_swept(self):
        """Also if its files are not signed any more, so that nothing replaces it."""
        f = self.fleet(2, options=FOREVER)
        f.start()
        f.wait_round(0, 5)
        f.nodes[0].end(9)
        part = os.path.join(f.nodes[0].directory, "rollout.new")
        with open(part, "w", encoding="ascii") as file:
            file.write("half a")
        f.nodes[0].start()
        f.wait_state("training", [0])
        self.assertFalse(os.path.exists(part))

    def test_a_section_that_cannot_be_is_told_by_its_line(self):
        self.signed_fleet(2)
        self.write(self.sign("ab", "--fleet", "mill"))
        for changes, reason in (
                ({"keys": None}, "[administrators] keys: there are none, so nobody could sign"),
                ({"keys": "# " + self.keys["a"], "fleet": None, "threshold": None, "recovery": None},
                 "[administrators] keys: there are none, so nobody could sign"),
                ({"keys": self.keys["a"]}, "[administrators] threshold: 2 must sign, and there are 1 keys; write at most 1"),
                ({"keys": "SHA256:short"}, '[administrators] keys: "SHA256:short" is no key'),
                ({"keys": " ".join([self.keys["a"]] * 2)}, "stands there twice"),
                ({"fleet": None}, '[administrators] fleet: "" is no name of a fleet'),
                ({"recovery": "x"}, '[administrators] recovery: "x" is no key')):
            values = {"fleet": "mill", "threshold": "2", "keys": " ".join(self.keys[name] for name in "abc"), "recovery": self.keys["r"]}
            values.update(changes)
            self.f.write_configuration(0, {"topology.file": "fleet.signed"},
                                       {"administrators." + key: value for key, value in values.items()})
            code, said = self.f.check()
            self.assertNotEqual(code, 0, said)
            self.assertIn(reason, said)
            self.assertEqual(said.count("\n"), 1, said)


if __name__ == "__main__":
    fleet.main()
