/* SPDX-License-Identifier: MIT */
/* Query parameters and percent-encoding. */
#include "api/http/query.h"

#include "ublkd/backing/backing.h"
#include "ublkd/base/utf8.h"
#include "ublkd/values/dispatch.h"
#include "ublkd/model/device_spec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
        VALUE_MAX = 2048,         /* bytes */
        LABEL_MAX = 384,          /* characters */
        REVISION_DIGITS_MAX = 15, /* every JSON number represents these exactly */
};

static int hex_value(char c)
{
        return c >= '0' && c <= '9'   ? c - '0'
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                      : -1;
}

int percent_decode(const char *text, size_t size, char *ret, size_t ret_size)
{
        size_t used = 0;

        for (size_t i = 0; i < size; i++) {
                char c = text[i];

                if (c == '%') {
                        int high = i + 2 < size ? hex_value(text[i + 1]) : -1,
                            low = high < 0 ? -1 : hex_value(text[i + 2]);

                        if (low < 0)
                                return -EINVAL;
                        c = (char)(high << 4 | low);
                        i += 2;
                }
                if (c == '\0')
                        return -EINVAL;
                if (used + 1 >= ret_size)
                        return -ENOBUFS;
                ret[used++] = c;
        }
        if (ret_size == 0)
                return -ENOBUFS;
        ret[used] = '\0';
        return 0;
}

/* Each parses `value`, decoded; NULL: the client gave no '='. 0; -EINVAL; -ENOMEM. */
static int parse_wait_ready(const char *value, struct query *ret)
{
        if (value && *value && strcmp(value, "ready") != 0)
                return -EINVAL;
        ret->wait = true;
        return 0;
}

/* A removal is ready when the device is gone. */
static int parse_wait_gone(const char *value, struct query *ret)
{
        return value && strcmp(value, "gone") == 0 ? parse_wait_ready(NULL, ret)
                                                   : parse_wait_ready(value, ret);
}

static int parse_timeout(const char *value, struct query *ret)
{
        uint64_t usec;

        if (!value || parse_duration(value, &usec) < 0
                || usec > QUERY_TIMEOUT_SECONDS_MAX * UINT64_C(1000000))
                return -EINVAL;
        ret->timeout = usec;
        return 0;
}

static int parse_boolean(const char *value, bool *ret)
{
        if (!value || (strcmp(value, "true") != 0 && strcmp(value, "false") != 0))
                return -EINVAL;
        *ret = strcmp(value, "true") == 0;
        return 0;
}

static int parse_force(const char *value, struct query *ret)
{
        return parse_boolean(value, &ret->force);
}

static int parse_dry_run(const char *value, struct query *ret)
{
        return parse_boolean(value, &ret->dry_run);
}

static int parse_accept_write_errors(const char *value, struct query *ret)
{
        bool bare;

        if (parse_boolean(value, &bare) >= 0) {
                ret->accept_any_write_error = bare;
                return 0;
        }
        if (!value || !*value || strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789-.") != strlen(value))
                return -EINVAL;
        ret->accept_write_errors = strdup(value);
        return ret->accept_write_errors ? 0 : -ENOMEM;
}

static int parse_drop_last_copy(const char *value, struct query *ret)
{
        bool drop;
        int r = parse_boolean(value, &drop);

        if (r >= 0)
                ret->last_copy = drop ? LAST_COPY_DROP : LAST_COPY_KEEP;
        return r;
}

static int parse_label(const char *value, struct query *ret)
{
        char *copy, *equals;

        if (!value || *value == '=' || !strchr(value, '=') || utf8_count(value) > LABEL_MAX
                || ret->label_count == QUERY_LABELS_MAX)
                return -EINVAL;
        copy = strdup(value);
        if (!copy)
                return -ENOMEM;
        equals = strchr(copy, '=');
        *equals = '\0';
        ret->labels[ret->label_count].key = copy;
        ret->labels[ret->label_count++].value = equals + 1;
        return 0;
}

static int parse_limit(const char *value, struct query *ret)
{
        unsigned long limit;

        if (!value || !*value || strspn(value, "0123456789") != strlen(value) || strlen(value) > 4)
                return -EINVAL;
        limit = strtoul(value, NULL, 10);
        if (limit < 1 || limit > QUERY_LIMIT_MAX)
                return -EINVAL;
        ret->limit = (unsigned)limit;
        return 0;
}

static int parse_continue(const char *value, struct query *ret)
{
        if (!value || !device_name_is_valid(value))
                return -EINVAL;
        ret->continue_after = strdup(value);
        return ret->continue_after ? 0 : -ENOMEM;
}

static int parse_device(const char *value, struct query *ret)
{
        if (!value || !device_name_is_valid(value))
                return -EINVAL;
        ret->device = strdup(value);
        return ret->device ? 0 : -ENOMEM;
}

static int parse_accept_backing(const char *value, struct query *ret)
{
        if (!value || !*value || strlen(value) >= BACKING_TOKEN_SIZE)
                return -EINVAL;
        ret->accept_backing = strdup(value);
        return ret->accept_backing ? 0 : -ENOMEM;
}

static int parse_store(const char *value, struct query *ret)
{
        size_t root = strlen("/target");

        if (!value || strncmp(value, "/target", root) != 0 || (value[root] != '\0' && value[root] != '/')
                || strlen(value) >= TARGET_POINTER_SIZE)
                return -EINVAL;
        ret->store = strdup(value);
        return ret->store ? 0 : -ENOMEM;
}

int query_parse_revision(const char *text, uint64_t *ret)
{
        size_t length = strlen(text);

        if (length == 0 || length > REVISION_DIGITS_MAX || strspn(text, "0123456789") != length)
                return -EINVAL;
        *ret = strtoull(text, NULL, 10);
        return 0;
}

static int parse_after(const char *value, struct query *ret)
{
        return value ? query_parse_revision(value, &ret->after) : -EINVAL;
}

/* clang-format off */
static const struct parameter {
        const char *name;
        enum query_parameter parameter;
        bool repeats;
        int (*parse)(const char *value, struct query *ret);
        const char *hint;
} parameters[] = {
        {"wait",                QUERY_WAIT_READY,          false, parse_wait_ready,          "wait or wait=ready"},
        {"wait",                QUERY_WAIT_GONE,           false, parse_wait_gone,           "wait or wait=gone"},
        {"timeout",             QUERY_TIMEOUT,             false, parse_timeout,
         "a duration up to 10min, like timeout=30s"},
        {"force",               QUERY_FORCE,               false, parse_force,               "force=true or force=false"},
        {"dryRun",              QUERY_DRY_RUN,             false, parse_dry_run,             "dryRun=true or dryRun=false"},
        {"accept-write-errors", QUERY_ACCEPT_WRITE_ERRORS, false, parse_accept_write_errors,
         "accept-write-errors=TOKEN, as status.writeErrors shows it"},
        {"drop-last-copy",      QUERY_DROP_LAST_COPY,      false, parse_drop_last_copy,
         "drop-last-copy=true or drop-last-copy=false"},
        {"label",               QUERY_LABEL,               true,  parse_label,               "label=KEY=VALUE, up to 16 of them"},
        {"limit",               QUERY_LIMIT,               false, parse_limit,               "limit=N with N from 1 to 1000"},
        {"continue",            QUERY_CONTINUE,            false, parse_continue,
         "the value of `continue` in the last page"},
        {"device",              QUERY_DEVICE,              false, parse_device,              "device=NAME"},
        {"after",               QUERY_AFTER,               false, parse_after,
         "after=REVISION, a number from a list or an event"},
        {"accept-backing",      QUERY_ACCEPT_BACKING,      false, parse_accept_backing,
         "the identity in status.backing.found"},
        {"store",               QUERY_STORE,               false, parse_store,
         "the pointer of a target, as in status.backing.stores: /target/children/0"},
};
/* clang-format on */

struct reading {
        unsigned allowed;
        struct query *query;
        struct problem_list *problems;
        int error;
};

static const struct parameter *find_parameter(const char *name, unsigned allowed)
{
        for (size_t i = 0; i < ARRAY_SIZE(parameters); i++)
                if ((parameters[i].parameter & allowed) && strcmp(parameters[i].name, name) == 0)
                        return &parameters[i];
        return NULL;
}

static int read_parameter(struct reading *reading, const char *name, const char *value)
{
        const struct parameter *parameter = find_parameter(name, reading->allowed);
        int r;

        if (!parameter)
                return problem_add(reading->problems, EINVAL, "", "UnknownParameter",
                        "The query parameter '%s' is unknown here; leave it out.", name);
        if ((reading->query->given & parameter->parameter) && !parameter->repeats)
                return problem_add(reading->problems, EINVAL, "", "RepeatedParameter",
                        "The query parameter '%s' is given more than once; give it once.", name);
        r = parameter->parse(value, reading->query);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return problem_add(reading->problems, EINVAL, "", "BadParameter",
                        "The query parameter '%s' is invalid; give %s.", name, parameter->hint);
        reading->query->given |= parameter->parameter;
        return 0;
}

static enum MHD_Result on_parameter(void *userdata, enum MHD_ValueKind kind _unused_, const char *key,
        size_t key_size, const char *value, size_t value_size)
{
        struct reading *reading = userdata;
        char name[64], text[VALUE_MAX];

        if (percent_decode(key, key_size, name, sizeof(name)) < 0 || !utf8_is_valid(name, strlen(name))
                || (value
                        && (percent_decode(value, value_size, text, sizeof(text)) < 0
                                || !utf8_is_valid(text, strlen(text)))))
                reading->error = problem_add(reading->problems, EINVAL, "", "BadParameter",
                        "A query parameter is too long or badly encoded; check its %%XX escapes.");
        else
                reading->error = read_parameter(reading, name, value ? text : NULL);
        return reading->error < 0 ? MHD_NO : MHD_YES;
}

int query_parse(
        struct MHD_Connection *connection, unsigned allowed, struct query *ret, struct problem_list *problems)
{
        struct reading reading = {.allowed = allowed, .query = ret, .problems = problems};

        *ret = (struct query){.timeout = QUERY_TIMEOUT_SECONDS * UINT64_C(1000000), .limit = QUERY_LIMIT_MAX};
        (void)MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, on_parameter, &reading);
        if (reading.error < 0)
                return reading.error;
        ret->wait = ret->wait || (ret->given & QUERY_TIMEOUT); /* a timeout implies wait */
        return problems->count > 0 ? -EINVAL : 0;
}

/* With its length first: a value may have any character. */
static void print_text(FILE *out, const char *text)
{
        fprintf(out, "%zu:%s ", text ? strlen(text) : 0, text ? text : "");
}

static int compare_labels(const void *a, const void *b)
{
        const struct query_label *one = a, *other = b;
        int order = strcmp(one->key, other->key);

        return order ? order : strcmp(one->value, other->value);
}

static void print_labels(FILE *out, const struct query *query)
{
        struct query_label labels[QUERY_LABELS_MAX];
        size_t count = query->label_count;

        memcpy(labels, query->labels, count * sizeof(labels[0]));
        qsort(labels, count, sizeof(labels[0]), compare_labels);
        for (size_t i = 0; i < count; i++) {
                if (i > 0 && compare_labels(&labels[i - 1], &labels[i]) == 0)
                        continue;
                print_text(out, labels[i].key);
                print_text(out, labels[i].value);
        }
}

char *query_to_text(const struct query *query)
{
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return NULL;
        fprintf(out, "%u %d %" PRIu64 " ", query->limit, (query->given & QUERY_AFTER) != 0, query->after);
        print_text(out, query->continue_after);
        print_text(out, query->device);
        print_labels(out, query);
        if (fclose(out) == 0)
                return text;
        free(text);
        return NULL;
}

void query_clear(struct query *query)
{
        free(query->continue_after);
        free(query->device);
        free(query->accept_backing);
        free(query->store);
        free(query->accept_write_errors);
        for (size_t i = 0; i < query->label_count; i++)
                free(query->labels[i].key);
        *query = (struct query){};
}
