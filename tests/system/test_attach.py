# SPDX-License-Identifier: Apache-2.0
"""The package sgp, and the example in C, with real daemons: they train as one process does, and outlive the deaths of either
side. test_program.py has what the daemon owes to any program. LINEAR is the second argument."""
import csv
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

import fleet
from attached import IRREGULAR, LIGHT, LOCK, RING, AttachTest, flat, loss_of, network, nn, rows, sgp, step, torch
from sgp.protocol import Frame, Type

LINEAR = os.path.abspath(sys.argv.pop(2))


@unittest.skipIf(torch is None, "not installed: python3-torch")
class Training(AttachTest):
    def train(self, phases, options=None, seeds=(1, 1, 1, 1), epochs=10, batch=16):
        """Four programs on 128 rows each; their models, and the statuses of the daemons."""
        f = self.daemons(4, phases, options)

        def act(i):
            model = network(seeds[i])
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
            with sgp.attach(model, optimizer, name=self.path(f, i), timeout=fleet.PATIENCE) as node:
                self.assertEqual((node.index, node.size), (i, 4))
                for _ in range(epochs):
                    for x, y in node.shard(rows(), batch_size=batch, shuffle=False):
                        node.mix(loss=step(model, optimizer, x, y), rows=len(x))
                self.assertAlmostEqual(node.epoch, epochs)
                self.rounds.append(node.round)
                self.weights.append(node.weight)
            return model
        self.rounds, self.weights = [], []  # when the steps are done; the mixing at the end changes the weights again
        models = self.each(4, act)
        statuses = f.quiet()
        self.adopted = [node.log().count("event=adopted") for node in f.nodes]
        self.assertAlmostEqual(sum(status["weight"] for status in statuses), 4, delta=1e-9)
        for model in models:
            torch.testing.assert_close(flat(model), flat(models[0]), rtol=0, atol=1e-3)
        return models, statuses

    def alone(self, epochs=10, batch=64):
        """The same by one process: in each step the rows that the four had in theirs."""
        model = network(1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
        with sgp.attach(model, optimizer, name="/none-such.sock", required=False) as node:
            for _ in range(epochs):
                for x, y in node.shard(rows(), batch_size=batch, shuffle=False):
                    node.mix(loss=step(model, optimizer, x, y), rows=len(x))
        return loss_of(model, *rows())

    def test_four_train_as_one(self):
        reference = self.alone()
        models, statuses = self.train(RING)
        self.assertEqual(self.adopted, [0] * 4)  # all begin with the same parameters, which do not travel
        self.assertLess(abs(loss_of(models[0], *rows()) / reference - 1), 0.1)
        self.assertEqual([status["samples"] for status in statuses], [1280] * 4)

    def test_an_irregular_digraph_trains_as_one(self):
        models, _ = self.train(IRREGULAR)
        self.assertLess(min(self.weights), 0.7)
        self.assertLess(abs(loss_of(models[0], *rows()) / self.alone() - 1), 0.15)

    def test_local_steps(self):
        models, _ = self.train(RING, {"train.local_steps": "4"})
        self.assertEqual(self.rounds, [20] * 4)
        self.assertLess(abs(loss_of(models[0], *rows()) / self.alone() - 1), 0.15)

    def test_seeds_of_their_own_are_one_beginning(self):
        models, _ = self.train(RING, seeds=(1, 2, 3, 4))
        self.assertEqual(self.adopted, [0, 1, 1, 1])
        self.assertLess(abs(loss_of(models[0], *rows()) / self.alone() - 1), 0.1)

    def built_in(self, phases, local_steps, rounds):
        """Of each node the mean loss of each round, and what all of them began with, by the learner of the daemon."""
        f = self.fleet(4, phases=phases, options={
            "train.rounds": str(rounds), "train.epochs": None, "train.batch": "100", "train.local_steps": str(local_steps),
            "model.layers": "dense 16 tanh, dense 2", "data.holdout": "0", "optimizer.learning_rate": "0.05"})
        f.start([0])  # alone it does not begin
        beginning = f.wait("a model", lambda: self.answer(f.nodes[0]))
        f.start([1, 2, 3])
        f.wait_state("finished")
        losses = []
        for node in f.nodes:
            with open(os.path.join(node.directory, "history.csv")) as file:
                losses.append([float(row["loss"]) for row in csv.DictReader(file)][:rounds])
        with open(f.rows) as file:
            rows = list(csv.DictReader(file))
        f.close()
        x = torch.tensor([[float(row["f%d" % i]) for i in range(6)] for row in rows])
        return losses, beginning, (x, torch.tensor([int(row["label"] == "pos") for row in rows]))

    def answer(self, node):
        try:
            code, body = node.get("/v1/model")
            return code == 200 and fleet.read_model(body)
        except OSError:
            return None

    def expect_the_same_curve(self, phases, local_steps=1, rounds=200 if fleet.LONG else 60, tries=2):
        """The least of the weights with which the last steps were taken; mixing on may leave out a share."""
        expected, beginning, table = self.built_in(phases, local_steps, rounds)
        f = self.daemons(4, phases, {"train.local_steps": str(local_steps)})

        def act(i):
            model = network()
            torch.nn.utils.vector_to_parameters(torch.tensor(beginning), model.parameters())
            optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
            losses = []
            with sgp.attach(model, optimizer, name=self.path(f, i), timeout=fleet.PATIENCE) as node:
                (x, y), = node.shard(table, batch_size=100, shuffle=False)
                for _ in range(rounds * local_steps):
                    loss = nn.functional.cross_entropy(model(x), y)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    losses.append(loss.item())
                    node.mix()
                return torch.tensor(losses).view(rounds, local_steps).mean(1), node.weight
        curves, weights = zip(*self.each(4, act))
        if tries > 0 and any("event=absent" in node.log() for node in f.nodes):  # a machine that stood still
            return self.expect_the_same_curve(phases, local_steps, rounds, tries - 1)
        for curve, wanted in zip(curves, expected):
            torch.testing.assert_close(curve, torch.tensor(wanted), rtol=0.01, atol=0)
        return min(weights)

    def test_the_curve_is_that_of_the_built_in_learner(self):
        self.expect_the_same_curve(RING)

    def test_the_curve_is_the_same_with_local_steps(self):
        self.expect_the_same_curve(RING, local_steps=16, rounds=200 if fleet.LONG else 30)

    def test_the_curve_is_the_same_on_an_irregular_digraph(self):
        self.assertLess(self.expect_the_same_curve(LIGHT), 0.18)

    def test_rounds_without_steps_leave_time_for_requests_and_signals(self):
        """The configuration names more rounds than the program has steps, and a lone node makes them without a pause."""
        f = self.daemons(1, [[]], {"train.rounds": "1G"})
        self.start("import sys, numpy, sgp\n"
                   "with sgp.attach({'z': numpy.ones(4, numpy.float32)}, name=sys.argv[1]) as node:\n"
                   "    node.mix()\n", self.path(f, 0))
        f.wait("rounds without steps", lambda: ((f.nodes[0].status() or {}).get("round") or 0) > 1000)
        self.assertEqual(f.nodes[0].status()["state"], "training")
        self.assertEqual(f.nodes[0].end(signal.SIGTERM), 0)

    def test_nodes_without_edges_train_alone(self):
        f = self.daemons(2, [[]])

        def act(i):
            with sgp.attach(network(i), name=self.path(f, i), timeout=fleet.PATIENCE) as node:
                for _ in range(10):
                    node.mix()
                return node.round
        self.assertEqual(self.each(2, act), [10, 10])

    def test_variances_stay_positive(self):
        """Averaged batch norms on a digraph of unequal weights, with rows of unlike scale."""
        f = self.daemons(4, IRREGULAR)

        def act(i):
            with LOCK:
                torch.manual_seed(i)
                model = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
            optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
            smallest = 1.0
            with sgp.attach(model, optimizer, name=self.path(f, i), timeout=fleet.PATIENCE) as node:
                x, y = rows()
                for number in range(2000 if fleet.LONG else 300):
                    part = slice(number % 8 * 64, number % 8 * 64 + 64)
                    node.mix(loss=step(model, optimizer, x[part] * 0.01 * (1 + i), y[part]))
                    smallest = min(smallest, float(model[1].running_var.min()))
            return smallest, model
        ends = self.each(4, act)
        self.assertTrue(all(smallest > 0 for smallest, _ in ends), ends)
        for _, model in ends:
            torch.testing.assert_close(model[1].running_var, ends[0][1][1].running_var, rtol=1e-2, atol=1e-5)

    def test_statistics_of_a_batch_norm_travel_as_halves_beside_coded_weights(self):
        """The table of docs/COMPRESSION.md: 8 blocks of a matrix alone, and 6 of all else, the last of which has 2 values."""
        rounds, spared = 120, 4 * 3330 - (8 * (4 + 256) + 5 * (4 + 512) + 4 + 4)
        f = self.daemons(4, RING, {"train.rounds": str(rounds), "network.compression": "int8"})

        def act(i):
            with LOCK:
                torch.manual_seed(i)
                model = nn.Sequential(nn.Linear(6, 256), nn.BatchNorm1d(256), nn.Tanh(), nn.Linear(256, 2))
            optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
            smallest = 1.0
            with sgp.attach(model, optimizer, name=self.path(f, i), timeout=fleet.PATIENCE) as node:
                x, y = rows()
                for number in range(rounds):
                    part = slice(number % 8 * 64, number % 8 * 64 + 64)
                    node.mix(loss=step(model, optimizer, x[part] * 0.01 * (1 + i), y[part]))
                    smallest = min(smallest, float(model[1].running_var.min()))
            return smallest, model
        ends = self.each(4, act)
        self.assertTrue(all(smallest > 0 for smallest, _ in ends), [smallest for smallest, _ in ends])
        for _, model in ends:
            self.assertLess(float(model[1].running_var.max()), 0.01)
            torch.testing.assert_close(model[1].running_var, ends[0][1][1].running_var, rtol=1e-3, atol=1e-7)
        for status in f.quiet():
            self.assertEqual(status["parameters"], 3330)
            self.assertEqual(status["bytes_spared"] % spared, 0, status["bytes_spared"])
            self.assertGreaterEqual(status["bytes_spared"] // spared, rounds - 1)
            self.assertTrue(0 < status["compression_error"] < 0.01, status["compression_error"])

    def test_what_is_loaded_in_mid_run_is_the_estimate(self):
        f = self.daemons(4, IRREGULAR)

        def act(i):
            model, other = network(1), network(9)
            with sgp.attach(model, name=self.path(f, i), timeout=fleet.PATIENCE) as node:
                while node.round < 20:  # the label that all have alike
                    node.mix()
                with node.assign():  # all of them, so that the fleet's mean is just that
                    model.load_state_dict(other.state_dict())
                after = node.weight, flat(model)
                node.mix()
            return after, flat(model), flat(other)
        for (_, after), end, other in self.each(4, act):
            torch.testing.assert_close(after, other, rtol=0, atol=1e-5)
            torch.testing.assert_close(end, other, rtol=0, atol=1e-5)

    WORKERS = """if True:
        import sys, torch, sgp
        model = torch.nn.Linear(2, 1)
        with sgp.attach(model, name=sys.argv[1], timeout=60) as node:
            data = torch.utils.data.TensorDataset(torch.randn(10000, 2))
            for _ in torch.utils.data.DataLoader(data, batch_size=1, num_workers=2):
                node.mix()
                print(node.round, flush=True)
    """

    def test_a_killed_program_pauses_its_node_in_spite_of_its_workers(self):
        f = self.daemons(1, [[]])
        program = self.start(self.WORKERS, self.path(f, 0))
        self.assertEqual(program.stdout.readline(), "1\n")
        program.kill()
        f.wait_state("paused", timeout=5)
        model = nn.Linear(2, 1)
        with sgp.attach(model, name=self.path(f, 0), timeout=fleet.PATIENCE) as node:
            self.assertGreater(node.round, 0)
            self.assertFalse(node.mix().skipped)
        f.wait_state("finished")


class Faults(AttachTest):
    def model(self):
        import numpy
        return {"a": numpy.zeros(3, numpy.float32)}

    def told(self, text, event):
        """Set the event once the package warns of that."""
        handler = logging.Handler()
        handler.emit = lambda record: text in record.getMessage() and event.set()
        logging.getLogger("sgp").addHandler(handler)
        self.addCleanup(logging.getLogger("sgp").removeHandler, handler)

    PROGRAM = """if True:
        import os, sys, numpy, sgp
        model, steps = {"a": numpy.zeros(3, numpy.float32)}, 0
        with sgp.attach(model, name=sys.argv[1], timeout=60) as node:
            while node.round < int(sys.argv[2]):
                model["a"] += 1
                node.mix()
                print(node.round, flush=True)
                steps += 1
                if steps == 10:
                    exec(sys.argv[3])
        print("end", *map(round, model["a"]), flush=True)
    """

    def read_until(self, program, line):
        for said in program.stdout:
            if said == line:
                return
        self.fail("the program ended: " + program.stderr.read())

    def test_a_program_that_ends_without_an_end(self):
        """However it goes, its node pauses, and the next program goes on."""
        f = self.daemons(1, [[]])
        for number, (way, code) in enumerate({"os._exit(0)": 0, "sys.exit()": 0, "raise ValueError(7)": 1,
                                              "os.abort()": -signal.SIGABRT}.items(), 1):
            program = self.start(self.PROGRAM, self.path(f, 0), "100", way)
            self.assertEqual(program.wait(fleet.PATIENCE), code)
            f.wait_state("paused")
            self.assertGreaterEqual(f.nodes[0].status()["round"], 10 * number)
        program = self.start(self.PROGRAM, self.path(f, 0), "100", "")
        end = program.communicate(timeout=fleet.PATIENCE)[0].splitlines()[-1].split()
        self.assertIn(int(end[1]), range(90, 101))  # no step of them is lost but the ones that were under way
        f.wait_state("finished")

    def test_ctrl_c_while_it_waits_for_the_others(self):
        f = self.daemons(2, [[(0, 1), (1, 0)]])
        program = self.start(self.PROGRAM, self.path(f, 0), "20", "")
        f.wait_log(0, "event=attached")
        f.wait_state("joining", [0])
        program.send_signal(signal.SIGINT)
        self.assertIn("KeyboardInterrupt", program.communicate(timeout=fleet.PATIENCE)[1])
        f.wait_log(0, "event=detached")
        programs = [self.start(self.PROGRAM, self.path(f, i), "20", "") for i in range(2)]
        for program in programs:
            self.assertIn("end ", program.communicate(timeout=fleet.PATIENCE)[0])
        f.quiet()

    def stand_still(self, stopped_of, seconds):
        """One of the processes of node 1 stands still for so long; then both train to their end."""
        f = self.daemons(2, [[(0, 1), (1, 0)]])
        programs = [self.start(self.PROGRAM, self.path(f, i), "400", "") for i in range(2)]
        self.read_until(programs[1], "20\n")
        stopped = stopped_of(f, programs)
        stopped.send_signal(signal.SIGSTOP)
        self.addCleanup(stopped.send_signal, signal.SIGCONT)
        time.sleep(seconds)  # what is tested is that much time
        self.assertIsNotNone(f.nodes[0].status())
        stopped.send_signal(signal.SIGCONT)
        for program in programs:
            self.assertIn("end ", program.communicate(timeout=fleet.PATIENCE)[0])
        f.wait_state("finished")  # again, where the other had gone on alone
        self.assertAlmostEqual(sum(status["weight"] for status in f.quiet()), 2, delta=1e-9)
        models = [fleet.read_model(node.get("/v1/model")[1]) for node in f.nodes]
        for a, b in zip(*models):
            self.assertAlmostEqual(a, b, delta=1e-3 * abs(a))

    def test_an_order_s_second_ends_with_the_turn_that_it_was_for(self):
        """A turn that begins after a short pause has all the time it wants."""
        f = self.daemons(1, [[]])
        model = self.model()
        with sgp.attach(model, name=self.path(f, 0), timeout=fleet.PATIENCE) as node:
            ordered = time.monotonic()
            self.assertEqual(f.nodes[0].get("/v1/pause", "POST")[0], 200)
            mixes = threading.Thread(target=node.mix, daemon=True)
            mixes.start()
            f.wait_state("paused")
            self.assertEqual(f.nodes[0].get("/v1/resume", "POST")[0], 200)
            mixes.join(fleet.PATIENCE)
            time.sleep(max(0, ordered + 1.5 - time.monotonic()))  # what is tested is that much time
            model["a"] += 1
            self.assertFalse(node.mix().skipped)

    def test_a_program_that_stands_still(self):
        self.stand_still(lambda f, programs: programs[1], 30 if fleet.LONG else 0.5)

    def test_a_daemon_that_stands_still(self):
        self.stand_still(lambda f, programs: f.nodes[1].process, 30 if fleet.LONG else 0.5)

    def test_a_daemon_that_is_killed_is_waited_for(self):
        """The program goes on from the checkpoint, once a daemon is there again."""
        f = self.daemons(2, [[(0, 1), (1, 0)]])
        gone, ended, looks = threading.Event(), threading.Event(), threading.Event()
        self.told("waiting for its return", looks)

        def restart():
            gone.wait(fleet.PATIENCE)
            looks.wait(fleet.PATIENCE)  # the program finds nobody meanwhile
            f.nodes[1].start()
            ended.wait(fleet.PATIENCE)  # a daemon ends with the thread that started it
        starter = threading.Thread(target=restart, daemon=True)
        starter.start()

        def act(i):
            model, skipped, jumped = self.model(), 0, 0
            with sgp.attach(model, name=self.path(f, i), timeout=fleet.PATIENCE) as node:
                for number in range(60):
                    if i == 1 and number == 30:
                        f.nodes[1].get("/v1/checkpoint", "POST")
                        f.wait_log(1, "event=checkpoint round=3")
                        f.nodes[1].kill(signal.SIGKILL)
                        f.nodes[1].process.wait()
                        gone.set()
                    if i == 0 and number == 31:  # alone it would run far ahead
                        self.assertTrue(gone.wait(fleet.PATIENCE))
                        f.wait("n1 to train again", lambda: (f.nodes[1].status() or {}).get("state") == "training")
                    model["a"] += 1
                    mixed = node.mix()
                    skipped, jumped = skipped + mixed.skipped, jumped + mixed.jumped
            return (skipped, jumped), model["a"][0]
        (none, first), (some, second) = self.each(2, act)
        self.assertEqual((none, some), ((0, 0), (1, 1)))
        self.assertAlmostEqual(first, second, delta=1e-3)
        self.assertGreater(first, 40)
        self.assertAlmostEqual(sum(status["weight"] for status in f.quiet()), 2, delta=1e-9)
        ended.set()
        starter.join()

    def test_rounds_and_stop(self):
        f = self.daemons(1, [[]], {"train.rounds": "5"})
        with sgp.attach(self.model(), name=self.path(f, 0), timeout=fleet.PATIENCE) as node:
            self.assertEqual(node.rounds, 5)
            self.assertEqual([node.mix().stop for _ in range(5)], [False] * 4 + [True])
        f = self.daemons(2, [[(0, 1), (1, 0)]])

        def act(i):
            with sgp.attach(self.model(), name=self.path(f, i), timeout=fleet.PATIENCE) as node:
                for number in range(10000):
                    if i == 0 and number == 20:
                        node.stop("good enough")
                    if node.mix().stop:
                        return number
        self.assertTrue(all(20 <= number < 200 for number in self.each(2, act)))
        f.wait_state("finished")

    PAIRS = [[(0, 1), (1, 0), (2, 3), (3, 2)], [(0, 2), (2, 0), (1, 3), (3, 1)]]  # one cycle averages exactly

    def test_an_end_takes_a_cycle(self):
        """After the last steps there are as many rounds as a cycle has. In these, exact averages come about."""
        cycle, steps = self.PAIRS, 12
        f = self.daemons(4, cycle)

        def act(i):
            model = self.model()
            with sgp.attach(model, name=self.path(f, i), timeout=fleet.PATIENCE) as node:
                for _ in range(steps):
                    model["a"] += i + 1
                    node.mix()
            return model["a"]
        for values in self.each(4, act):
            for value in values:
                self.assertAlmostEqual(value, steps * 2.5, places=4)
        self.assertEqual([status["round"] for status in f.quiet()], [steps + len(cycle)] * 4)

    def test_an_early_stop_is_followed_by_final_cycles(self):
        """No rounds without steps come before it, so nodes mix before they compare, and need not mix on."""
        f = self.daemons(4, self.PAIRS)

        def act(i):
            model = self.model()
            with sgp.attach(model, name=self.path(f, i), timeout=fleet.PATIENCE) as node:
                for number in range(10000):
                    if i == 0 and number == 20:
                        node.stop("good enough")
                    model["a"] += i + 1
                    if node.mix().stop:
                        return number
        self.each(4, act)
        f.wait_state("finished")
        for node in f.nodes:
            self.assertNotIn("event=mixes_on", node.log())

    def test_what_the_daemon_refuses(self):
        import numpy
        f = self.daemons(1, [[]])
        path = self.path(f, 0)
        model = self.model()
        node = sgp.attach(model, name=path, timeout=fleet.PATIENCE)
        with self.assertRaisesRegex(sgp.Busy, "is attached"):
            sgp.attach(self.model(), name=path)
        model["a"][1] = numpy.nan
        with self.assertRaises(sgp.NotFinite) as caught:
            node.mix()
        self.assertEqual(caught.exception.tensor, "a")
        self.assertEqual(list(model["a"]), [0, 0, 0])
        f.wait_state("paused")
        self.assertEqual(f.nodes[0].get("/v1/resume", "POST")[0], 200)
        self.assertTrue(node.mix().skipped)
        model["a"] += 1
        self.assertFalse(node.mix().skipped)
        node.detach()
        with self.assertRaises(sgp.Disconnected):
            node.mix()
        with self.assertRaises(sgp.LayoutMismatch) as caught:
            sgp.attach({"b": numpy.zeros((2, 2), numpy.float32)}, name=path)
        self.assertEqual((caught.exception.tensor, caught.exception.here, caught.exception.there),
                         ("b", "b [2, 2]", "a [3]"))
        with sgp.attach(model, name=path) as again:
            self.assertEqual(list(model["a"]), [1, 1, 1])
            again.mix()

    def test_the_client_sees_it(self):
        f = self.daemons(1, [[]])
        client = sgp.Client(f.nodes[0].socket)
        self.assertEqual(client.wait("ready", timeout=fleet.PATIENCE)["state"], "awaiting_model")
        with sgp.attach(self.model(), name=self.path(f, 0), timeout=fleet.PATIENCE) as node:
            for _ in range(10):
                node.mix(loss=0.5, rows=4)
            node.report(test_accuracy=0.75, test_loss=0.25, recall=0.5, dice=0.875)
            status = client.wait("accuracy:0.7", timeout=fleet.PATIENCE)
            self.assertEqual((status["samples"], status["loss"]), (40, 0.5))
            self.assertEqual(client.wait("round:10", timeout=fleet.PATIENCE)["state"], "training")
            self.assertEqual(client.peers(), [])
            with self.assertRaises(TimeoutError):
                client.wait("round:11", timeout=0.3)
        self.assertEqual(client.wait(timeout=fleet.PATIENCE)["state"], "finished")
        with self.assertRaisesRegex(sgp.Error, "'accuracy:0.9' was not met"):
            client.wait("accuracy:0.9", timeout=fleet.PATIENCE)
        with self.assertRaisesRegex(ValueError, "'nonsense' is no condition"):
            client.wait("nonsense")
        self.assertIsInstance(client.history(), list)
        with self.assertRaisesRegex(sgp.Error, "none is attached"):
            client.evaluate()  # the rows are the program's
        f.nodes[0].end()
        self.assertIn('figures="recall=0.5 dice=0.875"', f.nodes[0].log())
        with self.assertRaisesRegex(sgp.NoDaemon, "no daemon listens"):
            client.status()

    def test_what_onlookers_ask_of_it(self):
        """The estimate of the moment, measured by the program and applied by it, while training goes on."""
        import numpy
        f = self.daemons(2, [[(0, 1), (1, 0)]])
        asked = threading.Event()

        def act(i):
            model = self.model()
            with sgp.attach(model, name=self.path(f, i), timeout=fleet.PATIENCE,
                            on_evaluate=lambda: {"test_loss": float(model["a"].sum()), "rows": 3},
                            on_predict=lambda x: x @ model["a"] if i == 0 else numpy.linalg.inv(x)) as node:
                while not asked.is_set():
                    model["a"][:] = 2  # of both, so that the mean is that
                    node.mix()
        threads = [threading.Thread(target=act, args=(i,), daemon=True) for i in range(2)]
        for thread in threads:
            thread.start()
        clients = [sgp.Client(node.socket) for node in f.nodes]
        for client in clients:
            client.wait("round:10", timeout=fleet.PATIENCE)
        found = clients[0].evaluate()
        self.assertAlmostEqual(found["loss"], 6, delta=1e-3)
        self.assertEqual((found["samples"], found["accuracy"]), (3, None))
        self.assertAlmostEqual(clients[0].status()["test_loss"], found["loss"], delta=1e-6)
        answer = self.predict(f.nodes[0], "[[1, 2, 3], [0, 0, 1]]")
        for row, wanted in zip(answer["outputs"], (12, 2)):
            self.assertAlmostEqual(row[0], wanted, delta=1e-2)
        self.assertIn("the program could not: LinAlgError", self.predict(f.nodes[1], "[[1, 2]]")["error"]["message"])
        at = clients[1].status()["round"]
        clients[1].wait("round:%d" % (at + 10), timeout=fleet.PATIENCE)  # it goes on
        asked.set()
        for thread in threads:
            thread.join(fleet.PATIENCE)
        f.quiet()

    def predict(self, node, body):
        return json.loads(node.get("/v1/predict", "POST", body)[1])

    def test_who_asks_which_node_it_is(self):
        """Before any program has come, while one is attached, and when the run is over; whatever comes with the question."""
        f = self.daemons(2, [[(0, 1), (1, 0)]], {"train.seed": "9"})
        f.wait("the sockets", lambda: all(os.path.exists(self.path(f, i)) for i in range(2)))

        def ask(i):
            node = sgp.join(name=self.path(f, i), timeout=fleet.PATIENCE)
            return node.name, node.index, node.size, node.seed
        before = [ask(i) for i in range(2)]
        self.assertEqual([who[:3] for who in before], [("n0", 0, 2), ("n1", 1, 2)])

        def act(i):
            model = network()
            with sgp.join(name=self.path(f, i)) as node:
                sampler = node.sampler(range(8), shuffle=False)
                node.attach(model, timeout=fleet.PATIENCE)
                for row in sampler:
                    node.mix(rows=1)
                self.assertEqual((ask(i), node.seed, node.epoch), (before[i], before[i][3], 1.0))
            return list(sampler)
        self.assertEqual(self.each(2, act), [[], []])  # over: no row comes
        f.wait_state("finished")
        self.assertEqual([ask(i) for i in range(2)], before)
        descriptors = f"/proc/{f.nodes[0].process.pid}/fd"
        count = len(os.listdir(descriptors))
        for _ in range(100):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asker:
                asker.connect(self.path(f, 0))
                socket.send_fds(asker, [Frame(Type.IDENTIFY).pack()], [0])
                self.assertEqual(Frame.unpack(asker.recv(512)).type, Type.IDENTITY)
                self.assertEqual(asker.recv(512), b"")  # it hangs up
        f.wait("all to be closed", lambda: len(os.listdir(descriptors)) <= count)

    def test_linear_in_c(self):
        f = self.daemons(2, [[(0, 1), (1, 0)]])
        f.wait_state("awaiting_model")
        programs = [subprocess.Popen([LINEAR, self.path(f, 0)], text=True, stdout=subprocess.PIPE)]
        f.wait("its first turn to wait", lambda: (f.nodes[0].status() or {}).get("state") == "joining")
        loss = f.nodes[0].json("/v1/evaluate", "POST")["loss"]  # while it waits for its neighbour
        self.assertEqual(loss, 1 + 4 + 9 + 16 + 0.25)
        self.assertEqual(self.predict(f.nodes[0], "[[1, 2, 3, 4]]")["outputs"], [[0.0]])
        self.assertIn("the program could not", self.predict(f.nodes[0], "[[1]]")["error"]["message"])
        programs.append(subprocess.Popen([LINEAR, self.path(f, 1)], text=True, stdout=subprocess.PIPE))
        for program in programs:
            self.addCleanup(program.kill)
        said = [program.communicate(timeout=fleet.PATIENCE)[0] for program in programs]
        for i, line in enumerate(said):
            self.assertRegex(line, r"^n%d, round \d+: 1.000 -2.000 3.000 -4.000 0.500$" % i)


fleet.main()
