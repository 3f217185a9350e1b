# SPDX-License-Identifier: Apache-2.0
"""`sgpctl compare`: test_compare.py SGPD SGPCTL. Plans that are wrong, variants in virtual time and with daemons."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import fleet
import tap

SGPCTL = os.path.abspath(sys.argv.pop(2)) if len(sys.argv) > 2 else "sgpctl"
SIMULATED = """\
[compare]
run = simulated
[base]
nodes = 8
topology = one-peer-exponential
simulate = --rounds 60 --learning-rate 0.05
[one-peer]
[slow momentum]          ; its name goes into the picture, and into a file
topology = all-reduce-direct --outer
simulate = --rounds 60 --learning-rate 0.05 --outer slowmo:1:0.5
"""
DAEMONS = """\
[base]
nodes = 3
topology = all-reduce-ring
train.epochs = 20
model.layers = dense 2
model.inputs = 6
model.loss = cross-entropy
data.train = {rows}
data.label = label
data.classes = neg pos
data.holdout = 0.2
[ring]
[elastic]
nodes = +1
topology = elastic --fraction 0.25
[outer]
topology = all-reduce-direct --outer
train.local_steps = 4
outer.kind = nesterov
outer.learning_rate = 0.7
"""


class Folder:
    """A plan in a folder of its own."""

    def __init__(self, text):
        self.temporary = tempfile.TemporaryDirectory(prefix="sgpd-")
        self.path = os.path.join(self.temporary.name, "plan.ini")
        rows = os.path.join(self.temporary.name, "rows.csv")
        fleet.write_rows(rows)
        self.write(text.replace("{rows}", rows))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.temporary.cleanup()

    def write(self, text):
        self.text = text
        Path(self.path).write_text(text)

    def run(self, *options, status=0):
        done = subprocess.run([SGPCTL, "compare", self.path, *options], text=True, capture_output=True,
                              timeout=200, check=False)
        assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
        return done.stdout, done.stderr

    def json(self, *options, status=0):
        return json.loads(self.run("--json", *options, status=status)[0])

    def result(self, name):
        return json.loads(self.file_of(name).read_text())

    def file_of(self, name):
        [path] = Path(self.path.replace(".ini", ".results")).glob(name + "-*.json")
        return path

    def lines_of_picture(self):
        """How many lines each title has below it."""
        root = ElementTree.parse(self.path.replace(".ini", ".results") + "/comparison.svg").getroot()
        return len(root.findall(".//{http://www.w3.org/2000/svg}polyline"))


def test_a_plan_that_is_wrong_is_refused_with_its_line():
    for text, said in (
            ("", "plan.ini: there is no variant; add a section such as [ring] with topology = all-reduce-ring"),
            ("nodes = 3\n", "plan.ini:1: a line before the first section; begin with [base]"),
            ("[base]\nnodes\n", "plan.ini:2: this is no KEY = VALUE; write one"),
            ("[a]\n[a]\n", "plan.ini:2: [a] stands twice; give each variant a name of its own"),
            ("[a]\nnodes = 1\nnodes = 2\n", "plan.ini:3: nodes stands twice in [a]; keep one"),
            ("[compare]\nrun = fast\n[a]\n", "plan.ini:2: [compare] run: 'fast' is neither daemons nor simulated"),
            ("[compare]\nrum = x\n[a]\n", "plan.ini:2: [compare] rum: unknown key; there are run and goal"),
            ("[compare]\ngoal = 88\n[a]\n", "plan.ini:2: [compare] goal: '88' is no test accuracy, such as 0.88"),
            ("[compare]\nrun = simulated\ngoal = 0\n[a]\n", "plan.ini:3: [compare] goal: '0' is no error above 0, such as 0.1"),
            ("[base]\nnodes = 3\n[a]\n", "plan.ini:3: [a] topology: neither this variant nor [base] says it"),
            ("[a]\nnodes = many\n", "plan.ini:2: [a] nodes: 'many' is no number of nodes from 1 to 64"),
            ("[base]\nnodes = +1\n[a]\n", "plan.ini:2: [base] nodes: '+1' is no number of nodes from 1 to 64"),
            ("[a]\nnodes = \u00b2\n", "plan.ini:2: [a] nodes: '\u00b2' is no number of nodes from 1 to 64"),
            ("[base]\ntopology = ring\n[a]\nnodes = +1\n",
             "plan.ini:4: [a] nodes: [base] does not say how many there are without these"),
            ("[base]\ntopology = ring\nnodes = 64\n[a]\nnodes = +1\n",
             "plan.ini:5: [a] nodes: '65' is no number of nodes from 1 to 64"),
            ("[compare]\nrun = simulated\n[a]\nsimulate = --rounds ten\n",
             "plan.ini:4: [a] simulate: --rounds takes a number from 1 on"),
            ("[compare]\nrun = simulated\n[a]\nnodes = 2\ntopology = ring\ntrain.epochs = 2\n",
             "plan.ini:6: [a] train.epochs: it has no effect with run = simulated; leave it out"),
            ("[a]\nnodes = 2\ntopology = ring\nsimulate = --rounds 2\n",
             "plan.ini:4: [a] simulate: it has no effect with run = daemons; leave it out"),
            ("[a]\ntrain.when_done = exit\n", "plan.ini:2: [a] train.when_done: this is set for each node; leave it out"),
            ("[a]\nepochs = 3\n", "plan.ini:2: [a] epochs: unknown key; there are nodes, topology, simulate, and "
             "SECTION.KEY of sgpd.conf, such as train.epochs"),
            ("[a]\nnetwork.listen = :1\n", "plan.ini:2: [a] network.listen: this is set for each node; leave it out")):
        with Folder(text) as folder:
            out, err = folder.run(status=6)
            assert out == "" and err.endswith(said + "\n") and err.startswith("sgpctl: /"), err
            told = folder.json(status=6)["error"]
            assert told["code"] == "invalid" and told["message"].endswith(said), told
    with Folder("") as folder:
        os.unlink(folder.path)
        assert folder.run(status=6)[1].endswith("plan.ini: cannot be read: No such file or directory\n")


def test_nothing_runs_before_all_variants_can():
    with Folder(SIMULATED.replace("--outer slowmo:1:0.5", "")) as folder:
        out, err = folder.run(status=6)
        assert out == "" and "[slow momentum]: sgpctl simulate: " in err and "say which step is meant" in err, err
        assert not os.listdir(folder.path.replace(".ini", ".results"))
    with Folder(DAEMONS.replace("outer.kind", "outer.kid")) as folder:
        out, err = folder.run(status=6)
        assert out == "" and "plan.ini: [outer]: " in err and "[outer] kid: unknown key" in err, err
    with Folder(DAEMONS.replace("all-reduce-ring", "all-reduce-rng")) as folder:
        assert 'plan.ini: [ring]: there is no family "all-reduce-rng"' in folder.run(status=6)[1]


def test_variants_in_virtual_time_are_told_and_drawn():
    with Folder(SIMULATED) as folder:
        out, err = folder.run()
        lines = out.splitlines()
        assert lines[0].split() == ["variant", "nodes", "error", "virtual", "seconds", "megabytes", "sent"], out
        assert [line.split("  ")[0] for line in lines[1:3]] == ["one-peer", "slow momentum"], out
        assert "2 of 2: slow momentum" in err and "slow momentum: done in" in err, err
        first, second = folder.json()["variants"]
        assert second["error"] < first["error"] / 2 and second["megabytes_sent"] > first["megabytes_sent"]
        assert folder.lines_of_picture() == 6 * 2 + 2


def test_what_the_goal_took_is_told():
    with Folder(SIMULATED.replace("run = simulated", "run = simulated\ngoal = 0.5")) as folder:
        for line in folder.json()["variants"]:
            rows = folder.result(line["variant"].replace(" ", "_"))["rounds"]
            _, seconds, sent, _, _ = next(row for row in rows if row[3] <= 0.5)
            assert (line["seconds_to_goal"], line["megabytes_to_goal"]) == (seconds, sent / 8 / 1e6), line
            assert line["seconds_to_goal"] < line["virtual_seconds"], line
        folder.write(folder.text.replace("goal = 0.5", "goal = 1e-30"))
        out, err = folder.run()
        assert "one-peer: done before" in err and out.splitlines()[1].split()[-2:] == ["-", "-"], out


def test_what_has_a_result_is_not_run_again_unless_it_says_something_else():
    with Folder(SIMULATED) as folder:
        before = folder.json()["variants"]
        assert "one-peer: done before\nslow momentum: done before\n" == folder.run()[1]
        folder.write(folder.text.replace("slowmo:1:0.5", "slowmo:1:0.6"))
        out, err = folder.run("--json")
        assert "one-peer: done before\n" in err and "1 of 1: slow momentum" in err, err
        after = json.loads(out)["variants"]
        assert after[0] == before[0] and after[1] != before[1]
        folder.file_of("one-peer").write_text("{")
        assert "1 of 1: one-peer" in folder.run()[1]
        assert "1 of 2: one-peer" in folder.run("--again")[1]
        results, picture = folder.path + ".other", folder.path + ".svg"
        told = folder.json("--nodes", "4", "--again", "--results", results, "--picture", picture)
        assert [line["nodes"] for line in told["variants"]] == [4, 4] and told["picture"] == picture
        assert len(os.listdir(results)) == 2 and os.path.exists(picture)


def test_variants_with_daemons_end_with_all_weight():
    with Folder("[compare]\ngoal = 0.6\n" + DAEMONS) as folder:
        told = folder.json()
        assert [line["variant"] for line in told["variants"]] == ["ring", "elastic", "outer"] and not told["failed"]
        for line in told["variants"]:
            result = folder.result(line["variant"])
            assert abs(result["weight"] - line["nodes"]) < 1e-9, result["weight"]
            assert len(result["nodes"]) == 3, "a relay has no accuracy"
            assert all(len(node["history"]) >= 20 for node in result["nodes"])
            assert line["accuracy_worst"] > 0.7 and line["megabytes_sent"] > 0, line
            last = max(next(row[1] for row in node["history"] if row[5] >= 0.6) for node in result["nodes"])
            assert line["seconds_to_goal"] == last <= line["seconds"], line
        assert folder.lines_of_picture() == 6 * 3 * 2 + 2 + 3  # two frontiers, three names


def test_a_file_is_taken_as_it_is_but_for_its_addresses():
    with Folder(DAEMONS) as folder:
        def write(name, *words, change=lambda text: text):
            path = os.path.join(folder.temporary.name, name)
            Path(path).write_text(change(subprocess.run(
                [SGPCTL, "topology", "generate", *words, "--address", "10.0.0.1:7311+"], text=True,
                stdout=subprocess.PIPE, check=True).stdout))
            return path
        path = write("own.dot", "one-peer-exponential", "4", "--prelude", "3", "all-reduce-halving")
        owned = write("owned.dot", "owner", "4", "--backup", "1",
                      change=lambda text: re.sub(r'731([1-4])"', lambda found: found[0] + ', key="SHA256:' + 42 * found[1] +
                                                 'A"', text.replace("backup=1;", "backup=1;\n  tls=require;")))
        before, after = folder.text.split("[ring]\n")
        folder.write(before + f"[own]\nnodes = 4\ntopology = {path}\n[owned]\nnodes = 4\ntopology = {owned}\n"
                     "train.algorithm = backup\n")
        for line, weight in zip(folder.json()["variants"], (4, 1)):
            assert line["accuracy_worst"] > 0.7 and abs(folder.result(line["variant"])["weight"] - weight) < 1e-9, line
        folder.write(folder.text.replace("own.dot", "own.dot --outer"))
        assert "own.dot is a file, and takes no options such as --outer" in folder.run(status=6)[1]


def test_one_that_fails_is_told_and_the_others_are_kept():
    with Folder(DAEMONS.replace("[elastic]\n", "[elastic]\noptimizer.learning_rate = 1e6\nmodel.loss = mse\n")) as folder:
        out, err = folder.run(status=1)
        assert "elastic: failed: n" in err and "paused" in err, err
        assert out.splitlines()[-1].startswith("failed: elastic: n"), out
        assert [line["variant"] for line in folder.json(status=1)["variants"]] == ["ring", "outer"]


def test_an_interrupted_comparison_ends_its_daemons_and_goes_on():
    with Folder(DAEMONS.replace("[elastic]\n", "[elastic]\ntrain.epochs = 1000000\n")) as folder:
        process = subprocess.Popen([SGPCTL, "compare", folder.path], text=True, stderr=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        said = ""
        while "2 of 3: elastic" not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        daemons = fleet.poll("the daemons", lambda: children(process.pid), 60, lambda: said)
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=100)
        assert process.returncode == 130 and "the same command goes on with what is left" in rest, rest
        assert not [pid for pid in daemons if os.path.exists(f"/proc/{pid}")]
        folder.write(folder.text.replace("train.epochs = 1000000\n", ""))
        assert "ring: done before\n" in folder.run()[1]


def children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


if __name__ == "__main__":
    tap.run(dict(vars()))
