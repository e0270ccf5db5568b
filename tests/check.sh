#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks before a push what CI checks after it; with `sanitizers`, also what CI has no time for.
set -eu
cd "$(dirname "$0")/.."

case ${1:-} in
  '') TROUPE_BUILD=$PWD/build-check CI=true ./dev test ;;
  sanitizers)
    ./dev test --sanitize address unit kernels
    ./dev test --sanitize thread unit kernels
    ;;
  *) echo "usage: tests/check.sh [sanitizers]" >&2 && exit 2 ;;
esac
