// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Ids, bodies of timers, stream entries and replies, to and from structures.
