# The reconciler with a pretended kernel and pretended workers: their real modules are not linked.
add_library(reconciler_world OBJECT reconciler_fakes.c reconciler_world.c store_faulty.c)
target_link_libraries(reconciler_world PRIVATE ublkd_flags ublkd_supervisor)
foreach(name reconciler_test reconciler_claims_test reconciler_worker_test)
  ublkd_unit_test(NAME ${name} LIBS reconciler_world ublkd_supervisor)
  target_link_options(${name} PRIVATE -Wl,--wrap=observe_disk_geometry -Wl,--wrap=disk_timeout_shorten)
endforeach()
ublkd_unit_test(NAME device_report_test LIBS ublkd_supervisor)
ublkd_unit_test(NAME claim_file_test SOURCES claim_file_test.c LIBS ublkd_supervisor)
