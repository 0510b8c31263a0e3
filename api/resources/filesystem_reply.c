/* SPDX-License-Identifier: MIT */
/* The answers of requests for file systems. */
#include "api/resources/filesystem_reply.h"

#include "api/http/respond.h"

#include "ublkd/base/cleanup.h"

#include <string.h>

/* clang-format off */
/* advice: it follows the cause; NULL: the sentence is whole. */
static const struct {
        enum problem_type type;
        const char *sentence, *advice;
} refusals[_FILESYSTEM_VERDICT_MAX] = {
        [FILESYSTEM_NOT_MADE] = {PROBLEM_NOT_POSSIBLE_NOW,
                "ublkd has made no file system on this disk, and mounts no other; ask for one first: "
                "POST /devices/NAME/filesystem.", NULL},
        [FILESYSTEM_NOT_MOUNTED] = {PROBLEM_NOT_POSSIBLE_NOW, "Mounting the file system failed",
                "see the log of the kernel, and check the file system."},
        [FILESYSTEM_NOT_UNMOUNTED] = {PROBLEM_NOT_POSSIBLE_NOW, "The unmount failed",
                "end the programs that use the file system, and repeat the request."},
        [FILESYSTEM_OTHER_KIND] = {PROBLEM_NOT_POSSIBLE_NOW,
                "The disk has a file system of another type; use that, or create another device.", NULL},
        [FILESYSTEM_NOT_BLANK] = {PROBLEM_NOT_POSSIBLE_NOW,
                "The disk is not blank, and ublkd makes a file system on a blank disk only; use what is there, or create "
                "another device.", NULL},
        [FILESYSTEM_UNFINISHED] = {PROBLEM_NOT_POSSIBLE_NOW,
                "An earlier try was cut off, and has left a part of a file system; look whether the disk has data of another "
                "program, and if not, repeat the request with \"remake\", the UUID in status.filesystem.", NULL},
        [FILESYSTEM_LOST] = {PROBLEM_NOT_POSSIBLE_NOW,
                "The file system that ublkd has made is not on the disk: the backing store is another one, or was "
                "overwritten; restore it.", NULL},
        [FILESYSTEM_NEWER] = {PROBLEM_NOT_POSSIBLE_NOW,
                "A newer version of ublkd has noted what is on the disk; use that version.", NULL},
        [FILESYSTEM_IN_USE] = {PROBLEM_IN_USE,
                "The disk is mounted, or another program has it for itself; end that, and repeat the request.", NULL},
        [FILESYSTEM_NO_DISK] = {PROBLEM_NOT_POSSIBLE_NOW,
                "The disk was removed meanwhile; wait until the device is Live, and repeat the request.", NULL},
        [FILESYSTEM_NOT_READ] = {PROBLEM_NOT_POSSIBLE_NOW, "Reading the disk failed",
                "see the events of the device, and repeat the request."},
        [FILESYSTEM_NOT_STORED] = {PROBLEM_INTERNAL, "Storing the state of the file system failed",
                "repeat the request."},
        [FILESYSTEM_NOT_INSTALLED] = {PROBLEM_NOT_POSSIBLE_NOW,
                "The program for this file system is not installed on the host; install e2fsprogs for ext4, xfsprogs for "
                "xfs.", NULL},
        [FILESYSTEM_NOT_CONFINED] = {PROBLEM_NOT_POSSIBLE_NOW, "Confining the program failed",
                "see which rights ublkd lacks, and whether the kernel has Landlock switched on (lsm=)."},
        [FILESYSTEM_PROGRAM_FAILED] = {PROBLEM_NOT_POSSIBLE_NOW, "The program failed",
                "correct that, and repeat the request."},
        [FILESYSTEM_TOOK_TOO_LONG] = {PROBLEM_TIMEOUT,
                "The program did not end in time; see whether the disk answers, and repeat the request.", NULL},
        [FILESYSTEM_OPEN_TO_USERS] = {PROBLEM_NOT_POSSIBLE_NOW,
                "Users may write to the disk or to its backing file past the file system; have root own both, let no other "
                "user or group write to them, and repeat the request.", NULL},
        [FILESYSTEM_NOT_BEGUN] = {PROBLEM_NOT_POSSIBLE_NOW,
                "ublkd has begun no file system with the UUID in \"remake\"; compare it with status.filesystem, or leave it "
                "out.", NULL},
};
/* clang-format on */

static void reply_refused(struct request *request, const struct filesystem_result *result)
{
        const char *cause = result->error < 0 ? strerror(-result->error)
                            : *result->words  ? result->words
                                              : "it gave no reason";
        enum problem_type type = refusals[result->verdict].type;

        if (refusals[result->verdict].advice)
                reply_problem(request, type, "%s: %s; %s", refusals[result->verdict].sentence, cause,
                        refusals[result->verdict].advice);
        else
                reply_problem(request, type, "%s", refusals[result->verdict].sentence);
}

bool filesystem_is_as_wanted(const struct filesystem_result *result)
{
        return result->verdict == FILESYSTEM_IS_MADE || result->verdict == FILESYSTEM_IS_MOUNTED
               || result->verdict == FILESYSTEM_IS_UNMOUNTED;
}

/* clang-format off */
static const struct {
        enum filesystem_verdict verdict;
        int error;
        enum problem_type type;
        const char *sentence;
} causes[] = {
        {FILESYSTEM_NOT_UNMOUNTED, -EBUSY, PROBLEM_IN_USE,
         "A program uses the file system, on the host or in a container, or has another mount of it; end it, and repeat the "
         "request. fuser -vm shows such programs, but not one that keeps an unmounted copy open. If it shows none, end the "
         "containers that had the file system."},
        {FILESYSTEM_NOT_UNMOUNTED, -EEXIST, PROBLEM_IN_USE,
         "Containers have the file system, which was delivered to them; end them, or give \"allHolders\", which ends the mount "
         "there as well."},
        {FILESYSTEM_NOT_UNMOUNTED, -ETIMEDOUT, PROBLEM_IN_USE,
         "A container may use the file system: the look at containers took too long, or a container stopped it. Repeat the "
         "request; if it fails again, end the containers to which the file system was delivered. If status.mount is null, a "
         "container of any user may have it."},
        {FILESYSTEM_NOT_UNMOUNTED, -ESTALE, PROBLEM_NOT_POSSIBLE_NOW,
         "The disk was removed, or replaced by another one, during the unmount; repeat the request."},
        {FILESYSTEM_NOT_MOUNTED, -EEXIST, PROBLEM_IN_USE,
         "Another file system, or that of an earlier disk of this device, is mounted in its place; unmount it, and repeat the "
         "request."},
};
/* clang-format on */

/* Reply with the problem of this cause, and return true; return false if the table has none. */
static bool reply_cause(struct request *request, const struct filesystem_result *result)
{
        for (size_t i = 0; i < ARRAY_SIZE(causes); i++)
                if (causes[i].verdict == result->verdict && causes[i].error == result->error) {
                        reply_problem(request, causes[i].type, "%s", causes[i].sentence);
                        return true;
                }
        return false;
}

void filesystem_reply(
        struct request *request, const struct device_record *record, const struct filesystem_result *result)
{
        if (filesystem_is_as_wanted(result))
                reply_device(request, MHD_HTTP_OK, record);
        else if (!reply_cause(request, result))
                reply_refused(request, result);
}
