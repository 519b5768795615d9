// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A server that fails (seeded_store.h).

#include "seeded_store.h"

#include <algorithm>
#include <utility>

namespace lawn_test
{

using namespace resp;

namespace
{

// For people: what is printable, in one line.
std::string in_short(std::string_view text, size_t most)
{
    std::string line(text.substr(0, most));
    std::replace_if(
        line.begin(), line.end(), [](char c) { return c < ' ' || c > '~'; },
        '.');
    return line;
}

} // namespace

void SeededStore::on_bytes(SeededNetwork::Number connection,
                           std::string_view bytes)
{
    peers_[connection].in.append(bytes);
    Words words;
    for (;;) {
        const auto peer = peers_.find(connection); // it may be reset meanwhile
        if (peer == peers_.end() || !take_command(&peer->second.in, &words)) {
            return;
        }
        serve(connection, &peer->second, words);
    }
}

void SeededStore::on_end(SeededNetwork::Number connection)
{
    peers_.erase(connection);
}

void SeededStore::serve(SeededNetwork::Number number, Peer *peer,
                        const Words &words)
{
    ++commands_;
    if (keeps_log) {
        log_ += std::to_string(network_->now()) + " " + std::to_string(number);
        for (const std::string &i : words) {
            log_ += " " + in_short(i, 40);
        }
        log_ += "\n";
    }
    if (refuse(number, words)) {
        return;
    }
    if (words[0] == "XREADGROUP") {
        const std::string found = model_->read(words);
        if (found.empty()) {
            block(number, peer, words);
        } else {
            reply(number, found);
        }
        return;
    }
    reply(number, carry_out(peer, words));
    feed_readers();
}

// The faults are numbered: those of refuse() first.
constexpr unsigned first_failure = 9;

// Whether it is the turn of the fault that was planned.
bool SeededStore::is_planned() const
{
    return commands_ == fault_step_;
}

bool SeededStore::refuse(SeededNetwork::Number number, const Words &words)
{
    if (is_planned() && fault_ < first_failure) {
        return refuse(number, words, fault_);
    }
    if (!network_->happens(network_->faults_permille)) {
        return false;
    }
    // Without functions, nothing goes on for a while: that is rare. And of half
    // of what may go wrong, something goes wrong later, or nothing.
    const unsigned kinds = network_->random(64) == 0 ? 2 * first_failure : 14;
    const auto fault = static_cast<unsigned>(network_->random(kinds));
    return fault < std::min(kinds / 2, first_failure) &&
           refuse(number, words, fault);
}

// What may happen before a command is carried out. True: it is not.
bool SeededStore::refuse(SeededNetwork::Number number, const Words &words,
                         unsigned fault)
{
    static const char *const passing[] = {
        "-LOADING Redis is loading the dataset in memory\r\n",
        "-BUSY Redis is busy running a script\r\n",
        "-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
        "-MASTERDOWN Link with MASTER is down\r\n",
        "-READONLY You can't write against a read only replica.\r\n"};
    switch (fault) {
    case 0:
        network_->reset(number);
        return true;
    case 1:
        network_->mute(number);
        return true;
    case 7:
    case 8:
        has_functions_ = false;
        loses_functions_again_ = fault == 8;
        return false;
    default:
        if (words[0] == "FCALL" || words[0] == "FCALL_RO" ||
            words[0] == "EVAL") {
            say(number, passing[fault - 2]);
            return true;
        }
        return false;
    }
}

// Says it, if nothing goes wrong.
void SeededStore::reply(SeededNetwork::Number number, const std::string &text)
{
    if (is_planned() && fault_ >= first_failure) {
        fail(number, text, fault_ - first_failure);
    } else if (network_->happens(network_->faults_permille)) {
        fail(number, text, static_cast<unsigned>(network_->random(6)));
    } else {
        say(number, text);
    }
}

// What may happen afterwards.
void SeededStore::fail(SeededNetwork::Number number, const std::string &text,
                       unsigned fault)
{
    const size_t half = network_->random(text.size() + 1);
    const auto later = [this](uint64_t most_ms) {
        return static_cast<int64_t>(network_->random(most_ms)) * ms;
    };
    switch (fault) {
    case 0:
        network_->reset(number);
        break;
    case 1:
        say(number, text.substr(0, half));
        network_->reset(number);
        break;
    case 2:
        say(number, text.substr(0, half));
        say(number, text.substr(half), later(50));
        break;
    case 3:
        say(number, text.substr(0, half));
        network_->mute(number);
        break;
    default:
        say(number, text, later(fault == 4 ? 50 : 1500));
        break;
    }
}

void SeededStore::say(SeededNetwork::Number number, const std::string &reply,
                      int64_t delay_us)
{
    if (keeps_log) {
        log_ += std::to_string(network_->now()) + " " + std::to_string(number) +
                " -> " + in_short(reply, 100) + "\n";
    }
    network_->send(number, reply, delay_us);
}

// An operator may change the settings; nobody changes them back soon.
std::string SeededStore::tell_settings()
{
    if (network_->happens(network_->faults_permille)) {
        model_->writes_through = false;
    }
    return list({bulk("appendonly"), bulk("yes"), bulk("appendfsync"),
                 bulk(model_->writes_through ? "always" : "everysec"),
                 bulk("no-appendfsync-on-rewrite"), bulk("no")});
}

// Whether its last write is, in time.
bool SeededStore::makes_safe(const Peer &peer, SeededModel::Place place)
{
    if (network_->happens(network_->faults_permille)) {
        return false;
    }
    model_->make_safe(peer.last_write, place);
    return true;
}

std::string SeededStore::call(Peer *peer, const Words &words)
{
    if (!has_functions_) {
        return "-ERR Function not found\r\n";
    }
    const size_t keys = static_cast<size_t>(integer(words[2]));
    const Words args(words.begin() + 3 + static_cast<ptrdiff_t>(keys),
                     words.end());
    const uint64_t before = model_->writes();
    const std::string text =
        model_->call(words[1], keys > 0 ? words[3] : "", args);
    peer->last_write =
        model_->writes() > before ? model_->writes() : peer->last_write;
    return text;
}

std::string SeededStore::carry_out(Peer *peer, const Words &words)
{
    const std::string &name = words[0];
    if (name == "HELLO") {
        return hello("standalone");
    } else if (name == "TIME") {
        return list({bulk(std::to_string(time_us() / 1000000)),
                     bulk(std::to_string(time_us() % 1000000))});
    } else if (name == "PING") {
        return list({bulk("pong"), bulk("")});
    } else if (name == "SUBSCRIBE") {
        peer->is_subscribed = true;
        return list({bulk("subscribe"), bulk(words[1]), number(1)});
    } else if (name == "CONFIG" && words[2] == "appendonly") {
        return tell_settings();
    } else if (name == "INFO" && words.size() == 2) {
        return bulk(words[1] == "server" ? "redis_version:7.2.4\r\n"
                                         : "aof_enabled:1\r\n");
    } else if (name == "EVAL") { // it writes something
        peer->last_write = model_->write();
        return number(0);
    } else if (name == "WAIT") {
        return number(makes_safe(*peer, SeededModel::replica));
    } else if (name == "WAITAOF") {
        return list({number(makes_safe(*peer, SeededModel::disk)), number(0)});
    } else if (name == "XPENDING") {
        return model_->pending(words[1], words.back());
    } else if (name == "FUNCTION") {
        has_functions_ = !std::exchange(loses_functions_again_, false);
        return bulk("lawn");
    } else if (name == "FCALL" || name == "FCALL_RO") {
        return call(peer, words);
    }
    return "-ERR unknown command\r\n";
}

void SeededStore::publish(const std::string &message)
{
    std::vector<SeededNetwork::Number> all;
    for (const auto &[number, peer] : peers_) {
        if (peer.is_subscribed) {
            all.push_back(number);
        }
    }
    for (const SeededNetwork::Number peer : all) { // any may be gone then
        reply(peer, message);
    }
}

void SeededStore::block(SeededNetwork::Number number, Peer *peer,
                        const Words &words)
{
    if (words[6] != "BLOCK") {
        say(number, nobody);
        return;
    }
    peer->blocked = words;
    const uint64_t block = ++peer->block;
    network_->at(
        network_->now() + integer(words[7]) * ms, [this, number, block] {
            const auto found = peers_.find(number);
            if (found != peers_.end() && !found->second.blocked.empty() &&
                found->second.block == block) {
                found->second.blocked.clear();
                say(number, nobody);
            }
        });
}

void SeededStore::feed_readers()
{
    std::vector<std::pair<SeededNetwork::Number, std::string>> fed;
    for (auto &[number, peer] : peers_) {
        const std::string found =
            peer.blocked.empty() ? "" : model_->read(peer.blocked);
        if (!found.empty()) {
            peer.blocked.clear();
            fed.emplace_back(number, found);
        }
    }
    for (const auto &[number, found] : fed) {
        reply(number, found);
    }
}

} // namespace lawn_test
