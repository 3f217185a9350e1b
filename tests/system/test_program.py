# SPDX-License-Identifier: Apache-2.0
"""Programs that train through real daemons: turns, beginnings, ends, and programs that lie or die. See raw_program.py."""
import array
import json
import os
import resource
import signal
import socket
import subprocess
import threading

import fleet
import raw_program
from fleet import FleetTest
from raw_program import NAN, Program

ATTACHED = {"model.kind": "attached", "model.layers": None, "data.train": None, "data.label": None, "data.classes": None,
            "data.holdout": None, "train.epochs": None, "train.batch": None, "optimizer.learning_rate": None}
RING = [[(i, (i + 1) % 4) for i in range(4)]]
PAIRS = [[(i, i ^ hop) for i in range(4)] for hop in (1, 2)]  # which every algorithm takes
LARGE = 16 << 20  # parameters of a model of 64 MiB
# n0 keeps 1/3 of its weight, n1 and n2 1/2: weights down to a third
IRREGULAR = [[(0, 1), (0, 2), (1, 2), (2, 0)]]


class Programs(FleetTest):
    def daemons(self, n, phases=None, options=None):
        own = {i: {"control.attach": "n%d.attach" % i} for i in range(n)}
        f = self.fleet(n, phases=phases, options=dict(ATTACHED, **(options or {})), own=own)
        f.start()
        return f

    def attach(self, f, index, values, **options):
        path = os.path.join(f.directory, "n%d.attach" % index)
        program = Program(path, values, **options)
        self.addCleanup(program.close)
        return program

    def try_again(self, f, **options):
        program = self.attach(f, 0, [1.0, 2.0], **options)
        return None if program.refused else program

    def each(self, programs, act):
        """Do so with each program, side by side; what each came to."""
        results = [None] * len(programs)

        def run(i):
            results[i] = act(i, programs[i])
        threads = [threading.Thread(target=run, args=(i,)) for i in range(len(programs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    def descend(self, program, centre, steps, rate=0.1):
        """Plain gradient descent to a centre of its own; the last frame."""
        got = program.take()
        for _ in range(steps):
            if got is None or got["type"] != raw_program.TURN:
                break
            got = program.step(lambda z: [v - rate * (v - c) for v, c in zip(z, centre)])
        return got

    def total(self, f):
        return sum(status["weight"] for status in f.quiet())

    def agreed(self, f, programs):
        models = [program.z for program in programs]
        for model in models:
            for a, b in zip(models[0], model):
                self.assertAlmostEqual(a, b, delta=1e-3)
        self.assertAlmostEqual(self.total(f), f.n, delta=1e-9)
        return models[0]


class Turns(Programs):
    def run_to_the_end(self, phases, options=None, steps=200, n=4):
        f = self.daemons(n, phases, options)
        programs = [self.attach(f, i, [float(i), 5.0]) for i in range(n)]
        ends = self.each(programs, lambda i, p: self.descend(p, [float(i), -1.0], steps) and p.finish())
        for end in ends:
            self.assertEqual(end["type"], raw_program.FINISHED)
            self.assertFalse(end["flags"] & raw_program.DISAGREES)
        return self.agreed(f, programs)

    def test_four_programs_find_the_mean_of_their_optima(self):
        z = self.run_to_the_end(RING)
        self.assertAlmostEqual(z[0], 1.5, delta=0.2)
        self.assertAlmostEqual(z[1], -1.0, delta=0.05)

    def test_an_irregular_digraph_is_debiased(self):
        z = self.run_to_the_end(IRREGULAR, n=3, steps=400)
        self.assertAlmostEqual(z[1], -1.0, delta=0.05)

    def test_relays_are_not_counted(self):
        """Rows that are dealt by index and size would never be trained on if they were a relay's."""
        f = self.fleet(3, phases=[[(0, 1), (1, 0), (0, 2), (2, 0)]], options=ATTACHED,
                       own={2: {"control.attach": "n2.attach"}})
        f.says_of = lambda i: ", train=false" if i == 0 else ""
        for i in range(3):
            f.write_topology(i)
        f.start([2])
        program = self.attach(f, 2, [1.0])
        self.assertIsNone(program.refused)
        self.assertEqual((program.welcome["index"], program.welcome["size"]), (1, 2))

    def test_local_steps_and_an_exact_cycle(self):
        z = self.run_to_the_end(RING, {"train.local_steps": "4"})
        self.assertAlmostEqual(z[0], 1.5, delta=0.3)

    def test_every_algorithm_ends_when_each_has_said_its_end(self):
        """Some take four times the steps of others; nobody runs on, and all hold one model."""
        for algorithm in fleet.algorithms():
            with self.subTest(algorithm):
                f = self.daemons(4, PAIRS, {"train.algorithm": algorithm})
                programs = [self.attach(f, i, [float(i), 5.0]) for i in range(4)]
                ends = self.each(programs, lambda i, p: self.descend(p, [float(i), -1.0], 25 * (1 + i)) and p.finish())
                self.assertEqual([end["type"] for end in ends], [raw_program.FINISHED] * 4)
                self.assertLess(self.agreed(f, programs)[1], 1.0)
                self.assertLess(f.nodes[0].status()["rounds"], 1000)
                f.close()

    def test_rounds_that_are_configured_end_training(self):
        f = self.daemons(2, [[(0, 1), (1, 0)]], {"train.rounds": "7"})
        for _ in range(2):
            self.assertIn("asks for 5 rounds, and [train] rounds is 7", self.attach(f, 0, [1.0], rounds=5).refused)
        programs = [self.attach(f, i, [1.0]) for i in range(2)]
        turns = self.each(programs, lambda i, p: self.count(p))
        self.assertEqual(turns, [7, 7])
        for end in self.each(programs, lambda i, p: p.finish()):
            self.assertEqual(end["type"], raw_program.FINISHED)
        self.assertEqual(f.nodes[0].status()["rounds"], 7)

    @staticmethod
    def count(program):
        turns, got = 0, program.take()
        while got["type"] == raw_program.TURN:
            turns += 1
            got = program.step(lambda z: z)
        assert got["type"] == raw_program.STOP, got
        return turns

    def test_all_begin_with_the_parameters_of_the_first_node(self):
        f = self.daemons(4, RING)
        programs = [self.attach(f, i, [float(100 * i), 1.0]) for i in range(4)]
        first = self.each(programs, lambda i, p: (p.take()["type"], p.z))
        self.assertEqual(first, [(raw_program.TURN, [0.0, 1.0])] * 4)

    def test_a_value_is_what_it_is_and_an_update_counts_once(self):
        f = self.daemons(3, IRREGULAR)
        programs = [self.attach(f, i, [0.0, 0.0], tensors=[("w", [1]), ("mean", [1])], values_from=1) for i in range(3)]
        all_there = threading.Barrier(3)

        def act(i, p):
            got = p.take()
            while got["round"] < 100:  # turns are counted by each for itself
                got = p.step(lambda z: [z[0], 7.0])
            weight, before = got["weight"], p.z
            assert (abs(weight - 1.0) > 0.1) == (i > 0), weight
            all_there.wait(fleet.PATIENCE)
            p.step(lambda z: [17.0, 17.0], flags=raw_program.ASSIGNED)
            p.finish()
            return before
        for before in self.each(programs, act):
            self.assertAlmostEqual(before[1], 7.0, places=4)  # whatever its weight
        self.assertAlmostEqual(self.agreed(f, programs)[0], 17.0, places=3)

    def test_the_fleet_stops_when_one_has_enough(self):
        f = self.daemons(2, [[(0, 1), (1, 0)]])
        programs = [self.attach(f, i, [1.0]) for i in range(2)]

        def act(i, p):
            got, turns = p.take(), 0
            while got["type"] == raw_program.TURN:
                turns += 1
                if i == 1 and turns == 10:
                    p.send(raw_program.ENOUGH, text=b"good enough")
                got = p.step(lambda z: z)
            p.finish()
            return got["type"]
        self.assertEqual(self.each(programs, act), [raw_program.STOP] * 2)
        self.assertIn('reason="good enough"', f.nodes[1].log())

    def test_enough_said_again_and_again_is_one_line(self):
        f = self.daemons(1, [[]])
        program = self.attach(f, 0, [1.0, 1.0])
        program.take()
        for _ in range(20000):
            program.send(raw_program.ENOUGH, text=b"good enough")
        program.step(lambda z: z)  # behind all of them
        said = [line for line in f.nodes[0].log().splitlines() if "event=enough" in line]
        self.assertEqual(len([line for line in said if "good enough" in line]), 1, len(said))
        self.assertLessEqual(len(said), 2)  # ... and when the fleet stops
        self.assert_alive(f)

    def test_what_it_reports_is_in_the_status(self):
        f = self.daemons(1, [[]])
        p = self.attach(f, 0, [1.0])
        p.take()
        p.step(lambda z: z, loss=0.25, rows=32, epoch=0.5, learning_rate=0.125)
        p.send(raw_program.REPORT, test_loss=0.5, test_accuracy=0.75)
        node = f.nodes[0]
        f.wait("the report", lambda: node.status()["test_accuracy"] == 0.75)
        status = node.status()
        self.assertEqual((status["loss"], status["samples"], status["epoch"], status["learning_rate"], status["test_loss"]),
                         (0.25, 32, 0.5, 0.125, 0.5))
        self.assertEqual((status["program"]["attached"], status["program"]["turn"], status["program"]["name"],
                          status["program"]["pid"]), (True, True, "raw", os.getpid()))
        self.assertIsNone(status["rounds"])
        code, model = node.get("/v1/model")
        self.assertEqual((code, fleet.read_model(model)), (200, (1.0,)))


class Questions(Programs):
    """What an onlooker asks of a program, between two of its turns."""
    BOTH = raw_program.EVALUATES | raw_program.PREDICTS

    def one(self, flags=BOTH):
        f = self.daemons(1, [[]])
        program = self.attach(f, 0, [1.0, 2.0], flags=flags)
        program.take()
        return f, f.nodes[0], program

    def ask(self, node, path, body=""):
        """Beside the test; its end is (status, JSON)."""
        answer = []
        thread = threading.Thread(target=lambda: answer.append(node.get("/v1/" + path, "POST", body)))
        thread.start()
        self.addCleanup(thread.join)

        def end():
            thread.join(fleet.PATIENCE)
            return answer[0][0], json.loads(answer[0][1])
        return end

    def error(self, end):
        status, answer = end()
        return status, answer["error"]["message"]

    def test_an_evaluation_waits_for_the_end_of_a_turn(self):
        f, node, p = self.one()
        end = self.ask(node, "evaluate")
        self.assertTrue(node.status()["program"]["turn"])  # which goes on
        got = p.step(lambda z: [5.0, 6.0])
        while got["type"] == raw_program.TURN:  # the question may come after the answer to the step
            got = p.step(lambda z: z)
        self.assertEqual((got["type"], got["turn"], p.z), (raw_program.EVALUATE, 1, [5.0, 6.0]))
        p.z = [9.0, 9.0]  # which is lost
        p.send(raw_program.EVALUATED, turn=1, rows=10, test_loss=0.25, test_accuracy=0.75)
        self.assertEqual(end(), (200, {"round": got["round"], "best": False, "samples": 10, "loss": 0.25, "accuracy": 0.75,
                                       "measures": None}))  # the program says no more
        self.assertEqual((p.take()["type"], p.z), (raw_program.TURN, [5.0, 6.0]))
        self.assertEqual(node.status()["test_loss"], 0.25)

    def test_rows_go_there_and_outputs_come_back(self):
        f, node, p = self.one()
        ends = [self.ask(node, "predict", "[[1, 2, 3], [4, 5, 6]]")]
        while p.step(lambda z: z)["type"] != raw_program.PREDICT:
            pass
        self.assertEqual((p.turn["rows"], p.turn["columns"], p.turn["values"]), (2, 3, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
        ends.append(self.ask(node, "predict", "a,b\n1,2\n"))
        p.predicted(p.turn, 2, 1, [0.5, 1.5])
        self.assertEqual(ends[0](), (200, {"rows": 2, "labels": None, "outputs": [[0.5], [1.5]]}))
        got = p.take()
        while got["type"] == raw_program.TURN:
            got = p.step(lambda z: z)
        self.assertEqual((got["turn"], got["rows"], got["columns"], got["values"]), (2, 1, 2, [1.0, 2.0]))
        p.predicted(got, 1, 2, [7.0, 8.0])
        p.predicted(got, 1, 2, [7.0, 8.0])  # said twice, as when a signal came between
        self.assertEqual(ends[1]()[1]["outputs"], [[7.0, 8.0]])
        self.assertEqual(p.take()["type"], raw_program.TURN)

    def test_a_finishing_program_and_a_paused_one_answer(self):
        f, node, p = self.one()
        p.step(lambda z: z)
        self.assertEqual(node.get("/v1/pause", "POST")[0], 200)
        p.done()
        end = self.ask(node, "evaluate")
        self.assertEqual(p.take()["type"], raw_program.EVALUATE)
        p.send(raw_program.EVALUATED, turn=1, test_loss=0.5)
        self.assertEqual(end()[1]["loss"], 0.5)
        self.assertEqual(node.get("/v1/resume", "POST")[0], 200)
        self.assertEqual(p.take()["type"], raw_program.TURN)
        end = self.ask(node, "evaluate")
        p.send(raw_program.FINISH)
        self.assertEqual(p.take()["type"], raw_program.EVALUATE)
        p.send(raw_program.EVALUATED, turn=2, test_loss=0.75)
        self.assertEqual(end()[1]["loss"], 0.75)
        self.assertEqual(p.take()["type"], raw_program.FINISHED)
        self.assertIn("has finished: it answers no more", self.error(self.ask(node, "evaluate"))[1])

    def test_answers_that_are_none(self):
        f, node, p = self.one()
        for answer, says in ((lambda q: p.predicted(q, 1, 1, [1.0]), "answered with 1 rows of 1 outputs; asked for were 2"),
                             (lambda q: p.predicted(q, 2, 4, [1.0]), "no memfd of 32 bytes"),
                             (lambda q: p.predicted(q, 2, 0, [1.0]), "2 rows of 0 outputs"),
                             (lambda q: p.predicted(q, 2, 1 << 20, [1.0]), "are more than 1048576 in all"),
                             (lambda q: p.send(raw_program.PREDICTED, turn=q["turn"], rows=2, columns=1), "no memfd"),
                             (lambda q: p.predicted(q, 2, 1, [1.0, NAN]), "row 2: output 1 of the model is not a finite"),
                             (lambda q: p.send(raw_program.PREDICTED, turn=q["turn"], code=-1003, text=b"ValueError: no"),
                              "the program could not: ValueError: no")):
            end = self.ask(node, "predict", "[[1], [2]]")
            while p.turn["type"] != raw_program.PREDICT:
                p.step(lambda z: z)
            answer(p.turn)
            status, text = self.error(end)
            self.assertIn(says, text)
            self.assertIn(status, (400, 409))
            self.assertEqual(p.take()["type"], raw_program.TURN)
        end = self.ask(node, "evaluate")
        while p.turn["type"] != raw_program.EVALUATE:
            p.step(lambda z: z)
        p.send(raw_program.EVALUATED, turn=p.turn["turn"])
        self.assertIn("found neither loss nor accuracy", self.error(end)[1])
        self.assert_alive(f)

    def test_who_cannot_answer(self):
        f = self.daemons(1, [[]])
        node = f.nodes[0]
        f.wait("it to be there", lambda: node.status())
        self.assertEqual(self.error(self.ask(node, "evaluate")), (409, "no program has attached yet: there is no model"))
        p = self.attach(f, 0, [1.0, 2.0])
        p.take()
        for path, body in (("evaluate", ""), ("predict", "[[1]]")):
            self.assertEqual(self.error(self.ask(node, path, body)),
                             (409, "program 'raw' was attached without on_%s: it cannot" % path))
        self.assertEqual(self.error(self.ask(node, "predict", "[[]]"))[0], 400)
        p.socket.close()
        f.wait_state("paused")
        self.assertEqual(self.error(self.ask(node, "evaluate")),
                         (409, "the model is a program's, and none is attached; start it"))

    def test_a_program_that_goes_instead_of_an_answer(self):
        f, node, p = self.one()
        for go in (lambda: p.socket.close(),
                   lambda: p.send(raw_program.PREDICTED, turn=p.turn["turn"]),  # of another kind
                   lambda: p.send(raw_program.EVALUATED, turn=99)):
            end = self.ask(node, "evaluate")
            while p.turn["type"] != raw_program.EVALUATE:
                p.step(lambda z: z)
            go()
            self.assertEqual(self.error(end), (409, "the program has gone, so nobody can answer"))
            p = f.wait("a place", lambda: self.try_again(f, flags=self.BOTH))
            self.assertEqual(p.take()["type"], raw_program.TURN)
        end = self.ask(node, "evaluate")
        while p.turn["type"] != raw_program.EVALUATE:
            p.step(lambda z: z)
        self.assertEqual(node.end(), 0)  # SIGTERM
        self.assertEqual(self.error(end)[0], 503)


    def test_a_flood_of_reports_leaves_the_history_to_others(self):
        f, node, p = self.one()
        for number in range(1, 1001):
            p.send(raw_program.REPORT, test_loss=float(number))
        f.wait("the last of them", lambda: node.status()["test_loss"] == 1000)
        rows = node.json("/v1/history")["rows"]
        self.assertLess(len(rows), 100)  # one, and one a second
        self.assertEqual(rows[0]["test_loss"], 1)
        p.step(lambda z: z)
        p.send(raw_program.REPORT, test_loss=0.5)  # of another round
        f.wait("its row", lambda: node.json("/v1/history")["rows"][-1]["test_loss"] == 0.5)


class Faults(Programs):
    def two(self, options=None):
        f = self.daemons(2, [[(0, 1), (1, 0)]], options)
        return f, [self.attach(f, i, [1.0, 2.0]) for i in range(2)]

    def go_on(self, programs, steps=20):
        self.each(programs, lambda i, p: [p.step(lambda z: [v + 0.5 for v in z]) for _ in range(steps)])

    def keep_stepping(self, program):
        """In the background, for as long as there are turns."""
        over = threading.Event()

        def run():
            while not over.is_set() and program.turn is not None and program.turn["type"] == raw_program.TURN:
                try:
                    program.step(lambda z: z)
                except OSError:
                    return
        thread = threading.Thread(target=run)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(program.socket.shutdown, socket.SHUT_RDWR)
        self.addCleanup(over.set)

    def test_a_program_that_dies_pauses_its_node_and_the_next_one_resumes_it(self):
        f, programs = self.two()
        self.each(programs, lambda i, p: p.take())
        self.go_on(programs)
        programs[1].socket.close()  # amid its turn
        f.wait_state("paused", [1])
        self.assertFalse(f.nodes[1].status()["program"]["attached"])
        for _ in range(50):  # the other is not held up
            programs[0].step(lambda z: z)
        second = self.attach(f, 1, [9.0, 9.0])
        self.assertTrue(second.welcome["flags"] & raw_program.RESUMED)
        got = second.take()
        self.assertTrue(got["flags"] & raw_program.SKIPPED)
        self.assertLess(second.z[0], 20.0)
        pair = [programs[0], second]
        self.go_on(pair)
        self.each(pair, lambda i, p: p.finish())
        self.agreed(f, pair)

    def test_a_daemon_that_dies_comes_back_with_the_model(self):
        f, programs = self.two()
        self.each(programs, lambda i, p: p.take())
        self.go_on(programs)
        self.assertIn(f.nodes[1].get("/v1/checkpoint", "POST")[0], (200, 202))
        f.wait_log(1, "event=checkpoint round=2")
        f.nodes[1].kill(signal.SIGKILL)
        f.nodes[1].process.wait()
        self.assertIsNone(programs[1].receive())
        f.nodes[1].start()
        f.wait("it to be there", lambda: f.nodes[1].status())
        self.assertNotEqual(f.nodes[1].status()["state"], "awaiting_model")
        other = self.attach(f, 1, [0.0, 0.0])
        got = self.each([programs[0], other], lambda i, p: p.take() if i else p.step(lambda z: z))
        self.assertEqual(got[1]["type"], raw_program.TURN)
        self.assertGreater(other.z[0], 5.0)
        self.go_on([programs[0], other])
        self.each([programs[0], other], lambda i, p: p.finish())
        self.agreed(f, [programs[0], other])

    def test_orders_do_not_wait_for_a_turn(self):
        f, programs = self.two()
        self.each(programs, lambda i, p: p.take())
        self.keep_stepping(programs[1])
        node = f.nodes[0]  # its program computes for ever
        for path, method in (("/v1/status", "GET"), ("/v1/model", "GET"), ("/v1/checkpoint", "POST"), ("/v1/reload", "POST"),
                             ("/v1/pause", "POST")):
            self.assertIn(node.get(path, method)[0], (200, 202), path)
        f.wait("the turn to be taken back", lambda: not node.status()["program"]["turn"])
        self.assertEqual(node.status()["state"], "paused")
        self.assertEqual(node.get("/v1/resume", "POST")[0] // 100, 2)
        programs[0].z = [1e6, 1e6]
        programs[0].done()  # too late
        got = programs[0].take()
        self.assertLess(programs[0].z[0], 10.0)
        self.assertEqual((got["type"], got["flags"] & raw_program.SKIPPED), (raw_program.TURN, raw_program.SKIPPED))
        self.assertEqual(node.end(), 0)  # SIGTERM, in mid-turn
        self.assertIsNone(programs[0].receive())
        self.assertIn("event=end status=0", node.log())

    def test_a_node_leaves_while_its_program_computes(self):
        f, programs = self.two()
        self.each(programs, lambda i, p: p.take())
        self.go_on(programs)
        left = []
        self.keep_stepping(programs[0])
        left.append(f.nodes[1].get("/v1/leave", "POST"))
        self.assertEqual(left[0][0], 200, left)
        f.wait("all weight at the other", lambda: abs(f.nodes[0].status()["weight"] - 1.0) < 1e-9 and
               f.nodes[0].status()["surplus"] == 0)

    def test_what_is_not_finite_is_not_taken(self):
        f, programs = self.two()
        self.each(programs, lambda i, p: p.take())
        got = programs[0].step(lambda z: [z[0], float("nan")])
        self.assertEqual((got["turn"], got["code"], got["text"]), (0, -1017, "w"))
        f.wait_state("paused", [0])
        self.assertEqual(f.nodes[0].status()["diverging"], "not_finite")
        self.assertEqual(programs[0].z, [1.0, 2.0])
        self.assertEqual(f.nodes[0].get("/v1/resume", "POST")[0] // 100, 2)
        got = self.each(programs, lambda i, p: p.step(lambda z: z) if i else p.take())
        self.assertEqual([g["type"] for g in got], [raw_program.TURN] * 2)
        self.go_on(programs)
        self.each(programs, lambda i, p: p.finish())
        self.agreed(f, programs)

    def test_who_comes_while_the_last_step_of_the_dead_is_taken_is_let_in(self):
        """The step is large, so that the job outlives its program."""
        f = self.daemons(1, [[]])
        values = array.array("f", [1]) * (1 << 20)
        p = self.attach(f, 0, values)
        for _ in range(20):
            self.assertEqual(p.take()["type"], raw_program.TURN)
            p.done()
            p.socket.close()
            p = self.attach(f, 0, values)
            self.assertIsNone(p.refused)
        self.assertEqual(p.take()["type"], raw_program.TURN)
        self.assert_alive(f)

    def test_a_program_hears_that_its_node_leaves(self):
        """Amid its steps, and when it waits for the fleet."""
        for finishing, kind in ((False, raw_program.STOP), (True, raw_program.FINISHED)):
            with self.subTest(finishing):
                f, programs = self.two()
                self.each(programs, lambda i, p: p.take())
                self.go_on(programs)
                self.keep_stepping(programs[0])
                if finishing:
                    programs[1].send(raw_program.FINISH)
                answers = []
                leaver = threading.Thread(target=lambda: answers.append(f.nodes[1].get("/v1/leave", "POST")))
                leaver.start()
                got = programs[1].turn
                while got is not None and got["type"] != kind:
                    got = programs[1].take() if finishing else programs[1].step(lambda z: z)
                leaver.join()
                self.assertEqual((answers[0][0], got and got["type"]), (200, kind))

    def test_an_end_before_the_first_step_is_one_after_a_restart(self):
        f, programs = self.two()
        self.each(programs, lambda i, p: p.take())
        self.each(programs, lambda i, p: p.finish())
        self.assertEqual([p.z for p in programs], [[1.0, 2.0]] * 2)
        self.assertEqual(f.nodes[1].end(), 0)
        f.nodes[1].start()
        f.wait_state("finished", [1])

    def test_a_finished_node_is_finished_after_a_restart(self):
        f, programs = self.two()
        self.each(programs, lambda i, p: p.take())
        self.go_on(programs)
        self.each(programs, lambda i, p: p.finish())
        model = programs[1].z
        self.assertEqual(f.nodes[1].end(), 0)
        f.nodes[1].start()
        f.wait_state("finished", [1])
        again = self.attach(f, 1, [0.0, 0.0])
        self.assertEqual(again.take()["type"], raw_program.STOP)
        self.assertEqual(again.finish()["type"], raw_program.FINISHED)
        self.assertEqual(again.z, model)


class Strangers(Programs):
    def path(self, f):
        path = os.path.join(f.directory, "n0.attach")
        f.wait("the socket", lambda: os.path.exists(path))
        return path

    def refused(self, f, says, values=(1.0, 2.0), **options):
        program = self.attach(f, 0, list(values), **options)
        self.assertIn(says, program.refused or "")
        self.assertIsNone(program.receive())

    def test_memory_that_is_none_is_refused_in_one_line(self):
        f = self.daemons(1, [[]])
        for seals in (0, raw_program.F_SEAL_SHRINK, raw_program.F_SEAL_GROW):
            self.refused(f, "no memfd of fixed size", seals=seals)
        for more in (1, 1 << 16):  # it has grown since its header was written
            self.refused(f, "the program's memory", more=more)
        self.refused(f, "padded with blanks until the values begin at a multiple of 4096", padding=4)
        self.refused(f, "HELLO says 3 parameters, and the program's memory has 2", parameters=3)
        self.refused(f, "values_from", values_from=3)
        self.refused(f, "not finite", values=(1.0, float("inf")))
        self.refused(f, "tensor 'a b'", tensors=[("a b", [2])])
        self.assertEqual(f.nodes[0].status()["state"], "awaiting_model")
        first = self.attach(f, 0, [1.0, 2.0])
        self.assertIsNone(first.refused)
        self.refused(f, "program 'raw' (pid %d) is attached" % os.getpid())
        first.socket.close()
        f.wait_log(0, "event=detached")
        self.refused(f, "tensor 0 is w [2] here and v [2] in the program", tensors=[("v", [2])])
        self.refused(f, "tensor 1 is nothing here and u [] in the program", values=(1.0, 2.0, 3.0), tensors=[("w", [2]), ("u", [])])
        self.refused(f, "frozen", tags={"frozen": "0123"})
        self.assertIsNone(self.attach(f, 0, [1.0, 2.0]).refused)

    def test_whoever_does_not_speak_the_protocol_costs_one_connection(self):
        f = self.daemons(1, [[]])
        path = self.path(f)
        for garbage in (b"x", b"\0" * 512, os.urandom(512), raw_program.frame(raw_program.HELLO),
                        raw_program.frame(raw_program.DONE, turn=1), raw_program.frame(99)):
            with Program.connect(path) as s:
                s.send(garbage)
                self.assertEqual(raw_program.FRAME.unpack(s.recv(1024))[2], raw_program.REFUSED)
                self.assertEqual(s.recv(1024), b"")
        idle = [Program.connect(path) for _ in range(20)]  # and say nothing
        self.addCleanup(lambda: [s.close() for s in idle])
        for s in idle[:4]:
            s.close()
        program = f.wait("a place at the socket", lambda: self.try_again(f))
        program.take()
        renews = raw_program.frame(raw_program.DONE, turn=1, flags=raw_program.RENEWS, round=5)  # without values
        beyond = raw_program.frame(raw_program.DONE, turn=1, flags=raw_program.RENEWS | raw_program.ASSIGNED, round=-1)
        for lie in (raw_program.frame(raw_program.DONE, turn=77), raw_program.frame(raw_program.WELCOME), b"short", renews, beyond):
            program.socket.send(lie)
            while program.receive() is not None:
                pass
            program = f.wait("a place", lambda: self.try_again(f))
            self.assertEqual(program.take()["type"], raw_program.TURN)
        self.assert_alive(f)

    def limit_memory(self, node, more_mib):
        """The daemon may have so much address space more than it has now."""
        with open("/proc/%d/statm" % node.process.pid) as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        resource.prlimit(node.process.pid, resource.RLIMIT_AS, (now + (more_mib << 20), resource.RLIM_INFINITY))

    def test_a_model_that_finds_no_memory_is_refused_and_the_next_program_served(self):
        f = self.daemons(1, [[]])
        f.wait_state("awaiting_model")
        self.limit_memory(f.nodes[0], 160)
        large = array.array("f", bytes(4 * LARGE))
        says = r"out of memory: a model of %d parameters takes \d+\.\d MiB here, and \d+\.\d MiB are left of the address space" % LARGE
        for _ in range(2):
            self.assertRegex(self.attach(f, 0, large).refused or "", says)
            self.assertEqual(f.nodes[0].status()["state"], "awaiting_model")
        self.assertRegex(f.nodes[0].log(), "event=refused program=.* reason=\"" + says)
        small = self.attach(f, 0, [1.0, 2.0])
        self.assertIsNone(small.refused)
        small.take()
        self.assertEqual(small.step(lambda z: [v + 1 for v in z])["type"], raw_program.TURN)
        self.assert_alive(f)

    def test_a_built_in_model_that_finds_no_memory_is_one_line(self):
        f = self.fleet(1, phases=[[]], options={"model.layers": "dense 8000 relu, dense 8000 relu, dense 2"})
        done = subprocess.run(["prlimit", "--as=%d" % (1 << 30), *f.command(f.nodes[0])], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              timeout=fleet.PATIENCE)
        lines = [line for line in done.stdout.splitlines() if "memory" in line]
        self.assertEqual((done.returncode, len(lines)), (1, 1), done.stdout)  # not 78: it is tried again
        self.assertRegex(lines[0], r"out of memory: a model of 64\d{6} parameters takes \d+\.\d MiB here, and \d+\.\d MiB are left ")

    def test_many_descriptors_are_no_leak(self):
        f = self.daemons(1, [[]])
        path = self.path(f)
        f.wait("all to be open", lambda: "event=waiting for=program" in f.nodes[0].log())
        before = len(os.listdir("/proc/%d/fd" % f.nodes[0].process.pid))
        for _ in range(50):
            with Program.connect(path) as s:
                head, _ = raw_program.header([("w", [1])])
                descriptor = raw_program.memory(head, [1.0])
                socket.send_fds(s, [raw_program.frame(raw_program.DONE)], [descriptor] * 5)
                os.close(descriptor)
                self.assertEqual(raw_program.FRAME.unpack(s.recv(1024))[2], raw_program.REFUSED)
        f.wait("its descriptors to be as few as before",
               lambda: len(os.listdir("/proc/%d/fd" % f.nodes[0].process.pid)) <= before)


if __name__ == "__main__":
    fleet.main()
