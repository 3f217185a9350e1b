# SPDX-License-Identifier: Apache-2.0
"""scripts/demo --example: `sgpctl launch` with a program of examples/, and what the fleet ended with."""
import os
import re
import subprocess
import sys
import time

from demo_nodes import ROOT, SGPCTL, Failure, disagreement, parser_of, perform, read_safetensors

EXAMPLES = os.path.join(ROOT, "examples")


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


class Launch:
    """The program, by itself or launched, whose lines are printed and kept."""

    def __init__(self, command, environment):
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                        errors="replace", env={**os.environ, **environment})

    def lines(self):
        """All that it says, until its end. Raises Failure for a bad one."""
        said = []
        for line in self.process.stdout:
            print(line, end="", flush=True)
            said.append(line.rstrip("\n"))
        if self.process.wait() != 0:
            raise Failure(f"the program ended with status {self.process.returncode}")
        return said

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()


def fleet_of(arguments, directory):
    """The options of launch that say who gives to whom."""
    if arguments.isolated:
        path = os.path.join(directory, "isolated.dot")
        with open(path, "w", encoding="ascii") as file:
            file.write("digraph isolated { %s }\n" % "; ".join(f"n{i}" for i in range(arguments.nodes)))
        return ["--topology", path]
    size = [] if os.path.exists(arguments.topology) else ["--nodes", str(arguments.nodes)]
    return [*size, "--topology", arguments.topology]


def run(arguments, directory, started):
    """Start everything and wait; returns the summary."""
    program = [sys.executable, os.path.join(EXAMPLES, arguments.name, "train.py"), *arguments.more]
    fleet = os.path.join(directory, "fleet")
    launch = [SGPCTL, "launch", *fleet_of(arguments, directory), "--keep", fleet, "--set",
              f"network.compression={arguments.compression}", "--"]
    alone = {"SGP_SOCKET": "none", "SGP_NODES": "1", "OMP_NUM_THREADS": "1"}
    start = time.monotonic()
    started.append(Launch(program if arguments.alone else [*launch, *program], alone if arguments.alone else {}))
    said = started[-1].lines()
    results = [float(found.group(1)) for line in said if (found := re.search(r"^(?:n\d+\| )?\w+: .* ([\d.]+)$", line))]
    summary = {"example": arguments.name, "seconds": round(time.monotonic() - start, 1), "results": results}
    if not arguments.alone:
        models = [read_safetensors(os.path.join(fleet, name, "model.safetensors"))
                  for name in sorted(os.listdir(fleet)) if os.path.isdir(os.path.join(fleet, name))]
        summary["nodes"], summary["rounds"] = len(models), max(int(metadata["round"]) for metadata, _ in models)
        summary["total_weight"] = sum(float(metadata["weight"]) for metadata, _ in models)
        summary["disagreement"] = disagreement([values for _, values in models])
        print(f"{len(models)} nodes, {summary['rounds']} rounds, {summary['seconds']:.0f} s; disagreement of the "
              f"models {summary['disagreement']:.1e}, total weight {summary['total_weight']:.12f}")
    return summary


sys.exit(perform(parse_arguments(), run))
