/* What this machine can do. */
#include "ublkd/host.h"

#include <inttypes.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

enum { ROOM_LEAST = 1 << 20 }; /* bytes: the largest spec that a request can bring */

int host_read(struct host *host)
{
        struct utsname name;
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);
        char *kernel;

        if (uname(&name) < 0)
                return -errno;
        kernel = strdup(name.release);
        if (!kernel)
                return -ENOMEM;
        free(host->kernel);
        host->kernel = kernel;
        host->cpus = cpus > 0 ? (unsigned)cpus : 1;
        return 0;
}

/* What is left there for us. A file system that does not say (it has no blocks) is never full. */
static bool has_little_room(const char *directory, uint64_t *ret_room)
{
        struct statvfs room;

        if (statvfs(directory, &room) < 0 || room.f_blocks == 0)
                return false;
        *ret_room = (uint64_t)(geteuid() == 0 ? room.f_bfree : room.f_bavail) * room.f_frsize;
        return *ret_room < ROOM_LEAST;
}

int host_look_at_state(struct host *host, const char *directory, int error)
{
        uint64_t room;
        int r;

        problem_list_clear(&host->state);
        if (has_little_room(directory, &room)) {
                r = problem_add(&host->state, ENOSPC, "", "StateDirectoryFull",
                        "The file system of the state directory %s has %" PRIu64
                        " KiB left: devices cannot be created or changed there when that is used up, and "
                        "what happens to them is forgotten when ublkd ends; make room",
                        directory, room / 1024);
                return r < 0 ? r : 1;
        }
        if (error < 0)
                return problem_add(&host->state, -error, "", "StateDirectoryFails",
                        "What happens cannot be written to the database in %s: %s; it is forgotten when "
                        "ublkd ends. Look at the file system, and at its limits for this user",
                        directory, strerror(-error));
        return 0;
}

void host_clear(struct host *host)
{
        free(host->kernel);
        problem_list_clear(&host->problems);
        problem_list_clear(&host->state);
        foreign_disks_clear(&host->foreign);
        *host = (struct host){};
}
