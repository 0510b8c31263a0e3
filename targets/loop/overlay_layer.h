/* SPDX-License-Identifier: MIT */
/* A file on an overlay is a name for a file in one of its layers, which has other numbers. */
#pragma once

/* Find the file in the upper or a lower layer that holds the bytes of `fd`, a file on an overlay file system,
 * however it was opened. *ret: an O_PATH descriptor of that file, which the caller closes. Return 0; -ENOENT:
 * it cannot be found, or it is not certain that it is the one; other -errno. */
int overlay_layer_find(int fd, int *ret);

/* Call `each` for every layer that `options` (of a line of /proc/self/mountinfo) name, the upper one first,
 * until it returns something else than -ENOENT; return that. `options` is changed. Return -ENOENT after the
 * last layer, or -ENOMEM. */
int overlay_layers_each(char *options, int (*each)(const char *layer, void *userdata), void *userdata);
