#!/bin/bash
# liblawn.so needs libc and nothing else, exports what the version script names
# and nothing else, and runs no code when it is loaded.
# Usage: symbols.sh LIBRARY VERSION_SCRIPT
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

initialisers=$(nm -C "$library" | grep '_GLOBAL__sub_I' || true)
if [ -n "$initialisers" ]; then
    echo "static initialisers: $initialisers"
    exit 1
fi
echo "ok $(wc -l <<<"$exported") symbols, needs $needed"
