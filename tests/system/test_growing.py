# SPDX-License-Identifier: Apache-2.0
"""`schedule = growing-batch` with real daemons: the batch grows and the rate falls at their milestones, also in a run that is
stopped in its middle and started again."""
import csv
import os
from concurrent.futures import ThreadPoolExecutor

import fleet
from fleet import FleetTest

# 320 of 400 rows train, 80 on each node: 8 steps an epoch, 4 from epoch 2 on and 2 from epoch 4 on. At epoch FALL the rate falls.
EPOCHS, FALL, RATE = 1600, 1200, 0.1
OPTIONS = {"train.epochs": str(EPOCHS), "train.batch": "10", "optimizer.learning_rate": str(RATE),
           "optimizer.schedule": "growing-batch", "optimizer.milestones": "2 4 %d" % FALL, "optimizer.factor": "0.5",
           "optimizer.growths": "2"}


def rounds_of(epochs):
    """That so many epochs take."""
    return 8 * min(epochs, 2) + 4 * min(max(epochs - 2, 0), 2) + 2 * max(epochs - 4, 0)


class Growing(FleetTest):
    def history(self, node):
        """Round and epoch of each row of the node's history, over all its processes."""
        with open(os.path.join(node.directory, "history.csv"), newline="", encoding="utf-8") as file:
            return [(int(row["round"]), float(row["epoch"])) for row in csv.DictReader(file)]

    def stop_all(self, f):
        """Paused first, all together, so that no node goes on far without the others, and they need not jump when they come back."""
        with ThreadPoolExecutor() as pool:
            for status, _ in pool.map(lambda node: node.get("/v1/pause", "POST"), f.nodes):
                self.assertIn(status, (200, 202))
        f.wait_state("paused")
        f.quiet()
        for node in f.nodes:
            self.assertEqual(node.end(), 0, node.log())

    def test_a_batch_grows_at_its_milestones_also_after_a_restart(self):
        f = self.fleet(4, options=OPTIONS)
        f.start()
        for index in range(4):
            f.wait_round(index, rounds_of(40))
        self.assertEqual(f.nodes[0].status()["learning_rate"], RATE)
        self.stop_all(f)
        ended = [self.history(node)[-1][1] for node in f.nodes]
        f.start()
        for status in f.wait_state("finished"):
            self.assertEqual(status["rounds"], rounds_of(EPOCHS))
            self.assertEqual(status["epoch"], EPOCHS)
            self.assertEqual(status["learning_rate"], RATE / 2)
        statuses = f.quiet()
        self.assertLessEqual(abs(sum(s["weight"] for s in statuses) - 4), 1e-12)
        self.assertEqual([(s["weight_minted"], s["lost_rounds"]) for s in statuses], [(0, 0)] * 4)
        for node, end in zip(f.nodes, ended):
            self.assertIn("parameters=exact", node.log())
            self.assertGreater(node.json("/v1/evaluate", "POST")["accuracy"], 0.8)
            rows = [row for row in self.history(node) if row[0] < rounds_of(EPOCHS)]  # later rounds only mix
            self.assertEqual(rows, [(rounds_of(epoch) - 1, epoch) for _, epoch in rows])
            epochs = [epoch for _, epoch in rows]
            self.assertEqual(epochs[:6], [1, 2, 3, 4, 5, 6])
            self.assertTrue([epoch for epoch in epochs if end < epoch < FALL])  # of the second process


if __name__ == "__main__":
    fleet.main()
