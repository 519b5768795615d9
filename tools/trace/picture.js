// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The picture: rows below an axis of time, of which only those that can be seen
// are drawn. Those of the engine stay at the top.
"use strict";

const gutter = 168;
const axisHeight = 26;

class Picture {
    constructor(canvas, data) {
        this.canvas = canvas;
        this.pen = new Pen(canvas);
        this.axis = new Axis(data.end);
        this.stalls = new Series(...data.stalls);
        this.rows = rowsOf(data);
        this.shown = this.rows;
        this.scroll = 0; // of the rows that are not pinned
        this.highlit = null; // {time, row}
        this.measure();
    }

    measure() {
        const scale = window.devicePixelRatio || 1;
        this.width = this.canvas.clientWidth;
        this.height = this.canvas.clientHeight;
        this.canvas.width = Math.round(this.width * scale);
        this.canvas.height = Math.round(this.height * scale);
        this.pen.context.setTransform(scale, 0, 0, scale, 0, 0);
        this.axis.left = gutter;
        this.axis.right = Math.max(this.width - 28, gutter + 10);
    }

    // Calls `each` with the rows that can be seen and where they begin.
    forVisible(each) {
        let y = axisHeight;
        for (const row of this.shown.filter((one) => one.isPinned)) {
            each(row, y);
            y += row.height;
        }
        const top = y;
        y -= this.scroll;
        for (const row of this.shown.filter((one) => !one.isPinned)) {
            if (y + row.height > top && y < this.height) {
                each(row, y, top);
            }
            y += row.height;
        }
    }

    pinnedHeight() {
        return this.shown.reduce((sum, row) =>
            sum + (row.isPinned ? row.height : 0), axisHeight);
    }

    scrollBy(pixels) {
        const all = this.shown.reduce((sum, row) => sum + row.height,
            axisHeight);
        const most = Math.max(all - this.height, 0);
        this.scroll = Math.min(Math.max(this.scroll + pixels, 0), most);
    }

    scrollTo(row) {
        let y = this.pinnedHeight();
        for (const one of this.shown) {
            if (one === row) {
                break;
            }
            y += one.isPinned ? 0 : one.height;
        }
        if (!row.isPinned) {
            this.scroll = 0;
            this.scrollBy(y - this.height / 2);
        }
    }

    // Returns how many things were drawn, and in how many rows.
    draw() {
        const {pen, axis} = this;
        pen.count = 0;
        pen.box("back", 0, 0, this.width, this.height);
        let rows = 0;
        const pinned = this.pinnedHeight();
        pen.context.save();
        this.forVisible((row, y, top) => {
            pen.context.restore();
            pen.context.save();
            if (top) {
                pen.context.rect(0, pinned, this.width, this.height);
                pen.context.beginPath();
                pen.context.rect(0, pinned, this.width, this.height - pinned);
                pen.context.clip();
            }
            this.drawRow(row, y);
            ++rows;
        });
        pen.context.restore();
        this.drawTimes();
        this.drawHighlit();
        return {drawn: pen.count, rows};
    }

    drawRow(row, y) {
        const {pen, axis} = this;
        pen.box("row", axis.left, y + 1, axis.right - axis.left,
            row.height - 2);
        this.drawStalls(y, row.height);
        pen.context.save();
        pen.context.beginPath();
        pen.context.rect(axis.left - 6, y, axis.right - axis.left + 12,
            row.height);
        pen.context.clip();
        row.draw(pen, axis, y);
        pen.context.restore();
        row.labels().forEach((line, i) => {
            pen.text(line, 12, y + 17 + 15 * i, i === 0 ? "text" : "faint");
        });
    }

    drawStalls(y, height) {
        const {pen, axis, stalls} = this;
        pen.begin("stall");
        // One that has ended behind the right edge may begin before it.
        const last = stalls.at(axis.to);
        const draw = (i) => {
            const from = Math.max(axis.xOf(stalls.time[i] - stalls.value[i]),
                axis.left);
            const to = Math.min(axis.xOf(stalls.time[i]), axis.right);
            if (to >= from) {
                pen.rect(from, y + 1, Math.max(to - from, 1), height - 2);
            }
        };
        stalls.forColumns(axis, 1, draw);
        if (last < stalls.count) {
            draw(last);
        }
        pen.fill();
    }

    drawTimes() {
        const {pen, axis} = this;
        const span = axis.to - axis.from;
        const rough = span / Math.max((axis.right - axis.left) / 110, 1);
        const power = 10 ** Math.floor(Math.log10(rough));
        const step = [1, 2, 5, 10].map((i) => i * power)
            .find((one) => one >= rough);
        pen.begin("line");
        const first = Math.ceil(axis.from / step) * step;
        for (let time = first; time <= axis.to; time += step) {
            const x = Math.round(axis.xOf(time)) + 0.5;
            pen.line(x, axisHeight - 5, x, axisHeight);
        }
        pen.line(axis.left, axisHeight - 0.5, axis.right, axisHeight - 0.5);
        pen.stroke(1);
        for (let time = first; time <= axis.to; time += step) {
            pen.text(textOfTick(time, step), axis.xOf(time), axisHeight - 9,
                "faint", "center", "11px");
        }
    }

    drawHighlit() {
        if (!this.highlit || this.highlit.time < this.axis.from ||
            this.highlit.time > this.axis.to) {
            return;
        }
        const {pen} = this;
        const x = this.axis.xOf(this.highlit.time);
        this.forVisible((row, y) => {
            if (row === this.highlit.row) {
                pen.begin("match");
                pen.rect(x - 9, y + 2, 18, row.height - 4);
                pen.stroke(2);
            }
        });
    }

    // What there is at a point, as lines of text.
    tip(x, y) {
        let lines = [];
        if (x < this.axis.left || x > this.axis.right || y < axisHeight) {
            return lines;
        }
        const time = this.axis.timeAt(x);
        this.forVisible((row, top, pinned) => {
            if (y >= Math.max(top, pinned || 0) && y < top + row.height) {
                lines = [...row.tip(this.axis, x, y - top),
                    ...this.tipOfStall(time)];
            }
        });
        return lines.length > 0 ? [...lines, `time ${textOfTime(time)}`] : [];
    }

    tipOfStall(time) {
        const {stalls} = this;
        const i = stalls.at(time);
        const isIn = i < stalls.count &&
            stalls.time[i] - stalls.value[i] <= time;
        return isIn
            ? [`the program stalled for ${textOfTime(stalls.value[i])}`] : [];
    }
}

// All ticks of an axis have the unit and the digits that its step asks for.
function textOfTick(time, step) {
    const [unit, name] = step >= 1e8 ? [1e9, "s"]
        : step >= 1e5 ? [1e6, "ms"] : step >= 100 ? [1e3, "\u00b5s"]
        : [1, "ns"];
    const digits = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
    return `${(time / unit).toFixed(digits)} ${name}`;
}
