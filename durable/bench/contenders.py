# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""What is compared: programs that put a load on a redis-server and print, as
one JSON object, what they have reached."""
import json
import os
import pathlib
import resource
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent

# How long a contender may take for what is left when nothing is added any more.
MOST_DRAIN_S = 300


class Failed(Exception):
    """A contender has no figures; the text says why."""


class Load:
    """What is asked of a contender. Times are seconds; delays are uniform in
    `delay` plus or minus `spread`."""

    def __init__(self, rate, seconds, delay, spread, leave=False):
        self.rate = rate
        self.seconds = seconds
        self.delay = delay
        self.spread = spread
        self.leave = leave  # the timers in the store

    def limit(self):
        delays = 0 if self.leave else self.delay + self.spread
        return self.seconds + delays + MOST_DRAIN_S


class Lawn:
    """The durable tier: one pump, one consumer."""
    name = "lawn"

    def __init__(self, build):
        self.program = build / "durable/lawnctl/lawnctl"

    def command(self, path, load):
        def ms(seconds):
            return f"{round(seconds * 1000)}ms"

        return [str(self.program), "--redis", "unix:" + path, "--json", "load",
                "--rate", str(load.rate), "--seconds", str(load.seconds),
                "--delay", ms(load.delay), "--spread", ms(load.spread),
                ] + ["--leave"] * load.leave

    def environment(self):
        return dict(os.environ)


class KnownDesign:
    """Buckets, a clock, and a list as the queue: two schedulers, two workers."""
    name = "known"

    def __init__(self, build):
        self.program = build / "durable/bench/known_design"

    def command(self, path, load):
        return [str(self.program), "--redis", path, "--rate", str(load.rate),
                "--seconds", str(load.seconds), "--delay", str(load.delay),
                "--spread", str(load.spread)] + ["--leave"] * load.leave

    def environment(self):
        return dict(os.environ)


class BullMq:
    """BullMQ from npm: two worker processes. `directory` has its packages, and
    is filled if it has not."""
    name = "bullmq"

    def __init__(self, directory):
        missing = [tool for tool in ("node", "npm") if not shutil.which(tool)]
        if missing:
            raise Failed("no " + " and no ".join(missing)
                         + " (apt-get install nodejs npm)")
        self.modules = directory / "node_modules"
        package = self.modules / "bullmq/package.json"
        if not (package.exists() and (self.modules / "ioredis").exists()):
            directory.mkdir(parents=True, exist_ok=True)
            done = subprocess.run(
                ["npm", "install", "--no-audit", "--no-fund", "--prefix",
                 str(directory), "bullmq", "ioredis"], capture_output=True,
                text=True, stdin=subprocess.DEVNULL, check=False)
            if done.returncode != 0:
                raise Failed("npm install has failed: "
                             + " ".join(done.stderr.split())[:200])
        self.version = json.loads(package.read_text())["version"]

    def command(self, path, load):
        options = {"rate": load.rate, "seconds": load.seconds,
                   "delay": round(load.delay * 1000),
                   "spread": round(load.spread * 1000), "leave": load.leave}
        return ["node", str(HERE / "bullmq.js"), path, json.dumps(options)]

    def environment(self):
        return {**os.environ, "NODE_PATH": str(self.modules),
                "NODE_ENV": "production"}


def client_cpu_us():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e6 * (used.ru_utime + used.ru_stime)


def run(redis, contender, load):
    """Returns the contender's figures, with the processor time of Redis and of
    the contender for each timer, and Redis's memory for each timer left."""
    redis.clear()
    memory, cpu, client = redis.memory(), redis.cpu_us(), client_cpu_us()
    try:
        done = subprocess.run(contender.command(redis.path, load),
                              env=contender.environment(),
                              stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=load.limit(), check=False)
    except subprocess.TimeoutExpired as late:
        raise Failed(f"has not ended within {load.limit():.0f} s") from late
    cpu, client = redis.cpu_us() - cpu, client_cpu_us() - client
    try:
        figures = json.loads(done.stdout)
    except ValueError:
        lines = done.stderr.strip().splitlines() or ["no output"]
        raise Failed(f"status {done.returncode}: {lines[-1]}") from None
    if load.leave:
        figures["memory"] = ((redis.memory() - memory)
                             / max(figures["acknowledged"], 1))
    elif figures["answered"] != 0:
        figures["redis_us"] = cpu / figures["answered"]
        figures["client_us"] = client / figures["answered"]
    return figures
