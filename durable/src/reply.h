// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What Redis has replied, which may be anything; and what its errors mean.

#ifndef LAWN_SRC_DURABLE_REPLY_H
#define LAWN_SRC_DURABLE_REPLY_H

#include <hiredis/hiredis.h>
#include <lawn/base.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace lawn::durable
{

bool is_error(const redisReply *reply);
std::string_view text_of(const redisReply *reply); // "" if it has none
bool begins_with(std::string_view text, std::string_view prefix);
// What is behind `name` in a list of names and values, as of HELLO and CONFIG
// GET; "" if it has none.
std::string_view value_of(const redisReply *reply, std::string_view name);
// Integers, also as text.
bool number_of(const redisReply *reply, int64_t *number_p);
// One line, of bounded length.
std::string line_of(std::string_view text);
lawn_status_t status_of_error(std::string_view error);
// The store has not done what it answers with such an error. It may later.
bool is_passing(std::string_view error);

} // namespace lawn::durable

#endif
