// The four BLAS routines that liblinear links to. The solvers used here do not call them.
#include <cmath>

extern "C" {

double ddot_(const int* n, const double* x, const int* x_step, const double* y, const int* y_step) {
  double sum = 0;
  for (long i = 0; i < *n; ++i) sum += x[i * *x_step] * y[i * *y_step];
  return sum;
}

double dnrm2_(const int* n, const double* x, const int* step) {
  return std::sqrt(ddot_(n, x, step, x, step));
}

int daxpy_(const int* n, const double* a, const double* x, const int* x_step, double* y,
           const int* y_step) {
  for (long i = 0; i < *n; ++i) y[i * *y_step] += *a * x[i * *x_step];
  return 0;
}

int dscal_(const int* n, const double* a, double* x, const int* step) {
  for (long i = 0; i < *n; ++i) x[i * *step] *= *a;
  return 0;
}

}  // extern "C"
