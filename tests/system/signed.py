# SPDX-License-Identifier: Apache-2.0
"""Fleets whose topology file is signed: the keys of their administrators, and documents that these sign."""
import json
import os
import subprocess

import fleet
import tls
from fleet import FleetTest

FOREVER = {"train.epochs": "1000000"}
RING = [[(0, 1), (1, 2), (2, 3), (3, 0)], [(1, 0), (2, 1), (3, 2), (0, 3)]]


def ctl(*arguments, text=None):
    return subprocess.run([tls.SGPCTL, *arguments], input=text, text=True, timeout=fleet.PATIENCE, check=True,
                          stdout=subprocess.PIPE).stdout


class SignedTest(FleetTest):
    def signed_fleet(self, n=4, phases=None, options=None, kind=fleet.Fleet):
        """Nodes whose file two of the administrators a, b and c must sign; r is the recovery key, x nobody's."""
        f = self.f = kind(n, phases=RING if n == 4 and phases is None else phases, options=FOREVER)
        self.fleets = [f]
        self.addCleanup(f.close)
        self.keys = {}
        for name in "abcrx":
            self.keys[name] = json.loads(ctl("key", "generate", name, "--file", self.path(name + ".key"), "--json"))["key"]
        administrators = {"topology.file": "fleet.signed", "administrators.fleet": "mill", "administrators.threshold": "2",
                          "administrators.keys": " ".join(self.keys[name] for name in "abc"),
                          "administrators.recovery": self.keys["r"]}
        self.options = {**FOREVER, **administrators, **(options or {})}
        for i in range(n):
            f.write_configuration(i, self.options, {})
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
