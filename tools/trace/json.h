// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// JSON, also for the inside of a <script> element of HTML: no text in it can
// end the element.

#ifndef LAWN_TOOLS_TRACE_JSON_H
#define LAWN_TOOLS_TRACE_JSON_H

#include <cstdint>
#include <string>
#include <string_view>

namespace trace_file
{

// Appends a string with its quotes. Bytes that are not printable ASCII, and
// those that mean something to HTML, become escapes: the name of a file need
// not be UTF-8, so each byte above 127 stands for the character of its number.
void append_quoted(std::string *out, std::string_view text);

// Appends the name of a timer, a string of hexadecimal digits.
void append_name(std::string *out, uint64_t name);

// Appends ns as ms, exactly.
void append_msec(std::string *out, uint64_t ns);

} // namespace trace_file

#endif
