# SPDX-License-Identifier: Apache-2.0
"""Limits on processor time, by control groups of version 1 or 2. Needs root."""
import contextlib
import os

import figures
import fleet

PERIOD_US = 20000


def group_folder():
    """Where this process may make groups with a limit, and whether they are of version 1."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        places = [line.rstrip().split(":", 2)[1:] for line in file]
    for names, place in places:
        if "cpu" in names.split(","):
            return "/sys/fs/cgroup/cpu" + place, True
    return "/sys/fs/cgroup" + dict(places).get("", "/"), False


class Quota:
    """A control group."""

    def __init__(self, name):
        folder, self.old = group_folder()
        self.path = os.path.join(folder, f"sgpd-bench-{os.getpid()}-{name}")
        os.mkdir(self.path)

    def write(self, name, text):
        with open(os.path.join(self.path, name), "w", encoding="utf-8") as file:
            file.write(text)

    def limit(self, share):
        """To this part of one core; 0 lifts the limit."""
        quota = round(share * PERIOD_US)
        if self.old:
            self.write("cpu.cfs_period_us", str(PERIOD_US))
            self.write("cpu.cfs_quota_us", str(quota or -1))
        else:
            self.write("cpu.max", f"{quota or 'max'} {PERIOD_US}")

    def close(self):
        fleet.poll("the group to be empty", self.remove, 10, lambda: self.path)

    def remove(self):
        try:
            os.rmdir(self.path)
        except OSError:
            return False
        return True


@contextlib.contextmanager
def groups(shares):
    """A group for each of these parts of a core; where they cannot be made, a reason to skip."""
    made = []
    with contextlib.ExitStack() as stack:
        try:
            for number, share in enumerate(shares):
                made.append(Quota(str(number)))
                stack.callback(made[-1].close)
                made[-1].limit(share)
        except OSError as error:
            raise figures.Skip(f"no control groups for the processor here: {error}") from None
        yield made
