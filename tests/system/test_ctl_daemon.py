# SPDX-License-Identifier: Apache-2.0
"""sgpctl against a scripted daemon: test_ctl_daemon.py SGPCTL MAKE_MODEL."""
import contextlib
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

import tap
from scripted import PEER, SGPCTL, STATUS, Server, ask, daemon, in_a_machine, mute, run, terminal

MAKE_MODEL = sys.argv[2]


def test_status_as_json_is_what_the_daemon_said():
    out, err = ask({"GET /v1/status": STATUS}, "status", "--json")
    assert json.loads(out) == STATUS and err == "", out


def test_status_as_lines_is_stable_and_exact():
    lines = ask({"GET /v1/status": STATUS}, "status", "--all")[0].splitlines()
    assert lines[:5] == ["name n0", "state training", "waiting -", "round 7", "rounds 10"], lines
    assert "samples_per_second 100.25" in lines and "loss 0.1" in lines
    assert "topology.file fleet.dot" in lines and "memory_bytes 2048" in lines
    assert len(lines) == len(STATUS) - 1 + len(STATUS["topology"])


def test_status_is_short_and_tells_whatever_is_unusual():
    short = ["name n0", "state training", "round 7", "rounds 10", "epoch 0.5", "epochs 1", "loss 0.1",
             "test_accuracy 0.875", "samples_per_second 100.25", "weight 1", "disagreement 0.001", "uptime_seconds 3.5"]
    assert ask({"GET /v1/status": STATUS}, "status")[0].splitlines() == short
    unusual = {"waiting": {"for": "share", "peer": "n1", "seconds": 0.5}, "diverging": "loss", "starving": True,
               "hears_nobody": True, "unheard": ["n1"], "mismatch": ["n2"], "clipped": ["n5"], "slow": ["n3"], "overdue": ["n4"],
               "weight_unknown": 0.5, "weight_minted": 1.0, "statements_refused": 2, "last_error": "no room"}
    lines = ask({"GET /v1/status": {**STATUS, **unusual}}, "status")[0].splitlines()
    assert set(lines) - set(short) == {
        "waiting.for share", "waiting.peer n1", "waiting.seconds 0.5", "diverging loss", "starving yes", "hears_nobody yes",
        "unheard n1", "mismatch n2", "clipped n5", "slow n3", "overdue n4", "weight_unknown 0.5", "weight_minted 1",
        "statements_refused 2", "last_error no room"}, lines
    assert json.loads(ask({"GET /v1/status": STATUS}, "status", "--json")[0]) == STATUS


def test_a_status_of_a_later_daemon_is_shown_whole():
    lines = ask({"GET /v1/status": {**STATUS, "temperature": 40}}, "status", "--all")[0].splitlines()
    assert lines[-1] == "temperature 40", lines


def test_whom_it_does_not_hear_is_named():
    assert "unheard -" in ask({"GET /v1/status": STATUS}, "status", "--all")[0].splitlines()
    for names, text in ((["n3"], "n3"), (["n3", "n5"], "n3,n5"), (["\x1b[31mn3"], "?[31mn3")):
        lines = ask({"GET /v1/status": {**STATUS, "unheard": names}}, "status")[0].splitlines()
        assert f"unheard {text}" in lines, lines
    many = ask({"GET /v1/status": {**STATUS, "unheard": ["n" * 60] * 100}}, "status")[0].splitlines()
    assert any(line.startswith("unheard nnn") and len(line) < 330 for line in many), many


def test_an_invitation_tells_the_whole_address_or_none():
    """255 bytes of an address fit a message."""
    for extra in (0, 1):
        address = "h" * (250 + extra - 1) + ":65432"
        path = f"/v1/invite?name={'n' * 63}&seconds=86400.000&address={address}"
        with daemon({f"POST {path}": {"invitation": "sgpd,join"}}) as (socket_path, requests):
            out, err = run("-s", socket_path, "invite", "n" * 63, "--address", address, status=2 if extra else 0)
        asked = [what for what, _, _ in requests]
        if extra:
            assert (out, asked) == ("", []) and err.startswith("sgpctl: --address is longer than 255 bytes; see "), err
        else:
            assert (out, asked) == ("sgpd,join\n", [f"POST {path}"]), (out, err, asked)


def test_a_full_queue_of_the_daemon_is_waited_for():
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as listener:
        path = os.path.join(directory, "control.sock")
        listener.bind(path)
        listener.listen(1)
        held = []
        with contextlib.suppress(BlockingIOError):
            while True:
                held.append(socket.socket(socket.AF_UNIX))
                held[-1].setblocking(False)
                held[-1].connect(path)
        tool = subprocess.Popen([SGPCTL, "-s", path, "--json", "status"], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
        end = time.monotonic() + 30
        while tool.poll() is None and time.monotonic() < end:  # until it waits for a place
            with open(f"/proc/{tool.pid}/wchan", encoding="ascii") as file:
                if file.read() == "unix_wait_for_peer":
                    break
            time.sleep(0.01)
        for client in held:
            client.close()
        listener.settimeout(30)
        body = json.dumps(STATUS).encode()
        while tool.poll() is None:
            try:
                with listener.accept()[0] as client:
                    if client.recv(65536):
                        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                        break
            except TimeoutError:
                break
        out, err = tool.communicate(timeout=30)
    assert tool.returncode == 0, (tool.returncode, out, err)
    assert json.loads(out)["name"] == STATUS["name"], out


def degraded(status, peers):
    answers = {"GET /v1/status": {**STATUS, **status}, "GET /v1/peers": peers}
    expected = 7 if status or peers != [PEER] else 0
    out, _ = ask(answers, "status", "--check", "--json", status=expected)
    lines, _ = ask(answers, "status", "--check", status=expected)
    reasons = json.loads(out)["degraded"]
    assert [f"degraded: {r}" for r in reasons] == \
        [line for line in lines.splitlines() if line.startswith("degraded")]
    return reasons


def test_status_check_says_why_a_node_is_degraded():
    assert degraded({}, [PEER]) == []
    assert degraded({"state": "paused"}, [PEER]) == ["the node is paused"]
    assert degraded({"starving": True}, [PEER]) == \
        ["its weight is so low that it gives less than the file says"]
    assert degraded({"hears_nobody": True}, [PEER]) == [
        "it hears nobody any more, and learns from its own rows alone"]
    assert degraded({"waiting": {"for": "share", "peer": "n1", "seconds": 12.2}}, [PEER]) == \
        ["it has waited 12 s for a share of n1"]
    remedy = "; try a smaller [optimizer] learning_rate, or bring the columns to one size with [data] scale"
    for state in ("training", "finished"):
        assert degraded({"state": state, "test_loss": 3.8e18, "diverging": "test_loss"}, [PEER]) == [
            "training diverges: its test_loss is 3.8e+18" + remedy]
        outsized = {**PEER, "shares_outsized": 3}
        assert degraded({"state": state}, [outsized, {**outsized, "direction": "in"}]) == [
            "n1 refused the latest 3 shares: their values are out of all proportion to its own" + remedy,
            "the latest 3 shares of n1 were refused: their values are out of all proportion to our own" + remedy]
    assert degraded({"state": "paused", "diverging": "not_finite"}, [PEER]) == [
        "the node is paused", "training diverged: a loss was not finite" + remedy]
    assert degraded({}, [{**PEER, "state": "down"}]) == ["the link to n1 is down"]
    assert degraded({}, [{**PEER, "direction": "in", "state": "connecting"}]) == \
        ["the link from n1 is connecting"]
    assert degraded({}, [{**PEER, "absent": True}]) == ["n1 (out) is absent"]


def test_settings_that_differ_are_a_note():
    answers = {"GET /v1/status": {**STATUS, "mismatch": ["n1", "n4"]}, "GET /v1/peers": [PEER]}
    lines = ask(answers, "status", "--check")[0].splitlines()
    assert lines[-1] == "note: topology, learning rate, batch or data differ from those of n1,n4", lines
    assert "mismatch n1,n4" in ask(answers, "status")[0].splitlines()


def test_a_finished_node_is_well_without_its_neighbours():
    ask({"GET /v1/status": {**STATUS, "state": "finished"},
         "GET /v1/peers": [{**PEER, "state": "down"}]}, "status", "--check")


def test_a_short_wait_is_not_degraded():
    ask({"GET /v1/status": {**STATUS, "waiting": {"for": "share", "peer": "n1", "seconds": 0.5}},
         "GET /v1/peers": [PEER]}, "status", "--check")


def test_peers_are_aligned_and_all_have_every_field():
    answers = {"GET /v1/peers": [PEER, {**PEER, "name": "n\u00e4chster", "last_error": "a reset"}]}
    lines = ask(answers, "peers")[0].splitlines()
    assert lines[0].split() == ["name", "direction", "state", "node_state", "round", "lag_rounds", "last_heard_seconds",
                                "rtt_ms", "shares_sent", "shares_received", "shares_returned", "bytes_sent",
                                "bytes_received", "cipher", "last_error"], lines
    assert lines[1].split() == ["n1", "out", "up", "training", "6", "1", "0.25", "-", "7", "0", "0", "4096", "128",
                                "-", "-"], lines
    begins = [line.rindex(word) for line, word in zip(lines, ("last_error", "-", "a reset"))]
    assert len(set(begins)) == 1 and len(lines) == 3, lines
    lines = ask(answers, "peers", "--all")[0].splitlines()
    assert lines[0].split() == list(PEER) and len(lines) == 3, lines
    assert lines[1].split() == ["n1", "127.0.0.1:7312", "out", "up", "training", "no", "6", "1",
                                "0.25", "3", "-", "7", "0", "0", "0", "-", "0", "0", "-", "0.5", "4096", "128", "-", "no", "no", "no",
                                "0.05", "no", "no", "no", "-", "-", "-", "-"]
    lines = ask({"GET /v1/peers": [{**PEER, "temperature": 40}]}, "peers", "--all")[0].splitlines()
    assert lines[0].split() == [*PEER, "temperature"] and lines[1].split()[-1] == "40", lines  # of a later daemon
    assert ask({"GET /v1/peers": []}, "peers", "--all")[0].split()[:2] == ["name", "direction"]
    assert json.loads(ask({"GET /v1/peers": [PEER]}, "peers", "--json")[0]) == [PEER]


def test_a_hostile_name_cannot_command_the_terminal():
    out, _ = ask({"GET /v1/peers": [{**PEER, "name": "\x1b[2J\nn1\tup"}]}, "peers")
    assert out.splitlines()[1].startswith("?[2J?n1?up  out"), out
    out, err = ask({"GET /v1/peers": (500, {"error": {"message": "bad\x1b[31m\nline"}})}, "peers",
                   status=1)
    assert (out, err) == ("", "sgpctl: bad?[31m?line\n")
    scaling = {"members": {"n0": 60}, "columns": [{"name": "a\x1b[2J", "mean": 1, "deviation": 2},
                                                  {"name": "b\x07", "values": ["red", "\x1b]0;mine\x07\nblue"]}],
               "targets": [{"name": "y\x1b[1m", "mean": 0, "deviation": 1}]}
    out, _ = ask({"GET /v1/scaling": scaling}, "scaling", "show")
    lines = out.splitlines()
    assert lines[2:4] == ["%-24s %14s %14s" % row for row in (("column", "mean", "deviation"), ("a?[2J", 1, 2))], out
    assert lines[4] == "%-24s red, ?]0;mine??blue" % "b?" and all(line.isprintable() for line in lines), out
    assert json.loads(ask({"GET /v1/scaling": scaling}, "scaling", "show", "--json")[0]) == scaling


def test_topology_shows_nodes_and_phases():
    answer = {"file": "f.dot", "digest": "00", "round": 3, "phase": 0,
              "nodes": [{"name": "n0", "address": "h:1"}],
              "phases": [{"name": "hop1", "rounds": 2, "once": False, "edge_count": 0, "edges": []}]}
    assert ask({"GET /v1/topology": answer}, "topology")[0] == (
        "file f.dot\ndigest 00\nround 3\nphase 0\nname\taddress\nn0\th:1\n"
        "name\trounds\tonce\tedge_count\nhop1\t2\tno\t0\n")
    assert json.loads(ask({"GET /v1/topology": answer}, "topology", "--json")[0]) == answer


def test_metrics_pass_through_or_become_an_object():
    text = b'# HELP sgpd_round x\nsgpd_round 7\nsgpd_link_up{peer="n 1",direction="out"} 1\n'
    assert ask({"GET /metrics": text}, "metrics")[0] == text.decode()
    assert json.loads(ask({"GET /metrics": text}, "metrics", "--json")[0]) == {
        "sgpd_round": 7, 'sgpd_link_up{peer="n 1",direction="out"}': 1}


def test_orders_are_posted_without_a_body():
    for order in ("pause", "resume", "stop", "checkpoint", "reload", "evaluate"):
        with daemon({f"POST /v1/{order}": {"state": "training"}}) as (path, requests):
            assert run("-s", path, order)[0] == "state training\n"
            assert [(what, body) for what, _, body in requests] == [(f"POST /v1/{order}", b"")]


def test_evaluate_tells_the_figures_of_all_rows_as_lines():
    answer = {"round": 7, "samples": 4, "loss": 0.5, "accuracy": 0.75, "measures": {
        "rows": 4, "accuracy": 0.75, "macro_f1": 0.5, "classes": [{"class": "a", "rows": 4}], "confusion": [[4]]}}
    posted = {"POST /v1/evaluate": answer}
    assert ask(posted, "evaluate")[0] == "round 7\nsamples 4\nloss 0.5\naccuracy 0.75\nmacro_f1 0.5\n"
    assert json.loads(ask(posted, "evaluate", "--json")[0]) == answer
    answer["measures"] = None
    assert ask(posted, "evaluate")[0] == "round 7\nsamples 4\nloss 0.5\naccuracy 0.75\n"


def test_leave_tells_what_became_of_the_mass_and_waits_no_longer_than_told():
    answer = {"POST /v1/leave": {"left": True, "heir": "n1", "weight": 1.25}}
    assert ask(answer, "leave")[0] == "left yes\nheir n1\nweight 1.25\n"
    assert json.loads(ask(answer, "leave", "--timeout", "5", "--json")[0]) == answer["POST /v1/leave"]
    refusal = {"POST /v1/leave": (409, {"error": {"message": "the node cannot leave: it is joining"}})}
    assert ask(refusal, "leave", status=1)[1] == "sgpctl: the node cannot leave: it is joining\n"
    with mute() as path:
        err = run("-s", path, "leave", "--timeout", "0.2", status=5)[1]
        assert err == f"sgpctl: the daemon behind {path} did not answer within 0.2 s\n", err


def test_refusals_have_the_daemons_words_and_their_status():
    answer = (403, {"error": {"status": 403, "code": "forbidden", "message": "for root alone"}})
    assert ask({"POST /v1/stop": answer}, "stop", status=4)[1] == "sgpctl: for root alone\n"
    out, err = ask({"POST /v1/stop": answer}, "stop", "--json", status=4)
    assert err == "" and json.loads(out) == {"error": {
        "exit_status": 4, "code": "not_permitted", "message": "for root alone"}}
    answer = (422, {"error": {"status": 422, "code": "invalid_file", "message": "f.dot:3: syntax error"}})
    assert ask({"POST /v1/reload": answer}, "reload", status=6)[1] == "sgpctl: f.dot:3: syntax error\n"
    assert ask({"GET /v1/status": (409, b"<html>")}, "status", status=1)[1] == \
        "sgpctl: the daemon answered 409 to GET /v1/status\n"
    assert ask({"GET /v1/status": b"{"}, "status", status=1)[1] == \
        "sgpctl: the daemon's answer is not JSON\n"


def test_a_program_that_cannot_be_run_has_the_status_of_a_shell():
    answers = {"GET /v1/status": {**STATUS, "program": {"socket": "/run/attach.sock"}}}
    with tempfile.NamedTemporaryFile() as plain:
        for program, status, why in ((plain.name + ".none", 127, "No such file or directory"), (plain.name, 126, "Permission denied")):
            message = f"{program}: cannot be run: {why}"
            assert ask(answers, "run", "--", program, status=status) == ("", f"sgpctl: {message}\n")
            out, err = ask(answers, "--json", "run", "--", program, status=status)
            assert (json.loads(out), err) == ({"error": {"exit_status": status, "code": "failed", "message": message}}, ""), out
    assert ask(answers, "run", "--", "sh", "-c", "echo $SGP_SOCKET; exit 9", status=9) == ("/run/attach.sock\n", "")


def test_a_daemon_that_is_not_there_is_status_3():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "control.sock")
        expected = f"the daemon is not running: {path}: No such file or directory"
        assert run("-s", path, "status", status=3)[1] == f"sgpctl: {expected}\n"
        assert json.loads(run("-s", path, "--json", "peers", status=3)[0]) == {"error": {
            "exit_status": 3, "code": "not_running", "message": expected}}
    with tempfile.TemporaryDirectory() as folder:
        stale = os.path.join(folder, "stale.sock")
        Server(stale, None).server_close()
        assert "Connection refused" in run("-s", stale, "status", status=3)[1]


def test_a_name_without_a_daemon_is_told_with_what_to_do():
    place = "/run/sgpd/no-such-node/control.sock"
    assert run("-n", "no-such-node", "status", status=3)[1] == (
        f"sgpctl: the daemon is not running: {place}: No such file or directory; nor is there "
        "/etc/sgpd/no-such-node.conf: write it, or give another NAME with -n\n")
    done = in_a_machine("""mkdir /run/etc && cp /etc/ld.so.cache /run/etc && mkdir -p /run/etc/sgpd
        touch /run/etc/sgpd/n0.conf && mount --bind /run/etc /etc && "$1" -n n0 status""")
    assert (done.returncode, done.stderr) == (
        3, "sgpctl: the daemon is not running: /run/sgpd/n0/control.sock: No such file or directory; start it with "
        "systemctl start sgpd@n0\n"), done


CONFIGURATION = """[node]
name = n0
; state_directory = /run/comment
state_directory = ../of %s ; and a comment
[topology]
file = /fleet.dot
[model]
layers = dense 2
[data]
train = /rows.csv
[network]
listen = 127.0.0.1:1
"""


def reset_by_configuration(text):
    """sgpctl reset n0, with this text as /etc/sgpd/n0.conf and a run in /etc/of n0."""
    return in_a_machine("""mkdir -p /run/etc/sgpd '/run/etc/of n0' && cp /etc/ld.so.cache /run/etc
        printf %s "$2" >/run/etc/sgpd/n0.conf && touch '/run/etc/of n0/ledger' && mount --bind /run/etc /etc
        "$1" -n n0 reset --yes; status=$?; ls '/etc/of n0'; exit $status""", text)


def test_a_reset_without_a_daemon_reads_the_configuration_as_the_daemon_does():
    done = reset_by_configuration(CONFIGURATION % "n0")
    assert (done.returncode, done.stdout) == (
        0, "state_directory /etc/sgpd/../of n0\nset_aside run-0.unbegun\nrun\nrun-0.unbegun\n"), done
    done = reset_by_configuration(CONFIGURATION % "n0" + "port = 1\n")
    assert done.returncode == 6 and done.stdout == "ledger\n", done
    assert done.stderr.startswith("sgpctl: /etc/sgpd/n0.conf:13: ") and "--state" in done.stderr, done


def test_what_is_no_socket_is_a_wrong_command_line():
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "n0.conf")
        open(file, "w", encoding="utf-8").close()
        for path in (file, folder):
            for command in (["status"], ["wait", "--for", "ready", "--timeout", "60"]):
                err = run("-s", path, *command, status=2)[1]
                assert err == (f"sgpctl: {path} is no socket; name the one that [control] socket gives; "
                               f"see sgpctl {command[0]} --help\n"), err


def test_a_daemon_that_hangs_up_is_status_3():
    _, err = ask({"GET /v1/status": (200, None)}, "status", status=3)
    assert err.endswith(" ended before it answered\n"), err


def test_a_socket_that_may_not_be_opened_is_status_4():
    if os.geteuid() == 0 and not os.access(SGPCTL, os.X_OK):
        raise tap.Skip("the program cannot be run")
    with daemon({"GET /v1/status": STATUS}) as (path, _):
        os.chmod(os.path.dirname(path), 0o755)
        os.chmod(path, 0o600 if os.geteuid() == 0 else 0)
        user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        try:
            _, err = run("-s", path, "status", status=4, **user)
        except PermissionError as error:
            raise tap.Skip("nobody may run the program here") from error
        assert err == (f"sgpctl: not permitted to open {path}; it is for root and the group sgpd\n")


def test_a_path_too_long_for_a_socket_is_refused():
    assert run("-s", "/" + "x" * 200, "status", status=2)[1] == \
        "sgpctl: the socket's path is longer than 107 bytes; see sgpctl status --help\n"


def test_the_only_daemon_is_found_and_several_are_not_guessed():
    script = """mount -t tmpfs none /run && mkdir -p /run/sgpd/n0 && ln -s "$2" /run/sgpd/n0/control.sock
        "$1" status --json && "$1" -n n0 status --json || exit
        mkdir /run/sgpd/n1 && ln -s "$2" /run/sgpd/n1/control.sock
        "$1" status; test $? = 2 && "$1" -n n1 status --json || exit
        chmod 750 /run/sgpd/n0 /run/sgpd/n1
        setpriv --reuid=65534 --regid=65534 --clear-groups "$1" status; test $? = 4"""
    if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/run"], check=False,
                      stderr=subprocess.DEVNULL).returncode != 0:
        raise tap.Skip("no mount name-space may be made here")
    if subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", SGPCTL,
                       "--version"], check=False, stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL).returncode != 0:
        raise tap.Skip("nobody may run the program here")
    with daemon({"GET /v1/status": STATUS}) as (path, _):
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", SGPCTL, path], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0, done
    assert [json.loads(line)["name"] for line in done.stdout.splitlines()] == ["n0"] * 3
    assert done.stderr == ("sgpctl: several daemons run here (n0, n1); choose one with -n NAME; see "
                           "sgpctl status --help\n"
                           "sgpctl: not permitted to look for sockets under /run/sgpd; they are for "
                           "root and the group sgpd\n"), done.stderr


def test_predict_sends_the_file_and_shows_classes():
    answer = {"rows": 2, "labels": ["cat", "dog"], "outputs": [[0.75, 0.25], [0.125, 0.875]]}
    with daemon({"POST /v1/predict": answer}) as (path, requests), \
            tempfile.NamedTemporaryFile() as rows:
        rows.write(b"a,b\n1,2\n3,4\n")
        rows.flush()
        assert run("-s", path, "predict", rows.name)[0] == \
            "row\tlabel\toutput\n1\tcat\t0.75\n2\tdog\t0.875\n"
        assert json.loads(run("-s", path, "predict", rows.name, "--json")[0]) == answer
        assert requests[0] == ("POST /v1/predict", "text/csv", b"a,b\n1,2\n3,4\n")
        _, err = run("-s", path, "predict", rows.name + ".no", status=6)
        assert err == f"sgpctl: {rows.name}.no: No such file or directory\n", err
        rows.truncate((8 << 20) + 1)
        _, err = run("-s", path, "predict", rows.name, status=6)
        assert err == (f"sgpctl: {rows.name}: larger than 4 MiB; send fewer rows at a time\n"), err


def test_predict_names_the_file_that_is_wrong():
    with tempfile.NamedTemporaryFile() as rows:
        rows.write(b"a,b\n1,x\n")
        rows.flush()
        for status, code, message, told in (
                (400, 1, "body:2: column 'b': not a number", "FILE:2: column 'b': not a number"),
                (400, 1, "the body has no rows; send at least one", "FILE has no rows; send at least one"),
                (400, 1, "row 1 has 2 features", "FILE: row 1 has 2 features"),
                (413, 1, "16385 rows are more than 16384", "FILE: 16385 rows are more than 16384"),
                (503, 1, "too many jobs wait; try again", "too many jobs wait; try again")):
            answers = {"POST /v1/predict": (status, {"error": {"message": message}})}
            for name, argument in ((rows.name, rows.name), ("standard input", "-")):
                err = ask(answers, "predict", argument, status=code, input="a,b\n1,x\n")[1]
                assert err == f"sgpctl: {told.replace('FILE', name)}\n", err


def test_predict_shows_all_outputs_of_a_regression():
    answer = {"rows": 1, "labels": None, "outputs": [[0.5, -2.0]]}
    with daemon({"POST /v1/predict": answer}) as (path, _):
        assert run("-s", path, "predict", "-", input="a\n1\n")[0] == \
            "row\toutput0\toutput1\n1\t0.5\t-2\n"


def test_export_writes_what_the_daemon_sent_or_the_same_for_numpy():
    model = subprocess.run([MAKE_MODEL], stdout=subprocess.PIPE, check=True).stdout
    with tempfile.TemporaryDirectory() as folder, daemon({"GET /v1/model": model}) as (path, _):
        tensors, arrays = (os.path.join(folder, name) for name in ("m.safetensors", "m.npz"))
        assert run("-s", path, "export", tensors)[0] == f"{tensors}: 3 parameters in 2 tensors\n"
        assert json.loads(run("-s", path, "export", arrays, "--json")[0]) == {
            "file": arrays, "parameters": 3, "tensors": 2}
        with open(tensors, "rb") as file:
            assert file.read() == model
        with zipfile.ZipFile(arrays) as archive:
            found = {name: archive.read(name) for name in archive.namelist()}
        assert set(found) == {"layers.0.weight.npy", "layers.0.bias.npy"}
        assert struct.unpack("<2f", found["layers.0.weight.npy"][-8:]) == (1.5, -2.0)
        assert struct.unpack("<f", found["layers.0.bias.npy"][-4:]) == (0.25,)
        assert sorted(os.listdir(folder)) == ["m.npz", "m.safetensors"]


def test_a_damaged_model_is_not_exported():
    with tempfile.TemporaryDirectory() as folder:
        model = bytearray(subprocess.run([MAKE_MODEL], stdout=subprocess.PIPE, check=True).stdout)
        model[-1] ^= 1
        for name in ("m.safetensors", "m.npz", "m.onnx"):
            path = os.path.join(folder, name)
            for damaged in (bytes(model), bytes(model[:-1]), b"\x08\0\0\0\0\0\0\0not json"):
                _, err = ask({"GET /v1/model": damaged}, "export", path, status=1)
                assert err.startswith(f"sgpctl: {path}: "), err
        _, err = ask({"GET /v1/model": (503, {"error": {"message": "busy"}})}, "export",
                     os.path.join(folder, "m.npz"), status=1)
        assert err == "sgpctl: busy\n", err
        assert os.listdir(folder) == []


def test_the_model_of_a_program_is_no_graph():
    model = subprocess.run([MAKE_MODEL], stdout=subprocess.PIPE, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.onnx")
        _, err = ask({"GET /v1/model": model}, "export", path, status=1)
        assert err == f"sgpctl: {path}: it has no tag 'layers': the model is a program's, which alone can use it\n", err
        assert os.listdir(folder) == []


def small_files():
    """From here on no file takes more than 1000 bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


def test_an_unwritable_place_is_told():
    _, err = ask({}, "export", "/does/not/exist/m.npz", status=1)
    assert err == "sgpctl: /does/not/exist/m.npz: No such file or directory\n", err
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.npz")
        for size in (2000, 1 << 20):  # more than stdio keeps back is refused while it still comes
            _, err = ask({"GET /v1/model": bytes(size)}, "export", path, status=1, preexec_fn=small_files)
            assert err == f"sgpctl: {path}: File too large\n", err
        assert os.listdir(folder) == []


def test_a_file_of_the_user_is_not_written_over():
    model = subprocess.run([MAKE_MODEL], stdout=subprocess.PIPE, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.npz")
        with open(path + ".part", "w", encoding="utf-8") as file:
            file.write("mine")
        ask({"GET /v1/model": model}, "export", path)
        with open(path + ".part", encoding="utf-8") as file:
            assert file.read() == "mine"
        assert sorted(os.listdir(folder)) == ["m.npz", "m.npz.part"]


def test_a_name_that_is_not_utf8_is_told_all_the_same():
    name = os.fsdecode(b"/does/not/exist/\xff.npz")
    out, err = ask({}, "--json", "export", name, status=1)
    assert json.loads(out)["error"]["message"] == \
        "/does/not/exist/?.npz: No such file or directory" and err == "", (out, err)


def test_a_terminal_gets_columns_and_units():
    lines = terminal({"GET /v1/status": STATUS}, "status", "--all", NO_COLOR="1").splitlines()
    assert "memory_bytes        2.0 KiB" in lines and "uptime_seconds      3.5 s" in lines, lines
    peers = [PEER, {**PEER, "name": "n\u00e4chster"}]
    lines = terminal({"GET /v1/peers": peers}, "peers", NO_COLOR="1").splitlines()
    assert len({line.index(word) for line, word in zip(lines, ("direction", "out", "out"))}) == 1
    assert "4.0 KiB" in lines[1] and "\x1b" not in lines[0], lines
    assert terminal({"GET /v1/peers": peers}, "peers").startswith("\x1b[1mname\x1b[0m")
    assert "\x1b" not in terminal({"GET /v1/peers": peers}, "peers", TERM="dumb")


def fleet_of(*nodes):
    """An answer of GET /v1/fleet. A node: name, age, stale, and what differs from the first."""
    row = {"state": "training", "round": 4211, "rounds": 9000, "epoch": 1.5, "loss": 0.04123, "test_loss": 0.2,
           "test_accuracy": 0.97312, "weight": 1.0234, "disagreement": 0.00312, "waiting": None, "rounds_per_second": 20.0,
           "samples_per_second": 640.0, "uptime_seconds": 300.0, "topology": {"digest": "01", "version": 0},
           "version": "0.1.0", "device": "Zen", "promised": "claimed", "promised_epsilon": 3.0, "promised_delta": 1e-5, "interval_seconds": 1.0}
    return {"GET /v1/fleet": {"name": "n0", "refused": {"forged": 0}, "nodes": [
        {"name": name, "age": age, "stale": stale, **(row if age is not None else dict.fromkeys(row)), **other}
        for name, age, stale, other in nodes]}}


FLEET = fleet_of(("n10", 0.3, False, {}), ("a-name-of-many-letters", 119.0, False, {"round": 123456789, "loss": 1.5e300}),
                 ("n2", 7300.0, True, {"round": 3105, "waiting": {"for": "share", "peer": "another-long-name", "seconds": 3.5}}),
                 ("n3", None, True, {}), ("n1", 1.0, False, {"state": "finished", "loss": None, "round": 4209}))


def test_a_terminal_gets_the_fleet_in_80_columns():
    lines = terminal(FLEET, "fleet").splitlines()
    assert lines == [
        "node       state      age    round     loss  test acc  weight disagree waits for",
        "a-name-o.. training  119s 1.23e+08 1.5e+300    0.9731    1.02   0.0031",
        "n1         finished    1s     4209        -    0.9731    1.02   0.0031",
        "n2         training   2h!     3105   0.0412    0.9731    1.02   0.0031 another..",
        "n3         unknown      -        -        -         -       -        -",
        "n10        training    0s     4211   0.0412    0.9731    1.02   0.0031",
        "5 nodes: 2 training, 1 finished, 2 stale; rounds 4209 to 123456789"], "\n".join(lines)
    assert max(map(len, lines)) <= 80


def rollout_of(**more):
    return {"fleet": "mill", "active": {"version": 6, "identity": "a" * 64}, "proposed": {"version": 7, "identity": "b" * 64},
            "fork": False, "vote": "accepted", "why": "", "accepted": 3, "missing": 1, "refused": 0, "waits_for": "n3", "ready": False,
            "refused_last": "", "nodes": [], **more}


def test_the_fleet_shows_a_rollout_and_who_uses_another_version():
    def row(version, proposed=None):
        return {"rollout": {"active": version, "proposed": proposed, "mark": "b" * 16 if proposed else None,
                            "vote": "accepted" if proposed else "none", "why": None}}
    under_way = fleet_of(*((f"n{i}", 0.3, False, row(6, 7)) for i in range(3)), ("n3", 7300.0, True, row(5)), ("n4", 1.0, False, row(4)))
    for more, line in (({}, "version 7 is proposed: 3 of 5 accept it, waits for n3"),
                       ({"refused": 1, "missing": 0}, "version 7 is proposed: 3 of 5 accept it, refused: waits for n3"),
                       ({"waits_for": ""}, "version 7 is proposed: 3 of 5 accept it"),
                       ({"fork": True}, "two files have version 7: neither is used; push one again")):
        lines = terminal({**under_way, "GET /v1/rollout": rollout_of(**more)}, "fleet").splitlines()
        assert lines[:2] == [line, "version 6 is in use; another one at n3 (5), n4 (4)"] and lines[2].startswith("node "), lines
    answers = {**under_way, "GET /v1/rollout": rollout_of()}
    head, *lines = [line.split("\t") for line in ask(answers, "fleet")[0].splitlines()]
    assert head[-2:] == ["signed_version", "vote"] and lines[0][-2:] == ["6", "accepted"] and lines[4][-2:] == ["4", "none"], lines
    said = json.loads(ask(answers, "fleet", "--json", "--stale")[0])
    assert (said["rollout"]["waits_for"], said["rollout"]["proposed"]["version"]) == ("n3", 7) and len(said["nodes"]) == 1, said
    # no version is proposed: the daemon is not asked
    same = fleet_of(*((f"n{i}", 0.3, False, row(6)) for i in range(3)))
    assert terminal(same, "fleet").startswith("node ") and json.loads(ask(same, "fleet", "--json")[0])["rollout"] is None
    many = fleet_of(("n0", 0.3, False, row(6)), *((f"node-{i}", 0.3, False, row(5)) for i in range(40)))
    line = terminal(many, "fleet").splitlines()[0]
    assert line.startswith("version 6 is in use; another one at node-0 (5), node-1 (5)") and line.endswith(", ..."), line
    assert len(line) <= 80, line


def test_the_fleet_is_sorted_and_filtered():
    def names(*arguments):
        out, _ = ask(FLEET, "fleet", *arguments)
        head, *lines = [line.split("\t") for line in out.splitlines()]
        assert head[:4] == ["name", "state", "age", "stale"] and head[12] == "waits_for", head
        return [line[0].split("-")[0] for line in lines]
    assert names() == ["a", "n1", "n2", "n3", "n10"]
    assert names("--reverse") == ["n10", "n3", "n2", "n1", "a"]
    assert names("--sort", "round") == ["n2", "n1", "n10", "a", "n3"], names("--sort", "round")
    assert names("--sort", "loss", "--reverse") == ["a", "n2", "n10", "n1", "n3"], names("--sort", "loss", "--reverse")
    assert names("--sort", "age", "--stale") == ["n2", "n3"]
    assert names("--state", "unknown") == ["n3"]
    assert names("--state", "paused") == []
    out, _ = ask(FLEET, "--json", "fleet", "--state", "finished")
    assert [node["name"] for node in json.loads(out)["nodes"]] == ["n1"] and json.loads(out)["name"] == "n0", out
    assert len(ask(FLEET, "--json", "fleet", "--watch", "--count", "3", "--interval", "0.1")[0].splitlines()) == 3
    for wrong in (["--sort", "size"], ["--state", "asleep"], ["--count", "2"], ["n1"]):
        run("fleet", *wrong, status=2)


tap.run(dict(vars()))
