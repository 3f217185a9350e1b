# SPDX-License-Identifier: Apache-2.0
"""Nodes of several versions in one fleet, as docs/UPGRADING.md promises: one that says more fields, or all zeros, trains with those that do not,
another protocol is refused until it is none, and a node finds out what another version left in its state directory.

Other versions are played: on the line of a daemon somebody says what another one would have said."""
import os
import re
import struct

import between
import fleet
import peer

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/PROTOCOL.md")
VERSION = 3
ZERO = {"integer": 0, "boolean": False, "float64": 0.0, "string": ""}
FOREVER = {"train.epochs": "1000000"}


def read_page():
    """type -> the zeros of all its values; what of them a sender says is in their place."""
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    behind = [ZERO[kind] for kind in re.findall(r"^\| \w+ \| (integer|boolean|float64) \| [^|]*\|$", page, re.MULTILINE)]
    rows = re.findall(r"^\| (\d*) ?\| (?:[A-Z]+ )?\| (\d+)(?:-(\d+))? \| (\w+) \| (\w*) ?\|", page, re.MULTILINE)
    known, kind = {}, None
    for number, first, last, field, form in rows:
        kind = int(number or kind)
        values = known.setdefault(kind, [0] * peer.PULSE)
        assert int(first) == len(values), (kind, field)
        count = int(last or first) - int(first) + 1
        values += [peer.ZEROS[form] for form in peer.PRINT] if field == "fingerprint" else [ZERO[form]] * count
        assert len(values) == int(first) + count, (kind, field)
    assert len(known) == 22 and len(behind) == 4, (sorted(known), behind)
    last = {peer.WELCOME: [False]} # `rows`, which came later
    return {kind: values + behind + last.get(kind, []) for kind, values in known.items()}


ZEROS = read_page()


def as_it_is(_, fields):
    return fields


def in_full(kind, fields):
    """One that leaves out no zeros."""
    return fields + ZEROS[kind][len(fields):]


def extended(kind, fields):
    """All that is known, and behind it what is not."""
    return in_full(kind, fields) + [1, True, 2.5, "of a later version"]


class Line(between.Between):
    """What each `says` is (what it makes of the fields of a message, its version)."""

    def __init__(self, target_port, *says):
        self.says = says
        super().__init__(target_port)

    @staticmethod
    def read(sock, count):
        data = b""
        while len(data) < count:
            part = sock.recv(count - len(data))
            if not part:
                raise ConnectionError
            data += part
        return data

    def carry(self, one, other, which, kept):
        while True:
            header = self.read(one, 32)
            kind, body_bytes, payload_bytes = struct.unpack_from("<HII", header, 6)
            body, payload = self.read(one, body_bytes), self.read(one, payload_bytes)
            make, version = self.says[which]
            if kind != peer.CHUNK:
                body = peer.pack(make(kind, peer.unpack(body)))
            other.sendall(peer.frame(kind, body, payload, version))


class Versions(fleet.FleetTest):
    def of_versions(self, says, **options):
        """A daemon for each, all to all."""
        edges = [(i, j) for i in range(len(says)) for j in range(len(says)) if i != j]
        f = fleet.Fleet(len(says), phases=[edges], dial={edge: 1 for edge in edges}, **options)
        self.fleets = [f]
        self.addCleanup(f.close)
        self.lines = {(i, j): Line(f.ports[j], says[i], says[j]) for i, j in edges}
        for edge, line in self.lines.items():
            self.addCleanup(line.close)
            f.dial[edge] = line.port
        for i in range(len(says)):
            f.write_topology(i)
        return f

    def test_zeros_are_said_or_not_and_more_fields_are_skipped(self):
        f = self.of_versions([(as_it_is, VERSION), (in_full, VERSION), (extended, VERSION)])
        f.start()
        f.wait_state("finished")
        self.assertLessEqual(abs(sum(s["weight"] for s in f.quiet()) - 3), 1e-12)
        for node in f.nodes:
            self.assertGreater(node.json("/v1/evaluate", "POST")["accuracy"], 0.8)
            self.assertGreater(min(p["shares_received"] for p in node.json("/v1/peers") if p["direction"] == "in"), 0)
            self.assertNotIn("event=refused", node.log())
            self.assertNotIn("event=down", node.log().split("state=training", 1)[1])

    def test_another_protocol_is_refused_until_it_is_none(self):
        f = self.of_versions([(as_it_is, VERSION), (as_it_is, VERSION), (as_it_is, VERSION - 1)],
                             options={**FOREVER, "train.start": "now"})
        f.start()
        told = "the peer speaks protocol version %d; this program speaks version %d" % (VERSION - 1, VERSION)
        f.wait_log(0, "event=refused remote=127.0.0.1:")
        for i in (0, 1):
            f.wait_round(i, 0)
            f.wait("n%d to tell of n2" % i, lambda: f.nodes[i].peer("n2", "out")["last_error"] == told)
        self.assertNotIn("event=up peer=n2 direction=in", f.nodes[0].log())
        for i in (0, 1):
            f.wait_round(i, f.nodes[i].status()["round"] + 20)
        for line in self.lines.values():  # n2 has been upgraded
            line.says = ((as_it_is, VERSION), (as_it_is, VERSION))
        f.wait("all links", lambda: all(
            p["state"] == "up" for node in f.nodes for p in node.json("/v1/peers")))
        for node in f.nodes:
            f.wait_round(node.index, node.status()["round"] + 20)
            node.get("/v1/pause", "POST")
        f.wait_state("paused")
        self.assertLessEqual(abs(sum(s["weight"] for s in f.quiet()) - 3), 1e-9)


class State(fleet.FleetTest):
    def stopped(self):
        """A fleet of two in the middle of a run; n0 has stopped in order."""
        f = self.fleet(2, options={**FOREVER, "train.start": "now"})
        f.start()
        for i in range(2):
            f.wait_round(i, 20)
        self.incarnation = f.nodes[0].status()["incarnation"]
        self.assertEqual(f.nodes[0].end(), 0)
        return f

    @staticmethod
    def write(node, name, version):
        """A file of another version; it is the number behind eight bytes."""
        path = os.path.join(node.directory, name)
        with open(path, "r+b") as file:
            file.seek(8)
            former = file.read(4)
            file.seek(8)
            file.write(struct.pack("<I", version))
        return path, struct.unpack("<I", former)[0]

    def test_a_ledger_of_another_version_is_left_alone(self):
        f = self.stopped()
        node, told = f.nodes[0], len(f.nodes[0].log())
        path, version = self.write(node, "ledger", 1000)
        with open(path, "rb") as file:
            before = file.read()
        node.start()
        self.assertEqual(node.process.wait(fleet.PATIENCE), 1)
        self.assertIn("%s: another sgpd wrote it (ledger version 1000; this one reads %d); start that one again, or "
                      "retire the node with it (sgpctl leave)" % (path, version), node.log()[told:])
        with open(path, "rb") as file:
            self.assertEqual(file.read(), before)
        self.write(node, "ledger", version)
        node.start()
        f.wait_state("training")
        f.wait_round(0, 20)
        self.assertEqual(node.status()["weight_minted"], 0)
        self.assertEqual(node.status()["incarnation"], self.incarnation)
        self.check_mass(f)

    def test_a_checkpoint_of_another_version_is_not_used(self):
        f = self.stopped()
        node, told = f.nodes[0], len(f.nodes[0].log())
        for name in os.listdir(node.directory):
            if name.startswith("checkpoint"):
                self.write(node, name, 1)
        node.start()
        f.wait_state("training")
        f.wait_round(0, 40)
        self.assertIn("a checkpoint of another format; it is not used", node.log()[told:])
        self.assertIn("event=adopted peer=n1", node.log()[told:])
        self.assertEqual(node.status()["weight_minted"], 0)
        self.check_mass(f)

    def check_mass(self, f):
        for node in f.nodes:
            node.get("/v1/pause", "POST")
        f.wait_state("paused")
        self.assertLessEqual(abs(sum(s["weight"] for s in f.quiet()) - 2), 1e-9)


if __name__ == "__main__":
    fleet.main()
