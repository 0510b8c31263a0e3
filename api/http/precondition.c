/* SPDX-License-Identifier: MIT */
/* If-Match and If-None-Match. */
#include "api/http/precondition.h"

#include "api/http/etag.h"
#include "api/http/respond.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

/* The tags of one header; several lines make one list. */
struct tags {
        const char *header;
        bool (*is_current)(const struct etag *tag, const void *userdata);
        const void *userdata;
        bool given, bad;
        bool any;     /* "*" */
        bool matches; /* one of them is current */
};

static bool read_list(struct tags *tags, const char *text)
{
        bool found = false;

        for (;;) {
                struct etag tag;
                size_t length;

                text += strspn(text, " \t,"); /* the RFC has empty elements ignored */
                if (!*text)
                        return found;
                length = etag_read(text, &tag);
                if (length == 0)
                        return false;
                text += length;
                text += strspn(text, " \t");
                if (*text && *text != ',')
                        return false;
                tags->matches = tags->matches || tags->is_current(&tag, tags->userdata);
                found = true;
        }
}

static enum MHD_Result on_header(
        void *userdata, enum MHD_ValueKind kind _unused_, const char *name, const char *value)
{
        struct tags *tags = userdata;
        bool any;

        if (strcasecmp(name, tags->header) != 0)
                return MHD_YES;
        any = value && strcmp(value, "*") == 0;
        if (!value || (tags->given && (any || tags->any)) || (!any && !read_list(tags, value)))
                tags->bad = true;
        tags->any = tags->any || any;
        tags->given = true;
        return MHD_YES;
}

/* 0; or -EINVAL with a reply. */
static int read_tags(struct request *request, struct tags *tags)
{
        (void)MHD_get_connection_values(request->connection, MHD_HEADER_KIND, on_header, tags);
        if (!tags->bad)
                return 0;
        reply_problem(request, PROBLEM_BAD_REQUEST,
                "The header %s is invalid; give an ETag in its quotation marks, several with commas "
                "between them, or *.",
                tags->header);
        return -EINVAL;
}

static void reply_unmet(struct request *request, const struct device_record *record)
{
        if (record)
                reply_problem(request, PROBLEM_PRECONDITION_FAILED,
                        "The device %s is at generation %" PRIu64
                        ", which the request rules out; read it again.",
                        record->name, record->generation);
        else
                reply_problem(request, PROBLEM_PRECONDITION_FAILED,
                        "The device does not exist, and the request requires that it does.");
}

int precondition_read(
        struct request *request, const struct device_record *record, struct put_condition *condition)
{
        struct tags match = {.header = MHD_HTTP_HEADER_IF_MATCH,
                            .is_current = etag_is_device_strongly,
                            .userdata = record},
                    none = {.header = MHD_HTTP_HEADER_IF_NONE_MATCH,
                            .is_current = etag_is_device,
                            .userdata = record};

        if (read_tags(request, &match) < 0 || read_tags(request, &none) < 0)
                return -EINVAL;
        if ((match.given && !match.matches && !(match.any && record))
                || (none.given && (none.matches || (none.any && record)))) {
                reply_unmet(request, record);
                return -EINVAL;
        }
        condition->must_not_exist = none.any;
        condition->match_any = match.any;
        condition->match_generation = match.given && !match.any ? record->generation : 0;
        return 0;
}

bool precondition_holds(struct request *request, const struct device_record *record)
{
        struct put_condition ignored;

        return precondition_read(request, record, &ignored) >= 0;
}

/* Keep the headers of the answer, and drop its body. */
static void reply_not_modified(struct request *request)
{
        struct reply *reply = &request->reply;

        reply_drop_body(reply);
        reply->content_type = NULL;
        reply->status = MHD_HTTP_NOT_MODIFIED;
}

void precondition_apply(struct request *request)
{
        struct reply *reply = &request->reply;
        struct tags match = {.header = MHD_HTTP_HEADER_IF_MATCH,
                            .is_current = etag_is_same_strongly,
                            .userdata = reply->etag},
                    none = {.header = MHD_HTTP_HEADER_IF_NONE_MATCH,
                            .is_current = etag_is_same,
                            .userdata = reply->etag};

        if (request->method != METHOD_GET || reply->status != MHD_HTTP_OK || !reply->body)
                return;
        if (!*reply->etag)
                etag_set(request);
        if (read_tags(request, &match) < 0 || read_tags(request, &none) < 0)
                return;
        if (match.given && !match.any && !match.matches)
                reply_problem(request, PROBLEM_PRECONDITION_FAILED,
                        "The resource has changed since that ETag was given; read it again.");
        else if (none.given && (none.any || none.matches))
                reply_not_modified(request);
}
