/* SPDX-License-Identifier: MIT */
/* What is reported of workers whose runtime directory was removed, and for how long. */
#include "tests/unit/check.h"
#include "tests/unit/put_device.h"
#include "ublkd/host/runtime_loss.h"

#include "ublkd/base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct device_store *store;
static const char *without_files[2]; /* names of devices */

static bool has_files(void *userdata _unused_, const char *uid)
{
        for (size_t i = 0; i < ARRAY_SIZE(without_files); i++)
                if (without_files[i] && strcmp(device_store_get(store, without_files[i])->uid, uid) == 0)
                        return false;
        return true;
}

static void lose(const char *one, const char *two)
{
        without_files[0] = one;
        without_files[1] = two;
}

static pid_t worker; /* this process */

static void serve(const char *name, uint64_t since)
{
        struct device_status status = {
                .phase = PHASE_LIVE,
                .number = 0,
                .disk = true,
                .worker = {.pid = worker, .started_at = since}
        };

        CHECK_INT(device_store_set_status(store, name, &status), 0);
}

static unsigned count_events(const char *words)
{
        const struct event_log *log = device_store_events(store);
        unsigned count = 0;

        for (size_t i = 0; i < event_log_count(log); i++)
                count += event_log_at(log, i)->reason == REASON_RUNTIME_DIRECTORY_GONE
                         && strstr(event_log_at(log, i)->message, words);
        return count;
}

/* The last event of the device, with the repetitions that it continues. */
static unsigned count_repeats(const char *name)
{
        const struct event_log *log = device_store_events(store);
        unsigned count = 0;

        for (size_t i = 0; i < event_log_count(log); i++)
                if (strcmp(event_log_at(log, i)->device, name) == 0
                        && event_log_at(log, i)->reason == REASON_RUNTIME_DIRECTORY_GONE)
                        count = (unsigned)event_log_at(log, i)->count;
        return count;
}

static void check_problem(struct runtime_loss *loss, const char *words)
{
        _cleanup_problems_ struct problem_list problems = {};

        CHECK_INT(runtime_loss_report(loss, store, &problems), 0);
        CHECK_INT(problems.count, words ? 1 : 0);
        if (words && problems.count > 0 && !CHECK(strstr(problems.items[0].detail, words)))
                fprintf(stderr, "it says: %s\n", problems.items[0].detail);
}

static void test_until_the_last_worker_was_replaced(void)
{
        uint64_t before = clock_usec(CLOCK_REALTIME) - 1000 * 1000, after = before + 60 * 1000 * 1000;
        struct runtime_loss loss = {.has_files = has_files};

        check_problem(&loss, NULL);
        serve("one", before);
        serve("two", before);
        lose("one", "two");
        runtime_loss_note(&loss, store, "/run/x", false, 0);
        CHECK_INT(count_events("'ublkctl restart one'"), 1);
        CHECK_INT(count_events("'ublkctl restart two'"), 1);
        CHECK_INT(count_events("restart idle"), 0);
        check_problem(&loss, "'ublkctl restart one two'");
        serve("one", after);
        lose(NULL, "two");
        check_problem(&loss, "Of 1 worker that ran then");
        serve("two", after);
        lose(NULL, NULL);
        check_problem(&loss, NULL);
        runtime_loss_clear(&loss);
}

static void test_while_it_cannot_be_made_again(void)
{
        struct runtime_loss loss = {.has_files = has_files};

        serve("one", 1);
        lose("one", NULL);
        for (int i = 0; i < 3; i++)
                runtime_loss_note(&loss, store, "/run/y", false, -EROFS);
        CHECK_INT(count_events("/run/y"), 1); /* of one device, once */
        check_problem(&loss, "a disk whose worker dies is not recovered");
        runtime_loss_note(&loss, store, "/run/y", false, 0);
        CHECK_INT(count_events("/run/y"), 1);
        check_problem(&loss, "'ublkctl restart one'");
        runtime_loss_clear(&loss);
}

/* Its socket was removed when it exited. */
static void test_not_of_a_worker_that_has_exited(void)
{
        struct runtime_loss loss = {.has_files = has_files};
        pid_t self = worker;

        worker = fork();
        if (worker == 0)
                _exit(0);
        CHECK_INT(waitpid(worker, NULL, 0), worker);
        serve("one", 1);
        lose("one", NULL);
        CHECK(!runtime_loss_is_new(&loss, store));
        worker = self;
        serve("one", 1);
        CHECK(runtime_loss_is_new(&loss, store));
}

/* The directory stays: one event for each worker. */
static void test_files_of_workers(void)
{
        struct runtime_loss loss = {.has_files = has_files};
        uint64_t before = clock_usec(CLOCK_REALTIME) - 1000 * 1000;
        unsigned repeats;

        serve("one", before);
        serve("two", before);
        lose(NULL, NULL);
        CHECK(!runtime_loss_is_new(&loss, store));
        lose("one", NULL);
        CHECK(runtime_loss_is_new(&loss, store));
        runtime_loss_note(&loss, store, "/run/z", true, 0);
        CHECK(!runtime_loss_is_new(&loss, store));
        runtime_loss_note(&loss, store, "/run/z", true, 0); /* a record alone */
        CHECK_INT(count_events("Files of workers in the runtime directory /run/z were removed"), 1);
        CHECK_INT(count_events("'ublkctl restart two'"), 1); /* of the first test */
        check_problem(&loss, "'ublkctl restart one'");
        check_problem(&loss, "/run/z were removed while ublkd ran. All disks are served on.");
        repeats = count_repeats("two");
        lose("one", "two"); /* a second loss; both workers began before the first */
        CHECK(runtime_loss_is_new(&loss, store));
        runtime_loss_note(&loss, store, "/run/z", true, 0);
        CHECK(!runtime_loss_is_new(&loss, store));
        CHECK_INT(count_events("/run/z were removed"), 2);
        CHECK_INT(count_repeats("two"), repeats + 1);
        check_problem(&loss, "'ublkctl restart one two'");
        serve("two", before + 1); /* another worker of the same device */
        CHECK(runtime_loss_is_new(&loss, store));
        runtime_loss_note(&loss, store, "/run/z", true, 0);
        CHECK_INT(count_repeats("two"), repeats + 2);
        lose(NULL, NULL);
        check_problem(&loss, NULL);
        runtime_loss_clear(&loss);
}

int main(void)
{
        const struct device_backend *backend;
        void *context;

        worker = getpid();
        CHECK_INT(store_memory_open(&backend, &context), 0);
        CHECK_INT(device_store_new(backend, context, &store), 0);
        CHECK_INT(put_null_disk(store, "idle", ""), 0);
        CHECK_INT(put_null_disk(store, "one", ""), 0);
        CHECK_INT(put_null_disk(store, "two", ""), 0);
        test_until_the_last_worker_was_replaced();
        test_while_it_cannot_be_made_again();
        test_files_of_workers();
        test_not_of_a_worker_that_has_exited();
        device_store_free(store);
        return check_report();
}
