// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Timers that are overdue in numbers, as after a stall, and have yet to be put
// in order: a calendar (R. Brown, "Calendar Queues", 1988). Each goes to the
// day of its deadline, unsorted; the tree takes a day at a time, and so stays
// small. What is later than the last day waits there, for a calendar with
// longer days.

#ifndef LAWN_SRC_TIMER_CALENDAR_H
#define LAWN_SRC_TIMER_CALENDAR_H

#include "base/ticks.h"
#include "timer/link.h"

namespace lawn
{

class Calendar
{
public:
    void init()
    {
        for (lawn_link_t &day : days_) {
            list_init(&day);
        }
    }

    size_t count() const
    {
        return count_;
    }

    // No deadline in the calendar is earlier.
    lawn_time_t begin() const
    {
        return count_ == 0 ? LAWN_TIME_INFINITY : begin_of(today_);
    }

    // False if it is for the tree: its day is over. An empty calendar begins
    // at `first`, with days as short as it seems to need.
    bool add(lawn_timer_t *timer, lawn_time_t first)
    {
        if (count_ == 0) {
            first = earlier_of(first, timer->deadline);
            lay_out(first, bits_of((timer->deadline - first) / 512));
        }
        if (timer->deadline < begin_of(today_)) {
            return false;
        }
        file(timer);
        ++count_;
        return true;
    }

    void remove(lawn_timer_t *timer)
    {
        list_remove(&timer->link);
        --count_;
    }

    // Some timer of the first day that has one. Not of an empty calendar.
    lawn_timer_t *first()
    {
        while (list_is_empty(&days_[today_])) {
            ++today_;
        }
        return timer_of(days_[today_].next);
    }

    // Ends the day if nothing is left of it.
    bool end_day()
    {
        const bool is_over = list_is_empty(&days_[today_]);
        today_ += is_over;
        return is_over;
    }

    // Once only the last day is left: makes a calendar of it.
    bool lay_out_last_day()
    {
        if (today_ != last_day) {
            return false;
        }
        lawn_link_t rest;
        list_init(&rest);
        while (!list_is_empty(&days_[last_day])) {
            lawn_link_t *const link = days_[last_day].next;
            list_remove(link);
            list_append(&rest, link);
        }
        lay_out(begin_of(last_day), day_bits_ + 5);
        while (!list_is_empty(&rest)) {
            lawn_link_t *const link = rest.next;
            list_remove(link);
            file(timer_of(link));
        }
        return true;
    }

    // Number of timers; SIZE_MAX if one is on a wrong day.
    size_t check() const;

private:
    static constexpr unsigned last_day = 1024;
    static constexpr unsigned most_day_bits = 50;

    static unsigned bits_of(lawn_time_t time)
    {
        return time == 0 ? 0
                         : 64U - static_cast<unsigned>(__builtin_clzll(time));
    }

    lawn_time_t begin_of(unsigned day) const
    {
        return add_saturating(first_, lawn_time_t{day} << day_bits_);
    }

    void lay_out(lawn_time_t first, unsigned day_bits)
    {
        first_ = first;
        day_bits_ = day_bits < most_day_bits ? day_bits : most_day_bits;
        today_ = 0;
    }

    void file(lawn_timer_t *timer)
    {
        const lawn_time_t day = (timer->deadline - first_) >> day_bits_;
        list_append(&days_[earlier_of(day, last_day)], &timer->link);
    }

    size_t count_;
    lawn_time_t first_;
    unsigned day_bits_; // log2 of the ticks in a day
    unsigned today_;
    lawn_link_t days_[last_day + 1];
};

} // namespace lawn

#endif
