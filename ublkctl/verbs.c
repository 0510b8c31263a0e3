/* SPDX-License-Identifier: MIT */
/* The table of verbs. */
#include "ublkctl/verbs.h"

#include "ublkd/base/cleanup.h"

#include <string.h>

#define BIT(name) SETTING_BIT(SETTING_##name)

static const char *const shells[] = {"bash", "zsh", NULL};

/* clang-format off */
static const struct verb verbs[] = {
        {.name = "attach", .arguments = "FILE", .summary = "make a disk of a file, print its node",
         .description = "Makes a disk of FILE (or of a block device), waits until it is Live and prints its node, "
                        "like /dev/ublkb0. A file that is attached already, and in the same way, keeps its disk, "
                        "which is printed. Where another file has come to its path since, a second disk is made only "
                        "under a name that --name gives. When the disk cannot be made nothing is left behind. The device is there "
                        "again after a reboot, so its path is kept as it was given, with its links: give a block device "
                        "by a name that stays, as in /dev/disk/by-id or /dev/mapper.",
         .settings = BIT(READ_ONLY) | BIT(NAME) | BIT(OFFSET) | BIT(TIMEOUT),
         .arguments_min = 1, .arguments_max = 1, .completion = COMPLETE_FILE, .run = verb_attach},
        {.name = "detach", .arguments = "NODE|FILE|NAME...", .summary = "remove disks",
         .description = "Removes the disk that has this node, this backing file or this name, and waits until it is "
                        "gone. A disk in use is refused, and its users are named.",
         .settings = BIT(FORCE) | BIT(DROP_LAST_COPY) | BIT(NO_WAIT) | BIT(TIMEOUT),
         .arguments_min = 1, .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_NODE_OR_FILE,
         .run = verb_detach},
        {.name = "create", .arguments = "[NAME FIELD=VALUE...]", .summary = "create a device and wait until it is Live",
         .description = "Creates the device of the one spec in the file of -f, or the one that the arguments describe, "
                        "as in: ublkctl create data target.type=loop target.path=/srv/data.img. See 'ublkctl set --help' for "
                        "how a VALUE is written. The same device again "
                        "is no failure; another one under its name is. A device that cannot start is kept and tried "
                        "again.",
         .settings = BIT(FILE) | BIT(NO_WAIT) | BIT(TIMEOUT) | BIT(OUTPUT),
         .arguments_max = ARGUMENTS_ANY, .run = verb_create},
        {.name = "apply", .arguments = "", .summary = "make devices as files describe them",
         .description = "Creates and changes devices until each is as its spec says, and prints created, changed or "
                        "unchanged for each. A file holds one spec, several one after the other, an array of them, or "
                        "a list as 'ublkctl list -o json' prints it. One failure does not stop the others; at the end "
                        "all failures are named and the exit status is not 0. With --prune and -l, devices that have "
                        "the labels and are in no file are removed, unless a spec could not be read. One whose disk is in use is "
                        "not removed, and its users are named; only '--prune-in-use NAME' takes it from them. A disk does not "
                        "become smaller without --allow-shrink. --dry-run checks every spec, and says which disks would be made "
                        "anew or removed and who uses them; what only the opening of a backing file can tell it does not know.",
         .settings = BIT(FILES) | BIT(PRUNE) | BIT(PRUNE_IN_USE) | BIT(LABEL) | BIT(DRY_RUN) | BIT(ALLOW_SHRINK) | BIT(WAIT) | BIT(TIMEOUT),
         .arguments_max = 0, .run = verb_apply},
        {.name = "get", .arguments = "NAME...", .summary = "print devices as JSON",
         .description = "Prints devices as the API gives them; with -o also as a table or their names.",
         .settings = BIT(OUTPUT),
         .arguments_min = 1, .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_get},
        {.name = "list", .arguments = "", .summary = "list devices",
         .description = "Lists all devices, or those with the labels of -l. What -o json prints can be given to "
                        "'ublkctl apply'.",
         .settings = BIT(OUTPUT) | BIT(LABEL), .arguments_max = 0, .run = verb_list},
        {.name = "describe", .arguments = "NAME...", .summary = "tell all about devices",
         .description = "Tells what a device is, how it is, why it is not Live and what will be done next, and what "
                        "happened to it.",
         .arguments_min = 1, .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_describe},
        {.name = "set", .arguments = "NAME FIELD=VALUE...", .summary = "change fields of a device",
         .description = "Changes fields of the spec and waits until the device is Live again. A field of an object is "
                        "written with dots: recovery.trigger=manual. A value is JSON where it can be read as such, "
                        "else a string, as those of labels, cpus and owner.mode always are; null takes the field away. "
                        "Bytes are a number, alone or with KiB, MiB, GiB or TiB: size=20GiB (or 20G). A disk does not "
                        "become smaller without --allow-shrink.",
         .settings = BIT(ALLOW_SHRINK) | BIT(DROP_LAST_COPY) | BIT(NO_WAIT) | BIT(TIMEOUT),
         .arguments_min = 2, .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_set},
        {.name = "patch", .arguments = "NAME [JSON]", .summary = "change a device with a merge patch",
         .description = "Applies a JSON merge patch (RFC 7396), from the command line or from the file of -f, to the "
                        "spec and waits until the device is Live again. A disk does not become smaller without --allow-shrink.",
         .settings = BIT(FILE) | BIT(ALLOW_SHRINK) | BIT(DROP_LAST_COPY) | BIT(NO_WAIT) | BIT(TIMEOUT),
         .arguments_min = 1, .arguments_max = 2, .completion = COMPLETE_DEVICE, .run = verb_patch},
        {.name = "resize", .arguments = "NAME SIZE", .summary = "change the size of a device",
         .description = "Changes the size to SIZE, like 20GiB (or 20G). Growing goes on under load where the kernel can. "
                        "A disk does not become smaller without --allow-shrink, and not while it is in use. Where the "
                        "backing store does not have that much, the old size is put back.",
         .settings = BIT(ALLOW_SHRINK) | BIT(DROP_LAST_COPY) | BIT(NO_WAIT) | BIT(TIMEOUT),
         .arguments_min = 2, .arguments_max = 2, .completion = COMPLETE_DEVICE, .run = verb_resize},
        {.name = "enable", .arguments = "NAME...", .summary = "make the disks of disabled devices",
         .description = "Makes the disk of a device that was disabled.",
         .settings = BIT(NO_WAIT) | BIT(TIMEOUT),
         .arguments_min = 1, .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_enable},
        {.name = "disable", .arguments = "NAME...", .summary = "remove the disks, keep the devices",
         .description = "Removes the disk and keeps the device, with its number, for 'ublkctl enable'.",
         .settings = BIT(DROP_LAST_COPY) | BIT(NO_WAIT) | BIT(TIMEOUT),
         .arguments_min = 1, .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_disable},
        {.name = "delete", .arguments = "NAME...", .summary = "remove devices",
         .description = "Removes devices and waits until they are gone; backing files stay. A disk in use is refused, "
                        "and its users are named.",
         .settings = BIT(FORCE) | BIT(DROP_LAST_COPY) | BIT(NO_WAIT) | BIT(TIMEOUT) | BIT(IGNORE_MISSING),
         .arguments_min = 1, .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_delete},
        {.name = "wait", .arguments = "NAME...", .summary = "wait until devices are Live, or gone",
         .description = "Waits until every device is Live (a disabled one: Disabled), or gone. A device that is held, "
                        "or that cannot start, may yet become Live, so it is waited for as well.",
         .settings = BIT(FOR) | BIT(TIMEOUT),
         .arguments_min = 1, .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_wait},
        {.name = "recover", .arguments = "NAME...", .summary = "attach new workers now",
         .description = "Gives a device a worker now: one whose recovery is manual, or that waits for its next try. "
                        "Waits until it is Live. A device whose store was replaced (BackingChanged) goes on only with its own store, or "
                        "with --accept-backing, for which its disk has to be unmounted first.",
         .settings = BIT(ACCEPT_BACKING) | BIT(FORCE) | BIT(NO_WAIT) | BIT(TIMEOUT),
         .arguments_min = 1, .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_recover},
        {.name = "restart", .arguments = "NAME...", .summary = "replace workers without an I/O error",
         .description = "Replaces the worker of a device by one of the program that is installed now, without an I/O "
                        "error. Waits until it is Live. After a flush failed, or the backing file was cut off, the "
                        "next worker fails I/O like the last one, unless --accept-write-errors names the "
                        "loss, as describe shows it.",
         .settings = BIT(NO_WAIT) | BIT(TIMEOUT) | BIT(ACCEPT_WRITE_ERRORS) | BIT(DROP_LAST_COPY),
         .arguments_min = 1, .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_restart},
        {.name = "adopt", .arguments = "[NAME|UID...]", .summary = "take over disks that the database lost",
         .description = "After the database of ublkd was lost, or an older copy of it was put back: takes the records "
                        "of the devices from the runtime directory, and waits until each is Live. The disks are "
                        "served all the time, and keep uid, number and name. 'ublkctl host' lists what can be adopted. "
                        "Where the database has an older record, the newer one takes its place. A device that was "
                        "removed after an older database was copied comes back only when it is named.",
         .settings = BIT(ALL) | BIT(NEW_NAME) | BIT(NO_WAIT) | BIT(TIMEOUT),
         .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_ADOPTABLE, .run = verb_adopt},
        {.name = "export", .arguments = "", .summary = "print the specs of all devices",
         .description = "Prints the specs of all devices, or of those with the labels of -l, or writes them into a "
                        "folder. 'ublkctl apply -f' makes the same devices of them; uid, kernel number and history "
                        "are not in a spec.",
         .settings = BIT(FOLDER) | BIT(LABEL), .arguments_max = 0, .run = verb_export},
        {.name = "events", .arguments = "[NAME...]", .summary = "show what happened",
         .description = "Shows what happened to all devices, or to those named. With -f it goes on, over restarts of "
                        "ublkd as well. With -o wide every line begins with the revision of the event, which --since "
                        "takes; with -o json every line is one event.",
         .settings = BIT(FOLLOW) | BIT(SINCE) | BIT(OUTPUT),
         .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_events},
        {.name = "stats", .arguments = "[NAME...]", .summary = "print the counters of devices",
         .description = "Prints, of all devices or of those named, how much was read and written since the disk was "
                        "made, errors, and the latency that half, 99 of 100 and 999 of 1000 requests kept to.",
         .settings = BIT(OUTPUT),
         .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_stats},
        {.name = "top", .arguments = "[NAME...]", .summary = "show the load of devices, live",
         .description = "Shows requests and bytes per second and the latencies of all devices, or of those named, the "
                        "busiest first, and refreshes them. Ends with Ctrl-C.",
         .settings = BIT(BATCH) | BIT(ROUNDS) | BIT(INTERVAL),
         .arguments_max = ARGUMENTS_ANY, .completion = COMPLETE_DEVICE, .run = verb_top},
        {.name = "host", .arguments = "", .summary = "check this machine",
         .description = "Tells what the kernel can do, what is wrong on this machine and which disks 'ublkctl adopt' "
                        "can take over (-o name prints those alone). The exit status is 1 when something is wrong.",
         .settings = BIT(OUTPUT), .arguments_max = 0, .run = verb_host},
        {.name = "targets", .arguments = "", .summary = "list what can serve a device",
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
         .description = "Prints, in mdoc, the parts of ublkctl(1) that are made from the table of verbs.",
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
                if (strcmp(verbs[i].name, name) == 0)
                        return &verbs[i];
        return NULL;
}
