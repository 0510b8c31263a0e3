# SPDX-License-Identifier: MIT
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
pkg_check_modules(URING REQUIRED IMPORTED_TARGET liburing>=2.3)
pkg_check_modules(SYSTEMD REQUIRED IMPORTED_TARGET libsystemd>=252)
pkg_check_modules(CJSON REQUIRED IMPORTED_TARGET libcjson>=1.7)
pkg_check_modules(MICROHTTPD REQUIRED IMPORTED_TARGET libmicrohttpd>=0.9.75)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3>=3.40)
pkg_check_modules(BLKID REQUIRED IMPORTED_TARGET blkid>=2.38)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl>=7.88)

# liburing of the worker. Every recovery starts a worker. With a static library the loader has one file less to find,
# map and bind, which saves 29,000 of 205,000 instructions before main(). bench/ measures with the static library.
option(UBLKD_STATIC_LIBURING "Link liburing statically into the worker" OFF)
add_library(worker_liburing INTERFACE)
if(UBLKD_STATIC_LIBURING)
  find_library(UBLKD_LIBURING_ARCHIVE NAMES liburing.a HINTS ${URING_LIBRARY_DIRS} REQUIRED)
  target_include_directories(worker_liburing SYSTEM INTERFACE ${URING_INCLUDE_DIRS})
  target_link_libraries(worker_liburing INTERFACE ${UBLKD_LIBURING_ARCHIVE})
else()
  target_link_libraries(worker_liburing INTERFACE PkgConfig::URING)
endif()
