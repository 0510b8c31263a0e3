# SPDX-License-Identifier: MIT
# Write the version of the tree into a file of C, each time that something is built; only if it differs, so that a
# build compiles and links again only what shows the version, and only after a commit or a first change.
# cmake -D SCRIPT=scripts/version -D HEADER=ublkd/base/version.h -D OUTPUT=version.c -P version.cmake
execute_process(COMMAND ${SCRIPT} OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
/* Made by cmake/version.cmake. */
#include "@HEADER@"

const char ublkd_version[] = "@version@";
]] @ONLY)
