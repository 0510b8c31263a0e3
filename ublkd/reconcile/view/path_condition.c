/* SPDX-License-Identifier: MIT */
/* Reports whether the path of a device's spec still leads to the store of its disk. */
#include "ublkd/reconcile/view/path_condition.h"

#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

enum { STORE_TEXT_SIZE = 80 };

/* Condition and event of each state. */
static const struct path_kind kinds[_PATH_STATE_MAX] = {
        [PATH_UNKNOWN] = {CONDITION_UNKNOWN, REASON_PATH_UNKNOWN,         false, EVENT_NORMAL },
        [PATH_SAME] = {CONDITION_TRUE,    REASON_PATH_LEADS_TO_STORE,  true,  EVENT_NORMAL },
        [PATH_OTHER] = {CONDITION_FALSE,   REASON_PATH_LEADS_ELSEWHERE, true,  EVENT_WARNING},
        [PATH_GONE] = {CONDITION_FALSE,   REASON_PATH_GONE,            true,  EVENT_WARNING},
};

/* Return whether the store is open: the kernel does not give its inode or device number to another one
 * then. */
static bool is_open(const struct path_facts *facts)
{
        return facts->held || facts->serving;
}

/* An equal number proves nothing once the store is not open: then the next worker compares an identity that
 * is never reused. */
enum path_state path_condition_state(const struct path_facts *facts)
{
        if (facts->view->state != PATH_SAME || is_open(facts))
                return facts->view->state;
        return facts->refused ? PATH_OTHER : PATH_UNKNOWN;
}

const struct path_kind *path_condition_kind(enum path_state state)
{
        return &kinds[state];
}

/* What the administrator must know of the store to act. */
enum fate {
        FATE_DISK,    /* a block device */
        FATE_NAMED,   /* a file that is open, and has a name somewhere */
        FATE_UNNAMED, /* a file that only the disk still has */
        FATE_UNKNOWN, /* a file that is open; unknown whether it has a name */
        FATE_CLOSED,  /* a file that is not open: without a name it would be deleted */
        _FATE_MAX
};

static enum fate fate_of(const struct path_facts *facts)
{
        return facts->store->is_disk ? FATE_DISK
               : facts->unnamed      ? FATE_UNNAMED
               : facts->held         ? FATE_NAMED
               : facts->serving      ? FATE_UNKNOWN
                                     : FATE_CLOSED;
}

/* ---- sentences ---- */

static const char *kind_of(const struct path_store *store)
{
        return store->is_disk ? "block device" : "file";
}

/* "inode 12 of device 8:1", "block device 8:16". */
static const char *store_text(const struct path_store *store, char text[static STORE_TEXT_SIZE])
{
        if (store->is_disk)
                snprintf(text, STORE_TEXT_SIZE, "block device %u:%u", major(store->device),
                        minor(store->device));
        else
                snprintf(text, STORE_TEXT_SIZE, "inode %llu of device %u:%u",
                        (unsigned long long)store->inode, major(store->device), minor(store->device));
        return text;
}

/* What happens to the disk, and what the administrator can do. After a reboot ublkd has only the path. */
static const char *const advice[_FATE_MAX] = {
        [FATE_DISK] = "Make this path lead to that block device again before the next reboot; or unmount the "
                      "disk, and set the path in the spec to one that does.",
        [FATE_NAMED] = "Move that file back to this path before the next reboot; or unmount the disk, and "
                       "set the path in the spec to where the file is.",
        [FATE_UNNAMED] = "That file was deleted, and only this disk has its data: unmount the disk, and copy "
                         "its data to another file, before the disk is removed or the machine is rebooted.",
        [FATE_UNKNOWN] =
                "Move that file back to this path before the next reboot. If it was deleted, only this disk "
                "has its data: unmount the disk, and copy its data to another file before the reboot.",
        [FATE_CLOSED] = "Bring that file back to this path, and ublkd recovers the disk. If it was deleted, "
                        "its data is gone, unless there is a copy elsewhere.",
};

static int explain_served(const struct path_facts *facts, char **ret)
{
        if (!is_open(facts))
                return asprintf(ret,
                        "/dev/ublkb%d has no worker, and its I/O waits for the %s that it was created on",
                        facts->number, kind_of(facts->store));
        return asprintf(ret, "/dev/ublkb%d continues with the %s that it was created on, and %s",
                facts->number, kind_of(facts->store),
                facts->held ? "so does its next worker" : "its next worker refuses any other");
}

static int explain_other(const struct path_facts *facts, const char *served, enum fate fate, char **ret)
{
        char here[STORE_TEXT_SIZE] = "neither a file nor a block device", there[STORE_TEXT_SIZE];

        if (facts->view->state == PATH_SAME)
                return asprintf(ret,
                        "%s leads to another %s than the one that the disk was created on, with the same "
                        "number (%s). %s. %s",
                        facts->path, kind_of(facts->store), store_text(facts->store, there), served,
                        advice[fate]);
        if (facts->view->is_store)
                (void)store_text(&facts->view->found, here);
        return asprintf(ret,
                "%s does not lead to the %s that the disk was created on: that is %s, and at the path is now "
                "%s. %s. %s",
                facts->path, kind_of(facts->store), store_text(facts->store, there), here, served,
                advice[fate]);
}

static int explain_unknown(const struct path_facts *facts, const char *served, char **ret)
{
        if (facts->view->state == PATH_SAME)
                return asprintf(ret,
                        "Whether %s leads to the %s that the disk was created on is unknown until its next "
                        "worker opens it. %s.",
                        facts->path, kind_of(facts->store), served);
        return asprintf(ret, "Looking where %s leads failed: %s. %s. ublkd tries again.", facts->path,
                strerror(facts->view->error), served);
}

int path_condition_explain(const struct path_facts *facts, char **ret)
{
        enum path_state state = path_condition_state(facts);
        enum fate fate = fate_of(facts);
        _cleanup_free_ char *served = NULL;
        int n;

        if (explain_served(facts, &served) < 0) {
                served = NULL;
                return -ENOMEM;
        }
        if (state == PATH_OTHER)
                n = explain_other(facts, served, fate, ret);
        else if (state == PATH_GONE)
                n = asprintf(ret, "There is nothing at %s any more (%s). %s. %s", facts->path,
                        strerror(facts->view->error), served, advice[fate]);
        else if (state == PATH_SAME)
                n = asprintf(ret, "%s leads to the %s that is served.", facts->path, kind_of(facts->store));
        else
                n = explain_unknown(facts, served, ret);
        return n < 0 ? -ENOMEM : 0;
}
