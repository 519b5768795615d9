// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The floor; see floor.h.

#include "floor.h"

namespace bench
{

namespace
{

constexpr size_t ahead = 16; // nodes that are asked for beforehand

// Of each advance that fires something: how many advances after the one before,
// and how many nodes. The last entry has no nodes and stands for the last
// advance of all. Then the numbers of all nodes.
class Log
{
public:
    struct Entry {
        uint32_t gap;
        uint32_t count;
    };

    void clear()
    {
        entries_.clear();
        nodes_.clear();
        gap_ = 0;
    }

    // One advance.
    template <class IndexOf> void add(IndexOf &&index_of)
    {
        ++gap_;
        if (!expired.empty()) {
            add_entry(expired.size());
            for (const void *node : expired) {
                nodes_.push_back(static_cast<uint32_t>(index_of(node)));
            }
        }
    }

    void close()
    {
        if (gap_ != 0) {
            add_entry(0);
        }
        nodes_.resize(nodes_.size() + ahead);
    }

    const std::vector<Entry> &entries() const
    {
        return entries_;
    }

    // And some more, to be looked at and not touched.
    const std::vector<uint32_t> &nodes() const
    {
        return nodes_;
    }

private:
    void add_entry(size_t count)
    {
        entries_.push_back({gap_, static_cast<uint32_t>(count)});
        gap_ = 0;
    }

    std::vector<Entry> entries_;
    std::vector<uint32_t> nodes_;
    uint32_t gap_ = 0; // advances since the last entry
};

Log log_of_lawn;
char *first_node; // of those in use

class Floor
{
public:
    static constexpr Traits traits{
        "floor",
        "no scheme: the memory traffic of the nodes alone",
        /* rounds_to_tick */ false,
        /* may_be_early */ false,
        /* any_order */ true,
        /* bounded_ttl */ false,
    };

    struct Node {
        Time deadline = 0; // 0: idle
        uint64_t uses = 0;
    };

    explicit Floor(const Config &)
        : entry_(log_of_lawn.entries().data()),
          end_(entry_ + log_of_lawn.entries().size()),
          node_(log_of_lawn.nodes().data())
    {
        read_gap();
    }

    void start(Node &node, Time now, Time ttl)
    {
        ++node.uses;
        node.deadline = now + ttl;
    }

    bool stop(Node &node)
    {
        const bool was_running = node.deadline != 0;
        ++node.uses;
        node.deadline = 0;
        return was_running;
    }

    template <class Fired>
    unsigned advance(Time now, unsigned, const Fired &fired)
    {
        // An idle poll is to cost no more than this.
        return --gap_ != 0 ? 0 : fire(now, fired);
    }

    bool is_over() const
    {
        return gap_ == 0;
    }

private:
    static Node &at(uint32_t index)
    {
        return reinterpret_cast<Object<Node> *>(first_node)[index].node;
    }

    template <class Fired>
    [[gnu::noinline]] unsigned fire(Time now, const Fired &fired)
    {
        const unsigned count = entry_++->count;
        for (const uint32_t *const last = node_ + count; node_ != last;
             ++node_) {
            __builtin_prefetch(&at(node_[ahead]), 1);
            Node &node = at(*node_);
            ++node.uses;
            node.deadline = 0;
            fired(node, now);
        }
        read_gap();
        return count;
    }

    void read_gap()
    {
        gap_ = entry_ != end_ ? entry_->gap : 0;
    }

    const Log::Entry *entry_;
    const Log::Entry *end_;
    const uint32_t *node_; // the next that fires
    uint64_t gap_;         // advances until then; 0: there is none
};

// Lawn, whose advances go into the log.
Contender recorder()
{
    static const Contender inner = lawn();
    Contender c = inner;
    c.is_floor = true;
    c.create = [](const Config &config) {
        log_of_lawn.clear();
        return inner.create(config);
    };
    c.make_nodes = [](void *memory, size_t count) {
        inner.make_nodes(memory, count);
        first_node = static_cast<char *>(memory);
    };
    c.advance = [](void *scheme, Time now, unsigned budget) {
        const unsigned count = inner.advance(scheme, now, budget);
        log_of_lawn.add([](const void *node) {
            return static_cast<size_t>(static_cast<const char *>(node) -
                                       first_node) /
                   inner.node_size;
        });
        return count;
    };
    return c;
}

} // namespace

Contender memory_floor()
{
    Contender c = contender_of<Floor>();
    c.is_floor = true;
    c.make_nodes = [](void *memory, size_t count) {
        make_objects<Floor::Node>(memory, count);
        first_node = static_cast<char *>(memory);
    };
    c.is_over = [](void *scheme) {
        return static_cast<Floor *>(scheme)->is_over();
    };
    c.has_more = [](void *scheme, Time) {
        return !static_cast<Floor *>(scheme)->is_over();
    };
    return c;
}

Result
run_on_floor(const std::function<Result(const Contender &, const Load &)> &run,
             const Load &load)
{
    constexpr double longer = 4;
    Load recorded = load;
    recorded.limit_sec *= longer;
    const Result with_lawn = run(recorder(), recorded);
    if (!with_lawn) {
        return with_lawn;
    }
    log_of_lawn.close();
    return run(memory_floor(), load);
}

} // namespace bench
