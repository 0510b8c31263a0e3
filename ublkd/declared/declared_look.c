/* SPDX-License-Identifier: MIT */
/* What is to be done about a device, by a look at the files and at its record. */
#include "ublkd/declared/declared_look.h"

#include "ublkd/declared/declared_record.h"

/* Return the fault of a bad file; NULL: there is none. */
static const char *find_doubt(const struct declared_set *set)
{
        for (size_t i = 0; set->files && i < set->files->count; i++)
                if (set->unknown[i])
                        return set->unknown[i];
        return NULL;
}

const char *declared_look_unknown(const struct declared_set *set, const struct device_record *record)
{
        const char *unknown = declared_set_unknown(set, record->source);

        return unknown ? unknown : find_doubt(set);
}

static enum declared_owner owner_of(const struct declared_set *set, const struct declaration *declaration,
        const struct device_record *record)
{
        if (declaration && device_record_has_source(record, declaration->file->path))
                return OWNER_SAME;
        if (declaration) /* it was renamed */
                return declared_set_unknown(set, record->source) ? OWNER_UNKNOWN : OWNER_GONE;
        return declared_look_unknown(set, record) ? OWNER_UNKNOWN : OWNER_GONE;
}

enum declared_step declared_look(const struct declared_set *set, const struct declaration *declaration,
        const struct device_record *record)
{
        struct declared_view view = {
                .spec = !declaration        ? DECLARED_NOT
                        : declaration->spec ? DECLARED_VALID
                                            : DECLARED_INVALID,
                .record = declared_record_kind(record),
        };

        if (view.record == DECLARED_OF_FILE)
                view.owner = owner_of(set, declaration, record);
        view.same = declaration && declaration->spec && record && record->spec
                    && device_spec_equal(record->spec, declaration->spec);
        return declared_plan(&view);
}
