// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Leases that are lost: a program answers late or never, on virtual time.

#include "scripted_store.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

using namespace lawn_test;

namespace
{

constexpr uint64_t sec = 1000000;
constexpr uint64_t lease = 30 * sec;

class DurableLease : public testing::Test
{
protected:
    using Delivery = const lawn_durable_delivery_t *;

    ~DurableLease() override
    {
        lawn_durable_close(store->client());
    }

    void open(bool is_told = true, unsigned max_in_flight = 0)
    {
        lawn_durable_consume_t params = {};
        params.name = "c";
        params.lease_us = lease;
        params.max_in_flight = max_in_flight;
        params.lost = is_told ? on_lost : nullptr;
        ASSERT_EQ(lawn_durable_consume(store->client(), &params, on_delivery,
                                       this, &consumer),
                  LAWN_OK);
        store->run_for(5 * sec); // leases end between two looks at them
    }

    void answer(Delivery delivery)
    {
        EXPECT_EQ(lawn_durable_answer(consumer, delivery, LAWN_DURABLE_DONE, 0,
                                      nullptr, on_answered, this),
                  LAWN_OK);
    }

    size_t in_flight() const
    {
        return lawn_durable_consumer_in_flight(consumer);
    }

    // How often the store has given the one entry that there is.
    long long deliveries() const
    {
        return store->entries().begin()->second.deliveries;
    }

    static void on_delivery(void *arg, Delivery delivery)
    {
        DurableLease *const self = static_cast<DurableLease *>(arg);
        self->given.push_back(delivery);
        self->log += std::string("+") + delivery->id +
                     std::to_string(delivery->deliveries) + " ";
        if (self->deliver) {
            self->deliver(delivery);
        }
    }

    static void on_lost(void *arg, Delivery delivery)
    {
        DurableLease *const self = static_cast<DurableLease *>(arg);
        self->log += std::string("-") + delivery->id +
                     std::to_string(delivery->deliveries) + " ";
        if (self->lose) {
            self->lose(delivery);
        }
    }

    static void on_answered(void *arg, const lawn_durable_result_t *result)
    {
        ++static_cast<DurableLease *>(arg)->statuses[result->status];
    }

    ScriptedStore *const store = new ScriptedStore;
    lawn_durable_consumer_t *consumer = nullptr;
    std::vector<Delivery> given;
    std::string log; // + given, - lost, with the number of deliveries
    std::map<lawn_status_t, unsigned> statuses;
    std::function<void(Delivery)> deliver;
    std::function<void(Delivery)> lose;
};

TEST_F(DurableLease, WhatNobodyAnswersIsLostAndGivenAgain)
{
    open();
    store->add("a");
    store->run_for(lease - sec);
    EXPECT_EQ(log, "+a1 ");
    EXPECT_EQ(in_flight(), 1U);
    store->run_for(2 * sec);
    EXPECT_EQ(lawn_durable_consumer_lost(consumer), 1U);
    store->run_for(lease / 2);
    EXPECT_EQ(log, "+a1 -a1 +a2 ");
    EXPECT_EQ(in_flight(), 1U);
    answer(given[1]);
    store->run_for(sec);
    EXPECT_EQ(store->answered(), 1U);
    EXPECT_EQ(in_flight(), 0U);
    store->run_for(3 * lease);
    EXPECT_EQ(log, "+a1 -a1 +a2 ");
}

// A handler that forgets one delivery in 25. Each is given again, and none is
// given up, as all but one in 25 of those are answered.
TEST_F(DurableLease, AHandlerThatForgetsDoesNotFallSilent)
{
    for (const bool is_told : {true, false}) {
        open(is_told);
        given.clear();
        unsigned forgotten = 0;
        unsigned quiet = 0; // for so many steps of 100 ms
        unsigned most_quiet = 0;
        deliver = [&](Delivery delivery) {
            quiet = 0;
            if (given.size() % 25 == 0) {
                ++forgotten;
            } else {
                answer(delivery);
            }
        };
        const unsigned before = store->answered();
        constexpr unsigned steps = 6000; // ten minutes
        constexpr unsigned each = 10;
        for (unsigned i = 0; i < steps; ++i) {
            for (unsigned j = 0; j < each; ++j) {
                store->add("t");
            }
            store->run_for(sec / 10);
            most_quiet = std::max(most_quiet, ++quiet);
            ASSERT_LE(in_flight(), 256U);
        }
        EXPECT_EQ(most_quiet, 1U);
        EXPECT_GT(forgotten, 2400U);
        store->run_for(4 * lease);
        EXPECT_EQ(store->answered() - before, steps * each);
        EXPECT_EQ(store->buried(), 0U);
        EXPECT_EQ(lawn_durable_consumer_lost(consumer), forgotten);
        lawn_durable_consumer_close(consumer);
    }
}

TEST_F(DurableLease, WhatIsLostMakesRoom)
{
    open(true, 3);
    deliver = [&](Delivery delivery) {
        if (given.size() > 3) {
            answer(delivery);
        }
    };
    for (const char *const id : {"a", "b", "c", "d", "e"}) {
        store->add(id);
    }
    store->run_for(lease - sec);
    EXPECT_EQ(log, "+a1 +b1 +c1 ");
    store->run_for(2 * sec);
    EXPECT_EQ(store->answered(), 5U);
    EXPECT_EQ(lawn_durable_consumer_lost(consumer), 3U);
}

TEST_F(DurableLease, AnExtensionKeepsIt)
{
    open();
    store->add("a");
    for (int i = 0; i < 10; ++i) {
        store->run_for(lease - sec);
        lawn_durable_extend(consumer, given[0]);
    }
    EXPECT_EQ(log, "+a1 ");
    EXPECT_EQ(deliveries(), 1);
    answer(given[0]);
    store->run_for(sec);
    EXPECT_EQ(statuses[LAWN_OK], 1U);
}

// Its own lease was longer than that of the other one.
TEST_F(DurableLease, AnExtensionThatComesTooLateTells)
{
    open();
    store->add("a");
    store->run_for(sec);
    store->steal();
    lawn_durable_extend(consumer, given[0]);
    store->run_for(sec);
    EXPECT_EQ(log, "+a1 -a1 ");
    EXPECT_EQ(in_flight(), 0U);
    store->run_for(lease - 2 * sec);
    EXPECT_EQ(log, "+a1 -a1 ");
}

TEST_F(DurableLease, ALateAnswerCountsIfNobodyIsTold)
{
    open(false);
    store->add("a");
    store->run_for(lease + sec / 10);
    ASSERT_EQ(in_flight(), 0U);
    lawn_durable_extend(consumer, given[0]); // too late
    answer(given[0]);
    EXPECT_EQ(in_flight(), 1U);
    store->run_for(2 * lease);
    EXPECT_EQ(statuses[LAWN_OK], 1U);
    EXPECT_EQ(log, "+a1 ");
    EXPECT_EQ(in_flight(), 0U);
}

// Of both that the program has then, each is answered once.
TEST_F(DurableLease, TheFirstOfTwoAnswersCounts)
{
    open(false);
    store->add("a");
    store->run_for(lease * 3 / 2);
    ASSERT_EQ(log, "+a1 +a2 ");
    answer(given[0]);
    store->run_for(sec);
    EXPECT_EQ(statuses[LAWN_OK], 1U);
    answer(given[1]);
    store->run_for(sec);
    EXPECT_EQ(statuses[LAWN_ERR_NO_ELEM], 1U);
    EXPECT_EQ(in_flight(), 0U);
    store->run_for(2 * lease);
    EXPECT_EQ(log, "+a1 +a2 ");
}

// The store's word counts, whatever the consumer's own clock says.
TEST_F(DurableLease, WhatIsTakenOverIsLostFirst)
{
    open();
    store->add("a");
    store->run_for(sec);
    store->end_leases();
    store->run_for(lease / 2);
    EXPECT_EQ(log, "+a1 -a1 +a2 ");
}

TEST_F(DurableLease, AnExtensionOfWhatIsLostDoesNothing)
{
    open(false);
    store->add("a");
    store->run_for(lease + sec / 10);
    lawn_durable_extend(consumer, given[0]);
    store->run_for(lease / 2);
    EXPECT_EQ(log, "+a1 +a2 ");
}

TEST_F(DurableLease, WhatIsAnsweredIsNotGivenAgainWhileTheStoreIsSlow)
{
    open();
    store->add("a");
    store->run_for(sec);
    store->hold_answers(true);
    answer(given[0]);
    store->run_for(3 * lease);
    EXPECT_EQ(log, "+a1 ");
    EXPECT_EQ(in_flight(), 1U);
    store->hold_answers(false);
    store->run_for(sec);
    EXPECT_EQ(statuses[LAWN_OK], 1U);
    EXPECT_EQ(in_flight(), 0U);
}

TEST_F(DurableLease, TheProgramMayDoAnythingWhenItIsTold)
{
    open();
    for (const char *const id : {"a", "b", "c", "d"}) {
        store->add(id);
    }
    Delivery answered = nullptr;
    unsigned told = 0;
    lose = [&](Delivery delivery) {
        EXPECT_NE(delivery, answered);
        if (++told == 1) {
            // Another one that is lost, too, and not yet told.
            answered = given[delivery == given[3] ? 2 : 3];
            answer(answered);
            EXPECT_EQ(lawn_durable_answer(consumer, delivery, LAWN_DURABLE_DONE,
                                          0, nullptr, nullptr, nullptr),
                      LAWN_ERR_INVALID_PARAM);
        } else {
            lawn_durable_consumer_close(std::exchange(consumer, nullptr));
        }
    };
    store->run_for(lease + sec);
    EXPECT_EQ(told, 2U);
}

TEST_F(DurableLease, IsToldWhenTheConsumerHasStopped)
{
    open();
    store->add("a");
    store->run_for(sec);
    lawn_durable_consumer_stop(consumer);
    store->run_for(2 * lease);
    EXPECT_EQ(log, "+a1 -a1 ");
    EXPECT_EQ(deliveries(), 1); // a lease that nobody has answered in
    EXPECT_EQ(in_flight(), 0U);
}

// What was given back is no attempt; what the program has lost is one.
TEST_F(DurableLease, WhatIsLostIsNotGivenBackAsUnseen)
{
    open();
    store->add("a");
    store->run_for(lease + sec / 10);
    ASSERT_EQ(log, "+a1 -a1 ");
    store->cut();
    store->run_for(sec / 10);
    EXPECT_EQ(log, "+a1 -a1 +a2 "); // taken over at once
}

TEST_F(DurableLease, WhatIsLostIsNoUnseenOneWhenTheConsumerStops)
{
    open();
    store->add("a");
    store->run_for(lease + sec / 10);
    ASSERT_EQ(log, "+a1 -a1 ");
    lawn_durable_consumer_stop(consumer);
    store->run_for(sec);
    EXPECT_EQ(deliveries(), 1);
}

TEST_F(DurableLease, WhatIsWithinItsLeaseIsNotGivenAgainByAnotherConnection)
{
    open();
    store->add("a");
    store->run_for(sec);
    store->cut();
    store->run_for(sec);
    EXPECT_EQ(log, "+a1 ");
    EXPECT_EQ(deliveries(), 1);
    EXPECT_EQ(in_flight(), 1U);
}

} // namespace
