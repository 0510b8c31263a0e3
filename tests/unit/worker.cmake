# SPDX-License-Identifier: MIT
set(worker ${PROJECT_SOURCE_DIR}/targets/worker)

ublkd_unit_test(co_test LIBS worker_core)
if(CMAKE_C_COMPILER_ID STREQUAL "Clang") # valgrind 3.19 gives up at clang's DWARF 5
  target_compile_options(co_test PRIVATE -gdwarf-4)
  target_compile_options(worker_core PRIVATE -gdwarf-4)
endif()
# The same over ucontext(3), which machines without assembly here use.
ublkd_unit_test(co_ucontext_test SOURCES co_test.c ${worker}/io/co.c ${worker}/io/co_switch_ucontext.c)
target_compile_definitions(co_ucontext_test PRIVATE UBLKD_COROUTINE_UCONTEXT)
# The same as on a kernel without guard markers.
ublkd_unit_test(co_mprotect_test SOURCES co_test.c ${worker}/io/co.c LIBS worker_core)
target_compile_definitions(co_mprotect_test PRIVATE MADV_GUARD_INSTALL=-1)
# The same on the other CPU, and under valgrind, which cannot run what a sanitizer is in.
ublkd_test(co_aarch64_test ${CMAKE_CURRENT_SOURCE_DIR}/co_aarch64_test ${PROJECT_SOURCE_DIR})
if(NOT UBLKD_SANITIZE)
  ublkd_test(co_valgrind_test ${CMAKE_CURRENT_SOURCE_DIR}/co_valgrind_test $<TARGET_FILE:co_test>)
endif()
ublkd_unit_test(disk_geometry_test LIBS worker_core ublkd_proto)
ublkd_unit_test(perform_test LIBS worker_core)
ublkd_unit_test(room_test LIBS worker_core)
ublkd_unit_test(store_end_test LIBS worker_core)
ublkd_unit_test(plain_test LIBS worker_core)
ublkd_unit_test(await_test LIBS worker_core)
target_link_options(await_test PRIVATE -Wl,--wrap=io_uring_enter2)
ublkd_unit_test(idle_pages_test LIBS worker_core Threads::Threads)
target_link_options(idle_pages_test PRIVATE -Wl,--wrap=mremap)
ublkd_unit_test(sandbox_test LIBS worker_core)
ublkd_unit_test(worker_config_test LIBS worker_disk)
ublkd_unit_test(round_clock_test LIBS worker_core)
ublkd_unit_test(queue_meter_test LIBS worker_core)
ublkd_unit_test(token_bucket_test LIBS worker_core)
ublkd_unit_test(throttle_test LIBS worker_core)
ublkd_unit_test(ublk_port_batch_test SOURCES ublk_port_batch_test.c ${worker}/queue/ublk_port.c
                ${worker}/queue/ublk_port_batch.c LIBS worker_core)
