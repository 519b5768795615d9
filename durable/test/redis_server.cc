// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0

#include "redis_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace lawn_test
{
namespace
{

constexpr timeval patience = {60, 0};

Reply copy(const redisReply &from)
{
    Reply to;
    switch (from.type) {
    case REDIS_REPLY_INTEGER:
        to.type = Reply::number;
        to.integer = from.integer;
        break;
    case REDIS_REPLY_NIL:
        to.type = Reply::nil;
        break;
    case REDIS_REPLY_ARRAY:
        to.type = Reply::list;
        for (size_t i = 0; i < static_cast<size_t>(from.elements); ++i) {
            to.elements.push_back(copy(*from.element[i]));
        }
        break;
    default:
        to.type = from.type == REDIS_REPLY_ERROR    ? Reply::error
                  : from.type == REDIS_REPLY_STATUS ? Reply::status
                                                    : Reply::text;
        to.string.assign(from.str, static_cast<size_t>(from.len));
        break;
    }
    return to;
}

// The words as execve takes them.
std::vector<char *> pointers(Words &words)
{
    std::vector<char *> all;
    for (std::string &word : words) {
        all.push_back(&word[0]);
    }
    all.push_back(nullptr);
    return all;
}

} // namespace

std::string to_string(const Reply &reply)
{
    switch (reply.type) {
    case Reply::none:
        return "(no answer)";
    case Reply::nil:
        return "(nil)";
    case Reply::number:
        return std::to_string(reply.integer);
    case Reply::error:
        return "(error) " + reply.string;
    case Reply::list: {
        std::string all = "[";
        for (const Reply &element : reply.elements) {
            all += (all.size() > 1 ? ", " : "") + to_string(element);
        }
        return all + "]";
    }
    default:
        return "\"" + reply.string + "\"";
    }
}

RedisServer::RedisServer(Words options, Words environment)
    : options_(std::move(options)), environment_(std::move(environment))
{
    const char *const top = getenv("TMPDIR");
    directory_ = std::string(top ? top : "/tmp") + "/lawn-redis-XXXXXX";
    if (!mkdtemp(&directory_[0])) {
        throw std::runtime_error("no directory " + directory_);
    }
    start();
}

RedisServer::~RedisServer()
{
    kill();
    std::error_code error;
    std::filesystem::remove_all(directory_, error);
}

std::string RedisServer::socket() const
{
    return directory_ + "/socket";
}

std::string RedisServer::url() const
{
    return "unix:" + socket();
}

std::string RedisServer::log() const
{
    std::ifstream file(directory_ + "/log");
    return {std::istreambuf_iterator<char>(file), {}};
}

void RedisServer::set_options(Words options)
{
    options_ = std::move(options);
}

void RedisServer::start(bool loading)
{
    if (is_running()) {
        return;
    }
    const char *const server = getenv("LAWN_REDIS_SERVER");
    Words words = {server ? server : "redis-server",
                   "--unixsocket",
                   socket(),
                   "--dir",
                   directory_,
                   "--port",
                   "0",
                   "--save",
                   "",
                   "--appendonly",
                   "no",
                   "--logfile",
                   directory_ + "/log",
                   "--daemonize",
                   "no"};
    words.insert(words.end(), options_.begin(), options_.end());
    const std::vector<char *> arguments = pointers(words);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (std::string &setting : environment_) {
            putenv(&setting[0]);
        }
        const int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(null, 1);
        if (getppid() == parent) {
            execvp(arguments[0], arguments.data());
        }
        _exit(127);
    }
    ASSERT_GT(pid_, 0);
    const auto end = std::chrono::steady_clock::now() +
                     std::chrono::seconds(patience.tv_sec);
    while (std::chrono::steady_clock::now() < end) {
        const Reply reply = command({"PING"});
        if (reply.type == Reply::status ||
            (reply.is_error() &&
             (loading || reply.string.compare(0, 7, "LOADING") != 0))) {
            return;
        }
        int status = 0;
        if (waitpid(pid_, &status, WNOHANG) == pid_) {
            pid_ = -1;
            FAIL() << "redis-server ended with " << status << ": " << log();
        }
        usleep(2000);
    }
    FAIL() << "redis-server does not answer: " << log();
}

void RedisServer::end(int signal)
{
    context_.reset();
    if (!is_running()) {
        return;
    }
    ::kill(pid_, signal);
    ::kill(pid_, SIGCONT);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
}

void RedisServer::kill()
{
    end(SIGKILL);
}

void RedisServer::stop()
{
    end(SIGTERM);
}

void RedisServer::pause()
{
    ASSERT_TRUE(is_running());
    ASSERT_EQ(::kill(pid_, SIGSTOP), 0);
}

void RedisServer::resume()
{
    ASSERT_TRUE(is_running());
    ASSERT_EQ(::kill(pid_, SIGCONT), 0);
}

bool RedisServer::connect()
{
    if (context_ && !context_->err) {
        return true;
    }
    context_.reset(redisConnectUnixWithTimeout(socket().c_str(), patience));
    if (!context_ || context_->err) {
        context_.reset();
        return false;
    }
    redisSetTimeout(context_.get(), patience);
    return true;
}

Reply RedisServer::command(const Words &words)
{
    return pipeline({words}).front();
}

std::vector<Reply> RedisServer::pipeline(const std::vector<Words> &commands)
{
    std::vector<Reply> replies(commands.size());
    if (!connect()) {
        return replies;
    }
    for (const Words &words : commands) {
        std::vector<const char *> texts;
        std::vector<size_t> sizes;
        for (const std::string &word : words) {
            texts.push_back(word.data());
            sizes.push_back(word.size());
        }
        redisAppendCommandArgv(context_.get(), static_cast<int>(words.size()),
                               texts.data(), sizes.data());
    }
    for (Reply &reply : replies) {
        void *answer = nullptr;
        if (redisGetReply(context_.get(), &answer) != REDIS_OK || !answer) {
            context_.reset();
            break;
        }
        reply = copy(*static_cast<redisReply *>(answer));
        freeReplyObject(answer);
    }
    return replies;
}

unsigned long RedisServer::calls(const std::string &name)
{
    const std::string stats = command({"INFO", "commandstats"}).string;
    const std::string text = "cmdstat_" + name + ":calls=";
    const size_t at = stats.find(text);
    return at == stats.npos ? 0 : std::stoul(stats.substr(at + text.size()));
}

} // namespace lawn_test
