// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Queues of ports, rings and the loop of an lcore, on virtual time. The port
// has what a test gives it, and rests are counted. What is defined here stands
// before DPDK's own.

#define ALLOW_EXPERIMENTAL_API
#include <lawn/dpdk_lcore.h>

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <string>

namespace
{

// What DPDK's functions find here.
struct Machine {
    std::deque<rte_mbuf *> packets;
    uint16_t most = UINT16_MAX; // of a burst
    int info = 0;               // what the driver says of a queue
    rte_cpu_intrinsics has = {};
    int monitor_addr = 0;
    bool is_lcore = true; // the thread
    std::string rests;
    uint64_t until = 0; // of the latest rest, on the TSC
};

Machine *machine;
rte_mbuf packet; // of whatever content

uint16_t receive(void *, rte_mbuf **burst, uint16_t most)
{
    uint16_t count = 0;
    while (count < std::min(most, machine->most) && !machine->packets.empty()) {
        burst[count++] = machine->packets.front();
        machine->packets.pop_front();
    }
    return count;
}

} // namespace

extern "C" {

struct rte_eth_fp_ops rte_eth_fp_ops[RTE_MAX_ETHPORTS];

int rte_eth_rx_queue_info_get(uint16_t, uint16_t, rte_eth_rxq_info *info)
{
    info->nb_desc = 64;
    return machine->info;
}

int rte_eth_get_monitor_addr(uint16_t, uint16_t, rte_power_monitor_cond *)
{
    return machine->monitor_addr;
}

void rte_cpu_get_intrinsics_support(rte_cpu_intrinsics *intrinsics)
{
    if (machine) { // EAL asks, too, before main()
        *intrinsics = machine->has;
    }
}

// Of use where the engine's ticks are nanoseconds: as if the TSC counted such.
uint64_t rte_get_tsc_hz()
{
    return 1'000'000'000;
}

int rte_power_monitor(const rte_power_monitor_cond *, const uint64_t until)
{
    if (!machine->is_lcore) {
        return -EINVAL;
    }
    machine->rests += "monitor ";
    machine->until = until;
    return 0;
}

int rte_power_pause(const uint64_t until)
{
    machine->rests += "pause ";
    machine->until = until;
    return 0;
}
}

namespace
{

class DpdkTest : public testing::Test
{
protected:
    DpdkTest()
    {
        machine = &machine_;
        void **const data = queue_data_;
        rte_eth_fp_ops[0].rx_pkt_burst = receive;
        rte_eth_fp_ops[0].rxq.data = data;
        rte_eth_fp_ops[0].rxq.clbk = clbk_;
        lawn_engine_params_t params = {};
        params.clock = [](void *arg) {
            auto *const self = static_cast<DpdkTest *>(arg);
            return self->now_ += self->step_;
        };
        params.clock_arg = this;
        EXPECT_EQ(lawn_engine_create(&params, &engine_), LAWN_OK);
    }

    ~DpdkTest() override
    {
        lawn_dpdk_rx_close(&rx_);
        lawn_dpdk_ring_close(&ring_);
        lawn_engine_destroy(engine_);
    }

    lawn_status_t open_rx()
    {
        const auto received = [](void *arg, rte_mbuf **mbufs, uint16_t count) {
            auto *const self = static_cast<DpdkTest *>(arg);
            self->received_ += count;
            self->last_ = mbufs[count - 1];
            if (self->on_burst_) {
                self->on_burst_();
            }
        };
        return lawn_dpdk_rx_open(&rx_, engine_, 0, 0, received, this);
    }

    void arrive(unsigned count)
    {
        machine_.packets.insert(machine_.packets.end(), count, &packet);
    }

    // Passes until told to end, `count` of them.
    void run(unsigned count, lawn_dpdk_run_t params)
    {
        left_ = count;
        params.goes_on = [](void *arg) {
            return static_cast<DpdkTest *>(arg)->left_-- > 0;
        };
        params.arg = this;
        lawn_dpdk_run(engine_, &params);
    }

    Machine machine_;
    void *queue_data_[1] = {};
    void *clbk_[1] = {};
    lawn_time_t now_ = 1'000'000'000;
    lawn_time_t step_ = 0;
    lawn_engine_t *engine_ = nullptr;
    lawn_dpdk_rx_t rx_ = {};
    lawn_dpdk_ring_t ring_ = {};
    unsigned received_ = 0;
    rte_mbuf *last_ = nullptr;
    std::function<void()> on_burst_;
    unsigned left_ = 0;
};

TEST_F(DpdkTest, APassReceivesBurstAfterBurst)
{
    ASSERT_EQ(open_rx(), LAWN_OK);
    arrive(LAWN_DPDK_BURST + 3);
    EXPECT_EQ(lawn_engine_progress(engine_), LAWN_DPDK_BURST + 3U);
    EXPECT_EQ(received_, LAWN_DPDK_BURST + 3U);
    EXPECT_EQ(last_, &packet);
    machine_.most = 1; // a short burst is not the end
    arrive(5);
    EXPECT_EQ(lawn_engine_progress(engine_), 5U);
}

// 64, as the driver says.
TEST_F(DpdkTest, APassReceivesAtMostOneRing)
{
    ASSERT_EQ(open_rx(), LAWN_OK);
    arrive(100);
    EXPECT_EQ(lawn_engine_progress(engine_), 64U);
    EXPECT_EQ(lawn_engine_progress(engine_), 36U);
    lawn_dpdk_rx_close(&rx_);
    machine_.info = -ENOTSUP; // some drivers do not say
    ASSERT_EQ(open_rx(), LAWN_OK);
    arrive(100);
    EXPECT_EQ(lawn_engine_progress(engine_), 100U);
}

TEST_F(DpdkTest, PacketsComeBeforeTimers)
{
    ASSERT_EQ(open_rx(), LAWN_OK);
    lawn_timer_t timer;
    lawn_timer_init(&timer, [](lawn_timer_t *, lawn_time_t) { FAIL(); });
    lawn_engine_start(engine_, &timer, 10);
    on_burst_ = [&] { lawn_engine_stop(engine_, &timer); };
    arrive(1);
    now_ += 1'000'000'000;
    lawn_engine_progress(engine_);
    EXPECT_FALSE(lawn_timer_is_active(&timer));
}

TEST_F(DpdkTest, ACallbackMayCloseIt)
{
    ASSERT_EQ(open_rx(), LAWN_OK);
    arrive(LAWN_DPDK_BURST + 1);
    on_burst_ = [this] { lawn_dpdk_rx_close(&rx_); };
    EXPECT_EQ(lawn_engine_progress(engine_), unsigned{LAWN_DPDK_BURST});
    EXPECT_EQ(lawn_engine_progress(engine_), 0U);
    EXPECT_EQ(open_rx(), LAWN_OK);
}

TEST_F(DpdkTest, BadQueuesAreRefused)
{
    EXPECT_EQ(lawn_dpdk_rx_open(&rx_, engine_, 0, 0, nullptr, nullptr),
              LAWN_ERR_INVALID_PARAM);
    machine_.info = -EINVAL;
    EXPECT_EQ(open_rx(), LAWN_ERR_INVALID_PARAM);
    machine_.info = 0;
    EXPECT_EQ(open_rx(), LAWN_OK);
    EXPECT_EQ(open_rx(), LAWN_ERR_BUSY);
    EXPECT_EQ(lawn_dpdk_ring_open(&ring_, engine_, nullptr, nullptr, nullptr),
              LAWN_ERR_INVALID_PARAM);
}

// A ring of pointers, as rte_ring_init() makes it.
class DpdkRingTest : public DpdkTest
{
protected:
    static constexpr uint32_t size = 64;

    DpdkRingTest()
    {
        memory_.reset(static_cast<char *>(
            aligned_alloc(128, sizeof(rte_ring) + size * sizeof(void *))));
        of_ = new (memory_.get()) rte_ring();
        of_->size = size;
        of_->mask = size - 1;
        of_->capacity = size - 1;
    }

    void put(uintptr_t first, unsigned count)
    {
        for (unsigned i = 0; i < count; ++i) {
            ASSERT_EQ(
                rte_ring_enqueue(of_, reinterpret_cast<void *>(first + i)), 0);
        }
    }

    struct Free {
        void operator()(char *memory) const
        {
            free(memory);
        }
    };
    std::unique_ptr<char, Free> memory_;
    rte_ring *of_ = nullptr;
};

TEST_F(DpdkRingTest, APassTakesWhatIsInTheRing)
{
    std::string seen;
    const auto taken = [](void *arg, void **objects, unsigned count) {
        auto *const text = static_cast<std::string *>(arg);
        for (unsigned i = 0; i < count; ++i) {
            *text +=
                std::to_string(reinterpret_cast<uintptr_t>(objects[i])) + " ";
        }
    };
    ASSERT_EQ(lawn_dpdk_ring_open(&ring_, engine_, of_, taken, &seen), LAWN_OK);
    EXPECT_EQ(lawn_engine_progress(engine_), 0U);
    put(1, 3);
    EXPECT_EQ(lawn_engine_progress(engine_), 3U);
    EXPECT_EQ(seen, "1 2 3 ");
    put(1, size - 1);
    EXPECT_EQ(lawn_engine_progress(engine_), size - 1);
    EXPECT_EQ(lawn_dpdk_ring_open(&ring_, engine_, of_, taken, &seen),
              LAWN_ERR_BUSY);
}

// ---- The loop.

TEST_F(DpdkTest, TheLoopRestsWhenItIsIdle)
{
    ASSERT_EQ(open_rx(), LAWN_OK);
    machine_.has.power_monitor = 1;
    machine_.has.power_pause = 1;
    lawn_dpdk_run_t params = {};
    run(10, params);
    EXPECT_EQ(machine_.rests, ""); // it was not asked to
    params.idle_passes = 4;
    params.rx = &rx_;
    on_burst_ = [this] { EXPECT_EQ(machine_.rests, "monitor monitor "); };
    run(5, params);
    EXPECT_EQ(machine_.rests, "monitor monitor ");
    arrive(1); // it begins to count anew
    run(4, params);
    EXPECT_EQ(machine_.rests, "monitor monitor ");
    params.rx = nullptr;
    machine_.rests.clear();
    run(4, params);
    EXPECT_EQ(machine_.rests, "pause ");
}

// By instructions that only wait, the TSC being what the engine counts.
TEST_F(DpdkTest, ARestEndsAtTheNextDeadline)
{
    ASSERT_EQ(open_rx(), LAWN_OK);
    machine_.has.power_pause = 1;
    machine_.has.power_monitor = 1;
    const lawn_time_t far = lawn_time_from_sec(20);
    lawn_timer_t timer;
    lawn_timer_init(&timer, nullptr);
    lawn_engine_start(engine_, &timer, far);
    const lawn_dpdk_rx_t *const queues[] = {&rx_, nullptr};
    lawn_dpdk_rest_t rest;
    for (const lawn_dpdk_rx_t *const rx : queues) {
        lawn_dpdk_rest_init(&rest, rx);
        uint64_t before = rte_rdtsc();
        lawn_dpdk_rest(engine_, &rest, LAWN_TIME_INFINITY);
        EXPECT_LE(machine_.until - before, far + (rte_rdtsc() - before));
        EXPECT_GT(machine_.until, before);
        before = rte_rdtsc();
        lawn_dpdk_rest(engine_, &rest, now_ + 1000);
        EXPECT_GE(machine_.until, before + 1000);
        EXPECT_LE(machine_.until, rte_rdtsc() + 1000);
    }
    machine_.rests.clear();
    lawn_dpdk_rest(engine_, &rest, now_); // is over
    now_ += far;
    lawn_dpdk_rest(engine_, &rest, LAWN_TIME_INFINITY); // something is due
    EXPECT_EQ(machine_.rests, "");
    lawn_engine_stop(engine_, &timer);
}

// Without timers, no time of the TSC is too far.
TEST_F(DpdkTest, ARestWithoutDeadlinesEnds)
{
    machine_.has.power_pause = 1;
    lawn_dpdk_rest_t rest;
    lawn_dpdk_rest_init(&rest, nullptr);
    const uint64_t before = rte_rdtsc();
    lawn_dpdk_rest(engine_, &rest, LAWN_TIME_INFINITY);
    EXPECT_GT(machine_.until, before);
    EXPECT_LE(machine_.until - before, lawn_time_from_sec(60));
}

TEST_F(DpdkTest, AProcessorWithoutSuchInstructionsOnlyPauses)
{
    ASSERT_EQ(open_rx(), LAWN_OK);
    lawn_dpdk_rest_t rest;
    const auto rests = [&] {
        lawn_dpdk_rest_init(&rest, &rx_);
        lawn_dpdk_rest(engine_, &rest, LAWN_TIME_INFINITY);
        return machine_.rests;
    };
    EXPECT_EQ(rests(), "");
    machine_.has.power_monitor = 1; // but the driver has no such address
    machine_.monitor_addr = -ENOTSUP;
    EXPECT_EQ(rests(), "");
    machine_.has.power_pause = 1;
    EXPECT_EQ(rests(), "pause ");
    machine_.monitor_addr = 0;
    machine_.is_lcore = false;
    EXPECT_EQ(rests(), "pause pause ");
}

} // namespace
