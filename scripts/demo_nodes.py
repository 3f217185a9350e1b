# SPDX-License-Identifier: Apache-2.0
"""What the demos share: several sgpd on loopback, whose files lie in a temporary directory, and what they end with."""
import argparse
import ctypes
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "ctl", "compare"))
from daemons import UnixConnection, free_ports  # noqa: E402
from plan import Failure  # noqa: E402

SGPD = os.path.join(ROOT, "build/daemon/sgpd")
SGPCTL = os.path.join(ROOT, "build/ctl/sgpctl")
PR_SET_PDEATHSIG = 1

PLACE = """\
[node]
name = {name}
state_directory = {directory}/{name}
[topology]
file = {directory}/fleet.dot
[network]
listen = {address}
compression = {compression}
[control]
socket = {directory}/{name}/control.sock
"""


class Node:
    """One daemon: its files, its process, its latest status."""

    def __init__(self, directory, name, address, configuration, compression):
        self.name = name
        self.directory = os.path.join(directory, name)
        self.configuration = os.path.join(directory, name + ".conf")
        self.socket = os.path.join(self.directory, "control.sock")
        self.log = os.path.join(directory, name + ".log")
        self.process = None
        self.status = {}
        os.mkdir(self.directory)
        with open(self.configuration, "w", encoding="utf-8") as file:
            file.write((PLACE + configuration).format(name=name, directory=directory, address=address,
                                                       compression=compression))

    def start(self):
        """Start the daemon; the kernel ends it if this script is killed."""
        libc = ctypes.CDLL(None)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [SGPD, "-c", self.configuration], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
                preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM))

    def refresh(self):
        """Ask for the status; a daemon that does not listen yet keeps an empty one."""
        if self.process.poll() is not None:
            with open(self.log, encoding="utf-8", errors="replace") as log:
                last = "".join(log.readlines()[-5:]).strip()
            raise Failure(f"{self.name} ended with status {self.process.returncode}; it said:\n{last}")
        connection = UnixConnection(self.socket)
        try:
            connection.request("GET", "/v1/status")
            self.status = json.load(connection.getresponse())
        except (FileNotFoundError, ConnectionRefusedError):
            pass
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Failure(f"{self.name} did not answer on {self.socket}: {error}") from error
        finally:
            connection.close()

    def stop(self):
        """End the daemon, with force if it does not go."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def parser_of(program, description, topology, **more):
    """What every demo takes; `topology` is the word for its default."""
    parser = argparse.ArgumentParser(prog=program, description=description, **more)
    parser.add_argument("--nodes", type=int, default=4, metavar="N", help="how many daemons (4)")
    parser.add_argument("--topology", metavar="FAMILY|FILE",
                        help="a family of `sgpctl topology generate`, or a DOT file, whose "
                        "addresses are replaced by some on loopback and whose nodes count, not "
                        f"--nodes ({topology})")
    parser.add_argument("--isolated", action="store_true",
                        help="no edges: each node trains alone on its rows, for comparison")
    parser.add_argument("--compression", default="none", metavar="NAME",
                        help="how shares are made smaller: none, fp16, int8 ..., see docs/COMPRESSION.md (none)")
    parser.add_argument("--keep", action="store_true", help="keep the temporary directory")
    parser.add_argument("--quiet", action="store_true", help="leave out what apt and ninja say, unless they fail")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    return parser


def sgpctl(*arguments):
    """Output of an sgpctl command, or its message as a failure."""
    result = subprocess.run([SGPCTL, *arguments], text=True, capture_output=True, check=False)
    if result.returncode != 0:
        raise Failure(f"sgpctl {' '.join(arguments)}: {result.stderr.strip() or result.stdout.strip()}")
    return result.stdout


def write_topology(directory, arguments):
    """Write fleet.dot with loopback addresses; returns [(name, address)] in the order of the fleet."""
    path = os.path.join(directory, "fleet.dot")
    if arguments.isolated:
        first = free_ports(arguments.nodes)
        fleet = [(f"n{i}", f"127.0.0.1:{first + i}") for i in range(arguments.nodes)]
        lines = [f'  {name} [address="{address}"];' for name, address in fleet]
        text = "digraph isolated {\n" + "\n".join(lines) + "\n}\n"
    elif os.path.exists(arguments.topology):
        with open(arguments.topology, encoding="utf-8") as file:
            text = file.read()
        first = free_ports(len(re.findall(r"address", text)) or arguments.nodes)
        count = iter(range(first, 65536))
        text = re.sub(r'address\s*=\s*"[^"]*"', lambda _: f'address="127.0.0.1:{next(count)}"', text)
    else:
        first = free_ports(arguments.nodes)
        text = sgpctl("topology", "generate", arguments.topology, str(arguments.nodes), "--address",
                      f"127.0.0.1:{first}+")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    fleet = re.findall(r'"?([\w.-]+)"?\s*\[[^\]]*address\s*=\s*"(127[^"]*)"', text)
    if not fleet:
        raise Failure(f"{arguments.topology}: no node has an address")
    return fleet


def start_nodes(arguments, directory, configuration, started):
    """The nodes of a fleet, started, with this configuration beside their place."""
    nodes = [Node(directory, name, address, configuration, arguments.compression)
             for name, address in write_topology(directory, arguments)]
    for node in nodes:
        node.start()
        started.append(node)
    return nodes


def read_safetensors(path):
    """Of a safetensors file the metadata, and all float32 values, tensors in order of name, as one float64 vector."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        body = file.read()
    metadata = header.pop("__metadata__", {})
    tensors = [numpy.frombuffer(body[slice(*header[name]["data_offsets"])], dtype="<f4")
               for name in sorted(header)]
    return metadata, numpy.concatenate(tensors).astype(numpy.float64)


def disagreement(models):
    """max over models of |z_i - mean| / |mean|, Euclidean."""
    mean = numpy.mean(models, axis=0)
    return max(float(numpy.linalg.norm(model - mean)) for model in models) / float(numpy.linalg.norm(mean))


def disagreement_of(nodes, directory):
    """That of the models that the nodes export."""
    models = []
    for node in nodes:
        path = os.path.join(directory, node.name + ".safetensors")
        sgpctl("-s", node.socket, "export", path)
        models.append(read_safetensors(path)[1])
    return disagreement(models)


def perform(arguments, run):
    """run(arguments, directory, started) in a temporary directory: it returns a summary, and adds whatever has to be
    stopped to the list `started`. Returns the exit status."""
    directory = tempfile.mkdtemp(prefix="sgpd-demo-")
    started = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        summary = run(arguments, directory, started)
    except Failure as failure:
        print(f"scripts/demo: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nscripts/demo: interrupted", file=sys.stderr)
        return 130
    finally:
        for each in reversed(started):
            each.stop()
        if arguments.keep:
            print(f"Kept: {directory}")
        else:
            shutil.rmtree(directory)
    if arguments.json:
        print(json.dumps(summary))
    return 0
