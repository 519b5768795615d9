// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Start, stop, update, get and count.
