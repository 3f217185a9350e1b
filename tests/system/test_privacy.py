# SPDX-License-Identifier: Apache-2.0
"""Private steps with real daemons: test_privacy.py SGPD. What they cost, what ends them, and what must not leave."""
import os
import random
import re
import signal
import struct
import subprocess

import fleet
import peer
from attached import ATTACHED
from between import Between
from fleet import FleetTest

PRIVATE = {"train.epochs": None, "train.rounds": "60", "train.batch": "20", "privacy.epsilon": "4",
           "train.checkpoint_seconds": "0", "optimizer.kind": "sgd", "optimizer.learning_rate": "4",
           "data.shards": "none"}
REPORT, NO_ROWS = 4, "2"  # a kind of bulletin; the state of a report, as its word


def private(**more):
    """`a__b` for a.b."""
    return {**PRIVATE, **{key.replace("__", "."): value for key, value in more.items()}}


class Recorder(Between):
    """Keeps what the source says (`of` is 0), or the target (1): a stream for each connection."""

    def __init__(self, of):
        super().__init__(None)  # the port of the target is known later
        self.of = of
        self.streams = []

    def carry(self, one, other, which, kept):
        if which == self.of:
            self.streams.append(kept[which])
        while data := one.recv(65536):
            kept[which].extend(data)
            other.sendall(data)


def frames(stream):
    """(kind, body) of each frame of a stream."""
    at = 0
    while at + 32 <= len(stream):
        kind, body, payload = struct.unpack_from("<HII", stream, at + 6)
        yield kind, bytes(stream[at + 32:at + 32 + body])
        at += 32 + body + payload


class Refusals(FleetTest):
    def refused(self, word, **more):
        f = self.fleet(2, options=private(**more))
        status, said = f.check()
        self.assertNotEqual(status, 0, said)
        self.assertIn(word, said)

    def test_what_would_tell_of_rows_is_refused(self):
        self.refused("scaling file", data__scale="fleet")
        self.refused("rounds", train__rounds=None, train__epochs="3")
        self.refused("may not stop others", train__stop_at_accuracy="0.9")
        self.refused("may not leave it", train__keep_best="accuracy", train__evaluate_every="10")
        self.refused("layer 2 is norm batch, in which each row changes the gradients of all others", model__layers="dense 4, norm batch, dense 2")
        self.refused("local", model__layers="dense 4 relu, dense 2", model__local="head")
        self.refused("without epsilon", privacy__epsilon=None, privacy__noise="1")
        self.refused("clips and adds noise itself", model__kind="attached", model__layers=None)
        self.refused("larger epsilon", privacy__epsilon="0.011", privacy__delta="1e-12")
        self.refused("which rows are its own", data__shards="sorted")
        self.refused("which rows are its own", data__shards="dirichlet:0.5")
        self.refused("noise", privacy__noise="0.2")

    def test_nodes_at_their_own_pace_are_refused(self):
        """A node without steps would pass through rounds at once. The methods of the message are accepted."""
        for algorithm in ("agp", "adpsgd"):
            f = self.fleet(2, options=private(train__algorithm=algorithm))
            status, said = f.check()
            self.assertNotEqual(status, 0, said)
            self.assertRegex(said, r"^sgpd: \S+n0.conf:\d+: \[privacy\] epsilon: with algorithm %s each node keeps its own pace, "
                             r"and one whose epsilon is spent would run ahead of all; choose sgp, osgp or dpsgd, or remove the "
                             r"section\n$" % algorithm)
        for algorithm in ("sgp", "osgp", "dpsgd"):
            f = self.fleet(2, options=private(train__algorithm=algorithm))
            self.assertEqual(f.check()[0], 0, algorithm)

    def test_files_with_owners_are_refused(self):
        f = self.fleet(2, options=private(train__algorithm="backup"))
        with open(os.path.join(f.directory, "n0.dot"), "w", encoding="utf-8") as file:
            file.write('digraph owner {\n  n0 [address="%s"];\n  n1 [address="%s", train=false, owns=all];\n'
                       '  n0 -> n1;\n  n1 -> n0;\n}\n' % (f.address(0, 0), f.address(0, 1)))
        self.assertIn("private steps are for nodes that mix", f.check()[1])

    def test_check_says_what_the_steps_cost(self):
        f = self.fleet(2, options=private(privacy__noise="2"))
        status, said = f.check()
        self.assertEqual(status, 0, said)
        # 320 rows, batch 20, 60 steps, noise 2: by the reference
        self.assertIn("privacy    epsilon 1.218 of 4, delta 1e-05, for each row, after all 60 steps", said)
        self.assertIn("counted    0 steps so far, epsilon 0", said)
        f = self.fleet(2, options=private())
        status, said = f.check()
        self.assertIn("privacy    epsilon 3.9", said)
        f = self.fleet(2, options=private(privacy__noise="0.7"))
        self.assertIn("mixes without steps", f.check()[1])


class Private(FleetTest):
    def test_steps_are_counted_and_end_with_epsilon(self):
        """Node 0 has noise for about half of its rounds, and mixes on to the end of all."""
        f = self.fleet(4, options=private(), own={0: {"privacy.noise": "0.7"}})
        f.start()
        statuses = f.wait_state("finished")
        f.quiet()
        self.assertTrue(statuses[0]["privacy_spent"], statuses[0])
        self.assertIn("event=privacy_spent", f.nodes[0].log())
        self.assertLessEqual(statuses[0]["privacy_epsilon"], 4)
        self.assertGreater(statuses[0]["privacy_epsilon"], 3)
        for status in statuses[1:]:
            self.assertFalse(status["privacy_spent"])
            self.assertIn("Counted: 60 noisy steps", status["privacy"])
            self.assertGreater(status["privacy_epsilon"], 3.9)
            self.assertLessEqual(status["privacy_epsilon"], 4)
        self.assertAlmostEqual(sum(s["weight"] for s in f.quiet()), 4, places=9)
        models = [fleet.read_model(node.get("/v1/model")[1]) for node in f.nodes]
        spread = max(abs(a - b) for model in models for a, b in zip(model, models[0]))
        self.assertLess(spread, 1e-3)

    def test_no_kill_refunds_a_step(self):
        """Node 0 is killed again and again; its account never falls, and epsilon is never passed."""
        draw = random.Random(3)
        f = self.fleet(2, phases=[[(0, 1), (1, 0)]], options=private(train__rounds="100k", privacy__noise="2"))
        f.start()
        most = 0
        for _ in range(12):
            goal = most + draw.randrange(5, 60)

            def counted():
                status = f.nodes[0].status()
                return status if status and (status["privacy_spent"] or steps(status) >= goal) else None

            last = f.wait("more steps", counted)
            f.nodes[0].end(signal.SIGKILL)
            f.nodes[0].start()
            status = f.wait("a status after the kill", f.nodes[0].status)
            self.assertGreaterEqual(steps(status), steps(last))
            self.assertGreaterEqual(status["privacy_epsilon"], last["privacy_epsilon"])
            self.assertLessEqual(status["privacy_epsilon"], 4)
            most = steps(status)

    def test_a_lost_account_is_stated(self):
        f = self.fleet(2, options=private())
        f.start()
        f.wait_state("finished")
        for node in f.nodes:
            node.end()
        os.unlink(os.path.join(f.nodes[0].directory, "privacy"))
        status, said = f.check()
        self.assertNotEqual(status, 0)
        self.assertIn("--privacy-spent", said)
        f.nodes[0].start()
        self.assertNotEqual(f.nodes[0].process.wait(fleet.PATIENCE), 0)
        self.assertIn("what was spent is unknown", f.nodes[0].log())
        said = subprocess.run([*f.command(f.nodes[0]), "--privacy-spent", "60"], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertIn("stated: 60 steps", said)
        said = f.check()[1]
        self.assertIn("counted    60 steps so far", said)
        self.assertRegex(said, r"left       [01] more steps")
        again = subprocess.run([*f.command(f.nodes[0]), "--privacy-spent", "1"], stderr=subprocess.PIPE, text=True, check=False)
        self.assertNotEqual(again.returncode, 0)
        self.assertIn("nothing is to be stated", again.stderr)

    def test_training_without_privacy_is_not_forgotten(self):
        """Rows that have left by plain steps cannot become private by a new section."""
        f = self.fleet(2, options={**PRIVATE, "privacy.epsilon": None})
        f.start()
        f.wait_state("finished")
        for node in f.nodes:
            node.end()
        f.write_configuration(0, private(), {})
        self.assertIn("--privacy-spent", f.check()[1])

    def test_plain_steps_between_private_ones_are_refused(self):
        """An account does not know of plain steps, so a node that has one takes none, also for a program or to tune."""
        layers = "dense 4 relu, dense 2"
        f = self.fleet(2, options=private(model__layers=layers))
        f.start()
        f.wait_state("finished")
        for node in f.nodes:
            node.end()
        account = os.path.join(f.nodes[0].directory, "privacy")
        plain = {**PRIVATE, "privacy.epsilon": None, "model.layers": layers}
        for options in (plain, {**plain, "data.scale": "fleet"}, {**plain, **ATTACHED}):
            f.write_configuration(0, options, {})
            status, said = f.check()
            self.assertNotEqual(status, 0, said)
            self.assertIn("this node has counted private steps", said)
        for options in (plain, {**plain, "data.scale": "fleet"}):
            f.write_configuration(0, options, {})
            f.nodes[0].start()
            self.assertNotEqual(f.nodes[0].process.wait(fleet.PATIENCE), 0)
        self.assertEqual(f.nodes[0].log().count("this node has counted private steps"), 2)
        f.write_configuration(0, {**plain, "model.local": "head"}, {})
        tuned = os.path.join(f.directory, "tuned.safetensors")
        model = os.path.join(f.nodes[1].directory, "model.safetensors")
        result = subprocess.run([*f.command(f.nodes[0]), "--tune", model, "--output", tuned], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, check=False)
        self.assertNotEqual(result.returncode, 0, result.stdout)
        self.assertIn("this node has counted private steps", result.stderr)
        self.assertFalse(os.path.exists(tuned))
        self.assertNotIn("scale.json", os.listdir(f.nodes[0].directory))
        f.write_configuration(0, private(model__layers=layers), {})
        self.assertIn("counted    60 steps so far", f.check()[1])
        os.rename(account, account + ".old")
        self.assertIn("--privacy-spent", f.check()[1])
        f.write_configuration(0, plain, {})
        self.assertEqual(f.check()[0], 0)


    def test_statistics_that_were_told_are_not_forgotten(self):
        """The nodes have not agreed on a scaling, because n2 is absent. What n0 told has left all the same."""
        plain = {**PRIVATE, "privacy.epsilon": None, "data.scale": "fleet"}
        f = self.fleet(3, phases=[[(0, 1), (1, 2), (2, 0)]], options=plain)
        f.start([0, 1])
        f.wait("n1 to have the figures of n0 and lack those of n2 alone",
               lambda: waits_for(f.nodes[1], "n2"))
        f.nodes[0].end()
        self.assertNotIn("scale.json", os.listdir(f.nodes[0].directory))
        f.write_configuration(0, private(), {})
        status, said = f.check()
        self.assertNotEqual(status, 0, said)
        self.assertIn("--privacy-spent", said)
        f.nodes[0].start()
        self.assertNotEqual(f.nodes[0].process.wait(fleet.PATIENCE), 0)
        subprocess.run([*f.command(f.nodes[0]), "--privacy-spent", "0"], stdout=subprocess.DEVNULL, check=True)
        self.assertEqual(f.check()[0], 0)

    def test_the_forecast_knows_what_was_spent(self):
        """Epsilon is enough for 60 steps, and for a second run of 60 it is not. A run that is done has no steps to come."""
        options = private(privacy__epsilon="1.5", privacy__noise="2")
        f = self.fleet(2, options=options)
        self.assertNotIn("warning", f.check()[1])
        for _ in range(2):
            f.start()
            f.wait_state("finished")
            for node in f.nodes:
                node.end()
        self.assertNotIn("mixes without steps", f.check()[1] + f.nodes[0].log())
        for i in range(2):
            f.write_configuration(i, {**options, "model.layers": "dense 4 relu, dense 2"}, {})
        said = f.check()[1]
        left = int(re.search(r"left +(\d+) more steps", said)[1])
        self.assertEqual(left, 32)  # this and the epsilon of 120 steps: by the reference
        warning = (r"n0.conf:\d+: \[privacy\] epsilon is spent after %d of the 60 steps to come; from then on this node mixes "
                   "without steps: give more noise, fewer rounds or a smaller batch" % left)
        self.assertRegex(said, "warning: .*" + warning)
        epsilon = float(re.search(r"epsilon (\S+) after the 60 steps to come", said)[1])
        self.assertEqual(epsilon, 1.701)
        f.start()
        for status in f.wait_state("finished"):
            self.assertTrue(status["privacy_spent"])
            self.assertEqual(steps(status), 60 + left)
        self.assertRegex(f.nodes[0].log(), 'event=warning text="\\S*' + warning)


class Reload(FleetTest):
    def test_a_file_with_owners_is_refused(self):
        """A worker that has spent its epsilon would block its owner. The algorithm is that of the start, so it refuses owners."""
        f = self.fleet(3, phases=[[(0, 1), (1, 0), (1, 2), (2, 1)]], options=private(train__rounds="100k"))
        f.start()
        f.wait_round(0, 3)
        with open(os.path.join(f.directory, "n0.dot"), "w", encoding="utf-8") as file:
            file.write('digraph owner {\n  n0 [address="%s"];\n  n1 [address="%s"];\n  n2 [address="%s", train=false, owns=all];\n'
                       '  n0 -> n2;\n  n1 -> n2;\n  n2 -> n0;\n  n2 -> n1;\n}\n' % tuple(f.address(0, i) for i in range(3)))
        code, said = f.nodes[0].get("/v1/reload", "POST")
        self.assertNotEqual(code, 200, said)
        self.assertIn("owns the vector, which algorithm sgp has no use for", said.decode())
        number = f.nodes[0].status()["round"]
        f.wait_round(0, number + 3)


def waits_for(node, name):
    status = node.status()
    return status and (status["waiting"] or {}).get("peer") == name


def steps(status):
    return int(status["privacy"].split("Counted: ")[1].split()[0])


class Wire(FleetTest):
    def test_only_noisy_parameters_leave(self):
        """All that node 0 says to node 1, whoever has dialled, is of kinds that tell nothing of its rows; its fingerprint names
        no rows; a report, asked for by another node, has no measures; and its metrics have no figure of rows."""
        lines = [Recorder(0), Recorder(1)]  # n0 dials n1, and is dialled by it
        for line in lines:
            self.addCleanup(line.close)
        f = self.fleet(2, phases=[[(0, 1), (1, 0)]], dial={(0, 1): lines[0].port, (1, 0): lines[1].port},
                       options=private(data__holdout="0.3", data__shards="round-robin"))
        for line, target in zip(lines, (1, 0)):
            line.target_port = f.ports[target]
        f.start()
        f.wait_state("finished")
        self.assertIsNotNone(f.nodes[0].status()["test_accuracy"], "the node measures for itself")
        report = f.nodes[1].json("/v1/evaluate/fleet", "POST")
        told = [node for node in report["nodes"] if node["name"] == "n0"]
        self.assertEqual([node["state"] for node in told], ["no_rows"], report)
        metrics = f.nodes[0].get("/metrics")[1].decode()
        for name in ("sgpd_loss", "sgpd_test_loss", "sgpd_test_accuracy", "sgpd_diverging", "sgpd_epoch", "sgpd_samples_total",
                     "sgpd_samples_per_second"):
            self.assertNotIn("\n%s " % name, metrics)
        header = f.nodes[0].get("/v1/model")[1][:4096].decode("latin-1")
        for tag in ("test_rows", "test_loss", "test_accuracy", "train_loss", "epoch"):
            self.assertNotIn('"%s"' % tag, header)
        said = [frame for line in lines for stream in line.streams for frame in frames(stream)]
        for greeting, place in ((peer.HELLO, 12), (peer.WELCOME, 11)):
            greetings = [peer.meant(kind, body) for kind, body in said if kind == greeting]
            self.assertTrue(greetings)
            for fields in greetings:
                self.assertEqual(fields[place], 0, "the digest of the data")
        told = [bulletin for bulletin in (peer.meant(kind, body) for kind, body in said if kind == peer.BULLETIN) if bulletin[6]]
        self.assertIn("n0", [bulletin[1] for bulletin in told], "n0 has told a report of its own")
        for kind, _, _, _, size, first, text in told:
            self.assertEqual((kind, first, size), (REPORT, 0, len(text)), "all of a report")
            words = text.split()
            after_wishes = words[2 + int(words[1]):]
            self.assertEqual(len(after_wishes), 4, "run, label, whether it is final, state; and no measures: " + text)
            self.assertEqual(after_wishes[3], NO_ROWS, text)
        row = f.wait("n0's end at n1", lambda: next((node for node in f.nodes[1].json("/v1/fleet")["nodes"]
                                                     if node["name"] == "n0" and node["state"] == "finished"), None))
        for name in ("loss", "test_loss", "test_accuracy", "epoch", "samples_per_second"):
            self.assertIsNone(row[name], name)
        self.assertEqual([row[name] for name in ("promised", "promised_epsilon", "promised_delta")], ["counted", 4, 1e-5])
        self.assertEqual(f.nodes[1].status()["unlike_privacy"], [])
        kinds = {kind for kind, _ in said}
        self.assertLessEqual(kinds, {peer.HELLO, peer.WELCOME, peer.BEAT, peer.CREDIT, peer.SHARE, peer.ACK, peer.GOODBYE, peer.CHUNK,
                                     peer.PULL, peer.BULLETIN, peer.SUMMARY, peer.ROW})


if __name__ == "__main__":
    fleet.main()
