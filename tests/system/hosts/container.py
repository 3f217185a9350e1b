# SPDX-License-Identifier: Apache-2.0
"""A host of its own: Debian 12 from debootstrap, sgpd installed into it, booted by systemd-nspawn.

The tree is made once, in /var/cache/sgpd-tests (150 MB; remove it when you like). A container is an overlay
in memory over it, in the test's own mount namespace, and runs in control groups of its own, which are
all that a killed test can leave behind: empty, and removed by the next one."""
import atexit
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

import mirror
import sandbox
from sandbox import MOUNTS, attempt, call, enter, need

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import fleet

RELEASE = "bookworm"
CACHE = "/var/cache/sgpd-tests"
# systemd, and what sgpd and sgpctl are linked with.
PACKAGES = ("systemd,libuv1,libopenblas0-pthread,libmsgpackc2,libcgraph6,libinih1,libjansson4,"
            "libmicrohttpd12,libcurl4,libxxhash0,zlib1g,libgnutls30,libhogweed6,libprotobuf-c1,libisal2")
GROUP = "sgpd-test-"  # control groups, by the number of the test's process
BOOT_SECONDS = 60


NAMES = ["n0", "n1", "n2"]
TOPOLOGY = """digraph ring {
  n0 [address="127.0.0.1:7311"]; n1 [address="127.0.0.1:7312"]; n2 [address="127.0.0.1:7313"];
  n0 -> n1 -> n2 -> n0;
}
"""


def configuration(name, listen=None):
    """Of one of them, which trains without end."""
    return f"""[node]
name = {name}
[topology]
file = /etc/sgpd/fleet.dot
[train]
rounds = 1G
[model]
layers = dense 2
[data]
train = /srv/sgpd/rows.csv
label = label
classes = neg pos
holdout = 0.2
[network]
listen = {listen or "127.0.0.1:%d" % (7311 + NAMES.index(name))}
"""


# ---- the tree ----

def release_of(root):
    with open(root + "/etc/os-release") as file:
        return dict(line.rstrip().split("=", 1) for line in file if "=" in line).get("VERSION_CODENAME")


def make_tree(path, packages):
    """debootstrap into `path`, with more packages than it must have; complete or not there at all."""
    site = mirror.find(RELEASE)
    os.makedirs(CACHE, mode=0o755, exist_ok=True)
    building = tempfile.mkdtemp(dir=CACHE)
    try:
        os.chmod(building, 0o755)
        # In namespaces, so that a broken off run leaves no mounts.
        attempt("debootstrap", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
                "debootstrap", "--variant=minbase", *(["--include=" + packages] if packages else []),
                RELEASE, building, site)
        for part in ("usr/share/doc", "usr/share/man", "usr/share/locale", "var/lib/apt/lists",
                     "var/cache/apt"):
            shutil.rmtree(os.path.join(building, part))
        os.rename(building, path)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def tree(name=f"{RELEASE}-{zlib.crc32(PACKAGES.encode()):08x}", packages=PACKAGES):
    """The tree of a name in the cache, made if it is not there. Other packages make a tree of another name."""
    if release_of("/") != RELEASE:
        raise unittest.SkipTest("the container is Debian 12, and this machine builds for another system")
    path = os.path.join(CACHE, name)
    if not os.path.isdir(path):
        make_tree(path, packages)
    return path


# ---- control groups: in the place where this process is, of systemd's hierarchies ----

def own_groups():
    with open("/proc/self/cgroup") as file:
        lines = [line.rstrip().split(":", 2) for line in file]
    tops = {"name=systemd": "/sys/fs/cgroup/systemd",
            "": "/sys/fs/cgroup/unified" if os.path.isdir("/sys/fs/cgroup/unified") else "/sys/fs/cgroup"}
    return [tops[name] + place for _, name, place in lines if name in tops]


def remove_groups(path, seconds=0):
    """Those that are empty; a test that runs beside this one keeps its own. Processes that were killed may be there for some
    seconds yet."""
    end = time.monotonic() + seconds
    while True:
        for folder, _, _ in os.walk(path, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                pass
        if not os.path.isdir(path) or time.monotonic() > end:
            return
        time.sleep(0.05)


def join(path):
    """Move this process into a control group. A folder that is none has no such file."""
    descriptor = os.open(path + "/cgroup.procs", os.O_WRONLY)
    try:
        os.write(descriptor, str(os.getpid()).encode())
    finally:
        os.close(descriptor)


def try_to_join(paths):
    """What a child of this process is told when it joins them; None: nothing."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            for path in paths:
                join(path)
        except OSError as error:
            os.write(writing, str(error).encode())
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as file:
        told = file.read()
    os.waitpid(child, 0)
    return told or None


def make_groups(name):
    """Control groups that a child of this process can join, gone at its end; or a skip, and none is left."""
    made = []
    for place in own_groups():
        for left in glob.glob(f"{place}/{GROUP}*"):
            if not left.startswith(f"{place}/{GROUP}{os.getpid()}-"):
                remove_groups(left)
        path = f"{place}/{GROUP}{os.getpid()}-{name}"
        try:
            os.mkdir(path)
        except OSError as error:
            why = f"no control groups can be made: {error}"
            break
        made.append(path)
    else:
        told = try_to_join(made)
        why = told and f"no control group can be joined: {told}"
    if why or not made:
        for path in made:
            remove_groups(path, 5)
        raise unittest.SkipTest(why or "this process is in no control group of systemd's hierarchies")
    atexit.register(lambda: [remove_groups(path, 5) for path in made])
    return made


# ---- the container ----

def child_of(pid, name):
    """The only child of a process, if it is the program of this name by now, or None."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            children = file.read().split()
        if len(children) != 1:
            return None
        with open(f"/proc/{children[0]}/comm") as file:
            return int(children[0]) if file.read().strip() == name else None
    except FileNotFoundError:
        return None


@sandbox.once
def enter_room():
    """A mount namespace of the test's own, where /mnt is in memory."""
    enter(MOUNTS)
    attempt("no tmpfs", "mount", "-t", "tmpfs", "-o", "mode=755", "sgpd-tests", "/mnt")


class Container:
    """sgpd as `meson install` puts it, under its own systemd, with nothing but loopback and what is plugged in."""

    def __init__(self, build, name="host"):
        self.build, self.name = build, name
        need("systemd-nspawn", "debootstrap", "nsenter", "setpriv", "meson")
        lower = self.lower()
        enter_room()
        place = "/mnt/" + name
        for folder in ("upper", "work", "root"):
            os.makedirs(f"{place}/{folder}")
        self.root = place + "/root"
        attempt("no overlayfs", "mount", "-t", "overlay", "-o",
                f"lowerdir={lower},upperdir={place}/upper,workdir={place}/work", "sgpd-tests", self.root)
        self.install()
        self.log_path = place + "/console"
        self.process = None
        self.leader = None

    def lower(self):
        """The tree that it lies over."""
        return tree()

    def install(self):
        call("meson", "install", "-C", self.build, "--no-rebuild", "--quiet", "--destdir", self.root)

    def write(self, path, text, mode=0o644):
        """A file in the container, which need not be booted yet."""
        whole = (self.root if self.leader is None else f"/proc/{self.leader}/root") + path
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "w") as file:
            file.write(text)
        os.chmod(whole, mode)

    def console(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def boot(self):
        groups = make_groups(self.name)

        def prepare():
            fleet.die_with_parent()
            for path in groups:
                join(path)
        with open(self.log_path, "w") as log:
            # A container outlives a killed nspawn, but not the process namespace around both.
            self.process = subprocess.Popen(
                ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc",
                 "systemd-nspawn", "--directory", self.root, "--boot", "--register=no", "--keep-unit",
                 "--private-network", f"--machine={GROUP}{os.getpid()}-{self.name}", "--console=read-only",
                 "--resolv-conf=off", "--timezone=off", "--link-journal=no"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=prepare)
        atexit.register(self.close)
        end = time.monotonic() + BOOT_SECONDS
        while not self.is_up():
            if self.process.poll() is not None:
                raise unittest.SkipTest("systemd-nspawn cannot boot here: " +
                                        " / ".join(self.console().splitlines()[-3:]))
            if time.monotonic() > end:
                raise unittest.SkipTest(f"the container does not boot here within {BOOT_SECONDS} s: " +
                                        " / ".join(self.console().splitlines()[-3:]))
            time.sleep(0.1)

    def is_up(self):
        nspawn = child_of(self.process.pid, "systemd-nspawn")
        self.leader = nspawn and child_of(nspawn, "systemd")
        if self.leader is None:
            return False
        state = self.run("systemctl", "is-system-running", check=False).stdout.strip()
        return state in ("running", "degraded")

    def plug_in(self, device, address):
        """A device of this process's network is the container's from now on, and up."""
        inside = ("nsenter", "-t", str(self.leader), "-n", "ip")
        call("ip", "link", "set", device, "netns", str(self.leader))
        call(*inside, "address", "add", address, "dev", device)
        call(*inside, "link", "set", device, "up")

    def run(self, *command, user=None, group=None, check=True):
        """Run a command inside, as root or as a user (and group); the CompletedProcess, whose stdout
        has both streams."""
        if user is not None:
            groups = ["--init-groups"] if group is None else ["--groups", group]
            command = ("setpriv", "--reuid", user, "--regid", user, *groups, *command)
        result = subprocess.run(
            ["nsenter", "-t", str(self.leader), "-m", "-u", "-i", "-n", "-p", "-C",
             "env", "-i", "PATH=/usr/local/bin:" + sandbox.PATH, "SYSTEMD_PAGER=", *command],
            text=True, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, preexec_fn=fleet.die_with_parent)
        if check and result.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: status {result.returncode}: {result.stdout}")
        return result

    def close(self):
        """Shut the container down."""
        if self.leader is not None:
            self.run("systemctl", "poweroff", check=False)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
