// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// URLs, durations and namespaces.
