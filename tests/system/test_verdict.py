# SPDX-License-Identifier: Apache-2.0
"""What chaos.py says of a fleet at its end, and that a seed that breaks ends no other: without daemons."""
import argparse
import contextlib
import io
import unittest.mock

import chaos
import chaos_verdict
import tap


class Node:
    """A node at the end of a run, with a model of one parameter."""

    def __init__(self, name, value, neighbours, told=()):
        self.name, self.value, self.neighbours = name, value, neighbours
        self.status = {"test_accuracy": 1.0, "disagrees": [{"peer": peer} for peer in told]}

    def get(self, _):
        return 200, [self.value]

    def json(self, _):
        return [{"name": name, "retired": name.endswith("'")} for name in self.neighbours]


def models(*nodes):
    with unittest.mock.patch("fleet.read_model", lambda model: model):
        return chaos_verdict.models(nodes, [node.status for node in nodes])[0]


def weight(total, restored, **told):
    statuses = [{"weight": total - 4, **told}] + [{"weight": 1}] * 4
    return chaos_verdict.weight([None] * 5, statuses, restored)[0]


def test_equal_models_are_right():
    assert models(Node("a", 1, "bc"), Node("b", 1, "ac"), Node("c", 1, "ab"))


def test_a_pair_that_differs_must_be_told_and_no_other():
    assert not models(Node("a", 1, "bc"), Node("b", 2, "ac"), Node("c", 1, "ab"))
    assert models(Node("a", 1, "bc", told="b"), Node("b", 2, "ac", told="c"), Node("c", 1, "ab"))
    assert not models(Node("a", 1, "bc", told="b"), Node("b", 2, "ac"), Node("c", 1, "ab")), "b and c"
    assert not models(Node("a", 1, "bc", told="c"), Node("b", 2, "ac"), Node("c", 1, "ab"))


def test_who_are_no_neighbours_differ_where_one_between_them_says_so():
    assert models(Node("a", 1, "b"), Node("b", 2, "ac", told="a"), Node("c", 2, "b"))
    assert not models(Node("a", 1, "b"), Node("b", 1, "ac"), Node("c", 2, "b"))
    assert models(Node("a", 1, ["b", "c'"]), Node("b", 2, "ac", told="a"), Node("c'", 2, ["b", "a'"]))


def test_weight_that_is_off_is_forgiven_after_a_restore_alone():
    assert weight(5, 0)
    assert not weight(6, 0)
    assert not weight(6, 0, weight_unknown=5), "nobody put a ledger back"
    assert weight(6, 1, weight_unknown=5)
    assert not weight(11, 1, weight_unknown=5)
    assert weight(6, 0, surplus=1)


def test_a_seed_that_breaks_anywhere_hides_no_other():
    options = argparse.Namespace(nodes=5, algorithm="sgp", seconds=1, gap=3, faults=None, without="", apart=False)
    for place in ("Lines", "fleet.Fleet"):
        with unittest.mock.patch("chaos." + place, side_effect=OSError("no room")), \
                contextlib.redirect_stdout(io.StringIO()) as said:
            assert chaos.one_seed(options, 1, False) is False
        assert "OSError: no room" in said.getvalue(), said.getvalue()
        assert "# again: tests/system/chaos.py" in said.getvalue()


tap.run(dict(vars()))
