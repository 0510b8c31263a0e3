/* SPDX-License-Identifier: MIT */
/* Read specs from files. */
#include "ublkctl/spec/documents.h"

#include "ublkctl/client/call.h"
#include "ublkctl/spec/file_fault.h"
#include "ublkctl/text/json_path.h"
#include "ublkd/base/reading.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_SIZE_MAX = 64 << 20, DOCUMENTS_MAX = 100000 };

void documents_clear(struct documents *documents)
{
        for (size_t i = 0; i < documents->count; i++)
                cJSON_Delete(documents->items[i].spec);
        for (size_t i = 0; i < documents->source_count; i++)
                free(documents->sources[i]);
        for (size_t i = 0; i < documents->unreadable_count; i++)
                free(documents->unreadable[i]);
        free(documents->items);
        free(documents->sources);
        free(documents->unreadable);
        *documents = (struct documents){};
}

/* ---- reading ---- */

static enum exit_status read_all(int fd, const char *source, char **ret)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        int r = read_to_end(fd, FILE_SIZE_MAX, &text, &size);

        if (r == -EFBIG) {
                complain(source, "The file is larger than %d MiB; name a smaller one.", FILE_SIZE_MAX >> 20);
                return STATUS_FAILED;
        }
        if (r < 0)
                return print_file_fault(source, -r);
        if (strlen(text) != size) {
                complain(source, "The file is not JSON, it contains a NUL byte; name another file.");
                return STATUS_FAILED;
        }
        *ret = TAKE_PTR(text);
        return STATUS_OK;
}

static enum exit_status read_file(const char *path, char **ret)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0)
                return print_file_fault(path, errno);
        return read_all(fd, path, ret);
}

static const char *source_name(const char *path)
{
        return strcmp(path, "-") == 0 ? "standard input" : path;
}

static enum exit_status read_source(const char *path, char **ret)
{
        return strcmp(path, "-") == 0 ? read_all(STDIN_FILENO, "standard input", ret) : read_file(path, ret);
}

/* ---- taking apart ---- */

static enum exit_status no_memory(void)
{
        complain(NULL, "Out of memory.");
        return STATUS_FAILED;
}

/* Takes over `spec`. */
static enum exit_status add(struct documents *documents, cJSON *spec, const char *source)
{
        if (documents->count == DOCUMENTS_MAX) {
                cJSON_Delete(spec);
                complain(source, "The files have more than %d specs; apply them in several parts.",
                        DOCUMENTS_MAX);
                return STATUS_FAILED;
        }
        if (documents->count == documents->capacity) {
                size_t capacity = documents->capacity ? 2 * documents->capacity : 16;
                struct document *items = reallocarray(documents->items, capacity, sizeof(*items));

                if (!items) {
                        cJSON_Delete(spec);
                        return no_memory();
                }
                documents->items = items;
                documents->capacity = capacity;
        }
        documents->items[documents->count++] = (struct document){.spec = spec, .source = source};
        return STATUS_OK;
}

/* Takes over `value`. */
static enum exit_status take_apart(struct documents *documents, cJSON *value, const char *source)
{
        cJSON *items = cJSON_IsArray(value) ? value : cJSON_GetObjectItemCaseSensitive(value, "items");
        enum exit_status status = STATUS_OK;
        cJSON *item;

        if (cJSON_IsArray(items)) {
                while ((item = cJSON_DetachItemFromArray(items, 0)))
                        status = exit_status_merge(status, take_apart(documents, item, source));
                cJSON_Delete(value);
                return status;
        }
        if (!cJSON_IsObject(value)) {
                cJSON_Delete(value);
                complain(source, "A value is not a spec; a spec is a JSON object.");
                return STATUS_FAILED;
        }
        if (cJSON_IsObject(json_find(value, "spec"))) { /* a device, as the API shows it */
                item = cJSON_DetachItemFromObjectCaseSensitive(value, "spec");
                cJSON_Delete(value);
                value = item;
        }
        return add(documents, value, source);
}

static const char *skip_blanks(const char *text)
{
        return text + strspn(text, " \t\r\n");
}

/* advice: what belongs into the source, as the end of a sentence. */
static enum exit_status refuse(const char *source, const char *text, const char *place, const char *advice)
{
        const char *line = text;
        int number = 1;

        if (!strchr("{[", *skip_blanks(text))) {
                complain(source, "This is not JSON, and %s.", advice);
                return STATUS_FAILED;
        }
        if (!*place) {
                complain(source, "The JSON ends in the middle of a value; is the file complete?");
                return STATUS_FAILED;
        }
        for (const char *at = text; at < place; at++)
                if (*at == '\n') {
                        line = at + 1;
                        number++;
                }
        complain(source,
                "Line %d is not valid JSON, at column %d; look there for a missing or extra comma, quote "
                "or bracket.",
                number, (int)(place - line) + 1);
        return STATUS_FAILED;
}

enum exit_status documents_parse(struct documents *documents, const char *text, const char *source)
{
        static const char advice[] = "specs are read as JSON only; 'ublkctl list -o json' prints some";
        enum exit_status status = STATUS_OK;
        const char *next = skip_blanks(text), *end;
        char **sources = reallocarray(documents->sources, documents->source_count + 1, sizeof(*sources));
        char *kept = sources ? strdup(source) : NULL;

        if (sources)
                documents->sources = sources;
        if (!kept)
                return no_memory();
        sources[documents->source_count++] = kept;
        if (!*next) {
                complain(source, "The file has no spec; a spec is a JSON object with a name and a target.");
                return STATUS_FAILED;
        }
        for (; *next; next = skip_blanks(end)) {
                cJSON *value = cJSON_ParseWithOpts(next, &end, false);

                if (!value) /* the start of the next value is unknown */
                        return exit_status_merge(status, refuse(source, text, end, advice));
                status = exit_status_merge(status, take_apart(documents, value, kept));
        }
        return status;
}

/* Remember an unreadable source, and return `status`. On ENOMEM the message on stderr must do. */
static enum exit_status note_unreadable(
        struct documents *documents, const char *path, enum exit_status status)
{
        char **names = reallocarray(
                documents->unreadable, documents->unreadable_count + 1, sizeof(*documents->unreadable));
        char *name = names ? strdup(source_name(path)) : NULL;

        if (names)
                documents->unreadable = names;
        if (name)
                names[documents->unreadable_count++] = name;
        return status;
}

static enum exit_status read_one(struct documents *documents, const char *path)
{
        _cleanup_free_ char *text = NULL;
        enum exit_status status = read_source(path, &text);

        if (status == STATUS_OK)
                status = documents_parse(documents, text, source_name(path));
        return status == STATUS_OK ? status : note_unreadable(documents, path, status);
}

static int is_json(const struct dirent *entry)
{
        size_t length = strlen(entry->d_name);

        return entry->d_name[0] != '.' && length > 5 && strcmp(entry->d_name + length - 5, ".json") == 0;
}

static enum exit_status read_folder(struct documents *documents, const char *path)
{
        enum exit_status status = STATUS_OK;
        struct dirent **entries;
        int count = scandir(path, &entries, is_json, alphasort);

        if (count < 0)
                return note_unreadable(documents, path, print_file_fault(path, errno));
        for (int i = 0; i < count; i++) {
                char file[PATH_MAX + 256];

                snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
                status = exit_status_merge(status, read_one(documents, file));
                free(entries[i]);
        }
        free(entries);
        if (count == 0) {
                complain(path, "The folder has no file *.json; name another folder, or a file.");
                return note_unreadable(documents, path, STATUS_FAILED);
        }
        return status;
}

enum exit_status documents_read(struct documents *documents, const char *path)
{
        struct stat stat_;

        if (strcmp(path, "-") != 0 && stat(path, &stat_) == 0 && S_ISDIR(stat_.st_mode))
                return read_folder(documents, path);
        return read_one(documents, path);
}

enum exit_status document_read_one(const char *path, const char *advice, cJSON **ret)
{
        _cleanup_free_ char *text = NULL;
        enum exit_status status = read_source(path, &text);
        const char *end = NULL;
        cJSON *value;

        if (status != STATUS_OK)
                return status;
        value = cJSON_ParseWithOpts(text, &end, false);
        if (!value)
                return refuse(source_name(path), text, end, advice);
        if (*skip_blanks(end)) {
                cJSON_Delete(value);
                complain(source_name(path), "The file has more than one JSON value, and %s.", advice);
                return STATUS_FAILED;
        }
        *ret = value;
        return STATUS_OK;
}
