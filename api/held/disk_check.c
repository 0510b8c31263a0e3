/* SPDX-License-Identifier: MIT */
/* Who uses the disk of a request's device. */
#include "api/held/disk_check.h"

#include "api/http/respond.h"
#include "api/http/server.h"

#include <string.h>

struct disk_check {
        struct request *request;
        char uid[UID_TEXT_SIZE]; /* that it is about */
        uint64_t generation;     /* as well */
        struct disk_question *question;
        bool answered; /* `answer` is one */
        struct disk_answer answer;
        char *text;                      /* of the answer; owned */
        sd_event_source *hangup;         /* while it is pending, as are the next two */
        struct disk_check *next, **link; /* in api->disk_checks; link is NULL when it is not there */
};

static void end_pending(struct disk_check *check)
{
        check->question = disk_question_free(check->question);
        sd_event_source_disable_unref(check->hangup);
        check->hangup = NULL;
        if (!check->link)
                return;
        *check->link = check->next;
        if (check->next)
                check->next->link = check->link;
        check->link = NULL;
}

struct disk_check *disk_check_free(struct disk_check *check)
{
        if (!check)
                return NULL;
        end_pending(check);
        free(check->text);
        free(check);
        return NULL;
}

bool disk_check_is_pending(const struct request *request)
{
        return request->disk_check && request->disk_check->link;
}

/* The request runs again, or ends. */
static void resume(struct disk_check *check)
{
        struct request *request = check->request;

        end_pending(check);
        MHD_resume_connection(request->connection);
        api_run_soon(request->api);
}

static void on_answer(void *userdata, const struct disk_answer *answer)
{
        struct disk_check *check = userdata;

        check->answered = true;
        check->answer = *answer;
        check->text = strdup(answer->text);
        check->answer.text = check->text;
        if (!check->text) /* whether it is used is what matters most */
                check->answer.text = "out of memory";
        resume(check);
}

static int on_hangup(
        sd_event_source *source _unused_, int fd _unused_, uint32_t events _unused_, void *userdata)
{
        struct disk_check *check = userdata;

        check->request->abandoned = true;
        resume(check);
        return 0;
}

/* One that is not served may be opened only by those who are ready to wait. */
static enum disk_depth depth_for(const struct device_record *record)
{
        return record->status.phase == PHASE_LIVE ? DISK_VERDICT : DISK_NAMES;
}

static int ask(struct request *request, const struct device_record *record, int number)
{
        struct api *api = request->api;
        struct disk_check *check = request->disk_check = calloc(1, sizeof(*check));
        int r;

        if (!check)
                return -ENOMEM;
        check->request = request;
        check->generation = record->generation;
        strcpy(check->uid, record->uid);
        r = disk_search_ask(
                api->config.disk_search, number, depth_for(record), on_answer, check, &check->question);
        if (r >= 0)
                r = request_watch_client(request, on_hangup, check, &check->hangup);
        if (r < 0)
                return r;
        check->next = api->disk_checks;
        check->link = &api->disk_checks;
        if (check->next)
                check->next->link = &check->next;
        api->disk_checks = check;
        MHD_suspend_connection(request->connection);
        return 0;
}

const struct disk_answer *disk_check(struct request *request, const struct device_record *record, int number)
{
        const struct disk_check *check = request->disk_check;
        int r;

        if (disk_check_is_pending(request))
                return NULL; /* it runs again once the answer is there */
        if (check && check->answered && check->answer.number == number
                && check->generation == record->generation && strcmp(check->uid, record->uid) == 0)
                return &check->answer;
        request->disk_check = disk_check_free(request->disk_check);
        r = ask(request, record, number);
        if (r < 0) {
                request->disk_check = disk_check_free(request->disk_check);
                reply_error(request, r, "It could not be found out whether the disk is in use");
        }
        return NULL;
}

void disk_check_abandon_all(struct api *api)
{
        while (api->disk_checks) {
                api->disk_checks->request->abandoned = true;
                resume(api->disk_checks);
        }
}
