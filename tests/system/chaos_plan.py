# SPDX-License-Identifier: Apache-2.0
"""What a seed says: the algorithm, the cycles of mixing at the end, the faults of a run of chaos.py with their times, and topologies.

A fault has a random generator of its own, so a run that leaves others out draws the same for it."""
import random

ALGORITHMS = ("sgp", "osgp", "adpsgd")
SYMMETRIC = ("adpsgd", "dpsgd")  # algorithms that want every edge with its reverse
KINDS = {  # how often, and how long it lasts in seconds
    "kill": (4, 0, 8), "stop": (3, 0.2, 12), "cut": (5, 0.5, 14), "pause": (2, 0.2, 6), "reload": (3, 0, 2),
    "leave": (2, 0, 8), "strike": (1, 2, 10), "full": (2, 2, 12), "restore": (2, 0.5, 8)}
LONG_PART, LONG_TIMES = 0.15, 6  # so many last so many times longer


class Fault:
    def __init__(self, number, at, kind, node, seconds, seed):
        self.number, self.at, self.kind, self.node, self.seconds = number, at, kind, node, seconds
        self.random = random.Random(seed)


def algorithm(seed):
    return random.Random("algorithm %d" % seed).choice(ALGORITHMS)


def final_cycles(seed):
    """The default, after which nodes may not agree yet, or enough for any topology here."""
    return random.Random("final cycles %d" % seed).choice((2, 150))


def faults(seed, seconds, nodes, gap):
    """All faults that begin within so many seconds, in order of time, with gaps of so many seconds on average."""
    draw = random.Random("faults %d" % seed)
    kinds, often = list(KINDS), [often for often, _, _ in KINDS.values()]
    found, at = [], 1.0
    while at < seconds:
        kind = draw.choices(kinds, often)[0]
        _, least, most = KINDS[kind]
        times = LONG_TIMES if draw.random() < LONG_PART else 1
        found.append(Fault(len(found) + 1, at, kind, draw.randrange(nodes), times * draw.uniform(least, most),
                           draw.getrandbits(32)))
        at += draw.expovariate(1 / gap)
    return found


# Topologies: (name, seed) makes phases for whichever nodes are there, as lists of edges.

def ring(nodes, _):
    return [list(zip(nodes, nodes[1:] + nodes[:1]))]


def exponential(nodes, _):
    n, phases, hop = len(nodes), [], 1
    while hop < n:
        phases.append([(nodes[i], nodes[(i + hop) % n]) for i in range(n)])
        hop *= 2
    return phases


def full(nodes, _):
    return [[(a, b) for a in nodes for b in nodes if a != b]]


def star(nodes, draw):
    hub = draw.choice(nodes)
    return both([(hub, node) for node in nodes if node != hub])


def circle(nodes, _):
    return both(ring(nodes, None)[0])


def tree(nodes, draw):
    """A random tree and an edge more."""
    order = draw.sample(nodes, len(nodes))
    edges = [(order[draw.randrange(i)], order[i]) for i in range(1, len(order))]
    return both(edges + [tuple(draw.sample(nodes, 2))])


def rings(nodes, draw):
    """Rings in random orders, one a phase."""
    return [ring(draw.sample(nodes, len(nodes)), None)[0] for _ in range(draw.randint(1, 3))]


def both(edges):
    return [sorted(set(edges) | {(b, a) for a, b in edges})]


def circles(nodes, draw):
    """The same in both directions, and two at least."""
    return [both(ring(draw.sample(nodes, len(nodes)), None)[0])[0] for _ in range(draw.randint(2, 3))]


TURNING = {"circles": circles}  # only where files are to differ in the lengths of their cycles
DIRECTED = {"ring": ring, "exponential": exponential, "rings": rings}
UNDIRECTED = {"full": full, "star": star, "circle": circle, "tree": tree}


def shape(draw, method):
    """A topology that the method takes: its name and seed."""
    names = list(UNDIRECTED) + ([] if method in SYMMETRIC else list(DIRECTED))
    return draw.choice(names), draw.getrandbits(32)


def phases(shape_, nodes):
    name, seed = shape_
    return {**DIRECTED, **UNDIRECTED, **TURNING}[name](list(nodes), random.Random(seed))


def reaches_all(edges, nodes):
    """Whether each node reaches each other one."""
    def reached(pairs):
        seen, new = set(), {nodes[0]}
        while new:
            seen |= new
            new = {b for a, b in pairs if a in seen} - seen
        return seen == set(nodes)

    return reached(edges) and reached({(b, a) for a, b in edges})


def apart(draw, method, former, nodes):
    """A node that keeps its file, and the name, seed and phases of the file that all others get, whose cycle has another length.
    Nodes reach each other over edges that the files of both ends have; else they could not agree."""
    names = ["circles", "full"] + ([] if method in SYMMETRIC else list(DIRECTED))
    while True:
        odd, name = draw.choice(list(nodes)), (draw.choice(names), draw.getrandbits(32))
        next_ = phases(name, nodes)
        old, new = ({edge for edges in file for edge in edges} for file in (former, next_))
        if len(former) != len(next_) and reaches_all({e for e in new if odd not in e or e in old}, list(nodes)):
            return odd, name, next_
