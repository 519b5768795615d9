#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""The workflow is YAML, calls what is there in ci/, and its jobs need each other
by names that they have. What GitHub makes of it, only GitHub tells.

usage: workflow.py ROOT"""
import os
import pathlib
import re
import sys

import yaml

# What each job must run, with the arguments.
RUNS = {
    "test": ["ci/test"],
    "thorough": ["ci/test --thorough"],
    "packages": ["ci/notes", "ci/amalgamate release",
                 "ci/packages --keep release"],
    "release": ["gh release create"],
}
KEYS = {"name", "run", "uses", "with", "env", "if"}


def of_step(root, step):
    if not KEYS.issuperset(step) or ("run" in step) == ("uses" in step):
        yield f"a step is neither a run nor an action: {step}"
    if not re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step.get("uses", "a/b@v1")):
        yield f"no version of an action: {step['uses']}"
    for script in re.findall(r"\bci/\w+", step.get("run", "")):
        if not os.access(root / script, os.X_OK):
            yield f"there is no {script}"


def complaints(root):
    flow = yaml.safe_load((root / ".github/workflows/ci.yml").read_text())
    jobs = flow["jobs"]
    events = flow[True]  # YAML takes "on" for a truth value
    if set(events) != {"push", "pull_request", "schedule", "workflow_dispatch"}:
        yield f"begins with {events}"
    if list(jobs) != list(RUNS):
        yield f"has the jobs {list(jobs)}"
    for name, job in jobs.items():
        lines = [step["run"] for step in job["steps"] if "run" in step]
        for run in RUNS.get(name, []):
            if not any(line.startswith(run) for line in lines):
                yield f"{name} does not run {run}"
        if job.get("needs", name) not in jobs:
            yield f"{name} needs {job['needs']}, which is not there"
        if name != "release" and job["container"]["image"] != "debian:12":
            yield f"{name} is not in Debian 12"
        for step in job["steps"]:
            yield from (f"{name}: {line}" for line in of_step(root, step))


def main():
    wrong = list(complaints(pathlib.Path(sys.argv[1])))
    print("\n".join(wrong) or "ok")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
