#!/bin/bash
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
#
# The two files of ci/amalgamate: they compile without a warning, with and
# without exceptions and RTTI. A program in C with a Makefile links them by the C
# compiler, and needs the C library alone. They pass the tests of the library
# that need its public API alone. Usage: amalgamation.sh SOURCE_DIR
set -euo pipefail
root=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$root/ci/amalgamate" "$dir/vendor"
cd "$dir"

# CC and CXX may carry a launcher or flags: split on purpose.
# shellcheck disable=SC2086
$CXX -std=c++17 -O2 -Wall -Wextra -Wpedantic -Werror -c vendor/lawn.cc \
    -o /dev/null

sed 's,<lawn/lawn.h>,"lawn.h",' "$root/examples/hello.c" >hello.c
cat >Makefile <<'END'
CFLAGS = -std=c11 -O2 -Wall -Wextra -Werror
CPPFLAGS = -Ivendor
CXXFLAGS = -O2 -Wall -Wextra -Werror -fno-exceptions -fno-rtti

hello: hello.o lawn.o
	$(CC) $(LDFLAGS) hello.o lawn.o -o $@

lawn.o: vendor/lawn.cc vendor/lawn.h
	$(CXX) $(CXXFLAGS) -c vendor/lawn.cc
END
make -s "CC=$CC" "CXX=$CXX"
[[ $(./hello) == 'ping: no answer' ]]
needed=$(readelf -d hello | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
if [[ $needed != libc.so.6 ]]; then
    echo "a program that has lawn.o needs more than the C library: $needed" >&2
    exit 1
fi

if command -v cmake >/dev/null; then
    cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.13)
project(hello C CXX)
set(CMAKE_CXX_STANDARD 17)
add_executable(hello hello.c vendor/lawn.cc)
target_include_directories(hello PRIVATE vendor)
END
    cmake -S . -B cmake-build >/dev/null
    cmake --build cmake-build >/dev/null
    [[ $(cmake-build/hello) == 'ping: no answer' ]]
fi

# Programs include lawn/timer.h and its like; here each of these is lawn.h.
mkdir -p include/lawn
for header in "$root"/include/lawn/*.h; do
    echo '#include "../../vendor/lawn.h"' >"include/lawn/$(basename "$header")"
done
tests='
timer/deadline timer/foreign timer/observer timer/queue timer/timer
conn/conn conn/conn_life conn/conn_stall conn/flight
pacer/pacer pacer/pacer_rate
shared/shared shared/shared_count
stats/stats
'
objects=()
for room in timer conn pacer shared stats; do
    for test in $tests; do
        if [[ $test == $room/* ]]; then
            echo "#include \"$root/test/unit/${test}_test.cc\""
        fi
    done >"$room.cc"
    # shellcheck disable=SC2086
    $CXX -std=c++17 -Iinclude -I"$root/test" -c "$room.cc" &
    objects+=("$room.o")
done
for room in "${objects[@]}"; do
    wait -n
done
# shellcheck disable=SC2086,SC2046
$CXX "${objects[@]}" lawn.o $(pkg-config --libs gtest gtest_main) -pthread \
    -o tests
./tests --gtest_brief=1
