# SPDX-License-Identifier: Apache-2.0
"""An administrator who signs the topology file of a fleet, for tests that push another one."""
import json
import os
import subprocess

from fleet import PATIENCE


class Administrator:
    """Of a fleet that has not begun: version 1 of its file is signed, and all nodes use signed files alone. `options` are
    the keys of their configurations; `key` is the hash of the administrator's key."""

    def __init__(self, f, sgpctl, options):
        self.f, self.sgpctl = f, sgpctl
        self.file, self.plain = (os.path.join(f.directory, name) for name in ("a.key", "n0.dot"))
        self.key = json.loads(self.run("key", "generate", "a", "--file", self.file, "--json"))["key"]
        for i in range(f.n):
            f.write_configuration(i, {**options, "topology.file": "fleet.signed", "administrators.fleet": "mill",
                                      "administrators.threshold": "1", "administrators.keys": self.key}, {})
        with open(os.path.join(f.directory, "fleet.signed"), "w", encoding="ascii") as signed:
            signed.write(self.run("topology", "sign", self.plain, "--fleet", "mill", "--key", self.file))

    def run(self, *arguments):
        return subprocess.run([self.sgpctl, *arguments], text=True, timeout=PATIENCE, check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL).stdout

    def push(self, index, *options):
        """Give the file, as it is now, to one node."""
        return self.run("-s", self.f.nodes[index].socket, "topology", "push", self.plain, "--sign", self.file, *options)
