# SPDX-License-Identifier: Apache-2.0
"""`sgpctl dashboard` as a process, and callers of it, for the tests of the dashboard."""
import contextlib
import http.client
import json
import socket
import subprocess
import urllib.parse

from fleet import PATIENCE, die_with_parent


class Dashboard:
    """`sgpctl dashboard` for a socket; `url` is the page's address, `path` its path with the token."""

    def __init__(self, sgpctl, path, *options):
        self.process = subprocess.Popen([sgpctl, "-s", path, "dashboard", *options], text=True, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, preexec_fn=die_with_parent)
        said = self.process.stdout.readline().strip()
        self.url = json.loads(said)["url"] if said.startswith("{") else said
        if not self.url.startswith("http://"):
            self.process.kill()
            raise AssertionError(f"{said!r} {self.process.communicate()}")
        parts = urllib.parse.urlsplit(self.url)
        self.port, self.path = parts.port, parts.path

    def ask(self, path="", method="GET", headers=None, body=None, whole=False):
        """The answer to a path behind the token, or to a `whole` one: status, body and headers. `headers` may have a
        Host of its own; None leaves it out."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        headers = {"Host": f"127.0.0.1:{self.port}", **(headers or {})}
        with contextlib.closing(connection):
            connection.putrequest(method, path if whole else self.path + path, skip_host=True)
            for name, value in headers.items():
                for one in value if isinstance(value, list) else [value] if value is not None else []:
                    connection.putheader(name, one)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it may have heard enough
                connection.endheaders(body)
            response = connection.getresponse()
            return response.status, response.read(), dict(response.getheaders())

    def json(self, path):
        status, body, _ = self.ask(path)
        assert status == 200, (status, body)
        return json.loads(body)

    def raw(self, data=b""):
        caller = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        if data:
            with contextlib.suppress(OSError):
                caller.sendall(data)
        return caller

    def stream(self):
        """A caller that has asked for the events, and has read nothing."""
        return self.raw(f"GET {self.path}events HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode())

    def end(self):
        self.process.terminate()
        rest = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, rest

    def close(self):
        self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def serving(sgpctl, path, *options):
    dashboard = Dashboard(sgpctl, path, *options)
    try:
        yield dashboard
    finally:
        dashboard.close()
