# SPDX-License-Identifier: Apache-2.0
"""The packages of Debian: how they are built, what is in them, and what becomes of a bare host that installs,
upgrades, downgrades, removes and purges them; and two that train. test_package.py SOURCE [TEST...]"""
import atexit
import filecmp
import functools
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../system"), os.path.join(HERE, "../system/hosts")]
import container  # noqa: E402
import fleet  # noqa: E402
import sandbox  # noqa: E402
import tap  # noqa: E402
from container import NAMES  # noqa: E402

SOURCE = sys.argv.pop(1)
PACKAGES = ["cockpit-sgpd", "libsgp-dev", "libsgp0", "python3-sgp", "sgpd"]
NEXT = "99.0.0"  # a version after this one
# What is in each, among others.
CONTENTS = {
    "sgpd": """usr/bin/sgpd usr/bin/sgpctl usr/lib/systemd/system/sgpd@.service usr/lib/systemd/system/sgpd-metrics@.service
        usr/lib/systemd/system/sgpd.target usr/lib/systemd/system/sgpd.slice usr/lib/sysusers.d/sgpd.conf
        usr/share/man/man8/sgpd.8.gz usr/share/man/man5/sgpd.conf.5.gz usr/share/man/man1/sgpctl.1.gz
        usr/share/man/man1/sgpctl-topology-generate.1.gz
        usr/share/bash-completion/completions/sgpctl.bash usr/share/bash-completion/completions/sgpd.bash
        usr/share/zsh/vendor-completions/_sgpctl usr/share/fish/vendor_completions.d/sgpctl.fish
        usr/share/sgpd/compare/__main__.py usr/share/sgpd/page/index.html usr/share/sgpd/page/main.js
        usr/share/man/man1/sgpctl-dashboard.1.gz usr/share/sgpd/topologies/ring.dot usr/share/doc/sgpd/README.md
        usr/share/doc/sgpd/docs/PACKAGES.md usr/share/doc/sgpd/sgpd.conf.example usr/share/doc/sgpd/docs/rules/mass.md
        usr/share/doc/sgpd/monitoring/sgpd-dashboard.json usr/share/doc/sgpd/systemd/limits.conf etc/sgpd/""",
    "cockpit-sgpd": """usr/share/cockpit/sgpd/manifest.json usr/share/cockpit/sgpd/index.html usr/share/cockpit/sgpd/main.js
        usr/share/cockpit/sgpd/transport.js""",
    "libsgp0": "usr/lib/x86_64-linux-gnu/libsgp.so.0",
    "libsgp-dev": "usr/include/sgp/attach.h usr/lib/x86_64-linux-gnu/libsgp.so usr/lib/x86_64-linux-gnu/pkgconfig/sgp.pc",
    "python3-sgp": "usr/lib/python3/dist-packages/sgp/__init__.py usr/lib/python3/dist-packages/sgp/py.typed",
}


def run(*command, **options):
    done = subprocess.run(command, text=True, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)
    assert done.returncode == 0, f"{' '.join(command)}: {done.returncode}\n{done.stdout}"
    return done.stdout


@functools.cache
def room():
    folder = tempfile.mkdtemp(prefix="sgpd-package-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def copy_of_the_tree(name, version=None):
    """The tree elsewhere; or as one of another version, without git and LTO, which takes longer to link."""
    tree = os.path.join(room(), name)
    shutil.copytree(SOURCE, tree, ignore=lambda folder, names: [
        name for name in names if name == "__pycache__" or folder == SOURCE and name.startswith("build") or
        version is not None and name == ".git"])  # the commit is part of the version
    if version:
        for path, old, new in (("VERSION", r"\A.*", version),
                               ("debian/rules", r" optimize=\+lto", ""),
                               ("python/pyproject.toml", r'version = ".+"', f'version = "{version}"'),
                               ("debian/changelog", r"\A(sgpd) \([^)]+\)", rf"\1 ({version})")):
            with open(os.path.join(tree, path), "r+", encoding="utf-8") as file:
                text, count = re.subn(old, new, file.read(), count=1)
                assert count == 1, path
                file.seek(0)
                file.write(text)
                file.truncate()
    return tree


@functools.cache
def packages(kind):
    """The folder of packages: of this tree as it is, of a copy elsewhere, or of a later version."""
    for program in ("dpkg-buildpackage", "dh", "lintian"):
        if shutil.which(program) is None:
            raise unittest.SkipTest(f"not installed: {program}")
    into = os.path.join(room(), "packages-" + kind)
    if kind == "here":
        said = run(os.path.join(SOURCE, "scripts/package"), "--check", into)
    elif kind == "elsewhere":
        said = run(os.path.join(copy_of_the_tree("elsewhere"), "scripts/package"), into, umask=0o077,
                   env={**os.environ, "TZ": "Asia/Tokyo", "LC_ALL": "C", "CFLAGS": "-O1"})
    else:
        said = run(os.path.join(copy_of_the_tree("next", NEXT), "scripts/package"), into)
    return into, said


def files(kind, names=PACKAGES):
    """The package files, by name."""
    found = {name: glob.glob(f"{packages(kind)[0]}/{name}_*.deb") for name in names}
    assert all(len(paths) == 1 for paths in found.values()), found
    return {name: paths[0] for name, paths in found.items()}


class Packages(unittest.TestCase):
    maxDiff = None

    def test_lintian_has_nothing_to_say(self):
        self.assertEqual([line for line in packages("here")[1].splitlines() if re.match(r"[EW]: ", line)], [])

    def test_two_builds_are_equal_bit_for_bit(self):
        def digests(kind):
            found = {}
            for path in glob.glob(packages(kind)[0] + "/*.deb"):
                with open(path, "rb") as file:
                    found[os.path.basename(path)] = hashlib.sha256(file.read()).hexdigest()
            return found
        here = digests("here")
        self.assertGreaterEqual(len(here), len(PACKAGES))
        self.assertEqual(here, digests("elsewhere"))
        for name, digest in sorted(here.items()):
            sandbox.tell(f"{digest[:16]} {name}")

    def test_the_symbols_are_those_of_the_library(self):
        with open(packages("here")[0] + "/build.log", encoding="utf-8") as file:
            self.assertEqual([line for line in file if "dpkg-gensymbols" in line and "warning" in line], [])

    def test_everything_is_where_it_belongs(self):
        for name, path in files("here").items():
            listed = {line.split()[5].removeprefix("./") for line in run("dpkg-deb", "-c", path).splitlines()}
            self.assertEqual([file for file in CONTENTS[name].split() if file not in listed], [], name)

    def test_the_page_inside_cockpit_is_the_same_but_for_its_transport(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("sgpd", "cockpit-sgpd"):
                run("dpkg-deb", "-x", files("here")[name], folder)
            page, inside = (os.path.join(folder, "usr/share", path) for path in ("sgpd/page", "cockpit/sgpd"))
            _, different, unread = filecmp.cmpfiles(page, inside, os.listdir(page), shallow=False)
            self.assertEqual((different, unread), (["transport.js"], []))
            self.assertEqual(set(os.listdir(inside)) - set(os.listdir(page)), {"manifest.json"})

    def test_the_version_is_that_of_the_programs(self):
        with open(os.path.join(SOURCE, "VERSION"), encoding="utf-8") as file:
            tree = file.read().strip()
        versions = {run("dpkg-deb", "-f", path, "Version").strip() for path in files("here").values()}
        self.assertEqual(len(versions), 1)
        version = versions.pop()
        git = subprocess.run(["git", "-C", SOURCE, "rev-parse", "HEAD"], check=False, capture_output=True).returncode == 0
        self.assertRegex(version, re.escape(tree) + (r"\d{8}\.\d{6}\.[0-9a-f]{12}(\.dirty)?$" if git else "$"))
        run("dpkg", "--compare-versions", version, "lt", tree.removesuffix("~git"))
        with tempfile.TemporaryDirectory() as folder:
            run("dpkg-deb", "-x", files("here")["sgpd"], folder)
            self.assertEqual(run(f"{folder}/usr/bin/sgpd", "--version").split()[1].rstrip(","), version)
            self.assertEqual(run(f"{folder}/usr/bin/sgpctl", "--version").split()[1], version)

    def test_programs_are_hardened(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("sgpd", "libsgp0"):
                run("dpkg-deb", "-x", files("here")[name], folder)
            for program in ("usr/bin/sgpd", "usr/bin/sgpctl", "usr/lib/x86_64-linux-gnu/libsgp.so.0"):
                path = os.path.join(folder, program)
                self.assertRegex(run("readelf", "-hW", path), r"Type:\s+DYN", program)  # position independent
                self.assertRegex(run("readelf", "-dW", path), r"\((FLAGS|FLAGS_1)\).*\b(BIND_NOW|NOW)\b", program)
                self.assertNotRegex(run("readelf", "-dW", path), "R(UN)?PATH", program)
                self.assertIn("GNU_RELRO", run("readelf", "-lW", path), program)
                self.assertRegex(run("readelf", "-lW", path), r"GNU_STACK.* RW ", program)
                symbols = run("readelf", "--dyn-syms", "-W", path)
                self.assertIn("__stack_chk_fail", symbols, program)
                self.assertRegex(symbols, r"__v?snprintf_chk", program)


class Bare(container.Container):
    """A bare Debian that has installed the packages by apt, which fetched what they depend on."""

    def lower(self):
        return container.tree(container.RELEASE + "-bare", "")

    def install(self):
        self.take("here")
        for name in ("resolv.conf", "hosts"):
            shutil.copy("/etc/" + name, f"{self.root}/etc/{name}")
        sandbox.call("mount", "-t", "proc", "proc", self.root + "/proc")
        self.chroot("apt-get", "update", "-qq")
        self.said = self.chroot("apt-get", "install", "-y", *self.paths("here"))
        sandbox.call("umount", self.root + "/proc")

    def take(self, kind):
        os.makedirs(f"{self.root}/srv/{kind}", exist_ok=True)
        for path in files(kind).values():
            shutil.copy(path, f"{self.root}/srv/{kind}")

    def paths(self, kind):
        return [f"/srv/{kind}/{os.path.basename(path)}" for path in files(kind).values()]

    def chroot(self, *command):
        return sandbox.call("chroot", self.root, "env", "-i", "PATH=" + sandbox.PATH, "DEBIAN_FRONTEND=noninteractive",
                            "LC_ALL=C.UTF-8", *command)


@sandbox.once
def host():
    files("here"), files("next")  # before namespaces are entered
    bare = Bare(None)
    bare.take("next")
    bare.boot()
    return bare


class Host(unittest.TestCase):
    """The tests run in the order of their names, on one host: its life."""
    maxDiff = None

    def setUp(self):
        self.host = host()

    def logs(self):
        return self.host.run("journalctl", "-n", "30", "-o", "cat", check=False).stdout if hasattr(self, "host") else ""

    def apt(self, *command):
        return self.host.run("env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", "apt-get", "-y", *command).stdout

    def show(self, unit, name):
        return self.host.run("systemctl", "show", "--value", "-p", name, unit).stdout.strip()

    def status(self, name):
        return json.loads(self.host.run("sgpctl", "-n", name, "--json", "status").stdout)

    def rounds_on(self, more=20):
        for name in NAMES:
            self.host.run("sgpctl", "-n", name, "wait", "--for", f"round:{self.status(name)['round'] + more}", "--timeout", "60")

    def state(self):
        """What the state directories hold: names, and who may what."""
        return self.host.run("sh", "-c", "cd /var/lib/sgpd && find . -type f -printf '%m %u %p\\n' | sort").stdout

    def test_1_installed_and_nothing_runs(self):
        self.assertIn("/usr/bin/sgpd", self.host.run("dpkg", "-L", "sgpd").stdout)
        self.assertEqual(self.host.run("dpkg", "--audit").stdout, "")
        self.assertRegex(self.host.run("getent", "passwd", "sgpd").stdout, "sgpd:.*:/var/lib/sgpd:")
        self.assertEqual(self.show("sgpd.target", "ActiveState"), "inactive")
        self.assertEqual(self.show("sgpd.target", "UnitFileState"), "disabled")
        self.assertEqual(self.host.run("systemctl", "list-units", "--all", "--no-legend", "sgpd*@*").stdout, "")
        self.assertEqual(self.host.run("sgpctl", "status", check=False).returncode, 3)
        self.assertIn("warning", self.host.run("sgpd", "--help-config").stdout)
        self.assertIn("/usr/share/cockpit/sgpd\n", self.host.run("cockpit-bridge", "--packages").stdout)
        self.assertEqual(self.host.run("python3", "-c", "import sgp; print(sgp.attach.__name__)").stdout, "attach\n")

    def test_2_runs_once_there_is_a_configuration(self):
        with tempfile.NamedTemporaryFile("r") as rows:
            fleet.write_rows(rows.name)
            self.host.write("/srv/sgpd/rows.csv", rows.read())
        self.host.write("/etc/sgpd/fleet.dot", container.TOPOLOGY)
        for name in NAMES:
            self.host.write(f"/etc/sgpd/{name}.conf", container.configuration(name))
        self.host.run("systemctl", "enable", "--now", *(f"sgpd@{name}" for name in NAMES), "sgpd-metrics@n0")
        self.rounds_on()
        self.exports()

    def exports(self):
        """A graph of ONNX, which needs a library of its own; of a daemon, and of a model file."""
        self.host.run("sgpctl", "-n", "n0", "export", "/srv/sgpd/m.safetensors")
        self.host.run("sgpctl", "-n", "n0", "export", "/srv/sgpd/n0.onnx")
        self.host.run("sgpctl", "export", "--model", "/srv/sgpd/m.safetensors", "/srv/sgpd/m.onnx")
        for name in ("n0", "m"):
            self.assertEqual(self.host.run("grep", "-c", "cross-entropy", f"/srv/sgpd/{name}.onnx").stdout, "1\n")

    def change(self, kind, *options):
        """Another version: nodes go on by the one that they were started with, and then by the new one where they were."""
        pids = [self.show(f"sgpd@{name}", "MainPID") for name in NAMES]
        before, incarnations = self.state(), {name: self.status(name)["incarnation"] for name in NAMES}
        self.apt("install", *options, *self.host.paths(kind))
        self.assertEqual([self.show(f"sgpd@{name}", "MainPID") for name in NAMES], pids)
        self.assertEqual(self.state(), before)
        self.rounds_on()
        rounds = {name: self.status(name)["round"] for name in NAMES}
        self.host.run("systemctl", "restart", *(f"sgpd@{name}" for name in NAMES))
        self.rounds_on()
        for name in NAMES:
            now = self.status(name)
            self.assertGreater(now["round"], rounds[name])
            self.assertEqual(now["incarnation"], incarnations[name])
            self.assertEqual(now["weight_minted"], 0)
        return self.host.run("sgpctl", "--version").stdout

    def test_3_an_upgrade_keeps_the_state(self):
        self.assertIn(NEXT, self.change("next"))

    def test_4_a_downgrade_keeps_it(self):
        self.assertNotIn(NEXT, self.change("here", "--allow-downgrades"))

    def test_5_removed_it_stops_and_leaves_the_state(self):
        self.apt("remove", "sgpd")
        self.assertEqual(self.host.run("sh", "-c", "ls /run/sgpd 2>/dev/null | wc -l").stdout, "0\n")
        for name in NAMES:
            self.assertIn(f"./{name}/model.safetensors", self.state())
        self.assertIn("n0.conf", self.host.run("ls", "/etc/sgpd").stdout)
        self.apt("install", *self.host.paths("here"))
        self.host.run("systemctl", "start", *(f"sgpd@{name}" for name in NAMES))
        self.rounds_on()

    def test_6_purged_it_keeps_keys_and_models_if_nobody_can_be_asked(self):
        self.host.run("sgpctl", "key", "generate", "n0")
        key = self.host.run("cat", "/etc/sgpd/n0.key").stdout
        self.host.run("systemctl", "stop", *(f"sgpd@{name}" for name in NAMES))
        state = self.state()
        done = self.host.run("sh", "-c", "DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 apt-get -y purge sgpd 2>&1")
        self.assertEqual(done.stdout.count("secret keys in /etc/sgpd and models in /var/lib/sgpd are kept"), 1, done.stdout)
        self.assertEqual(self.host.run("ls", "/etc/sgpd").stdout, "n0.key\n")
        self.assertEqual(self.host.run("cat", "/etc/sgpd/n0.key").stdout, key)
        self.assertEqual(self.state(), state)
        self.apt("install", *self.host.paths("here"))
        self.assertEqual(self.host.run("cat", "/etc/sgpd/n0.key").stdout, key)
        self.assertEqual(self.state(), state)

    def test_7_purged_as_answered_before_it_leaves_nothing(self):
        self.host.run("systemctl", "enable", "sgpd.target")
        self.host.run("sh", "-c", "echo sgpd sgpd/purge_data boolean true | debconf-set-selections")
        self.apt("purge", *PACKAGES)
        self.assertEqual(self.host.run("sh", "-c", "debconf-show sgpd | wc -l").stdout, "0\n")
        left = self.host.run("find", "/", "(", "-path", "/proc", "-o", "-path", "/sys", "-o", "-path", "/srv", "-o", "-path",
                             "/var/log", ")", "-prune", "-o", "-name", "*sgp*", "!", "-name", "*msgp*",
                             "-print", check=False).stdout.split()
        self.assertEqual(left, [])
        self.assertEqual(self.host.run("dpkg-query", "-W", "-f", "${Package} ", *PACKAGES, check=False).stdout.count("\n"),
                         len(PACKAGES))  # "no packages found" for each
        self.assertEqual(self.host.run("systemctl", "list-unit-files", "--no-legend", "sgpd*", check=False).stdout, "")


class Unprepared(Bare):
    """A bare Debian that boots. It has fetched what the package depends on, and installed nothing of it but systemd."""

    def install(self):
        self.take("here")
        for name in ("resolv.conf", "hosts"):
            shutil.copy("/etc/" + name, f"{self.root}/etc/{name}")
        self.chroot("apt-get", "update", "-qq")
        self.chroot("apt-get", "install", "-y", "systemd")
        self.chroot("apt-get", "install", "-y", "--download-only", self.package())

    def package(self):
        return "/srv/here/" + os.path.basename(files("here")["sgpd"])


HOSTS = {"alice": "192.0.2.10", "bob": "192.0.2.11"}


@sandbox.once
def pair():
    """Two bare hosts with a cable between them, and what each prints for the topology file as its key; and a third one, which is
    not booted. All fetch packages before they lose the network."""
    files("here")
    hosts, keys = {}, {}
    for name in HOSTS:
        hosts[name] = Bare(None, name)
    third = Unprepared(None, "carol")
    sandbox.enter(sandbox.NETWORK)
    sandbox.attempt("no cables", "ip", "link", "add", "alice", "type", "veth", "peer", "name", "bob")
    for name, host_ in hosts.items():
        host_.boot()
        host_.plug_in(name, HOSTS[name] + "/24")
        keys[name] = host_.run("sgpctl", "key", "generate", name).stdout
    return hosts, keys, third


class Pair(unittest.TestCase):
    """What the README says of two machines, with a key for each."""

    def status(self, name):
        return json.loads(pair()[0][name].run("sgpctl", "-n", name, "--json", "status").stdout)

    def test_two_hosts_train_to_the_end(self):
        hosts, keys, _ = pair()
        lines = [re.sub(r"\[", f'[address="{address}:7311", ', keys[name].strip(), count=1)
                 for name, address in HOSTS.items()]
        topology = "digraph pair {\n  tls=require;\n  " + "\n  ".join(lines) + "\n  alice -> bob; bob -> alice;\n}\n"
        for name, host_ in hosts.items():
            with tempfile.NamedTemporaryFile("r") as rows:
                fleet.write_rows(rows.name)
                host_.write("/srv/sgpd/rows.csv", rows.read())
            host_.write("/etc/sgpd/fleet.dot", topology)
            text = container.configuration(name, "0.0.0.0:7311").replace("rounds = 1G", "rounds = 500")
            host_.write(f"/etc/sgpd/{name}.conf", text)
            host_.run("systemctl", "enable", "--now", f"sgpd@{name}")
        for name, host_ in hosts.items():
            host_.run("sgpctl", "-n", name, "wait", "--for", "finished", "--timeout", "120")
        statuses = {name: self.status(name) for name in HOSTS}
        for name, status in statuses.items():
            self.assertEqual(status["state"], "finished")
            self.assertEqual(status["disagrees"], [])
            self.assertGreater(status["test_accuracy"], 0.9, name)
            peers = json.loads(hosts[name].run("sgpctl", "-n", name, "--json", "peers").stdout)
            for peer in peers:
                self.assertTrue(peer["cipher"], peer)
                self.assertEqual(peer["address"].split(":")[0], HOSTS[peer["name"]])
            hosts[name].run("sgpctl", "-n", name, "status", "--check")
            sandbox.tell(f"{name}: {status['state']}, accuracy {status['test_accuracy']:.4f}, {peers[0]['cipher']}")
        self.assertAlmostEqual(sum(status["weight"] for status in statuses.values()), len(HOSTS), delta=1e-9)


FIRST, SECOND = "198.51.100.1", "198.51.100.2"


class Third(unittest.TestCase):
    """What FLEET says of a machine that is added. n0 and n1 train on alice; carol's machine is bare, with rows and a cable."""

    def setUp(self):
        hosts, _, self.carol = pair()
        self.alice = hosts["alice"]
        sandbox.call("ip", "link", "add", "second", "type", "veth", "peer", "name", "carol")
        self.alice.plug_in("second", FIRST + "/24")
        self.carol.boot()
        self.carol.plug_in("carol", SECOND + "/24")
        with tempfile.NamedTemporaryFile("r") as rows:
            fleet.write_rows(rows.name)
            text = rows.read()
        for host_ in (self.alice, self.carol):
            host_.write("/srv/sgpd/rows.csv", text)

    def start_fleet(self):
        nodes = {"n0": FIRST + ":7321", "n1": FIRST + ":7322"}
        lines = [re.sub(r"\[", f'[address="{address}", ', self.alice.run("sgpctl", "key", "generate", name).stdout.strip(), count=1)
                 for name, address in nodes.items()]
        self.alice.write("/etc/sgpd/lab.dot", "digraph lab {\n  tls=require;\n  " + "\n  ".join(lines) + "\n  n0 -> n1 -> n0;\n}\n")
        for name, address in nodes.items():
            text = container.configuration(name, address).replace("fleet.dot", "lab.dot")
            self.alice.write(f"/etc/sgpd/{name}.conf", text)
        self.alice.run("systemctl", "start", *(f"sgpd@{name}" for name in nodes))
        self.alice.run("sgpctl", "-n", "n0", "wait", "--for", "round:20", "--timeout", "60")

    def row(self):
        """Of carol's node, as n1 knows it, of which carol's node is no target."""
        told = json.loads(self.alice.run("sgpctl", "-n", "n1", "--json", "fleet").stdout)
        return next((row for row in told["nodes"] if row["name"] == "carol"), {"state": None, "round": None})

    def timed(self, *command):
        began = time.monotonic()
        said = self.carol.run(*command).stdout
        sandbox.tell(f"{time.monotonic() - began:.1f} s: {' '.join(command)[:60]}")
        return said

    def admit(self):
        """What an administrator does, once the node is pending."""
        text = self.alice.run("sgpctl", "-n", "n0", "admit", "carol").stdout
        self.assertIn("// ring, 3 nodes: carol joins", text)
        self.alice.write("/etc/sgpd/lab.dot", text)
        self.carol.write("/etc/sgpd/fleet.dot", text)
        for name in ("n0", "n1"):
            self.alice.run("sgpctl", "-n", name, "reload")

    def test_a_bare_machine_trains_after_three_commands(self):
        self.start_fleet()
        invitation = self.alice.run("sgpctl", "-n", "n0", "invite", "carol").stdout.strip()
        began = time.monotonic()
        self.timed("env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", "apt-get", "install", "-y", self.carol.package())
        said = self.timed("sgpctl", "join", "--address", SECOND + ":7321", "--train", "/srv/sgpd/rows.csv", invitation)
        self.assertIn("carol is pending", said)
        self.assertIsNone(self.row()["state"])
        self.admit()
        self.timed("systemctl", "enable", "--now", "sgpd@carol")
        fleet.poll("the row of carol", lambda: self.row()["state"] == "training", fleet.PATIENCE, self.logs, 0.1)
        sandbox.tell(f"{time.monotonic() - began:.1f} s after the first command n1 sees that carol trains")
        before = self.row()["round"]
        fleet.poll("her rounds to rise", lambda: self.row()["round"] > before + 20, fleet.PATIENCE, self.logs, 0.1)
        status = json.loads(self.carol.run("sgpctl", "-n", "carol", "--json", "status").stdout)
        self.assertEqual((status["state"], status["disagrees"]), ("training", []))
        peers = json.loads(self.carol.run("sgpctl", "-n", "carol", "--json", "peers").stdout)
        self.assertEqual({(peer["name"], bool(peer["cipher"])) for peer in peers}, {("n0", True), ("n1", True)})
        self.assertEqual(self.carol.run("stat", "-c", "%a", "/etc/sgpd/carol.key").stdout[-3:-1], "00")

    def logs(self):
        hosts = [getattr(self, name) for name in ("alice", "carol") if hasattr(self, name)]
        return "".join(host_.run("journalctl", "-n", "20", "-o", "cat", check=False).stdout for host_ in hosts if host_.leader)


if __name__ == "__main__":
    tap.run_cases(sys.argv[1:])
