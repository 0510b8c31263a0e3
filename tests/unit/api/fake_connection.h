/* SPDX-License-Identifier: MIT */
/* The HTTP library, as far as it knows of a suspended connection. Linked with fake_connection() of CMake. */
#pragma once

extern struct fake_connection {
        unsigned suspended, resumed; /* how often */
        int fd;                      /* the server's end; -1: the library does not know it */
} fake_connection;
