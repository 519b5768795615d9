// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// One redis-server that has everything on its disk before it answers.

#include "server.h"
#include "store.h"

#include <csignal>

namespace lawn_verify
{

namespace
{

class OneServer final : public Store
{
public:
    explicit OneServer(const std::string &directory)
        : url_("unix:" + directory + "/redis.sock"),
          server_(directory, "redis", 0,
                  {"--appendonly", "yes", "--appendfsync", "always"})
    {
        server_.start();
        server_.await();
    }

    std::string url() const override
    {
        return url_;
    }

    bool has_links() const override
    {
        return true;
    }

    FaultKinds kinds() const override
    {
        return {FaultKind::kill, FaultKind::pause};
    }

    void strike(const Fault &fault) override
    {
        if (fault.kind == FaultKind::kill) {
            server_.kill();
        } else {
            server_.signal(SIGSTOP);
        }
    }

    void mend(const Fault &fault) override
    {
        if (fault.kind == FaultKind::kill) {
            server_.start();
            server_.await();
        } else {
            server_.signal(SIGCONT);
        }
    }

    std::string advance(bool) override
    {
        return server_.find_ended();
    }

private:
    const std::string url_;
    Server server_;
};

} // namespace

std::unique_ptr<Store> make_one_server(const std::string &directory)
{
    return std::make_unique<OneServer>(directory);
}

} // namespace lawn_verify
