# SPDX-License-Identifier: Apache-2.0
"""Where this machine gets Debian from: the first source of its own apt that answers and is Debian itself. As a program,
`mirror.py RELEASE` prints it."""
import os
import re
import subprocess
import sys
import unittest
import urllib.request

SECONDS = 20  # for one of them to answer


def sites(release):
    """The sources of apt that have the main part of a release, in its order. apt reads its files itself, of
    either format, and needs no lists that were fetched before."""
    try:
        printed = subprocess.run(["apt-get", "update", "--print-uris"], text=True, check=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, stdin=subprocess.DEVNULL).stdout
    except FileNotFoundError:
        raise unittest.SkipTest("not installed: apt-get") from None
    except subprocess.CalledProcessError as error:
        raise unittest.SkipTest(f"apt-get names no sources: {error.stderr.strip()}") from None
    found = re.findall(rf"^'((?:https?|file):[^']+)/dists/{release}/main/", printed, re.MULTILINE)
    return list(dict.fromkeys(found))


def is_debian(site, release):
    """Others have a `main` for the same release, too."""
    with urllib.request.urlopen(f"{site}/dists/{release}/InRelease", timeout=SECONDS) as answer:
        return re.search(rb"^Origin: Debian$", answer.read(), re.MULTILINE) is not None


def find(release):
    """The address for debootstrap; skips with what was tried. SGP_DEBIAN_MIRROR names another."""
    named = os.environ.get("SGP_DEBIAN_MIRROR")
    tried = [named] if named else sites(release)
    why = []
    for site in tried:
        try:
            if is_debian(site, release):
                return site
            why.append(f"{site} is not Debian's own")
        except (OSError, ValueError) as error:
            why.append(f"{site}: {error}")
    raise unittest.SkipTest(f"no Debian {release} to install from: " + ("; ".join(why) or "apt has no source of it"))


if __name__ == "__main__":
    try:
        print(find(sys.argv[1]))
    except unittest.SkipTest as why:
        sys.exit(f"mirror.py: {why}")
