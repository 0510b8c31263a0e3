/* SPDX-License-Identifier: MIT */
/* device_files: precedence, masks, and what is not taken. */
#include "ublkd/declared/device_files.h"

#include "tests/unit/check.h"
#include "tests/unit/remove_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct place {
        char root[48], etc[64], run[64], lib[64];
        const char *dirs[3];
        struct device_files files;
};

static void place_make(struct place *place)
{
        *place = (struct place){};
        strcpy(place->root, "/tmp/device_files_test.XXXXXX");
        if (!mkdtemp(place->root))
                abort();
        snprintf(place->etc, sizeof(place->etc), "%s/etc", place->root);
        snprintf(place->run, sizeof(place->run), "%s/run", place->root);
        snprintf(place->lib, sizeof(place->lib), "%s/lib", place->root);
        place->dirs[0] = place->etc;
        place->dirs[1] = place->run;
        place->dirs[2] = place->lib;
        for (size_t i = 0; i < 3; i++)
                CHECK_INT(mkdir(place->dirs[i], 0755), 0);
}

static void place_remove(struct place *place)
{
        device_files_clear(&place->files);
        (void)chmod(place->etc, 0755);
        CHECK_INT(remove_tree(place->root), 0);
}

static void put(const char *dir, const char *name, const char *text)
{
        char path[160];
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s", dir, name);
        file = fopen(path, "we");
        if (!file)
                abort();
        fputs(text, file);
        fclose(file);
        CHECK_INT(chmod(path, 0644), 0);
}

static void place_read(struct place *place)
{
        device_files_clear(&place->files);
        CHECK_INT(device_files_read(place->dirs, 3, &place->files), 0);
}

/* Return the file of that name; the dummy has a state that no file has. */
static const struct device_file *find(const struct place *place, const char *name)
{
        static const struct device_file none = {.path = (char *)"(none)", .state = (enum file_state)99};

        for (size_t i = 0; i < place->files.count; i++)
                if (strcmp(device_file_name(place->files.items[i].path), name) == 0)
                        return &place->files.items[i];
        return &none;
}

static void test_the_first_directory_counts(void)
{
        struct place place;

        place_make(&place);
        put(place.lib, "a.json", "lib");
        put(place.run, "a.json", "run");
        put(place.etc, "a.json", "etc");
        put(place.lib, "b.json", "lib");
        put(place.run, "b.json", "run");
        put(place.lib, "c.json", "lib");
        put(place.etc, "0.json", "first");
        put(place.etc, "no.txt", "x");
        put(place.etc, ".hidden.json", "x");
        place_read(&place);
        if (CHECK_INT(place.files.count, 4)) {
                CHECK_STR(place.files.items[0].text, "first"); /* in the order of their names */
                CHECK_STR(place.files.items[1].text, "etc");
                CHECK_STR(place.files.items[2].text, "run");
                CHECK_STR(place.files.items[3].text, "lib");
        }
        CHECK_INT(place.files.dirs[0].state, DIR_READ);
        place_remove(&place);
}

static void test_masks(void)
{
        struct place place;
        char path[160];

        place_make(&place);
        put(place.lib, "a.json", "lib");
        put(place.lib, "b.json", "lib");
        put(place.etc, "b.json", "");
        snprintf(path, sizeof(path), "%s/a.json", place.etc);
        CHECK_INT(symlink("/dev/null", path), 0);
        place_read(&place);
        CHECK_INT(find(&place, "a.json")->state, FILE_MASKED);
        CHECK_INT(find(&place, "b.json")->state, FILE_FAULTY); /* a power cut may have emptied it */
        CHECK_INT(place.files.count, 2);
        place_remove(&place);
}

static void test_unsafe_and_unreadable_files_are_refused(void)
{
        struct place place;
        char path[160];
        static char large[DEVICE_FILE_SIZE_MAX + 2];

        place_make(&place);
        put(place.etc, "group.json", "{}");
        snprintf(path, sizeof(path), "%s/group.json", place.etc);
        CHECK_INT(chmod(path, 0664), 0);
        snprintf(path, sizeof(path), "%s/fifo.json", place.etc);
        CHECK_INT(mkfifo(path, 0644), 0); /* a reader would wait for a writer */
        snprintf(path, sizeof(path), "%s/dir.json", place.etc);
        CHECK_INT(mkdir(path, 0755), 0);
        snprintf(path, sizeof(path), "%s/dangling.json", place.etc);
        CHECK_INT(symlink("/nowhere/at/all", path), 0);
        snprintf(path, sizeof(path), "%s/zero.json", place.etc);
        CHECK_INT(symlink("/dev/zero", path), 0);
        memset(large, ' ', sizeof(large) - 1);
        put(place.etc, "large.json", large);
        put(place.lib, "large.json", "{}"); /* a faulty file still replaces */
        put(place.etc, "link.json", "{}");
        snprintf(path, sizeof(path), "%s/linked.json", place.etc);
        CHECK_INT(symlink("link.json", path), 0);
        place_read(&place);
        CHECK_INT(find(&place, "group.json")->state, FILE_FAULTY);
        CHECK_INT(find(&place, "fifo.json")->state, FILE_FAULTY);
        CHECK_INT(find(&place, "dir.json")->state, FILE_FAULTY);
        CHECK_INT(find(&place, "dangling.json")->state, FILE_FAULTY);
        CHECK_INT(find(&place, "zero.json")->state, FILE_FAULTY);
        CHECK_INT(find(&place, "large.json")->state, FILE_FAULTY);
        CHECK_INT(find(&place, "linked.json")->state, FILE_READ);
        for (size_t i = 0; i < place.files.count; i++)
                CHECK((place.files.items[i].state == FILE_FAULTY) == (place.files.items[i].fault != NULL));
        place_remove(&place);
}

/* As root the owner can be set; else the file of root does for the other way. */
static void test_the_owner(void)
{
        struct place place;
        char path[160];

        place_make(&place);
        put(place.etc, "other.json", "{}");
        snprintf(path, sizeof(path), "%s/other.json", place.etc);
        if (chown(path, 4242, (gid_t)-1) == 0) {
                place_read(&place);
                CHECK_INT(find(&place, "other.json")->state, FILE_FAULTY);
        } else {
                CHECK_INT(unlink(path), 0);
                CHECK_INT(symlink("/etc/passwd", path), 0); /* of root, which is fine */
                place_read(&place);
                CHECK_INT(find(&place, "other.json")->state, FILE_READ);
        }
        place_remove(&place);
}

static void test_directories_that_cannot_be_read(void)
{
        struct place place;

        place_make(&place);
        put(place.etc, "a.json", "etc");
        put(place.lib, "b.json", "lib");
        CHECK_INT(rmdir(place.run), 0);
        place_read(&place);
        CHECK_INT(place.files.dirs[1].state, DIR_MISSING);
        CHECK_INT(find(&place, "b.json")->state, FILE_READ); /* a directory that is missing hides nothing */
        put(place.root, "run", "a file, where the directory should be");
        place_read(&place);
        CHECK_INT(place.files.dirs[1].state, DIR_FAULTY);
        CHECK(place.files.dirs[1].fault != NULL);
        CHECK_INT(find(&place, "a.json")->state, FILE_READ);
        CHECK_INT(find(&place, "b.json")->state, FILE_UNSURE); /* it may be masked there */
        CHECK_INT(chmod(place.etc, 0777), 0);                  /* any user may put a file there */
        place_read(&place);
        CHECK_INT(place.files.dirs[0].state, DIR_FAULTY);
        CHECK_INT(find(&place, "a.json")->state, (enum file_state)99);
        place_remove(&place);
}

/* A directory with too many files is not known. */
static void test_too_many_files(void)
{
        struct place place;

        place_make(&place);
        for (int i = 0; i <= DEVICE_FILES_MAX; i++) {
                char name[32];

                snprintf(name, sizeof(name), "%d.json", i);
                put(place.run, name, "{}");
        }
        put(place.lib, "z.json", "{}");
        place_read(&place);
        CHECK_INT(place.files.dirs[1].state, DIR_FAULTY);
        CHECK_INT(place.files.count, 1);
        CHECK_INT(find(&place, "z.json")->state, FILE_UNSURE);
        place_remove(&place);
}

static void test_the_wire(void)
{
        struct place place;
        struct device_files copy = {};
        char *data = NULL;
        size_t size = 0;
        FILE *stream = open_memstream(&data, &size);

        place_make(&place);
        put(place.etc, "a.json", "etc");
        put(place.etc, "empty.json", "");
        put(place.root, "x", "");
        CHECK_INT(rmdir(place.run), 0);
        put(place.root, "run", "a file");
        put(place.lib, "b.json", "lib");
        place_read(&place);
        device_files_write(&place.files, stream);
        CHECK_INT(fclose(stream), 0);
        if (CHECK_INT(device_files_parse(data, size, &copy), 0) && CHECK_INT(copy.count, 3)) {
                CHECK_STR(copy.items[0].text, "etc");
                CHECK_INT(copy.items[0].size, 3);
                CHECK_INT(copy.items[1].state, FILE_UNSURE);
                CHECK_INT(copy.items[2].state, FILE_FAULTY);
                CHECK_STR(copy.dirs[1].fault, place.files.dirs[1].fault);
        }
        device_files_clear(&copy);
        for (size_t cut = 0; cut < size; cut++) /* a process that was killed while it wrote */
                CHECK_INT(device_files_parse(data, cut, &copy), -EBADMSG);
        free(data);
        place_remove(&place);
}

int main(void)
{
        test_the_first_directory_counts();
        test_masks();
        test_unsafe_and_unreadable_files_are_refused();
        test_the_owner();
        test_directories_that_cannot_be_read();
        test_too_many_files();
        test_the_wire();
        return check_report();
}
