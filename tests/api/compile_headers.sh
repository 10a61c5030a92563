#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compile_headers.sh <folder> <language> <compiler> compiles each public header alone, with warnings as errors. The
# language is c (C99 and C11) or c++ (C++11 to C++20). For c++, also compiles hccl.h and synapse_api.h together after
# `using namespace std;`, which some programs use.
set -u
folder=$1
language=$2
compiler=$3
case $language in
  c) standards="c99 c11" suffixes="h" ;;
  c++) standards="gnu++0x c++11 c++14 c++17 c++20" suffixes="h hpp" ;;
  *) echo "unknown language $language: use c or c++" >&2; exit 2 ;;
esac
failed=0

# compile <standard> <name> compiles stdin. The error message shows the name.
compile() {
  standard=$1
  what=$2
  if ! "$compiler" -x "$language" -std="$standard" -pedantic -Wall -Wextra -Werror -I"$folder" -fsyntax-only -; then
    echo "$what does not compile as $standard with $compiler" >&2
    return 1
  fi
}

for suffix in $suffixes; do
  for path in "$folder"/*."$suffix"; do
    header=${path##*/}
    for standard in $standards; do
      printf '#include <%s>\n' "$header" | compile "$standard" "$header" || failed=1
    done
  done
done
if [ "$language" = c++ ]; then
  for standard in gnu++0x c++20; do
    {
      printf '#include <algorithm>\n#include <memory>\n#include <vector>\nusing namespace std;\n'
      printf '#include <%s>\n' hccl.h synapse_api.h
    } | compile "$standard" "hccl.h and synapse_api.h after 'using namespace std;'" || failed=1
  done
fi
exit $failed
