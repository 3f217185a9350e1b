# SPDX-License-Identifier: Apache-2.0
"""Faults on purpose: a neighbour killed, a line that breaks in mid-share, a process that stands still.
Nobody waits for longer than the detection bound, and no share is counted twice or lost."""
import math
import signal
import time

import fleet
from fleet import FleetTest
from proxy import Proxy

ROOMY = {"model.layers": "dense 2000 relu, dense 2"}  # 18,002 parameters: 72 kB a share


def total(fleet_, indices):
    """Weights held, given and not acknowledged."""
    held = owed = 0
    for i in indices:
        held += fleet_.nodes[i].status()["weight"]
        owed += sum(p["weight_owed"] for p in fleet_.nodes[i].json("/v1/peers"))
    return held + owed


class Killed(FleetTest):
    def test_a_neighbour_killed_for_good(self):
        """On a doubly stochastic file every share given before the death weighs 1/2, so what the dead
        node took with it can be counted: 1, what it was given, less what it gave."""
        f = self.fleet(4, options={"train.epochs": "400"})
        f.start()
        f.wait_round(3, 50)
        f.nodes[3].end(signal.SIGKILL)
        living = [0, 1, 2]
        f.wait_state("finished", living)
        given = taken = 0
        for i in living:
            for p in f.nodes[i].json("/v1/peers"):
                if p["name"] == "n3" and p["direction"] == "in":
                    given += p["shares_received"]
                if p["name"] == "n3" and p["direction"] == "out":
                    taken += p["shares_sent"] - p["shares_returned"] - (p["weight_owed"] > 0)
        self.assertLessEqual(abs(total(f, living) - (3 + 0.5 * given - 0.5 * taken)), 1e-9)
        for i in living:
            self.assertGreater(f.nodes[i].status()["test_accuracy"], 0.85)
        self.assertIn("event=absent peer=n3", f.nodes[0].log() + f.nodes[1].log())


class Pair(FleetTest):
    def pace(self, f):
        """Rounds of n0 in a second of its own clock, over the next 30."""
        before = f.nodes[0].status()
        f.wait_round(0, before["round"] + 30)
        after = f.nodes[0].status()
        return (after["round"] - before["round"]) / (after["uptime_seconds"] - before["uptime_seconds"])

    def test_the_survivor_keeps_the_pace_of_both(self):
        """n1 takes 300 steps a round and n0 one. Alone n0 made 40 times as many rounds as before; now it makes fewer."""
        f = self.fleet(2, phases=[[(0, 1), (1, 0)]], options={"train.epochs": None, "train.rounds": "10000000"},
                       own={1: {"train.local_steps": "300"}})
        f.start()
        f.wait_round(0, 100)
        together = self.pace(f)
        f.nodes[1].end(signal.SIGKILL)
        f.wait_log(0, "event=absent peer=n1")
        f.wait_round(0, f.nodes[0].status()["round"] + 10)
        self.assertLess(self.pace(f), 3 * together)
        self.assert_alive(f, [0])


class Ring(FleetTest):
    def test_the_one_behind_a_dead_node_names_itself_and_stays_finite(self):
        """n4 gives and hears nobody: it says so, and the guard keeps its weight from melting away."""
        ring = [[(i, (i + 1) % 8) for i in range(8)]]
        f = self.fleet(8, phases=ring, options={"train.epochs": "100000"})
        f.start()
        for i in range(8):
            f.wait_round(i, 30)
        f.nodes[3].end(signal.SIGKILL)
        f.wait_log(4, "event=hears_nobody unheard=n3")
        living = [0, 1, 2, 4, 5, 6, 7]
        for i in living:
            f.wait_round(i, f.nodes[i].status()["round"] + 300)
        for i in living:
            status = f.nodes[i].status()
            self.assertEqual(status["hears_nobody"], i == 4)
            self.assertEqual(status["unheard"], ["n3"] if i == 4 else [])
            self.assertGreater(status["weight"], 0.1)
            evaluation = f.nodes[i].json("/v1/evaluate", "POST")
            self.assertTrue(math.isfinite(evaluation["loss"]))
            self.assertGreater(evaluation["accuracy"], 0.8)
        f.nodes[3].start()
        f.wait_log(4, "event=hears_again")
        self.assertEqual(f.nodes[4].status()["unheard"], [])
        self.assert_alive(f)


class Reset(FleetTest):
    def test_a_line_reset_in_mid_share_a_hundred_times(self):
        resets = 100
        proxy = Proxy(None, resets, most_bytes=80000)
        self.addCleanup(proxy.close)
        f = self.fleet(4, dial={(0, 1): proxy.port},
                       options={**ROOMY, "train.epochs": "100000"})
        proxy.target_port = f.ports[1]
        f.start()
        f.wait("%d resets" % resets, lambda: proxy.resets == resets, 2 * fleet.PATIENCE)
        f.wait_round(0, f.nodes[0].status()["round"] + 10)
        for node in f.nodes:
            node.get("/v1/pause", "POST")
        f.wait_state("paused")
        f.wait("everything to be acknowledged",
               lambda: all(n.status()["weight_in_flight"] == 0 for n in f.nodes))
        self.assertLessEqual(abs(total(f, range(4)) - 4), 1e-9)
        out = f.nodes[0].peer("n1", "out")
        into = f.nodes[1].peer("n0", "in")
        self.assertEqual(out["shares_sent"] - out["shares_returned"], into["shares_received"])
        # one returns only with a reason: the line was down beyond the bound, and n1 said that it had not come
        self.assertEqual(out["shares_returned"], f.nodes[0].log().count("event=share_returned peer=n1"))
        self.assertGreater(into["shares_received"], 10)
        self.assert_alive(f)


class Stopped(FleetTest):
    def test_a_process_that_stands_still_longer_than_the_bound(self):
        f = self.fleet(4, options={**ROOMY, "train.epochs": "100000"})
        f.start()
        f.wait_round(3, 20)
        f.nodes[3].kill(signal.SIGSTOP)
        stopped = time.monotonic()
        for i in (0, 1):
            f.wait_log(i, "event=absent peer=n3")
        f.wait_round(0, f.nodes[0].status()["round"] + 50)
        if fleet.LONG:
            f.wait("30 s", lambda: time.monotonic() - stopped > 30)
            f.wait_round(0, f.nodes[0].status()["round"] + 50)
        f.nodes[3].kill(signal.SIGCONT)
        f.wait_log(0, "event=back peer=n3")
        f.wait_round(3, f.nodes[0].status()["round"])
        f.wait_round(3, f.nodes[3].status()["round"] + 20)
        for node in f.nodes:
            node.get("/v1/pause", "POST")
        f.wait_state("paused")
        f.wait("everything to be acknowledged",
               lambda: all(n.status()["weight_in_flight"] == 0 for n in f.nodes))
        self.assertLessEqual(abs(total(f, range(4)) - 4), 1e-9)
        self.assert_alive(f)


if __name__ == "__main__":
    fleet.main()
