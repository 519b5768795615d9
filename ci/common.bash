# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
#
# For the scripts of this folder: how they end, and where they ran. They source
# it.
# shellcheck shell=bash
program=$(basename "$0")

die() {
    printf '%s: %s\n' "$program" "$*" >&2
    exit 1
}

# Of what the user gave.
misused() {
    printf '%s: %s; see --help\n' "$program" "$*" >&2
    exit 2
}

# logged FILE COMMAND...: with its output in FILE. If the command fails, the end
# of that is shown.
logged() {
    local log=$1
    shift
    "$@" </dev/null >"$log" 2>&1 || {
        tail -n 40 "$log" >&2
        die "failed: $*"
    }
}

# machine SUFFIX: for plots.
machine() {
    local model
    model=$(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -n 1)
    echo "${model:-$(uname -m)}, $(nproc) processors$1"
}
