// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A stranger on the Ethernet; see foreign_frames.h.

#include "foreign_frames.h"

#include <gtest/gtest.h>

#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <random>

namespace e2e
{

namespace
{

constexpr size_t address_size = 6;
constexpr size_t header_size = 14;
constexpr uint8_t pingpong_type[] = {0x88, 0xb5};
constexpr uint8_t other_type[] = {0x88, 0xb6};

bool read_address(int fd, const std::string &link, uint8_t *address)
{
    ifreq request = {};
    link.copy(request.ifr_name, sizeof(request.ifr_name) - 1);
    if (ioctl(fd, SIOCGIFHWADDR, &request) != 0) {
        return false;
    }
    memcpy(address, request.ifr_hwaddr.sa_data, address_size);
    return true;
}

} // namespace

unsigned send_foreign_frames(const std::string &from, const std::string &to,
                             unsigned count)
{
    uint8_t frame[200];
    uint8_t source[address_size];
    std::mt19937 random(1);
    sockaddr_ll link = {};
    link.sll_family = AF_PACKET;
    link.sll_ifindex = static_cast<int>(if_nametoindex(from.c_str()));
    const int fd = socket(AF_PACKET, SOCK_RAW, 0);
    if (fd < 0 || !read_address(fd, from, source) ||
        !read_address(fd, to, frame)) {
        ADD_FAILURE() << "no packet socket on " << from << " and " << to;
        close(fd);
        return 0;
    }
    unsigned sent = 0;
    for (unsigned i = 0; i < count; ++i) {
        const bool is_other = i % 3 == 0;
        for (size_t n = header_size; n < sizeof(frame); ++n) {
            frame[n] = static_cast<uint8_t>(random());
        }
        memcpy(frame + address_size, source, address_size);
        if (i % 3 == 1) {
            frame[2 * address_size - 1] ^= 1;
        }
        memcpy(frame + 2 * address_size, is_other ? other_type : pingpong_type,
               sizeof(pingpong_type));
        sent += sendto(fd, frame, sizeof(frame), 0,
                       reinterpret_cast<const sockaddr *>(&link),
                       sizeof(link)) == sizeof(frame);
    }
    close(fd);
    return sent;
}

} // namespace e2e
