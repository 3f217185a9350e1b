# SPDX-License-Identifier: Apache-2.0
"""sgpctl topology push, log, diff and rollback before a stand-in for a daemon: test_topology_push.py SGPCTL.

The stand-in answers the routes of docs/ROLLOUT.md with the votes that each test wants. test_push.py has real daemons."""
import contextlib
import json
import os
import pathlib
import re
import tempfile
import urllib.parse

import tap
from scripted import STATUS, daemon, run


class Mill:
    """The rollout of node n0 of the fleet `mill`, as it answers for it. `votes` has the vote and the reason of each
    node on what is proposed; it is in use once all nodes have accepted."""

    def __init__(self, directory, nodes=4, threshold=1):
        self.directory = directory
        self.threshold = threshold
        self.names = [f"n{i}" for i in range(nodes)]
        self.documents = {}  # by version
        self.proposed = None
        self.votes = {}
        self.behind = set()
        self.fork = False
        self.pushed = []
        self.looks = 0
        self.on_look = None  # is called at each look, with the number of looks
        self.hashes = {name: self.key(name) for name in "abx"}
        self.ring = run("topology", "generate", "ring", nodes, "--address", "192.0.2.1:7000+")[0]
        self.use(self.sign(self.ring, "a", "--fleet", "mill"))
        self.file = self.write("fleet.signed", self.active())  # of its configuration
        self.socket = None

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, text):
        pathlib.Path(self.path(name)).write_text(text, encoding="ascii")
        return self.path(name)

    def key(self, name):
        return json.loads(run("key", "generate", name, "--file", self.path(name + ".key"), "--json")[0])["key"]

    def sign(self, text, name, *options):
        return run("topology", "sign", "-", "--key", self.path(name + ".key"), *options, input=text)[0]

    @staticmethod
    def said(document):
        return json.loads(run("topology", "verify", "-", "--json", input=document)[0])

    def use(self, document):
        self.documents[self.said(document)["version"]] = document
        self.proposed = None

    @property
    def version(self):
        return max(self.documents)

    def active(self):
        return self.documents[self.version]

    def named(self, document):
        said = self.said(document)
        return {"version": said["version"], "identity": said["manifest"]}

    def take(self, body):
        document = body.decode()
        if "\n" in document or not document.isascii():
            return 400, {"error": {"message": "the document is not one line of printable ASCII"}}
        said = self.said(document)
        strangers = [key for key in said["signers"] if key == self.hashes["x"]]
        if strangers:
            return 400, {"error": {"message": f"{strangers[0]} has signed, and is no administrator of the fleet mill"}}
        if len(said["signers"]) < self.threshold:
            return 400, {"error": {"message": f"{self.threshold} of 2 administrators must sign, and {len(said['signers'])} did"}}
        self.pushed.append(document)
        self.proposed = document
        return {**self.named(document), "state": "proposed"}

    def rollout(self):
        self.looks += 1
        if self.on_look:
            self.on_look(self.looks)
        proposed = self.named(self.proposed) if self.proposed else None
        votes = {name: self.votes.get(name, ("none", "")) for name in self.names}
        if proposed and not self.fork and all(vote == "accepted" for vote, _ in votes.values()):
            self.use(self.proposed)
            proposed = None
        mark = proposed["identity"][:16] if proposed else ""
        nodes = [{"name": name, "active": self.version - (name in self.behind), "mark": mark if vote != "none" else "", "vote": vote,
                  "why": why} for name, (vote, why) in votes.items()]
        return {"fleet": "mill", "active": self.named(self.active()), "proposed": proposed, "fork": self.fork, "vote": "none", "why": "",
                "accepted": sum(vote == "accepted" for vote, _ in votes.values()), "missing": 0, "refused": 0, "waits_for": "",
                "ready": False, "refused_last": "", "nodes": nodes}

    def log(self):
        said = {version: self.said(document) for version, document in self.documents.items()}
        return {"versions": [{"version": version, "identity": it["manifest"], "predecessor": it["predecessor"] or "", "file": it["file"],
                              "bytes": it["file_bytes"], "signers": it["signers"], "recovered": False, "despite": it["despite"],
                              "used_at": "2026-11-27T04:20:00Z"} for version, it in sorted(said.items(), reverse=True)]}

    def document(self, query):
        word = urllib.parse.parse_qs(query)["version"][0]
        found = self.active() if word == "active" else self.proposed if word == "proposed" else self.documents.get(int(word))
        return found.encode() if found else (404, {"error": {"message": f"this node has no version {word}"}})

    def __getitem__(self, what):
        method, path = what.split()
        path, _, query = path.partition("?")
        answers = {"POST /v1/rollout": self.take, "GET /v1/rollout": lambda _: self.rollout(), "GET /v1/rollout/log": self.log(),
                   "GET /v1/status": {**STATUS, "topology": {**STATUS["topology"], "file": self.file}},
                   "POST /v1/leave": {"heir": "n1", "weight": 1.0, "owed": 0.0}}
        return self.document(query) if path == "/v1/rollout/document" else answers[f"{method} {path}"]


@contextlib.contextmanager
def mill(**options):
    with tempfile.TemporaryDirectory() as directory:
        it = Mill(directory, **options)
        with daemon(it) as (path, _):
            it.socket = path

            def ctl(*arguments, status=0, **more):
                return run("-s", path, "topology", *arguments, status=status, **more)
            yield it, ctl


ACCEPTED = ("accepted", "")


def all_accept(it):
    it.votes = {name: ACCEPTED for name in it.names}


def one_line(err, reason):
    assert reason in err.splitlines()[-1] and err.count("sgpctl: ") == 1, err


def test_a_file_becomes_the_next_version_and_is_awaited():
    with mill() as (it, ctl):
        new = it.write("new.dot", it.ring.replace("n0 -> n1;", "n0 -> n1;\n  n0 -> n2;"))
        it.votes = {"n0": ACCEPTED}
        it.on_look = lambda looks: it.votes.update(n1=ACCEPTED) if looks == 3 else all_accept(it) if looks == 5 else None
        first = it.active()
        out, err = ctl("push", new, "--sign", it.path("a.key"))
        said = it.said(it.pushed[0])
        assert (said["fleet"], said["version"], said["predecessor"]) == ("mill", 2, it.said(first)["manifest"]), said
        assert said["signers"] == [it.hashes["a"]], said
        assert run("topology", "verify", "--file", "-", input=it.pushed[0])[0] == pathlib.Path(new).read_text(encoding="ascii")
        assert out.splitlines() == ["version 2", f"identity {said['manifest']}", "state active", "behind -"], out
        lines = err.splitlines()
        assert [line for line in lines if "accepted" in line] == ["n0: accepted", "n1: accepted"], err  # then it is in use
        assert "version      2" in lines and "+  n0 -> n2;" in lines, err


def test_several_keys_sign_and_nodes_are_passed_over():
    with mill(threshold=2) as (it, ctl):
        new = it.write("new.dot", it.ring + "// again\n")
        one_line(ctl("push", new, "--sign", it.path("a.key"), status=1)[1], "2 of 2 administrators must sign, and 1 did")
        assert it.pushed == []
        out, err = ctl("push", new, "--sign", it.path("a.key"), "--sign=" + it.path("b.key"), "--despite", "n1", "--despite", "n2,n3",
                       "--no-wait", "--json")
        assert err == "" and json.loads(out)["state"] == "proposed", (out, err)
        said = it.said(it.pushed[0])
        assert said["signers"] == [it.hashes["a"], it.hashes["b"]] and said["despite"] == ["n1", "n2", "n3"], said


def test_a_signed_document_is_pushed_with_the_signatures_that_are_added():
    with mill(threshold=2) as (it, ctl):
        it.write("1.signed", it.active())
        document = it.write("2.signed", it.sign(it.ring + "\n", "a", "--after", it.path("1.signed")))
        one_line(ctl("push", document, status=1)[1], "2 of 2 administrators must sign, and 1 did")
        all_accept(it)
        out = json.loads(ctl("push", document, "--sign", it.path("b.key"), "--json")[0])
        assert (out["version"], out["state"], out["behind"]) == (2, "active", []), out
        assert it.said(it.active())["signers"] == [it.hashes["a"], it.hashes["b"]]
        one_line(ctl("push", document, "--despite", "n1", status=2)[1], "--despite is for a topology file")


def test_what_cannot_be_pushed_is_told_before_a_daemon_has_it():
    with mill() as (it, ctl):
        key = it.path("a.key")
        it.write("1.signed", it.active())
        good = it.sign(it.ring + "\n", "a", "--after", it.path("1.signed"))
        other = it.sign(it.ring, "a", "--fleet", "barn")
        stale = it.sign(it.ring + "\n\n", "a", "--after", it.write("2.signed", good))
        for text, arguments, status, reason in (
                (it.ring, (), 2, "--sign KEY is missing"),
                ("digraph {", ("--sign", key), 6, "new:1: "),
                (good.replace("version=2", "version=3"), (), 6, "is wrong; somebody has changed the document"),
                (good[:-20], (), 6, "has a file of another size than its manifest says"),
                (other, (), 6, "it is of the fleet barn, and the version in use is of mill"),
                (stale, (), 6, "it was made for the version " + it.said(good)["manifest"][:16]),
                (it.ring, ("--sign", key, "--despite", "n9"), 2, "--despite names 'n9', which is no node of the file"),
                (it.ring, ("--sign", key, "--timeout", "-1"), 2, "--timeout is a number from 0"),
                (it.ring, ("--sign", key, "--timeout", "1", "--no-wait"), 2, "--no-wait does not wait"),
                (run("topology", "generate", "ring", 3, "--names", "n1,n2,n3")[0], ("--sign", key), 1, "it strikes n0, whose daemon was asked"),
                (it.ring, ("--sign", it.path("none.key")), 1, "No such file or directory"),
                (it.ring, ("--sign", it.path("x.key")), 1, "is no administrator of the fleet mill")):
            one_line(ctl("push", it.write("new", text), *arguments, status=status)[1], reason)
        assert it.pushed == []


def test_what_stands_in_the_way_ends_the_waiting():
    def refuses(it):
        it.votes = {"n0": ACCEPTED, "n2": ("refused", "the node is unknown")}

    def forks(it):
        it.fork = True

    def is_replaced(it):
        it.documents.pop(9, None)
        it.proposed = it.sign(it.ring + "\n\n", "b", "--fleet", "mill", "--number", "9")

    def is_overtaken(it):
        it.use(it.sign(it.ring + "\n\n", "b", "--fleet", "mill", "--number", "2"))

    for happens, reason in ((refuses, "n2 refuses version 2: the node is unknown"),
                            (forks, "two files have version 2, so it is used nowhere"),
                            (is_replaced, "was pushed and takes the place of version 2"),
                            (is_overtaken, "is in use instead; push the file again")):
        with mill() as (it, ctl):
            it.on_look = lambda looks, it=it, happens=happens: happens(it) if looks == 3 else None
            one_line(ctl("push", it.write("new.dot", it.ring + "\n"), "--sign", it.path("a.key"), status=1)[1], reason)


def test_missing_votes_are_named_when_the_time_is_over():
    with mill() as (it, ctl):
        it.votes = {"n0": ACCEPTED, "n1": ACCEPTED}
        new = it.write("new.dot", it.ring + "\n")
        err = ctl("push", new, "--sign", it.path("a.key"), "--timeout", "0", status=5)[1]
        one_line(err, "version 2 is not in use after 0 s: it waits for n2,n3;")
        # the next one takes its place, under a number of its own
        err = ctl("push", new, "--sign", it.path("a.key"), "--despite", "n3", "--timeout", "0", status=5)[1]
        assert "version 3 takes the place of version 2, which is proposed" in err, err
        assert "it waits for n2;" in err, err
        assert it.said(it.pushed[1])["predecessor"] == it.said(it.active())["manifest"]


def test_a_node_that_is_behind_does_not_refuse():
    """It refuses what is not made for the version that it uses, until it has followed its neighbours."""
    with mill() as (it, ctl):
        it.use(it.sign(it.ring + "\n", "a", "--after", it.write("1.signed", it.active())))
        it.behind = {"n1"}
        it.votes = {**{name: ACCEPTED for name in it.names}, "n1": ("refused", "version 3 is not made for version 1")}
        it.on_look = lambda looks: (it.behind.clear(), all_accept(it)) if looks > 3 else None
        out, err = ctl("push", it.write("new.dot", it.ring), "--sign", it.path("a.key"))
        assert "state active" in out and "n1: refused: version 3 is not made" in err, (out, err)


def test_the_log_and_the_document_of_a_version():
    with mill() as (it, ctl):
        first = it.active()
        it.use(it.sign(it.ring + "\n", "a", "--after", it.write("1.signed", first), "--despite", "n1,n2"))
        lines = [line.split("\t") for line in ctl("log")[0].splitlines()]
        assert lines[0] == ["version", "used_at", "manifest", "predecessor", "bytes", "recovered", "despite", "signers"], lines
        assert lines[1] == ["2", "2026-11-27T04:20:00Z", it.said(it.active())["manifest"][:16], it.said(first)["manifest"][:16],
                            str(len(it.ring) + 1), "no", "n1,n2", it.hashes["a"]], lines
        assert lines[2][0] == "1" and lines[2][3] == "-" and len(lines) == 3, lines
        assert json.loads(ctl("log", "--json")[0]) == it.log()
        assert ctl("log", "1")[0] == first and ctl("log", "active")[0] == it.active()
        assert json.loads(ctl("log", "1", "--json")[0])["document"].strip() == first.strip()
        one_line(ctl("log", "7", status=1)[1], "this node has no version 7")
        one_line(ctl("log", "x", status=2)[1], "'x' is no version; give a number, active or proposed")


def test_differences_are_those_of_what_a_daemon_reads():
    with mill() as (it, ctl):
        one_line(ctl("diff", status=1)[1], "no version is proposed, and this node has not used two of them")
        ring = run("topology", "generate", "ring", 4, "--address", "192.0.2.1:7000+")[0]
        less = re.sub(r"n3 \[address=\"[^\"]*\"", 'n4 [address="192.0.2.9:7000"', ring).replace("n3", "n4")
        less = less.replace("192.0.2.1:7000", "192.0.2.1:7999")
        it.use(it.sign(ring, "a", "--after", it.write("1.signed", it.active())))
        it.proposed = it.sign("// a comment\n" + less, "a", "--after", it.write("2.signed", it.active()))
        said = json.loads(ctl("diff", "--json")[0])
        assert (said["from"], said["to"]) == ("version 2", "version 3"), said
        assert (said["added"], said["struck"], said["changed"]) == (["n4"], ["n3"], ["n0"]), said
        assert {'-  n0 [address="192.0.2.1:7000"];', '+  n0 [address="192.0.2.1:7999"];', "-  n3 -> n0;", "+  n4 -> n0;"} <= {
            *said["differences"]}, said
        assert not any("comment" in line for line in said["differences"]), said
        text = ctl("diff", "active", "proposed")[0]
        assert text.splitlines() == ["added        n4", "struck       n3", "changed      n0", *said["differences"]], text
        it.proposed = None
        assert (json.loads(ctl("diff", "--json")[0])["from"], json.loads(ctl("diff", "--json")[0])["to"]) == ("version 1", "version 2")
        # files beside versions, plain and signed
        assert "the two files say the same\n" in ctl("diff", it.write("same.dot", "// the same\n" + ring))[0]
        assert json.loads(ctl("diff", "1", it.path("2.signed"), "--json")[0])["to"].endswith("2.signed, version 2")
        signed = pathlib.Path(it.path("2.signed")).read_text(encoding="ascii")
        one_line(ctl("diff", it.write("3.signed", signed.replace("version=2", "version=3")), status=6)[1], "is wrong; somebody has changed")


def test_to_go_back_is_a_new_version_with_old_content():
    with mill() as (it, ctl):
        it.use(it.sign(it.ring + "\n", "a", "--after", it.write("1.signed", it.active())))
        all_accept(it)
        one_line(ctl("rollback", "1", status=2)[1], "--sign KEY is missing")
        one_line(ctl("rollback", "active", "--sign", it.path("a.key"), status=2)[1], "'active' is no version")
        one_line(ctl("rollback", "8", "--sign", it.path("a.key"), status=1)[1], "this node has no version 8")
        second = it.said(it.active())
        ctl("rollback", "1", "--sign", it.path("a.key"))
        said = it.said(it.active())
        assert (said["version"], said["predecessor"]) == (3, second["manifest"]), said
        assert run("topology", "verify", "--file", "-", input=it.active())[0] == it.ring


def test_a_proposed_file_comes_with_the_command_that_pushes_it():
    with mill() as (it, ctl):
        new, key = it.path("new.dot"), it.hashes["b"]
        admit = ("-s", it.socket, "admit", "n9", "--key", key, "--address", "192.0.2.9:7000")
        command = f"sgpctl -s {it.socket} topology push {new} --sign KEY"
        out, err = run(*admit, "--output", new)
        assert "nodes 5" in out and err == f"sgpctl: to give it to the whole fleet: {command}\n", (out, err)
        assert json.loads(run(*admit, "--output", new, "--force", "--json")[0])["push"] == command
        out, err = run(*admit)
        assert out == pathlib.Path(new).read_text(encoding="ascii") and "topology push FILE --sign KEY\n" in err, (out, err)
        # it does what it says
        all_accept(it)
        words = command.replace("KEY", it.path("a.key")).split()[1:]
        assert "state active" in run(*words)[0]
        assert run("topology", "verify", "--file", "-", input=it.active())[0] == out
        # the daemon that leaves cannot tell what comes of it
        out, err = run("-s", it.socket, "leave", "--for-good", "--output", it.path("less.dot"))
        assert "heir n1" in out and err == ("sgpctl: to give it to the whole fleet, on a node that stays: sgpctl topology push "
                                            f"{it.path('less.dot')} --sign KEY\n"), (out, err)
        one_line(ctl("push", it.path("less.dot"), "--sign", it.path("a.key"), status=1)[1], "it strikes n0, whose daemon was asked")


if __name__ == "__main__":
    tap.run(globals())
