# SPDX-License-Identifier: Apache-2.0
"""The job script of examples/slurm in a cluster of Slurm: test_slurm.py SGPCTL. A controller and the daemons of three nodes run
on this machine, each with a network namespace and a host name of its own, and with a configuration that is the test's."""
import atexit
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import tap
from reach import OWN, PATIENCE, PYTHON, Reach, fleet, lay_out, processes, sandbox

SGPCTL = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 and os.path.exists(sys.argv[1]) else "sgpctl"
JOB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/slurm/train.sh")
NODES = ["node1", "node2", "node3"]
SLOTS = 2
CONFIGURATION = """ClusterName=sgp
SlurmctldHost=controller
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
MpiDefault=none
ReturnToService=2
NodeName={nodes} CPUs={slots} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Cluster:
    """Its daemons end with the test's process."""

    def __init__(self):
        addresses = lay_out(len(NODES))
        self.folder = tempfile.mkdtemp(prefix="sgp-slurm-")
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = {**os.environ, "SLURM_CONF": self.write("slurm.conf", CONFIGURATION.format(
            folder=self.folder, nodes=",".join(NODES), slots=SLOTS))}
        self.write("cgroup.conf", f"CgroupPlugin=cgroup/v1\nCgroupMountpoint={self.folder}/cgroup\n")
        hosts = self.write("hosts", "127.0.0.1 localhost\n" + "".join(
            f"{address} {name}\n" for address, name in zip([*addresses, OWN], [*NODES, "controller"])))
        sandbox.call("mount", "--bind", hosts, "/etc/hosts")  # for this process and what it starts
        with open(self.write("munge.key", ""), "wb") as file:
            file.write(os.urandom(128))
        os.chmod(f"{self.folder}/munge.key", 0o600)
        self.processes = []
        self.serve(None, "munged", "--foreground", "--force", *(f"--{name}={self.folder}/munge.{end}" for name, end in (
            ("key-file", "key"), ("socket", "socket"), ("pid-file", "pid"), ("log-file", "log"), ("seed-file", "seed"))))
        self.until("munge", lambda: os.path.exists(f"{self.folder}/munge.socket"))
        self.serve("controller", "slurmctld", "-D")
        for index, name in enumerate(NODES):
            self.serve(name, "slurmd", "-D", space=f"h{index}")
        self.until("all nodes to be idle", lambda: self.ask("sinfo", "-h", "-N", "-o", "%N %T") ==
                   "".join(f"{name} idle\n" for name in NODES))

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def serve(self, name, *words, space=None):
        """A daemon in the foreground, on a machine of this name."""
        if name is not None:
            words = ["unshare", "--uts", "sh", "-c", f'hostname {name} && exec "$@"', "sh", *words]
        if space is not None:
            words = ["ip", "netns", "exec", space, *words]
        with open(os.path.join(self.folder, "log"), "ab") as log:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment,
                                       preexec_fn=fleet.die_with_parent)
        atexit.register(process.wait)
        atexit.register(process.terminate)

    def logs(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as file:
            return "\n".join(file.read().splitlines()[-40:])

    def until(self, what, condition):
        fleet.poll(what, condition, PATIENCE, self.logs, 0.1)

    def ask(self, *command):
        """What a command of Slurm prints; nothing if it fails, as while the controller does not listen."""
        return subprocess.run(command, env=self.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              timeout=PATIENCE, check=False).stdout


@sandbox.once
def cluster():
    return Cluster()


class Job(Reach):
    def setUp(self):
        super().setUp()
        for program in ("slurmctld", "slurmd", "sbatch", "scancel"):
            self.need("slurm-wlm", program)
        self.need("munge", "munged")
        self.output = os.path.join(self.folder, "output")
        self.cluster = cluster()
        self.addCleanup(self.end)
        self.environment.update(SLURM_CONF=self.cluster.environment["SLURM_CONF"], SGPCTL=SGPCTL)

    def submit(self, *program):
        self.job = subprocess.run(
            ["sbatch", "--parsable", f"--nodes={len(NODES)}", f"--ntasks-per-node={SLOTS}", f"--output={self.output}",
             f"--chdir={self.folder}", JOB, *program], env=self.environment, text=True, stdout=subprocess.PIPE,
            timeout=PATIENCE, check=True).stdout.strip()

    def said(self):
        try:
            with open(self.output, encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def state(self):
        return self.cluster.ask("scontrol", "show", "job", self.job).split("JobState=")[-1].split()[0]

    def over(self):
        return self.state() not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING")

    def until_over(self, state):
        self.until("the end of the job: " + self.said(), self.over)
        self.assertEqual(self.state(), state, self.said())

    def end(self):
        if hasattr(self, "job"):
            self.cluster.ask("scancel", self.job)

    def logs(self):
        return self.said() + (self.cluster.logs() if hasattr(self, "cluster") else "")

    def begin(self):
        """A job in which all nodes train, and go on."""
        self.submit("sh", "-c", f"{PYTHON} {self.train} 100000 0.01; true")
        self.until("all to begin", lambda: self.said().count("begins") == len(NODES) * SLOTS or self.over())
        self.assertEqual(len(self.programs("sgpd -c")), len(NODES) * SLOTS, processes(self.marker))

    def test_a_job_trains_on_all_hosts(self):
        self.submit(PYTHON, self.train, "100", "0")
        self.until_over("COMPLETED")
        self.expect_models(self.said(), len(NODES) * SLOTS)
        self.assertEqual(set(re.findall(r"^(\S+)\| begins$", self.said(), re.MULTILINE)),
                         {f"n{i}" for i in range(len(NODES) * SLOTS)}, self.said())
        self.expect_end()

    def test_a_job_whose_program_fails(self):
        self.submit("sh", "-c", "exit $((RANK == 4 ? 7 : 0))")
        self.until_over("FAILED")
        self.assertIn("the program ended with status 7", self.said())
        self.expect_end()

    def test_scancel(self):
        self.begin()
        self.cluster.ask("scancel", self.job)
        self.until_over("CANCELLED")
        self.expect_end()

    def test_a_launcher_that_is_killed(self):
        """Slurm kills what is left of the job. So nobody removes directories (docs/ATTACH.md)."""
        self.begin()
        launcher, = (pid for pid, command in processes(self.marker).items() if command.startswith(f"{SGPCTL} up "))
        os.kill(launcher, signal.SIGKILL)
        self.until_over("FAILED")
        self.expect_end(files=False)


if __name__ == "__main__":
    tap.run_cases(sys.argv[1:])
