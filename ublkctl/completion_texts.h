/* SPDX-License-Identifier: MIT */
/* The files completion/ublkctl.SHELL.in as strings; CMakeLists.txt makes them. */
#pragma once

extern const char completion_bash[], completion_zsh[];
