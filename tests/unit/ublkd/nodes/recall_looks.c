/* SPDX-License-Identifier: MIT */
/* Looks of node_recall at real containers, by the real process. */
#include "tests/unit/ublkd/nodes/recall_looks.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { DEADLINE_USEC = 60 * 1000 * 1000, RETRY_USEC = 100 * 1000 };

static void on_ended(void *userdata)
{
        ((struct looks *)userdata)->ended++;
}

static void on_failed(void *userdata, int error)
{
        struct looks *looks = userdata;

        looks->failed++;
        looks->error = error;
}

struct node_recall *recall_new(struct looks *looks, uint64_t pause_usec)
{
        struct node_recall *recall = NULL;

        CHECK_INT(node_recall_new(event, nodes,
                          &(const struct node_recall_options){.pause_usec = pause_usec,
                                  .retry_usec = RETRY_USEC,
                                  .ended = on_ended,
                                  .failed = on_failed,
                                  .userdata = looks},
                          &recall),
                0);
        return recall;
}

void wait_for_looks(const struct looks *looks, int count)
{
        while (looks->ended < count)
                if (!CHECK(sd_event_run(event, DEADLINE_USEC) > 0))
                        break;
}

int recall_times(int asks, uint64_t pause_usec)
{
        struct looks looks = {};
        struct node_recall *recall = recall_new(&looks, pause_usec);

        for (int i = 0; i < asks; i++)
                node_recall_ask(recall);
        wait_for_looks(&looks, 1);
        node_recall_free(recall);
        return looks.error;
}

void recall_all(void)
{
        int error = -ETIMEDOUT;

        for (int i = 0; i < LOOKS_MAX && error == -ETIMEDOUT; i++)
                error = recall_times(1, 0);
        CHECK_INT(error, 0);
}

int do_in(const struct container *container, int (*act)(const char *path), const char *path)
{
        char name[64];
        int status = -1, mounts;
        pid_t pid;

        snprintf(name, sizeof(name), "/proc/%d/ns/mnt", (int)container->pid);
        mounts = open(name, O_RDONLY | O_CLOEXEC);
        pid = fork();
        if (pid == 0)
                _exit(setns(mounts, CLONE_NEWNS) < 0 ? 255 : act(path) < 0 ? errno : 0);
        close_fd(mounts);
        CHECK_INT(waitpid(pid, &status, 0), pid);
        CHECK(WIFEXITED(status));
        return WEXITSTATUS(status);
}

int act_unmount(const char *path)
{
        return umount2(path, MNT_DETACH);
}

int act_cover(const char *path)
{
        return mount("tmpfs", path, "tmpfs", 0, "mode=0755");
}

int act_is_socket(const char *path)
{
        struct stat st;

        if (lstat(path, &st) < 0)
                return -1;
        errno = EINVAL;
        return S_ISSOCK(st.st_mode) ? 0 : -1;
}

void check_is_unmounted(const struct container *container, const char *path)
{
        CHECK_INT(do_in(container, act_is_socket, path), 0);
}

struct container container_with_node(char path[static 128])
{
        struct container container = container_start(enter_rootless);

        path_there("data", path);
        check_report_is(deliver(&container, "data"), DELIVERY_DONE, 0);
        CHECK_INT(container_open(&container, path), 0);
        return container;
}
