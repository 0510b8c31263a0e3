/* SPDX-License-Identifier: MIT */
/* What the worker of an earlier ublkd says of its store: an attacker may have taken it over. */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/reconcile/reconciler_world.h"
#include "ublkd/reconcile/runtime_remade.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* "bare" has a disk without a store, as those of the target null. ublkd starts again, and its worker names the store of
 * "data". noted: the claims of "bare" are written down. */
static void world_new_with_impostor(struct world *world, bool noted)
{
        char command[192];

        world_new(world);
        world_put_loop(world, "data", "");
        world_bring_up(world, "data", "file:1");
        world_put_loop(world, "bare", "");
        world_bring_up(world, "bare", NULL);
        snprintf(command, sizeof(command), "rm %s/workers/%s.claim", world->path,
                world_record(world, "bare")->uid);
        if (!noted)
                CHECK_INT(system(command), 0);
        world_restart_with_workers(world);
        CHECK_INT(backing_claims_add(&fake_worker("bare")->params.claims,
                          &(struct backing_claim){(char[]){"file:1"}, 0, 1 << 20, true, false}),
                0);
        fake_worker_greet(
                fake_worker("bare"), world_record(world, "bare")->epoch, world_record(world, "bare")->number);
        fake_worker_greet(
                fake_worker("data"), world_record(world, "data")->epoch, world_record(world, "data")->number);
        world_settle(world, 5);
}

/* Else "data" could not be recovered: its store would be in use. */
static void a_worker_without_a_store_does_not_take_that_of_another_disk(void)
{
        for (int noted = 0; noted <= 1; noted++) {
                struct world world;

                world_new_with_impostor(&world, noted);
                CHECK_INT(fake_kills, 1);
                fake_worker_die(fake_worker("data"));
                world_settle(&world, 0);
                world_bring_up(&world, "data", "file:1");
                world_free(&world);
        }
}

/* The descriptor is that of the store, and the words about it are not what was written down. Others rely on them: a disk
 * on another part of a block device opens it without a claim if this one says that it has the claim. */
static void its_words_change_nothing(void)
{
        int store = memfd_create("store", MFD_CLOEXEC);
        _cleanup_free_ char *before = NULL, *after = NULL;
        struct fake_worker *worker;
        struct world world;
        const char *uid;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_settle(&world, 0);
        fake_worker_store(fake_worker("data"), "file:a", fcntl(store, F_DUPFD_CLOEXEC, 0));
        world_bring_up(&world, "data", "file:1");
        uid = world_record(&world, "data")->uid;
        CHECK_INT(runtime_dir_read(world.dir, uid, RUNTIME_BACKING, &before), 0);
        world_restart_with_workers(&world);
        worker = fake_worker("data");
        fake_worker_store(worker, "file:forged", fcntl(store, F_DUPFD_CLOEXEC, 0));
        worker->store.claimed = true;
        fake_worker_greet(worker, world_record(&world, "data")->epoch, world_record(&world, "data")->number);
        world_settle(&world, 5);
        CHECK(world_record(&world, "data")->status.backing.kept);
        reconciler_runtime_remade(world.reconciler); /* writes down what is known */
        CHECK_INT(runtime_dir_read(world.dir, uid, RUNTIME_BACKING, &after), 0);
        CHECK_STR(after, before);
        world_free(&world);
        close_fd(store);
}

int main(void)
{
        a_worker_without_a_store_does_not_take_that_of_another_disk();
        its_words_change_nothing();
        return check_report();
}
