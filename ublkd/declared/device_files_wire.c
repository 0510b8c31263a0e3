/* SPDX-License-Identifier: MIT */
/* The files that describe devices, as a process apart sends them: numbers of 32 bits, and texts with their length.
 * UINT32_MAX is the length of NULL. */
#include "ublkd/declared/device_files.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

static void put_number(FILE *stream, size_t value)
{
        uint32_t number = (uint32_t)value;

        (void)fwrite(&number, sizeof(number), 1, stream);
}

static void put_text(FILE *stream, const char *text, size_t size)
{
        put_number(stream, text ? size : UINT32_MAX);
        if (text)
                (void)fwrite(text, 1, size, stream);
}

static void put_string(FILE *stream, const char *text)
{
        put_text(stream, text, text ? strlen(text) : 0);
}

void device_files_write(const struct device_files *files, FILE *stream)
{
        put_number(stream, files->dir_count);
        put_number(stream, files->count);
        for (size_t i = 0; i < files->dir_count; i++) {
                put_string(stream, files->dirs[i].path);
                put_number(stream, files->dirs[i].state);
                put_string(stream, files->dirs[i].fault);
                put_number(stream, files->dirs[i].device >> 32);
                put_number(stream, files->dirs[i].device & UINT32_MAX);
        }
        for (size_t i = 0; i < files->count; i++) {
                put_string(stream, files->items[i].path);
                put_number(stream, files->items[i].state);
                put_text(stream, files->items[i].text, files->items[i].size);
                put_string(stream, files->items[i].fault);
        }
}

struct input {
        const char *at;
        size_t left;
};

static int get_number(struct input *input, uint32_t *ret)
{
        if (input->left < sizeof(*ret))
                return -EBADMSG;
        memcpy(ret, input->at, sizeof(*ret));
        input->at += sizeof(*ret);
        input->left -= sizeof(*ret);
        return 0;
}

static int get_text(struct input *input, char **ret, size_t *ret_size)
{
        uint32_t size;
        int r = get_number(input, &size);

        *ret = NULL;
        if (r < 0 || size == UINT32_MAX)
                return r;
        if (size > input->left)
                return -EBADMSG;
        *ret = malloc((size_t)size + 1);
        if (!*ret)
                return -ENOMEM;
        memcpy(*ret, input->at, size);
        (*ret)[size] = '\0';
        input->at += size;
        input->left -= size;
        if (ret_size)
                *ret_size = size;
        return 0;
}

static int get_dir(struct input *input, struct device_dir *dir)
{
        uint32_t state = 0, high = 0, low = 0;
        int r = get_text(input, &dir->path, NULL);

        if (r >= 0)
                r = get_number(input, &state);
        if (r >= 0)
                r = get_text(input, &dir->fault, NULL);
        if (r >= 0)
                r = get_number(input, &high);
        if (r >= 0)
                r = get_number(input, &low);
        dir->device = (uint64_t)high << 32 | low;
        dir->state = (enum dir_state)state;
        return r >= 0 && (!dir->path || state > DIR_FAULTY || (state == DIR_FAULTY) != (dir->fault != NULL))
                       ? -EBADMSG
                       : r;
}

static int get_file(struct input *input, struct device_file *file)
{
        uint32_t state = 0;
        int r = get_text(input, &file->path, NULL);

        if (r >= 0)
                r = get_number(input, &state);
        if (r >= 0)
                r = get_text(input, &file->text, &file->size);
        if (r >= 0)
                r = get_text(input, &file->fault, NULL);
        file->state = (enum file_state)state;
        return r >= 0
                               && (!file->path || state > FILE_UNSURE
                                       || (state == FILE_READ) != (file->text != NULL)
                                       || (state == FILE_FAULTY) != (file->fault != NULL))
                       ? -EBADMSG
                       : r;
}

int device_files_parse(const void *data, size_t size, struct device_files *ret)
{
        _cleanup_device_files_ struct device_files files = {};
        struct input input = {data, size};
        uint32_t dirs, count = 0;
        int r = get_number(&input, &dirs);

        if (r >= 0)
                r = get_number(&input, &count);
        if (r >= 0 && (dirs > DEVICE_DIRS_MAX || count > DEVICE_DIRS_MAX * DEVICE_FILES_MAX))
                r = -EBADMSG;
        if (r < 0)
                return r;
        files.dirs = calloc((size_t)dirs + 1, sizeof(*files.dirs));
        files.items = calloc((size_t)count + 1, sizeof(*files.items));
        if (!files.dirs || !files.items)
                return -ENOMEM;
        for (; r >= 0 && files.dir_count < dirs; files.dir_count++)
                r = get_dir(&input, &files.dirs[files.dir_count]);
        for (; r >= 0 && files.count < count; files.count++)
                r = get_file(&input, &files.items[files.count]);
        if (r >= 0 && input.left > 0)
                r = -EBADMSG;
        if (r < 0)
                return r;
        *ret = files;
        files = (struct device_files){};
        return 0;
}
