#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The dialogue of the package sgp with a daemon, and with an adversary; the model is arrays of numpy."""
import faulthandler
import hashlib
import os
import re
import signal
import tempfile
import threading
import time
import unittest
import warnings
from unittest import mock

import numpy

import common
import fake_daemon
import sgp
from fake_daemon import AWAITS, DETACH, DONE, ENOUGH, FINISH, HELLO, PRIVACY, REPORT, FakeDaemon


def arrays():
    return {"weight": numpy.ones((2, 3), numpy.float32), "bias": numpy.array(3, numpy.float32)}


class AttachTest(unittest.TestCase):
    def daemon(self, **options):
        daemon = FakeDaemon(**options)
        self.addCleanup(daemon.close)
        return daemon

    def setUp(self):
        faulthandler.dump_traceback_later(common.PATIENCE, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)

    def until(self, condition, what):
        end = time.monotonic() + common.PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), end, f"waited in vain for {what}")
            time.sleep(0.005)

    # ---- what is said

    def test_memory_is_a_model_file(self):
        """The fake daemon asserts seals, page and tiling; here what the header says."""
        daemon = self.daemon()
        sgp.attach(arrays(), name=daemon.path).detach()
        self.assertEqual(daemon.program.layout, {
            "weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
            "bias": {"dtype": "F32", "shape": [], "data_offsets": [24, 28]}})
        self.assertEqual(daemon.program.tags, {"xxh3": "0" * 16, "values_from": "7", "framework": "numpy"})

    def test_hello_names_the_rounds(self):
        daemon = self.daemon()
        sgp.attach(arrays(), name=daemon.path, rounds=5).detach()
        self.assertEqual([f["rounds"] for f in daemon.of(HELLO)], [5])
        sgp.attach(arrays(), name=daemon.path).detach()
        self.assertEqual([f["rounds"] for f in daemon.of(HELLO)], [5, -1])

    def test_who_the_node_is(self):
        daemon = self.daemon(index=2, size=4, weight=0.5, rounds=9)
        with sgp.attach(arrays(), name=daemon.path) as node:
            self.assertEqual((node.name, node.index, node.size, node.round, node.rounds, node.weight),
                             ("n2", 2, 4, 0, 9, 0.5))

    def test_steps_are_updates(self):
        """With a weight of 0.25 a step of 1 counts once in x, and so four times in z; the neighbours' part comes in."""
        daemon = self.daemon(weight=0.25, drift=0.5, begin=0.0)
        model = arrays()
        with sgp.attach(model, name=daemon.path) as node:
            numpy.testing.assert_array_equal(model["weight"], numpy.zeros((2, 3)))
            model["weight"] += 1
            mixed = node.mix(loss=2.0, rows=10)
            self.assertTrue(mixed.exchanged)
            self.assertEqual(mixed.round, 1)
            numpy.testing.assert_array_equal(model["weight"], numpy.full((2, 3), 6.0))
            self.assertEqual(model["bias"], 2.0)
            model["bias"] = numpy.array(3, numpy.float32)  # replaced in the mapping
            node.mix()
            self.assertEqual(model["bias"], 8.0)
        done = daemon.of(DONE)
        self.assertEqual((done[0]["turn"], done[0]["rows"], done[0]["loss"]), (1, 10, 2.0))
        self.assertTrue(numpy.isnan(done[1]["loss"]))

    def test_assigned_is_what_it_is(self):
        daemon = self.daemon(weight=0.25, begin=0.0)
        model = arrays()
        with sgp.attach(model, name=daemon.path) as node:
            with node.assign():
                model["weight"][...] = 17
            numpy.testing.assert_array_equal(model["weight"], numpy.full((2, 3), 17.0))
            self.assertEqual(daemon.of(DONE)[0]["flags"], fake_daemon.ASSIGNED)

    def test_only_some_turns_exchange(self):
        daemon = self.daemon(local_steps=3)
        with sgp.attach(arrays(), name=daemon.path) as node:
            self.assertEqual([node.mix().exchanged for _ in range(6)], [False, False, True] * 2)
            self.assertEqual(node.round, 2)

    def test_accumulated_steps_are_one(self):
        daemon = self.daemon()
        model = arrays()
        with sgp.attach(model, name=daemon.path) as node:
            with node.accumulate():
                model["bias"] += 1
                self.assertFalse(node.mix(loss=1.0, rows=10).exchanged)
            self.assertEqual(daemon.of(DONE), [])
            node.mix(loss=4.0, rows=20)
        self.assertEqual([(f["rows"], f["loss"]) for f in daemon.of(DONE)], [(30, 3.0)])

    def test_report_and_stop(self):
        daemon = self.daemon()
        with sgp.attach(arrays(), name=daemon.path) as node:
            node.report(test_accuracy=0.75, bits=1.5, lines=3)
            node.stop("good enough")
            self.assertTrue(node.mix().stop)
            self.assertTrue(node.stopped)
        report, = daemon.of(REPORT)
        self.assertEqual((report["test_accuracy"], report["text"]), (0.75, "bits=1.5 lines=3"))
        self.assertTrue(numpy.isnan(report["test_loss"]))
        self.assertEqual(daemon.of(ENOUGH)[0]["text"], "good enough")

    def test_a_claim_of_privacy(self):
        answers = iter([{}, {"code": -1002, "text": "neither may fall"}, {}])
        daemon = self.daemon(claimed=lambda text: next(answers))
        with sgp.attach(arrays(), name=daemon.path) as node:
            node.privacy(3, 1e-5, noise_multiplier=1.1, sample_rate=0.05, clip=1)
            with self.assertRaisesRegex(sgp.Refused, "neither may fall"):
                node.privacy(2, 1e-5)
            for wrong in ((-1, 0), (float("inf"), 0), (1, 1.0), (1, -1e-9)):
                with self.assertRaises(ValueError):
                    node.privacy(*wrong)
            for name in ("noise_multiplier", "sample_rate", "clip"):
                with self.assertRaisesRegex(ValueError, name + " is 0.0; it must be above 0"):
                    node.privacy(3, 1e-5, **{name: 0})
            node.mix()
            node.privacy(3.5, 0)
        self.assertEqual([f["text"] for f in daemon.of(PRIVACY)], [
            "epsilon=3.0 delta=1e-05 noise=1.1 chance=0.05 clip=1.0", "epsilon=2.0 delta=1e-05", "epsilon=3.5 delta=0.0"])
        turns = [f["turn"] for f in daemon.of(PRIVACY)]
        self.assertEqual(turns, [1, 2, 3])

    def test_a_claim_is_said_again_to_a_daemon_that_is_back(self):
        """It died in a step. The answer to the claim that is said again, which nobody waits for, comes before the turn."""
        daemon = self.daemon(acts={2: fake_daemon.hang_up})
        with sgp.attach(arrays(), name=daemon.path) as node:
            node.privacy(3, 1e-5)
            node.mix()
            self.assertTrue(node.mix().skipped)
            node.mix()
            node.privacy(4, 1e-5)
        self.assertEqual([(f["turn"], f["text"]) for f in daemon.of(PRIVACY)], [
            (1, "epsilon=3.0 delta=1e-05"), (0, "epsilon=3.0 delta=1e-05"), (2, "epsilon=4.0 delta=1e-05")])

    def test_a_claim_needs_a_model_and_alone_it_needs_nobody(self):
        daemon = self.daemon()
        with self.assertRaisesRegex(sgp.Error, "no model is attached yet"):
            sgp.join(name=daemon.path).privacy(3, 1e-5)
        with sgp.attach(arrays(), name="/none-such.sock", required=False) as node:
            node.privacy(3, 1e-5)
            with self.assertRaises(ValueError):
                node.privacy(3, 2)

    # ---- the end

    # ---- what onlookers ask

    def attach(self, daemon, model, **options):
        node = sgp.attach(model, name=daemon.path, **options)
        self.addCleanup(node.detach)
        return node

    def test_it_says_what_it_answers(self):
        for options, flags in (({}, 0), ({"on_evaluate": dict}, 64), ({"on_predict": len}, 128),
                               ({"on_evaluate": dict, "on_predict": len}, 192)):
            daemon = self.daemon()
            self.attach(daemon, arrays(), **options)
            self.assertEqual(daemon.of(HELLO)[0]["flags"], flags)

    def test_questions_are_answered_between_turns(self):
        daemon = self.daemon(begin=5, weight=0.5, questions=[None, [[1, 2, 3], [4, 5, 6]]])
        model = arrays()

        def evaluate():
            seen.append(float(model["bias"]))
            model["bias"][...] = 77  # which is lost
            return {"test_loss": 0.25, "test_accuracy": 0.75, "rows": 10}

        def predict(x):
            self.assertEqual((x.dtype, x.shape[1]), (numpy.float32, 3))
            return x @ model["weight"].T + model["bias"]
        seen = []
        node = self.attach(daemon, model, on_evaluate=evaluate, on_predict=predict)
        self.assertEqual((seen, model["bias"]), ([5], 5))  # the estimate
        (figures, _), (frame, outputs) = daemon.answers
        self.assertEqual([figures[name] for name in ("type", "turn", "code", "rows", "test_loss", "test_accuracy")],
                         [fake_daemon.EVALUATED, 1, 0, 10, 0.25, 0.75])
        self.assertEqual([frame[name] for name in ("type", "turn", "code", "rows", "columns")],
                         [fake_daemon.PREDICTED, 2, 0, 2, 2])
        self.assertEqual(outputs.tolist(), [[35, 35], [80, 80]])
        model["bias"] += 1
        daemon.questions.append([[0, 0, 0]])
        node.mix()
        self.assertEqual(daemon.answers[2][1].tolist(), [[7, 7]])  # w 0.5: x is larger by 1, z by 2
        daemon.questions.append(None)
        node.finish()  # waits, and so answers
        self.assertEqual((daemon.answers[3][0]["test_loss"], seen), (0.25, [5, 7]))
        self.assertEqual(model["bias"], 7)

    def test_what_fails_is_the_answer(self):
        daemon = self.daemon(questions=[None, [[1]], [[1]], [[1]]])
        acts = iter([lambda: len(3), lambda: numpy.zeros((2, 2)), lambda: "x", lambda: {}[7]])
        node = self.attach(daemon, arrays(), on_evaluate=lambda: next(acts)(), on_predict=lambda x: next(acts)())
        self.assertEqual([(frame["code"], frame["text"]) for frame, _ in daemon.answers[:4]], [
            (-1015, "TypeError: object of type 'int' has no len()"),
            (-1015, "Error: on_predict returned [2, 2] for 1 rows; a row of numbers for each is right"),
            (-1015, "ValueError: could not convert string to float: 'x'"),
            (-1015, "KeyError: 7")])
        acts = iter([lambda: node.mix()])
        daemon.questions.append(None)
        self.assertFalse(node.mix().stop)
        self.assertIn("may not mix", daemon.answers[-1][0]["text"])

    def test_ctrl_c_while_it_answers(self):
        daemon = self.daemon(questions=[])
        answers = iter([KeyboardInterrupt, {"test_loss": 1.0}])

        def evaluate():
            answer = next(answers)
            if answer is KeyboardInterrupt:
                raise KeyboardInterrupt
            return answer
        node = self.attach(daemon, arrays(), on_evaluate=evaluate)
        daemon.questions.append(None)
        with self.assertRaises(KeyboardInterrupt):
            node.mix()
        self.assertEqual(daemon.answers, [])
        self.assertEqual(node.mix().round, 1)  # goes on waiting, and answers
        self.assertEqual(daemon.answers[0][0]["test_loss"], 1.0)

    def test_rounds_end(self):
        daemon = self.daemon(rounds=3)
        model = arrays()
        with sgp.attach(model, name=daemon.path) as node:
            self.assertEqual([node.mix().stop for _ in range(3)], [False, False, True])
            late = node.mix()
            self.assertTrue(late.stop and late.skipped)
        self.assertEqual(len(daemon.of(DONE)), 3)

    def test_rounds_end_where_the_daemon_leaves_it_open(self):
        daemon = self.daemon(open_end=True)
        with sgp.attach(arrays(), name=daemon.path, rounds=3) as node:
            self.assertEqual(node.rounds, 3)
            self.assertEqual([node.mix().stop for _ in range(3)], [False, False, True])
            self.assertTrue(node.mix().skipped)
        self.assertEqual((len(daemon.of(DONE)), len(daemon.of(FINISH))), (3, 1))

    def test_finish_brings_the_fleets_model(self):
        daemon = self.daemon(final=9.0)
        model = arrays()
        with sgp.attach(model, name=daemon.path) as node:
            node.mix()
            model["bias"] += 100  # behind the last mix: does not count
            finished = node.finish()
        numpy.testing.assert_array_equal(model["weight"], numpy.full((2, 3), 9.0))
        self.assertEqual(model["bias"], 9.0)
        self.assertEqual((finished.round, finished.disagrees, finished.distance), (1, True, 0.25))

    def test_clean_end_finishes_and_exception_detaches(self):
        daemon = self.daemon()
        with sgp.attach(arrays(), name=daemon.path):
            pass
        with self.assertRaisesRegex(RuntimeError, "mine"):
            with sgp.attach(arrays(), name=daemon.path):
                raise RuntimeError("mine")
        self.until(lambda: len(daemon.of(DETACH)) == 2, "both to leave")
        self.assertEqual(len(daemon.of(FINISH)), 1)

    def test_finish_in_vain_can_be_tried_again(self):
        daemon = self.daemon()
        daemon.finishing.clear()
        node = sgp.attach(arrays(), name=daemon.path)
        with self.assertRaises(TimeoutError):
            node.finish(timeout=0.05)
        daemon.finishing.set()
        self.assertEqual(node.finish(timeout=common.PATIENCE).round, 0)
        self.assertEqual(len(daemon.of(FINISH)), 1)
        node.detach()

    # ---- nobody there, or not for us

    def test_no_daemon(self):
        with self.assertRaisesRegex(sgp.NoDaemon, "/none-such.sock: No such file.*start sgpd"):
            sgp.attach(arrays(), name="/none-such.sock")
        with self.assertRaisesRegex(sgp.Error, "no node is named"):
            sgp.attach(arrays())

    def test_daemon_is_waited_for(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "attach.sock")
            late = []
            comes = threading.Timer(0.3, lambda: late.append(self.daemon(path=path)))
            comes.start()
            sgp.attach(arrays(), name=path, timeout=common.PATIENCE).detach()
            comes.join()  # it may serve before it is in the list
            self.assertEqual(len(late[0].of(HELLO)), 1)

    def test_environment_names_it(self):
        daemon = self.daemon()
        os.environ["SGP_SOCKET"] = daemon.path
        self.addCleanup(os.environ.pop, "SGP_SOCKET")
        sgp.attach(arrays()).detach()
        self.assertEqual(len(daemon.of(HELLO)), 1)

    def test_alone(self):
        model = arrays()
        with sgp.attach(model, name="/none-such.sock", required=False, rounds=2) as node:
            self.assertEqual((node.name, node.index, node.size, node.weight), ("alone", 0, 1, 1.0))
            rows = [list(batch) for batch in node.shard(numpy.arange(5), batch_size=2, shuffle=False)]
            self.assertEqual(rows, [[0, 1], [2, 3], [4]])
            model["bias"] += 1
            self.assertEqual([node.mix().stop for _ in range(2)], [False, True])
            self.assertEqual(model["bias"], 4)
            self.assertTrue(node.mix().skipped)

    def test_refusals(self):
        for code, kind, text in ((-16, sgp.Busy, "'train.py' (process 12) is attached"),
                                 (-1002, sgp.LayoutMismatch, "another model than this node trains: tensor 1 is bias [3] here "
                                  "and bias [] in the program"), (-1002, sgp.Refused, "5 rounds, and not 6"),
                                 (-1015, sgp.Refused, "the node has finished")):
            daemon = self.daemon(refuse=(code, text))
            with self.assertRaises(kind) as caught:
                sgp.attach(arrays(), name=daemon.path)
            self.assertIs(type(caught.exception), kind)
            self.assertEqual((str(caught.exception), caught.exception.code), (text, code))
            if kind is sgp.LayoutMismatch:
                self.assertEqual(caught.exception.tensor, "bias")

    def test_a_model_that_cannot_travel(self):
        one = numpy.ones(1, numpy.float32)
        frozen = one.copy()
        frozen.flags.writeable = False
        for model, text in (({"a": numpy.ones(2)}, "'a' is of type float64.*astype"), ({"a": [1.0]}, "'a' is of type list"),
                            ({"a b": one}, "the name 'a b' cannot travel"), ({"x" * 128: one}, "1 to 127"),
                            ({"a": numpy.ones((1,) * 9, numpy.float32)}, "9 dimensions; at most 8"),
                            ({"a": numpy.ones((0, 2), numpy.float32)}, "has no values"), ({}, "nothing to share"),
                            ({"a": frozen}, "read-only"), ({f"a{i}": one for i in range(4097)}, "4097 tensors; at most 4096"),
                            (7, "a int cannot be trained")):
            with self.assertRaisesRegex(sgp.Error, text):
                sgp.attach(model, name="/none-such.sock")

    def test_arrays_that_go(self):
        daemon = self.daemon()
        for change, text in ((lambda m: m.pop("bias"), "'bias' is no longer in the mapping"),
                             (lambda m: m.update(bias=numpy.zeros(2, numpy.float32)), r"'bias' was \[\] of float32, and is "
                              r"now \[2\]")):
            model = arrays()
            with self.assertRaisesRegex(sgp.ViewsLost, text) as caught, sgp.attach(model, name=daemon.path) as node:
                change(model)
                node.mix()
            self.assertEqual(caught.exception.tensor, "bias")

    # ---- faults

    def test_a_step_that_does_not_count(self):
        daemon = self.daemon(acts={1: fake_daemon.take_back})
        model = arrays()
        with sgp.attach(model, name=daemon.path) as node:
            model["bias"] += 1
            self.assertTrue(node.mix().skipped)
            self.assertEqual(model["bias"], 3)
            self.assertFalse(node.mix().skipped)

    def test_not_finite_is_named_and_not_taken(self):
        daemon = self.daemon()
        model = arrays()
        with sgp.attach(model, name=daemon.path) as node:
            model["bias"][...] = numpy.nan
            with self.assertRaisesRegex(sgp.NotFinite, "values of 'bias' that are not finite") as caught:
                node.mix()
            self.assertEqual(caught.exception.tensor, "bias")
            self.assertEqual(model["bias"], 3)  # what was before
            model["bias"] += 1
            self.assertTrue(node.mix().skipped)  # the node was paused
            self.assertEqual(model["bias"], 3)
            model["bias"] += 1
            self.assertFalse(node.mix().skipped)
            self.assertEqual(model["bias"], 4)

    def test_daemon_goes_for_good(self):
        daemon = self.daemon(acts={2: fake_daemon.hang_up})
        node = sgp.attach(arrays(), name=daemon.path, reconnect=False)
        node.mix()
        for _ in range(2):
            with self.assertRaises(sgp.Disconnected):
                node.mix()
        node.detach()

    def test_daemon_goes_and_is_not_back_in_time(self):
        daemon = self.daemon()
        node = sgp.attach(arrays(), name=daemon.path, timeout=0.2)
        daemon.close()
        with self.assertLogs("sgp"), self.assertRaisesRegex(sgp.Disconnected, "not back after 0.2 s"):
            node.mix()
        node.detach()

    def test_daemon_comes_back_with_what_it_had(self):
        daemon = self.daemon(acts={2: fake_daemon.hang_up})
        model = arrays()
        with sgp.attach(model, name=daemon.path) as node:
            model["bias"] += 1
            node.mix()
            model["bias"] += 50
            with self.assertLogs("sgp", "WARNING") as logs:
                mixed = node.mix()
            self.assertTrue(mixed.skipped)
            self.assertEqual(model["bias"], 4)
            self.assertIn("waiting for its return", logs.output[0])
            model["bias"] += 1
            self.assertFalse(node.mix().skipped)
            self.assertEqual(model["bias"], 5)
        self.assertEqual(len(daemon.of(HELLO)), 2)

    def test_the_wish_to_stop_outlives_a_daemon(self):
        daemon = self.daemon(acts={1: fake_daemon.hang_up})
        with self.assertLogs("sgp"), sgp.attach(arrays(), name=daemon.path) as node:
            node.stop("enough")
            daemon.enough = False  # it forgot
            node.mix()
            self.assertTrue(node.mix().stop)
        self.assertEqual(len(daemon.of(ENOUGH)), 2)

    def test_daemon_goes_while_finishing(self):
        daemon = self.daemon()
        daemon.finishing.clear()
        model = arrays()
        node = sgp.attach(model, name=daemon.path)

        def restart():
            self.until(lambda: daemon.of(FINISH), "FINISH")
            daemon.close()
            again.append(self.daemon(path=daemon.path, final=4.0))
        again = []
        other = threading.Thread(target=restart)
        other.start()
        with self.assertLogs("sgp"):
            node.finish()
        other.join()
        self.assertEqual(model["bias"], 4)
        self.assertEqual(len(again[0].of(FINISH)), 1)
        node.detach()

    def test_nonsense_is_told(self):
        for act in (fake_daemon.garbage, fake_daemon.short, fake_daemon.long):
            daemon = self.daemon(acts={1: act})
            with self.assertRaisesRegex(sgp.Error, "of one release"), sgp.attach(arrays(), name=daemon.path) as node:
                node.mix()
        daemon = self.daemon(acts={1: fake_daemon.nonsense})
        with self.assertRaisesRegex(sgp.Error, "sent WELCOME in the place of a turn"), \
                sgp.attach(arrays(), name=daemon.path) as node:
            node.mix()

    # ---- signals

    WAITS = """if True:
        import numpy, sgp, sys
        model = {"a": numpy.zeros(4, numpy.float32)}
        node = sgp.attach(model, name=sys.argv[1])
        own = len(node.sampler(range(64)))
        for value in range(3):
            model["a"] += 1
            print("step", flush=True)
            try:
                mixed = node.mix(loss=value, rows=4)
            except KeyboardInterrupt:
                print("interrupted", flush=True)
                mixed = node.mix(loss=value, rows=4)
            print(mixed.round, model["a"][0], round(node.epoch * own), flush=True)
        node.detach()
    """

    def test_ctrl_c_while_it_waits(self):
        """The daemon answers only after the interrupt: the step and its rows count, once."""
        def hold(daemon, frame):
            held.set()
            gone.wait(common.PATIENCE)
            daemon.acts.clear()
            daemon.dones -= 1
            return daemon.fold(frame)
        held, gone = threading.Event(), threading.Event()
        daemon = self.daemon(acts={2: hold})
        program = common.start(self.WAITS, daemon.path)
        self.addCleanup(program.kill)
        line = program.stdout.readline
        self.assertEqual((line(), line(), line()), ("step\n", "1 1.0 4\n", "step\n"))
        self.assertTrue(held.wait(common.PATIENCE))
        program.send_signal(signal.SIGINT)
        self.assertEqual(line(), "interrupted\n")
        gone.set()
        self.assertEqual(program.stdout.read(), "2 2.0 8\nstep\n3 3.0 12\n")
        program.communicate(timeout=common.PATIENCE)
        self.assertEqual([(done["rows"], done["loss"]) for done in daemon.of(DONE)], [(4, 0.0), (4, 1.0), (4, 2.0)])

    def test_ctrl_c_while_attaching(self):
        daemon = self.daemon()
        daemon.ready.clear()
        program = common.start("import numpy, sgp, sys\n"
                               "sgp.attach({'a': numpy.zeros(4, numpy.float32)}, name=sys.argv[1])", daemon.path)
        self.addCleanup(program.kill)
        self.until(lambda: daemon.of(HELLO), "HELLO")
        # it waits for the first turn; before that an interrupt ends it as well
        self.until(lambda: common.state_of(program.pid) == "S", "the program to wait")
        program.send_signal(signal.SIGINT)
        self.assertIn("KeyboardInterrupt", program.communicate(timeout=common.PATIENCE)[1])

    def test_who_is_waited_for_may_be_told_after_the_first_turn(self):
        """The program has asked, and the turn comes before the answer, which then is in the way of another."""
        for call in (lambda node: node.mix(), lambda node: node.mean(1.0), lambda node: node.privacy(3, 1e-5),
                     lambda node: node.finish(timeout=common.PATIENCE)):
            daemon = self.daemon(rounds=5)
            daemon.ready.clear()
            with mock.patch("sgp.attachment._QUIET_SECONDS", 0.05), \
                    mock.patch("sgp.attachment._log.warning", lambda *told: daemon.ready.set()):
                node = sgp.attach(arrays(), name=daemon.path)
            call(node)
            self.assertEqual(len(daemon.of(AWAITS)), 1)
            node.detach()

    def test_forked_child_has_no_say(self):
        daemon = self.daemon()
        node = sgp.attach(arrays(), name=daemon.path)
        child = os.fork()
        if child == 0:
            try:
                node.mix()
            except sgp.Error as error:
                os._exit(7 if "forked" in str(error) else 8)
            os._exit(9)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)
        self.assertEqual(node.mix().round, 1)
        node.detach()

    def test_detach_inside_the_block(self):
        """The block then ends without a word: there is nothing left to finish."""
        daemon = self.daemon()
        with sgp.attach(arrays(), name=daemon.path) as node:
            node.mix()
            node.detach()
        self.until(lambda: daemon.of(DETACH), "DETACH")
        self.assertEqual((len(daemon.of(DETACH)), len(daemon.of(FINISH))), (1, 0))
        with self.assertRaisesRegex(sgp.Disconnected, "no longer attached"):
            node.finish()

    # ---- alone

    def test_training_alone_is_told(self):
        """A name that is mistyped must not train alone without a word."""
        daemon = self.daemon()
        name = daemon.path + "x"
        with self.assertWarnsRegex(sgp.TrainingWarning, f"no daemon listens at {re.escape(name)}.*all rows") as told:
            sgp.attach(arrays(), name=name, required=False).detach()
        self.assertEqual(told.filename, __file__)
        with self.assertWarnsRegex(sgp.TrainingWarning, "no node is named.*all rows"):
            sgp.attach(arrays(), required=False).detach()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            sgp.attach(arrays(), name=daemon.path, required=False).detach()

    # ---- equal clones

    def test_the_seed_is_of_the_run_and_the_node(self):
        seeds = []
        for index in (0, 1, 2, 0):
            with sgp.attach(arrays(), name=self.daemon(index=index, size=3).path) as node:
                seeds.append(node.seed)
        self.assertEqual(seeds, [seeds[0], seeds[0] + 1, seeds[0] + 2, seeds[0]])
        self.assertEqual(seeds[0], int.from_bytes(hashlib.sha256(b"7").digest()[:4], "little"))
        self.assertIn(seeds[2], range(2**32))  # as numpy.random.seed() wants it

    def test_equal_updates_are_a_warning(self):
        daemon = self.daemon(acts={2: fake_daemon.same_updates})
        node = self.attach(daemon, arrays())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            node.mix()
        with self.assertWarnsRegex(sgp.TrainingWarning, "the updates of n1, n2 were another node's.*node.seed") as told:
            node.mix()
        self.assertEqual(told.filename, __file__)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            node.mix()

    # ---- rows

    def test_shards_are_disjoint_and_even(self):
        seen = []
        for index in range(3):
            daemon = self.daemon(index=index, size=3)
            with sgp.attach(arrays(), name=daemon.path) as node:
                rows, labels = numpy.arange(11), numpy.arange(11) * 10
                batches = list(node.shard((rows, labels), batch_size=2))
                self.assertEqual([len(batch[0]) for batch in batches], [2, 1])
                self.assertTrue(all((x * 10 == y).all() for x, y in batches))
                seen += [int(row) for x, _ in batches for row in x]
                for x, _ in batches:
                    node.mix(rows=len(x))
                self.assertEqual(node.epoch, 1.0)
        self.assertEqual(sorted(seen), list(range(9)))

    def test_epochs_differ_and_repeat(self):
        orders = []
        for _ in range(2):
            with sgp.attach(arrays(), name="/none-such.sock", required=False) as node:
                orders.append([tuple(numpy.concatenate(list(node.shard(numpy.arange(20), batch_size=8))))
                               for _ in range(2)])
        self.assertEqual(orders[0], orders[1])
        self.assertNotEqual(orders[0][0], orders[0][1])

    def test_shard_ends_at_a_stop(self):
        daemon = self.daemon(rounds=2)
        with sgp.attach(arrays(), name=daemon.path) as node:
            count = 0
            for _ in node.shard(numpy.arange(100), batch_size=1):
                node.mix()
                count += 1
            self.assertEqual(count, 2)
            self.assertEqual(list(node.shard(numpy.arange(100), batch_size=1)), [])

    def test_too_few_or_uneven_rows(self):
        daemon = self.daemon(size=4)
        with sgp.attach(arrays(), name=daemon.path) as node:
            with self.assertRaisesRegex(sgp.Error, "3 rows cannot be dealt to 4 nodes"):
                node.shard(numpy.arange(3), batch_size=1)
            with self.assertRaisesRegex(sgp.Error, "have 8, 9 rows"):
                node.shard((numpy.arange(8), numpy.arange(9)), batch_size=1)

    def test_every_pass_of_a_sampler_is_whole(self):
        """As with a sampler of PyTorch, however the pass before it ended."""
        with sgp.attach(arrays(), name=self.daemon(index=1, size=2).path) as node:
            sampler = node.sampler(range(20))
            first = next(iter(sampler))
            self.assertIn(first, range(1, 20, 2))
            for _ in zip(sampler, range(3)):
                pass
            for row in sampler:
                break
            left_open = iter(sampler)
            passes = [next(left_open) and list(sampler), list(sampler)]
            for rows in passes:
                self.assertEqual(sorted(rows), list(range(1, 20, 2)))
            self.assertNotEqual(*passes)
            sampler.set_epoch(3)
            again = list(sampler)
            sampler.set_epoch(3)
            self.assertEqual(list(sampler), again)

    def test_shards_follow_a_reload_that_adds_a_node(self):
        """A pass under way goes on with the rows of the new shard that it has not handed out."""
        daemon = self.daemon(index=1, size=2, acts={2: fake_daemon.one_more})
        with sgp.attach(arrays(), name=daemon.path) as node:
            sampler = node.sampler(range(12), shuffle=False)
            rows = []
            for row in sampler:
                rows.append(row)
                node.mix(rows=1)
            self.assertEqual((node.index, node.size), (1, 3))
            self.assertEqual(rows, [1, 3, 4, 7, 10])
            self.assertEqual(len(sampler), 4)
            self.assertEqual(list(sampler), [1, 4, 7, 10])
            self.assertEqual([list(batch) for batch in node.shard(numpy.arange(12), batch_size=9, shuffle=False)],
                             [[1, 4, 7, 10]])

    # ---- keeping

    def test_saved_sampler_goes_on(self):
        with tempfile.TemporaryDirectory() as folder, \
                sgp.attach(arrays(), name="/none-such.sock", required=False) as node:
            path = os.path.join(folder, "state")
            self.assertFalse(node.load(path))
            sampler = node.sampler(range(10))
            first = iter(sampler)
            for _ in range(4):
                next(first)
            node.mix(rows=4)
            node.save(path, sampler=sampler)
            rest = list(first)
            with sgp.attach(arrays(), name="/none-such.sock", required=False) as other:
                again = other.sampler(range(10))
                self.assertTrue(other.load(path, sampler=again))
                self.assertEqual(list(again), rest)
                self.assertEqual(other.epoch, 0.4)
                self.assertEqual(sorted(again), list(range(10)))
                with self.assertRaisesRegex(sgp.Error, "holds sampler; asked for was optimizer"):
                    other.load(path, optimizer=again)


if __name__ == "__main__":
    common.main()
