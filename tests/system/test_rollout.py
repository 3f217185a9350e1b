# SPDX-License-Identifier: Apache-2.0
"""Signed topology files among real daemons: pushed to one, tried and voted on by all, used or refused by all.

test_rollout.py SGPD SGPCTL
"""
import json
import os
import re
import subprocess
import sys

import fleet
from fleet import FleetTest

SGPCTL = os.path.abspath(sys.argv.pop(2))
FOREVER = {"train.epochs": "1000000"}
RING = [[(0, 1), (1, 2), (2, 3), (3, 0)], [(1, 0), (2, 1), (3, 2), (0, 3)]]


def ctl(*arguments, text=None):
    return subprocess.run([SGPCTL, *arguments], input=text, text=True, timeout=fleet.PATIENCE, check=True,
                          stdout=subprocess.PIPE).stdout


class Rollout(FleetTest):
    def signed_fleet(self, n=4, phases=None, options=None, own=None):
        """Running nodes whose file two of the administrators a, b and c must sign; r is the recovery key, x nobody's."""
        f = self.f = self.fleet(n, phases=RING if n == 4 and phases is None else phases, options=FOREVER)
        self.keys = {}
        for name in "abcrx":
            self.keys[name] = json.loads(ctl("key", "generate", name, "--file", self.path(name + ".key"), "--json"))["key"]
        administrators = {"topology.file": "fleet.signed", "administrators.fleet": "mill", "administrators.threshold": "2",
                          "administrators.keys": " ".join(self.keys[name] for name in "abc"),
                          "administrators.recovery": self.keys["r"]}
        for i in range(n):
            f.write_configuration(i, {**FOREVER, **administrators, **(options or {})}, (own or {}).get(i, {}))
        self.first = self.sign("ab", "--fleet", "mill")
        self.keep(self.first, "fleet.signed")
        return f

    def started(self, *arguments, **options):
        f = self.signed_fleet(*arguments, **options)
        f.start()
        for i in range(f.n):
            f.wait_round(i, 3)
        return f

    def path(self, name):
        return os.path.join(self.f.directory, name)

    def plain(self):
        with open(self.path("n0.dot"), encoding="ascii") as file:
            return file.read()

    def keep(self, document, name):
        with open(self.path(name + ".new"), "w", encoding="ascii") as file:
            file.write(document)
        os.replace(self.path(name + ".new"), self.path(name))
        return self.path(name)

    def sign(self, signers, *options, after=None, text=None):
        document = text or self.plain()
        if after is not None:
            options = ("--after", self.keep(after, "after.signed"), *options)
        for name in signers:
            document = ctl("topology", "sign", "-", *options, "--key", self.path(name + ".key"), text=document)
            options = ()
        return document

    def second(self, *options, signers="ab", present=None, phases=None):
        """Version 2: the fleet's file with other edges."""
        self.f.rewire(list(range(self.f.n)) if present is None else present, [RING[0]] if phases is None else phases)
        return self.sign(signers, *options, after=self.first)

    def push(self, index, document):
        code, body = self.f.nodes[index].get("/v1/rollout", "POST", document)
        return code, json.loads(body)

    def rollout(self, index):
        return self.f.nodes[index].json("/v1/rollout")

    def wait_active(self, version, indices=None):
        for i in range(self.f.n) if indices is None else indices:
            self.f.wait("n%d to use version %d" % (i, version), lambda i=i: self.rollout(i)["active"]["version"] == version)

    def phases(self, index):
        return len(self.f.nodes[index].json("/v1/topology")["phases"])

    def test_a_push_to_one_node_is_used_by_all(self):
        f = self.started()
        document = self.second()
        code, answer = self.push(1, document)
        self.assertEqual((code, answer["version"], answer["state"]), (200, 2, "proposed"), answer)
        self.wait_active(2)
        for i in range(4):
            view = self.rollout(i)
            self.assertEqual((view["fleet"], view["proposed"], view["fork"], view["vote"]), ("mill", None, False, "none"))
            self.assertEqual(view["active"]["identity"], answer["identity"])
            self.assertEqual(self.phases(i), 1)
            self.assertEqual(f.nodes[i].status()["rollout"]["active"], 2)
            self.assertEqual(f.nodes[i].get("/v1/rollout/document?version=active")[1].decode(), document.strip())
            log = f.nodes[i].json("/v1/rollout/log")["versions"]
            self.assertEqual([v["version"] for v in log], [2, 1])
            self.assertEqual(log[0]["predecessor"], log[1]["identity"])
            self.assertEqual(sorted(log[0]["signers"]), sorted(self.keys[k] for k in "ab"))
            self.assertRegex(log[0]["used_at"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
            said = f.nodes[i].log()
            for line in ("event=rollout_proposed version=2", "event=rollout_vote version=2 vote=accepted",
                         "event=rollout_activated version=2"):
                self.assertEqual(said.count(line), 1, said)
            f.wait_round(i, f.nodes[i].status()["round"] + 20)
        code, answer = self.push(3, document)
        self.assertEqual((code, answer["state"]), (200, "active"))
        self.assertEqual(f.nodes[0].get("/v1/rollout/document?version=1")[1].decode(), self.first.strip())
        self.assertEqual(f.nodes[0].get("/v1/rollout/document?version=9")[0], 404)
        self.assertEqual(f.nodes[0].get("/v1/rollout/document?version=proposed")[0], 404)
        self.assertEqual(f.nodes[0].get("/v1/rollout/document?version=two")[0], 400)
        self.assertRegex(f.nodes[0].get("/metrics")[1].decode(), r"(?m)^sgpd_rollout_version\b.* 2$")
        f.nodes[2].end()  # the file of its configuration is version 1 still
        f.nodes[2].start()
        f.wait_round(2, 3)
        self.assertEqual((self.rollout(2)["active"]["version"], self.phases(2)), (2, 1))

    def test_what_is_not_signed_well_is_refused_with_one_line_and_told_to_nobody(self):
        f = self.started()
        good = self.second()
        cases = ((self.sign("a", after=self.first), "2 of 3 administrators must sign, and 1 did"),
                 (self.sign("abx", after=self.first), self.keys["x"] + " has signed, and is no administrator"),
                 (good.replace("version=2", "version=3"), "is wrong"),
                 (self.sign("ab", "--fleet", "barn"), "is of the fleet barn, and this node is of mill"),
                 ("digraph {}", "sgpctl topology sign makes one"), (good[:-20], "another size"))
        for document, reason in cases:
            code, answer = self.push(0, document)
            self.assertEqual(code, 400, answer)
            self.assertIn(reason, answer["error"]["message"], document)
        lines = [line for line in f.nodes[0].log().splitlines() if "event=rollout_refused" in line]
        self.assertEqual(len(lines), len(cases), lines)
        self.assertEqual(self.push(0, good)[0], 200)  # and it goes on
        self.wait_active(2)
        code, answer = self.push(2, self.first)
        self.assertEqual(code, 400)
        self.assertIn("version 1 is not above version 2, which is in use", answer["error"]["message"])


if __name__ == "__main__":
    fleet.main()
