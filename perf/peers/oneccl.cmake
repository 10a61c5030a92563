# SPDX-License-Identifier: Apache-2.0
# Builds the driver for oneCCL if newest.py has installed oneCCL, whose API for CPUs is only in a static library. That
# library also needs the libraries of Intel MPI and of Intel's compiler.
set(oneccl_library ${HCCL_NEWEST_PEERS}/oneccl/lib/ccl/cpu/lib/libccl.a)
file(GLOB oneccl_libraries CONFIGURE_DEPENDS ${oneccl_library})
if(oneccl_libraries)
  set(folder ${HCCL_NEWEST_PEERS}/oneccl/lib)
  foreach(name mpi.so.12 fabric.so.1 hwloc.so.15 irc.so svml.so imf.so intlc.so.5)
    list(APPEND oneccl_libraries ${folder}/lib${name})
  endforeach()
  hccl_peer(oneccl_collectives)
  target_include_directories(oneccl_collectives SYSTEM PRIVATE ${HCCL_NEWEST_PEERS}/oneccl/include)
  target_link_libraries(oneccl_collectives PRIVATE ${oneccl_libraries} ${CMAKE_DL_LIBS})
  # The library refers to function pointers of a profiler. The linker resolves all of them to one null pointer.
  foreach(name domain_create event_create event_end event_start metadata_add string_handle_create task_begin task_end thread_set_name)
    target_link_options(oneccl_collectives PRIVATE LINKER:--defsym=__itt_${name}_ptr__3_0=hccl_no_profiler)
  endforeach()
  # oneCCL's templates have zero-length arrays.
  set_source_files_properties(oneccl_collectives.cpp PROPERTIES COMPILE_OPTIONS -Wno-pedantic)
endif()
