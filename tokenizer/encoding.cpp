#include "tokenizer/encoding.h"
