# SPDX-License-Identifier: Apache-2.0
"""n0 and n1 are daemons that train together; n2, a neighbour of n0, is played by the test."""
import concurrent.futures
import socket
import time

import fleet
import peer
from fleet import FleetTest
from peer import Peer

PHASES = [[(0, 1), (1, 0), (0, 2), (2, 0)]]


class Trio(FleetTest):
    OPTIONS = {} # beyond those below

    def setUp(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.listener.close)
        self.listener.settimeout(fleet.PATIENCE)
        port = self.listener.getsockname()[1]
        self.fleet_ = self.fleet(3, phases=PHASES, dial={(0, 2): port},
                                 options={"train.start": "now", "train.epochs": "100000",
                                          **self.OPTIONS})
        self.fleet_.start([0, 1])
        self.node = self.fleet_.nodes[0]
        self.fleet_.wait_round(0, 5)
        self.fleet_.wait_round(1, 5)
        self.fleet_.wait("a share each way", self.both_give)
        self.n1_downs = self.downs_of_n1()
        self.promised = False
        self.parameters, self.fingerprint = peer.overhear(self.listener)

    def both_give(self):
        return all(node.peer(other, "out")["shares_sent"] > 0
                   for node, other in zip(self.fleet_.nodes, ("n1", "n0")))

    def connect(self):
        stranger = Peer(self.node.listen)
        self.addCleanup(stranger.close)
        return stranger

    # ---- n2 as a source ----

    def neighbour(self, **changes):
        """n2, greeted; `changes` are of its hello."""
        n2 = self.connect()
        n2.hello(**{"source": "n2", "target": "n0", "parameters": self.parameters,
                    "fingerprint": self.fingerprint, **changes})
        return n2

    def credited(self):
        """n2 with a credit; its round."""
        n2 = self.neighbour()
        _, n2.welcome = n2.receive(peer.WELCOME)
        self.promised = True
        n2.round = n2.next_round = self.node.status()["round"] + 1
        n2.send(peer.BEAT)
        _, [round_] = n2.receive(peer.CREDIT)
        return n2, round_

    def share(self, n2, round_, payload, **changes):
        """Announce a share; `changes` are of its fields."""
        fields = {"number": 1, "round": round_, "fraction": 0.5, "weight": 0.5, "first": 0,
                  "count": self.parameters, "payload_bytes": len(payload), **changes}
        n2.send(peer.SHARE, *fields.values())

    def retire(self):
        """n2 comes back once more and pauses, so that nobody waits for what it promised."""
        n2 = self.connect()
        n2.state = peer.PAUSED
        n2.hello("n2", "n0", self.parameters, self.fingerprint)
        n2.receive(peer.WELCOME)
        return n2

    # ---- somebody who greets n0 as n1, beside n1's own connection ----

    def downs_of_n1(self):
        return self.fleet_.nodes[1].log().count("event=down peer=n0 direction=out")

    def assert_n1_stays(self):
        """As when the test began: at first n1 may have dialled before n0 listened."""
        self.assertEqual(self.downs_of_n1(), self.n1_downs)

    def refused_as_n1(self, reason, **changes):
        kinds, last = self.neighbour(source="n1", **changes).until_closed()
        self.assertEqual((kinds, last[0]), ([peer.GOODBYE], reason))
        self.assert_n1_stays()
        self.assertEqual(self.node.log().count("event=up peer=n1 direction=in"), 1)

    # ---- what must hold whatever came ----

    def pace_while(self, condition):
        """Rounds of n0 a second while that is true, over a second at least."""
        begin, before = time.monotonic(), self.node.status()["round"]
        while condition() or time.monotonic() < begin + 1:
            self.fleet_.wait_round(0, self.node.status()["round"] + 1)
        return (self.node.status()["round"] - before) / (time.monotonic() - begin)

    def assert_keeps_pace(self, attack):
        """While `attack` goes on n0 trains at no less than half its pace without it, before or after:
        others may use the machine too."""
        before = self.pace_while(lambda: False)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            attacking = pool.submit(attack)
            pace = self.pace_while(lambda: not attacking.done())
            attacking.result()
        self.assertGreater(pace, min(before, self.pace_while(lambda: False)) / 2)

    def assert_goes_on(self, total=2):
        """Alive, training, and the weight of n0 and n1 with what is in flight is what it was."""
        if self.promised:
            self.retire()
        before = self.node.status()["round"]
        self.fleet_.wait_round(0, before + 20)
        self.assert_alive(self.fleet_, [0, 1])
        nodes = self.fleet_.nodes[:2]
        for node in nodes:
            node.get("/v1/pause", "POST")
        self.fleet_.wait_state("paused", [0, 1])
        self.fleet_.wait("n0 and n1 to owe each other nothing", lambda: all(
            node.peer(other, "out")["weight_owed"] == 0 for node, other in zip(nodes, ("n1", "n0"))))
        statuses = [node.status() for node in nodes]
        sum_ = sum(s["weight"] + s["weight_in_flight"] for s in statuses)
        self.assertLessEqual(abs(sum_ - total), 1e-12)
        for node in nodes:
            node.get("/v1/resume", "POST")
