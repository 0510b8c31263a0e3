/* SPDX-License-Identifier: MIT */
/* Checks a put against the other devices and the preconditions of the client. */
#include "ublkd/store/put_check.h"
#include "ublkd/model/device_spec_store.h"

#include <string.h>

static bool is_same_spec(const struct device_record *record, const struct device_spec *spec)
{
        return record->spec && device_spec_equal(record->spec, spec);
}

/* A client may repeat the spec of a device that a file owns, and a file may not take the device of a client. */
static int check_source(const struct device_spec *spec, const struct device_record *record,
        const char *source, struct problem_list *problems)
{
        if (!source)
                return !device_record_is_owned(record) || is_same_spec(record, spec)
                               ? 0
                               : device_record_refuse_owned(record, problems);
        if (record->source)
                return 0;
        (void)problem_add(problems, EEXIST, "/name", "NameTaken",
                "The file %s is not applied: it describes the device %s, which a client of the API has "
                "made. Give the device of the file another name; or detach the disk of that client, if it "
                "is not needed any more ('ublkctl detach').",
                source, record->name);
        return -EEXIST;
}

/* Return the field by which users may write to the disk from now on; NULL: none. */
static const char *field_that_opens(const struct device_spec *spec, const struct device_record *record)
{
        if (device_spec_lets_users_write(spec)
                && !(record->spec && device_spec_lets_users_write(record->spec)))
                return "/owner";
        return tenant_is_set(record->tenant) && record->spec && device_spec_is_volume(record->spec)
                               && !device_spec_is_volume(spec)
                       ? "/privateNode"
                       : NULL;
}

/* The kernel reads a file system that is mounted as root, and trusts what is on the disk. */
static int check_mount(
        const struct device_spec *spec, const struct device_record *record, struct problem_list *problems)
{
        const char *field;

        if (!*record->mount && record->mount_change == MOUNT_STAYS
                && device_record_mount_holders(record) == 0)
                return 0;
        field = field_that_opens(spec, record);
        if (!field)
                return 0;
        (void)problem_add(problems, ETXTBSY, field, "InUse",
                "The file system of the device %s is mounted, or a mount or its end is under way, so users "
                "must not write to its disk; end the mount (POST /devices/NAME/unmount), and repeat the "
                "request.",
                spec->options.name);
        return -ETXTBSY;
}

static bool has_path(const struct device_spec *spec, unsigned number, const char *path)
{
        const char *there = device_spec_store_path(spec, number);

        return there && strcmp(there, path) == 0;
}

static unsigned count_places(const struct device_spec *spec, const char *path)
{
        unsigned count = 0;

        for (unsigned i = 0; i < device_spec_stores(spec); i++)
                count += has_path(spec, i, path);
        return count;
}

/* Return whether the place has the store in both specs. With parts of it in several places a path alone says nothing. */
static bool keeps_store(
        const struct device_spec *from, const struct device_spec *to, unsigned number, const char *path)
{
        bool in_parts = count_places(from, path) > 1 || count_places(to, path) > 1;

        return has_path(from, number, path) && has_path(to, number, path)
               && (!in_parts || device_spec_store_begin(from, number) == device_spec_store_begin(to, number));
}

/* Return whether another place than `number`, which loses the store, gets it. */
static bool goes_elsewhere(
        const struct device_spec *from, const struct device_spec *to, unsigned number, const char *path)
{
        for (unsigned i = 0; i < device_spec_stores(to); i++)
                if (i != number && has_path(to, i, path) && !keeps_store(from, to, i, path))
                        return true;
        return false;
}

/* Return whether a store that both specs name, or a part of it, would come to another place of the tree: the bytes of a
 * disk would move. A part may go while the others stay. */
static bool moves_stores(const struct device_spec *from, const struct device_spec *to)
{
        for (unsigned i = 0; i < device_spec_stores(from); i++) {
                const char *path = device_spec_store_path(from, i);

                if (path && !keeps_store(from, to, i, path) && goes_elsewhere(from, to, i, path))
                        return true;
        }
        return false;
}

/* Without a disk nothing moves: each place keeps the store that it is for (record_stores_carry()), and paths that were exchanged
 * outside are put right by exchanging them in the spec. */
static int check_order(
        const struct device_spec *spec, const struct device_record *record, struct problem_list *problems)
{
        bool may_have_disk = record->status.disk || record->status.phase == PHASE_UNKNOWN;

        if (!record->spec || !may_have_disk || !moves_stores(record->spec, spec))
                return 0;
        (void)problem_add(problems, ETXTBSY, "/target", "InUse",
                "Backing stores of the device %s would come to other places of the tree, and the data of its "
                "disk would move. Give them in the order that they have. If their names have been exchanged, "
                "disable the device first. For another order, create another device.",
                spec->options.name);
        return -ETXTBSY;
}

/* With a new spec any store would do, as nothing is known of those of the old one. */
static int check_stores(
        const struct device_spec *spec, const struct device_record *record, struct problem_list *problems)
{
        if (!record_stores_are_unreadable(record->stores))
                return 0;
        (void)problem_add(problems, EUCLEAN, "", device_status_reason(&record->status),
                "The note of the backing stores of the device %s cannot be read. Without it ublkd could not "
                "recognise the stores, so it takes no other spec. A newer ublkd may be able to read it; or "
                "delete the device, whose stores stay as they are, and create it again.",
                spec->options.name);
        return -EUCLEAN;
}

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
                        device_status_message(
                                &record->status, condition->tenant ? READER_TENANT : READER_OF_ALL));
                return -EUCLEAN;
        }
        if (record && record->deleting) {
                (void)problem_add(problems, EBUSY, "", "BeingRemoved",
                        "The device %s is being removed; try again after its removal.", name);
                return -EBUSY;
        }
        r = record ? check_source(spec, record, condition->source, problems) : 0;
        if (r >= 0 && record)
                r = check_mount(spec, record, problems);
        if (r >= 0 && record)
                r = check_stores(spec, record, problems);
        if (r < 0)
                return r;
        if (record && condition->mode == PUT_CREATE && !is_same_spec(record, spec)) {
                (void)problem_add(problems, EEXIST, "/name", "NameTaken",
                        "The device %s exists with another spec; change that device, or choose another "
                        "name.",
                        name);
                return -EEXIST;
        }
        r = record ? check_order(spec, record, problems) : 0;
        if (r < 0)
                return r;
        if (owner) {
                (void)problem_add(problems, EADDRINUSE, "/id", "NumberTaken",
                        "The number %d belongs to the device %s; choose another, or leave it out.",
                        (int)spec->options.id, owner->name);
                return -EADDRINUSE;
        }
        return 0;
}
