// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What takes longest to compile of nearly every test, compiled once. No test
// counts on it: each includes what it uses.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>
