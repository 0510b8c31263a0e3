/* SPDX-License-Identifier: MIT */
/* A device as a row of the database: its columns, and which member of the record each has. */
#include "ublkd/store/store_row.h"

#include "ublkd/store/device_record.h"
#include "ublkd/store/record_stores.h"

#include <stdio.h>
#include <string.h>

const char store_row_save[] =
        "INSERT INTO device (name, uid, generation, revision, epoch, number, deleting,"
        " recover_requested, held_boot, created_at, spec, restart, restart_refused,"
        " backing_basis, backing_is_disk, backing_now, backing_lasting, backing_boot, source,"
        " stopped_boot, temporary_boot, tenant, filesystem, mount_holders, stores)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, "
        "?19, ?20, ?21, ?22, ?23, ?24, ?25)"
        " ON CONFLICT (name) DO UPDATE SET uid = excluded.uid, generation = excluded.generation,"
        " revision = excluded.revision, epoch = excluded.epoch, number = excluded.number, deleting ="
        " excluded.deleting, recover_requested = excluded.recover_requested, held_boot ="
        " excluded.held_boot, created_at = excluded.created_at, spec = excluded.spec, restart ="
        " excluded.restart, restart_refused = excluded.restart_refused, backing_basis ="
        " excluded.backing_basis, backing_is_disk = excluded.backing_is_disk, backing_now ="
        " excluded.backing_now, backing_lasting = excluded.backing_lasting, backing_boot ="
        " excluded.backing_boot, source = excluded.source, stopped_boot = excluded.stopped_boot,"
        " temporary_boot = excluded.temporary_boot, tenant = excluded.tenant, filesystem ="
        " excluded.filesystem, mount_holders = excluded.mount_holders, stores = excluded.stores";

const char store_row_load[] =
        "SELECT name, uid, generation, revision, epoch, number, deleting, recover_requested, "
        "held_boot, created_at, spec, restart, restart_refused, backing_basis, backing_is_disk, "
        "backing_now, backing_lasting, backing_boot, source, stopped_boot, temporary_boot, "
        "tenant, filesystem, mount_holders, actions, stores FROM device ORDER BY name";

void store_row_bind(sqlite3_stmt *save, const struct device_record *record, const char *document,
        const char *boot, const char *stores)
{
        /* A bind fails only for a wrong index. */
        (void)sqlite3_bind_text(save, 1, record->name, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(save, 2, record->uid, -1, SQLITE_STATIC);
        (void)sqlite3_bind_int64(save, 3, (sqlite3_int64)record->generation);
        (void)sqlite3_bind_int64(save, 4, (sqlite3_int64)record->stored_revision);
        (void)sqlite3_bind_int(save, 5, record->epoch);
        if (record->number >= 0)
                (void)sqlite3_bind_int(save, 6, record->number);
        else
                (void)sqlite3_bind_null(save, 6);
        (void)sqlite3_bind_int(save, 7, record->deleting + (record->deleting && record->forced));
        (void)sqlite3_bind_int(save, 8, record->recover_requested);
        (void)sqlite3_bind_text(save, 9, record->held_boot, -1, SQLITE_STATIC);
        (void)sqlite3_bind_int64(save, 10, (sqlite3_int64)record->created_at);
        (void)sqlite3_bind_text(save, 11, document, -1, SQLITE_STATIC);
        (void)sqlite3_bind_int64(save, 12, record->restart);
        (void)sqlite3_bind_int64(save, 13, record->restart_refused);
        (void)sqlite3_bind_int(save, 14, (int)record->backing.basis);
        (void)sqlite3_bind_int(save, 15, record->backing.is_disk);
        (void)sqlite3_bind_text(save, 16, record->backing.boot, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(save, 17, record->backing.lasting, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(save, 18, record->backing_boot, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(save, 19, record->source ? record->source : "", -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(save, 20, record->stopped ? boot : "", -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(save, 21, record->temporary ? boot : "", -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(save, 22, record->tenant, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(save, 23, record->filesystem, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(save, 24, record->mount_holders, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(save, 25, stores, -1, SQLITE_STATIC);
}

const char *store_row_text(sqlite3_stmt *row, int column)
{
        const unsigned char *text = sqlite3_column_text(row, column);

        return text ? (const char *)text : "";
}

static void load_backing(sqlite3_stmt *row, struct device_record *record)
{
        struct backing_identity *backing = &record->backing;
        int basis = sqlite3_column_int(row, 13);

        backing->basis = basis >= 0 && basis < _BACKING_BASIS_MAX ? (enum backing_basis)basis : BACKING_NONE;
        backing->is_disk = sqlite3_column_int(row, 14) != 0;
        snprintf(backing->boot, sizeof(backing->boot), "%s", store_row_text(row, 15));
        snprintf(backing->lasting, sizeof(backing->lasting), "%s", store_row_text(row, 16));
        snprintf(record->backing_boot, sizeof(record->backing_boot), "%s", store_row_text(row, 17));
}

/* A stop ends with the boot. */
static bool is_of_this_boot(const char *boot)
{
        char now[UID_TEXT_SIZE];

        return device_record_boot(now) >= 0 && strcmp(boot, now) == 0;
}

/* Return whether the text names a boot before this one. No boot is over if the id of this one is unknown. */
static bool is_over(const char *boot)
{
        char now[UID_TEXT_SIZE];

        return *boot && device_record_boot(now) >= 0 && strcmp(boot, now) != 0;
}

int store_row_read(sqlite3_stmt *row,
        int (*each)(void *userdata, const struct device_record *record, const char *document), void *userdata)
{
        _cleanup_(device_actions_free_pointer) struct device_actions *actions = NULL;
        struct device_record record = {
                .name = (char *)store_row_text(row, 0), /* borrowed: `each` copies */
                .generation = (uint64_t)sqlite3_column_int64(row, 2),
                .revision = (uint64_t)sqlite3_column_int64(row, 3),
                .epoch = (uint16_t)sqlite3_column_int(row, 4),
                .number = sqlite3_column_type(row, 5) == SQLITE_NULL ? -1 : sqlite3_column_int(row, 5),
                .deleting = sqlite3_column_int(row, 6) != 0,
                .forced = sqlite3_column_int(row, 6) > 1,
                .recover_requested = sqlite3_column_int(row, 7) != 0,
                .created_at = (uint64_t)sqlite3_column_int64(row, 9),
                .restart = (uint32_t)sqlite3_column_int64(row, 11),
                .restart_refused = (uint32_t)sqlite3_column_int64(row, 12),
                .stopped = is_of_this_boot(store_row_text(row, 19)),
                .temporary = *store_row_text(row, 20) != '\0',
        };
        int r;

        snprintf(record.uid, sizeof(record.uid), "%s", store_row_text(row, 1));
        snprintf(record.held_boot, sizeof(record.held_boot), "%s", store_row_text(row, 8));
        snprintf(record.tenant, sizeof(record.tenant), "%s", store_row_text(row, 21));
        snprintf(record.filesystem, sizeof(record.filesystem), "%s", store_row_text(row, 22));
        snprintf(record.mount_holders, sizeof(record.mount_holders), "%s", store_row_text(row, 23));
        load_backing(row, &record);
        if (*store_row_text(row, 18)) /* borrowed, as the name is */
                record.source = (char *)store_row_text(row, 18);
        record.expired = !record.source && is_over(store_row_text(row, 20));
        actions = device_actions_from_text(store_row_text(row, 24));
        record.actions = actions; /* borrowed as well */
        r = record_stores_parse(store_row_text(row, 25), &record.stores);
        if (r >= 0)
                r = each(userdata, &record, store_row_text(row, 10));
        record_stores_free(record.stores);
        return r;
}
