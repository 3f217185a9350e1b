# SPDX-License-Identifier: Apache-2.0
"""`sgpctl up` over two servers of OpenSSH on this machine, with files and ports of their own:
test_up_reach.py SGPCTL. Nothing below /etc is read that is not the system's own, and nothing is written there."""
import getpass
import os
import re
import shutil
import signal
import socket
import subprocess
import sys

import launched
import tap
from launched import PATIENCE, processes

SGPCTL = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 and os.path.exists(sys.argv[1]) else "sgpctl"
PYTHON = sys.executable
WHERE = os.environ["PATH"] + ":/usr/sbin:/sbin"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Reach(launched.Case):
    def need(self, package, *programs):
        for program in programs:
            if shutil.which(program, path=WHERE) is None:
                self.skipTest(f"not installed: {package} ({program}); scripts/setup --long installs it")

    def up(self, *arguments, status=0):
        process = self.start(*arguments)
        output, error = process.communicate(timeout=2 * PATIENCE)
        self.assertEqual(process.returncode, status, (output, error))
        self.until("all to be gone", lambda: self.programs("sgp") == [] and self.left() == [])
        return output.decode(errors="replace"), error.decode(errors="replace")

    def start(self, *arguments):
        return subprocess.Popen([SGPCTL, "up", "--sgpctl", SGPCTL, *arguments], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment, cwd=self.folder)

    def serve(self, *words):
        """A daemon in the foreground, in a view of the machine with a /run of its own if this is root."""
        if os.geteuid() == 0:
            words = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && exec "$@"',
                     "sh", *words]
        with open(os.path.join(self.folder, "log"), "ab") as log:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment,
                                       start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        return process

    def logs(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def listens(self, port):
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", port)) == 0

    def expect_training(self, hosts, count):
        output, error = self.up(hosts, "--", PYTHON, self.train, "100", "0")
        models = re.findall(r"^n\d\| model (.*)$", output, re.MULTILINE)
        self.assertEqual(len(models), count, (output, error))
        for text in models:
            for value, wanted in zip(text.split(), (1, -2, 3)):
                self.assertLess(abs(float(value) - wanted), 0.1)

    def expect_end(self, hosts, number, status):
        process = self.start(hosts, "--", "sh", "-c", f"{PYTHON} {self.train} 100000 0.01; true")
        for _ in range(2):
            self.assertIn(b"begins", process.stdout.readline())
        process.send_signal(number)
        process.communicate(timeout=2 * PATIENCE)
        self.assertEqual(process.returncode, status)

        def gone():
            return self.programs("train.py") == [] and self.programs("sgpd") == [] and self.left() == []
        for _ in range(2):  # at most 60 s of silence, and the ends
            try:
                self.until("all to be gone", gone)
                return
            except AssertionError:
                continue
        self.assertTrue(gone(), processes(self.marker))


class SshTest(Reach):
    """Two servers, each with a port and a host key of its own."""

    def setUp(self):
        super().setUp()
        self.need("openssh-server", "sshd")
        self.need("openssh-client", "ssh", "ssh-keygen")
        self.environment.pop("SLURM_JOB_ID", None)
        for name in ("id", "other", "host0", "host1"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(self.folder, name)], check=True)
        shutil.copy(os.path.join(self.folder, "id.pub"), os.path.join(self.folder, "authorized"))
        self.ports = [free_port(), free_port()]
        known = ""
        for index, port in enumerate(self.ports):
            configuration = self.script(f"""Port {port}
ListenAddress 127.0.0.1
HostKey {self.folder}/host{index}
PidFile none
AuthorizedKeysFile {self.folder}/authorized
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
SetEnv {" ".join(f"{name}={self.environment[name]}" for name in ("TMPDIR", "XDG_RUNTIME_DIR", "LAUNCH_TEST"))}
""", f"sshd{index}")
            self.serve(shutil.which("sshd", path=WHERE), "-D", "-e", "-f", configuration)
            with open(os.path.join(self.folder, f"host{index}.pub"), encoding="ascii") as file:
                known += f"[127.0.0.1]:{port} {file.read()}"
        self.script(known, "known")
        self.options = self.script(f"""Host *
IdentityFile {self.folder}/id
IdentitiesOnly yes
UserKnownHostsFile {self.folder}/known
StrictHostKeyChecking yes
""", "options")
        for port in self.ports:
            self.until("the server to listen: " + self.logs(), lambda port=port: self.listens(port))
        self.hosts = self.script("".join(f"{getpass.getuser()}@127.0.0.1:{port}\n" for port in self.ports), "hosts.txt")

    def start(self, *arguments):
        return super().start("--ssh", f"ssh -F {self.options}", *arguments)

    def test_training(self):
        self.expect_training(self.hosts, 2)

    def test_words_of_the_program_are_not_read_by_a_shell(self):
        output, _ = self.up(self.hosts, "--", PYTHON, "-c", "import sys; print(sys.argv[1:])", "a b", "$HOME", "'", "*")
        self.assertEqual(sorted(output.splitlines()), [f"n{i}| {['a b', '$HOME', chr(39), '*']}" for i in range(2)])

    def test_status(self):
        _, error = self.up("--keep-going", self.hosts, "--", "sh", "-c", "exit $((RANK + 7))", status=8)
        self.assertIn("n1: the program ended with status 8", error)

    def test_interrupt(self):
        self.expect_end(self.hosts, signal.SIGINT, 130)

    def test_a_launcher_that_is_killed(self):
        self.expect_end(self.hosts, signal.SIGKILL, -signal.SIGKILL)

    def test_a_key_that_is_not_known(self):
        """Both ways: a host that is another one, and a user whom the host does not know."""
        self.script("", "known")
        _, error = self.up(self.hosts, "--", "true", status=1)
        self.assertRegex(error, r"hosts.txt:[12]: 127.0.0.1: ssh .* ended with status 255: Host key verification failed.\n$")
        self.script(f"Host *\nIdentityFile {self.folder}/other\nIdentitiesOnly yes\nStrictHostKeyChecking no\n"
                    f"UserKnownHostsFile {self.folder}/others\n", "options")
        _, error = self.up(self.hosts, "--", "true", status=1)
        self.assertRegex(error, r"hosts.txt:[12]: 127.0.0.1: ssh .* ended with status 255: .*Permission denied \(publickey\).\n$")

    def test_no_server(self):
        hosts = self.script(f"127.0.0.1:{free_port()}\n", "none.txt")
        _, error = self.up(hosts, "--", "true", status=1)
        self.assertRegex(error, r"none.txt:1: 127.0.0.1: ssh .* ended with status 255: .*Connection refused\n$")


if __name__ == "__main__":
    tap.run_cases(sys.argv[1:])
