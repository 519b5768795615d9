// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A trace as one page of HTML that needs nothing else: page.html with page.css,
// the scripts and the data in it.

#ifndef LAWN_TOOLS_TRACE_PAGE_H
#define LAWN_TOOLS_TRACE_PAGE_H

#include "model.h"

#include <string>

namespace trace_file
{

// What the scripts of the page read.
std::string json_of(const Model &model, const std::string &title);

std::string page_of(const Model &model, const std::string &title);

// The files, made part of the program by meson (page_files.cc.in).
extern const char page_html[];
extern const char page_css[];
extern const char page_script[];

} // namespace trace_file

#endif
