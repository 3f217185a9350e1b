# SPDX-License-Identifier: Apache-2.0
"""Checks every wall: check.py SOURCE_ROOT [BUILD_FOLDER]. Speaks TAP.

Without a build folder only the source is looked at: sanitizers and fuzzers add calls of their own.
"""
import os
import sys

import roles
import survey
import walls
import writers

OF_SOURCE = [
    ("outside libraries stay in their modules", walls.check_private_headers),
    ("modules use only modules below them", walls.check_modules_downward),
    ("modules include only what they may", walls.check_module_includes),
    ("docs/ARCHITECTURE.md says of each module what it may use", walls.check_page),
    ("every file names its licence", walls.check_licence),
    ("every public header has a module", walls.check_public_headers_known),
    ("every public header compiles alone", walls.check_headers_alone),
    ("what a node is made of names who writes it", writers.complaints),
    ("no file but those of the roles asks which role a node has", roles.complaints),
]
OF_BUILD = [
    ("no module is empty", walls.check_not_empty),
    ("every symbol begins with sgp_", walls.check_prefix),
    ("the pure modules call only what computes", walls.check_pure),
    ("modules call only what they may", walls.check_module_calls),
    ("no files call one another in a circle", walls.check_circles),
]

for built in ([*walls.libraries(sys.argv[2]).values(), f"{sys.argv[2]}/lib/libsgp.so"] if len(sys.argv) > 2 else []):
    if not os.path.exists(built):
        sys.exit(f"{built} is not there; build the tree first: ninja -C {sys.argv[2]}")
results = [(name, check(sys.argv[1])) for name, check in OF_SOURCE]
if len(sys.argv) > 2:
    results += [(name, check(sys.argv[2])) for name, check in OF_BUILD]
    results.append(("headers list the files of their module, and files call only lower layers", walls.check_lists(*sys.argv[1:3])))
    results.append(("the package lists the symbols of the library", walls.check_listed(
        f"{sys.argv[1]}/debian/libsgp0.symbols", f"{sys.argv[2]}/lib/libsgp.so")))
status = walls.report(results)
if len(sys.argv) > 2:
    for line in survey.lines(*sys.argv[1:3]):
        print(f"# {line}")
sys.exit(status)
