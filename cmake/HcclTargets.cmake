# SPDX-License-Identifier: Apache-2.0
# Defines hccl_layer() and hccl_test() for the folders' CMakeLists.txt, and the settings of all targets.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 99)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
# Programs find the library relative to themselves, so both the build tree and the install tree may be moved.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
file(RELATIVE_PATH hccl_bin_to_lib /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR}/habanalabs)
set(CMAKE_INSTALL_RPATH "$ORIGIN/${hccl_bin_to_lib}")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_program(HCCL_CCACHE ccache)
mark_as_advanced(HCCL_CCACHE)
if(HCCL_CCACHE)
  # Without this setting, ccache does not cache files that use a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${HCCL_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${HCCL_CCACHE})
endif()
find_package(Threads REQUIRED)
find_package(hwy REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)

# Warning options for all targets. Warnings are errors only if the preset sets CMAKE_COMPILE_WARNING_AS_ERROR.
add_library(hccl_warnings INTERFACE)
target_compile_options(hccl_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wformat=2 -Wundef
  $<$<COMPILE_LANGUAGE:CXX>:-Wsign-conversion;-Wold-style-cast;-Wnon-virtual-dtor;-Woverloaded-virtual;-Wcast-align>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wduplicated-cond;-Wlogical-op>)
# -Wnull-dereference gives false positives in the standard library without full optimisation or with sanitizers.
if(NOT HCCL_SANITIZE)
  target_compile_options(hccl_warnings INTERFACE
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wnull-dereference>)
endif()

add_library(hccl_public_headers INTERFACE)
target_include_directories(hccl_public_headers INTERFACE ${PROJECT_SOURCE_DIR}/include/hccl)

if(HCCL_SANITIZE)
  add_compile_options(-fsanitize=${HCCL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${HCCL_SANITIZE})
  if(HCCL_SANITIZE MATCHES thread)
    # -Wtsan warns about Asio's fences, which ThreadSanitizer does not support. hccl does not rely on these fences.
    add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  endif()
endif()

if(HCCL_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "HCCL_FUZZ needs clang: configure with CC=clang CXX=clang++")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# hccl_layer(<name> [NOT_SHIPPED] SOURCES <files> DEPENDS <layers> [LIBRARIES <targets>])
# Makes an object library of the current folder. The layer's include root contains only this folder, so its headers are
# included as "<name>/x.h". The layer sees only its own root and those of the layers in DEPENDS, so a forbidden include
# does not compile.
# NOT_SHIPPED: makes a static library for tests instead, which is not part of the shared library.
function(hccl_layer name)
  cmake_parse_arguments(ARG "NOT_SHIPPED" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  set(root ${PROJECT_BINARY_DIR}/layers/${name})
  file(MAKE_DIRECTORY ${root})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${root}/${name} SYMBOLIC)
  if(ARG_NOT_SHIPPED)
    add_library(hccl_${name} STATIC ${ARG_SOURCES})
    target_link_libraries(hccl_${name} PUBLIC hccl_internal)
  else()
    add_library(hccl_${name} OBJECT ${ARG_SOURCES})
    set_property(GLOBAL APPEND PROPERTY HCCL_LAYERS hccl_${name})
    set_property(GLOBAL APPEND PROPERTY HCCL_LIBRARIES ${ARG_LIBRARIES})
  endif()
  target_compile_options(hccl_${name} PRIVATE -fstack-protector-strong)
  target_include_directories(hccl_${name} PUBLIC ${root})
  target_link_libraries(hccl_${name} PUBLIC hccl_public_headers Threads::Threads PRIVATE hccl_warnings ${ARG_LIBRARIES})
  set_target_properties(hccl_${name} PROPERTIES CXX_VISIBILITY_PRESET hidden C_VISIBILITY_PRESET hidden
                        VISIBILITY_INLINES_HIDDEN ON)
  foreach(layer ${ARG_DEPENDS})
    target_include_directories(hccl_${name} PUBLIC ${PROJECT_BINARY_DIR}/layers/${layer})
  endforeach()
endfunction()

# hccl_test(<name> SOURCES <files> DEPENDS <layers> [LIBRARIES <targets>] [LABELS <labels>] [TIMEOUT <s>] [ARGS <args>]
#   [LAYOUT <letters>] [LOCK <lock>] [WAITS] [APART <filter> <label>] [THOROUGH <filter>])
# Adds a GoogleTest program that links the internal static library and sees only the layers in DEPENDS. Each test case
# is a ctest test named <name>/<Suite.Case>, so that ctest reports skips and time-outs per case. TIMEOUT is per case.
# The target tests_<label> builds all programs with cases of that label, thorough or not.
# LAYOUT: runs all cases except those of APART a second time, on emulated nodes. Rank n is on the node named by the n-th
# letter, counted from 0 (HCCL_TEST_LAYOUT).
# LOCK: cases with the same <lock> never run at the same time.
# WAITS: the cases mostly wait, so each takes one of ctest's job slots instead of two.
# APART: the cases that match the GoogleTest filter get <label> instead of LABELS.
# THOROUGH: the cases that match the GoogleTest filter take long or resemble others. They get the label <label>_thorough instead
# of LABELS, and `./dev test` leaves them out.
function(hccl_test name)
  cmake_parse_arguments(ARG "WAITS" "TIMEOUT;LAYOUT;LOCK;THOROUGH" "SOURCES;DEPENDS;LIBRARIES;LABELS;ARGS;APART" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  set(scheduling PROCESSORS 2)
  if(ARG_WAITS)
    set(scheduling PROCESSORS 1)
  endif()
  if(ARG_LOCK)
    list(APPEND scheduling RESOURCE_LOCK ${ARG_LOCK})
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE hccl_internal hccl_public_headers hccl_warnings GTest::gtest GTest::gtest_main
                        Threads::Threads ${ARG_LIBRARIES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support ${PROJECT_SOURCE_DIR}/perf)
  foreach(layer ${ARG_DEPENDS})
    target_include_directories(${name} PRIVATE ${PROJECT_BINARY_DIR}/layers/${layer})
  endforeach()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_precompile_headers(${name} REUSE_FROM hccl_test_headers)
  set(apart)
  set(excluded "-")
  if(ARG_APART)
    list(POP_FRONT ARG_APART filter apart)
    set(excluded "-${filter}")
  endif()
  foreach(label ${ARG_LABELS} ${apart})
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${name})
  endforeach()
  set(common EXTRA_ARGS ${ARG_ARGS} DISCOVERY_MODE PRE_TEST)
  set(properties PROPERTIES TIMEOUT ${ARG_TIMEOUT} ${scheduling})
  if(apart)
    gtest_discover_tests(${name} TEST_PREFIX ${name}/ TEST_LIST ${name}_apart TEST_FILTER "${filter}" ${common}
                         ${properties} LABELS "${apart}")
  endif()
  if(ARG_THOROUGH)
    string(APPEND excluded ":${ARG_THOROUGH}")
    gtest_discover_tests(${name} TEST_PREFIX ${name}/ TEST_LIST ${name}_thorough TEST_FILTER "${ARG_THOROUGH}"
                         ${common} ${properties} LABELS ${ARG_LABELS}_thorough)
  endif()
  gtest_discover_tests(${name} TEST_PREFIX ${name}/ TEST_FILTER "${excluded}" ${common} ${properties}
                       LABELS "${ARG_LABELS}")
  # Repeats the cases with the ranks on several emulated nodes.
  if(ARG_LAYOUT)
    set(common TEST_PREFIX ${name}_on_${ARG_LAYOUT}/ ${common})
    list(APPEND properties ENVIRONMENT HCCL_TEST_LAYOUT=${ARG_LAYOUT})
    gtest_discover_tests(${name} TEST_LIST ${name}_on_nodes TEST_FILTER "${excluded}" ${common} ${properties}
                         LABELS "${ARG_LABELS}")
    if(ARG_THOROUGH)
      gtest_discover_tests(${name} TEST_LIST ${name}_thorough_on_nodes TEST_FILTER "${ARG_THOROUGH}" ${common}
                           ${properties} LABELS ${ARG_LABELS}_thorough)
    endif()
  endif()
endfunction()
