#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# benchmarks/links between two network namespaces that are joined by a pair of virtual cards, as between two machines.
# Needs root, and `ip` of the package iproute2: links_between_namespaces.sh PATH/OF/links
set -eu
links=$1
near=troupe-near-$$
far=troupe-far-$$
server=
cleanup() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  ip netns del "$near" 2>/dev/null || true
  ip netns del "$far" 2>/dev/null || true
}
trap cleanup EXIT INT TERM
if ! ip netns add "$near" 2>/dev/null; then
  echo "no network namespaces can be made here" >&2
  exit 77
fi
ip netns add "$far"
ip link add near0 netns "$near" type veth peer name far0 netns "$far"
ip -n "$near" addr add 10.77.0.1/24 dev near0
ip -n "$far" addr add 10.77.0.2/24 dev far0
for space in "$near" "$far"; do ip -n "$space" link set lo up; done
ip -n "$near" link set near0 up
ip -n "$far" link set far0 up
ip netns exec "$far" "$links" serve 10.77.0.2 4500 &
server=$!
ip netns exec "$near" "$links" ask 10.77.0.2 4500
