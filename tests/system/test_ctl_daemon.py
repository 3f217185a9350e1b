"""sgpctl against a scripted daemon: test_ctl_daemon.py SGPCTL MAKE_MODEL.

A small HTTP server on a Unix socket stands for sgpd and answers what each test wants, so that every
exit status, every refusal and every hostile answer can be had at will.
"""
import contextlib
import http.server
import json
import os
import socket
import socketserver
import struct
import subprocess
import sys
import tempfile
import threading
import zipfile

import tap

SGPCTL, MAKE_MODEL = sys.argv[1:3]

STATUS = {
    "schema": 1, "version": "0.1.0", "protocol": 2, "name": "n0", "state": "training",
    "incarnation": "00000000000000ff", "algorithm": "sgp", "round": 7, "rounds": 10,
    "samples": 224, "parameters": 10, "memory_bytes": 2048, "jumps": 0, "starving": False,
    "hears_nobody": False, "unheard": [],
    "topology": {"file": "fleet.dot", "digest": "0000000000000001", "nodes": 2, "phase": 0,
                 "phases": 1},
    "waiting": None, "last_error": None, "epoch": 0.5, "epochs": 1.0, "samples_per_second": 100.25,
    "loss": 0.1, "test_loss": None, "test_accuracy": 0.875, "learning_rate": 0.05, "weight": 1.0,
    "weight_in_flight": 0.0, "disagreement": 0.001, "weight_minted": 0.0, "surplus": 0.0,
    "weight_unsettled": 0.0, "uptime_seconds": 3.5}

PEER = {"name": "n1", "address": "127.0.0.1:7312", "direction": "out", "state": "up",
        "node_state": "training", "absent": False, "round": 6, "lag_rounds": 1,
        "last_heard_seconds": 0.25, "rtt_ms": None, "shares_sent": 7, "shares_received": 0,
        "shares_returned": 0, "weight_owed": 0.5, "bytes_sent": 4096, "bytes_received": 128,
        "mismatch": False, "last_error": None, "absent_after_seconds": 3.0, "retired": False}


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def get_request(self):
        request, _ = super().get_request()
        return request, ("client", 0)


@contextlib.contextmanager
def daemon(answers):
    """Serve {"GET /path": value or (HTTP status, value) or function(body)}; yields the socket's path
    and the list of requests (method and path, content type, body)."""
    requests = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self):
            what = f"{self.command} {self.path}"
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            requests.append((what, self.headers.get("Content-Type"), body))
            answer = answers[what](body) if callable(answers[what]) else answers[what]
            status, value = answer if isinstance(answer, tuple) else (200, answer)
            if value is None:
                return  # hang up without an answer
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = answer

        def log_message(self, *_):
            pass

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "control.sock")
        with Server(path, Handler) as server:
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            try:
                yield path, requests
            finally:
                server.shutdown()


def run(*arguments, status=0, timeout=60, **options):
    done = subprocess.run([SGPCTL, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=timeout, check=False, **options)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout, done.stderr


def ask(answers, *arguments, status=0, **options):
    with daemon(answers) as (path, _):
        return run("-s", path, *arguments, status=status, **options)


@contextlib.contextmanager
def mute():
    """A socket that takes connections, as that of a stopped daemon does, and never answers."""
    with socket.socket(socket.AF_UNIX) as listener, tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mute.sock")
        listener.bind(path)
        listener.listen()
        yield path


def test_status_as_json_is_what_the_daemon_said():
    out, err = ask({"GET /v1/status": STATUS}, "status", "--json")
    assert json.loads(out) == STATUS and err == "", out


def test_status_as_lines_is_stable_and_exact():
    lines = ask({"GET /v1/status": STATUS}, "status")[0].splitlines()
    assert lines[:5] == ["name n0", "state training", "waiting -", "round 7", "rounds 10"], lines
    assert "samples_per_second 100.25" in lines and "loss 0.1" in lines
    assert "topology.file fleet.dot" in lines and "memory_bytes 2048" in lines
    assert len(lines) == len(STATUS) - 1 + len(STATUS["topology"])


def test_a_status_of_a_later_daemon_is_shown_whole():
    lines = ask({"GET /v1/status": {**STATUS, "temperature": 40}}, "status")[0].splitlines()
    assert lines[-1] == "temperature 40", lines


def test_whom_it_does_not_hear_is_named():
    assert "unheard -" in ask({"GET /v1/status": STATUS}, "status")[0].splitlines()
    for names, text in ((["n3"], "n3"), (["n3", "n5"], "n3,n5"), (["\x1b[31mn3"], "?[31mn3")):
        lines = ask({"GET /v1/status": {**STATUS, "unheard": names}}, "status")[0].splitlines()
        assert f"unheard {text}" in lines, lines
    many = ask({"GET /v1/status": {**STATUS, "unheard": ["n" * 60] * 100}}, "status")[0].splitlines()
    assert any(line.startswith("unheard nnn") and len(line) < 330 for line in many), many


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
    assert degraded({}, [{**PEER, "state": "down"}]) == ["the link to n1 is down"]
    assert degraded({}, [{**PEER, "direction": "in", "state": "connecting"}]) == \
        ["the link from n1 is connecting"]
    assert degraded({}, [{**PEER, "absent": True}]) == ["n1 (out) is absent"]


def test_a_finished_node_is_well_without_its_neighbours():
    ask({"GET /v1/status": {**STATUS, "state": "finished"},
         "GET /v1/peers": [{**PEER, "state": "down"}]}, "status", "--check")


def test_a_short_wait_is_not_degraded():
    ask({"GET /v1/status": {**STATUS, "waiting": {"for": "share", "peer": "n1", "seconds": 0.5}},
         "GET /v1/peers": [PEER]}, "status", "--check")


def test_peers_as_tabs_have_every_field():
    lines = ask({"GET /v1/peers": [PEER, {**PEER, "name": "n2"}]}, "peers")[0].splitlines()
    assert lines[0].split("\t") == list(PEER) and len(lines) == 3, lines
    assert lines[1].split("\t") == ["n1", "127.0.0.1:7312", "out", "up", "training", "no", "6", "1",
                                    "0.25", "-", "7", "0", "0", "0.5", "4096", "128", "no", "-", "3", "no"]
    assert json.loads(ask({"GET /v1/peers": [PEER]}, "peers", "--json")[0]) == [PEER]


def test_a_hostile_name_cannot_command_the_terminal():
    out, _ = ask({"GET /v1/peers": [{**PEER, "name": "\x1b[2J\nn1\tup"}]}, "peers")
    assert out.splitlines()[1].startswith("?[2J?n1?up\t127"), out
    out, err = ask({"GET /v1/peers": (500, {"error": {"message": "bad\x1b[31m\nline"}})}, "peers",
                   status=1)
    assert (out, err) == ("", "sgpctl: bad?[31m?line\n")


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


def rounds(*states):
    """A status that is the next of these at each request, then stays the last."""
    left = list(states)
    return lambda _: {**STATUS, **(left.pop(0) if len(left) > 1 else left[0])}


def test_wait_ends_when_the_condition_holds():
    for condition, states in (
            ("ready", [{}]), ("round:9", [{"round": 8}, {"round": 9}]),
            ("epoch:0.5", [{}]), ("accuracy:0.9", [{"test_accuracy": None}, {"test_accuracy": 0.9}]),
            ("finished", [{"state": "settling"}, {"state": "finished"}]),
            ("disagreement:1e-3", [{"disagreement": None}, {"disagreement": 0.0009}])):
        with daemon({"GET /v1/status": rounds(*states)}) as (path, requests):
            assert run("-s", path, "wait", "--for", condition) == ("", "")
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
        assert err == ("sgpctl: ready was not reached within 0 s: no daemon answers there\n"), err


def test_wait_keeps_its_time_though_the_daemon_is_silent():
    soon = 20  # enough for any machine, and less than the 30 s of a request
    with mute() as path:
        for condition, timeout in (("ready", "0"), ("round:9", "0.3"), ("peers:1", "2")):
            _, err = run("-s", path, "wait", "--for", condition, "--timeout", timeout, status=5,
                         timeout=soon)
            assert err == (f"sgpctl: {condition} was not reached within {timeout} s: no daemon answers "
                           "there\n"), err
    silent = threading.Event()
    answers = {"GET /v1/status": STATUS, "GET /v1/peers": lambda _: silent.wait(60) and (200, None)}
    try:  # it falls silent between two questions
        with daemon(answers) as (path, requests):
            _, err = run("-s", path, "wait", "--for", "peers:1", "--timeout", "1", status=5, timeout=soon)
            assert [what for what, _, _ in requests] == ["GET /v1/status", "GET /v1/peers"], requests
    finally:
        silent.set()
    assert err == "sgpctl: peers:1 was not reached within 1 s: no daemon answers there\n", err


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
        assert (done.returncode, done.stdout, done.stderr, len(requests)) == (0, "", "", 2), done


def test_wait_does_not_wait_for_what_cannot_come():
    _, err = ask({"GET /v1/status": {**STATUS, "state": "finished"}}, "wait", "--for",
                 "accuracy:0.9", status=1)
    assert err == "sgpctl: accuracy:0.9 was not reached: it is finished in round 7\n", err


def test_wait_notices_that_the_daemon_ends():
    left = [STATUS]
    _, err = ask({"GET /v1/status": lambda _: left.pop() if left else (200, None)}, "wait", "--for",
                 "finished", status=3)
    assert err == ("sgpctl: the daemon ended before finished; it is training in round 7\n"), err


def test_watch_prints_one_json_line_a_look():
    answers = {"GET /v1/status": rounds({"round": 1}, {"round": 2}), "GET /v1/peers": [PEER]}
    out, _ = ask(answers, "watch", "--json", "--count", "2", "--interval", "0.1")
    looks = [json.loads(line) for line in out.splitlines()]
    assert [look["status"]["round"] for look in looks] == [1, 2]
    assert looks[0]["peers"] == [PEER]


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
        for name in ("m.safetensors", "m.npz"):
            path = os.path.join(folder, name)
            for damaged in (bytes(model), bytes(model[:-1]), b"\x08\0\0\0\0\0\0\0not json"):
                _, err = ask({"GET /v1/model": damaged}, "export", path, status=1)
                assert err.startswith(f"sgpctl: {path}: "), err
        _, err = ask({"GET /v1/model": (503, {"error": {"message": "busy"}})}, "export",
                     os.path.join(folder, "m.npz"), status=1)
        assert err == "sgpctl: busy\n", err
        assert os.listdir(folder) == []


def test_an_unwritable_place_is_told():
    _, err = ask({}, "export", "/does/not/exist/m.npz", status=1)
    assert err == "sgpctl: /does/not/exist/m.npz.part: No such file or directory\n", err
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.npz")
        for size in (100, 1 << 20):  # more than stdio keeps back is refused while it still comes
            os.symlink("/dev/full", path + ".part")
            _, err = ask({"GET /v1/model": bytes(size)}, "export", path, status=1)
            assert err == f"sgpctl: {path}.part: No space left on device\n", err


def test_a_name_that_is_not_utf8_is_told_all_the_same():
    name = os.fsdecode(b"/does/not/exist/\xff.npz")
    out, err = ask({}, "--json", "export", name, status=1)
    assert json.loads(out)["error"]["message"] == \
        "/does/not/exist/?.npz.part: No such file or directory" and err == "", (out, err)


def terminal(answers, *arguments, **environment):
    """What sgpctl prints on a terminal."""
    with daemon(answers) as (path, _):
        line = " ".join([SGPCTL, "-s", path, *arguments])
        done = subprocess.run(["script", "-qec", line, "/dev/null"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True, check=True, timeout=60,
                              env={"PATH": os.environ["PATH"], "TERM": "xterm", **environment})
    return done.stdout.replace("\r\n", "\n")


def test_a_terminal_gets_columns_and_units():
    lines = terminal({"GET /v1/status": STATUS}, "status", NO_COLOR="1").splitlines()
    assert "memory_bytes        2.0 KiB" in lines and "uptime_seconds      3.5 s" in lines, lines
    peers = [PEER, {**PEER, "name": "n\u00e4chster"}]
    lines = terminal({"GET /v1/peers": peers}, "peers", NO_COLOR="1").splitlines()
    assert len({line.index(word) for line, word in zip(lines, ("direction", "out", "out"))}) == 1
    assert "4.0 KiB" in lines[1] and "\x1b" not in lines[0], lines
    assert terminal({"GET /v1/peers": peers}, "peers").startswith("\x1b[1mname\x1b[0m")
    assert "\x1b" not in terminal({"GET /v1/peers": peers}, "peers", TERM="dumb")


tap.run(dict(vars()))
