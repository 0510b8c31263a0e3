# SPDX-License-Identifier: MIT
# Directories for the installation: GNUInstallDirs, and those that systemd and udev read.
include(GNUInstallDirs)

# Installed files name others: ublkd the worker, the unit ublkd.
set(UBLKD_PROGRAM_PATH ${CMAKE_INSTALL_FULL_SBINDIR}/ublkd)
set(UBLKD_HELPER_PATH ${CMAKE_INSTALL_FULL_LIBEXECDIR}/ublkd/ublkd-helper)
set(UBLKD_WORKER_PATH ${CMAKE_INSTALL_FULL_LIBEXECDIR}/ublkd/ublkd-worker)
set(UBLKD_FOLLOW_PATH ${CMAKE_INSTALL_FULL_LIBEXECDIR}/ublkd/ublkd-follow)
set(UBLKD_VOLUMES_PATH ${CMAKE_INSTALL_FULL_SBINDIR}/ublkd-volumes)
set(UBLKD_UNSTACK_PATH ${CMAKE_INSTALL_FULL_LIBEXECDIR}/ublkd/ublkd-unstack)
set(UBLKD_ORDER_PATH ${CMAKE_INSTALL_FULL_LIBEXECDIR}/ublkd/ublkd-order)
set(UBLKD_START_PATH ${CMAKE_INSTALL_FULL_LIBEXECDIR}/ublkd/ublkd-start)
set(UBLKD_REASON_PATH ${CMAKE_INSTALL_FULL_LIBEXECDIR}/ublkd/ublkd-reason)
set(UBLKD_CTL_PATH ${CMAKE_INSTALL_FULL_BINDIR}/ublkctl)

# The first step of the installation, so that it leaves nothing behind.
string(REGEX REPLACE "/+$" "" built_for "${CMAKE_INSTALL_PREFIX}")
install(CODE "
  string(REGEX REPLACE \"/+$\" \"\" prefix \"\${CMAKE_INSTALL_PREFIX}\")
  if(NOT prefix STREQUAL [==[${built_for}]==])
    message(FATAL_ERROR \"Installing to \${prefix} failed: the programs and units that were built name files below \"
                        [==[${built_for}]==]
                        \"; build them for this prefix (cmake -B build -DCMAKE_INSTALL_PREFIX=\${prefix}), or set DESTDIR\")
  endif()")

# ublkd_service_directory(NAME MODULE VARIABLE SUFFIX OTHERWISE DOC): set NAME, unless the builder has set it. The value
# is VARIABLE of the pkg-config module MODULE, followed by SUFFIX. With the prefix /usr/local, which systemd and udev
# also read, it is OTHERWISE, relative to the prefix.
function(ublkd_service_directory name module variable suffix otherwise doc)
  set(directory ${otherwise})
  if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr/local")
    pkg_get_variable(found ${module} ${variable})
    if(found)
      set(directory ${found}${suffix})
    endif()
  endif()
  set(${name} ${directory} CACHE STRING "${doc}")
endfunction()

ublkd_service_directory(UBLKD_SYSTEMD_UNIT_DIR systemd systemdsystemunitdir "" lib/systemd/system "For units of systemd")
ublkd_service_directory(UBLKD_UDEV_RULES_DIR udev udevdir /rules.d lib/udev/rules.d "For rules of udev")
ublkd_service_directory(
  UBLKD_MODULES_LOAD_DIR systemd modulesloaddir "" lib/modules-load.d "For the names of kernel modules to load at boot")
ublkd_service_directory(UBLKD_SYSUSERS_DIR systemd sysusersdir "" lib/sysusers.d "For the groups that systemd-sysusers creates")
set(UBLKD_NEEDRESTART_DIR ${CMAKE_INSTALL_FULL_SYSCONFDIR}/needrestart/conf.d CACHE STRING "For what needrestart must not restart")
