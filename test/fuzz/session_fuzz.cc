// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The ping-pong's session, which takes datagrams from anybody. Either one
// session against a stranger: bytes of any kind, and datagrams that are right
// in all but what the input says, up to a forger who knows the run. Or two of
// them over a network that does what the input says until that ends, and then
// is perfect: all has to be delivered once and in order, or a peer found dead,
// and both have to come to an end.

#include "session_ends.h"

#include <algorithm>

namespace
{

using namespace fuzz;

//
// One session and a stranger.
//

class Stranger
{
public:
    explicit Stranger(Input input)
        : input_(input), world_(&input_), end_(&world_, make_config(&input_))
    {
    }

    void run()
    {
        end_.start();
        for (unsigned i = 0; !input_.is_empty() && i < most_work; ++i) {
            step();
            end_.check();
            FUZZ_CHECK(wrong_ != 0 || end_.stats().corrupt == 0);
            FUZZ_CHECK(wrong_ + duplicates_ != 0 || end_.stats().repeats == 0);
            FUZZ_CHECK(end_.stats().gaps <= forged_);
        }
    }

private:
    void step()
    {
        const unsigned op = input_.byte();
        const unsigned flags = op / 16;
        switch (op % 16) {
        case 0: {
            size_t length = input_.byte();
            const uint8_t *const bytes = input_.bytes(&length);
            receive(Datagram(bytes, bytes + length));
            break;
        }
        case 1:
            receive(spoilt(forge(WIRE_DATA, flags)));
            break;
        case 2:
        case 3:
        case 4:
            world_.pass_time(input_.number());
            end_.pass();
            break;
        case 5:
            end_.set_room(input_.byte());
            break;
        case 6: // its own words
            if (!end_.sent().empty()) {
                receive(end_.sent().back());
            }
            break;
        case 7:
            if (flags == 0) {
                session_fail(end_.session());
            }
            break;
        case 8:
        case 9:
        case 10:
            receive(forge(WIRE_DATA, flags));
            break;
        default: // of the other kinds
            receive(forge(static_cast<wire_type_t>(op % 16 - 9), flags));
            break;
        }
    }

    // What the peer might send, but for what the flags say.
    Datagram forge(wire_type_t type, unsigned flags)
    {
        const session_config_t &config = *session_config(end_.session());
        wire_header_t header = {};
        header.type = type;
        header.flags = (config.is_client ? 0U : WIRE_FLAG_CLIENT) |
                       (flags & 2 ? WIRE_FLAG_COMPLETE : 0U);
        header.run = config.run;
        header.connection = type >= WIRE_FIN
                                ? config.connections
                                : input_.byte() % (config.connections + 2);
        const bool is_probe = type == WIRE_PROBE || type == WIRE_PROBE_REPLY;
        header.seq = is_probe ? 0 : 1 + input_.byte() % 16;
        header.time = flags & 4 ? world_.now() - input_.number() : 0;
        header.length = type == WIRE_DATA ? config.size : 0;
        bool is_wrong = false;
        if (flags & 8) {
            const unsigned what = input_.byte();
            header.time = what & 2 ? input_.number() : header.time;
            header.run += what & 4 ? 1 : 0;
            header.seq += what & 8 ? static_cast<uint32_t>(input_.number()) : 0;
            header.connection = what & 16
                                    ? static_cast<uint32_t>(input_.number())
                                    : header.connection;
            header.length += what & 32 && type == WIRE_DATA ? 1 : 0;
            header.flags ^= what & 64 ? WIRE_FLAG_CLIENT : 0U;
            is_wrong = what & 128;
        }
        Datagram datagram(WIRE_HEADER_SIZE + header.length);
        pattern_fill(datagram.data() + WIRE_HEADER_SIZE, header.length,
                     pattern_seed(header.connection, header.seq + is_wrong,
                                  !config.is_client));
        wire_encode(&header, datagram.data());
        ++forged_;
        wrong_ += is_wrong;
        return datagram;
    }

    // Three bytes of it changed, or cut short.
    Datagram spoilt(Datagram datagram)
    {
        for (int i = 0; i < 3; ++i) {
            const size_t at = input_.byte() % datagram.size();
            datagram[at] ^= input_.byte();
        }
        datagram.resize(datagram.size() - input_.byte() % 4);
        return datagram;
    }

    void receive(const Datagram &datagram)
    {
        const session_stats_t before = end_.stats();
        const bool listens = end_.listens();
        wire_header_t header = {};
        const bool is_sound =
            wire_decode(datagram.data(), datagram.size(), &header);
        end_.receive(datagram);
        const session_stats_t &after = end_.stats();
        const uint64_t malformed = after.malformed - before.malformed;
        const uint64_t foreign = after.foreign - before.foreign;
        // One message may be the last that others have waited for.
        const uint64_t taken = (after.delivered != before.delivered) +
                               after.duplicates - before.duplicates +
                               after.gaps - before.gaps;
        FUZZ_CHECK(malformed + foreign + taken <= 1);
        duplicates_ += after.duplicates - before.duplicates;
        if (!listens) {
            FUZZ_CHECK(malformed + foreign + taken == 0);
        } else if (!is_sound) {
            FUZZ_CHECK(malformed == 1);
        } else {
            check_encoding(header, datagram);
            const session_config_t &config = *session_config(end_.session());
            FUZZ_CHECK((header.run != config.run ||
                        !(header.flags & WIRE_FLAG_CLIENT) ==
                            !config.is_client) == (foreign == 1));
            FUZZ_CHECK(header.type == WIRE_DATA || taken == 0);
        }
    }

    // There is one encoding of what was decoded.
    static void check_encoding(const wire_header_t &header,
                               const Datagram &datagram)
    {
        Datagram copy = datagram;
        std::fill(copy.begin(), copy.begin() + WIRE_HEADER_SIZE, uint8_t{0});
        FUZZ_CHECK(wire_encode(&header, copy.data()) == datagram.size());
        FUZZ_CHECK(copy == datagram);
    }

    Input input_;
    World world_;
    End end_;
    uint64_t forged_ = 0;
    uint64_t wrong_ = 0; // in what they carry
    uint64_t duplicates_ = 0;
};

//
// Two sessions.
//

class Pair
{
public:
    explicit Pair(Input input)
        : input_(input), world_(&input_), config_(make_config(&input_)),
          client_(&world_, of_side(config_, true)),
          server_(&world_, of_side(config_, false))
    {
        client_.set_peer(&server_);
        server_.set_peer(&client_);
    }

    void run()
    {
        server_.start();
        client_.start();
        unsigned passes = 0;
        while (!client_.is_over() || !server_.is_over()) {
            FUZZ_CHECK(++passes < 2 * most_work);
            step();
            for (const End *end : {&client_, &server_}) {
                end->check();
                FUZZ_CHECK(!session_is_violated(end->session()));
            }
            check_acked(client_, server_);
            check_acked(server_, client_);
        }
        check_end();
    }

private:
    static session_config_t of_side(session_config_t config, bool is_client)
    {
        config.is_client = is_client;
        return config;
    }

    // One pass of each, unless it is stalled, then on to the next event; or to
    // any time before it.
    void step()
    {
        const unsigned op = input_.byte_at_end();
        lawn_time_t next = LAWN_TIME_INFINITY;
        for (End *end : {&client_, &server_}) {
            const bool is_stalled =
                op / 2 == 127 && (op & 1) == end->is_client();
            if (!is_stalled) {
                end->pass();
            }
            next = std::min(next, end->next());
        }
        FUZZ_CHECK(next != LAWN_TIME_INFINITY ||
                   (client_.is_over() && server_.is_over()));
        const lawn_time_t most = op >= 192 ? input_.number_at_end() : next;
        const lawn_time_t now = world_.now();
        world_.pass_time(std::max<lawn_time_t>(
            std::min(next > now ? next - now : 1, std::max(most, usec)),
            op >= 254 ? sec : 1));
    }

    // What is acknowledged was delivered.
    static void check_acked(const End &from, const End &to)
    {
        const session *const s = from.session();
        const session *const peer = to.session();
        for (uint32_t i = 0; i < s->config.connections; ++i) {
            FUZZ_CHECK(s->connections[i].acked <=
                       peer->connections[i].delivered);
            FUZZ_CHECK(s->connections[i].sent >=
                       peer->connections[i].delivered);
        }
    }

    void check_end() const
    {
        const session_stats_t &of_client = client_.stats();
        const session_stats_t &of_server = server_.stats();
        if (session_is_complete(client_.session())) {
            FUZZ_CHECK(of_client.delivered == of_client.expected);
            FUZZ_CHECK(of_server.delivered == of_server.expected);
        }
        // Nothing is given up without a death.
        for (const End *end : {&client_, &server_}) {
            FUZZ_CHECK(session_is_complete(end->session()) ||
                       of_client.dead + of_server.dead != 0 ||
                       end->session()->control->state == CONNECTION_DEAD);
        }
    }

    Input input_;
    World world_;
    session_config_t config_;
    End client_;
    End server_;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Input input(data, size);
    if (input.byte() % 2 == 0) {
        Stranger(input).run();
    } else {
        Pair(input).run();
    }
    return 0;
}
