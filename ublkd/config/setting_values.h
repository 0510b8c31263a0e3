/* SPDX-License-Identifier: MIT */
/* The values of all settings, and the parser of each. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SETTING_LISTEN_MAX = 16, SETTING_DIRS_MAX = 16, SETTING_SPARES_MAX = 64 };

/* Texts belong to the text that was parsed. */
struct setting_values {
        const char *listen[SETTING_LISTEN_MAX];
        size_t listen_count;
        const char *state_directory, *runtime_directory;
        const char *devices_dirs[SETTING_DIRS_MAX];
        size_t devices_dir_count; /* 0: the usual ones */
        const char *policy_directory;
        const char *cdi_directory;  /* NULL: none */
        const char *worker;         /* NULL: ublkd chooses */
        uint64_t ignored_features;  /* bit N: kernel_feature_name(N) */
        bool refuse_unstable_paths; /* do not warn, refuse */
        bool everyone_reads;
        const char *readers_group;        /* its name */
        const char *administrators_group; /* its name; NULL: none */
        bool asks_polkit;                 /* whether other users may change devices */
        const char *socket_group;         /* its name; NULL: every user may connect */
        uint32_t first_uid, uids;         /* of workers */
        bool best_effort;                 /* a worker serves with the walls that it can have */
        unsigned spare_workers;           /* SETTING_SPARES_MAX at most */
        bool allow_fault_target;          /* in specs */
        bool replace_workers;             /* that run another version of their program */
        int log_level;                    /* for log_set_level() */
};

/* Set the value, or add it to a list. in_file: a path must be absolute; else it may be relative to the working
 * directory. Return 0; -EINVAL: it is not valid; -E2BIG: the list is full. On failure `values` is unchanged. */
typedef int setting_parse(const char *text, bool in_file, struct setting_values *values);

setting_parse setting_parse_listen, setting_parse_state_directory, setting_parse_runtime_directory,
        setting_parse_devices_directory, setting_parse_policy_directory, setting_parse_cdi_directory,
        setting_parse_worker, setting_parse_ignored_feature, setting_parse_unstable_paths,
        setting_parse_readers, setting_parse_administrators, setting_parse_polkit, setting_parse_socket_group,
        setting_parse_worker_uids, setting_parse_sandbox, setting_parse_spare_workers,
        setting_parse_upgrade_workers, setting_parse_allow_fault_target, setting_parse_log_level;
