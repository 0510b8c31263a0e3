# SPDX-License-Identifier: MIT
ublkd_unit_test(backing_test LIBS ublkd_base)
ublkd_unit_test(backing_claims_test LIBS ublkd_base)
ublkd_unit_test(problem_test LIBS ublkd_base)
ublkd_unit_test(json_print_test LIBS ublkd_base)
ublkd_unit_test(json_time_test LIBS ublkd_base)
ublkd_unit_test(log_test LIBS ublkd_base)
ublkd_unit_test(printable_test LIBS ublkd_base)
ublkd_unit_test(quantity_test LIBS ublkd_base)
ublkd_unit_test(cpu_list_test LIBS ublkd_base)
ublkd_unit_test(kernel_name_test LIBS ublkd_base)
ublkd_unit_test(path_text_test LIBS ublkd_base)
ublkd_unit_test(dispatch_test LIBS ublkd_base)
ublkd_unit_test(option_table_test LIBS ublkd_base)
ublkd_unit_test(target_desc_test LIBS target_desc)
ublkd_unit_test(device_spec_test LIBS ublkd_model)
# Makes malloc() fail, which is the sanitizer's own under it.
if(NOT UBLKD_SANITIZE)
  ublkd_unit_test(device_spec_memory_test LIBS ublkd_model)
  target_link_options(device_spec_memory_test PRIVATE -Wl,--wrap=regcomp,--wrap=regexec)
endif()
# Brings targets of its own, so the registry must not be linked.
ublkd_unit_test(device_spec_rules_test SOURCES device_spec_rules_test.c ${PROJECT_SOURCE_DIR}/ublkd/model/device_spec.c
                LIBS option_tables ublkd_base)

# The daemon and the Python package jsonschema must give the same verdict on the same specs.
set(api_tests ${PROJECT_SOURCE_DIR}/tests/api)
add_executable(spec_verdict ${api_tests}/spec_verdict.c)
target_link_libraries(spec_verdict PRIVATE ublkd_flags ublkd_api ublkd_model)
ublkd_test(schema_differential_test ${Python3_EXECUTABLE} -m pytest -q -p no:cacheprovider
           ${api_tests}/schema_differential_test.py)
ublkd_test(schema_generate_test ${Python3_EXECUTABLE} -m pytest -q -p no:cacheprovider
           ${api_tests}/schema_generate_test.py)
set_tests_properties(
  schema_differential_test
  PROPERTIES ENVIRONMENT "UBLKD_SPEC_VERDICT=$<TARGET_FILE:spec_verdict>;UBLKD_SCHEMAS=${PROJECT_BINARY_DIR}/schemas")
