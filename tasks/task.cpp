#include "tasks/task.h"
