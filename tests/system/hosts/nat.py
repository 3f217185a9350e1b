#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A node behind a translation of addresses, which forgets its connections. nat.py SGPD SGPCTL [TEST...]

n0 and n1 are hosts on the switch. h2 translates for a host behind it, on which n2 lives: nobody can dial that. What h2 does
not know it drops, both ways, so that nobody is told when it has forgotten."""
import time

import sandbox
from sandbox import call
from switch import Hosts, NetworkTest, lay_out
import fleet
import tls

BOUND_SECONDS = 30  # the longest silence that is not yet absence
TIMES = 5 if fleet.LONG else 1
PUBLIC, ROUTER, INSIDE = "10.77.0.3", "192.168.77.1", "192.168.77.2"
RULES = """
add table ip translation
add chain ip translation out { type nat hook postrouting priority 100; }
add rule ip translation out oifname eth0 masquerade
add chain ip translation own { type filter hook input priority 0; policy drop; }
add chain ip translation pass { type filter hook forward priority 0; policy drop; }
add rule ip translation pass ct state established accept
add rule ip translation pass iifname eth1 ct state new accept
"""
FORGET = """
import socket, struct
FLUSH = 1 << 8 | 2  # IPCTNL_MSG_CT_DELETE of NFNL_SUBSYS_CTNETLINK, of no connection in particular
with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12) as kernel:  # NETLINK_NETFILTER
    kernel.send(struct.pack("<IHHIIBBH", 20, FLUSH, 5, 1, 0, socket.AF_INET, 0, 0))
    raise SystemExit(struct.unpack_from("<i", kernel.recv(4096), 16)[0])
"""


@sandbox.once
def translate():
    lay_out(3)
    call("ip", "netns", "add", "inside")
    sandbox.attempt("no veth", "ip", "-n", "h2", "link", "add", "eth1", "type", "veth", "peer", "name", "eth0",
                    "netns", "inside")
    for namespace, device, address in (("h2", "eth1", ROUTER), ("inside", "eth0", INSIDE)):
        call("ip", "-n", namespace, "address", "add", address + "/24", "dev", device)
        call("ip", "-n", namespace, "link", "set", device, "up")
    call("ip", "-n", "inside", "link", "set", "lo", "up")
    call("ip", "-n", "inside", "route", "add", "default", "via", ROUTER)
    within = ("ip", "netns", "exec", "h2")
    sandbox.attempt("no forwarding", *within, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1")
    sandbox.attempt("no translation", *within, "nft", RULES)
    sandbox.attempt("connections are taken up in their middle", *within, "sysctl", "-q", "-w",
                    "net.netfilter.nf_conntrack_tcp_loose=0")
    forget()


def forget():
    """All connections, at once."""
    sandbox.attempt("no connections can be forgotten", "ip", "netns", "exec", "h2", "/usr/bin/python3", "-c", FORGET)


class Translated(tls.TlsFleet, Hosts):
    """The last node has no address, and lives behind h2."""

    def host(self, index):
        return INSIDE if index == 2 else super().host(index)

    def address(self, index, other):
        return "none" if other == 2 else super().address(index, other)

    def command(self, node):
        command = super().command(node)
        return [word if word != "h2" else "inside" for word in command]


class Translation(NetworkTest):
    hosts = 3

    def setUp(self):
        super().setUp()
        translate()

    def ups(self, f):
        """How often each link of n2 came to be."""
        return [f.nodes[i].log().count("event=up peer=n2 direction=" + way) for i in (0, 1) for way in ("in", "out")]

    def test_a_node_behind_it_trains_and_survives_that_it_is_forgotten(self):
        f = self.fleet(Translated, phases=[[(i, (i + hop) % 3) for i in range(3)] for hop in (1, 2)],
                       options={"train.epochs": "1000000"})
        f.start()
        f.wait_ciphered()
        for _ in range(TIMES):
            for i in range(3):
                f.wait_round(i, f.nodes[i].status()["round"] + 50)
            before = self.ups(f)
            forget()
            began = time.monotonic()
            f.wait("links of n2 to be made anew", lambda: all(
                now > then for now, then in zip(self.ups(f), before)), 2 * BOUND_SECONDS)
            f.wait_ciphered()
            sandbox.tell("all are up again %.1f s after it forgot" % (time.monotonic() - began))
        for i in (0, 1):
            self.assertIn("event=up peer=n2 direction=in remote=" + PUBLIC, f.nodes[i].log())
        for i in range(3):
            f.wait_round(i, f.nodes[i].status()["round"] + 50)
        self.pause(f)
        self.assert_mass(f)
        self.assert_alive(f)


if __name__ == "__main__":
    tls.main()
