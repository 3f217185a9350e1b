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

    def bytes_per_copy(self, f):
        return sum(peer["bytes_received"] for peer in f.nodes[1].json("/v1/peers")) / f.nodes[0].status()["round"]

    def test_copies_are_changes_and_all_end_with_one_model(self):
        plain = self.owned(4)
        plain.start()
        plain.wait_state("finished")
        size = self.bytes_per_copy(plain)
        plain.close()
        for copies, (least, most) in {"int4": (0.12, 0.29), "top:0.1": (0.05, 0.25)}.items():
            with self.subTest(copies=copies):
                f = self.owned(4, **{"network.compression": "int4", "network.copies": copies})
                f.start()
                f.wait_state("finished")
                f.quiet()
                self.expect_one_model(f, range(4))
                owner = f.nodes[0].status()
                self.assertEqual((owner["compression"], f.nodes[1].status()["compression"]), (copies, "int4"))
                self.assertGreater(owner["bytes_spared"], 0)
                self.assertTrue(0 < owner["compression_error"] < 1, owner["compression_error"])
                self.assertGreater(f.nodes[1].status()["test_accuracy"], 0.9)
                share = self.bytes_per_copy(f) / size
                self.assertTrue(least < share < most, (copies, share))
                f.close()

    def test_whoever_was_killed_gets_a_whole_copy(self):
        f = self.owned(4, **{"network.copies": "int4", "train.epochs": None, "train.rounds": "3000"})
        f.start()
        for victim in (1, 0, 2):
            f.wait_round(3, f.wait("a status", f.nodes[3].status)["round"] + 50)
            f.nodes[victim].end(signal.SIGKILL)
            f.nodes[victim].start()
            f.wait("the victim to come on", lambda: (f.nodes[victim].status() or {}).get("state") == "training")
        f.wait_state("finished")
        f.quiet()
        self.expect_one_model(f, range(4))
        f.close()

    def test_after_an_early_stop_the_owner_has_the_last_copy(self):
        f = self.owned(3, **{"network.copies": "int4", "train.epochs": "100000", "train.stop_at_accuracy": "0.85"})
        f.start()
        f.wait_state("finished")
        f.quiet()
        self.expect_one_model(f, range(3))
        f.close()

    def test_what_codes_copies_is_checked(self):
        f = self.owned(3, **{"network.copies": "int8"})
        code, said = f.check(0)
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"copies\n  int8 ")
        self.assertIn("copy that its workers have", said)
        self.assertNotIn("copy that its workers have", f.check(1)[1])
        f.write_configuration(0, {"network.copies": "sign", "train.algorithm": "backup"}, {})
        self.assertIn("[network] copies: sign is for updates", f.check(0)[1])
        gossip = fleet.Fleet(2, options={"network.copies": "int8"})
        self.addCleanup(gossip.close)
        self.assertIn("[network] copies has no effect: it is for the copies of an owner that waits", gossip.check()[1])

    def test_it_is_for_files_with_owners(self):
        f = fleet.Fleet(2, options={"network.compression": "top:0.03"})
        self.addCleanup(f.close)
        code, said = f.check()
        self.assertEqual(code, 6, said)
        self.assertIn("[network] compression: top:0.03 is for files with owners", said)


if __name__ == "__main__":
    fleet.main()
