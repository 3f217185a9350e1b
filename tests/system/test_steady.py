# SPDX-License-Identifier: Apache-2.0
"""In the steady state nothing allocates: no malloc in any thread of a daemon over hundreds of rounds,
evaluations and rows of history among them."""
import os
import struct
import sys

import fleet
from fleet import FleetTest

COUNTER = sys.argv.pop() if sys.argv[-1].endswith(".so") else None
ROUNDS = 300


def count(path):
    with open(path, "rb") as file:
        return struct.unpack("<Q", file.read(8))[0]


def round_in_log(node):
    """The latest round in the log: asking the socket would make the daemon allocate the answer."""
    at = node.log().rfind("event=round state=training round=")
    return int(node.log()[at:].split("round=")[1].split()[0]) if at >= 0 else -1


class Steady(FleetTest):
    def test_rounds_do_not_allocate(self):
        f = self.fleet(4, options={"train.epochs": "100000", "log.level": "debug",
                                   "model.layers": "dense 400 relu, dense 2"})
        paths = []
        for node in f.nodes:
            paths.append(os.path.join(f.directory, node.name + ".count"))
            with open(paths[-1], "wb") as file:
                file.write(bytes(8))
            os.environ.update(LD_PRELOAD=COUNTER, ALLOCATIONS_FILE=paths[-1])
            try:
                node.start()
            finally:
                del os.environ["LD_PRELOAD"], os.environ["ALLOCATIONS_FILE"]
        f.wait("the first rounds", lambda: all(round_in_log(n) >= 50 for n in f.nodes))
        before = [count(path) for path in paths]
        first = round_in_log(f.nodes[0])
        f.wait("%d rounds" % ROUNDS, lambda: round_in_log(f.nodes[0]) >= first + ROUNDS)
        self.assertEqual([count(path) for path in paths], before)
        with open(os.path.join(f.nodes[0].directory, "history.csv")) as file:
            self.assertGreater(len(file.readlines()), 10, "evaluations were among the rounds")
        for node in f.nodes:
            node.status()
        for path, then in zip(paths, before):
            self.assertGreater(count(path), then, "the counter counts")
        self.assert_alive(f)


if __name__ == "__main__":
    fleet.main()
