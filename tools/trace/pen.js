// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Draws on a canvas, with the colors of page.css, and counts what it draws.
"use strict";

class Pen {
    constructor(canvas) {
        this.context = canvas.getContext("2d");
        this.count = 0;
        this.readColors();
    }

    readColors() {
        const style = getComputedStyle(document.documentElement);
        this.colorOf = (name) => style.getPropertyValue(`--${name}`).trim();
    }

    begin(color) {
        const value = this.colorOf(color);
        this.context.strokeStyle = value;
        this.context.fillStyle = value;
        this.context.beginPath();
    }

    line(x, y, toX, toY) {
        this.context.moveTo(x, y);
        this.context.lineTo(toX, toY);
        ++this.count;
    }

    lineTo(x, y, isFirst) {
        if (isFirst) {
            this.context.moveTo(x, y);
        } else {
            this.context.lineTo(x, y);
        }
        ++this.count;
    }

    rect(x, y, width, height) {
        this.context.rect(x, y, width, height);
        ++this.count;
    }

    stroke(width) {
        this.context.lineWidth = width;
        this.context.stroke();
    }

    fill() {
        this.context.fill();
    }

    box(color, x, y, width, height) {
        this.begin(color);
        this.rect(x, y, width, height);
        this.fill();
    }

    text(text, x, y, color, align = "left", font = "12px") {
        this.context.font = `${font} system-ui, "DejaVu Sans", sans-serif`;
        this.context.textAlign = align;
        this.context.fillStyle = this.colorOf(color);
        this.context.fillText(text, x, y);
        ++this.count;
    }

    // A mark of an event, with its middle at x and y.
    glyph(name, x, y) {
        const c = this.context;
        ++this.count;
        switch (name) {
        case "send":
        case "ack":
            c.moveTo(x, y - 4);
            c.lineTo(x, y + 4);
            break;
        case "evidence": // a triangle
            polygon(c, [[x, y - 6], [x + 5.5, y + 4], [x - 5.5, y + 4]]);
            break;
        case "silence": // one that stands on its head
            polygon(c, [[x, y + 6], [x + 5.5, y - 4], [x - 5.5, y - 4]]);
            break;
        case "needless": // a diamond
            polygon(c, [[x, y - 6], [x + 6, y], [x, y + 6], [x - 6, y]]);
            break;
        case "ask":
            c.rect(x - 3.5, y - 3.5, 7, 7);
            break;
        case "probe":
        case "excuse":
            c.moveTo(x + 4, y);
            c.arc(x, y, 4, 0, 2 * Math.PI);
            break;
        case "undo": // an arrow back
            c.moveTo(x + 5, y);
            c.lineTo(x - 5, y);
            c.moveTo(x - 1, y - 4);
            c.lineTo(x - 5, y);
            c.lineTo(x - 1, y + 4);
            break;
        case "dead":
            c.moveTo(x - 6, y - 6);
            c.lineTo(x + 6, y + 6);
            c.moveTo(x + 6, y - 6);
            c.lineTo(x - 6, y + 6);
            break;
        }
    }

    endGlyphs(name) {
        if (["evidence", "silence", "ask", "probe"].includes(name)) {
            this.fill();
        } else {
            this.stroke({send: 1, ack: 1, dead: 2.5}[name] || 1.8);
        }
    }
}

function polygon(context, corners) {
    corners.forEach(([x, y], i) => {
        if (i === 0) {
            context.moveTo(x, y);
        } else {
            context.lineTo(x, y);
        }
    });
    context.closePath();
}

// Marks next to each other are drawn once for so many pixels.
function glyphWidth(name) {
    return name === "send" || name === "ack" ? 1 : 4;
}
