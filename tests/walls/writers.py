# SPDX-License-Identifier: Apache-2.0
"""Who writes what of a node: lib/core/state.h says it in the comment of each group, and this compares it with the
assignments of lib/core.

A group is a block of members of `struct sgp_node` or `struct sgp_core_link` up to a blank line, whose comment names files
(`fold.c; outgoing.c: published`); or a member whose type says so, or itself. Where none is named nothing is checked. Where one writes it
`alone` no other may, nor take its address.
"""
import glob
import os
import re

STRUCTS = {"sgp_node": "node", "sgp_core_link": "link"}
COMMENT = r"/\*(?:[^*]|\*(?!/))*\*/"
FILE = re.compile(r"\b([a-z_]+)\.c\b")
# What begins a node or a link may write all of it.
BEGIN = {"node", "layout", "record", "reload"}


def body_of(text, struct):
    """What stands between the braces of a struct, and the comment before it."""
    found = re.search(r"((?:%s\s*)?)struct %s\s*\{" % (COMMENT, struct), text)
    depth, at = 1, found.end()
    while depth:
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return text[found.end():at - 1], found[1]


def groups(text, struct):
    """[(files, members, alone)] of a struct: a block each, and each member of a type that says more, or that has a comment of its
    own."""
    result = []
    for block in re.split(r"\n\s*\n", body_of(text, struct)[0]):
        head = re.match(r"\s*(%s)?\s*(?:struct\s*\{\s*(%s))?" % (COMMENT, COMMENT), block)
        flat, members = re.sub(COMMENT, lambda found: found[0].replace(";", ","), block), []
        while re.search(r"\{[^{}]*\}", flat):  # of nested structs their name alone
            flat = re.sub(r"\{[^{}]*\}", " ", flat)
        for member, comment in re.findall(r"([^;]+);[ \t]*((?:%s)?)" % COMMENT, flat):
            member = re.sub(COMMENT, " ", member).strip()
            names = re.findall(r"(\w+)(?:\[\w+\])?\s*(?:,|$)", member)
            kind = re.match(r"struct (sgp_\w+)\s+\w+$", member)
            of_type = body_of(text, kind[1])[1] if kind and re.search(r"struct %s\s*\{" % kind[1], text) else ""
            own = set(FILE.findall(of_type + (comment if kind else "")))
            if own:
                result.append((own, names, False))
            else:
                members += names
        files = set(FILE.findall((head[1] or "") + (head[2] or "")))
        if files and members:
            result.append((files, members, bool(re.search(r"\.c alone\b", (head[1] or "") + (head[2] or "")))))
    return result


def addresses(folder, owner, members):
    """Files that take the address of one of these."""
    found = set()
    for path in glob.glob(os.path.join(folder, "*.c")):
        with open(path, encoding="utf-8") as file:
            if re.search(r"&%s->(%s)\b" % (owner, "|".join(members)), re.sub(COMMENT, " ", file.read())):
                found.add(os.path.basename(path)[:-2])
    return found


def writers(folder):
    """{(struct, member): {file}}: assignments by name, and through a pointer to the member."""
    found = {}
    for path in glob.glob(os.path.join(folder, "*.c")):
        name = os.path.basename(path)[:-2]
        with open(path, encoding="utf-8") as file:
            text = re.sub(COMMENT, " ", file.read())
        write = r"(?:\.\w+|\[(?:[^\[\]]|\[[^\]]*\])*\])*\s*(?:[-+|&*/]?=(?!=)|\+\+|--)"
        before = r"(?:\+\+|--)(?:\w+->)*"
        for owner, member in re.findall(r"\b(node|link|other)->(\w+)" + write, text) + \
                re.findall(before + r"(node|link|other)->(\w+)", text):
            found.setdefault(("node" if owner == "node" else "link", member), set()).add(name)
        for function in re.split(r"\n\}\n", text):
            for pointer, owner, member in re.findall(r"\*(\w+) = &(node|link|other)->(\w+)(?:\[\w+\])?;", function):
                if re.search(r"\b%s->\w+" % pointer + write, function):
                    found.setdefault(("node" if owner == "node" else "link", member), set()).add(name)
    return found


def complaints(root):
    """Groups whose comment and assignments differ."""
    with open(os.path.join(root, "lib/core/state.h"), encoding="utf-8") as file:
        text = file.read()
    written, found = writers(os.path.join(root, "lib/core")), []
    for struct, owner in STRUCTS.items():
        for files, members, alone in groups(text, struct):
            real = set().union(*(written.get((owner, member), set()) for member in members))
            if alone:
                real |= addresses(os.path.join(root, "lib/core"), owner, members)
            for file in sorted(real - files - (set() if alone else BEGIN)):
                found.append(f"state.h: {file}.c writes {owner}'s {', '.join(members)}, and is not named there")
            for file in sorted(files - real - BEGIN):
                found.append(f"state.h: {file}.c is named for {owner}'s {', '.join(members)}, and writes none of it")
    return found


if __name__ == "__main__":
    print("\n".join(complaints(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))))
