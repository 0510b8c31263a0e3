/* SPDX-License-Identifier: MIT */
/* The values of all settings, and the parser of each. */
#include "ublkd/config/setting_values.h"

#include "ublkd/base/log.h"
#include "ublkd/kernel/kernel_feature.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Created by units/sysusers.d. */
#define DEFAULT_READERS "ublk"
#define DEFAULT_ADMINISTRATORS "ublk-admin"

/* Return the index of `text` among `words`, which ends with NULL, or -1. */
static int word_index(const char *const *words, const char *text)
{
        for (int i = 0; words[i]; i++)
                if (strcmp(words[i], text) == 0)
                        return i;
        return -1;
}

/* Of two words the first stands for false. */
static int parse_choice(const char *const *words, const char *text, bool *ret)
{
        int index = word_index(words, text);

        if (index < 0)
                return -EINVAL;
        *ret = index > 0;
        return 0;
}

static int parse_path(const char *text, bool in_file, const char **ret)
{
        if (text[0] == '\0' || (in_file && text[0] != '/') || strlen(text) >= PATH_MAX)
                return -EINVAL;
        *ret = text;
        return 0;
}

/* Return whether `text` is HOST:PORT with an address of loopback. */
static bool is_loopback(const char *text)
{
        const char *colon = strrchr(text, ':');
        struct in_addr address;
        char host[64];
        size_t length = colon ? (size_t)(colon - text) : 0;
        unsigned port;
        int end = 0;

        if (length == 0 || length >= sizeof(host) || colon[1] < '0' || colon[1] > '9')
                return false;
        if (sscanf(colon + 1, "%5u%n", &port, &end) < 1 || colon[1 + end] != '\0' || port > UINT16_MAX)
                return false;
        memcpy(host, text, length);
        host[length] = '\0';
        if (strcmp(host, "[::1]") == 0)
                return true;
        return inet_pton(AF_INET, host, &address) == 1 && (ntohl(address.s_addr) >> 24) == 127;
}

int setting_parse_listen(const char *text, bool in_file, struct setting_values *values)
{
        static const char prefix[] = "tcp://";
        const char *address = text;

        if (strncmp(text, prefix, strlen(prefix)) == 0) {
                if (!is_loopback(text + strlen(prefix)))
                        return -EINVAL;
        } else if (parse_path(text, in_file, &address) < 0)
                return -EINVAL;
        if (values->listen_count == SETTING_LISTEN_MAX)
                return -E2BIG;
        values->listen[values->listen_count++] = address;
        return 0;
}

int setting_parse_state_directory(const char *text, bool in_file, struct setting_values *values)
{
        return parse_path(text, in_file, &values->state_directory);
}

int setting_parse_runtime_directory(const char *text, bool in_file, struct setting_values *values)
{
        return parse_path(text, in_file, &values->runtime_directory);
}

int setting_parse_devices_directory(const char *text, bool in_file _unused_, struct setting_values *values)
{
        const char *path;

        if (parse_path(text, true, &path) < 0 || text[strlen(text) - 1] == '/')
                return -EINVAL;
        if (values->devices_dir_count == SETTING_DIRS_MAX)
                return -E2BIG;
        values->devices_dirs[values->devices_dir_count++] = path;
        return 0;
}

int setting_parse_policy_directory(const char *text, bool in_file, struct setting_values *values)
{
        return parse_path(text, in_file, &values->policy_directory);
}

int setting_parse_cdi_directory(const char *text, bool in_file, struct setting_values *values)
{
        return parse_path(text, in_file, &values->cdi_directory);
}

int setting_parse_worker(const char *text, bool in_file, struct setting_values *values)
{
        return parse_path(text, in_file, &values->worker);
}

int setting_parse_ignored_feature(const char *text, bool in_file _unused_, struct setting_values *values)
{
        for (unsigned bit = 0; kernel_feature_name(bit); bit++)
                if (strcmp(kernel_feature_name(bit), text) == 0) {
                        values->ignored_features |= UINT64_C(1) << bit;
                        return 0;
                }
        return -EINVAL;
}

int setting_parse_unstable_paths(const char *text, bool in_file _unused_, struct setting_values *values)
{
        return parse_choice(
                (const char *const[]){"warn", "refuse", NULL}, text, &values->refuse_unstable_paths);
}

/* "group" is `preset`, "group:NAME" any other one. Return -EINVAL if it is neither. */
static int parse_group(const char *text, const char *preset, const char **ret)
{
        static const char prefix[] = "group:";
        bool named = strncmp(text, prefix, strlen(prefix)) == 0 && text[strlen(prefix)];

        if (strcmp(text, "group") != 0 && !named)
                return -EINVAL;
        *ret = named ? text + strlen(prefix) : preset;
        return 0;
}

int setting_parse_readers(const char *text, bool in_file _unused_, struct setting_values *values)
{
        const char *group = DEFAULT_READERS;
        bool everyone = strcmp(text, "everyone") == 0;

        if (!everyone && parse_group(text, DEFAULT_READERS, &group) < 0)
                return -EINVAL;
        values->everyone_reads = everyone;
        values->readers_group = group;
        return 0;
}

int setting_parse_administrators(const char *text, bool in_file _unused_, struct setting_values *values)
{
        if (strcmp(text, "none") != 0)
                return parse_group(text, DEFAULT_ADMINISTRATORS, &values->administrators_group);
        values->administrators_group = NULL;
        return 0;
}

int setting_parse_polkit(const char *text, bool in_file _unused_, struct setting_values *values)
{
        return parse_choice((const char *const[]){"no", "yes", NULL}, text, &values->asks_polkit);
}

int setting_parse_socket_group(const char *text, bool in_file _unused_, struct setting_values *values)
{
        if (!*text || strpbrk(text, ": \t"))
                return -EINVAL;
        values->socket_group = text;
        return 0;
}

/* Neither that of root nor the number that stands for none. */
int setting_parse_worker_uids(const char *text, bool in_file _unused_, struct setting_values *values)
{
        unsigned long long first, last;
        int end = 0;

        if (sscanf(text, "%10llu-%10llu%n", &first, &last, &end) < 2 || text[end] != '\0' || first == 0
                || last < first || last >= UINT32_MAX)
                return -EINVAL;
        values->first_uid = (uint32_t)first;
        values->uids = (uint32_t)(last - first + 1);
        return 0;
}

int setting_parse_sandbox(const char *text, bool in_file _unused_, struct setting_values *values)
{
        return parse_choice(
                (const char *const[]){"required", "best-effort", NULL}, text, &values->best_effort);
}

int setting_parse_spare_workers(const char *text, bool in_file _unused_, struct setting_values *values)
{
        unsigned count;
        int end = 0;

        if (!isdigit((unsigned char)text[0]) || sscanf(text, "%4u%n", &count, &end) < 1 || text[end] != '\0'
                || count > SETTING_SPARES_MAX)
                return -EINVAL;
        values->spare_workers = count;
        return 0;
}

int setting_parse_allow_fault_target(const char *text, bool in_file _unused_, struct setting_values *values)
{
        return parse_choice((const char *const[]){"no", "yes", NULL}, text, &values->allow_fault_target);
}

int setting_parse_upgrade_workers(const char *text, bool in_file _unused_, struct setting_values *values)
{
        return parse_choice((const char *const[]){"keep", "replace", NULL}, text, &values->replace_workers);
}

int setting_parse_log_level(const char *text, bool in_file _unused_, struct setting_values *values)
{
        static const char *const names[] = {"error", "warning", "info", "debug", NULL};
        static const int levels[] = {LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG};
        int index = word_index(names, text);

        if (index < 0)
                return -EINVAL;
        values->log_level = levels[index];
        return 0;
}
