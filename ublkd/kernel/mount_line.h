/* SPDX-License-Identifier: MIT */
/* One line of mountinfo, taken apart. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* All strings are in the line. `root`, `point` and `source` are without the escapes of the kernel. */
struct mount_line {
        uint64_t id; /* as STATX_MNT_ID; the kernel uses it again some time after an unmount */
        uint64_t parent;
        const char *device; /* of the file system: "MAJOR:MINOR" */
        const char *root;   /* the directory or file of the file system that is mounted */
        const char *point;
        const char
                *flags; /* of the mount, with commas: "rw,nosuid"; its file system has `options` of its own */
        bool shared;    /* it passes on what is mounted below it */
        const char *type;
        const char *source;  /* "": none; the mounting process may have named a link */
        const char *options; /* of the file system, as the kernel wrote them: see path_unescape() */
};

/* Take `line` (changed; without its line break) apart. Return 0, or -EBADMSG: it is truncated or malformed. */
int mount_line_parse(char *line, struct mount_line *ret);
