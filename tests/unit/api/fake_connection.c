/* SPDX-License-Identifier: MIT */
/* Stands in for the calls of libmicrohttpd that concern one connection. */
#include "tests/unit/api/fake_connection.h"

#include "tests/unit/check.h"

#include <microhttpd.h>

struct fake_connection fake_connection;

void __wrap_MHD_suspend_connection(struct MHD_Connection *connection);
void __wrap_MHD_resume_connection(struct MHD_Connection *connection);
const union MHD_ConnectionInfo *__wrap_MHD_get_connection_info(
        struct MHD_Connection *connection, enum MHD_ConnectionInfoType type, ...);

void __wrap_MHD_suspend_connection(struct MHD_Connection *connection)
{
        (void)connection;
        fake_connection.suspended++;
}

void __wrap_MHD_resume_connection(struct MHD_Connection *connection)
{
        (void)connection;
        fake_connection.resumed++;
}

const union MHD_ConnectionInfo *__wrap_MHD_get_connection_info(
        struct MHD_Connection *connection, enum MHD_ConnectionInfoType type, ...)
{
        static union MHD_ConnectionInfo info;

        (void)connection;
        CHECK_INT(type, MHD_CONNECTION_INFO_CONNECTION_FD);
        info.connect_fd = fake_connection.fd;
        return fake_connection.fd >= 0 ? &info : NULL;
}
