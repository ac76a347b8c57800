#include <hwy/highway.h>
int x;
