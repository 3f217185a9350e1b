# SPDX-License-Identifier: Apache-2.0
"""Updates that travel coded to owners ([network] compression): fewer bytes up, one model, and what is left out survives a stop."""
import os
import signal

import fleet
from fleet import FleetTest
from owned import MANY, Owned

OPTIONS = {"model.layers": "dense 400 relu, dense 2", "train.epochs": "12"}
# Of a plain update's bytes: the matrices of 400 x 6 and 2 x 400 values, 400 biases, and the frames beside the payload.
SIZES = {"int4": (0.12, 0.29), "sign": (0.05, 0.2)}


class CodedOwner(FleetTest):
    def owned(self, n, **options):
        f = Owned(n, **{**OPTIONS, **options})
        self.addCleanup(f.close)
        return f

    def bytes_per_update(self, f):
        peers = [peer for node in f.nodes[1:] for peer in node.json("/v1/peers") if peer["direction"] == "out"]
        return sum(peer["bytes_sent"] for peer in peers) / sum(peer["shares_sent"] for peer in peers)

    def expect_one_model(self, f, indices):
        models = [fleet.read_model(f.nodes[i].get("/v1/model")[1]) for i in indices]
        for model in models[1:]:
            self.assertEqual(model, models[0])

    def test_fewer_bytes_and_one_model(self):
        plain = self.owned(4)
        plain.start()
        plain.wait_state("finished")
        size = self.bytes_per_update(plain)
        plain.close()
        for compression, (least, most) in SIZES.items():
            with self.subTest(compression=compression):
                f = self.owned(4, **{"network.compression": compression})
                f.start()
                f.wait_state("finished")
                f.quiet()
                self.expect_one_model(f, range(4))
                for node in f.nodes[1:]:
                    status = node.status()
                    self.assertGreater(status["test_accuracy"], 0.9)
                    self.assertEqual(status["compression"], compression)
                    self.assertGreater(status["bytes_spared"], 0)
                    self.assertTrue(0 < status["compression_error"] < 1, status["compression_error"])
                share = self.bytes_per_update(f) / size
                self.assertTrue(least < share < most, (compression, share))
                f.close()

    def test_parts_have_owners(self):
        f = self.owned(5, algorithm="downpour", owners=(0, 1), **{"network.compression": "top:0.1"})
        f.start()
        f.wait_state("finished")
        f.quiet()
        self.expect_one_model(f, range(2, 5))
        self.assertGreater(f.nodes[2].status()["test_accuracy"], 0.9)
        f.close()

    def model_after(self, compression, stops):
        """Of one worker, which is stopped so often and started again."""
        f = self.owned(2, **{"network.compression": compression, "optimizer.kind": "sgd", "train.epochs": None, "train.rounds": "3000"})
        f.start()
        for _ in range(stops):
            start = f.wait("a status", f.nodes[1].status)["round"]
            f.wait("some rounds", lambda: (f.nodes[1].status() or {}).get("round", 0) > start + 20)
            self.assertEqual(f.nodes[1].end(signal.SIGTERM), 0)
            with open(os.path.join(f.nodes[1].directory, "checkpoint"), "rb") as file:
                self.assertIn(b"rest".ljust(24, b"\0"), file.read(4096))
            f.nodes[1].start()
        f.wait_state("finished", timeout=60)
        model = fleet.read_model(f.nodes[1].get("/v1/model")[1])
        f.close()
        return model

    def test_what_is_left_out_survives_a_stop(self):
        stopped, alone = self.model_after("sign", 2), self.model_after("sign", 0)
        self.assertTrue(stopped == alone, max(abs(a - b) for a, b in zip(stopped, alone)))

    def test_a_killed_worker_begins_with_nothing_left_out(self):
        f = self.owned(3, **{**MANY, "network.compression": "sign"})
        f.start()
        f.wait_round(0, 20)
        self.assertIn("left out of updates", f.check(1)[1])
        f.nodes[1].end(signal.SIGKILL)
        f.nodes[1].start()
        f.wait("n1 to come on", lambda: f.nodes[1].status() and f.nodes[1].status()["round"] >= f.nodes[0].status()["round"] - 5)
        f.close()

    def test_it_is_for_files_with_owners(self):
        f = fleet.Fleet(2, options={"network.compression": "top:0.03"})
        self.addCleanup(f.close)
        code, said = f.check()
        self.assertEqual(code, 6, said)
        self.assertIn("[network] compression: top:0.03 is for files with owners", said)


if __name__ == "__main__":
    fleet.main()
