/* SPDX-License-Identifier: MIT */
/* Keep data that only the disk holds. */
#include "api/resources/last_copy.h"

#include "api/held/disk_check.h"
#include "api/http/respond.h"
#include "api/http/server.h"
#include "ublkd/model/device_spec_store.h"
#include "ublkd/store/device_change.h"

#include <string.h>

static enum backing_reach reach_of(
        const struct request *request, const struct device_record *record, const struct device_spec *next)
{
        const struct api_config *config = &request->api->config;

        return config->read_reach ? config->read_reach(config->userdata, record, next)
                                  : BACKING_REACH_UNKNOWN;
}

bool is_last_copy(const struct request *request, const struct device_record *record)
{
        return reach_of(request, record, NULL) == BACKING_REACH_UNNAMED;
}

bool last_copy_may_go(struct request *request, const struct device_record *record, const char *what)
{
        bool is_single = record->spec && !device_spec_has_list(record->spec); /* else it may be any of them */
        const char *path = is_single ? device_spec_path(record->spec) : NULL;
        const struct disk_answer *answer;
        bool used;

        if (request->query.last_copy == LAST_COPY_DROP || !is_last_copy(request, record))
                return true;
        answer = disk_check_device(request, record);
        if (!answer)
                return false;
        used = answer->use == DISK_USED;
        reply_problem(request, PROBLEM_LAST_COPY,
                "%s, and %s behind /dev/ublkb%d%s%s%s was deleted: only this disk has its data%s%s. "
                "%s%sCopy the data to another file first ('dd if=/dev/ublkb%d of=FILE bs=1M'%s), and when "
                "they are safe repeat with --drop-last-copy (in the API: drop-last-copy=true).",
                what, is_single ? "the file" : "a file", record->number, path ? " (" : "", path ? path : "",
                path ? ")" : "", used ? ", and it is in use: " : "", used ? answer->text : "",
                used ? disk_users_advice(answer->kinds) : "", used ? ". " : "", record->number,
                used ? "" : ", unmounted");
        return false;
}

bool new_disk_keeps_store(struct request *request, const struct device_record *record,
        const struct device_spec *spec, const char *what)
{
        const char *paths, *field;

        if (!last_copy_may_go(request, record, what))
                return false;
        if (request->query.last_copy == LAST_COPY_DROP
                || reach_of(request, record, spec) != BACKING_REACH_ELSEWHERE)
                return true;
        paths = device_spec_explain_paths(spec, &field);
        reply_problem(request, PROBLEM_PATH_ELSEWHERE,
                "%s, and %s does not lead to the store of /dev/ublkb%d any more, so the new disk would not "
                "have its data. Bring the store back to this path, or give its present path in the same "
                "change (%s), and repeat.",
                what, paths, record->number, field);
        return false;
}
