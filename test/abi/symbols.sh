#!/bin/bash
# liblawn.so needs libc and nothing else, exports what the version script names
# and nothing else, and runs no code when it is loaded.
# Usage: symbols.sh LIBRARY VERSION_SCRIPT; CC is the compiler
set -euo pipefail
library=$1 map=$2

needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
case $needed in
libc.so.*) ;;
*)
    echo "needs more than libc: $needed"
    exit 1
    ;;
esac

named=$(sed -n 's/^ *\(lawn_[a-z_]*\);$/\1/p' "$map" | sort)
exported=$(nm -D --defined-only "$library" |
    sed -n 's/.* [TBDRV] \(lawn_[a-z_]*\).*/\1/p' | sort)
others=$(nm -D --defined-only "$library" |
    awk '$2 != "A" && $3 !~ /^lawn_[a-z_]*(@@.*)?$/')
diff <(echo "$named") <(echo "$exported")
if [ -n "$others" ]; then
    echo "exported but not Lawn's: $others"
    exit 1
fi

# What the compiler has every library run, an almost empty one shows; in a
# stripped one, too. With an atomic operation, GCC for aarch64 looks for the
# instructions that the processor has.
initialisers() {
    readelf -SW "$1" | sed 's/^.*] //' |
        awk '$1 ~ /^\.(preinit_array|init_array|ctors)$/ { print $1, $5 }'
}
empty=$(mktemp)
trap 'rm -f "$empty"' EXIT
read -ra cc <<<"$CC"
"${cc[@]}" -shared -fPIC -x c - -o "$empty" <<'END'
int add(int *to) { return __atomic_fetch_add(to, 1, __ATOMIC_SEQ_CST); }
END
if ! diff <(initialisers "$empty") <(initialisers "$library"); then
    echo "static initialisers: $(nm -C "$library" | grep '_GLOBAL__sub_I')"
    exit 1
fi
echo "ok $(wc -l <<<"$exported") symbols, needs $needed"
