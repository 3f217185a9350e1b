# SPDX-License-Identifier: Apache-2.0
"""A neighbour that is who it says it is, and lies: what it may do at worst (docs/SECURITY.md). n2 is played by the
test; n0 and n1 are daemons."""
import struct

import fleet
import peer
from trio import Trio

OUTSIZED, RANGE = 18, 3


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


if __name__ == "__main__":
    fleet.main()
