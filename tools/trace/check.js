// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// With #check behind its address, the page looks at itself: it draws what a
// user might look at, and writes what it drew and how long that took into the
// page. With #search=WORDS, or #from=NS&to=NS, it begins there.
"use strict";

function check() {
    const {picture, search} = page;
    const {axis} = picture;
    const views = {};
    const look = (name) => {
        const begin = performance.now();
        const {drawn, rows} = picture.draw();
        views[name] = {drawn, rows, shown: picture.shown.length,
            matches: search.matches.length, from: axis.from, to: axis.to,
            msec: performance.now() - begin};
    };
    look("all");
    look("again");
    for (const factor of [10, 1000, 1e5]) {
        axis.show(axis.end / 2, axis.end / factor);
        look(`zoom ${factor}`);
    }
    axis.show(0, axis.end);
    for (const word of [...Object.keys(kinds), "stall", "late", "fire"]) {
        search.set(word);
        look(word);
    }
    search.set("silence");
    search.go(1);
    look("next silence");
    views["next silence"].match = search.matches.length > 0
        ? search.matches[search.current].time : null;
    const last = picture.rows[picture.rows.length - 1];
    search.set(last.name);
    look("name");
    search.set("");
    axis.show(0, axis.end);
    look("all as before");
    const press = (key) => {
        document.dispatchEvent(new KeyboardEvent("keydown", {key}));
        look(`key ${key}`);
    };
    ["+", "ArrowRight", "-", "0"].forEach(press);
    find("canvas").dispatchEvent(new WheelEvent("wheel",
        {deltaY: -500, clientX: picture.width / 2, clientY: 300}));
    look("wheel");
    find("search").value = "evidence";
    find("search").dispatchEvent(new Event("input"));
    press("n");
    press("n");
    press("p");
    press("Escape");
    press("0");
    const tips = [];
    for (let x = gutter; x < picture.width; x += 7) {
        for (let y = 0; y < picture.height; y += 7) {
            tips.push(...picture.tip(x, y));
        }
    }
    const result = document.createElement("pre");
    result.id = "check";
    result.textContent = JSON.stringify({events: page.events,
        title: find("title").textContent, width: axis.right - axis.left,
        height: picture.height, rows: picture.rows.length, tips: tips.length,
        views});
    document.body.append(result);
}

const asked = new URLSearchParams(location.hash.slice(1));
if (asked.has("search")) {
    page.setSearch(asked.get("search"));
}
if (asked.has("from") && asked.has("to")) {
    page.picture.axis.show(Number(asked.get("from")),
        Number(asked.get("to")) - Number(asked.get("from")));
    page.redraw();
}
if (asked.has("check")) {
    check();
}
