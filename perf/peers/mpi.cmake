# SPDX-License-Identifier: Apache-2.0
# Builds the drivers for MPI: with Debian's Open MPI, and with each MPI from PyPI that newest.py has installed.

# hccl_mpi_program(<name> <source> <include folders> <libraries>)
function(hccl_mpi_program name source folders libraries)
  add_executable(${name} EXCLUDE_FROM_ALL ${source}.cpp)
  target_include_directories(${name} SYSTEM PRIVATE ${folders})
  target_link_libraries(${name} PRIVATE ${libraries})
  target_compile_definitions(${name} PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  add_dependencies(hccl_peers ${name})
endfunction()

# hccl_mpi_driver(<name> <source> <include folders> <libraries>): a driver that implements the command protocol
function(hccl_mpi_driver name source folders libraries)
  hccl_mpi_program(${name} ${source} "${folders}" "${libraries}")
  target_link_libraries(${name} PRIVATE hccl_peers_session hccl_warnings)
endfunction()

# Does not search for MPI if its compiler wrapper names header directories that do not exist. FindMPI would report an
# error for them. With Debian's openmpi-bin alone, the wrapper exists but the headers do not.
set(mpi_folders "")
find_program(HCCL_MPICC mpicc)
if(HCCL_MPICC)
  execute_process(COMMAND ${HCCL_MPICC} --showme:incdirs OUTPUT_VARIABLE mpi_folders ERROR_QUIET
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  separate_arguments(mpi_folders)
endif()
set(mpi_has_headers TRUE)
foreach(folder IN LISTS mpi_folders)
  if(NOT IS_DIRECTORY ${folder})
    set(mpi_has_headers FALSE)
  endif()
endforeach()
if(mpi_has_headers)
  find_package(MPI COMPONENTS C)
endif()
if(MPI_C_FOUND)
  hccl_mpi_driver(mpi_collectives mpi_collectives "${MPI_C_INCLUDE_DIRS}" "${MPI_C_LIBRARIES}")
  foreach(name mpi_pair mpi_walk)
    hccl_mpi_program(${name} ${name} "${MPI_C_INCLUDE_DIRS}" "${MPI_C_LIBRARIES}")
  endforeach()
  if(HCCL_BUILD_EXAMPLES)
    hccl_mpi_program(mpi_trainer mpi_trainer "${MPI_C_INCLUDE_DIRS}" "${MPI_C_LIBRARIES}")
    target_link_libraries(mpi_trainer PRIVATE ddp_trainer_parts hccl_warnings)
  endif()
else()
  message(STATUS "MPI not found: the side-by-side benchmark is built without the MPI programs")
endif()

# The directories that newest.py creates. CMake runs again when one appears.
set(HCCL_NEWEST_PEERS ${CMAKE_SOURCE_DIR}/build/peers)
file(GLOB mpi_headers CONFIGURE_DEPENDS ${HCCL_NEWEST_PEERS}/*/include/mpi.h)
foreach(header IN LISTS mpi_headers)
  cmake_path(GET header PARENT_PATH folder)
  cmake_path(GET folder PARENT_PATH prefix)
  cmake_path(GET prefix FILENAME name)
  file(GLOB library ${prefix}/lib/libmpi.so.12 ${prefix}/lib/libmpi.so)  # Intel MPI has no libmpi.so
  list(GET library 0 library)
  hccl_mpi_driver(mpi_collectives_${name} mpi_collectives ${folder} ${library})
  hccl_mpi_program(mpi_walk_${name} mpi_walk ${folder} ${library})
endforeach()
