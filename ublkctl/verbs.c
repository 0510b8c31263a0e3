/* SPDX-License-Identifier: MIT */
/* The table of verbs. */
#include "ublkctl/verbs.h"

#include "ublkctl/client/call.h"
#include "ublkctl/text/terminal.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/values/name_distance.h"

#include <stdio.h>
#include <string.h>

#define BIT(name) SETTING_BIT(SETTING_##name)

static const char *const shells[] = {"bash", "zsh", NULL};

/* clang-format off */
static const struct verb verbs[] = {
        {.name = "attach", .arguments = "FILE", .summary = "create a disk from a file, print its node",
         .description = "Creates a disk from FILE (or a block device), waits until it is Live and prints "
                        "its node, like /dev/ublkb0. If FILE is already attached in the same way, prints "
                        "the node of its disk; if its disk has another --size, --label or --direct-io, or is not --temporary, refuses. "
                        "If only that disk is temporary, warns. "
                        "If the file was replaced under a device of that path, refuses "
                        "(exit status 7), also with another --offset or --read-only; --name creates a second "
                        "disk. On failure nothing is left behind. The device comes "
                        "back after a reboot, so its path is stored as given, with its links: name a block "
                        "device by a link that stays, as in /dev/disk/by-id or /dev/mapper. With --temporary it "
                        "does not come back: ublkd removes it after the next boot, and touches neither the "
                        "file nor any other device.",
         .settings = BIT(READ_ONLY) | BIT(NAME) | BIT(OFFSET) | BIT(SIZE) | BIT(SET_LABEL) | BIT(DIRECT_IO) | BIT(TEMPORARY) | BIT(TIMEOUT),
         .arguments_min = 1, .arguments_max = 1, .completion = COMPLETE_FILE, .run = verb_attach},
        {.name = "detach", .arguments = "NODE|FILE|NAME...", .summary = "remove disks",
         .description = "Removes the disk with this node, this backing file or this name, and waits until "
                        "it is gone. Refuses a disk in use, and names its users.",
         .settings = BIT(FORCE) | BIT(DROP_LAST_COPY) | BIT(NO_WAIT) | BIT(TIMEOUT),
         .arguments_min = 1, .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_NODE_OR_FILE,
         .run = verb_detach},
        {.name = "create", .arguments = "[NAME FIELD=VALUE...]", .summary = "create a device and wait until it is Live",
         .description = "Creates the device of the one spec in the file of -f, or the device that the "
                        "arguments describe, as in: ublkctl create data target.type=loop "
                        "target.path=/srv/data.img. 'ublkctl set --help' explains how to write a VALUE. If "
                        "the same device exists, that is a success; if a different device has its name, a "
                        "failure. A device that cannot start is kept, and ublkd retries. For a file with "
                        "several specs use 'ublkctl apply'.",
         .settings = BIT(FILE) | BIT(NO_WAIT) | BIT(TIMEOUT) | BIT(OUTPUT),
         .arguments_max = ARGUMENTS_ANY, .fields = true, .run = verb_create},
        {.name = "apply", .arguments = "", .summary = "create or change devices as files describe them",
         .description = "Creates and changes devices until each matches its spec, and prints created, "
                        "changed or unchanged for each. A file holds one spec, several in a row, an array "
                        "of specs, or a list from 'ublkctl list -o json'. After a failure it continues "
                        "with the next device; at the end it lists all failures and exits with a status "
                        "other than 0. With --prune and -l, it removes devices that have the labels and "
                        "are in no file, unless it could not read a spec. It does not remove a device "
                        "whose disk is in use, and names the users; only '--prune-in-use NAME' removes "
                        "such a device. It does not shrink a disk without --allow-shrink. --dry-run checks "
                        "every spec, and shows which disks it would recreate or remove and who uses them; "
                        "it does not open backing files.",
         .settings = BIT(FILES) | BIT(PRUNE) | BIT(PRUNE_IN_USE) | BIT(LABEL) | BIT(DRY_RUN) | BIT(ALLOW_SHRINK) | BIT(WAIT) | BIT(TIMEOUT),
         .arguments_max = 0, .run = verb_apply},
        {.name = "get", .arguments = "[NAME...]", .summary = "print devices as JSON",
         .description = "Prints devices as the API returns them, or as -o and --columns say. Without a NAME it "
                        "lists all devices, as 'ublkctl list' does.",
         .settings = BIT(OUTPUT) | BIT(LABEL) | BIT(COLUMNS) | BIT(SORT), .selects = true,
         .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_get},
        {.name = "list", .alias = "ls", .arguments = "[NAME...]", .summary = "list devices",
         .description = "Lists all devices, those with the labels of -l, or those named. AGE is the time since "
                        "the device was created. The column REASON appears where a "
                        "device has more to say than its phase: why it is not Live, or what is wrong with a "
                        "disk that is served. In -o wide, REPLACED counts the workers that ublkd started in "
                        "place of another, failed tries included, and RECOVERIES those that ended in Live. "
                        "'ublkctl apply' accepts the output of -o json.",
         .settings = BIT(OUTPUT) | BIT(LABEL) | BIT(COLUMNS) | BIT(SORT), .selects = true,
         .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_list},
        {.name = "describe", .arguments = "NAME...", .summary = "show everything about devices",
         .description = "Shows what a device is, its state, why it is not Live and what ublkd does next, "
                        "and what happened to it. With --users also who uses its disk, which only those "
                        "who may change devices may ask.",
         .settings = BIT(USERS),
         .arguments_min = 1, .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_describe},
        {.name = "set", .arguments = "NAME FIELD=VALUE...", .summary = "change fields of a device",
         .description = "Changes fields of the spec and waits until the device is Live again. Dots lead to "
                        "a field of an object, recovery.trigger=manual, and numbers to a target in a list, "
                        "target.children.0.path=/srv/a.img. A VALUE is JSON if it parses as "
                        "JSON, else a string; labels, cpus and owner.mode are always strings; null removes "
                        "the field. Bytes are a number, alone or with KiB, MiB, GiB or TiB: size=20GiB (or "
                        "20G). owner.uid and owner.gid also take names of this machine: "
                        "owner.uid=alice. A disk does not shrink without --allow-shrink. With a number in a "
                        "list, nothing is changed if another client changes the device at the same time.",
         .settings = BIT(ALLOW_SHRINK) | BIT(DROP_LAST_COPY) | BIT(NO_WAIT) | BIT(TIMEOUT),
         .arguments_min = 2, .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .fields = true, .run = verb_set},
        {.name = "patch", .arguments = "NAME [JSON]", .summary = "change a device with a merge patch",
         .description = "Applies a JSON merge patch (RFC 7396) from the command line, or from the file of "
                        "-f, to the spec, and waits until the device is Live again. A disk does not shrink "
                        "without --allow-shrink.",
         .settings = BIT(FILE) | BIT(ALLOW_SHRINK) | BIT(DROP_LAST_COPY) | BIT(NO_WAIT) | BIT(TIMEOUT),
         .arguments_min = 1, .arguments_max = 2, .completion = COMPLETE_DEVICE, .run = verb_patch},
        {.name = "resize", .arguments = "NAME SIZE", .summary = "change the size of a device",
         .description = "Changes the size to SIZE, like 20GiB (or 20G). A disk grows under load where the "
                        "kernel supports it. It does not shrink without --allow-shrink, nor while it is in "
                        "use. If the backing store is smaller than SIZE, ublkctl restores the old size.",
         .settings = BIT(ALLOW_SHRINK) | BIT(DROP_LAST_COPY) | BIT(NO_WAIT) | BIT(TIMEOUT),
         .arguments_min = 2, .arguments_max = 2, .completion = COMPLETE_DEVICE, .run = verb_resize},
        {.name = "enable", .arguments = "NAME...", .summary = "create the disks of disabled devices",
         .description = "Creates the disk of a device that was disabled or stopped.",
         .settings = BIT(NO_WAIT) | BIT(TIMEOUT),
         .arguments_min = 1, .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_enable},
        {.name = "disable", .arguments = "NAME...", .summary = "remove the disks, keep the devices",
         .description = "Removes the disk and keeps the device, with its number, for 'ublkctl enable'.",
         .settings = BIT(DROP_LAST_COPY) | BIT(NO_WAIT) | BIT(TIMEOUT),
         .arguments_min = 1, .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_disable},
        {.name = "stop", .arguments = "[NAME...]", .summary = "remove the disks until the next boot",
         .description = "Removes the disk, and keeps the device and its spec: the disk comes back at the next "
                        "boot, or with 'ublkctl start'. Refuses a disk in use, and names its users.",
         .settings = BIT(WHEN_UNUSED) | BIT(TENANTS) | BIT(IGNORE_MISSING) | BIT(DROP_LAST_COPY) | BIT(NO_WAIT) | BIT(TIMEOUT),
         .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_stop},
        {.name = "start", .arguments = "NAME...", .summary = "create the disks of stopped devices",
         .description = "Creates the disk of a device that was stopped, and waits until it is Live.",
         .settings = BIT(NO_WAIT) | BIT(TIMEOUT),
         .arguments_min = 1, .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_start},
        {.name = "delete", .arguments = "NAME...", .summary = "remove devices",
         .description = "Removes devices and waits until they are gone. Backing files stay, but ublkd deletes an "
                        "image that it has made in a pool, unless target.keep is true. Refuses a disk in use, and "
                        "names its users. 'ublkctl list -o name | xargs -r ublkctl delete' removes all devices.",
         .settings = BIT(FORCE) | BIT(DROP_LAST_COPY) | BIT(NO_WAIT) | BIT(TIMEOUT) | BIT(IGNORE_MISSING),
         .arguments_min = 1, .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_delete},
        {.name = "wait", .arguments = "NAME...", .summary = "wait until devices are Live, or gone",
         .description = "Waits until every device is Live (if disabled: Disabled), or gone. Also waits for "
                        "a device that is held or cannot start, because it may yet become Live.",
         .settings = BIT(FOR) | BIT(TIMEOUT),
         .arguments_min = 1, .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_wait},
        {.name = "recover", .arguments = "NAME...", .summary = "start workers now for disks without one",
         .description = "Starts a worker for a device now, if its recovery is manual or it waits for the "
                        "next attempt. Waits until the device is Live. A worker that serves stays; restart "
                        "replaces it. If the store of the device was "
                        "replaced (BackingChanged), it recovers only with its own store, or with "
                        "--accept-backing after you have unmounted the disk.",
         .settings = BIT(ACCEPT_BACKING) | BIT(STORE) | BIT(FORCE) | BIT(NO_WAIT) | BIT(TIMEOUT),
         .arguments_min = 1, .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_recover},
        {.name = "restart", .arguments = "NAME...", .summary = "replace workers without an I/O error",
         .description = "Replaces the worker of a device by one of the installed program, without an I/O "
                        "error. Waits until the device is Live. After a failed flush, or after the backing "
                        "file was cut off, the next worker fails I/O too, unless --accept-write-errors "
                        "names the loss that describe shows.",
         .settings = BIT(NO_WAIT) | BIT(TIMEOUT) | BIT(ACCEPT_WRITE_ERRORS) | BIT(DROP_LAST_COPY),
         .arguments_min = 1, .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_restart},
        {.name = "adopt", .arguments = "[NAME|UID...]", .summary = "adopt disks that the database lost",
         .description = "Stores the records of devices from the runtime directory again, after the database "
                        "of ublkd was lost or replaced by an older copy, and waits until each device is "
                        "Live. The disks stay in service, and keep uid, number and name. 'ublkctl host' "
                        "lists what can be adopted. A newer record replaces an older one in the database. A "
                        "device that was removed after the copy was made comes back only if you name it.",
         .settings = BIT(ALL) | BIT(NEW_NAME) | BIT(NO_WAIT) | BIT(TIMEOUT),
         .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_ADOPTABLE, .run = verb_adopt},
        {.name = "mkfs", .arguments = "NAME", .summary = "make a file system on a blank disk, once",
         .description = "Makes the file system of --type on the disk of the device. ublkd does that only on a "
                        "blank disk, and refuses one that has anything else on it. If the disk has the file "
                        "system already, nothing changes. If an earlier mkfs was interrupted, give the UUID of "
                        "its incomplete file system with --remake.",
         .settings = BIT(FILESYSTEM_TYPE) | BIT(REMAKE),
         .arguments_min = 1, .arguments_max = 1, .completion = COMPLETE_DEVICE, .run = verb_mkfs},
        {.name = "mount", .arguments = "NAME...", .summary = "mount file systems that ublkd made, print where",
         .description = "Mounts the file system that 'ublkctl mkfs' has made, and prints the directory, which only "
                        "root may enter. A mount that is there stays as it is. It keeps the disk in use, until "
                        "'ublkctl unmount' or the end of the boot.",
         .settings = BIT(NO_EXEC) | BIT(HOLDER),
         .arguments_min = 1, .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_mount},
        {.name = "unmount", .alias = "umount", .arguments = "NAME...", .summary = "end mounts of 'ublkctl mount'",
         .description = "Ends the mount. Refuses while a process uses a file in it, and while holders want it to "
                        "stay. Without a mount, nothing changes.",
         .settings = BIT(HOLDER) | BIT(ALL_HOLDERS),
         .arguments_min = 1, .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_unmount},
        {.name = "deliver", .arguments = "NAME PATH", .summary = "bring a disk, or what is mounted, into a running container",
         .description = "In a container, brings the node of the disk to PATH, where nothing is yet. With --mount it brings "
                        "the file system that 'ublkctl mount' has mounted, to a new or empty directory: its ids "
                        "are those of the container. 'ublkctl unmount' ends that, too. An administrator on the host names a "
                        "process of the container with --pid, as 'podman inspect --format {{.State.Pid}}' prints it.",
         .settings = BIT(MOUNTED) | BIT(READ_ONLY) | BIT(NO_EXEC) | BIT(PID),
         .arguments_min = 2, .arguments_max = 2, .completion = COMPLETE_DEVICE, .run = verb_deliver},
        {.name = "action", .arguments = "NAME [ACTION [KEY=VALUE...]]",
         .summary = "start what takes its time, like scrub",
         .description = "Starts an action of the device's target, with its arguments, and waits for its end, with a "
                        "line of progress on a terminal. It goes on without ublkctl, and over a restart of ublkd; it "
                        "ends with the worker. 'ublkctl targets -o json' lists the actions of each target, and the schema of "
                        "the target their arguments. Prints the result as JSON. The exit status is 1 if the action "
                        "failed, or has found something that cannot be read. Without ACTION it lists what was started. "
                        "With --no-wait it prints the id of the action.",
         .settings = BIT(NO_WAIT) | BIT(CANCEL) | BIT(OUTPUT_NO_NAME),
         .arguments_min = 1, .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .actions = true,
         .run = verb_action},
        {.name = "export", .arguments = "", .summary = "print the specs of all devices",
         .description = "Prints the specs of all devices, or of those with the labels of -l, or writes "
                        "them to a folder. 'ublkctl apply -f' creates the same devices from them; a spec "
                        "does not contain uid, kernel number and history. Devices of tenants are left out, with a "
                        "warning, as only a tenant can create them: each tenant exports its own.",
         .settings = BIT(FOLDER) | BIT(LABEL), .selects = true, .arguments_max = 0, .run = verb_export},
        {.name = "events", .arguments = "[NAME...]", .summary = "show what happened",
         .description = "Shows what happened to all devices, or to those named. With -f it continues, also "
                        "after a restart of ublkd. On a terminal the times are local, and each line has the "
                        "age of its event; else they are in UTC. With -o wide each line begins with the "
                        "revision of the event, which --since accepts; with -o json each line is one event.",
         .settings = BIT(FOLLOW) | BIT(SINCE) | BIT(OUTPUT_NO_NAME),
         .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_events},
        {.name = "stats", .arguments = "[NAME...]", .summary = "print the counters of devices",
         .description = "Prints, for all devices or those named: the bytes read and written since the disk "
                        "was created, errors, and the latencies that 50, 99 and 99.9 percent of the "
                        "requests stayed below.",
         .settings = BIT(OUTPUT),
         .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_stats},
        {.name = "top", .arguments = "[NAME...]", .summary = "show the load of devices, live",
         .description = "Shows requests and bytes per second and latencies of all devices, or of those "
                        "named, the busiest first, and refreshes them. LOAD draws the requests per second of "
                        "the last intervals, from 0 to the most of them. A terminal that is too narrow for "
                        "all columns lacks the least important ones. With -o json each line is one interval. "
                        "Ctrl-C ends it.",
         .settings = BIT(BATCH) | BIT(ROUNDS) | BIT(INTERVAL) | BIT(OUTPUT_NO_NAME),
         .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_top},
        {.name = "latency", .arguments = "NAME...", .summary = "draw the latencies of devices",
         .description = "Draws, for each operation, how many requests took how long since the disk was "
                        "created, with percentiles. With --before it draws the requests up to that earlier "
                        "output and those since, to compare: latencies before and after a recovery, a restart "
                        "or a change. The times are those of the worker: a request that waited for one, as "
                        "during a recovery, begins when the worker gets it.",
         .settings = BIT(OPERATION) | BIT(BEFORE) | BIT(OUTPUT_NO_NAME),
         .arguments_min = 1, .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_latency},
        {.name = "host", .arguments = "", .summary = "check this machine",
         .description = "Shows what the kernel supports, the problems of this machine, and the disks that "
                        "'ublkctl adopt' can adopt (-o name prints those alone). The exit status is 1 if "
                        "there is a problem.",
         .settings = BIT(OUTPUT), .arguments_max = 0, .run = verb_host},
        {.name = "targets", .arguments = "", .summary = "list the targets of devices",
         .description = "Lists the targets of this ublkd.",
         .settings = BIT(OUTPUT), .arguments_max = 0, .run = verb_targets},
        {.name = "completion", .arguments = "bash|zsh", .summary = "print the completion for a shell",
         .description = "Prints a script for the shell, as in: source <(ublkctl completion bash).",
         .arguments_min = 1, .arguments_max = 1, .completion = COMPLETE_CHOICE, .words = shells, .local = true,
         .run = verb_completion},
        {.name = "help", .arguments = "[VERB]", .summary = "explain a verb",
         .description = "Explains a verb, or lists them all.",
         .arguments_max = 1, .local = true, .run = verb_help},
        {.name = "manual", .arguments = "", .summary = "print the verbs for ublkctl(1)",
         .description = "Prints, in mdoc, the parts of ublkctl(1) that come from the table of verbs.",
         .arguments_max = 0, .local = true, .hidden = true, .run = verb_manual},
};
/* clang-format on */

const struct verb *verbs_all(size_t *ret_count)
{
        *ret_count = ARRAY_SIZE(verbs);
        return verbs;
}

const struct verb *verb_find(const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
                if (strcmp(verbs[i].name, name) == 0 || (verbs[i].alias && strcmp(verbs[i].alias, name) == 0))
                        return &verbs[i];
        return NULL;
}

/* Words of other programs for what a verb does. */
static const struct {
        const char *word, *verb;
} synonyms[] = {
        {"remove", "delete"  },
        {"rm",     "delete"  },
        {"del",    "delete"  },
        {"show",   "describe"},
        {"info",   "describe"},
        {"status", "describe"},
};

/* Return the verb that a word of another program, or a mistyped word, most resembles; NULL: none. */
static const struct verb *meant(const char *word)
{
        const struct verb *best = NULL;
        size_t least = SIZE_MAX;

        for (size_t i = 0; i < ARRAY_SIZE(synonyms); i++)
                if (strcmp(synonyms[i].word, word) == 0)
                        return verb_find(synonyms[i].verb);
        for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
                size_t distance = name_distance(word, verbs[i].name), length = strlen(verbs[i].name);

                /* A third of the letters may be wrong, and one of a short word; more is a different word. */
                if (!verbs[i].hidden && distance < least && distance <= (length < 6 ? 1 : length / 3)) {
                        least = distance;
                        best = &verbs[i];
                }
        }
        return best;
}

enum exit_status verb_refuse(const char *name)
{
        const struct verb *verb = meant(name);

        begin_line(NULL);
        fputs("unknown verb '", stderr);
        print_safely(stderr, name);
        if (verb)
                fprintf(stderr, "'; did you mean '%s'? 'ublkctl --help' lists all.\n", verb->name);
        else
                fputs("'; try 'ublkctl --help'.\n", stderr);
        return STATUS_USAGE;
}
