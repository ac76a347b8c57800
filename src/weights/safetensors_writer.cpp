#include "weights/weights.h"
