# SPDX-License-Identifier: Apache-2.0
"""Fleets whose links are ciphered."""
import os
import re
import subprocess

import fleet
from fleet import Fleet, FleetTest

SGPCTL = "sgpctl"


class TlsFleet(Fleet):
    """Every node has a key; `tls` is what the file says, and may be changed with `shown`, which keys it names, between
    reloads."""

    def __init__(self, n, tls="require", **options):
        self.tls = tls
        self.keys = {}   # what a new key prints, by node
        self.shown = {}  # what the file says
        self.many = n
        super().__init__(n, **options)

    def says(self):
        return "  tls=%s;\n" % self.tls if self.tls else ""

    def says_of(self, index):
        if not self.keys:
            for i in range(self.many):
                self.make_key(i)
                self.shown[i] = self.keys[i]
        return ', key="%s"' % self.shown[index] if self.shown.get(index) else ""

    def key_path(self, index):
        return os.path.join(self.directory, "n%d.key" % index)

    def make_key(self, index, suffix=""):
        """A key in the place of the node's, or beside it."""
        path = self.key_path(index) + suffix
        if os.path.exists(path):
            os.remove(path)
        line = subprocess.run([SGPCTL, "key", "generate", "n%d" % index, "--file", path], text=True,
                              stdout=subprocess.PIPE, check=True, timeout=fleet.PATIENCE).stdout
        self.keys[index] = re.search(r'key="(.*)"', line).group(1)
        return self.keys[index]

    def write_configuration(self, index, options, own):
        super().write_configuration(index, {"node.key": self.key_path(index), **options}, own)

    def reload(self, index):
        """The file anew; what the node answers."""
        code, body = self.nodes[index].get("/v1/reload", "POST")
        answer = fleet.json.loads(body)
        assert code == 200, answer
        return answer

    def roll(self, tls=None, shown=None, order=None):
        """Another file for everybody, by rolling reloads."""
        self.tls = tls or self.tls
        self.shown.update(shown or {})
        for i in range(self.n):
            self.write_topology(i)
        for i in order or range(self.n):
            self.reload(i)

    def links(self):
        """(node, peer, direction) -> its cipher and key, of links that are up."""
        return {(node.index, peer["name"], peer["direction"]): (peer["cipher"], peer["key"])
                for node in self.nodes for peer in self.peers(node) if peer["state"] == "up"}

    @staticmethod
    def peers(node):
        try:
            return node.json("/v1/peers")
        except (OSError, fleet.http.client.HTTPException, ValueError):  # it starts, or has ended
            return []

    def edges(self):
        pairs = {edge for phase in self.phases for edge in phase}
        return 2 * len(pairs)

    def wait_ciphered(self):
        """All links up, and ciphered with the keys that the file names."""
        def there():
            links = self.links()
            return len(links) == self.edges() and all(
                cipher and key in self.shown[int(name[1:])].split() for (_, name, _), (cipher, key) in links.items())

        self.wait("all links to be ciphered", there)


class TlsTest(FleetTest):
    def tls_fleet(self, *arguments, **options):
        fleet_ = TlsFleet(*arguments, **options)
        self.fleets = getattr(self, "fleets", []) + [fleet_]
        self.addCleanup(fleet_.close)
        return fleet_

    def total(self, f):
        for node in f.nodes:
            self.assertIn(node.get("/v1/pause", "POST")[0], (200, 202))
        f.wait_state("paused")
        total = sum(s["weight"] for s in f.quiet())
        for node in f.nodes:
            node.get("/v1/resume", "POST")
        return total


def main():
    """The arguments are sgpd and sgpctl."""
    global SGPCTL
    fleet.take_sgpd()
    SGPCTL = os.path.abspath(fleet.sys.argv.pop(1))
    fleet.tap.run_cases(fleet.sys.argv[1:])
