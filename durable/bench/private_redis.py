# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""A redis-server of one's own, on a Unix socket in a directory that goes away
with it."""
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

SETTINGS = {
    "port": "0",
    "save": "",
    "appendonly": "yes",
    "appendfsync": "everysec",
    # A rewrite while something is measured would be measured, too.
    "auto-aof-rewrite-percentage": "0",
}


class PrivateRedis:
    def __init__(self, program):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="lawn-redis-"))
        self.path = str(self.directory / "redis.sock")
        self.log = self.directory / "log"
        command = [program, "--dir", str(self.directory), "--unixsocket",
                   self.path, "--logfile", str(self.log)]
        for name, value in SETTINGS.items():
            command += ["--" + name, value]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        self.socket = None
        self.buffer = b""

    def __enter__(self):
        try:
            self.connect()
        except Exception:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.socket:
            self.socket.close()
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def connect(self):
        while True:
            self.socket = socket.socket(socket.AF_UNIX)
            try:
                self.socket.connect(self.path)
                return
            except OSError:
                self.socket.close()
            if self.process.poll() is not None:
                log = self.log.read_text() if self.log.exists() else ""
                raise RuntimeError("redis-server has ended: "
                                   + " ".join(log.splitlines()[-1:]))
            time.sleep(0.01)

    def command(self, *words):
        """Returns the reply as text. Only for simple replies and strings."""
        request = f"*{len(words)}\r\n"
        for word in words:
            request += f"${len(word)}\r\n{word}\r\n"
        self.socket.sendall(request.encode())
        line = self.take(self.line_size()).decode()
        if line[0] == "-":
            raise RuntimeError(line[1:].strip())
        if line[0] != "$":
            return line[1:].strip()
        return self.take(int(line[1:]) + 2)[:-2].decode()

    def line_size(self):
        while b"\r\n" not in self.buffer:
            self.receive()
        return self.buffer.index(b"\r\n") + 2

    def take(self, size):
        while len(self.buffer) < size:
            self.receive()
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    def receive(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise RuntimeError("redis-server has closed the connection")
        self.buffer += data

    def info(self, section):
        pairs = (line.split(":", 1)
                 for line in self.command("INFO", section).splitlines()
                 if ":" in line)
        return {name: value.strip() for name, value in pairs}

    def cpu_us(self):
        info = self.info("cpu")
        return 1e6 * (float(info["used_cpu_user"])
                      + float(info["used_cpu_sys"]))

    def memory(self):
        return int(self.info("memory")["used_memory"])

    def clear(self):
        """Removes all keys and the log of the commands before."""
        self.command("FLUSHALL")
        self.command("BGREWRITEAOF")
        while True:
            info = self.info("persistence")
            if (info["aof_rewrite_in_progress"] == "0"
                    and info["aof_rewrite_scheduled"] == "0"):
                return
            time.sleep(0.02)
