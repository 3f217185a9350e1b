# SPDX-License-Identifier: Apache-2.0
"""`sgpctl up` with real daemons and programs: on "hosts" that a stand-in for ssh reaches, which runs the command on this
machine. test_up.py SGPCTL. With SGP_LONG=1 also what takes minutes. test_up_reach.py has real servers on three hosts."""
import fcntl
import json
import os
import re
import signal
import socket
import ssl
import struct
import subprocess
import sys
import termios
import unittest

import launched
import tap
from launched import PATIENCE, TRAIN, processes

SGPCTL = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 and os.path.exists(sys.argv[1]) else "sgpctl"
PYTHON = sys.executable
LONG = os.environ.get("SGP_LONG") == "1"

# Its last word is the command, and the one before is the destination. As sshd, it runs the command in a session of its own,
# which no signal to ssh reaches, and whose output ends with it. What it was called with is kept.
SSH = """#!/bin/bash
set -o pipefail
for word; do destination=$command; command=$word; done
echo "$@" >> "$UP_CALLS"
case $destination in
*refused*) echo "ssh: connect to host $destination port 22: Connection refused" >&2; exit 255;;
*noisy*) echo "Welcome to $destination"; echo "Warning: a banner" >&2;;
*hangs*) exec sleep 1000;;
*bare*) command="PATH=/nowhere; sgpctl";;
esac
setsid --wait sh -c "$command" | cat
"""


class UpTest(launched.Case):
    def setUp(self):
        super().setUp()
        self.ssh = self.script(SSH, "ssh")
        os.chmod(self.ssh, 0o700)
        self.environment["UP_CALLS"] = os.path.join(self.folder, "calls")
        self.environment.pop("SLURM_JOB_ID", None)

    def hosts(self, *lines, name="hosts.txt"):
        return self.script("".join(line + "\n" for line in lines), name)

    def words(self, *arguments):
        return [SGPCTL, "up", "--ssh", self.ssh, "--sgpctl", SGPCTL, *arguments]

    def start(self, *arguments):
        return subprocess.Popen(self.words(*arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=self.environment, cwd=self.folder)

    def up(self, *arguments, status=0):
        """Run to the end: what came on standard output and standard error. Nothing is left."""
        process = self.start(*arguments)
        output, error = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, status, (output, error))
        if status == 0:
            self.expect_nothing_left()
        self.expect_hosts_end()
        return output.decode(errors="replace"), error.decode(errors="replace")

    def expect_hosts_end(self):
        """A host whose connection was closed early ends after the launcher."""
        self.until("all to be gone", lambda: processes(self.marker) == {} and self.left() == [])

    def expect_one_model(self, output, names, within=0.1):
        models = dict(re.findall(r"^(\S+)\| model (.*)$", output, re.MULTILINE))
        self.assertEqual(sorted(models), sorted(names), output)
        vectors = [[float(value) for value in text.split()] for text in models.values()]
        for vector in vectors:
            for value, first, wanted in zip(vector, vectors[0], (1, -2, 3)):
                self.assertLess(abs(value - first), 1e-3)
                self.assertLess(abs(value - wanted), within)

    # ---- training

    def test_three_hosts_train_and_agree(self):
        hosts = self.hosts("# the lab", "", "127.0.0.1", "user@localhost:2222 slots=2  # two", "localhost name=last")
        output, error = self.up(hosts, "--", PYTHON, self.train, "100", "0")
        self.expect_one_model(output, ["n0", "n1", "n2", "last"])
        self.assertEqual(len(output.splitlines()), 8, output)
        self.assertRegex(error, r"^sgpctl: 4 nodes on 3 hosts, [\d.]+ s\n$")
        with open(self.environment["UP_CALLS"], encoding="utf-8") as file:
            calls = sorted(file.read().splitlines())
        self.assertEqual(len(calls), 3)
        for call in calls:  # nothing is asked, and no key, program or path of the run is on a command line
            self.assertRegex(call, "^-T -o BatchMode=yes ")
            self.assertRegex(call, f"(127.0.0.1|-p 2222 user@localhost|localhost) {SGPCTL} supervise --json$")

    def test_what_a_program_is_told(self):
        hosts = self.hosts("127.0.0.1 slots=2 name=a", "127.0.0.1")
        output, _ = self.up(hosts, "--", "sh", "-c",
                            "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $SGP_NODE $SGP_NODES; pwd")
        self.assertEqual(sorted(output.splitlines()), sorted([
            "a-0| 0 3 0 2 a-0 3", "a-1| 1 3 1 2 a-1 3", "n2| 2 3 0 1 n2 3", *(f"{n}| {self.folder}" for n in ("a-0", "a-1", "n2"))]))

    def test_links_are_encrypted(self):
        """The keys are made for the run and are gone after it; a stranger is refused. --plain has none of them."""
        look = "cat $TMPDIR/sgpctl-*/topology.dot; stat -c 'mode %a' $TMPDIR/sgpctl-*/$SGP_NODE.key; sleep 2"
        hosts = self.hosts("127.0.0.1", "127.0.0.1")
        output, _ = self.up(hosts, "--", "sh", "-c", look)
        self.assertRegex(output, r"n0\|\s+tls=require;")
        self.assertEqual(output.count("| mode 600"), 2, output)
        keys = set(re.findall(r'key="(SHA256:[^"]+)"', output))
        self.assertEqual(len(keys), 2, output)
        again, _ = self.up(hosts, "--", "sh", "-c", look)
        self.assertEqual(len(keys | set(re.findall(r'key="(SHA256:[^"]+)"', again))), 4)
        output, _ = self.up(hosts, "--plain", "--", "sh", "-c", "cat $TMPDIR/sgpctl-*/topology.dot $TMPDIR/sgpctl-*/*.conf; sleep 2")
        self.assertNotRegex(output, "SHA256|require|key *=")

    def test_a_stranger_is_refused(self):
        """Who has no key of the run does not get through the handshake, by a client that is not ours."""
        process = self.start(self.hosts("127.0.0.1", "127.0.0.1"), "--", "sh", "-c",
                             f"grep -h ^listen $TMPDIR/sgpctl-*/$SGP_NODE.conf; exec {PYTHON} {self.train} 100000 0.01")
        lines = b""
        while lines.count(b"begins") < 2:  # a daemon listens once it has a model
            lines += process.stdout.readline()
        port = int(re.search(rb"listen = 127.0.0.1:(\d+)", lines).group(1))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        said = b""
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as raw:
            try:
                with context.wrap_socket(raw) as link:
                    said = link.recv(4096)
            except TimeoutError:
                self.fail("the link stays open")
            except (ssl.SSLError, ConnectionError):
                pass
        self.assertEqual(said, b"")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 143)
        self.expect_nothing_left()

    def test_a_node_listens_on_all_addresses(self):
        """Of a host that has a name; of one that is a loopback address, only there."""
        addresses = ["127.0.0.1", "127.0.0.2"]
        with socket.socket(socket.AF_INET6) as one:
            try:
                one.bind(("::1", 0))
                addresses.append("::1")
            except OSError:
                pass
        for host, open_ones in ("localhost", addresses), ("127.0.0.1", addresses[:1]):
            with self.subTest(host=host):
                process = self.start(self.hosts(host), "--", "sh", "-c",
                                     f"grep -h ^listen $TMPDIR/sgpctl-*/$SGP_NODE.conf; exec {PYTHON} {self.train} 100000 0.01")
                port = int(process.stdout.readline().rsplit(b":", 1)[1])
                self.assertIn(b"begins", process.stdout.readline())
                for address in addresses:
                    if address in open_ones:
                        socket.create_connection((address, port), timeout=PATIENCE).close()
                    else:
                        with self.assertRaises(ConnectionRefusedError):
                            socket.create_connection((address, port), timeout=PATIENCE).close()
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=PATIENCE)
                self.assertEqual(process.returncode, 143)
                self.expect_nothing_left()

    def test_the_longest_name_of_a_host(self):
        output, _ = self.up(self.hosts("a" * 253), "--", "sh", "-c", "cat $TMPDIR/sgpctl-*/topology.dot")
        self.assertRegex(output, f'"{"a" * 253}:[0-9]+"')

    def test_options_reach_the_daemons(self):
        topology = self.script('digraph { a -> b; b -> a }\n', "two.dot")
        output, _ = self.up("--topology", topology, "--algorithm", "osgp", "--seed=5", "--set", "train.overlap=2", "--directory",
                            "/", self.hosts("127.0.0.1 name=a", "127.0.0.1"), "--", "sh", "-c",
                            "cat $TMPDIR/sgpctl-*/$SGP_NODE.conf; pwd; sleep 1")
        for text in ("algorithm = osgp", "seed = 5", "overlap = 2", "name = a", "name = b", "/"):
            self.assertEqual(len(re.findall(rf"^[ab]\| {text}$", output, re.MULTILINE)), 1 if "name" in text else 2, output)

    def test_kept_files_go_on(self):
        keep = os.path.join(self.folder, "keep")
        script = self.script('''
import numpy, sgp
with sgp.attach({"w": numpy.zeros(3, numpy.float32)}, timeout=60) as node:
    print(node.resumed)
    for _ in range(4):
        node.mix()
    node.save(__file__ + "." + node.name)
    node.detach()
''')
        for resumed in (False, True):  # two hosts that share a file system
            output, _ = self.up("--keep", keep, self.hosts("127.0.0.1", "127.0.0.1"), "--", PYTHON, script)
            self.assertEqual(sorted(output.splitlines()), [f"n0| {resumed}", f"n1| {resumed}"])
        self.assertTrue({"n0", "n0.conf", "n0.log", "n1", "topology.dot"} <= set(os.listdir(keep)), os.listdir(keep))

    # ---- output

    def test_lines_of_any_kind(self):
        script = self.script(r"""
import os
os.write(1, b"\x00\xff\xfe binary\n\n{\"running\": 0, \"over\": true}\n")
os.write(1, b"x" * 200000 + b"\n")
os.write(2, b"to standard error\n")
os.write(1, b"no end")
""")
        process = self.start(self.hosts("noisy"), "--", PYTHON, script)
        output, error = process.communicate(timeout=PATIENCE)
        lines = output.split(b"\n")
        self.assertEqual(lines[:3], [b"n0| \x00\xff\xfe binary", b"n0| ", b'n0| {"running": 0, "over": true}'])
        self.assertEqual([len(line) for line in lines[3:7]], [65536 + 4] * 3 + [200000 - 3 * 65536 + 4])
        self.assertEqual(b"".join(line[4:] for line in lines[3:7]), b"x" * 200000)
        self.assertEqual(lines[7:], [b"n0| no end", b""])
        self.assertIn(b"n0| to standard error\n", error)
        self.assertIn(b"noisy| Welcome to noisy\n", error)
        self.assertEqual(process.returncode, 0)
        self.expect_nothing_left()

    def terminal(self, *arguments, rows=24):
        pid, master = os.forkpty()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 80, 0, 0))
            os.execve(SGPCTL, self.words(*arguments), self.environment)
        self.addCleanup(os.close, master)
        return pid, master

    def test_a_table_on_a_terminal(self):
        """It stands below the lines, which are whole, and is gone at the end."""
        pid, master = self.terminal(self.hosts("127.0.0.1 slots=2", "localhost name=b"), "--", PYTHON, self.train, "60", "0.05")
        text = self.read_all(master).decode()
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, text)
        for node, host in (("n0", "127.0.0.1"), ("n1", "127.0.0.1"), ("b", "localhost")):
            self.assertRegex(text, rf"\x1b\[K{node} +{re.escape(host)} +running +\d+ +[\d.e-]+\r\n")
        self.assertRegex(text, r"2 of 2 hosts running, \d+ s")
        self.assertRegex(text, r"\r\x1b\[K(\x1b\[A\x1b\[K){4}sgpctl: 3 nodes on 2 hosts, [\d.]+ s\r\n$")
        self.expect_nothing_left()

    def test_a_table_that_has_no_room(self):
        """Of a terminal with fewer lines, only the sum is shown, because nobody can go above the first line."""
        for rows, shown in (4, True), (3, False):
            with self.subTest(rows=rows):
                pid, master = self.terminal(self.hosts("127.0.0.1 slots=2"), "--", PYTHON, self.train, "60", "0.05", rows=rows)
                text = self.read_all(master).decode()
                self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, text)
                self.assertEqual(bool(re.search(r"n0 +127.0.0.1 +running", text)), shown, text)
                self.assertRegex(text, r"1 of 1 hosts running, \d+ s")
                self.expect_nothing_left()

    def test_json(self):
        output, error = self.up("--json", "--keep-going", self.hosts("127.0.0.1", "127.0.0.1 slots=2"), "--", "sh", "-c",
                                "exit $RANK", status=2)
        lines = [json.loads(line) for line in output.splitlines()]
        self.assertEqual(sorted(line["error"]["message"] for line in lines[:-1]),
                         ["n1: the program ended with status 1", "n2: the program ended with status 2"])
        summary = lines[-1]
        self.assertEqual((summary["nodes"], summary["hosts"], summary["statuses"], summary["kept"]),
                         (3, 2, {"n0": 0, "n1": 1, "n2": 2}, None))
        self.assertEqual(error, "")

    # ---- ends

    def test_a_program_that_fails_ends_all(self):
        _, error = self.up(self.hosts("127.0.0.1", "127.0.0.1", "127.0.0.1"), "--", PYTHON, self.train, "100000", "0.01", "n1",
                           status=3)
        self.assertIn("sgpctl: n1: the program ended with status 3; so all are ended\n", error)
        self.assertEqual(error.count("the program ended"), 1, error)

    def test_an_interrupt_after_a_failure(self):
        """It only says what is already happening: the programs keep their time to end."""
        script = self.script("echo begins\n"
                             f"trap ': > {self.folder}/told; sleep 1; echo cleaned up; exit' TERM\n"
                             f"test $RANK = 0 || {{ until test -e {self.folder}/fail; do sleep 0.05; done; exit 3; }}\n"
                             "while :; do sleep 0.1; done\n", "slow.sh")
        process = self.start(self.hosts("127.0.0.1", "127.0.0.1"), "--", "sh", script)
        for _ in range(2):
            self.assertIn(b"begins", process.stdout.readline())
        self.script("", "fail")
        self.until("the program to be told", lambda: os.path.exists(os.path.join(self.folder, "told")))
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual(output, b"n0| cleaned up\n")
        self.assertEqual(process.returncode, 130)
        self.expect_hosts_end()

    def test_keep_going(self):
        """The others train to the end, and agree."""
        output, error = self.up("--keep-going", self.hosts(*["127.0.0.1"] * 4), "--", PYTHON, self.train, "40", "0.01", "n2",
                                status=3)
        self.expect_one_model(output, ["n0", "n1", "n3"], within=0.2)
        self.assertIn("sgpctl: n2: the program ended with status 3\n", error)

    def test_daemons_stay_until_all_programs_have_ended(self):
        """A program that ends long before those of other hosts leaves its daemon to them."""
        script = self.script(f"""
import glob, os, subprocess, sys, time
folder = {self.folder!r}
if os.environ["RANK"] == "0":
    with open(folder + "/pid", "w") as file:
        file.write(str(os.getpid()))
    os.rename(folder + "/pid", folder + "/first")
    sys.exit()
while not os.path.exists(folder + "/first"):
    time.sleep(0.02)
with open(folder + "/first") as file:
    pid = file.read()
while os.path.exists("/proc/" + pid):
    time.sleep(0.02)
control, = glob.glob(folder + "/run/sgpctl-*/n0.control")
done = subprocess.run([{SGPCTL!r}, "-s", control, "--json", "status"], capture_output=True)
print(done.returncode, b'"n0"' in done.stdout)
""", "look.py")
        output, _ = self.up(self.hosts("127.0.0.1", "127.0.0.1"), "--", PYTHON, script)
        self.assertEqual(output, "n1| 0 True\n")

    def test_a_supervisor_that_is_terminated(self):
        """By somebody on its host. The launcher tells it, and ends all others."""
        process = self.start(self.hosts("127.0.0.1", "127.0.0.1"), "--", PYTHON, self.train, "100000", "0.01")
        self.until("both programs to begin", lambda: len(self.programs("train.py")) == 2)
        supervisors = []
        for pid in self.programs("supervise --json"):
            with open(f"/proc/{pid}/comm", encoding="ascii") as file:
                supervisors += [pid] if file.read() == "sgpctl\n" else []
        self.assertEqual(len(supervisors), 2)
        os.kill(supervisors[0], signal.SIGTERM)
        _, error = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, error)
        self.assertRegex(error, rb"\Asgpctl: n[01]: the supervisor of its host got signal 15 \(Terminated\), and ends its programs\n"
                         rb"sgpctl: 2 nodes on 2 hosts, [\d.]+ s\n\Z")
        self.expect_hosts_end()

    def test_a_host_that_is_lost(self):
        """Its connection breaks: its own supervisor ends all there, and the launcher all others."""
        process = self.start(self.hosts("127.0.0.1", "lost"), "--", PYTHON, self.train, "100000", "0.01")
        self.until("both programs to begin", lambda: len(self.programs("train.py")) == 2)
        shell = [pid for pid in self.programs(" lost ")]
        self.assertEqual(len(shell), 1)
        os.kill(shell[0], signal.SIGKILL)
        _, error = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 1, error)
        self.assertRegex(error.decode(), r"hosts.txt:2: lost: \S+ ended with status 137")
        self.until("all to be gone", lambda: processes(self.marker) == {} and self.left() == [])

    def test_ctrl_c(self):
        script = self.script(TRAIN.replace("with sgp.attach", "import atexit\natexit.register(print, 'cleaned up')\nwith "
                                           "sgp.attach"))
        pid, master = self.terminal(self.hosts("127.0.0.1", "127.0.0.1"), "--", PYTHON, script, "100000", "0.01")
        text = b""
        while text.count(b"begins") < 2:
            text += self.read_all(master, b"begins")
        os.write(master, b"\x03")
        text += self.read_all(master)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 130, text)
        plain = re.sub(r"\x1b\[[\d;]*[mKA]", "", text.decode())
        self.assertEqual(plain.count("KeyboardInterrupt"), 2, plain)
        self.assertEqual(plain.count("cleaned up"), 2, plain)
        self.expect_nothing_left()

    def test_programs_that_do_not_want_to_end(self):
        """Another signal is enough."""
        process = self.start(self.hosts("127.0.0.1", "127.0.0.1"), "--", "sh", "-c",
                             "trap 'echo no' INT TERM; echo begins; while :; do sleep 0.1; done")
        for _ in range(2):
            self.assertIn(b"begins", process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        self.assertIn(b"no", process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 143)
        self.expect_nothing_left()

    def test_a_launcher_that_is_killed(self):
        """Daemons, programs and what these have started end with it, and the directories are removed."""
        process = self.start(self.hosts("127.0.0.1", "127.0.0.1"), "--", "sh", "-c", f"{PYTHON} {self.train} 100000 0.01; true")
        for _ in range(2):
            self.assertIn(b"begins", process.stdout.readline())
        self.assertGreaterEqual(len(processes(self.marker)), 10)
        process.kill()
        process.communicate(timeout=PATIENCE)
        self.until("all to be gone", lambda: processes(self.marker) == {} and self.left() == [])

    def test_a_launcher_that_is_killed_lets_programs_and_daemons_end(self):
        """They get SIGTERM, and what they print after it goes nowhere."""
        keep = os.path.join(self.folder, "keep")
        script = self.script(f"trap 'for i in 1 2 3 4 5 6 7 8 9 10; do echo ends; sleep 0.2; done; : > {self.folder}/$SGP_NODE.end; "
                             "exit' TERM\necho begins\nwhile :; do sleep 0.1; done\n", "slow.sh")
        process = self.start("--keep", keep, self.hosts("127.0.0.1", "127.0.0.1"), "--", "sh", script)
        for _ in range(2):
            self.assertIn(b"begins", process.stdout.readline())
        process.kill()
        process.communicate(timeout=PATIENCE)
        self.expect_hosts_end()
        for name in ("n0", "n1"):
            self.assertTrue(os.path.exists(os.path.join(self.folder, name + ".end")), name)
            with open(os.path.join(keep, name + ".log"), encoding="utf-8") as file:
                self.assertIn("event=end status=0", file.read().splitlines()[-1])

    def test_the_reader_goes_away(self):
        process = self.start(self.hosts("127.0.0.1", "127.0.0.1"), "--", "sh", "-c", "while :; do echo line; sleep 0.05; done")
        self.assertIn(b"line", process.stdout.readline())
        process.stdout.close()
        self.assertEqual(process.wait(PATIENCE), 128 + signal.SIGPIPE)
        process.stderr.close()
        self.until("all to be gone", lambda: processes(self.marker) == {} and self.left() == [])

    def test_an_interrupt_while_a_host_hangs(self):
        process = self.start(self.hosts("127.0.0.1", "hangs"), "--", "true")
        self.until("both commands to run", lambda: len(self.programs("supervise")) >= 2)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 130)
        self.expect_hosts_end()

    @unittest.skipUnless(LONG, "takes a minute: SGP_LONG=1")
    def test_a_silent_launcher(self):
        """The launcher stands still, as behind a cut of the network: its connection stays open, and the host ends by itself."""
        process = self.start(self.hosts("127.0.0.1"), "--", PYTHON, self.train, "100000", "0.01")
        self.assertIn(b"begins", process.stdout.readline())
        process.send_signal(signal.SIGSTOP)
        try:
            for _ in range(3):
                try:
                    self.until("the program to end", lambda: self.programs("train.py") == [] and self.left() == [])
                    break
                except AssertionError:
                    continue
            self.assertEqual(self.programs("train.py"), [])
            self.assertEqual(self.left(), [])
        finally:
            process.send_signal(signal.SIGCONT)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 1)
        self.expect_nothing_left()

    @unittest.skipUnless(LONG, "takes two minutes: SGP_LONG=1")
    def test_a_reader_that_pauses(self):
        """A full terminal is no silence: the fleet waits for it, longer than it would wait for a launcher."""
        process = self.start(self.hosts("127.0.0.1"), "--", PYTHON, "-c",
                             "for i in range(40): print('x' * 60000, flush=True)\nprint('end')")
        self.assertIn(b"x", process.stdout.read(1000))
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(150)
        output, error = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0, error)
        self.assertTrue(output.endswith(b"n0| end\n"))

    # ---- the command line, the file of hosts, and the hosts

    def test_bad_hosts(self):
        """One line each, with the line of the file, before anything is started."""
        for lines, said in (
                ([], r"no host; a line is \[user@\]host"),
                (["a", "b c"], ":2: 'c' is unknown; a line is"),
                (["a slots=0"], ":1: slots=0: a whole number from 1 to 256 is wanted"),
                (["a slots=200", "b slots=57"], ":2: more than 256 nodes"),
                (["a" * 254], ":1: '" + "a" * 100 + "' is no host"),
                (["a:0"], ":1: the port is a number from 1 to 65535, not '0'"),
                (["a:ssh"], ":1: the port is a number from 1 to 65535, not 'ssh'"),
                (["-oProxyCommand=x"], ":1: '-oProxyCommand=x' is no host"),
                (["-l@host"], ":1: '-l' is no name of a user"),
                (["$(reboot)"], r":1: '\$\(reboot\)' is no host"),
                (["[::1"], r":1: '\[::1' lacks its '\]'"),
                (["a name=x", "# comment", "b name=x"], ":3: another node is called x, too"),
                (["a name=n1", "b"], ":2: another node is called n1, too"),
                (["a name=x/y"], ":1: name=x/y: a name has letters"),
                (["a address=b:7"], ":1: address=b:7: a host name, .* without a port"),
                (["a address=::1"], ":1: address=::1: "),
                (["a name=a", "b name=a.conf"], "node 'a.conf' would have a file of node 'a'; rename one of them"),
                (["a address="], ":1: address=: ")):
            with self.subTest(lines=lines):
                output, error = self.up(self.hosts(*lines), "--", "true", status=6)
                self.assertEqual(output, "")
                self.assertRegex(error, rf"^sgpctl: \S+hosts.txt{'' if said[0] == ':' else ': '}{said}.*\n$")
        self.assertFalse(os.path.exists(self.environment["UP_CALLS"]))

    def test_bad_options(self):
        two = self.hosts("127.0.0.1", "127.0.0.1")
        three = self.script("digraph { a -> b; b -> c; c -> a }\n", "three.dot")
        named = self.script("127.0.0.1 name=a\n127.0.0.1 name=c\n127.0.0.1 name=b\n", "named.txt")
        for words, said, status in (
                ([], "the file of hosts is missing", 2),
                ([two], "a program is missing", 2),
                ([two, "-n", "2", "--", "true"], "-n and -s name a daemon, and up starts its own", 2),
                (["none", "--", "true"], "none: No such file or directory", 6),
                ([two, "--topology", "none-such", "--", "true"], "'none-such' is neither", 2),
                ([two, "--topology", three, "--", "true"], "hosts.txt has 2 nodes, and .*three.dot has 3", 6),
                ([named, "--topology", three, "--", "true"], "named.txt:2: name=c, but node 1 of .*three.dot is b", 6),
                ([two, "--set", "node.key=x", "--", "true"], "--set node.key=x: up decides node.key itself", 2),
                ([two, "--set", "train.frob=1", "--", "true"], r"127.0.0.1: --set train.frob=1: \[train\] frob: unknown key", 2),
                ([two, "--set", "train.frob=" + "ä" * 45, "--", "true"], r"127.0.0.1: --set train.frob=\S+: .*unknown key", 2),
                ([two, "--algorithm", "frob", "--", "true"], '127.0.0.1: --algorithm frob: .*"frob" does not exist', 2),
                ([two, "--", "true", b"\xff"], "a word of the program is not UTF-8", 2),
                ([two, b"--directory=/\xff", "--", "true"], "directory /.* is not UTF-8; --directory names another", 2),
                ([two, "--keep", b"/tmp/\xff", "--", "true"], "--keep /tmp/.* is not UTF-8", 2),
                ([two, "--set", b"train.patience=\xff", "--", "true"], "--set train.patience=.* is not UTF-8", 2),
                ([two, "--set", b"train.\xff=1", "--", "true"], "--set train..*=1 is not UTF-8", 2),
                ([two, "--algorithm", b"\xff", "--", "true"], "--algorithm .* is not UTF-8", 2),
                ([two, "--", "none-such"], "127.0.0.1: there is no program 'none-such'", 2),
                ([two, "--directory", "/none", "--", "true"],
                 "127.0.0.1: /none: No such file or directory; sgpctl up --directory names another", 1),
                ([two, "--keep", "/proc/none/such", "--", "true"], "127.0.0.1: --keep /proc/none/such: No such file", 1),
                ([two, "--ssh", self.ssh + " -x" * 70, "--", "true"], "127.0.0.1: .* cannot be started: Argument list too long", 1),
                ([two, "--ssh", "", "--", "true"], "--ssh needs a command", 2),
                ([two, "--ssh", "/none/ssh -v", "--", "true"], "there is no program '/none/ssh'", 2)):
            with self.subTest(words=words):
                output, error = self.up(*words, status=status)
                self.assertEqual(output, "")
                self.assertRegex(error, f"^sgpctl: .*{said}.*\n$")

    def test_hosts_that_cannot_be_reached(self):
        for host, said in (("refused", "ended with status 255: ssh: connect to host refused port 22: Connection refused"),
                           ("bare", "ended with status 127: .*sgpctl.*not found")):
            with self.subTest(host=host):
                _, error = self.up(self.hosts("127.0.0.1", host), "--", "true", status=1)
                self.assertRegex(error, rf"^sgpctl: \S+hosts.txt:2: {host}: \S+ {said}\n$")

    def test_a_job_of_slurm(self):
        """srun is the command then, and knows no user and no port."""
        self.environment["SLURM_JOB_ID"] = "1"
        self.environment["PATH"] = self.folder + ":" + self.environment["PATH"]
        srun = self.script("#!/bin/sh\necho \"$@\" >> \"$UP_CALLS\"\nwhile [ \"${1#--}\" != \"$1\" ]; do shift; done\n\"$@\"\n", "srun")
        os.chmod(srun, 0o700)
        self.words = lambda *words: [SGPCTL, "up", "--sgpctl", SGPCTL, *words]
        output, _ = self.up(self.hosts("node1 address=127.0.0.1", "node2 address=127.0.0.1"), "--", PYTHON, self.train, "20", "0")
        self.assertEqual(output.count("model"), 2)
        with open(self.environment["UP_CALLS"], encoding="utf-8") as file:
            self.assertEqual(sorted(re.findall("--nodelist=(.*?) ", file.read())), ["node1", "node2"])
        _, error = self.up(self.hosts("a@node1"), "--", "true", status=6)
        self.assertRegex(error, "hosts.txt:1: srun takes no user and no port; --ssh ssh reaches the host otherwise\n$")

    def test_the_job_script_of_slurm(self):
        """Slurm writes tasks as "2(x3),1": two on each of three hosts, and one on the next."""
        self.environment["PATH"] = self.folder + ":" + self.environment["PATH"]
        self.environment["SLURM_JOB_NODELIST"] = "node[1-4]"
        self.environment.pop("SLURM_TASKS_PER_NODE", None)
        for name, text in (("scontrol", 'test "$*" = "show hostnames node[1-4]" && printf "node%s\\n" 1 2 3 4'),
                           ("sgpctl", 'cat "$2"; shift 2; echo "$@"')):
            os.chmod(self.script(f"#!/bin/sh\n{text}\n", name), 0o700)
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/slurm/train.sh")
        for tasks, slots in ("2(x3),1", "2221"), ("1(x4)", "1111"), ("3,2(x2),4", "3224"), (None, "1111"):
            with self.subTest(tasks=tasks):
                said = subprocess.run(["sh", script, "true", "a b"], env={**self.environment, **({"SLURM_TASKS_PER_NODE": tasks}
                                      if tasks else {})}, capture_output=True, text=True, timeout=PATIENCE, check=True)
                self.assertEqual(said.stdout.splitlines(), [*(f"node{i + 1} slots={n}" for i, n in enumerate(slots)), "-- true a b"])
        self.expect_nothing_left()

    def test_a_supervisor_alone(self):
        """What is not a plan is refused in one line, as JSON."""
        for text, said in ((b"", "standard input ended before the plan"), (b"\n\nfrob\n", "is no plan of sgpctl up"),
                           (b'{"form": 99}\n', "plans of form 1 alone, not 99"), (b'{"form": 1}\n', "the plan of sgpctl up: "),
                           (b'[1, 2]\n', "plans of form 1 alone")):
            with self.subTest(text=text):
                done = subprocess.run([SGPCTL, "supervise"], input=text, capture_output=True, env=self.environment, timeout=PATIENCE,
                                      check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(said, json.loads(done.stdout)["error"]["message"])
                self.assertEqual(done.stderr, b"")
        self.expect_nothing_left()


if __name__ == "__main__":
    tap.run_cases(sys.argv[1:])
