/* SPDX-License-Identifier: MIT */
/* cdi_spec: the files, on a tmpfs of its own. With --write DIRECTORY it writes one of each kind, for cdi_schema_test.py. Needs
 * root. */
#include "ublkd/nodes/cdi_spec.h"
#include "ublkd/nodes/cdi_directory.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/file_io.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { TENANT = 1000 };

#define UID "11111111-2222-4333-8444-555555555555"

static char place[64], directory[80];
static struct cdi_specs *specs;

static struct cdi_spec of_root(void)
{
        return (struct cdi_spec){.name = "data-1.x",
                .uid = UID,
                .node = "/dev/ublkb7",
                .dev = makedev(259, 4),
                .owner_gid = 6};
}

static struct cdi_spec of_tenant(void)
{
        struct cdi_spec spec = of_root();

        spec.tenant = TENANT;
        spec.node = "/dev/ublk/private/" UID;
        spec.read_only = true;
        return spec;
}

static char *content(const char *name)
{
        char path[256], *text = NULL;

        snprintf(path, sizeof(path), "%s/%s", directory, name);
        return read_whole_at(AT_FDCWD, path, 4096, &text) < 0 ? NULL : text;
}

static void check_content(const char *name, const char *wanted)
{
        _cleanup_free_ char *text = content(name);

        CHECK_STR(text, wanted);
}

/* Return 0 or the errno of an open() of the tenant. */
static int open_as_tenant(const char *name, int flags)
{
        char path[256];
        int status = -1;
        pid_t pid;

        snprintf(path, sizeof(path), "%s/%s", directory, name);
        pid = fork();
        if (pid == 0)
                _exit(setresgid(TENANT, TENANT, TENANT) < 0 || setresuid(TENANT, TENANT, TENANT) < 0 ? 255
                        : open(path, flags | O_CLOEXEC) < 0                                          ? errno
                                                                                                     : 0);
        CHECK_INT(waitpid(pid, &status, 0), pid);
        return WEXITSTATUS(status);
}

static void test_a_disk_of_the_administrators_is_a_node(void)
{
        struct cdi_spec spec = of_root();

        CHECK_INT(cdi_spec_write(specs, &spec), 0);
        check_content("ublkd-data-1.x.json",
                "{\"cdiVersion\": \"0.5.0\", \"kind\": \"ublkd.io/disk\", \"devices\": [{\"name\": "
                "\"data-1.x\", \"containerEdits\": {\"deviceNodes\": [{\"path\": "
                "\"/dev/ublk/by-name/data-1.x\", \"hostPath\": \"/dev/ublkb7\", \"type\": \"b\", \"major\": "
                "259, \"minor\": 4, \"permissions\": \"rwm\", \"uid\": 0, \"gid\": 6}]}}]}\n");
        CHECK_INT(open_as_tenant("ublkd-data-1.x.json", O_RDONLY), EACCES);
        spec.read_only = true;
        CHECK_INT(cdi_spec_write(specs, &spec), 0); /* again, as its spec has changed */
        CHECK_INT(cdi_spec_remove(specs, &spec), 0);
        CHECK(!content("ublkd-data-1.x.json"));
        CHECK_INT(cdi_spec_remove(specs, &spec), 0);
}

/* An engine of root reads the file, too, and what it describes is done as root. */
static void test_a_tenant_reads_its_file_and_cannot_change_it(void)
{
        const char *name = "ublkd-@" UID ".json"; /* the name of the device is not in it */
        struct cdi_spec spec = of_tenant();
        char path[256];
        struct stat st;

        CHECK_INT(cdi_spec_write(specs, &spec), 0);
        check_content(name,
                "{\"cdiVersion\": \"0.5.0\", \"kind\": \"ublkd.io/disk\", \"devices\": [{\"name\": "
                "\"data-1.x\", \"containerEdits\": {\"mounts\": [{\"hostPath\": \"/dev/ublk/private/" UID
                "\", \"containerPath\": \"/dev/ublk/by-name/data-1.x\", \"type\": \"bind\", \"options\": "
                "[\"bind\", \"ro\", \"nosuid\", \"noexec\"]}]}}]}\n");
        CHECK_INT(open_as_tenant(name, O_RDONLY), 0);
        CHECK_INT(open_as_tenant(name, O_RDWR), EACCES);
        snprintf(path, sizeof(path), "%s/%s", directory, name);
        CHECK_INT(stat(path, &st), 0);
        CHECK_INT(st.st_uid, 0);
        CHECK_INT(st.st_mode & 07777, 0440); /* the mask of the list; the group has nothing */
        CHECK_INT(cdi_spec_remove(specs, &spec), 0);
        CHECK(!content(name));
}

static bool has_file(const char *name)
{
        _cleanup_free_ char *text = content(name);

        return text != NULL;
}

/* An administrator may give a device any valid name. */
static void test_a_device_with_the_name_of_a_uid_replaces_no_file(void)
{
        struct cdi_spec root = of_root(), tenant = of_tenant();

        root.name = UID;
        CHECK_INT(cdi_spec_write(specs, &tenant), 0);
        CHECK_INT(cdi_spec_write(specs, &root), 0);
        CHECK_INT(cdi_spec_remove(specs, &root), 0);
        CHECK(has_file("ublkd-@" UID ".json"));
        CHECK_INT(cdi_spec_write(specs, &root), 0);
        CHECK_INT(cdi_spec_remove(specs, &tenant), 0);
        CHECK(has_file("ublkd-" UID ".json"));
        CHECK(!has_file("ublkd-@" UID ".json"));
        CHECK_INT(cdi_spec_remove(specs, &root), 0);
}

static void write_foreign(const char *name)
{
        char path[256];

        snprintf(path, sizeof(path), "%s/%s", directory, name);
        CHECK_INT(replace_text_at(AT_FDCWD, path, 0644, "theirs"), 0);
}

static void test_files_of_others_stay(void)
{
        struct cdi_specs *others = NULL;
        struct cdi_spec spec = of_root(), theirs = of_root();
        char path[256];

        theirs.name = "theirs";
        CHECK_INT(cdi_specs_open(directory, "/run/another", &others), 0);
        CHECK_INT(cdi_spec_write(others, &theirs), 0);
        write_foreign("ublkd-data-1.x.json");
        snprintf(path, sizeof(path), "%s/ublkd-link.json", directory);
        CHECK_INT(symlink("/etc/passwd", path), 0);
        CHECK_INT(cdi_spec_write(specs, &spec), -EEXIST);
        CHECK_INT(cdi_spec_write(specs, &theirs), -EEXIST);
        spec.name = "link";
        CHECK_INT(cdi_spec_write(specs, &spec), -EEXIST);
        CHECK_INT(cdi_spec_remove(specs, &spec), 0);
        spec.name = "mine";
        CHECK_INT(cdi_spec_write(specs, &spec), 0);
        CHECK_INT(cdi_specs_clear(specs), 1);
        CHECK(!content("ublkd-mine.json"));
        check_content("ublkd-data-1.x.json", "theirs");
        CHECK_INT(access(path, F_OK), 0);
        CHECK_INT(cdi_specs_clear(others), 1);
        cdi_specs_free(others);
}

static void test_a_directory_that_others_may_write_to_is_refused(void)
{
        struct cdi_specs *other = NULL;
        char path[160];

        snprintf(path, sizeof(path), "%s/open", place);
        CHECK_INT(mkdir(path, 0755), 0);
        CHECK_INT(chmod(path, 0777), 0);
        CHECK_INT(cdi_specs_open(path, "/run/ublkd", &other), -EPERM);
        CHECK_INT(chmod(path, 0755), 0);
        CHECK_INT(chown(path, TENANT, 0), 0);
        CHECK_INT(cdi_specs_open(path, "/run/ublkd", &other), -EPERM);
        snprintf(path, sizeof(path), "%s/link", place);
        CHECK_INT(symlink(directory, path), 0);
        CHECK_INT(cdi_specs_open(path, "/run/ublkd", &other), -ELOOP);
        snprintf(path, sizeof(path), "%s/none/cdi", place);
        CHECK_INT(cdi_specs_open(path, "/run/ublkd", &other), -ENOENT);
}

static int use(const char *name, int *ret_left)
{
        char path[160];

        snprintf(path, sizeof(path), "%s/%s", place, name);
        return cdi_directory_use(place, *name ? path : NULL, "/run/ublkd", ret_left);
}

static void write_to(const char *name, const char *file)
{
        char path[320];
        struct cdi_specs *other = NULL;
        struct cdi_spec spec = of_root();

        snprintf(path, sizeof(path), "%s/%s", place, name);
        CHECK_INT(cdi_specs_open(path, "/run/ublkd", &other), 0);
        CHECK_INT(cdi_spec_write(other, &spec), 0);
        cdi_specs_free(other);
        snprintf(path, sizeof(path), "%s/%s/%s", place, name, file);
        CHECK_INT(access(path, F_OK), 0);
}

static bool is_there(const char *name)
{
        char path[160];

        snprintf(path, sizeof(path), "%s/%s", place, name);
        return access(path, F_OK) == 0;
}

static void test_a_directory_that_is_not_used_any_more_is_cleared(void)
{
        int left;
        char path[160];

        CHECK_INT(use("", &left), 0); /* never used */
        CHECK(!is_there(CDI_DIRECTORIES_FILE));
        CHECK_INT(use("one", &left), 0);
        write_to("one", "ublkd-data-1.x.json");
        CHECK_INT(use("one", &left), 0);
        CHECK(is_there("one/ublkd-data-1.x.json")); /* the caller clears it */
        CHECK_INT(use("two", &left), 0);
        CHECK_INT(left, 0);
        CHECK(!is_there("one/ublkd-data-1.x.json"));
        write_to("two", "ublkd-data-1.x.json");
        snprintf(path, sizeof(path), "%s/two", place);
        CHECK_INT(mount(path, path, NULL, MS_BIND, NULL), 0);
        CHECK_INT(mount(NULL, path, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL), 0);
        CHECK_INT(use("", &left), 0);
        CHECK_INT(left, -EROFS);
        CHECK_INT(umount(path), 0);
        CHECK(is_there("two/ublkd-data-1.x.json"));
        CHECK_INT(use("three", &left), 0); /* it was not lost */
        CHECK_INT(left, 0);
        CHECK(!is_there("two/ublkd-data-1.x.json"));
        CHECK_INT(use("", &left), 0); /* it was never made */
        CHECK_INT(left, 0);
}

static int write_samples(const char *to)
{
        struct cdi_specs *samples = NULL;
        struct cdi_spec root = of_root(), tenant = of_tenant();
        int r = cdi_specs_open(to, "/run/ublkd", &samples);

        if (r >= 0)
                r = cdi_spec_write(samples, &root);
        if (r >= 0)
                r = cdi_spec_write(samples, &tenant);
        cdi_specs_free(samples);
        return r == -EOPNOTSUPP || r == -EPERM ? CHECK_SKIP : r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static bool can_write(void)
{
        snprintf(place, sizeof(place), "/tmp/ublkd-test-cdi-XXXXXX");
        if (geteuid() != 0 || !mkdtemp(place))
                return false;
        snprintf(directory, sizeof(directory), "%s/cdi", place);
        return unshare(CLONE_NEWNS) >= 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) >= 0
               && mount("tmpfs", place, "tmpfs", 0, "mode=0755") >= 0
               && setxattr(place, "trusted.ublkd.cdi", "x", 1, 0) >= 0;
}

int main(int argc, char *argv[])
{
        bool can;

        if (argc == 3 && strcmp(argv[1], "--write") == 0)
                return write_samples(argv[2]);
        can = can_write();
        if (can && CHECK_INT(cdi_specs_open(directory, "/run/ublkd", &specs), 0)) {
                test_a_disk_of_the_administrators_is_a_node();
                test_a_tenant_reads_its_file_and_cannot_change_it();
                test_a_device_with_the_name_of_a_uid_replaces_no_file();
                test_files_of_others_stay();
                test_a_directory_that_others_may_write_to_is_refused();
                test_a_directory_that_is_not_used_any_more_is_cleared();
        }
        cdi_specs_free(specs);
        (void)umount2(place, MNT_DETACH);
        (void)rmdir(place);
        return can || check_failures > 0 ? check_report() : CHECK_SKIP;
}
