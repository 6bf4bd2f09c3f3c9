// Names of CUDA's libraries that c10d's ProcessGroupNCCL.hpp mentions through ATen. Their headers are heavy wheels;
// CMake makes files under their names that include this one. We call nothing of them.
#pragma once

struct cublasContext;
struct cublasLtContext;
struct cusolverDnContext;
struct cusparseContext;
using cublasHandle_t = cublasContext*;
using cublasLtHandle_t = cublasLtContext*;
using cusolverDnHandle_t = cusolverDnContext*;
using cusparseHandle_t = cusparseContext*;
enum cublasStatus_t : int {};
enum cusolverStatus_t : int {};
enum cusparseStatus_t : int {};
