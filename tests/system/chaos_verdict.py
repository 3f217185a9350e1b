# SPDX-License-Identifier: Apache-2.0
"""What must be right at the end of a run of chaos.py, each with its numbers."""
import itertools
import json
import math
import os
import re
import time

import fleet

MODELS_EQUAL = 1e-3  # the greatest difference of one parameter
WEIGHT_EQUAL = 1e-9
# Fields of status that say by how much the total differs from the number of members: to the bit, or at most.
COUNTED = ("surplus",)
BOUNDING = ("weight_minted", "weight_unknown")
BROKEN = re.compile(r"assert|Sanitizer|runtime error|corrupt", re.IGNORECASE)
CONNECTIONS_MORE = 3  # dialled or asked at the moment
DESCRIPTORS_SECONDS = 20


def descriptors(nodes):
    """What each process has open beside its links."""
    def count(node):
        up = sum(p["state"] == "up" for p in node.json("/v1/peers"))
        return len(os.listdir("/proc/%d/fd" % node.process.pid)) - up
    return [count(node) for node in nodes]


def verdict(chaos, settled):
    """(right, text) for each thing that must hold."""
    nodes = chaos.members()
    statuses = [node.status() for node in nodes]
    yield finished(nodes, statuses, settled)
    if all(statuses):
        yield models(nodes, statuses)
        yield weight(nodes, statuses, chaos.restored) if settled else (False, "weight: not judged, for the fleet has not settled")
        yield leaks(chaos, nodes)
    yield not chaos.exits, "daemons that ended by themselves: %s" % (", ".join(chaos.exits) or "none")
    yield journals(chaos.fleet.nodes)
    yield not chaos.complaints, "other complaints: %s" % (" | ".join(chaos.complaints) or "none")


def finished(nodes, statuses, settled):
    words = ["%s %s at round %s" % (node.name, s["state"], s["round"]) if s else node.name + " silent"
             for node, s in zip(nodes, statuses)]
    return settled, "every node finished and stays so: " + ", ".join(words)


def models(nodes, statuses):
    """Equal, but for nodes between which some neighbours say that they disagree."""
    found = {node.name: fleet.read_model(node.get("/v1/model")[1]) for node in nodes}
    worst, pair, untold = -1.0, ("", ""), []
    groups = agreeing(nodes, statuses)
    for (a, x), (b, y) in itertools.combinations(found.items(), 2):
        difference = max(abs(u - v) if math.isfinite(u - v) else math.inf for u, v in zip(x, y))
        if difference > worst:
            worst, pair = difference, (a, b)
        if difference > MODELS_EQUAL and groups[a] is groups[b]:
            untold.append("%s and %s by %.3g" % (a, b, difference))
    norms = ", ".join("%.4g" % math.sqrt(sum(v * v for v in x)) for x in found.values())
    told = ["%s with %s" % (node.name, json.dumps(s["disagrees"]))
            for node, s in zip(nodes, statuses) if s.get("disagrees")]
    text = "models differ by at most %.3g (%s and %s), norms %s, accuracy %s; said: %s; not said: %s" % (
        worst, *pair, norms, ", ".join(str(s["test_accuracy"]) for s in statuses), "; ".join(told) or "nothing",
        ", ".join(untold) or "nothing")
    return not untold, text


def agreeing(nodes, statuses):
    """The names of those with whom each agrees, as far as is said: directly, or by way of others."""
    apart = {frozenset((node.name, other["peer"])) for node, s in zip(nodes, statuses) for other in s["disagrees"]}
    groups = {node.name: {node.name} for node in nodes}
    for node in nodes:
        for peer in node.json("/v1/peers"):
            one, other = groups[node.name], groups.get(peer["name"])
            if other is None or other is one or peer["retired"] or frozenset((node.name, peer["name"])) in apart:
                continue
            one |= other
            groups.update(dict.fromkeys(other, one))
    return groups


def weight(nodes, statuses, restored):
    """The number of members and what is told; where a ledger was put back, within the bounds that are told."""
    def sum_of(*fields):
        return math.fsum(s.get(field) or 0 for s in statuses for field in fields)
    total = sum_of("weight", "weight_in_flight")
    difference = total - len(nodes) - sum_of(*COUNTED)
    bound = sum_of(*BOUNDING) if restored else 0
    told = ", ".join("%s %.12g" % (field, sum_of(field)) for field in COUNTED + BOUNDING)
    text = "total weight %.12g of %d, difference %.3g; told: %s; ledgers put back: %d" % (
        total, len(nodes), difference, told, restored)
    return abs(difference) <= bound + WEIGHT_EQUAL, text


def leaks(chaos, nodes):
    """No process has more open than at the start, beside its links."""
    most = max(chaos.idle_descriptors) + CONNECTIONS_MORE
    end = time.monotonic() + DESCRIPTORS_SECONDS
    while max(descriptors(nodes)) > most and time.monotonic() < end:
        time.sleep(0.2)
    now = descriptors(nodes)
    return max(now) <= most, "descriptors beside links: %s, at the start %s" % (now, chaos.idle_descriptors)


def journals(nodes):
    lines = [line for node in nodes for line in node.log().splitlines() if BROKEN.search(line)]
    return not lines, "journals that speak of a broken program: %s" % (lines[:3] or "none")
