# SPDX-License-Identifier: Apache-2.0
"""A neighbour that does not keep to the protocol, as a source and as a target of shares: it is told the
reason, a person is told in one line, no mass is made or lost, and the others train on."""
import os
import socket
import struct
import unittest.mock

import fleet
import peer
from fleet import FleetTest
from peer import Peer
from trio import Trio

REASONS = {
    3: "a weight, fraction, round or slice is out of range",
    4: "the models have other layers ([model] layers and local must be the same)",
    5: "the models have another loss ([model] loss must be the same)",
    6: "the classes or their order differ ([data] classes must be the same)",
    7: "the scaling differs ([data] scale must name the same file)",
    8: "the node is not in the topology file, or its address is another's",
    12: "a message that cannot come now",
    20: "the rounds of training differ 64 times and more ([train] epochs or rounds, or the rows of a "
        "node, are mistaken)",
}
STRANGERS_MAX = 64 # of daemon/net/listener.h


class Strangers(Trio):
    def cut(self, data):
        """What a caller that sends this and hangs up leaves in the log."""
        stranger = self.connect()
        stranger.send_bytes(data)
        stranger.close()
        port = stranger.port
        return self.fleet_.wait("a line", lambda: next(
            (line for line in self.node.log().splitlines()
             if "event=refused remote=127.0.0.1:%d " % port in line), None))

    def test_callers_of_other_protocols_are_named(self):
        self.assertIn('reason="a TLS client is calling, and by this node\'s topology file links are plain (tls=off); if it '
                      'is a node, both nodes need the same file"',
                      self.cut(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64)))
        for data, who in ((b"SSH-2.0-OpenSSH_9.2\r\n", "an SSH client"),
                          (b"POST / HTTP/1.1\r\n\r\n", "an HTTP client"),
                          (b"\x00", "a stranger")):
            self.assertIn('reason="%s is calling: its first bytes are not a frame of sgpd; this port is '
                          'for peers only"' % who, self.cut(data))
        self.assert_goes_on()

    def test_a_hello_cut_anywhere(self):
        hello = peer.frame(peer.HELLO, peer.pack(
            [2, False, 0, None, 10, None, "n2", "n0", 77, self.parameters, *self.fingerprint]))
        for count in (1, 4, 31, 32, 33, len(hello) - 1):
            self.assertIn('reason="the peer closed the connection"', self.cut(hello[:count]))
        self.assert_goes_on()

    def test_a_hello_with_a_flipped_bit(self):
        hello = peer.frame(peer.HELLO, peer.pack(
            [2, False, 0, None, 10, None, "n2", "n0", 77, self.parameters, *self.fingerprint]))
        for at in range(0, len(hello), 7):
            damaged = bytearray(hello)
            damaged[at] ^= 1 << at % 8
            stranger = self.connect()
            stranger.send_bytes(bytes(damaged))
            self.assertEqual(stranger.until_closed(), ([], []), "byte %d" % at)
        self.assertEqual(self.node.peer("n2", "in")["bytes_received"], 0)
        self.assert_goes_on()

    def test_frames_beyond_the_limits(self):
        for data, text in (
                (peer.frame(peer.HELLO, bytes(1025)),
                 "a body of 1025 bytes; a message has 1 to 1024, a chunk none"),
                (peer.frame(peer.HELLO), "a body of 0 bytes; a message has 1 to 1024, a chunk none"),
                (peer.frame(peer.CHUNK, payload=bytes((1 << 20) + 4))[:32], "a payload of 1048580 "
                 "bytes; a chunk has 4 to 1048576 and a multiple of 4, a message none"),
                (peer.frame(99, b"\x90"), "frame type 99 is not known"),
                (peer.frame(peer.HELLO, b"\xc1"), "hello frame: the body is not an array of 6 to")):
            self.assertIn('reason="' + text, self.cut(data))
        self.assert_goes_on()


class Flood(FleetTest):
    def test_200_silent_callers_and_a_neighbour_that_starts_after_them(self):
        f = self.fleet(2, options={"train.epochs": "100000"})
        f.start([0])
        f.wait("a status", f.nodes[0].status)
        flood = [Peer(f.ports[0]) for _ in range(200)]
        for caller in flood:
            self.addCleanup(caller.close)
        f.start([1])
        f.wait_round(0, 50)
        for caller in flood[:200 - STRANGERS_MAX]: # made room for the others
            self.assertEqual(caller.until_closed()[0], [peer.GOODBYE])
        for caller in flood[200 - STRANGERS_MAX:]: # had their five seconds
            self.assertEqual(caller.until_closed()[0], [peer.GOODBYE])
        before = f.nodes[0].status()["round"]
        f.wait_round(0, before + 50)
        self.assert_alive(f)
        # A flood of callers is no flood of lines.
        self.assertLess(f.nodes[0].log().count("event=refused"), 200)


class Source(Trio):
    """n2 dials n0."""

    def assert_ended(self, n2, reason):
        kinds, last = n2.until_closed()
        self.assertEqual((kinds[-1], last), (peer.GOODBYE, [reason, REASONS[reason]]))

    def test_another_model_is_told_what_differs(self):
        for i, reason in enumerate((4, 5, 6, 7)):
            fingerprint = list(self.fingerprint)
            fingerprint[i] ^= 1
            self.assert_ended(self.neighbour(fingerprint=fingerprint), reason)
            self.fleet_.wait_log(0, REASONS[reason])
            lines = [line for line in self.node.log().splitlines() if REASONS[reason] in line]
            self.assertEqual(len(lines), 1)
            self.assertIn('event=refused peer=n2 direction=in reason="', lines[0])
            self.assertEqual(self.node.peer("n2", "in")["last_error"], REASONS[reason])
        self.assert_goes_on()

    def test_what_may_differ_only_warns(self):
        for i, value in ((5, 1), (6, 0.5), (7, 99)):
            fingerprint = list(self.fingerprint)
            fingerprint[i] = value
            n2 = self.neighbour(fingerprint=fingerprint)
            n2.receive(peer.WELCOME)
            self.assertTrue(self.node.peer("n2", "in")["mismatch"])
        self.fleet_.wait_log(0, "event=mismatch peer=n2 direction=in reason=\"its topology, learning "
                             "rate or batch size differs\"")
        self.promised = True
        self.assert_goes_on()

    def test_shares_that_cannot_be(self):
        wire = "share frame: "
        for changes, reason in (
                ({"weight": 5.5}, REASONS[3]), # three members, and 2
                ({"fraction": 0.0, "weight": 0.0, "payload_bytes": 0, "asks": False, "bequest": 3.0},
                 REASONS[3]), # words, and no mass
                ({"asks": False, "bequest": 1.0}, REASONS[3]), # half of what it has
                ({"first": 1}, REASONS[3]),
                ({"count": self.parameters + 1, "payload_bytes": 4 * self.parameters + 4}, REASONS[3]),
                ({"round": 0}, "a share without a credit"),
                ({"number": 0}, wire + "field 'number' is of another type or out of range"),
                ({"fraction": 1.5}, wire + "field 'fraction' is of another type or out of range"),
                ({"weight": -1.0}, wire + "field 'weight' is of another type or out of range"),
                ({"weight": float("nan")}, wire + "field 'weight' is of another type or out of range"),
                ({"weight": "much"}, wire + "field 'weight' is of another type or out of range"),
                ({"count": 1 << 34}, wire),
                ({"payload_bytes": 8}, wire),
                ({"fraction": 0.0}, wire)):
            with self.subTest(**changes):
                n2, round_ = self.credited()
                self.share(n2, round_, bytes(4 * self.parameters), **changes)
                kinds, _ = n2.until_closed()
                self.assertEqual(kinds[-1:] == [peer.GOODBYE], not reason.startswith(wire))
                self.assertIn(reason, self.node.peer("n2", "in")["last_error"])
                self.assertIn("peer=n2 direction=in", [
                    line for line in self.node.log().splitlines() if reason in line][-1])
                self.retire()
        self.assertEqual(self.node.peer("n2", "in")["shares_received"], 0)
        self.assert_goes_on()

    def good_share(self, n2, round_):
        payload = struct.pack("<%df" % self.parameters, *[0.25] * self.parameters)
        self.share(n2, round_, payload)
        n2.chunk(payload)
        self.assertEqual(n2.receive(peer.ACK)[1], [1, 1])

    def test_a_share_sent_twice_is_taken_once(self):
        n2, round_ = self.credited()
        self.good_share(n2, round_)
        n2.round = n2.next_round = round_ + 1
        n2.send(peer.BEAT)
        while n2.receive(peer.CREDIT)[1] != [n2.round]:
            pass
        self.share(n2, n2.round, bytes(4 * self.parameters))
        self.assert_ended(n2, 3)
        self.assertEqual(self.node.peer("n2", "in")["shares_received"], 1)
        self.assert_goes_on(total=2.5)

    def test_a_share_cut_off_counts_for_nothing_and_may_come_again(self):
        n2, round_ = self.credited()
        payload = bytes(4 * self.parameters)
        self.share(n2, round_, payload)
        n2.chunk(payload[:8])
        n2.close()
        self.fleet_.wait_log(0, "event=down peer=n2 direction=in")
        again, round_ = self.credited()
        self.assertEqual(again.welcome[2], 0)
        self.good_share(again, round_)
        again.close()
        self.assertEqual(self.neighbour().receive(peer.WELCOME)[1][2], 1)
        self.assertEqual(self.neighbour(incarnation=78).receive(peer.WELCOME)[1][2], 0)
        self.assert_goes_on(total=2.5)

    def test_a_pulse_that_cannot_be(self):
        for name, value, text in (("ends", 1 << 47, REASONS[20]),
                                  ("round", 1 << 47, REASONS[3]), # beyond its own end
                                  ("state", 9, "beat frame: field 'state' is of another type or out of "
                                   "range"),
                                  ("round", 1 << 49, "beat frame: field 'round' is of another type or "
                                   "out of range")):
            n2 = self.neighbour()
            n2.receive(peer.WELCOME)
            setattr(n2, name, value)
            n2.send(peer.BEAT)
            n2.until_closed()
            self.assertIn(text, self.node.peer("n2", "in")["last_error"])
        self.promised = True
        self.assert_goes_on()

    def test_epochs_that_no_file_explains(self):
        """The file has no exact cycle, so that a neighbour's word begins nothing again."""
        for topology in (self.fingerprint[5], 12345):
            n2 = self.neighbour()
            n2.receive(peer.WELCOME)
            for number in range(1, 200):
                n2.round = self.node.status()["round"] if number % 20 == 0 else n2.round
                n2.send(peer.BEAT, 0, False, False, *[0.0] * 16, number, n2.round, topology)
                n2.skip()
            self.fleet_.wait_round(0, self.node.status()["round"] + 20)
            for node in self.fleet_.nodes[:2]:
                self.assertEqual(node.status()["cycles_renewed"], 0)
                self.assertNotIn("event=renewed", node.log())
            n2.close()
        self.promised = True
        self.assert_goes_on()

    def test_messages_of_the_other_side(self):
        for kind, fields in ((peer.CREDIT, [5]), (peer.ACK, [1, 1]), (peer.HELLO, None),
                             (peer.WELCOME, ["n2", 77, 0, *self.fingerprint])):
            n2 = self.neighbour()
            n2.receive(peer.WELCOME)
            if fields is None:
                n2.hello("n2", "n0", self.parameters, self.fingerprint)
            else:
                n2.send(kind, *fields)
            self.assert_ended(n2, 12)
        self.promised = True
        self.assert_goes_on()


class Target(Trio):
    """n2 is dialled by n0."""

    def welcome(self, accepted=0, incarnation=99, state=peer.TRAINING, name="n2", fingerprint=None):
        n2, _, _ = peer.dialled(self.listener)
        self.addCleanup(n2.close)
        n2.state = state
        n2.send(peer.WELCOME, name, incarnation, accepted, *(fingerprint or self.fingerprint))
        return n2

    def shared(self):
        """n2 having received a whole share; its fields."""
        n2 = self.welcome()
        kind, credited = None, None
        while kind != peer.SHARE: # n0 says when it will give until it gives
            kind, share = n2.receive(peer.BEAT, peer.SHARE)
            if kind == peer.BEAT and n2.heard[3] not in (None, credited):
                credited = n2.heard[3]
                n2.send(peer.CREDIT, credited)
        payload = b""
        while len(payload) < share[6]:
            payload += n2.receive(peer.CHUNK)[1]
        self.assertEqual((share[0], share[5]), (1, self.parameters))
        self.assertGreater(share[2], 0) # a third, or less from a node that holds too little
        self.assertLessEqual(share[2], 1 / 3)
        return n2, share[3]

    def owed(self):
        return self.node.peer("n2", "out")["weight_owed"]

    def pause(self, n2):
        n2.state = peer.PAUSED
        n2.send(peer.BEAT)

    def test_a_share_refused_comes_home(self):
        n2, weight = self.shared()
        self.assertAlmostEqual(self.owed(), weight, 12)
        self.pause(n2)
        n2.send(peer.ACK, 1, 2)
        self.fleet_.wait_log(0, 'event=share_returned peer=n2 direction=out reason="the share holds a '
                             'NaN or an infinity"')
        link = self.node.peer("n2", "out")
        self.assertEqual((link["shares_sent"], link["shares_returned"], link["weight_owed"]), (1, 1, 0))
        self.assert_goes_on()

    def test_a_share_accepted_leaves(self):
        n2, weight = self.shared()
        self.pause(n2)
        n2.send(peer.ACK, 1, 1)
        self.fleet_.wait("nothing to be owed", lambda: self.owed() == 0)
        self.assertEqual(self.node.peer("n2", "out")["shares_returned"], 0)
        self.assert_goes_on(2 - weight)

    def test_a_share_never_acknowledged_stays_owed_and_nobody_waits_for_ever(self):
        n2, weight = self.shared()
        self.fleet_.wait_log(0, "event=absent peer=n2 direction=out")
        self.assertAlmostEqual(self.owed(), weight, 12)
        self.assert_goes_on()
        self.assertAlmostEqual(self.owed(), weight, 12)
        n2.close()
        self.welcome(accepted=1, state=peer.PAUSED) # it had arrived after all
        self.fleet_.wait("nothing to be owed", lambda: self.owed() == 0)
        self.assert_goes_on(2 - weight)

    def test_an_old_error_is_not_told_as_the_reason_of_waiting(self):
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(os.path.join(self.fleet_.directory, "notify"))
        manager.settimeout(0.2)
        self.assertEqual(self.node.end(), 0)
        with unittest.mock.patch.dict(os.environ, NOTIFY_SOCKET=manager.getsockname()):
            self.fleet_.start([0])
        peer.overhear(self.listener)
        self.fleet_.wait("an error", lambda: self.node.status() and
                         self.node.peer("n2", "out")["last_error"])
        n2, _ = self.shared()

        def told():
            n2.send(peer.BEAT) # alive, and owing an answer
            try:
                line = manager.recv(4096).decode()
            except TimeoutError:
                return None
            return line if "waits for n2" in line else None

        self.assertRegex(self.fleet_.wait("a line", told), r"; waits for n2 \(acknowledgement\)\Z")

    def test_a_target_that_forgot_gets_no_old_mass(self):
        n2, _ = self.shared()
        n2.close()
        self.welcome(incarnation=100, state=peer.PAUSED)
        self.assertEqual(self.owed(), 0)
        sock, _ = self.listener.accept() # what it was owed before: had it accepted that?
        asked = Peer(sock=sock)
        self.addCleanup(asked.close)
        _, [source, _, target, incarnation, _] = asked.receive(peer.INQUIRE)
        self.assertEqual((source, target, incarnation), ("n0", "n2", 99))
        asked.send(peer.ANSWER, False, 100, 0)
        self.fleet_.wait_log(0, "event=settled peer=n2 weight=") # n1 knows nothing either
        self.assertIn("outcome=returned", self.node.log())
        self.assert_goes_on()

    def test_one_that_answers_for_the_target_before_is_believed(self):
        n2, weight = self.shared()
        n2.close()
        self.welcome(incarnation=100, state=peer.PAUSED)
        sock, _ = self.listener.accept()
        asked = Peer(sock=sock)
        self.addCleanup(asked.close)
        _, [_, _, _, _, number] = asked.receive(peer.INQUIRE)
        asked.send(peer.ANSWER, True, 100, number)
        self.fleet_.wait_log(0, "outcome=accepted")
        self.assert_goes_on(2 - weight)

    def test_a_question_is_answered_and_the_line_is_closed(self):
        for source, target, known in (("n1", "n2", False), ("n9", "n0", False)):
            stranger = self.connect()
            stranger.send(peer.INQUIRE, source, 5, target, 6, 7)
            kinds, [answer, _, _] = stranger.until_closed()
            self.assertEqual((kinds, answer), ([peer.ANSWER], known))
        self.assert_goes_on()

    def test_an_acknowledgement_of_nothing(self):
        n2 = self.welcome(state=peer.PAUSED)
        n2.send(peer.ACK, 41, 1)
        kinds, last = n2.until_closed()
        self.assertEqual((kinds[-1], last), (peer.GOODBYE, [12, REASONS[12]]))
        self.assert_goes_on()

    def test_an_acknowledgement_of_another_share(self):
        n2, weight = self.shared()
        n2.send(peer.ACK, 2, 1)
        kinds, last = n2.until_closed()
        self.assertEqual((kinds[-1], last), (peer.GOODBYE, [12, REASONS[12]]))
        self.assertAlmostEqual(self.owed(), weight, 12)
        self.welcome(accepted=1, state=peer.PAUSED)
        self.assert_goes_on(2 - weight)

    def test_credits_that_nobody_asked_for(self):
        n2 = self.welcome(state=peer.PAUSED)
        for round_ in range(3000):
            n2.send(peer.CREDIT, round_ << 20)
        self.assert_goes_on()
        self.assertEqual(self.node.peer("n2", "out")["shares_sent"], 0)

    def refused(self, reason, **changes):
        n2 = self.welcome(**changes)
        kinds, last = n2.until_closed()
        self.assertEqual((kinds[-1], last), (peer.GOODBYE, [reason, REASONS[reason]]))
        lines = [line for line in self.node.log().splitlines() if REASONS[reason] in line]
        self.assertEqual(len(lines), 1, lines)
        self.assertIn('event=refused peer=n2 direction=out reason="', lines[0])
        self.assert_goes_on()

    def test_another_model(self):
        self.refused(4, fingerprint=[self.fingerprint[0] ^ 1] + self.fingerprint[1:])

    def test_another_node_answers(self):
        self.refused(8, name="n1")

    def test_shares_from_a_target(self):
        n2 = self.welcome(state=peer.PAUSED)
        self.share(n2, 0, bytes(4 * self.parameters))
        kinds, last = n2.until_closed()
        self.assertEqual((kinds[-1], last), (peer.GOODBYE, [12, REASONS[12]]))
        self.assert_goes_on()


if __name__ == "__main__":
    fleet.main()
