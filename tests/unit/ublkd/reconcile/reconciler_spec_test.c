/* SPDX-License-Identifier: MIT */
/* Trying a spec before the disk of the old one is removed: the reconciler over a fake kernel and fake workers. */
#include "tests/unit/check.h"
#include "tests/unit/put_device.h"
#include "tests/unit/ublkd/reconcile/reconciler_world.h"
#include "ublkd/reconcile/spec_preflight.h"

#include <stdio.h>
#include <string.h>

static unsigned verdicts;
static char verdict[256];
static enum condition_reason verdict_reason;

static void note_verdict(void *userdata, bool tried, enum condition_reason reason, const char *refusal)
{
        (void)userdata;
        verdict_reason = reason;
        verdicts++;
        snprintf(verdict, sizeof(verdict), "%s", !tried ? "ask again" : refusal ? refusal : "good");
}

static int try_spec(struct world *world, struct spec_preflight **ret)
{
        const struct device_record *record = world_record(world, "data");

        return spec_preflight_begin(world->reconciler, record, record->spec, note_verdict, NULL, ret);
}

/* Try the spec before the served disk is removed. */
static void a_spec_is_tried(void)
{
        struct fake_worker *serving;
        struct spec_preflight *preflight, *second, *third;
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_bring_up(&world, "data", "file:1");
        serving = fake_worker("data");
        verdicts = 0;
        CHECK_INT(try_spec(&world, &preflight), 0);
        CHECK_INT(fake_worker("(preflight)")->lock, WORKER_LOCK_NEVER);
        CHECK_INT(fake_worker("(preflight)")->given, -1);
        fake_worker_open(fake_worker("(preflight)"), "file:1");
        fake_worker_die(fake_worker("(preflight)"));
        CHECK_STR(verdict, "good");
        CHECK_INT(verdict_reason, REASON_NONE);
        CHECK_INT(try_spec(&world, &preflight), 0);
        fake_worker_refuse(fake_worker("(preflight)"), "BackingFileMissing", "It is not there");
        CHECK_STR(verdict, "It is not there.");
        CHECK_INT(verdict_reason, REASON_BACKING_FILE_MISSING);
        CHECK_INT(try_spec(&world, &preflight), 0);
        fake_worker_die(fake_worker("(preflight)"));
        CHECK(strstr(verdict, "The preflight worker "));
        CHECK_INT(verdict_reason, REASON_NONE);
        CHECK_INT(verdicts, 3);
        CHECK_INT(try_spec(&world, &preflight), 0);
        CHECK_INT(try_spec(&world, &second), 0);
        CHECK_INT(try_spec(&world, &third), 0);
        (void)spec_preflight_end(preflight);
        (void)spec_preflight_end(second);
        CHECK_INT(verdicts, 3);
        fake_worker_die(fake_worker("(preflight)")); /* the waiting callers get !tried */
        CHECK_INT(verdicts, 4);
        CHECK_STR(verdict, "ask again");
        CHECK(!fake_worker("(preflight)"));
        CHECK_INT(try_spec(&world, &preflight), 0);
        CHECK_INT(try_spec(&world, &second), 0);
        CHECK(fake_worker("data") == serving);
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        world_free(&world);
        CHECK_INT(verdicts, 6);
}

/* The store was cut off under the idle disk of 1 MiB. The serving worker is to look at it before the file is as
 * long as before; `more` is of the spec. */
static void try_on_cut_store(const char *more, bool params, const char *refusal)
{
        struct spec_preflight *preflight;
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", more);
        world_bring_up(&world, "data", "file:1");
        CHECK_INT(try_spec(&world, &preflight), 0);
        CHECK(fake_worker("(preflight)")->has_data && !fake_worker("(preflight)")->exists);
        CHECK_INT(fake_worker("data")->asked, 0);
        if (params) {
                fake_worker("(preflight)")->params.size = 512 << 10;
                fake_worker_open(fake_worker("(preflight)"), "file:1");
                fake_worker_die(fake_worker("(preflight)"));
        } else
                fake_worker_refuse_size(fake_worker("(preflight)"), "It offers 512KiB");
        CHECK(strstr(verdict, refusal));
        CHECK_INT(fake_worker("data")->asked, strcmp(refusal, "good") == 0 ? 0 : 1 << 20);
        world_free(&world);
}

static void a_spec_is_tried_on_a_store_that_was_cut_off(void)
{
        try_on_cut_store("", true, "The backing store offers 512KiB, and the disk has 1MiB; if");
        try_on_cut_store(",\"size\":\"512KiB\"", true, "good"); /* a client wants it smaller */
        try_on_cut_store(",\"size\":\"1MiB\"", false, "It offers 512KiB.");
}

/* The file of a tenant is opened with its rights, by each worker. */
static void the_store_of_a_tenant_is_its_own(void)
{
        struct spec_preflight *preflight;
        struct world world;

        world_new(&world);
        CHECK_INT(put_device_of(world.store,
                          "{\"name\":\"data\",\"target\":{\"type\":\"loop\",\"path\":\"/f\"}}", "uid:1000"),
                0);
        world_bring_up(&world, "data", "file:1");
        CHECK_INT(fake_worker("data")->store_user, 1000);
        CHECK(fake_worker("data")->hide_name);
        CHECK_INT(try_spec(&world, &preflight), 0);
        CHECK_INT(fake_worker("(preflight)")->store_user, 1000);
        fake_worker_die(fake_worker("(preflight)"));
        world_put_loop(&world, "admins", "");
        world_bring_up(&world, "admins", "file:2");
        CHECK_INT(fake_worker("admins")->store_user, 0);
        CHECK(!fake_worker("admins")->hide_name);
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 1100);
        CHECK_INT(fake_worker("data")->store_user, 1000);
        world_free(&world);
}

int main(void)
{
        the_store_of_a_tenant_is_its_own();
        a_spec_is_tried();
        a_spec_is_tried_on_a_store_that_was_cut_off();
        return check_report();
}
