/* SPDX-License-Identifier: MIT */
/* Suspend a request until a file system is as it wants. */
#include "api/held/filesystem_check.h"

#include "api/http/hold.h"
#include "api/http/respond.h"
#include "api/http/server.h"

#include <ctype.h>
#include <string.h>

struct filesystem_check {
        struct hold hold;                 /* first member */
        struct filesystem_making *making; /* NULL: there is a result, or it did not begin */
        bool answered;
        struct filesystem_result result;
};

/* What was begun goes on, and the next request finds it. */
static struct hold *filesystem_check_free(struct hold *hold)
{
        struct filesystem_check *check = (struct filesystem_check *)hold;

        if (!check)
                return NULL;
        if (check->making)
                check->hold.request->api->config.abandon_filesystem(check->making);
        hold_release(hold);
        free(check);
        return NULL;
}

static const struct hold_kind filesystem_check_kind = {.free = filesystem_check_free};

/* A program of the host has printed it, maybe about what it found on the disk. */
static void copy_words(const char *text, char ret[static FILESYSTEM_WORDS_SIZE])
{
        size_t length = 0;

        for (; *text && length < FILESYSTEM_WORDS_SIZE - 1; text++) {
                char c = isascii((unsigned char)*text) && isprint((unsigned char)*text) ? *text : ' ';

                if (c != ' ' || (length > 0 && ret[length - 1] != ' '))
                        ret[length++] = c;
        }
        while (length > 0 && (ret[length - 1] == ' ' || ret[length - 1] == '.'))
                length--;
        ret[length] = '\0';
}

static void on_answer(void *userdata, const struct filesystem_answer *answer)
{
        struct filesystem_check *check = userdata;

        check->making = NULL;
        check->answered = true;
        check->result.verdict = answer->verdict;
        check->result.error = answer->error;
        check->result.filesystem = answer->filesystem;
        copy_words(answer->text, check->result.words);
        hold_end(&check->hold);
}

static int begin(struct request *request, const struct device_record *record,
        const struct filesystem_wish *wish, bool holder_is_new)
{
        const struct api_config *config = &request->api->config;
        struct filesystem_check *check;
        int r;

        if (!config->make_filesystem)
                return -ENODEV;
        check = calloc(1, sizeof(*check));
        if (!check)
                return -ENOMEM;
        check->hold.request = request;
        check->result.holder_is_new = holder_is_new;
        r = config->make_filesystem(config->userdata, record, wish, on_answer, check, &check->making);
        if (r >= 0)
                r = hold_attach(&check->hold, &filesystem_check_kind, request);
        if (r >= 0)
                hold_suspend(&check->hold);
        else
                (void)filesystem_check_free(&check->hold);
        return r;
}

static void reply_not_begun(struct request *request, const struct device_record *record, int error)
{
        if (error == -ENODEV)
                reply_device_problem(request, PROBLEM_NOT_POSSIBLE_NOW, record,
                        "The disk is not in service; wait until the device is Live.");
        else if (error == -EBUSY)
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "An earlier request for the file system of this disk is under way; repeat the "
                        "request later.");
        else if (error == -EAGAIN)
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "Too many requests for file systems are under way; repeat the request when one has "
                        "ended.");
        else
                reply_error(request, error, "Cannot look after the file system");
}

bool filesystem_is_settled(const struct request *request)
{
        const struct filesystem_check *check = (const struct filesystem_check *)request->hold;

        return check && check->hold.kind == &filesystem_check_kind && check->answered;
}

const struct filesystem_result *filesystem_check(struct request *request, const struct device_record *record,
        const struct filesystem_wish *wish, bool holder_is_new)
{
        const struct filesystem_check *check = (const struct filesystem_check *)request->hold;
        int r;

        if (request->suspended)
                return NULL;
        if (filesystem_is_settled(request))
                return &check->result;
        r = begin(request, record, wish, holder_is_new);
        if (r < 0)
                reply_not_begun(request, record, r);
        return NULL;
}
