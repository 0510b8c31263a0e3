# SPDX-License-Identifier: MIT
ublkd_unit_test(device_status_test LIBS ublkd_model)
ublkd_unit_test(device_store_test LIBS ublkd_model PkgConfig::SYSTEMD)
ublkd_unit_test(record_file_test LIBS ublkd_model)
ublkd_unit_test(record_keeper_test LIBS ublkd_supervisor)
ublkd_unit_test(store_sqlite_test LIBS ublkd_model PkgConfig::SQLITE)
ublkd_unit_test(disk_users_test SOURCES disk_users_test.c fake_proc.c LIBS ublkd_disk_users)
ublkd_unit_test(disk_users_faults_test SOURCES disk_users_faults_test.c fake_proc.c LIBS ublkd_disk_users)
# What the kernel refuses to show.
target_link_options(disk_users_faults_test PRIVATE -Wl,--wrap=openat -Wl,--wrap=readlinkat)
ublkd_unit_test(seen_set_test LIBS ublkd_disk_users)
ublkd_unit_test(api_disk_check_test LIBS ublkd_api PkgConfig::MICROHTTPD)
target_link_options(
  api_disk_check_test PRIVATE -Wl,--wrap=MHD_suspend_connection -Wl,--wrap=MHD_resume_connection
  -Wl,--wrap=request_watch_client -Wl,--wrap=api_run_soon)
ublkd_unit_test(api_json_check_test LIBS ublkd_api)
ublkd_unit_test(api_merge_patch_test LIBS ublkd_api)
ublkd_unit_test(listen_test LIBS ublkd_api)
target_link_options(listen_test PRIVATE -Wl,--wrap=bind)
ublkd_unit_test(api_routes_test LIBS ublkd_api PkgConfig::MICROHTTPD)
ublkd_unit_test(store_numbers_test LIBS ublkd_model)
ublkd_unit_test(event_log_test LIBS ublkd_model)
ublkd_unit_test(store_events_test LIBS ublkd_model PkgConfig::SQLITE)
ublkd_unit_test(disk_search_test LIBS ublkd_disk_users)
# Processes that cannot be killed, and a machine that has no room for another one.
target_link_options(disk_search_test PRIVATE -Wl,--wrap=pidfd_send_signal -Wl,--wrap=fork)
