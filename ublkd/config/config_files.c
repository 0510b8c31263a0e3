/* SPDX-License-Identifier: MIT */
/* The settings in files.
 *
 * A fault is ignored, with a warning, so that the disks are back after a boot. It is not ignored where ublkd could then
 * serve from another database, or open more than was meant: if the key is that of a setting with `refuses`, or looks
 * like it, and if a file cannot be read at all. */
#include "ublkd/config/config_files.h"

#include "ublkd/base/printable.h"
#include "ublkd/config/config_paths.h"
#include "ublkd/config/config_text.h"
#include "ublkd/config/config_values.h"
#include "ublkd/config/setting.h"

#include <stdarg.h>
#include <string.h>

static const char section_name[] = "Manager";

struct file {
        struct config *config;
        const char *path;
        int error; /* -ENOMEM */
};

/* setting: that the fault concerns; NULL: none. */
static bool is_harmless(const struct setting *setting)
{
        return !setting || !setting->refuses;
}

static int _printf_(4, 0) add_problem(
        struct config *config, bool harmless, const char *place, const char *format, va_list arguments)
{
        _cleanup_free_ char *what = NULL;

        if (vasprintf(&what, format, arguments) < 0)
                return -ENOMEM;
        make_printable(what);
        config->refused |= !harmless;
        return problem_add(&config->problems, EINVAL, "", "ConfigurationInvalid", "%s: %s%s", place, what,
                harmless ? " (ignored)" : " (ublkd does not start with it)");
}

static void _printf_(4, 5) report(struct file *file, unsigned line, bool harmless, const char *format, ...)
{
        _cleanup_free_ char *place = NULL;
        va_list arguments;

        if (asprintf(&place, "%s:%u", file->path, line) < 0) {
                file->error = -ENOMEM;
                return;
        }
        va_start(arguments, format);
        if (add_problem(file->config, harmless, place, format, arguments) < 0)
                file->error = -ENOMEM;
        va_end(arguments);
}

static int _printf_(3, 4) report_path(struct config *config, const char *path, const char *format, ...)
{
        va_list arguments;
        int r;

        va_start(arguments, format);
        r = add_problem(config, false, path, format, arguments);
        va_end(arguments);
        return r;
}

/* systemd also ignores sections that begin with X-, without a word. */
static bool is_of_others(const char *section)
{
        return strncmp(section, "X-", 2) == 0;
}

static void take_unknown(struct file *file, const struct config_line *line)
{
        const struct setting *meant = setting_meant(line->key);

        if (meant)
                report(file, line->number, is_harmless(meant), "%.64s: the key is unknown; did you mean %s?",
                        line->key, meant->key);
        else
                report(file, line->number, true, "%.64s: the key is unknown; ublkd.conf(5) has all keys",
                        line->key);
}

static void set(struct file *file, const struct config_line *line, const struct setting *setting)
{
        _cleanup_free_ char *place = NULL;
        int r = asprintf(&place, "%s:%u", file->path, line->number) < 0 ? -ENOMEM : 0;

        if (r >= 0)
                r = config_values_set(file->config, setting, line->value, true, place);
        if (r == -ENOMEM)
                file->error = r;
        else if (r == -E2BIG)
                report(file, line->number, is_harmless(setting),
                        "%s: there are more than %zu values; remove some", setting->key, setting->list_max);
        else if (r < 0)
                report(file, line->number, is_harmless(setting), "%s: '%.128s' is not valid; %s",
                        setting->key, line->value, setting->wanted);
}

/* A key with a fault in its line, or in a section where ublkd does not look for it, may have been meant. */
static void take_fault(struct file *file, const struct config_line *line)
{
        bool harmless = is_harmless(setting_meant(line->key));

        if (line->key[0])
                report(file, line->number, harmless, "%.64s: %s", line->key, line->fault);
        else
                report(file, line->number, harmless, "%s", line->fault);
}

static void take_misplaced(struct file *file, const struct config_line *line)
{
        const struct setting *meant = setting_meant(line->key);

        if (!line->section)
                report(file, line->number, is_harmless(meant),
                        "%.64s: the line stands before any section; write [%s] "
                        "above it",
                        line->key, section_name);
        else if (!is_harmless(meant))
                report(file, line->number, false,
                        "%.64s: the line stands in the section [%.64s]; move it to [%s]", line->key,
                        line->section, section_name);
}

static void take_line(void *userdata, const struct config_line *line)
{
        struct file *file = userdata;
        bool ours = line->section && strcmp(line->section, section_name) == 0;
        const struct setting *setting;

        if (line->section && is_of_others(line->section) && !line->fault)
                return;
        if (line->fault) {
                take_fault(file, line);
                return;
        }
        if (!line->key) {
                if (!ours)
                        report(file, line->number, true, "[%.64s]: the section is unknown; write [%s]",
                                line->section, section_name);
                return;
        }
        if (!ours) {
                take_misplaced(file, line);
                return;
        }
        setting = setting_find(line->key);
        if (!setting)
                take_unknown(file, line);
        else if (line->value[0])
                set(file, line, setting);
        else
                config_values_reset(file->config, setting);
}

int config_files_take(struct config *config, const char *path, char *text, size_t size)
{
        struct file file = {.config = config, .path = path};

        config_text_read(text, size, take_line, &file);
        return file.error;
}

static int read_file(struct config *config, const char *path)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        int r = config_paths_read(path, &text, &size);

        if (r == -ENOMEM)
                return r;
        if (r == -EFBIG)
                return report_path(config, path, "the file is larger than 1 MiB; make it smaller");
        if (r == -EBADMSG)
                return report_path(
                        config, path, "this is not a file; replace it by one, or by a link to /dev/null");
        if (r < 0)
                return report_path(config, path, "the file cannot be read: %s; correct that", strerror(-r));
        return config_files_take(config, path, text, size);
}

int config_files_read(struct config *config, const char *root)
{
        _cleanup_(config_paths_clear) struct config_paths paths = {};
        int r = config_paths_list(root, &paths);

        if (r < 0 && !paths.failed)
                return r;
        if (r < 0)
                r = report_path(config, paths.failed, "looking for files failed: %s; correct that",
                        strerror(-paths.error));
        for (size_t i = 0; r >= 0 && i < paths.count; i++)
                r = read_file(config, paths.items[i]);
        return r;
}
