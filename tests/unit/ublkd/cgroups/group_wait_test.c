/* SPDX-License-Identifier: MIT */
/* Real processes in a group that is a file. */
#include "ublkd/cgroups/group_wait.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"
#include "tests/unit/check.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { LIFE_MSEC = 50, LONG_USEC = 60 * 1000 * 1000, SHORT_USEC = 20 * 1000 };

static char tree[] = "/tmp/group-wait-XXXXXX";
static char mount[64], own[64], group[128];
static const struct group_sources sources = {.mount = mount, .own = own};

static void put(const char *path, const char *text)
{
        _cleanup_fclose_ FILE *file = fopen(path, "we");

        CHECK(file && fputs(text, file) >= 0);
}

static void put_members(pid_t one, pid_t two)
{
        char text[64];

        snprintf(text, sizeof(text), "0\n%d\n%d\n%d\n", (int)getpid(), (int)one, (int)two);
        put(group, text);
}

/* name: what the kernel calls it. life: in milliseconds; -1: until it is killed. */
static pid_t start(const char *name, int life)
{
        int pair[2];
        pid_t pid;

        CHECK_INT(pipe(pair), 0);
        pid = fork();
        if (pid == 0) {
                (void)prctl(PR_SET_NAME, name);
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void)!write(pair[1], "", 1);
                (void)poll(NULL, 0, life);
                _exit(0);
        }
        CHECK_INT(read(pair[0], &(char){0}, 1), 1);
        close(pair[0]);
        close(pair[1]);
        return pid;
}

static void end(pid_t pid)
{
        (void)kill(pid, SIGKILL);
        CHECK_INT(waitpid(pid, NULL, 0), pid);
}

static void test_a_group_that_cannot_be_read(void)
{
        CHECK_INT(group_wait(&sources, LONG_USEC), -ENOENT);
}

static void test_workers_are_left(void)
{
        pid_t worker = start("ublkd-worker", -1), dead = start("ublkd-look", 0);

        CHECK_INT(waitpid(dead, NULL, 0), dead);
        put_members(worker, dead);
        CHECK_INT(group_wait(&sources, LONG_USEC), 0);
        CHECK_INT(kill(worker, 0), 0);
        end(worker);
}

/* A file system of a container may hold them. */
static void test_what_may_hang_in_a_container_is_left(void)
{
        pid_t delivery = start("ublkd-delivery", -1), recall = start("ublkd-recall", -1);

        put_members(delivery, recall);
        CHECK_INT(group_wait(&sources, LONG_USEC), 0);
        CHECK_INT(kill(recall, 0), 0);
        end(delivery);
        end(recall);
}

/* Neither is reaped before. */
static void test_other_processes_are_waited_for(void)
{
        pid_t one = start("ublkd-control", LIFE_MSEC), two = start("ublkd-paths", 2 * LIFE_MSEC);

        put_members(one, two);
        CHECK_INT(group_wait(&sources, LONG_USEC), 0);
        CHECK_INT(waitpid(one, NULL, WNOHANG), one);
        CHECK_INT(waitpid(two, NULL, WNOHANG), two);
}

static void test_patience_ends(void)
{
        pid_t pid = start("ublkd-look", -1);
        uint64_t begin = monotonic_now();

        put_members(pid, getpid());
        CHECK_INT(group_wait(&sources, SHORT_USEC), 1);
        CHECK(monotonic_now() >= begin + SHORT_USEC);
        end(pid);
}

int main(void)
{
        char command[192];

        CHECK(mkdtemp(tree));
        snprintf(mount, sizeof(mount), "%s/mount", tree);
        snprintf(own, sizeof(own), "%s/own", tree);
        snprintf(group, sizeof(group), "%s/slice/ublkd.service/cgroup.procs", mount);
        snprintf(command, sizeof(command), "mkdir -p %s/slice/ublkd.service && touch %s/cgroup.controllers",
                mount, mount);
        CHECK_INT(system(command), 0);
        put(own, "0::/slice/ublkd.service\n");
        test_a_group_that_cannot_be_read();
        test_workers_are_left();
        test_what_may_hang_in_a_container_is_left();
        test_other_processes_are_waited_for();
        test_patience_ends();
        snprintf(command, sizeof(command), "rm -r %s", tree);
        CHECK_INT(system(command), 0);
        return check_report();
}
