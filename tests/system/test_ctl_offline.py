# SPDX-License-Identifier: Apache-2.0
"""sgpctl without a daemon: test_ctl_offline.py SGPCTL [NO_LINKS]. Topology commands, help, errors, statuses."""
import base64
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import tap

SGPCTL = sys.argv[1]
NO_LINKS = sys.argv[2] if len(sys.argv) > 2 else None  # no_links.c; none with a sanitizer

# Rounds after which Base-(m+1) averages exactly (Takezawa et al. 2023).
BASE_ROUNDS = {
    1: {2: 1, 3: 3, 4: 2, 5: 5, 6: 4, 7: 5, 8: 3, 9: 7, 10: 6, 11: 7, 12: 5, 13: 7, 14: 6, 15: 7,
        16: 4, 17: 9, 24: 6, 32: 5, 33: 11},
    2: {3: 1, 5: 3, 6: 2, 7: 4, 9: 2, 10: 4, 27: 3},
    3: {4: 1, 5: 3, 8: 2, 16: 2, 32: 3},
}


def ctl(*arguments, text=None, status=0):
    """Run sgpctl; returns standard output and standard error."""
    done = subprocess.run([SGPCTL, *map(str, arguments)], input=text, text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout, done.stderr


def generate(*arguments):
    return ctl("topology", "generate", *arguments)[0]


def check(text, status=0):
    return json.loads(ctl("topology", "check", "--json", "-", text=text, status=status)[0])


def refused(text, status=6):
    """The error of `topology check` on a text, told to a person and as JSON alike."""
    out, err = ctl("topology", "check", "-", text=text, status=status)
    assert out == "" and err.startswith("sgpctl: ") and err.count("\n") == 1, (out, err)
    out, silent = ctl("--json", "topology", "check", "-", text=text, status=status)
    error = json.loads(out)["error"]
    assert silent == "" and error["exit_status"] == status, (out, silent)
    assert err == f"sgpctl: {error['message']}\n", (err, error)
    return error["message"]


def test_one_peer_exponential_is_exact_for_powers_of_two_alone():
    for power in range(1, 7):
        answer = check(generate("one-peer-exponential", 2 ** power))
        assert answer["exact_average_rounds"] == power, answer
    for nodes in (3, 5, 6, 7, 12):
        assert check(generate("one-peer-exponential", nodes))["exact_average_rounds"] is None


def test_base_is_exact_for_every_number_of_nodes():
    for peers, rounds in BASE_ROUNDS.items():
        for nodes, expected in rounds.items():
            answer = check(generate("base", nodes, "--peers", peers))
            assert answer["exact_average_rounds"] == expected, (peers, nodes, answer)


def test_pairs_agree_for_every_number_of_nodes_by_seed():
    for nodes in range(2, 18):
        text = generate("pairs", nodes, "--seed", 5)
        assert text == generate("pairs", nodes, "--seed", 5)
        answer = check(text)
        assert answer["strongly_connected"] and answer["doubly_stochastic"] and answer["symmetric"], answer
        assert answer["phases"] == min(nodes - 1 + nodes % 2, 16) and answer["out_degree_max"] == 1, answer
    assert generate("pairs", 8, "--seed", 5) != generate("pairs", 8, "--seed", 6)
    assert check(generate("pairs", 9, "--phases", 27))["phases"] == 27
    assert generate("pairs", 6, "--phases", 4, "--outer").count("outer=true") == 4


def test_check_has_every_field_with_its_type():
    answer = check("digraph { a -> b -> c -> a }")
    numbers = (int, float)
    types = {"version": int, "nodes": int, "relays": int, "owner": bool, "backup": int, "phases": int, "slices": int, "rounds_per_cycle": int,
             "turns_per_cycle": int, "exact_cycle": bool, "strongly_connected": bool, "window_rounds": int, "symmetric": bool, "doubly_stochastic": bool,
             "out_degree_max": int, "in_degree_max": int, "guard_liars": int, "contraction_per_cycle": numbers,
             "exact_average_rounds": type(None), "weight_min": numbers, "weight_max": numbers,
             "shares_per_cycle": int, "vectors_sent_mean": numbers, "vectors_sent_most": numbers,
             "warnings": list}
    assert list(answer) == list(types), answer
    for name, kind in types.items():
        assert isinstance(answer[name], kind), (name, answer[name])
    assert (answer["nodes"], answer["strongly_connected"], answer["weight_min"]) == (3, True, 1.0)


def test_check_says_how_many_liars_a_file_bears():
    def liars(text):
        return check(text)["guard_liars"]
    assert [liars(generate("one-peer-exponential", n)) for n in (4, 8, 32, 64)] == [0, 1, 2, 2]
    assert [liars(generate("complete", n)) for n in (3, 4, 5, 6)] == [0, 1, 1, 2]
    assert liars(generate("bidirectional-ring", 16)) == 0
    assert liars(generate("all-reduce-direct", 8)) == liars(generate("owner", 8)) == 0
    # the least of all nodes, over a cycle, without what happens once
    assert liars("digraph { a -> {b c d}; b -> {a c d}; c -> {a b d}; d -> {a b} }") == 0
    assert liars("digraph x { a -> {b c d}; b -> {c d}; c -> d } digraph y { b -> a; c -> {a b}; d -> {a b c} }") == 1


def test_equal_runs_print_equal_json():
    for text in (generate("random", 12, "--seed", 4), generate("pairs", 7, "--seed", 4), generate("base", 7)):
        assert (ctl("topology", "check", "--json", "-", text=text) ==
                ctl("topology", "check", "-", "--json", text=text))


def test_lines_for_scripts_are_stable():
    out, err = ctl("topology", "check", "-", text="digraph { a -> b; b -> a }")
    assert err == ""
    assert ctl("--", "topology", "check", "-", text="digraph { a -> b; b -> a }") == (out, "")
    assert out == ("nodes 2\nrelays 0\nowner no\nbackup 0\nphases 1\nslices 1\nrounds_per_cycle 1\n"
                   "turns_per_cycle 1\nexact_cycle no\nstrongly_connected yes\n"
                   "window_rounds 1\nsymmetric yes\ndoubly_stochastic yes\nout_degree_max 1\n"
                   "in_degree_max 1\nguard_liars 0\ncontraction_per_cycle 0\nexact_average_rounds 1\n"
                   "weight_min 1\nweight_max 1\nshares_per_cycle 2\n"
                   "vectors_sent_mean 1\nvectors_sent_most 1\n"), out


def test_a_file_that_trains_twice_in_an_exact_cycle_is_refused_alike_by_check_and_simulate():
    text = ("digraph up0 { slices=4; a; b; a -> b [slice=1, fraction=1]; b -> a [slice=0, fraction=1] }\n"
            "digraph down0 { slices=4; train=false; a -> b [slice=0]; b -> a [slice=1] }\n"
            "digraph up1 { slices=4; TRAIN a -> b [slice=3, fraction=1]; b -> a [slice=2, fraction=1] }\n"
            "digraph down1 { slices=4; train=false; a -> b [slice=2]; b -> a [slice=3] }\n")
    twice, once = text.replace("TRAIN ", ""), text.replace("TRAIN", "train=false;")
    message = ("-:3: digraph up1 trains, but the exchange of the exact cycle has begun in digraph up0; "
               "write train=false in digraph up1")
    assert refused(twice) == message
    assert ctl("simulate", "-", "--rounds", "8", text=twice, status=6) == ("", f"sgpctl: {message}\n")
    assert check(once)["exact_cycle"] and "disagreement" in ctl("simulate", "-", "--rounds", "8", text=once)[0]


def test_what_cannot_agree_is_told_and_fails():
    text = "digraph { a -> b -> a; c -> d -> c }"
    answer = check(text, status=1)
    assert answer["strongly_connected"] is False and answer["contraction_per_cycle"] is None
    assert answer["window_rounds"] is None and answer["warnings"], answer
    out, _ = ctl("topology", "check", "-", text=text, status=1)
    assert f"warning: {answer['warnings'][0]}\n" in out, out
    assert any(name in " ".join(answer["warnings"]) for name in ("c", "d")), answer
    _, err = ctl("topology", "check", "-", text="digraph { a -> b -> a [fraction=1] }", status=6)
    assert "part 0 of node a is not the mean of all nodes then" in err, err


def test_show_says_who_gives_what():
    text = "digraph one { a -> b; a -> c; b -> a; c -> a [fraction=0.3] }\n" \
           "digraph two { rounds=2; a -> b [fraction=0.9] }"
    out, _ = ctl("topology", "show", "-", text=text)
    assert out == ("3 nodes, 2 phases, 3 rounds a cycle\n"
                   "phase 0 'one', 1 round\n"
                   "  a -> b 1/3, c 1/3, keeps 1/3\n"
                   "  b -> a 1/2, keeps 1/2\n"
                   "  c -> a 3/10, keeps 7/10\n"
                   "phase 1 'two', 2 rounds\n"
                   "  a -> b 9/10, keeps 1/10\n"
                   "  b -> nobody, keeps 1\n"
                   "  c -> nobody, keeps 1\n"), out
    answer = json.loads(ctl("topology", "show", "--json", "-", text=text)[0])
    assert [p["name"] for p in answer["phases"]] == ["one", "two"]
    assert answer["rounds_per_cycle"] == 3 and len(answer["nodes"]) == 3
    assert answer["phases"][1]["edges"] == [{"source": "a", "target": "b", "fraction": 0.9}]


def test_a_version_is_shown():
    text = "digraph g { version=9007199254740992; a -> b -> a }"
    assert ctl("topology", "show", "-", text=text)[0].startswith("2 nodes, 1 phase, 1 round a cycle\nversion 9007199254740992\n")
    assert json.loads(ctl("topology", "show", "--json", "-", text=text)[0])["version"] == 2 ** 53
    assert check(text)["version"] == 2 ** 53 and check("digraph g { a -> b -> a }")["version"] == 0
    [line] = [line for line in ctl("topology", "check", "-", text=text)[0].splitlines() if line.startswith("version")]
    assert line.split() == ["version", "9007199254740992"], line
    assert "version" not in ctl("topology", "check", "-", text="digraph g { a -> b -> a }")[0]
    assert "  version=9007199254740992;\n" in ctl("topology", "show", "-", "--address", "127.0.0.1:9000+", text=text)[0]


def test_generate_gives_addresses_and_reads_back():
    text = generate("ring", 3, "--address", "127.0.0.1:9000+")
    nodes = json.loads(ctl("topology", "show", "--json", "-", text=text)[0])["nodes"]
    assert nodes == [{"name": f"n{i}", "address": f"127.0.0.1:{9000 + i}", "key": None, "train": True, "owns": False, "parts": None, "beside": None, "starts": 1.0}
                     for i in range(3)]
    shown = json.loads(ctl("topology", "generate", "ring", 3, "--json")[0])
    again = json.loads(ctl("topology", "show", "--json", "-", text=generate("ring", 3))[0])
    assert shown == again


BAD_FILES = {
    "digraph {\n a -> b\n b -> ;\n}":
        "-:3: syntax error near ';'; look here and just above for a missing brace, bracket, quote "
        "or semicolon",
    "": "-:1: there is no digraph; write one for each phase, as digraph p { a -> b; b -> a; }",
    "graph { a -- b }":
        "-:1: graph phase0 is undirected; write digraph, and a -> b; b -> a for both directions",
    "digraph { a -> a }":
        "-:1: digraph phase0: edge a -> a is a self-loop; what is not given away stays, so leave it "
        "out",
    "digraph {\n\n a -> b [fraction=0.7]; a -> c [fraction=0.7] }":
        "-:3: digraph phase0: node a gives away 1.4 in all (column above 1); its fractions must add "
        "up to at most 1",
    "digraph { a -> b; a -> b }":
        "-:1: digraph phase0: edge a -> b is repeated; write it once, with the sum as its fraction",
    'digraph { a [address="h:1"]; b [address="h:1"]; a -> b -> a }':
        "-:1: nodes a and b have the same address h:1; every node needs one of its own",
    'digraph { a [address="h:1"]; a -> b }':
        "-:1: digraph phase0: unknown node b; nodes are those with an address (a)",
    "digraph { a -> b [fraction=two] }":
        '-:1: digraph phase0: edge a -> b: fraction "two" is not one; write a number above 0 and at '
        'most 1, as 0.25 or "2/3"',
}


def test_bad_files_are_refused_with_place_and_reason():
    for text, message in BAD_FILES.items():
        assert refused(text) == message, (text, refused(text))
    out, err = ctl("topology", "check", "/does/not/exist.dot", status=6)
    assert out == "" and err == "sgpctl: /does/not/exist.dot: No such file or directory\n", err


USAGE = {
    (): "a command is missing; see sgpctl --help",
    ("nonsense",): "'nonsense' is not a command; see sgpctl --help",
    ("--jsno", "status"): "unknown option '--jsno'; those of a command stand behind it; see sgpctl --help",
    ("-n", "n0", "--check", "status"): "unknown option '--check'; those of a command stand behind it; see sgpctl --help",
    ("-x",): "unknown option '-x'; those of a command stand behind it; see sgpctl --help",
    ("topology", "check"): "an argument is missing; see sgpctl topology check --help",
    ("topology", "check", "a", "b"):
        "'b' is one argument too many; see sgpctl topology check --help",
    ("topology", "check", "--fast", "a"):
        "unknown option '--fast'; see sgpctl topology check --help",
    ("topology", "generate", "ring", "0"):
        "N is a number of nodes from 1 to 65536, not '0'; see sgpctl topology generate --help",
    ("topology", "generate", "ring", "3x"):
        "N is a number of nodes from 1 to 65536, not '3x'; see sgpctl topology generate --help",
    ("topology", "generate", "base", "4", "--peers"):
        "--peers needs a value; see sgpctl topology generate --help",
    ("topology", "generate", "base", "4", "--peers=-1"):
        "--peers is a whole number from 1 to 65536, not '-1'; see sgpctl topology generate --help",
    ("status", "--check=yes"): "--check takes no value; see sgpctl status --help",
    ("status", "extra"): "'extra' is one argument too many; see sgpctl status --help",
    ("status", "-n"): "-n needs a value; see sgpctl --help",
    ("-n", "a", "-s", "b", "status"): "-n and -s both name a daemon; give one of them; see sgpctl --help",
    ("-n", "../x", "status"): "'../x' is not a node's name; see sgpctl status --help",
    ("wait",): "--for CONDITION is missing; see sgpctl wait --help",
    ("wait", "--for", "accuracy:1.5"):
        "--for takes ready, round:N, epoch:N, accuracy:A (0 to 1), finished, disagreement:D or "
        "peers:N, not 'accuracy:1.5'; see sgpctl wait --help",
    ("wait", "--for", "ready", "--timeout", "soon"):
        "--timeout is a number from 0 to 1e+09, not 'soon'; see sgpctl wait --help",
    ("export", "model.txt"):
        "'model.txt' ends in none of .safetensors, .npz and .onnx; see sgpctl export --help",
    ("export", ".npz"): "'.npz' ends in none of .safetensors, .npz and .onnx; see sgpctl export --help",
}


def test_wrong_command_lines_are_told_alike_in_words_and_json():
    for arguments, message in USAGE.items():
        assert ctl(*arguments, status=2) == ("", f"sgpctl: {message}\n"), arguments
        for line in (("--json", *arguments), (*arguments, "--json")):
            if line[-2:] in (("-n", "--json"), ("--peers", "--json")):
                continue  # there --json would be the missing value
            out, err = ctl(*line, status=2)
            assert err == "" and json.loads(out) == {"error": {
                "exit_status": 2, "code": "usage", "message": message}}, (line, out, err)


def test_generate_explains_what_a_family_cannot_do():
    for arguments, word in ((("nonsense", "4"), "one-peer-exponential"),
                            (("nonsense", "4"), "owner, token; see sgpctl topology generate --help"),
                            (("ring", "4", "--peers", "2"), "--peers"),
                            (("exponential", "8", "--peers", "3"), "8"),
                            (("pairs", "4", "--phases", "1"), "--phases 2 or more"),
                            (("ring", "4", "--phases", "2"), "take pairs"),
                            (("ring", "4", "--address", "h:1"), "+")):
        _, err = ctl("topology", "generate", *arguments, status=2)
        assert word in err, (arguments, err)


def test_a_key_is_made_for_its_owner_alone_and_told_as_the_topology_file_wants_it():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "n0.key")
        line = ctl("key", "generate", "n0", "--file", path)[0]
        assert re.fullmatch(r'n0 \[key="SHA256:[A-Za-z0-9+/]{43}"\];\n', line), line
        assert os.stat(path).st_mode & 0o7777 == 0o600
        assert ctl("key", "show", "n0", "--file", path)[0] == line
        told = json.loads(ctl("key", "show", "n0", "--file", path, "--json")[0])
        assert told == {"name": "n0", "file": path, "key": line.split('"')[1]}
        _, err = ctl("key", "generate", "n0", "--file", path, status=1)
        assert "is there already" in err, err
        assert ctl("key", "show", "n0", "--file", path)[0] == line
        out = ctl("topology", "show", "-", "--json", text="digraph g { tls=require; " + line + "}")[0]
        assert json.loads(out)["nodes"][0]["key"] == told["key"] and json.loads(out)["tls"] == "require"
        os.chmod(path, 0o644)
        _, err = ctl("key", "show", "n0", "--file", path, status=4)
        assert "others may read or change it (mode 0644" in err, err
        with open(path, "w", encoding="ascii") as file:
            file.write("no key")
        os.chmod(path, 0o600)
        assert "is no Ed25519 key" in ctl("key", "show", "n0", "--file", path, status=6)[1]
        assert "is no name of a node" in ctl("key", "show", "a/b", status=2)[1]


def signing(directory, *names):
    """Secret keys of administrators: their files, and the hashes that name them."""
    files = [os.path.join(directory, name + ".key") for name in names]
    return files, [ctl("key", "generate", name, "--file", file)[0].split('"')[1] for name, file in zip(names, files)]


def test_administrators_sign_a_topology_file_one_after_the_other():
    with tempfile.TemporaryDirectory() as directory:
        files, hashes = signing(directory, "a", "b")
        ring = generate("ring", 4, "--address", "192.0.2.1:7000+")
        first = ctl("topology", "sign", "-", "--fleet", "mill", "--key", files[0], text=ring)[0]
        both = ctl("topology", "sign", "-", "--key", files[1], text=first)[0]
        assert ctl("topology", "sign", "-", "--key", files[0], text=both)[0] == both
        said = json.loads(ctl("topology", "verify", "-", "--json", text=both)[0])
        assert said["signers"] == hashes and said["predecessor"] is None and said["despite"] == [], said
        assert (said["fleet"], said["version"], said["file_bytes"]) == ("mill", 1, len(ring)), said
        assert said["file"] == hashlib.sha256(ring.encode()).hexdigest(), said
        unsigned = both.split(" signatures=")[0]
        assert said["manifest"] == hashlib.sha256(unsigned.encode()).hexdigest(), said
        assert ctl("topology", "verify", "--file", "-", text=both)[0] == ring
        # the next version, which passes over two nodes
        path = os.path.join(directory, "1.signed")
        pathlib.Path(path).write_text(both, encoding="ascii")
        names = [node["name"] for node in json.loads(ctl("topology", "show", "--json", "-", text=ring)[0])["nodes"]]
        out = ctl("topology", "sign", "-", "--after", path, "--despite", f"{names[1]},{names[3]}", "--key", files[1],
                  text=ring + "\n")[0]
        after = json.loads(ctl("topology", "verify", "-", "--json", text=out)[0])
        assert (after["fleet"], after["version"], after["predecessor"]) == ("mill", 2, said["manifest"]), after
        assert after["despite"] == [names[1], names[3]] and after["signers"] == [hashes[1]], after
        again = ctl("topology", "sign", "-", "--after", path, "--number", 9, "--key", files[1], text=ring)[0]
        assert " version=9 " in again, again


def test_a_signature_is_of_ed25519_and_of_what_stands_before_it():
    """Verified by another implementation: OpenSSL's."""
    with tempfile.TemporaryDirectory() as directory:
        (key,), _ = signing(directory, "a")
        ring = generate("ring", 3)
        document = ctl("topology", "sign", "-", "--fleet", "mill", "--key", key, text=ring)[0]
        signed, rest = document.split(" signatures=")
        signature = rest.split(" content=")[0].split(":")[1]
        for name, data in (("text", signed.encode()), ("signature", base64.b64decode(signature))):
            pathlib.Path(directory, name).write_bytes(data)
        verify = ["openssl", "pkeyutl", "-verify", "-rawin", "-inkey", key, "-in", directory + "/text",
                  "-sigfile", directory + "/signature"]
        assert subprocess.run(verify, stdout=subprocess.DEVNULL, check=False).returncode == 0
        pathlib.Path(directory, "text").write_bytes(signed.replace("version=1", "version=2").encode())
        assert subprocess.run(verify, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0


def test_a_signed_document_that_was_changed_is_refused():
    with tempfile.TemporaryDirectory() as directory:
        (key,), _ = signing(directory, "a")
        document = ctl("topology", "sign", "-", "--fleet", "mill", "--key", key, text=generate("ring", 3))[0]
        content = document.split("content=")[1].strip()
        flipped = ("B" if content[40] == "A" else "A").join((content[:40], content[41:]))
        for changed, reason in (
                (document.replace("version=1", "version=2"), "is wrong; somebody has changed the document"),
                (document.replace("fleet=mill", "fleet=barn"), "is wrong; somebody has changed the document"),
                (document.replace(content, flipped), "has another file than its manifest names"),
                (document.replace(content, content[4:]), "has a file of another size than its manifest says"),
                (document.replace("despite=none", "despite="), "of the manifest is not what sgpd-topology-1 has there"),
                (document.split(" content=")[0], "has no file")):
            err = ctl("topology", "verify", "-", text=changed, status=6)[1]
            assert reason in err and err.count("\n") == 1, (reason, err)
            assert "sgpctl topology" not in err or "sgpctl topology sign" in err, err  # no other one helps
        # unsigned: what is left of a document without its signatures
        signatures = document.split(" signatures=")[1].split(" content=")[0]
        for nobody in ("", "none"):
            for options in ((), ("--file",)):
                out, err = ctl("topology", "verify", *options, "-", text=document.replace(signatures, nobody), status=6)
                assert out == "" and err.count("\n") == 1, (nobody, out, err)
                assert nobody == "" or "it has no signature" in err, err


def test_a_machine_is_admitted_to_a_signed_file():
    """What admit proposes is the same as for the plain file, and has to be signed."""
    with tempfile.TemporaryDirectory() as directory:
        files, (_, joiner) = signing(directory, "a", "n9")
        plain, signed, new = (os.path.join(directory, name) for name in ("1.dot", "1.signed", "2.dot"))
        ring = generate("ring", 3, "--address", "192.0.2.1:7000+")
        document = ctl("topology", "sign", "-", "--fleet", "mill", "--key", files[0], text=ring)[0]
        pathlib.Path(plain).write_text(ring, encoding="ascii")
        pathlib.Path(signed).write_text(document, encoding="ascii")
        admit = ("admit", "n9", "--key", joiner, "--address", "192.0.2.9:7000", "--file")
        proposal = ctl(*admit, signed)[0]
        assert proposal == ctl(*admit, plain)[0] and "n9 -> " in proposal, proposal
        pathlib.Path(new).write_text(proposal, encoding="ascii")
        second = ctl("topology", "sign", new, "--after", signed, "--key", files[0])[0]
        assert json.loads(ctl("topology", "verify", "-", "--json", text=second)[0])["version"] == 2
        signatures = document.split(" signatures=")[1].split(" content=")[0]
        for changed, reason in ((document.replace(signatures, "none"), "it has no signature"),
                                (document.replace("version=1", "version=2"), "somebody has changed the document")):
            pathlib.Path(signed).write_text(changed, encoding="ascii")
            out, err = ctl(*admit, signed, status=6)
            assert out == "" and reason in err and err.count("\n") == 1, err


# Families and options by which `admit` finds the edges of a file of so many nodes, and as many as it then has edges for.
FAMILIES = """ring; bidirectional-ring; complete; star; torus 8; one-peer-exponential; exponential 7 --peers 2; base; base --peers 2;
    random; random --degree 3; pairs; pairs --phases 3; pairs --outer; elastic; all-reduce-ring; all-reduce-ring --outer;
    all-reduce-direct; all-reduce-doubling; all-reduce-halving; all-reduce-blocks; all-reduce-tree; all-reduce-groups --group 3;
    all-reduce-hubs; all-reduce-hubs --hubs 2; all-reduce-hubs --hubs 2 --relays; owner; owner --owners 2; owner --members;
    owner --owners 2 --members; owner --backup 1; owner --staleness none; owner --staleness divide --staleness-max 3;
    owner --staleness compensate --compensation 0.5; owner --outer; token; token --fixed; token --delay-mean;
    token --delay-max 5"""


def admitted(family, nodes, *options):
    """What `admit` proposes for a file of this family, and what a file of it with one node more says."""
    key = "SHA256:" + "a" * 42 + "A"
    write = ("--address", "192.0.2.1:7000+", *options)
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "fleet.dot")
        pathlib.Path(path).write_text(generate(family, nodes, *write), encoding="ascii")
        told = subprocess.run([SGPCTL, "admit", f"n{nodes}", "--file", path, "--key", key, "--address",
                               f"192.0.2.1:{7000 + nodes}"], text=True, capture_output=True, timeout=60, check=False)
    assert f'n{nodes} [address="192.0.2.1:{7000 + nodes}", key="{key}"' in told.stdout or told.returncode, told
    return told, subprocess.run([SGPCTL, "topology", "generate", family, str(nodes + 1), *write], text=True, capture_output=True,
                                timeout=60, check=False)


def edges_of(text):
    """The lines of a file, without comments, the names of digraphs, keys and the version."""
    return [re.sub(r'^digraph \S+|, key="[^"]*"', "", line) for line in text.splitlines()
            if not line.startswith("//") and "version=" not in line]


def test_a_machine_is_admitted_to_a_file_of_any_family():
    named = set()
    for words in FAMILIES.split(";"):
        family, *options = words.split()
        nodes = int(options.pop(0)) if options and options[0].isdigit() else 6
        told, wanted = admitted(family, nodes, *options)
        assert (told.returncode, told.stderr, wanted.returncode) == (0, "", 0), (words, told, wanted)
        assert told.stdout.startswith(f"// {family}, {nodes + 1} nodes: n{nodes} joins\n"), (words, told.stdout)
        assert edges_of(told.stdout) == edges_of(wanted.stdout), (words, told.stdout, wanted.stdout)
        named.add(family)
    listed = generate("--help").split("FAMILY is one of\n")[1].split("\n\n")[0]
    assert named | {"bipartite-exponential"} == set(re.findall(r"^  (\S+) ", listed, re.MULTILINE)), listed


def test_a_file_to_which_no_machine_can_be_admitted_is_told():
    """A family that has no file of one node more; and files of which nothing says by which options they were made."""
    for family, nodes, options, reason in (
            ("bipartite-exponential", 6, (), "bipartite-exponential with 7 nodes: 7 nodes cannot be paired, even with odd"),
            ("torus", 6, (), "torus with 7 nodes: 7 nodes make no grid of two rows or more"),
            ("exponential", 7, ("--peers", "3"), "exponential with 8 nodes: 3 peers of 8 nodes do not work"),
            ("random", 6, ("--seed", "3"), "its edges are of no family with its usual options"),
            ("pairs", 6, ("--seed", "3"), "its edges are of no family with its usual options"),
            ("all-reduce-ring", 6, ("--pieces", "2"), "its edges are of no family with its usual options")):
        told, _ = admitted(family, nodes, *options)
        assert (told.returncode, told.stdout) == (6, "") and reason in told.stderr and told.stderr.count("\n") == 1, told
        assert "--family" in told.stderr, told.stderr


def test_what_cannot_be_signed_is_told():
    with tempfile.TemporaryDirectory() as directory:
        (key,), _ = signing(directory, "a")
        ring = generate("ring", 3)
        document = ctl("topology", "sign", "-", "--fleet", "mill", "--key", key, text=ring)[0]
        for arguments, text, status, reason in (
                ((), ring, 2, "--key KEY is missing"),
                (("--key", key), ring, 2, "--fleet or --after is missing"),
                (("--key", key, "--fleet", "a b"), ring, 2, "'a b' is no name of a fleet"),
                (("--key", key, "--fleet", "mill", "--number", 0), ring, 2, "--number is a whole number from 1"),
                (("--key", key, "--fleet", "mill", "--despite", "x"), ring, 2, "--despite names 'x', which is no node"),
                (("--key", key, "--fleet", "mill", "--despite", "n1,n1"), ring, 2, "--despite names 'n1' twice"),
                (("--key", key, "--fleet", "mill"), document, 2, "--fleet is for a topology file; - is a signed document"),
                (("--key", key, "--fleet", "mill"), "digraph {", 6, "-:1: "),
                (("--key", key, "--fleet", "mill"), "", 6, "-: the topology file has 0 bytes"),
                (("--key", directory + "/none", "--fleet", "mill"), ring, 1, "No such file or directory")):
            err = ctl("topology", "sign", "-", *arguments, text=text, status=status)[1]
            assert reason in err and err.count("\n") == 1, (arguments, err)


def test_a_signer_sees_what_is_signed():
    """On standard error, before the key signs: the words of the manifest, and what changes if the predecessor is given."""
    with tempfile.TemporaryDirectory() as directory:
        files, hashes = signing(directory, "a", "b")
        ring = generate("ring", 4, "--address", "192.0.2.1:7000+")
        out, err = ctl("topology", "sign", "-", "--fleet", "mill", "--key", files[0], text=ring)
        path = os.path.join(directory, "1.signed")
        pathlib.Path(path).write_text(out, encoding="ascii")
        assert {"fleet        mill", "version      1", "predecessor  -", "signers      -"} <= {*err.splitlines()}, err
        said = json.loads(ctl("topology", "verify", path, "--json")[0])
        moved = ring.replace("192.0.2.1:7003", "192.0.2.66:7003")
        second, err = ctl("topology", "sign", "-", "--after", path, "--key", files[0], text=moved)
        for line in ("version      2", "predecessor  " + said["manifest"], "changed      n3",
                     '-  n3 [address="192.0.2.1:7003"];', '+  n3 [address="192.0.2.66:7003"];'):
            assert line in err.splitlines(), (line, err)
        # the second signer, to whom the document was given
        both, err = ctl("topology", "sign", "-", "--after", path, "--key", files[1], text=second)
        for line in ("version      2", "signers      " + hashes[0], '+  n3 [address="192.0.2.66:7003"];'):
            assert line in err.splitlines(), (line, err)
        assert '+  n3 [address="192.0.2.66:7003"];' in ctl("topology", "verify", "-", "--after", path, text=both)[0]
        out, err = ctl("topology", "sign", "-", "--after", path, "--key", files[1], "--json", text=second)
        answer = json.loads(out)
        assert err == "" and (answer["changed"], answer["added"], answer["struck"]) == (["n3"], [], []), (out, err)
        assert answer["signers"] == hashes and answer["document"] + "\n" == both, answer


def test_on_a_terminal_it_asks_before_the_key_signs():
    with tempfile.TemporaryDirectory() as directory:
        (key,), _ = signing(directory, "a")
        path = os.path.join(directory, "ring.dot")
        pathlib.Path(path).write_text(generate("ring", 3), encoding="ascii")
        for answer, options, status in (("n", (), 1), ("", (), 1), ("y", (), 0), ("", ("--yes",), 0)):
            reader, terminal = os.openpty()
            os.write(reader, answer.encode() + b"\n")
            done = subprocess.run([SGPCTL, "topology", "sign", path, "--fleet", "mill", "--key", key, *options], stdin=terminal,
                                  stdout=subprocess.PIPE, stderr=terminal, timeout=60, check=False)
            os.close(terminal)
            said = os.read(reader, 4096).decode()
            os.close(reader)
            assert done.returncode == status and (done.stdout != b"") == (status == 0), (answer, options, done, said)
            assert ("Sign this? [y/N]" in said) == (options == ()), (answer, options, said)


def test_nothing_is_signed_that_somebody_has_changed():
    with tempfile.TemporaryDirectory() as directory:
        files, _ = signing(directory, "a", "b")
        ring = generate("ring", 4)
        first = ctl("topology", "sign", "-", "--fleet", "mill", "--key", files[0], text=ring)[0]
        other = ctl("topology", "sign", "-", "--fleet", "mill", "--key", files[0], text=ring + "\n")[0]
        barn = ctl("topology", "sign", "-", "--fleet", "barn", "--key", files[0], text=ring)[0]
        paths = {}
        for name, text in (("first", first), ("other", other), ("barn", barn), ("forged", first.replace("version=1", "version=5"))):
            paths[name] = os.path.join(directory, name)
            pathlib.Path(paths[name]).write_text(text, encoding="ascii")
        second = ctl("topology", "sign", "-", "--after", paths["first"], "--key", files[0], text=ring)[0]
        key = ("--key", files[1])
        wrong = "is wrong; somebody has changed the document"
        for text, options, reason in (
                (second.replace("version=2", "version=3"), (), wrong),
                (second.replace("fleet=mill", "fleet=barn"), (), wrong),
                (second, ("--after", paths["forged"]), wrong),
                (ring, ("--after", paths["forged"]), wrong),
                (second, ("--after", paths["other"]), "it was made for the version "),
                (second, ("--after", paths["barn"]), "it is of the fleet mill, and " + paths["barn"] + " is of barn")):
            for command in (("sign", "-", *options, *key), *((("verify", "-", *options),) if text != ring else ())):
                out, err = ctl("topology", *command, text=text, status=6)
                assert out == "" and reason in err and err.count("\n") == 1, (command, out, err)


def test_a_group_of_commands_has_help_and_a_misspelt_one_a_suggestion():
    out = ctl("key", "--help")[0]
    assert "key generate" in out and "key show" in out and "simulate" not in out, out
    for typed, meant in ((("stauts",), "status"), (("peer",), "peers"), (("key", "genrate", "n0"), "key generate"),
                         (("topolgy", "check", "f"), "topology check"), (("reloda",), "reload")):
        err = ctl(*typed, status=2)[1]
        assert err == f"sgpctl: '{typed[0]}' is not a command; did you mean {meant}?; see sgpctl --help\n", err
    assert "did you mean" not in ctl("frobnicate", status=2)[1]


def test_generate_takes_names_and_keys():
    with tempfile.TemporaryDirectory() as directory:
        lines = ctl("key", "generate", "alice", "--file", directory + "/a.key")[0]
        lines += ctl("key", "generate", "bob", "--file", directory + "/b.key")[0]
        keys = directory + "/keys"
        with open(keys, "w", encoding="ascii") as file:
            file.write(lines.replace("alice [", 'alice [address="192.0.2.10", ').replace("bob [", 'bob [address="192.0.2.11", '))
        text = ctl("topology", "generate", "ring", "--names", "alice,bob", "--keys", keys)[0]
        shown = json.loads(ctl("topology", "show", "--json", "-", text=text)[0])
        assert shown["tls"] == "require"
        assert [(node["name"], node["address"]) for node in shown["nodes"]] == [
            ("alice", "192.0.2.10:7311"), ("bob", "192.0.2.11:7311")], shown["nodes"]
        assert [node["key"] for node in shown["nodes"]] == re.findall(r'"(SHA256:.*?)"', lines)
        assert ctl("topology", "generate", "ring", "2", "--names", "alice,bob", "--keys", keys)[0] == text
        again = ctl("topology", "generate", "ring", "--names", "x,y,z")[0]
        assert [node["name"] for node in json.loads(ctl("topology", "show", "--json", "-", text=again)[0])["nodes"]] == [
            "x", "y", "z"]
        assert f"{keys}: it has no key for carol; sgpctl key generate carol prints the line" in ctl(
            "topology", "generate", "ring", "--names", "alice,carol", "--keys", keys, status=6)[1]
        for name, content, reason in (("none", None, "No such file or directory"), ("bad", "alice [", "syntax error")):
            if content:
                with open(os.path.join(directory, name), "w", encoding="ascii") as file:
                    file.write(content)
            err = ctl("topology", "generate", "ring", "--names", "alice,bob", "--keys", os.path.join(directory, name), status=6)[1]
            assert f"/{name}:" in err and reason in err, err
        assert "N is 3, and --names has 2" in ctl("topology", "generate", "ring", "3", "--names", "a,b", status=2)[1]
        assert "none is empty" in ctl("topology", "generate", "ring", "--names", "a,,b", status=2)[1]


def test_one_of_something_is_not_told_as_many():
    assert ctl("topology", "show", "-", text="digraph g { a; b; a -> b; b -> a }")[0].startswith(
        "2 nodes, 1 phase, 1 round a cycle\n")


def test_columns_of_a_table_are_scaled_by_a_file():
    with tempfile.TemporaryDirectory() as directory:
        rows, scale = os.path.join(directory, "rows.csv"), os.path.join(directory, "scale.json")
        with open(rows, "w", encoding="ascii") as file:
            file.write("age,colour,y\n30,red,1\n40,blue,0\n,red,2\n")
        assert ctl("scaling", rows, scale, "--label", "colour")[0] == scale + ": 2 features\n"
        assert ctl("scaling", rows, scale, "--label", "y")[0] == scale + ": 3 features, 1 scaled label column\n"
        with open(scale, encoding="ascii") as file:
            assert json.load(file) == {"sgp_scaling": 2, "columns": [
                {"name": "age", "mean": 35.0, "deviation": 5.0}, {"name": "colour", "values": ["blue", "red"]}],
                "targets": [{"name": "y", "mean": 1.0, "deviation": (2 / 3) ** 0.5}]}
        out, err = ctl("scaling", rows, scale)
        assert out == scale + ": 4 features\n", out
        assert err == (f"sgpctl: without --label every column of {rows} is a feature (age, colour, y); if [data] label "
                       "names one of them, give it with --label\n"), err
        assert json.loads(ctl("scaling", rows, scale, "--json")[0]) == {"file": scale, "features": 4, "targets": 0}
        _, err = ctl("scaling", rows, scale, "--label", "z", status=6)
        assert err == f"sgpctl: {rows}:1: there is no column 'z'; the columns are age, colour, y\n", err
        assert "cannot be written" in ctl("scaling", rows, directory + "/none/s.json", status=1)[1]


FOLDERS = tempfile.TemporaryDirectory()
PICTURES = {  # as docs/METHODS.md says them
    "constant": "warmup_epochs = 5", "step": "milestones = 30 60 80", "cosine": "warmup_epochs = 5",
    "inverse-sqrt": "warmup_epochs = 5", "linear": "final_fraction = 0.01", "cyclic": "period_epochs = 20",
    "one-cycle": "period_epochs = 80, final_fraction = 0.001",
    "growing-batch": "milestones = 30 60 80, factor = 0.2, growths = 2",
}
CONFIGURATION = """[node]
name = n0
[topology]
file = fleet.dot
[train]
{train}
[model]
layers = dense 10
[network]
listen = 127.0.0.1:7311
[optimizer]
learning_rate = 0.1
{optimizer}
"""


def configure(optimizer, train="epochs = 90\nbatch = 32"):
    """A file in a folder of its own, with a topology of four nodes, one of which does not train."""
    folder = tempfile.mkdtemp(dir=FOLDERS.name)
    path = os.path.join(folder, "n0.conf")
    with open(os.path.join(folder, "fleet.dot"), "w", encoding="utf-8") as file:
        file.write("digraph { a [train=false]; n0; n1; n2; a -> n0 -> n1 -> n2 -> a; n2 -> n0 }\n")
    with open(path, "w", encoding="utf-8") as file:
        file.write(CONFIGURATION.format(train=train, optimizer=optimizer.replace(", ", "\n")))
    return path


def points(*arguments):
    answer = json.loads(ctl("--json", "config", "schedule", *arguments)[0])
    return [(p["epoch"], p["rate"], p["batch"]) for p in answer["points"]]


def plan(*arguments):
    return json.loads(ctl("--json", "plan-privacy", *arguments)[0])


def test_what_no_line_of_a_configuration_holds_is_refused_by_its_option():
    """A daemon would read another path, without a word."""
    cut = ": '%s' cannot be written into a configuration, where a line ends at a blank before # or ; and has no control " \
          "character; use another; see sgpctl "
    with tempfile.TemporaryDirectory() as directory:
        rows, fleet, conf = (os.path.join(directory, name) for name in ("rows.csv", "fleet.dot", "n0.conf"))
        odd = os.path.join(directory, "lab #3")
        os.mkdir(odd)
        with open(rows, "w", encoding="ascii") as file:
            file.write("a,y\n" + "1,no\n2,yes\n" * 20)
        for path in (fleet, os.path.join(odd, "fleet.dot")):
            with open(path, "w", encoding="ascii") as file:
                file.write(generate("ring", 2, "--address", "127.0.0.1:9000+"))

        def new(*more, topology=fleet, status=0):
            return ctl("-n", "n0", "config", "new", conf, "--data", rows, "--label", "y", "--topology", topology, *more, status=status)
        before = sorted(os.listdir(directory))
        for option in ("--topology", "--scale", "--state-directory", "--socket"):
            path = os.path.join(odd, "fleet.dot" if option == "--topology" else "file")
            err = new(option, path, status=2)[1]
            assert err.startswith(f"sgpctl: {option}" + cut % path + "config new"), err
        err = new("--listen", "127.0.0.1:9000 ;1", status=2)[1]
        assert err.startswith("sgpctl: --listen" + cut % "127.0.0.1:9000 ;1"), err
        line = len("state_directory = ")
        err = new("--state-directory", "/" + 197 * "s", status=2)[1]
        assert "too long for a configuration, which takes %d bytes there" % (197 - line) in err, err
        assert sorted(os.listdir(directory)) == before and os.listdir(odd) == ["fleet.dot"]
        longest = "/#" + (197 - line - 2) * "s"
        new("--state-directory", longest, "--scale", "none")
        with open(conf, encoding="ascii") as file:
            assert f"state_directory = {longest}\n" in file.read()

        # it is told before the inviter is asked, and before a key is made
        invitation = f"sgp1,mill,n2,127.0.0.1:9,SHA256:{'A' * 43},{'0' * 32}"
        usual = ["join", invitation, "--address", "127.0.0.1:9", "--output", os.path.join(directory, "n2.conf")]
        before = sorted(os.listdir(directory))
        for option in ("--train", "--key", "--topology"):
            path = os.path.join(odd, "file")
            err = ctl(*usual, option, path, status=2)[1]
            assert err.startswith(f"sgpctl: {option}" + cut % path + "join --help"), err
        err = ctl(*usual, "--train", "/" + 197 * "t", status=2)[1]
        assert "too long for a configuration, which takes %d bytes there" % (197 - len("train = ")) in err, err
        assert sorted(os.listdir(directory)) == before and os.listdir(odd) == ["fleet.dot"]


def test_a_file_is_written_beside_its_name_and_nothing_else_is_touched():
    def mode(path):
        return oct(os.stat(path).st_mode & 0o7777)

    def new(*more, umask, status=0):
        done = subprocess.run([SGPCTL, "-n", "n0", "config", "new", conf, "--data", rows, "--label", "y", "--topology", fleet, *more],
                              text=True, timeout=60, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, umask=umask)
        assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    with tempfile.TemporaryDirectory() as directory:
        rows, fleet, conf, other = (os.path.join(directory, name) for name in ("rows.csv", "fleet.dot", "n0.conf", "other"))
        for path, text in ((rows, "a,y\n" + "1,no\n2,yes\n" * 20), (other, "other"), (conf + ".part", "mine"),
                           (fleet, generate("ring", 2, "--address", "127.0.0.1:9000+"))):
            with open(path, "w", encoding="ascii") as file:
                file.write(text)

        def check_rest():
            assert sorted(os.listdir(directory)) == ["fleet.dot", "n0.conf", "n0.conf.part", "other", "rows.csv", "scale.json"]
            with open(conf + ".part", encoding="ascii") as mine, open(other, encoding="ascii") as file:
                assert (mine.read(), file.read()) == ("mine" if not os.path.islink(conf + ".part") else "other", "other")
        new(umask=0o027)
        check_rest()
        assert mode(conf) == "0o640", mode(conf)
        new(umask=0o022, status=1)  # it is there
        check_rest()
        # what is replaced keeps mode and owner, as a daemon may need them
        os.chmod(conf, 0o660)
        if os.geteuid() == 0:
            os.chown(conf, 0, 12345)
        os.remove(conf + ".part")
        os.symlink(other, conf + ".part")
        new("--force", umask=0o077)
        check_rest()
        assert mode(conf) == "0o660", mode(conf)
        assert os.geteuid() != 0 or os.stat(conf).st_gid == 12345
        os.remove(conf)
        os.symlink("nowhere", conf)  # looks as if no file were there
        new(umask=0o022, status=1)
        assert os.readlink(conf) == "nowhere"
        check_rest()


def test_a_file_system_without_hard_links_will_do():
    """Also there no file is replaced that came after the command had looked: a link to nowhere looks like none."""
    if NO_LINKS is None:
        raise tap.Skip("a sanitizer wants to be loaded first")
    key = "SHA256:" + "A" * 43
    with tempfile.TemporaryDirectory() as directory:
        fleet, output = os.path.join(directory, "fleet.dot"), os.path.join(directory, "new.dot")
        with open(fleet, "w", encoding="ascii") as file:
            file.write(generate("ring", 2, "--address", "127.0.0.1:9000+"))
        line = ["admit", "n2", "--file", fleet, "--key", key, "--address", "127.0.0.1:9", "--output", output]

        def admit(status):
            done = subprocess.run([SGPCTL, *line], text=True, timeout=60, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                                  env={**os.environ, "LD_PRELOAD": NO_LINKS})
            assert done.returncode == status, done
            return done.stderr
        admit(0)
        with open(output, encoding="ascii") as file:
            assert f'n2 [address="127.0.0.1:9", key="{key}"];' in file.read()
        os.remove(output)
        os.symlink("nowhere", output)
        assert admit(1) == f"sgpctl: {output} is there already; --force replaces it, another name keeps it\n"
        assert sorted(os.listdir(directory)) == ["fleet.dot", "new.dot"] and os.readlink(output) == "nowhere"


def test_epsilon_of_noisy_steps_is_a_known_number():
    rows = ["--rows", 1000, "--batch", 32]
    told = plan(*rows, "--epochs", 20, "--noise", 1.5)
    assert (told["steps"], told["chance_of_a_row"], told["delta"]) == (640, 0.032, 1e-5), told
    assert abs(told["epsilon"] - 2.8758381577143) < 1e-9, told
    assert abs(plan("--rows", 10000, "--batch", 100, "--steps", 10000, "--noise", 4)["epsilon"] - 1.0355) < 5e-5
    least = plan(*rows, "--epochs", 20, "--epsilon", 3)
    assert 2.99 < least["epsilon"] <= 3 and abs(least["noise"] - 1.4579) < 2e-3, least
    assert plan(*rows, "--epochs", 20, "--noise", 1.5, "--delta", 1e-6)["epsilon"] > told["epsilon"]


def test_a_plan_of_privacy_names_what_is_wrong():
    rows = ["plan-privacy", "--rows", 1000, "--batch", 32]
    assert "--epochs or --steps" in ctl(*rows, "--noise", 1, status=2)[1]
    assert "--epochs or --steps" in ctl(*rows, "--noise", 1, "--epochs", 1, "--steps", 1, status=2)[1]
    assert "--noise" in ctl(*rows, "--epochs", 1, status=2)[1]
    assert "larger epsilon" in ctl(*rows, "--steps", 10**12, "--epsilon", 0.01, status=1)[1]
    assert "warning: delta" in ctl(*rows, "--steps", 1, "--noise", 1, "--delta", 0.01)[0]


def test_points_of_a_schedule_are_known_numbers():
    path = configure("schedule = growing-batch, " + PICTURES["growing-batch"])
    assert ctl("config", "schedule", "--points", 4, path)[0] == (
        "epoch  rate  batch\n"
        "0      0.1   32\n"
        "30     0.1   160\n"
        "60     0.1   800\n"
        "80     0.02  800\n"
        "90     0.02  800\n")
    assert ctl("config", "schedule", "--points", 3, configure("schedule = one-cycle, " + PICTURES["one-cycle"]))[0] == (
        "epoch  rate     batch\n"
        "0      0.01     32\n"
        "40     0.1      32\n"
        "45     0.08875  32\n"
        "80     0.01     32\n"
        "90     0.0001   32\n")
    assert points("--points", 2, configure("schedule = step, milestones = 30 60, factor = 0.5")) == [
        (0, 0.1, 32), (30, 0.05, 32), (60, 0.025, 32), (90, 0.025, 32)]
    assert len(points(configure("schedule = constant"))) == 21


def test_a_rate_is_scaled_to_the_nodes_that_train():
    path = configure("base_batch = 48, warmup_epochs = 5")
    assert points("--points", 2, path) == [(0, 0.1, 32), (5, 0.2, 32), (90, 0.2, 32)]
    os.unlink(os.path.join(os.path.dirname(path), "fleet.dot"))
    assert "fleet.dot" in ctl("config", "schedule", path, status=6)[1]
    assert points("--points", 2, configure("warmup_epochs = 5")) == [(0, 0, 32), (5, 0.1, 32), (90, 0.1, 32)]


def test_rounds_want_the_rows_of_the_node():
    path = configure("schedule = growing-batch, milestones = 2, factor = 0.5", "rounds = 7\nbatch = 4\nlocal_steps = 2")
    _, err = ctl("config", "schedule", path, status=2)
    assert err == (f"sgpctl: {path} gives rounds; --rows says how many make an epoch; "
                   "see sgpctl config schedule --help\n"), err
    # two epochs of 5 steps, then 3 steps an epoch: 14 steps are 2 + 4 / 3 epochs
    assert [round(e, 9) for e, _, _ in points("--rows", 20, "--points", 2, path)] == [0, 2, round(10 / 3, 9)]


def test_a_schedule_that_cannot_be_is_refused_with_a_line():
    for optimizer, message in (
            ("schedule = cosin", '"cosin" does not exist; choose one of '),
            ("schedule = cyclic", "a cyclic schedule needs the length of its cycle; give period_epochs"),
            ("schedule = step", "a step schedule has 0 milestones; give 1 to 32 epochs"),
            ("low_fraction = 2", '"2" is not a number from 0 to 1')):
        path = configure(optimizer)
        out, err = ctl("config", "schedule", path, status=6)
        assert out == "" and err.startswith(f"sgpctl: {path}:14: [optimizer] ") and message in err, err
        assert err.count("\n") == 1, err
    assert "there is no such file" in ctl("config", "schedule", "/nonexistent.conf", status=6)[1]
    assert "an argument is missing" in ctl("config", "schedule", status=2)[1]
    assert "--svg prints a picture" in json.loads(
        ctl("--json", "config", "schedule", "--svg", path, status=2)[0])["error"]["message"]
    path = configure("schedule = constant")
    with open(path, "a", encoding="utf-8") as file:
        file.write("[model]\nkind = attached\n")
    assert "kind = attached: the program sets the learning rate" in ctl("config", "schedule", path, status=6)[1]


def test_a_picture_of_each_schedule_is_well_formed_and_that_of_the_documents():
    pages = pathlib.Path(__file__).parents[2] / "docs"
    methods = (pages / "METHODS.md").read_text(encoding="utf-8")
    for word, keys in PICTURES.items():
        out, _ = ctl("config", "schedule", "--svg", configure(f"schedule = {word}, {keys}"))
        root = xml.etree.ElementTree.fromstring(out)
        space = "{http://www.w3.org/2000/svg}"
        assert root.tag == space + "svg"
        lines = root.findall(space + "polyline")
        assert len(lines) == (2 if word == "growing-batch" else 1), word
        for line in lines:
            places = [tuple(map(float, place.split(","))) for place in line.get("points").split()]
            assert places[0][0] == 84 and places[-1][0] == 524 and places == sorted(places, key=lambda p: p[0]), word
        texts = [text.text for text in root.findall(space + "text")]
        assert "epoch" in texts and "learning rate" in texts and f"schedule = {word}" in texts, texts
        assert f"`{keys}`<br>![schedule {word}: learning rate by epoch](pictures/schedule-{word}.svg)" in methods, word
        assert out == (pages / f"pictures/schedule-{word}.svg").read_text(encoding="utf-8"), word


def test_every_command_has_help():
    commands = [line.split("  ")[1] for line in ctl("--help")[0].split("Commands:\n")[1]
                .split("\n\n")[0].splitlines()]
    assert {"status", "peers", "fleet", "history", "topology", "metrics", "dashboard", "wait", "watch", "pause", "resume", "stop", "leave", "reset",
            "checkpoint", "reload", "evaluate", "report", "predict", "export", "card", "topology check", "topology show",
            "topology generate", "topology sign", "topology verify", "topology push", "topology rollback", "topology log", "topology diff",
            "key generate", "key show", "scaling", "scaling show", "scaling export", "simulate", "compare", "run", "launch", "up", "supervise", "replay", "token restore",
            "config new", "config schedule", "plan-privacy", "data describe", "data statistics", "invite", "join", "admit"} == set(commands), commands
    for command in commands:
        out, err = ctl(*command.split(), "--help")
        assert out.startswith(f"usage: sgpctl {command}") and err == "", (command, out)
        assert "Exit status: 0 done" in out
        assert "not answered within 30 s is given up, with 5" in out


def test_version_names_the_protocol():
    answer = json.loads(ctl("--version", "--json")[0])
    assert answer["protocol"] == 3
    assert ctl("--version")[0] == f"sgpctl {answer['version']} (protocol {answer['protocol']})\n"


def test_version_names_the_commit_where_there_is_one():
    source = pathlib.Path(__file__).resolve().parents[2]
    git = subprocess.run(["git", "-C", source, "rev-parse", "HEAD"], text=True, check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) if shutil.which("git") else None
    version = json.loads(ctl("--version", "--json")[0])["version"]
    if git is None or git.returncode != 0:
        assert re.fullmatch(r"\d+\.\d+\.\d+(~git[\d.]*)?", version), version
    else:
        assert re.fullmatch(r"\d+\.\d+\.\d+(~git)?\+[0-9a-f]{12}(-dirty)?", version), version


def test_a_full_disk_is_noticed():
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([SGPCTL, "--help"], stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=60, check=False)
    assert done.returncode == 1 and done.stderr == "sgpctl: standard output cannot be written\n"


tap.run(dict(vars()))
