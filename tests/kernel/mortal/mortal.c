/* SPDX-License-Identifier: MIT */
/* Makes a ublkd that dies at the n-th operation which another program can see, or is stopped before one: a commit
 * to the database, a copy of a record, a command to the driver, a process or a message for a worker, an answer to a
 * caller. The linker puts these in the place of the real ones (--wrap), so the program under test is the one that
 * is shipped, byte for byte in its own objects.
 *
 * The file that $UBLKD_DIE_FILE names says at which operation, "17"; operations are counted from when it is
 * there. Who dies leaves the name of the operation in a file beside it, with ".died" behind the name. With the name
 * of an operation instead, "START_DEV", ublkd gets SIGSTOP before the next such operation, and the file goes. */
#include "ublkd/base/cleanup.h"
#include "ublkd/kernel/ublk_uapi.h"
#include "ublkd/offload/proc_spawn.h"
#include "ublkd/proto/worker_msg.h"
#include "ublkd/runtime/runtime_dir.h"
#include "ublkd/driver/ublk_ctl_calls.h"

#include <limits.h>
#include <microhttpd.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct wanted {
        char name[32]; /* stop before it; "": die at the number */
        int number;    /* 0: live on */
};

static struct wanted wanted(const char *path)
{
        FILE *file = fopen(path, "re");
        struct wanted wanted = {};

        if (!file)
                return wanted;
        if (fscanf(file, "%d", &wanted.number) != 1 && fscanf(file, "%31s", wanted.name) != 1)
                wanted.name[0] = '\0';
        (void)fclose(file);
        return wanted;
}

static void note(const char *path, const char *when, const char *what)
{
        char beside[PATH_MAX];
        FILE *file;

        (void)snprintf(beside, sizeof beside, "%s.died", path);
        file = fopen(beside, "we");
        if (!file)
                return;
        (void)fprintf(file, "%s %s\n", when, what);
        (void)fclose(file);
}

static void stop_before(const char *path, const char *name, const char *when, const char *what)
{
        if (strcmp(when, "before") != 0 || strcmp(what, name) != 0)
                return;
        (void)unlink(path);
        (void)raise(SIGSTOP);
}

/* An operation is about to happen, or has happened. */
static void operation(const char *when, const char *what)
{
        static int count; /* the program has one thread */
        const char *path = getenv("UBLKD_DIE_FILE");
        struct wanted at = path ? wanted(path) : (struct wanted){};

        if (at.name[0])
                stop_before(path, at.name, when, what);
        if (at.number <= 0 || ++count < at.number)
                return;
        note(path, when, what);
        (void)raise(SIGKILL);
}

#define WRAP(name) __wrap_##name
#define REAL(name) __real_##name

int REAL(sqlite3_step)(sqlite3_stmt *statement);
int WRAP(sqlite3_step)(sqlite3_stmt *statement);
int WRAP(sqlite3_step)(sqlite3_stmt *statement)
{
        const char *text = sqlite3_sql(statement);
        bool commits = text && strcmp(text, "COMMIT") == 0;
        int result;

        if (commits)
                operation("before", "COMMIT");
        result = REAL(sqlite3_step)(statement);
        if (commits)
                operation("after", "COMMIT");
        return result;
}

static const char *command_name(uint32_t command)
{
        static const struct {
                uint32_t command;
                const char *name;
        } names[] = {
                {UBLK_U_CMD_ADD_DEV,             "ADD_DEV"            },
                {UBLK_U_CMD_SET_PARAMS,          "SET_PARAMS"         },
                {UBLK_U_CMD_START_DEV,           "START_DEV"          },
                {UBLK_U_CMD_STOP_DEV,            "STOP_DEV"           },
                {UBLK_U_CMD_DEL_DEV_ASYNC,       "DEL_DEV_ASYNC"      },
                {UBLK_U_CMD_DEL_DEV,             "DEL_DEV"            },
                {UBLK_U_CMD_START_USER_RECOVERY, "START_USER_RECOVERY"},
                {UBLK_U_CMD_END_USER_RECOVERY,   "END_USER_RECOVERY"  },
                {UBLK_U_CMD_QUIESCE_DEV,         "QUIESCE_DEV"        },
                {UBLK_U_CMD_UPDATE_SIZE,         "UPDATE_SIZE"        },
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (names[i].command == command)
                        return names[i].name;
        return "another command";
}

int REAL(ctl_calls_submit)(struct ctl_calls *calls, struct ctl_call *call, uint64_t deadline_usec);
int WRAP(ctl_calls_submit)(struct ctl_calls *calls, struct ctl_call *call, uint64_t deadline_usec);
int WRAP(ctl_calls_submit)(struct ctl_calls *calls, struct ctl_call *call, uint64_t deadline_usec)
{
        const char *name = command_name(call->request.command);
        int r;

        if (!call->changes) /* dying before or after a question is dying before what follows */
                return REAL(ctl_calls_submit)(calls, call, deadline_usec);
        operation("before", name);
        r = REAL(ctl_calls_submit)(calls, call, deadline_usec);
        operation("after", name);
        return r;
}

int REAL(proc_spawn)(const struct proc_spawn *spawn, pid_t *ret_pid, int *ret_pidfd);
int WRAP(proc_spawn)(const struct proc_spawn *spawn, pid_t *ret_pid, int *ret_pidfd);
int WRAP(proc_spawn)(const struct proc_spawn *spawn, pid_t *ret_pid, int *ret_pidfd)
{
        int r;

        operation("before", "the start of a process");
        r = REAL(proc_spawn)(spawn, ret_pid, ret_pidfd);
        operation("after", "the start of a process");
        return r;
}

int REAL(worker_msg_send)(int fd, const struct worker_msg *msg);
int WRAP(worker_msg_send)(int fd, const struct worker_msg *msg);
int WRAP(worker_msg_send)(int fd, const struct worker_msg *msg)
{
        const char *name = msg->type == WORKER_MSG_LIVE ? "LIVE" : "a message to a worker";
        int r;

        operation("before", name);
        r = REAL(worker_msg_send)(fd, msg);
        operation("after", name);
        return r;
}

int REAL(worker_msg_send_fds)(int fd, const struct worker_msg *msg, const int *fds);
int WRAP(worker_msg_send_fds)(int fd, const struct worker_msg *msg, const int *fds);
int WRAP(worker_msg_send_fds)(int fd, const struct worker_msg *msg, const int *fds)
{
        int r;

        operation("before", "a configuration for a worker");
        r = REAL(worker_msg_send_fds)(fd, msg, fds);
        operation("after", "a configuration for a worker");
        return r;
}

int REAL(runtime_dir_write_record)(struct runtime_dir *dir, const char *uid, const char *text);
int WRAP(runtime_dir_write_record)(struct runtime_dir *dir, const char *uid, const char *text);
int WRAP(runtime_dir_write_record)(struct runtime_dir *dir, const char *uid, const char *text)
{
        int r;

        operation("before", "the copy of a record");
        r = REAL(runtime_dir_write_record)(dir, uid, text);
        operation("after", "the copy of a record");
        return r;
}

int REAL(runtime_dir_remove_record)(struct runtime_dir *dir, const char *uid);
int WRAP(runtime_dir_remove_record)(struct runtime_dir *dir, const char *uid);
int WRAP(runtime_dir_remove_record)(struct runtime_dir *dir, const char *uid)
{
        int r;

        operation("before", "the removal of a copy of a record");
        r = REAL(runtime_dir_remove_record)(dir, uid);
        operation("after", "the removal of a copy of a record");
        return r;
}

enum MHD_Result REAL(MHD_queue_response)(
        struct MHD_Connection *connection, unsigned int status, struct MHD_Response *response);
enum MHD_Result WRAP(MHD_queue_response)(
        struct MHD_Connection *connection, unsigned int status, struct MHD_Response *response);
enum MHD_Result WRAP(MHD_queue_response)(
        struct MHD_Connection *connection, unsigned int status, struct MHD_Response *response)
{
        if (status != MHD_HTTP_OK) /* the answers to the test's own questions do not count */
                operation("before", "an answer");
        return REAL(MHD_queue_response)(connection, status, response);
}
