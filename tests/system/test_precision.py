# SPDX-License-Identifier: Apache-2.0
"""Mixed precision through real daemons: steps that a gradient scaler leaves out on one node, the example, and a
configuration that asks for bf16."""
import os
import re
import subprocess
import sys
import unittest

import fleet
from attached import AttachTest, flat, loss_of, network, rows, sgp, torch
from scaler import Scaler

PAIR = [[(0, 1), (1, 0)]]
STEPS, RATE = 24, 0.2
OVERFLOWS = {0, 1, 7, 8, 9, 20}  # of n1
EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/precision/train.py")
IMAGES = "/usr/share/datasets/fashion-mnist"


def grad_scaler(**options):
    """PyTorch's, by the name that it has since 2.3, or the one before, of which newer versions warn."""
    return (getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler)(**options)


@unittest.skipIf(torch is None, "not installed: python3-torch")
class Scaled(AttachTest):
    def train(self, phases, n, wrapped=False, scaler_of=None, device="cpu", times=1):
        """Each node takes STEPS steps on rows of its own, by a loop as for torch.amp.GradScaler: its model, its
        count of steps left out, and the fleet. The loss is so many times what it is, and the rate a part of what it is."""
        f = self.daemons(n, phases)

        def act(i):
            model = network().to(device)
            optimizer = torch.optim.SGD(model.parameters(), lr=RATE / times)
            scaler = scaler_of(i) if scaler_of else Scaler(OVERFLOWS if i == 1 else ())
            x, y = (part[i::n].to(device) for part in rows())
            with sgp.attach(model, optimizer, scaler=scaler, name=self.path(f, i), rounds=STEPS,
                            timeout=fleet.PATIENCE) as node:
                if wrapped:
                    sgp.wrap(optimizer, node)
                while not node.stopped:
                    optimizer.zero_grad()
                    loss = times * (model(x) - y).pow(2).mean()
                    scaler.scale(loss).backward()
                    scaler.step(optimizer)
                    scaler.update()
                    if not wrapped:
                        node.mix(loss=loss, rows=len(x))
                skipped = node.skipped_steps
            return model, skipped
        return f, self.each(n, act)

    def in_one_process(self):
        """The model that both of a pair have in the end, in PyTorch alone: after each step the mean of the two."""
        models = [network() for _ in range(2)]
        for number in range(STEPS):
            for i, model in enumerate(models):
                x, y = (part[i::2] for part in rows())
                model.zero_grad()
                (model(x) - y).pow(2).mean().backward()
                if i == 0 or number not in OVERFLOWS:
                    with torch.no_grad():
                        for p in model.parameters():
                            p -= RATE * p.grad
            mean = (flat(models[0]) + flat(models[1])) / 2
            for model in models:
                torch.nn.utils.vector_to_parameters(mean.clone(), model.parameters())
        return flat(models[0])

    def expect_whole(self, f, results):
        """All have taken part in every round, what was left out is counted, and the weight is all there."""
        n = len(results)
        statuses = [node.status() for node in f.nodes]
        self.assertEqual([status["program"]["overflows"] for status in statuses], [skipped for _, skipped in results])
        self.assertTrue(all(status["round"] >= STEPS for status in statuses), statuses)
        self.assertEqual(len({status["round"] for status in statuses}), 1)
        self.assertAlmostEqual(sum(s["weight"] + s["weight_in_flight"] for s in statuses), n, delta=1e-12)
        self.assertEqual([status["weight_unknown"] for status in statuses], [0] * n)
        self.assertEqual([status["same_updates"] for status in statuses], [[]] * n)

    def test_steps_left_out_are_steps_of_their_rounds(self):
        """The loop mixes, or the optimiser that was wrapped: either way as a process that leaves out the same steps."""
        expected = self.in_one_process()
        for wrapped in (False, True):
            f, results = self.train(PAIR, 2, wrapped)
            self.assertEqual([skipped for _, skipped in results], [0, len(OVERFLOWS)])
            for model, _ in results:
                torch.testing.assert_close(flat(model), expected, rtol=1e-5, atol=1e-6)
            self.expect_whole(f, results)

    def test_weights_that_differ(self):
        """Each of four gives to two in turn, and n1 leaves out steps."""
        f, results = self.train([[(0, 1), (1, 2), (2, 3), (3, 0)], [(0, 2), (1, 3), (2, 0), (3, 1)]], 4)
        self.assertEqual([skipped for _, skipped in results], [0, len(OVERFLOWS), 0, 0])
        first = flat(results[0][0])
        self.assertTrue(bool(first.isfinite().all()))
        for model, _ in results[1:]:
            torch.testing.assert_close(flat(model), first, rtol=1e-4, atol=1e-5)
        self.assertLess(loss_of(results[0][0], *rows()), 0.5 * loss_of(network(), *rows()))
        self.expect_whole(f, results)

    def test_every_node_leaves_out_its_first_steps(self):
        """As a scale that is too large at first: equal updates of zero are no likeness."""
        f, results = self.train(PAIR, 2, scaler_of=lambda _: Scaler(range(12)))
        self.assertEqual([skipped for _, skipped in results], [12, 12])
        for node in f.nodes:
            self.assertNotIn("event=same_updates", node.log())
        self.expect_whole(f, results)

    @unittest.skipUnless(torch is not None and torch.cuda.is_available(), "no GPU that PyTorch can use")
    def test_the_scaler_of_pytorch(self):
        """Its first scale overflows with the gradient of the mean, which is `times`, and falls until it does not."""
        f, results = self.train(PAIR, 2, device="cuda", times=2 ** 12,
                                scaler_of=lambda _: grad_scaler(init_scale=2.0 ** 120))
        for _, skipped in results:
            self.assertGreater(skipped, 0)
            self.assertLess(skipped, STEPS)
        self.expect_whole(f, results)

    @unittest.skipUnless(os.path.exists(IMAGES), "not installed: dataset-fashion-mnist")
    def test_the_example(self):
        f = self.daemons(2, PAIR)
        programs = [subprocess.Popen([sys.executable, EXAMPLE, "--epochs", "1", "--rows", "2560"], text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     env={**os.environ, "SGP_SOCKET": self.path(f, i), "OMP_NUM_THREADS": "1"})
                    for i in range(2)]
        for program in programs:
            self.addCleanup(program.wait)
            self.addCleanup(program.kill)
        said = [program.communicate(timeout=4 * fleet.PATIENCE)[0] for program in programs]
        self.assertEqual([program.returncode for program in programs], [0, 0], said)
        results = [re.search(r"n(\d): (cuda|cpu), (\d+) steps left out, test accuracy (0\.\d+)\n$", text)
                   for text in said]
        self.assertTrue(all(results), said)
        self.assertEqual([result.group(1) for result in results], ["0", "1"])
        self.assertEqual(results[0].group(4), results[1].group(4), "one model")
        self.assertGreater(float(results[0].group(4)), 0.6)
        for node in f.nodes:
            self.assertEqual(node.status()["samples"], 1280)
        self.assertAlmostEqual(sum(node.status()["weight"] for node in f.nodes), 2, delta=1e-12)


class Configured(fleet.FleetTest):
    def test_bf16_is_refused_where_it_cannot_run(self):
        """One line, which says why and what to write instead. Where it runs, nodes of unlike precision train together."""
        f = self.fleet(2, phases=PAIR, own={1: {"train.precision": "bf16"}})
        checked = subprocess.run([fleet.SGPD, "--check", "-c", f.nodes[1].configuration], text=True,
                                 capture_output=True, check=False)
        if checked.returncode == 0:
            self.assertIn("precision  products of bf16 operands", checked.stdout)
            f.start()
            f.wait("both to finish", lambda: all((n.status() or {}).get("state") == "finished" for n in f.nodes))
            self.assertEqual([node.status()["mismatch"] for node in f.nodes], [[], []])
            return
        self.assertEqual(checked.returncode, 6)
        self.assertRegex(checked.stderr, r"^\S*n1.conf:\d+: \[train\] precision: bf16 cannot run here: .+; "
                                         r"write precision = float32\n$|^sgpd: .*precision = float32\n$")


fleet.main()
