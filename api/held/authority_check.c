/* SPDX-License-Identifier: MIT */
/* Suspend a request until polkit has answered whether it may change devices. */
#include "api/held/authority_check.h"

#include "api/http/hold.h"
#include "api/http/respond.h"
#include "api/http/server.h"

#include <string.h>

/* A header of the client: its user can be asked for a password now. */
#define INTERACTION_HEADER "Interactive-Authorization"

struct authority_check {
        struct hold hold;                    /* first member */
        struct authority_question *question; /* NULL: answered, or not asked yet */
};

static void withdraw(struct authority_check *check)
{
        if (check->question)
                check->question = check->hold.request->api->config.withdraw_question(check->question);
}

static struct hold *authority_check_free(struct hold *hold)
{
        struct authority_check *check = (struct authority_check *)hold;

        if (!check)
                return NULL;
        hold_release(hold);
        withdraw(check);
        free(check);
        return NULL;
}

static const struct hold_kind authority_check_kind = {.free = authority_check_free};

static void on_answer(void *userdata, enum authority_answer answer)
{
        static const enum permission permissions[] = {
                [AUTHORITY_NONE] = PERMISSION_UNANSWERED,
                [AUTHORITY_REFUSED] = PERMISSION_REFUSED,
                [AUTHORITY_GRANTED] = PERMISSION_GRANTED,
        };
        struct authority_check *check = userdata;

        check->question = NULL;
        check->hold.request->permission = permissions[answer];
        hold_end(&check->hold);
}

static int ask(struct request *request)
{
        const struct api_config *config = &request->api->config;
        const char *interaction = request_header(request, INTERACTION_HEADER);
        struct authority_check *check = calloc(1, sizeof(*check));
        int r;

        if (!check)
                return -ENOMEM;
        check->hold.request = request;
        r = config->ask_authority(config->userdata, request->client->fd,
                interaction && strcmp(interaction, "allow") == 0, on_answer, check, &check->question);
        if (r >= 0)
                r = hold_attach(&check->hold, &authority_check_kind, request);
        if (r < 0) {
                (void)authority_check_free(&check->hold);
                return r;
        }
        request->permission = PERMISSION_ASKED;
        hold_suspend(&check->hold);
        return 0;
}

/* polkit would take the number of a container's user for that of a user of the host. Return 0; -ENOENT: it is not of
 * the host; other -errno. */
static int check_home(struct request *request)
{
        int r = 0;

        if (request->peer.home == PEER_HOME_UNASKED)
                r = peer_home_of(request->client->fd, &request->peer.home);
        return r < 0 || request->peer.home == PEER_AT_HOME ? r : -ENOENT;
}

void authority_check_begin(struct request *request)
{
        int r = request->api->config.rights.asks_polkit ? check_home(request) : -ENOENT;

        if (r >= 0)
                r = ask(request);
        if (r >= 0)
                return;
        request->permission = PERMISSION_UNANSWERED;
        if (r == -EBUSY)
                reply_problem(request, PROBLEM_AUTHORIZATION_BUSY,
                        "polkit is being asked about another request of user %u; wait for its answer, then "
                        "repeat this one.",
                        (unsigned)request->peer.uid);
        else if (r == -EUSERS)
                reply_problem(request, PROBLEM_AUTHORIZATION_BUSY,
                        "polkit is being asked about too many requests; repeat this one later.");
        else if (r == -ENOMEM)
                reply_error(request, r, "Cannot ask polkit");
}

void authority_check_end_all(struct api *api)
{
        for (struct hold *hold = hold_first(api, &authority_check_kind), *next; hold; hold = next) {
                next = hold_next(hold);
                withdraw((struct authority_check *)hold);
                hold->request->permission = PERMISSION_UNANSWERED;
                hold_end(hold);
        }
}
