# SPDX-License-Identifier: Apache-2.0
"""A scripted daemon for the tests of sgpctl: a small HTTP server on a Unix socket answers what each test wants, so
that every exit status, every refusal and every hostile answer can be had at will. sgpctl is the first argument."""
import contextlib
import http.server
import json
import os
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading

import tap

SGPCTL = sys.argv[1]

STATUS = {
    "schema": 1, "version": "0.1.0", "protocol": 3, "name": "n0", "state": "training",
    "incarnation": "00000000000000ff", "algorithm": "sgp", "round": 7, "rounds": 10,
    "samples": 224, "parameters": 10, "memory_bytes": 2048, "local": None, "guard": None, "compression": "none", "bytes_spared": 0, "compression_error": None, "jumps": 0, "cycles_renewed": 0, "statements_refused": 0, "joins_refused": 0, "joins_pending": 0, "starving": False,
    "hears_nobody": False, "unheard": [], "mismatch": [], "same_updates": [], "clipped": [], "slow": [], "overdue": [], "disagrees": [], "program": None,
    "topology": {"file": "fleet.dot", "digest": "0000000000000001", "nodes": 2, "phase": 0,
                 "phases": 1},
    "waiting": None, "last_error": None, "last_error_seconds": None, "epoch": 0.5, "epochs": 1.0, "samples_per_second": 100.25,
    "loss": 0.1, "test_loss": None, "test_accuracy": 0.875, "learning_rate": 0.05, "diverging": None, "weight": 1.0,
    "weight_in_flight": 0.0, "disagreement": 0.001, "weight_minted": 0.0, "surplus": 0.0, "uptime_seconds": 3.5}

PEER = {"name": "n1", "address": "127.0.0.1:7312", "direction": "out", "state": "up",
        "node_state": "training", "absent": False, "round": 6, "lag_rounds": 1,
        "last_heard_seconds": 0.25, "absent_after_seconds": 3.0, "rtt_ms": None, "shares_sent": 7, "shares_received": 0,
        "shares_returned": 0, "shares_late": 0, "staleness": None, "shares_outsized": 0, "shares_clipped": 0, "clipped_share": None, "weight_owed": 0.5,
        "bytes_sent": 4096, "bytes_received": 128, "distance": None, "disagrees": False, "mismatch": False,
        "same_updates": False, "learning_rate": 0.05, "retired": False, "slow": False, "overdue": False, "cipher": None,
        "key": None, "last_error": None, "previous_error": None}


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


def rounds(*states):
    """A status that is the next of these at each request, then stays the last."""
    left = list(states)
    return lambda _: {**STATUS, **(left.pop(0) if len(left) > 1 else left[0])}


def in_a_machine(script, *arguments):
    """Run a script with a /run and a PATH of its own, and with a systemctl that says what is in /run/unit."""
    if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/run"], check=False,
                      stderr=subprocess.DEVNULL).returncode != 0:
        raise tap.Skip("no mount name-space may be made here")
    make = """mount -t tmpfs none /run && mkdir -p /run/systemd/system /run/sgpd/n0 /run/bin
        printf '#!/bin/sh\necho "$*" >/run/asked\ncat /run/unit\n' >/run/bin/systemctl
        chmod +x /run/bin/systemctl; PATH=/run/bin:$PATH\n"""
    return subprocess.run(["unshare", "-m", "sh", "-c", make + script, "sh", SGPCTL, *arguments], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)


def unit(active, sub, result):
    return f"printf 'Result={result}\\nActiveState={active}\\nSubState={sub}\\n' >/run/unit\n"


def terminal(answers, *arguments, **environment):
    """What sgpctl prints on a terminal."""
    with daemon(answers) as (path, _):
        line = " ".join([SGPCTL, "-s", path, *arguments])
        done = subprocess.run(["script", "-qec", line, "/dev/null"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True, check=True, timeout=60,
                              env={"PATH": os.environ["PATH"], "TERM": "xterm", **environment})
    return done.stdout.replace("\r\n", "\n")
