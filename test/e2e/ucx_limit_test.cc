// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What lawn/ucx.h says of UCX about requests that are late, in UCX itself: a
// worker that sends to itself over TCP. The timers run on virtual time.

#include <lawn/ucx.h>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace
{

class UcxLimit : public testing::Test
{
protected:
    // Frees itself in its callback, as a program's request would.
    struct Request {
        lawn_ucx_limit_t limit = {}; // first
        UcxLimit *test;
        std::vector<char> data;
    };

    void SetUp() override
    {
        lawn_engine_params_t params = {};
        params.clock = [](void *arg) {
            return *static_cast<lawn_time_t *>(arg);
        };
        params.clock_arg = &now_;
        ASSERT_EQ(lawn_engine_create(&params, &engine_), LAWN_OK);

        ucp_config_t *config = nullptr;
        ASSERT_EQ(ucp_config_read(nullptr, nullptr, &config), UCS_OK);
        ASSERT_EQ(ucp_config_modify(config, "TLS", "tcp"), UCS_OK);
        ucp_params_t of_context = {};
        of_context.field_mask = UCP_PARAM_FIELD_FEATURES;
        of_context.features = UCP_FEATURE_TAG;
        ASSERT_EQ(ucp_init(&of_context, config, &context_), UCS_OK);
        ucp_config_release(config);
        const ucp_worker_params_t of_worker = {};
        ASSERT_EQ(ucp_worker_create(context_, &of_worker, &worker_), UCS_OK);
        const lawn_ucx_params_t of_ucx = {};
        ASSERT_EQ(lawn_ucx_open(&ucx_, engine_, worker_, &of_ucx), LAWN_OK);
    }

    void TearDown() override
    {
        lawn_ucx_close(&ucx_);
        ucp_worker_destroy(worker_);
        ucp_cleanup(context_);
        lawn_engine_destroy(engine_);
    }

    // To the worker itself.
    void connect()
    {
        ucp_address_t *address = nullptr;
        size_t size = 0;
        ASSERT_EQ(ucp_worker_get_address(worker_, &address, &size), UCS_OK);
        ucp_ep_params_t params = {};
        params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                            UCP_EP_PARAM_FIELD_ERR_HANDLER;
        params.address = address;
        params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler.cb = [](void *, ucp_ep_h, ucs_status_t) {};
        ASSERT_EQ(ucp_ep_create(worker_, &params, &endpoint_), UCS_OK);
        ucp_worker_release_address(worker_, address);
    }

    // By force, as one does to a peer that hangs.
    void close()
    {
        ucp_request_param_t param = {};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        param.flags = UCP_EP_CLOSE_FLAG_FORCE;
        const ucs_status_ptr_t request = ucp_ep_close_nbx(endpoint_, &param);
        endpoint_ = nullptr;
        ASSERT_FALSE(UCS_PTR_IS_ERR(request));
        if (request) { // UCX frees it when it has completed
            ucp_request_free(request);
        }
    }

    // As much as UCX could need for what it has to do.
    void progress()
    {
        for (int i = 0; i < 1000; ++i) {
            lawn_engine_progress(engine_);
        }
    }

    std::unique_ptr<Request> new_request(size_t size)
    {
        auto request = std::make_unique<Request>();
        request->test = this;
        request->data.resize(size);
        lawn_ucx_limit_init(
            &request->limit, [](lawn_ucx_limit_t *limit, lawn_time_t) {
                UcxLimit *const test = reinterpret_cast<Request *>(limit)->test;
                test->told_ += "late ";
                if (test->endpoint_) {
                    test->close();
                }
            });
        return request;
    }

    static void end(void *request, ucs_status_t status, void *user_data)
    {
        std::unique_ptr<Request> mine(static_cast<Request *>(user_data));
        UcxLimit *const test = mine->test;
        test->told_ += lawn_ucx_limit_end(&test->ucx_, &mine->limit)
                           ? "completed late "
                           : "completed ";
        test->status_ = status;
        ucp_request_free(request);
    }

    static ucp_request_param_t param_of(Request *request)
    {
        ucp_request_param_t param = {};
        param.op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        param.user_data = request;
        return param;
    }

    ucs_status_ptr_t receive(Request *request)
    {
        ucp_request_param_t param = param_of(request);
        param.cb.recv = [](void *request, ucs_status_t status,
                           const ucp_tag_recv_info_t *, void *user_data) {
            end(request, status, user_data);
        };
        return ucp_tag_recv_nbx(worker_, request->data.data(),
                                request->data.size(), 1, ~ucp_tag_t(), &param);
    }

    ucs_status_ptr_t send(Request *request)
    {
        ucp_request_param_t param = param_of(request);
        param.cb.send = end;
        return ucp_tag_send_nbx(endpoint_, request->data.data(),
                                request->data.size(), 2, &param);
    }

    lawn_time_t now_ = 1'000'000'000;
    lawn_engine_t *engine_ = nullptr;
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    ucp_ep_h endpoint_ = nullptr;
    lawn_ucx_t ucx_ = {};
    std::string told_;
    ucs_status_t status_ = UCS_OK;
};

TEST_F(UcxLimit, AReceiveCompletesInThePassThatCancelsIt)
{
    auto request = new_request(8);
    ASSERT_TRUE(lawn_ucx_limit_start(&ucx_, &request->limit,
                                     receive(request.get()), 100));
    request.release();
    now_ += 99;
    lawn_engine_progress(engine_);
    EXPECT_EQ(told_, "");
    now_ += 1;
    lawn_engine_progress(engine_);
    EXPECT_EQ(told_, "late completed late ");
    EXPECT_EQ(status_, UCS_ERR_CANCELED);
}

// Too long to go before somebody receives it, and nobody does.
TEST_F(UcxLimit, ASendCompletesWhenItsEndpointIsClosedByForce)
{
    connect();
    auto request = new_request(1 << 20);
    ASSERT_TRUE(
        lawn_ucx_limit_start(&ucx_, &request->limit, send(request.get()), 100));
    request.release();
    progress();
    EXPECT_EQ(told_, "");
    now_ += 100;
    lawn_engine_progress(engine_);
    EXPECT_EQ(told_, "late ");
    progress();
    EXPECT_EQ(told_, "late completed late ");
    EXPECT_EQ(status_, UCS_ERR_CANCELED);
}

} // namespace
