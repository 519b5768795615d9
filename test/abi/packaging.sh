#!/bin/bash
# A ten-line program outside the tree builds and runs against the installed
# library by pkg-config, shared and static, and with Lawn as a meson subproject.
# Usage: packaging.sh SOURCE_ROOT
set -euo pipefail
root=$1
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

quietly() {
    "$@" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
}

expect_rang() {
    output=$("$@")
    [ "$output" = rang ] || { echo "$* printed: $output"; exit 1; }
}

# Installed. The other parts are off: this is about the library.
quietly "$MESON" setup "$work/build" "$root" --prefix "$work/prefix" \
    --libdir lib -Dtests=disabled -Dbench=disabled \
    -Dverbs=disabled -Ducx=disabled -Ddpdk=disabled
quietly "$MESON" install -C "$work/build"
export PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig
read -ra flags < <(pkg-config --cflags --libs lawn)
# shellcheck disable=SC2086  # CC may carry a launcher or flags
$CC -std=c11 "$work/ten.c" -o "$work/ten" "${flags[@]}"
expect_rang env LD_LIBRARY_PATH="$work/prefix/lib" "$work/ten"
echo "ok pkg-config"
read -ra flags < <(pkg-config --cflags lawn)
# shellcheck disable=SC2086
$CC -std=c11 "$work/ten.c" -o "$work/ten-static" "${flags[@]}" \
    "$work/prefix/lib/liblawn.a"
expect_rang "$work/ten-static"
echo "ok static"

mkdir -p "$work/user/subprojects"
ln -s "$root" "$work/user/subprojects/lawn"
cp "$work/ten.c" "$work/user/"
cat >"$work/user/meson.build" <<'END'
project('user', 'c')
executable('ten', 'ten.c',
  dependencies: dependency('lawn', fallback: ['lawn', 'lawn_dep']))
END
quietly "$MESON" setup "$work/user/build" "$work/user"
quietly "$MESON" compile -C "$work/user/build"
expect_rang "$work/user/build/ten"
echo "ok subproject"
