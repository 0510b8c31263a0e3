/* SPDX-License-Identifier: MIT */
/* Whether the disk of a device may be removed or replaced for a file. */
#include "ublkd/declared/declared_check.h"

#include "ublkd/base/sentence.h"
#include "ublkd/model/device_spec_store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct declared_check {
        struct declared_check_config config;
        char uid[UID_TEXT_SIZE]; /* what the answers are about; "": nothing */
        uint64_t generation;
        struct disk_question *question;
        bool users_known;
        enum disk_use use;
        unsigned kinds;
        char *users; /* may be NULL */
        struct spec_preflight *preflight;
        bool tried;
        char *refusal; /* of the spec, with `tried`; NULL: it passed */
};

void declared_check_drop(struct declared_check *check)
{
        check->uid[0] = '\0';
        check->question = disk_question_free(check->question);
        if (check->preflight)
                check->preflight = check->config.end_preflight(check->preflight);
        check->users_known = check->tried = false;
        free(check->users);
        free(check->refusal);
        check->users = check->refusal = NULL;
}

int declared_check_new(const struct declared_check_config *config, struct declared_check **ret)
{
        struct declared_check *check = calloc(1, sizeof(*check));

        if (!check)
                return -ENOMEM;
        check->config = *config;
        *ret = check;
        return 0;
}

struct declared_check *declared_check_free(struct declared_check *check)
{
        if (!check)
                return NULL;
        declared_check_drop(check);
        free(check);
        return NULL;
}

static enum declared_verdict may_not(char **ret, char *why)
{
        *ret = why;
        return DECLARED_MAY_NOT;
}

/* ---- the users of the disk ---- */

static void on_users(void *userdata, const struct disk_answer *answer)
{
        struct declared_check *check = userdata;

        check->users_known = true;
        check->use = answer->use;
        check->kinds = answer->kinds;
        check->users = strdup(answer->text);
        check->question = disk_question_free(check->question);
        check->config.answered(check->config.answered_userdata);
}

static enum declared_verdict check_unused(
        struct declared_check *check, const struct device_record *record, const char *what, char **ret)
{
        int number = device_disk_number(record), r;
        enum disk_depth depth = record->status.phase == PHASE_LIVE ? DISK_VERDICT : DISK_NAMES;

        if (number < 0 || !check->config.disk_search)
                return DECLARED_MAY;
        if (check->question)
                return DECLARED_WAITS;
        if (!check->users_known) {
                r = disk_search_ask(
                        check->config.disk_search, number, depth, on_users, check, &check->question);
                return r >= 0 ? DECLARED_WAITS
                              : may_not(ret,
                                        sentence_print(
                                                "%s, and ublkd cannot find out who uses /dev/ublkb%d: %s.",
                                                what, number, strerror(-r)));
        }
        if (check->use == DISK_UNUSED)
                return DECLARED_MAY;
        if (check->use == DISK_USED)
                return may_not(
                        ret, sentence_print("%s, and /dev/ublkb%d is in use: %s. %s.", what, number,
                                     check->users ? check->users : "", disk_users_advice(check->kinds)));
        return may_not(ret, sentence_print("%s, and ublkd cannot find out who uses /dev/ublkb%d: %s.", what,
                                    number, check->users ? check->users : "out of memory"));
}

/* ---- the new spec ---- */

static void on_tried(void *userdata, bool tried, enum condition_reason reason _unused_, const char *refusal)
{
        struct declared_check *check = userdata;

        check->preflight = NULL;
        check->refusal = refusal ? strdup(refusal) : NULL;
        check->tried = tried && (!refusal || check->refusal); /* else: try again */
        check->config.answered(check->config.answered_userdata);
}

static enum declared_verdict check_spec(struct declared_check *check, const struct device_record *record,
        const struct device_spec *spec, const char *what, char **ret)
{
        int r;

        if (!check->config.try_spec || record->status.phase != PHASE_LIVE)
                return DECLARED_MAY;
        if (check->preflight)
                return DECLARED_WAITS;
        if (!check->tried) {
                r = check->config.try_spec(
                        check->config.userdata, record, spec, on_tried, check, &check->preflight);
                return r >= 0 ? DECLARED_WAITS
                              : may_not(ret,
                                        sentence_print(
                                                "%s, and ublkd cannot try whether it can be created: %s.",
                                                what, strerror(-r)));
        }
        return check->refusal
                       ? may_not(ret, sentence_print("%s, which cannot be created: %s", what, check->refusal))
                       : DECLARED_MAY;
}

/* ---- both ---- */

static enum declared_verdict keep_last_copy(const struct declared_check *check,
        const struct device_record *record, const struct device_spec *next, const char *what,
        enum backing_reach *ret_reach, char **ret)
{
        bool is_single = record->spec && !device_spec_has_list(record->spec); /* else it may be any of them */
        const char *path = is_single ? device_spec_path(record->spec) : NULL;

        *ret_reach = check->config.read_reach ? check->config.read_reach(check->config.userdata, record, next)
                                              : BACKING_REACH_UNKNOWN;
        if (*ret_reach != BACKING_REACH_UNNAMED)
                return DECLARED_MAY;
        return may_not(
                ret, sentence_print(
                             "%s, and %s behind /dev/ublkb%d%s%s%s was deleted: only this disk has its data. "
                             "Copy the data to another file ('dd if=/dev/ublkb%d of=FILE bs=1M', unmounted).",
                             what, is_single ? "the file" : "a file", record->number, path ? " (" : "",
                             path ? path : "", path ? ")" : "", record->number));
}

static enum declared_verdict ask_removal(
        struct declared_check *check, const struct device_record *record, const char *what, char **ret)
{
        enum backing_reach reach;
        enum declared_verdict verdict = keep_last_copy(check, record, NULL, what, &reach, ret);

        return verdict == DECLARED_MAY ? check_unused(check, record, what, ret) : verdict;
}

static enum declared_verdict ask_new_disk(struct declared_check *check, const struct device_record *record,
        const struct device_spec *spec, const struct disk_change *change, char **ret)
{
        const char *field, *paths = device_spec_explain_paths(spec, &field);
        enum declared_verdict verdict;
        enum backing_reach reach;
        char what[160];

        snprintf(what, sizeof(what), "Changing '%s' needs a new disk%s%s%s", change->field,
                change->why ? " (" : "", change->why ? change->why : "", change->why ? ")" : "");
        verdict = keep_last_copy(check, record, spec, what, &reach, ret);
        if (verdict == DECLARED_MAY && reach == BACKING_REACH_ELSEWHERE)
                verdict = may_not(ret,
                        sentence_print(
                                "%s, and %s does not lead to the store of /dev/ublkb%d any more, so the "
                                "new disk would not have its data. Bring the store back to this path, or "
                                "give its present path (%s).",
                                what, paths, record->number, field));
        if (verdict == DECLARED_MAY)
                verdict = check_spec(check, record, spec, what, ret);
        return verdict == DECLARED_MAY ? check_unused(check, record, what, ret) : verdict;
}

enum declared_verdict declared_check_ask(struct declared_check *check, const struct device_record *record,
        const struct device_spec *spec, char **ret)
{
        struct disk_change change;

        if (check->generation != record->generation || strcmp(check->uid, record->uid) != 0) {
                declared_check_drop(check);
                check->generation = record->generation;
                strcpy(check->uid, record->uid);
        }
        if (!spec)
                return ask_removal(check, record, "Removing the device would remove its disk", ret);
        if (device_change_must_wait(record, spec))
                return may_not(ret,
                        sentence_print("The new spec needs a new disk, and another worker takes over "
                                       "/dev/ublkb%d just "
                                       "now. Run 'systemctl reload ublkd' when the device is Live again.",
                                record->status.number));
        switch (device_change_of(record, spec, &change)) {
        case CHANGE_IN_PLACE:
                return DECLARED_MAY;
        case CHANGE_DISABLES:
                return ask_removal(check, record, "Disabling the device would remove its disk", ret);
        case CHANGE_REPLACES_DISK:
                break;
        }
        return ask_new_disk(check, record, spec, &change, ret);
}
