# SPDX-License-Identifier: Apache-2.0
"""Shows that each rule for pages can fail: plants one breach at a time and asks for the complaint.

prose_selftest.py. Speaks TAP. Nothing is written outside a temporary directory.
"""
import os
import sys
import tempfile

import prose
import walls

PLAIN = "# A page\n\nThe node sends a share.\nThe target accepts it.\n"
LONG = "A node sends " + "one more share and " * 10 + "then it stops.\n"
MANY = "The node, which has so many neighbours that no reader can count them all, sends a share to each of them.\n" * 3

# What a page says, and a word of the complaint; None: it is plain.
PAGES = [
    ("page.md", PLAIN, None),
    ("page.md", "Assran et al. 2019 show it, i.e. `a. B. c` and [a page](page.md).\n", None),
    ("page.md", "```\nOne that is code. Whoever reads it.\n```\n", None),
    ("page.md", "- **A link breaks.** The source dials again.\n  The target waits.\n", None),
    ("page.md", "| One | two |\n| --- | --- |\n| a share. Another share. | x |\n", None),
    ("page.md", "Who dials? The source.\n", "two sentences in a line"),
    ("page.md", MANY, "21.0 words a sentence, at most 18.0"),
    ("page.md", LONG, "46 words"),
    ("page.md", f"| a | b |\n| --- | --- |\n| {LONG.strip()} | b |\n", "46 words"),
    ("page.md", "The node sends a share. The target accepts it.\n", "two sentences in a line"),
    ("page.md", "- The node sends\n  a share.\n", "a sentence goes on"),
    ("page.md", "One that joins waits.\n", "'One that'"),
    ("page.md", "- **One that joins.** It waits.\n", "'One that'"),
    ("page.md", "| a |\n| --- |\n| the share of whoever joins |\n", "'whoever'"),
    ("page.md", "Who is absent is not waited for.\n", "'Who'"),
    ("page.md", "The node is believed in nothing.\n", "'believed'"),
    ("page.md", "The share comes home.\n", "'comes home'"),
    ("page.md", "The node lists its gifts.\n", "'gifts'"),
    ("page.md", "The link is a thin link.\n", "'thin link'"),
    ("docs/man/page.5", ".TP\n.B name\nWhoever reads it.\n", "'Whoever'"),
    ("docs/man/page.1.in", ".PP\n" + LONG, "46 words"),
    ("docs/man/page.5", ".nf\nWhoever reads this code.\n.fi\n.PP\nThe node sends a share.\n", None),
]

LINKS = [
    ("[a](page.md)", None),
    ("[a](page.md#a-heading-of-its-own)", None),
    ("[a](#a-heading-of-its-own-1)", None),
    ("[a](https://nowhere.invalid/page.md)", None),
    ("[a](gone.md)", "no file gone.md"),
    ("[a](page.md#gone)", "no heading page.md#gone"),
    ("[a](#a-heading-of-its-own-2)", "no heading"),
]


HEADERS = [
    ("/* What a node needs. The node `visit`s. */\nint a; /* x */\n", None),
    ("/* The node that\n * waits for whoever joins. */\n", "'whoever'"),
    ("int a; /* one that joins */\n", "'one that'"),
    ("int a; /* " + "a share " * 12 + "*/\n", "a line of 108 columns"),
]

# What a source says, and a word of the complaint; None: its comments are plain.
SOURCES = [
    ("/* The node sends a share. The target accepts it. */\nint a; /* 0: none */\n", None),
    ("/* The files:\n *\n *   a.c  " + "first " * 9 + "\n *   b.c  " + "second " * 9 +
     "\n *   c.c  " + "third " * 9 + "*/\n", None),
    ('const char *a = "whoever";\n', None),
    ("/* The node waits for\n * whoever joins. */\n", "'whoever'"),
    ("/* The node sends " + "one more share\n * and " * 8 + "then it stops. */\n", "38 words"),
    ("/* The node has so many neighbours that no reader of this file\n * can count them all on one day only. */\n",
     "20.0 words a sentence, at most 18.0"),
    ("int a; /* " + "a share " * 12 + "*/\n", "a line of 108 columns"),
]


def write(root, path, text):
    os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
    with open(os.path.join(root, path), "w", encoding="utf-8") as file:
        file.write(text)


def expect(complaints, word):
    """This complaint and no other one, or none."""
    right = not complaints if word is None else any(word in line for line in complaints)
    return [] if right else [f"expected {word!r}, got {complaints}"]


def planted(path, text, check):
    with tempfile.TemporaryDirectory() as root:
        write(root, path, text)
        return check(root)


PLACES = [
    ("(`first`, `lib/a.c`)", None),
    ("(`first`, `lib/b.c`)", "does not define"),
    ("(`first`, `lib/c.c`)", "is not there"),
    ("in `a.c`: `first`, then in `lib/b.c`: `other`", None),
    ("in `b.c`: `other`, `first`", "does not define `first`"),
    ("in `c.c`: `first`", "is not there"),
]


def placed(place):
    """What is said of a page that names a file for a function of lib/a.c, which lib/b.c calls."""
    with tempfile.TemporaryDirectory() as root:
        write(root, "lib/a.c", "static int first(int a)\n{\n    return a;\n}\n")
        write(root, "lib/b.c", "int other(void)\n{\n    return first(1);\n}\n")
        write(root, "page.md", f"# Page\n\nA node counts {place}.\n")
        return prose.check_places(root)


def main():
    results = [(f"{path}: {text[:50]!r}", expect(planted(path, text, lambda root: prose.check_plain(root, {})), word))
               for path, text, word in PAGES]
    for text, word in LINKS:
        page = f"# Page\n\n## A heading, of `its` own\n\n{text}\n\n## A heading of its own\n"
        results.append((f"a link: {text}", expect(planted("page.md", page, prose.check_links), word)))
    gone = "docs/" + "rules/gone.md"
    results.append(("a source that names a page", expect(
        planted("lib/a.c", f"/* The rule: {gone} */\n", prose.check_pages_named), f"no page {gone}")))
    for place, word in PLACES:
        results.append((f"a page that places a function: {place}", expect(placed(place), word)))
    for text, word in HEADERS:
        results.append((f"a header: {text[:40]!r}", expect(
            planted("include/sgp/a.h", text, lambda root: prose.check_headers(root, [])), word)))
    results.append(("a plain header leaves the list", expect(
        planted("include/sgp/a.h", HEADERS[0][0], lambda root: prose.check_headers(root, ["a.h"])), "strike it")))
    for text, word in SOURCES:
        results.append((f"a source: {text[:40]!r}", expect(
            planted("lib/a/a.c", text, lambda root: prose.check_sources(root, ["lib/a"], [])), word)))
    results += [
        ("a source by its name", expect(planted(
            "lib/a/a.c", SOURCES[3][0], lambda root: prose.check_sources(root, ["lib/a/a.c"], [])), "'whoever'")),
        ("a source that is not in the list", expect(planted(
            "lib/a/a.c", SOURCES[3][0], lambda root: prose.check_sources(root, [], [])), None)),
        ("a folder of sources that is gone", expect(planted(
            "lib/a/a.c", "", lambda root: prose.check_sources(root, ["lib/b"], [])), "no such place")),
        ("a source that is not plain yet", expect(planted(
            "lib/a/a.c", SOURCES[3][0], lambda root: prose.check_sources(root, ["lib/a"], ["lib/a/a.c"])), None)),
        ("a plain source leaves the list", expect(planted(
            "lib/a/a.c", SOURCES[0][0], lambda root: prose.check_sources(root, ["lib/a"], ["lib/a/a.c"])), "strike it")),
    ]
    worse, plain = {"page.md": (46.0, 46, 0, True)}, {"page.md": (30.0, 80, 5, False)}
    results += [
        ("a page may be as the list says", expect(planted("page.md", LONG, lambda root: prose.check_plain(root, worse)), None)),
        ("and no worse", expect(planted("page.md", "And " + LONG, lambda root: prose.check_plain(root, worse)), "47 words")),
        ("a plain page leaves the list", expect(planted("page.md", PLAIN, lambda root: prose.check_plain(root, plain)), "strike it")),
        ("and so does one that is gone", expect(planted("other.md", PLAIN, lambda root: prose.check_plain(root, plain)), "no such page")),
    ]
    sys.exit(walls.report(results))


main()
