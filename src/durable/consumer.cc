// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A consumer of what has fired.
