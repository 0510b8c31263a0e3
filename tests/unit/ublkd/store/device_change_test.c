/* SPDX-License-Identifier: MIT */
/* device_change: which changes wait while another worker takes over the disk. */
#include "ublkd/store/device_change.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"
#include "tests/unit/spec_of.h"

#define SPEC(more) "{\"name\":\"data\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\"" more "}"

static const struct row {
        const char *document;
        bool is_new_disk;
} rows[] = {
        {SPEC(""),                                     false},
        {SPEC(",\"readOnly\":true"),                   true },
        {SPEC(",\"queues\":2"),                        true },
        {SPEC(",\"enabled\":false"),                   false},
        {SPEC(",\"enabled\":false,\"queues\":2"),      true },
        {SPEC(",\"limits\":{\"read\":{\"iops\":10}}"), false},
};

int main(void)
{
        struct device_record record = {.spec = spec_of(SPEC(""))};

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct device_spec *spec = spec_of(rows[i].document);
                unsigned before = check_failures;

                record.status.phase = PHASE_LIVE;
                record.status.reason = REASON_LIVE;
                CHECK(!device_change_must_wait(&record, spec));
                record.status.reason = REASON_RESTARTING;
                CHECK_INT(device_change_must_wait(&record, spec), rows[i].is_new_disk);
                record.status.phase = PHASE_RECOVERING;
                CHECK_INT(device_change_must_wait(&record, spec), rows[i].is_new_disk);
                record.status.reason = REASON_RECOVERING;
                CHECK(!device_change_must_wait(&record, spec));
                if (check_failures > before)
                        fprintf(stderr, "%s\n", rows[i].document);
                device_spec_free(spec);
        }
        record.spec = device_spec_free(record.spec);
        return check_report();
}
