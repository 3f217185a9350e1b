# SPDX-License-Identifier: Apache-2.0
"""Privacy that programs claim, with real daemons: test_claims.py SGPD SGPCTL. Where a claim is shown, what it keeps on the machine,
how long it holds, and which claims are refused."""
import os
import signal
import struct
import subprocess
import sys
import unittest

import fleet
import peer
from attached import AttachTest, flat, loss_of, network, rows, sgp, torch
from raw_program import NAN, Program
from test_privacy import Recorder, frames

SGPCTL = None  # the second argument
PAIR = [[(0, 1), (1, 0)]]
CLAIM = {"noise_multiplier": 0.5, "sample_rate": 0.1, "clip": 0.25}
PRIVACY, CLAIMED = 23, 24
WITHHELD = ("loss", "test_loss", "test_accuracy", "epoch", "samples_per_second")
METRICS = ("sgpd_loss", "sgpd_test_loss", "sgpd_test_accuracy", "sgpd_epoch", "sgpd_diverging", "sgpd_samples_total",
           "sgpd_samples_per_second")


def clipped_sum(model, x, y, clip):
    """The sum of the gradients of all rows, each of at most this length: one row at a time."""
    parameters = list(model.parameters())
    total = [torch.zeros_like(parameter) for parameter in parameters]
    for row, target in zip(x, y):
        gradients = torch.autograd.grad((model(row) - target).pow(2).mean(), parameters)
        length = float(sum(gradient.pow(2).sum() for gradient in gradients)) ** 0.5
        for sum_, gradient in zip(total, gradients):
            sum_ += gradient * min(1.0, clip / length)
    return total


def private_step(model, optimizer, x, y, draw, noise_multiplier, sample_rate, clip):
    """A step of DP-SGD (Abadi et al. 2016, algorithm 1) on all rows of a node; returns the loss of the drawn rows, and how many."""
    taken = torch.rand(len(x), generator=draw) < sample_rate
    total = clipped_sum(model, x[taken], y[taken], clip)
    for parameter, sum_ in zip(model.parameters(), total):
        noise = noise_multiplier * clip * torch.randn(sum_.shape, generator=draw)
        parameter.grad = (sum_ + noise) / (sample_rate * len(x))
    optimizer.step()
    return loss_of(model, x[taken], y[taken]) if taken.any() else None, int(taken.sum())


def shape_of(f, index, name):
    """What another node shows of this one."""
    return next(row for row in f.nodes[index].json("/v1/fleet")["nodes"] if row["name"] == name)


@unittest.skipIf(torch is None, "not installed: python3-torch")
class Claims(AttachTest):
    def attach(self, f, index, **options):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        return model, optimizer, sgp.attach(model, optimizer, name=self.path(f, index), timeout=fleet.PATIENCE, **options)

    def train(self, f, steps, claims=((3, 1e-5), (3, 1e-5)), then=None, **options):
        """Two programs of DP-SGD, each on its half of the rows. `then(index, node)` is called after the steps, still attached. What
        each has returned; the models."""
        models = [None, None]

        def act(index):
            models[index], optimizer, node = self.attach(f, index, **options)
            draw = torch.Generator()
            draw.seed()  # of the operating system, not node.seed, which all nodes know
            x, y = (part[index::2] for part in rows())
            with node:
                if claims[index] is not None:
                    node.privacy(*claims[index], **CLAIM)
                for _ in range(steps):
                    loss, count = private_step(models[index], optimizer, x, y, draw, **CLAIM)
                    node.mix(loss=loss, rows=count)
                node.report(test_accuracy=0.75, test_loss=0.5)
                return then(index, node) if then else None
        return self.each(2, act), models

    def test_a_row_adds_no_more_than_the_clip(self):
        model, (x, y) = network(), rows(8)
        lengths = [float(sum(part.pow(2).sum() for part in clipped_sum(model, x[i:i + 1], 100 * y[i:i + 1], 0.25))) ** 0.5 for i in range(8)]
        for length in lengths:
            self.assertAlmostEqual(length, 0.25, delta=1e-6)
        whole = clipped_sum(model, x, y, 1e9)
        (model(x) - y).pow(2).mean(1).sum().backward()
        for sum_, parameter in zip(whole, model.parameters()):
            torch.testing.assert_close(sum_, parameter.grad)

    def test_a_claim_is_shown_and_measures_stay(self):
        f = self.daemons(2, PAIR)

        def look(index, node):
            own, other = f.nodes[index], f.nodes[1 - index]
            f.wait("the claim at the neighbour", lambda: shape_of(f, 1 - index, node.name)["promised"] == "claimed")
            f.wait("the report", lambda: own.status()["test_accuracy"] == 0.75)
            status = own.status()
            header = own.get("/v1/model")[1][:4096].decode("latin-1")
            return status, shape_of(f, 1 - index, node.name), own.get("/metrics")[1].decode(), header, other.name

        results, models = self.train(f, 60, then=look)
        for (status, row, metrics, header, other), node in zip(results, f.nodes):
            self.assertEqual(status["privacy_claim"], {"epsilon": 3, "delta": 1e-5, "noise": 0.5, "chance": 0.1, "clip": 0.25})
            self.assertRegex(status["privacy"], r"^epsilon 3, delta 1e-05, for each row of n\d, as its program claims\. "
                                                r"sgpd cannot verify that")
            self.assertEqual((status["privacy_epsilon"], status["privacy_spent"], status["unlike_privacy"]), (None, False, []))
            self.assertIn("\nsgpd_privacy_claimed_epsilon 3\n", metrics)
            self.assertNotIn("\nsgpd_privacy_epsilon", metrics)
            self.assertIn("epsilon=3 delta=1e-05 noise=0.5 chance=0.1 clip=0.25", node.log())
            self.assertEqual([row[name] for name in ("promised", "promised_epsilon", "promised_delta")], ["claimed", 3, 1e-5])
            # here they are known, and elsewhere they are not
            self.assertGreater(status["samples"], 0)
            self.assertIsNotNone(status["loss"])
            self.assertEqual([row[name] for name in WITHHELD], [None] * len(WITHHELD))
            for name in METRICS:
                self.assertNotIn("\n%s " % name, metrics)
            for tag in ("test_rows", "test_loss", "test_accuracy", "train_loss", "epoch"):
                self.assertNotIn('"%s"' % tag, header)
        torch.testing.assert_close(flat(models[0]), flat(models[1]), rtol=0, atol=1e-3)
        self.assertLess(loss_of(models[0], *rows()), 0.7 * loss_of(network(), *rows()))

    def test_without_a_claim_measures_are_told(self):
        """The same programs as before: what is missing there is seen here."""
        f = self.daemons(2, PAIR)

        def look(index, node):
            f.wait("the report at the neighbour", lambda: shape_of(f, 1 - index, node.name)["test_accuracy"] == 0.75)
            return f.nodes[index].status(), shape_of(f, 1 - index, node.name), f.nodes[index].get("/metrics")[1].decode()

        for status, row, metrics in self.train(f, 10, claims=(None, None), then=look)[0]:
            self.assertEqual((status["privacy"], status["privacy_claim"], row["promised"], row["promised_epsilon"]), (None, None, "none", None))
            for name in ("loss", "test_loss"):
                self.assertIsNotNone(row[name], name)
            for name in METRICS:
                if name not in ("sgpd_epoch",):  # rows were not taken from node.shard()
                    self.assertIn("\n%s " % name, metrics)

    def test_no_number_of_a_claim_falls(self):
        f = self.daemons(2, PAIR)

        def act(index, node):
            if index == 1:
                return
            for epsilon, delta in ((2.5, 1e-5), (3, 1e-6), (0, 0)):
                with self.assertRaisesRegex(sgp.Refused, "n0: this run claims epsilon 3 and delta 1e-05 already, and neither may fall"):
                    node.privacy(epsilon, delta)
                self.assertEqual(f.nodes[0].status()["privacy_claim"]["epsilon"], 3)
            node.privacy(3.5, 1e-5)
            self.assertEqual(f.nodes[0].status()["privacy_claim"], {"epsilon": 3.5, "delta": 1e-5, "noise": None, "chance": None, "clip": None})
            for arguments, options in (((-1, 1e-5), {}), ((3, 1), {}), ((float("nan"), 0), {}), ((4, 1e-5), {"sample_rate": 1.5}),
                                       ((4, 1e-5), {"clip": 0}), ((4, 1e-5), {"noise_multiplier": float("inf")})):
                with self.assertRaises(ValueError):
                    node.privacy(*arguments, **options)
            self.assertEqual(f.nodes[0].log().count("event=claim_refused"), 3)
        self.train(f, 3, then=act)

    def test_a_killed_node_and_another_program_keep_the_claim(self):
        """n0 is killed with its program away. It claims when it is back, and so it does for a program that says nothing."""
        f = self.daemons(2, PAIR, {"train.rounds": "30", "train.checkpoint_seconds": "0"})

        def leave(index):
            """The first program of n0 leaves in mid-run; that of n1 stays to the end."""
            model, optimizer, node = self.attach(f, index)
            draw = torch.Generator()
            draw.seed()
            x, y = (part[index::2] for part in rows())
            node.privacy(3, 1e-5, **CLAIM)
            while not node.stopped:
                loss, count = private_step(model, optimizer, x, y, draw, **CLAIM)
                if index == 0 and node.round == 10:
                    f.nodes[0].get("/v1/checkpoint", "POST")
                    node.detach()
                    f.nodes[0].end(signal.SIGKILL)
                    f.nodes[0].start()
                    status = f.wait("a status after the kill", f.nodes[0].status)
                    self.assertEqual((status["privacy_claim"] or {}).get("epsilon"), 3, status)
                    model, optimizer, node = self.attach(f, 0)  # says nothing
                    self.assertTrue(node.resumed)
                    continue
                node.mix(loss=loss, rows=count)
            name = "n%d" % index
            f.wait("the claim at the neighbour", lambda: shape_of(f, 1 - index, name)["promised"] == "claimed")
            status, row = f.nodes[index].status(), shape_of(f, 1 - index, name)
            self.assertEqual((status["privacy_claim"]["epsilon"], row["promised_epsilon"], row["loss"]), (3, 3, None))
            node.finish()
            node.detach()
        self.each(2, leave)

    def test_a_lost_state_hears_the_claim_again(self):
        """The daemon of n0 loses its state while its program is attached, which says its claim to whoever comes back."""
        f = self.daemons(2, PAIR)

        def act(index, node):
            if index == 0:
                f.nodes[0].end(signal.SIGKILL)
                subprocess.run(["rm", "-r", f.nodes[0].directory], check=True)
                f.nodes[0].start()
                node.mix()
                self.assertEqual(f.nodes[0].status()["privacy_claim"]["epsilon"], 3)
        self.train(f, 3, then=act)

    def test_a_claim_that_is_refused_after_a_return_ends_the_program(self):
        """Else it would train on, and its losses would leave a node that claims nothing any more."""
        f = self.daemons(2, PAIR)

        def act(index, node):
            if index == 0:
                f.nodes[0].end(signal.SIGKILL)
                subprocess.run(["rm", "-r", f.nodes[0].directory], check=True)
                with open(f.nodes[0].configuration, "a", encoding="utf-8") as file:
                    file.write("[train]\nstop_at_accuracy = 0.9\n")
                f.nodes[0].start()
                with self.assertRaisesRegex(sgp.Refused, r"n0\.conf:\d+: .* remove \[train\] stop_at_accuracy"):
                    node.mix(loss=1.0)
                self.assertIsNone(f.nodes[0].status()["privacy_claim"])
        self.train(f, 3, then=act)

    def test_another_run_begins_without_a_claim(self):
        f = self.daemons(2, PAIR)
        self.train(f, 5)
        told = [f.nodes[i].status()["privacy_claim"]["epsilon"] for i in range(2)]
        self.assertEqual(told, [3, 3])
        results, _ = self.train(f, 5, claims=(None, (1, 1e-6)), fresh=True, then=lambda i, node: f.nodes[i].status())
        self.assertIsNone(results[0]["privacy_claim"])
        self.assertEqual(results[1]["privacy_claim"]["epsilon"], 1, "less than before, in another run")
        for node in f.nodes:
            self.assertTrue(os.path.exists(os.path.join(node.directory, "run-1", "claim")))

    def test_unequal_claims_are_shown(self):
        f = self.daemons(2, PAIR)

        def look(index, node):
            f.wait("the difference", lambda: f.nodes[index].status()["unlike_privacy"])
            done = subprocess.run([SGPCTL, "-s", f.nodes[index].socket, "status", "--check"], text=True, capture_output=True,
                                  timeout=fleet.PATIENCE, check=False)
            return f.nodes[index].status()["unlike_privacy"], done.returncode, done.stdout
        for claims in (((3, 1e-5), (4, 1e-5)), ((4, 1e-6), (4, 1e-5)), ((5, 1e-5), None)):
            results, _ = self.train(f, 2, claims=claims, fresh=True, then=look)
            for index, (names, code, said) in enumerate(results):
                self.assertEqual((names, code), (["n%d" % (1 - index)], 0), said)
                self.assertIn("\nnote: the privacy of its rows is promised unlike that of n%d\n" % (1 - index), said)

    def test_a_goal_of_accuracy_is_refused(self):
        """The accuracy of this node's rows would stop others, whatever it claims."""
        f = self.daemons(2, PAIR, {"train.stop_at_accuracy": "0.9"})

        def act(index):
            _, _, node = self.attach(f, index)
            with node:
                with self.assertRaisesRegex(sgp.Refused, r"n%d\.conf:\d+: .* remove \[train\] stop_at_accuracy" % index):
                    node.privacy(3, 1e-5)
                self.assertIsNone(f.nodes[index].status()["privacy_claim"])
        self.each(2, act)

    def test_a_damaged_claim_is_an_error_at_the_start(self):
        f = self.daemons(2, PAIR)
        self.train(f, 5)
        node = f.nodes[0]
        node.end()
        path = os.path.join(node.directory, "claim")
        with open(path, "w", encoding="ascii") as file:
            file.write("epsilon=3 delta=\n")
        node.start()
        self.assertNotEqual(node.process.wait(fleet.PATIENCE), 0)
        self.assertIn("claim: damaged, so what this run claims of privacy is unknown", node.log())
        self.assertIn("remove the file, and let the program claim again", node.log())

    def test_a_section_and_a_program_do_not_go_together(self):
        f = self.daemons(2, PAIR)
        f.nodes[0].end()
        f.write_configuration(0, {"model.kind": "attached", "model.layers": None, "privacy.epsilon": "3", "train.epochs": None}, {})
        status, said = f.check()
        self.assertNotEqual(status, 0)
        self.assertIn("node.privacy()", said)


class Hostile(AttachTest):
    def test_what_is_no_claim_is_refused_and_the_program_stays(self):
        f = self.daemons(2, PAIR)
        raw = [Program(self.path(f, i), [0.0, 0.0]) for i in range(2)]
        for program in raw:
            self.addCleanup(program.close)
            program.take()
        for turn, text in enumerate((b"", b"epsilon=3", b"epsilon=1e999 delta=0", b"epsilon=3 delta=1e-5 loss=0.5",
                                     b"epsilon=3 delta=1e-5\nevent=forged", b"\xff" * 300, b"epsilon=" + b"1" * 300), 1):
            raw[0].send(PRIVACY, turn=turn, text=text)
            answer = raw[0].receive()
            self.assertEqual((answer["type"], answer["turn"]), (CLAIMED, turn))
            self.assertLess(answer["code"], 0)
            self.assertIn("a claim of privacy", answer["text"])
        self.assertIsNone(f.nodes[0].status()["privacy_claim"])
        self.assertNotIn("\nevent=forged", f.nodes[0].log())
        raw[0].send(PRIVACY, turn=9, text=b"epsilon=0 delta=0")
        self.assertEqual(raw[0].receive()["code"], 0)
        self.assertEqual(f.nodes[0].status()["privacy_claim"], {"epsilon": 0, "delta": 0, "noise": None, "chance": None, "clip": None})


class Wire(AttachTest):
    """All that n0 says to n1, byte by byte, while its program tells its daemon of its rows in every way that there is."""

    LOSS, TEST_LOSS, ACCURACY, EPOCH, ROWS = 0.123456789, 0.345678912, 0.876543219, 17.6543219, 3123456789

    def spoken(self, claim):
        lines = [Recorder(0), Recorder(1)]  # n0 dials n1, and is dialled by it
        for line in lines:
            self.addCleanup(line.close)
        f = self.fleet(2, phases=PAIR, dial={(0, 1): lines[0].port, (1, 0): lines[1].port}, own={i: {"control.attach": "n%d.attach" % i} for i in range(2)}, options={
            "model.kind": "attached", "model.layers": None, "data.train": None, "data.label": None, "data.classes": None,
            "data.holdout": None, "train.epochs": None, "train.batch": None, "optimizer.learning_rate": None, "train.rounds": "12"})
        lines[0].target_port, lines[1].target_port = f.ports[1], f.ports[0]
        f.start()
        raw = [Program(self.path(f, i), [0.5, 0.25]) for i in range(2)]
        for program in raw:
            self.addCleanup(program.close)
        for program in raw:
            program.take()
        if claim:
            raw[0].send(PRIVACY, turn=1, text=b"epsilon=3 delta=1e-05 noise=1.2345678 chance=0.0345678 clip=2.3456789")
            self.assertEqual(raw[0].receive()["code"], 0)
        for number in range(12):
            for i, program in enumerate(raw):
                tells = {"rows": self.ROWS, "loss": self.LOSS, "epoch": self.EPOCH} if i == 0 else {"rows": 1, "loss": NAN}
                program.z = [value + 0.125 for value in program.z]
                program.done(**tells)
            raw[0].send(9, test_loss=self.TEST_LOSS, test_accuracy=self.ACCURACY, epoch=self.EPOCH)  # REPORT
            if number == 5:  # in mid-run
                f.wait("the figures here", lambda: f.nodes[0].status()["test_accuracy"] == self.ACCURACY)
                version = f.wait("a row at the neighbour", lambda: shape_of(f, 1, "n0")["age"] is not None and shape_of(f, 1, "n0"))["uptime_seconds"]
                f.wait("a later row there", lambda: shape_of(f, 1, "n0")["uptime_seconds"] > version)
                self.assertIn("error", f.nodes[1].json("/v1/evaluate/fleet", "POST"), "programs tell no reports")
            for program in raw:
                program.take()
        self.each(2, lambda i: raw[i].finish())
        f.wait("n0's end at its neighbour", lambda: shape_of(f, 1, "n0")["state"] == "finished")
        status = f.nodes[0].status()
        self.assertEqual((status["loss"], status["test_loss"], status["test_accuracy"], status["samples"]),
                         (self.LOSS, self.TEST_LOSS, self.ACCURACY, 12 * self.ROWS))
        for node in f.nodes:
            node.end()
        streams = [stream for line in lines for stream in line.streams]
        return b"".join(bytes(stream) for stream in streams), [frame for stream in streams for frame in frames(stream)]

    def needles(self):
        """Each figure as text, and as each kind of number that a message may have."""
        found = {}
        for name in ("LOSS", "TEST_LOSS", "ACCURACY", "EPOCH"):
            value = getattr(self, name)
            found.update({f"{name} as text": str(value).encode()[:7], **{f"{name} as {form}": struct.pack(form, value) for form in ("<d", ">d", "<f", ">f")}})
        for count in [self.ROWS * k for k in range(1, 13)]:
            found.update({f"{count} as text": b"%d" % count, f"{count} as <q": struct.pack("<q", count), f"{count} as >q": struct.pack(">q", count)})
        found.update({f"rows as {form}": struct.pack(form, self.ROWS) for form in ("<I", ">I")})
        found.update({"noise": b"1.2345678", "chance": b"0.0345678", "clip": b"2.3456789"})
        return found

    def test_a_claim_keeps_losses_accuracy_and_rows_on_the_machine(self):
        said, all_frames = self.spoken(claim=True)
        self.assertEqual([what for what, needle in self.needles().items() if needle in said], [])
        kinds = {kind for kind, _ in all_frames}
        self.assertLessEqual(kinds, {peer.HELLO, peer.WELCOME, peer.BEAT, peer.CREDIT, peer.ACK, peer.SHARE, peer.ESTIMATE, peer.GOODBYE, peer.CHUNK, peer.PULL, peer.BULLETIN,
                                     peer.SUMMARY, peer.ROW})
        told = [words for words in (peer.meant(kind, body)[2].split() for kind, body in all_frames if kind == peer.ROW
                                    and peer.meant(kind, body)[0] == "n0")]
        self.assertTrue(told)
        for words in told:  # the form, then the fields of lib/fleet/row.c
            figures = [words[i] for i in (5, 6, 7, 8, 12)]
            if words[21] != "3":  # of before the claim, when there was no step
                figures = [figure.replace("0", "-") for figure in figures]
            self.assertEqual(figures, ["-"] * 5, words)
        self.assertEqual(told[-1][21:], ["3", "3", "1e-05"])

    def test_without_one_the_same_search_finds_them(self):
        said, _ = self.spoken(claim=False)
        found = [what for what, needle in self.needles().items() if needle in said]
        for what in ("LOSS as text", "TEST_LOSS as text", "ACCURACY as text", "EPOCH as text"):
            self.assertIn(what, found)


if __name__ == "__main__":
    fleet.take_sgpd()
    SGPCTL = sys.argv.pop(1)
    fleet.tap.run_cases(sys.argv[1:])
