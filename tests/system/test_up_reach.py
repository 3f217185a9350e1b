# SPDX-License-Identifier: Apache-2.0
"""`sgpctl up` over three servers of OpenSSH, with files of their own: test_up_reach.py SGPCTL. If this is root, each has a network
namespace, else a port of this machine. Nothing below /etc is read that is not the system's own, and nothing is written there."""
import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import unittest

import tap
from reach import PATIENCE, PYTHON, WHERE, Reach, lay_out, sandbox

SGPCTL = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 and os.path.exists(sys.argv[1]) else "sgpctl"
HOSTS = 3


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@sandbox.once
def places():
    """(host, address, port) of each server."""
    try:
        return [(f"h{i}", address, 22) for i, address in enumerate(lay_out(HOSTS))]
    except unittest.SkipTest as reason:
        sandbox.tell(f"all hosts are this machine: {reason}")
        return [(None, "127.0.0.1", free_port()) for _ in range(HOSTS)]


class SshTest(Reach):
    """Each server has a host key of its own."""

    def setUp(self):
        super().setUp()
        self.need("openssh-server", "sshd")
        self.need("openssh-client", "ssh", "ssh-keygen")
        self.environment.pop("SLURM_JOB_ID", None)
        self.places = places()
        for name in ("id", "other", *(f"host{i}" for i in range(HOSTS))):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(self.folder, name)], check=True)
        shutil.copy(os.path.join(self.folder, "id.pub"), os.path.join(self.folder, "authorized"))
        known = ""
        for index, (host, address, port) in enumerate(self.places):
            configuration = self.script(f"""Port {port}
ListenAddress {address}
HostKey {self.folder}/host{index}
PidFile none
AuthorizedKeysFile {self.folder}/authorized
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
SetEnv {" ".join(f"{name}={self.environment[name]}" for name in ("TMPDIR", "XDG_RUNTIME_DIR", "LAUNCH_TEST"))}
""", f"sshd{index}")
            self.serve(host, shutil.which("sshd", path=WHERE), "-D", "-e", "-f", configuration)
            with open(os.path.join(self.folder, f"host{index}.pub"), encoding="ascii") as file:
                known += f"{address if port == 22 else f'[{address}]:{port}'} {file.read()}"
        self.script(known, "known")
        self.options = self.script(f"""Host *
IdentityFile {self.folder}/id
IdentitiesOnly yes
UserKnownHostsFile {self.folder}/known
StrictHostKeyChecking yes
""", "options")
        for _, address, port in self.places:
            self.until("the server to listen: " + self.logs(), lambda where=(address, port): self.listens(where))
        self.hosts = self.script("".join(f"{getpass.getuser()}@{address}:{port}\n" for _, address, port in self.places),
                                 "hosts.txt")

    def listens(self, where):
        with socket.socket() as one:
            return one.connect_ex(where) == 0

    def start(self, *arguments):
        return subprocess.Popen([SGPCTL, "up", "--sgpctl", SGPCTL, "--ssh", f"ssh -F {self.options}", *arguments],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment,
                                cwd=self.folder)

    def up(self, *arguments, status=0):
        process = self.start(*arguments)
        output, error = process.communicate(timeout=2 * PATIENCE)
        self.assertEqual(process.returncode, status, (output, error))
        self.until("all to be gone", lambda: self.programs("sgp") == [] and self.left() == [])
        return output.decode(errors="replace"), error.decode(errors="replace")

    def expect_end_of(self, number, status):
        """The launcher gets a signal while all train."""
        process = self.start(self.hosts, "--", "sh", "-c", f"{PYTHON} {self.train} 100000 0.01; true")
        for _ in range(HOSTS):
            self.assertIn(b"begins", process.stdout.readline())
        process.send_signal(number)
        process.communicate(timeout=2 * PATIENCE)
        self.assertEqual(process.returncode, status)
        self.expect_end()

    def test_training(self):
        """Each node has its own host."""
        output, _ = self.up(self.hosts, "--", PYTHON, self.train, "100", "0")
        self.expect_models(output, HOSTS)
        output, _ = self.up(self.hosts, "--", "sh", "-c", "readlink /proc/self/ns/net; cat $TMPDIR/sgpctl-*/topology.dot; sleep 1")
        for index, (host, address, _) in enumerate(self.places):
            self.assertRegex(output, rf'n{index} \[address="{address}:\d+"')
        spaces = {line for line in output.splitlines() if "net:[" in line}
        self.assertEqual(len({line.split("| ")[1] for line in spaces}), HOSTS if self.places[0][0] else 1, spaces)

    def test_words_of_the_program_are_not_read_by_a_shell(self):
        output, _ = self.up(self.hosts, "--", PYTHON, "-c", "import sys; print(sys.argv[1:])", "a b", "$HOME", "'", "*")
        self.assertEqual(sorted(output.splitlines()), [f"n{i}| {['a b', '$HOME', chr(39), '*']}" for i in range(HOSTS)])

    def test_status(self):
        _, error = self.up("--keep-going", self.hosts, "--", "sh", "-c", "exit $((RANK + 7))", status=9)
        self.assertIn("n1: the program ended with status 8", error)

    def test_interrupt(self):
        self.expect_end_of(signal.SIGINT, 130)

    def test_a_launcher_that_is_killed(self):
        self.expect_end_of(signal.SIGKILL, -signal.SIGKILL)

    def test_a_key_that_is_not_known(self):
        """Both ways: a host that is another one, and a user whom the host does not know."""
        self.script("", "known")
        _, error = self.up(self.hosts, "--", "true", status=1)
        self.assertRegex(error, r"hosts.txt:[123]: [0-9.]+: ssh .* ended with status 255: Host key verification failed.\n$")
        self.script(f"Host *\nIdentityFile {self.folder}/other\nIdentitiesOnly yes\nStrictHostKeyChecking no\n"
                    f"UserKnownHostsFile {self.folder}/others\n", "options")
        _, error = self.up(self.hosts, "--", "true", status=1)
        self.assertRegex(error, r"hosts.txt:[123]: [0-9.]+: ssh .* ended with status 255: .*Permission denied \(publickey\).\n$")

    def test_no_server(self):
        hosts = self.script(f"127.0.0.1:{free_port()}\n", "none.txt")
        _, error = self.up(hosts, "--", "true", status=1)
        self.assertRegex(error, r"none.txt:1: 127.0.0.1: ssh .* ended with status 255: .*Connection refused\n$")


if __name__ == "__main__":
    tap.run_cases(sys.argv[1:])
