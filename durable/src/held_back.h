// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Requests that the store has refused for a moment. The first of a shard is
// sent again after a pause, and the others when it is answered. All requests of
// the shard that come later wait behind them, so that a start that was refused
// does not undo one that came after it.
//
// So while requests are held back, no later one is in a session, and none is
// sent before those that are under way are answered: they may come back, too.
// The same holds when a shard has moved to another server than that of what is
// under way.

#ifndef LAWN_SRC_DURABLE_HELD_BACK_H
#define LAWN_SRC_DURABLE_HELD_BACK_H

#include "src/node.h"
#include "src/routes.h"

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace lawn::durable
{

class HeldBack
{
public:
    // `send` takes a request out of its list, and does not throw.
    HeldBack(Loop &loop, const Routes &routes,
             std::function<void(Request *)> send);

    // Their number may grow.
    void set_shards(unsigned shards);

    // True: the request waits behind others now.
    bool queue_behind(Request *request);
    // False: what is under way at another node may come back, and comes first.
    bool may_go_to(const Request &request, const Node *node);

    // What follows allocates nothing that it cannot do without.

    // `why` is empty if the request was sent to the wrong server, or waits for
    // what is under way at another one. It is then sent without a pause.
    void hold(Request *request, std::string_view why);
    // Holds those that ASK has sent to a server that cannot be reached. The
    // slot may stay where it was, so they begin there again.
    void take_back(RequestSession *session, std::string_view why);
    // The store has done the request, or has refused it for good, or it has run
    // out of time. What waits for that is sent.
    void note_end(const Request &request);
    // Moves those to `to` that are about the same timer as `done`, which came
    // later and was done: to do them now would undo that.
    void take_overtaken(const Request &done, Requests *to);
    void take_all(Requests *to);

private:
    // Of a shard, in the order in which they came.
    struct Queue {
        Queue(Loop &loop, unsigned of_shard, bool is_waiting,
              HeldBack *held_back)
            : shard(of_shard), waits(is_waiting),
              again(loop, [this, held_back] { held_back->release(this); })
        {
        }

        const unsigned shard;
        const bool waits; // for replicas or the disk
        Requests requests;
        Request *first = nullptr; // is sent, and the others wait for its answer
        bool is_well = true;      // the store does not refuse requests
        Timer again;              // when the first, or all, are sent
        // Where requests went last; what is under way is there. Not to be
        // followed: a node with nothing under way may be gone.
        const Node *node = nullptr;
    };

    // Requests of different durabilities have no order. Those that wait for
    // more than the server are apart: one that was refused may have to stay
    // behind a WAIT until that runs out of time, and must not keep the others
    // waiting.
    struct Shard {
        Queue plain;
        Queue waiting;
    };

    Queue &queue_of(const Request &request);
    template <typename Each>
    void for_each_session(const Queue &queue, const Each &each) const;
    void take_queued(Queue *queue);
    bool is_under_way(const Queue &queue) const;
    void release(Queue *queue);

    Loop &loop_;
    const Routes &routes_;
    const std::function<void(Request *)> send_;
    std::vector<std::unique_ptr<Shard>> shards_;
};

} // namespace lawn::durable

#endif
