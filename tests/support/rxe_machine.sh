#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command in a virtual machine with software RoCE devices. The script run-in-rxe-vm, which RXE_VM names, starts the
# machine; this one chooses the kernel.
#   rxe_machine.sh [OPTION]... -- COMMAND [ARGUMENT]...   passes the options and the command to run-in-rxe-vm
#   rxe_machine.sh available                              exits with 0 if RXE_VM exists, or prints the reason and exits with 1
set -euo pipefail

machine=${RXE_VM:-$(dirname "${BASH_SOURCE[0]}")/../../../shared/rxe/run-in-rxe-vm}

# Prints Debian's newest kernel for which a driver can be built. A network of several nodes needs a driver built with the
# kernel's own headers and sources, and for some hours after each update the mirrors have some of these packages in the new
# version and others still in the old one.
kernel() {
  local series=6.1
  apt-cache madison "linux-kbuild-$series" "linux-source-$series" \
    $(apt-cache pkgnames | grep -xE "linux-(image|headers)-$series\.0-[0-9]+-(amd64|common)") |
    awk -v kbuild="linux-kbuild-$series" -v source="linux-source-$series" '
      { offered[$1, $3] }
      $1 == kbuild { versions[++count] = $3 }
      $1 ~ /^linux-image-/ { images[$3] = $1 }
      END {
        for (i = 1; i <= count; ++i) {
          version = versions[i]
          headers = image = images[version]
          sub("image", "headers", headers)
          common = headers
          sub("amd64", "common", common)
          if ((source, version) in offered && (headers, version) in offered && (common, version) in offered) {
            print image
            exit
          }
        }
        print "linux-image-amd64"
      }'
}

if [ ! -x "$machine" ]; then
  echo "no run-in-rxe-vm: set RXE_VM to the path of the script that starts a virtual machine with RoCE devices" >&2
  exit 1
fi
[ "$*" != available ] || exit 0
exec "$machine" --kernel "$(kernel)" "$@"
