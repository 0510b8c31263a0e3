/* SPDX-License-Identifier: MIT */
/* Ownership in the type: variables that free themselves, and macros that hand ownership on. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(function) __attribute__((cleanup(function)))
#define _printf_(string, first) __attribute__((format(printf, string, first)))
#define _unused_ __attribute__((unused))

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* TAKE_PTR(p), TAKE_FD(fd): the value, leaving nothing behind for a cleanup to free. */
#define TAKE_PTR(pointer)                                                                                    \
        ({                                                                                                   \
                __typeof__(pointer) taken_ = (pointer);                                                      \
                (pointer) = NULL;                                                                            \
                taken_;                                                                                      \
        })
#define TAKE_FD(fd)                                                                                          \
        ({                                                                                                   \
                int taken_ = (fd);                                                                           \
                (fd) = -1;                                                                                   \
                taken_;                                                                                      \
        })

/* Close fd unless it is negative, and keep errno. Return -1: fd = close_fd(fd). */
static inline int close_fd(int fd)
{
        if (fd >= 0) {
                int saved = errno;

                (void)close(fd); /* a descriptor is gone even when close() reports an error */
                errno = saved;
        }
        return -1;
}

static inline void free_pointer(void *pointer)
{
        free(*(void **)pointer);
}

static inline void close_fd_pointer(int *fd)
{
        close_fd(*fd);
}

#define _cleanup_free_ _cleanup_(free_pointer)
#define _cleanup_close_ _cleanup_(close_fd_pointer)

/* Makes `name_pointer` usable with _cleanup_() from a function that frees one object and takes NULL. */
#define DEFINE_CLEANUP(type, function)                                                                       \
        static inline void function##_pointer(type **object)                                                 \
        {                                                                                                    \
                if (*object)                                                                                 \
                        function(*object);                                                                   \
        }                                                                                                    \
        struct allow_semicolon_

DEFINE_CLEANUP(DIR, closedir);
DEFINE_CLEANUP(FILE, fclose);
#define _cleanup_closedir_ _cleanup_(closedir_pointer)
#define _cleanup_fclose_ _cleanup_(fclose_pointer)
