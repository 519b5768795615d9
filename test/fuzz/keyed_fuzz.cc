// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Two tables of timers by number over one lawn, against ordered maps: ids that
// come again and again, callbacks that start and stop them, memory that runs
// out, and a lawn that is drained below its tables.

#include "input.h"
#include "memory.h"

#include <lawn/keyed.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace
{

using fuzz::Input;

struct Start {
    lawn_time_t deadline;
    lawn_time_t ttl;
    uint64_t number;  // the payload, too
    bool is_deferred; // due in the next pass, not in this
};

class Tables
{
public:
    explicit Tables(Input input) : input_(input)
    {
        lawn_params_t params = {};
        params.allocator = arena_.allocator();
        FUZZ_CHECK(lawn_create(&params, &lawn_) == LAWN_OK);
        for (Table &table : tables_) {
            table.all = this;
            create(&table);
        }
    }

    void run()
    {
        for (unsigned i = 1; !input_.is_empty() && has_more(); ++i) {
            step();
            check_between(i % 32 == 0);
        }
        if (has_memory_ && input_.byte() % 2 == 0) {
            // What does not fire now never would.
            advance(LAWN_TIME_INFINITY, 0);
            FUZZ_CHECK(earliest() == LAWN_TIME_INFINITY);
            check_between(true);
        }
        for (Table &table : tables_) {
            lawn_keyed_destroy(table.keyed);
        }
        FUZZ_CHECK(lawn_count(lawn_) == 0);
        FUZZ_CHECK(lawn_check(lawn_) == LAWN_OK);
        lawn_destroy(lawn_);
    }

private:
    struct Table {
        Tables *all = nullptr;
        lawn_keyed_t *keyed = nullptr;
        size_t capacity = 0; // for which nothing is allocated
        std::map<uint64_t, Start> running;
    };

    bool has_more() const
    {
        return has_memory_ && work_ < fuzz::most_work;
    }

    void step()
    {
        const unsigned op = input_.byte();
        const unsigned flags = op / 16;
        Table *const table = &tables_[flags % 2];
        switch (op % 16) {
        case 0:
        case 1:
        case 2:
        case 3:
        case 4:
            start_one(table, flags);
            break;
        case 5:
            start_many(table, flags);
            break;
        case 6:
        case 7:
        case 8:
            stop(table, id(flags), flags & 2);
            break;
        case 9:
        case 10:
            advance(input_.number(), flags & 2 ? 1 + flags : 0);
            break;
        case 11:
            go_to_next(flags);
            break;
        case 12:
            arena_.set_failing(flags & 2);
            break;
        case 13:
            seen_ += std::min(input_.number(), UINT64_MAX - seen_);
            break;
        case 14:
            flags & 2 ? clear(table) : drain();
            break;
        default:
            lawn_keyed_destroy(table->keyed);
            forget_all(table);
            create(table);
            break;
        }
    }

    // Few, so that they meet again.
    uint64_t id(unsigned flags)
    {
        return flags & 8 ? input_.number() : input_.byte() % 64;
    }

    void create(Table *table)
    {
        arena_.set_failing(false);
        const size_t hint = input_.byte() % 32;
        table->keyed = nullptr;
        FUZZ_CHECK(lawn_keyed_create(lawn_, SIZE_MAX / 2 + hint,
                                     &table->keyed) == LAWN_ERR_NO_MEMORY);
        const unsigned refusals = arena_.refusals();
        const lawn_status_t status =
            lawn_keyed_create(lawn_, hint, &table->keyed);
        if (status != LAWN_OK) {
            FUZZ_CHECK(arena_.refusals() != refusals);
            FUZZ_CHECK(!table->keyed);
            has_memory_ = false; // the arena gives each byte once
            return;
        }
        table->capacity = std::max<size_t>(hint, 1);
        lawn_keyed_set_expired(table->keyed, on_expired, table);
    }

    static void *payload(uint64_t number)
    {
        return reinterpret_cast<void *>(static_cast<uintptr_t>(number));
    }

    void start(Table *table, uint64_t id, lawn_time_t ttl)
    {
        const unsigned allocations = arena_.allocations();
        const unsigned refusals = arena_.refusals();
        const size_t nodes =
            table->running.size() + (table->running.count(id) == 0);
        const lawn_status_t status =
            lawn_keyed_start(table->keyed, seen_, ttl, id, payload(++starts_));
        ++work_;
        if (nodes <= table->capacity) {
            FUZZ_CHECK(status == LAWN_OK);
            FUZZ_CHECK(arena_.allocations() == allocations);
        }
        if (status != LAWN_OK) {
            FUZZ_CHECK(status == LAWN_ERR_NO_MEMORY);
            FUZZ_CHECK(arena_.refusals() != refusals);
            return;
        }
        forget(table, id);
        table->capacity = std::max(table->capacity, nodes);
        // The last tick but one is never, too.
        const lawn_time_t never = LAWN_TIME_INFINITY - 1;
        const lawn_time_t deadline = ttl < never - std::min(seen_, never)
                                         ? seen_ + ttl
                                         : LAWN_TIME_INFINITY;
        table->running[id] = {deadline, ttl, starts_, in_pass_ && ttl == 0};
        by_deadline_.emplace(deadline, starts_);
    }

    void start_one(Table *table, unsigned flags)
    {
        const uint64_t which = id(flags);
        start(table, which, input_.number());
    }

    void start_many(Table *table, unsigned flags)
    {
        const uint64_t first = id(flags);
        const lawn_time_t ttl = input_.number();
        for (unsigned i = input_.byte(); i > 0 && has_more(); --i) {
            start(table, first + i, ttl + (flags & 4 ? i : 0));
        }
    }

    void stop(Table *table, uint64_t id, bool wants_payload)
    {
        void *given = this;
        const lawn_status_t status =
            lawn_keyed_stop(table->keyed, id, wants_payload ? &given : nullptr);
        const auto running = table->running.find(id);
        if (running == table->running.end()) {
            FUZZ_CHECK(status == LAWN_ERR_NO_ELEM);
            FUZZ_CHECK(given == this);
        } else {
            FUZZ_CHECK(status == LAWN_OK);
            FUZZ_CHECK(!wants_payload ||
                       given == payload(running->second.number));
        }
        forget(table, id);
    }

    // The model's stop.
    void forget(Table *table, uint64_t id)
    {
        const auto running = table->running.find(id);
        if (running != table->running.end()) {
            const Start &start = running->second;
            by_deadline_.erase({start.deadline, start.number});
            table->running.erase(running);
        }
    }

    void forget_all(Table *table)
    {
        while (!table->running.empty()) {
            forget(table, table->running.begin()->first);
        }
    }

    lawn_time_t earliest() const
    {
        return by_deadline_.empty() ? LAWN_TIME_INFINITY
                                    : by_deadline_.begin()->first;
    }

    void advance(lawn_time_t time, unsigned budget)
    {
        seen_ += std::min(time, UINT64_MAX - seen_);
        pass_ = std::min(seen_, LAWN_TIME_INFINITY - 2);
        const unsigned before = fired_;
        in_pass_ = true;
        const unsigned fired = lawn_advance(lawn_, seen_, budget);
        in_pass_ = false;
        FUZZ_CHECK(fired == fired_ - before);
        FUZZ_CHECK(budget == 0 || fired <= budget);
        // Moves count, too: then less is fired, and more is left.
        const bool is_ended = budget != 0 && lawn_next(lawn_) == 0;
        for (Table &table : tables_) {
            for (auto &[id, start] : table.running) {
                FUZZ_CHECK(start.deadline > pass_ || start.is_deferred ||
                           is_ended);
                start.is_deferred = false;
            }
        }
    }

    // To the tick at which the next timer is due, or the one before.
    void go_to_next(unsigned flags)
    {
        const lawn_time_t due = earliest() - (flags & 2 ? 1 : 0);
        if (earliest() != LAWN_TIME_INFINITY) {
            advance(due - std::min(due, seen_), flags & 4 ? 1 : 0);
        }
    }

    void drain()
    {
        const size_t running = by_deadline_.size();
        FUZZ_CHECK(lawn_drain(lawn_, nullptr) == running);
        by_deadline_.clear();
        for (Table &table : tables_) {
            table.running.clear();
        }
    }

    // Each payload is handed over once; starts meanwhile stay.
    void clear(Table *table)
    {
        handed_ = 0;
        const size_t running = table->running.size();
        cleared_ = std::move(table->running);
        table->running.clear();
        for (const auto &[id, start] : cleared_) {
            by_deadline_.erase({start.deadline, start.number});
        }
        FUZZ_CHECK(lawn_keyed_clear(table->keyed, on_cleared, table) ==
                   running);
        FUZZ_CHECK(cleared_.empty());
    }

    static void on_cleared(void *arg, uint64_t id, void *given, lawn_time_t now)
    {
        Table *const table = static_cast<Table *>(arg);
        Tables *const all = table->all;
        FUZZ_CHECK(now == lawn_now(all->lawn_));
        const auto cleared = all->cleared_.find(id);
        FUZZ_CHECK(cleared != all->cleared_.end());
        FUZZ_CHECK(given == payload(cleared->second.number));
        all->cleared_.erase(cleared);
        if (++all->handed_ % 8 == 0 && all->has_more()) {
            // This id's node at least is free.
            all->start(table, id, all->input_.number_at_end());
        }
    }

    static void on_shown(void *arg, uint64_t id, void *given,
                         lawn_time_t deadline)
    {
        Table *const table = static_cast<Table *>(arg);
        const auto running = table->running.find(id);
        FUZZ_CHECK(running != table->running.end());
        FUZZ_CHECK(given == payload(running->second.number));
        FUZZ_CHECK(deadline == running->second.deadline);
        FUZZ_CHECK(lawn_keyed_is_active(table->keyed, id));
        FUZZ_CHECK(deadline == lawn_keyed_deadline(table->keyed, id));
        ++table->all->shown_;
    }

    void check_between(bool thoroughly)
    {
        for (Table &table : tables_) {
            FUZZ_CHECK(!has_memory_ ||
                       lawn_keyed_count(table.keyed) == table.running.size());
            if (thoroughly && has_memory_) {
                shown_ = 0;
                lawn_keyed_for_each(table.keyed, on_shown, &table);
                FUZZ_CHECK(shown_ == table.running.size());
            }
        }
        FUZZ_CHECK(lawn_count(lawn_) == by_deadline_.size());
        FUZZ_CHECK(lawn_next(lawn_) <= earliest());
        if (thoroughly) {
            FUZZ_CHECK(lawn_check(lawn_) == LAWN_OK);
        }
    }

    static void on_expired(void *arg, uint64_t id, void *payload,
                           lawn_time_t now)
    {
        Table *const table = static_cast<Table *>(arg);
        table->all->expired(table, id, payload, now);
    }

    void expired(Table *table, uint64_t id, const void *given, lawn_time_t now)
    {
        ++fired_;
        ++work_;
        FUZZ_CHECK(in_pass_ && now == pass_);
        const auto running = table->running.find(id);
        FUZZ_CHECK(running != table->running.end());
        const Start &start = running->second;
        FUZZ_CHECK(given == payload(start.number));
        FUZZ_CHECK(start.deadline <= now && !start.is_deferred);
        const lawn_time_t ttl = start.ttl;
        forget(table, id);
        for (unsigned i = input_.byte_at_end() % 4; i > 0 && has_more(); --i) {
            act(id, ttl);
        }
    }

    void act(uint64_t id, lawn_time_t ttl)
    {
        const unsigned op = input_.byte_at_end();
        Table *const table = &tables_[op % 2];
        const uint64_t other = op & 2 ? id : input_.byte_at_end() % 64;
        if (op & 4) {
            stop(table, other, op & 8);
        } else {
            start(table, other, op & 8 ? ttl : input_.number_at_end());
        }
    }

    Input input_;
    fuzz::Arena arena_;
    lawn_t *lawn_ = nullptr;
    bool has_memory_ = true;
    Table tables_[2];
    std::map<uint64_t, Start> cleared_; // and still to be handed over
    std::set<std::pair<lawn_time_t, uint64_t>> by_deadline_; // and number
    lawn_time_t seen_ = 0;                                   // by the lawn
    lawn_time_t pass_ = 0; // the time of the latest
    bool in_pass_ = false;
    unsigned fired_ = 0;
    size_t handed_ = 0; // over, in a clear
    size_t shown_ = 0;
    unsigned work_ = 0;
    uint64_t starts_ = 0;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Tables(Input(data, size)).run();
    return 0;
}
