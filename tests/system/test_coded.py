# SPDX-License-Identifier: Apache-2.0
"""Shares that travel coded ([network] compression): fewer bytes, models that agree, and all of the weight."""
import signal
import struct

import fleet
import peer
from fleet import FleetTest
from trio import Trio

OPTIONS = {"model.layers": "dense 400 relu, dense 2", "train.epochs": "12"}
NODES = 4
# Of a plain share's bytes: the matrices of 400 x 6 and 2 x 400 values, 400 biases, and the frames beside the payload.
SIZES = {"none": (0.99, 1.1), "fp16": (0.5, 0.56), "bf16": (0.5, 0.56), "int8": (0.25, 0.38), "int6": (0.2, 0.34),
         "int4:64": (0.15, 0.3), "int4": (0.12, 0.29)}


class Coded(FleetTest):
    def start(self, compression, own=None, **more):
        f = self.fleet(NODES, options={**OPTIONS, "network.compression": compression, **more}, own=own)
        f.start()
        return f

    def end(self, f):
        for node in f.nodes:
            self.assertEqual(node.end(), 0)

    def bytes_per_share(self, f):
        """Of what each node sent, all told: the frames beside the payloads are a few percent."""
        peers = [peer_ for node in f.nodes for peer_ in node.json("/v1/peers") if peer_["direction"] == "out"]
        return sum(peer_["bytes_sent"] for peer_ in peers) / sum(peer_["shares_sent"] for peer_ in peers)

    def check_end(self, f):
        statuses = f.wait_state("finished")
        statuses = f.quiet()
        self.assertAlmostEqual(sum(s["weight"] for s in statuses), NODES, delta=1e-12)
        models = [fleet.read_model(node.get("/v1/model")[1]) for node in f.nodes]
        largest = max(abs(v) for v in models[0])
        for model in models[1:]:
            self.assertLessEqual(max(abs(a - b) for a, b in zip(models[0], model)), 1e-5 * largest)

    def test_fewer_bytes_and_all_of_the_weight(self):
        plain = None
        for compression, (least, most) in SIZES.items():
            if compression in ("bf16", "int6", "int4") and not fleet.LONG:
                continue
            f = self.start(compression)
            self.check_end(f)
            size = self.bytes_per_share(f)
            plain = plain or size
            self.assertTrue(least < size / plain < most, (compression, size / plain))
            status = f.nodes[0].status()
            self.assertEqual(status["compression"], compression)
            row = f.nodes[0].json("/v1/history")["rows"][-1]
            for key in ("bytes_spared", "compression_error"):
                self.assertEqual(row[key], status[key], key)
            if compression == "none":
                self.assertEqual((status["bytes_spared"], status["compression_error"]), (0, None))
            else:
                self.assertGreater(status["bytes_spared"], 0)
                self.assertTrue(0 < status["compression_error"] < 0.2, status["compression_error"])
            self.end(f)

    def test_every_sender_chooses_for_itself(self):
        f = self.start("none", own={0: {"network.compression": "int8"}})
        self.check_end(f)
        sent = [node.peer("n%d" % ((i + 1) % NODES), "out") for i, node in enumerate(f.nodes)]
        each = [peer_["bytes_sent"] / peer_["shares_sent"] for peer_ in sent]
        self.assertLess(each[0], 0.4 * min(each[1:]))

    def test_kills_lose_no_weight(self):
        for compression in ("fp16", "int4"):
            f = self.start(compression, **{"train.epochs": "200"})
            for victim in (1, 2, 1):
                f.wait_round(0, f.wait("a status", f.nodes[0].status)["round"] + 20)
                f.nodes[victim].end(signal.SIGKILL)
                f.nodes[victim].start()
                f.wait("the victim", f.nodes[victim].status)
            self.check_end(f)
            self.end(f)


def block(kind, rest, scale=0):
    """A block with the scale of these upper 24 bits."""
    return struct.pack("<I", scale << 8 | kind) + rest


ONE = 0x3F8000  # the upper 24 bits of 1.0


class Blocks(Trio):
    """n2 is played by the test: what it gives comes in blocks, and what it reads is what it said that it reads."""

    OPTIONS = {"network.compression": "int8"}

    def give(self, payload):
        """The payload as n2's first share; what n0 answers, None if it only closed."""
        n2, round_ = self.credited()
        n2.send(peer.SHARE, 1, round_, 0.5, 0.5, 0, self.parameters, len(payload), False, 0.0, 0, 0.0, 0, 0, 2)
        try:
            n2.chunk(payload)
            return n2, n2.receive(peer.ACK, peer.GOODBYE)
        except peer.Closed:
            return n2, None

    def good(self):
        count = self.parameters
        self.assertLess(count, 256)
        return block(8, bytes(count) + bytes(-count % 4), ONE)

    def test_blocks_are_taken(self):
        _, answer = self.give(self.good())
        self.assertEqual(answer, (peer.ACK, [1, 1]))
        self.assert_goes_on(total=2.5)

    def test_what_is_no_block_costs_its_connection(self):
        count = self.parameters
        bits = bytes(count) + bytes(-count % 4)
        bad = [block(9, bits, ONE), block(8, bits, 0x7F8000), block(8, bits, 0), block(8, bits + bytes(4), ONE),
               block(130, bytes([2, 5, 5, 0]), ONE), block(130, bytes([0, 0, 0, 0]), ONE)]
        if count % 4:
            bad.append(block(8, bits[:-1] + b"\1", ONE))
        for payload in bad:
            n2, answer = self.give(payload)
            self.assertNotEqual(answer and answer[0], peer.ACK, payload[:8])
            n2.close()
        self.assert_goes_on()

    def target(self, *forms):
        """n2 as n0's target, which names these forms."""
        n2, _, _ = peer.dialled(self.listener)
        self.addCleanup(n2.close)
        n2.credited = None
        rest = [0, 0] if forms else []
        n2.send(peer.WELCOME, "n2", 99, 0, *self.fingerprint, *rest, *forms)
        return n2

    def read(self, n2):
        """The fields of n0's next share to n2, which has it then."""
        kind, share = n2.receive(peer.BEAT, peer.SHARE)
        while kind != peer.SHARE:
            if n2.heard[3] not in (None, n2.credited):
                n2.credited = n2.heard[3]
                n2.send(peer.CREDIT, n2.credited)
            kind, share = n2.receive(peer.BEAT, peer.SHARE)
        n2.receive(peer.CHUNK)
        n2.round = share[1]
        n2.send(peer.ACK, share[0], 1)
        return share

    def test_a_neighbour_that_reads_no_blocks_gets_plain_shares(self):
        share = self.read(self.target())
        self.assertEqual((share[5], share[6], share[13]), (self.parameters, 4 * self.parameters, 0))

    def spared(self, n2):
        """What n0 has spared by its next two shares to n2, and to n1."""
        self.read(n2)
        before, sent = self.node.status()["bytes_spared"], self.node.peer("n1", "out")["shares_sent"]
        for _ in range(2):
            self.read(n2)
        self.assertGreater(self.node.peer("n1", "out")["shares_sent"], sent)
        return self.node.status()["bytes_spared"] - before

    def test_beside_a_neighbour_that_reads_no_blocks_all_of_a_turn_is_plain(self):
        self.assertGreater(self.node.status()["bytes_spared"], 0)
        self.assertEqual(self.spared(self.target()), 0)

    def test_beside_a_neighbour_that_reads_blocks_all_of_a_turn_is_coded(self):
        self.assertGreater(self.spared(self.target(6)), 0)

    def test_a_neighbour_that_reads_halves_alone_gets_plain_shares(self):
        share = self.read(self.target(2))
        self.assertEqual((share[6], share[13]), (4 * self.parameters, 0))

    def test_a_neighbour_that_reads_blocks_gets_blocks(self):
        share = self.read(self.target(6))
        self.assertEqual((share[5], share[13]), (self.parameters, 2))
        self.assertLess(share[6], 4 * self.parameters)


if __name__ == "__main__":
    fleet.main()
