set(worker ${PROJECT_SOURCE_DIR}/targets/worker)

ublkd_unit_test(co_test LIBS worker_core)
# The same over ucontext(3), which machines without assembly here use.
ublkd_unit_test(co_ucontext_test SOURCES co_test.c ${worker}/co.c ${worker}/co_switch_ucontext.c)
target_compile_definitions(co_ucontext_test PRIVATE UBLKD_COROUTINE_UCONTEXT)
ublkd_unit_test(disk_geometry_test LIBS worker_core ublkd_proto)
ublkd_unit_test(perform_test LIBS worker_core)
ublkd_unit_test(await_test LIBS worker_core)
target_link_options(await_test PRIVATE -Wl,--wrap=io_uring_submit)
ublkd_unit_test(worker_config_test LIBS worker_disk)
ublkd_unit_test(round_clock_test LIBS worker_core)
