#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Seconds to a test accuracy on Fashion-MNIST, in turn with PyTorch's DistributedDataParallel over gloo.
Both have the same MLP 784-128-10, rows, batch, rule, rate and schedule.

The accuracy is 85% and 88% over loopback, and over links of 1 Gbit/s and 100 Mbit/s.
It is the same with one node that has a quarter of the others' processor time.
It is 80% with 20 ms of delay each way, where PyTorch would need minutes for more.
Each run has its own seed, the same for both, or the next if it ended short of the goal.
Both count from the first step, and test on the 10,000 test rows at the end of every epoch.
Rank 0 of PyTorch does so once, and each daemon by itself.
A daemon fleet reaches the goal when its last node does.
Beside the same settings are those that docs/CONFIGURATION.md recommends for the case.
They are another algorithm: 16 steps between exchanges, or asynchronous gossip.
The latter has smaller batches, and shares of the work in proportion to the speed.
PyTorch makes one exchange a step.
Its own averaging of models, which needs code of its user, is not measured.
"""
import csv
import functools
import itertools
import json
import os

import figures
import fleet as fleets
import links
import quota
from contenders import torch_python

GOALS = (0.85, 0.88)
BATCH, EPOCHS, RATE, HIDDEN = 512, 12, 0.2, 128  # the batch of the whole fleet
PATIENCE = 600.0
LOOK = 0.5  # seconds between two looks at the histories, which take the processor from the daemons
TRIES = 3  # at one run
# What docs/CONFIGURATION.md recommends for slow links and for uneven machines.
THIN = {"train.local_steps": "16", "train.epochs": str(2 * EPOCHS)}
UNEVEN = {"train.algorithm": "agp", "train.batch": "64", "optimizer.learning_rate": "0.05"}
UNEVEN_EPOCHS = (32, 32, 32, 8)  # in proportion to the processor time:
SHARES = (0.4, 0.4, 0.4, 0.1)  # of a core
RATES = {10**9: "1 Gbit/s", 10**8: "100 Mbit/s"}
DELAY, DELAY_GOALS = 0.02, (0.8,)  # seconds each way; PyTorch would need four minutes to 88%


class Place:
    """Where a fleet of either kind runs: over loopback, or between hosts; in groups that limit its
    processor time, or not."""

    def __init__(self, hosts=False, groups=()):
        self.fleet = links.switch.Hosts if hosts else fleets.Fleet
        self.interface = "eth0" if hosts else "lo"
        self.places = links.PLACES if hosts else [{"group": group.path} for group in groups]
        self.groups = groups

    def of(self, nodes):
        return self.places or [{}] * nodes

    def put(self, fleet):
        """The daemons of a fleet that was started into their groups."""
        for node, group in zip(fleet.nodes, self.groups):
            group.write("cgroup.procs", str(node.process.pid))


def reach(history, goal):
    """The seconds at which a history of (seconds, accuracy) first reaches the goal, or None."""
    return next((seconds for seconds, accuracy in history if accuracy >= goal), None)


def reached(histories, goals):
    """The seconds by goal of the last one of these histories."""
    times = {goal: [reach(history, goal) for history in histories] for goal in goals}
    if any(None in values for values in times.values()):
        best = min(max(accuracy for _, accuracy in history) for history in histories)
        raise figures.Skip(f"a run ended at {best:.2%}, short of {goals[-1]:.0%}")
    return {goal: max(values) for goal, values in times.items()}


def ours(options, place, nodes, seed, keys, own=None, goals=GOALS):
    """A fleet of daemons until all have reached the last goal: seconds by goal. `own` are keys by node."""
    fleets.SGPD = os.path.join(options.build, "daemon/sgpd")
    data = {"train": "train-images-idx3-ubyte.gz", "labels": "train-labels-idx1-ubyte.gz",
            "test": "t10k-images-idx3-ubyte.gz", "test_labels": "t10k-labels-idx1-ubyte.gz"}
    fleet = place.fleet(nodes, own=own, options={
        "train.epochs": str(EPOCHS), "train.batch": str(BATCH // nodes),
        "train.seed": str(seed), "model.layers": f"dense {HIDDEN} relu, dense 10",
        **{f"data.{key}": f"{figures.DATA}/{name}" for key, name in data.items()},
        "data.label": None, "data.classes": None, "data.holdout": None, "optimizer.learning_rate": str(RATE),
        "optimizer.momentum": "0.9", "optimizer.weight_decay": "1e-4", "optimizer.schedule": "cosine",
        "optimizer.warmup_epochs": "1", **keys})
    try:
        fleet.start()
        place.put(fleet)
        began = begin(fleet)
        return reached(fleet.wait("all to be there", lambda: ended(fleet, began, goals[-1]), PATIENCE, LOOK), goals)
    finally:
        fleet.close()


def begin(fleet):
    """The uptime at which each node was last seen before it trained, by name: not too late for our own good."""
    joining, began = {}, {}

    def all_began():
        for node in fleet.nodes:
            status = node.status()
            if status and status["state"] == "joining":
                joining[node.name] = status["uptime_seconds"]
            elif status:
                began.setdefault(node.name, joining.get(node.name, 0.0))
        return len(began) == fleet.n

    fleet.wait("all nodes to train", all_began, 240)
    return began


def ended(fleet, began, goal):
    """The histories once each has a row that reaches the goal, or is at its end; else None. A node judges its last
    model after it has finished, and then saves it: the log is read first, so that no row of it is missed."""
    over = ["event=saved" in node.log().partition("state=finished")[2] for node in fleet.nodes]
    histories = [history(node, began[node.name]) for node in fleet.nodes]
    there = [reach(rows, goal) is not None or end for rows, end in zip(histories, over)]
    return histories if all(there) else None


def history(node, began):
    """(seconds since the first round, test accuracy) of a node's epochs. Read at once: of a file that grows
    meanwhile a reader may take the wrong line for the head. There is none before the end of the first epoch."""
    path = os.path.join(node.directory, "history.csv")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    return [(float(row["seconds"]) - began, float(row["test_accuracy"])) for row in csv.DictReader(lines)]


def torch(place, nodes, seed, hook="none", goals=GOALS):
    torch_python()
    settings = {"nodes": nodes, "batch": BATCH // nodes, "epochs": EPOCHS, "seed": seed, "goal": goals[-1],
                "rate": RATE, "hidden": HIDDEN, "data": figures.DATA, "places": place.of(nodes), "hook": hook}
    result = figures.run("/usr/bin/python3", os.path.join(figures.ROOT, "bench/ddp.py"), json.dumps(settings),
                         OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME=place.interface, timeout=PATIENCE)
    return reached([result["history"]], goals)


# ---- the cases ----

PYTORCH, FP16 = "DistributedDataParallel", "DistributedDataParallel, fp16"


def with_next_seed(case, name, contender, seeds, target):
    """Run a contender with its next seed. One that ends short of the goal has no time to compare: the seed after
    it is taken, and the page says so."""
    for _ in range(TRIES):
        seed = next(seeds)
        try:
            return contender(seed)
        except figures.Skip as reason:
            figures.skipped(target, f"{case}, {name}, seed {seed}: {reason}; the next seed was taken")
    raise figures.Skip(f"{case}: {TRIES} seeds in a row ended short of the goal")


def compare(options, case, contenders, pairs, goals=GOALS, target="accuracy"):
    """Let contenders, each a function of a seed, take turns, and tell each pair: (words after the case, ours, the
    baseline)."""
    def take_turns(_):
        results = figures.alternate(options.runs, {
            name: functools.partial(with_next_seed, case, name, contender, itertools.count(1), target)
            for name, contender in contenders.items()})
        for words, mine, theirs in pairs:
            for goal in goals:
                figures.tell(target, f"{case}{words}: to {goal:.0%}", "s",
                             [run[goal] for run in results[mine]], theirs, [run[goal] for run in results[theirs]])

    figures.attempt(target, take_turns, options)


def over_loopback(options):
    for nodes in (4,) if options.quick else (4, 8):
        place = Place()
        compare(options, f"{nodes} nodes over loopback",
                {"same": lambda seed: ours(options, place, nodes, seed, {}),
                 PYTORCH: lambda seed: torch(place, nodes, seed)},
                [("", "same", PYTORCH)])


def over_links(options):
    for rate, name in RATES.items():
        with links.rate(rate):
            place = Place(hosts=True)
            contenders = {"same": lambda seed: ours(options, place, 4, seed, {}),
                          PYTORCH: lambda seed: torch(place, 4, seed),
                          "thin": lambda seed: ours(options, place, 4, seed, THIN)}
            pairs = [(", same settings", "same", PYTORCH), (", settings for slow links", "thin", PYTORCH)]
            if rate == min(RATES):
                contenders[FP16] = lambda seed: torch(place, 4, seed, hook="fp16")
                pairs += [(words, mine, FP16) for words, mine, _ in pairs]
            compare(options, f"4 nodes, links of {name}", contenders, pairs)


def over_uneven_machines(options):
    own = {i: {"train.epochs": str(epochs)} for i, epochs in enumerate(UNEVEN_EPOCHS)}
    with quota.groups(SHARES) as groups:
        place = Place(groups=groups)
        compare(options, f"cores {' '.join(map(str, SHARES))}",
                {"same": lambda seed: ours(options, place, 4, seed, {}),
                 PYTORCH: lambda seed: torch(place, 4, seed),
                 "uneven": lambda seed: ours(options, place, 4, seed, UNEVEN, own)},
                [(", same settings", "same", PYTORCH),
                 (", settings for uneven machines", "uneven", PYTORCH)])


def over_delay(options):
    with links.delay(options, DELAY):
        place = Place(hosts=True)
        goals = DELAY_GOALS
        compare(options, f"4 nodes, {DELAY * 1e3:.0f} ms each way",
                {"same": lambda seed: ours(options, place, 4, seed, {}, goals=goals),
                 PYTORCH: lambda seed: torch(place, 4, seed, goals=goals),
                 "thin": lambda seed: ours(options, place, 4, seed, THIN, goals=goals)},
                [(", same settings", "same", PYTORCH), (", settings for slow links", "thin", PYTORCH)], goals)


def measure(options):
    torch_python()
    if not os.path.exists(figures.DATA):
        raise figures.Skip("Fashion-MNIST is not installed: apt-get install dataset-fashion-mnist")
    for case in (over_loopback, over_links, over_uneven_machines, over_delay):
        figures.attempt("accuracy", case, options)


if __name__ == "__main__":
    figures.main("accuracy", measure, __doc__)
