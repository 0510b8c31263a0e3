/* SPDX-License-Identifier: MIT */
/* ublkd-helper, the program of ublkd's own processes: each does one thing that may block, or that no process with all rights
 * should do. It has few libraries: most of the time that ublkd takes to start goes to those of HTTP, TLS and systemd. */
#include "ublkd/base/cleanup.h"
#include "ublkd/base/ram.h"
#include "ublkd/driver/ublk_ctl.h"
#include "ublkd/filesystems/filesystem_process.h"
#include "ublkd/filesystems/filesystem_wire.h"
#include "ublkd/nodes/delivery_process.h"
#include "ublkd/nodes/delivery_wire.h"
#include "ublkd/nodes/recall_process.h"
#include "ublkd/offload/proc_spawn.h"
#include "ublkd/partitions/partition_reader.h"
#include "ublkd/partitions/partition_wire.h"
#include "ublkd/paths/path_watcher.h"

#include <stdio.h>
#include <string.h>

enum { EXIT_USAGE = 2 };

/* A disk has no recovery while this process waits for it. */
static void keep_in_ram(void)
{
        (void)ram_wait_for_no_io(); /* without that privilege no disk can be made */
        (void)ram_keep_all();       /* the supervisor logs that it cannot */
}

static int run_control_helper(void)
{
        keep_in_ram();
        return ublk_ctl_helper_main(PROC_SPAWN_FIRST_FD);
}

static int run_path_watcher(void)
{
        keep_in_ram();
        return path_watcher_main(PROC_SPAWN_FIRST_FD, NULL);
}

static int run_partition_reader(void)
{
        return partition_reader_main(PARTITION_ANSWER_FD, PARTITION_DISK_FD);
}

/* For ublk_ctl, path_watch, partition_scan, node_delivery, node_recall and filesystem_job only. */
static const struct {
        const char *option;
        int (*run)(void); /* returns the exit status */
} roles[] = {
        {"--control-helper",        run_control_helper     },
        {"--path-watcher",          run_path_watcher       },
        {PARTITION_READER_OPTION,   run_partition_reader   },
        {NODE_DELIVERY_OPTION,      delivery_process_main  },
        {NODE_RECALL_OPTION,        recall_process_main    },
        {FILESYSTEM_PROCESS_OPTION, filesystem_process_main},
};

int main(int argc, char *argv[])
{
        for (size_t i = 0; argc == 2 && i < ARRAY_SIZE(roles); i++)
                if (strcmp(argv[1], roles[i].option) == 0)
                        return roles[i].run();
        fprintf(stderr, "ublkd-helper: only ublkd starts this program\n");
        return EXIT_USAGE;
}
