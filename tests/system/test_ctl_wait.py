# SPDX-License-Identifier: Apache-2.0
"""How sgpctl waits and watches, against a scripted daemon: test_ctl_wait.py SGPCTL."""
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading

import tap
from scripted import PEER, SGPCTL, STATUS, ask, daemon, in_a_machine, mute, rounds, run, terminal, unit


def test_wait_ends_when_the_condition_holds():
    for condition, states in (
            ("ready", [{}]), ("round:9", [{"round": 8}, {"round": 9}]),
            ("epoch:0.5", [{}]), ("accuracy:0.9", [{"test_accuracy": None}, {"test_accuracy": 0.9}]),
            ("finished", [{"state": "settling"}, {"state": "finished"}]),
            ("disagreement:1e-3", [{"disagreement": None}, {"disagreement": 0.0009}])):
        with daemon({"GET /v1/status": rounds(*states)}) as (path, requests):
            out, err = run("-s", path, "wait", "--for", condition)
            said = f"sgpctl: waiting for {condition}: it is {states[0].get('state', 'training')}\n"
            assert (out, err) == ("", said if len(states) > 1 else ""), (condition, err)
            assert len(requests) == len(states), (condition, requests)
    out, _ = ask({"GET /v1/status": STATUS}, "wait", "--for", "ready", "--json")
    assert json.loads(out) == {"condition": "ready", "met": True}


def test_wait_counts_a_peer_once_whatever_its_links():
    peers = [PEER, {**PEER, "direction": "in"}, {**PEER, "name": "n2", "state": "down"}]
    answers = {"GET /v1/status": STATUS, "GET /v1/peers": peers}
    ask(answers, "wait", "--for", "peers:1")
    _, err = ask(answers, "wait", "--for", "peers:2", "--timeout", "0", status=5)
    assert err == ("sgpctl: peers:2 was not reached within 0 s: it is training in round 7\n"), err


def test_wait_says_why_it_gave_up():
    status = {**STATUS, "waiting": {"for": "share", "peer": "n1", "seconds": 3.0}}
    _, err = ask({"GET /v1/status": status}, "wait", "--for", "round:8", "--timeout", "0", status=5)
    assert err == ("sgpctl: round:8 was not reached within 0 s: it is training in round 7, waiting "
                   "for a share of n1\n"), err
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "none.sock")
        _, err = run("-s", path, "wait", "--for", "ready", "--timeout", "0", status=5)
        assert err == ("sgpctl: ready was not reached within 0 s: nobody answers\n"), err


def test_wait_keeps_its_time_though_the_daemon_is_silent():
    soon = 20  # enough for any machine, and less than the 30 s of a request
    with mute() as path:
        for condition, timeout in (("ready", "0"), ("round:9", "0.3"), ("peers:1", "2")):
            _, err = run("-s", path, "wait", "--for", condition, "--timeout", timeout, status=5,
                         timeout=soon)
            assert err.splitlines()[-1] == f"sgpctl: {condition} was not reached within {timeout} s: nobody answers", err
    silent = threading.Event()
    answers = {"GET /v1/status": STATUS, "GET /v1/peers": lambda _: silent.wait(60) and (200, None)}
    try:  # it falls silent between two questions
        with daemon(answers) as (path, requests):
            _, err = run("-s", path, "wait", "--for", "peers:1", "--timeout", "1", status=5, timeout=soon)
            assert [what for what, _, _ in requests] == ["GET /v1/status", "GET /v1/peers"], requests
    finally:
        silent.set()
    assert err == "sgpctl: peers:1 was not reached within 1 s: nobody answers\n", err


def test_wait_keeps_to_its_daemon_if_another_starts():
    if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/run"], check=False,
                      stderr=subprocess.DEVNULL).returncode != 0:
        raise tap.Skip("no mount name-space may be made here")
    script = 'mount --bind "$2" /run && exec "$1" wait --for round:9 --timeout 30'
    with tempfile.TemporaryDirectory() as folder:
        def start(name, path):
            os.makedirs(os.path.join(folder, "sgpd", name))
            os.symlink(path, os.path.join(folder, "sgpd", name, "control.sock"))

        def answer(_):
            if len(requests) == 1:
                start("n1", path)
            return {**STATUS, "round": 7 + len(requests)}

        with daemon({"GET /v1/status": answer}) as (path, requests):
            start("n0", path)
            done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", SGPCTL, folder], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
        assert (done.returncode, done.stdout, len(requests)) == (0, "", 2), done
        assert done.stderr == "sgpctl: waiting for round:9: it is training\n", done


def test_wait_does_not_wait_for_what_cannot_come():
    _, err = ask({"GET /v1/status": {**STATUS, "state": "finished"}}, "wait", "--for",
                 "accuracy:0.9", status=1)
    assert err == "sgpctl: accuracy:0.9 was not reached: it is finished in round 7\n", err


def test_wait_does_not_wait_for_a_paused_divergence():
    status = {**STATUS, "state": "paused", "diverging": "not_finite"}
    _, err = ask({"GET /v1/status": status}, "wait", "--for", "finished", "--timeout", "2", status=1)
    assert err == ("sgpctl: finished was not reached: it is paused in round 7, since its training diverged; see "
                   "sgpctl status --check\n"), err
    _, err = ask({"GET /v1/status": rounds({"state": "paused"}, {"state": "finished"})}, "wait", "--for", "finished")
    assert err == "sgpctl: waiting for finished: it is paused\n", err


def test_wait_says_what_it_waits_for_and_again_when_that_changes():
    def waits(peer, seconds):
        return {"waiting": {"for": "share", "peer": peer, "seconds": seconds}}

    states = [{"round": 1}, {"round": 2, **waits("n1", 0.2)}, {"round": 3, **waits("n2", 3.5)},
              {"round": 3, **waits("n2", 3.7)}, {"state": "settling"}, {"state": "finished"}]
    with daemon({"GET /v1/status": rounds(*states)}) as (path, _):
        _, err = run("-s", path, "wait", "--for", "finished")
    assert err.splitlines() == [
        "sgpctl: waiting for finished: it is training",
        "sgpctl: waiting for finished: it is training, and waits for a share of n2",
        "sgpctl: waiting for finished: it is settling"], err


def test_wait_for_a_name_of_nobody_ends():
    for arguments in (["-n", "nobody-at-all"], ["-s", "/run/sgpd/nobody-at-all/control.sock"]):
        _, err = run(*arguments, "wait", "--for", "ready", "--timeout", "2", status=1)
        assert err == ("sgpctl: ready was not reached: no node here is called nobody-at-all: there is neither "
                       "/etc/sgpd/nobody-at-all.conf nor /run/sgpd/nobody-at-all; sgpctl -n takes the NAME of "
                       "/etc/sgpd/NAME.conf\n"), err


def test_wait_ends_when_the_unit_has_failed():
    wait = '"$1" -n n0 wait --for ready --timeout 20\n'
    done = in_a_machine(unit("failed", "failed", "exit-code") + wait + "status=$?; cat /run/asked; exit $status")
    assert (done.returncode, done.stderr) == (
        1, "sgpctl: ready was not reached: sgpd@n0.service has failed (exit-code); see journalctl -u sgpd@n0\n"), done
    assert done.stdout.split()[0] == "show" and done.stdout.split()[-1] == "sgpd@n0.service", done
    done = in_a_machine(unit("activating", "auto-restart", "exit-code") + '"$1" -n n0 wait --for ready --timeout 1')
    assert (done.returncode, done.stderr.splitlines()) == (5, [
        "sgpctl: waiting for ready: nobody answers; sgpd@n0.service is activating (auto-restart)",
        "sgpctl: ready was not reached within 1 s: nobody answers; sgpd@n0.service is activating (auto-restart)"]), done


def test_wait_may_begin_before_the_daemon_and_see_its_unit_fail_after_it():
    start = unit("inactive", "dead", "success") + """(while ! test -e /run/waits; do sleep 0.02; done
        ln -s "$2" /run/sgpd/n0/control.sock) & "$1" -n n0 wait --for finished 2>&1 | while read line; do
        echo "$line"; touch /run/waits; done"""
    with daemon({"GET /v1/status": {**STATUS, "state": "finished"}}) as (path, _):
        done = in_a_machine(start, path)
    assert done.stdout == "sgpctl: waiting for finished: nobody answers; sgpd@n0.service is inactive (dead)\n", done
    with daemon({"GET /v1/status": STATUS}) as (path, _):
        done = in_a_machine(unit("failed", "failed", "signal") + """ln -s "$2" /run/sgpd/n0/control.sock
            "$1" -n n0 wait --for finished 2>&1 | while read line; do
            echo "$line"; rm -f /run/sgpd/n0/control.sock; done""", path)
    assert done.stdout.splitlines() == ["sgpctl: waiting for finished: it is training",
        "sgpctl: the daemon ended before finished: sgpd@n0.service has failed (signal); see journalctl -u sgpd@n0; "
        "it was training in round 7"], done


def test_wait_notices_that_the_daemon_ends():
    left = [STATUS]
    _, err = ask({"GET /v1/status": lambda _: left.pop() if left else (200, None)}, "wait", "--for",
                 "finished", status=3)
    assert err == ("sgpctl: waiting for finished: it is training\n"
                   "sgpctl: the daemon ended before finished; it was training in round 7\n"), err


def test_wait_outlasts_the_moment_in_which_a_daemon_begins_to_train():
    for state in ("awaiting_scaling", "awaiting_model"):
        left = [{**STATUS, "state": state}, (200, None), (200, None), (200, None), {**STATUS, "state": "finished"}]
        _, err = ask({"GET /v1/status": lambda _: left.pop(0)}, "wait", "--for", "finished", "--timeout", "60")
        assert err == f"sgpctl: waiting for finished: it is {state}\n", err


def test_wait_notices_that_a_daemon_ends_before_it_trains():
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        path = os.path.join(folder, "control.sock")
        listener.bind(path)
        listens, listening = os.pipe()
        child = os.fork()
        if child == 0:  # answers once, is looked at once, and ends; its parent does not reap it
            listener.listen()
            os.write(listening, b"!")
            body = json.dumps({**STATUS, "state": "awaiting_scaling"}).encode()
            while True:
                client, _ = listener.accept()
                if not client.recv(4096):
                    os._exit(0)
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                client.close()
        listener.close()
        try:
            os.read(listens, 1)
            _, err = run("-s", path, "wait", "--for", "finished", "--timeout", "60", status=3)
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(listens)
            os.close(listening)
    assert err == ("sgpctl: waiting for finished: it is awaiting_scaling\n"
                   "sgpctl: the daemon ended before finished; it was awaiting_scaling in round 7\n"), err


def test_watch_prints_one_json_line_a_look():
    answers = {"GET /v1/status": rounds({"round": 1}, {"round": 2}), "GET /v1/peers": [PEER]}
    out, _ = ask(answers, "watch", "--json", "--count", "2", "--interval", "0.1")
    looks = [json.loads(line) for line in out.splitlines()]
    assert [look["status"]["round"] for look in looks] == [1, 2]
    assert looks[0]["peers"] == [PEER]


def test_watch_fits_80_columns_with_progress_and_time_left():
    long = {"name": "node-with-a-very-long-name-of-many-letters", "last_error": "cannot connect: " + "x" * 200,
            "round": 123456789, "last_heard_seconds": 12345.6, "rtt_ms": 1234.5, "shares_sent": 10 ** 9}
    status = {**STATUS, "name": long["name"], "rounds": 10 ** 9, "loss": 3.8e18, "samples_per_second": 1.5e7,
              "waiting": {"for": "acknowledgement", "peer": long["name"], "seconds": 1234.5}, "epochs": None,
              "last_error": "y" * 300}
    peers = [PEER, {**PEER, **long, "state": "connecting", "node_state": "settling"}]
    answers = {"GET /v1/status": rounds({**status, "round": 10 ** 8}, {**status, "round": 2 * 10 ** 8}),
               "GET /v1/peers": peers}
    looks = terminal(answers, "watch", "--count", "2", "--interval", "0.2", NO_COLOR="1").split("\x1b[H\x1b[J")[1:]
    assert len(looks) == 2, looks
    for look, done in zip(looks, ("10%", "20%")):
        assert max(map(len, look.splitlines())) <= 80, look
        assert look.splitlines()[0].split()[-1] == "done" and look.splitlines()[1].split()[-1] == done, look
    assert " left" not in looks[0] and ", about " in looks[1] and " s left" in looks[1], looks
    finished = terminal({"GET /v1/status": {**STATUS, "state": "finished"}, "GET /v1/peers": []}, "watch", "--count",
                        "1", NO_COLOR="1")
    assert "100%" in finished and " left" not in finished, finished


def test_watch_has_progress_for_scripts():
    answers = {"GET /v1/status": {**STATUS, "epoch": 0.5, "epochs": 2.0}, "GET /v1/peers": [PEER]}
    lines = ask(answers, "watch", "--count", "1")[0].splitlines()
    assert "progress 0.25" in lines and "left_seconds -" in lines, lines


def test_watch_takes_no_restart_for_progress():
    """A daemon that is started again has no epoch before its first round."""
    answers = {"GET /v1/status": rounds({"state": "joining", "epoch": 0.0, "epochs": 2.0, "samples": 0},
                                        {"epoch": 1.5, "epochs": 2.0}, {"epoch": 1.6, "epochs": 2.0}),
               "GET /v1/peers": [PEER]}
    lines = ask(answers, "watch", "--count", "3", "--interval", "0.1")[0].splitlines()
    left = [line for line in lines if line.startswith("left_seconds ")]
    assert left[:2] == ["left_seconds -"] * 2 and float(left[2].split()[1]) > 0, left


def test_watch_says_that_it_does_not_know_the_progress():
    status = {**STATUS, "epochs": None, "rounds": None}
    answers = {"GET /v1/status": status, "GET /v1/peers": [PEER]}
    assert "progress -" in ask(answers, "watch", "--count", "1")[0].splitlines()
    look = terminal(answers, "watch", "--count", "1", NO_COLOR="1").split("\x1b[H\x1b[J")[1]
    assert look.splitlines()[1].split()[-1] == "-", look


tap.run(dict(vars()))
