/* SPDX-License-Identifier: MIT */
/* The files completion/ublkctl.SHELL.in as strings, which CMakeLists.txt generates. */
#pragma once

extern const char completion_bash[], completion_zsh[];
