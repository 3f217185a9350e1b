# SPDX-License-Identifier: Apache-2.0
"""sgpctl simulate: test_simulate.py SGPCTL. What people and scripts read, and every refusal."""
import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import tap

SGPCTL = sys.argv[1]
FEW = "SGP_FEW" in os.environ and "SGP_LONG" not in os.environ  # under a sanitizer, which is slow


def ctl(*arguments, text=None, status=0):
    """Run sgpctl; returns standard output and standard error."""
    done = subprocess.run([SGPCTL, *map(str, arguments)], input=text, text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout, done.stderr


def simulate(family, nodes, *arguments):
    """The objects of each round, and the summary."""
    text = ctl("topology", "generate", family, nodes)[0]
    lines = [json.loads(line) for line in
             ctl("--json", "simulate", "-", *arguments, text=text)[0].splitlines()]
    return lines[:-1], lines[-1]["summary"]


def version():
    return json.loads(ctl("--version", "--json")[0])["version"]


@contextlib.contextmanager
def topology_file(family, nodes):
    """Its path; other files may lie beside it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.dot"
        path.write_text(ctl("topology", "generate", family, nodes)[0])
        yield str(path)


def refused(*arguments):
    text = ctl("topology", "generate", "ring", 4)[0]
    out, err = ctl("simulate", "-", *arguments, text=text, status=2)
    assert out == "" and err.endswith("; see sgpctl simulate --help\n"), (out, err)
    return err[len("sgpctl: "):err.rindex(";")]


def test_every_round_tells_time_disagreement_weight_and_bytes():
    rounds, summary = simulate("one-peer-exponential", 8, "--rounds", 5)
    assert [row["round"] for row in rounds] == list(range(5))
    assert [row["disagreement"] == 0 for row in rounds] == [False, False, True, True, True]
    for row, after in zip(rounds, rounds[1:]):
        assert row["nodes"] == 8 and row["total_weight"] == 8
        assert row["time_seconds"] < after["time_seconds"] and row["bytes"] < after["bytes"]
        assert after["shares"] == row["shares"] + 8
    assert summary["finished"] == 8 and summary["error"] == 0 and summary["mass_error"] == 0


def test_equal_options_give_equal_output_and_other_seeds_do_not():
    options = ("--rounds", 20, "--loss", 0.02, "--jitter", 0.3, "--learning-rate", 0.1)
    first, again = simulate("random", 7, *options), simulate("random", 7, *options)
    assert first == again
    assert first[1]["digest"] != simulate("random", 7, *options, "--seed", 2)[1]["digest"]
    assert first == simulate("random", 7, *options, "--through-wire")


def test_a_thousand_nodes_run_two_hundred_rounds():
    nodes = 200 if FEW else 1000
    rounds, summary = simulate("one-peer-exponential", nodes, "--rounds", 200)
    assert len(rounds) == 200 and summary["finished"] == nodes and summary["shares"] == 200 * nodes
    assert abs(summary["total_weight"] - nodes) < 1e-9


def test_base_averages_five_nodes_in_five_rounds():
    rounds, _ = simulate("base", 5, "--rounds", 5)
    assert [row["disagreement"] < 1e-5 for row in rounds] == [False] * 4 + [True]


def test_relays_that_end_with_nothing_have_no_say_in_how_far_all_are_apart():
    text = ctl("topology", "generate", "all-reduce-hubs", 5, "--hubs", 2, "--relays")[0]
    out = ctl("--json", "simulate", "-", "--rounds", 5, "--learning-rate", 0.1, text=text)[0]
    summary = json.loads(out.splitlines()[-1])["summary"]
    assert summary["finished"] == 5 and summary["total_weight"] == 3, summary
    assert summary["disagreement"] < 1e-6 and summary["error"] is not None, summary


def test_training_reaches_the_mean_of_the_minima():
    _, summary = simulate("ring", 5, "--rounds", 400, "--learning-rate", 0.01,
                          "--final-cycles", 100)
    assert summary["error"] < 0.1 and summary["disagreement"] < 1e-5, summary


def test_faults_happen_and_nothing_is_lost():
    _, summary = simulate("one-peer-exponential", 8, "--rounds", 2000, "--absent", "n3:1:9s",
                          "--absent", "n5:2s:12s", "--cut", "n0,n1:500ms:10", "--straggler",
                          "n2:1.5", "--straggler=n4:2", "--loss", 0.001)
    assert abs(summary["total_weight"] - 8) < 1e-11 and summary["finished"] == 8, summary
    assert summary["absences"] > 10 and summary["resets"] > 10, summary
    assert summary["disagreement"] < 1e-4, summary


def test_every_fault_of_the_command_line_happens():
    _, summary = simulate("one-peer-exponential", 8, "--rounds", 2000, "--cut", "n0:1s:6s:out",
                          "--cut", "n1:1s:6s:in", "--clog", "n2,n3:1s:8s", "--swizzle", "n4:2s:9s",
                          "--half-open", "n5,n6:1s", "--crash", "n6:3s:5s", "--clock", "n7:4s:60s",
                          "--clock=n7:6s:-2s", "--tail", "2:20", "--checkpoint", "1s")
    assert abs(summary["total_weight"] - 8) < 1e-11 and summary["finished"] == 8, summary
    assert summary["crashes"] == 1 and summary["half_opened"] == 1, summary
    assert summary["disagreement"] < 1e-4, summary


def test_a_guard_keeps_a_liar_from_moving_the_others():
    def error(*arguments):
        rounds, summary = simulate("one-peer-exponential", 8, "--rounds", 300, "--learning-rate", 0.05, *arguments)
        assert summary["mass_error"] < 1e-11 and summary["finished"] == 8, summary
        return rounds[200]["error"], summary["shares_clipped"]
    honest, none = error()
    guarded, some = error("--guard", 1)
    assert none == 0 and some > 100 and guarded < 3 * honest + 0.5, (honest, guarded, some)
    for lie, part in (("flip", 1), ("scale", 1e-3), ("noise", 0.9), ("dissensus", 0.01)):
        free, _ = error("--liar", "n1:" + lie)
        held, clipped = error("--liar", "n1:" + lie, "--guard", 1)
        assert clipped > 200 and held < part * free, (lie, free, held, clipped)


def test_a_guard_is_refused_where_it_cannot_help():
    for family, nodes, why in (("bidirectional-ring", 8, "a guard needs 3 to 1024 nodes that give to n0 in a cycle"),
                               ("all-reduce-direct", 8, "a guard would end the exactness of a cycle")):
        text = ctl("topology", "generate", family, nodes)[0]
        assert why in ctl("simulate", "-", "--guard", 1, text=text, status=2)[1]
    assert refused("--guard", 11) == "a guard must be from 0.1 to 10, or 0 for none"
    assert refused("--liar", "n1:lies") == ("--liar is NODE:LIE, and LIE flip, scale, noise, estimate, weightless, alie, ipm, drift or "
                                            "dissensus, not 'n1:lies'")
    text = ctl("topology", "generate", "owner", 4)[0]
    for lie in ("alie", "ipm", "drift", "dissensus"):
        assert ("the lies alie, ipm, drift and dissensus are for nodes that mix, and here the vector has an owner" in
                ctl("simulate", "-", "--algorithm", "backup", "--liar", "n1:" + lie, text=text, status=2)[1])


def test_a_crash_moves_nothing_of_what_all_should_agree_on():
    _, summary = simulate("ring", 4, "--rounds", 400, "--crash", "n1:1s:2s", "--crash", "n2:3s:3.1s")
    assert summary["adopted"] == 2 and summary["error"] < 1e-6, summary


def test_a_node_that_forgets_changes_the_total():
    _, summary = simulate("star", 4, "--rounds", 800, "--crash", "n0:1s:2s:forgets")
    assert summary["finished"] == 4 and summary["total_weight"] != 4, summary


def test_a_ledger_from_a_backup_is_told():
    _, summary = simulate("star", 4, "--rounds", 800, "--jitter", "0.5", "--crash", "n0:3s:4s:1500ms")
    assert summary["restored"] == 1 and summary["finished"] == 4, summary
    assert 0 < abs(summary["total_weight"] - 4) <= summary["weight_unknown"] == 4, summary
    assert summary["mass_error"] < 1e-11, summary


def test_a_machine_that_is_gone_for_good_is_left_behind():
    rounds, summary = simulate("complete", 4, "--rounds", 600, "--absent", "n3:1s")
    assert summary["finished"] == 3 and abs(summary["total_weight"] - 4) < 1e-12, summary
    assert rounds[0]["nodes"] == 4 and rounds[-1]["nodes"] == 3


def test_latency_bandwidth_and_compute_take_their_time():
    base = ("--rounds", 10, "--bandwidth", 0, "--latency", 0, "--compute", 0)
    assert simulate("ring", 4, *base)[1]["time_seconds"] == 0
    slow = simulate("ring", 4, "--rounds", 10, "--bandwidth", 0, "--latency", 0, "--compute", "2s")
    assert slow[0][-1]["time_seconds"] == 20
    wide = simulate("ring", 4, *base[:2], *base[4:], "--dimension", 25000, "--bandwidth", "100k")
    assert wide[0][-1]["time_seconds"] > 10


def test_people_get_a_table_and_a_summary():
    text = ctl("topology", "generate", "ring", 3)[0]
    lines = ctl("simulate", "-", "--rounds", 2, text=text)[0].splitlines()
    assert lines[0].split("\t") == ["round", "time_seconds", "nodes", "disagreement",
                                    "error", "total_weight", "weight_least", "bytes", "shares"], lines
    assert lines[1].split("\t")[0] == "0" and lines[3] == "" and "nodes 3" in lines, lines


def test_refusals_say_what_would_be_right():
    assert refused("--rounds", 0).startswith("--rounds is a whole number from 1 to ")
    assert refused("--latency", "5 parsecs") == \
        "--latency is a time such as 500us, 1ms, 0.2s or 2min, not '5 parsecs'"
    assert refused("--bandwidth", "fast") == \
        "--bandwidth is bytes a second such as 125M, 0 for no limit, not 'fast'"
    assert refused("--loss", 1) == "--loss is a number from 0 to 0.99, not '1'"
    assert refused("--straggler", "n1:0") == \
        "--straggler is NODE:FACTOR with a factor above 0, not 'n1:0'"
    assert refused("--straggler", "n9:2") == "'n9' is not a node of the topology"
    assert refused("--absent", "n1:5s:4s") == ("--absent is NODE:FROM or NODE:FROM:TO with times "
                                               "such as 1.5s and FROM before TO, not 'n1:5s:4s'")
    assert refused("--cut", "n1,x:1:2") == "'x' is not a node of the topology"
    assert refused("--cut", "n1:1:2:up").startswith("--cut is NODE,NODE,...:FROM, ...:FROM:TO or ")
    assert refused("--clog", "n1,n1:1:2") == "'n1,n1' names one node twice"
    assert refused("--clog", "n1:1:2") == "'' is not a node of the topology"
    assert refused("--swizzle", "n1:1").startswith("--swizzle is NODE:FROM:TO with times ")
    assert refused("--half-open", "n1,n2") == \
        "--half-open is LOSER,KEEPER:AT with a time such as 1.5s, not 'n1,n2'"
    assert refused("--crash", "n1:1:2:3:4").startswith("--crash is NODE:FROM:TO or ")
    assert refused("--crash", "n1:1:2:dies").startswith("--crash is NODE:FROM:TO or ")
    assert refused("--clock", "n1:1:0").startswith("--clock is NODE:AT:LEAP with times ")
    assert refused("--tail", "0") == "--tail is SHAPE or SHAPE:GREATEST such as 1.5:50, not '0'"
    assert refused("--cut") == "--cut needs a value"
    assert refused("--algorithm", "sgd") == \
        "--algorithm sgd is none of sgp, osgp, agp, dpsgd, adpsgd, backup, downpour, cyclic"
    assert refused("--wind", 3) == "unknown option '--wind'"


def test_a_file_that_is_no_topology_ends_with_six():
    err = ctl("simulate", "-", text="graph { a -- b }", status=6)[1]
    assert err.startswith("sgpctl: -:"), err


def test_adpsgd_runs_on_an_odd_ring_and_wants_every_reverse():
    rounds, summary = simulate("bidirectional-ring", 7, "--algorithm", "adpsgd", "--rounds", 300, "--jitter", 0.9)
    assert all(abs(row["total_weight"] - 7) < 1e-11 for row in rounds), rounds[-1]
    assert summary["disagreement"] < 0.05 and summary["mass_error"] < 1e-11, summary
    ring = ctl("topology", "generate", "ring", 4)[0]
    err = ctl("simulate", "-", "--algorithm", "adpsgd", text=ring, status=6)[1]
    assert "edge n0 -> n1 has no reverse in any digraph of the file" in err, err


def test_a_fleet_that_can_never_start_says_why_and_how_to_see_it_again():
    text = ctl("topology", "generate", "ring", 4)[0]
    out, err = ctl("--json", "simulate", "-", "--absent", "n3:0", text=text, status=1)
    message = json.loads(out)["error"]["message"]
    assert "n0, joining in round 0, waits for hello of n3" in message, message
    assert err.splitlines()[-1].startswith("again: "), err
    many = [word for k in range(100) for word in ("--clog", f"n0,n1:{k}s:{k + 1}s")]
    with topology_file("ring", 4) as path:
        err = ctl("simulate", path, "--absent", "n3:0", *many, status=1)[1]
    assert err.splitlines()[-1] == " ".join(
        ["again: sgpctl simulate", path, "--absent n3:0", *many, "# sgpctl", version()]), err


def test_what_standard_input_said_has_to_be_saved_to_be_seen_again():
    text = ctl("topology", "generate", "ring", 4)[0]
    err = ctl("simulate", "--absent", "n3:0", "-", "--cut=n0:0:1s", text=text, status=1)[1]
    assert err.splitlines()[-1] == ("again: standard input cannot be read again; save the topology to FILE, then: "
                                    "sgpctl simulate --absent n3:0 FILE --cut=n0:0:1s # sgpctl " + version()), err


def test_outer_steps_are_those_that_the_option_names():
    text = ctl("topology", "generate", "all-reduce-ring", 4, "--outer")[0]
    err = ctl("simulate", "-", text=text, status=1)[1]
    assert err == ("sgpctl: -: digraph gather2 says outer=true; say which step is meant, as in "
                   "--outer slowmo:1:0.5\n"), err
    for wrong in ("x", "slowmo", "slowmo:1", "slowmo:0:0.5", "nesterov:1:1", "none:1:0.5:2"):
        assert refused("--outer", wrong).startswith("--outer is slowmo:RATE:MOMENTUM or"), wrong

    def error(step):
        lines = ctl("--json", "simulate", "-", "--learning-rate", 0.02, "--rounds", 60, "--outer", step, text=text)[0]
        return json.loads(lines.splitlines()[-1])["summary"]["error"]
    assert error("slowmo:1:0.5") < error("slowmo:1:0") / 2


def test_the_command_that_shows_it_again_is_quoted_for_a_shell():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "the clinic's ring; true.dot"
        path.write_text(ctl("topology", "generate", "ring", 4)[0])
        words = ["sgpctl", "simulate", str(path), "--absent", "n3:0"]
        err = ctl(*words[1:], status=1)[1]
    assert shlex.split(err.splitlines()[-1].removeprefix("again: "), comments=True) == words, err


def test_the_trace_tells_every_step_and_whom_a_node_waits_for():
    with topology_file("ring", 4) as path:
        ctl("simulate", path, "--rounds", 3, "--trace", path + ".trace")
        trace = Path(path + ".trace").read_text().splitlines()
        among = ctl("simulate", path, "--rounds", 3, "--trace", "-")[0].splitlines()
        ctl("simulate", path, "--rounds", 3, "--trace", path + "/none", status=1)
        ctl("simulate", path, "--absent", "n3:0", "--trace", path + ".trace", status=1)
        stuck = Path(path + ".trace").read_text().splitlines()
    assert [line for line in among if line.startswith("t=")] == trace
    assert sum(" event=start" in line for line in trace) == 4, trace[:9]
    assert re.fullmatch(r"t=\d+ node=n0 state=\w+ round=\d+ w=\S+ event=start do=dial:n1", trace[0]), trace[0]
    assert any(re.fullmatch(r"t=\d+ node=n1 round=2 waits=share peer=n0", line) for line in trace), trace
    waits = [line for line in stuck if " node=n0 " in line and " waits=" in line]
    assert waits[-1].endswith(" round=0 waits=hello peer=n3"), waits


def test_a_step_that_does_more_than_a_line_holds_is_told_whole():
    with topology_file("complete", 60) as path:
        trace = ctl("simulate", path, "--rounds", 1, "--trace", "-")[0].splitlines()
    done = [line.partition(" do=") for line in trace if line.startswith("t=0 node=n0 ") and " event=start" in line]
    assert len(done) > 1 and len({head for head, _, _ in done}) == 1 and max(map(len, trace)) < 512
    assert [word for _, _, words in done for word in words.split(",")] == [f"dial:n{i}" for i in range(1, 60)], done


def test_a_trace_that_finds_no_room_is_a_failure():
    with topology_file("ring", 4) as path:
        err = ctl("simulate", path, "--trace", "/dev/full", status=1)[1]
    assert err == "sgpctl: the trace could not be written whole\n", err


def test_what_takes_longer_than_there_is_time_ends_with_one():
    text = ctl("topology", "generate", "ring", 4)[0]
    for options in (("--compute", 10**9, "--local-steps", 10), ("--bandwidth", 1e-9),
                    ("--straggler", "n0:1e300"), ("--tail", "0.01:1e300", "--compute", 10**9)):
        err = ctl("simulate", "-", "--rounds", 3, *options, text=text, status=1)[1]
        assert "virtual time is over before what was asked for is done" in err, err


def test_a_model_that_is_not_a_number_has_no_error():
    _, summary = simulate("ring", 4, "--rounds", 4000, "--learning-rate", 1000)
    assert summary["diverged"] == 4 and summary["error"] is None, summary


def test_a_node_may_be_slowed_more_than_once():
    slow = simulate("ring", 2, *["--straggler=n0:3"] * 3, "--rounds", 10)[1]
    assert slow == simulate("ring", 2, "--straggler", "n0:3", "--rounds", 10)[1]


tap.run(vars())
