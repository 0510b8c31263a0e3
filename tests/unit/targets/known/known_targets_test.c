/* SPDX-License-Identifier: MIT */
/* The targets of this build, and the structs that their generated tables fill. */
#include "targets/known/known_targets.h"
#include "targets/loop/loop_options.h"
#include "targets/null/null_options.h"
#include "tests/unit/check.h"
#include "ublkd/proto/region_kept.h"

static bool waits_for_more_than_files(const struct target_desc *desc)
{
        const struct target_waits *waits = &desc->waits;

        return waits->children + waits->watched + waits->background + waits->device_background + waits->files
                               + waits->work_threads
                       > 0
               || (desc->needs & (TARGET_NEEDS_NETWORK | TARGET_NEEDS_POLL));
}

static void test_registry(void)
{
        size_t count = 0;
        const struct target_desc *const *all = known_targets_all(&count);

        CHECK(count >= 2);
        for (size_t i = 0; i < count; i++) {
                CHECK(known_target_find(all[i]->name) == all[i]);
                CHECK(all[i]->options);
                CHECK(region_kept_is_allowed(&(struct region_kept_wish){
                        .target = all[i]->name,
                        .disk_bytes = all[i]->kept_disk_bytes,
                        .queue_bytes = all[i]->kept_queue_bytes,
                }));
                CHECK(all[i]->summary && all[i]->summary[0] != '\0');
                CHECK(i == 0 || strcmp(all[i - 1]->name, all[i]->name) < 0);
                CHECK(all[i]->waits.children <= TARGET_CHILDREN_MAX);
                CHECK(all[i]->waits.background <= TARGET_BACKGROUND_MAX);
                CHECK(all[i]->waits.device_background <= TARGET_BACKGROUND_MAX);
                CHECK(all[i]->waits.files <= TARGET_QUEUE_FILES_MAX);
                CHECK(all[i]->waits.work_threads <= TARGET_WORK_THREADS_MAX);
                CHECK(!(all[i]->flags & TARGET_NEVER_WAITS) || !waits_for_more_than_files(all[i]));
                /* What chose the table is none of its options, and not unknown either. */
                CHECK(!option_find(all[i]->options, "type"));
                CHECK(option_index(all[i]->options, "type") >= 0);
        }
        CHECK(!known_target_find("nonsense"));
        CHECK(!known_target_find(""));
        CHECK(!known_target_find("Loop"));
}

static void test_null(void)
{
        const struct target_desc *desc = known_target_find("null");

        if (!CHECK(desc))
                return;
        CHECK(desc->size_required);
        CHECK(desc->flags & TARGET_NEVER_WAITS);
        CHECK(desc->options == &null_options_table);
        CHECK_INT(desc->options->count, 0);
}

/* The order of an enum in C is that of the schema. */
static void test_loop(void)
{
        static const struct {
                const char *name;
                enum direct_io value;
        } names[] = {
                {"auto", DIRECT_IO_AUTO},
                {"on",   DIRECT_IO_ON  },
                {"off",  DIRECT_IO_OFF }
        };
        _cleanup_problems_ struct problem_list problems = {};
        struct loop_options options;
        const struct option_field *option = option_find(&loop_options_table, "directIo");
        cJSON *json = cJSON_Parse("{\"type\":\"loop\",\"path\":\"/x\"}");

        CHECK(known_target_find("loop")->options == &loop_options_table);
        CHECK_INT(loop_options_table.struct_size, sizeof(options));
        CHECK_INT(dispatch(json, &loop_options_table, "/target", &options, &problems), 0);
        CHECK_STR(options.path, "/x");
        CHECK_INT(options.offset, 0);
        CHECK_INT(options.direct_io, DIRECT_IO_AUTO);
        dispatch_release(&options, &loop_options_table);
        cJSON_Delete(json);

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                CHECK_STR(option->names[names[i].value], names[i].name);
        CHECK(!option->names[_DIRECT_IO_MAX]);
}

int main(void)
{
        test_registry();
        test_null();
        test_loop();
        return check_report();
}
