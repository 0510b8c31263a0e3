# SPDX-License-Identifier: MIT
# One interface target that every library links privately: the warnings and the sanitizers.
add_library(ublkd_flags INTERFACE)
target_compile_definitions(ublkd_flags INTERFACE _GNU_SOURCE UBLKD_VERSION="${PROJECT_VERSION}")
target_compile_options(
  ublkd_flags
  INTERFACE -Wall
            -Wextra
            -Werror
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

# ublkd_link_time(TARGET...): optimised together with the rest of the program that it is linked into. The objects have
# ordinary code as well, for programs that are not worth the time: tests. Not for clang, which cannot have both before
# version 17, nor with the sanitizers, whose reports are to name functions.
function(ublkd_link_time)
  if(NOT CMAKE_C_COMPILER_ID STREQUAL "GNU" OR UBLKD_SANITIZE OR NOT CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
    return()
  endif()
  foreach(name ${ARGN})
    target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:C>:-flto=auto;-ffat-lto-objects>")
    get_target_property(type ${name} TYPE)
    if(type STREQUAL "EXECUTABLE")
      target_link_options(${name} PRIVATE -O2 -g -flto=auto -fuse-linker-plugin)
    endif()
  endforeach()
endfunction()
