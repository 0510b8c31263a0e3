/* SPDX-License-Identifier: MIT */
/* A directory that files of a configuration are looked for in. */
#include "tests/unit/remove_tree.h"
#include "tests/unit/ublkd/config/config_root.h"

#include "ublkd/base/file_io.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

static char root[PATH_MAX];

void config_root_make(void)
{
        strcpy(root, "/tmp/config-root-XXXXXX");
        assert(mkdtemp(root));
}

void config_root_remove(void)
{
        assert(remove_tree(root) == 0);
}

const char *config_root(void)
{
        return root;
}

const char *config_root_path(const char *name)
{
        static char paths[8][PATH_MAX + 256];
        static unsigned next;
        char *path = paths[next++ % ARRAY_SIZE(paths)];

        snprintf(path, sizeof(paths[0]), "%s/%s", root, name);
        return path;
}

static const char *make_above(const char *name)
{
        const char *path = config_root_path(name);
        _cleanup_free_ char *above = strndup(path, (size_t)(strrchr(path, '/') - path));

        assert(above && make_dirs(above, 0755) >= 0);
        return path;
}

void config_root_write_bytes(const char *name, const char *bytes, size_t size)
{
        _cleanup_close_ int fd = open(make_above(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        assert(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
}

void config_root_write(const char *name, const char *text)
{
        config_root_write_bytes(name, text, strlen(text));
}

void config_root_link(const char *name, const char *target)
{
        assert(symlink(target, make_above(name)) == 0);
}

struct config *config_root_load(void)
{
        struct config *config;

        assert(config_load(&(const struct config_request){.root = root}, &config) == 0);
        return config;
}

const char *config_root_value(const struct config *config, const char *key)
{
        static char text[4096];
        const struct config_setting *set = &config->settings[setting_find(key) - settings];

        text[0] = '\0';
        for (size_t i = 0; i < set->count; i++) {
                assert(strlen(text) + strlen(set->items[i].text) + 2 < sizeof(text));
                strcat(strcat(text, i ? "," : ""), set->items[i].text);
        }
        return text;
}

bool config_root_has_problem(
        const struct config *config, const char *file, const char *begin, const char *end)
{
        const char *path = config_root_path(file);

        for (size_t i = 0; i < config->problems.count; i++) {
                const char *detail = config->problems.items[i].detail;
                size_t length = strlen(detail);

                if (strncmp(detail, path, strlen(path)) == 0
                        && strncmp(detail + strlen(path), begin, strlen(begin)) == 0 && length >= strlen(end)
                        && strcmp(detail + length - strlen(end), end) == 0)
                        return true;
        }
        return false;
}
