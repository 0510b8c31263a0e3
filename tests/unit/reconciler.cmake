# The reconciler with a pretended kernel and pretended workers: their real modules are not linked.
ublkd_unit_test(NAME reconciler_test SOURCES reconciler_test.c reconciler_fakes.c LIBS ublkd_supervisor)
target_link_options(
  reconciler_test PRIVATE -Wl,--wrap=observe_disk_geometry -Wl,--wrap=disk_timeout_shorten)
ublkd_unit_test(NAME device_report_test LIBS ublkd_supervisor)
ublkd_unit_test(NAME claim_file_test SOURCES claim_file_test.c LIBS ublkd_supervisor)
