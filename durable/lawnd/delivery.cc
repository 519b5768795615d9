// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// libcurl has its sockets in an epoll set of their own, which is one descriptor
// of the loop: what it does to its sockets while it is called then needs no
// care. Everybody is answered by a timer of no time, outside of libcurl and of
// submit(), because those who are told may submit more.

#include "delivery.h"
#include "target.h"

#include <lawn/base.h>
#include <lawn/time.h>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

namespace lawnd
{

using lawn::durable::Loop;

namespace
{

constexpr long longest_retry_sec = 24L * 3600;
constexpr uint64_t usec_per_sec = 1000000;

std::string printable(std::string_view text)
{
    std::string line(text.substr(0, 200));
    std::replace_if(
        line.begin(), line.end(), [](char c) { return c < ' ' || c > '~'; },
        '?');
    return line;
}

bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS ||
           error == ENOMEM;
}

// Whoever looks up a name needs one, and does not tell that there is none.
bool lacks_descriptors()
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        close(fd);
    }
    return fd < 0 && is_shortage(errno);
}

// Whether a target that has `own` may have one more, when all targets together
// have `all`.
bool has_room(size_t own, size_t most_own, size_t all, size_t most)
{
    return all < most && own < most_own && own <= (most - all) / 4;
}

long msec_of(uint64_t usec)
{
    return static_cast<long>(usec / 1000);
}

// In seconds, a day at most; 0: there is none. libcurl gives 0 for a number
// that it has no room for, too.
curl_off_t retry_after(CURL *easy)
{
    curl_off_t seconds = 0;
    curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds);
    curl_header *header = nullptr;
    if (seconds == 0 && curl_easy_header(easy, "Retry-After", 0, CURLH_HEADER,
                                         -1, &header) == CURLHE_OK) {
        const std::string_view value = header->value;
        const bool is_number =
            value.find_first_not_of("0123456789") == value.npos;
        const bool is_zero = value.find_first_not_of('0') == value.npos;
        return is_number && !is_zero ? longest_retry_sec : 0;
    }
    return std::min<curl_off_t>(seconds, longest_retry_sec);
}

// Whether anything has come from the target.
bool has_answered(CURL *easy)
{
    curl_off_t usec = 0;
    curl_easy_getinfo(easy, CURLINFO_STARTTRANSFER_TIME_T, &usec);
    return usec > 0;
}

} // namespace

struct Delivery::Target {
    std::string name;
    unsigned posts = 0;
    std::deque<Queued> queue;
};

struct Delivery::Active {
    ~Active()
    {
        curl_slist_free_all(headers);
        curl_easy_cleanup(easy);
    }

    void add_header(const std::string &line)
    {
        curl_slist *const longer = curl_slist_append(headers, line.c_str());
        if (!longer) {
            throw std::bad_alloc();
        }
        headers = longer;
    }

    Post post;
    Target *target = nullptr;
    CURL *easy = nullptr;
    curl_slist *headers = nullptr;
    size_t header_room = 0;
    size_t body_room = 0;
    char error[CURL_ERROR_SIZE] = "";
    bool lacks_sockets = false;
    bool is_sent = false;   // the request, or some of it
    bool is_broken = false; // the connection, after that
};

Delivery::Delivery(Loop &loop, const DeliveryLimits &limits)
    : loop_(loop), limits_(limits),
      timer_(loop, [this] { act(CURL_SOCKET_TIMEOUT, 0); }),
      sweep_(loop, [this] { defer_old(); }),
      answer_timer_(loop, [this] { answer_all(); })
{
    epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
    multi_ = curl_multi_init();
    if (epoll_fd_ < 0 || !multi_ || !loop.watch(epoll_fd_, this, EPOLLIN)) {
        if (epoll_fd_ >= 0) {
            close(epoll_fd_);
        }
        curl_multi_cleanup(multi_);
        throw std::runtime_error("cannot prepare the delivery by HTTP");
    }
    curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, 256L);
}

Delivery::~Delivery()
{
    for (const auto &[easy, active] : active_) {
        curl_multi_remove_handle(multi_, easy);
    }
    active_.clear();
    curl_multi_cleanup(multi_);
    loop_.forget(epoll_fd_, this);
    close(epoll_fd_);
}

bool Delivery::may_post(const Target &target) const
{
    return has_room(target.posts, limits_.posts_per_target, active_.size(),
                    limits_.posts);
}

// Only behind a post of its own, whose end begins the next.
bool Delivery::may_wait(const Target &target) const
{
    return target.posts > 0 &&
           has_room(target.queue.size(), limits_.queue_per_target, waiting_,
                    limits_.queued);
}

void Delivery::submit(Post post)
{
    const std::string name = target_of(post.url);
    if (name.empty()) {
        // Not which: it may have a password in it.
        answer_later(std::move(post.finished),
                     {Verdict::fail, -1, "not a URL of http or https"});
        return;
    }
    std::unique_ptr<Target> &slot = targets_[name];
    if (!slot) {
        slot = std::make_unique<Target>();
        slot->name = name;
    }
    Target *const target = slot.get();
    if (is_draining_) {
        answer_later(std::move(post.finished), deferred("the daemon ends"));
    } else if (may_post(*target)) {
        begin(std::move(post), target);
    } else if (may_wait(*target)) {
        target->queue.push_back({std::move(post), loop_.now()});
        ++waiting_;
        if (!sweep_.is_active()) {
            sweep_.start_after(limits_.queue_timeout_us);
        }
    } else {
        answer_later(std::move(post.finished),
                     deferred("too many posts wait for the target"));
    }
    release(target);
}

void Delivery::begin(Post post, Target *target)
{
    auto active = std::make_unique<Active>();
    active->post = std::move(post);
    active->target = target;
    active->header_room = active->body_room = limits_.answer_bytes;
    active->easy = curl_easy_init();
    if (!active->easy) {
        throw std::bad_alloc();
    }
    const Post &p = active->post;
    active->add_header("Content-Type: application/octet-stream");
    active->add_header("Idempotency-Key: " + p.id + "/" +
                       std::to_string(p.generation));
    active->add_header("Lawn-Attempt: " + std::to_string(p.attempt));
    active->add_header("Lawn-Due: " + std::to_string(p.due_us));
    active->add_header("Expect:"); // no pause before the payload
    CURL *const easy = active->easy;
    curl_easy_setopt(easy, CURLOPT_URL, p.url.c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(p.payload.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS,
                     p.payload.empty() ? "" : p.payload.data());
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, active->headers);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "lawnd/" LAWN_VERSION_STRING);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
    // Its end does not wait for the thread that looks up a name.
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                     msec_of(limits_.connect_timeout_us));
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, msec_of(limits_.timeout_us));
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, active.get());
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_request);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, active.get());
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_answer);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &active->header_room);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_answer);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &active->body_room);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, active->error);
    if (curl_multi_add_handle(multi_, easy) != CURLM_OK) {
        throw std::bad_alloc();
    }
    ++target->posts;
    active_[easy] = std::move(active);
}

// Counts what an answer has, and cuts it off where it has too much.
size_t Delivery::on_answer(char * /*data*/, size_t size, size_t count,
                           void *room)
{
    auto *const left = static_cast<size_t *>(room);
    const size_t bytes = size * count;
    if (bytes > *left) {
        return bytes + 1; // the post ends with CURLE_WRITE_ERROR
    }
    *left -= bytes;
    return bytes;
}

// If a connection that was used before breaks, libcurl sends the request once
// more by itself. The target may have carried it out, so an attempt is one
// request.
int Delivery::on_request(void *active, char * /*to*/, char * /*from*/,
                         int /*to_port*/, int /*from_port*/)
{
    auto *const self = static_cast<Active *>(active);
    self->is_broken = self->is_sent;
    self->is_sent = true;
    return self->is_broken ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

curl_socket_t Delivery::on_open_socket(void *active, curlsocktype /*purpose*/,
                                       curl_sockaddr *address)
{
    auto *const self = static_cast<Active *>(active);
    if (self->is_sent) {
        self->is_broken = true;
        return CURL_SOCKET_BAD;
    }
    const int fd = socket(address->family,
                          address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                          address->protocol);
    if (fd < 0 && is_shortage(errno)) {
        self->lacks_sockets = true;
    }
    return fd < 0 ? CURL_SOCKET_BAD : fd;
}

Outcome Delivery::judge(Active &active, CURLcode code)
{
    if (active.is_broken) {
        return {Verdict::again, -1, "no answer: the connection has broken"};
    }
    const bool is_unsent = code == CURLE_COULDNT_CONNECT ||
                           code == CURLE_COULDNT_RESOLVE_HOST ||
                           code == CURLE_COULDNT_RESOLVE_PROXY;
    // libcurl says so of a line of over 100 KB, too.
    const bool lacks_memory =
        code == CURLE_OUT_OF_MEMORY && !has_answered(active.easy);
    if (lacks_memory ||
        (is_unsent && (active.lacks_sockets || lacks_descriptors()))) {
        return deferred("the daemon has no descriptor or no memory left");
    }
    long status = 0;
    curl_easy_getinfo(active.easy, CURLINFO_RESPONSE_CODE, &status);
    // The status counts also where the rest was cut off: nobody reads it.
    const bool is_cut_off =
        code == CURLE_WRITE_ERROR || code == CURLE_OUT_OF_MEMORY;
    if (code != CURLE_OK && !(is_cut_off && status >= 200)) {
        const char *const detail =
            active.error[0] ? active.error : curl_easy_strerror(code);
        return {Verdict::again, -1, "no answer: " + printable(detail)};
    }
    if (status >= 200 && status < 300) {
        return {Verdict::done, -1, ""};
    }
    Outcome outcome = {Verdict::again, -1,
                       "HTTP status " + std::to_string(status)};
    if (status == 429 || status == 503) {
        const curl_off_t seconds = retry_after(active.easy);
        if (seconds > 0) {
            outcome.delay_us = seconds * static_cast<int64_t>(usec_per_sec);
        }
    } else if (status >= 400 && status < 500 && status != 408 &&
               status != 425) {
        outcome.verdict = Verdict::fail;
    }
    return outcome;
}

void Delivery::end(CURL *easy, CURLcode code)
{
    const auto found = active_.find(easy);
    const std::unique_ptr<Active> active = std::move(found->second);
    active_.erase(found);
    curl_multi_remove_handle(multi_, easy);
    answer_later(std::move(active->post.finished), judge(*active, code));
    Target *const target = active->target;
    --target->posts;
    while (!target->queue.empty() && may_post(*target)) {
        Post post = std::move(target->queue.front().post);
        target->queue.pop_front();
        --waiting_;
        begin(std::move(post), target);
    }
    release(target);
}

// Forgets a target that has no work.
void Delivery::release(Target *target)
{
    if (target->posts == 0 && target->queue.empty()) {
        const std::string name = target->name;
        targets_.erase(name);
    }
}

// Spread over a second, because others are deferred at the same time.
Outcome Delivery::deferred(const char *why)
{
    std::uniform_int_distribution<int64_t> delay(usec_per_sec / 2,
                                                 usec_per_sec * 3 / 2);
    return {Verdict::defer, delay(random_), why};
}

void Delivery::answer_later(Finished finished, Outcome outcome)
{
    answers_.emplace_back(std::move(finished), std::move(outcome));
    if (!answer_timer_.is_active()) {
        answer_timer_.start_after(0);
    }
}

void Delivery::answer_all()
{
    while (!answers_.empty()) {
        const auto [finished, outcome] = std::move(answers_.front());
        answers_.pop_front();
        finished(outcome);
    }
}

void Delivery::defer_queue(Target *target, lawn_time_t before)
{
    while (!target->queue.empty() && target->queue.front().since <= before) {
        answer_later(std::move(target->queue.front().post.finished),
                     deferred("the target takes too long"));
        target->queue.pop_front();
        --waiting_;
    }
}

void Delivery::defer_old()
{
    const lawn_time_t now = loop_.now();
    const lawn_time_t longest =
        lawn_time_from_usec(static_cast<double>(limits_.queue_timeout_us));
    for (const auto &[name, target] : targets_) {
        defer_queue(target.get(), now > longest ? now - longest : 0);
    }
    if (waiting_ != 0) {
        sweep_.start_after(limits_.queue_timeout_us / 10 + 1);
    }
}

void Delivery::drain()
{
    is_draining_ = true;
    for (const auto &[name, target] : targets_) {
        defer_queue(target.get(), LAWN_TIME_INFINITY);
    }
}

void Delivery::act(curl_socket_t fd, int mask)
{
    int running = 0;
    curl_multi_socket_action(multi_, fd, mask, &running);
    advance();
}

void Delivery::advance()
{
    int left = 0;
    while (const CURLMsg *const message = curl_multi_info_read(multi_, &left)) {
        if (message->msg == CURLMSG_DONE) {
            end(message->easy_handle, message->data.result);
        }
    }
}

void Delivery::on_events(uint32_t /*events*/)
{
    epoll_event events[64];
    const int count = epoll_wait(epoll_fd_, events, std::size(events), 0);
    for (int i = 0; i < count; ++i) {
        int mask = 0;
        mask |= events[i].events & EPOLLIN ? CURL_CSELECT_IN : 0;
        mask |= events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0;
        mask |= events[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0;
        act(events[i].data.fd, mask);
    }
}

int Delivery::on_socket(CURL * /*easy*/, curl_socket_t fd, int what, void *self,
                        void * /*socket*/)
{
    const int epoll_fd = static_cast<Delivery *>(self)->epoll_fd_;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, nullptr);
        return 0;
    }
    epoll_event event = {};
    event.events = (what & CURL_POLL_IN ? uint32_t{EPOLLIN} : 0) |
                   (what & CURL_POLL_OUT ? uint32_t{EPOLLOUT} : 0);
    event.data.fd = fd;
    if (epoll_ctl(epoll_fd, EPOLL_CTL_MOD, fd, &event) != 0) {
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
    }
    return 0;
}

int Delivery::on_timer(CURLM * /*multi*/, long msec, void *self)
{
    lawn::durable::Timer &timer = static_cast<Delivery *>(self)->timer_;
    if (msec < 0) {
        timer.stop();
    } else {
        timer.start_after(static_cast<uint64_t>(msec) * 1000);
    }
    return 0;
}

} // namespace lawnd
