# SPDX-License-Identifier: Apache-2.0
"""Lines between every source and every target, which can be cut and mended while a fleet runs.

A silent cut holds back what is sent, as a network does that drops packets: nobody hears of anything, an end of the
connection included, until the line is mended. A reset ends the connections and refuses new ones. One direction of a
line is `forward`, from the source that dials to the target, or `backward`. Cuts of one line add up."""
import asyncio
import socket
import struct
import threading

FORWARD, BACKWARD = "forward", "backward"
READ_BYTES = 1 << 18
TCP_ESTABLISHED = 1


class Line:
    def __init__(self):
        self.target_port = None
        self.held = {FORWARD: 0, BACKWARD: 0}  # cuts at present
        self.refused = 0
        self.open = {FORWARD: asyncio.Event(), BACKWARD: asyncio.Event()}
        for gate in self.open.values():
            gate.set()
        self.writers = set()

    async def serve(self, reader, writer):
        self.writers.add(writer)
        try:
            await self.open[FORWARD].wait()
            if self.refused or not stands(writer):
                abort(writer)
                return
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        except (OSError, asyncio.CancelledError):
            abort(writer)
            return
        finally:
            self.writers.discard(writer)
        both = {writer, far_writer}
        self.writers |= both
        try:
            await asyncio.gather(self.carry(reader, far_writer, FORWARD), self.carry(far_reader, writer, BACKWARD))
        except asyncio.CancelledError:
            pass  # at the close of all lines
        self.writers -= both

    async def carry(self, reader, writer, direction):
        data = b"more"
        while data:
            try:
                data = await reader.read(READ_BYTES)
            except OSError:
                data = b""
            await self.open[direction].wait()
            try:
                writer.write(data)
                await writer.drain()
            except OSError:
                data = b""
        writer.close()

    def cut(self, directions):
        for direction in directions:
            self.held[direction] += 1
            self.open[direction].clear()

    def reset(self):
        self.refused += 1
        for writer in list(self.writers):
            abort(writer)

    def mend(self, directions):
        for direction in directions:
            self.held[direction] -= 1
            if self.held[direction] == 0:
                self.open[direction].set()

    def accept(self):
        self.refused -= 1


def stands(writer):
    """Whether nobody has closed the connection: of one that was given up in a cut, a network delivers nothing."""
    sock = writer.get_extra_info("socket")
    return sock.fileno() >= 0 and sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == TCP_ESTABLISHED


def abort(writer):
    """End a connection with a reset."""
    sock = writer.get_extra_info("socket")
    if sock is not None and sock.fileno() >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class Lines:
    """One line for each pair (source, target); `ports` has where to dial for it. All run on one thread."""

    def __init__(self, pairs):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.lines, self.ports = {}, {}
        for pair in pairs:
            self.lines[pair], self.ports[pair] = self.call(self.begin())

    async def begin(self):
        line = Line()
        server = await asyncio.start_server(line.serve, "127.0.0.1", 0)
        return line, server.sockets[0].getsockname()[1]

    def call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(10)

    def aim(self, ports):
        """Tell where the targets listen, by index."""
        for (_, target), line in self.lines.items():
            line.target_port = ports[target]

    def each(self, pairs, act):
        async def do():
            for pair in pairs:
                act(self.lines[pair])
        self.call(do())

    def cut(self, pairs, directions=(FORWARD, BACKWARD)):
        self.each(pairs, lambda line: line.cut(directions))

    def mend(self, pairs, directions=(FORWARD, BACKWARD)):
        self.each(pairs, lambda line: line.mend(directions))

    def reset(self, pairs):
        self.each(pairs, Line.reset)

    def accept(self, pairs):
        self.each(pairs, Line.accept)

    def close(self):
        async def cancel():
            rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)
        self.call(cancel())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
