/* SPDX-License-Identifier: MIT */
/* device_path: the descriptor shows whether the file still has a name. The path watcher is a fake. */
#include "ublkd/reconcile/backing/device_path.h"
#include "ublkd/reconcile/parts/managed_device.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATHS = 2 };

static struct path_view views[PATHS];
static bool unseen; /* there was no look at the second path yet */
static struct path_store served = {.device = 0x801, .inode = 12};

const struct path_view *__wrap_path_watch_view(const struct path_watch *watch);
const char *__wrap_path_watch_path(const struct path_watch *watch);
const struct path_store *__wrap_path_watch_store(const struct path_watch *watch);

const struct path_view *__wrap_path_watch_view(const struct path_watch *watch)
{
        const struct path_view *view = (const struct path_view *)watch;

        return unseen && view == &views[1] ? NULL : view;
}

const char *__wrap_path_watch_path(const struct path_watch *watch)
{
        return (const struct path_view *)watch == &views[0] ? "/srv/i.img" : "/srv/j.img";
}

const struct path_store *__wrap_path_watch_store(const struct path_watch *watch)
{
        (void)watch;
        return &served;
}

/* The message must contain two words, and must not contain a third (NULL: none). */
static void check_state(const struct managed_device *device, enum condition_status status, const char *reason,
        const char *words, const char *more, const char *lie)
{
        const struct device_record record = {.number = 3};
        struct device_condition shown = {};

        CHECK_INT(device_path_condition(device, &record, &shown), 0);
        CHECK_INT(shown.status, status);
        CHECK_STR(reason_to_string(shown.reason), reason);
        if (!CHECK(strstr(shown.message, words)) || !CHECK(strstr(shown.message, more))
                || !CHECK(!lie || !strstr(shown.message, lie)))
                fprintf(stderr, "%s\n", shown.message);
        free(shown.message);
}

/* With one path or, if they have places, with as many as there are. */
static void init_device(
        struct managed_device *device, struct watched_path *paths, unsigned count, struct kept_store *stores)
{
        for (unsigned i = 0; i < count; i++) {
                paths[i].device = device;
                paths[i].number = i;
                paths[i].watch = (struct path_watch *)&views[i];
        }
        *device = (struct managed_device){
                .path = {.paths = paths, .count = count},
                .backing = {.stores = stores, .count = count, .is_list = count > 1},
                .view.facts.worker = PLAN_WORKER_SERVING
        };
}

static void a_file_without_a_name_cannot_be_moved_back(void)
{
        char path[] = "/tmp/device-path-XXXXXX";
        struct kept_store store = {.held = true, .fd = mkstemp(path)};
        struct watched_path paths[1] = {};
        struct managed_device device;

        init_device(&device, paths, 1, &store);
        views[0] = (struct path_view){
                .state = PATH_OTHER, .is_store = true, .found = {.device = 0x801, .inode = 13}
        };
        check_state(&device, CONDITION_FALSE, "PathLeadsElsewhere", "inode 13 of device 8:1",
                "Move that file back", "deleted");
        CHECK_INT(device_path_state(&device, NULL), PATH_OTHER);
        CHECK_INT(unlink(path), 0);
        check_state(&device, CONDITION_FALSE, "PathLeadsElsewhere", "only this disk has its data",
                "copy its data to another file", "Move that file");
        views[0] = (struct path_view){.state = PATH_GONE, .error = ENOENT};
        check_state(&device, CONDITION_FALSE, "PathGone", "only this disk has its data",
                "copy its data to another file", "Move that file");
        CHECK_INT(close(store.fd), 0);
}

/* What is worst counts, and each path of which that is so is named by its place. */
static void of_several_paths_each_is_named(void)
{
        char one[] = "/tmp/device-path-XXXXXX", other[] = "/tmp/device-path-XXXXXX";
        struct kept_store stores[PATHS] = {
                {.held = true, .fd = mkstemp(one)  },
                {.held = true, .fd = mkstemp(other)}
        };
        struct watched_path paths[PATHS] = {{.place = (char[]){"/target/children/0/path"}},
                {.place = (char[]){"/target/children/1/path"}}};
        struct managed_device device;

        init_device(&device, paths, PATHS, stores);
        views[0] = views[1] = (struct path_view){.state = PATH_SAME};
        check_state(&device, CONDITION_TRUE, "PathLeadsToStore", "/srv/i.img (/target/children/0/path) leads",
                "/srv/j.img (/target/children/1/path) leads", NULL);
        CHECK_INT(unlink(other), 0);
        views[1] = (struct path_view){.state = PATH_GONE, .error = ENOENT};
        check_state(&device, CONDITION_FALSE, "PathGone",
                "nothing at /srv/j.img (/target/children/1/path) any more", "only this disk has its data",
                "/target/children/0");
        CHECK_INT(device_path_state(&device, NULL), PATH_GONE);
        views[0] = (struct path_view){.state = PATH_OTHER};
        check_state(&device, CONDITION_FALSE, "PathLeadsElsewhere",
                "/srv/i.img (/target/children/0/path) does not",
                "nothing at /srv/j.img (/target/children/1/path) any more", NULL);
        views[1] = (struct path_view){.state = PATH_UNKNOWN, .error = EIO};
        check_state(&device, CONDITION_FALSE, "PathLeadsElsewhere", "/target/children/0/path",
                "Move that file back", "/target/children/1");
        views[0] = (struct path_view){.state = PATH_SAME};
        check_state(&device, CONDITION_UNKNOWN, "PathUnknown", "/target/children/1/path", "failed",
                "/target/children/0");
        CHECK_INT(device_path_state(&device, NULL), PATH_UNKNOWN);
        unseen = true;
        check_state(&device, CONDITION_UNKNOWN, "PathUnknown", "/srv/j.img (/target/children/1/path)",
                "not looked yet", "/target/children/0");
        views[0] = (struct path_view){.state = PATH_OTHER};
        check_state(&device, CONDITION_FALSE, "PathLeadsElsewhere", "/target/children/0/path",
                "Move that file back", "/target/children/1");
        unseen = false;
        CHECK_INT(unlink(one), 0);
        for (size_t i = 0; i < PATHS; i++)
                CHECK_INT(close(stores[i].fd), 0);
}

/* The path that leads elsewhere is not put right by a change of another one. */
static void a_path_counts_that_a_later_spec_keeps(void)
{
        static const struct {
                const char *one, *other, *more;
                enum path_state state;
        } rows[] = {
                {"/srv/i.img", "/srv/j.img", "",                                             PATH_OTHER},
                {"/srv/k.img", "/srv/j.img", "",                                             PATH_OTHER},
                {"/srv/i.img", "/srv/k.img", "",                                             PATH_SAME },
                {"/srv/k.img", "/srv/k.img", "",                                             PATH_SAME },
                {"/srv/i.img", "/srv/j.img", ",{\"type\":\"loop\",\"path\":\"/srv/k.img\"}", PATH_OTHER},
                {"/srv/i.img", "/srv/k.img", ",{\"type\":\"loop\",\"path\":\"/srv/j.img\"}", PATH_SAME },
        };
        struct kept_store stores[PATHS] = {};
        struct watched_path paths[PATHS] = {};
        struct managed_device device;

        init_device(&device, paths, PATHS, stores);
        views[0] = (struct path_view){.state = PATH_SAME};
        views[1] = (struct path_view){.state = PATH_OTHER};
        CHECK_INT(device_path_state(&device, NULL), PATH_OTHER);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_problems_ struct problem_list problems = {};
                struct device_spec *next = NULL;
                char text[256];
                cJSON *document;

                snprintf(text, sizeof(text),
                        "{\"name\":\"data\",\"target\":{\"type\":\"stripe\",\"children\":["
                        "{\"type\":\"loop\",\"path\":\"%s\"},{\"type\":\"loop\",\"path\":\"%s\"}%s]}}",
                        rows[i].one, rows[i].other, rows[i].more);
                document = cJSON_Parse(text);
                if (CHECK_INT(device_spec_parse(document, NULL, &next, &problems), 0))
                        CHECK_INT(device_path_state(&device, next), rows[i].state);
                cJSON_Delete(document);
                device_spec_free(next);
        }
}

int main(void)
{
        a_path_counts_that_a_later_spec_keeps();
        a_file_without_a_name_cannot_be_moved_back();
        of_several_paths_each_is_named();
        return check_report();
}
