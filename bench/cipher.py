#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of ciphers: rounds of the daemon's links alone, encrypted, beside the same links plain.

Over loopback the second baseline is plain sockets and the cipher alone.
It is the time of a round of plain sockets, and the time in which a core encrypts and decrypts the bytes of a share.
The cipher is AES-128-GCM of GnuTLS, with records of 16 KiB.
Between hosts (as root; see bench/links.py) the link limits both.
"""
import figures
import links as network
from contenders import SIZES, cipher, ciphered, links, sockets

RATES = {10**9: ("1 Gbit/s", 16 << 20), 10**8: ("100 Mbit/s", 1 << 20)}
ALLOWED = "plain sockets and the cipher alone"


def milliseconds(results):
    return {name: [result["seconds"] * 1e3 for result in values] for name, values in results.items()}


def over_loopback(options):
    for size, name in list(SIZES.items())[1:3 if options.quick else 4]:
        results = figures.alternate(options.runs, {
            "sockets": lambda: sockets(options, 2, size), "cipher": lambda: cipher(options, 2, size),
            "ciphered": lambda: ciphered(options, 2, size), "links": lambda: links(options, 2, size)})
        taken, case = milliseconds(results), f"2 nodes, {name}"
        allowed = [one + other for one, other in zip(taken["sockets"], taken["cipher"])]
        for baseline, values in ((ALLOWED, allowed), ("plain links", taken["links"])):
            figures.tell("cipher", f"{case}, ciphered links", "ms", taken["ciphered"], baseline, values)
        spent = {key: [result["cpu_seconds"] * 1e6 for result in values] for key, values in results.items()}
        figures.tell("cipher", f"{case}, ciphered links: processor time of a node and round", "us", spent["ciphered"], ALLOWED,
                     [one + other for one, other in zip(spent["sockets"], spent["cipher"])])


def between_hosts(options):
    for rate, (link, size) in RATES.items():
        with network.rate(rate):
            taken = milliseconds(figures.alternate(options.runs, {
                "ciphered": lambda: ciphered(options, 4, size, rate), "links": lambda: links(options, 4, size, rate)}))
        case = f"4 nodes, {SIZES[size]}, links of {link}, ciphered links"
        figures.tell("cipher", case, "Mbit/s", [size * 8e-3 / ms for ms in taken["ciphered"]],
                     "plain links", [size * 8e-3 / ms for ms in taken["links"]])


def measure(options):
    over_loopback(options)
    figures.attempt("cipher", between_hosts, options)


figures.main("cipher", measure, __doc__)
