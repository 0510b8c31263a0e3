/* SPDX-License-Identifier: MIT */
/* Follows a path as the kernel does, one name after the other, to learn which directories and names its end
 * depends on. May block for ever, as every look at a path may. */
#pragma once

/* The path looks up `name` in `directory` (O_PATH), which is about to be done. `place`: where the name is, an
 * absolute path without links and dots; "" where that is not known. */
typedef void (*path_walk_step)(void *userdata, int directory, const char *name, const char *place);

/* Follow the absolute `path`, and call `step` before each name. Return 0 and *ret_fd, an O_PATH descriptor of
 * what it leads to; or -errno, as open() would fail; -E2BIG: there are more steps than are followed. */
int path_walk(const char *path, path_walk_step step, void *userdata, int *ret_fd);
