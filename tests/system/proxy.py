# SPDX-License-Identifier: Apache-2.0
"""A line between a source and a target that breaks: the first `resets` connections are reset after a
drawn number of bytes, wherever in a frame that may be."""
import random
import selectors
import socket
import struct
import threading


class Proxy:
    def __init__(self, target_port, resets=0, most_bytes=1, seed=1):
        self.target_port = target_port
        self.resets_left = resets
        self.resets = 0
        self.most_bytes = most_bytes
        self.random = random.Random(seed)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.closing = False
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while not self.closing:
            source, _ = self.listener.accept()
            try:
                target = socket.create_connection(("127.0.0.1", self.target_port), timeout=5)
            except OSError:
                source.close()
                continue
            self.carry(source, target)

    def carry(self, source, target):
        """One connection at a time: the source has no more than one."""
        self.begin()
        left = None
        if self.resets_left > 0:
            left = self.random.randrange(1, self.most_bytes)
        with selectors.DefaultSelector() as selector:
            selector.register(source, selectors.EVENT_READ, target)
            selector.register(target, selectors.EVENT_READ, source)
            while not self.closing:
                for key, _ in selector.select(1):
                    try:
                        data = key.fileobj.recv(65536)
                        if key.fileobj is source and left is not None:
                            data = data[:left]
                            left -= len(data)
                        ended = not data
                        if key.fileobj is source:
                            data = self.passed(data)
                        key.data.sendall(data)
                    except OSError:
                        ended = True
                    if ended or left == 0:
                        self.reset(source, target, left == 0)
                        return

    def begin(self):
        """A connection begins."""

    def passed(self, data):
        """What goes on to the target of what the source says."""
        return data

    def reset(self, source, target, counted):
        if counted:
            self.resets += 1
            self.resets_left -= 1
        for sock in (source, target):
            if counted:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()

    def close(self):
        self.closing = True
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            pass
        self.listener.close()
        self.thread.join(5)
