/* SPDX-License-Identifier: MIT */
/* device_cpus: the questions, the resulting text, and failures. The control plane is a fake. */
#include "ublkd/reconcile/disk/device_cpus.h"

#include "tests/unit/check.h"

static struct {
        ublk_ctl_done done;
        void *userdata;
        int asked, queue, refuse, cancelled;
} control;

static struct {
        int count, result;
} outcome;

int __wrap_ublk_ctl_get_affinity(struct ublk_ctl *ctl, int number, uint16_t queue, ublk_ctl_done done,
        void *userdata, struct ublk_ctl_call **ret);
int __wrap_ublk_ctl_get_affinity(struct ublk_ctl *ctl, int number, uint16_t queue, ublk_ctl_done done,
        void *userdata, struct ublk_ctl_call **ret)
{
        CHECK(ctl == (struct ublk_ctl *)&control);
        CHECK_INT(number, 3);
        if (control.refuse < 0)
                return control.refuse;
        control.asked++;
        control.queue = queue;
        control.done = done;
        control.userdata = userdata;
        *ret = (struct ublk_ctl_call *)&control;
        return 0;
}

void __wrap_ublk_ctl_call_cancel(struct ublk_ctl_call *call);
void __wrap_ublk_ctl_call_cancel(struct ublk_ctl_call *call)
{
        CHECK(call == (struct ublk_ctl_call *)&control);
        control.cancelled++;
}

static void then(void *userdata, int result)
{
        CHECK(userdata == &outcome);
        outcome.count++;
        outcome.result = result;
}

static void begin(struct device_cpus *cpus)
{
        control = (typeof(control)){};
        outcome = (typeof(outcome)){};
        device_cpus_learn(cpus, (struct ublk_ctl *)&control, 3, 2, then, &outcome);
}

static void answer(int result, unsigned char cpus)
{
        control.done(control.userdata, result, &(const struct kernel_device){.queue_cpus = {cpus}});
}

static void test_each_queue_is_asked_for_once(void)
{
        struct device_cpus cpus = {};

        begin(&cpus);
        CHECK_INT(control.queue, 0);
        answer(0, 0x3);
        CHECK_INT(control.queue, 1);
        CHECK_INT(outcome.count, 0);
        answer(0, 0xc);
        CHECK_INT(outcome.count, 1);
        CHECK_INT(outcome.result, 0);
        CHECK_STR(cpus.text, "0-1;2-3");
        begin(&cpus);
        CHECK_INT(control.asked, 0);
        CHECK_INT(outcome.count, 1);
        device_cpus_drop(&cpus);
        CHECK(!cpus.text);
        begin(&cpus);
        CHECK_INT(control.asked, 1);
        device_cpus_drop(&cpus);
        CHECK_INT(control.cancelled, 1);
        CHECK_INT(outcome.count, 0);
}

static void test_half_an_answer_is_none(void)
{
        struct device_cpus cpus = {};

        begin(&cpus);
        answer(0, 0x3);
        answer(-EIO, 0);
        CHECK_INT(outcome.count, 1);
        CHECK_INT(outcome.result, -EIO);
        CHECK(!cpus.text);
        device_cpus_drop(&cpus);
        CHECK_INT(control.cancelled, 0);
}

static void test_a_question_that_cannot_be_sent(void)
{
        struct device_cpus cpus = {};

        control.refuse = -ENOMEM;
        outcome = (typeof(outcome)){};
        device_cpus_learn(&cpus, (struct ublk_ctl *)&control, 3, 2, then, &outcome);
        CHECK_INT(outcome.count, 1);
        CHECK_INT(outcome.result, -ENOMEM);
}

int main(void)
{
        test_each_queue_is_asked_for_once();
        test_half_an_answer_is_none();
        test_a_question_that_cannot_be_sent();
        return check_report();
}
