#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""The page of lawn_trace in a headless browser, with 100,000 events: it says
itself what it draws (tools/trace/check.js). What it draws is bounded by the
width of the screen, not by the number of events. How long that takes is only
printed.

usage: page.py LAWN_TRACE CHROMIUM"""
import html
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

CONNECTIONS = 10
ROUNDS = 1000  # of each connection
# In a name of a file, what would end a script but for the slash.
NAME = "<script>&\"'-\u00e9.trace"
# Kinds of marks, RTO and round trips; each once for a column of pixels.
MOST_IN_A_COLUMN = 14


def trace():
    """Every round, each connection sends and is answered, but for each tenth,
    which is sent again: by silence, by evidence, or needlessly."""
    lines = ["lawn-trace 2 ticks_per_sec 1000000000 budget 64"]
    counts = {"silence": 0, "evidence": 0, "needless": 0}
    first = {}
    now = 0

    def add(step, text):
        nonlocal now
        now += step
        lines.append(f"{step} {text}")

    for turn in range(ROUNDS):
        for c in range(CONNECTIONS):
            name = f"c0{c:x}"
            heard = 1 if turn else "-"
            add(1000, f"start {name} 50000")
            add(0, f"conn {name} {heard} 0 - 50000 9000 500")
            if turn % 10 == c:
                kind = list(counts)[turn // 10 % 3]
                add(60000, "poll 1")
                add(0, f"fire {name}")
                if kind == "evidence":
                    add(0, f"evidence {name}")
                add(0, f"resend {name}")
                first.setdefault(kind, now)
                counts[kind] += 1
                add(0, f"start {name} 100000")
                add(0, f"conn {name} 60000 0 - 100000 9000 500")
                if kind == "needless":
                    add(1, f"needless {name}")
            add(1000, f"pause {name}")
            add(0, f"conn {name} 0 - 1000 50000 9000 500")
            for _ in range(5):
                add(2000, "poll 3")
            add(0, f"start 7{c} 3000")
        if turn == ROUNDS // 2:
            add(20_000_000, "stall 20000000")
            add(0, "poll 1")
    lines.append("")
    return "\n".join(lines), counts, first


def dom(chromium, page, profile):
    result = subprocess.run(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu",
         "--window-size=1600,1000", f"--user-data-dir={profile}", "--dump-dom",
         page.as_uri() + "#check"],
        capture_output=True, text=True, check=True, timeout=100)
    return result.stdout


def check_views(found, counts, first):
    views = found["views"]
    for name, view in views.items():
        bound = (view["rows"] + 1) * MOST_IN_A_COLUMN * found["width"]
        assert view["drawn"] <= bound, (name, view, bound)
    everything = views["all"]
    assert everything["drawn"] > found["width"], everything
    for name in ("again", "all as before"):
        assert views[name]["drawn"] == everything["drawn"], (name, views[name])
    # A row that cannot be seen is not drawn.
    assert everything["shown"] == found["rows"] > everything["rows"], found
    near = views["zoom 1000"]
    assert math.isclose(near["to"] - near["from"], everything["to"] / 1000,
                        rel_tol=1e-6), near
    assert 0 < views["zoom 100000"]["drawn"] < everything["drawn"]
    for kind, count in counts.items():
        assert views[kind]["matches"] == count > 0, (kind, views[kind])
        assert 3 < views[kind]["shown"] <= 3 + CONNECTIONS, views[kind]
    assert views["dead"]["matches"] == 0 and views["dead"]["shown"] == 3
    assert views["stall"]["matches"] == 1
    following = views["next silence"]
    assert following["match"] == first["silence"], following
    assert following["from"] <= following["match"] <= following["to"]
    assert views["name"]["shown"] == 4, views["name"]
    check_hands(views)


def check_hands(views):
    """What the keys and the wheel do."""
    def span(name):
        return views[name]["to"] - views[name]["from"]

    whole = views["all"]["to"]
    assert math.isclose(span("key +"), whole / 1.5), views["key +"]
    right = views["key ArrowRight"]
    assert right["from"] > views["key +"]["from"], right
    assert math.isclose(span("key ArrowRight"), whole / 1.5), right
    assert whole / 1.5 < span("key -") <= whole, views["key -"]
    assert 0 < span("wheel") < whole / 2, views["wheel"]
    assert views["key n"]["matches"] == views["evidence"]["matches"]
    assert views["key p"]["from"] < views["key n"]["from"], views["key p"]
    assert views["key Escape"]["matches"] == 0
    assert (views["key 0"]["from"], views["key 0"]["to"]) == (0, whole)


def main():
    program, chromium = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory)
        text, counts, first = trace()
        (place / NAME).write_text(text, encoding="ascii")
        page = place / "page.html"
        subprocess.run([program, place / NAME, "--html", page], check=True)
        said = dom(chromium, page, place / "profile")
    report = re.search(r'<pre id="check">(.*)</pre>', said)
    assert report, said[-2000:]
    found = json.loads(html.unescape(report[1]))
    # The bytes of a name are shown one by one.
    assert found["title"].encode("latin-1").decode() == NAME, found["title"]
    assert found["events"] == text.count("\n") - 1 >= 100_000, found["events"]
    assert found["tips"] > 0
    check_views(found, counts, first)
    print(f"{found['events']} events, {found['rows']} rows: " + ", ".join(
        f"{name} {view['drawn']} in {view['msec']:.1f} ms"
        for name, view in found["views"].items()))


if __name__ == "__main__":
    main()
