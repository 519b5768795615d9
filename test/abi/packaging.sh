#!/bin/bash
# Lawn can be set up as a static and as a shared library alone. A ten-line
# program outside the tree builds and runs with Lawn as a meson subproject, and
# against the installed library by pkg-config, shared and static, and by CMake's
# find_package() where there is CMake.
# Usage: packaging.sh SOURCE_ROOT [durable]
set -euo pipefail
root=$1
durable=${2-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/ten.c" <<'END'
#include <lawn/lawn.h>
#include <stdio.h>
static void rang(lawn_timer_t *t, lawn_time_t now) { (void)t, (void)now, puts("rang"); }
int main(void)
{
    lawn_t *lawn;
    lawn_timer_t timer;
    if (lawn_create(NULL, &lawn) != LAWN_OK) return 1;
    lawn_timer_init(&timer, rang);
    lawn_timer_start(lawn, &timer, 0, lawn_time_from_msec(20));
    unsigned fired = lawn_advance(lawn, lawn_time_from_msec(21), 0);
    lawn_destroy(lawn);
    return fired == 1 ? 0 : 1;
}
END

cat >"$work/state.c" <<'END'
#include <lawn/durable.h>
#include <stdio.h>
int main(void)
{
    const lawn_durable_params_t params = {.url = "no URL"};
    lawn_durable_t *durable;
    puts(lawn_durable_state_string(LAWN_DURABLE_DEAD));
    return lawn_durable_open(&params, &durable) == LAWN_OK ||
           lawn_status_string(LAWN_OK) == NULL;
}
END

quietly() {
    "$@" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
}

expect() {
    local expected=$1 output
    shift
    output=$("$@")
    [ "$output" = "$expected" ] || { echo "$* printed: $output"; exit 1; }
}

# Each kind of library can be set up, with all that is found here.
for kind in static shared; do
    quietly "$MESON" setup "$work/$kind" "$root" -Ddefault_library="$kind" \
        -Dtests=auto -Dbench=auto
done
echo "ok static and shared alone"
"$MESON" introspect --install-plan "$work/shared" >"$work/plan"
if grep -q '"tag": null' "$work/plan"; then
    echo "what is installed without a tag, by no --tags:"
    grep -o '"destination": "[^"]*", "tag": null' "$work/plan"
    exit 1
fi
echo "ok tags"

# Only the tests of the durable tier need a server.
if [ "$durable" ]; then
    mkdir "$work/bin"
    IFS=: read -ra directories <<<"$PATH"
    for directory in "${directories[@]}"; do
        cp -sn "$directory"/* "$work/bin" 2>/dev/null || true
    done
    rm -f "$work/bin/redis-server"
    PATH=$work/bin quietly "$MESON" setup "$work/without" "$root" \
        -Ddurable=enabled -Dtests=auto
    echo "ok without redis-server"
fi

# A subproject, from which it is also installed: one build is enough.
mkdir -p "$work/user/subprojects"
ln -s "$root" "$work/user/subprojects/lawn"
cp "$work/ten.c" "$work/user/"
echo "project('user', 'c')" >"$work/user/meson.build"
# First: what a program needs that asks for nothing else.
if [ "$durable" ]; then
    cp "$work/state.c" "$work/user/"
    cat >>"$work/user/meson.build" <<'END'
executable('state', 'state.c',
  dependencies: dependency('lawn-durable', fallback: 'lawn'))
END
fi
cat >>"$work/user/meson.build" <<'END'
executable('ten', 'ten.c',
  dependencies: dependency('lawn', fallback: ['lawn', 'lawn_dep']))
END
quietly "$MESON" setup "$work/build" "$work/user" --prefix "$work/prefix" \
    --libdir lib -Doptimization=0 -Ddebug=false -Dlawn:default_library=both
quietly "$MESON" install -C "$work/build" --tags runtime,devel
expect rang "$work/build/ten"
[ ! "$durable" ] || expect dead "$work/build/state"
echo "ok subproject"

# Installed.
export PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig
read -ra flags < <(pkg-config --cflags --libs lawn)
# shellcheck disable=SC2086  # CC may carry a launcher or flags
$CC -std=c11 "$work/ten.c" -o "$work/ten" "${flags[@]}"
expect rang env LD_LIBRARY_PATH="$work/prefix/lib" "$work/ten"
echo "ok pkg-config"
read -ra flags < <(pkg-config --cflags lawn)
# shellcheck disable=SC2086
$CC -std=c11 "$work/ten.c" -o "$work/ten-static" "${flags[@]}" \
    "$work/prefix/lib/liblawn.a"
expect rang "$work/ten-static"
echo "ok static"

# The durable tier's headers are used with lawn's, and so is the library.
if [ "$durable" ]; then
    read -ra flags < <(pkg-config --cflags --libs lawn-durable)
    # shellcheck disable=SC2086
    $CC -std=c11 "$work/state.c" -o "$work/state" "${flags[@]}"
    expect dead env LD_LIBRARY_PATH="$work/prefix/lib" "$work/state"
    echo "ok pkg-config lawn-durable"
    # Where there is no shared one.
    mkdir "$work/archives"
    cp "$work"/prefix/lib/*.a "$work/archives"
    read -ra flags < <(pkg-config --define-variable=libdir="$work/archives" \
        --static --cflags --libs lawn-durable)
    # shellcheck disable=SC2086
    $CC -std=c11 "$work/state.c" -o "$work/state-static" "${flags[@]}"
    expect dead "$work/state-static"
    echo "ok static lawn-durable"
fi

# CMake, where the package has been moved to. No other version fits.
if command -v cmake >/dev/null; then
    IFS=. read -r major minor patch < <(pkg-config --modversion lawn)
    mkdir "$work/cmake"
    cp "$work/ten.c" "$work/cmake/"
    cat >"$work/cmake/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.16)
project(user C)
find_package(lawn $major.$minor REQUIRED)
add_executable(ten ten.c)
target_link_libraries(ten lawn::lawn)
foreach(version 0.0.9 $major.$minor.$((patch + 1)) $major.$((minor + 1))
                $((major + 1)))
  find_package(lawn \${version} QUIET)
  if(lawn_FOUND)
    message(FATAL_ERROR "lawn \${lawn_VERSION} was found for \${version}")
  endif()
endforeach()
END
    mv "$work/prefix" "$work/moved"
    if [ "$durable" ]; then
        cp "$work/state.c" "$work/cmake/"
        cat >>"$work/cmake/CMakeLists.txt" <<END
add_executable(state state.c)
target_link_libraries(state lawn::lawn-durable)
END
    fi
    quietly env CC="$CC" cmake -G Ninja -S "$work/cmake" \
        -B "$work/cmake/build" -DCMAKE_PREFIX_PATH="$work/moved"
    quietly cmake --build "$work/cmake/build"
    expect rang "$work/cmake/build/ten"
    [ ! "$durable" ] || expect dead "$work/cmake/build/state"
    echo "ok find_package"
fi
