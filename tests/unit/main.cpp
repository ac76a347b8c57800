// One main for every unit-test program. `shared_file` gives test data; a test that needs data that
// is not there says so and is counted as skipped by scripts/test.sh ("SKIPPED: ...").
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
