// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Values over time, of which a picture shows one for each column of pixels,
// whatever their number: the next column is found by bisection, and the greatest
// value of a column in a pyramid of the greatest of 16, 256, ... neighbours.
"use strict";

class Series {
    constructor(steps, values) {
        const count = steps.length;
        this.time = new Float64Array(count);
        this.value = Float64Array.from(values);
        for (let i = 0, now = 0; i < count; ++i) {
            now += steps[i];
            this.time[i] = now;
        }
        this.levels = [this.value];
        while (this.levels[this.levels.length - 1].length > 16) {
            const below = this.levels[this.levels.length - 1];
            const level = new Float64Array(Math.ceil(below.length / 16));
            for (let i = 0; i < below.length; ++i) {
                level[i >> 4] = Math.max(level[i >> 4], below[i]);
            }
            this.levels.push(level);
        }
    }

    get count() {
        return this.time.length;
    }

    // The first that is at `time` or later.
    at(time) {
        let low = 0;
        let high = this.time.length;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (this.time[middle] < time) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }

    // The greatest of [from, to), 0 if there is none.
    greatest(from, to) {
        let most = 0;
        for (let k = 0; from < to; ++k) {
            const level = this.levels[k];
            if (k === this.levels.length - 1) {
                for (; from < to; ++from) {
                    most = Math.max(most, level[from]);
                }
                break;
            }
            for (; from < to && from % 16 !== 0; ++from) {
                most = Math.max(most, level[from]);
            }
            for (; from < to && to % 16 !== 0; --to) {
                most = Math.max(most, level[to - 1]);
            }
            from /= 16;
            to /= 16;
        }
        return most;
    }

    // Calls `each` with the index of the first in each column of `width` pixels.
    // `axis` knows where a time is.
    forColumns(axis, width, each) {
        let i = this.at(axis.from);
        while (i < this.count && this.time[i] <= axis.to) {
            each(i);
            const next = axis.timeAt(axis.xOf(this.time[i]) + width);
            i = Math.max(i + 1, this.at(next));
        }
    }

    // Calls `each` with the x and the greatest value of each column that has
    // one. With `holds`, a value lasts until the next, so each column has one.
    forGreatest(axis, holds, each) {
        let i = this.at(axis.from);
        for (let x = axis.left; x < axis.right; ++x) {
            const end = this.at(axis.timeAt(x + 1));
            if (end > i || (holds && i > 0)) {
                each(x, this.greatest(holds && i > 0 ? i - 1 : i, end));
            } else if (!holds && i < this.count) {
                // On to the column of the next.
                x = Math.max(x, Math.floor(axis.xOf(this.time[i])) - 1);
            }
            i = end;
        }
    }
}

// The values of the given kind alone.
function seriesOfKind(columns, kind) {
    const steps = [];
    const values = [];
    let now = 0;
    let before = 0;
    for (let i = 0; i < columns[0].length; ++i) {
        now += columns[0][i];
        if (columns[1][i] === kind) {
            steps.push(now - before);
            values.push(columns[2][i]);
            before = now;
        }
    }
    return new Series(steps, values);
}

// Those that are not 0.
function seriesWithout0(steps, values) {
    const kinds = values.map((value) => (value === 0 ? 0 : 1));
    return seriesOfKind([steps, kinds, values], 1);
}

// Of the time, in ns, and of the pixels between `left` and `right`.
class Axis {
    constructor(end) {
        this.end = Math.max(end, 1);
        this.from = 0;
        this.to = this.end;
        this.left = 0;
        this.right = 1;
    }

    xOf(time) {
        return this.left + (time - this.from) * (this.right - this.left) /
            (this.to - this.from);
    }

    timeAt(x) {
        return this.from + (x - this.left) * (this.to - this.from) /
            (this.right - this.left);
    }

    show(from, span) {
        const least = Math.min(this.end, 100); // ns
        span = Math.min(Math.max(span, least), this.end);
        this.from = Math.min(Math.max(from, 0), this.end - span);
        this.to = this.from + span;
    }

    zoom(factor, x) {
        const time = this.timeAt(x);
        const span = (this.to - this.from) * factor;
        this.show(time - (time - this.from) * factor, span);
    }

    move(pixels) {
        const span = this.to - this.from;
        this.show(this.from + pixels * span / (this.right - this.left), span);
    }
}

function textOfTime(ns) {
    const units = [[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"]];
    for (const [unit, name] of units) {
        if (ns >= unit) {
            return `${Number((ns / unit).toPrecision(4))} ${name}`;
        }
    }
    return `${Number(ns.toPrecision(4))} ns`;
}
