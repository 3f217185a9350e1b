#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every way of averaging where the network is thin and one machine is slow: the variants of a plan of `sgpctl compare`
(bench/compare/averaging.ini), each by daemons on four hosts whose links have 100 Mbit/s, or --rate, one with 10% of a core, the
others with 40% each.

A fifth node, such as a relay, shares the first one's host and time. Prints the table of `sgpctl compare`, and each
variant's line as soon as it is there. Ends with 77 where hosts or control groups cannot be made.
"""
import argparse
import os
import re
import sys
import types

import figures
import links
import places
import quota

sys.path.insert(0, os.path.join(figures.ROOT, "ctl/compare"))
import daemons  # noqa: E402
from plan import Failure, Plan  # noqa: E402
from table import line_of, print_table  # noqa: E402

SHARES = (0.4, 0.4, 0.4, 0.1)  # of a core
RATE = 10**8  # bits a second


class Fleet(daemons.Fleet):
    """The daemons of a variant, each at a place of its own."""

    groups = ()

    def topology(self):
        """With the hosts' addresses."""
        nodes = iter(range(self.variant.nodes))
        return re.sub(r'address="127\.0\.0\.1:', lambda _: f'address="{links.ADDRESSES}{next(nodes) % links.HOSTS + 1}:',
                      super().topology())

    def start(self, node, index):
        host = index % links.HOSTS
        place = {**links.PLACES[host], "group": self.groups[host].path}
        node.start(self.tools.sgpd, lambda: places.take(place))


def measure(plan, tools):
    """The variants in turn."""
    lines = []
    for variant in plan.variants:
        with Fleet(variant, tools) as fleet:
            fleet.prepare()
            lines.append(line_of(variant, fleet.train(lambda part: None), plan))
        print(" ".join(map(str, lines[-1].values())), file=sys.stderr, flush=True)
    print_table(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("build", nargs="?", default=os.path.join(figures.ROOT, "build"), help="the build folder")
    parser.add_argument("--plan", default=os.path.join(figures.ROOT, "bench/compare/averaging.ini"))
    parser.add_argument("--epochs", help="of each variant, in the place of the plan's")
    parser.add_argument("--rate", type=int, default=RATE, metavar="BITS", help=f"of a link, a second ({RATE})")
    parser.add_argument("--only", nargs="+", metavar="VARIANT", help="these variants")
    arguments = parser.parse_args()
    tools = types.SimpleNamespace(sgpctl=os.path.join(arguments.build, "ctl/sgpctl"),
                                  sgpd=os.path.join(arguments.build, "daemon/sgpd"))
    try:
        plan = Plan(arguments.plan)
        plan.variants = [variant for variant in plan.variants if variant.name in (arguments.only or [variant.name])]
        for variant in plan.variants if arguments.epochs else ():
            variant.says["train.epochs"] = arguments.epochs
        with quota.groups(SHARES) as Fleet.groups, links.rate(arguments.rate):
            measure(plan, tools)
    except figures.Skip as reason:
        print(f"bench/averaging: skipped: {reason}", file=sys.stderr)
        return 77
    except Failure as failure:
        print(f"bench/averaging: {failure}", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
