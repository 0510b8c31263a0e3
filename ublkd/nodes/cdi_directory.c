/* SPDX-License-Identifier: MIT */
/* A directory leaves the list when it has none of our files any more. */
#include "ublkd/nodes/cdi_directory.h"
#include "ublkd/nodes/cdi_spec.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_SIZE_MAX = 64 * 1024 };

int cdi_directory_clear(const char *directory, const char *instance)
{
        struct cdi_specs *specs = NULL;
        int r = cdi_specs_open_existing(directory, instance, &specs);

        if (r >= 0)
                r = cdi_specs_clear(specs);
        cdi_specs_free(specs);
        return r == -ENOENT ? 0 : r;
}

/* Clear the directories of the old list, which is changed. */
static void clear_others(char *old, const char *directory, const char *instance, FILE *list, int *ret_left)
{
        const char *line;

        while ((line = strsep(&old, "\n"))) {
                int r;

                if (*line == '\0' || (directory && strcmp(line, directory) == 0))
                        continue;
                r = cdi_directory_clear(line, instance);
                if (r < 0) {
                        *ret_left = r;
                        fprintf(list, "%s\n", line);
                }
        }
}

int cdi_directory_use(const char *state_dir, const char *directory, const char *instance, int *ret_left)
{
        _cleanup_close_ int state = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        _cleanup_free_ char *old = NULL, *text = NULL, *before = NULL;
        size_t size = 0;
        FILE *list;
        int r = state < 0 ? -errno : read_whole_at(state, CDI_DIRECTORIES_FILE, LIST_SIZE_MAX, &old);

        *ret_left = 0;
        if (r < 0 && r != -ENOENT)
                return r;
        if (!old && !directory)
                return 0;
        if (directory && strchr(directory, '\n'))
                return -EINVAL;
        before = strdup(old ? old : "");
        list = open_memstream(&text, &size);
        if (!before || !list) {
                if (list)
                        (void)fclose(list);
                return -ENOMEM;
        }
        if (old)
                clear_others(old, directory, instance, list, ret_left);
        if (directory)
                fprintf(list, "%s\n", directory);
        if (fclose(list) != 0)
                return -ENOMEM;
        return strcmp(before, text) == 0 ? 0 : replace_text_at(state, CDI_DIRECTORIES_FILE, 0600, text);
}
