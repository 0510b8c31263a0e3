/* What this machine can do. */
#include "ublkd/host.h"

#include <string.h>
#include <sys/utsname.h>

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

void host_clear(struct host *host)
{
        free(host->kernel);
        problem_list_clear(&host->problems);
        foreign_disks_clear(&host->foreign);
        *host = (struct host){};
}
