# SPDX-License-Identifier: Apache-2.0
"""Where a process of a benchmark is put: into a host's network (see links.py) and into a control group that
limits its processor time (see quota.py). A place is {"network": FILE, "group": FOLDER}, both optional."""
import ctypes
import os

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def take(place):
    """Move this process, which has a single thread, to its place."""
    if "network" in place:
        with open(place["network"], encoding="utf-8") as file:
            if _libc.setns(file.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), place["network"])
    if "group" in place:
        with open(os.path.join(place["group"], "cgroup.procs"), "w", encoding="utf-8") as file:
            file.write(str(os.getpid()))
