// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a session does with datagrams that no session sent: cut, flipped,
// random, of others, or against the rules. And its small parts: the checksum
// and the histogram.

#include "conn/profile.h"
#include "session_internal.h"
#include "session_world.h"

namespace
{

using namespace session_world;

// A server that has not heard anything yet.
class Datagrams : public Session
{
protected:
    void SetUp() override
    {
        start(4, 10);
        server->peer = nullptr;
    }

    static Datagram encode(wire_header_t header, uint64_t seed)
    {
        Datagram datagram(WIRE_HEADER_SIZE + header.length);
        pattern_fill(datagram.data() + WIRE_HEADER_SIZE, header.length, seed);
        wire_encode(&header, datagram.data());
        return datagram;
    }

    static wire_header_t first_message()
    {
        wire_header_t header = {};
        header.type = WIRE_DATA;
        header.flags = WIRE_FLAG_CLIENT;
        header.run = 0x123456789abcdef;
        header.connection = 3;
        header.seq = 1;
        header.length = 61;
        return header;
    }

    static Datagram good()
    {
        return encode(first_message(), pattern_seed(3, 1, true));
    }

    uint64_t refused() const
    {
        return server->stats().malformed + server->stats().foreign;
    }
};

TEST_F(Datagrams, AGoodOneIsDelivered)
{
    server->receive(good());
    EXPECT_EQ(server->stats().delivered, 1U);
    EXPECT_EQ(refused(), 0U);
    EXPECT_FALSE(session_is_violated(server->session));
}

TEST_F(Datagrams, AProbeIsAnswered)
{
    wire_header_t header = first_message();
    header.type = WIRE_PROBE;
    header.seq = 0;
    header.length = 0;
    server->receive(encode(header, 0));
    ASSERT_EQ(server->sent.size(), 1U);
    EXPECT_EQ(header_of(server->sent[0]).type, WIRE_PROBE_REPLY);
    EXPECT_EQ(header_of(server->sent[0]).connection, 3U);
}

TEST_F(Datagrams, EveryFlippedBitIsMalformed)
{
    for (size_t bit = 0; bit < 8 * good().size(); ++bit) {
        Datagram datagram = good();
        datagram[bit / 8] ^= static_cast<uint8_t>(1U << bit % 8);
        server->receive(datagram);
        EXPECT_EQ(server->stats().malformed, bit + 1);
    }
    EXPECT_EQ(server->stats().delivered, 0U);
}

TEST_F(Datagrams, EveryOtherLengthIsMalformed)
{
    for (size_t length = 0; length < 300; ++length) {
        Datagram datagram = good();
        if (length != datagram.size()) {
            datagram.resize(length);
            server->receive(datagram);
        }
    }
    EXPECT_EQ(server->stats().malformed, 299U);
    EXPECT_EQ(server->stats().delivered, 0U);
}

TEST_F(Datagrams, RandomOnesAreIgnored)
{
    uint64_t random = 7;
    for (int i = 0; i < 20000; ++i) {
        Datagram datagram(pattern_next(&random) % 200);
        pattern_fill(datagram.data(), datagram.size(), pattern_next(&random));
        server->receive(datagram);
    }
    EXPECT_EQ(server->stats().malformed, 20000U);
    EXPECT_EQ(server->stats().delivered, 0U);
    EXPECT_TRUE(server->sent.empty());
}

// Fields at random behind a checksum that is right: nothing that comes may
// crash a session, or be delivered that does not fit.
TEST_F(Datagrams, NonsenseWithAGoodChecksumIsHarmless)
{
    uint64_t random = 11;
    for (int i = 0; i < 20000; ++i) {
        wire_header_t header = first_message();
        const uint64_t bits = pattern_next(&random);
        header.type = static_cast<wire_type_t>(WIRE_DATA + bits % 6);
        header.connection = static_cast<uint32_t>(bits >> 8) % 8;
        const bool is_probe =
            header.type == WIRE_PROBE || header.type == WIRE_PROBE_REPLY;
        header.seq = is_probe ? 0 : static_cast<uint32_t>(bits >> 16) % 16 + 2;
        header.time = bits >> 32;
        header.length = header.type == WIRE_DATA ? 61 : 0;
        // A FIN is the one that a session would rightly believe.
        if (header.type != WIRE_FIN) {
            server->receive(encode(header, bits));
        }
    }
    EXPECT_EQ(server->stats().delivered, 0U);
    EXPECT_GT(server->stats().malformed, 0U);
    EXPECT_GT(server->stats().gaps, 0U);
    EXPECT_TRUE(session_is_violated(server->session));
    EXPECT_FALSE(session_is_over(server->session));
}

TEST_F(Datagrams, OfAnotherRunOrOfOurOwnSideAreForeign)
{
    wire_header_t header = first_message();
    header.run ^= 1;
    server->receive(encode(header, 1));
    header = first_message();
    header.flags = 0;
    server->receive(encode(header, 1));
    session_count_foreign(server->session);
    EXPECT_EQ(server->stats().foreign, 3U);
    EXPECT_EQ(server->stats().delivered, 0U);
}

// The delivery check is not vacuous: each violation is seen.
TEST_F(Datagrams, ViolationsAreSeen)
{
    server->receive(encode(first_message(), 99));
    EXPECT_EQ(server->stats().corrupt, 1U);

    wire_header_t header = first_message();
    header.seq = 2;
    server->receive(encode(header, pattern_seed(3, 1, true)));
    EXPECT_EQ(server->stats().repeats, 1U);

    header.seq = 4;
    server->receive(encode(header, pattern_seed(3, 4, true)));
    EXPECT_EQ(server->stats().gaps, 1U);
    EXPECT_TRUE(session_is_violated(server->session));
}

// Both by the session and by the rig, which sees more.
TEST_F(Datagrams, ATimerThatFiresEarlyIsSeen)
{
    server->receive(good()); // and so message 1 of the server is sent
    connection_t *const c = &server->session->connections[3];
    const lawn_conn_ops_t ops = c->conn.profile->ops;
    const lawn_time_t due = world.now + 2 * msec;
    ops.retransmit(&c->conn, due, 1);
    EXPECT_EQ(server->stats().early, 0U);
    ops.probe(&c->conn, world.now + 199 * msec, 1);
    EXPECT_EQ(server->stats().early, 2U);
    ops.retransmit(&c->conn, due, 2);
    EXPECT_EQ(server->stats().early, 4U);
    ops.dead(&c->conn, world.now + 9 * sec, LAWN_CONN_PEER_TIMEOUT);
    EXPECT_EQ(server->stats().early, 5U);
    EXPECT_TRUE(session_is_violated(server->session));
}

TEST_F(Datagrams, ADuplicateIsCountedAndAcknowledgedAgain)
{
    wire_header_t message = first_message();
    message.time = 17;
    server->receive(encode(message, pattern_seed(3, 1, true)));
    EXPECT_EQ(server->sent.size(), 2U); // its ACK, and the answer
    message.time = 19;
    server->receive(encode(message, pattern_seed(3, 1, true)));
    ASSERT_EQ(server->sent.size(), 3U);
    EXPECT_EQ(server->stats().delivered, 1U);
    EXPECT_EQ(server->stats().duplicates, 1U);
    for (const size_t i : {0U, 2U}) {
        const wire_header_t header = header_of(server->sent[i]);
        EXPECT_EQ(header.type, WIRE_ACK);
        EXPECT_EQ(header.seq, 1U);
        EXPECT_EQ(header.time, i == 0 ? 17U : 19U);
        EXPECT_EQ(header.connection, 3U);
    }
}

TEST(Wire, ChecksumIsCrc32c)
{
    // The check value of CRC-32C (Castagnoli), and RFC 3720, B.4.
    const uint8_t digits[] = {'1', '2', '3', '4', '5', '6', '7', '8', '9'};
    EXPECT_EQ(wire_crc32c(0, digits, sizeof(digits)), 0xe3069283U);
    const uint8_t zeros[32] = {};
    EXPECT_EQ(wire_crc32c(0, zeros, sizeof(zeros)), 0x8a9136aaU);
}

TEST(Histogram, QuantilesAreWithinABucketOfTheTruth)
{
    auto histogram = std::make_unique<histogram_t>();
    for (uint64_t value = 1; value <= 100000; ++value) {
        histogram_record(histogram.get(), value);
    }
    for (const double share : {0.1, 0.5, 0.9, 0.99}) {
        const double found =
            static_cast<double>(histogram_quantile(histogram.get(), share));
        EXPECT_GE(found, share * 100000);
        EXPECT_LE(found, share * 100000 * 1.016 + 1);
    }
    histogram_record(histogram.get(), UINT64_MAX);
    EXPECT_EQ(histogram_quantile(histogram.get(), 1), UINT64_MAX);
    EXPECT_EQ(histogram->min, 1U);
}

} // namespace
