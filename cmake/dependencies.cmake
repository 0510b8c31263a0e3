# SPDX-License-Identifier: MIT
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
pkg_check_modules(URING REQUIRED IMPORTED_TARGET liburing>=2.3)
# Within the worker, which is started in every recovery: a library less for the loader to find, map and bind.
find_library(URING_ARCHIVE NAMES liburing.a HINTS ${URING_LIBRARY_DIRS} REQUIRED)
pkg_check_modules(SYSTEMD REQUIRED IMPORTED_TARGET libsystemd>=252)
pkg_check_modules(CJSON REQUIRED IMPORTED_TARGET libcjson>=1.7)
pkg_check_modules(MICROHTTPD REQUIRED IMPORTED_TARGET libmicrohttpd>=0.9.75)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3>=3.40)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl>=7.88)
