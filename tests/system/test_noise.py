# SPDX-License-Identifier: Apache-2.0
"""`[optimizer] noise = fleet` with real daemons: what --check says of it, its checkpoint, and a stop in the middle of a run."""
import os
import signal
import struct
import subprocess

import fleet
from fleet import FleetTest

OPTIONS = {"train.epochs": None, "train.rounds": "1500", "train.batch": "10", "optimizer.kind": "adamw", "optimizer.learning_rate": "0.01",
           "optimizer.noise": "fleet"}
VECTORS = {"x", "first moment", "second moment", "noise"}


def vectors_of(path):
    """The named vectors of a checkpoint, and its parameters as "x", as include/sgp/checkpoint.h lays them out."""
    with open(path, "rb") as file:
        data = file.read()
    named, count = struct.unpack_from("<IQ", data, 12)
    counters, = struct.unpack_from("<Q", data, 56)
    names = [data[128 + 32 * i:152 + 32 * i].split(b"\0")[0].decode() for i in range(named)]
    first = 128 + 32 * (named + counters)
    return {name: data[first + 4 * count * i:first + 4 * count * (i + 1)] for i, name in enumerate(["x", *names])}


class Noise(FleetTest):
    def ended(self, f):
        """The vectors of each node's checkpoint at the end of the run."""
        f.wait_state("finished")
        for index in range(len(f.nodes)):
            f.wait_log(index, "event=checkpoint round=1504")
        return [vectors_of(os.path.join(node.directory, "checkpoint")) for node in f.nodes]

    def straight(self, **more):
        f = self.fleet(4, options={**OPTIONS, **more})
        f.start()
        return f, self.ended(f)

    def test_check_names_the_part_and_the_memory(self):
        f = self.fleet(4, options=OPTIONS)
        said = subprocess.run([*f.command(f.nodes[0]), "--check"], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertIn("optimizer  adamw, with 0.25 of the noise of this node's gradients\n", said)
        self.assertIn("deviation of the gradient", said)
        self.assertNotIn("warning", said)

    def test_a_stop_in_mid_run_keeps_the_noise(self):
        """That a resumed rule goes on to the bit is tested in test_learner; here the file of a daemon has it, and is taken up."""
        f = self.fleet(4, options=OPTIONS)
        f.start()
        for index in range(4):
            f.wait_round(index, 200)
        for node in f.nodes:
            node.end(signal.SIGTERM)
        for node in f.nodes:
            kept = vectors_of(os.path.join(node.directory, "checkpoint"))
            self.assertEqual(set(kept), VECTORS)
            self.assertTrue(any(kept["noise"]))
        f.start()
        self.ended(f)
        for node in f.nodes:
            self.assertRegex(node.log(), r"event=restored round=\d+ weight=\S+ parameters=exact")
            self.assertGreater(node.json("/v1/evaluate", "POST")["accuracy"], 0.8)

    def test_the_noise_is_that_of_the_fleet(self):
        """Steps are longer than those of nodes that each divide by their own noise: another model comes of it."""
        f, with_fleet = self.straight()
        _, with_node = self.straight(**{"optimizer.noise": "node"})
        self.assertEqual(set(with_fleet[0]), VECTORS)
        self.assertEqual(set(with_node[0]), VECTORS - {"noise"})
        self.assertNotEqual(with_fleet[0]["x"], with_node[0]["x"])
        for node in f.nodes:
            self.assertGreater(node.json("/v1/evaluate", "POST")["accuracy"], 0.8)


if __name__ == "__main__":
    fleet.main()
