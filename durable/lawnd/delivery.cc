// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// libcurl has its sockets in an epoll set of their own, which is one descriptor
// of the loop: what it does to its sockets while it is called then needs no
// care. Everybody is answered by a timer of no time, outside of libcurl and of
// submit(), because those who are told may submit more.

#include "delivery.h"
#include "outcome.h"
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

constexpr uint64_t usec_per_sec = 1000000;

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

long msec_of(uint64_t usec)
{
    return static_cast<long>(usec / 1000);
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
    Share share;
    std::deque<Queued> queue;
    // In idle_ at `place` while it has no work, else in `self`.
    std::list<Target *> self;
    std::list<Target *>::iterator place;
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
    Standing begun = Standing::untried; // that of the target
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
    return target.share.may_post(limits_, posts_);
}

Delivery::Target *Delivery::target_of_name(const std::string &name)
{
    std::unique_ptr<Target> &slot = targets_[name];
    if (!slot) {
        slot = std::make_unique<Target>();
        slot->name = name;
        slot->self.push_back(slot.get());
    } else if (slot->self.empty()) { // it is idle
        slot->self.splice(slot->self.begin(), idle_, slot->place);
    }
    return slot.get();
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
    Target *const target = target_of_name(name);
    if (is_draining_) {
        answer_later(std::move(post.finished), deferred("the daemon ends"));
    } else if (may_post(*target)) {
        begin(std::move(post), target);
    } else if (target->share.may_wait(limits_, target->queue.size(),
                                      waiting_)) {
        target->queue.push_back({std::move(post), loop_.now()});
        ++waiting_;
        if (!sweep_.is_active()) {
            sweep_.start_after(limits_.queue_timeout_us);
        }
    } else {
        answer_later(std::move(post.finished),
                     deferred("too many posts wait for the target", target));
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
    active->begun = target->share.begin(&posts_);
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
    return outcome_of(active.easy, code, active.error);
}

void Delivery::end(CURL *easy, CURLcode code)
{
    const auto found = active_.find(easy);
    const std::unique_ptr<Active> active = std::move(found->second);
    active_.erase(found);
    curl_multi_remove_handle(multi_, easy);
    Outcome outcome = judge(*active, code);
    Target *const target = active->target;
    target->share.end(active->begun, &posts_, loop_.now());
    note_end(target, code, outcome);
    answer_later(std::move(active->post.finished), std::move(outcome));
    while (!target->queue.empty() && may_post(*target)) {
        Post post = std::move(target->queue.front().post);
        target->queue.pop_front();
        --waiting_;
        begin(std::move(post), target);
    }
    release(target);
}

// What the end of a post says of its target. If it could not be made, nothing.
void Delivery::note_end(Target *target, CURLcode code, const Outcome &outcome)
{
    const Standing before = target->share.standing();
    const bool is_silent = code == CURLE_OPERATION_TIMEDOUT;
    const bool was_silent = before == Standing::silent;
    if (outcome.verdict == Verdict::defer) {
        return;
    }
    target->share.set_standing(is_silent ? Standing::silent : Standing::good);
    if (is_silent == was_silent) {
        return;
    }
    if (is_silent) {
        ++silent_;
        defer_queue(target, LAWN_TIME_INFINITY);
    } else {
        --silent_;
    }
    if (told) {
        told(target->name, is_silent);
    }
}

// One that has no work. It is remembered for a while, as is whether it answers.
void Delivery::release(Target *target)
{
    if (target->share.posts() != 0 || !target->queue.empty()) {
        return;
    }
    target->place = target->self.begin();
    idle_.splice(idle_.end(), target->self);
    if (target->share.standing() == Standing::untried) {
        forget(target);
    } else if (idle_.size() > limits_.idle_targets) {
        forget(idle_.front());
    }
}

void Delivery::forget(Target *target)
{
    silent_ -= target->share.standing() == Standing::silent;
    idle_.erase(target->place);
    const std::string name = target->name;
    targets_.erase(name);
}

// Spread from half to one and a half of the pause, because others are deferred
// at the same time; but to 64 moments in it, as what is due together costs the
// store less.
Outcome Delivery::deferred(const char *why, Target *target)
{
    const auto pause = static_cast<int64_t>(
        target ? target->share.put_off_us(loop_.now()) : usec_per_sec);
    const int64_t step = pause / 64;
    const auto now = static_cast<int64_t>(lawn_time_to_usec(loop_.now()));
    std::uniform_int_distribution<int64_t> delay(pause / 2,
                                                 pause * 3 / 2 - step);
    const int64_t due = now + delay(random_);
    return {Verdict::defer, due + step - due % step - now, why};
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
                     deferred("the target takes too long", target));
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
