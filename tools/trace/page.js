// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The page: reads the data, and lets the mouse and the keyboard move the
// picture.
"use strict";

const find = (id) => document.getElementById(id);

class Page {
    constructor() {
        const data = JSON.parse(find("data").textContent);
        document.title = `${data.title} - lawn_trace`;
        find("title").textContent = data.title;
        find("summary").textContent = `${data.events} events in ${
            textOfTime(data.end)}, ${data.connections.length} connections, ${
            data.timers.length} other timers, ${
            data.stalls[0].length} stalls, budget ${data.budget || "none"}`;
        this.events = data.events;
        this.picture = new Picture(find("canvas"), data);
        this.search = new Search(this.picture);
        this.isAwaited = false;
        this.dragged = null;
        this.addLegend();
        this.listen();
        this.draw();
    }

    draw() {
        this.result = this.picture.draw();
        find("matches").textContent =
            this.search.text(find("search").value.trim() === "");
    }

    // Once for all that happens before the screen is drawn.
    redraw() {
        if (!this.isAwaited) {
            this.isAwaited = true;
            requestAnimationFrame(() => {
                this.isAwaited = false;
                this.draw();
            });
        }
    }

    setSearch(text) {
        find("search").value = text;
        this.search.set(text);
        this.redraw();
    }

    addLegend() {
        const texts = {...kinds, rto: "RTO", rtt: "round trip",
            stall: "stall of the program", run: "timer runs",
            fire: "timer fires"};
        for (const [name, text] of Object.entries(texts)) {
            const button = document.createElement("button");
            const canvas = document.createElement("canvas");
            button.dataset.name = name;
            button.append(canvas, text);
            button.title = `search: ${name}`;
            button.disabled = ["rto", "rtt", "run"].includes(name);
            button.onclick = () => this.setSearch(
                find("search").value === name ? "" : name);
            find("legend").append(button);
        }
        this.drawLegend();
    }

    drawLegend() {
        for (const button of find("legend").children) {
            const {name} = button.dataset;
            const canvas = button.firstChild;
            canvas.width = canvas.height = 28;
            const pen = new Pen(canvas);
            pen.context.setTransform(28 / 14, 0, 0, 28 / 14, 0, 0);
            if (name in kinds) {
                pen.begin(name);
                pen.glyph(name, 7, 7);
                pen.endGlyphs(name);
                pen.stroke(1.8); // the thin ones, too
            } else {
                const isThin = name === "rto" || name === "fire";
                pen.box(name, 1, isThin ? 6 : 2, 12, isThin ? 2 : 10);
            }
        }
    }

    listen() {
        const canvas = find("canvas");
        canvas.addEventListener("wheel", (event) => this.onWheel(event),
            {passive: false});
        canvas.addEventListener("pointerdown", (event) => {
            this.dragged = event;
            canvas.setPointerCapture(event.pointerId);
        });
        canvas.addEventListener("pointerup", () => {
            this.dragged = null;
        });
        canvas.addEventListener("pointermove", (event) => this.onMove(event));
        canvas.addEventListener("pointerleave", () => this.hideTip());
        document.addEventListener("keydown", (event) => this.onKey(event));
        find("search").addEventListener("input", () =>
            this.setSearch(find("search").value));
        window.addEventListener("resize", () => {
            this.picture.measure();
            this.redraw();
        });
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change",
            () => {
                this.drawLegend();
                this.redraw();
            });
    }

    onWheel(event) {
        event.preventDefault();
        const {axis} = this.picture;
        if (event.shiftKey) {
            this.picture.scrollBy(event.deltaY || event.deltaX);
        } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
            axis.move(event.deltaX);
        } else {
            axis.zoom(1.002 ** event.deltaY, Math.max(event.offsetX, gutter));
        }
        this.hideTip();
        this.redraw();
    }

    onMove(event) {
        if (this.dragged) {
            this.picture.axis.move(this.dragged.offsetX - event.offsetX);
            this.picture.scrollBy(this.dragged.offsetY - event.offsetY);
            this.dragged = event;
            this.hideTip();
            this.redraw();
        } else {
            this.showTip(event.offsetX, event.offsetY);
        }
    }

    onKey(event) {
        if (event.ctrlKey || event.altKey || event.metaKey) {
            return;
        }
        const {picture, search} = this;
        const {axis} = picture;
        const middle = (axis.left + axis.right) / 2;
        const step = (axis.right - axis.left) / 8;
        const isTyping = document.activeElement === find("search");
        const actions = isTyping ? {
            Escape: () => {
                this.setSearch("");
                find("canvas").focus();
            },
            Enter: () => search.go(event.shiftKey ? -1 : 1),
        } : {
            "+": () => axis.zoom(1 / 1.5, middle),
            "=": () => axis.zoom(1 / 1.5, middle),
            "-": () => axis.zoom(1.5, middle),
            "0": () => axis.show(0, axis.end),
            ArrowLeft: () => axis.move(-step),
            ArrowRight: () => axis.move(step),
            ArrowUp: () => picture.scrollBy(-60),
            ArrowDown: () => picture.scrollBy(60),
            PageUp: () => picture.scrollBy(-picture.height / 2),
            PageDown: () => picture.scrollBy(picture.height / 2),
            "/": () => find("search").focus(),
            n: () => search.go(1),
            p: () => search.go(-1),
            Escape: () => this.setSearch(""),
        };
        if (Object.hasOwn(actions, event.key)) {
            event.preventDefault();
            actions[event.key]();
            this.hideTip();
            this.redraw();
        }
    }

    showTip(x, y) {
        const lines = this.picture.tip(x, y);
        const tip = find("tip");
        tip.hidden = lines.length === 0;
        tip.textContent = lines.join("\n");
        const left = Math.min(x + 14, this.picture.width - tip.offsetWidth - 4);
        const top = Math.min(y + 14,
            this.picture.height - tip.offsetHeight - 4);
        tip.style.left = `${Math.max(left, 0)}px`;
        tip.style.top = `${Math.max(top, 0)}px`;
    }

    hideTip() {
        find("tip").hidden = true;
    }
}

const page = new Page();
