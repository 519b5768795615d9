// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Who is to own which shard, by what they have done.

#include "group/group_impl.h"
#include "group_fixture.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace
{

using Works = std::vector<uint64_t>;

struct Division {
    std::vector<lawn_shard_load_t> shards;
    Works work;

    Division(const Works &loads, unsigned workers, std::mt19937 *random)
        : work(workers)
    {
        for (const uint64_t load : loads) {
            const unsigned worker = random ? (*random)() % workers : 0;
            shards.push_back({load, 0, worker});
            work[worker] += load;
        }
    }

    void balance()
    {
        lawn::balance_by_work(nullptr, shards.data(),
                              static_cast<unsigned>(shards.size()), work.data(),
                              static_cast<unsigned>(work.size()));
        Works sums(work.size());
        for (const lawn_shard_load_t &shard : shards) {
            sums.at(shard.worker) += shard.work;
        }
        EXPECT_EQ(sums, work);
    }

    uint64_t most() const
    {
        return *std::max_element(work.begin(), work.end());
    }
};

TEST(GroupBalance, DividesWhatIsAlikeEvenly)
{
    Division it(Works(64, 1), 4, nullptr);
    it.balance();
    for (const uint64_t work : it.work) {
        EXPECT_GE(work, 15U);
        EXPECT_LE(work, 17U);
    }
}

TEST(GroupBalance, MovesTheShardThatFits)
{
    Division it({6, 1, 10, 3}, 2, nullptr);
    it.balance();
    EXPECT_EQ(it.work, Works({10, 10}));
    EXPECT_EQ(it.shards[2].worker, 1U);
}

TEST(GroupBalance, LeavesAShardAloneThatIsMostOfTheWork)
{
    Division it({1000, 1, 1, 1}, 2, nullptr);
    it.balance();
    EXPECT_EQ(it.most(), 1000U);
    Division alone({1000}, 3, nullptr);
    alone.balance();
    EXPECT_EQ(alone.shards[0].worker, 0U);
}

TEST(GroupBalance, MovesNothingThatIsBalanced)
{
    Division it({50, 50, 45, 55}, 4, nullptr);
    for (unsigned i = 0; i < 4; ++i) {
        it.shards[i].worker = i;
        it.work[i] = it.shards[i].work;
    }
    it.balance();
    for (unsigned i = 0; i < 4; ++i) {
        EXPECT_EQ(it.shards[i].worker, i);
    }
}

TEST(GroupBalance, TheMostIsNeverMoreAndSoonNearTheLeast)
{
    std::mt19937 random(7);
    for (unsigned run = 0; run < 300; ++run) {
        Works loads(1 + random() % 100);
        for (uint64_t &load : loads) {
            load = 1 + random() % (run % 2 ? 100 : 100000);
        }
        Division it(loads, 1 + random() % 8, &random);
        const uint64_t before = it.most();
        it.balance();
        EXPECT_LE(it.most(), before);
        const uint64_t sum =
            std::accumulate(loads.begin(), loads.end(), uint64_t{0});
        const uint64_t even = sum / it.work.size();
        // As for any list schedule: the average and the largest shard.
        EXPECT_LE(it.most(), even + even / 4 +
                                 *std::max_element(loads.begin(), loads.end()));
    }
}

class GroupOfEight : public GroupTest
{
protected:
    // Runs `fires` timers in each shard.
    void work(lawn_worker_t *first, lawn_worker_t *second, const Works &fires)
    {
        for (unsigned i = 0; i < fires.size(); ++i) {
            std::vector<Told> all(fires[i]);
            for (Told &told : all) {
                told.init(shard(i));
                told.start(now_);
            }
            pass(first);
            pass(second);
            for (Told &told : all) {
                EXPECT_EQ(told.fired, 1U);
                told.retire();
            }
            pass(first);
            pass(second);
        }
    }
};

TEST_F(GroupOfEight, IsBalancedByWhatWasDoneSinceTheLastTime)
{
    make();
    lawn_worker_t *const first = add_worker();
    lawn_worker_t *const second = add_worker();
    pass(first);
    EXPECT_EQ(lawn_group_balance(group_), 4U); // idle shards count, too
    pass(second);
    pass(first);
    pass(second);
    EXPECT_EQ(lawn_group_moving(group_), 0U);
    EXPECT_EQ(lawn_group_balance(group_), 0U);
    // One shard does everything, and gets a worker for itself.
    work(first, second, {0, 0, 0, 0, 0, 100, 0, 0});
    EXPECT_EQ(lawn_group_balance(group_), 3U);
    pass(first);
    pass(second);
    pass(first);
    EXPECT_EQ(lawn_group_moving(group_), 0U);
    const bool is_first = lawn_worker_place(first) == shard(5);
    EXPECT_EQ(lawn_worker_place(is_first ? first : second), shard(5));
    EXPECT_EQ(lawn_worker_place(is_first ? first : second), shard(5));
    // It is idle from then on, and they are divided evenly again.
    EXPECT_EQ(lawn_group_balance(group_), 3U);
}

// More than there was room for at first.
TEST_F(GroupOfEight, IsDividedAmongManyWorkers)
{
    make();
    std::vector<lawn_worker_t *> workers;
    for (unsigned i = 0; i < 20; ++i) {
        workers.push_back(add_worker());
    }
    EXPECT_EQ(lawn_group_balance(group_), 7U);
    for (unsigned rounds = 0; rounds < 2; ++rounds) {
        for (lawn_worker_t *const worker : workers) {
            pass(worker);
        }
    }
    EXPECT_EQ(lawn_group_moving(group_), 0U);
    unsigned owners = 0;
    for (lawn_worker_t *const worker : workers) {
        owners += lawn_worker_place(worker) != nullptr;
    }
    EXPECT_EQ(owners, 8U);
    for (lawn_worker_t *const worker : workers) {
        EXPECT_EQ(lawn_group_remove_worker(worker, nullptr), LAWN_OK);
    }
}

TEST_F(GroupOfEight, AsksThePolicyOfTheProgram)
{
    static unsigned calls;
    calls = 0;
    params_.balance_arg = this;
    params_.balance = [](void *arg, lawn_shard_load_t *shards, unsigned count,
                         uint64_t *work, unsigned workers) {
        EXPECT_NE(arg, nullptr);
        EXPECT_EQ(count, 8U);
        EXPECT_EQ(workers, 2U);
        EXPECT_EQ(work[shards[0].worker], 8U + 4); // each one more than done
        EXPECT_EQ(shards[3].work, 1U + 4);
        EXPECT_EQ(shards[3].running, 2U);
        for (unsigned i = 0; i < count; ++i) {
            shards[i].worker = 1 - shards[i].worker;
        }
        ++calls;
    };
    make();
    lawn_worker_t *const first = add_worker();
    lawn_worker_t *const second = add_worker();
    std::vector<Told> all(2);
    for (Told &told : all) {
        told.init(shard(3));
    }
    all[0].start(now_);
    all[1].start(now_ + 1'000'000'000);
    EXPECT_EQ(pass(first), 3U);
    lawn_shared_stop(&all[0].timer);
    all[0].start(now_ + 2'000'000'000);
    EXPECT_EQ(pass(first), 1U);
    lawn_shared_stop(&all[0].timer);
    const unsigned moved = lawn_group_balance(group_);
    EXPECT_EQ(moved, 8U);
    EXPECT_EQ(calls, 1U);
    pass(first);
    pass(second);
    all[0].start(now_);
    EXPECT_EQ(pass(first), 0U);
    EXPECT_EQ(pass(second), 2U);
    for (Told &told : all) {
        told.retire();
    }
    end();
}

} // namespace
