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
