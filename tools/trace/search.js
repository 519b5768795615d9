// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Search: words that are all to fit. A word is a kind of event, or a part of a
// row's name; rows that do not fit are hidden. The events of the kinds are the
// matches, through which one goes in the order of time.
"use strict";

class Search {
    constructor(picture) {
        this.picture = picture;
        this.matches = []; // {time, row}
        this.current = -1;
    }

    set(text) {
        const words = text.toLowerCase().split(/\s+/).filter((w) => w !== "");
        const {picture} = this;
        const isKind = (word) => word in kinds || word === "stall" ||
            word === "late" || word === "fire" || word === "backlog";
        picture.shown = picture.rows.filter((row) => row.isPinned ||
            words.every((word) => (isKind(word) && !this.isOfRows(word)) ||
                row.has(word)));
        this.matches = words.filter(isKind)
            .flatMap((word) => this.eventsOf(word));
        this.matches.sort((a, b) => a.time - b.time);
        this.current = -1;
        picture.highlit = null;
        picture.scrollBy(0);
    }

    // Whether the events of this kind are in the rows that can be hidden.
    isOfRows(word) {
        return word in kinds || word === "fire";
    }

    eventsOf(word) {
        const {picture} = this;
        const all = (series, row) => series
            ? Array.from(series.time, (time) => ({time, row})) : [];
        if (word === "stall") {
            return all(picture.stalls, picture.rows[0]);
        }
        return picture.shown.flatMap((row) => {
            if (row.word === word) {
                return all(row.series, row);
            }
            return all(row.marks ? row.marks[word]
                : word === "fire" ? row.fires : null, row);
        });
    }

    // On to the next match, or back.
    go(step) {
        const count = this.matches.length;
        if (count === 0) {
            return;
        }
        const {axis} = this.picture;
        const middle = (axis.from + axis.to) / 2;
        if (this.current < 0) {
            // From where one looks; from the beginning if that is all.
            const from = axis.to - axis.from < axis.end ? middle : 0;
            const first = this.matches.findIndex((m) => m.time >= from);
            this.current = step > 0 ? (first < 0 ? 0 : first)
                : (first < 0 ? count : first) - 1;
        } else {
            this.current += step;
        }
        this.current = (this.current + count) % count;
        const match = this.matches[this.current];
        const span = Math.min(axis.to - axis.from, axis.end / 10);
        axis.show(match.time - span / 2, span);
        this.picture.highlit = match;
        this.picture.scrollTo(match.row);
    }

    text(isEmpty) {
        if (isEmpty) {
            return "";
        }
        const rows = this.picture.shown.filter((row) => !row.isPinned).length;
        const count = this.matches.length;
        const events = count === 0 ? "" : this.current < 0
            ? `, ${count} events` : `, event ${this.current + 1} of ${count}`;
        return `${rows} rows${events}`;
    }
}
