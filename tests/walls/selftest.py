# SPDX-License-Identifier: Apache-2.0
"""Shows that each wall can fall: plants one breach at a time in a copy and asks for the complaint.

selftest.py SOURCE_ROOT. Speaks TAP. Nothing is written outside a temporary directory.
"""
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache, partial

import roles
import survey
import walls
import writers


def plant(root, path, text):
    """Append text to a file of the copy, made if it is not there."""
    os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
    with open(os.path.join(root, path), "a", encoding="utf-8") as file:
        file.write(text)


@contextlib.contextmanager
def planted(root, path, text):
    """The same for a while: then the file is as it was, and a folder that was made is gone."""
    whole, folder = os.path.join(root, path), os.path.dirname(os.path.join(root, path))
    made, length = not os.path.exists(folder), os.path.getsize(whole) if os.path.exists(whole) else None
    plant(root, path, text)
    try:
        yield
    finally:
        if made:
            shutil.rmtree(folder)
        elif length is None:
            os.remove(whole)
        else:
            os.truncate(whole, length)


@cache
def compiled(text):
    """The object of a source. Most sources stand in every folder."""
    with tempfile.NamedTemporaryFile(suffix=".o") as file:
        subprocess.run(["gcc", "-O0", "-w", "-c", "-x", "c", "-", "-o", file.name], input=text, text=True, check=True)
        return file.read()


def build(root, sources):
    """Compile {library: {file: text}} into a build folder as meson lays it out; others stay empty."""
    plan = []
    programs = {module: os.path.join(root, module, "program") for module in walls.PROGRAMS}
    modules = walls.LIBRARIES | {module: module for module in walls.PROGRAMS}
    for name, path in (walls.libraries(root) | programs).items():
        folder = path + ".p"
        os.makedirs(folder, exist_ok=True)
        objects = []
        for file, text in sources.get(name, {}).items():
            objects.append(os.path.join(folder, file + ".o"))
            with open(objects[-1], "wb") as written:
                written.write(compiled(text))
            plan.append(["build", objects[-1] + ":", "c_COMPILER", f"../{modules[name]}/{file}"])
        if name not in programs:
            subprocess.run(["ar", "rcs", path, *objects], check=True)
        plan.append(["build", path + ":", "STATIC_LINKER", *objects])
    with open(os.path.join(root, "build.ninja"), "w", encoding="utf-8") as file:
        for words in plan:
            print(*(word.removeprefix(root + "/") for word in words), file=file)


# Of the headers only the planted one: to compile all of them takes seconds.
ALONE = partial(walls.check_headers_alone, names={"planted.h"})

# What is planted, which wall must complain, and a word of its complaint.
IN_SOURCE = [
    ("lib/core/planted.c", "#include <uv.h>\n", walls.check_private_headers, "uv.h"),
    ("lib/sim/planted.c", "#  include <cblas.h>\n", walls.check_private_headers, "cblas.h"),
    ("daemon/planted.c", "#include <msgpack.h>\n", walls.check_private_headers, "msgpack.h"),
    ("lib/topology/planted.c", "#include <graphviz/cgraph.h>\n", walls.check_private_headers, "cgraph"),
    ("lib/core/planted.c", "#include <pthread.h>\n", walls.check_private_headers, "pthread.h"),
    ("lib/core/planted.c", "#include \"sgp/buffer.h\"\n", walls.check_module_includes, "lib/tensor"),
    ("lib/base/planted.c", "#include <sgp/topology.h>\n", walls.check_module_includes, "lib/topology"),
    ("lib/wire/planted.c", "#include \"sgp/node.h\"\n", walls.check_module_includes, "lib/core"),
    ("lib/train/planted.c", "#include \"../core/planted.h\"\n", walls.check_module_includes, "lib/core"),
    ("daemon/util/planted.c", "#include \"node/state.h\"\n", walls.check_module_includes,
     "daemon/util may not use daemon/node"),
    ("daemon/node/planted.c", "#include \"daemon.h\"\n", walls.check_module_includes, "daemon/node may not use daemon "),
    ("daemon/planted/planted.c", "#include \"sgp/node.h\"\n", walls.check_module_includes, "its folder has no module"),
    ("ctl/planted.c", "#include \"nowhere.h\"\n", walls.check_module_includes, "no module is known"),
    ("ctl/planted.c", "int planted;\n", walls.check_licence, "ctl/planted.c"),
    ("include/sgp/planted.h", "int sgp_planted(void);\n", walls.check_public_headers_known, "planted.h"),
    ("include/sgp/planted.h", "uint32_t sgp_planted(void);\n", ALONE, "not alone"),
    ("include/sgp/planted.h", "#include \"sgp/types.h\"\nSGP_API int sgp_planted(void);\n", ALONE, "not installed"),
    ("lib/core/planted.c", "void f(struct sgp_node *node) { node->fleet.ends = 1; }\n", writers.complaints,
     "planted.c writes node's fleet"),
    ("lib/core/planted.c", "void f(struct sgp_core_link *link) { struct sgp_owed *owed = &link->owed; owed->sent = true; }\n",
     writers.complaints, "planted.c writes link's owed"),
    ("lib/core/planted.c", "bool f(struct sgp_node *node) { return node->config.topology->owner == 0; }\n",
     roles.complaints, "planted.c:1: asks the file who owns the vector"),
    ("lib/core/planted.c", "bool f(struct sgp_topology *t) { return sgp_topology_has_token(t); }\n",
     roles.complaints, "planted.c:1: asks the file who owns the vector"),
    ("lib/core/planted.c", "uint32_t f(struct sgp_topology *topology) { return topology->phases[0].backup; }\n",
     roles.complaints, "planted.c:1: asks the file who owns the vector"),
    ("lib/core/planted.c", "bool f(struct sgp_topology *t) { return sgp_topology_is_exact(t, 0, NULL); }\n",
     roles.complaints, "planted.c:1: asks the file whether a round is exact"),
    ("lib/core/planted.c", "bool f(struct sgp_node *node) { return node->token.of_record; }\n",
     roles.complaints, "planted.c:1: reads the facts of a token"),
    ("lib/core/planted.c", "bool f(struct sgp_node *node) { return node->role == &sgp_role_owner; }\n",
     roles.complaints, "planted.c:1: names the table of a role"),
    ("lib/core/planted.c", "bool f(struct sgp_node *node) { return node->roles[1]->collective; }\n",
     roles.complaints, "planted.c:1: looks at the roles of another round"),
    ("lib/core/planted.c", "bool f(struct sgp_node *node) { return node->role->name[0] == 't'; }\n",
     roles.complaints, "planted.c:1: asks for a role's name"),
    ("lib/core/planted.c", "bool f(struct sgp_node *node) { return sgp_core_is_worker(node); }\n",
     roles.complaints, "planted.c:1: asks which role it is"),
    ("lib/core/planted.c", "bool f(struct sgp_node *node) { return node->config.method->whom == SGP_WHOM_ONE_BY_LOT; }\n",
     roles.complaints, "planted.c:1: asks which policy a method has"),
    ("lib/core/outgoing.c", "void f(struct sgp_node *node) { sgp_core_forgo_token(node); }\n",
     roles.complaints, "names a role: sgp_core_forgo_token"),
    ("lib/core/record.c", "void f(struct sgp_node *node) { node->mass.weight += 1; }\n", writers.complaints,
     "record.c writes node's mass"),
    ("lib/core/planted.c", "void f(struct sgp_node *node) { double *weight = &node->mass.weight; *weight = 1; }\n",
     writers.complaints, "planted.c writes node's mass"),
]

CLEAN = {
    "base": {"status.c": "int fprintf(); int sgp_base(void) { return fprintf(); }"},
    "core": {"node.c": "int sgp_base(void); int sgp_core(void) { return sgp_base(); }"},
    "tensor": {"buffer.c": "int time(); int sgp_tensor(void) { return time(); }"},
    "daemon/node": {"state.c": "int log_line(void); int events_post(void) { return log_line(); }"},
    "daemon/util": {"log.c": "int log_line(void) { return 1; }"},
    # Calls a function that is only there where it is planted.
    "sim": {"arrive.c": "int sgp_event(void); int sgp_arrive(void) { return sgp_event(); }",
            "sim.c": "int sgp_arrive(void); int sgp_sim(void) { return sgp_arrive(); }"},
}
IN_BUILD = [
    ("ctl", "int sgp_core(void); int sgp_a(void) { return sgp_core(); }", walls.check_module_calls,
     "planted.c.o calls sgp_core of lib/core"),
    ("daemon/util", "int events_post(void); int a(void) { return events_post(); }", walls.check_module_calls,
     "planted.c.o calls events_post of daemon/node"),
    ("core", "int clock_gettime(); int sgp_a(void) { return clock_gettime(); }", walls.check_pure,
     "planted.c.o calls clock_gettime"),
    ("base", "int fprintf(); int sgp_a(void) { return fprintf(); }", walls.check_pure,
     "planted.c.o calls fprintf"),
    ("topology", "int open(); int sgp_a(void) { return open(); }", walls.check_pure, "calls open"),
    ("sim", "int step(void) { return 1; }", walls.check_prefix, "step does not begin"),
    ("sim", "int counter;", walls.check_prefix, "counter does not begin"),
    ("core", "int sgp_tensor(void); int sgp_a(void) { return sgp_tensor(); }", walls.check_module_calls,
     "calls sgp_tensor of lib/tensor"),
    ("base", "int sgp_core(void); int sgp_a(void) { return sgp_core(); }", walls.check_module_calls,
     "calls sgp_core of lib/core"),
    ("sim", "int sgp_arrive(void); int sgp_event(void) { return sgp_arrive(); }", walls.check_circles,
     "lib/sim: a circle of 2 files: arrive, planted"),
    ("sim", "int sgp_sim(void); int sgp_event(void) { return sgp_sim(); }", walls.check_circles,
     "lib/sim: a circle of 3 files: arrive, planted, sim"),
    ("sim", "int sgp_sim(void); int sgp_event(void) { return sgp_sim(); }", walls.check_circles,
     "in it, planted calls sgp_sim of sim"),
]


# A page of two modules, as walls.py would have to know them, and a word of the complaint.
PAGE = "| `lib/a` | x | none; libc |\n| `daemon/b` | y | a; zlib |\n"
PAGES = [
    ({"lib/a": [], "daemon/b": ["lib/a", "lib/c"]}, "daemon/b may use lib/c, which the page does not say"),
    ({"lib/a": [], "daemon/b": []}, "daemon/b may use lib/a, says the page alone"),
    ({"lib/a": []}, "daemon/b is not in MODULES"),
    ({"lib/a": [], "daemon/b": ["lib/a"], "ctl": []}, "does not name ctl"),
    ({"daemon/b": ["lib/a"], "lib/a": []}, "in another order"),
]

# A graph of files and its list; then lists that are wrong, with a word of the complaint.
CALLS = {"high": {"low": {"sgp_low"}}, "low": {}}
LISTED = {"high": 2, "low": 1}
LISTS = [
    ({"high": 1}, "a.h does not list low.c"),
    ({"high": 3, "low": 2, "gone": 1}, "a.h lists gone.c, but there is no such file"),
    ({"low": 2, "high": 1}, "high.c calls sgp_low of low.c, which is not below it"),
    ({"low": 1, "high": 1}, "high.c calls sgp_low of low.c, which is not below it"),
]

# A graph of files; then its layers, its upward arrows and its circles.
SURVEYS = [
    ({"a": {}, "b": {"a": {"f"}}, "c": {"a": {"f"}, "b": {"g"}}}, "3 0 0"),
    ({"a": {"b": {"g"}}, "b": {"a": {"f"}}, "c": {}}, "1 2 1"),
]


def expect(complaints, word):
    """The complaint was made; otherwise say what came instead."""
    if any(word in line for line in complaints):
        return []
    return [f"expected '{word}', got {complaints}"]


def complaints_of_list(folder):
    """A library of two functions, and a list that has one of them and another."""
    library, listed = os.path.join(folder, "libtwo.so"), os.path.join(folder, "symbols")
    subprocess.run(["gcc", "-shared", "-fPIC", "-nostdlib", "-x", "c", "-", "-o", library], text=True, check=True,
                   input="void sgp_old(void) {} void sgp_new(void) {}")
    plant(folder, "symbols", "libtwo.so libtwo #MINVER#\n sgp_gone@Base 1\n sgp_old@Base 1\n")
    return walls.check_listed(listed, library)


def main():
    results = []
    with tempfile.TemporaryDirectory() as folder:
        clean = os.path.join(folder, "clean")
        for part in ("include", "lib", "daemon", "ctl"):
            shutil.copytree(os.path.join(sys.argv[1], part), os.path.join(clean, part))
        plant(clean, "lib/core/planted.h", "")
        for path, text, check, word in IN_SOURCE:
            with planted(clean, path, text):
                results.append((f"{path}: {text.strip()}", expect(check(clean), word)))
        build(os.path.join(folder, "standing"), CLEAN)
        for check in (walls.check_pure, walls.check_prefix, walls.check_module_calls, walls.check_circles):
            results.append((f"{check.__name__} is silent on a clean build",
                            check(os.path.join(folder, "standing"))))
        for number, (library, text, check, word) in enumerate(IN_BUILD):
            root = os.path.join(folder, f"build{number}")
            build(root, CLEAN | {library: CLEAN.get(library, {}) | {"planted.c": text}})
            results.append((f"{library}: {text}", expect(check(root), word)))
        results.append(("a module that uses a higher one", expect(
            walls.check_modules_downward(None, {"a": ["b"], "b": []}), "a: uses b, which does not stand before it")))
        results.append(("a module that uses itself by way of another", expect(
            walls.check_modules_downward(None, {"a": [], "b": ["a", "c"], "c": ["b"]}), "b: uses c")))
        plant(folder, "docs/ARCHITECTURE.md", PAGE)
        results.append(("check_page is silent on a page that is right",
                        walls.check_page(folder, {"lib/a": [], "daemon/b": ["lib/a"]})))
        results += [(f"a page of modules, where walls.py has {modules}", expect(walls.check_page(folder, modules), word))
                    for modules, word in PAGES]
        plant(folder, "a/a.h", "/* licence */\n/* Files:\n *\n *   top.c  x\n *   low.c  y\n *   types.h  z\n */\n/*   other.c */\n")
        plant(folder, "a/top_inside.h", "/* licence */\n/* Files:\n *   top.c  x\n *   top_part.c  y\n */\n")
        plant(folder, "a/b.h", "/* licence */\n/* Files:\n *\n *   top.c  x\n *\n *   low.c  y\n *          z\n *   base.c\n *\n * End. */\n")
        for name, header, layers in (("a list that names another", "a/a.h", [["top"], ["top_part"], ["low"]]),
                                     ("a list in layers", "a/b.h", [["top"], ["low", "base"]])):
            found = walls.layers_of_list(folder, "a", header)
            results.append((name, [] if found == layers else [f"found {found}"]))
        results.append(("list_faults is silent on a list that is right", walls.list_faults("a.h", LISTED, CALLS)))
        results += [(f"a list of {', '.join(files)}", expect(walls.list_faults("a.h", files, CALLS), word)) for files, word in LISTS]
        listed = complaints_of_list(folder)
        results.append(("a symbol that the package's list lacks", expect(listed, "lacks sgp_new")))
        results.append(("a symbol of the list that is gone", expect(listed, "has sgp_gone, which the library has not")))
        results += [(f"the survey counts layers, upward arrows and circles: {graph}", expect(
            [f"{max(survey.layers(graph).values(), default=0)} {survey.upward(graph, {})} {len(walls.circles(graph))}"],
            counts)) for graph, counts in SURVEYS]
        results.append(("an empty module", expect(
            walls.check_not_empty(os.path.join(folder, "standing")), "libsgp_wire.a defines nothing")))
        results.append(("a module without objects", expect(
            walls.check_not_empty(os.path.join(folder, "standing")), "ctl: no object is known")))
    sys.exit(walls.report(results))


main()
