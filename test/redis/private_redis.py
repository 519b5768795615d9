# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""Redis servers with the module, of one test each, and connections to them."""
import argparse
import os
import pathlib
import socket
import subprocess
import time


def random_arguments(doc, seconds):
    """Of a program that does random things for a while, from a seed that it
    says."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("module", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--seconds", type=float, default=seconds)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    arguments = parser.parse_args()
    print("seed", arguments.seed, flush=True)
    return arguments


class Error(Exception):
    """An error that the server replied with."""


class Connection:
    """Requests and replies of RESP 2 and 3. Errors within replies are values."""

    def __init__(self, address):
        self.address = address
        self.socket = socket.socket(socket.AF_UNIX)
        try:
            self.socket.connect(address)
        except OSError:
            self.socket.close()
            raise
        self.socket.settimeout(60)
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    @staticmethod
    def encode(words):
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            data = word if isinstance(word, bytes) else str(word).encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
        return b"".join(parts)

    def send(self, *words):
        self.socket.sendall(self.encode(words))

    def receive(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server is gone")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            return Error(rest.decode(errors="replace"))
        if kind == b":":
            return int(rest)
        if kind == b"$" or kind == b"=":
            return (None if rest == b"-1"
                    else self.file.read(int(rest) + 2)[:-2])
        if kind in b"*~>":
            return (None if rest == b"-1"
                    else [self.receive() for _ in range(int(rest))])
        if kind == b"%":
            return {self.hashable(self.receive()): self.receive()
                    for _ in range(int(rest))}
        if kind == b"_":
            return None
        return rest  # simple strings, booleans, doubles

    @staticmethod
    def hashable(value):
        return tuple(value) if isinstance(value, list) else value

    def __call__(self, *words):
        self.send(*words)
        reply = self.receive()
        if isinstance(reply, Error):
            raise reply
        return reply

    def many(self, requests):
        """The replies to all, sent at once."""
        self.socket.sendall(b"".join(map(self.encode, requests)))
        return [self.receive() for _ in requests]


class Server:
    """A redis-server with the module, in a directory of its own. LAWN_REDIS_RUN
    may have words to put before its command: valgrind, for example."""

    def __init__(self, directory, module, *options, port=0):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.port = port
        self.path = str(self.directory / "socket")
        self.command = [
            *os.environ.get("LAWN_REDIS_RUN", "").split(), "redis-server",
            "--port", str(port), "--unixsocket", self.path,
            "--dir", str(self.directory), "--loadmodule", str(module),
            "--enable-debug-command", "yes", "--save", "",
            "--repl-diskless-sync-delay", "0",
            "--logfile", str(self.directory / "log"), *map(str, options)]
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command)
        deadline = time.monotonic() + 60
        while True:
            if self.answers():
                return
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.directory / "log").read_text()[-4000:])
            time.sleep(0.01)

    def answers(self):
        try:
            connection = self.connect()
        except OSError:
            return False
        try:
            return not isinstance(connection.many([["PING"]])[0], Error)
        except OSError:
            return False
        finally:
            connection.close()

    def connect(self):
        return Connection(self.path)

    def kill(self):
        """Without a warning, as if the power failed."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Returns its status: of an instrument, too."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait()
