/* SPDX-License-Identifier: MIT */
/* What all files together say. */
#include "ublkd/declared/declared_set.h"

#include "ublkd/values/json_check.h"
#include "ublkd/values/json_locate.h"
#include "ublkd/values/json_util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- one file ---- */

struct reading {
        struct declared_set *set;
        const struct device_file *file;
        char **unknown; /* of this file */
        size_t count;   /* of its specs */
};

/* Add "FILE:LINE: POINTER: sentence" to the problems of the set. *ret is a copy, which the caller frees. */
static int add_fault(
        const struct reading *reading, size_t line, const char *pointer, const char *sentence, char **ret)
{
        _cleanup_free_ char *text = NULL;
        int r;

        if (asprintf(&text, "%s:%zu: %s%s%s", reading->file->path, line, pointer, *pointer ? ": " : "",
                    sentence)
                < 0) {
                text = NULL;
                return -ENOMEM;
        }
        r = problem_add(&reading->set->problems, EINVAL, pointer, "FileInvalid", "%s", text);
        if (r >= 0)
                *ret = TAKE_PTR(text);
        return r;
}

/* Note that it is not known which devices the file describes. The first cause counts. */
static int add_unknown(const struct reading *reading, size_t line, const char *pointer, const char *sentence)
{
        char *text = NULL;
        int r = add_fault(reading, line, pointer, sentence, &text);

        if (r < 0 || *reading->unknown)
                free(text);
        else
                *reading->unknown = text;
        return r;
}

/* Takes over `item`, also on failure. */
static int add(struct declared_set *set, struct declaration *item)
{
        struct declaration *items = reallocarray(set->items, set->count + 1, sizeof(*items));

        if (items)
                set->items = items;
        if (!items) {
                free(item->name);
                free(item->fault);
                device_spec_free(item->spec);
                return -ENOMEM;
        }
        items[set->count++] = *item;
        items[set->count - 1].order = set->count;
        return 0;
}

/* Add a spec with faults. Its name still counts. After a fault, no device of the file is removed. */
static int add_invalid(const struct reading *reading, const cJSON *document, const char *place, size_t line,
        const struct problem_list *problems)
{
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(document, "name"));
        bool named = name && device_name_is_valid(name);
        struct declaration item = {.file = reading->file, .line = line};
        int r = 0;

        for (size_t i = 0; r >= 0 && i < problems->count; i++) {
                _cleanup_free_ char *pointer = NULL, *text = NULL;

                if (asprintf(&pointer, "%s%s", place, problems->items[i].pointer) < 0) {
                        pointer = NULL;
                        r = -ENOMEM;
                        break;
                }
                r = add_fault(reading, json_locate(reading->file->text, pointer), pointer,
                        problems->items[i].detail, &text);
                if (r >= 0 && !item.fault)
                        item.fault = TAKE_PTR(text);
        }
        if (r < 0 || !item.fault) {
                free(item.fault);
                return r < 0 ? r : -ENOMEM; /* the list of problems lost all of them */
        }
        if (!*reading->unknown)
                *reading->unknown = strdup(item.fault);
        if (named)
                item.name = strdup(name);
        if (!*reading->unknown || (named && !item.name)) {
                free(item.fault);
                return -ENOMEM;
        }
        if (named)
                return add(reading->set, &item);
        free(item.fault);
        return 0;
}

static int add_spec(struct reading *reading, const cJSON *document, const char *place)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct declaration item = {.file = reading->file, .line = json_locate(reading->file->text, place)};
        int r;

        if (reading->count++ >= DECLARATIONS_MAX)
                return add_unknown(reading, item.line, place,
                        "The file has more than 1024 specs; divide it. This spec and those after it are not "
                        "applied.");
        r = device_spec_parse(document, NULL, &item.spec, &problems);
        if (r == -EINVAL)
                return add_invalid(reading, document, place, item.line, &problems);
        if (r < 0)
                return r;
        item.name = strdup(item.spec->options.name);
        if (!item.name) {
                device_spec_free(item.spec);
                return -ENOMEM;
        }
        return add(reading->set, &item);
}

/* json_check() limits the depth. */
static int take_apart(struct reading *reading, const cJSON *value, const char *place)
{
        const cJSON *list = cJSON_IsArray(value) ? value : cJSON_GetObjectItemCaseSensitive(value, "items");
        const cJSON *spec = cJSON_GetObjectItemCaseSensitive(value, "spec"), *item;
        const char *inner = list == value ? "" : "/items";
        size_t index = 0;
        int r = 0;

        if (!cJSON_IsArray(list) && cJSON_IsObject(value) && cJSON_IsObject(spec)) {
                _cleanup_free_ char *pointer = NULL;

                if (asprintf(&pointer, "%s/spec", place) < 0) {
                        pointer = NULL;
                        return -ENOMEM;
                }
                return add_spec(reading, spec, pointer);
        }
        if (!cJSON_IsArray(list) && !cJSON_IsObject(value))
                return add_unknown(reading, json_locate(reading->file->text, place), place,
                        "The value is not a spec; a spec is a JSON object.");
        if (!cJSON_IsArray(list))
                return add_spec(reading, value, place);
        cJSON_ArrayForEach (item, list) {
                _cleanup_free_ char *pointer = NULL;

                if (asprintf(&pointer, "%s%s/%zu", place, inner, index++) < 0) {
                        pointer = NULL;
                        return -ENOMEM;
                }
                r = take_apart(reading, item, pointer);
                if (r < 0 || reading->count > DECLARATIONS_MAX)
                        return r;
        }
        return r;
}

static int read_text(struct reading *reading)
{
        const struct device_file *file = reading->file;
        struct json_fault fault;
        cJSON *document;
        char sentence[160];
        int r;

        if (json_check(file->text, file->size, &fault) < 0) {
                snprintf(sentence, sizeof(sentence), "The file is not valid JSON, at column %zu: %s.",
                        fault.column, fault.what);
                return add_unknown(reading, fault.line, "", sentence);
        }
        document = cJSON_Parse(file->text);
        if (!document)
                return -ENOMEM;
        r = take_apart(reading, document, "");
        cJSON_Delete(document);
        return r;
}

static int read_file(struct declared_set *set, size_t index)
{
        const struct device_file *file = &set->files->items[index];
        struct reading reading = {.set = set, .file = file, .unknown = &set->unknown[index]};

        if (file->state == FILE_READ)
                return read_text(&reading);
        if (file->state != FILE_FAULTY)
                return 0;
        set->unknown[index] = strdup(file->fault);
        return set->unknown[index] ? problem_add(&set->problems, EINVAL, "", "FileInvalid", "%s", file->fault)
                                   : -ENOMEM;
}

/* ---- all of them ---- */

static int compare(const void *one, const void *other)
{
        const struct declaration *left = one, *right = other;
        int difference = strcmp(left->name, right->name);

        return difference ? difference : left->order < right->order ? -1 : 1;
}

static void declaration_clear(struct declaration *item)
{
        free(item->name);
        free(item->fault);
        device_spec_free(item->spec);
}

static int refuse_second(
        struct declared_set *set, const struct declaration *first, const struct declaration *second)
{
        return problem_add(&set->problems, EEXIST, "/name", "FileRefused",
                "%s:%zu: The device %s is described by %s already (line %zu), which counts; this spec "
                "is not "
                "applied. Remove one of the two.",
                second->file->path, second->line, second->name, first->file->path, first->line);
}

static int drop_seconds(struct declared_set *set)
{
        size_t kept = 0;
        int r = 0;

        if (set->count > 0)
                qsort(set->items, set->count, sizeof(*set->items), compare);
        for (size_t i = 0; i < set->count; i++) {
                struct declaration *item = &set->items[i];

                if (kept == 0 || strcmp(set->items[kept - 1].name, item->name) != 0) {
                        set->items[kept++] = *item;
                        continue;
                }
                if (r >= 0)
                        r = refuse_second(set, &set->items[kept - 1], item);
                declaration_clear(item);
        }
        set->count = kept;
        return r;
}

void declared_set_clear(struct declared_set *set)
{
        for (size_t i = 0; i < set->count; i++)
                declaration_clear(&set->items[i]);
        for (size_t i = 0; set->unknown && i < set->files->count; i++)
                free(set->unknown[i]);
        free(set->items);
        free(set->unknown);
        problem_list_clear(&set->problems);
        *set = (struct declared_set){};
}

int declared_set_make(const struct device_files *files,
        bool (*is_owner)(const void *userdata, const char *name, const char *path), const void *userdata,
        struct declared_set *ret)
{
        _cleanup_declared_set_ struct declared_set set = {.files = files};
        int r = 0;

        set.unknown = calloc(files->count + 1, sizeof(*set.unknown));
        if (!set.unknown)
                return -ENOMEM;
        for (size_t i = 0; r >= 0 && i < files->dir_count; i++)
                if (files->dirs[i].state == DIR_FAULTY)
                        r = problem_add(&set.problems, EIO, "", "FileInvalid", "%s", files->dirs[i].fault);
        for (size_t i = 0; r >= 0 && i < files->count; i++)
                r = read_file(&set, i);
        for (size_t i = 0; is_owner && i < set.count; i++)
                if (is_owner(userdata, set.items[i].name, set.items[i].file->path))
                        set.items[i].order = 0;
        if (r >= 0)
                r = drop_seconds(&set);
        if (r < 0)
                return r;
        *ret = set;
        set = (struct declared_set){};
        return 0;
}

static int compare_name(const void *key, const void *item)
{
        return strcmp(key, ((const struct declaration *)item)->name);
}

const struct declaration *declared_set_find(const struct declared_set *set, const char *name)
{
        return set->count > 0 ? bsearch(name, set->items, set->count, sizeof(*set->items), compare_name)
                              : NULL;
}

/* ---- what is unknown ---- */

static const struct device_dir *find_dir(const struct device_files *files, const char *path)
{
        size_t length = (size_t)(device_file_name(path) - path);

        for (size_t i = 0; i < files->dir_count; i++)
                if (strlen(files->dirs[i].path) + 1 == length
                        && strncmp(files->dirs[i].path, path, length - 1) == 0)
                        return &files->dirs[i];
        return NULL;
}

/* Return why the directory of the file does not show whether the file is gone; NULL: it does. */
static const char *dir_unknown(const struct device_files *files, const char *path)
{
        const struct device_dir *dir = find_dir(files, path);

        for (size_t i = 0; i < files->dir_count; i++)
                if (files->dirs[i].state == DIR_FAULTY)
                        return files->dirs[i].fault;
        if (!dir)
                return "The file is in a directory that this ublkd does not read (--devices-dir). The device "
                       "stays as "
                       "it is.";
        if (dir->state == DIR_MISSING)
                return "The directory of the file does not exist: a file system may not be mounted. The "
                       "device stays "
                       "as it is. Mount the file system, and run 'systemctl reload ublkd'.";
        return NULL;
}

const char *declared_set_unknown(const struct declared_set *set, const char *path)
{
        const char *unknown = dir_unknown(set->files, path);

        for (size_t i = 0; !unknown && i < set->files->count; i++)
                if (strcmp(device_file_name(set->files->items[i].path), device_file_name(path)) == 0)
                        unknown = set->unknown[i];
        return unknown;
}

bool declared_set_has_file(const struct declared_set *set, const char *path)
{
        for (size_t i = 0; i < set->files->count; i++)
                if (strcmp(device_file_name(set->files->items[i].path), device_file_name(path)) == 0)
                        return true;
        return false;
}
