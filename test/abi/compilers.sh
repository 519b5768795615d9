#!/bin/bash
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
#
# All public headers compile together without a warning under each standard that
# the README names. What cannot use them is refused in one line: that is the
# first error, in whichever header comes first.
# Usage: compilers.sh INCLUDE_DIR...; CC and CXX are compilers, TCC too, if set
set -euo pipefail
include=("${@/#/-I}")
flags="-Wall -Wextra -pedantic -Wshadow -Wconversion -Wsign-conversion
-Werror -fsyntax-only"

# The headers for UCX and DPDK are as strict as those of UCX and DPDK are.
mapfile -t headers < <(find "$@" -name "*.h" ! -name "*_inline.h" \
    ! -name "verbs*.h" ! -name ucx.h ! -name "dpdk*.h" -printf '%f\n' | sort)
# CC and CXX may carry a launcher or flags: split on purpose.
# shellcheck disable=SC2086
if echo "#include <infiniband/verbs.h>" |
    $CC -fsyntax-only -x c - 2>/dev/null; then
    headers+=(verbs.h verbs_cq.h verbs_events.h)
else
    echo "left out lawn/verbs*.h: no libibverbs"
fi
all=$(printf '#include <lawn/%s>\n' "${headers[@]}")
c=(c99 gnu99 c11 c17 c2x)
cxx=(c++11 c++14 c++17 c++20 c++2b)

for standard in "${c[@]}"; do
    # shellcheck disable=SC2086
    $CC -std="$standard" $flags "${include[@]}" -x c - <<<"$all"
done
for standard in "${cxx[@]}"; do
    # shellcheck disable=SC2086
    $CXX -std="$standard" $flags "${include[@]}" -x c++ - <<<"$all"
done
for standard in "${cxx[@]:2}"; do
    # shellcheck disable=SC2086
    $CXX -std="$standard" $flags "${include[@]}" -x c++ - \
        <<<"#include <lawn/lawn.hpp>"
done
echo "ok ${#headers[@]} headers under ${c[*]} ${cxx[*]}"

# refused TEXT COMPILER...: by each header, and for no other reason at first.
refused() {
    local text=$1 header errors
    shift
    for header in "${headers[@]}"; do
        if errors=$(echo "#include <lawn/$header>" |
            "$@" "${include[@]}" - -o /dev/null 2>&1); then
            echo "compiles lawn/$header: $*"
            exit 1
        fi
        grep -m 1 error <<<"$errors" | grep -qF -e "$text" || {
            echo "lawn/$header, $*: $errors"
            exit 1
        }
    done
    echo "ok refused: $*"
}

read -ra words <<<"$CC"
refused "Lawn needs the inline of C99" "${words[@]}" -std=gnu89 -x c -c
case $("${words[@]}" -dumpmachine) in
x86_64-*)
    refused "Lawn needs a 64-bit machine" "${words[@]}" -m32 -x c -c
    refused "Lawn needs a 64-bit machine" "${words[@]}" -mx32 -x c -c
    ;;
esac
refused "-fshort-enums" "${words[@]}" -fshort-enums -x c -c
read -ra words <<<"$CXX"
refused "-fshort-enums" "${words[@]}" -fshort-enums -x c++ -c
if [[ ${TCC-} ]]; then
    refused "Lawn needs gcc, clang" "$TCC" -c
fi
