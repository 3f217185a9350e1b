# SPDX-License-Identifier: Apache-2.0
"""Whatever comes in on the gossip port: one closed connection, one line in the log, and training goes
on."""
import json
import os
import random
import socket
import struct

import fleet
import peer
from fleet import FleetTest
from trio import Trio

class Hostile(Trio):
    # ---- strangers ----

    def test_a_port_scanner(self):
        for _ in range(40):
            socket.create_connection(("127.0.0.1", self.node.listen)).close()
        self.fleet_.wait_log(0, "event=refused")
        self.assert_goes_on()
        self.assertLessEqual(self.node.log().count("event=refused"), 40)

    def test_an_http_client(self):
        stranger = self.connect()
        stranger.send_bytes(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertEqual(stranger.until_closed()[0], [])
        self.fleet_.wait_log(0, "HTTP")
        self.assertEqual(self.node.log().count("event=refused"), 1)
        self.assert_goes_on()

    def test_random_bytes(self):
        draw = random.Random(5)
        for i in range(10):
            stranger = self.connect()
            try:
                stranger.send_bytes(draw.randbytes(2000) if i % 2 else peer.MAGIC + draw.randbytes(99))
            except peer.Closed:
                pass
            stranger.until_closed()
        self.fleet_.wait("10 lines", lambda: self.node.log().count("event=refused") == 10)
        self.assert_goes_on()

    def test_another_version_is_told_both_numbers(self):
        stranger = self.connect()
        stranger.send_bytes(peer.frame(peer.HELLO, b"whatever version 4 says", version=4))
        kinds, last = stranger.until_closed()
        self.assertEqual(kinds, [peer.GOODBYE])
        self.assertEqual(last[0], 9)
        self.fleet_.wait_log(0, "protocol version 4")
        self.assertIn("version 3", self.node.log())
        self.assert_goes_on()

    def test_silent_callers_do_not_keep_a_neighbour_out(self):
        silent = [self.connect() for _ in range(70)]
        self.fleet_.wait_log(0, "too many callers without a hello")
        n2 = self.neighbour()
        n2.receive(peer.WELCOME)
        self.assertEqual(silent[69].until_closed()[0], [peer.GOODBYE])
        self.fleet_.wait_log(0, "it said no hello within 5 s")
        self.assert_goes_on()

    def refused_hello(self, source, target, reason, text):
        stranger = self.connect()
        stranger.hello(source, target, self.parameters, self.fingerprint)
        kinds, last = stranger.until_closed()
        self.assertEqual((kinds, last[0]), ([peer.GOODBYE], reason))
        self.fleet_.wait_log(0, text)
        self.assert_goes_on()

    def test_an_unknown_name(self):
        self.refused_hello("mallory", "n0", 8, "it is called mallory, which this node's topology file does not")

    def test_a_caller_for_somebody_else(self):
        self.refused_hello("n2", "n1", 8, "n2 looks for node n1, and this is n0")

    def test_a_first_message_that_is_no_hello(self):
        stranger = self.connect()
        stranger.send(peer.BEAT)
        self.assertEqual(stranger.until_closed()[0], [peer.GOODBYE])
        self.fleet_.wait_log(0, "its first message was no hello")

    # ---- neighbours ----

    def test_another_number_of_parameters(self):
        n2 = self.neighbour(parameters=5)
        kinds, last = n2.until_closed()
        self.assertEqual((kinds, last[0]), ([peer.GOODBYE], 4))
        self.assert_goes_on()

    def test_a_share_without_a_credit(self):
        n2 = self.neighbour()
        n2.receive(peer.WELCOME)
        self.share(n2, 0, bytes(4 * self.parameters))
        kinds, last = n2.until_closed()
        self.assertEqual(last[0], 10)
        self.fleet_.wait_log(0, "peer=n2 direction=in reason=\"a share without a credit")
        self.assertEqual(self.node.peer("n2", "in")["shares_received"], 0)
        self.assert_goes_on()

    def test_a_share_that_is_good_is_accepted_and_weighs(self):
        n2, round_ = self.credited()
        payload = struct.pack("<%df" % self.parameters, *[0.25] * self.parameters)
        self.share(n2, round_, payload)
        n2.chunk(payload[:8])
        n2.send(peer.BEAT)
        n2.chunk(payload[8:])
        self.assertEqual(n2.receive(peer.ACK)[1], [1, 1])
        self.assertEqual(self.node.peer("n2", "in")["shares_received"], 1)
        n2.close()
        self.assert_goes_on(total=2.5)

    def test_nan_and_infinity_are_refused_returned_counted_and_named(self):
        for value in (float("nan"), float("inf")):
            n2, round_ = self.credited()
            values = [0.0] * self.parameters
            values[-1] = value
            payload = struct.pack("<%df" % self.parameters, *values)
            self.share(n2, round_, payload)
            n2.chunk(payload)
            self.assertEqual(n2.receive(peer.ACK)[1], [1, 2])
            n2.close()
        shown = self.node.peer("n2", "in")
        self.assertEqual((shown["shares_received"], shown["shares_returned"]), (0, 2))
        self.assertIn("n2", self.node.status()["last_error"])
        self.assertIn("NaN", self.node.status()["last_error"])
        self.assert_goes_on()

    def test_values_out_of_all_proportion_are_refused_returned_counted_and_named(self):
        n2, round_ = self.credited()
        self.share(n2, round_, payload := struct.pack("<%df" % self.parameters,
                                                      *[0.0] * (self.parameters - 1), -1e30))
        n2.chunk(payload)
        self.assertEqual(n2.receive(peer.ACK)[1], [1, 18])
        n2.close()
        shown = self.node.peer("n2", "in")
        self.assertEqual((shown["shares_received"], shown["shares_returned"]), (0, 1))
        self.assertIn("out of all proportion", self.node.status()["last_error"])
        self.assert_goes_on()

    def test_a_payload_that_was_damaged_ends_the_connection(self):
        n2, round_ = self.credited()
        payload = bytes(4 * self.parameters)
        self.share(n2, round_, payload)
        n2.chunk(payload[:8], announced=b"something else") # known before the rest has come
        self.assertEqual(n2.until_closed()[1][0], 11)
        self.assertEqual(self.node.peer("n2", "in")["shares_received"], 0)
        self.assert_goes_on()

    def test_payload_that_nobody_announced(self):
        n2 = self.neighbour()
        n2.receive(peer.WELCOME)
        n2.chunk(bytes(64))
        n2.until_closed()
        self.fleet_.wait_log(0, "payload that no share announced")
        self.assert_goes_on()

    def test_more_payload_than_announced(self):
        n2, round_ = self.credited()
        payload = bytes(4 * self.parameters)
        self.share(n2, round_, payload)
        n2.chunk(payload + bytes(4))
        n2.until_closed()
        self.fleet_.wait_log(0, "payload that no share announced")
        self.assert_goes_on()

    def test_a_second_share_in_the_middle_of_one(self):
        n2, round_ = self.credited()
        payload = bytes(4 * self.parameters)
        self.share(n2, round_, payload)
        n2.chunk(payload[:4])
        self.share(n2, round_, payload)
        n2.until_closed()
        self.fleet_.wait_log(0, "a share was announced in the middle of another")
        self.assert_goes_on()

    def test_a_neighbour_that_promises_and_falls_silent_is_not_waited_for(self):
        self.credited()
        self.fleet_.wait_log(0, "event=absent peer=n2 direction=in")
        self.promised = False
        self.assert_goes_on()


class Impostors(Trio):
    """Somebody who knows names, and greets n0 with them beside a neighbour's own connection."""

    def test_a_greeting_that_is_refused_cuts_no_live_link(self):
        for i, reason in enumerate((4, 5, 6, 7)):
            fingerprint = list(self.fingerprint)
            fingerprint[i] ^= 1
            self.refused_as_n1(reason, fingerprint=fingerprint)
        self.refused_as_n1(4, parameters=5)
        self.assertIsNone(self.node.peer("n1", "in")["last_error"])
        self.assert_goes_on()

    def test_a_greeting_with_a_pulse_that_cannot_be_cuts_no_live_link(self):
        for ends, round_, reason in ((1 << 47, 0, 20), (10 ** 6, 1 << 47, 3)):
            stranger = self.connect()
            stranger.ends, stranger.round = ends, round_
            stranger.hello("n1", "n0", self.parameters, self.fingerprint)
            kinds, last = stranger.until_closed()
            self.assertEqual((kinds, last[0]), ([peer.GOODBYE], reason))
        self.assert_n1_stays()
        self.assert_goes_on()

    def test_a_flood_of_greetings_cuts_no_live_link(self):
        flood = [self.neighbour(source="n1", incarnation=100 + i) for i in range(50)]
        for stranger in flood:
            self.assertEqual(stranger.until_closed()[0], [peer.GOODBYE])
        self.assert_n1_stays()
        self.assert_goes_on()

    def test_a_connection_that_speaks_stands_and_one_that_fell_silent_gives_way(self):
        old = self.neighbour()
        old.receive(peer.WELCOME)
        new = self.neighbour()
        new.socket.settimeout(0.05)
        for _ in range(20): # two beats of silence would end it
            old.send(peer.BEAT)
            self.assertRaises(TimeoutError, new.take_frame)
        new.socket.settimeout(30)
        self.assertEqual(new.receive(peer.WELCOME)[1][0], "n0")
        kinds, last = old.until_closed()
        self.assertEqual((kinds[-1], last[0]), (peer.GOODBYE, 14))
        self.promised = True
        self.assert_goes_on()

    def test_another_incarnation_gets_in_when_the_old_connection_ends(self):
        old = self.neighbour()
        old.receive(peer.WELCOME)
        new = self.neighbour(incarnation=78)
        new.socket.settimeout(0.2)
        self.assertRaises(TimeoutError, new.take_frame)
        new.socket.settimeout(30)
        old.close()
        self.assertEqual(new.receive(peer.WELCOME)[1][0], "n0")
        new.close()  # else the next connection of n2 waits for the end of this one
        self.promised = True
        self.assert_goes_on()


class EarlyAnswers(Trio):
    """n2, which n0 dials, with a model of 8 MB: more than the kernel takes for one who does not read."""
    OPTIONS = {"model.layers": "dense 1400 relu, dense 1400 relu, dense 2",
               "optimizer.learning_rate": "0.0001"}

    def shared(self):
        """n2 once a share was announced to it, of which it has read nothing else; the number."""
        n2, _, _ = peer.dialled(self.listener)
        self.addCleanup(n2.close)
        n2.send(peer.WELCOME, "n2", 99, 0, *self.fingerprint)
        credited = None
        while True:
            kind, fields = n2.receive(peer.BEAT, peer.SHARE)
            if kind == peer.SHARE:
                return n2, fields[0]
            if n2.heard[3] not in (None, credited):
                credited = n2.heard[3]
                n2.send(peer.CREDIT, credited)

    def answered_early(self, reason):
        n2, number = self.shared()
        n2.send(peer.ACK, number, reason)
        self.fleet_.wait_log(0, 'event=link_failed peer=n2 direction=out')
        self.fleet_.wait_log(0, "the peer acknowledged a payload before it was sent")
        owed = self.node.peer("n2", "out")
        self.assertGreater(owed["weight_owed"], 0)
        self.assertEqual(owed["shares_returned"], 0)
        n2.close()
        self.assert_goes_on()

    def test_a_share_accepted_before_it_came_stays_owed(self):
        self.answered_early(1)

    def test_a_share_refused_before_it_came_stays_owed(self):
        self.answered_early(2)


class OtherModel(FleetTest):
    """n1 trains something else: both say what differs, and n0 trains without it."""

    def refused(self, reason, options):
        f = self.fleet(3, phases=[[(0, 1), (1, 0), (0, 2), (2, 0)]], own={1: options},
                       options={"train.start": "now", "train.epochs": "100000"})
        f.start()
        f.wait_log(0, "event=refused peer=n1")
        f.wait_log(0, reason)
        f.wait_log(1, reason)
        before = f.nodes[0].status()["round"]
        f.wait_round(0, before + 20)
        self.assertIn(reason, f.nodes[0].peer("n1", "in")["last_error"])
        self.assert_alive(f)

    def test_another_shape(self):
        self.refused("layers", {"model.layers": "dense 4 relu, dense 2"})

    def test_another_loss(self):
        self.refused("loss", {"model.loss": "mse"})

    def test_another_setting_of_the_loss(self):
        self.refused("loss", {"model.class_weights": "1, 2"})

    def test_other_classes(self):
        self.refused("classes", {"data.classes": "pos neg"})

    def test_another_scaling(self):
        columns = [{"name": "f%d" % i, "mean": 0.5, "deviation": 2} for i in range(6)]
        directory = self.enterContext(fleet.tempfile.TemporaryDirectory())
        path = os.path.join(directory, "scale.json")
        with open(path, "w") as file:
            json.dump({"sgp_scaling": 1, "columns": columns}, file)
        self.refused("scal", {"data.scale": path})

    def test_another_learning_rate_only_warns(self):
        f = self.fleet(2, own={1: {"optimizer.learning_rate": "0.05"}})
        f.start()
        f.wait_state("finished")
        self.assertIn("event=mismatch peer=n1", f.nodes[0].log())
        self.assertTrue(f.nodes[0].peer("n1", "in")["mismatch"])


if __name__ == "__main__":
    fleet.main()
