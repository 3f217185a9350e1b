#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Resume points on the disk: what checkpoint() writes, and resume() passes over, refuses and puts back."""
import os
import tempfile
import unittest
import warnings

import common
import numpy
import sgp
from fake_daemon import ASSIGNED, DONE, RENEWS, TELL, FakeDaemon
from sgp.decide import word_of
from sgp.units import Units, agreed


warnings.filterwarnings("ignore", "no daemon listens")


def arrays():
    return {"a": numpy.zeros(4, numpy.float32)}


class Counter:
    """Anything with a state."""

    def __init__(self):
        self.count = 0

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]


class UnitsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def files(self, *path):
        return sorted(name for name in os.listdir(os.path.join(self.folder, *path)) if name.endswith(".unit"))

    # ---- files

    def test_a_unit_is_what_was_written(self):
        units = Units(os.path.join(self.folder, "n0"))
        self.assertEqual(units.sound(), [])
        for number in (5, 100, 20):
            units.write(number, {"state": number}, memoryview(b"%04d" % number), keep=3)
        self.assertEqual(units.sound(), [100, 20, 5])
        self.assertEqual(units.read(20), ({"state": 20}, b"0020"))
        units.write(101, {}, memoryview(b""), keep=2)
        self.assertEqual(self.files("n0"), ["round-100.unit", "round-101.unit"])

    def test_what_is_not_whole_is_passed_over(self):
        units = Units(self.folder)
        units.write(1, {"state": 1}, memoryview(bytes(64)), keep=7)
        with open(os.path.join(self.folder, "round-1.unit"), "rb") as file:
            whole = file.read()
        damages = [b"", whole[:5], whole[:-1], whole + b"x", whole[:-40] + b"\1" + whole[-39:], b"sgp-unit-2" + whole[10:],
                   whole.replace(b" 64\n", b" 63\n")]
        for damaged in damages:
            with open(os.path.join(self.folder, "round-2.unit"), "wb") as file:
                file.write(damaged)
            with self.assertLogs("sgp", "WARNING") as told:
                self.assertEqual(units.sound(), [1])
            self.assertEqual(len(told.output), 1)
            self.assertIn("round-2.unit is passed over: it", told.output[0])
        with open(os.path.join(self.folder, "round-3.unit.new"), "wb") as file:
            file.write(whole)  # as of a power cut before the rename
        os.unlink(os.path.join(self.folder, "round-2.unit"))
        self.assertEqual(units.sound(), [1])

    def test_what_is_resumed_is_the_latest(self):
        units = Units(self.folder)
        for number in (10, 20, 30):
            units.write(number, {}, memoryview(b""), keep=7)
        units.take(20, now=33)
        self.assertEqual(units.sound(), [20, 10])
        units.take(20, now=4)  # the daemons have lost their rounds
        self.assertEqual(units.sound(), [4])

    def test_the_units_of_each_former_run_stay(self):
        """Runs write units of the same rounds, since each begins in round 0."""
        units = Units(self.folder)
        for run in range(3):
            units.write(10, {}, memoryview(b"%d" % run), keep=3)
            units.set_aside()
            self.assertEqual(units.sound(), [])
        units.set_aside()
        former = ("former", "former-2", "former-3")
        self.assertEqual(sorted(os.listdir(self.folder)), list(former))
        self.assertEqual([Units(os.path.join(self.folder, name)).read(10)[1] for name in former], [b"0", b"1", b"2"])

    def test_the_round_that_all_have(self):
        self.assertIsNone(agreed({"n0": [], "n1": []}))
        self.assertEqual(agreed({"n0": [30, 20, 10], "n1": [20, 10]}), 20)
        for rounds, told in (({"n0": [30], "n1": []}, "n0: 30; n1: none"), ({"n0": [30], "n1": [20, 10]}, "n0: 30; n1: 20, 10")):
            with self.assertRaisesRegex(sgp.Error, f"no round has a unit on every node .{told}."):
                agreed(rounds)

    # ---- a node

    def daemon(self, **options):
        daemon = FakeDaemon(**options)
        self.addCleanup(daemon.close)
        return daemon

    def write_some(self, daemon, steps=12):
        """A run of so many steps with a unit in every fifth round; the array and the counter hold the number of the step."""
        model, counter = arrays(), Counter()
        with sgp.attach(model, name=daemon.path) as node:
            self.assertIsNone(node.resume(directory=self.folder, counter=counter))
            for number in range(steps):
                model["a"] += 1
                node.mix()
                counter.count += 1
                wrote = node.checkpoint({"number": number}, every=5, directory=self.folder, counter=counter)
                self.assertEqual(wrote, node.round % 5 == 0)
            node.detach()

    def test_it_writes_in_rounds_that_every_divides(self):
        self.write_some(self.daemon())
        self.assertEqual(self.files("n0"), ["round-10.unit", "round-5.unit"])

    def test_local_steps_write_once(self):
        self.write_some(self.daemon(local_steps=4), steps=0)
        with sgp.attach(arrays(), name=self.daemon(local_steps=4).path) as node:
            wrote = []
            for _ in range(9):
                node.mix()
                wrote.append(node.checkpoint(directory=self.folder))
            self.assertEqual(wrote, [number in (0, 3, 7) for number in range(9)])
            node.detach()

    def test_parameters_are_assigned_in_rounds_that_follow(self):
        self.write_some(self.daemon())
        daemon = self.daemon()  # that knows nothing of it, and is in round 0
        model, counter = arrays(), Counter()
        with sgp.attach(model, name=daemon.path) as node:
            self.assertEqual(node.resume(directory=self.folder, counter=counter), {"number": 9})
            self.assertEqual((list(model["a"]), counter.count, node.round), ([10.0] * 4, 10, 2))
            self.assertEqual([frame["flags"] & ASSIGNED for frame in daemon.of(DONE)], [ASSIGNED] * 2)
            self.assertEqual(self.files("n0"), ["round-2.unit"])
            node.detach()

    def test_all_go_on_from_the_round_that_all_have(self):
        self.write_some(self.daemon())

        def with_another(word):
            return ["n0 " + word, "n1 " + word_of("resume", [5, 5] + [-1] * 6)]
        daemon = self.daemon(decide=with_another)
        model, counter = arrays(), Counter()
        with sgp.attach(model, name=daemon.path) as node:
            self.assertEqual(node.resume(directory=self.folder, counter=counter), {"number": 4})
            self.assertEqual((list(model["a"]), counter.count), ([5.0] * 4, 5))
            self.assertEqual(node.round, 7)  # n1 was in round 5
            self.assertEqual({(frame["flags"], frame["round"]) for frame in daemon.of(DONE)}, {(ASSIGNED | RENEWS, 7)})
            node.detach()

    def test_a_fleet_that_trains_keeps_its_parameters(self):
        self.write_some(self.daemon())
        daemon = self.daemon(decide=lambda word: None, begin=3.0)
        model, counter = arrays(), Counter()
        with sgp.attach(model, name=daemon.path) as node:
            self.assertEqual(node.resume(directory=self.folder, counter=counter), {"number": 9})
            self.assertEqual((list(model["a"]), counter.count, daemon.of(DONE)), ([3.0] * 4, 10, []))
            node.detach()
        self.assertEqual(daemon.of(TELL)[0]["flags"], 4096)

    def test_what_does_not_fit_is_refused(self):
        self.write_some(self.daemon())
        with sgp.attach({"b": numpy.zeros(4, numpy.float32)}, name=self.daemon().path) as node:
            with self.assertRaisesRegex(sgp.Error, "the unit of round 10 is of another model; begin another run with fresh=True"):
                node.resume(directory=self.folder, counter=Counter())
            with self.assertRaisesRegex(ValueError, "every is 0 and keep is 8"):
                node.checkpoint(every=0, keep=8)
            node.detach()
        with sgp.attach(arrays(), name=self.daemon().path) as node:
            with self.assertRaisesRegex(sgp.Error, "the unit of round 10 holds counter; asked for was nothing"):
                node.resume(directory=self.folder)
            node.detach()
            with self.assertRaisesRegex(sgp.Error, "n0: checkpoint.. is for a model that is attached"):
                node.checkpoint()

    def test_alone_the_round_goes_back(self):
        """Without a daemon the round is the script's own."""
        for rest in (30, 20):
            with sgp.attach(arrays(), name="/none-such.sock", required=False, rounds=30) as node:
                node.resume(directory=self.folder)
                done = 0
                while not node.stopped and done < 10 + rest - 20:
                    node.mix()
                    done += 1
                    node.checkpoint(every=10, directory=self.folder)
            self.assertEqual((node.round, done), (20, 20) if rest == 30 else (30, 10))

    def test_samplers_and_shards_go_on_in_mid_epoch(self):
        """Samplers in the order in which they are made, before resume() and after it; shards beside them."""
        def rows_of(shard, count):
            rows = []
            while len(rows) < count:
                rows += next(shard).tolist()
                node.mix(rows=2)
            return rows
        with sgp.attach(arrays(), name="/none-such.sock", required=False) as node:
            samplers = [node.sampler(range(12)) for _ in range(2)]
            seen = []
            for sampler, count in zip(samplers, (7, 3)):
                passed = iter(sampler)
                seen.append([next(passed) for _ in range(count)])
            shard = node.shard(numpy.arange(12), batch_size=2)
            seen.append(rows_of(shard, 4))
            node.mix(rows=8)
            node.checkpoint(directory=self.folder)
        with sgp.attach(arrays(), name="/none-such.sock", required=False) as node:
            there = node.sampler(range(12))
            self.assertEqual(node.resume(directory=self.folder), {})
            passes = [list(there), list(node.sampler(range(12)))]
            shard = node.shard(numpy.arange(12), batch_size=2)
            passes.append(rows_of(shard, 8))
            for before, after in zip(seen, passes):
                self.assertEqual(sorted(before + after), list(range(12)))
            self.assertEqual(sorted(rows_of(node.shard(numpy.arange(12), batch_size=2), 12)), list(range(12)))

    def test_arrays_that_stay_local(self):
        def own(value):
            return {"head.w": numpy.full((3,), value, numpy.float32), **arrays()}
        with sgp.attach(own(2), name="/none-such.sock", required=False, local=["head"]) as node:
            node.mix()
            node.checkpoint(directory=self.folder)
        now = own(5)
        with sgp.attach(now, name="/none-such.sock", required=False, local=["head"]) as node:
            node.mix()
            self.assertEqual(now["head.w"].tolist(), [5, 5, 5])
            node.resume(directory=self.folder)
        self.assertEqual(now["head.w"].tolist(), [2, 2, 2])
        with self.assertRaisesRegex(sgp.Error, "local names 'hed', and the model has no such parameter"):
            sgp.attach(own(1), name="/none-such.sock", required=False, local=["hed"])
        with self.assertRaisesRegex(sgp.Error, "'head.w' is of type list; what local names is arrays"):
            sgp.attach({**own(1), "head.w": [1.0]}, name="/none-such.sock", required=False, local=["head"])
        with self.assertRaisesRegex(sgp.Error, "local names all parameters that are trained"):
            sgp.attach(own(1), name="/none-such.sock", required=False, local=list(own(1)))
        now = {**own(1), "head.w": numpy.zeros(1, numpy.float32)}
        with sgp.attach(now, name="/none-such.sock", required=False, local=["head"]) as node:
            with self.assertRaisesRegex(sgp.Error, "'head.w' is local, and was .3. when it was saved; it is .1. now"):
                node.resume(directory=self.folder)

    def test_a_pass_that_is_over_gives_nothing_more(self):
        """So a script that counts its epochs ends this one, and begins the next."""
        with sgp.attach(arrays(), name="/none-such.sock", required=False) as node:
            for batch in node.shard(numpy.arange(8), batch_size=4):
                node.mix(rows=len(batch))
            node.checkpoint(directory=self.folder)
        with sgp.attach(arrays(), name="/none-such.sock", required=False) as node:
            node.resume(directory=self.folder)
            sizes = [sum(map(len, node.shard(numpy.arange(8), batch_size=4))) for _ in range(2)]
            self.assertEqual((sizes, node.epoch), ([0, 8], 1.0))


if __name__ == "__main__":
    common.main()
