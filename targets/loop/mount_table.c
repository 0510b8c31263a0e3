/* SPDX-License-Identifier: MIT */
/* Lines of /proc/self/mountinfo. */
#include "targets/loop/mount_table.h"

#include "ublkd/base/path_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

/* The next word of `*text`, or NULL. */
static char *take_word(char **text)
{
        char *word = strsep(text, " ");

        return word && *word ? word : NULL;
}

static int copy_strings(const char *root, const char *point, const char *options, struct mount_row *ret)
{
        ret->root = strdup(root);
        ret->point = strdup(point);
        ret->options = strdup(options);
        if (!ret->root || !ret->point || !ret->options) {
                mount_row_clear(ret);
                return -ENOMEM;
        }
        path_unescape(ret->root);
        path_unescape(ret->point);
        return 0;
}

/* The words before the optional ones. */
enum { WORD_ID, WORD_PARENT, WORD_DEVICE, WORD_ROOT, WORD_POINT, _WORD_MAX };

/* "36 35 98:0 /root /point rw,noatime master:1 - ext4 /dev/source rw,errors=continue" */
int mount_row_parse(char *text, struct mount_row *ret)
{
        const char *words[_WORD_MAX], *word;
        struct mount_row row = {};
        unsigned major_number, minor_number;

        for (unsigned i = 0; i < _WORD_MAX; i++)
                if (!(words[i] = take_word(&text)))
                        return -EBADMSG;
        while ((word = take_word(&text)) && strcmp(word, "-") != 0)
                ;
        if (!word || !take_word(&text) || !take_word(&text) || !text
                || sscanf(words[WORD_DEVICE], "%u:%u", &major_number, &minor_number) != 2
                || sscanf(words[WORD_ID], "%" SCNu64, &row.id) != 1)
                return -EBADMSG;
        row.device = makedev(major_number, minor_number);
        *ret = row;
        return copy_strings(words[WORD_ROOT], words[WORD_POINT], text, ret);
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

void mount_row_clear(struct mount_row *row)
{
        free(row->root);
        free(row->point);
        free(row->options);
        *row = (struct mount_row){};
}
