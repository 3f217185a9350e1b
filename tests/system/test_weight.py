# SPDX-License-Identifier: Apache-2.0
"""A member names another weight in its shares than it has. The fleet's total leaves its bounds, and the others bring it back, tell so, and
train on; also when the liar has ended."""
import struct

import fleet
import peer
from fleet import FleetTest
from proxy import Proxy

WEIGHT = 3  # of a SHARE's fields behind the pulse
BOUND = 4 + 2


class LyingLine(Proxy):
    """What a member says on one of its lines, with `factor` times the weight in each share."""

    factor = 1.0

    def begin(self):
        self.held = b""

    def passed(self, data):
        self.held += data
        out = b""
        while len(self.held) >= 32:
            kind, body_bytes, payload_bytes = struct.unpack_from("<HII", self.held, 6)
            size = 32 + body_bytes + payload_bytes
            if len(self.held) < size:
                break
            frame_, self.held = self.held[:size], self.held[size:]
            if kind == peer.SHARE:
                fields = peer.unpack(frame_[32:32 + body_bytes])
                fields[6 + WEIGHT] = float(fields[6 + WEIGHT]) * self.factor
                frame_ = peer.frame(kind, peer.pack(fields))
            out += frame_
        return out


class Liar(FleetTest):
    def begin(self, factor):
        """Four daemons; n3 gives to n0 and n1, and lies to both."""
        f = self.fleet(4, options={"train.epochs": "100000"})
        lines = {}
        for target in (0, 1):
            lines[target] = LyingLine(f.ports[target])
            self.addCleanup(lines[target].close)
            f.dial[3, target] = lines[target].port
        f.write_topology(3)
        f.start()
        for i in range(4):
            f.wait_round(i, 50)
        for line in lines.values():
            line.factor = factor
        return f, lines

    def told(self, f):
        return max((node.status() or {"weight_unknown": 0})["weight_unknown"] for node in f.nodes[:3])

    def total_at_rest(self, f):
        for node in f.nodes:
            node.get("/v1/pause", "POST")
        f.wait_state("paused")
        sum_ = sum(s["weight"] for s in f.quiet())
        for node in f.nodes:
            node.get("/v1/resume", "POST")
        return sum_

    def train_on(self, f, rounds):
        for i in range(3):
            f.wait_round(i, f.nodes[i].status()["round"] + rounds)

    def test_weight_that_is_made_up_is_taken_off_and_nobody_honest_is_refused(self):
        f, lines = self.begin(1.05)
        f.wait("somebody to tell of it", lambda: self.told(f) > 0)
        self.train_on(f, 100)
        for line in lines.values():
            line.factor = 1.0  # an honest node in its place
        self.train_on(f, 1000)
        self.assertIn("event=excess", "".join(node.log() for node in f.nodes))
        for node in f.nodes[:3]:  # before a pause, which may send a share home amid being added
            for link in node.json("/v1/peers"):
                if link["name"] != "n3":
                    self.assertEqual(link["shares_returned"], 0, "%s and %s" % (node.name, link["name"]))
        self.assertLessEqual(self.total_at_rest(f), BOUND + 1e-3)
        told = self.told(f)
        teller = next(node for node in f.nodes[:3] if node.status()["weight_unknown"] == told)
        teller.end()
        teller.start()
        f.wait("%s to be back" % teller.name, lambda: (teller.status() or {"state": ""})["state"] == "training")
        self.assertEqual(teller.status()["weight_unknown"], told)
        self.train_on(f, 100)
        self.assertLessEqual(self.total_at_rest(f), BOUND + 1e-3)
        self.assert_alive(f)

    def test_weight_that_is_lost_is_made_good(self):
        f, lines = self.begin(0.9)
        f.wait("somebody to tell of it", lambda: self.told(f) > 0)
        for line in lines.values():
            line.factor = 1.0
        self.train_on(f, 1000)
        self.assertIn("event=lack", "".join(node.log() for node in f.nodes))
        total = self.total_at_rest(f)
        self.assertGreater(total, 4 - 0.1)
        self.assertLessEqual(total, BOUND)
        self.assert_alive(f)


if __name__ == "__main__":
    fleet.main()
