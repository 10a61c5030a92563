#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a build and moves the installed tree, so that tests fail if a file depends on the original prefix. Then
# checks that the tree is complete.
# Usage: install_tree.sh <cmake> <build folder> <prefix>
set -euo pipefail
cmake=$1 build=$2 prefix=$3

rm -rf "$prefix" "$prefix.before"
"$cmake" --install "$build" --prefix "$prefix.before"
mv "$prefix.before" "$prefix"

for path in include/habanalabs/hccl.h include/habanalabs/hccl_types.h include/habanalabs/synapse_api.h \
  include/habanalabs/synapse_api_types.h include/habanalabs/synapse_common_types.h \
  include/habanalabs/synapse_common_types.hpp include/hccl/hccl.h lib/habanalabs/libSynapse.so \
  lib/libSynapse.so lib/libhccl.so lib/libhccl.so.2 lib/pkgconfig/hccl.pc lib/cmake/hccl/hcclConfig.cmake; do
  [ -e "$prefix/$path" ] || { echo "missing in the install tree: $path"; exit 1; }
done
for name in libSynapse.so libhccl.so libhccl.so.2; do
  [ "$prefix/lib/$name" -ef "$prefix/lib/habanalabs/libSynapse.so" ] || { echo "lib/$name is another file"; exit 1; }
done
