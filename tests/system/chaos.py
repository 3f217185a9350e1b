#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A fleet of real daemons, and every fault that a seed draws: processes killed, stopped and paused, links cut,
topologies reloaded, nodes that leave and come back as new members, full disks, ledgers from a backup. All of it
ends before training does; then the fleet must have come to a right end, or say what is not right.

    chaos.py SGPD [--seed N] [--seeds K] [--seconds S] [--gap S] [--algorithm A] [--nodes N]
                  [--faults 1,5-9] [--without KIND,...] [--apart]

A run with the same seed has the same faults at the same times; what the daemons make of them depends on the
machine. Faults end at 0.7 of the time, or when a node has made most of its rounds, which are as many as an
undisturbed fleet would make in the time. --gap is from one fault to the next, on average. --faults runs some
of them alone and --without leaves kinds out, to find those that matter. Only root can have full disks.
--apart: when the faults are over all nodes but one get another topology file, and that one keeps its own for good."""
import argparse
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import unittest
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM

import chaos_plan
import fleet
from chaos_verdict import descriptors, verdict
from hosts import sandbox
from lines import BACKWARD, FORWARD, Lines

FAULTS_PART = 0.7  # of the time, after which no fault begins
LAST_PART = 0.85  # of the rounds: when a node is there, faults end
PACE_SECONDS = 4
LONGEST_CUT = chaos_plan.LONG_TIMES * chaos_plan.KINDS["cut"][2]
LEAVE_SECONDS = 40 + LONGEST_CUT  # 30 s of silence are no absence yet; one that is cut off from all waits
SETTLE_SECONDS = 20  # until neighbours of one that left owe it nothing
FINISHED_SECONDS = 5  # that all stay finished
STILL_SECONDS = 90  # without any change: nobody goes on any more
SETTLE_TIMES = 5  # the time of the run, at most
END_SECONDS = 20  # a clean end takes 3 s at most, and writes a checkpoint
DISK, NO_SPACE = "8m", "No space left on device"
KEPT = ("ledger", "checkpoint", "checkpoint.1")
# Faults that may come over a node while others last there.
TOGETHER = {"kill": {"pause", "full", "leave", "strike"}, "stop": {"pause", "full", "leave", "strike"},
            "pause": {"full"}, "full": {"pause"}, "leave": {"full"}, "strike": {"full"}}


class Chaos:
    """One run: a fleet, its lines, and the faults under way, each a generator that yields seconds to wait."""

    def __init__(self, options, seed, disks):
        self.options, self.seed, self.disks = options, seed, disks
        self.method = options.algorithm or chaos_plan.algorithm(seed)
        self.shape = ("full", 0)
        self.tasks = []  # [due, generator, fault]
        self.busy = {i: set() for i in range(options.nodes)}
        self.down, self.stopped, self.gone, self.leavers, self.pending = set(), set(), set(), set(), set()
        self.starts, self.freed = {}, {}  # when a node was last started, and its disk freed
        self.complaints, self.exits = [], []
        self.refusal = ""  # of the latest reload
        self.restored = 0  # ledgers that were put back
        self.over = False
        self.fleet = self.lines = None
        self.mounted = []

    # ---- the fleet ----

    def open(self, rounds):
        n = self.options.nodes
        self.lines = Lines([(i, j) for i in range(n) for j in range(n) if i != j])
        self.fleet = f = fleet.Fleet(
            n, phases=chaos_plan.phases(self.shape, range(n)), dial=self.lines.ports, rows=2000, options={
                "train.algorithm": self.method, "train.epochs": None, "train.rounds": str(rounds),
                "train.overlap": "2" if self.method == "osgp" else None,
                "train.final_cycles": str(chaos_plan.final_cycles(self.seed)),
                "train.batch": "64", "train.local_steps": "8",  # a round takes as long on any topology
                "train.checkpoint_seconds": "5", "model.layers": "dense 2000 relu, dense 2",
                "optimizer.learning_rate": "0.02"})
        self.lines.aim(f.ports)
        for node in f.nodes if self.disks else []:
            os.mkdir(node.directory)
            sandbox.call("mount", "-t", "tmpfs", "-o", "size=" + DISK, "sgpd-chaos", node.directory)
            self.mounted.append(node.directory)
        self.began = time.monotonic()
        for node in f.nodes:
            self.bring_up(node)
        f.wait_state("training")
        for node in f.nodes:
            f.wait_round(node.index, 5)

    def close(self):
        """Whatever of it is open."""
        for node in self.fleet.nodes if self.fleet else []:
            if node.process is not None and node.process.poll() is None:
                node.process.kill()
                node.process.wait()
        for directory in self.mounted:
            sandbox.call("umount", directory)
        self.mounted = []
        for part in (self.lines, self.fleet):
            if part:
                part.close()
        self.fleet = self.lines = None

    def pace(self):
        """Rounds a second of the slowest node, undisturbed."""
        self.open(10**9)
        before = [node.status()["round"] for node in self.fleet.nodes]
        time.sleep(PACE_SECONDS)  # what is made in it is measured
        made = min(node.status()["round"] - b for node, b in zip(self.fleet.nodes, before))
        self.close()
        return made / PACE_SECONDS

    def node(self, fault):
        return self.fleet.nodes[fault.node]

    def bring_up(self, node):
        node.start()
        self.starts[node.index] = time.monotonic()
        self.down.discard(node.index)
        self.pending.discard(node.index)  # it reads the file of the moment

    def take_down(self, node, number):
        self.down.add(node.index)
        node.process.send_signal(number)  # nothing if it has ended
        if number == SIGKILL:
            node.process.wait()

    def answers(self, index):
        return (index not in self.down and index not in self.stopped
                and self.fleet.nodes[index].process.poll() is None)

    def members(self):
        return [node for node in self.fleet.nodes if node.index not in self.gone]

    def ask(self, node, path, method="POST"):
        try:
            code, body = node.get(path, method)
            return code, body.decode()
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error)

    def left(self, node):
        """Whether a node whose process has ended had handed everything over."""
        return not os.path.exists(os.path.join(node.directory, "ledger"))

    # ---- what is told ----

    def tell(self, text):
        print("# %7.1f s  %s" % (time.monotonic() - self.began, text), flush=True)

    def say(self, fault, text):
        self.tell("#%d %s" % (fault.number, text))

    def complain(self, text):
        self.complaints.append(text)
        self.tell("WRONG: " + text)

    def troubles(self):
        """What else is not well at present, for a line of the log."""
        words = ["n%d: %s" % (i, ", ".join(sorted(kinds))) for i, kinds in self.busy.items() if kinds]
        cuts = [task[2].number for task in self.tasks if task[2].kind == "cut"]
        return "; ".join(words + ["cut by #%d" % number for number in cuts]) or "no other fault"

    # ---- the faults ----

    def free(self, fault):
        """Whether the node is free for the fault, which then has it."""
        others = self.busy[fault.node] - TOGETHER.get(fault.kind, set())
        word = ", ".join(sorted(others)) or ("down" if not self.answers(fault.node) else "")
        if word:
            self.say(fault, "%s of n%d left out: %s" % (fault.kind, fault.node, word))
        return not word

    def until(self, condition, seconds):
        """Wait; whether the condition came true."""
        end = time.monotonic() + seconds
        while not condition() and time.monotonic() < end:
            yield 0.05
        return condition()

    def kill(self, fault):
        node = self.node(fault)
        self.say(fault, "kill -9 n%d, back after %.1f s" % (node.index, fault.seconds))
        self.take_down(node, SIGKILL)
        yield fault.seconds
        if node.index in self.leavers and self.left(node):
            self.gone.add(node.index)
        else:
            self.bring_up(node)
            self.say(fault, "n%d started again" % node.index)

    def stop(self, fault):
        node = self.node(fault)
        process = node.process
        self.say(fault, "SIGSTOP n%d for %.1f s" % (node.index, fault.seconds))
        self.stopped.add(node.index)
        process.send_signal(SIGSTOP)
        yield fault.seconds
        process.send_signal(SIGCONT)
        self.stopped.discard(node.index)
        self.say(fault, "SIGCONT n%d" % node.index)

    def cut(self, fault):
        n, draw = self.options.nodes, fault.random
        other = draw.choice([i for i in range(n) if i != fault.node])
        half = set(draw.sample(range(n), draw.randint(2, n - 2)))
        everything = [(i, j) for i in range(n) for j in range(n) if i != j]
        name, pairs, directions = draw.choice([
            ("n%d -> n%d, what goes forward" % (fault.node, other), [(fault.node, other)], [FORWARD]),
            ("n%d -> n%d, what goes back" % (fault.node, other), [(fault.node, other)], [BACKWARD]),
            ("n%d -> n%d" % (fault.node, other), [(fault.node, other)], [FORWARD, BACKWARD]),
            ("all of n%d" % fault.node, [pair for pair in everything if fault.node in pair], [FORWARD, BACKWARD]),
            ("halves %s" % ",".join("n%d" % i for i in sorted(half)),
             [pair for pair in everything if len(half & set(pair)) == 1], [FORWARD, BACKWARD])])
        reset = len(directions) == 2 and draw.random() < 0.5
        self.say(fault, "cut %s, %s, for %.1f s" % (name, "by resets" if reset else "in silence", fault.seconds))
        if reset:
            self.lines.reset(pairs)
        else:
            self.lines.cut(pairs, directions)
        yield fault.seconds
        if reset:
            self.lines.accept(pairs)
        else:
            self.lines.mend(pairs, directions)
        self.say(fault, "mended")

    def pause(self, fault):
        node = self.node(fault)
        self.say(fault, "pause n%d for %.1f s" % (node.index, fault.seconds))
        self.ask(node, "/v1/pause")
        yield fault.seconds
        done = yield from self.until(
            lambda: self.answers(node.index) and self.ask(node, "/v1/resume")[0] in (200, 202), 60)
        if not done:
            self.complain("n%d does not resume" % node.index)
        self.say(fault, "resumed n%d" % node.index)

    def reload(self, fault):
        self.shape = chaos_plan.shape(fault.random, self.method)
        self.say(fault, "another topology, %s %d" % self.shape)
        yield from self.rewire(fault)
        self.say(fault, "reloaded; still to do: %s" % (["n%d" % i for i in sorted(self.pending)] or "none"))

    def rewire(self, fault):
        """Write the files anew and have them read, node by node in any order."""
        f = self.fleet
        f.rewire(f.present, chaos_plan.phases(self.shape, f.present))
        self.pending |= {i for i in f.present if i not in self.down}
        for i in fault.random.sample(f.present, len(f.present)):
            yield fault.seconds / len(f.present)
            self.read_again(i)

    def part(self):
        """One node misses a reload that all others hear of, and files differ from now on."""
        f, draw = self.fleet, chaos_plan.random.Random("apart %d" % self.seed)
        former = f.phases
        odd, self.shape, f.phases = chaos_plan.apart(draw, self.method, former, f.present)
        self.tell("n%d stays with its file, and all others get %s %d" % (odd, *self.shape))
        others = [i for i in f.present if i != odd]
        for i in others:
            f.write_topology(i)
        self.pending |= {i for i in others if i not in self.down}

    def read_again(self, index):
        if not self.answers(index) or index in self.leavers:
            return
        code, self.refusal = self.ask(self.fleet.nodes[index], "/v1/reload")
        if code == 200:
            self.pending.discard(index)

    def has_left(self, fault):
        """Order the node to leave and wait; whether it has, in the end."""
        node = self.node(fault)
        state = (node.status() or {"state": "silent"})["state"]
        if state != "training":
            self.say(fault, "%s of n%d left out: it is %s" % (fault.kind, node.index, state))
            return False
        if len(self.gone | self.leavers) > self.options.nodes - 4:
            self.say(fault, "%s of n%d left out: others are gone" % (fault.kind, node.index))
            return False
        self.say(fault, "leave of n%d; now: %s" % (node.index, self.troubles()))
        self.leavers.add(node.index)
        threading.Thread(target=self.ask, args=(node, "/v1/leave"), daemon=True).start()
        gone = yield from self.until(lambda: node.index in self.gone, LEAVE_SECONDS)
        if not gone:
            yield from self.stays(fault, node)
        self.leavers.discard(node.index)
        self.pending.discard(node.index)
        if node.index in self.gone:
            self.say(fault, "n%d has left" % node.index)
        return node.index in self.gone

    def stays(self, fault, node):
        """One that did not get to leave: it is stopped, which ends an order that has handed nothing over."""
        yield from self.until(lambda: self.answers(node.index), 60)
        status = node.status() or {}
        self.complain("#%d n%d has not left after %d s: it is %s and waits %s; now: %s" % (
            fault.number, node.index, LEAVE_SECONDS, status.get("state"), json.dumps(status.get("waiting")),
            self.troubles()))
        yield from self.end(node)
        if self.left(node):
            self.gone.add(node.index)
        else:
            self.bring_up(node)

    def end(self, node, number=SIGTERM):
        """A process ended on purpose."""
        self.take_down(node, number)
        ended = yield from self.until(lambda: node.process.poll() is not None, END_SECONDS)
        if not ended:
            self.complain("n%d does not end after SIGTERM" % node.index)
            self.take_down(node, SIGKILL)

    def leave(self, fault):
        if (yield from self.has_left(fault)):
            yield fault.seconds
            self.come_back(fault)

    def come_back(self, fault):
        node = self.node(fault)
        self.say(fault, "n%d is started as a new member" % node.index)
        self.gone.discard(node.index)
        self.bring_up(node)

    def strike(self, fault):
        """As leave, and the topology names the node no more; later it does again, or never."""
        if not (yield from self.has_left(fault)):
            return
        node, f = self.node(fault), self.fleet
        if not (yield from self.until(lambda: self.is_settled_with(node), SETTLE_SECONDS)):
            self.say(fault, "n%d is not struck: not every node has settled with it" % node.index)
            self.come_back(fault)
            return
        f.present = [i for i in f.present if i != node.index]
        self.say(fault, "n%d is struck from the files" % node.index)
        yield from self.rewire(fault)
        yield fault.seconds
        if fault.random.random() < 0.3:
            self.say(fault, "n%d stays away" % node.index)
            self.down.add(node.index)
            return
        f.present = sorted(f.present + [node.index])
        self.say(fault, "n%d is named again" % node.index)
        yield from self.rewire(fault)
        self.come_back(fault)

    def is_settled_with(self, left):
        """A node is struck only while all others are there and owe it nothing, as the documents ask."""
        for node in self.members():
            code, body = self.ask(node, "/v1/peers", "GET") if self.answers(node.index) else (0, "")
            if code != 200 or any(p["weight_owed"] != 0 for p in json.loads(body) if p["name"] == left.name):
                return False
        return True

    def full(self, fault):
        node = self.node(fault)
        if not self.disks:
            self.say(fault, "full disk of n%d left out: not root" % node.index)
            return
        self.say(fault, "full disk of n%d for %.1f s" % (node.index, fault.seconds))
        path = os.path.join(node.directory, "filler")
        try:
            with open(path, "wb", buffering=0) as file:
                while True:
                    file.write(bytes(4096))
        except OSError:
            pass
        yield fault.seconds
        os.unlink(path)
        self.freed[node.index] = time.monotonic()
        self.say(fault, "disk of n%d free again" % node.index)

    def restore(self, fault):
        node, draw = self.node(fault), fault.random
        first, second = draw.choice([SIGTERM, SIGKILL]), draw.choice([SIGTERM, SIGKILL])
        names = KEPT[:draw.choice([1, 3])]
        self.say(fault, "%s n%d and copy its %s" % (first.name, node.index, ", ".join(names)))
        yield from self.end(node, first)
        kept = tempfile.mkdtemp(prefix="kept-", dir=self.fleet.directory)
        names = [name for name in names if os.path.exists(os.path.join(node.directory, name))]
        for name in names:
            shutil.copy(os.path.join(node.directory, name), kept)
        self.bring_up(node)
        yield fault.seconds
        self.say(fault, "%s n%d and put them back" % (second.name, node.index))
        yield from self.end(node, second)
        for name in names:
            shutil.copy(os.path.join(kept, name), node.directory)
        self.restored += 1
        self.bring_up(node)

    # ---- the run ----

    def supervise(self):
        """Processes that ended: one that was to leave has left; any other is wrong, unless it said that its disk is
        full, and is started again, as its unit would."""
        for node in self.fleet.nodes:
            if node.index in self.down or node.process.poll() is None:
                continue
            leaves = node.index in self.leavers and self.left(node)
            if leaves:
                self.gone.add(node.index)
                self.down.add(node.index)
            if leaves and node.process.returncode == 0 or time.monotonic() < self.starts[node.index] + 1:
                continue
            last = [line for line in node.log().splitlines() if " error " in line][-1:] or ["no error told"]
            room = "full" not in self.busy[node.index] and time.monotonic() > self.freed.get(node.index, -5) + 5
            told = not room and node.process.returncode == 1 and NO_SPACE in last[0]
            if not told and node.name not in self.exits:
                self.exits.append(node.name)
                self.complain("%s %s with status %d; now: %s; its last error: %s" % (node.name,
                    "left" if leaves else "ended by itself", node.process.returncode, self.troubles(), last[0]))
            if not leaves:
                self.bring_up(node)

    def begin(self, fault):
        if fault.kind in ("cut", "reload") or self.free(fault):
            if fault.kind not in ("cut", "reload"):
                self.busy[fault.node].add(fault.kind)
            self.tasks.append([0, getattr(self, fault.kind)(fault), fault])

    def advance(self):
        for task in list(self.tasks):
            if not self.over and time.monotonic() < task[0]:
                continue
            try:
                task[0] = time.monotonic() + next(task[1])
            except StopIteration:
                self.tasks.remove(task)
                self.busy[task[2].node].discard(task[2].kind)

    def each_second(self, rounds):
        self.all_read_again()
        for node in self.members():
            status = node.status() if self.answers(node.index) else None
            if status and status["round"] is not None and status["round"] > LAST_PART * rounds and not self.over:
                self.tell("%s is at round %d of %d: all faults end" % (node.name, status["round"], rounds))
                self.over = True

    def run(self, rounds, faults, seconds):
        faults, looked = list(faults), 0.0
        while faults or self.tasks or not self.over:
            now = time.monotonic()
            while faults and not self.over and now >= self.began + faults[0].at:
                self.begin(faults.pop(0))
            if self.over or now > self.began + seconds:
                self.over, faults = True, []
            self.advance()
            self.supervise()
            if now > looked + 1:
                looked = now
                self.each_second(rounds)
            time.sleep(0.02)
        if self.options.apart:
            self.part()
        try:
            self.fleet.wait("all to have reloaded", self.all_read_again)
        except AssertionError:
            self.complain("%s did not reload: %s" % (["n%d" % i for i in sorted(self.pending)], self.refusal))

    def all_read_again(self):
        for index in list(self.pending):
            self.read_again(index)
        return not self.pending

    def greatest_round(self):
        statuses = [node.status() for node in self.members()]
        return max((s["round"] or 0 for s in statuses if s), default=0)

    def settle(self):
        """Wait until all have finished and stay so, with nothing in flight; whether they have. A busy machine may
        take its time: a fleet that stands still is given up, and one that hardly goes on."""
        before, since = None, time.monotonic()
        end = since + SETTLE_TIMES * self.options.seconds + STILL_SECONDS
        while time.monotonic() < min(end, since + STILL_SECONDS):
            self.supervise()
            now = [(s["state"], s["round"], s["weight"], s["weight_in_flight"]) if s else None
                   for s in (node.status() for node in self.members())]
            if now != before:
                before, since = now, time.monotonic()
            at_rest = all(s and s[0] == "finished" and s[3] == 0 for s in now)
            if at_rest and time.monotonic() > since + FINISHED_SECONDS:
                return True
            time.sleep(0.2)
        return False


def keep(chaos):
    """The fleet's files, after a failure."""
    if chaos.fleet is None:
        return "no place: there was no fleet"
    place = tempfile.mkdtemp(prefix="sgpd-chaos-%d-" % chaos.seed)
    shutil.copytree(chaos.fleet.directory, place, dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("*.sock", "filler"))
    return place


def program():
    """Which sgpd it was, as a comment of the shell's."""
    try:
        said = subprocess.run([fleet.SGPD, "--version"], text=True, stdout=subprocess.PIPE, check=True).stdout
        return " # " + said.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def command(options, seed, method):
    words = ["tests/system/chaos.py", fleet.SGPD, "--seed %d" % seed, "--seconds %g" % options.seconds,
             "--gap %g" % options.gap, "--nodes %d" % options.nodes, "--algorithm " + method]
    words += ["--faults " + options.faults] if options.faults else []
    words += ["--without " + options.without] if options.without else []
    words += ["--apart"] if options.apart else []
    return " ".join(words) + program()


def chosen(options, faults):
    """Those whose number is in `1,5-9`, and of no kind that is left out."""
    numbers = set()
    for part in options.faults.split(",") if options.faults else []:
        first, _, last = part.partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return [fault for fault in faults if (not numbers or fault.number in numbers)
            and fault.kind not in options.without.split(",")]


def one_seed(options, seed, disks):
    """Run a seed; whether all is right at the end."""
    chaos = Chaos(options, seed, disks)
    right = False
    try:
        pace = chaos.pace()
        rounds = max(200, int(pace * options.seconds))
        print("# seed %d: %s, %d nodes, %d rounds, %d final cycles, about %g s" % (
            seed, chaos.method, options.nodes, rounds, chaos_plan.final_cycles(seed), options.seconds), flush=True)
        faults = chosen(options, chaos_plan.faults(
            seed, FAULTS_PART * options.seconds, options.nodes, options.gap))
        chaos.open(rounds)
        chaos.idle_descriptors = descriptors(chaos.fleet.nodes)
        chaos.run(rounds, faults, FAULTS_PART * options.seconds)
        chaos.tell("faults over, at rounds %s" % [(n.status() or {}).get("round") for n in chaos.members()])
        rounds_then, then = chaos.greatest_round(), time.monotonic()
        settled = chaos.settle()
        chaos.tell("undisturbed %.1f rounds a second, after the faults %.1f" % (
            pace, (chaos.greatest_round() - rounds_then) / (time.monotonic() - then)))
        right = True
        for good, text in verdict(chaos, settled):
            right = right and good
            print("# %s  %s" % ("right" if good else "WRONG", text), flush=True)
        return right
    except Exception:  # a seed that breaks must not hide the next
        right = False
        for line in traceback.format_exc().splitlines():
            print("# " + line, flush=True)
        return False
    finally:
        if not right:
            print("# logs and state are kept in %s" % keep(chaos))
            print("# again: %s" % command(options, seed, chaos.method), flush=True)
        chaos.close()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--gap", type=float, default=3)
    parser.add_argument("--algorithm")
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--faults")
    parser.add_argument("--without", default="")
    parser.add_argument("--apart", action="store_true")
    return parser.parse_args()


def private_disks():
    """Whether this process can mount file systems that nobody else sees."""
    try:
        sandbox.need("mount", "umount")
        sandbox.enter(sandbox.MOUNTS)
        return True
    except unittest.SkipTest as reason:
        print("# no full disks: %s" % reason, flush=True)
        return False


def main():
    fleet.take_sgpd()
    options = arguments()
    disks = private_disks()
    print("1..%d" % options.seeds, flush=True)
    results = []
    for number in range(options.seeds):
        seed = options.seed + number
        results.append(one_seed(options, seed, disks))
        print("%s %d - seed %d" % ("ok" if results[-1] else "not ok", number + 1, seed), flush=True)
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
