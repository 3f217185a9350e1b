# SPDX-License-Identifier: Apache-2.0
"""Fleets of real daemons in which nodes own the vector, or parts of it."""
import os
import signal
import subprocess

from fleet import PATIENCE, Fleet, Node

MANY = {"train.epochs": "100000"}


class Owned(Fleet):
    """The first nodes own the vector, each a part of it, or whoever `owners` are; the others work for them."""

    def __init__(self, n, backup=0, algorithm="backup", says=(), spare=(), journals=(), long=(), owners=(0,), members=False,
                 **options):
        self.members = members  # owners train, too
        self.says = list(says) + (["backup=%d" % backup] if backup else [])
        self.owners = list(owners)
        relay = dict.fromkeys(("data.train", "data.label", "data.classes", "data.holdout"))
        own = {} if members else {i: {**relay, "model.inputs": "6"} for i in (*owners, *spare)}
        for i in journals:
            own.setdefault(i, {}).update({"log.events": "n%d.events" % i, "log.trace": "n%d.trace" % i})
        for i in long:
            own.setdefault(i, {})["train.local_steps"] = "1000000"
        super().__init__(n, phases=[[]], rows=options.pop("rows", 1000), own=own,
                         options={"train.algorithm": algorithm, **options})

    def write_topology(self, index):
        path = os.path.join(self.directory, "n%d.dot" % index)
        workers = " ".join("n%d" % i for i in self.present if i not in self.owners)
        owners = " ".join("n%d" % i for i in self.owners)
        with open(path + ".new", "w") as file:
            file.write("digraph owner {\n")
            file.writelines("  %s;\n" % what for what in self.says)
            if len(self.owners) > 1:
                file.write("  slices=%d;\n" % len(self.owners))
            for i in self.present:
                file.write('  n%d [address="%s:%d"%s];\n' % (
                    i, self.host(i), self.ports[i], self.owns(i)))
            if workers:
                file.write("  {%s} -> {%s};\n  {%s} -> {%s};\n" % (owners, workers, workers, owners))
            file.writelines("  n%d -> n%d;\n" % (i, j) for i in self.owners for j in self.owners if self.members and i != j)
            file.write("}\n")
        os.replace(path + ".new", path)

    def owns(self, index):
        if index not in self.owners:
            return ""
        return ", %sowns=%s" % ("" if self.members else "train=false, ", "all" if len(self.owners) == 1 else self.owners.index(index))

    def owner(self, index):
        """The owner co-located with node `index`, as a node to ask."""
        owner = Node(self, index)
        owner.name += ".owner"
        owner.socket += ".owner"
        owner.directory = os.path.join(owner.directory, "owner")
        return owner

    def switch(self, present, owners=(0,)):
        self.present, self.owners = present, list(owners)
        for i in range(self.n):
            self.write_topology(i)

    def reload(self, indices):
        for i in indices:
            self.nodes[i].get("/v1/reload", "POST")

    def replay(self, sgpctl, index):
        """Kill it, and play its journal again: what it did, as told then and as told again."""
        self.nodes[index].end(signal.SIGKILL)
        with open(os.path.join(self.directory, "n%d.trace" % index), encoding="utf-8") as file:
            told = file.read()
        told = told[:told.rindex("\n") + 1]  # a line may be under way
        again = subprocess.run([sgpctl, "replay", os.path.join(self.directory, "n%d.events" % index)], text=True,
                               timeout=PATIENCE, check=True, capture_output=True).stdout
        return told, again[:len(told)]
