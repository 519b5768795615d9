// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Loads BullMQ as `lawnctl load` loads a store of Lawn: adds delayed jobs at a
// rate, whether or not the store keeps up, and prints as one JSON object what
// it has measured, with the same names. As BullMQ's documentation advises, jobs
// are added in bulk, the workers are processes of their own with some hundred
// jobs at once, and jobs are removed when they have completed.
//
//     NODE_PATH=DIRECTORY/node_modules node bullmq.js SOCKET JSON
//
// JSON is an object with the members of `defaults`. Times are milliseconds.
'use strict';

const {fork} = require('node:child_process');
const {Queue, Worker} = require('bullmq');

const queueName = 'compare';
const maxBulk = 500; // jobs added at once
const maxBulks = 4;  // of these, on the way at once
const pauseMs = 2;   // between two looks at the time
const payload = 'x'.repeat(32);

const defaults = {
    rate: 0,
    seconds: 0,
    delay: 3000,
    spread: 2000,
    workers: 2,
    concurrency: 200,
    patience: 10000, // for jobs that do not come, when all are due
    leave: false,    // do not wait until the jobs have run
};

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const connectionTo = (path) => ({path, maxRetriesPerRequest: null});

// A worker process: tells its parent how many jobs have completed, and, when it
// is told to end, which ones.
async function work(path, options) {
    const numbers = [];
    const dueMs = [];
    const handledMs = [];
    let completed = 0;
    let failed = 0;
    const worker = new Worker(queueName, async (job) => {
        const now = Date.now();
        numbers.push(job.data.n);
        dueMs.push(job.timestamp + job.opts.delay);
        handledMs.push(now);
    }, {connection: connectionTo(path), concurrency: options.concurrency});
    worker.on('completed', () => ++completed);
    worker.on('failed', () => ++failed);
    worker.on('error', (error) => {
        process.stderr.write(`bullmq: ${error.message}\n`);
    });
    await worker.waitUntilReady();
    process.send({ready: true});
    const reports = setInterval(() => process.send({completed, failed}), 50);
    process.once('message', async () => {
        clearInterval(reports);
        await worker.close();
        process.send({completed, failed, numbers, dueMs, handledMs},
                     () => process.exit(0));
    });
}

// The worker processes, seen from the parent.
class Workers {
    constructor(path, options) {
        this.states = [];
        this.children = [];
        for (let i = 0; i < options.workers; ++i) {
            const child = fork(__filename, [path, JSON.stringify(options)],
                               {env: {...process.env, BULLMQ_WORKER: '1'}});
            this.states.push({completed: 0, failed: 0});
            child.on('message',
                     (message) => Object.assign(this.states[i], message));
            this.children.push(child);
        }
    }

    sum(name) {
        return this.states.reduce((sum, state) => sum + state[name], 0);
    }

    async ready() {
        while (!this.states.every((state) => state.ready)) {
            await sleep(10);
        }
    }

    async end() {
        await Promise.all(this.children.map((child) => {
            const exit = new Promise((resolve) => child.once('exit', resolve));
            child.send('end');
            return exit;
        }));
    }
}

// Adds jobs whose time has come. Those that the store was too slow for are
// given up when the time is over.
async function addAll(queue, options) {
    const all = Math.floor(options.rate * options.seconds);
    const begin = Date.now();
    const result = {begin, acknowledged: [], failed: 0, lastAck: begin};
    const onTheWay = new Set();
    let asked = 0;
    while (asked < all && Date.now() < begin + options.seconds * 1000) {
        const due = Math.min(
            all, Math.floor((Date.now() - begin) * options.rate / 1000) + 1);
        const jobs = [];
        for (; asked < due && jobs.length < maxBulk; ++asked) {
            const delay = options.delay - options.spread +
                Math.floor(Math.random() * (2 * options.spread + 1));
            jobs.push({name: 'timer', data: {n: asked, payload},
                       opts: {delay, removeOnComplete: true}});
        }
        if (jobs.length !== 0) {
            const adding = queue.addBulk(jobs).then(
                (added) => {
                    result.lastAck = Date.now();
                    for (const job of added) {
                        result.acknowledged.push(job.data.n);
                    }
                },
                (error) => {
                    result.failed += jobs.length;
                    process.stderr.write(`bullmq: ${error.message}\n`);
                }).finally(() => onTheWay.delete(adding));
            onTheWay.add(adding);
        }
        if (onTheWay.size === maxBulks) {
            await Promise.race(onTheWay);
        } else if (asked === due) {
            await sleep(pauseMs);
        }
    }
    result.end = Date.now();
    await Promise.all(onTheWay);
    return result;
}

async function drain(workers, adding, options) {
    const allDue = adding.lastAck + options.delay + options.spread;
    let giveUp = allDue + options.patience;
    let before = workers.sum('completed');
    while (before < adding.acknowledged.length && Date.now() < giveUp) {
        await sleep(50);
        const after = workers.sum('completed');
        if (after !== before) {
            giveUp = Math.max(allDue, Date.now()) + options.patience;
        }
        before = after;
    }
}

function percentile(sorted, perCent) {
    return sorted.length === 0 ?
        0 : sorted[Math.round((sorted.length - 1) * perCent / 100)];
}

function summary(adding, workers, options) {
    // From when the first jobs are at their latest due, until none is added.
    const steady = Math.min(adding.begin + options.delay + options.spread,
                            (adding.begin + adding.end) / 2);
    const delivered = new Map();
    const late = [];
    let early = 0;
    let duplicates = 0;
    let inSteady = 0;
    for (const state of workers.states) {
        (state.numbers || []).forEach((number, i) => {
            const handled = state.handledMs[i];
            late.push(handled - state.dueMs[i]);
            early += handled < state.dueMs[i] ? 1 : 0;
            inSteady += handled >= steady && handled < adding.end ? 1 : 0;
            duplicates += delivered.has(number) ? 1 : 0;
            delivered.set(number, true);
        });
    }
    late.sort((a, b) => a - b);
    const lost = adding.acknowledged.filter((n) => !delivered.has(n)).length;
    const perSecond = (count, ms) => count * 1000 / Math.max(ms, 1);
    return {
        acknowledged: adding.acknowledged.length,
        failed: adding.failed + workers.sum('failed'),
        answered: workers.sum('completed'),
        lost: options.leave ? 0 : lost,
        early,
        duplicates,
        adds_per_s: perSecond(adding.acknowledged.length,
                              adding.lastAck - adding.begin),
        deliveries_per_s: perSecond(inSteady, adding.end - steady),
        delivery_p50_ms: percentile(late, 50),
        delivery_p99_ms: percentile(late, 99),
        delivery_p999_ms: percentile(late, 99.9),
    };
}

async function main(path, options) {
    const workers = new Workers(path, options);
    await workers.ready();
    const queue = new Queue(queueName, {connection: connectionTo(path)});
    await queue.waitUntilReady();
    const adding = await addAll(queue, options);
    if (!options.leave) {
        await drain(workers, adding, options);
    }
    await workers.end();
    await queue.close();
    console.log(JSON.stringify(summary(adding, workers, options)));
}

const path = process.argv[2];
const options = {...defaults, ...JSON.parse(process.argv[3])};
(process.env.BULLMQ_WORKER ? work : main)(path, options).catch((error) => {
    process.stderr.write(`bullmq: ${error.stack}\n`);
    process.exit(1);
});
