// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// One connection to a Redis server: bytes out, replies in. It knows nothing of
// what they mean. Of hiredis it uses the reader of replies only: the
// asynchronous part of hiredis ends the process at a reply that nobody asked
// for.

#ifndef LAWN_SRC_DURABLE_SOCKET_H
#define LAWN_SRC_DURABLE_SOCKET_H

#include "src/hiredis_ptr.h"
#include "src/loop.h"
#include "src/url.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct addrinfo;

namespace lawn::durable
{

// Appends a command as Redis reads it: the number of its words, and the words.
void append_command(std::string *out, const std::vector<std::string> &words);
void append_count(std::string *out, size_t words);
void append_words(std::string *out, const std::vector<std::string> &words);

class Socket final : private Watched
{
public:
    // What happens to a socket. Each function may close the socket, and none
    // may destroy it.
    class Owner
    {
    public:
        virtual void on_connected() = 0;
        virtual void on_reply(ReplyPtr reply) = 0;
        // It is closed already. `status` is IO, or CORRUPT for what is not the
        // protocol of Redis. `why` is valid until the socket is opened again.
        virtual void on_closed(lawn_status_t status, std::string_view why) = 0;

    protected:
        ~Owner() = default;
    };

    Socket(Loop &loop, Owner &owner);
    ~Socket();
    Socket(const Socket &) = delete;
    Socket &operator=(const Socket &) = delete;

    // Begins to connect. Everything else is told to the owner, in a poll.
    void open(const Endpoint &endpoint);
    // How many addresses the host has.
    unsigned addresses() const
    {
        return address_count_;
    }
    // Gives up the address that it connects to, for the next one of the host.
    // Returns false if there is none; then the socket must be closed.
    bool open_next();
    // The owner is not told.
    void close();
    bool is_open() const
    {
        return fd_ >= 0;
    }

    // What to write goes into the buffer; then call send().
    std::string &out()
    {
        return out_;
    }
    // Has what is in the buffer written at the end of the poll that is running,
    // or of the next one, which comes at once.
    void send();

private:
    struct FreeAddresses {
        void operator()(addrinfo *addresses) const;
    };

    void on_events(uint32_t events) override;
    void flush() override;
    bool look_up(const Endpoint &endpoint, std::string *error_p);
    bool connect_unix(const std::string &path, std::string *error_p);
    bool connect_next(std::string *error_p);
    bool watch(uint32_t events);
    void on_writable();
    void on_readable();
    bool read_replies();
    bool begin(const Endpoint &endpoint, std::string *error_p);
    void fail(lawn_status_t status, std::string_view why);
    void fail_later(std::string_view why);

    Loop &loop_;
    Owner &owner_;
    int fd_ = -1;
    unsigned life_ = 0; // counts closes: tells whether a callback has closed
    bool is_connected_ = false;
    uint32_t events_ = 0;
    std::unique_ptr<addrinfo, FreeAddresses> addresses_;
    addrinfo *next_address_ = nullptr;
    unsigned address_count_ = 1;
    ReaderPtr reader_;
    size_t elements_ = 0;    // of the arrays of the reply that is being read
    size_t reply_bytes_ = 0; // of that reply, as far as it was read
    std::string out_;
    size_t written_ = 0;
    Timer failed_; // to fail in the poll
    std::string failure_;
};

} // namespace lawn::durable

#endif
