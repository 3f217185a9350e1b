# SPDX-License-Identifier: Apache-2.0
"""The fleet behind scripts/demo: N daemons on loopback that train one model on Fashion-MNIST.

It writes a topology and N configurations into a temporary directory, starts build/daemon/sgpd N times,
shows a live table from their control sockets, waits until all have finished, and recomputes how far
apart their models are from the models that they export.
"""
import sys
import time

from demo_nodes import Failure, disagreement_of, parser_of, perform, start_nodes

DATA = "/usr/share/datasets/fashion-mnist"
TRAIN_ROWS = 60000
STALL_SECONDS = 120  # the demo gives up when no node made progress for so long
TABLE_SECONDS = 1.0  # how often the table is drawn on a terminal; elsewhere five times slower


def configuration(options):
    """Of each node, beside its place."""
    return f"""\
[train]
algorithm = sgp
start = all
epochs = {options.epochs}
batch = {options.batch}
threads = 1
seed = 1
when_done = serve
[model]
layers = {options.layers}
loss = cross-entropy
[data]
train = {DATA}/train-images-idx3-ubyte.gz
labels = {DATA}/train-labels-idx1-ubyte.gz
test = {DATA}/t10k-images-idx3-ubyte.gz
test_labels = {DATA}/t10k-labels-idx1-ubyte.gz
shards = {options.shards}
[optimizer]
kind = nesterov
learning_rate = 0.05
momentum = 0.9
weight_decay = 1e-4
schedule = cosine
warmup_epochs = 1
"""


def parse_arguments():
    parser = parser_of("scripts/demo", "Train one model on several sgpd on this machine.", "one-peer-exponential")
    parser.set_defaults(topology="one-peer-exponential")
    parser.add_argument("--epochs", type=int, default=10, metavar="E",
                        help="passes of each node over its own rows (10)")
    parser.add_argument("--batch", type=int, default=32, metavar="B", help="rows per step and node (32)")
    parser.add_argument("--layers", default="dense 128 relu, dense 10", metavar="TEXT",
                        help="of the model, as [model] layers has them (dense 128 relu, dense 10)")
    parser.add_argument("--shards", default="round-robin", metavar="KIND",
                        help="round-robin, contiguous, sorted or dirichlet:A; sorted gives each node "
                        "rows of a few labels only (round-robin)")
    arguments = parser.parse_args()
    if min(arguments.nodes, arguments.epochs, arguments.batch) < 1:
        parser.error("--nodes, --epochs and --batch begin at 1")
    return arguments


def format_row(status, target_samples):
    """One node's cells of the table."""
    def number(key, form):
        value = status.get(key)
        return "-" if value is None else format(value, form)

    progress = min(1.0, status.get("samples", 0) / target_samples)
    return (f"{status.get('state', 'starting'):<10}{number('round', 'd'):>7}{number('loss', '.4f'):>9}"
            f"{number('test_accuracy', '.4f'):>10}{number('weight', '.4f'):>9}"
            f"{number('disagreement', '.1e'):>10}{number('samples_per_second', '.0f'):>10}"
            f"{progress:>9.0%}")


class Table:
    """The live table: redrawn in place on a terminal, a block now and then elsewhere."""

    HEADER = (f"{'node':<8}{'state':<10}{'round':>7}{'loss':>9}{'test acc':>10}{'weight':>9}"
              f"{'disagree':>10}{'rows/s':>10}{'done':>9}")

    def __init__(self, target_samples):
        self.target_samples = target_samples
        self.terminal = sys.stdout.isatty()
        self.drawn = 0
        self.next_time = 0.0
        self.start = time.monotonic()

    def draw(self, nodes, force=False):
        now = time.monotonic()
        if now < self.next_time and not force:
            return
        self.next_time = now + TABLE_SECONDS * (1 if self.terminal else 5)
        lines = [self.HEADER]
        lines += [f"{node.name:<8}{format_row(node.status, self.target_samples)}" for node in nodes]
        lines.append(self.time_left(nodes, now - self.start))
        if self.terminal and self.drawn:
            print(f"\033[{self.drawn}A", end="")
        print("\n".join(line + ("\033[K" if self.terminal else "") for line in lines), flush=True)
        self.drawn = len(lines)

    def time_left(self, nodes, elapsed):
        slowest = min(node.status.get("samples", 0) for node in nodes) / self.target_samples
        if slowest <= 0:
            return f"{elapsed:.0f} s"
        return f"{elapsed:.0f} s, about {max(0.0, elapsed / slowest - elapsed):.0f} s left"


def watch(nodes, table):
    """Refresh and draw until every node has finished and nothing is in flight."""
    progress, moved = None, time.monotonic()
    while True:
        for node in nodes:
            node.refresh()
        table.draw(nodes)
        if all(node.status.get("state") == "finished" and node.status["weight_in_flight"] == 0
               for node in nodes):
            for node in nodes:  # of one moment: nothing moves any more
                node.refresh()
            table.draw(nodes, force=True)
            return
        now = [(node.status.get("state"), node.status.get("round")) for node in nodes]
        if now != progress:
            progress, moved = now, time.monotonic()
        elif time.monotonic() - moved > STALL_SECONDS:
            raise Failure(f"no node made progress for {STALL_SECONDS} s")
        time.sleep(0.25)


def run(arguments, directory, started):
    """The demo itself; returns the summary."""
    start = time.monotonic()
    nodes = start_nodes(arguments, directory, configuration(arguments), started)
    alone = "each alone" if arguments.isolated else f"on {arguments.topology}"
    print(f"{len(nodes)} nodes {alone}, {TRAIN_ROWS} rows of Fashion-MNIST dealt {arguments.shards}, "
          f"{arguments.epochs} epochs; files in {directory}", flush=True)
    watch(nodes, Table(arguments.epochs * (TRAIN_ROWS // len(nodes))))
    summary = {
        "nodes": len(nodes),
        "seconds": round(time.monotonic() - start, 3),
        "rounds": max(node.status["round"] for node in nodes),
        "test_accuracy": [node.status["test_accuracy"] for node in nodes],
        "disagreement": disagreement_of(nodes, directory),
        "total_weight": sum(node.status["weight"] for node in nodes),
    }
    show(summary)
    return summary


def show(summary):
    accuracy = summary["test_accuracy"]
    print(f"\nAll {summary['nodes']} nodes finished after {summary['rounds']} rounds, "
          f"{summary['seconds']:.1f} s.")
    print(f"Test accuracy on 10,000 images: {min(accuracy):.4f} to {max(accuracy):.4f}")
    print(f"Disagreement of the exported models: {summary['disagreement']:.2e}")
    print(f"Total weight: {summary['total_weight']:.12f}")


if __name__ == "__main__":
    sys.exit(perform(parse_arguments(), run))
