# SPDX-License-Identifier: Apache-2.0
"""Somebody on the line from a source to a target."""
import socket
import threading


class Between:
    """Carries any number of connections. What it hears, keeps or changes is up to `carry`."""

    def __init__(self, target_port):
        self.target_port = target_port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                source, _ = self.listener.accept()
            except OSError:
                return
            try:
                target = socket.create_connection(("127.0.0.1", self.target_port), timeout=5)
            except OSError:
                source.close()
                continue
            kept = (bytearray(), bytearray())
            for i, (one, other) in enumerate(((source, target), (target, source))):
                one.settimeout(None)
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self.carry_all, args=(one, other, i, kept), daemon=True).start()

    def carry_all(self, one, other, which, kept):
        try:
            self.carry(one, other, which, kept)
        except OSError:
            pass
        for sock in (one, other):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def carry(self, one, other, which, kept):
        """Until either end closes: from the source to the target, or back (`which` is 0 or 1). `kept` is the connection's, one for
        each way."""
        raise NotImplementedError

    def close(self):
        self.listener.close()


class Tap(Between):
    """Hears all that passes on a line."""

    def __init__(self, target_port):
        super().__init__(target_port)
        self.heard = []

    def carry(self, one, other, which, kept):
        self.heard.append(kept[which])
        while data := one.recv(65536):
            kept[which].extend(data)
            other.sendall(data)


def tap_all(f):
    """A tap on each way from one node of a fleet to another, by (source, target). The caller closes them."""
    taps = {(i, j): Tap(f.ports[j]) for i in range(f.n) for j in range(f.n) if i != j}
    f.dial.update({way: tap.port for way, tap in taps.items()})
    for i in range(f.n):
        f.write_topology(i)
    return taps
