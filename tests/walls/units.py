# SPDX-License-Identifier: Apache-2.0
"""Installs into a DESTDIR and holds the installed units against systemd's own judges. Speaks TAP.

units.py BUILD_FOLDER INSTALLED_FILE... The base units of this machine's systemd that ours refer to
are copied beside them, because `systemd-analyze verify --root` looks nowhere else.
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

import walls

EXPOSURE_TENTHS_MAX = 11
BASE_UNITS = ["sysinit", "basic", "shutdown", "network", "nss-lookup", "multi-user"]


def run(*command):
    """(status, what was printed) of a command."""
    result = subprocess.run(command, text=True, check=False, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)
    return result.returncode, result.stdout.strip()


def verify(root):
    """What systemd has to say about the units; it also warns with status 0, so silence is success."""
    status, output = run("systemd-analyze", "verify", f"--root={root}", "sgpd@n0.service",
                         "sgpd-metrics@n0.service", "sgpd.target", "sgpd.slice")
    return [] if status == 0 and not output else output.splitlines() + [f"status {status}"]


def exposure(unit):
    """The exposure level of the unit, at most what is promised."""
    status, output = run("systemd-analyze", "security", "--offline=true", "--no-pager",
                         f"--threshold={EXPOSURE_TENTHS_MAX}", unit)
    return [] if status == 0 else output.splitlines()[-1:] + [f"status {status}"]


def replaced(path, old, new):
    """Change the unit; the text must be there."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert old in text, old
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new))


def complains(complaints, word):
    """A planted mistake was found."""
    found = any(word in line for line in complaints)
    return [] if found else [f"expected '{word}', got {complaints}"]


def main():
    build, expected = sys.argv[1], sys.argv[2:]
    results = []
    with tempfile.TemporaryDirectory() as root:
        status, output = run("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", root)
        results.append(("meson install", [] if status == 0 else output.splitlines()))
        results.append(("every file is where it belongs", [
            f"{path}: not installed" for path in expected if not os.path.exists(root + path)]))
        units = glob.glob(f"{root}/**/lib/systemd/system/sgpd@.service", recursive=True)
        if not units:
            sys.exit(walls.report(results))
        unit = units[0]
        for name in BASE_UNITS:
            shutil.copy(f"/lib/systemd/system/{name}.target", os.path.dirname(unit))
        results.append(("systemd-analyze verify is silent", verify(root)))
        for each in (unit, unit.replace("sgpd@", "sgpd-metrics@")):
            results.append((f"systemd-analyze security {os.path.basename(each)}", exposure(each)))
        sysusers = os.path.join(os.path.dirname(unit), "../../sysusers.d/sgpd.conf")
        status, output = run("systemd-sysusers", "--dry-run", f"--root={root}", sysusers)
        results.append(("sysusers creates the user sgpd", complains([output], "user 'sgpd'")))

        replaced(unit, "WatchdogSec=", "WatchdgSec=")
        results.append(("verify finds a misspelt key", complains(verify(root), "WatchdgSec")))
        replaced(unit, "WatchdgSec=", "WatchdogSec=")
        replaced(unit, "ProtectSystem=strict", "ProtectSystem=no")
        replaced(unit, "NoNewPrivileges=yes", "NoNewPrivileges=no")
        results.append(("security finds a softened unit", complains(exposure(unit), "exposure")))
    sys.exit(walls.report(results))


main()
