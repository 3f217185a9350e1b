# SPDX-License-Identifier: Apache-2.0
"""Checks every wall: check.py SOURCE_ROOT [BUILD_FOLDER]. Speaks TAP.

Without a build folder only the source is looked at: sanitizers and fuzzers add calls of their own.
"""
import sys

import roles
import survey
import walls
import writers

OF_SOURCE = [
    ("outside libraries stay in their rooms", walls.check_private_headers),
    ("rooms use only rooms below them", walls.check_rooms_downward),
    ("rooms include only what they may", walls.check_room_includes),
    ("every file names its licence", walls.check_licence),
    ("every public header has a room", walls.check_public_headers_known),
    ("every public header compiles alone", walls.check_headers_alone),
    ("what a node is made of names who writes it", writers.complaints),
    ("no file but those of the roles asks which role a node has", roles.complaints),
]
OF_BUILD = [
    ("no room is empty", walls.check_not_empty),
    ("every symbol begins with sgp_", walls.check_prefix),
    ("the pure rooms call only what computes", walls.check_pure),
    ("rooms call only what they may", walls.check_room_calls),
    ("no files call one another in a circle", walls.check_circles),
    ("files call only lower floors", walls.check_floors),
]

results = [(name, check(sys.argv[1])) for name, check in OF_SOURCE]
if len(sys.argv) > 2:
    results += [(name, check(sys.argv[2])) for name, check in OF_BUILD]
    results.append(("the package lists the symbols of the library", walls.check_listed(
        f"{sys.argv[1]}/debian/libsgp0.symbols", f"{sys.argv[2]}/lib/libsgp.so")))
status = walls.report(results)
if len(sys.argv) > 2:
    for line in survey.lines(sys.argv[2]):
        print(f"# {line}")
sys.exit(status)
