// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Requests that wait until the store takes them (held_back.h).

#include "src/held_back.h"

#include "src/guard.h"

#include <algorithm>
#include <utility>

namespace lawn::durable
{

namespace
{

constexpr uint64_t first_pause_us = 5000;
constexpr uint64_t longest_pause_us = 200000;

} // namespace

HeldBack::HeldBack(Loop &loop, const Routes &routes,
                   std::function<void(Request *)> send)
    : loop_(loop), routes_(routes), send_(std::move(send))
{
}

void HeldBack::set_shards(unsigned shards)
{
    for (unsigned i = static_cast<unsigned>(shards_.size()); i < shards; ++i) {
        shards_.push_back(std::unique_ptr<Shard>(
            new Shard{{loop_, i, false, this}, {loop_, i, true, this}}));
    }
}

bool HeldBack::queue_behind(Request *request)
{
    Queue &queue = queue_of(*request);
    const bool waits =
        queue.first ? queue.first != request : !queue.requests.empty();
    if (waits) {
        insert_in_order(request, &queue.requests);
    }
    return waits;
}

bool HeldBack::may_go_to(const Request &request, const Node *node)
{
    Queue &queue = queue_of(request);
    if (node != queue.node && is_under_way(queue)) {
        return false;
    }
    queue.node = node;
    return true;
}

void HeldBack::hold(Request *request, std::string_view why)
{
    Queue &queue = queue_of(*request);
    if (!attempt([&] { request->error = line_of(why); })) {
        request->error = no_memory;
    }
    if (!why.empty()) {
        request->pause_us =
            std::clamp(2 * request->pause_us, first_pause_us, longest_pause_us);
    }
    if (queue.first == request) {
        queue.first = nullptr;
    }
    const bool is_alone = !queue.first && queue.requests.empty();
    queue.is_well = why.empty() && (queue.is_well || is_alone);
    if (is_alone) {
        take_queued(&queue);
    }
    // If it is alone, the timer may run for requests that are held no longer.
    if (is_alone || (!queue.first && !queue.again.is_active())) {
        queue.again.start_after(why.empty() ? 0 : request->pause_us);
    }
    insert_in_order(request, &queue.requests);
}

HeldBack::Queue &HeldBack::queue_of(const Request &request)
{
    Shard &shard = *shards_[request.shard];
    return request.call.durability == LAWN_DURABLE_ASYNC ? shard.plain
                                                         : shard.waiting;
}

template <typename Each>
void HeldBack::for_each_session(const Queue &queue, const Each &each) const
{
    routes_.for_each_node([&](Node &node) {
        node.for_each_session([&](RequestSession &session) {
            if (session.waits() == queue.waits) {
                each(session);
            }
        });
    });
}

void HeldBack::take_queued(Queue *queue)
{
    for_each_session(*queue, [queue](RequestSession &session) {
        for (auto i = session.queued.begin(); i != session.queued.end();) {
            Request &request = *i++;
            if (request.shard == queue->shard && !request.is_asking) {
                insert_in_order(&request, &queue->requests);
            }
        }
    });
}

// One that was redirected by ASK is under way as soon as it is queued, for its
// server is not the one where later ones are queued.
bool HeldBack::is_under_way(const Queue &queue) const
{
    bool result = false;
    for_each_session(queue, [&](const RequestSession &session) {
        result |= std::any_of(
            session.sent.begin(), session.sent.end(),
            [&queue](const Request &i) { return i.shard == queue.shard; });
        result |= std::any_of(session.queued.begin(), session.queued.end(),
                              [&queue](const Request &i) {
                                  return i.shard == queue.shard && i.is_asking;
                              });
    });
    return result;
}

void HeldBack::take_back(RequestSession *session, std::string_view why)
{
    Requests asking;
    for (auto i = session->queued.begin(); i != session->queued.end();) {
        Request &request = *i++;
        if (request.is_asking) {
            request.is_asking = false;
            move_request(&request, &asking);
        }
    }
    while (!asking.empty()) {
        hold(&asking.front(), why);
    }
}

void HeldBack::release(Queue *queue)
{
    if (queue->requests.empty()) {
        return; // they have run out of time
    }
    // Those that are under way may be refused, too, and come before others.
    if (is_under_way(*queue)) {
        queue->again.start_after(first_pause_us);
        return;
    }
    Requests requests;
    if (queue->is_well) {
        take_requests(&queue->requests, &requests);
    } else {
        queue->first = &queue->requests.front();
        move_request(queue->first, &requests);
    }
    while (!requests.empty()) {
        send_(&requests.front());
    }
}

void HeldBack::note_end(const Request &request)
{
    Queue *const queue =
        request.shard < shards_.size() ? &queue_of(request) : nullptr;
    if (queue && queue->first == &request) {
        queue->first = nullptr;
        queue->is_well = true;
        queue->again.start_after(0);
    }
}

void HeldBack::take_overtaken(const Request &done, Requests *to)
{
    if (done.call.reads_only || done.call.id.empty()) {
        return;
    }
    Shard &shard = *shards_[done.shard];
    for (Requests *held : {&shard.plain.requests, &shard.waiting.requests}) {
        for (auto i = held->begin();
             i != held->end() && i->number < done.number;) {
            Request &request = *i++;
            if (!request.call.reads_only && request.call.id == done.call.id) {
                move_request(&request, to);
            }
        }
    }
}

void HeldBack::take_all(Requests *to)
{
    for (const std::unique_ptr<Shard> &shard : shards_) {
        take_requests(&shard->plain.requests, to);
        take_requests(&shard->waiting.requests, to);
    }
}

} // namespace lawn::durable
