/* SPDX-License-Identifier: MIT */
/* A file on an overlay is a name for a file in one of its layers, which has other numbers. */
#pragma once

/* fd: a file on an overlay file system, however it was opened. Finds the file in the upper or a lower layer
 * that holds its bytes: *ret is an O_PATH descriptor of it, the caller's to close. 0; -ENOENT: it cannot be
 * found, or it is not certain that it is the one; other -errno. */
int overlay_layer_find(int fd, int *ret);

/* Calls `each` for every layer that `options` (of a line of /proc/self/mountinfo) name, the upper one first,
 * until it returns something else than -ENOENT, which is returned. `options` is changed. -ENOENT: they name
 * no more. */
int overlay_layers_each(char *options, int (*each)(const char *layer, void *userdata), void *userdata);
