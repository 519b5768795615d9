#!/bin/bash
# Every public header compiles on its own without a warning: those of the C API
# as C11 and as C++17, those for C++ as C++17, with and without exceptions and
# RTTI. A *_inline.h is part of another header, and says so. Usage: headers.sh INCLUDE_DIR...
set -euo pipefail
include=("${@/#/-I}")
flags="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
-Werror -fsyntax-only"
# What a header is made for, which need not be installed.
declare -A needs=([lawn/verbs.h]=infiniband/verbs.h
    [lawn/verbs_cq.h]=infiniband/verbs.h [lawn/verbs_events.h]=infiniband/verbs.h
    [lawn/ucx.h]=ucp/api/ucp.h
    [lawn/dpdk.h]=rte_ethdev.h [lawn/dpdk_lcore.h]=rte_ethdev.h)
mapfile -t headers < <(find "$@" -name "*.h" | sort)
for header in "${headers[@]}"; do
    name=lawn/$(basename "$header")
    if [[ $name == *_inline.h ]]; then
        # shellcheck disable=SC2086
        error=$(echo "#include <$name>" |
            $CC -fsyntax-only "${include[@]}" -x c - 2>&1) || true
        grep -q '#error "include lawn/' <<<"$error"
        continue
    fi
    # CC and CXX may carry a launcher or flags: split on purpose.
    # shellcheck disable=SC2086
    if [[ ${needs[$name]-} ]] && ! echo "#include <${needs[$name]}>" |
        $CC -fsyntax-only "${include[@]}" -x c - 2>/dev/null; then
        echo "left out $name: no ${needs[$name]}"
        continue
    fi
    # shellcheck disable=SC2086
    echo "#include <$name>" | $CC -std=c11 $flags "${include[@]}" -x c -
    # shellcheck disable=SC2086
    echo "#include <$name>" | $CXX -std=c++17 $flags "${include[@]}" -x c++ -
    echo "ok $name"
done

# Templates are only compiled where they are used.
use='
#include <lawn/lawn.hpp>
#include <chrono>
void use();
void use()
{
    using namespace std::chrono;
    lawn_time_t fired = lawn::tsc_clock::to_ticks(hours(1));
    const lawn::lawn_ptr lawn = lawn::make_lawn();
    const lawn::keyed_ptr keyed = lawn::make_keyed(lawn.get(), 1);
    lawn::engine engine = lawn::make_engine();
    lawn::timer one([&](lawn_time_t now) { fired = now; });
    lawn::timer two([&](lawn::timer_base &timer, lawn_time_t now) {
        timer.start(lawn.get(), now, fired);
    });
    one.start(engine, duration<double>(0.5));
    one.start(engine, duration<unsigned char>(5));
    two.start(engine.get(), 5);
    one.start(lawn.get(), 0, milliseconds(5));
    one.start_at(engine, engine.now() + 5);
    one.start_at(engine, lawn::tsc_clock::now() + seconds(5));
    one.start_at(engine, steady_clock::now() + duration<float>(5));
    one.stop();
    two.pause();
    lawn::function_timer any([&fired](lawn_time_t now) { fired = now; });
    any.start(engine, minutes(1));
    lawn::periodic tick([&fired](lawn_time_t, uint64_t n) { fired = n; });
    lawn::periodic tock([](auto &self, lawn_time_t, uint64_t) { self.stop(); });
    lawn::periodic plain([&fired](lawn_time_t now) { fired = now; });
    tick.start(engine, milliseconds(1));
    tock.start(engine, lawn_time_t{5});
    plain.start(lawn.get(), 0, 5);
    engine.progress();
    engine.wait(microseconds(5));
    engine.wait();
    auto shared = lawn::make_shared_timer(lawn_engine_box(engine.get()),
                                          [&](lawn_time_t now) { fired = now; });
    auto same = lawn::make_shared_timer(engine, [](lawn_time_t) {});
    same.start(engine, duration<double>(0.5));
    same.start_at(engine, steady_clock::now());
    shared.start_at(5);
    shared.start_local_at(5);
    shared.stop();
    shared.sync();
}'
mapfile -t headers < <(find "$@" -name "*.hpp" | sort)
for header in "${headers[@]}"; do
    name=lawn/$(basename "$header")
    for more in '' '-fno-exceptions -fno-rtti'; do
        # shellcheck disable=SC2086
        echo "#include <$name>$use" |
            $CXX -std=c++17 $flags $more "${include[@]}" -x c++ -
    done
    echo "ok $name"
done

# A callable that does not fit is no allocation, but an error that says so.
large='
#include <lawn/lawn.hpp>
struct large {
    void *words[6];
    void operator()(lawn_time_t) {}
};
lawn::function_timer timer(large{});'
# shellcheck disable=SC2086
if error=$(echo "$large" |
    $CXX -std=c++17 $flags "${include[@]}" -x c++ - 2>&1); then
    echo "a callable that does not fit compiles"
    exit 1
fi
grep -q 'does not fit' <<<"$error"
echo "ok lawn::function_timer"

# lawn_container_of() takes the member's type and no other, in both languages.
container='
#include <lawn/timer.h>
typedef struct {
    int name;
    lawn_timer_t timer;
} object_t;
object_t *of(lawn_timer_t *given);
object_t *of(lawn_timer_t *given)
{
    return lawn_container_of(given, object_t, MEMBER);
}'
for compiler in "$CC -std=c11 -x c" "$CXX -std=c++17 -x c++"; do
    # shellcheck disable=SC2086
    $compiler $flags "${include[@]}" - <<<"${container/MEMBER/timer}"
    # shellcheck disable=SC2086
    if $compiler $flags "${include[@]}" - <<<"${container/MEMBER/name}" \
        2>/dev/null; then
        echo "lawn_container_of() takes another type: $compiler"
        exit 1
    fi
done
echo "ok lawn_container_of"
