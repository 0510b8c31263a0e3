# SPDX-License-Identifier: MIT
ublkd_unit_test(NAME plan_test SOURCES plan_test.c ${PROJECT_SOURCE_DIR}/tests/plan/walk.c LIBS ublkd_plan)
target_include_directories(plan_test PRIVATE ${PROJECT_SOURCE_DIR}/tests/plan)
ublkd_unit_test(NAME attempt_test LIBS ublkd_plan)
ublkd_unit_test(NAME backoff_test LIBS ublkd_plan)
ublkd_unit_test(NAME claims_test LIBS ublkd_plan)
ublkd_unit_test(NAME frozen_params_test LIBS ublkd_plan)
