# SPDX-License-Identifier: Apache-2.0
"""Roles and methods: outside the files of the roles, lib/core reads what follows from a role and never asks which it is.
Nor does it ask which policies make up a method.

A file that knew a role's name would have to be changed for each new role. So what tells roles apart has its place in the files
`role*.c`. The files below each rule may know it too, for the reason that is given.
"""
import glob
import os
import re

COMMENT = r"/\*(?:[^*]|\*(?!/))*\*/"
# A topology file is read before there is a node: what it needs, whether another may take its place, which method suits.
OF_FILE = {"layout", "reload", "method"}
# (pattern, files that may have it, what it is)
RULES = [
    (r"topology->owners?\b|\bsgp_topology_has_token\b|\bphases\[0\]\.", OF_FILE, "asks the file who owns the vector"),
    (r"\bsgp_topology_is_exact\b", {"facts", "cycle"}, "asks the file whether a round is exact"),
    (r"\bnode->token\b|&node->token\b", {"node", "record", "check"}, "reads the facts of a token"),
    (r"\bsgp_role_\w+", set(), "names the table of a role"),
    (r"\broles\[", {"facts"}, "looks at the roles of another round"),
    (r"\brole->name\b", set(), "asks for a role's name"),
    (r"\bmethod->(?:whom|when|how|wants)\b", {"method"}, "asks which policy a method has"),
    (r"\b\w*(?:has_token|is_owner|is_worker|is_gossip|owns_by_file|works_by_file)\b", OF_FILE, "asks which role it is"),
]
# These are for all roles alike: no name in them, of a function or of anything else, is that of a role.
NEUTRAL = {"outgoing", "share", "receive", "round", "facts", "mass", "owed", "seek"}
NAMES = re.compile(r"\b\w*(?:gossip|owner|worker|token)\w*\b")


def code_of(path):
    """A file without its comments, line for line."""
    with open(path, encoding="utf-8") as file:
        return re.sub(COMMENT, lambda found: "\n" * found[0].count("\n"), file.read()).split("\n")


def complaints(root):
    """Lines that tell roles apart where that has no place."""
    found = []
    for path in sorted(glob.glob(os.path.join(root, "lib/core/*.c"))):
        name = os.path.basename(path)[:-2]
        if name.startswith("role"):
            continue
        for number, line in enumerate(code_of(path), 1):
            where = f"lib/core/{name}.c:{number}"
            found += [f"{where}: {what}: {line.strip()}" for pattern, files, what in RULES
                      if name not in files and re.search(pattern, line)]
            if name in NEUTRAL and NAMES.search(line):
                found.append(f"{where}: names a role: {NAMES.search(line)[0]}")
    return found


if __name__ == "__main__":
    print("\n".join(complaints(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))))
