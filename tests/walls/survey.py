# SPDX-License-Identifier: Apache-2.0
"""The rooms, their floors, and the arrows between them, counted from a build folder, as lines to read.

A floor of a room holds the files that call only files of lower floors. A room's own level is counted the same way over
rooms. An upward arrow is a call, or a use of a room, that breaks this order; the walls refuse each one by name.
"""
import walls


def floors(graph):
    """name -> floor, from 1, of a graph name -> names that it uses; circles are left out."""
    heights = {}
    while True:
        new = {name for name in graph if name not in heights and all(other in heights for other in graph[name])}
        if not new:
            return heights
        heights.update({name: 1 + max((heights[other] for other in graph[name]), default=0) for name in new})


def upward(room, graph):
    """How many arrows between files of a room lead to no lower floor, by its table or else by what is counted."""
    heights = walls.FLOORS.get(room) or floors(graph)
    return sum(heights.get(other, 0) >= heights.get(file, 0) for file in graph for other in graph[file])


def lines(build):
    """A line for each room, lowest first, and one for all."""
    levels = floors(walls.ROOMS)
    rows = []
    for room in sorted(walls.ROOMS, key=lambda room: (levels.get(room, 0), room)):
        graph = walls.calls(build, room)
        rows.append((room, levels.get(room, 0), len(graph), max(floors(graph).values(), default=0),
                     sum(map(len, graph.values())), upward(room, graph), len(walls.circles(graph))))
    yield f"{'room':<16}{'level':>6}{'files':>6}{'floors':>7}{'arrows':>7}{'upward':>7}{'circles':>8}"
    for row in rows:
        yield "{:<16}{:>6}{:>6}{:>7}{:>7}{:>7}{:>8}".format(*row)
    used = sum(map(len, walls.ROOMS.values()))
    above = len(walls.check_rooms_downward(None))
    yield (f"{len(rows)} rooms on {max(levels.values())} levels, {used} arrows between them, {above} upward, "
           f"{len(walls.ROOMS) - len(levels)} rooms in circles")
