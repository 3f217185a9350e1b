# SPDX-License-Identifier: Apache-2.0
"""Outer steps with real daemons, beside one node whose rule of steps is the outer step's.

Each node takes one step of `sgd` with all its rows, so the mean of their changes is a step of one node with all rows. An outer
step of rate 1 is then a step with momentum: `slowmo` that of `momentum`, and `nesterov` that of `nesterov` (sgp/outer.h)."""
import re

import fleet
from fleet import Fleet, FleetTest
from owned import Owned

ROWS, ROUNDS = 400, 150
OPTIONS = {"train.epochs": None, "data.holdout": None, "optimizer.kind": "sgd"}
RULES = {"slowmo": "momentum", "nesterov": "nesterov"}
MOMENTUM = "0.9"
CLOSE = 1e-5  # of the longest parameter
HALF_A_STEP = 3e-3  # at round 30 or later; without the momentum from before, 0.018 or more


def outer(kind):
    return {"outer.kind": kind, "outer.learning_rate": "1", "outer.momentum": MOMENTUM}


class Exact(Fleet):
    """Each gives to all others, and takes an outer step after it."""

    def says(self):
        return "  outer=true;\n"


class Outer(FleetTest):
    def opened(self, f):
        self.fleets = getattr(self, "fleets", []) + [f]
        self.addCleanup(f.close)
        return f

    def pooled(self, rounds, **options):
        """The model of one node with all rows."""
        f = self.fleet(1, phases=[[]], rows=ROWS,
                       options={**OPTIONS, "train.rounds": str(rounds), "train.batch": str(ROWS), **options})
        f.start()
        f.wait_state("finished")
        model = fleet.read_model(f.nodes[0].get("/v1/model")[1])
        f.close()
        return model

    def distance(self, model, other):
        return max(abs(a - b) for a, b in zip(model, other)) / max(map(abs, other))

    def owned(self, kind):
        return self.opened(Owned(5, rows=ROWS, says=("outer=true",), **{
            **OPTIONS, "train.rounds": str(ROUNDS), "train.batch": str(ROWS // 4), **outer(kind)}))

    def model_of(self, f):
        f.wait_state("finished")
        models = [fleet.read_model(node.get("/v1/model")[1]) for node in f.nodes]
        for model in models:
            self.assertEqual(model, models[0])
        return models[0]

    def test_an_owner_takes_the_steps_of_one_node_with_momentum(self):
        for kind, rule in RULES.items():
            with self.subTest(kind=kind):
                f = self.owned(kind)
                f.start()
                model = self.model_of(f)
                self.assertEqual([f.nodes[i].status()["weight"] for i in range(5)], [1, 0, 0, 0, 0])
                f.close()
                pooled = self.pooled(ROUNDS, **{"optimizer.kind": rule, "optimizer.momentum": MOMENTUM})
                self.assertLessEqual(self.distance(model, pooled), CLOSE)
                self.assertGreater(self.distance(self.pooled(ROUNDS), pooled), 0.1)

    def test_an_owner_that_is_started_again_goes_on_with_its_outer_steps(self):
        """It closes no step under the label that it skips, so it takes one step fewer. If it has accepted the updates of some
        workers under that label, these are in the parameters, and the others come with the next step. Such a stop is rare: one
        of a few runs must be without."""
        momentum = {"optimizer.kind": "momentum", "optimizer.momentum": MOMENTUM}
        pooled = self.pooled(ROUNDS - 1, **momentum)
        distance = 1
        for _ in range(6):
            distance = self.distance(self.restarted(), pooled)
            self.assertLessEqual(distance, HALF_A_STEP)
            if distance <= CLOSE:
                break
        self.assertLessEqual(distance, CLOSE)

    def restarted(self):
        """The model of a fleet whose owner was stopped and started."""
        f = self.owned("slowmo")
        f.start()
        f.wait_round(0, 30)
        self.assertEqual(f.nodes[0].end(), 0, f.nodes[0].log())
        f.nodes[0].start()
        f.wait_log(0, "parameters=exact")
        model = self.model_of(f)
        f.close()
        return model

    def test_nodes_that_average_exactly_take_the_same_steps(self):
        edges = [(i, j) for i in range(4) for j in range(4) if i != j]
        f = self.opened(Exact(4, phases=[edges], rows=ROWS, options={
            **OPTIONS, "train.rounds": str(ROUNDS), "train.batch": str(ROWS // 4), **outer("nesterov")}))
        f.start()
        f.wait_state("finished")
        model = fleet.read_model(f.nodes[0].get("/v1/model")[1])
        f.close()
        pooled = self.pooled(ROUNDS, **{"optimizer.kind": "nesterov", "optimizer.momentum": MOMENTUM})
        self.assertLessEqual(self.distance(model, pooled), CLOSE)

    def warned(self, steps, rounds, momentum, **options):
        """What --check warns of: so many steps between outer steps of a momentum, and so many of these."""
        edges = [(i, j) for i in range(4) for j in range(4) if i != j]
        f = self.opened(Exact(4, phases=[edges], rows=ROWS, options={
            **OPTIONS, "optimizer.kind": "nesterov", "train.local_steps": str(steps), "train.rounds": str(rounds),
            "optimizer.schedule": "cosine", **outer("slowmo"), "outer.momentum": momentum, **options}))
        status, said = f.check()
        self.assertEqual(status, 0, said)
        return re.findall(r"(?m)^warning: \S+:\d+: \[o\w+\] \w+: (.*)$", said)

    def test_check_warns_of_outer_steps_that_overshoot(self):
        said = "0.7 every 7 steps overshoots with the momentum of [optimizer], and can raise the loss; write momentum = 0.48, " \
               "or more local_steps"
        self.assertEqual(self.warned(7, 100, "0.7"), [said])
        self.assertEqual(self.warned(7, 100, "0.48"), [])
        self.assertEqual(self.warned(32, 100, "0.7"), [])
        self.assertEqual(self.warned(7, 100, "0.7", **{"optimizer.kind": "sgd"}), [])
        self.assertEqual(self.warned(7, 100, "0.7", **{"outer.kind": "nesterov"}), [])
        self.assertIn("write momentum = 0, ", self.warned(1, 100, "0.7", **{"optimizer.kind": "adamw"})[0])

    def test_check_warns_of_runs_that_are_too_short_for_the_outer_momentum(self):
        said = "a run of 20 outer steps is too short for 0.8, which can raise the loss; write momentum = 0.75, or train for longer"
        self.assertEqual(self.warned(64, 20, "0.8"), [said])
        self.assertEqual(self.warned(64, 20, "0.75"), [])
        self.assertEqual(self.warned(64, 25, "0.8"), [])

    def test_check_warns_of_outer_steps_at_a_constant_rate(self):
        constant = {"optimizer.schedule": "constant"}
        said = "outer steps multiply the constant learning rate by 2, which can raise the loss; write schedule = cosine"
        self.assertEqual(self.warned(32, 100, "0.5", **constant), [said])
        self.assertEqual(self.warned(32, 100, "0.5"), [])
        self.assertEqual(self.warned(32, 100, "0.3", **constant), [])
        self.assertEqual(self.warned(32, 100, "0.5", **{**constant, "optimizer.kind": "sgd"}), [])


if __name__ == "__main__":
    fleet.main()
