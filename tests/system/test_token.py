# SPDX-License-Identifier: Apache-2.0
"""Owning as a token, by real daemons (algorithm = cyclic): one model in the end, and what a death, a stop, a pause, a leave
and a token that is made anew do."""
import os
import signal
import socket
import struct
import subprocess
import sys

import fleet
import peer
from fleet import Fleet, FleetTest

SGPCTL = os.path.abspath(sys.argv.pop(2)) if len(sys.argv) > 2 and os.path.exists(sys.argv[2]) else "sgpctl"
MANY = {"train.epochs": "1000000"}
STOPS = int(os.environ.get("SGP_STOPS", 200 if fleet.LONG else 8))


class Handed(Fleet):
    """Edges from each to all others; the token begins with the first of those who are there."""

    def __init__(self, n, says=("token=dynamic",), journals=(), dial=None, **options):
        self.says_all = says
        own = {i: {"log.events": "n%d.events" % i, "log.trace": "n%d.trace" % i} for i in journals}
        super().__init__(n, phases=[[]], dial=dial, rows=options.pop("rows", 1000), own=own,
                         options={"train.algorithm": "cyclic", **options})

    def write_topology(self, index):
        path = os.path.join(self.directory, "n%d.dot" % index)
        with open(path + ".new", "w") as file:
            file.write("digraph token {\n")
            file.writelines("  %s;\n" % what for what in self.says_all)
            for i in self.present:
                file.write('  n%d [address="%s"%s];\n' % (
                    i, self.address(index, i), ", owns=all" if i == self.present[0] else ""))
            file.writelines("  n%d -> n%d;\n" % (a, b) for a in self.present for b in self.present if a != b)
            file.write("}\n")
        os.replace(path + ".new", path)

    def switch(self, present):
        self.present = present
        for i in range(self.n):
            self.write_topology(i)


class Handing(FleetTest):
    def handed(self, n, **options):
        f = Handed(n, **options)
        self.fleets = getattr(self, "fleets", []) + [f]
        self.addCleanup(f.close)
        return f

    def status(self, f, index):
        return f.wait("a status", f.nodes[index].status)

    def total(self, f, indices):
        """Of weight, at rest; while it is handed on it may be counted at both ends, or at neither."""
        statuses = [f.nodes[i].status() for i in indices]
        return None if None in statuses else sum(s["weight"] + s["weight_in_flight"] for s in statuses)

    def goes_on(self, f, index=0, rounds=40, timeout=20):
        f.wait_round(index, self.status(f, index)["round"] + rounds, timeout)

    def holder(self, f, indices):
        """Whoever has the token while all are paused."""
        def found():
            statuses = {i: f.nodes[i].status() for i in indices}
            if None in statuses.values() or any(s["weight_in_flight"] > 0 for s in statuses.values()):
                return None
            have = [i for i, s in statuses.items() if s["weight"] > 0]
            return have if len(have) == 1 else None
        return f.wait("one to have the token", found)[0]

    def pause(self, f, indices):
        for i in indices:
            f.nodes[i].get("/v1/pause", "POST")
        f.wait_state("paused", list(indices))

    def resume(self, f, indices):
        for i in indices:
            f.nodes[i].get("/v1/resume", "POST")

    def expect_one_model(self, f, indices=None):
        indices = range(f.n) if indices is None else indices
        models = [fleet.read_model(f.nodes[i].get("/v1/model")[1]) for i in indices]
        for model in models:
            self.assertEqual(model, models[0])
        statuses = [self.status(f, i) for i in indices]
        self.assertEqual(sorted(s["weight"] for s in statuses), [0.0] * (len(models) - 1) + [1.0])
        self.assertEqual(len({s["copy"]["label"] for s in statuses}), 1)
        return statuses


class Token(Handing):
    def test_a_fleet_ends_on_one_model(self):
        for says in (("token=dynamic",), ("token=fixed",), ("token=dynamic", "delay_mean=true", "delay_max=3")):
            with self.subTest(says=says):
                f = self.handed(4, says=says, **{"optimizer.learning_rate": "0.02"})
                f.start()
                f.wait_state("finished")
                for status in self.expect_one_model(f):
                    self.assertGreater(status["test_accuracy"], 0.8)
                f.close()

    def test_a_holder_that_is_killed_comes_back_with_it(self):
        f = self.handed(4, journals=(1,), **MANY)
        f.start()
        f.wait_round(0, 40)
        for _ in range(3):
            self.pause(f, range(4))
            holder = self.holder(f, range(4))
            f.nodes[holder].kill(signal.SIGKILL)
            f.nodes[holder].process.wait()
            others = [i for i in range(4) if i != holder]
            self.resume(f, others)
            label = max(self.status(f, i)["copy"]["label"] for i in others)
            f.wait("the others to wait for it", lambda: all(
                (self.status(f, i)["waiting"] or {}).get("for") == "share" for i in others))
            f.nodes[holder].start()
            f.wait_log(holder, "event=adopted")
            self.goes_on(f, others[0])
            self.assertGreater(self.status(f, others[0])["copy"]["label"], label)
        self.pause(f, range(4))
        self.holder(f, range(4))
        f.nodes[1].end(signal.SIGKILL)
        again = subprocess.run([SGPCTL, "replay", os.path.join(f.directory, "n1.events")], text=True,
                               timeout=fleet.PATIENCE, check=True, capture_output=True).stdout
        self.assertIn("receive_token", again)

    def test_whoever_is_killed_amid_everything_comes_back(self):
        f = self.handed(3, **MANY)
        f.start()
        f.wait_round(0, 20)
        for i in (0, 1, 2) * (5 if fleet.LONG else 1):
            f.nodes[i].kill(signal.SIGKILL)
            f.nodes[i].process.wait()
            f.nodes[i].start()
            for j in range(3):
                self.goes_on(f, j)
        self.pause(f, range(3))
        self.holder(f, range(3))

    def test_pause_stop_and_leave_hand_it_on(self):
        f = self.handed(4, **MANY)
        f.start()
        f.wait_round(0, 20)
        self.pause(f, [1])
        self.goes_on(f)
        self.resume(f, [1])
        self.goes_on(f, 1)
        f.nodes[2].end()  # it is away, and comes back
        self.goes_on(f)
        f.nodes[2].start()
        self.goes_on(f, 2)
        self.assertEqual(f.nodes[3].get("/v1/leave", "POST")[0], 200)
        self.assertEqual(f.nodes[3].process.wait(fleet.PATIENCE), 0)
        self.assertIn("event=left", f.nodes[3].log())
        self.goes_on(f)
        f.switch([0, 1, 2])
        for i in (0, 1, 2):
            f.nodes[i].get("/v1/reload", "POST")
        self.goes_on(f)
        self.pause(f, (0, 1, 2))
        self.holder(f, (0, 1, 2))

    def test_no_clean_stop_takes_the_token_along(self):
        """Whoever stops, the others train on, also before it is back."""
        f = self.handed(3, **MANY)
        f.start()
        f.wait_round(0, 20)
        for turn in range(STOPS):
            i = turn % 3
            self.assertEqual(f.nodes[i].end(), 0)
            self.goes_on(f, (i + 1) % 3, rounds=4)
            f.nodes[i].start()
            if turn % 4:  # else the next stops while it joins
                self.goes_on(f, i, rounds=1 + turn % 16)
            if turn % 50 == 49:
                print("# %d stops" % (turn + 1), flush=True)

    def test_a_token_that_is_lost_is_made_anew(self):
        f = self.handed(3, **MANY)
        f.start()
        f.wait_round(0, 20)
        self.pause(f, range(3))
        holder = self.holder(f, range(3))
        there = self.restore(f, holder)
        self.assertEqual(there.returncode, 1)
        self.assertIn("it has the token", there.stderr)
        f.nodes[holder].kill(signal.SIGKILL)
        f.nodes[holder].process.wait()
        others = [i for i in range(3) if i != holder]
        self.resume(f, others)
        f.wait("the others to wait for it", lambda: all(
            (self.status(f, i)["waiting"] or {}).get("for") == "share" for i in others))
        done = self.restore(f, others[0])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for i in others:
            self.goes_on(f, i)
        f.nodes[holder].start()  # and it was not lost: but it is none any more
        f.wait_log(holder, "event=renewed")
        for i in range(3):
            self.goes_on(f, i)
        self.pause(f, range(3))
        self.holder(f, range(3))

    def restore(self, f, index):
        return subprocess.run([SGPCTL, "-s", f.nodes[index].socket, "token", "restore"], text=True,
                              timeout=fleet.PATIENCE, check=False, capture_output=True)

    def test_the_file_and_the_algorithm_must_suit(self):
        f = self.handed(3, **{"train.algorithm": "sgp"})
        code, said = f.check()
        self.assertEqual(code, 6, said)
        self.assertIn("digraph token says token=dynamic, which algorithm sgp has no use for; choose cyclic", said)
        g = Fleet(2, options={"train.algorithm": "cyclic"})
        self.addCleanup(g.close)
        code, said = g.check()
        self.assertEqual(code, 6, said)
        self.assertIn("algorithm cyclic wants a token that goes round; write token=dynamic", said)


class Liar(Handing):
    """n2 is played by the test."""

    def overhear(self, f):
        """What a node says of itself when it dials n2."""
        with socket.create_server((f.host(2), f.ports[2])) as listener:
            listener.settimeout(fleet.PATIENCE)
            self.parameters, self.fingerprint = peer.overhear(listener)

    def greet(self, target, **pulse):
        """n2 greets a node as one that trains; `pulse` is what it says of itself."""
        n2 = peer.Peer(self.f.ports[target])
        self.addCleanup(n2.close)
        for name, value in pulse.items():
            setattr(n2, name, value)
        n2.hello("n2", "n%d" % target, self.parameters, self.fingerprint)
        n2.receive(peer.WELCOME)
        return n2

    def test_a_hello_in_another_s_name_does_not_take_the_token(self):
        self.f = self.handed(3, **MANY)
        self.f.start([0])
        self.overhear(self.f)
        n2 = self.greet(0, round=50)
        n2.send(peer.BEAT)
        n2.receive(peer.BEAT)  # n0 has heard it
        n2.close()
        self.f.start([1, 2])
        for i in range(3):
            self.f.wait_round(i, 40)

    def forged(self, target, round_, weight=1.0, first=0, count=None):
        """n2 gives `target` a token of that label once it has a credit; the kind and the fields of the answer."""
        count = self.parameters if count is None else count
        n2 = self.greet(target, next_round=max(self.status(self.f, target)["round"], 1))
        n2.round = n2.next_round
        n2.send(peer.BEAT)
        n2.receive(peer.CREDIT)
        n2.round = round_
        n2.ends = max(round_, n2.ends)
        n2.send(peer.SHARE, 1, round_, 1.0, weight, first, count, 4 * count)
        try:
            n2.chunk(struct.pack("<%df" % count, *[0.1] * count))
            answer = n2.receive(peer.ACK, peer.GOODBYE)
        except peer.Closed:
            answer = None
        n2.close()
        return answer

    def test_a_label_that_nobody_can_have_reached_and_a_part_of_a_token_are_refused(self):
        self.f = self.handed(3, **MANY)
        self.f.start()
        for i in range(3):
            self.f.wait_round(i, 20)
        self.assertEqual(self.f.nodes[2].end(), 0)
        self.overhear(self.f)
        for turn in range(4):
            self.assertEqual(self.forged(turn % 2, 12000000), (peer.ACK, [1, 3]))
            self.goes_on(self.f, turn % 2)
        self.assertEqual(self.forged(0, 1, count=1)[0], peer.GOODBYE)
        self.goes_on(self.f)
        for i in range(2):
            status = self.status(self.f, i)
            self.assertEqual(status["state"], "training")
            self.assertLess(status["round"], 12000000)


if __name__ == "__main__":
    fleet.main()
