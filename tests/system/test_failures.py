# SPDX-License-Identifier: Apache-2.0
"""Each call of sgpd for memory, a file or a thread fails once: while it checks, starts, reads another topology, greets a
neighbour, takes a program in, and answers. It never crashes or leaks. Either it ends with a line that says why, or it
goes on. The neighbour trains on, and what failed works when it is asked for again.

`sgpd` is linked with fail_calls.c, which counts the calls and lets one fail. Here one failure of many is drawn; with
SGP_LONG=1 every one is made.
"""
import contextlib
import http.client
import mmap
import os
import random
import struct
import subprocess
import sys

import fleet
import raw_program
from attached import ATTACHED
from fleet import FleetTest

FAILING = os.path.abspath(sys.argv.pop(2))
STEP = 1 if fleet.LONG else 9  # of so many failures one is made
OPTIONS = {"train.epochs": "1000000"}
STATUSES = {0, 1, 6, 78}  # that sgpd(8) lists; ASan's is 99
SANITIZERS = ("ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "runtime error", "assertion")


class Calls:
    """The numbers that fail_calls.c shares."""

    def __init__(self, directory):
        self.path = os.path.join(directory, "calls")
        with open(self.path, "wb") as file:
            file.write(bytes(24))
        with open(self.path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 24)

    def __getitem__(self, index):
        return struct.unpack_from("<Q", self.memory, 8 * index)[0]

    def __setitem__(self, index, value):
        struct.pack_into("<Q", self.memory, 8 * index, value)

    @property
    def count(self):
        return self[0]

    @property
    def failed(self):
        return self[2]

    def begin(self, number):
        """For a new process, whose call of this number fails."""
        self[0], self[1], self[2] = 0, number, 0

    def arm(self, number):
        """For a process that runs: of those to come."""
        self[2] = 0
        self[1] = self.count + number

    def disarm(self):
        self[1] = 0


def points(count):
    """The failures that are made of so many."""
    draw = random.Random(int(os.environ.get("SGP_SEED", "1")))
    return [draw.randrange(first, min(first + STEP, count + 1)) for first in range(1, count + 1, STEP)]


class Failures(FleetTest):
    def setUp(self):
        os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":exitcode=99"
        self.fleet_ = self.fleet(2, phases=[[(0, 1), (1, 0)]], options=OPTIONS)
        self.calls = Calls(self.fleet_.directory)
        self.node = self.fleet_.nodes[1]
        plain = self.fleet_.command
        self.fleet_.command = lambda node: plain(node) if node.index == 0 else [FAILING, "-c", node.configuration]
        self.environment = {**os.environ, "CALLS_FILE": self.calls.path}

    def assert_sound(self, status, said, where):
        """It ended by itself, and said why."""
        for word in SANITIZERS:
            self.assertNotIn(word, said, where)
        self.assertIn(status, STATUSES, "%s\n%s" % (where, said[-2000:]))
        if status != 0:
            self.assertRegex(said, "(?m)^(sgpd: .|[^ ]*Z (error|warning) .*error=)", where)

    def check(self, number):
        self.calls.begin(number)
        result = subprocess.run([FAILING, "--check", "-c", self.node.configuration], env=self.environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=fleet.PATIENCE, check=False)
        return result.returncode, result.stdout

    def test_a_check_says_what_failed(self):
        self.assertEqual(self.check(0)[0], 0)
        count = self.calls.count
        for number in points(count):
            status, said = self.check(number)
            self.assertEqual(self.calls.failed, 1, number)
            self.assert_sound(status, said, "call %d of %d" % (number, count))
        print("# %d of %d calls of a check failed" % (len(points(count)), count), flush=True)

    def start(self, number):
        self.calls.begin(number)
        self.node.start(env=self.environment)

    def is_through(self):
        """It has ended, or it trains."""
        if self.node.process.poll() is not None:
            return True
        status = self.node.status()
        return status is not None and status["state"] == "training" and status["round"] > 0

    def end(self, where):
        """As it is told to."""
        ended = self.node.process.poll() is not None
        status = self.node.process.wait() if ended else self.node.end()
        self.assert_sound(status, self.node.log(), where)
        if self.calls.failed == 0:
            self.assertEqual(status, 0, where)
        return ended

    def test_a_start_fails_in_order_or_goes_on(self):
        self.fleet_.nodes[0].start()
        self.start(0)
        self.fleet_.wait_state("training")
        self.fleet_.wait("its first rounds", self.is_through)
        count = self.calls.count
        self.end("undisturbed")
        ends = 0
        for number in points(count):
            os.unlink(self.node.log_path)
            self.start(number)
            where = "call %d of %d" % (number, count)
            self.fleet_.wait(where + " to be survived", self.is_through)
            ends += self.end(where)
        self.calls.disarm()
        self.start(0)
        self.fleet_.wait_state("training")
        self.fleet_.wait_round(0, self.fleet_.nodes[0].status()["round"] + 20)
        self.assert_alive(self.fleet_)
        print("# %d of %d calls of a start failed; %d times it ended" % (len(points(count)), count, ends), flush=True)

    def open(self):
        self.fleet_.nodes[0].start()
        self.start(0)
        self.fleet_.wait_state("training")
        self.fleet_.wait_round(1, 5)

    def each(self, what, act):
        """act() while each of its calls fails in turn; it works afterwards."""
        act(False)
        before = self.calls.count
        act(False)
        count = max(self.calls.count - before, 1)
        made = 0
        for number in points(count):
            self.calls.arm(number)
            act(True)
            self.calls.disarm()
            made += self.calls.failed
            self.assertIsNone(self.node.process.poll(), "%s, call %d: %s" % (what, number, self.node.log()[-2000:]))
            act(False)
        print("# %s: %d of %d calls failed" % (what, made, count), flush=True)

    def go_on(self):
        for index in (0, 1):
            self.fleet_.wait_round(index, self.fleet_.nodes[index].status()["round"] + 20)
        self.assert_alive(self.fleet_)
        self.assertEqual(self.end("in the end"), False)

    def code_of(self, path, method, body):
        """Of the answer; 0: there was none."""
        try:
            return self.node.get(path, method, body)[0]
        except (OSError, http.client.HTTPException):
            return 0

    def ask(self, path, method, fails, good=(200, 202), body=None):
        """An answer, though a job may be under way still; or, while a call fails, a refusal or none."""
        if fails:
            self.assertIn(self.code_of(path, method, body), (*good, 0, 409, 422, 500, 503), path)
        else:
            self.fleet_.wait("an answer to " + path, lambda: self.code_of(path, method, body) in good)

    def test_what_it_cannot_answer_it_refuses(self):
        self.open()
        for path in ("/v1/status", "/v1/peers", "/v1/topology", "/v1/history", "/metrics", "/v1/model"):
            code = self.node.get(path)[0]
            self.each("GET " + path, lambda fails, path=path, code=code: self.ask(path, "GET", fails, (code,)))
        rows = ",".join("f%d" % i for i in range(6)) + "\n" + "0.5,1,0,0,1,0\n" * 3
        for path, body in (("/v1/predict", rows), ("/v1/evaluate", None), ("/v1/checkpoint", None)):
            code = self.node.get(path, "POST", body)[0]
            self.assertIn(code, (200, 202), path)
            self.each("POST " + path, lambda fails, path=path, body=body: self.ask(path, "POST", fails, body=body))
        self.go_on()

    def test_a_reload_that_fails_changes_nothing(self):
        self.open()
        files = [[[(0, 1), (1, 0)]], [[(0, 1), (1, 0)], [(1, 0), (0, 1)]]]

        def reload(fails):
            files.reverse()
            self.fleet_.rewire([0, 1], files[0])
            if not fails:
                self.assertEqual(self.fleet_.nodes[0].get("/v1/reload", "POST")[0], 200)
            self.ask("/v1/reload", "POST", fails)

        self.each("reload", reload)
        self.go_on()

    def test_a_program_is_taken_in_when_there_is_memory_again(self):
        for node in self.fleet_.nodes:
            self.fleet_.write_configuration(node.index, {**ATTACHED, "train.algorithm": "agp"},
                                            {"control.attach": node.name + ".attach"})
        path = os.path.join(self.fleet_.directory, "n%d.attach")
        self.fleet_.nodes[0].start()
        self.start(0)
        ones = [1.0] * 64
        with contextlib.closing(raw_program.Program(path % 0, ones)) as first:
            def is_free():
                status = self.node.status()
                return status is not None and not status["program"]["attached"]

            def attach(fails):
                """For three turns; while a call fails, it is refused or hung up on."""
                try:
                    program = raw_program.Program(path % 1, ones)
                except OSError as error:  # it hung up
                    self.assertTrue(fails, error)
                    return
                with contextlib.closing(program):
                    good = program.welcome is not None and program.refused is None
                    self.assertTrue(good or fails, program.refused)
                    for _ in range(3 if good else 0):
                        if program.take() is None:
                            self.assertTrue(fails)
                            return
                        program.done()
                self.fleet_.wait("its program to be gone", is_free)

            self.assertIsNone(first.refused)
            self.each("a program attaches", attach)
        self.assert_alive(self.fleet_)

    def test_a_neighbour_comes_when_there_is_memory_again(self):
        self.open()

        def come(fails):
            self.fleet_.nodes[0].end()
            self.fleet_.nodes[0].start()
            self.fleet_.wait_state("training", [0])
            self.fleet_.wait_round(0, self.fleet_.nodes[0].status()["round"] + 3)

        self.each("a neighbour comes", come)
        self.go_on()


if __name__ == "__main__":
    fleet.main()
