# SPDX-License-Identifier: MIT
ublkd_unit_test(path_names_test LIBS ublkd_paths)
ublkd_unit_test(mount_list_test LIBS ublkd_paths)
# The tests are the watcher process as well. Looks that hang, directories that cannot be watched, processes that
# cannot be killed.
foreach(test path_watch_test path_process_test)
  ublkd_unit_test(${test} SOURCES ${test}.c path_world.c LIBS ublkd_supervisor ublkd_paths PkgConfig::SYSTEMD)
  target_link_options(${test} PRIVATE -Wl,--wrap=stat -Wl,--wrap=inotify_add_watch -Wl,--wrap=pidfd_send_signal)
endforeach()
