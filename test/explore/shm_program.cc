// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the owner and its clients do, and what must come of it (shm_program.h).

#include "shm_program.h"

#include "system.h"

#include "engine/inside.h"
#include "shm/layout.h"

#include <lawn/shm.h>

using namespace explore;
using namespace explore::shm;

namespace
{

constexpr unsigned most_timers = 2;
constexpr pid_t owner_pid = 100;
const lawn_time_t goes_on_for = lawn_time_from_sec(20);

class ShmProgram final : public Program
{
public:
    explicit ShmProgram(const ShmScenario &scenario) : scenario_(scenario)
    {
    }

    void set_up() override
    {
        use_one_processor(false);
        explorer().on_death([this](unsigned thread) {
            end_process(thread);
            if (scenario_.has(pid_is_used_again)) {
                use_pid_again(pid_of(0));
            }
        });
        be_process(owner_pid);
        lawn_engine_params_t params = {};
        params.lawn.allocator = allocator();
        require(lawn_engine_create(&params, &engine_) == LAWN_OK);
        lawn_shm_params_t sizes = {};
        sizes.timers = scenario_.has(one_timer) ? 1 : most_timers;
        sizes.clients = scenario_.has(one_place)     ? 1
                        : scenario_.has(four_places) ? 4
                                                     : 2;
        sizes.expired = scenario_.has(goes_on) ? on_expired : nullptr;
        sizes.arg = this;
        require(lawn_shm_create(engine_, "/shm", &sizes, &shm_) == LAWN_OK);
        for (unsigned i = 0; i < scenario_.clients.size(); ++i) {
            be_process(pid_of(i));
            if (scenario_.has(are_threads) && i != 0) {
                clients_[i] = clients_[0];
            } else if (is_open_at_first(i)) {
                require(lawn_shm_open("/shm", nullptr, nullptr, &clients_[i]) ==
                        LAWN_OK);
            }
        }
        first_id_ = is_open_at_first(0) ? lawn_shm_id(clients_[0]) : 0;
        be_process(owner_pid);
        lawn_engine_progress(engine_);
    }

    void begin() override
    {
        releases_ = 0;
        handed_over_ = {};
        owner_is_gone_ = false;
        went_on_ = 0;
        passed_at_ = now();
        steps_back_ = known_steps_ = 0;
        for (unsigned i = 0; i < scenario_.clients.size(); ++i) {
            at_[i] = 0;
            is_open_[i] = is_open_at_first(i);
            for (Timer &timer : timers_[i]) {
                timer = {};
            }
            const bool may_die = i == 0 && scenario_.has(is_killed);
            const unsigned thread = explorer().add_thread(
                [this, i] { run(i); },
                may_die ? Explorer::End::killed : Explorer::End::itself);
            put_into_process(thread, pid_of(i));
            ended_[i] = false;
        }
        const unsigned thread = explorer().add_thread(
            [this] { run_owner(); }, scenario_.has(owner_closes)
                                         ? Explorer::End::itself
                                         : Explorer::End::never);
        put_into_process(thread, owner_pid);
    }

    // The owner sleeps. A client that was killed while it opened is found in a
    // later pass.
    void end() override
    {
        if (scenario_.has(owner_closes)) {
            explorer().expect(fifo_count() == 0, "a FIFO is left");
            return;
        }
        if (!scenario_.has(is_killed)) {
            expect_heard();
        }
        // Its thread is never to wake, and this one takes its place.
        lawn::leave_usage(&engine_->usage);
        for (unsigned i = 0; i < 3; ++i) {
            pass_time(lawn_time_from_msec(2));
            lawn_engine_progress(engine_);
        }
        lawn_shm_stats_t stats;
        lawn_shm_query(shm_, &stats);
        unsigned clients = 0;
        unsigned timers = 0;
        unsigned deaths = 0;
        const size_t count =
            scenario_.has(are_threads) ? 1 : scenario_.clients.size();
        for (unsigned i = 0; i < count; ++i) {
            const bool is_open = ended_[i] && is_open_[i];
            clients += is_open;
            deaths += !ended_[i];
            for (const Timer &timer : timers_[i]) {
                timers += is_open && timer.number != 0;
            }
        }
        // One that has not said when it was born is taken for the other process
        // of its number. When that ends, it is found.
        const bool is_taken_for_another = scenario_.has(pid_is_used_again) &&
                                          !ended_[0] && !is_open_[0] &&
                                          memory().client(1).birth == 0;
        explorer().expect(is_taken_for_another || stats.clients == clients,
                          "clients at the end");
        // Who has released a timer need not have looked since.
        explorer().expect(stats.timers >= timers &&
                              stats.timers <= timers + releases_,
                          "timers at the end");
        explorer().expect(stats.deaths <= deaths, "deaths");
        explorer().expect(lawn_count(lawn_engine_lawn(engine_)) == 0,
                          "a timer is pending at the end");
        explorer().expect(!scenario_.has(owner_drains) ||
                              memory().slot(1).deadline == LAWN_TIME_INFINITY,
                          "a start that nobody has ended");
        expect_clean();
    }

    uint64_t hash() const override
    {
        uint64_t hash = hash_of_system();
        for (unsigned i = 0; i < scenario_.clients.size(); ++i) {
            hash = mix(hash, at_[i] * 4 + is_open_[i] * 2 + ended_[i]);
            for (const Timer &timer : timers_[i]) {
                hash = mix(hash, timer.number);
                hash = mix(hash, timer.is_stopped ? 0 : timer.due);
                hash = mix(hash, timer.earlier);
                hash = mix(hash, timer.events);
            }
        }
        return mix(mix(hash, went_on_ * 4 + steps_back_ * 2 + known_steps_),
                   passed_at_);
    }

private:
    // What is free is as it was at first.
    static void expect_clean()
    {
        for (unsigned i = 1; i <= memory().slot_count; ++i) {
            const lawn::shm::Slot &slot = memory().slot(i);
            explorer().expect(slot.client != 0 ||
                                  (slot.deadline == LAWN_TIME_INFINITY &&
                                   slot.cover == LAWN_TIME_INFINITY &&
                                   slot.expired == LAWN_TIME_INFINITY &&
                                   slot.flags == 0),
                              "a free timer has been used");
        }
        for (unsigned i = 1; i <= memory().client_count; ++i) {
            const lawn::shm::Client &client = memory().client(i);
            explorer().expect(client.pid != 0 ||
                                  (client.fired == 0 && client.birth == 0 &&
                                   client.is_closed == 0),
                              "a free place has been used");
        }
    }

    // The owner was woken for each release and each close.
    void expect_heard() const
    {
        explorer().expect(releases_ == 0 || (memory().header->messages &
                                             ~lawn::shm::asleep) == 0,
                          "a message at the end");
        for (unsigned i = 1; i <= memory().client_count; ++i) {
            explorer().expect(memory().client(i).is_closed == 0,
                              "a client that has closed at the end");
        }
    }

    struct Timer {
        lawn_shm_timer_t number;
        lawn_time_t due;     // of the latest start
        lawn_time_t earlier; // and of the one before
        bool is_stopped;     // in time: no event of it is to come
        unsigned events;     // of it
        unsigned starts;
    };

    pid_t pid_of(unsigned client) const
    {
        return scenario_.has(are_threads)
                   ? owner_pid + 1
                   : static_cast<pid_t>(owner_pid + 1 + client);
    }

    bool is_open_at_first(unsigned client) const
    {
        return !scenario_.has(opens) &&
               (client == 0 || !scenario_.has(one_place));
    }

    static lawn::shm::Memory memory()
    {
        auto *const header = static_cast<lawn::shm::Header *>(shared_file());
        return {header, 0, header->slot_count, header->client_count};
    }

    static bool has_events(const lawn_shm_client_t *client)
    {
        const auto number = static_cast<uint32_t>(lawn_shm_id(client));
        return memory().client(number).fired != 0;
    }

    static bool has_place()
    {
        return memory().client(1).pid == 0 || memory().client_count > 1;
    }

    void run_owner()
    {
        if (scenario_.has(owner_closes)) {
            lawn_engine_progress(engine_);
            lawn_shm_destroy(shm_);
            owner_is_gone_ = true;
            return;
        }
        if (scenario_.has(owner_drains)) {
            lawn_engine_progress(engine_);
            lawn_drain(lawn_engine_lawn(engine_), nullptr);
        }
        for (;;) {
            const unsigned steps = steps_back_;
            const unsigned work = lawn_engine_progress(engine_);
            passed_at_ = now();
            known_steps_ = steps;
            if (work == 0 &&
                lawn_engine_wait(engine_, LAWN_TIME_INFINITY) == LAWN_OK) {
                pass_time(lawn_time_from_msec(1)); // or it spins at one time
            }
        }
    }

    // Once for each timer.
    static lawn_time_t on_expired(void *arg, lawn_shm_timer_t timer, uint64_t,
                                  lawn_time_t deadline, lawn_time_t)
    {
        unsigned &went_on = static_cast<ShmProgram *>(arg)->went_on_;
        const unsigned bit = 1U << timer;
        if ((went_on & bit) != 0) {
            return LAWN_TIME_INFINITY;
        }
        went_on |= bit;
        return deadline + goes_on_for;
    }

    void run(unsigned i)
    {
        for (const Op &op : scenario_.clients[i]) {
            explorer().end_operation(act(i, op));
            ++at_[i];
        }
        explorer().step("ends");
        ended_[i] = true;
    }

    // Threads of one client start the same timers.
    unsigned client_of(unsigned thread) const
    {
        return scenario_.has(are_threads) ? 0 : thread;
    }

    uint64_t act(unsigned i, const Op &op)
    {
        lawn_shm_client_t *const client = clients_[i];
        Timer &timer = timers_[client_of(i)][op.timer];
        const lawn_time_t ticks =
            lawn_time_from_sec(static_cast<double>(op.ttl));
        if (op.what != Op::open && !is_open_[i]) {
            return 0;
        }
        switch (op.what) {
        case Op::open: {
            explorer().wait("a place", has_place);
            const lawn_status_t status =
                lawn_shm_open("/shm", nullptr, nullptr, &clients_[i]);
            explorer().expect(
                status == LAWN_OK ||
                    (status == LAWN_ERR_NO_ELEM && scenario_.has(owner_closes)),
                "a client cannot open");
            is_open_[i] = status == LAWN_OK;
            explorer().expect(!is_open_[i] || scenario_.has(owner_closes) ||
                                  lawn_shm_is_open(clients_[i], 0),
                              "the owner is gone");
            explorer().expect(
                !is_open_[i] ||
                    lawn_shm_is_open(clients_[i], lawn_shm_id(clients_[i])),
                "an id of nobody");
            explorer().expect(!is_open_[i] ||
                                  lawn_shm_id(clients_[i]) != first_id_,
                              "an id that was another's");
            break;
        }
        case Op::close:
            lawn_shm_close(client);
            is_open_[i] = false;
            break;
        case Op::alloc_again:
            while (lawn_shm_alloc(client, 7 + op.timer, &timer.number) !=
                   LAWN_OK) {
                explorer().end_operation(0);
                explorer().wait("a free timer", [client] {
                    return memory().slot(1).client == 0 || has_events(client);
                });
                take_all(i);
            }
            break;
        case Op::alloc:
            explorer().expect(
                lawn_shm_alloc(client, 7 + op.timer, &timer.number) == LAWN_OK,
                "no timer is free");
            explorer().memory().publish(explorer().current(), &handed_over_);
            break;
        case Op::start:
            start(client, &timer, now() + ticks);
            break;
        case Op::stop:
            explorer().expect(timer.starts != 0 ||
                                  !lawn_shm_stop(client, timer.number),
                              "stops what was not started");
            // One that comes too late finds an event.
            if (lawn_shm_stop(client, timer.number)) {
                explorer().expect(timer.events == 0, "stopped, and expired");
                timer.is_stopped = true;
            }
            break;
        case Op::release_in_start:
            explorer().wait("a start", [this, &timer] {
                return timer.number != 0 && is_pending(timer);
            });
            explorer().memory().learn(explorer().current(), handed_over_);
            [[fallthrough]];
        case Op::release:
            lawn_shm_release(client, timer.number);
            timer = {};
            ++releases_;
            break;
        case Op::wait:
            wait(i);
            break;
        case Op::step_back:
            explore::step_back(ticks);
            ++steps_back_;
            break;
        case Op::pass:
            pass_time(ticks);
            break;
        case Op::read:
            expect_time(client);
            break;
        }
        return timer.number;
    }

    // It is not ahead, nor much before the owner's latest pass. When the owner
    // has passed since the counter went back, it is what it was.
    void expect_time(const lawn_shm_client_t *client)
    {
        const lawn_time_t least =
            known_steps_ == steps_back_ ? now() : passed_at_;
        const lawn_time_t time = lawn_shm_time(client);
        explorer().expect(time <= now(), "the time runs ahead");
        explorer().expect(time + lawn_time_from_msec(3) >= least,
                          "the time goes back");
    }

    void start(lawn_shm_client_t *client, Timer *timer, lawn_time_t due)
    {
        if (timer->number == 0) {
            explorer().wait("a timer", [timer] { return timer->number != 0; });
            explorer().memory().learn(explorer().current(), handed_over_);
        }
        // Of a time of its own, as an event is known by its deadline.
        timer->earlier = timer->due;
        timer->due = due + ++timer->starts;
        timer->is_stopped = false;
        timer->events = 0;
        const bool was_gone = owner_is_gone_;
        if (!lawn_shm_start(client, timer->number, timer->due)) {
            explorer().expect(scenario_.has(owner_closes),
                              "a start is refused");
            timer->is_stopped = true;
        } else {
            explorer().expect(!was_gone, "a start that nobody will see");
        }
    }

    // Of two threads' starts, the later one counts, whichever that is.
    bool is_pending(const Timer &timer) const
    {
        return memory().slot(timer.number).deadline != LAWN_TIME_INFINITY;
    }

    bool is_awaited(unsigned i) const
    {
        if (scenario_.has(are_threads)) {
            const Timer &timer = timers_[0][0];
            return timer.events == 0 || is_pending(timer);
        }
        for (const Timer &timer : timers_[i]) {
            if (timer.due != 0 && !timer.is_stopped && timer.events == 0) {
                return true;
            }
        }
        return false;
    }

    // Until everything has come.
    void wait(unsigned i)
    {
        if (scenario_.has(are_threads)) {
            explorer().wait("the other thread", [this] { return ended_[1]; });
        }
        for (;;) {
            take_all(i);
            if (!is_awaited(i)) {
                return;
            }
            explorer().end_operation(0);
            const lawn_status_t status =
                lawn_shm_wait(clients_[i], LAWN_TIME_INFINITY);
            if (status == LAWN_ERR_NO_ELEM && scenario_.has(owner_closes)) {
                return;
            }
            explorer().expect(status == LAWN_OK, "the owner is gone");
        }
    }

    void take_all(unsigned i)
    {
        lawn_shm_event_t event;
        while (lawn_shm_next(clients_[i], &event)) {
            Timer *found = nullptr;
            for (Timer &timer : timers_[i]) {
                found = timer.number == event.timer ? &timer : found;
            }
            explorer().expect(found != nullptr, "an event of no timer");
            explorer().expect(event.cookie ==
                                  7 + static_cast<unsigned>(found - timers_[i]),
                              "another cookie");
            expect_in_time(event.deadline, lawn_time_from_sec(1) - 1);
            if (scenario_.has(are_threads)) {
                explorer().expect(event.deadline == found->due ||
                                      event.deadline == found->earlier,
                                  "an event of no start");
                ++found->events;
                continue;
            }
            const bool went_on = scenario_.has(goes_on) &&
                                 event.deadline == found->due + goes_on_for;
            // One of an earlier start was replaced too late.
            explorer().expect(went_on || event.deadline <= found->due,
                              "an event of another start");
            if (went_on || event.deadline == found->due) {
                ++found->events;
                explorer().expect(found->events == 1, "an event came twice");
                explorer().expect(!found->is_stopped, "stopped, and expired");
            }
            explorer().end_operation(event.timer);
        }
    }

    const ShmScenario &scenario_;
    lawn_engine_t *engine_ = nullptr;
    lawn_shm_t *shm_ = nullptr;
    lawn_shm_client_t *clients_[2] = {};
    Timer timers_[2][most_timers] = {};
    unsigned at_[2] = {};
    bool ended_[2] = {};
    uint64_t first_id_ = 0; // of client 0, if it is open at first
    unsigned releases_ = 0;
    unsigned went_on_ = 0;      // timers, as bits
    lawn_time_t passed_at_ = 0; // the end of the owner's latest pass
    unsigned steps_back_ = 0;
    unsigned known_steps_ = 0; // to that pass
    View handed_over_;         // with the number of a timer, to another thread
    bool owner_is_gone_ = false;
    bool is_open_[2] = {};
};

} // namespace

std::unique_ptr<Program> explore::shm::make_program(const ShmScenario &scenario)
{
    return std::make_unique<ShmProgram>(scenario);
}
