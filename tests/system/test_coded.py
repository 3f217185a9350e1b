# SPDX-License-Identifier: Apache-2.0
"""Shares that travel coded ([network] compression): half the bytes, models that agree, and all of the weight."""
import signal

import fleet
from fleet import FleetTest

OPTIONS = {"model.layers": "dense 400 relu, dense 2", "train.epochs": "12"}
NODES = 4


class Coded(FleetTest):
    def start(self, compression, own=None, **more):
        f = self.fleet(NODES, options={**OPTIONS, "network.compression": compression, **more}, own=own)
        f.start()
        return f

    def bytes_per_share(self, f):
        """Of what each node sent, all told: the frames beside the payloads are a few percent."""
        peers = [peer for node in f.nodes for peer in node.json("/v1/peers") if peer["direction"] == "out"]
        return sum(peer["bytes_sent"] for peer in peers) / sum(peer["shares_sent"] for peer in peers)

    def check_end(self, f):
        statuses = f.wait_state("finished")
        statuses = f.quiet()
        self.assertAlmostEqual(sum(s["weight"] for s in statuses), NODES, delta=1e-12)
        models = [fleet.read_model(node.get("/v1/model")[1]) for node in f.nodes]
        largest = max(abs(v) for v in models[0])
        for model in models[1:]:
            self.assertLessEqual(max(abs(a - b) for a, b in zip(models[0], model)), 1e-5 * largest)

    def test_half_the_bytes_and_all_of_the_weight(self):
        sizes = []
        for compression in ("none", "fp16"):
            f = self.start(compression)
            self.check_end(f)
            sizes.append(self.bytes_per_share(f))
        self.assertLess(sizes[1], 0.56 * sizes[0])
        self.assertGreater(sizes[1], 0.5 * sizes[0])

    def test_every_sender_chooses_for_itself(self):
        f = self.start("none", own={0: {"network.compression": "fp16"}})
        self.check_end(f)
        sent = [node.peer("n%d" % ((i + 1) % NODES), "out") for i, node in enumerate(f.nodes)]
        each = [peer["bytes_sent"] / peer["shares_sent"] for peer in sent]
        self.assertLess(each[0], 0.6 * min(each[1:]))

    def test_kills_lose_no_weight(self):
        f = self.start("fp16", **{"train.epochs": "200"})
        for victim in (1, 2, 1):
            f.wait_round(0, f.wait("a status", f.nodes[0].status)["round"] + 20)
            f.nodes[victim].end(signal.SIGKILL)
            f.nodes[victim].start()
            f.wait("the victim", f.nodes[victim].status)
        self.check_end(f)


if __name__ == "__main__":
    fleet.main()
