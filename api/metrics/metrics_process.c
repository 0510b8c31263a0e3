/* SPDX-License-Identifier: MIT */
/* Print the metrics of the process, with the names that all Prometheus clients use (process_*).
 *
 * Only here does the supervisor's loop read files of /proc, and they are its own, so no other process can
 * delay it. "stat" and "fd" take locks of this process only (its signals; its table of descriptors, which one
 * thread uses), not the lock of its memory map. "stat" reads counters of its memory. */
#include "api/metrics/metrics.h"

#include "ublkd/base/clock.h"

#include <dirent.h>
#include <sys/resource.h>

/* Fields of /proc/self/stat (proc_pid_stat(5)) behind the name of the program, which may contain spaces. */
struct process_stat {
        unsigned long long utime, stime, starttime; /* clock ticks */
        unsigned long long vsize;                   /* bytes */
        long long rss;                              /* pages */
};

static int read_stat(struct process_stat *ret)
{
        FILE *file = fopen("/proc/self/stat", "re");
        struct process_stat stat = {};
        int n;

        if (!file)
                return -errno;
        n = fscanf(file,
                "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d "
                "%llu %llu %lld",
                &stat.utime, &stat.stime, &stat.starttime, &stat.vsize, &stat.rss);
        (void)fclose(file);
        if (n != 5)
                return -EBADMSG;
        *ret = stat;
        return 0;
}

static int count_open_files(void)
{
        DIR *directory = opendir("/proc/self/fd");
        int count = -3; /* ".", "..", and the directory itself */

        if (!directory)
                return -errno;
        while (readdir(directory))
                count++;
        (void)closedir(directory);
        return count;
}

/* Convert clock ticks since boot to seconds since 1970. */
static double to_real_time(double seconds_since_boot)
{
        int64_t booted = (int64_t)(clock_nsec(CLOCK_REALTIME) - clock_nsec(CLOCK_BOOTTIME));

        return (double)booted / 1e9 + seconds_since_boot;
}

void metrics_of_process(FILE *out)
{
        double tick = (double)sysconf(_SC_CLK_TCK);
        struct process_stat stat = {};
        struct rlimit files;
        int open_files = count_open_files();

        if (read_stat(&stat) >= 0) {
                metric_alone(out, "process_cpu_seconds_total", METRIC_COUNTER,
                        "User and system CPU time spent.", (double)(stat.utime + stat.stime) / tick);
                metric_alone(out, "process_start_time_seconds", METRIC_GAUGE,
                        "Start of the process, since 1970.", to_real_time((double)stat.starttime / tick));
                metric_alone(out, "process_virtual_memory_bytes", METRIC_GAUGE, "Size of the address space.",
                        (double)stat.vsize);
                metric_alone(out, "process_resident_memory_bytes", METRIC_GAUGE, "Memory in use.",
                        (double)stat.rss * (double)sysconf(_SC_PAGESIZE));
        }
        if (open_files >= 0)
                metric_alone(out, "process_open_fds", METRIC_GAUGE, "Open file descriptors.", open_files);
        if (getrlimit(RLIMIT_NOFILE, &files) >= 0)
                metric_alone(out, "process_max_fds", METRIC_GAUGE, "Limit of open file descriptors.",
                        (double)files.rlim_cur);
}
