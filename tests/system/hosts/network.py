#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Hosts whose cables are cut, choked, or lose packets. network.py SGPD [TEST...]"""
import json
import time
import unittest

import sandbox
from sandbox import call
from switch import Hosts, HostsOfIPv6, NetworkTest, fleet
from test_fleet_rows import rows

HOSTS = 4
BOUND_SECONDS = 30  # the longest silence that is not yet absence
AGREE_SECONDS = 5  # until the rows of the fleet are the same everywhere, once there is a way for them
CUT_SECONDS = 40 if fleet.LONG else 6
RATE = "1mbit" if fleet.LONG else "10mbit"
ROOMY = {"model.layers": "dense 2000 relu, dense 2"}  # 18,002 parameters: 72 kB a share


class FourHosts(NetworkTest):
    hosts = HOSTS

    def assert_finished(self, f):
        for status in f.wait_state("finished", timeout=4 * fleet.PATIENCE):
            self.assertGreater(status["test_accuracy"], 0.85)
        self.assert_mass(f)
        self.assert_alive(f)


class Addresses(FourHosts):
    def check(self, kind):
        f = self.fleet(kind, options={"train.epochs": "40"})
        f.start()
        self.assert_finished(f)
        for node in f.nodes:
            for peer in node.json("/v1/peers"):
                there = f.nodes[int(peer["name"][1])]
                self.assertEqual(peer["address"], f"{f.host(there.index)}:{there.listen}")
                self.assertEqual(peer["shares_returned"], 0)

    def test_ipv4(self):
        self.check(Hosts)

    def test_ipv6(self):
        self.check(HostsOfIPv6)


class Cuts(FourHosts):
    """Each is longer than the silence that makes a neighbour absent."""

    OPTIONS = {**ROOMY, "train.epochs": None, "train.rounds": "1G"}

    def start(self):
        f = self.fleet(options=self.OPTIONS)
        f.start()
        f.wait_round(3, 50)
        return f

    def last(self, began):
        """Let a cut be as long as it was meant to be."""
        fleet.poll("the end of the cut", lambda: time.monotonic() - began > CUT_SECONDS, 2 * CUT_SECONDS,
                   self.logs)

    def go_on(self, f, index, rounds=50, timeout=2 * BOUND_SECONDS):
        """The node makes rounds; the seconds that it took."""
        began = time.monotonic()
        f.wait_round(index, f.nodes[index].status()["round"] + rounds, timeout)
        return time.monotonic() - began

    @staticmethod
    def spread(f):
        rounds = [node.status()["round"] for node in f.nodes]
        return max(rounds) - min(rounds)

    def check_mended(self, f):
        """Everybody hears everybody, nothing is lost, and training goes on."""
        began = time.monotonic()
        f.wait("all neighbours to be up", lambda: all(
            p["state"] == "up" for n in f.nodes for p in n.json("/v1/peers")), 2 * fleet.PATIENCE)
        sandbox.tell("all are up again %.1f s after mending" % (time.monotonic() - began))
        self.pause(f)
        self.assert_mass(f)
        self.resume(f)
        for i in range(HOSTS):
            self.go_on(f, i)
        f.wait("all to be near each other", lambda: self.spread(f) < 20)
        self.pause(f)
        self.assert_mass(f)
        self.assert_alive(f)

    def check_one(self, *rules):
        """n3 cut off by these rules; the others go on."""
        f = self.start()
        began = time.monotonic()
        self.cut(*rules)
        for i in (0, 1):  # to whom n3 gives
            f.wait_log(i, "event=absent peer=n3", 2 * BOUND_SECONDS)
        sandbox.tell("n3 is absent after %.1f s" % (time.monotonic() - began))
        for i in (0, 1, 2):
            self.go_on(f, i)
        self.last(began)
        self.mend()
        self.check_mended(f)

    def test_a_cable_cut(self):
        self.check_one("iifname cable3", "oifname cable3")

    @unittest.skipUnless(fleet.LONG, "with SGP_LONG=1")
    def test_a_cable_that_only_hears(self):
        self.check_one("iifname cable3")

    @unittest.skipUnless(fleet.LONG, "with SGP_LONG=1")
    def test_a_cable_that_only_speaks(self):
        self.check_one("oifname cable3")

    def test_a_switch_cut_in_halves(self):
        f = self.start()
        f.wait("all to know of all", lambda: all(
            {row["state"] for row in rows(node).values()} == {"training"} for node in f.nodes))
        began = time.monotonic()
        self.cut_in_halves()
        for i in range(HOSTS):
            f.wait_log(i, "event=absent", 2 * BOUND_SECONDS)
        sandbox.tell("both halves know after %.1f s" % (time.monotonic() - began))
        for i in range(HOSTS):
            self.go_on(f, i)
        self.check_ages(f)
        self.last(began)
        self.mend()
        self.check_agreement(f, time.monotonic())
        self.check_mended(f)

    def check_ages(self, f):
        """Each half shows what the other half said last, with its age, and has fresh rows of its own."""
        halves = f.nodes[:HOSTS // 2], f.nodes[HOSTS // 2:]
        for near, far in (halves, halves[::-1]):
            for node in near:
                def old(node=node, far=far):
                    return all(rows(node)[other.name]["stale"] for other in far)
                f.wait("rows to be stale", old, BOUND_SECONDS)
                shown, before = rows(node), {}
                for other in far:
                    self.assertEqual(shown[other.name]["state"], "training")
                    self.assertGreater(shown[other.name]["age"], 10)
                    f.wait_log(node.index, f"event=unheard_of peer={other.name} state=training")
                    before[other.name] = shown[other.name]
                self.assertFalse(any(shown[other.name]["stale"] for other in near))
                f.wait("them to be older", lambda node=node, before=before: all(
                    rows(node)[name]["age"] > row["age"] for name, row in before.items()))
                for name, row in before.items():
                    self.assertEqual({**rows(node)[name], "age": 0}, {**row, "age": 0})

    def check_agreement(self, f, mended):
        """Every node has a row of every other node that is younger than the mending."""
        low, high = ([node.name for node in half] for half in (f.nodes[:HOSTS // 2], f.nodes[HOSTS // 2:]))

        def joined():
            return any(p["state"] == "up" and not p["absent"] for node in f.nodes for p in node.json("/v1/peers")
                       if (node.name in low) == (p["name"] in high))

        def agree():
            return all(row["age"] is not None and row["age"] < time.monotonic() - mended
                       for node in f.nodes for row in rows(node).values() or [{"age": None}])
        f.wait("a link between the halves", joined, 2 * fleet.PATIENCE)
        linked = time.monotonic()
        f.wait("the rows to agree", agree, AGREE_SECONDS)
        for node in f.nodes:
            self.assertEqual(sorted(rows(node)), sorted(low + high))
        sandbox.tell("rows agree %.1f s after mending, %.1f s after the first link" % (
            time.monotonic() - mended, time.monotonic() - linked))


class Bad(FourHosts):
    def choke(self, device, *where):
        limit = ("rate", RATE, "burst", "16kb", "latency", "400ms")
        sandbox.attempt("no tbf", "tc", *where, "qdisc", "add", "dev", device, "root", "tbf", *limit)
        self.addCleanup(call, "tc", *where, "qdisc", "delete", "dev", device, "root")

    def test_a_slow_cable_is_waited_for(self):
        """One host with a thin cable, both ways: the fleet is as slow as it, and loses nothing."""
        self.choke("eth0", "-n", "h3")
        self.choke("cable3")
        f = self.fleet(options={**ROOMY, "train.epochs": None, "train.rounds": "40"})
        began = time.monotonic()
        f.start()
        self.assert_finished(f)
        sent = sum(p["bytes_sent"] for p in f.nodes[3].json("/v1/peers") if p["direction"] == "out")
        sandbox.tell("%d bytes in %.1f s through %s" % (sent, time.monotonic() - began, RATE))
        limited = json.loads(call("tc", "-n", "h3", "-s", "-j", "qdisc", "show", "dev", "eth0"))
        self.assertGreater(limited[0]["overlimits"], 0)
        for node in f.nodes:
            self.assertNotIn("event=absent", node.log())

    def test_a_cable_that_loses_packets(self):
        """One in twenty, both ways."""
        self.cut("iifname cable3 numgen random mod 20 == 0", "oifname cable3 numgen random mod 20 == 0")
        f = self.fleet(options={**ROOMY, "train.epochs": None, "train.rounds": "40"})
        f.start()
        self.assert_finished(f)


if __name__ == "__main__":
    fleet.main()
