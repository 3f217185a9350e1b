# SPDX-License-Identifier: Apache-2.0
"""The walls between the modules, as functions that return complaints.

docs/ARCHITECTURE.md says which module is responsible for what; the tables below say the same to a
machine. Each function looks at one wall of a source tree or of a build folder and returns a list of
lines, one for each breach; an empty list means that the wall stands. selftest.py shows that each of
them can fall.
"""
import functools
import os
import re
import subprocess

# What a module may use, from the lowest module up: a module uses only modules that stand before it. A module may always use
# itself. A module is one folder; the daemon's folders are modules, too.
MODULES = {
    "lib/base": [],
    "lib/topology": ["lib/base"],
    "lib/core": ["lib/base", "lib/topology"],
    "lib/wire": ["lib/base"],
    "lib/journal": ["lib/base", "lib/core", "lib/topology", "lib/wire"],
    "lib/tensor": ["lib/base"],
    "lib/measures": ["lib/base"],
    "lib/survey": ["lib/base", "lib/measures"],
    "lib/fleet": ["lib/base"],
    "lib/rollout": ["lib/base"],
    "lib/invite": ["lib/base", "lib/topology"],
    "lib/privacy": ["lib/base"],
    "lib/train": ["lib/base", "lib/measures", "lib/privacy", "lib/tensor"],
    "lib/onnx": ["lib/base", "lib/train"],
    "lib/tensorboard": ["lib/base"],
    "lib/attach": ["lib/base", "lib/privacy", "lib/train"],
    "lib/tls": ["lib/base"],
    "lib/perform": ["lib/base", "lib/core", "lib/tensor", "lib/train"],
    "lib/sim": ["lib/base", "lib/core", "lib/perform", "lib/topology", "lib/wire", "lib/train", "lib/tensor"],
    "daemon/util": ["lib/base", "lib/core", "lib/fleet", "lib/measures", "lib/privacy", "lib/tensor", "lib/topology", "lib/train"],
    "daemon/net": ["daemon/util", "lib/base", "lib/perform", "lib/survey", "lib/tensor", "lib/tls", "lib/topology", "lib/wire"],
    "daemon/attach": ["daemon/util", "lib/attach", "lib/base", "lib/core", "lib/train"],
    "daemon/setup": ["daemon/attach", "daemon/net", "daemon/util", "lib/base", "lib/core", "lib/fleet", "lib/measures", "lib/privacy", "lib/rollout", "lib/survey", "lib/tensor",
                     "lib/tls", "lib/topology", "lib/train"],
    "daemon/store": ["daemon/setup", "daemon/util", "lib/base", "lib/core", "lib/journal", "lib/privacy", "lib/tensorboard", "lib/topology", "lib/train"],
    "daemon/control": ["daemon/store", "daemon/util", "lib/base", "lib/fleet", "lib/measures", "lib/privacy", "lib/rollout", "lib/topology", "lib/train", "lib/wire"],
    "daemon/node": ["daemon/attach", "daemon/control", "daemon/net", "daemon/setup", "daemon/store", "daemon/util",
                    "lib/attach", "lib/base", "lib/core", "lib/fleet", "lib/invite", "lib/measures", "lib/perform", "lib/privacy", "lib/rollout", "lib/survey", "lib/tensor", "lib/tls", "lib/topology",
                    "lib/train", "lib/wire"],
    "daemon": ["daemon/attach", "daemon/control", "daemon/net", "daemon/node", "daemon/setup", "daemon/store", "daemon/util",
               "lib/base", "lib/core", "lib/perform", "lib/privacy", "lib/rollout", "lib/survey", "lib/tensor", "lib/topology", "lib/train", "lib/wire"],
    "ctl": ["lib/base", "lib/invite", "lib/measures", "lib/survey", "lib/rollout", "lib/privacy", "lib/sim", "lib/journal", "lib/tls", "lib/topology", "lib/wire", "lib/onnx", "lib/tensorboard", "lib/train", "lib/tensor"],
}

# Which module a public header belongs to; a new header has to be entered here. trainer.h declares a table
# of functions that models fill in and performers call: it belongs to nobody, so to the lowest module.
HEADER_MODULES = {header: module for module, headers in {
    "lib/base": "bulletin.h coding.h compressor.h join.h row.h types.h status.h random.h sink.h sketch.h trainer.h version.h",
    "lib/topology": "topology.h dot.h generate.h analysis.h",
    "lib/core": "message.h method.h node.h driver.h payload.h record.h restart.h",
    "lib/wire": "wire.h",
    "lib/journal": "journal.h",
    "lib/tensor": "blas.h block.h buffer.h choose.h codec.h kernels.h",
    "lib/measures": "measures.h report.h",
    "lib/survey": "best.h survey.h",
    "lib/fleet": "fleet.h",
    "lib/rollout": "manifest.h rollout.h",
    "lib/invite": "invitation.h",
    "lib/privacy": "claim.h noise.h privacy.h",
    "lib/train": "attached.h checkpoint.h copy.h dataset.h description.h learner.h loss.h model.h model_file.h optimizer.h outer.h precision.h predictor.h quadratic.h run.h schedule.h shape.h sites.h statistics.h update.h",
    "lib/onnx": "onnx.h",
    "lib/tensorboard": "tensorboard.h",
    "lib/attach": "attach.h",
    "lib/tls": "cipher.h key.h",
    "lib/perform": "guard.h perform.h",
    "lib/sim": "sim.h",
}.items() for header in headers.split()}

# Exceptions: headers and functions of another module that a module may use all the same.
EXCEPTED_HEADERS = {
    "lib/wire": ["message.h"],  # the messages that it turns into bytes and back
    "daemon/setup": ["guard.h"],  # the range of [train] guard
    "ctl": ["method.h",  # a simulation's options name one
            "view.h",  # of the answers that it shows
            "config.h"],  # of a node that does not run
}
EXCEPTED_SYMBOLS = {
    "lib/wire": ["sgp_message_type_name", "sgp_reason_text", "sgp_node_state_name"],
    "daemon/net": ["sgp_message_cargo", "sgp_reason_text"],
    "daemon/control": ["sgp_node_state_name", "sgp_waiting_name"],
    "ctl": ["sgp_method_at", "sgp_method_find", "sgp_method_suit", "sgp_method_waits", "sgp_method_lacks_best"],
}

# Libraries that only some files may know of: a pattern of the include, then of these files.
PRIVATE_HEADERS = [
    (r"uv\.h$", r"(daemon/|ctl/launch)"),
    (r"cblas\.h$", r"lib/tensor/openblas"),
    (r"(oneapi/)?dnnl", r"lib/train/onednn"),
    (r"msgpack(\.h$|/)", r"lib/(wire|journal)/"),
    (r"(graphviz/)?cgraph\.h$", r"lib/topology/dot"),
    (r"zlib\.h$", r"lib/train/"),
    (r"ini\.h$", r"daemon/setup/"),
    (r"microhttpd\.h$", r"(daemon/control|ctl)/"),
    (r"systemd/", r"daemon/util/"),
    (r"curl/", r"ctl/"),
    (r"gnutls/", r"lib/tls/"),
    (r"nettle/", r"lib/(tls|privacy|rollout|invite)/"),
    (r"protobuf-c/", r"lib/(onnx|tensorboard)/"),
    (r"onnx\.pb-c\.h$", r"lib/onnx/"),
    (r"event\.pb-c\.h$|isa-l/", r"lib/tensorboard/"),
    (r"(pthread|threads)\.h$", r"daemon/"),
    (r"sys/socket\.h$|netinet/|arpa/", r"(daemon|ctl|lib/attach)/"),
]

# What the pure modules may call in libc: they compute. No file, socket, clock, thread or global state.
PURE_MODULES = ["base", "topology", "core", "measures", "survey", "fleet", "rollout", "invite", "privacy"]
PURE_CALLS = set("""
    bcmp memchr memcmp memcpy memmove memset strchr strcmp strlen strncmp strnlen strrchr strstr strspn strcspn
    snprintf vsnprintf strtod strtol strtoul strtoull qsort qsort_r bsearch
    __errno_location __stack_chk_fail __ctype_b_loc
    asinh ceil exp expm1 fabs floor fmax fmin frexp hypot isfinite ldexp log log1p log2 pow sqrt
    XXH3_64bits_withSeed
    nettle_hmac_sha256_set_key nettle_hmac_sha256_update nettle_hmac_sha256_digest nettle_memeql_sec
    nettle_sha256_init nettle_sha256_update nettle_sha256_digest
    nettle_aes256_encrypt nettle_aes256_set_encrypt_key nettle_ctr_crypt explicit_bzero
    nettle_sha256_init nettle_sha256_update nettle_sha256_digest
    nettle_base64_decode_init nettle_base64_decode_update nettle_base64_decode_final nettle_base64_encode_raw
    cosf logf sinf sqrtf _ZGVbN4v_cosf _ZGVbN4v_logf _ZGVbN4v_sinf _ZGVdN8v_cosf _ZGVdN8v_logf _ZGVdN8v_sinf __cpu_model __cpu_indicator_init
    aligned_alloc calloc free malloc realloc _GLOBAL_OFFSET_TABLE_
""".split())
# The assertion and the texts of errno are the exceptions, and live in one file.
PURE_EXCEPTIONS = {"status.c.o": {"abort", "fprintf", "stderr", "strerrordesc_np"}}

# Headers that list the files of a module, from the highest layer to the lowest. Blank lines divide a list into layers. Without
# them, each file is a layer. A line may stand for the files that NAME_inside.h lists.
LISTS = {"lib/core": "lib/core/core.h", "lib/sim": "lib/sim/world.h", "daemon/control": "daemon/control/http.h",
         "daemon/node": "daemon/daemon.h"}

LIBRARIES = {
    "base": "lib/base", "topology": "lib/topology", "dot": "lib/topology", "core": "lib/core",
    "wire": "lib/wire", "tensor": "lib/tensor", "journal": "lib/journal", "measures": "lib/measures", "survey": "lib/survey", "fleet": "lib/fleet", "rollout": "lib/rollout", "invite": "lib/invite", "privacy": "lib/privacy", "train": "lib/train", "onnx": "lib/onnx", "tensorboard": "lib/tensorboard", "attach": "lib/attach",
    "tls": "lib/tls", "perform": "lib/perform",
    "sim": "lib/sim",
}
PROGRAMS = [module for module in MODULES if module not in LIBRARIES.values()]  # modules that are no libraries


def sources(root, folders):
    """Every C file below these folders, relative to the root."""
    for folder in folders:
        for path, _, names in sorted(os.walk(os.path.join(root, folder))):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(path, name), root)


def includes(root, path):
    """(line number, quoted or not, header) of every include of a file."""
    with open(os.path.join(root, path), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            found = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if found:
                yield number, found.group(1) == '"', found.group(2)


def module_of(path):
    """The module that a file belongs to, or None for public headers."""
    module = os.path.dirname(path)
    return module if module in MODULES else None


def check_private_headers(root):
    """Each outside library is known to its own module only."""
    complaints = []
    for path in sources(root, ["include", "lib", "daemon", "ctl"]):
        for number, _, header in includes(root, path):
            for pattern, place in PRIVATE_HEADERS:
                if re.match(pattern, header) and not re.match(place, path):
                    complaints.append(f"{path}:{number}: <{header}> belongs in {place}")
    return complaints


def target_module(root, path, header):
    """The module of an included header: a public one's by the table, else by where the file lies."""
    if header.startswith("sgp/"):
        return HEADER_MODULES.get(header[len("sgp/"):])
    beside = os.path.normpath(os.path.join(os.path.dirname(path), header))
    for candidate in (beside, os.path.join("lib", header), os.path.join("daemon", header), header):
        if os.path.exists(os.path.join(root, candidate)):
            return module_of(candidate)
    return None


def check_module_includes(root):
    """A module includes only headers of modules that it may use."""
    complaints = []
    for path in sources(root, ["lib", "daemon", "ctl"]):
        module = module_of(path)
        if module is None:
            complaints.append(f"{path}: its folder has no module")
            continue
        for number, quoted, header in includes(root, path):
            if not quoted and not header.startswith("sgp/"):
                continue
            target = target_module(root, path, header)
            allowed = [module] + MODULES[module]
            excepted = header.split("/")[-1] in EXCEPTED_HEADERS.get(module, [])
            if target is None:
                complaints.append(f"{path}:{number}: no module is known for \"{header}\"")
            elif target not in allowed and not excepted:
                complaints.append(f"{path}:{number}: {module} may not use {target} ({header})")
    return complaints


def check_licence(root):
    """Every C file names its licence in its first line."""
    complaints = []
    for path in sources(root, ["include", "lib", "daemon", "ctl"]):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            if file.readline() != "/* SPDX-License-Identifier: Apache-2.0 */\n":
                complaints.append(f"{path}: the first line is not its SPDX-License-Identifier")
    return complaints


def check_public_headers_known(root):
    """Every public header has a module, and every module's entry has a header."""
    present = {os.path.basename(path) for path in sources(root, ["include/sgp"])}
    known = set(HEADER_MODULES)
    return ([f"include/sgp/{name}: not in HEADER_MODULES" for name in sorted(present - known)] +
            [f"{name}: in HEADER_MODULES, but no such header" for name in sorted(known - present)])


def check_headers_alone(root, compilers=("gcc", "clang"), names=None):
    """Every public header, or each of those named, compiles alone, as strict C11, and is installed."""
    complaints = []
    with open(os.path.join(root, "include/sgp/meson.build"), encoding="utf-8") as file:
        installed = file.read()
    for path in sources(root, ["include/sgp"]):
        header = os.path.basename(path)
        if names is not None and header not in names:
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            promises = "SGP_API" in file.read() and header != "types.h"
        if promises and f"'{header}'" not in installed:
            complaints.append(f"{path}: exports functions, and is not installed by include/sgp/meson.build")
        for compiler in compilers:
            result = subprocess.run(
                [compiler, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only",
                 "-I", "include", "-x", "c", "-"], cwd=root, text=True, capture_output=True,
                input=f'#include "{path[len("include/"):]}"\n', check=False)
            if result.returncode != 0:
                complaints.append(f"{path}: not alone with {compiler}: {result.stderr.strip()}")
    return complaints


def symbols(path, undefined=False):
    """(object, kind, name) of the symbols that a static library or an object defines for others, or that it needs of them."""
    folder, name = os.path.split(path)
    names = sorted(n for n in os.listdir(folder) if n.endswith(".o")) if path.endswith(".o") else [name]
    states = [os.stat(os.path.join(folder, n)) for n in names]
    found = symbols_of(folder, tuple(names), tuple((s.st_ino, s.st_mtime_ns, s.st_size) for s in states))
    if name not in names:  # a wall without its file would keep nothing out
        raise FileNotFoundError(f"{path} is not there; build the tree first")
    return found.get((name, undefined), ())


@functools.lru_cache(maxsize=None)
def symbols_of(folder, names, _states):
    """The checks ask for the same symbols many times, so nm reads each state of a folder's objects once."""
    result = subprocess.run(["nm", "-P", "-A", *names], cwd=folder, text=True, capture_output=True, check=True)
    found = {}
    for line in result.stdout.splitlines():
        where, name, kind = re.match(r"(.*?): (\S+) (\S)", line).groups()
        file, _, member = where.rstrip("]").partition("[")
        if kind in "Uwv" or kind.isupper() or kind == "u":
            found.setdefault((file, kind in "Uwv"), []).append((os.path.basename(member) or file, kind, name))
    return found


def libraries(build):
    """The modules' static libraries in a build folder: name -> path."""
    return {name: os.path.join(build, module, f"libsgp_{name}.a") for name, module in LIBRARIES.items()}


def check_prefix(build):
    """Every symbol that a module shows to others begins with sgp_."""
    return [f"{name}: {where}: {symbol} does not begin with sgp_"
            for name, path in libraries(build).items()
            for where, _, symbol in symbols(path)
            if not symbol.startswith("sgp_")]


def check_listed(listed, library):
    """The package's list (dpkg-gensymbols) has the symbols that the shared library shows, and no others."""
    result = subprocess.run(["nm", "-D", "-P", "--defined-only", library], text=True, capture_output=True, check=True)
    shown = {line.split()[0] for line in result.stdout.splitlines()}
    with open(listed, encoding="utf-8") as file:
        names = {line.split("@")[0].strip() for line in file if line.startswith(" ")}
    return ([f"{listed} lacks {name}" for name in sorted(shown - names)] +
            [f"{listed} has {name}, which the library has not" for name in sorted(names - shown)])


def check_pure(build):
    """base, topology (its DOT reader aside) and core call nothing but a short list of libc."""
    complaints = []
    for name in PURE_MODULES:
        for where, _, symbol in symbols(libraries(build)[name], undefined=True):
            allowed = PURE_CALLS | PURE_EXCEPTIONS.get(where, set())
            plain = re.sub(r"^__(\w+)_chk$", r"\1", symbol)  # as _FORTIFY_SOURCE calls it
            if not symbol.startswith("sgp_") and plain not in allowed:
                complaints.append(f"{name}: {where} calls {symbol}")
    return complaints


def check_modules_downward(_root, modules=None):
    """A module uses only modules that stand before it in their table, so modules use one another in no circle."""
    below, complaints = set(), []
    for module, used in (MODULES if modules is None else modules).items():
        complaints += [f"{module}: uses {other}, which does not stand before it" for other in used if other not in below]
        below.add(module)
    return complaints


def modules_of_page(root):
    """(module, what it may use, line number) of the rows of the table in docs/ARCHITECTURE.md.

    A name without a folder is of lib, and behind a semicolon are outside libraries and exceptions.
    """
    with open(os.path.join(root, "docs/ARCHITECTURE.md"), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            row = re.match(r"\| `((?:lib|daemon|ctl)\b[\w/]*)` \|[^|]*\| ([^|;]*)(?:;[^|]*)?\|$", line)
            if row:
                names = [name.strip() for name in row.group(2).split(",")]
                yield row.group(1), [name if "/" in name else f"lib/{name}" for name in names if name != "none"], number


def check_page(root, modules=None):
    """docs/ARCHITECTURE.md lists the modules in the order of their table here, each with what it may use."""
    modules, complaints, named = MODULES if modules is None else modules, [], []
    for module, used, number in modules_of_page(root):
        where = f"docs/ARCHITECTURE.md:{number}: {module}"
        named.append(module)
        if module not in modules:
            complaints.append(f"{where} is not in MODULES")
            continue
        complaints += [f"{where} may use {name}, says the page alone" for name in used if name not in modules[module]]
        complaints += [f"{where} may use {name}, which the page does not say" for name in modules[module] if name not in used]
    complaints += [f"docs/ARCHITECTURE.md does not name {module}" for module in modules if module not in named]
    if not complaints and named != list(modules):
        complaints.append("docs/ARCHITECTURE.md has the modules in another order than MODULES")
    return complaints


def owners(build):
    """Symbol -> module, of the libraries; and the same for each program, whose folders may share names with another's."""
    common = {symbol: LIBRARIES[name] for name, path in libraries(build).items()
              for _, _, symbol in symbols(path)}
    programs = {module.split("/")[0]: dict(common) for module in PROGRAMS}
    for module in PROGRAMS:
        for path in objects(build, module).values():
            programs[module.split("/")[0]].update({symbol: module for _, _, symbol in symbols(path)})
    return common, programs


def check_module_calls(build):
    """A module calls only functions of modules that it may use."""
    common, programs = owners(build)
    callers = [(name, LIBRARIES[name], path) for name, path in libraries(build).items()]
    callers += [(module, module, path) for module in PROGRAMS for path in objects(build, module).values()]
    complaints = []
    for name, module, path in callers:
        owner = programs.get(module.split("/")[0], common)
        for where, _, symbol in symbols(path, undefined=True):
            target = owner.get(symbol, module)
            excepted = symbol in EXCEPTED_SYMBOLS.get(module, [])
            if target not in [module] + MODULES[module] and not excepted:
                complaints.append(f"{name}: {where} calls {symbol} of {target}")
    return complaints


def objects(build, module):
    """file -> object of a module, as the build's own plan has them: objects of files that are gone may lie
    about for ever. Tests may compile a module's files again, in folders of their own."""
    with open(os.path.join(build, "build.ninja"), encoding="utf-8") as file:
        plan = file.read()
    found = re.findall(rf"^build ({module.split('/')[0]}/\S+\.c\.o): \S+ (?:\S*/)?{module}/([^/\s]+)\.c(?!\S)", plan, re.MULTILINE)
    return {file: os.path.join(build, path) for path, file in found}


def calls(build, module):
    """file -> other file of the module -> names of what the one uses of the other; every file is there."""
    files = objects(build, module)
    owner = {name: file for file, path in files.items()
             for _, _, name in symbols(path)}
    graph = {file: {} for file in files}
    for file, path in files.items():
        for _, _, name in symbols(path, undefined=True):
            if name in owner:
                graph[file].setdefault(owner[name], set()).add(name)
    return graph


def reached(graph, start):
    """All that a file calls, and what that calls, and so on."""
    found, todo = set(), [start]
    while todo:
        new = set(graph[todo.pop()]) - found
        found |= new
        todo += new
    return found


def circles(graph):
    """The largest sets of files each of which reaches all of its set, itself too."""
    reach = {file: reached(graph, file) for file in graph}
    return sorted({tuple(sorted(other for other in reach[file] if file in reach[other]))
                   for file in graph if file in reach[file]})


def check_circles(build, modules=None):
    """No file of these modules calls, over whatever others, one that calls it."""
    complaints = []
    for module in MODULES if modules is None else modules:
        graph = calls(build, module)
        for circle in circles(graph):
            complaints.append(f"{module}: a circle of {len(circle)} files: {', '.join(circle)}")
            complaints += [f"{module}: in it, {file} calls {', '.join(sorted(names))} of {other}"
                           for file in circle for other, names in sorted(graph[file].items())
                           if other in circle]
    return complaints


def layers_of_list(root, module, header):
    """The files that a header lists, as layers from the highest."""
    with open(os.path.join(root, header), encoding="utf-8") as file:
        comment = file.read().split("*/")[1]
    found = [re.findall(r"^ \*   (\w+)\.c\b", block, re.MULTILINE) for block in re.split(r"^ \*$", comment, flags=re.MULTILINE)]
    layers = [files for files in found if files]
    if len(layers) > 1:
        return layers
    return [layer for name in layers[0] for layer in layers_of_line(root, module, header, name)]


def layers_of_line(root, module, header, name):
    """The layers of one line of a list: a file, or the files of another list."""
    inside = f"{module}/{name}_inside.h"
    more = inside != header and os.path.exists(os.path.join(root, inside))
    return layers_of_list(root, module, inside) if more else [[name]]


def heights(root, module):
    """The layer of each file by the module's list, from 1; empty if the module has no list."""
    layers = layers_of_list(root, module, LISTS[module])[::-1] if module in LISTS else []
    return {file: height for height, files in enumerate(layers, 1) for file in files}


def list_faults(header, layer_of, graph):
    """A list of files lacks none and has no other, and each calls only files of lower layers."""
    return ([f"{header} does not list {file}.c" for file in sorted(set(graph) - set(layer_of))] +
            [f"{header} lists {file}.c, but there is no such file" for file in layer_of if file not in graph] +
            [f"{header}: {file}.c calls {name} of {other}.c, which is not below it"
             for file in layer_of for other, names in sorted(graph.get(file, {}).items()) for name in sorted(names)
             if layer_of.get(other, 0) >= layer_of[file]])


def check_lists(root, build):
    """The lists of files in headers are those of the build."""
    return [line for module, header in LISTS.items()
            for line in list_faults(header, heights(root, module), calls(build, module))]


def check_not_empty(build):
    """The libraries hold something, and the modules have files: an empty module would keep every wall."""
    return ([f"{name}: {path} defines nothing" for name, path in libraries(build).items()
             if not list(symbols(path))] +
            [f"{module}: no object is known" for module in MODULES
             if not objects(build, module)])


def report(results):
    """Print (name, complaints) as TAP; returns the exit status."""
    print(f"1..{len(results)}")
    for number, (name, complaints) in enumerate(results, 1):
        print(f"{'not ok' if complaints else 'ok'} {number} - {' '.join(name.replace('#', '').split())}")
        for line in complaints:
            print(f"# {line}")
    return 1 if any(complaints for _, complaints in results) else 0
