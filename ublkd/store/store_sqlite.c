/* SPDX-License-Identifier: MIT */
/* The durable backend: STATE_DIR/ublkd.db.
 *
 * WAL with synchronous=FULL: acknowledged changes survive a crash of the machine. locking_mode=EXCLUSIVE:
 * SQLite itself keeps a second ublkd out, and needs no shared memory. ublkd does not change the database of a
 * newer ublkd, nor its write-ahead log. */
#include "ublkd/store/database_file.h"
#include "ublkd/store/database_problem.h"
#include "ublkd/store/device_store.h"
#include "ublkd/store/store_columns.h"
#include "ublkd/store/store_migrations.h"
#include "ublkd/store/store_row.h"
#include "ublkd/store/store_sqlite_events.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { APPLICATION_ID = 0x75626c6b /* "ublk" */, WAL_KEEP_BYTES = 4 * 1024 * 1024 };

enum statement {
        STATEMENT_BEGIN,
        STATEMENT_COMMIT,
        STATEMENT_ROLLBACK,
        STATEMENT_SAVE,
        STATEMENT_ACTIONS,
        STATEMENT_ERASE,
        STATEMENT_REVISION,
        _STATEMENT_MAX
};

static const char *const statement_texts[] = {
        [STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
        [STATEMENT_COMMIT] = "COMMIT",
        [STATEMENT_ROLLBACK] = "ROLLBACK",
        [STATEMENT_SAVE] = store_row_save,
        [STATEMENT_ACTIONS] = "UPDATE device SET actions = ?2 WHERE name = ?1",
        [STATEMENT_ERASE] = "DELETE FROM device WHERE name = ?1",
        [STATEMENT_REVISION] = "UPDATE store SET revision = ?1",
};
static_assert(ARRAY_SIZE(statement_texts) == _STATEMENT_MAX, "every statement has its text");

struct store_sqlite {
        sqlite3 *db;
        struct database_file file;
        sqlite3_stmt *statements[_STATEMENT_MAX];
        struct event_statements event;
};

static void sqlite_close(void *context)
{
        struct store_sqlite *store = context;

        if (!store)
                return;
        for (size_t i = 0; i < _STATEMENT_MAX; i++)
                (void)sqlite3_finalize(store->statements[i]);
        event_statements_clear(&store->event);
        (void)sqlite3_close(store->db);
        free(store);
}

static void sqlite_close_pointer(struct store_sqlite **store)
{
        sqlite_close(*store);
}

/* Return the errno of the last failure of the file that `which` names, or 0. */
static int file_errno(sqlite3 *db, int which)
{
        sqlite3_file *file = NULL;
        int error = 0;

        if (sqlite3_file_control(db, "main", which, &file) == SQLITE_OK && file && file->pMethods)
                (void)file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &error);
        return error;
}

/* Return the errno of an I/O error. sqlite3_system_errno() has lost it if a commit failed in the log. */
static int system_error(sqlite3 *db)
{
        int error = file_errno(db, SQLITE_FCNTL_JOURNAL_POINTER); /* the write-ahead log, if there is one */

        if (error == 0)
                error = file_errno(db, SQLITE_FCNTL_FILE_POINTER);
        return error ? error : sqlite3_system_errno(db);
}

/* Convert the last failure of `db` to -errno. */
static int to_errno(sqlite3 *db, int result)
{
        static const struct {
                int result, error;
        } table[] = {
                {SQLITE_FULL,     ENOSPC },
                {SQLITE_NOMEM,    ENOMEM },
                {SQLITE_BUSY,     EBUSY  },
                {SQLITE_LOCKED,   EBUSY  },
                {SQLITE_PERM,     EACCES },
                {SQLITE_AUTH,     EACCES },
                {SQLITE_READONLY, EROFS  },
                {SQLITE_NOTADB,   EBADMSG},
                {SQLITE_CORRUPT,  EBADMSG},
                {SQLITE_TOOBIG,   E2BIG  },
        };
        int primary = result & 0xff, system = 0;

        if (db && primary == SQLITE_IOERR)
                system = system_error(db);
        if (db && primary == SQLITE_CANTOPEN)
                system = sqlite3_system_errno(db);
        if (system > 0)
                return system == EDQUOT || system == EFBIG ? -ENOSPC : -system;
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (table[i].result == primary)
                        return -table[i].error;
        return -EIO;
}

/* Run a statement without a result, and reset it. Return 0 or -errno. */
static int run(struct store_sqlite *store, enum statement which)
{
        sqlite3_stmt *statement = store->statements[which];
        int result = sqlite3_step(statement);
        int r = result == SQLITE_DONE || result == SQLITE_ROW ? 0 : to_errno(store->db, result);

        (void)sqlite3_reset(statement); /* returns the error of the step again */
        (void)sqlite3_clear_bindings(statement);
        return r;
}

static int execute(struct store_sqlite *store, const char *text)
{
        int result = sqlite3_exec(store->db, text, NULL, NULL, NULL);

        return result == SQLITE_OK ? 0 : to_errno(store->db, result);
}

/* Return the first value of the first row, an integer that is not negative; or -errno. */
static int64_t query_integer(struct store_sqlite *store, const char *text)
{
        sqlite3_stmt *statement = NULL;
        int result = sqlite3_prepare_v2(store->db, text, -1, &statement, NULL);
        int64_t value;

        if (result == SQLITE_OK)
                result = sqlite3_step(statement);
        value = result == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : to_errno(store->db, result);
        (void)sqlite3_finalize(statement);
        return value;
}

/* End a transaction: commit if `r` is not an error, else roll back. Return 0 or -errno. */
static int finish(struct store_sqlite *store, int r)
{
        if (r >= 0)
                r = run(store, STATEMENT_COMMIT);
        if (r < 0 && !sqlite3_get_autocommit(store->db)) /* SQLite rolls back some failures itself */
                (void)run(store, STATEMENT_ROLLBACK);
        return r;
}

static int set_revision(struct store_sqlite *store, uint64_t revision)
{
        (void)sqlite3_bind_int64(store->statements[STATEMENT_REVISION], 1, (sqlite3_int64)revision);
        return run(store, STATEMENT_REVISION);
}

static int put_event(struct store_sqlite *store, const struct device_event *event)
{
        int result = event ? event_statements_put(&store->event, event) : SQLITE_DONE;

        return result == SQLITE_DONE ? 0 : to_errno(store->db, result);
}

/* If the file was deleted or moved, all writes are lost when ublkd exits. */
static int sqlite_check(void *context)
{
        return database_file_check(&((const struct store_sqlite *)context)->file);
}

static int begin(struct store_sqlite *store)
{
        int r = sqlite_check(store);

        return r < 0 ? r : run(store, STATEMENT_BEGIN);
}

static int sqlite_save(void *context, const struct device_record *record, const char *document,
        uint64_t revision, const struct device_event *event)
{
        struct store_sqlite *store = context;
        sqlite3_stmt *save = store->statements[STATEMENT_SAVE];
        _cleanup_free_ char *stores = NULL;
        char boot[UID_TEXT_SIZE] = "";
        int r = record->stopped || record->temporary ? device_record_boot(boot) : 0;

        if (r >= 0)
                r = record_stores_print(record->stores, &stores);
        if (r >= 0)
                r = begin(store);
        if (r < 0)
                return r;
        store_row_bind(save, record, document, boot, stores);
        r = run(store, STATEMENT_SAVE);
        if (r >= 0)
                r = set_revision(store, revision);
        if (r >= 0)
                r = put_event(store, event);
        return finish(store, r);
}

static int sqlite_save_actions(void *context, const char *name, const char *actions, uint64_t revision,
        const struct device_event *event)
{
        struct store_sqlite *store = context;
        int r = begin(store);

        if (r < 0)
                return r;
        (void)sqlite3_bind_text(store->statements[STATEMENT_ACTIONS], 1, name, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(store->statements[STATEMENT_ACTIONS], 2, actions, -1, SQLITE_STATIC);
        r = run(store, STATEMENT_ACTIONS);
        if (r >= 0)
                r = set_revision(store, revision);
        if (r >= 0)
                r = put_event(store, event);
        return finish(store, r);
}

static int sqlite_erase(void *context, const char *name, uint64_t revision, const struct device_event *event)
{
        struct store_sqlite *store = context;
        int r = begin(store);

        if (r < 0)
                return r;
        (void)sqlite3_bind_text(store->statements[STATEMENT_ERASE], 1, name, -1, SQLITE_STATIC);
        r = run(store, STATEMENT_ERASE);
        if (r >= 0)
                r = set_revision(store, revision);
        if (r >= 0)
                r = put_event(store, event);
        return finish(store, r);
}

static int sqlite_save_revision(void *context, uint64_t revision)
{
        return set_revision(context, revision); /* a single statement is a transaction */
}

static int sqlite_save_events(void *context, const struct device_event *const *events, size_t count,
        uint64_t compacted, const struct event_floors *floors)
{
        struct store_sqlite *store = context;
        int result, r = begin(store);

        if (r < 0)
                return r;
        /* Delete first: a deleted row may be an old state of an event that is put. */
        result = event_statements_drop(&store->event, compacted);
        for (size_t i = 0; i < floors->count && result == SQLITE_DONE; i++)
                result = event_statements_drop_of(&store->event, &floors->of[i]);
        for (size_t i = 0; i < count && result == SQLITE_DONE; i++)
                result = event_statements_put(&store->event, events[i]);
        return finish(store, result == SQLITE_DONE ? 0 : to_errno(store->db, result));
}

static int load_stamp(struct store_sqlite *store, struct store_stamp *ret)
{
        sqlite3_stmt *row = NULL;
        int result = sqlite3_prepare_v2(store->db, "SELECT database, revision FROM store", -1, &row, NULL);

        if (result == SQLITE_OK)
                result = sqlite3_step(row);
        if (result == SQLITE_ROW) {
                snprintf(ret->database, sizeof(ret->database), "%s", store_row_text(row, 0));
                ret->revision = (uint64_t)sqlite3_column_int64(row, 1);
        }
        (void)sqlite3_finalize(row);
        return result == SQLITE_ROW ? 0 : to_errno(store->db, result);
}

static int sqlite_load(void *context,
        int (*each)(void *userdata, const struct device_record *record, const char *document), void *userdata,
        struct store_stamp *ret)
{
        struct store_sqlite *store = context;
        struct store_stamp stamp = {};
        sqlite3_stmt *rows = NULL;
        int result, r = load_stamp(store, &stamp);

        if (r < 0)
                return r;
        result = sqlite3_prepare_v2(store->db, store_row_load, -1, &rows, NULL);
        if (result != SQLITE_OK)
                return to_errno(store->db, result);
        while (r >= 0 && (result = sqlite3_step(rows)) == SQLITE_ROW)
                r = store_row_read(rows, each, userdata);
        if (r >= 0 && result != SQLITE_DONE)
                r = to_errno(store->db, result);
        (void)sqlite3_finalize(rows);
        if (r >= 0)
                *ret = stamp;
        return r;
}

static int sqlite_load_events(void *context, int (*each)(void *userdata, const struct device_event *event),
        void *userdata, uint64_t *ret_compacted)
{
        struct store_sqlite *store = context;
        int error, result = event_rows_load(store->db, each, userdata, ret_compacted, &error);

        return error < 0 ? error : result == SQLITE_DONE ? 0 : to_errno(store->db, result);
}

static const struct device_backend sqlite_backend = {
        .name = "sqlite",
        .load = sqlite_load,
        .save = sqlite_save,
        .save_actions = sqlite_save_actions,
        .erase = sqlite_erase,
        .save_revision = sqlite_save_revision,
        .load_events = sqlite_load_events,
        .save_events = sqlite_save_events,
        .check = sqlite_check,
        .close = sqlite_close,
};

/* Lock the file, and return its version (0: empty) or -errno. */
static int64_t read_version(struct store_sqlite *store)
{
        int64_t application, version;
        int r;

        (void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        (void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        r = execute(store, "PRAGMA locking_mode = EXCLUSIVE");
        if (r < 0)
                return r;
        version = query_integer(store, "PRAGMA user_version");
        application = version < 0 ? version : query_integer(store, "PRAGMA application_id");
        if (application < 0)
                return application;
        if (application != APPLICATION_ID && (version != 0 || query_integer(store, "PRAGMA page_count") > 0))
                return -EMEDIUMTYPE;
        return version;
}

/* Run the migrations and write the version in one transaction. Return 0 or -errno. */
static int migrate(struct store_sqlite *store, int64_t version)
{
        char text[96];
        int r = execute(store, "BEGIN EXCLUSIVE");

        for (size_t i = (size_t)version; r >= 0 && i < store_migration_count; i++)
                r = execute(store, store_migrations[i]);
        snprintf(text, sizeof(text), "PRAGMA application_id = %d; PRAGMA user_version = %zu; COMMIT",
                APPLICATION_ID, store_migration_count);
        if (r >= 0)
                r = execute(store, text);
        if (r < 0 && !sqlite3_get_autocommit(store->db))
                (void)execute(store, "ROLLBACK");
        return r;
}

static int check_integrity(struct store_sqlite *store)
{
        sqlite3_stmt *statement = NULL;
        int result = sqlite3_prepare_v2(store->db, "PRAGMA quick_check(1)", -1, &statement, NULL), r;

        if (result == SQLITE_OK)
                result = sqlite3_step(statement);
        if (result != SQLITE_ROW)
                r = to_errno(store->db, result);
        else
                r = strcmp(store_row_text(statement, 0), "ok") == 0 ? 0 : -EBADMSG;
        (void)sqlite3_finalize(statement);
        return r;
}

static int prepare(struct store_sqlite *store)
{
        int result;

        for (size_t i = 0; i < _STATEMENT_MAX; i++) {
                result = sqlite3_prepare_v3(store->db, statement_texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                        &store->statements[i], NULL);

                if (result != SQLITE_OK)
                        return to_errno(store->db, result);
        }
        result = event_statements_prepare(store->db, &store->event);
        return result == SQLITE_DONE ? 0 : to_errno(store->db, result);
}

static int configure(struct store_sqlite *store)
{
        char text[160];

        (void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
        snprintf(text, sizeof(text),
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA journal_size_limit = %d",
                WAL_KEEP_BYTES);
        return execute(store, text);
}

static int open_database(const char *path, struct store_sqlite *store)
{
        _cleanup_close_ int fd = -1;
        int result;

        /* SQLite would create the file world-readable. Its log gets the mode of the database. */
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
        if (fd < 0)
                return -errno;
        fd = close_fd(fd); /* before SQLite locks the file: closing any descriptor of it drops the locks */
        result = sqlite3_open_v2(path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, NULL);
        if (result != SQLITE_OK)
                return to_errno(store->db, result);
        return database_file_read(sqlite3_db_filename(store->db, "main"), &store->file);
}

static int add_columns(struct store_sqlite *store)
{
        int result = store_columns_add(store->db);

        return result == SQLITE_OK ? 0 : to_errno(store->db, result);
}

static int open_store(const char *path, struct store_sqlite *store)
{
        int64_t version;
        int r = open_database(path, store);

        if (r < 0)
                return r;
        version = read_version(store);
        if (version < 0)
                return (int)version;
        if (version > (int64_t)store_migration_count)
                return -EPROTONOSUPPORT;
        r = check_integrity(store);
        if (r >= 0)
                r = configure(store);
        if (r >= 0 && version < (int64_t)store_migration_count)
                r = migrate(store, version);
        if (r >= 0)
                r = add_columns(store);
        if (r >= 0) /* it can be written */
                r = execute(store, "BEGIN IMMEDIATE; UPDATE store SET revision = revision; COMMIT");
        return r < 0 ? r : prepare(store);
}

int store_sqlite_open(const char *state_dir, const struct device_backend **ret_backend, void **ret_context,
        struct problem_list *problems)
{
        _cleanup_(sqlite_close_pointer) struct store_sqlite *store = calloc(1, sizeof(*store));
        char path[PATH_MAX];
        int r, n = snprintf(path, sizeof(path), "%s/ublkd.db", state_dir);

        if (!store)
                return -ENOMEM;
        if (n < 0 || (size_t)n >= sizeof(path))
                return database_problem_add(state_dir, -ENAMETOOLONG, problems);
        r = open_store(path, store);
        if (r < 0)
                return database_problem_add(path, r, problems);
        *ret_backend = &sqlite_backend;
        *ret_context = TAKE_PTR(store);
        return 0;
}
