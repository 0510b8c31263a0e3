/* SPDX-License-Identifier: MIT */
/* The runtime directory: one holder, sockets of workers, paths of any length. */
#include "ublkd/runtime/runtime_dir.h"

#include "tests/unit/check.h"
#include "tests/unit/remove_tree.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char uid[] = "0b7a1c9e-0000-4000-8000-1234567890ab";

static mode_t mode_of(const char *dir, const char *name)
{
        char path[PATH_MAX];
        struct stat st = {};

        snprintf(path, sizeof(path), "%s%s", dir, name);
        CHECK_INT(lstat(path, &st), 0);
        return st.st_mode;
}

static struct runtime_dir *open_dir(const char *path)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct runtime_dir *dir = NULL;

        CHECK_INT(runtime_dir_open(path, &dir, &problems), 0);
        CHECK_INT(problems.count, 0);
        return dir;
}

static void check_refused(const char *path, int error, const char *reason)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct runtime_dir *dir = NULL;

        CHECK_INT(runtime_dir_open(path, &dir, &problems), -error);
        CHECK(!dir);
        if (!CHECK_INT(problems.count, 1))
                return;
        CHECK_STR(problems.items[0].reason, reason);
        CHECK(strstr(problems.items[0].detail, path));
}

static void test_modes(const char *path)
{
        mode_t umask_before = umask(0077);
        struct runtime_dir *dir = open_dir(path);
        int fd = runtime_dir_bind_worker(dir, uid);
        char name[64];

        CHECK(fd >= 0);
        CHECK_STR(runtime_dir_path(dir), path);
        CHECK_INT(mode_of(path, ""), S_IFDIR | 0755);
        CHECK_INT(mode_of(path, "/workers"), S_IFDIR | 0700);
        snprintf(name, sizeof(name), "/workers/%s.sock", uid);
        CHECK_INT(mode_of(path, name), S_IFSOCK | 0600);
        close(fd);
        runtime_dir_free(dir);
        umask(umask_before);
}

static void test_one_holder(const char *path)
{
        struct runtime_dir *dir = open_dir(path);
        char pid[32];
        int status;
        pid_t other;

        snprintf(pid, sizeof(pid), "(pid %d)", getpid());
        other = fork();
        if (other == 0) {
                _cleanup_problems_ struct problem_list problems = {};
                struct runtime_dir *second = NULL;

                CHECK_INT(runtime_dir_open(path, &second, &problems), -EBUSY);
                if (CHECK_INT(problems.count, 1)) {
                        CHECK_STR(problems.items[0].reason, "RuntimeDirInUse");
                        CHECK(strstr(problems.items[0].detail, pid));
                }
                _exit(check_report());
        }
        CHECK_INT(waitpid(other, &status, 0), other);
        CHECK_INT(status, 0);
        runtime_dir_free(dir);
        runtime_dir_free(open_dir(path));
}

/* It holds the directory, and has a child with the same descriptors, as one has that is on its way to exec.
 */
static _Noreturn void hold_with_a_child(const char *path, int say)
{
        pid_t child;

        (void)open_dir(path);
        child = fork();
        if (child > 0)
                (void)!write(say, &child, sizeof(child));
        for (;;)
                pause();
}

/* A holder that is killed leaves nothing that stands in the way of the next. */
static void test_lock_goes_with_the_process(const char *path)
{
        int ready[2], status;
        pid_t pid, child = 0;

        CHECK_INT(pipe(ready), 0);
        pid = fork();
        if (pid == 0)
                hold_with_a_child(path, ready[1]);
        if (CHECK_INT(read(ready[0], &child, sizeof(child)), sizeof(child))) {
                check_refused(path, EBUSY, "RuntimeDirInUse");
                kill(pid, SIGKILL);
                CHECK_INT(waitpid(pid, &status, 0), pid);
                runtime_dir_free(open_dir(path));
                kill(child, SIGKILL);
        }
        close(ready[0]);
        close(ready[1]);
}

/* Listens on `listener`, connects through the directory, says one word. */
static void check_connected(struct runtime_dir *dir, int listener)
{
        int client = runtime_dir_connect_worker(dir, uid), server;
        char word[8] = "";

        if (!CHECK(client >= 0))
                return;
        server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        CHECK(server >= 0);
        CHECK_INT(send(client, "hello", 6, 0), 6);
        CHECK_INT(recv(server, word, sizeof(word), 0), 6);
        CHECK_STR(word, "hello");
        CHECK_INT(fcntl(client, F_GETFD), FD_CLOEXEC);
        close(server);
        close(client);
}

static void test_sockets(const char *path)
{
        struct runtime_dir *dir = open_dir(path);
        int first, second;

        CHECK_INT(runtime_dir_connect_worker(dir, uid), -ECONNREFUSED);
        CHECK_INT(runtime_dir_remove_worker(dir, uid), 0);
        first = runtime_dir_bind_worker(dir, uid);
        CHECK(first >= 0);
        CHECK_INT(fcntl(first, F_GETFD), FD_CLOEXEC);
        CHECK_INT(runtime_dir_connect_worker(dir, uid), -ECONNREFUSED); /* no worker listens yet */
        CHECK_INT(listen(first, 4), 0);
        check_connected(dir, first);
        second = runtime_dir_bind_worker(dir, uid); /* takes the place of the first */
        CHECK(second >= 0);
        CHECK_INT(listen(second, 4), 0);
        close(first);
        check_connected(dir, second);
        close(second);
        CHECK_INT(runtime_dir_connect_worker(dir, uid),
                -ECONNREFUSED); /* the file is there, the worker is not */
        CHECK_INT(runtime_dir_remove_worker(dir, uid), 0);
        CHECK_INT(runtime_dir_connect_worker(dir, uid), -ENOENT);
        runtime_dir_free(dir);
}

/* A worker that does not accept connections must not stop the supervisor. */
static void test_connect_never_waits(const char *path)
{
        struct runtime_dir *dir = open_dir(path);
        int listener = runtime_dir_bind_worker(dir, uid), clients[16], r = 0;
        unsigned count = 0;

        CHECK_INT(listen(listener, 1), 0);
        while (count < ARRAY_SIZE(clients) && (r = runtime_dir_connect_worker(dir, uid)) >= 0)
                clients[count++] = r;
        CHECK_INT(r, -EAGAIN);
        while (count > 0)
                close(clients[--count]);
        close(listener);
        runtime_dir_free(dir);
}

static const struct device_region_key region_key = {.queues = 2, .epoch = 3};

static ino_t inode_of(int fd)
{
        struct stat st = {};

        CHECK_INT(fstat(fd, &st), 0);
        return st.st_ino;
}

/* Provide the region, and return whether its inode is still `before`. */
static bool region_is_kept(struct runtime_dir *dir, const struct device_region_key *key, ino_t before)
{
        int fd = runtime_dir_ensure_region(dir, uid, key);
        struct device_region_header header;
        bool kept = CHECK(fd >= 0) && inode_of(fd) == before;

        CHECK_INT(device_region_read_header(fd, &header), 0);
        CHECK_INT(header.queues, key->queues);
        CHECK_INT(header.epoch, key->epoch);
        close(fd);
        return kept;
}

static void test_region_is_kept_where_it_fits(const char *path)
{
        struct runtime_dir *dir = open_dir(path);
        int fd, again;

        CHECK_INT(runtime_dir_open_region(dir, uid), -ENOENT);
        fd = runtime_dir_ensure_region(dir, uid, &region_key);
        CHECK(fd >= 0);
        CHECK(region_is_kept(dir, &region_key, inode_of(fd)));
        again = runtime_dir_open_region(dir, uid);
        CHECK_INT(inode_of(again), inode_of(fd));
        CHECK(!region_is_kept(dir, &(struct device_region_key){.queues = 2, .epoch = 4}, inode_of(fd)));
        CHECK(!region_is_kept(dir, &(struct device_region_key){.queues = 1, .epoch = 4}, inode_of(fd)));
        CHECK_INT(runtime_dir_remove_region(dir, uid), 0);
        CHECK_INT(runtime_dir_open_region(dir, uid), -ENOENT);
        CHECK_INT(runtime_dir_remove_region(dir, uid), 0);
        close(again);
        close(fd);
        runtime_dir_free(dir);
}

/* A region of another version is replaced, and a process that has it mapped keeps it. */
static void test_region_of_another_version(const char *path)
{
        static const uint32_t other = DEVICE_REGION_VERSION + 1;
        struct runtime_dir *dir = open_dir(path);
        int fd = runtime_dir_ensure_region(dir, uid, &region_key);
        struct stat st;

        CHECK_INT(pwrite(fd, &other, sizeof(other), offsetof(struct device_region_header, version)),
                sizeof(other));
        CHECK(!region_is_kept(dir, &region_key, inode_of(fd)));
        CHECK_INT(fstat(fd, &st), 0);
        CHECK(st.st_size > 0);
        CHECK_INT(runtime_dir_remove_region(dir, uid), 0);
        close(fd);
        runtime_dir_free(dir);
}

/* A region whose kept memory another program has made for another version is replaced, but for what is the device's. */
static void test_kept_memory_that_does_not_fit(const char *path)
{
        const struct region_kept_wish one = {.target = "t", .disk_bytes = 64, .version = 1},
                                      two = {.target = "t", .disk_bytes = 64, .version = 2};
        struct runtime_dir *dir = open_dir(path);
        int fd = runtime_dir_ensure_region(dir, uid, &region_key), kept, again, other;
        struct region_history history = {.restarts = 3};

        CHECK_INT(device_region_set_history(fd, &history), 0);
        kept = runtime_dir_ensure_kept(dir, uid, &region_key, &one);
        CHECK(inode_of(kept) != inode_of(fd));
        CHECK(region_is_kept(dir, &region_key, inode_of(kept)));
        again = runtime_dir_ensure_kept(dir, uid, &region_key, &one);
        CHECK_INT(inode_of(again), inode_of(kept));
        other = runtime_dir_ensure_kept(dir, uid, &region_key, &two);
        CHECK(inode_of(other) != inode_of(kept));
        CHECK_INT(device_region_get_history(other, &history), 0);
        CHECK_INT(history.restarts, 3);
        CHECK_INT(runtime_dir_ensure_kept(dir, uid, &region_key,
                          &(struct region_kept_wish){.target = "t", .disk_bytes = UINT64_MAX}),
                -E2BIG);
        CHECK(region_is_kept(dir, &region_key, inode_of(other)));
        CHECK_INT(runtime_dir_remove_region(dir, uid), 0);
        close(other);
        close(again);
        close(kept);
        close(fd);
        runtime_dir_free(dir);
}

static void test_names_stay_inside(const char *path)
{
        static const char *const bad[] = {"", ".", "..", "../x", "a/b", "/etc/passwd",
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
        struct runtime_dir *dir = open_dir(path);

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                CHECK_INT(runtime_dir_bind_worker(dir, bad[i]), -EINVAL);
                CHECK_INT(runtime_dir_connect_worker(dir, bad[i]), -EINVAL);
                CHECK_INT(runtime_dir_remove_worker(dir, bad[i]), -EINVAL);
                CHECK_INT(runtime_dir_open_region(dir, bad[i]), -EINVAL);
                CHECK_INT(runtime_dir_ensure_region(dir, bad[i], &region_key), -EINVAL);
                CHECK_INT(runtime_dir_ensure_kept(dir, bad[i], &region_key, &(struct region_kept_wish){}),
                        -EINVAL);
                CHECK_INT(runtime_dir_remove_region(dir, bad[i]), -EINVAL);
        }
        runtime_dir_free(dir);
}

static void test_long_path(const char *base)
{
        char path[PATH_MAX];
        struct runtime_dir *dir;
        int length = snprintf(path, sizeof(path), "%s", base), listener;

        while (length < 600) {
                length += snprintf(path + length, sizeof(path) - (size_t)length, "/%090d", 0);
                CHECK_INT(mkdir(path, 0700), 0);
        }
        dir = open_dir(path);
        listener = runtime_dir_bind_worker(dir, uid);
        CHECK_INT(listen(listener, 1), 0);
        check_connected(dir, listener);
        close(listener);
        runtime_dir_free(dir);
}

/* A user who may write there could replace sockets, locks and files by others. */
static void test_a_directory_that_others_may_write_to_is_refused(const char *base)
{
        static const mode_t modes[] = {0777, 01777, 0775, 0702};
        char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s/writable", base);
        CHECK_INT(mkdir(path, 0700), 0);
        for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
                CHECK_INT(chmod(path, modes[i]), 0);
                check_refused(path, EPERM, "RuntimeDirWritable");
                CHECK_INT(rmdir(path), 0); /* and nothing was left there */
                CHECK_INT(mkdir(path, 0700), 0);
        }
        CHECK_INT(chmod(path, 0750), 0);
        runtime_dir_free(open_dir(path));
}

static void test_disks_of_others_are_not_used(const char *path)
{
        struct runtime_dir *dir = open_dir(path);
        char name[PATH_MAX];
        int fd = runtime_dir_open_disks(dir);

        CHECK(fd >= 0);
        close(fd);
        CHECK_INT(mode_of(path, "/disks"), S_IFDIR | 0755);
        snprintf(name, sizeof(name), "%s/disks", path);
        CHECK_INT(chmod(name, 0777), 0); /* by an older ublkd, with an odd umask */
        close(runtime_dir_open_disks(dir));
        CHECK_INT(mode_of(path, "/disks"), S_IFDIR | 0755);
        if (geteuid() == 0) {
                CHECK_INT(chown(name, 12345, 12345), 0);
                CHECK_INT(runtime_dir_open_disks(dir), -EPERM);
        }
        CHECK_INT(rmdir(name), 0);
        CHECK_INT(symlink("/tmp", name), 0);
        CHECK_INT(runtime_dir_open_disks(dir), -ENOTDIR);
        CHECK_INT(unlink(name), 0);
        runtime_dir_free(dir);
}

static void test_refusals(const char *base)
{
        char path[PATH_MAX];
        FILE *file;

        snprintf(path, sizeof(path), "%s/missing/run", base);
        check_refused(path, ENOENT, "RuntimeDirMissing");
        snprintf(path, sizeof(path), "%s/file", base);
        file = fopen(path, "w");
        fclose(file);
        check_refused(path, ENOTDIR, "RuntimeDirNotADirectory");
        if (geteuid() != 0)
                return;
        snprintf(path, sizeof(path), "%s/foreign", base);
        CHECK_INT(mkdir(path, 0777), 0);
        CHECK_INT(chown(path, 65534, 65534), 0);
        check_refused(path, EPERM, "RuntimeDirNotPermitted");
}

int main(void)
{
        char base[] = "/tmp/runtime_dir_test.XXXXXX", path[64];

        if (!CHECK(mkdtemp(base)))
                return check_report();
        snprintf(path, sizeof(path), "%s/run", base);
        test_modes(path);
        test_one_holder(path);
        test_lock_goes_with_the_process(path);
        test_sockets(path);
        test_connect_never_waits(path);
        test_region_is_kept_where_it_fits(path);
        test_kept_memory_that_does_not_fit(path);
        test_region_of_another_version(path);
        test_names_stay_inside(path);
        test_long_path(base);
        test_a_directory_that_others_may_write_to_is_refused(base);
        test_disks_of_others_are_not_used(path);
        test_refusals(base);
        CHECK_INT(remove_tree(base), 0);
        return check_report();
}
