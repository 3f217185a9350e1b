#!/usr/bin/python3
"""Fleets of several hosts: each node in a network namespace with an address of its own, on a cable to a
bridge that can be cut, choked, or cut in one direction only. network.py SGPD [TEST...]

Packets are dropped at the bridge, so that nobody is told: no reset, no refusal, only silence."""
import json
import os
import sys
import time

import sandbox
from sandbox import call

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import fleet

HOSTS = 4
BOUND_SECONDS = 30  # the longest silence that is not yet absence
CUT_SECONDS = 40 if fleet.LONG else 6
RATE = "1mbit" if fleet.LONG else "10mbit"
ROOMY = {"model.layers": "dense 2000 relu, dense 2"}  # 18,002 parameters: 72 kB a share


@sandbox.once
def switch():
    """The bridge and its hosts, in namespaces that end with this process."""
    sandbox.need("ip", "nft", "tc", "nsenter")
    sandbox.enter(sandbox.NETWORK | sandbox.MOUNTS)
    # `ip netns` keeps its names here; nothing of it is to be seen outside.
    os.makedirs("/run/netns", exist_ok=True)
    sandbox.attempt("no tmpfs", "mount", "-t", "tmpfs", "sgpd-tests", "/run/netns")
    sandbox.attempt("no bridge", "ip", "link", "add", "switch", "type", "bridge")
    call("ip", "link", "set", "switch", "up")
    for i in range(HOSTS):
        plug(i)
    sandbox.attempt("no nftables on bridges", "nft", "add table bridge cables; add chain bridge cables pass "
                    "{ type filter hook forward priority 0; }")


def plug(i):
    call("ip", "netns", "add", f"h{i}")
    sandbox.attempt("no veth", "ip", "link", "add", f"cable{i}", "type", "veth", "peer", "name", "eth0",
                    "netns", f"h{i}")
    call("ip", "link", "set", f"cable{i}", "master", "switch", "up")
    inside = ("ip", "-n", f"h{i}")
    call(*inside, "link", "set", "lo", "up")
    call(*inside, "address", "add", f"10.77.0.{i + 1}/24", "dev", "eth0")
    call(*inside, "address", "add", f"fd77::{i + 1}/64", "dev", "eth0", "nodad")
    call(*inside, "link", "set", "eth0", "up")


class Hosts(fleet.Fleet):
    """A fleet whose nodes live on the hosts."""

    ipv6 = False

    def host(self, index):
        return f"[fd77::{index + 1}]" if self.ipv6 else f"10.77.0.{index + 1}"

    def command(self, node):
        return ["ip", "netns", "exec", f"h{node.index}", *super().command(node)]


class HostsOfIPv6(Hosts):
    ipv6 = True


class NetworkTest(fleet.FleetTest):
    def setUp(self):
        switch()
        self.addCleanup(self.mend)

    def fleet(self, kind=Hosts, **options):
        f = kind(HOSTS, **options)
        self.fleets = [f]
        self.addCleanup(f.close)
        return f

    # The cables.

    def cut(self, *rules):
        """Drop what these rules match, at the bridge."""
        for rule in rules:
            call("nft", "add", "rule", "bridge", "cables", "pass", *rule.split(), "drop")

    def mend(self):
        call("nft", "flush", "chain", "bridge", "cables", "pass")

    # The mass.

    def pause(self, f):
        for node in f.nodes:
            node.get("/v1/pause", "POST")
        f.wait_state("paused")
        f.wait("everything to be acknowledged",
               lambda: all(n.status()["weight_in_flight"] == 0 for n in f.nodes))

    def resume(self, f):
        for node in f.nodes:
            node.get("/v1/resume", "POST")

    def assert_mass(self, f):
        self.assertLessEqual(abs(sum(n.status()["weight"] for n in f.nodes) - HOSTS), 1e-9)

    def assert_finished(self, f):
        for status in f.wait_state("finished", timeout=4 * fleet.PATIENCE):
            self.assertGreater(status["test_accuracy"], 0.85)
        self.assert_mass(f)
        self.assert_alive(f)


class Addresses(NetworkTest):
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


class Cuts(NetworkTest):
    """Each is longer than the silence that makes a neighbour absent."""

    OPTIONS = {**ROOMY, "train.epochs": "100000"}

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

    def test_a_cable_that_only_hears(self):
        self.check_one("iifname cable3")

    def test_a_cable_that_only_speaks(self):
        self.check_one("oifname cable3")

    def test_a_switch_cut_in_halves(self):
        f = self.start()
        began = time.monotonic()
        self.cut('iifname { "cable0", "cable1" } oifname { "cable2", "cable3" }',
                 'iifname { "cable2", "cable3" } oifname { "cable0", "cable1" }')
        for i in range(HOSTS):
            f.wait_log(i, "event=absent", 2 * BOUND_SECONDS)
        sandbox.tell("both halves know after %.1f s" % (time.monotonic() - began))
        for i in range(HOSTS):
            self.go_on(f, i)
        self.last(began)
        self.mend()
        self.check_mended(f)


class Bad(NetworkTest):
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
