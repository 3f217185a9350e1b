# SPDX-License-Identifier: Apache-2.0
"""A neighbour made by hand that speaks TLS, with whatever key and in whatever version a test wants: GnuTLS by ctypes, so
that it shares no line with lib/tls."""
import ctypes
import select
import socket
import time

from peer import Closed, Peer

_tls = ctypes.CDLL("libgnutls.so.30")
SERVER, CLIENT, NONBLOCK, RAW_KEYS, NO_TICKETS = 1, 2, 8, 1 << 18, 1 << 10
REQUIRE = 2  # GNUTLS_CERT_REQUIRE
PEM, CERTIFICATE, AGAIN, INTERRUPTED = 1, 1, -28, -52
SUITES = ("NONE:+VERS-TLS1.3:+AEAD:+AES-128-GCM:+CHACHA20-POLY1305:+SIGN-EDDSA-ED25519:+GROUP-X25519:"
          "+CTYPE-CLI-RAWPK:+CTYPE-SRV-RAWPK")
OLD_SUITES = "NORMAL:-VERS-ALL:+VERS-TLS1.2"


class Datum(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_uint)]


class Certificate(ctypes.Structure):
    _fields_ = [("key", ctypes.c_void_p), ("text", Datum), ("kind", ctypes.c_int), ("more", ctypes.c_char * 64)]


class Refused(Exception):
    pass


def call(name, *arguments):
    code = getattr(_tls, name)(*arguments)
    if code < 0:
        raise Refused(name, code)
    return code


def identity(path, large):
    """Credentials with the key of this file; a certificate of `large` bytes in the place of its public key, if any."""
    credentials, secret, public = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    call("gnutls_certificate_allocate_credentials", ctypes.byref(credentials))
    if path is None:
        return credentials
    with open(path, "rb") as file:
        text = file.read()
    call("gnutls_privkey_init", ctypes.byref(secret))
    call("gnutls_privkey_import_x509_raw", secret, ctypes.byref(Datum(text, len(text))), PEM, None, 0)
    call("gnutls_pubkey_init", ctypes.byref(public))
    call("gnutls_pubkey_import_privkey", public, secret, 0, 0)
    shown = Certificate()
    call("gnutls_pcert_import_rawpk", ctypes.byref(shown), public, 0)
    if large:
        shown.text = Datum(bytes(large), large)
    credentials.kept = shown
    call("gnutls_certificate_set_key", credentials, None, 0, ctypes.byref(shown), 1, secret)
    return credentials


class CipheredPeer(Peer):
    """`key` is the file of its secret key; None: it has none. Whoever is at the other end is believed. `listens`: it was
    dialled, and `sock` is the accepted connection."""

    def __init__(self, port=None, key=None, suites=SUITES, large=0, sock=None, listens=False):
        super().__init__(port, sock)
        self.session = ctypes.c_void_p()
        self.credentials = identity(key, large)
        call("gnutls_init", ctypes.byref(self.session),
             (SERVER if listens else CLIENT) | NONBLOCK | RAW_KEYS | NO_TICKETS)
        call("gnutls_priority_set_direct", self.session, suites.encode(), None)
        call("gnutls_credentials_set", self.session, CERTIFICATE, self.credentials)
        if listens:
            _tls.gnutls_certificate_server_set_request(self.session, REQUIRE)
        self.socket.setblocking(False)
        _tls.gnutls_transport_set_int2(self.session, self.socket.fileno(), self.socket.fileno())
        try:
            self.repeat("gnutls_handshake")
        except Closed as error:
            self.close()
            raise Refused("gnutls_handshake", error.args) from error

    def repeat(self, name, *arguments):
        end = time.monotonic() + 30
        function = getattr(_tls, name)
        function.restype = ctypes.c_int if name == "gnutls_handshake" else ctypes.c_ssize_t
        while True:
            code = function(self.session, *arguments)
            if code not in (AGAIN, INTERRUPTED):
                break
            if time.monotonic() > end:
                raise AssertionError("TLS stands still in " + name)
            self.wait()
        if code < 0:
            raise Closed(name, code)
        return code

    def wait(self):
        """Until there may be more to read."""
        poll = select.poll()  # select knows few descriptors
        poll.register(self.socket, select.POLLIN)
        poll.poll(50)

    def send_bytes(self, data):
        while data:
            data = data[self.repeat("gnutls_record_send", data, ctypes.c_size_t(len(data))):]

    def take(self, count):
        data = b""
        while len(data) < count:
            part = ctypes.create_string_buffer(count - len(data))
            got = self.repeat("gnutls_record_recv", part, ctypes.c_size_t(len(part)))
            if got == 0:
                raise Closed()
            data += part.raw[:got]
        return data


class Relayed(CipheredPeer):
    """The same with somebody on its line: each flight of its own passes `change(number, bytes)`, which returns what goes on. The
    first is its hello, the second ends its handshake, the others are what it says then. Less than came: the line ends there."""

    def __init__(self, port, change, key):
        near, self.far = socket.socketpair()
        self.far.setblocking(False)
        self.line = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.change, self.flights = change, 0
        super().__init__(key=key, sock=near)
        self.carry()

    def carry(self):
        """What it has said to the port."""
        try:
            flight = self.far.recv(1 << 20)
        except BlockingIOError:
            return
        changed = self.change(self.flights, flight)
        self.flights += 1
        try:
            self.line.sendall(changed)
            if len(changed) < len(flight):
                self.line.shutdown(socket.SHUT_WR)
        except OSError as error:
            raise Closed() from error

    def wait(self):
        self.carry()
        try:
            answer = self.line.recv(1 << 16)
        except ConnectionError:
            answer = b""
        if answer:
            self.far.sendall(answer)
        else:
            self.far.shutdown(socket.SHUT_WR)

    def send_bytes(self, data):
        super().send_bytes(data)
        self.carry()

    def close(self):
        for sock in (self.socket, self.far, self.line):
            sock.close()
