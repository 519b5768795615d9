#!/bin/bash
# Every public header compiles on its own, as C11 and as C++17, without a
# warning. Usage: headers.sh INCLUDE_DIR
set -euo pipefail
include=$1
flags="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fsyntax-only"
for header in "$include"/lawn/*.h; do
    name=lawn/$(basename "$header")
    # CC and CXX may carry a launcher or flags: split on purpose.
    # shellcheck disable=SC2086
    echo "#include <$name>" | $CC -std=c11 $flags -I "$include" -x c -
    # shellcheck disable=SC2086
    echo "#include <$name>" | $CXX -std=c++17 $flags -I "$include" -x c++ -
    echo "ok $name"
done
