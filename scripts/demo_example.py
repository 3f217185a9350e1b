# SPDX-License-Identifier: Apache-2.0
"""The fleet behind scripts/demo --example: daemons on loopback, and a program of examples/ attached to each.

Everything lies in a temporary directory. It ends when all programs have, with what they said last, and recomputes how
far apart the daemons' models are."""
import os
import re
import subprocess
import sys
import time

from demo_nodes import ROOT, Failure, disagreement_of, parser_of, perform, start_nodes

CONFIGURATION = """\
[train]
start = all
seed = 1
when_done = serve
[model]
kind = attached
"""
EXAMPLES = os.path.join(ROOT, "examples")
LINE_SECONDS = 5.0


def names():
    return sorted(name for name in os.listdir(EXAMPLES) if os.path.exists(os.path.join(EXAMPLES, name, "train.py")))


def parse_arguments():
    parser = parser_of("scripts/demo --example", "Train a program of examples/ through several sgpd on this machine.",
                       "the example's own", epilog="Other options go to the program: examples/NAME/train.py --help.")
    parser.add_argument("name", choices=names())
    parser.add_argument("--alone", action="store_true", help="no daemon: one program trains alone on all rows")
    arguments, arguments.more = parser.parse_known_args()
    arguments.topology = arguments.topology or os.path.join(EXAMPLES, arguments.name, "fleet.dot")
    return arguments


class Program:
    """A program and what it says."""

    def __init__(self, arguments, log, environment):
        self.log = log
        command = [sys.executable, os.path.join(EXAMPLES, arguments.name, "train.py"), *arguments.more]
        with open(log, "wb") as file:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                                            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **environment})

    def last_line(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
        return lines[-1] if lines else "nothing"

    def ended(self):
        """Whether it has ended well; raises Failure where it has not."""
        status = self.process.poll()
        if status:
            raise Failure(f"{self.log}: the program ended with status {status}; it said: {self.last_line()}")
        return status == 0

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()


def watch(nodes, programs):
    """Until all programs have ended; a line about the fleet now and then."""
    told = time.monotonic()
    while not all([program.ended() for program in programs]):
        time.sleep(0.1)
        if nodes and time.monotonic() - told > LINE_SECONDS:
            told = time.monotonic()
            for node in nodes:
                node.refresh()
            print("  ".join(f"{node.name} round {node.status.get('round') or 0} loss {node.status.get('loss') or 0:.3f}"
                            for node in nodes), flush=True)


def run(arguments, directory, started):
    """Start everything and wait; returns the summary."""
    nodes = [] if arguments.alone else start_nodes(arguments, directory, CONFIGURATION, started)
    start = time.monotonic()
    sockets = {node.name: os.path.join(node.directory, "attach.sock") for node in nodes} or {"alone": ""}
    programs = []
    for name, socket in sockets.items():
        environment = {"SGP_SOCKET": socket, "SGP_NODES": str(len(sockets))}
        programs.append(Program(arguments, os.path.join(directory, name + ".out"), environment))
        started.append(programs[-1])
    watch(nodes, programs)
    said = [program.last_line() for program in programs]
    summary = {"example": arguments.name, "seconds": round(time.monotonic() - start, 1),
               "results": [float(re.search(r"([\d.]+)$", line).group(1)) for line in said]}
    print("\n".join(said))
    for node in nodes:
        node.refresh()
    if nodes:
        summary["nodes"], summary["rounds"] = len(nodes), max(node.status["round"] for node in nodes)
        summary["total_weight"] = sum(node.status["weight"] for node in nodes)
        summary["disagreement"] = disagreement_of(nodes, directory)
        print(f"{len(nodes)} nodes, {summary['rounds']} rounds, {summary['seconds']:.0f} s; disagreement of the "
              f"exported models {summary['disagreement']:.1e}, total weight {summary['total_weight']:.12f}")
    return summary


sys.exit(perform(parse_arguments(), run))
