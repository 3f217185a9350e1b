# SPDX-License-Identifier: Apache-2.0
"""`sgpctl launch` with real daemons and programs: they train and agree, and whatever happens, nothing keeps running and no
file stays. test_launch.py SGPCTL."""
import fcntl
import importlib.util
import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys

import launched
import tap
from launched import PATIENCE, TRAIN, processes

SGPCTL = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 and os.path.exists(sys.argv[1]) else "sgpctl"
PYTHON = sys.executable


class LaunchTest(launched.Case):
    def start(self, *arguments, **options):
        return subprocess.Popen([SGPCTL, "launch", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=self.environment, **options)

    def need_torch(self):
        if importlib.util.find_spec("torch") is None:
            self.skipTest("not installed: python3-torch")

    def launch(self, *arguments, status=0):
        """Run to the end: what came on standard output and standard error. Nothing is left."""
        process = self.start(*arguments)
        output, error = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, status, (output, error))
        self.expect_nothing_left()
        return output.decode(errors="replace"), error.decode(errors="replace")

    # ---- training

    def test_four_train_and_agree(self):
        output, error = self.launch("-n", "4", "--", PYTHON, self.train, "100", "0")
        models = re.findall(r"^n(\d)\| model (.*)$", output, re.MULTILINE)
        self.assertEqual(sorted(index for index, _ in models), ["0", "1", "2", "3"])
        vectors = [[float(value) for value in text.split()] for _, text in models]
        for vector in vectors:
            for value, first, wanted in zip(vector, vectors[0], (1, -2, 3)):
                self.assertLess(abs(value - first), 1e-3)
                self.assertLess(abs(value - wanted), 0.1)
        self.assertEqual(len(output.splitlines()), 8, output)
        self.assertRegex(error, r"^sgpctl: 4 nodes, [\d.]+ s\n$")

    def test_join_and_loader_of_pytorch(self):
        self.need_torch()
        script = self.script("""
import torch, sgp
with sgp.join() as node:
    torch.manual_seed(1)
    x = torch.randn(64, 3)
    data = {"x": x, "y": x @ torch.tensor([1.0, -2.0, 3.0])}
    loader = node.loader(data, batch_size=8)
    model = torch.nn.Linear(3, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    node.attach(model, optimizer, timeout=60)
    for _ in range(20):
        for batch in loader:
            loss = (model(batch["x"])[:, 0] - batch["y"]).pow(2).mean()
            optimizer.zero_grad(); loss.backward(); optimizer.step()
            node.mix(loss=loss, rows=8)
    first = node.is_first
if first:
    print(*("%.3f" % value for value in model.weight[0]))
""")
        output, _ = self.launch("-n", "2", "--", PYTHON, script)
        self.assertEqual(output, "n0| 1.000 -2.000 3.000\n")

    def test_what_a_program_is_told(self):
        self.environment.update({"OMP_NUM_THREADS": "7"})
        self.environment.pop("PYTHONUNBUFFERED", None)
        output, _ = self.launch("-n", "3", "--", "sh", "-c", "echo $SGP_NODE $SGP_NODES $RANK $WORLD_SIZE $LOCAL_RANK "
                                "$LOCAL_WORLD_SIZE $OMP_NUM_THREADS $PYTHONUNBUFFERED; test -S $SGP_SOCKET; "
                                "stat -c %a $(dirname $SGP_SOCKET) $TMPDIR/sgpctl-*; echo $NOTIFY_SOCKET")
        self.assertEqual(sorted(output.splitlines()), sorted(
            f"n{i}| {line}" for i in range(3) for line in (f"n{i} 3 {i} 3 {i} 3 7 1", "700", "700", "")))

    def test_the_status_of_a_node(self):
        """sgpctl asks a daemon that was launched by its socket, which stands beside that of the program."""
        output, _ = self.launch("-n", "2", "--", "sh", "-c", f"{SGPCTL} -s ${{SGP_SOCKET%.attach}}.control --json status")
        answers = [json.loads(line.split("| ", 1)[1]) for line in output.splitlines()]
        self.assertEqual(sorted(answer["name"] for answer in answers), ["n0", "n1"])

    def test_topologies(self):
        """A family, a file whose nodes have names and addresses of their own, and one node."""
        path = os.path.join(self.folder, "fleet.dot")
        with open(path, "w", encoding="ascii") as file:
            file.write('digraph { ada [address="10.0.0.1:7311"]; bob [address="10.0.0.2:7311"]; ada -> bob; bob -> ada }\n')
        for options, names in ((["-n", "3", "--topology", "ring"], ["n0", "n1", "n2"]), (["--topology", path], ["ada", "bob"]),
                               (["--nodes", "1"], ["n0"])):
            output, _ = self.launch(*options, "--", PYTHON, self.train, "3", "0")
            self.assertEqual(sorted(set(line.split("|")[0] for line in output.splitlines())), names)

    def test_options_reach_the_daemons(self):
        output, _ = self.launch("-n", "2", "--algorithm", "osgp", "--seed", "5", "--set", "train.overlap=2",
                                "--set=train.rounds=4", "--set", "network.compression=fp16", "--", "sh", "-c",
                                "cat $TMPDIR/sgpctl-*/$SGP_NODE.conf")
        for key in ("algorithm = osgp", "seed = 5", "overlap = 2", "rounds = 4", "compression = fp16"):
            self.assertEqual(len(re.findall(rf"^n\d\| {key}$", output, re.MULTILINE)), 2, output)
        self.assertEqual(len(re.findall(r"\[train\]", output)), 2)  # each section once

    def test_two_launches_at_once(self):
        """Each has ports of its own."""
        several = [self.start("-n", "4", "--", PYTHON, self.train, "5", "0") for _ in range(3)]
        for process in several:
            output, error = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 0, (output, error))
        self.expect_nothing_left()

    def test_kept_files_go_on(self):
        keep = os.path.join(self.folder, "keep")
        script = self.script("""
import numpy, sgp
model = {"w": numpy.zeros(3, numpy.float32)}
with sgp.attach(model, timeout=60) as node:
    print(node.resumed, node.round)
    model["w"] += 1
    for _ in range(4):
        node.mix()
    node.save(__file__ + "." + node.name)
    node.detach()
""")
        for resumed in (False, True):
            output, error = self.launch("-n", "2", "--keep", keep, "--", PYTHON, script)
            said = re.findall(r"^n(\d)\| (\w+) (\d+)$", output, re.MULTILINE)
            self.assertEqual(sorted((index, word) for index, word, _ in said), [(str(i), str(resumed)) for i in range(2)])
            for _, _, round in said:
                self.assertGreaterEqual(int(round), 4 if resumed else 0)
            self.assertIn(f", kept in {keep}", error)
        self.assertEqual(os.stat(keep).st_mode & 0o777, 0o700)
        self.assertTrue({"n0", "n0.conf", "n0.log", "n1", "topology.dot"} <= set(os.listdir(keep)), os.listdir(keep))

    # ---- what they print

    def test_lines_of_any_kind(self):
        script = self.script(r"""
import os
os.write(1, b"\x00\xff\xfe binary\n\n")
os.write(1, b"\rbar 1\rbar 2\r\n")
os.write(1, b"x" * 200000 + b"\n")
os.write(2, b"to standard error\n")
os.write(1, b"no end")
""")
        process = self.start("-n", "1", "--", PYTHON, script)
        output, error = process.communicate(timeout=PATIENCE)
        lines = output.split(b"\n")
        self.assertEqual(lines[:4], [b"n0| \x00\xff\xfe binary", b"n0| ", b"n0| bar 1", b"n0| bar 2"])
        self.assertEqual([len(line) for line in lines[4:8]], [65536 + 4] * 3 + [200000 - 3 * 65536 + 4])
        self.assertEqual(b"".join(line[4:] for line in lines[4:8]), b"x" * 200000)
        self.assertEqual(lines[8:], [b"n0| no end", b""])
        self.assertIn(b"n0| to standard error\n", error)
        self.expect_nothing_left()

    def test_lines_stay_whole(self):
        """Of four programs that print at once, each in pieces."""
        output, _ = self.launch("-n", "4", "--", PYTHON, "-c", "import os\nfor i in range(500):\n    "
                                "os.write(1, b'a%03d' % i); os.write(1, b'b' * 50 + b'\\n')")
        lines = output.splitlines()
        for node in range(4):
            self.assertEqual([line for line in lines if line.startswith(f"n{node}| ")],
                             [f"n{node}| a{i:03d}" + "b" * 50 for i in range(500)])
        self.assertEqual(len(lines), 2000)

    def terminal(self, *arguments):
        """The launcher on a terminal of its own: its pid, and the terminal's other end."""
        pid, master = pty.fork()
        if pid == 0:
            os.execve(SGPCTL, [SGPCTL, "launch", *arguments], self.environment)
        self.addCleanup(os.close, master)
        return pid, master

    def test_progress_on_a_terminal(self):
        """It stands below the lines, which are whole, and is gone at the end."""
        pid, master = self.terminal("-n", "2", "--", PYTHON, self.train, "60", "0.05")
        text = self.read_all(master).decode()
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, text)
        plain = re.sub(r"\x1b\[[\d;]*m", "", text)
        self.assertRegex(plain, r"\r\x1b\[K2 programs, rounds? \d+( to \d+)?, loss [\d.e-]+, \d+ s")
        shown = [line.split("\r\x1b[K")[-1] for line in plain.replace("\r\n", "\n").split("\n")]
        self.assertEqual([re.sub(" model.*", " model", line) for line in sorted(shown[:-2])],
                         ["n0| begins", "n0| model", "n1| begins", "n1| model"])
        self.assertRegex(shown[-2], r"^sgpctl: 2 nodes, [\d.]+ s$")
        self.expect_nothing_left()

    # ---- ends

    def test_a_program_that_fails_ends_all(self):
        output, error = self.launch("-n", "3", "--", PYTHON, self.train, "100000", "0.01", "n1", status=3)
        self.assertIn("sgpctl: n1: the program ended with status 3; so all are ended\n", error)
        self.assertEqual(error.count("the program ended"), 1, error)  # those that launch ended are not told

    def test_a_program_that_is_killed(self):
        process = self.start("-n", "2", "--", PYTHON, self.train, "100000", "0.01")
        self.until("both programs to begin", lambda: len(self.programs("train.py")) == 2)
        os.kill(self.programs("train.py")[0], signal.SIGKILL)
        _, error = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 137, error)
        self.assertRegex(error.decode(), r"sgpctl: n[01]: the program was ended by signal 9 \(Killed\); so all are ended\n")
        self.expect_nothing_left()

    def test_the_worst_status_counts(self):
        _, error = self.launch("-n", "3", "--keep-going", "--", "sh", "-c", "exit $((RANK * 2))", status=4)
        self.assertRegex(error, "n1: the program ended with status 2\n")
        self.assertRegex(error, "n2: the program ended with status 4\n")

    def test_a_status_beyond_the_signals(self):
        """One above 128 of a program that ended by itself is no signal."""
        for program, said in (([PYTHON, "-c", "import sys; sys.exit(-1)"], "ended with status 255"),
                              (["sh", "-c", "exit 143"], "ended with status 143"),
                              (["sh", "-c", "kill -TERM $$"], r"was ended by signal 15 \(Terminated\)")):
            _, error = self.launch("-n", "1", "--keep-going", "--", *program, status=143 if "143" in said or "15" in said else 255)
            self.assertRegex(error, rf"\Asgpctl: n0: the program {said}\n")

    def test_keep_going(self):
        """The others train to the end, and agree."""
        output, error = self.launch("-n", "4", "--keep-going", "--", PYTHON, self.train, "40", "0.01", "n2", status=3)
        models = dict(re.findall(r"^(n\d)\| model (.*)$", output, re.MULTILINE))
        self.assertEqual(sorted(models), ["n0", "n1", "n3"], (output, error))
        for text in models.values():
            for value, wanted in zip(text.split(), (1, -2, 3)):
                self.assertLess(abs(float(value) - wanted), 0.2)
        self.assertIn("sgpctl: n2: the program ended with status 3\n", error)

    def test_a_daemon_that_dies(self):
        process = self.start("-n", "2", "--", PYTHON, self.train, "100000", "0.01")
        self.until("both programs to begin", lambda: len(self.programs("train.py")) == 2)
        os.kill(self.programs("n1.conf")[0], signal.SIGKILL)
        _, error = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 1, error)
        self.assertRegex(error.decode(), r"sgpctl: n1: sgpd ended with status 137: ")
        self.expect_nothing_left()

    def test_ctrl_c(self):
        """On a terminal: the programs are interrupted as if they were alone there, once."""
        script = self.script(TRAIN.replace("with sgp.attach", "import atexit\natexit.register(print, 'cleaned up')\nwith "
                                           "sgp.attach"))
        pid, master = self.terminal("-n", "2", "--", PYTHON, script, "100000", "0.01")
        text = b""
        while text.count(b"begins") < 2:
            text += self.read_all(master, b"begins")
        os.write(master, b"\x03")
        text += self.read_all(master)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 130, text)
        plain = re.sub(r"\x1b\[[\d;]*[mK]", "", text.decode())
        self.assertEqual(plain.count("KeyboardInterrupt"), 2, plain)
        self.assertEqual(plain.count("cleaned up"), 2, plain)
        self.assertNotIn("sgpctl:", plain)
        self.expect_nothing_left()

    def test_programs_that_do_not_want_to_end(self):
        """Another signal is enough."""
        process = self.start("-n", "2", "--", "sh", "-c", "trap '' INT TERM; echo begins; sleep 1000; sleep 1000")
        for _ in range(2):
            self.assertIn(b"begins", process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        self.until("the first signal to be taken", lambda: int(re.search(
            r"SigPnd:\s+(\w+)", open(f"/proc/{process.pid}/status").read()).group(1), 16) == 0)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 143)
        self.expect_nothing_left()

    def test_a_launcher_that_is_killed(self):
        """Daemons, programs and what these have started end with it, and the directories are removed."""
        process = self.start("-n", "2", "--", "sh", "-c", f"{PYTHON} {self.train} 100000 0.01; true")
        for _ in range(2):
            self.assertIn(b"begins", process.stdout.readline())
        self.assertEqual(len(self.left()), 2)
        self.assertGreaterEqual(len(processes(self.marker)), 8)
        process.kill()
        process.communicate(timeout=PATIENCE)
        self.until("all to be gone", lambda: processes(self.marker) == {} and self.left() == [])

    def test_a_signal_at_the_very_start(self):
        """One that comes as soon as a directory exists, to the whole group, as from a terminal."""
        for _ in range(20):
            process = subprocess.Popen([SGPCTL, "launch", "-n", "1", "--", "sleep", "1000"], env=self.environment,
                                       cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, start_new_session=True)
            while process.poll() is None and not self.left():
                pass
            self.assertIsNone(process.poll())
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(PATIENCE)
            self.until("all to be gone", lambda: processes(self.marker) == {} and self.left() == [])

    def test_the_reader_goes_away(self):
        """As `head` does: launch ends the programs, and the daemons write their models. Its status is that of a program that
        writes on, as a shell shows it."""
        keep = os.path.join(self.folder, "keep")
        for stream in "stdout", "stderr":
            with self.subTest(stream=stream):
                process = self.start("-n", "2", "--keep", keep, "--", PYTHON, self.script(TRAIN.replace(
                    "            done += 1\n", f"            print('line', file=sys.{stream})\n            done += 1\n")),
                    "100000", "0.01")
                reader = getattr(process, stream)
                while b"line" not in reader.readline():
                    pass
                reader.close()
                self.assertEqual(process.wait(PATIENCE), 128 + signal.SIGPIPE)
                for file in process.stdout, process.stderr:
                    file.close()
                self.expect_nothing_left()
                self.expect_kept(keep, "n0", "n1")

    def test_a_full_log(self):
        """Its disk has no room: the programs train on all the same, and launch tells it."""
        with open("/dev/full", "wb") as full:
            done = subprocess.run([SGPCTL, "launch", "-n", "2", "--", PYTHON, self.train, "5", "0"], stdout=full,
                                  stderr=subprocess.PIPE, env=self.environment, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, rb"\Asgpctl: 2 nodes, [\d.]+ s\nsgpctl: standard output cannot be written\n\Z")
        self.expect_nothing_left()

    def test_what_programs_leave_running(self):
        """In their group, or in a session of its own, with the output still open."""
        output, _ = self.launch("-n", "2", "--", "sh", "-c", "sleep 1000 & setsid sleep 1000 & echo done")
        self.assertEqual(sorted(output.splitlines()), ["n0| done", "n1| done"])

    def test_children_of_before(self):
        """Those that the shell gave to launch are not of its programs, and see the end of the output: here `tee`."""
        log, keep = (os.path.join(self.folder, name) for name in ("log", "keep"))
        script = self.script(TRAIN + "print('last')\n")
        done = subprocess.run(["bash", "-c", 'sleep 1000 > /dev/null 2>&1 & echo $! >&2; exec "$@" > >(tee "$0")', log, SGPCTL, "launch", "-n", "2",
                               "--keep", keep, "--", PYTHON, script, "5", "0"], capture_output=True, timeout=PATIENCE,
                              env=self.environment, check=False)
        sleeps = int(done.stderr.split()[0])
        self.assertIn(sleeps, processes(self.marker))
        os.kill(sleeps, signal.SIGKILL)
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(done.stdout.count(b"| last\n"), 2, done)
        with open(log, "rb") as file:
            self.assertEqual(file.read(), done.stdout)
        self.expect_kept(keep, "n0", "n1")

    # ---- what daemons leave

    def expect_kept(self, keep, *names):
        """Each daemon has ended by itself, and has written its model."""
        for name in names:
            with open(os.path.join(keep, name + ".log"), encoding="utf-8") as file:
                self.assertIn("event=end status=0", file.read().splitlines()[-1], name)
            self.assertTrue(os.path.exists(os.path.join(keep, name, "model.safetensors")), name)

    def test_an_output_that_stays_open(self):
        """A process that launch cannot kill holds it: here the test itself. The daemons still have their time to end."""
        keep, path = os.path.join(self.folder, "keep"), os.path.join(self.folder, "socket")
        script = self.script(TRAIN + f"""
if node.name == "n0":
    import socket
    with socket.socket(socket.AF_UNIX) as link:
        link.connect({path!r})
        socket.send_fds(link, [b"stdout"], [1])
""")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
            server.listen()
            server.settimeout(PATIENCE)
            process = self.start("-n", "2", "--keep", keep, "--", PYTHON, script, "5", "0")
            link, _ = server.accept()
            with link:
                _, (output,), *_ = socket.recv_fds(link, 16, 1)
            said = process.communicate(timeout=PATIENCE)
            os.close(output)
        self.assertEqual(process.returncode, 0, said)
        self.expect_kept(keep, "n0", "n1")
        self.expect_nothing_left()

    def test_a_reader_that_stalls_at_the_end(self):
        """It takes longer than the daemons may: their time begins when they are told to end. Launch stands still while the program
        ends, so that all of it, the last output included, arrives together."""
        keep = os.path.join(self.folder, "keep")
        os.mkfifo(os.path.join(self.folder, "go"))
        process = self.start("-n", "1", "--keep", keep, "--", PYTHON, self.script(TRAIN.replace(
            'print("model"', f"open({self.folder!r} + '/go').close()\nprint('x' * 50000)\nprint(\"model\"")), "5", "0")
        self.assertIn(b"begins", process.stdout.readline())
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
        program, = self.programs("train.py")
        process.send_signal(signal.SIGSTOP)
        with open(os.path.join(self.folder, "go"), "wb"):
            pass
        self.until("the program to end", lambda: processes(self.marker).get(program) is None)
        process.send_signal(signal.SIGCONT)
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(11)
        output, error = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0, error)
        self.assertRegex(output, rb"\An0\| x{50000}\nn0\| model .*\n\Z")
        self.expect_kept(keep, "n0")
        self.expect_nothing_left()

    def test_a_model_that_is_not_saved(self):
        """It is told at the end, and the status is 1. Without --keep nobody would miss it."""
        keep = os.path.join(self.folder, "keep")
        os.makedirs(os.path.join(keep, "n1", "model.safetensors", "in the way"))
        _, error = self.launch("-n", "2", "--keep", keep, "--", PYTHON, self.train, "5", "0", status=1)
        self.assertRegex(error, "sgpctl: n1: sgpd ended with status 1: .*the model was not saved: .*model.safetensors.*\n")
        self.expect_kept(keep, "n0")

    def stand_in(self, text):
        """A copy of sgpctl that takes this program for sgpd. The real one is in $SGPD."""
        folder = os.path.join(self.folder, "bin")
        os.mkdir(folder)
        self.environment["SGPD"] = os.path.join(os.path.dirname(SGPCTL), "../daemon/sgpd")
        self.environment["PYTHONPATH"] = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python")
        os.chmod(self.script(text, "bin/sgpd"), 0o700)
        return shutil.copy(SGPCTL, folder)

    def test_a_daemon_that_writes_for_long(self):
        """It asks for more time, as it asks systemd, and gets it: here its own end begins 12 s after it was told to end. The real
        one repeats that every 5 s."""
        keep, told = os.path.join(self.folder, "keep"), os.path.join(self.folder, "told")
        sgpctl = self.stand_in(f"""#!{PYTHON}
import os, signal, socket, subprocess, sys, time
def end(*_):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
        link.sendto(b"EXTEND_TIMEOUT_USEC=30000000", os.environ["NOTIFY_SOCKET"])
    time.sleep(12)
    daemon.send_signal(signal.SIGINT)
if "--check" in sys.argv:
    os.execv(os.environ["SGPD"], sys.argv)
with open("{told}", "w") as file:
    file.write(" ".join(sorted(k + "=" + v for k, v in os.environ.items() if k.startswith("WATCHDOG"))))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # in the real one, which is of the same group
daemon = subprocess.Popen([os.environ["SGPD"], *sys.argv[1:]])
signal.signal(signal.SIGTERM, end)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
sys.exit(daemon.wait())
""")
        self.environment["WATCHDOG_PID"] = "1"  # of a service around
        done = subprocess.run([sgpctl, "launch", "-n", "1", "--keep", keep, "--", PYTHON, self.train, "5", "0"],
                              env=self.environment, capture_output=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done)
        self.expect_kept(keep, "n0")
        self.expect_nothing_left()
        with open(told, encoding="utf-8") as file:
            self.assertEqual(file.read(), "WATCHDOG_USEC=20000000")

    def test_a_daemon_that_does_not_end(self):
        """Its model is missing, and launch says why."""
        keep = os.path.join(self.folder, "keep")
        sgpctl = self.stand_in(f"""#!{PYTHON}
import os, signal, sys
if "--check" not in sys.argv:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
os.execv(os.environ["SGPD"], sys.argv)
""")
        done = subprocess.run([sgpctl, "launch", "-n", "1", "--keep", keep, "--", PYTHON, self.train, "5", "0"],
                              env=self.environment, capture_output=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stderr, rb"\Asgpctl: n0: sgpd does not end, so it is killed\nsgpctl: 1 node, .*\n\Z")
        self.expect_nothing_left()

    # ---- the command line

    def test_bad_options(self):
        """One line each, before anything is started."""
        usage = "; see sgpctl launch --help"
        with open(os.path.join(self.folder, "owner.dot"), "w", encoding="ascii") as file:
            file.write('digraph { a [owns="all"]; a -> b; b -> a }\n')
        program = os.path.join(self.folder, "program")
        os.close(os.open(program, os.O_CREAT, 0o700))
        for options, said, status in (
                ([], "-n N is missing, the number of nodes", 2),
                (["-n", "0"], "-n is a whole number from 1 to 256, not '0'", 2),
                (["-n", "four"], "-n is a whole number from 1 to 256, not 'four'", 2),
                (["--nodes", "999"], "--nodes is a whole number from 1 to 256, not '999'", 2),
                (["-n", "2", "--nodes", "2"], "-n and --nodes are the same; give one of them", 2),
                (["-s", "x", "--nodes", "2"], "-s names a daemon, and launch starts its own", 2),
                (["-n", "2", "--topology", "none-such"],
                 "--topology is a family of sgpctl topology generate, or a DOT file; 'none-such' is neither", 2),
                (["-n", "3", "--topology", os.path.join(self.folder, "owner.dot")], "owner.dot has 2 nodes; leave out -n", 2),
                (["-n", "2", "--topology", "owner"], "--topology owner: .*owns the vector", 2),
                (["-n", "2", "--algorithm", "frob"], '--algorithm frob: .*"frob" does not exist; choose one of sgp', 2),
                (["-n", "2", "--seed", "x"], r"--seed x: \[train\] seed", 2),
                (["-n", "2", "--set", "train.frob=1"], r"--set train.frob=1: \[train\] frob: unknown key", 2),
                (["-n", "2", "--set", "frob"], "--set takes SECTION.KEY=VALUE, not 'frob'", 2),
                (["-n", "2", "--set", "train.patience=x"], "--set train.patience=x: ", 2),
                (["-n", "2", "--set", "node.name=x"], "--set node.name=x: launch decides node.name itself", 2),
                (["-n", "2", "--set", "node.key=/none"], r"--set node.key=/none: \[node\] key: /none: No such file", 2),
                (["-n", "2", "--set", "train.seed=1", "--seed", "2"],
                 "--seed 2: --set train.seed=1 says train.seed, too; give one of them", 2),
                (["-n", "2", "--keep", "/proc/none/such"], "--keep /proc/none/such: No such file or directory", 1),
                (["-n", "2", "--keep", "/dev/null"], "--keep /dev/null: ", 1),
                (["-n", "2", "--keep", program], f"--keep {program}: it is no directory", 1),
                (["-n", "2", "--frob"], "unknown option '--frob'", 2)):
            with self.subTest(options=options):
                output, error = self.launch(*options, "--", "sh", "-c", "echo started", status=status)
                self.assertEqual(output, "")
                self.assertRegex(error, f"^sgpctl: .*{said}.*\n$")
                self.assertEqual(error.endswith(usage + "\n"), status == 2 and "refuses" not in said, error)
        for words, said in (([], "a program is missing"), (["none-such"], "there is no program 'none-such'"),
                            (["/etc/passwd"], "there is no program '/etc/passwd'")):
            _, error = self.launch("-n", "2", "--", *words, status=2)
            self.assertRegex(error, f"^sgpctl: {said}.*\n$")

    def file_of(self, *names):
        """A topology file in which all give to all."""
        path = os.path.join(self.folder, "named.dot")
        with open(path, "w", encoding="ascii") as file:
            file.write("digraph {" + "; ".join(f'"{a}" -> "{b}"' for a in names for b in names if a != b) + "}\n")
        return path

    def test_names_that_share_a_file(self):
        for names, said in ((("a", "a.conf"), "node 'a.conf' would have a file of node 'a'; rename one of them"),
                            (("b.log", "b"), "node 'b.log' would have a file of node 'b'; rename one of them"),
                            (("topology.dot", "c"), "a node cannot be called 'topology.dot'")):
            path = self.file_of(*names)
            output, error = self.launch("--topology", path, "--", "echo", "started", status=6)
            self.assertEqual((output, error), ("", f"sgpctl: {path}: {said}\n"))
        self.launch("--topology", self.file_of("a", "a.control", "a.conf.x"), "--", "true")

    def test_paths_of_sockets(self):
        """107 bytes at most, with the name of the node."""
        def room(bytes):
            self.environment["XDG_RUNTIME_DIR"] = path = os.path.join(self.folder, "x" * (bytes - len(self.folder) - 1))
            os.mkdir(path)
            return path
        end = len("/sgpctl-XXXXXX/.control")
        path = room(107 - end - len("n0"))
        self.launch("-n", "1", "--", "true")
        for path, names in ((path, ("abc", "d")), (room(107 - end - 63 + 1), ("a" * 63, "d")), (room(200), ("n0", "n1"))):
            options, name = ["--topology", self.file_of(*names)], names[0]
            self.environment["XDG_RUNTIME_DIR"] = path
            output, error = self.launch(*options, "--", "echo", "started", status=1)
            self.assertEqual(output, "")
            self.assertRegex(error, f"^sgpctl: {path}/sgpctl-....../{name}.control: the path of a socket has at most 107 "
                             "bytes; set a shorter XDG_RUNTIME_DIR or TMPDIR, or name the node shorter\n$")
            self.assertEqual(os.listdir(path), [])

    def test_paths_that_a_configuration_cannot_hold(self):
        """They are refused with the option that names them, and not with a line of a file that launch writes."""
        long = os.path.join(self.folder, "x" * 200)
        cut = os.path.join(self.folder, "a #b")
        for path, said in ((cut, f"'{cut}/topology.dot' cannot be written into a configuration, where a line ends at a blank before # or ; "
                                 "and has no control character; use another"),
                           (long, f"'{long[:80]}...' is too long for a configuration, which takes 190 bytes there; use a shorter one")):
            with self.subTest(path=path):
                output, error = self.launch("-n", "2", "--keep", path, "--", "echo", "started", status=2)
                self.assertEqual((output, error), ("", f"sgpctl: --keep: {said}; see sgpctl launch --help\n"))
                self.assertEqual(os.listdir(path), [])

    def test_json(self):
        output, error = self.launch("--json", "-n", "2", "--keep-going", "--", "sh", "-c", "exit $RANK", status=1)
        lines = output.splitlines()
        self.assertEqual(json.loads(lines[0])["error"]["message"], "n1: the program ended with status 1")
        summary = json.loads(lines[1])
        self.assertEqual((summary["nodes"], summary["statuses"], summary["kept"]), (2, {"n0": 0, "n1": 1}, None))
        self.assertEqual((len(lines), error), (2, ""))


if __name__ == "__main__":
    tap.run_cases(sys.argv[1:])
