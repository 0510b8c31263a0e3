/* SPDX-License-Identifier: MIT */
/* Try whether a worker can serve the new spec of a request's device. */
#include "api/held/spec_check.h"

#include "api/http/hold.h"
#include "api/http/respond.h"
#include "api/http/server.h"
#include "api/http/view.h"

#include <string.h>

struct spec_check {
        struct hold hold;        /* first member */
        char uid[UID_TEXT_SIZE]; /* of the device */
        uint64_t generation;     /* of the spec */
        struct spec_preflight *preflight;
        bool answered;
        char *refusal; /* valid with `answered`; NULL: a worker can serve it. Owned */
};

static struct hold *spec_check_free(struct hold *hold)
{
        struct spec_check *check = (struct spec_check *)hold;

        if (!check)
                return NULL;
        hold_release(hold);
        if (check->preflight)
                check->preflight = hold->request->api->config.end_preflight(check->preflight);
        free(check->refusal);
        free(check);
        return NULL;
}

static const struct hold_kind spec_check_kind = {.free = spec_check_free};

static void on_tried(void *userdata, bool tried, enum condition_reason reason, const char *refusal)
{
        struct spec_check *check = userdata;

        check->preflight = NULL;
        refusal = tenant_text(view_reader(check->hold.request), reason, refusal);
        check->refusal = refusal ? strdup(refusal) : NULL;
        check->answered = tried && (!refusal || check->refusal); /* on ENOMEM: ask again */
        hold_end(&check->hold);
}

static int ask(struct request *request, const struct device_record *record, const struct device_spec *spec)
{
        const struct api_config *config = &request->api->config;
        struct spec_check *check = calloc(1, sizeof(*check));
        int r;

        if (!check)
                return -ENOMEM;
        check->hold.request = request;
        check->generation = record->generation;
        strcpy(check->uid, record->uid);
        r = config->try_spec(config->userdata, record, spec, on_tried, check, &check->preflight);
        if (r >= 0)
                r = hold_attach(&check->hold, &spec_check_kind, request);
        if (r >= 0)
                hold_suspend(&check->hold);
        else
                (void)spec_check_free(&check->hold);
        return r;
}

static bool judge(struct request *request, const struct device_record *record, const char *refusal)
{
        if (refusal)
                reply_problem(request, PROBLEM_CANNOT_START,
                        "The change needs a new disk, which cannot be created: %s Nothing was changed, and "
                        "/dev/ublkb%d stays in service.",
                        refusal, record->number);
        return !refusal;
}

/* Return the preflight that the request was suspended for; NULL: it has none. */
static const struct spec_check *answer_of(const struct request *request, const struct device_record *record)
{
        const struct spec_check *check = request->hold && request->hold->kind == &spec_check_kind
                                                 ? (const struct spec_check *)request->hold
                                                 : NULL;

        return check && check->answered && check->generation == record->generation
                               && strcmp(check->uid, record->uid) == 0
                       ? check
                       : NULL;
}

/* Store the result in the request, because the next hold replaces this one. */
static void remember(struct request *request, const struct device_record *record)
{
        request->tried.generation = record->generation;
        strcpy(request->tried.uid, record->uid);
}

static bool is_remembered(const struct request *request, const struct device_record *record)
{
        return request->tried.generation == record->generation
               && strcmp(request->tried.uid, record->uid) == 0;
}

bool spec_check(struct request *request, const struct device_record *record, const struct device_spec *spec)
{
        const struct spec_check *check;
        int r;

        if (!request->api->config.try_spec || record->status.phase != PHASE_LIVE)
                return true;
        if (request->suspended)
                return false; /* the handler runs again when the answer arrives */
        check = answer_of(request, record);
        if (check && judge(request, record, check->refusal))
                remember(request, record);
        if (check || is_remembered(request, record))
                return is_remembered(request, record);
        r = ask(request, record, spec);
        if (r == -EBUSY)
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "The backing store has not answered the preflight of an earlier change. Nothing was "
                        "changed; repeat the request later.");
        else if (r < 0)
                reply_error(request, r, "Cannot try whether the new disk can be created");
        return false;
}
