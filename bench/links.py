# SPDX-License-Identifier: Apache-2.0
"""Links to measure over: the hosts of tests/system/hosts/switch.py, each with a cable to one bridge, whose
cables are slowed down to a rate in both directions, or lengthened by a delay. Needs root.

The rate is that of a token bucket (tc-tbf), which counts Ethernet frames without preamble and check sum: of
1514 bytes TCP carries 1448, so at most 0.956 of the rate is payload. The delay is kept by a program in the
place of the bridge (bench/delay.c), since few kernels have netem.
"""
import contextlib
import os
import subprocess
import unittest

import figures
import fleet as fleets
import sandbox
import switch

HOSTS = 4
NAMESPACES, ADDRESSES = "/run/netns/h", "10.77.0."  # of the hosts, by number, the addresses from 1
PLACES = [{"network": f"{NAMESPACES}{host}"} for host in range(HOSTS)]
PAYLOAD = 1448 / 1514  # of a link's bytes, with an MTU of 1500 and TCP's time stamps
BURST_SECONDS = 0.001  # of the rate, which may pass at once; some frames at least
BURST_BYTES = 16384
QUEUE_SECONDS = 0.05  # of the rate, which wait in front of the link; what is more is dropped


def lay_out():
    """The hosts, once; where they cannot be made, a reason to skip."""
    try:
        switch.lay_out(HOSTS)
    except unittest.SkipTest as reason:
        raise figures.Skip(f"no hosts to measure between: {reason}") from None
    sandbox.call("ip", "link", "set", "lo", "up")
    for host in range(HOSTS):
        choose_congestion_control(host)


def choose_congestion_control(host):
    """Cubic, as kernels are delivered, or what is nearest to it that a namespace may choose."""
    for name in ("cubic", "reno"):
        result = subprocess.run(["ip", "netns", "exec", f"h{host}", "sysctl", "-q", "-w",
                                 f"net.ipv4.tcp_congestion_control={name}"], check=False, capture_output=True)
        if result.returncode == 0:
            return


def ends(host):
    """Both ends of a host's cable as tc takes them: there what the host sends is slowed down, and here
    what the bridge sends it."""
    return [(("tc", "-n", f"h{host}"), "eth0"), (("tc",), f"cable{host}")]


@contextlib.contextmanager
def rate(bits_per_second):
    """Cables of this rate."""
    lay_out()
    burst = max(int(bits_per_second / 8 * BURST_SECONDS), BURST_BYTES)
    limit = int(bits_per_second / 8 * QUEUE_SECONDS)
    every = [end for host in range(HOSTS) for end in ends(host)]
    try:
        for tc, device in every:
            sandbox.attempt("no token buckets", *tc, "qdisc", "replace", "dev", device, "root", "tbf", "rate",
                            f"{bits_per_second}bit", "burst", str(burst), "limit", str(limit))
        yield
    except unittest.SkipTest as reason:
        raise figures.Skip(str(reason)) from None
    finally:
        for tc, device in every:
            sandbox.call(*tc, "qdisc", "replace", "dev", device, "root", "noqueue")


@contextlib.contextmanager
def delay(options, seconds):
    """Cables on which every frame is under way for so long, each way."""
    lay_out()
    cables = [f"cable{host}" for host in range(HOSTS)]
    for cable in cables:
        sandbox.call("ip", "link", "set", cable, "nomaster")
    with subprocess.Popen([os.path.join(options.build, "bench/delay"), str(seconds * 1e3), *cables],
                          stdout=subprocess.PIPE, text=True, preexec_fn=fleets.die_with_parent) as process:
        try:
            if process.stdout.readline() != "ready\n":
                raise figures.Skip("no frames can be held here")
            yield
        finally:
            process.kill()
            for cable in cables:
                sandbox.call("ip", "link", "set", cable, "master", "switch")
