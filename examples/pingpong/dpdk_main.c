/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * A ping-pong over DPDK that finds losses, stalls and dead peers by Lawn's
 * timers. The other ping-pongs share a main program. This one has its own,
 * because EAL must start first, and because there are two ways to run:
 *
 *     EAL has a port      one side, on the main lcore; the exchange tells it
 *                         the peer's address
 *     EAL has none        both sides, each on its own lcore, over two rings
 *
 * dpdk_side.c has the loop, dpdk_port.c the data path.
 */
#include "dpdk_eal.h"
#include "dpdk_side.h"
#include "exchange.h"
#include "options.h"

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    interrupted = number;
}

/* SA_RESTART is not set, so a signal also ends the waits of the exchange. */
static void catch_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_handler = on_signal;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void set_side(side_t *side, const options_t *options, bool is_client)
{
    side->options = options;
    side->is_client = is_client;
    side->deadline = options->timeout ? lawn_get_time() + options->timeout
                                      : LAWN_TIME_INFINITY;
    side->interrupted = &interrupted;
}

static bool wait_for_link(const side_t *side, const exchange_t *exchange)
{
    lawn_time_t limit = exchange_limit();
    while (!port_is_up(side->port)) {
        if (exchange_is_given_up(exchange)) {
            return false;
        }
        if (lawn_get_time() >= limit) {
            complain("no link: %s", port_name(side->port));
            return false;
        }
        rte_delay_us_sleep(1000);
    }
    return true;
}

/* Swaps addresses with the peer. The number of the run is made of the random
 * numbers of both sides, so no datagram of an earlier run of either side has
 * the same number.
 *
 * The server's port is started before the client's, because one end of a memif
 * connects only once, when it is started. */
static bool meet_peer(side_t *side, uint64_t *run_p)
{
    port_t *port = side->port;
    exchange_t exchange = {
        .options = side->options,
        .deadline = side->deadline,
        .interrupted = &interrupted,
        .fd = -1,
    };
    exchange_side_t own = {.nonce = exchange_nonce()};
    exchange_side_t peer;
    port_address(port, own.address);
    bool met = (side->is_client || port_start(port)) &&
               exchange_open(&exchange) &&
               exchange_swap(&exchange, &own, &peer) &&
               port_connect(port, peer.address) &&
               (!side->is_client || port_start(port)) &&
               wait_for_link(side, &exchange) && exchange_barrier(&exchange);
    exchange_close(&exchange);
    *run_p = met ? own.nonce ^ peer.nonce : 0;
    return met;
}

static int run_one_side(side_t *side, const options_t *options, uint16_t id)
{
    uint64_t number;
    set_side(side, options, options->host != NULL);
    side->port = port_open(id, options);
    if (!side->port || !meet_peer(side, &number) || !side_open(side, number)) {
        return lawn_get_time() >= side->deadline ? EXIT_TIMEOUT : EXIT_FAILED;
    }
    int result = side_run(side);
    side_report(side);
    return finish_output(result);
}

static bool connect_to(const side_t *peer, const side_t *side)
{
    uint8_t address[EXCHANGE_ADDRESS_SIZE];
    port_address(peer->port, address);
    return port_connect(side->port, address) && port_start(side->port);
}

static int run_both_sides(side_t *client, side_t *server,
                          const options_t *options)
{
    uint16_t ids[2];
    unsigned worker = rte_get_next_lcore(UINT_MAX, 1, 0);
    if (worker >= RTE_MAX_LCORE) {
        complain("both sides in one process need two lcores (--lcores=0@0,1@0 "
                 "makes two of one processor)");
        return EXIT_FAILED;
    }
    if (!port_make_pair(ids)) {
        return EXIT_FAILED;
    }
    uint64_t number = exchange_nonce();
    set_side(client, options, true);
    set_side(server, options, false);
    client->port = port_open(ids[0], options);
    server->port = client->port ? port_open(ids[1], options) : NULL;
    if (!server->port || !connect_to(client, server) ||
        !connect_to(server, client) || !side_open(client, number) ||
        !side_open(server, number) ||
        rte_eal_remote_launch(side_run, client, worker) != 0) {
        return EXIT_FAILED;
    }
    int of_server = side_run(server);
    int of_client = rte_eal_wait_lcore(worker);
    side_report(client);
    side_report(server);
    return finish_output(of_client ? of_client : of_server);
}

static int run(side_t sides[2], const options_t *options,
               const eal_arguments_t *arguments)
{
    uint64_t id = rte_eth_find_next_owned_by(0, RTE_ETH_DEV_NO_OWNER);
    if (id < RTE_MAX_ETHPORTS) {
        return run_one_side(&sides[0], options, (uint16_t)id);
    }
    if (eal_names_device(arguments)) {
        complain("EAL could not make a port of its device arguments "
                 "(--log-level=debug before -- tells more)");
        return EXIT_FAILED;
    }
    if (options->host) {
        complain("no port to reach %s by: give EAL one before -- (see --help)",
                 options->host);
        return EXIT_FAILED;
    }
    return run_both_sides(&sides[0], &sides[1], options);
}

int main(int argc, char **argv)
{
    static side_t sides[2];
    options_t options;
    program_name = "pingpong_dpdk";
    /* Flush each line, also into a pipe: a reader may wait for a line. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    eal_arguments_t arguments = eal_split(&argc, &argv);
    switch (options_parse(argc, argv, OPTIONS_OF_DPDK, &options)) {
    case OPTIONS_HELP:
        eal_print_help();
        return finish_output(EXIT_DELIVERED);
    case OPTIONS_BAD:
        return EXIT_USAGE;
    case OPTIONS_RUN:
        break;
    }
    catch_signals();
    if (!eal_start(&arguments)) {
        return EXIT_FAILED;
    }
    int result = run(sides, &options, &arguments);
    side_close(&sides[0]);
    side_close(&sides[1]);
    eal_stop();
    if (result == EXIT_TIMEOUT && !interrupted) {
        complain("not done within --timeout");
    }
    bool is_done = result == EXIT_DELIVERED || result == EXIT_VIOLATED;
    return interrupted && !is_done ? 128 + interrupted : result;
}
