# SPDX-License-Identifier: Apache-2.0
"""One resume point: programs and daemons that are killed, together or alone, and go on from what checkpoint() wrote."""
import array
import math
import multiprocessing
import os
import random
import shutil
import signal
import unittest

import fleet
from attached import RING, AttachTest, loss_of, network, rows, sgp, step, torch
from sgp.units import Units

EPOCHS, ROWS, BATCH, EVERY = 4, 128, 8, 5  # the rows are those of a node
STEPS = EPOCHS * ROWS // BATCH  # of a node
PAIR = [[(0, 1), (1, 0)]]


def train(path, directory, tell, **options):
    """A script as the page has it. It tells ("resumed", round of the unit, steps), ("began", weight, steps, parameters by name),
    ("at", round, steps) and ("end", steps, loss)."""
    torch.set_num_threads(1)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    x, y = rows(512)
    with sgp.attach(model, optimizer, name=path, timeout=fleet.PATIENCE, **options) as node:
        x, y = x[:ROWS * node.size], y[:ROWS * node.size]
        state = node.resume(directory=directory, scheduler=scheduler) or {"epoch": 0, "round": None, "steps": 0}
        steps = state["steps"]
        tell(("resumed", state["round"], steps, node.round))
        tell(("began", node.weight, steps, {name: tensor.flatten().tolist() for name, tensor in model.state_dict().items()}))
        for epoch in range(state["epoch"], EPOCHS):
            for a, b in node.shard((x, y), batch_size=BATCH):
                mixed = node.mix(loss=step(model, optimizer, a, b), rows=len(a))
                steps += 1
                node.checkpoint({"epoch": epoch, "round": mixed.round, "steps": steps}, every=EVERY, directory=directory,
                                scheduler=scheduler)
                tell(("at", mixed.round, steps))
            scheduler.step()
        rate = optimizer.param_groups[0]["lr"]
    tell(("end", steps, loss_of(model, x, y), rate))


class Program:
    """train() in a process of its own. `told` is what it told."""

    def __init__(self, *arguments, **options):
        self.ear, mouth = multiprocessing.Pipe(duplex=False)
        context = multiprocessing.get_context("fork")
        self.process = context.Process(target=self.run, args=(mouth, arguments, options), daemon=True)
        self.process.start()
        mouth.close()
        self.told = []

    @staticmethod
    def run(mouth, arguments, options):
        fleet.die_with_parent()
        train(*arguments, mouth.send, **options)

    def until(self, meant):
        """Listen until meant(what it told); returns that."""
        while True:
            if not self.ear.poll(fleet.PATIENCE):
                raise AssertionError("the program tells nothing: %s" % self.told[-1:])
            self.told.append(self.ear.recv())
            if meant(self.told[-1]):
                return self.told[-1]

    def resumed(self):
        return self.until(lambda said: said[0] == "resumed")

    def at(self, steps):
        return self.until(lambda said: said[0] == "end" or said[0] == "at" and said[2] >= steps)

    def end(self):
        said = self.until(lambda said: said[0] == "end")
        self.process.join(fleet.PATIENCE)
        return said

    def kill(self):
        self.process.kill()
        self.process.join(fleet.PATIENCE)
        try:
            while self.ear.poll():
                self.told.append(self.ear.recv())
        except EOFError:
            pass


@unittest.skipIf(torch is None, "not installed: python3-torch")
class Resume(AttachTest):
    def units(self, f):
        return os.path.join(f.directory, "units")

    def programs(self, f, indices=None, **options):
        made = [Program(self.path(f, i), self.units(f), **options) for i in (range(f.n) if indices is None else indices)]
        for program in made:
            self.addCleanup(program.kill)
        return made

    def on_disk(self, f, i):
        """The rounds of a node's units."""
        names = os.listdir(os.path.join(self.units(f), "n%d" % i))
        return sorted(int(name[6:-5]) for name in names if name.endswith(".unit"))

    def cut(self, f, programs, draw):
        """Everything ends at once, in any order: nobody waits for an end before all have been killed, since nodes that
        live on train without the others, and their latest units are then of rounds that the others never reach."""
        pids = [program.process.pid for program in programs] + [node.process.pid for node in f.nodes]
        draw.shuffle(pids)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for program in programs:
            program.kill()
        for node in f.nodes:
            node.process.wait(fleet.PATIENCE)

    def assert_one_round(self, programs):
        """All have gone on from the same round, with the same steps done, and are in one round now; it is returned."""
        said = {program.resumed() for program in programs}
        self.assertEqual(len(said), 1, said)
        return said.pop()

    def undisturbed(self):
        f = self.daemons(4, RING)
        programs = self.programs(f)
        self.assertEqual(self.assert_one_round(programs)[1:3], (None, 0))
        ends = [program.end() for program in programs]
        self.assertEqual([end[1] for end in ends], [STEPS] * 4)
        return ends[0]

    def lose_the_latest(self, f, draw):
        """Some disks had not written their latest unit, though fsync returned: it is torn, or its name is missing."""
        for i in draw.sample(range(f.n), draw.randrange(1, f.n + 1)):
            path = os.path.join(self.units(f), "n%d" % i, "round-%d.unit" % self.on_disk(f, i)[-1])
            if draw.random() < 0.5:
                os.unlink(path)
            else:
                os.truncate(path, draw.randrange(os.path.getsize(path)))

    def test_power_cuts(self):
        """All four go on from one round, within one interval, and end as if nothing had been. At every other cut, disks
        lose their latest units, too: then within two intervals."""
        _, _, loss, rate = self.undisturbed()
        draw = random.Random(os.environ.get("SGP_SEED", "7"))
        cuts = sorted(draw.sample(range(EVERY + 2, STEPS - 5), 10 if fleet.LONG else 3))
        f = self.daemons(4, RING)
        programs = self.programs(f)
        self.assert_one_round(programs)
        for i, at in enumerate(cuts):
            draw.choice(programs).at(at)
            self.cut(f, programs, draw)
            reached = min(max(said[2] for said in program.told) for program in programs)
            lost = i % 2 == 1
            if lost:
                self.lose_the_latest(f, draw)
            f.start()
            programs = self.programs(f)
            _, number, steps, now = self.assert_one_round(programs)
            print("# cut after %d steps%s: %d in the unit of round %d; now in round %d" % (
                reached, ", latest units lost" * lost, steps, number, now))
            self.assertGreaterEqual(steps, reached - EVERY * (1 + lost))
            self.assertGreater(now, number)
        ends = [program.end() for program in programs]
        self.assertEqual([(end[1], end[3]) for end in ends], [(STEPS, rate)] * 4)
        for end in ends:
            self.assertAlmostEqual(end[2], loss, delta=0.01 * loss)
        f.wait_state("finished")
        self.assertAlmostEqual(sum(status["weight"] for status in f.quiet()), 4, delta=1e-9)

    def unit(self, f, i, number):
        """The parameters by name that node i keeps of a round."""
        kept, parameters = Units(os.path.join(self.units(f), "n%d" % i)).read(number)
        values, named = array.array("f", parameters), {}
        for name, shape in kept["layout"]:
            count = math.prod(shape)
            named[name], values = values[:count].tolist(), values[count:]
        self.assertEqual(len(values), 0)
        return named

    def test_a_power_cut_leaves_the_sums_of_the_unit_s_round(self):
        """Each node begins with weight 1, as in the round of the unit, and with the parameters that its unit has."""
        draw = random.Random(os.environ.get("SGP_SEED", "3"))
        f = self.daemons(4, RING)
        programs = self.programs(f)
        self.assert_one_round(programs)
        for at in sorted(draw.sample(range(EVERY + 2, STEPS - 5), 3)):
            draw.choice(programs).at(at)
            self.cut(f, programs, draw)
            f.start()
            programs = self.programs(f)
            number = self.assert_one_round(programs)[1]
            begun = [program.until(lambda said: said[0] == "began") for program in programs]
            self.assertEqual([weight for _, weight, _, _ in begun], [1.0] * 4)
            for i, (_, _, _, parameters) in enumerate(begun):
                for name, values in self.unit(f, i, number).items():
                    self.assertEqual(parameters[name], values, name)
        for program in programs:
            program.end()
        f.wait_state("finished")
        self.assertAlmostEqual(sum(status["weight"] for status in f.quiet()), 4, delta=1e-12)

    # ---- not all of them

    def one_comes_back(self, goes):
        """`goes` ends node 1, or a part of it, while the fleet trains. It goes on from its own unit, and waits for nobody."""
        f = self.daemons(2, PAIR)
        programs = self.programs(f)
        self.assert_one_round(programs)
        programs[1].at(30)
        goes(f, programs[1])
        programs[0].at(32)
        programs[1], = self.programs(f, [1])
        _, number, steps, now = programs[1].resumed()
        self.assertGreaterEqual(steps, 30 - EVERY)
        self.assertGreaterEqual(now, number)
        self.assertNotIn("resumed", [said[0] for said in programs[0].told[1:]])
        ends = [program.end() for program in programs]
        self.assertEqual([end[1] for end in ends], [STEPS] * 2)
        self.assertAlmostEqual(ends[0][2], ends[1][2], delta=1e-3 * ends[0][2])
        self.assertAlmostEqual(sum(status["weight"] for status in f.quiet()), 2, delta=1e-9)

    def test_one_program_is_started_again(self):
        self.one_comes_back(lambda f, program: program.kill())

    def test_one_machine_loses_its_power(self):
        def goes(f, program):
            program.kill()
            f.nodes[1].end(signal.SIGKILL)
            f.nodes[1].start()
        self.one_comes_back(goes)

    def test_one_machine_is_shut_down_in_order(self):
        """Its daemon has exact parameters, and has nothing to ask its neighbours."""
        def goes(f, program):
            program.kill()
            f.nodes[1].end(signal.SIGTERM)
            f.nodes[1].start()
        self.one_comes_back(goes)

    # ---- what disks do

    def after_a_cut(self, damage):
        """The fleet after a cut at 30 steps and `damage` to its files: what each program told when it had resumed."""
        f = self.daemons(2, PAIR)
        programs = self.programs(f)
        self.assert_one_round(programs)
        for program in programs:
            program.at(30)
        self.cut(f, programs, random.Random(1))
        damage(f)
        f.start()
        programs = self.programs(f)
        said = self.assert_one_round(programs)
        self.assertEqual([program.end()[1] for program in programs], [STEPS] * 2)
        self.assertAlmostEqual(sum(status["weight"] for status in f.quiet()), 2, delta=1e-9)
        return said

    def test_a_unit_that_one_disk_has_lost_is_nobody_s(self):
        """On one node the latest file of both is cut off: both go on from the one before."""
        common = []

        def damage(f):
            common.extend(sorted(set(self.on_disk(f, 0)) & set(self.on_disk(f, 1))))
            for number in self.on_disk(f, 1):
                if number >= common[-1]:
                    os.truncate(os.path.join(self.units(f), "n1", "round-%d.unit" % number), 100)
        self.assertEqual(self.after_a_cut(damage)[1], common[-2])

    def test_daemons_that_have_lost_everything(self):
        """Their rounds begin again; the units go on, and are of these rounds from then on."""
        def damage(f):
            for node in f.nodes:
                shutil.rmtree(node.directory)
        _, number, _, now = self.after_a_cut(damage)
        self.assertLess(now, number)

    def test_training_that_daemons_have_lost_is_put_back_from_the_units(self):
        """Each daemon has its ledger, and no checkpoint: it says so, and does not any more once its program has resumed."""
        def damage(f):
            for node in f.nodes:
                node.lose_checkpoints()
        self.after_a_cut(damage)
        f = self.fleets[-1]
        for node in f.nodes:
            self.assertIn("event=untrained lost_rounds=", node.log())
        self.assertEqual([status["lost_rounds"] for status in f.quiet()], [0, 0])

    def test_a_node_without_any_unit_is_told_on_all(self):
        f = self.daemons(2, PAIR)
        self.each(2, lambda i: self.told_of(f, i))
        for node in f.nodes:
            node.end(signal.SIGKILL)
            shutil.rmtree(node.directory)
        shutil.rmtree(os.path.join(self.units(f), "n1"))
        f.start()

        def act(i):
            with self.assertRaisesRegex(sgp.Error, r"no round has a unit on every node \(n0: [0-9, ]+; n1: none\)"):
                self.told_of(f, i)
        self.each(2, act)

    def test_another_run_has_nothing_to_resume(self):
        f = self.daemons(2, PAIR)
        for _ in range(2):
            told = self.each(2, lambda i: self.told_of(f, i, fresh=True))
            self.assertEqual([said[0][1:3] for said in told], [(None, 0)] * 2)
        self.assertEqual(len(os.listdir(os.path.join(self.units(f), "n0", "former"))), 3)

    def told_of(self, f, i, **options):
        told = []
        train(self.path(f, i), self.units(f), told.append, **options)
        return told


fleet.main()
