#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks an install tree in one of several ways, most of which build an external program against it and run the program.
# Usage: consumers.sh <prefix> <source folder> <way>
set -euo pipefail
prefix=$1 source=$2 way=$3
here=$source/tests/install
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export LD_LIBRARY_PATH=$prefix/lib/habanalabs
unset "${!HCCL_@}"

fail() { echo "$*"; exit 1; }

# The usual build of a Gaudi program: an include folder, a library folder, one library.
build_cxx11() {
  g++ -std=gnu++0x -I "$prefix/include/habanalabs" "$source/examples/${1:-overlap}.cpp" -o program \
    -L "$prefix/lib/habanalabs" -lSynapse -lpthread
}

way_c99() {
  gcc -std=c99 -pedantic-errors -Wall -Werror -I "$prefix/include" "$here/include_paths.c" -c
  gcc -std=c99 -pedantic-errors -Wall -Werror -I "$prefix/include/habanalabs" "$source/examples/all_reduce.c" \
    -o program -L "$prefix/lib/habanalabs" -lSynapse
  ./program 4
}

way_cxx11() {
  build_cxx11
  ./program
  build_cxx11 pipeline
  ./program 3
}

way_pkg_config() {
  export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
  gcc "$source/examples/all_reduce.c" -o program $(pkg-config --cflags --libs hccl)
  ./program 2
}

way_find_package() {
  unset LD_LIBRARY_PATH  # the imported target sets the run path
  cmake -S "$here/find_package" -B build -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DPROGRAM="$source/examples/all_reduce.c"
  cmake --build build
  build/program 3
}

# The program must also start with the library for real devices. Therefore libSynapse.so must be the only library of
# this project that it needs, and it may need no symbol versions.
way_needed() {
  build_cxx11
  readelf -d program | grep -q 'NEEDED.*\[libSynapse.so\]' || fail "the program does not need libSynapse.so"
  readelf -d program | grep 'NEEDED' | grep -v 'libSynapse' | grep -iE 'hccl|hwy|asio' && fail "the program needs another library"
  readelf -d "$prefix/lib/habanalabs/libSynapse.so" | grep -q 'SONAME.*\[libSynapse.so\]' || fail "wrong SONAME"
  readelf -V program | grep -i 'File: libSynapse' && fail "the program needs symbol versions of libSynapse.so"
  nm -D program | grep -E ' U (hccl|syn)' | grep '@' && fail "the program needs a versioned symbol"
  readelf -d program "$prefix/lib/habanalabs/libSynapse.so" | grep -E 'RPATH|RUNPATH' && fail "a library search path is built in"
  true
}

# The library may depend only on libraries that docs/how-to/build-without-debian.md lists.
way_runtime_libraries() {
  local library
  for library in $(readelf -d "$prefix/lib/habanalabs/libSynapse.so" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p'); do
    case $library in
      libc.so.* | libm.so.* | libgcc_s.so.* | libstdc++.so.* | libhwy.so.* | libssl.so.* | libcrypto.so.* | ld-linux*) ;;
      libpthread.so.* | libdl.so.* | librt.so.*) ;;  # separate libraries before glibc 2.34
      *) fail "libSynapse.so needs $library, which docs/how-to/build-without-debian.md does not list" ;;
    esac
  done
}

# Checks the properties that tools such as checksec report.
way_hardened() {
  local report
  report=$(readelf -dlW --dyn-syms "$prefix/lib/habanalabs/libSynapse.so")
  [[ $report == *BIND_NOW* ]] || fail "libSynapse.so binds symbols lazily"
  [[ $report == *GNU_RELRO* ]] || fail "the relocations of libSynapse.so stay writable"
  [[ $report =~ GNU_STACK[^$'\n']*\ RW\  ]] || fail "the stack of libSynapse.so is executable"
  [[ $report != *TEXTREL* && $report != *'(RPATH)'* ]] || fail "libSynapse.so has text relocations or an RPATH"
  [[ $report == *__stack_chk_fail* ]] || fail "libSynapse.so lacks stack protectors"
  # glibc puts these variables on the stack of every thread, so programs could not create threads with small stacks.
  [[ $report =~ \ TLS\ +(0x[0-9a-f]+\ ){4}(0x[0-9a-f]+) ]] || fail "libSynapse.so has no segment of thread-local variables"
  ((BASH_REMATCH[2] <= 16384)) || fail "libSynapse.so has $((BASH_REMATCH[2])) bytes of thread-local variables"
}

way_one_state() {
  g++ -std=c++11 -Wall -Werror -I "$prefix/include/habanalabs" "$here/one_state.cpp" -o program -ldl
  local name
  for name in libhccl.so libhccl.so.2 "$prefix/lib/libSynapse.so" "$prefix/lib/libhccl.so.2"; do
    LD_LIBRARY_PATH=$prefix/lib:$prefix/lib/habanalabs ./program libSynapse.so "$name"
    LD_LIBRARY_PATH=$prefix/lib:$prefix/lib/habanalabs ./program "$name" libSynapse.so
  done
}

way_hccl_perf() {
  unset LD_LIBRARY_PATH
  "$prefix/bin/hccl-perf" all_reduce -g 2 -b 8 -e 1K -f 2 -n 5
  "$prefix/bin/all_reduce_perf" -g 2 -b 8 -e 8 -n 5
}

"way_$way"
