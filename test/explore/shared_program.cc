// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the owner and the others do, and what must come of it
// (shared_program.h).

#include "shared_program.h"

#include "outlined.h"
#include "shared_judge.h"
#include "system.h"

#include "shared/box.h"

#include <algorithm>

using namespace explore;
using namespace explore::shared;

namespace
{

constexpr size_t note_size = 8;
constexpr lawn_time_t latest = 100; // later than all deadlines

class SharedProgram final : public Program
{
public:
    explicit SharedProgram(const SharedScenario &scenario) : scenario_(scenario)
    {
        unsigned id = 0;
        const auto number = [&](Ops *ops) {
            for (Op &op : *ops) {
                op.id = ++id;
                if (op.what == Op::start || op.what == Op::local) {
                    times_.push_back(op.time);
                }
            }
        };
        number(&scenario_.before);
        for (Ops &ops : scenario_.threads) {
            number(&ops);
        }
        number(&scenario_.on_call);
        times_.push_back(latest);
        std::sort(times_.begin(), times_.end());
    }

    void set_up() override
    {
        lawn_params_t params = {};
        params.allocator.alloc = allocate;
        params.allocator.release = release;
        require(lawn_create(&params, &lawn_) == LAWN_OK);
        require(lawn_box_create(lawn_, &box_) == LAWN_OK);
        lawn_box_on_wake(box_, on_wake, nullptr);
        for (unsigned i = 0; i < scenario_.timers; ++i) {
            timers_[i] = static_cast<lawn_shared_t *>(
                explorer().memory().allocate(sizeof(lawn_shared_t)));
            lawn_shared_init(timers_[i], box_, on_call);
            notes_[i] = explorer().memory().allocate(note_size);
        }
    }

    void begin() override
    {
        the_program = this;
        judge_.begin(box_, timers_, scenario_.timers);
        box_frees_ = 0;
        has_begun_ = false;
        is_woken_ = false;
        begun_ = {};
        ended_ = {};
        ended_count_ = 0;
        bell_ = {};
        for (unsigned i = 0; i < scenario_.threads.size(); ++i) {
            at_[i] = 0;
            explorer().add_thread([this, i] { run(i); });
        }
    }

    void end() override
    {
        explorer().expect(lawn_check(lawn_) == LAWN_OK, "lawn_check() fails");
    }

    uint64_t hash() const override
    {
        uint64_t hash =
            mix(judge_.hash(), box_frees_ * 4 + has_begun_ * 2U + is_woken_);
        for (unsigned i = 0; i < scenario_.threads.size(); ++i) {
            hash = mix(hash, at_[i]);
        }
        return hash;
    }

    void on_store(const void *at, uint64_t value) override
    {
        judge_.on_store(explorer().current(), at, value);
    }

    bool is_misuse() const override
    {
        return judge_.is_misuse(explorer().current());
    }

private:
    static void *allocate(void *, size_t size)
    {
        return explorer().memory().allocate(size);
    }

    static void release(void *, void *memory)
    {
        the_program->box_frees_ += memory == the_program->box_;
        explorer().memory().release(memory);
    }

    static unsigned index_of(const lawn_shared_t *timer)
    {
        unsigned i = 0;
        while (the_program->timers_[i] != timer) {
            ++i;
        }
        return i;
    }

    static void on_call(lawn_shared_t *timer, lawn_time_t now)
    {
        SharedProgram &self = *the_program;
        const unsigned i = index_of(timer);
        const bool is_first = self.judge_.begin_call(i, now);
        explorer().write(self.notes_[i], note_size, nullptr);
        explorer().step("the callback");
        if (is_first && i == 0) {
            for (const Op &op : self.scenario_.on_call) {
                self.act(op);
            }
        }
    }

    static void on_release(lawn_shared_t *timer, lawn_time_t)
    {
        explorer().step("is released");
        the_program->judge_.release(explorer().current(), index_of(timer));
        explorer().memory().release(timer);
    }

    static void on_wake(void *)
    {
        SharedProgram &self = *the_program;
        self.judge_.wake();
        explorer().step("wakes");
        self.judge_.expect_not_destroyed();
        self.is_woken_ = true;
        explorer().memory().publish(explorer().current(), &self.bell_);
    }

    bool is_alone() const
    {
        return ended_count_ + 1 == scenario_.threads.size();
    }

    void run(unsigned thread)
    {
        const unsigned owner = 0;
        if (thread == owner) {
            act_all(owner, scenario_.before);
            explorer().memory().publish(owner, &begun_);
            has_begun_ = true;
        } else {
            explorer().wait("the owner", [this] { return has_begun_; });
            explorer().memory().learn(thread, begun_);
        }
        act_all(thread, scenario_.threads[thread]);
        if (thread != owner) {
            explorer().memory().publish(thread, &ended_);
            ++ended_count_;
            return;
        }
        explorer().wait("the others", [this] { return is_alone(); });
        explorer().memory().learn(owner, ended_);
        finish();
    }

    void act_all(unsigned thread, const Ops &ops)
    {
        for (const Op &op : ops) {
            act_once(op);
            ++at_[thread];
        }
    }

    void act(const Op &op)
    {
        const unsigned thread = explorer().current();
        Frame frame = {};
        judge_.begin_op(thread, op, &frame);
        judge_.end_op(thread, op, frame, call(op, &frame));
    }

    bool call(const Op &op, Frame *frame)
    {
        lawn_shared_t *const timer = timers_[op.timer];
        switch (op.what) {
        case Op::start:
            return lawn_shared_start(timer, op.time);
        case Op::local:
            return outlined::start_local(timer, op.time);
        case Op::stop:
            return lawn_shared_stop(timer);
        case Op::sync:
            lawn_shared_sync(timer);
            // No callback begins meanwhile: nobody else starts the timer.
            if (scenario_.on_call.empty() && scenario_.threads.size() == 2) {
                explorer().read(notes_[op.timer], note_size, nullptr);
            }
            return true;
        case Op::retire:
            lawn_shared_retire(timer, on_release);
            return true;
        case Op::pass:
            lawn_box_drain(box_, op.time, op.budget);
            frame->advances = true;
            outlined::advance(lawn_, op.time, op.budget);
            return true;
        case Op::drain:
            lawn_box_drain(box_, op.time, op.budget);
            return true;
        case Op::advance:
            frame->advances = true;
            outlined::advance(lawn_, op.time, op.budget);
            return true;
        case Op::sleep:
        case Op::doze:
            sleep(op);
            return true;
        case Op::empty:
            lawn_drain(lawn_, nullptr);
            return true;
        case Op::destroy:
            lawn_box_destroy(box_);
            return true;
        }
        abort();
    }

    void sleep(const Op &op)
    {
        const lawn_time_t until = std::min(op.time, lawn_next(lawn_));
        if (!lawn_box_sleep(box_, until)) {
            return;
        }
        judge_.sleep();
        is_woken_ = false;
        if (op.what == Op::doze || until <= lawn_now(lawn_)) {
            return; // it wakes by itself
        }
        explorer().wait("sleeps", [this] { return is_woken_ || is_alone(); });
        if (is_woken_) {
            explorer().memory().learn(explorer().current(), bell_);
        } else {
            judge_.expect_nothing_before(until);
        }
    }

    // The owner is alone. All that was started is called, in time, and all is
    // released.
    void finish()
    {
        for (const lawn_time_t time : times_) {
            if (judge_.is_destroyed()) {
                break;
            }
            act_once({Op::pass, 0, time, 0, 0});
            // Again for what a callback has started at a time that was past.
            act_once({Op::pass, 0, time, 0, 0});
            judge_.expect_nothing_before(time + 1);
            judge_.expect_rest();
        }
        judge_.expect_nothing_before(LAWN_TIME_INFINITY);
        for (unsigned i = 0; i < scenario_.timers; ++i) {
            if (!judge_.is_retired(i)) {
                act_once({Op::retire, i, 0, 0, 0});
            }
        }
        if (!judge_.is_destroyed()) {
            act_once({Op::drain, 0, lawn_now(lawn_), 0, 0});
            act_once({Op::destroy, 0, 0, 0, 0});
        }
        judge_.expect_all_released();
        explorer().expect(box_frees_ == 1, "the box is left");
    }

    void act_once(const Op &op)
    {
        act(op);
        explorer().end_operation(0);
    }

    static SharedProgram *the_program;

    SharedScenario scenario_;
    std::vector<lawn_time_t> times_; // of all deadlines, ascending
    Judge judge_;
    lawn_t *lawn_ = nullptr;
    lawn_box_t *box_ = nullptr;
    lawn_shared_t *timers_[most_timers] = {};
    void *notes_[most_timers] = {}; // that callbacks write
    unsigned at_[most_threads] = {};
    unsigned box_frees_ = 0;
    bool has_begun_ = false;
    bool is_woken_ = false;
    View begun_; // what the others begin with
    View ended_; // and what they leave
    View bell_;  // of those who have woken the owner
    unsigned ended_count_ = 0;
};

SharedProgram *SharedProgram::the_program;

} // namespace

std::unique_ptr<Program>
explore::shared::make_program(const SharedScenario &scenario)
{
    return std::make_unique<SharedProgram>(scenario);
}
