# SPDX-License-Identifier: Apache-2.0
"""Whatever others do on the gossip port, n0 trains on at its pace: alone on the machine, for pace is what is
measured here."""
import struct
import time
import unittest

import fleet
import peer
from trio import Trio


class Greeting(Trio):
    def test_a_sound_greeting_of_another_incarnation_waits_and_cuts_no_live_link(self):
        self.assert_keeps_pace(lambda: self.refused_as_n1(14, incarnation=4711))
        self.assert_goes_on()


@unittest.skipUnless(fleet.LONG, "half a minute; with scripts/check --long")
class Trickle(Trio):
    """n2 sends four bytes of its payload now and then, and beats."""
    OPTIONS = {"model.layers": "dense 400 relu, dense 2"} # 14 KB: 3600 times four bytes

    def trickle(self, seconds):
        """Promise, announce a share and send that little of it; whether n0 has ended the connection."""
        n2, round_ = self.credited()
        payload = bytes(4 * self.parameters)
        self.share(n2, round_, payload)
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                n2.chunk(payload[:4])
                n2.send(peer.BEAT)
                time.sleep(0.1)
        except peer.Closed:
            return True
        n2.close()
        return False

    def test_a_payload_that_hardly_comes_holds_nobody_for_long_and_not_again(self):
        self.assertTrue(self.trickle(fleet.PATIENCE))
        self.fleet_.wait_log(0, "event=trickles peer=n2 direction=in reason=\"its payload came too slowly; "
                             "not waited for until one has come whole")
        self.assertTrue(self.node.peer("n2", "in")["overdue"])
        self.assert_keeps_pace(lambda: self.assertFalse(self.trickle(5)))
        n2, round_ = self.credited()
        payload = struct.pack("<%df" % self.parameters, *[0.25] * self.parameters)
        self.share(n2, round_, payload)
        n2.chunk(payload)
        self.assertEqual(n2.receive(peer.ACK)[1], [1, 1])
        self.assertFalse(self.node.peer("n2", "in")["overdue"])
        n2.close()
        self.assert_goes_on(total=2.5)


class ComputesForEver(Trio):
    """n2 says that it computes, and never ends its round."""
    OPTIONS = {"train.patience": "3"}

    def beat(self, n2, until, seconds=fleet.PATIENCE):
        """n2 goes on computing until that is true. It reads what comes: who does not is hung up on."""
        def beats():
            n2.send(peer.BEAT)
            n2.skip()
            return until()

        self.fleet_.wait("an end of that", beats, seconds, 0.2)

    def goes_on_beside(self, n2):
        before = self.node.status()["round"]
        self.beat(n2, lambda: self.node.status()["round"] >= before + 5)

    def overdue(self, direction):
        return self.node.peer("n2", direction)["overdue"]

    def catches_up(self, n2):
        """n2 tells the round where the fleet is, which has gone on when that arrives; whether it is waited for."""
        n2.round = n2.next_round = self.node.status()["round"] + 1
        n2.send(peer.BEAT)
        return not self.overdue("in")

    def test_a_source_that_computes_for_ever_is_not_waited_for_longer_than_the_patience(self):
        n2, round_ = self.credited()
        n2.computing = True
        self.beat(n2, lambda: self.overdue("in"))
        self.assertIn("event=overdue peer=n2 direction=in reason=\"its round takes longer than [train] "
                      "patience", self.node.log())
        self.goes_on_beside(n2)
        self.assertFalse(self.node.peer("n2", "in")["absent"])
        self.assertEqual(self.node.status()["overdue"], ["n2"])
        end = time.monotonic() + 3
        self.assert_keeps_pace(lambda: self.beat(n2, lambda: time.monotonic() > end))
        n2.computing = False # its round ends after all
        payload = struct.pack("<%df" % self.parameters, *[0.25] * self.parameters)
        self.share(n2, round_, payload)
        n2.chunk(payload)
        self.assertEqual(n2.receive(peer.ACK)[1], [1, 1])
        n2.round = round_ + 1
        n2.send(peer.BEAT)  # as if it had not given what it promised
        self.assertTrue(self.overdue("in"))
        self.fleet_.wait("n2 to be waited for again", lambda: self.catches_up(n2))
        n2.close()
        self.assert_goes_on(total=2.5)

    def test_a_target_that_computes_for_ever_is_not_waited_for_longer_than_the_patience(self):
        n2, _, _ = peer.dialled(self.listener)
        self.addCleanup(n2.close)
        n2.computing = True
        n2.send(peer.WELCOME, "n2", 99, 0, *self.fingerprint)
        self.beat(n2, lambda: self.overdue("out"))
        self.goes_on_beside(n2)
        end = time.monotonic() + 3
        self.assert_keeps_pace(lambda: self.beat(n2, lambda: time.monotonic() > end))
        self.assertEqual(self.node.peer("n2", "out")["shares_sent"], 0)
        n2.state = peer.PAUSED
        n2.send(peer.BEAT)
        self.assert_goes_on()


if __name__ == "__main__":
    fleet.main()
