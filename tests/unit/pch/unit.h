// What every unit test includes, read once for each test program (see src/core/pch/std.h).
#include <doctest/doctest.h>

#include "../../../src/core/pch/std.h"
