// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The rows of the picture: three of the engine, one for each connection, one for
// each other timer. A row knows what it has, how to draw it, and what there is
// at a point.
"use strict";

const kinds = {
    send: "sent",
    ack: "acknowledged",
    evidence: "sent again, by evidence",
    silence: "sent again, by silence",
    needless: "sent again, needlessly",
    ask: "asked the peer",
    probe: "keepalive probe",
    excuse: "a stall was excused",
    undo: "back-off taken back",
    dead: "peer is dead",
};
const reasons = ["", "retry exceeded", "peer timeout", "keepalive"];

// y of a value on a logarithmic scale.
class Scale {
    constructor(series, isLog) {
        let least = Infinity;
        let most = 0;
        for (const one of series) {
            for (const value of one.value) {
                if (value > 0) {
                    least = Math.min(least, value);
                    most = Math.max(most, value);
                }
            }
        }
        this.isLog = isLog;
        this.most = most > 0 ? most : 1;
        this.least = isLog ? Math.min(least, this.most / 2) : 0;
    }

    y(value, top, bottom) {
        const share = this.isLog
            ? Math.log(Math.max(value, this.least) / this.least) /
                Math.log(this.most / this.least)
            : value / this.most;
        return bottom - share * (bottom - top);
    }
}

// A value that holds until the next, or a bar for each column.
function drawSeries(pen, axis, series, scale, top, bottom, style) {
    pen.begin(style.color);
    let isFirst = true;
    series.forGreatest(axis, style.holds, (x, value) => {
        const y = scale.y(value, top, bottom);
        if (style.holds) {
            pen.lineTo(x, y, isFirst);
        } else {
            pen.line(x + 0.5, bottom, x + 0.5, Math.min(y, bottom - 1));
        }
        isFirst = false;
    });
    pen.stroke(style.holds ? 1.5 : 1);
}

class EngineRow {
    constructor(title, word, series, isLog, color, holds, unit) {
        this.title = title;
        this.word = word;
        this.name = "engine";
        this.series = series;
        this.scale = new Scale([series], isLog);
        this.style = {color, holds};
        this.text = unit;
        this.height = 58;
        this.isPinned = true;
    }

    labels() {
        return [this.title, `up to ${this.text(this.scale.most)}`];
    }

    draw(pen, axis, y) {
        drawSeries(pen, axis, this.series, this.scale, y + 6,
            y + this.height - 4, this.style);
    }

    has() {
        return true;
    }

    tip(axis, x) {
        const from = this.series.at(axis.timeAt(x - 2));
        const to = this.series.at(axis.timeAt(x + 3));
        const first = this.style.holds ? Math.max(from - 1, 0) : from;
        return first < to
            ? [`${this.title}: ${this.text(this.series.greatest(first, to))}`]
            : [];
    }
}

class ConnectionRow {
    constructor(data, number, names) {
        this.name = data.name;
        this.keepalive = data.keepalive;
        this.title = `connection ${number}`;
        this.marks = {};
        names.forEach((name, kind) => {
            this.marks[name] = seriesOfKind(data.marks, kind);
        });
        const [steps, rto, rtt] = data.metrics;
        this.rto = new Series(steps, rto);
        this.rtt = seriesWithout0(steps, rtt);
        this.height = steps.length > 0 ? 92 : 58; // it sends nothing
    }

    labels() {
        const count = (name) => this.marks[name].count;
        const again = count("evidence") + count("silence") + count("needless");
        const lines = [this.title, this.name,
            `${count("ack")} ACKs, ${again} resent`];
        return count("dead") > 0 ? [...lines, "the peer is dead"] : lines;
    }

    draw(pen, axis, y) {
        const scale = ConnectionRow.scale;
        drawSeries(pen, axis, this.rtt, scale, y + 6, y + 46,
            {color: "rtt", holds: false});
        drawSeries(pen, axis, this.rto, scale, y + 6, y + 46,
            {color: "rto", holds: true});
        for (const name of Object.keys(kinds)) {
            const at = y + this.laneOf(name);
            pen.begin(name);
            this.marks[name].forColumns(axis, glyphWidth(name), (i) => {
                pen.glyph(name, axis.xOf(this.marks[name].time[i]), at);
            });
            pen.endGlyphs(name);
        }
    }

    laneOf(name) {
        return {send: 86, ack: 76}[name] || 60;
    }

    has(word) {
        return (this.marks[word] && this.marks[word].count > 0) ||
            this.name.includes(word) || this.keepalive.includes(word) ||
            this.title.includes(word);
    }

    tip(axis, x, y) {
        const lines = [];
        for (const name of Object.keys(kinds)) {
            const marks = this.marks[name];
            const to = marks.at(axis.timeAt(x + 5));
            const from = marks.at(axis.timeAt(x - 5));
            if (to > from && Math.abs(y - this.laneOf(name)) < 12) {
                lines.push(this.describe(name, marks, from, to));
            }
        }
        const now = this.rto.at(axis.timeAt(x + 1)) - 1;
        if (now >= 0) {
            lines.push(`RTO ${textOfTime(this.rto.value[now])}`);
        }
        const rtt = this.rtt.at(axis.timeAt(x + 1)) - 1;
        if (rtt >= 0) {
            lines.push(`latest round trip ${textOfTime(this.rtt.value[rtt])}`);
        }
        return lines;
    }

    describe(name, marks, from, to) {
        const value = marks.value[from];
        const count = to - from > 1 ? ` (${to - from} here)` : "";
        const more = {
            ack: value > 0 ? `, ${textOfTime(value)} after it was sent` : "",
            needless: `, as was seen ${textOfTime(value)} later`,
            dead: `: ${reasons[value]}`,
        }[name] || "";
        return `${kinds[name]}${more}${count}\n  at ${
            textOfTime(marks.time[from])}`;
    }
}

class TimerRow {
    constructor(data) {
        const [steps, spans, late] = data.runs;
        this.name = data.name;
        this.title = `timer ${data.name}`;
        this.runs = new Series(steps, spans);
        const kinds = late.map((ns) => (ns < 0 ? 0 : 1));
        let now = 0;
        let before = 0;
        const fires = [];
        steps.forEach((step, i) => {
            now += step;
            if (kinds[i] === 1) {
                fires.push(now + spans[i] - before);
                before = now + spans[i];
            }
        });
        this.fires = new Series(fires, late.filter((ns) => ns >= 0));
        this.height = 26;
    }

    labels() {
        return [this.title];
    }

    draw(pen, axis, y) {
        pen.begin("run");
        const runs = this.runs;
        const first = Math.max(runs.at(axis.from) - 1, 0);
        let end = -1;
        for (let i = first; i < runs.count && runs.time[i] <= axis.to;) {
            const x = Math.max(axis.xOf(runs.time[i]), axis.left);
            const to = Math.min(
                axis.xOf(runs.time[i] + runs.value[i]), axis.right);
            if (to > end) {
                pen.rect(x, y + 8, Math.max(to - x - 0.5, 1), 10);
                end = Math.max(to, x + 1);
            }
            i = Math.max(i + 1, runs.at(axis.timeAt(x + 1)));
        }
        pen.fill();
        pen.begin("fire");
        this.fires.forColumns(axis, 2, (i) => {
            const x = axis.xOf(this.fires.time[i]);
            pen.line(x, y + 4, x, y + 22);
        });
        pen.stroke(1.5);
    }

    has(word) {
        return this.title.includes(word) ||
            (word === "fire" && this.fires.count > 0);
    }

    tip(axis, x) {
        const fires = this.fires;
        const fire = fires.at(axis.timeAt(x - 4));
        if (fire < fires.at(axis.timeAt(x + 4))) {
            return [`fired, ${textOfTime(fires.value[fire])} late\n  at ${
                textOfTime(fires.time[fire])}`];
        }
        const run = this.runs.at(axis.timeAt(x)) - 1;
        return run >= 0 && axis.timeAt(x) <=
            this.runs.time[run] + this.runs.value[run]
            ? [`runs since ${textOfTime(this.runs.time[run])}`] : [];
    }
}

function rowsOf(data) {
    const count = (value) => `${value}`;
    const rows = [
        new EngineRow("time between passes", "gap", new Series(...data.gaps),
            true, "gap", false, textOfTime),
        new EngineRow("lateness of timers", "late", new Series(...data.late),
            true, "late", false, textOfTime),
        new EngineRow("due and waiting", "backlog",
            new Series(...data.backlog), false, "backlog", true, count),
    ];
    const connections = data.connections.map((each, i) =>
        new ConnectionRow(each, i + 1, data.marks));
    ConnectionRow.scale = new Scale(
        connections.flatMap((row) => [row.rto, row.rtt]), true);
    return [...rows, ...connections,
        ...data.timers.map((each) => new TimerRow(each))];
}
