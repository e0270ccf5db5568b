#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks before a push what CI checks after it; with `sanitizers`, also what CI has no time for.
set -eu
cd "$(dirname "$0")/.."

# Runs the suites "$3"... in a build directory of their own, "$1", with the sanitizers "$2".
sanitized() {
  directory=$PWD/$1
  [ -e "$directory/build.ninja" ] \
    || meson setup "$directory" . -Dbuildtype=debugoptimized -Db_lundef=false -Db_sanitize="$2"
  shift 2
  TROUPE_BUILD=$directory ./dev test "$@"
}

case ${1:-} in
  '') TROUPE_BUILD=$PWD/build-check CI=true ./dev test ;;
  sanitizers)
    # Some tests ask for more memory than there is, and are to be told so.
    ASAN_OPTIONS=allocator_may_return_null=1 sanitized build-asan address,undefined unit kernels
    sanitized build-tsan thread unit
    ;;
  *) echo "usage: tests/check.sh [sanitizers]" >&2 && exit 2 ;;
esac
