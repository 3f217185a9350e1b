# SPDX-License-Identifier: Apache-2.0
"""A neighbour that is who it says it is, and lies: what it may do at worst (docs/SECURITY.md). n2 is played by the
test; n0 and n1 are daemons."""
import signal
import socket
import struct

import fleet
import peer
from fleet import FleetTest
from peer import Peer
from trio import PHASES, Trio

OUTSIZED, RANGE = 18, 3
TOLD, AGREED = 1, 2  # kinds of words


class Known(Trio):
    def lies(self, value=0.25, **changes):
        """n2 gives a share of such values; the reason with which it is answered."""
        n2, round_ = self.credited()
        payload = struct.pack("<%df" % self.parameters, *[value] * self.parameters)
        self.share(n2, round_, payload, **changes)
        n2.chunk(payload)
        _, [number, reason] = n2.receive(peer.ACK)
        self.assertEqual(number, 1)
        return reason

    def test_values_of_a_million_are_refused_and_the_loss_stays(self):
        self.fleet_.wait("lengths to be known",
                         lambda: self.node.peer("n1", "in")["shares_received"] > 40)
        before = self.node.status()["loss"]
        self.assertEqual(self.lies(1e6), OUTSIZED)
        self.fleet_.wait_log(0, 'event=refused peer=n2 direction=in reason="a value of the share is out of '
                             'all proportion')
        link = self.node.peer("n2", "in")
        self.assertEqual((link["shares_received"], link["shares_returned"]), (0, 1))
        self.assert_goes_on()
        self.assertLess(max(node.status()["loss"] for node in self.fleet_.nodes[:2]), 2 * before + 1)

    def test_a_share_heavier_than_its_edge_can_carry_comes_home(self):
        # Half of 3 members and 2.
        self.assertEqual(self.lies(fraction=1.0, weight=2.625), RANGE)
        self.assertEqual(self.node.peer("n2", "in")["shares_returned"], 1)
        self.assert_goes_on()

    def test_one_neighbour_s_far_round_takes_nobody_along(self):
        n2 = self.connect()
        n2.round = n2.ends
        n2.hello("n2", "n0", self.parameters, self.fingerprint)
        n2.receive(peer.WELCOME)
        for _ in range(20):
            n2.send(peer.BEAT)
        self.fleet_.wait("n0 to hear of it", lambda: self.node.peer("n2", "in")["round"] == n2.round)
        self.promised = True
        self.assert_goes_on()
        for node in self.fleet_.nodes[:2]:
            status = node.status()
            self.assertLess(status["round"], n2.round)
            self.assertEqual(status["state"], "training")


class Words(Trio):
    """n0 and n1 decide on the best model with n2, which says what it likes."""
    OPTIONS = {"train.keep_best": "log_loss", "train.evaluate_every": "10", "log.level": "debug"}
    OTHERS = 7  # a digest of members whom the file does not name

    def setUp(self):
        super().setUp()
        self.members = 0
        for name in "n0", "n1", "n2":
            self.members = peer.checksum(name.encode() + b"\0", self.members)
        for node in self.fleet_.nodes[:2]:
            self.fleet_.wait("a word of its own", lambda node=node: node.status()["best_waits"] == "n2")
        self.n2 = self.retire()

    def tell(self, number, members, author="n2", text="1"):
        self.n2.send(peer.FACT, TOLD, number, members, 0, author, text)

    def agree(self, number, members, count=1):
        self.n2.send(peer.FACT, AGREED, number, members, count, "n2", "")

    def wait_decided(self, number, count, times=1):
        for node in self.fleet_.nodes[:2]:
            self.fleet_.wait("a decision", lambda node=node: node.log().count(
                "event=decided number=%d members=%d\n" % (number, count)) >= times)

    def decided(self):
        return [int(line.split("number=")[1].split()[0]) for node in self.fleet_.nodes[:2]
                for line in node.log().splitlines() if "event=decided" in line]

    def test_words_far_ahead_end_nobody(self):
        for number in (2 ** 64 - 1, 2 ** 64 - 2, 2 ** 62 + 1, 2 ** 62, 2 ** 40 + 1):
            for members in self.OTHERS, self.members:
                self.tell(number, members, "n2")
                self.tell(number, members, "x")
                self.agree(number, members)
        self.tell(3, self.OTHERS, "x")
        self.agree(3, self.OTHERS)
        self.wait_decided(3, 1)
        self.fleet_.nodes[1].end(signal.SIGKILL)
        self.fleet_.nodes[1].start()
        self.fleet_.wait("n1 to hear of it again", lambda: self.fleet_.nodes[1].log().count("event=decided number=3 ") == 2)
        self.fleet_.wait_round(0, self.node.status()["round"] + 20)
        self.assert_alive(self.fleet_, [0, 1])
        self.assertEqual(self.decided(), [3] * 3)

    def test_a_decision_of_the_members_of_the_file_has_as_many_words(self):
        """Whatever somebody says of their number."""
        for count in 0, 1, 2, 4, 2 ** 32 - 1:
            self.agree(1, self.members, count)
        self.agree(2, self.members, 1)
        self.tell(2, self.members)
        self.tell(1, self.members)
        self.wait_decided(1, 3)
        self.wait_decided(2, 3)
        self.assertEqual(self.decided(), [1, 2] * 2)
        self.assert_goes_on()


class Large(fleet.Fleet):
    """n0, n1 and n2, and many others who are not there."""
    OTHERS = ["x%d" % i for i in range(400)]

    def says(self):
        return "".join('  %s [address="192.0.2.1:%d"];\n' % (name, 7311 + i) for i, name in enumerate(self.OTHERS))


class Slow(FleetTest):
    """n0 is a daemon in a large fleet; its neighbours are played by the test, and n1 reads late."""

    def setUp(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.listener.close)
        self.listener.settimeout(fleet.PATIENCE)
        self.fleet_ = Large(3, phases=PHASES, dial={(0, 2): self.listener.getsockname()[1]},
                            options={"train.start": "now", "train.epochs": "100000", "data.shards": "none"})
        self.addCleanup(self.fleet_.close)
        self.fleet_.start([0])
        self.node = self.fleet_.nodes[0]
        self.parameters, self.fingerprint = peer.overhear(self.listener)

    def neighbour(self, name, slow=False):
        """It has a connection that takes some kilobytes before it is read."""
        sock = socket.socket()
        if slow:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        sock.settimeout(fleet.PATIENCE)
        sock.connect(("127.0.0.1", self.node.listen))
        one = Peer(sock=sock)
        self.addCleanup(one.close)
        one.state = peer.PAUSED
        one.hello(name, "n0", self.parameters, self.fingerprint)
        one.receive(peer.WELCOME)
        return one

    def words_of(self, one, count):
        """So many words that come to it, and how often an agreement came before the last of them."""
        words, agreed = [], 0
        while len(words) < count:
            _, [kind, number, _, _, author, text] = one.receive(peer.FACT)
            words += [(number, author, text)] if kind == TOLD else []
            agreed += kind == AGREED
        return sorted(words), agreed

    def test_words_wait_for_a_neighbour_that_reads_late(self):
        """They are many times what the queue of a link takes. Those that come while it is up, and those of its greeting."""
        names = ["n0", "n1", "n2", *Large.OTHERS]
        words = sorted((number, name, name + 190 * "x") for number in range(1, 5) for name in names)
        late, teller = self.neighbour("n1", slow=True), self.neighbour("n2")
        for number, author, text in words:
            teller.send(peer.FACT, TOLD, number, 7, 0, author, text)
        teller.send(peer.FACT, AGREED, 1, 7, len(names), "n2", "")
        self.fleet_.wait_log(0, "event=decided number=1 members=%d" % len(names))
        self.assertNotIn("does not read", self.node.log())
        self.assertEqual(self.words_of(late, len(words))[0], words)
        late.close()
        self.fleet_.wait_log(0, "event=down peer=n1 direction=in")
        late = self.neighbour("n1", slow=True)
        self.assertEqual(self.words_of(late, len(words)), (words, 1))
        self.assertNotIn("does not read", self.node.log())


if __name__ == "__main__":
    fleet.main()
