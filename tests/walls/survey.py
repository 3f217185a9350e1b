# SPDX-License-Identifier: Apache-2.0
"""The modules, their layers, and the arrows between them, counted from a build folder, as lines to read.

A layer of a module holds the files that call only files of lower layers. A module's own level is counted the same way over
modules. An upward arrow is a call, or a use of a module, that breaks this order; the walls refuse each one by name.
"""
import walls


def layers(graph):
    """name -> layer, from 1, of a graph name -> names that it uses; circles are left out."""
    heights = {}
    while True:
        new = {name for name in graph if name not in heights and all(other in heights for other in graph[name])}
        if not new:
            return heights
        heights.update({name: 1 + max((heights[other] for other in graph[name]), default=0) for name in new})


def upward(graph, listed):
    """How many arrows between files of a module lead to no lower layer, by its list or else by what is counted."""
    heights = listed or layers(graph)
    return sum(heights.get(other, 0) >= heights.get(file, 0) for file in graph for other in graph[file])


def lines(root, build):
    """A line for each module, lowest first, and one for all."""
    levels = layers(walls.MODULES)
    rows = []
    for module in sorted(walls.MODULES, key=lambda module: (levels.get(module, 0), module)):
        graph = walls.calls(build, module)
        rows.append((module, levels.get(module, 0), len(graph), max(layers(graph).values(), default=0),
                     sum(map(len, graph.values())), upward(graph, walls.heights(root, module)), len(walls.circles(graph))))
    yield f"{'module':<16}{'level':>6}{'files':>6}{'layers':>7}{'arrows':>7}{'upward':>7}{'circles':>8}"
    for row in rows:
        yield "{:<16}{:>6}{:>6}{:>7}{:>7}{:>7}{:>8}".format(*row)
    used = sum(map(len, walls.MODULES.values()))
    above = len(walls.check_modules_downward(None))
    yield (f"{len(rows)} modules on {max(levels.values())} levels, {used} arrows between them, {above} upward, "
           f"{len(walls.MODULES) - len(levels)} modules in circles")
