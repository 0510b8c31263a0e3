/* SPDX-License-Identifier: MIT */
/* Opening backing stores: what is reported of good ones, and in which words bad ones are refused. */
#include "tests/target/scratch.h"
#include "tests/target/target_host.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"

#include <sys/stat.h>

static struct scratch scratch;

static int open_spec(struct target_host *host, const char *path, const char *target_more, const char *more,
        struct problem_list *problems)
{
        char spec[1024];

        snprintf(spec, sizeof(spec), "{\"target\":{\"type\":\"loop\",\"path\":\"%s\"%s}%s}", path,
                target_more, more);
        return target_host_open(host, spec, problems);
}

static void bad(const char *path, const char *target_more, const char *more, const char *pointer,
        const char *reason, const char *in_detail)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct target_host host;
        bool good = CHECK(open_spec(&host, path, target_more, more, &problems) < 0);

        if (good && (good = CHECK_INT(problems.count, 1))) {
                good = CHECK_STR(problems.items[0].pointer, pointer)
                       && CHECK_STR(problems.items[0].reason, reason)
                       && CHECK(strstr(problems.items[0].detail, in_detail));
                if (!good)
                        fprintf(stderr, "  \"%s\"\n", problems.items[0].detail);
        }
        if (!good)
                fprintf(stderr, "  for %s %s %s\n", path, target_more, more);
        target_host_close(&host);
}

/* A size does not make it valid. */
static void test_pseudo_files(void)
{
        static const char *const files[] = {"/proc/self/status", "/proc/kcore", "/sys/kernel/notes",
                "/sys/kernel/debug/sleep_time", "/sys/kernel/tracing/README", "/sys/fs/cgroup/cgroup.procs"};
        char link[512];

        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                if (access(files[i], R_OK) == 0)
                        bad(files[i], "", ",\"readOnly\":true", "/target/path", "BackingFileUnsuitable",
                                "in which the kernel shows its state");
        snprintf(link, sizeof(link), "%s/link", scratch.path);
        CHECK_INT(symlink("/proc/self/status", link), 0);
        bad(link, "", ",\"readOnly\":true", "/target/path", "BackingFileUnsuitable", "a file of procfs");
        CHECK_INT(unlink(link), 0);
}

static void test_faults(void)
{
        char file[512], empty[512], fifo[512], missing[512];

        CHECK_INT(scratch_file(&scratch, "file", 1 << 20, file, sizeof(file)), 0);
        CHECK_INT(scratch_file(&scratch, "empty", 0, empty, sizeof(empty)), 0);
        snprintf(fifo, sizeof(fifo), "%s/fifo", scratch.path);
        CHECK_INT(mkfifo(fifo, 0600), 0);
        snprintf(missing, sizeof(missing), "%s/missing", scratch.path);

        bad(missing, "", "", "/target/path", "BackingFileMissing", "does not exist");
        bad(empty, "", "", "/target/path", "BackingFileEmpty", "'truncate -s");
        bad(scratch.path, "", "", "/target/path", "BackingFileUnsuitable", "a directory");
        bad(fifo, "", "", "/target/path", "BackingFileUnsuitable", "neither a file nor a disk");
        bad("/dev/zero", "", "", "/target/path", "BackingFileUnsuitable", "a character device");
        bad(file, ",\"offset\":1048576", "", "/target/offset", "OffsetBeyondEnd", "has 1048576 bytes");
        bad(file, "", ",\"size\":\"2MiB\"", "/size", "BackingTooSmall", "grow the backing store");
        bad(file, ",\"offset\":524288", ",\"size\":\"1MiB\"", "/size", "BackingTooSmall", "offers 512KiB");
        bad(file, "", ",\"blockSize\":4096,\"size\":1000448", "/size", "SizeNotAMultiple", "not a multiple");
        test_pseudo_files();
        strcat(missing, "/below");
        bad(missing, "", "", "/target/path", "BackingFileMissing", "does not exist");
        strcat(file, "/below");
        bad(file, "", "", "/target/path", "BackingFileMissing", "not a directory");
}

static void test_not_permitted(void)
{
        char file[512];

        if (geteuid() == 0)
                return; /* may do everything */
        CHECK_INT(scratch_file(&scratch, "secret", 1 << 20, file, sizeof(file)), 0);
        CHECK_INT(chmod(file, 0400), 0);
        bad(file, "", "", "/target/path", "BackingFileNotPermitted", "check its mode");
        CHECK_INT(chmod(file, 0), 0);
        bad(file, "", ",\"readOnly\":true", "/target/path", "BackingFileNotPermitted", "check its mode");
}

static void test_facts(void)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct target_host host;
        const struct disk_params *params = &host.disk.params;
        char file[512], key[128];
        struct stat stat_buffer;

        CHECK_INT(scratch_file(&scratch, "facts", 100000, file, sizeof(file)), 0);
        CHECK_INT(stat(file, &stat_buffer), 0);
        CHECK_INT(open_spec(&host, file, ",\"offset\":512,\"directIo\":\"off\"", "", &problems), 0);
        CHECK_INT(params->size, (100000 - 512) / 512 * 512);
        CHECK_INT(params->logical_block_size, 512);
        CHECK(params->volatile_cache && params->fua && !params->read_only);
        CHECK(params->max_write_zeroes_size > 0);
        CHECK(params->claims.items[0].writes);
        CHECK_INT(params->claims.items[0].start, 512);
        CHECK_INT(params->claims.items[0].end, 512 + params->size);
        snprintf(key, sizeof(key), ":%ju", (uintmax_t)stat_buffer.st_ino);
        CHECK(params->claims.items[0].key && strncmp(params->claims.items[0].key, "file:", 5) == 0
                && strstr(params->claims.items[0].key, key));
        target_host_close(&host);

        CHECK_INT(open_spec(&host, file, "", ",\"readOnly\":true,\"size\":4096", &problems), 0);
        CHECK_INT(params->size, 4096);
        CHECK(params->read_only && !params->claims.items[0].writes);
        CHECK_INT(params->max_discard_size, 0);
        CHECK_INT(target_host_one(&host, IO_READ, 0, 0, 4096), 4096);
        CHECK_INT((unsigned char)target_host_data(&host, 0)[77], scratch_pattern(77));
        CHECK_INT(target_host_one(&host, IO_READ, 0, 4096, 4096), -EIO);
        CHECK_INT(target_host_one(&host, IO_WRITE, 0, 0, 4096), -EROFS);
        CHECK_INT(target_host_one(&host, IO_WRITE_ZEROES, 0, 0, 4096), -EROFS);
        CHECK_INT(target_host_one(&host, IO_DISCARD, 0, 0, 4096), -EROFS);
        CHECK_INT(target_host_one(&host, IO_FLUSH, 0, 0, 0), 0);
        target_host_close(&host);
        CHECK_INT(problems.count, 0);
}

/* Opening must not change the file, whatever was tried on it. */
static void test_untouched(void)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct target_host host;
        struct stat before, after;
        char file[512];

        CHECK_INT(scratch_file(&scratch, "untouched", 70000, file, sizeof(file)), 0);
        CHECK_INT(stat(file, &before), 0);
        CHECK_INT(open_spec(&host, file, "", "", &problems), 0);
        target_host_close(&host);
        CHECK_INT(stat(file, &after), 0);
        CHECK_INT(after.st_size, before.st_size);
        CHECK_INT(after.st_blocks, before.st_blocks);
}

int main(void)
{
        if (!io_uring_is_there())
                return CHECK_SKIP;
        if (!CHECK_INT(scratch_make(&scratch, getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp"), 0))
                return check_report();
        test_faults();
        test_not_permitted();
        test_facts();
        test_untouched();
        scratch_remove(&scratch);
        return check_report();
}
