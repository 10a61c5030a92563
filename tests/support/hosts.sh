#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Emulates hosts as network namespaces, each with its own address. A veth pair connects each host to a bridge. The bridge has
# its own namespace, so that nothing is visible in the machine's network. Needs root and iproute2.
#   hosts.sh up TAG HOSTS      makes hosts 0 to HOSTS-1; host N is namespace hccl-TAG-N, whose eth0 is 10.213.0.N+1.
#                              TAG begins with the pid of the process that uses the hosts, and a dash.
#   hosts.sh down TAG          removes the hosts, and kills the processes in them
#   hosts.sh cut TAG N         disconnects host N
#   hosts.sh mend TAG N        reconnects host N
#   hosts.sh limit TAG RATE    limits each host's send rate to RATE, such as 1gbit, with a token bucket
#   hosts.sh intercept TAG N PORT USER
#                              redirects the TCP connections that host N opens, except those of USER, to its own port PORT
#   hosts.sh can-intercept     exits with 0 if the machine can intercept connections, or prints the reason and exits with 1
#   hosts.sh allowed           exits with 0 if the machine can emulate hosts, or prints the reason and exits with 1
set -euo pipefail

namespace() { printf 'hccl-%s-%s' "$1" "$2"; }
hosts_of() { ip netns list | awk -v prefix="hccl-$1-" 'index($1, prefix) == 1 { print $1 }'; }

# Removes the hosts of killed tests. A tag begins with the pid of its test.
sweep() {
  local name pid
  for name in $(ip netns list | awk '/^hccl-[0-9]+-/ { print $1 }'); do
    pid=${name#hccl-}
    pid=${pid%%-*}
    [ -d "/proc/$pid" ] || remove "$name"
  done
}

remove() {
  ip netns pids "$1" | xargs -r kill -KILL 2>/dev/null || true
  ip netns del "$1" 2>/dev/null || true  # another sweep may have removed it
}

up() {
  local tag=$1 hosts=$2 bridge host
  bridge=$(namespace "$tag" bridge)
  ip netns add "$bridge"
  ip -n "$bridge" link add bridge type bridge forward_delay 0
  ip -n "$bridge" link set bridge up
  for ((host = 0; host < hosts; ++host)); do
    local name
    name=$(namespace "$tag" "$host")
    ip netns add "$name"
    ip -n "$bridge" link add "host$host" type veth peer name eth0 netns "$name"
    ip -n "$bridge" link set "host$host" master bridge up
    ip -n "$name" link set lo up
    ip -n "$name" address add "10.213.0.$((host + 1))/24" dev eth0
    ip -n "$name" address add "fd00:213::$((host + 1))/64" dev eth0 nodad
    ip -n "$name" link set eth0 up
  done
}

down() {
  local name
  for name in $(hosts_of "$1"); do
    remove "$name"
  done
}

limit() {
  local name
  for name in $(hosts_of "$1"); do
    [[ $name == *-bridge ]] || ip netns exec "$name" tc qdisc replace dev eth0 root tbf rate "$2" burst 256kb latency 50ms
  done
}

intercept() {
  ip netns exec "$(namespace "$1" "$2")" nft -f - <<EOF
table ip on_path {
  chain outgoing {
    type nat hook output priority -100;
    ip daddr 10.213.0.0/24 ip daddr != 10.213.0.$(($2 + 1)) meta l4proto tcp meta skuid != $4 redirect to :$3
  }
}
EOF
}

can_intercept() {
  local trial="hccl-trial-$$" why
  command -v nft >/dev/null || { echo "this machine lacks nftables (the command nft)"; return 1; }
  ip netns add "$trial"
  if ! why=$(ip netns exec "$trial" nft add table ip trial 2>&1); then
    ip netns del "$trial"
    echo "nft fails: ${why//$'\n'/; }"
    return 1
  fi
  ip netns del "$trial"
}

allowed() {
  local trial="hccl-trial-$$" why
  command -v ip >/dev/null || { echo "this machine lacks iproute2 (the command ip)"; return 1; }
  if ! why=$(ip netns add "$trial" 2>&1 && ip -n "$trial" link add trial0 type veth peer name trial1 2>&1); then
    ip netns del "$trial" 2>/dev/null || true
    echo "this machine cannot create network namespaces with veth pairs: ${why//$'\n'/; }"
    return 1
  fi
  ip netns del "$trial"
}

case ${1:-} in
  up) sweep; up "$2" "$3" || { down "$2"; exit 1; } ;;
  down) down "$2" ;;
  cut) ip -n "$(namespace "$2" bridge)" link set "host$3" down ;;
  mend) ip -n "$(namespace "$2" bridge)" link set "host$3" up ;;
  limit) limit "$2" "$3" ;;
  intercept) intercept "$2" "$3" "$4" "$5" ;;
  can-intercept) can_intercept ;;
  allowed) allowed ;;
  *) sed -n '3,14p' "$0" >&2; exit 2 ;;
esac
