/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The datagram: one header of fixed layout and byte order, followed by the
 * payload of a DATA datagram. The decoder checks the length, magic, type,
 * reserved bits and a CRC32C over the whole datagram before it uses a field. A
 * UD queue pair receives what anybody sends, and a link may flip bits although
 * there is a checksum, if the device does not verify it.
 *
 *      0  magic        4  version, type, flags, 0       8  run (64 bits)
 *     16  connection  20  seq                          24  time (64 bits)
 *     32  length      36  CRC32C of all but itself     40  payload
 */
#ifndef PINGPONG_WIRE_H
#define PINGPONG_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_HEADER_SIZE 40u
#define WIRE_MAGIC 0x4c57504eu /* "LWPN" */
#define WIRE_VERSION 2u

typedef enum {
    WIRE_DATA = 1,        /* a message */
    WIRE_ACK = 2,         /* acknowledges one DATA */
    WIRE_PROBE = 3,       /* are you there? */
    WIRE_PROBE_REPLY = 4, /* yes */
    WIRE_FIN = 5,         /* the client has no more to do */
    WIRE_FIN_ACK = 6      /* acknowledges the FIN */
} wire_type_t;

/* The sender of this datagram is the client. The flag tells a datagram of the
 * peer from one of our own that came back. */
#define WIRE_FLAG_CLIENT 0x01u
/* In a FIN: every message was delivered and acknowledged. */
#define WIRE_FLAG_COMPLETE 0x02u
#define WIRE_FLAGS 0x03u

typedef struct {
    wire_type_t type;
    unsigned flags;
    uint64_t run;        /* this run of this pair of programs */
    uint32_t connection; /* the logical one */
    uint32_t seq;        /* of the message, from 1; of a probe, 0 */
    /* When it was sent, by the sender's clock. An answer has `seq` and `time`
     * of what it answers, so its receiver knows which transmission that was. */
    uint64_t time;
    uint32_t length; /* of the payload */
} wire_header_t;

static inline void wire_put16(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)(value >> 8);
    to[1] = (uint8_t)value;
}

static inline void wire_put32(uint8_t *to, uint32_t value)
{
    wire_put16(to, value >> 16);
    wire_put16(to + 2, value);
}

static inline void wire_put64(uint8_t *to, uint64_t value)
{
    wire_put32(to, (uint32_t)(value >> 32));
    wire_put32(to + 4, (uint32_t)value);
}

static inline uint16_t wire_get16(const uint8_t *from)
{
    return (uint16_t)(from[0] << 8 | from[1]);
}

static inline uint32_t wire_get32(const uint8_t *from)
{
    return (uint32_t)wire_get16(from) << 16 | wire_get16(from + 2);
}

static inline uint64_t wire_get64(const uint8_t *from)
{
    return (uint64_t)wire_get32(from) << 32 | wire_get32(from + 4);
}

/* CRC32C, four bits at a time: its table of 64 bytes stays in the cache beside
 * the program's own data. `crc` is 0, or the result for the bytes before. */
static inline uint32_t wire_crc32c(uint32_t crc, const uint8_t *data,
                                   size_t length)
{
    static const uint32_t table[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
    crc = ~crc;
    for (size_t i = 0; i < length; ++i) {
        crc ^= data[i];
        crc = table[crc & 15] ^ crc >> 4;
        crc = table[crc & 15] ^ crc >> 4;
    }
    return ~crc;
}

static inline uint32_t wire_checksum(const uint8_t *datagram, uint32_t payload)
{
    uint32_t crc = wire_crc32c(0, datagram, WIRE_HEADER_SIZE - 4);
    return wire_crc32c(crc, datagram + WIRE_HEADER_SIZE, payload);
}

/* Writes the header. The header->length bytes of payload behind it must be
 * there already. Returns the length of the datagram. */
static inline size_t wire_encode(const wire_header_t *header, uint8_t *datagram)
{
    wire_put32(datagram, WIRE_MAGIC);
    datagram[4] = WIRE_VERSION;
    datagram[5] = (uint8_t)header->type;
    datagram[6] = (uint8_t)header->flags;
    datagram[7] = 0;
    wire_put64(datagram + 8, header->run);
    wire_put32(datagram + 16, header->connection);
    wire_put32(datagram + 20, header->seq);
    wire_put64(datagram + 24, header->time);
    wire_put32(datagram + 32, header->length);
    wire_put32(datagram + 36, wire_checksum(datagram, header->length));
    return WIRE_HEADER_SIZE + (size_t)header->length;
}

/* Reads a datagram of `length` bytes. Returns false if it is malformed: then
 * `header` must not be used. True means that some sender encoded this datagram.
 * It does not mean that the sender is the peer. */
static inline bool wire_decode(const uint8_t *datagram, size_t length,
                               wire_header_t *header)
{
    if (length < WIRE_HEADER_SIZE || wire_get32(datagram) != WIRE_MAGIC ||
        datagram[4] != WIRE_VERSION || datagram[7] != 0) {
        return false;
    }
    if (datagram[5] < WIRE_DATA || datagram[5] > WIRE_FIN_ACK ||
        (datagram[6] & ~WIRE_FLAGS) != 0) {
        return false;
    }
    header->type = (wire_type_t)datagram[5];
    header->flags = datagram[6];
    header->run = wire_get64(datagram + 8);
    header->connection = wire_get32(datagram + 16);
    header->seq = wire_get32(datagram + 20);
    header->time = wire_get64(datagram + 24);
    header->length = wire_get32(datagram + 32);
    if (header->length != length - WIRE_HEADER_SIZE) {
        return false;
    }
    bool is_probe =
        header->type == WIRE_PROBE || header->type == WIRE_PROBE_REPLY;
    if (is_probe != (header->seq == 0) ||
        (header->type != WIRE_DATA && header->length != 0)) {
        return false;
    }
    return wire_get32(datagram + 36) == wire_checksum(datagram, header->length);
}

#endif
