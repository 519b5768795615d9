#!/usr/bin/env bash
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
#
# lawn_sim as a program: a seed replays to the same digest, another does not,
# and what it does not understand it refuses with one line and status 2.
set -euo pipefail

if [[ $# != 1 ]]; then
    echo "usage: replay.sh LAWN_SIM" >&2
    exit 2
fi
# For another machine, QEMU runs it.
read -ra sim <<<"${MESON_EXE_WRAPPER-} $1"

# digest SEED: of a short run. Address space randomisation differs each time.
digest() {
    "${sim[@]}" --seed "$1" --connections 300 --hosts 5 --hours 0.1 |
        sed -n 's/^digest: //p'
}

first=$(digest 7)
second=$(digest 7)
other=$(digest 8)
if [[ ! $first || $first != "$second" ]]; then
    echo "seed 7: digest '$first', then '$second'"
    exit 1
fi
if [[ $first == "$other" ]]; then
    echo "seeds 7 and 8: the same digest"
    exit 1
fi

"${sim[@]}" --help | grep -q '^usage: lawn_sim'

# refuses ARG...
refuses() {
    local status=0 said
    said=$("${sim[@]}" "$@" 2>&1 >/dev/null) || status=$?
    if [[ $status != 2 || $(wc -l <<<"$said") != 1 || ! $said ]]; then
        echo "'$*': status $status, said '$said'"
        exit 1
    fi
}

refuses --no-such-option
refuses stray
refuses --seed
refuses --seed ''
refuses --seed -1
refuses --seed 99999999999999999999999
refuses --seeds 5..4
refuses --seeds 1..
refuses --connections 0
refuses --connections 5x
refuses --hosts 1
refuses --hours 0
refuses --hours nan
refuses --quiet --verbose
