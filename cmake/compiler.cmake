# SPDX-License-Identifier: MIT
# Compiler flags of all targets. CMAKE_C_FLAGS and CMAKE_C_FLAGS_<CONFIG> belong to the builder: nothing here sets them.

# Without a build type the build would have no optimisation. A builder who wants only CMAKE_C_FLAGS gives "None".
get_property(multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(NOT multi_config AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, Release, RelWithDebInfo, MinSizeRel or None" FORCE)
endif()

# One interface target that every library links privately: assertions, warnings, sanitizers.
add_library(ublkd_flags INTERFACE)
# Assertions stay in every build type: an impossible state must stop a program that holds people's data. CMake adds
# -DNDEBUG to all types but Debug; this comes after it.
target_compile_options(ublkd_flags INTERFACE -UNDEBUG)
target_compile_definitions(ublkd_flags INTERFACE _GNU_SOURCE)
target_compile_options(
  ublkd_flags
  INTERFACE -Wall
            -Wextra
            -Wmissing-prototypes
            -Wstrict-prototypes
            -Wshadow
            -Wpointer-arith
            -Wundef
            -Wvla
            -Wformat=2
            -Wwrite-strings
            -Wimplicit-fallthrough
            -fno-common
            -fstack-protector-strong)
if(UBLKD_WERROR)
  target_compile_options(ublkd_flags INTERFACE -Werror)
endif()
if(CMAKE_INTERPROCEDURAL_OPTIMIZATION AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  target_compile_options(ublkd_flags INTERFACE -ffat-lto-objects) # ordinary code as well, for the tests
endif()
target_include_directories(ublkd_flags INTERFACE ${PROJECT_SOURCE_DIR})
if(UBLKD_SANITIZE)
  target_compile_options(ublkd_flags INTERFACE -fsanitize=address,undefined -fno-omit-frame-pointer
                                               -fno-sanitize-recover=undefined)
  target_link_options(ublkd_flags INTERFACE -fsanitize=address,undefined)
endif()
if(UBLKD_FUZZ) # coverage for tests/fuzz
  target_compile_options(ublkd_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(ublkd_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# ublkd_link_time(TARGET...): optimise the target together with the rest of its program at link time. For the worker,
# whose instructions bench/ counts. The objects have ordinary code as well, for the tests: optimising each test would
# take too long. clang cannot put both into an object before version 17, so it does without. So do the sanitizers, whose
# reports must name functions. If the builder sets CMAKE_INTERPROCEDURAL_OPTIMIZATION, ON makes CMake optimise
# everything, and OFF nothing.
function(ublkd_link_time)
  if(DEFINED CMAKE_INTERPROCEDURAL_OPTIMIZATION
     OR NOT CMAKE_C_COMPILER_ID STREQUAL "GNU"
     OR UBLKD_SANITIZE)
    return()
  endif()
  foreach(name ${ARGN})
    target_compile_options(
      ${name} PRIVATE "$<$<AND:$<COMPILE_LANGUAGE:C>,$<NOT:$<CONFIG:Debug>>>:-flto=auto;-ffat-lto-objects>")
    get_target_property(type ${name} TYPE)
    if(type STREQUAL "EXECUTABLE")
      target_link_options(${name} PRIVATE "$<$<NOT:$<CONFIG:Debug>>:-flto=auto;-fuse-linker-plugin>")
    endif()
  endforeach()
endfunction()
