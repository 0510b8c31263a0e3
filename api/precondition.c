/* If-Match and If-None-Match, against the generation of a device. */
#include "api/precondition.h"

#include "api/respond.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct etags {
        bool any;     /* "*" */
        bool matches; /* one of them is the device's */
};

/* `"3"` → 3; anything else, also a weak tag, can be no tag of ours: 0. */
static uint64_t parse_tag(const char *text, size_t length)
{
        uint64_t value = 0;

        if (length < 3 || length > 20 || text[0] != '"' || text[length - 1] != '"' || text[1] == '0')
                return 0;
        for (size_t i = 1; i < length - 1; i++) {
                if (text[i] < '0' || text[i] > '9')
                        return 0;
                value = value * 10 + (uint64_t)(text[i] - '0');
        }
        return value;
}

/* The length of the tag at the beginning of `text`, or 0 when there is none. */
static size_t tag_length(const char *text)
{
        size_t prefix = strncmp(text, "W/", 2) == 0 ? 2 : 0;
        const char *end;

        if (text[prefix] != '"')
                return 0;
        end = strchr(text + prefix + 1, '"');
        return end ? (size_t)(end - text) + 1 : 0;
}

static int parse_tags(const char *text, uint64_t generation, struct etags *ret)
{
        *ret = (struct etags){};
        if (strcmp(text, "*") == 0) {
                ret->any = true;
                ret->matches = generation > 0;
                return 0;
        }
        for (;;) {
                size_t length = tag_length(text);
                uint64_t tag;

                if (length == 0)
                        return -EINVAL;
                tag = parse_tag(text, length);
                ret->matches = ret->matches || (tag > 0 && tag == generation);
                text += length;
                text += strspn(text, " \t");
                if (!*text)
                        return 0;
                if (*text++ != ',')
                        return -EINVAL;
                text += strspn(text, " \t");
        }
}

static int read_tags(struct request *request, const char *header, uint64_t generation, struct etags *ret)
{
        const char *text = request_header(request, header);
        int r;

        if (!text)
                return 0;
        r = parse_tags(text, generation, ret);
        if (r < 0) {
                reply_problem(request, PROBLEM_BAD_REQUEST,
                        "The header %s is not understood; give \"GENERATION\" in quotation marks, or *.",
                        header);
                return r;
        }
        return 1;
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
                        "There is no such device, and the request says that there must be one.");
}

int precondition_read(
        struct request *request, const struct device_record *record, struct put_condition *condition)
{
        uint64_t generation = record ? record->generation : 0;
        struct etags match, none;
        int has_match = read_tags(request, MHD_HTTP_HEADER_IF_MATCH, generation, &match), has_none;

        if (has_match < 0)
                return -EINVAL;
        has_none = read_tags(request, MHD_HTTP_HEADER_IF_NONE_MATCH, generation, &none);
        if (has_none < 0)
                return -EINVAL;
        if ((has_match && !match.matches) || (has_none && none.matches)) {
                reply_unmet(request, record);
                return -EINVAL;
        }
        condition->must_not_exist = has_none && none.any;
        condition->match_any = has_match && match.any;
        condition->match_generation = has_match && !match.any ? generation : 0;
        return 0;
}

bool precondition_holds(struct request *request, const struct device_record *record)
{
        struct put_condition ignored;

        return precondition_read(request, record, &ignored) >= 0;
}
