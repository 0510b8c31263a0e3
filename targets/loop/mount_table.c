/* SPDX-License-Identifier: MIT */
/* Lines of /proc/self/mountinfo. */
#include "targets/loop/mount_table.h"

#include "ublkd/kernel/mount_line.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

int mount_row_parse(char *text, struct mount_row *ret)
{
        struct mount_line line;
        unsigned major_number, minor_number;
        int r = mount_line_parse(text, &line);

        if (r < 0)
                return r;
        if (sscanf(line.device, "%u:%u", &major_number, &minor_number) != 2)
                return -EBADMSG;
        *ret = (struct mount_row){.id = line.id,
                .device = makedev(major_number, minor_number),
                .root = strdup(line.root),
                .point = strdup(line.point),
                .type = strdup(line.type),
                .options = strdup(line.options)};
        if (!ret->root || !ret->point || !ret->type || !ret->options) {
                mount_row_clear(ret);
                return -ENOMEM;
        }
        return 0;
}

int mount_table_find(
        bool (*fits)(const struct mount_row *row, const void *data), const void *data, struct mount_row *ret)
{
        FILE *file = fopen("/proc/self/mountinfo", "re");
        _cleanup_free_ char *line = NULL;
        size_t size = 0;
        int r = file ? -ENOENT : -errno;

        while (r == -ENOENT && getline(&line, &size, file) >= 0) {
                struct mount_row row;

                line[strcspn(line, "\n")] = '\0';
                r = mount_row_parse(line, &row);
                if (r >= 0 && !fits(&row, data)) {
                        mount_row_clear(&row);
                        r = -ENOENT;
                } else if (r >= 0) {
                        *ret = row;
                }
                if (r == -EBADMSG)
                        r = -ENOENT; /* no row that could be meant */
        }
        if (file)
                fclose(file);
        return r;
}

static bool has_id(const struct mount_row *row, const void *id)
{
        return row->id == *(const uint64_t *)id;
}

int mount_table_find_id(uint64_t id, struct mount_row *ret)
{
        return mount_table_find(has_id, &id, ret);
}

void mount_row_clear(struct mount_row *row)
{
        free(row->root);
        free(row->point);
        free(row->type);
        free(row->options);
        *row = (struct mount_row){};
}
