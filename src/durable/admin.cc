// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// List, dead letters, replay, statistics, drain.
