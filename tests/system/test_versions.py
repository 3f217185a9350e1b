# SPDX-License-Identifier: Apache-2.0
"""Nodes of several versions in one fleet, as docs/UPGRADING.md promises: those that say fewer fields or more train together,
another protocol is refused until it is none, and a node finds out what another version left in its state directory.

Other versions are played: on the line of a daemon somebody says what another one would have said."""
import os
import re
import struct

import between
import fleet
import peer

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/PROTOCOL.md")
NOTHING = {"integer": 0, "boolean": False, "float64": 0.0, "string": ""}
PULSE = 6  # fields of it, in front
FOREVER = {"train.epochs": "1000000"}


def read_page():
    """type -> how many fields every version has, and what one says in the others that has nothing to say."""
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    behind = [NOTHING[kind] for kind in re.findall(r"^\| \w+ \| (\w+) \| \*later\*", page, re.MULTILINE)]
    rows = re.findall(r"^\| (\d*) ?\| (?:[A-Z]+ )?\| (\d+)(?:-(\d+))? \| (\w+) \| (\w*) ?\| ?(.*?) ?\|$", page, re.MULTILINE)
    known, kind = {}, None
    for number, first, last, field, form, text in rows:
        kind = int(number or kind)
        fixed, later = known.setdefault(kind, (PULSE, []))
        count = int(last or first) - int(first) + 1
        assert int(first) == fixed + len(later), (kind, field)
        if field == "fingerprint":  # its last one is later
            known[kind] = (fixed + count - 1, [0])
        elif "*later*" in text:
            later += [NOTHING[form]] * count
        else:
            assert not later
            known[kind] = (fixed + count, later)
    last = {}
    for names, form in re.findall(r"^\| ([A-Z, ]+) \| \w+ \| (\w+) \| \*later\*", page, re.MULTILINE):
        for name in names.split(", "):
            last.setdefault(getattr(peer, name), []).append(NOTHING[form])
    return {kind: (fixed, later + behind + last.get(kind, [])) for kind, (fixed, later) in known.items()}


FIELDS = read_page()


def as_it_is(_, fields):
    return fields


def earlier(kind, fields):
    return fields[:FIELDS[kind][0]]


def without_then(kind, fields):
    """One that knows exact cycles, and not that two shares of a link may be under way: it says no then_round."""
    fixed, rest = FIELDS[kind]
    says = kind in (peer.HELLO, peer.BEAT, peer.SHARE, peer.ESTIMATE, peer.BEQUEATH, peer.INQUIRE, peer.ANSWER, peer.CALL,
                    peer.STATEMENT)
    return fields[:fixed + len(rest) - 1] if says else fields


def later(kind, fields):
    """All that is known, and behind it what is not."""
    fixed, rest = FIELDS[kind]
    return fields + rest[len(fields) - fixed:] + [1, True, 2.5, "of a later version"]


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


class Reducing(fleet.Fleet):
    """All-reduce, directly: every node sums one part up, and hands it back."""

    def write_topology(self, index):
        with open(os.path.join(self.directory, "n%d.dot" % index), "w", encoding="utf-8") as file:
            for back in (False, True):
                file.write("digraph g%d { slices=%d; train=%s;\n" % (back, self.n, "false" if back else "true"))
                for i in range(self.n):
                    file.write('n%d [address="%s"];\n' % (i, self.address(index, i)))
                for i, j in self.phases[0]:
                    file.write('n%d -> n%d [slice=%d, fraction=%s];\n'
                               % (i, j, i if back else j, '"1/%d"' % self.n if back else "1"))
                file.write("}\n")


class Versions(fleet.FleetTest):
    def of_versions(self, says, kind=fleet.Fleet, **options):
        """A daemon for each, all to all."""
        edges = [(i, j) for i in range(len(says)) for j in range(len(says)) if i != j]
        f = kind(len(says), phases=[edges], dial={edge: 1 for edge in edges}, **options)
        self.fleets = [f]
        self.addCleanup(f.close)
        self.lines = {(i, j): Line(f.ports[j], says[i], says[j]) for i, j in edges}
        for edge, line in self.lines.items():
            self.addCleanup(line.close)
            f.dial[edge] = line.port
        for i in range(len(says)):
            f.write_topology(i)
        return f

    def test_fewer_fields_and_more(self):
        f = self.of_versions([(as_it_is, 2), (earlier, 2), (later, 2)])
        f.start()
        f.wait_state("finished")
        self.assertLessEqual(abs(sum(s["weight"] for s in f.quiet()) - 3), 1e-12)
        for node in f.nodes:
            self.assertGreater(node.json("/v1/evaluate", "POST")["accuracy"], 0.8)
            self.assertGreater(min(p["shares_received"] for p in node.json("/v1/peers") if p["direction"] == "in"), 0)
            self.assertNotIn("event=refused", node.log())
            self.assertNotIn("event=down", node.log().split("state=training", 1)[1])

    def test_one_who_gives_a_share_at_a_time_reduces_with_those_who_give_two(self):
        f = self.of_versions([(without_then, 2), (as_it_is, 2), (as_it_is, 2)], kind=Reducing,
                             options={"train.epochs": "20"})
        f.start()
        f.wait_state("finished")
        for status in f.quiet():
            self.assertEqual((status["weight"], status["cycles_renewed"]), (1, 0))
        for node in f.nodes:
            self.assertNotIn("event=down", node.log().split("state=training", 1)[1].split("state=finished")[0])

    def test_another_protocol_is_refused_until_it_is_none(self):
        f = self.of_versions([(as_it_is, 2), (as_it_is, 2), (as_it_is, 1)],
                             options={**FOREVER, "train.start": "now"})
        f.start()
        told = "the peer speaks protocol version 1; this program speaks version 2"
        f.wait_log(0, "event=refused remote=127.0.0.1:")
        for i in (0, 1):
            f.wait_round(i, 0)
            f.wait("n%d to tell of n2" % i, lambda: f.nodes[i].peer("n2", "out")["last_error"] == told)
        self.assertNotIn("event=up peer=n2 direction=in", f.nodes[0].log())
        for i in (0, 1):
            f.wait_round(i, f.nodes[i].status()["round"] + 20)
        for line in self.lines.values():  # n2 has been upgraded
            line.says = ((as_it_is, 2), (as_it_is, 2))
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
        self.lineage = f.nodes[0].status()["incarnation"]
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
        self.assertEqual(node.status()["incarnation"], self.lineage)
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
        self.assertIn("not a checkpoint of this version; it is not used", node.log()[told:])
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
