# SPDX-License-Identifier: Apache-2.0
"""The fleet behind scripts/demo --example: daemons on loopback, and a program of examples/ attached to each.

Everything lies in a temporary directory. It ends when all programs have, with what they said last, and recomputes how
far apart the daemons' models are."""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from demo_fleet import ROOT, Failure, Node, disagreement_of, write_topology

CONFIGURATION = """\
[node]
name = {name}
state_directory = {directory}/{name}
[topology]
file = {directory}/fleet.dot
[train]
start = all
seed = 1
when_done = serve
[model]
kind = attached
[network]
listen = {address}
[control]
socket = {directory}/{name}/control.sock
"""
EXAMPLES = os.path.join(ROOT, "examples")
LINE_SECONDS = 5.0


def names():
    return sorted(name for name in os.listdir(EXAMPLES) if os.path.exists(os.path.join(EXAMPLES, name, "train.py")))


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/demo --example", description="Train a program of examples/ through several sgpd on this machine.",
        epilog="Other options go to the program: examples/NAME/train.py --help.")
    parser.add_argument("name", choices=names())
    parser.add_argument("--topology", metavar="FAMILY|FILE", help="as of scripts/demo (the example's own)")
    parser.add_argument("--nodes", type=int, default=4, metavar="N", help="of a family (4)")
    parser.add_argument("--isolated", action="store_true", help="no edges: each node trains alone on its rows")
    parser.add_argument("--alone", action="store_true", help="no daemon: one program trains alone on all rows")
    parser.add_argument("--keep", action="store_true", help="keep the temporary directory")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
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
            print("  ".join(f"{node.name} round {node.status.get('round', 0)} loss {node.status.get('loss') or 0:.3f}"
                            for node in nodes), flush=True)


def run(arguments, directory, nodes, programs):
    """Start everything and wait; returns the summary. `nodes` and `programs` are filled here, for the caller to stop."""
    if arguments.alone:
        programs.append(Program(arguments, os.path.join(directory, "alone.out"), {"SGP_SOCKET": ""}))
    else:
        for name, address in write_topology(directory, arguments):
            nodes.append(Node(directory, name, address))
    for node in nodes:
        with open(node.configuration, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(name=node.name, directory=directory, address=node.address))
        node.start()
    start = time.monotonic()
    for node in nodes:
        environment = {"SGP_SOCKET": os.path.join(node.directory, "attach.sock"), "SGP_NODES": str(len(nodes))}
        programs.append(Program(arguments, os.path.join(directory, node.name + ".out"), environment))
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
        print(f"{len(nodes)} nodes, {summary['rounds']} rounds, {summary['seconds']:.0f} s; disagreement of the exported "
              f"models {summary['disagreement']:.1e}, total weight {summary['total_weight']:.12f}")
    return summary


def main():
    arguments = parse_arguments()
    directory = tempfile.mkdtemp(prefix="sgpd-example-")
    nodes, programs = [], []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        summary = run(arguments, directory, nodes, programs)
    except Failure as failure:
        print(f"scripts/demo: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nscripts/demo: interrupted", file=sys.stderr)
        return 130
    finally:
        for each in programs + nodes:
            each.stop()
        if arguments.keep:
            print(f"Kept: {directory}")
        else:
            shutil.rmtree(directory)
    if arguments.json:
        print(json.dumps(summary))
    return 0


sys.exit(main())
