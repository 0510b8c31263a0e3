/* SPDX-License-Identifier: MIT */
/* subuid_watch: the file is replaced, written and removed, and others beside it are. */
#include "ublkd/tasks/subuid_watch.h"

#include "tests/unit/check.h"
#include "tests/unit/remove_tree.h"
#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static char directory[] = "/tmp/subuid-watch-XXXXXX";
static unsigned changes;

static void on_change(void *userdata _unused_)
{
        changes++;
}

static const char *path_of(const char *name)
{
        static char paths[2][128];
        static unsigned next;
        char *path = paths[next++ % 2];

        snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
        return path;
}

static void write_file(const char *name)
{
        FILE *file = fopen(path_of(name), "we");

        if (CHECK(file))
                CHECK_INT(fclose(file), 0);
}

/* All changes are in the queue of the kernel when the call that made them has returned. */
static unsigned count(sd_event *event)
{
        changes = 0;
        while (sd_event_run(event, 0) > 0)
                ;
        return changes;
}

static void test_changes(sd_event *event)
{
        struct subuid_watch *watch = NULL;

        CHECK_INT(subuid_watch_new(event, directory, on_change, NULL, &watch), 0);
        CHECK_INT(count(event), 0);
        write_file("subuid+");
        CHECK_INT(count(event), 0);
        CHECK_INT(rename(path_of("subuid+"), path_of("subuid")), 0); /* as useradd(8) does */
        CHECK_INT(count(event), 1);
        write_file("subuid");
        CHECK_INT(count(event), 1);
        write_file("subgid");
        CHECK_INT(count(event), 0);
        CHECK_INT(rename(path_of("subuid"), path_of("subuid~")),
                0); /* as an editor does before it writes the next one */
        CHECK_INT(count(event), 0);
        write_file("subuid");
        CHECK_INT(count(event), 1);
        CHECK_INT(unlink(path_of("subuid")), 0);
        CHECK_INT(count(event), 0);
        CHECK(!subuid_watch_free(watch));
        write_file("subuid");
        CHECK_INT(count(event), 0);
}

int main(void)
{
        struct subuid_watch *watch = NULL;
        sd_event *event = NULL;

        CHECK(mkdtemp(directory));
        CHECK(sd_event_new(&event) >= 0);
        test_changes(event);
        CHECK_INT(subuid_watch_new(event, "/nonexistent", on_change, NULL, &watch), -ENOENT);
        CHECK(!watch && !subuid_watch_free(NULL));
        sd_event_unref(event);
        CHECK_INT(remove_tree(directory), 0);
        return check_report();
}
