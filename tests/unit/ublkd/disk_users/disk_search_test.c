/* SPDX-License-Identifier: MIT */
/* disk_search: real processes and pipes; what they find is mostly given by the test. */
#include "ublkd/disk_users/disk_search.h"

#include "tests/unit/check.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHORT_USEC = 100 * 1000, LONG_USEC = 60 * 1000 * 1000 };

/* Shared with the processes that search. */
static struct {
        pid_t pid;    /* of the last one */
        size_t asked; /* how many disks it was asked about */
        unsigned fds; /* how many descriptors it has */
} *shared;

static sd_event *event;
static unsigned searches; /* processes started since make() */
static bool unkillable, no_room;
static bool stops; /* the process that searches: its time begins once it has done so, as on a machine at
                      leisure */

int __real_pidfd_send_signal(int pidfd, int sig, siginfo_t *info, unsigned flags);
int __wrap_pidfd_send_signal(int pidfd, int sig, siginfo_t *info, unsigned flags);
pid_t __real_fork(void);
pid_t __wrap_fork(void);

int __wrap_pidfd_send_signal(int pidfd, int sig, siginfo_t *info, unsigned flags)
{
        return unkillable ? 0 : __real_pidfd_send_signal(pidfd, sig, info, flags);
}

pid_t __wrap_fork(void)
{
        siginfo_t info;
        pid_t pid;

        if (no_room) {
                errno = EAGAIN;
                return -1;
        }
        pid = __real_fork();
        searches += pid > 0;
        if (pid > 0 && stops)
                CHECK_INT(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT), 0);
        return pid;
}

/* ---- what the processes do ---- */

static void report_user(struct disk_users *disk, const char *user)
{
        disk->items[disk->count++] = strdup(user);
}

/* Odd disks are in use. */
static int find_odd(const struct disk_users_roots *roots _unused_, struct disk_users *disks, size_t count)
{
        char text[64];

        shared->pid = getpid();
        shared->asked = count;
        for (size_t i = 0; i < count; i++) {
                snprintf(text, sizeof(text), "process 7 on %d", disks[i].number);
                if (disks[i].number % 2)
                        report_user(&disks[i], text);
                disks[i].kinds = (unsigned)disks[i].number % 4;
        }
        return 0;
}

static int find_after_stop(const struct disk_users_roots *roots, struct disk_users *disks, size_t count)
{
        shared->pid = getpid();
        (void)raise(SIGSTOP);
        return find_odd(roots, disks, count);
}

static int find_and_hang(const struct disk_users_roots *roots, struct disk_users *disks, size_t count)
{
        *roots->place = (struct disk_users_place){.pid = 4211, .comm = "fio"};
        (void)raise(SIGSTOP);
        return find_odd(roots, disks, count);
}

static int find_and_die(const struct disk_users_roots *roots _unused_, struct disk_users *disks _unused_,
        size_t count _unused_)
{
        (void)raise(SIGKILL);
        return 0;
}

/* The first disk is in use, and then it fails. */
static int find_and_fail(
        const struct disk_users_roots *roots _unused_, struct disk_users *disks, size_t count _unused_)
{
        report_user(&disks[0], "swap");
        return -EIO;
}

static int find_very_many(
        const struct disk_users_roots *roots _unused_, struct disk_users *disks, size_t count)
{
        char name[300];

        memset(name, 'x', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        for (size_t i = 0; i < count; i++) {
                for (size_t j = 0; j < DISK_USERS_MAX; j++)
                        report_user(&disks[i], name);
                disks[i].dropped = 3;
        }
        return 0;
}

/* Those that the kernel is to be asked about. */
static int find_deep(const struct disk_users_roots *roots _unused_, struct disk_users *disks, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (disks[i].exclusively)
                        report_user(&disks[i], "asked");
        return 0;
}

static int count_descriptors(const struct disk_users_roots *roots _unused_, struct disk_users *disks _unused_,
        size_t count _unused_)
{
        DIR *dir = opendir("/proc/self/fd");

        for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir))
                shared->fds += entry->d_name[0] != '.';
        return 0;
}

/* ---- who asks ---- */

struct asker {
        struct disk_search *search;
        struct disk_question *question;
        unsigned answers;
        enum disk_use use;
        unsigned kinds;
        char text[8192];
        struct asker *then; /* asks in turn, once this one has its answer */
};

static void ask(struct disk_search *search, struct asker *asker, int number);

static void on_answer(void *userdata, const struct disk_answer *answer)
{
        struct asker *asker = userdata;

        asker->answers++;
        asker->use = answer->use;
        asker->kinds = answer->kinds;
        snprintf(asker->text, sizeof(asker->text), "%s", answer->text);
        asker->question = disk_question_free(asker->question);
        if (asker->then)
                ask(asker->search, asker->then, answer->number);
}

static void ask(struct disk_search *search, struct asker *asker, int number)
{
        asker->search = search;
        CHECK_INT(disk_search_ask(search, number, DISK_NAMES, on_answer, asker, &asker->question), 0);
}

static struct disk_search *make(
        int (*find)(const struct disk_users_roots *roots, struct disk_users *disks, size_t count),
        uint64_t patience)
{
        struct disk_search *search = NULL;

        *shared = (__typeof__(*shared)){};
        searches = 0;
        CHECK_INT(disk_search_new(event,
                          &(struct disk_search_options){
                                  .roots = {.proc = "/proc", .sys = "/sys"},
                                  .find = find,
                                  .patience_usec = patience
        },
                          &search),
                0);
        return search;
}

static void run_until_answered(const struct asker *asker)
{
        while (asker->answers == 0)
                if (!CHECK(sd_event_run(event, LONG_USEC) > 0))
                        exit(check_report());
}

/* Until the process that searches has stopped itself. */
static pid_t run_until_stopped(void)
{
        char path[64], state = 0;

        while (state != 'T') {
                FILE *file;

                CHECK(sd_event_run(event, 1000) >= 0);
                if (shared->pid == 0)
                        continue;
                snprintf(path, sizeof(path), "/proc/%d/stat", (int)shared->pid);
                file = fopen(path, "re");
                if (!CHECK(file) || fscanf(file, "%*d %*s %c", &state) != 1)
                        exit(check_report());
                fclose(file);
        }
        return shared->pid;
}

/* Reaped by the loop, not only dead. */
static void run_until_gone(pid_t pid)
{
        while (kill(pid, 0) == 0)
                CHECK(sd_event_run(event, 1000) >= 0);
}

static void check_answer(const struct asker *asker, enum disk_use use, const char *words)
{
        CHECK_INT(asker->answers, 1);
        CHECK_INT(asker->use, use);
        if (!CHECK(strstr(asker->text, words)))
                fprintf(stderr, "it says: %s\n", asker->text);
}

/* ---- tests ---- */

/* A search that may not look at every process does not know. */
static void check_no_user(const struct asker *asker)
{
        char root[8];

        if (readlink("/proc/1/root", root, sizeof(root)) >= 0)
                check_answer(asker, DISK_UNUSED, "");
        else
                check_answer(asker, DISK_USE_UNKNOWN, "cannot be read: Permission denied");
}

static void test_this_machine(void)
{
        struct disk_search *search = make(NULL, 0);
        struct asker asker = {};

        ask(search, &asker, 1000000); /* a number without a disk */
        run_until_answered(&asker);
        check_no_user(&asker);
        disk_search_free(search);
}

/* Any user can give a file the name of the node and open it: that does not use the disk. */
static void test_a_namesake_on_this_machine(void)
{
        char directory[] = "/tmp/disk_search_test.XXXXXX", path[64];
        struct disk_search *search = make(NULL, 0);
        struct asker asker = {};
        FILE *file;

        CHECK(mkdtemp(directory));
        snprintf(path, sizeof(path), "%s/ublkb1000001", directory);
        file = fopen(path, "we");
        CHECK(file);
        ask(search, &asker, 1000001);
        run_until_answered(&asker);
        check_no_user(&asker);
        if (file)
                fclose(file);
        CHECK_INT(remove(path), 0);
        CHECK_INT(remove(directory), 0);
        disk_search_free(search);
}

static void test_one_search_answers_all_earlier_questions(void)
{
        enum { ASKERS = 64 };
        struct disk_search *search = make(find_odd, 0);
        static struct asker askers[ASKERS];
        char text[64];

        for (int i = 0; i < ASKERS; i++)
                ask(search, &askers[i], i / 2); /* two of each */
        for (int i = 0; i < ASKERS; i++)
                run_until_answered(&askers[i]);
        for (int i = 0; i < ASKERS; i++) {
                bool used = i / 2 % 2;

                snprintf(text, sizeof(text), "process 7 on %d", i / 2);
                check_answer(&askers[i], used ? DISK_USED : DISK_UNUSED, used ? text : "");
                CHECK_INT(askers[i].kinds, used ? i / 2 % 4 : 0);
        }
        CHECK_INT(searches, 1);
        CHECK_INT(shared->asked, ASKERS / 2);
        disk_search_free(search);
}

/* Of many questions about a disk the deepest is answered. */
static void test_how_deep_a_search_is(void)
{
        struct disk_search *search = make(find_deep, 0);
        static struct asker askers[4];

        for (int i = 0; i < 4; i++) {
                askers[i].search = search;
                CHECK_INT(disk_search_ask(search, i / 3, i == 1 ? DISK_VERDICT : DISK_NAMES, on_answer,
                                  &askers[i], &askers[i].question),
                        0);
        }
        for (int i = 0; i < 4; i++) {
                run_until_answered(&askers[i]);
                check_answer(&askers[i], i < 3 ? DISK_USED : DISK_UNUSED, i < 3 ? "asked" : "");
        }
        disk_search_free(search);
}

/* What an asker does with its answer may take long, and is often started by an event. */
struct turn {
        sd_event_source *source;
        unsigned answers; /* given so far */
        unsigned row;     /* the most answers before the event had its turn */
        unsigned since;   /* that it had its turn */
        struct disk_question *questions[16];
};

static int on_turn(sd_event_source *source, void *userdata)
{
        struct turn *turn = userdata;

        (void)source;
        turn->since = 0;
        return 0;
}

static void on_answer_of_turn(void *userdata, const struct disk_answer *answer)
{
        struct turn *turn = userdata;

        (void)answer;
        turn->answers++;
        turn->since++;
        if (turn->since > turn->row)
                turn->row = turn->since;
        CHECK(sd_event_source_set_enabled(turn->source, SD_EVENT_ONESHOT) >= 0);
}

static void test_others_have_a_turn_between_two_answers(void)
{
        struct disk_search *search = make(find_odd, 0);
        struct turn turn = {};

        CHECK(sd_event_add_defer(event, &turn.source, on_turn, &turn) >= 0);
        for (size_t i = 0; i < ARRAY_SIZE(turn.questions); i++)
                CHECK_INT(
                        disk_search_ask(search, 1, DISK_NAMES, on_answer_of_turn, &turn, &turn.questions[i]),
                        0);
        while (turn.answers < ARRAY_SIZE(turn.questions))
                if (!CHECK(sd_event_run(event, LONG_USEC) > 0))
                        exit(check_report());
        CHECK(turn.row <= 2);
        for (size_t i = 0; i < ARRAY_SIZE(turn.questions); i++)
                disk_question_free(turn.questions[i]);
        sd_event_source_disable_unref(turn.source);
        disk_search_free(search);
}

/* An answer must not be older than its question. */
static void test_a_question_during_a_search_waits_for_the_next(void)
{
        struct disk_search *search = make(find_after_stop, LONG_USEC);
        struct asker early = {}, late = {};
        pid_t first;

        ask(search, &early, 1);
        first = run_until_stopped();
        ask(search, &late, 1);
        CHECK_INT(kill(first, SIGCONT), 0);
        run_until_answered(&early);
        check_answer(&early, DISK_USED, "process 7 on 1");
        CHECK_INT(late.answers, 0);
        shared->pid = 0;
        CHECK_INT(kill(run_until_stopped(), SIGCONT), 0);
        run_until_answered(&late);
        check_answer(&late, DISK_USED, "process 7 on 1");
        CHECK_INT(searches, 2);
        disk_search_free(search);
}

static void test_asking_from_an_answer(void)
{
        struct disk_search *search = make(find_odd, 0);
        struct asker second = {}, first = {.then = &second};

        ask(search, &first, 2);
        run_until_answered(&second);
        check_answer(&second, DISK_UNUSED, "");
        CHECK_INT(searches, 2);
        disk_search_free(search);
}

static void test_a_search_that_takes_too_long(void)
{
        struct disk_search *search = make(find_and_hang, SHORT_USEC);
        struct asker asker = {}, next = {};

        stops = true;
        ask(search, &asker, 1);
        run_until_answered(&asker);
        check_answer(
                &asker, DISK_USE_UNKNOWN, "took longer than 0.1 s, and was given up at process 4211 (fio)");
        ask(search, &next, 1); /* there is always another one */
        run_until_answered(&next);
        check_answer(&next, DISK_USE_UNKNOWN, "took longer than 0.1 s");
        stops = false;
        disk_search_free(search);
}

/* Each would cost a process for ever. */
static void test_searches_that_cannot_be_killed(void)
{
        enum { STUCK = 4 };
        struct disk_search *search = make(find_after_stop, SHORT_USEC);
        pid_t stuck[STUCK];
        struct asker after = {}, last = {};

        unkillable = stops = true;
        for (int i = 0; i < STUCK; i++) {
                struct asker asker = {};

                shared->pid = 0;
                ask(search, &asker, 1);
                run_until_answered(&asker);
                check_answer(&asker, DISK_USE_UNKNOWN, "took longer");
                stuck[i] = shared->pid;
        }
        ask(search, &after, 1);
        run_until_answered(&after);
        check_answer(&after, DISK_USE_UNKNOWN, "4 searches were given up and do not end");
        CHECK_INT(searches, STUCK);
        for (int i = 0; i < STUCK; i++) {
                CHECK_INT(kill(stuck[i], SIGKILL), 0);
                run_until_gone(stuck[i]);
        }
        ask(search, &last, 1);
        run_until_answered(&last);
        CHECK_INT(searches, STUCK + 1);
        unkillable = stops = false;
        disk_search_free(search);
        CHECK_INT(kill(shared->pid, SIGKILL), 0);
}

static void test_a_search_that_dies(void)
{
        struct disk_search *search = make(find_and_die, 0);
        struct asker asker = {};

        ask(search, &asker, 1);
        run_until_answered(&asker);
        check_answer(&asker, DISK_USE_UNKNOWN, "ended early");
        disk_search_free(search);
}

static void test_a_search_that_fails(void)
{
        struct disk_search *search = make(find_and_fail, 0);
        struct asker found = {}, other = {};

        ask(search, &found, 1);
        ask(search, &other, 2);
        run_until_answered(&found);
        run_until_answered(&other);
        check_answer(&found, DISK_USED, "swap");
        check_answer(&other, DISK_USE_UNKNOWN, "not complete: Input/output error");
        disk_search_free(search);
}

static void test_no_room_for_a_process(void)
{
        struct disk_search *search = make(find_odd, 0);
        struct asker asker = {}, next = {};

        no_room = true;
        ask(search, &asker, 1);
        run_until_answered(&asker);
        check_answer(&asker, DISK_USE_UNKNOWN, "cannot be started: Resource temporarily unavailable");
        no_room = false;
        ask(search, &next, 1);
        run_until_answered(&next);
        check_answer(&next, DISK_USED, "process 7 on 1");
        disk_search_free(search);
}

/* More disks than one search takes, and more text than a pipe holds. */
static void test_very_many(void)
{
        enum { ASKERS = 600 };
        struct disk_search *search = make(find_very_many, 0);
        static struct asker askers[ASKERS];

        for (int i = 0; i < ASKERS; i++)
                ask(search, &askers[i], 2 * i);
        for (int i = 0; i < ASKERS; i++)
                run_until_answered(&askers[i]);
        for (int i = 0; i < ASKERS; i++)
                check_answer(&askers[i], DISK_USED, "xxx");
        CHECK_INT(searches, 2);
        disk_search_free(search);
}

static void test_a_question_that_is_taken_back(void)
{
        struct disk_search *search = make(find_after_stop, LONG_USEC);
        struct asker asked = {}, waiting = {}, other = {};
        pid_t pid;

        ask(search, &asked, 1);
        ask(search, &other, 1);
        pid = run_until_stopped();
        ask(search, &waiting, 1);
        disk_question_free(asked.question);
        disk_question_free(waiting.question);
        CHECK_INT(kill(pid, SIGCONT), 0);
        run_until_answered(&other);
        CHECK_INT(asked.answers, 0);
        run_until_gone(pid);
        CHECK_INT(waiting.answers, 0);
        CHECK_INT(searches, 1); /* no question waits for another search */
        disk_search_free(search);
}

static void test_the_end_in_the_middle_of_a_search(void)
{
        struct disk_search *search = make(find_after_stop, LONG_USEC);
        struct asker asked = {}, waiting = {};
        pid_t pid;

        ask(search, &asked, 1);
        pid = run_until_stopped();
        ask(search, &waiting, 1);
        disk_search_free(search);
        CHECK_INT(waitpid(pid, NULL, 0), pid); /* it was killed */
        CHECK_INT(asked.answers + waiting.answers, 0);
        disk_question_free(asked.question);
        disk_question_free(waiting.question);
}

/* A supervisor that is started while a search hangs must find no lock or socket held by it. */
static void test_it_inherits_nothing_from_the_supervisor(void)
{
        struct disk_search *search = make(count_descriptors, 0);
        struct asker asker = {};
        FILE *lock = fopen("/dev/null", "r"); /* without O_CLOEXEC, even */

        ask(search, &asker, 1);
        run_until_answered(&asker);
        CHECK_INT(shared->fds, 5); /* 0 to 2, the pipe, and the folder that it counts in */
        if (lock)
                fclose(lock);
        disk_search_free(search);
}

int main(void)
{
        void *page = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        if (page == MAP_FAILED || sd_event_new(&event) < 0)
                return 1;
        shared = page;
        test_this_machine();
        test_a_namesake_on_this_machine();
        test_one_search_answers_all_earlier_questions();
        test_how_deep_a_search_is();
        test_others_have_a_turn_between_two_answers();
        test_a_question_during_a_search_waits_for_the_next();
        test_asking_from_an_answer();
        test_a_search_that_takes_too_long();
        test_searches_that_cannot_be_killed();
        test_a_search_that_dies();
        test_a_search_that_fails();
        test_no_room_for_a_process();
        test_very_many();
        test_a_question_that_is_taken_back();
        test_the_end_in_the_middle_of_a_search();
        test_it_inherits_nothing_from_the_supervisor();
        sd_event_unref(event);
        return check_report();
}
