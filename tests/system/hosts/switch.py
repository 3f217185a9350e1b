# SPDX-License-Identifier: Apache-2.0
"""Fleets of several hosts: each node in a network namespace with an address of its own, on a cable to a
bridge that can be cut, choked, or cut in one direction only.

Packets are dropped at the bridge, so that nobody is told: no reset, no refusal, only silence."""
import os
import sys

import sandbox
from sandbox import call

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import fleet


@sandbox.once
def lay_out(hosts):
    """The bridge and its hosts, in namespaces that end with this process."""
    sandbox.need("ip", "nft", "tc", "nsenter")
    sandbox.enter(sandbox.NETWORK | sandbox.MOUNTS)
    # `ip netns` keeps its names here; nothing of it is to be seen outside.
    os.makedirs("/run/netns", exist_ok=True)
    sandbox.attempt("no tmpfs", "mount", "-t", "tmpfs", "sgpd-tests", "/run/netns")
    sandbox.attempt("no bridge", "ip", "link", "add", "switch", "type", "bridge")
    call("ip", "link", "set", "switch", "up")
    for i in range(hosts):
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
    hosts = 4

    def setUp(self):
        lay_out(self.hosts)
        self.addCleanup(self.mend)

    def fleet(self, kind=Hosts, **options):
        f = kind(self.hosts, **options)
        self.fleets = [f]
        self.addCleanup(f.close)
        return f

    # The cables.

    def cut(self, *rules):
        """Drop what these rules match, at the bridge."""
        for rule in rules:
            call("nft", "add", "rule", "bridge", "cables", "pass", *rule.split(), "drop")

    def cut_in_halves(self):
        names = [f'"cable{i}"' for i in range(self.hosts)]
        low, high = ", ".join(names[:self.hosts // 2]), ", ".join(names[self.hosts // 2:])
        self.cut(f"iifname {{ {low} }} oifname {{ {high} }}", f"iifname {{ {high} }} oifname {{ {low} }}")

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
        self.assertLessEqual(abs(sum(n.status()["weight"] for n in f.nodes) - f.n), 1e-9)
