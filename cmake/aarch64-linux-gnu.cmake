# SPDX-License-Identifier: Apache-2.0
# Cross-compiles for 64-bit Arm with Debian's g++-aarch64-linux-gnu. `./dev cross` unpacks the required libraries into
# build/aarch64-packages; programs run under qemu-user-static if it is installed.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

get_filename_component(hccl_aarch64_packages ${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-packages ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH ${hccl_aarch64_packages} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# Adds the headers of Asio and libibverbs, which find_package() does not find, of Highway, whose Debian package gives no include
# path, and of OpenSSL, whose headers for this processor have a folder of their own.
include_directories(SYSTEM ${hccl_aarch64_packages}/usr/include ${hccl_aarch64_packages}/usr/include/aarch64-linux-gnu)
# Uses flags instead of link_directories(), because CMake drops folders that it expects the compiler to search by default.
set(hccl_aarch64_link_flags "-L${hccl_aarch64_packages}/usr/lib/aarch64-linux-gnu")
set(CMAKE_EXE_LINKER_FLAGS_INIT ${hccl_aarch64_link_flags})
set(CMAKE_SHARED_LINKER_FLAGS_INIT ${hccl_aarch64_link_flags})

find_program(HCCL_QEMU_AARCH64 qemu-aarch64-static)
mark_as_advanced(HCCL_QEMU_AARCH64)
if(HCCL_QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${HCCL_QEMU_AARCH64} -L /usr/aarch64-linux-gnu
      -E LD_LIBRARY_PATH=${hccl_aarch64_packages}/usr/lib/aarch64-linux-gnu)
endif()
