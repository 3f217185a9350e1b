#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What readers of a control socket cost training: rounds a second of two daemons that train a small model, alone and
beside clients that ask the first daemon, or its page in a browser, as fast as they are answered.

    bench/readers.py BUILD [--runs 9] [--seconds 1] [--json]

Clients are processes of their own, so they also take processor time: a ratio counts that, too. The first ones take
processor time alone.
"""
import argparse
import json
import multiprocessing
import os
import socket
import statistics
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/system"))

FEATURES = 6
ROWS = 16384  # of one prediction
HISTORY_ROWS = 4096  # that the daemon keeps


def exchange(path, request):
    """Send a request, and read until the daemon closes the connection."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        client.sendall(request)
        while client.recv(1 << 16):
            pass


def drop(path, _):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)


def get(path):
    return f"GET {path} HTTP/1.1\r\nHost: n\r\nConnection: close\r\n\r\n".encode()


def predict():
    body = json.dumps({"rows": [[0.25] * FEATURES] * ROWS}).encode()
    head = f"POST /v1/predict HTTP/1.1\r\nHost: n\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def compute(*_):
    """For comparison: a client that takes processor time, and asks nobody."""
    sum(range(10000))


# ---- callers of the page: sgpctl dashboard asks the daemon for them ----

held = []  # streams of this process that nobody reads


def call(url, path, host=None):
    """Ask the page for a path; the connection, of which the first line of the answer has been read, and its status."""
    address = urllib.parse.urlsplit(url)
    caller = socket.create_connection((address.hostname, address.port))
    caller.sendall(f"GET {path} HTTP/1.1\r\nHost: {host or address.netloc}\r\n\r\n".encode())
    return caller, caller.recv(12)[-3:]


def open_stream(url, _):
    """A place for a stream is kept, and its events are never read."""
    caller, status = call(url, urllib.parse.urlsplit(url).path + "events")
    if status == b"200":
        held.append(caller)
    else:
        caller.close()


def read_page(url, path):
    call(url, urllib.parse.urlsplit(url).path + path)[0].close()


def guess(url, host):
    """A caller without the token, or of another site."""
    caller, status = call(url, urllib.parse.urlsplit(url).path if host else "/" + "0" * 32 + "/", host)
    caller.close()
    assert status == b"403", status


# name: (clients, what each does again and again, with which request)
READERS = {
    "4 that only compute": (4, compute, None),
    "4 that poll the history": (4, exchange, get("/v1/history")),
    "4 that poll the status": (4, exchange, get("/v1/status")),
    "4 that poll the metrics": (4, exchange, get("/metrics")),
    f"1 that predicts {ROWS:,} rows": (1, exchange, predict()),
    "1 that connects and drops": (1, drop, b""),
    "4 that open streams of the page": (4, open_stream, None),
    "4 that read the page's history": (4, read_page, "v1/history?limit=1024"),
    "4 that guess the page's token": (4, guess, None),
    "4 with a foreign host": (4, guess, "rebinding.example"),
}
OF_THE_PAGE = (open_stream, read_page, guess)


def repeat(act, path, request, count):
    while True:
        try:
            act(path, request)
            with count.get_lock():
                count.value += 1
        except OSError:  # a full queue, or a client that was let go
            time.sleep(0.001)


def rate(fleet_, seconds):
    """Rounds a second of both nodes over a span of time."""
    def look():
        statuses = [fleet_.wait("a status", node.status, interval=0) for node in fleet_.nodes]
        return time.monotonic(), [status["round"] for status in statuses]

    began, before = look()
    time.sleep(seconds)
    ended, after = look()
    return [(b - a) / (ended - began) for a, b in zip(before, after)]


def beside(fleet_, url, readers, seconds):
    """The same beside readers, also of the page at `url`; and how many answers they got a second."""
    clients, act, request = readers
    count = multiprocessing.Value("Q", 0)
    place = url if act in OF_THE_PAGE else fleet_.nodes[0].socket
    processes = [multiprocessing.Process(target=repeat, args=(act, place, request, count), daemon=True) for _ in range(clients)]
    for process in processes:
        process.start()
    try:
        time.sleep(0.2)
        before, began = count.value, time.monotonic()
        rounds = rate(fleet_, seconds)
        return rounds, (count.value - before) / (time.monotonic() - began)
    finally:
        for process in processes:
            process.kill()
            process.join()
        time.sleep(0.2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("build")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ["SGPD"] = os.path.join(options.build, "daemon/sgpd")
    import dashboards  # pylint: disable=import-outside-toplevel
    import fleet  # pylint: disable=import-outside-toplevel
    # An epoch is four rounds, so the history is soon as long as it becomes.
    fleet_ = fleet.Fleet(2, options={"train.epochs": "1000000", "train.batch": "40"})
    try:
        fleet_.start()
        fleet_.wait_state("training")
        fleet_.wait_round(0, 5 * HISTORY_ROWS)
        page = dashboards.Dashboard(os.path.join(options.build, "ctl/sgpctl"), fleet_.nodes[0].socket)
        ratios = {name: [] for name in READERS}
        answers = {name: [] for name in READERS}
        alone = []
        for _ in range(options.runs):
            for name, readers in READERS.items():
                base = rate(fleet_, options.seconds)
                rounds, answered = beside(fleet_, page.url, readers, options.seconds)
                alone.append(base[0])
                ratios[name].append([with_them / without for with_them, without in zip(rounds, base)])
                answers[name].append(answered)
    finally:
        fleet_.close()
    report = {"rounds a second alone": statistics.median(alone)}
    for name, pairs in ratios.items():
        report[name] = {"asked": statistics.median(pair[0] for pair in pairs),
                        "neighbour": statistics.median(pair[1] for pair in pairs),
                        "answers a second": statistics.median(answers[name])}
    if options.json:
        print(json.dumps(report))
        return
    print(f"alone: {report.pop('rounds a second alone'):.0f} rounds a second")
    for name, figure in report.items():
        print(f"{name + ':':32} {figure['asked']:.3f} of that, the neighbour {figure['neighbour']:.3f};"
              f" {figure['answers a second']:.0f} answers a second")


if __name__ == "__main__":
    main()
