/* SPDX-License-Identifier: MIT */
/* One line of mountinfo, taken apart: see proc_pid_mountinfo(5). */
#include "ublkd/kernel/mount_line.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/values/path_text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Cut the first `count` words off *text, which is NULL if they were all. Return whether there are as many; a word may be empty. */
static bool take_words(char **text, char *words[], size_t count)
{
        for (size_t i = 0; i < count; i++) {
                words[i] = strsep(text, " ");
                if (!words[i])
                        return false;
        }
        return true;
}

/* `words`: those that are there only for some mounts, or NULL. */
static bool has_group_of_peers(char *words)
{
        static const char mark[] = "shared:";
        const char *word;

        while ((word = strsep(&words, " ")))
                if (strncmp(word, mark, strlen(mark)) == 0)
                        return true;
        return false;
}

/* "36 35 98:0 /root /point rw,noatime master:1 - ext4 /dev/source rw,errors=continue": the number of words
 * before " - " varies. The kernel escapes the spaces in a path, but not the emptiness of a source. */
int mount_line_parse(char *line, struct mount_line *ret)
{
        enum { ID, PARENT, DEVICE, ROOT, POINT, FLAGS, _HEAD_MAX };
        enum { TYPE, SOURCE, _TAIL_MAX };
        char *head[_HEAD_MAX], *tail[_TAIL_MAX], *separator = strstr(line, " - "), *rest;
        struct mount_line mount;

        if (!separator)
                return -EBADMSG;
        *separator = '\0';
        rest = separator + strlen(" - ");
        if (!take_words(&line, head, _HEAD_MAX) || !take_words(&rest, tail, _TAIL_MAX) || !rest
                || sscanf(head[ID], "%" SCNu64, &mount.id) != 1
                || sscanf(head[PARENT], "%" SCNu64, &mount.parent) != 1)
                return -EBADMSG;
        path_unescape(head[ROOT]);
        path_unescape(head[POINT]);
        path_unescape(tail[SOURCE]);
        mount.device = head[DEVICE];
        mount.root = head[ROOT];
        mount.point = head[POINT];
        mount.flags = head[FLAGS];
        mount.shared = has_group_of_peers(line);
        mount.type = tail[TYPE];
        mount.source = tail[SOURCE];
        mount.options = rest;
        *ret = mount;
        return 0;
}
