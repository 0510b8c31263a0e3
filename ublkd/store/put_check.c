/* SPDX-License-Identifier: MIT */
/* Checks a put against the other devices and the preconditions of the client. */
#include "ublkd/store/put_check.h"

int put_check(const struct device_spec *spec, const struct device_record *record,
        const struct device_record *owner, const struct put_condition *condition,
        struct problem_list *problems)
{
        const char *name = spec->options.name;
        int r = device_record_check(record, condition, problems);

        if (r < 0)
                return r;
        if (record && record->age != RECORD_CURRENT) {
                (void)problem_add(problems, EUCLEAN, "", device_status_reason(&record->status), "%s",
                        record->status.message);
                return -EUCLEAN;
        }
        if (record && record->deleting) {
                (void)problem_add(problems, EBUSY, "", "BeingRemoved",
                        "The device %s is being removed; try again after its removal.", name);
                return -EBUSY;
        }
        if (record && condition->mode == PUT_CREATE
                && !(record->spec && device_spec_equal(record->spec, spec))) {
                (void)problem_add(problems, EEXIST, "/name", "NameTaken",
                        "The device %s exists with another spec; change that device, or choose another "
                        "name.",
                        name);
                return -EEXIST;
        }
        if (owner) {
                (void)problem_add(problems, EADDRINUSE, "/id", "NumberTaken",
                        "The number %d belongs to the device %s; choose another, or leave it out.",
                        (int)spec->options.id, owner->name);
                return -EADDRINUSE;
        }
        return 0;
}
