/* SPDX-License-Identifier: MIT */
/* What files set, and each kind of fault with its file and line. */
#include "ublkd/config/config_files.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/config/config_root.h"

#define MAIN "etc/ublkd/ublkd.conf"
#define DROP_IN "etc/ublkd/ublkd.conf.d/10.conf"

static void test_values_of_all_files(void)
{
        struct config *config;

        config_root_make();
        config_root_write("usr/lib/ublkd/ublkd.conf", "[Manager]\nStateDirectory=/not/read\n");
        config_root_write(MAIN, "[Manager]\nLogLevel=error\nUnstablePaths=refuse\nListen=/a\n");
        config_root_write(DROP_IN, "[Manager]\nListen=/b\nLogLevel=debug\nLogLevel=warning\n");
        config_root_write(
                "run/ublkd/ublkd.conf.d/20.conf", "[Manager]\nUnstablePaths=\nIgnoreFeature=BATCH_IO\n");
        config = config_root_load();
        CHECK_INT(config->problems.count, 0);
        CHECK(!config->refused);
        CHECK_STR(config_root_value(config, "LogLevel"), "warning");
        CHECK_STR(config_root_value(config, "Listen"), "/a,/b");
        CHECK_STR(config_root_value(config, "UnstablePaths"), "");
        CHECK_STR(config_root_value(config, "StateDirectory"), "");
        CHECK_STR(config->values.state_directory, "/var/lib/ublkd");
        CHECK(!config->values.refuse_unstable_paths);
        CHECK_STR(config->settings[setting_find("LogLevel") - settings].items[0].place,
                config_root_path(DROP_IN ":4"));
        config_free(config);
        config_root_remove();
}

static void test_an_empty_value_empties_a_list(void)
{
        struct config *config;

        config_root_make();
        config_root_write(MAIN, "[Manager]\nListen=/a\nListen=/b\n");
        config_root_write(DROP_IN, "[Manager]\nListen=\nListen=/c\n");
        config = config_root_load();
        CHECK_STR(config_root_value(config, "Listen"), "/c");
        CHECK_INT(config->values.listen_count, 1);
        config_free(config);
        config_root_remove();
}

static void test_masked_files(void)
{
        struct config *config;

        config_root_make();
        config_root_write("usr/lib/ublkd/ublkd.conf", "[Manager]\nLogLevel=error\n");
        config_root_link(MAIN, "/dev/null");
        config_root_write("usr/lib/ublkd/ublkd.conf.d/10.conf", "[Manager]\nLogLevel=debug\n");
        config_root_link("run/ublkd/ublkd.conf.d/10.conf", "/dev/null");
        config_root_write("usr/lib/ublkd/ublkd.conf.d/20.conf", "[Manager]\nLogLevel=debug\n");
        config_root_write("etc/ublkd/ublkd.conf.d/20.conf", "");
        config = config_root_load();
        CHECK_INT(config->problems.count, 0);
        CHECK_STR(config_root_value(config, "LogLevel"), "");
        config_free(config);
        config_root_remove();
}

/* The text of a main file, what the only problem begins with (behind the path), and whether ublkd must not start. */
static const struct {
        const char *text, *problem;
        bool refused;
} faults[] = {
        {"[Manager]\nColour=red",         ":2: Colour: the key is unknown; ublkd.conf(5) has all keys",        false},
        {"[Manager]\nLoglevel=debug",     ":2: Loglevel: the key is unknown; did you mean LogLevel?",          false},
        {"[Manager]\nStateDirectoy=/x",   ":2: StateDirectoy: the key is unknown; did you mean State",         true },
        {"[Manager]\nLogLevel=loud",      ":2: LogLevel: 'loud' is not valid; give error, warning,",           false},
        {"[Manager]\nUnstablePaths=no",   ":2: UnstablePaths: 'no' is not valid; give warn or refuse",         false},
        {"[Manager]\nIgnoreFeature=X",    ":2: IgnoreFeature: 'X' is not valid; give the name of",             false},
        {"[Manager]\nListen=a",           ":2: Listen: 'a' is not valid; give an absolute path,",              false},
        {"[Manager]\nStateDirectory=x",   ":2: StateDirectory: 'x' is not valid; give an absolute",            true },
        {"[Manager]\nRuntimeDirectory=x", ":2: RuntimeDirectory: 'x' is not valid; give an absolute",          true },
        {"[Manager]\nWorker=x",           ":2: Worker: 'x' is not valid; give the absolute path of",           true },
        {"[Manager]\nWorkerUids=0-9",     ":2: WorkerUids: '0-9' is not valid; give a range of uids",          true },
        {"[Manager]\nSandbox=no",         ":2: Sandbox: 'no' is not valid; give required or best-effort",      true },
        {"[Manager]\nReaders=all",        ":2: Readers: 'all' is not valid; give group, group:NAME or",        true },
        {"LogLevel=debug",                ":1: LogLevel: the line stands before any section; write [M",        false},
        {"Readers=everyone",              ":1: Readers: the line stands before any section; write [Ma",        true },
        {"[Manger]\nLogLevel=debug",      ":1: [Manger]: the section is unknown; write [Manager]",             false},
        {"[Manager\nLogLevel=debug",      ":1: the line begins a section and does not end with ']'; write [M",
         false                                                                                                      },
        {"[Manager]\nLogLevel debug",     ":2: LogLevel: there is no '=' in the line; write KEY=VALUE",        false},
        {"[Manager]\nSandbox: required",  ":2: Sandbox:: there is no '=' in the line; write KEY=VALUE",        true },
        {"[Manager]\nSpareWorkers=65",    ":2: SpareWorkers: '65' is not valid; give a number from 0 to 64",
         false                                                                                                      },
        {"[Manager]\n=x",                 ":2: there is nothing before '='; write KEY=VALUE",                  false},
        {"[Manager]\nListen=/a\\\n",      ":2: Listen: the line goes on in the next one, which ublkd",         false},
        {"[Manager]\nReaders=group:\xff", ":2: Readers: the line is not UTF-8; write it in UTF-8",             true },
        {"[Manager]\n\x1b[1m=2",          ":2: ?[1m: the line has a control character; write it again",        false},
};

static const char *end_of(bool refused)
{
        return refused ? " (ublkd does not start with it)" : " (ignored)";
}

static void test_every_fault(void)
{
        for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
                struct config *config;

                config_root_make();
                config_root_write(MAIN, faults[i].text);
                config = config_root_load();
                if (!CHECK_INT(config->problems.count, 1)
                        || !CHECK(config_root_has_problem(
                                config, MAIN, faults[i].problem, end_of(faults[i].refused)))
                        || !CHECK_INT(config->refused, faults[i].refused))
                        fprintf(stderr, "... of '%s': %s\n", faults[i].text,
                                config->problems.count ? config->problems.items[0].detail : "no problem");
                CHECK_STR(config->values.state_directory, "/var/lib/ublkd");
                CHECK(!config->values.everyone_reads && !config->values.best_effort);
                config_free(config);
                config_root_remove();
        }
}

static void test_all_faults_at_once(void)
{
        struct config *config;

        config_root_make();
        config_root_write(MAIN, "[Manager]\nA=1\nLogLevel=debug\nLogLevel=x\n");
        config_root_write(DROP_IN, "[Manager]\nSandbox=maybe\n[Other]\nSandbox=best-effort\nListen=/x\n");
        config = config_root_load();
        CHECK_INT(config->problems.count, 5);
        CHECK(config->refused);
        CHECK(config_root_has_problem(config, DROP_IN,
                ":4: Sandbox: the line stands in the section [Other]; move it to [Manager]", end_of(true)));
        CHECK_STR(
                config_root_value(config, "LogLevel"), "debug"); /* the value below the invalid one counts */
        CHECK_STR(config_root_value(config, "Listen"), "");
        config_free(config);
        config_root_remove();
}

static void test_more_faults_than_are_kept(void)
{
        static char text[100 * 1024];
        struct config *config;

        strcpy(text, "[Manager]\n");
        for (size_t i = 0; i < 1000; i++)
                strcat(text, "Colour=red\n");
        strcat(text, "Sandbox=maybe\n");
        config_root_make();
        config_root_write(MAIN, text);
        config = config_root_load();
        CHECK_INT(config->problems.count, PROBLEM_LIST_MAX);
        CHECK_INT(config->problems.count + config->problems.dropped, 1001);
        CHECK(config->refused); /* also if the problem that refuses is not kept */
        config_free(config);
        config_root_remove();
}

static void test_a_list_that_is_too_long(void)
{
        char text[1024] = "[Manager]\n";
        struct config *config;

        for (size_t i = 0; i < SETTING_LISTEN_MAX + 1; i++)
                strcat(text, "Listen=/a\n");
        config_root_make();
        config_root_write(MAIN, text);
        config = config_root_load();
        CHECK_INT(config->problems.count, 1);
        CHECK(config_root_has_problem(
                config, MAIN, ":18: Listen: there are more than 16 values; remove some", end_of(false)));
        CHECK_INT(config->values.listen_count, SETTING_LISTEN_MAX);
        config_free(config);
        config_root_remove();
}

static void test_sections_of_others(void)
{
        struct config *config;

        config_root_make();
        config_root_write(MAIN, "[X-Site]\nSandbox=what\nbla=1\n[Manager]\nLogLevel=debug\n");
        config = config_root_load();
        CHECK_INT(config->problems.count, 0);
        CHECK_STR(config_root_value(config, "LogLevel"), "debug");
        config_free(config);
        config_root_remove();
}

static void check_refused(const char *file, const char *problem)
{
        struct config *config = config_root_load();

        CHECK_INT(config->problems.count, 1);
        if (!CHECK(config_root_has_problem(config, file, problem, end_of(true))))
                fprintf(stderr, "... but %s\n",
                        config->problems.count ? config->problems.items[0].detail : "none");
        CHECK(config->refused);
        config_free(config);
        config_root_remove();
}

static void test_files_that_cannot_be_read(void)
{
        config_root_make();
        config_root_link(MAIN, "nowhere");
        check_refused(MAIN, ": the file cannot be read: No such file or directory; correct that");
        config_root_make();
        config_root_write(DROP_IN "/a.conf", "");
        check_refused(DROP_IN, ": the file cannot be read: Is a directory; correct that");
        config_root_make();
        config_root_link(DROP_IN, "/dev/zero");
        check_refused(DROP_IN, ": this is not a file; replace it by one, or by a link to /dev/null");
        config_root_make();
        config_root_link("run/ublkd", "ublkd");
        check_refused("run/ublkd/ublkd.conf",
                ": looking for files failed: Too many levels of symbolic links; correct that");
}

int main(void)
{
        test_values_of_all_files();
        test_an_empty_value_empties_a_list();
        test_masked_files();
        test_every_fault();
        test_all_faults_at_once();
        test_more_faults_than_are_kept();
        test_a_list_that_is_too_long();
        test_sections_of_others();
        test_files_that_cannot_be_read();
        return check_report();
}
