/* SPDX-License-Identifier: MIT */
/* Ask for the openers of the disk of a request's device. */
#include "api/held/disk_check.h"

#include "api/http/hold.h"
#include "api/http/respond.h"
#include "api/http/server.h"
#include "api/http/view.h"
#include "ublkd/store/device_change.h"

#include <stdio.h>
#include <string.h>

struct disk_check {
        struct hold hold;        /* first member */
        char uid[UID_TEXT_SIZE]; /* of the device */
        uint64_t generation;     /* of the spec */
        struct disk_question *question;
        bool answered; /* `answer` holds the search's answer */
        struct disk_answer answer;
        char *text; /* of `answer`; owned */
};

static struct disk_check *disk_check_of(struct hold *hold)
{
        return (struct disk_check *)hold;
}

static struct hold *disk_check_free(struct hold *hold)
{
        struct disk_check *check = disk_check_of(hold);

        if (!check)
                return NULL;
        hold_release(hold);
        disk_question_free(check->question);
        free(check->text);
        free(check);
        return NULL;
}

static const struct hold_kind disk_check_kind = {.free = disk_check_free};

/* The processes, mounts and devices may be those of others, and so may the process that a search cannot read. */
char *disk_answer_for(const struct request *request, const struct disk_answer *answer)
{
        char own[DISK_ANSWER_TEXT_MAX], *text;

        if (answer->use == DISK_UNUSED || view_sees_all(request))
                return strdup(answer->text);
        if (answer->use == DISK_USE_UNKNOWN)
                return strdup("the search is not complete");
        disk_answer_of(answer, request->peer.uid, own);
        if (*own == '\0')
                return strdup("it is open or mounted, perhaps by others");
        return asprintf(&text, "%s, and perhaps by others", own) < 0 ? NULL : text;
}

static void on_answer(void *userdata, const struct disk_answer *answer)
{
        struct disk_check *check = userdata;

        check->answered = true;
        check->answer = *answer;
        check->text = disk_answer_for(check->hold.request, answer);
        check->answer.owned = NULL;
        check->answer.text = check->text;
        if (!check->text) /* the state matters most: keep it without the text */
                check->answer.text = "out of memory";
        check->question = disk_question_free(check->question);
        hold_end(&check->hold);
}

/* Only clients that can wait may open a disk without a worker. While another worker takes over, the reconciler asks the
 * driver, when that serves (is_put_off() in plan.c). */
static enum disk_depth depth_for(const struct device_record *record)
{
        return record->status.phase == PHASE_LIVE ? DISK_VERDICT : DISK_NAMES;
}

static int ask(struct request *request, const struct device_record *record, int number)
{
        struct disk_check *check = calloc(1, sizeof(*check));
        int r;

        if (!check)
                return -ENOMEM;
        check->generation = record->generation;
        strcpy(check->uid, record->uid);
        r = disk_search_ask(request->api->config.disk_search, number, depth_for(record), on_answer, check,
                &check->question);
        if (r >= 0)
                r = hold_attach(&check->hold, &disk_check_kind, request);
        if (r >= 0)
                hold_suspend(&check->hold);
        else
                disk_check_free(&check->hold);
        return r;
}

/* Return the answer that the request was suspended for; NULL: it has none. */
static const struct disk_answer *answer_of(
        const struct request *request, const struct device_record *record, int number)
{
        const struct disk_check *check = request->hold && request->hold->kind == &disk_check_kind
                                                 ? disk_check_of(request->hold)
                                                 : NULL;

        return check && check->answered && check->answer.number == number
                               && check->generation == record->generation
                               && strcmp(check->uid, record->uid) == 0
                       ? &check->answer
                       : NULL;
}

const struct disk_answer *disk_check(struct request *request, const struct device_record *record, int number)
{
        const struct disk_answer *answer;
        int r;

        if (request->suspended)
                return NULL; /* the handler runs again when the answer arrives */
        answer = answer_of(request, record, number);
        if (answer)
                return answer;
        r = ask(request, record, number);
        if (r < 0)
                reply_error(request, r, "Cannot find out whether the disk is in use");
        return NULL;
}

const struct disk_answer *disk_check_device(struct request *request, const struct device_record *record)
{
        static const struct disk_answer no_disk = {.number = -1, .use = DISK_UNUSED, .text = ""};
        int number = device_disk_number(record);

        return number < 0 || !request->api->config.disk_search ? &no_disk
                                                               : disk_check(request, record, number);
}
