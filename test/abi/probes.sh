#!/bin/bash
# The library has the probes that doc/trace.md lists, and no others.
# Usage: probes.sh LIBRARY SOURCE_ROOT
set -euo pipefail
# shellcheck disable=SC2016 # the backquotes are Markdown
listed=$(sed -n 's/^| `lawn:\([a-z]*\)` .*/\1/p' "$2/doc/trace.md" | sort)
found=$(readelf --notes "$1" | awk '
    $1 == "Provider:" { provider = $2 }
    $1 == "Name:" && provider == "lawn" { print $2 }' | sort -u)
diff <(echo "$listed") <(echo "$found")
echo "ok $(wc -l <<<"$found") probes"
