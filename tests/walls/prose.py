# SPDX-License-Identifier: Apache-2.0
"""Checks that pages are plain and that their links lead somewhere: prose.py SOURCE_ROOT. Speaks TAP.

A page is plain if a sentence has 18 words on average and 40 at most, if it has none of the turns below, and if each
source line holds one sentence, so that a change shows the sentence that it changes. Code and headings are not looked
at. Tables count for the longest sentence and the turns alone. Comments of public headers have none of the turns
either, and fit the line. Comments of the sources below are held to their own figures, too. prose_selftest.py shows
that each rule can fail.
"""
import os
import re
import sys

import walls

AVERAGE_MOST = 18.0  # words a sentence, over a page
LONGEST_MOST = 40  # words of one sentence
COLUMNS_MOST = 100  # of a public header, and of a source whose comments are plain
COMMENT_AVERAGE_MOST = 18.0  # words a sentence, over the comments of a file
COMMENT_LONGEST_MOST = 30  # words of one sentence of a comment

# Turns that a reader must translate, and what to write instead. Code in `backticks` may have them.
TURNS = [
    (r"\b[Oo]nes? (that|who)\b", "name the subject"),
    (r"\b([Ww]hoever|[Ww]hosoever|[Ww]homever)\b", "name the subject"),
    (r"^(Who|What|Whose|Whom) (?!.*\?)", "name the subject"),
    (r"\bbeliev(e|es|ed|ing)\b", "say accept or trust"),
    (r"\b([Ss]tands|[Ss]tood) (for ever|still)\b", "say is blocked"),
    (r"\b(com(e|es|ing)|came|goes|tak(e|es|en)|took) home\b", "say returns"),
    (r"\b[Gg]ifts?\b", "say outgoing share"),
    (r"\b[Ee]lders?\b", "say veteran peer"),
    (r"\b[Cc]hores?\b", "say background job"),
    (r"\b[Ll]ineages?\b", "say incarnation"),
    (r"\b[Rr]osters?\b", "say link index"),
    (r"\b[Ww]eather\b", "say network model"),
    (r"\b[Ee]states?\b", "say handover"),
    (r"\b[Uu]nlaid\b", "say awaiting a model"),
    (r"\b[Tt]hin (link|line)s?\b", "say bandwidth-bound"),
    (r"\b([Vv]isit(s|ed|ing)?)\b", "say receive the token"),
    (r"\b[Oo]f late\b", "say recent"),
    (r"\b[Aa]mid(st)?\b", "say during"),
    (r"\bof whom\b", "name the subject"),
]

# Pages that are not plain yet: what they may have, which is what they have. A page that improves lowers its figures, a
# page that is plain is struck, and no page is added: (words a sentence, longest sentence, turns, is a sentence a line).
NOT_YET = {}

# Public headers that are not plain yet; the list only shrinks.
HEADERS_NOT_YET = []

# Folders and files of C whose comments are plain: the list only grows. Below, files in them that are not plain yet: the
# list only shrinks.
PLAIN_SOURCES = """
ctl
daemon
daemon/attach
daemon/control
daemon/net
daemon/node
daemon/setup
daemon/store
daemon/util
lib/attach
lib/base
lib/core
lib/fleet
lib/journal
lib/measures
lib/onnx
lib/perform
lib/sim
lib/tensor
lib/tls
lib/topology
lib/train
lib/wire
""".split()
SOURCES_NOT_YET = []

ENDS = r"[.!?:][\"')*_\]]*"
ABBREVIATIONS = r"(?<!\bal\.)(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bcf\.)(?<!\bvs\.)(?<!\bNo\.)"
ITEM = re.compile(r"\s*([-*+]|\d+\.)\s+")
LEAD = re.compile(r"\*\*[^*]+\*\*[:,.]?\s*(?=\S)")
SKIPPED = re.compile(r"\s*(#|<|\[[^\]]+\]:|---|===)")


def pages(root):
    """Every page of the source tree, relative to its root: Markdown, and what man pages are made of."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "build")) and name != "shared")
        for name in sorted(names):
            if name.endswith(".md") or re.search(r"/man/[^/]+\.\d(\.in)?$", f"{folder}/{name}"):
                yield os.path.relpath(os.path.join(folder, name), root)


def plain(text):
    """Text as it is read: code as one word, links as their text."""
    text = re.sub(r"``.+?``|`[^`]+`", "code", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"<[^<>\s]+>|\*\*", "", text)


def sentences(text):
    """The sentences of a paragraph."""
    return [one for one in re.split(rf"(?<=[.!?])[\"')*_\]]*{ABBREVIATIONS}\s+", text.strip()) if words(one)]


def words(text):
    return len([word for word in text.split() if re.search(r"\w", word)])


def markdown_blocks(text):
    """(kind, lines) of each paragraph, item and row of a Markdown page; kind is text, item or row."""
    block, kind, fenced = [], "text", False
    for line in text.split("\n") + [""]:
        fence = line.lstrip().startswith("```")
        item = None if fenced else ITEM.match(line)
        row = line.lstrip().startswith("|")
        if fence or fenced or row or item or not line.strip() or SKIPPED.match(line):
            if block:
                yield kind, block
            block, kind = [], "text"
        fenced = fenced != fence
        if fence or fenced or not line.strip() or SKIPPED.match(line):
            continue
        if row:
            if not re.fullmatch(r"[\s|:-]+", line):
                yield from (("row", [cell]) for cell in re.split(r"(?<!\\)\|", line.strip().strip("|")))
        elif item:
            block, kind = [line[item.end():]], "item"
        else:
            block.append(line.strip())


def roff_blocks(text):
    """(kind, lines) of each paragraph of a man page's source."""
    block, code = [], False
    for line in text.split("\n") + [".PP"]:
        macro, _, rest = line.partition(" ")
        code = macro in (".nf", ".EX") or code and macro not in (".fi", ".EE")
        if macro in (".B", ".I") or re.fullmatch(r"\.[BIR]{2}", macro):
            line = rest.replace('"', "") if macro in (".B", ".I") else re.sub(r'" | "|"', "", rest)
        elif line.startswith((".", "'")) or code:
            if block:
                yield "text", block
            block = []
            continue
        if line.strip():
            block.append(re.sub(r"\\f.|\\", "", line))


class Page:
    """What there is to say of a page: its figures, and where its faults are."""

    def __init__(self, text, roff=False):
        self.count, self.total, self.longest, self.long, self.turns, self.broken = 0, 0, 0, [], [], []
        for kind, lines in roff_blocks(text) if roff else markdown_blocks(text):
            lead = LEAD.match(lines[0]) if kind == "item" else None
            lines = [lines[0][lead.end():] if lead else lines[0], *lines[1:]]
            self.read(kind, [plain(line) for line in lines])
            self.find_turns(plain(lead.group()) if lead else "")
            if kind != "row" and not roff:
                self.look_at_lines([plain(line) for line in lines])

    def read(self, kind, lines):
        for one in sentences(" ".join(lines)):
            length = words(one)
            if kind != "row":
                self.count += 1
                self.total += length
            self.longest = max(self.longest, length)
            if length > LONGEST_MOST:
                self.long.append(f"{length} words: {one[:60]}")
            self.find_turns(one)

    def find_turns(self, one):
        for pattern, remedy in TURNS:
            for found in re.finditer(pattern, one):
                self.turns.append(f"'{found.group().strip()[:20]}' ({remedy}): {one[:60]}")

    def look_at_lines(self, lines):
        for number, line in enumerate(lines):
            if len(sentences(line)) > 1:
                self.broken.append(f"two sentences in a line: {line[:60]}")
            elif number + 1 < len(lines) and not re.search(rf"{ENDS}\s*$", line):
                self.broken.append(f"a sentence goes on in the next line: {line[:60]}")

    @property
    def average(self):
        return self.total / max(self.count, 1)

    def complaints(self, allowed):
        """What is wrong, beyond what is allowed: (average, longest, turns, is a sentence a line)."""
        average, longest, turns, lines = allowed
        wrong = []
        if round(self.average, 1) > average:
            wrong.append(f"{self.average:.1f} words a sentence, at most {average:.1f}")
        if self.longest > longest:
            wrong += self.long or [f"a sentence of {self.longest} words, at most {longest}"]
        if len(self.turns) > turns:
            wrong += self.turns
        if lines:
            wrong += self.broken
        return wrong

    def is_plain(self):
        return not self.complaints((AVERAGE_MOST, LONGEST_MOST, 0, True))


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def page_of(root, path):
    return Page(read(root, path), roff=not path.endswith(".md"))


def check_plain(root, not_yet=None):
    """Pages that are less plain than they must be."""
    not_yet = NOT_YET if not_yet is None else not_yet
    wrong, known = [], list(pages(root))
    for path in known:
        page = page_of(root, path)
        wrong += [f"{path}: {line}" for line in
                  page.complaints(not_yet.get(path, (AVERAGE_MOST, LONGEST_MOST, 0, path.endswith(".md"))))]
        if path in not_yet and page.is_plain():
            wrong.append(f"{path}: is plain now, strike it from NOT_YET")
    return wrong + [f"{path}: is in NOT_YET, but there is no such page" for path in not_yet if path not in known]


def comments(text):
    """The comments of a C file, in order, as one line each."""
    for found in re.finditer(r"/\*(.*?)\*/", text, re.DOTALL):
        yield " ".join(re.sub(r"\n\s*\*", "\n", found[1]).split())


def comment_blocks(text):
    """The paragraphs of a C file's comments, as one line each. A line that is indented begins one, as in a list."""
    for found in re.finditer(r"/\*(.*?)\*/", text, re.DOTALL):
        lines = [re.sub(r"^\s*\* ?", "", line) for line in found[1].split("\n")]
        yield from (" ".join(block.split()) for block in re.split(r"\n(?=\s*\n|  )", "\n".join(lines)))


def header_faults(text):
    """What a public header has that a page may not have. A comment may open with What, as a heading does."""
    wrong = [f"a line of {len(line)} columns: {line.strip()[:60]}" for line in text.split("\n") if len(line) > COLUMNS_MOST]
    for comment in comments(text):
        for one in sentences(plain(comment)):
            wrong += [f"'{found.group().strip()[:20]}' ({remedy}): {one[:60]}" for pattern, remedy in TURNS
                      if not pattern.startswith("^") for found in re.finditer(pattern, one)]
    return wrong


def source_faults(text):
    """What the comments of a source have that they may not have: as of a public header, and by their sentences."""
    lengths, wrong = [], header_faults(text)
    for block in comment_blocks(text):
        for one in sentences(plain(block)):
            lengths.append(words(one))
            if lengths[-1] > COMMENT_LONGEST_MOST:
                wrong.append(f"{lengths[-1]} words: {one[:60]}")
    average = sum(lengths) / max(len(lengths), 1)
    if round(average, 1) > COMMENT_AVERAGE_MOST:
        wrong.append(f"{average:.1f} words a sentence, at most {COMMENT_AVERAGE_MOST:.1f}")
    return wrong


def sources(root, place):
    """The C files of a folder, or one file, relative to the root."""
    if os.path.isfile(os.path.join(root, place)):
        return [place]
    return [f"{place}/{name}" for name in sorted(os.listdir(os.path.join(root, place))) if name.endswith((".c", ".h"))]


def check_sources(root, plain_sources=None, not_yet=None):
    """Comments of sources that hold."""
    places = PLAIN_SOURCES if plain_sources is None else plain_sources
    not_yet = SOURCES_NOT_YET if not_yet is None else not_yet
    wrong = [f"{place}: is in a list of sources, but there is no such place" for place in places + not_yet
             if not os.path.exists(os.path.join(root, place))]
    for place in places:
        for path in sources(root, place) if os.path.exists(os.path.join(root, place)) else []:
            faults = source_faults(read(root, path))
            if path in not_yet and not faults:
                wrong.append(f"{path}: is plain now, strike it from SOURCES_NOT_YET")
            wrong += [f"{path}: {line}" for line in faults if path not in not_yet]
    return wrong


def check_headers(root, not_yet=None):
    """Public headers are the manual of the library."""
    not_yet = HEADERS_NOT_YET if not_yet is None else not_yet
    folder, wrong = "include/sgp", []
    for name in sorted(os.listdir(os.path.join(root, folder))):
        if not name.endswith(".h"):
            continue
        faults = header_faults(read(root, f"{folder}/{name}"))
        if name in not_yet and not faults:
            wrong.append(f"{name}: is plain now, strike it from HEADERS_NOT_YET")
        wrong += [f"{name}: {line}" for line in faults if name not in not_yet]
    return wrong


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text):
    """The anchors that a Markdown page has by its headings, as GitHub makes them."""
    found = set()
    for heading in re.findall(r"^#+ +(.+?) *$", without_code(text), re.MULTILINE):
        heading = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug, number = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"), 0
        while (f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(f"{slug}-{number}" if number else slug)
    return found


def dead_links(folder, path):
    """Links of a Markdown page to a file that is not there, or to an anchor that its page has not."""
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(read(folder, path))):
        name, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        aim = os.path.normpath(os.path.join(folder, os.path.dirname(path), name)) if name else os.path.join(folder, path)
        if not os.path.exists(aim):
            dead.append(f"{path}: no file {target}")
        elif anchor and anchor not in anchors(read("", aim)):
            dead.append(f"{path}: no heading {target}")
    return dead


def check_links(root):
    return [line for path in pages(root) if path.endswith(".md") for line in dead_links(root, path)]


def check_pages_named(root):
    """Pages that sources name and that are not there."""
    wrong = []
    for folder in ("include", "lib", "daemon", "ctl", "python", "bench", "scripts", "tests", "systemd"):
        for path, _, names in sorted(os.walk(os.path.join(root, folder))):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".py", ".in", ".build")):
                    file = os.path.relpath(os.path.join(path, name), root)
                    wrong += [f"{file}: no page {page}" for page in set(re.findall(r"\bdocs/[\w/]+\.md\b", read(root, file)))
                              if not os.path.exists(os.path.join(root, page))]
    return wrong


# (`function`, `path/file.c`) and `file.c`: `function`, `another`, as pages tell where a function is.
PLACED = re.compile(r"\(`(\w+)`, `((?:\w+/)+\w+\.[ch])`")
LISTED = re.compile(r"`((?:\w+/)*\w+\.c)`: ((?:(?:, | or )?`\w+`)+)")


def places(text):
    """(function, file) of all that a page places. A file may lack the beginning of its path."""
    yield from PLACED.findall(text)
    for place, names in LISTED.findall(text):
        yield from ((name, place) for name in re.findall(r"\w+(?=`)", names))


def check_places(root):
    """Functions of which a page says that a file has them, and that are not defined there."""
    found, files = [], [f"/{path}" for path in walls.sources(root, ["include", "lib", "daemon", "ctl", "tests", "bench"])]
    for path in pages(root):
        for name, place in places(read(root, path)):
            named = [file[1:] for file in files if file.endswith("/" + place)]
            if not named:
                found.append(f"{path}: `{name}` is said to be in {place}, which is not there")
            elif not any(re.search(rf"^\S.*\b{name}\b", read(root, file), re.MULTILINE) for file in named):
                found.append(f"{path}: {place} does not define `{name}`")
    return found


def table(root):
    """The figures of each page, in lines."""
    yield f"{'page':36} {'words':>6} {'a sentence':>10} {'longest':>8} {'turns':>6} {'lines':>6}"
    for path in pages(root):
        page = page_of(root, path)
        yield (f"{path:36} {page.total:6} {page.average:10.1f} {page.longest:8} {len(page.turns):6} "
               f"{'' if not path.endswith('.md') else len(page.broken):>6}{'' if page.is_plain() else '  not yet'}")


def main():
    root = sys.argv[1]
    status = walls.report([
        ("pages are plain", check_plain(root)),
        ("links of pages lead to a file and a heading", check_links(root)),
        ("sources name pages that are there", check_pages_named(root)),
        ("pages name functions where they are", check_places(root)),
        ("public headers are plain", check_headers(root)),
        ("comments of sources are plain", check_sources(root)),
    ])
    for line in table(root):
        print(f"# {line}")
    sys.exit(status)


if __name__ == "__main__":
    main()
