// What the transport takes of Open MPI's binary interface (libmpi.so.40, Open MPI 4 and 5), as far as it is public: its
// wheel brings a header of the same name as MPICH's, so that one environment for builds cannot have both. Code made
// with the original is the same (tests/python/launch/test_openmpi_header.py).
#pragma once
#include <cstddef>

extern "C" {

struct ompi_communicator_t;
struct ompi_datatype_t;
struct ompi_errhandler_t;
struct ompi_group_t;
struct ompi_info_t;
struct ompi_op_t;
struct ompi_request_t;
using MPI_Comm = ompi_communicator_t*;
using MPI_Datatype = ompi_datatype_t*;
using MPI_Errhandler = ompi_errhandler_t*;
using MPI_Group = ompi_group_t*;
using MPI_Info = ompi_info_t*;
using MPI_Op = ompi_op_t*;
using MPI_Request = ompi_request_t*;
using MPI_Aint = std::ptrdiff_t;
using MPI_Fint = int;
struct MPI_Status {
    int MPI_SOURCE, MPI_TAG, MPI_ERROR;
    int cancelled;      // the library's
    std::size_t count;  // the library's
};

// Objects of the library, whose addresses are the handles.
struct ompi_predefined_object;
extern ompi_predefined_object ompi_mpi_comm_world, ompi_mpi_comm_self, ompi_mpi_comm_null, ompi_request_null,
    ompi_mpi_info_null, ompi_mpi_errors_return, ompi_mpi_op_sum, ompi_mpi_op_prod, ompi_mpi_op_min, ompi_mpi_op_max,
    ompi_mpi_byte, ompi_mpi_float, ompi_mpi_double, ompi_mpi_c_float_complex, ompi_mpi_c_double_complex,
    ompi_mpi_uint8_t, ompi_mpi_uint16_t, ompi_mpi_uint32_t, ompi_mpi_uint64_t, ompi_mpi_int8_t, ompi_mpi_int16_t,
    ompi_mpi_int32_t, ompi_mpi_int64_t;
#define MPI_COMM_WORLD reinterpret_cast<MPI_Comm>(&ompi_mpi_comm_world)
#define MPI_COMM_SELF reinterpret_cast<MPI_Comm>(&ompi_mpi_comm_self)
#define MPI_COMM_NULL reinterpret_cast<MPI_Comm>(&ompi_mpi_comm_null)
#define MPI_REQUEST_NULL reinterpret_cast<MPI_Request>(&ompi_request_null)
#define MPI_INFO_NULL reinterpret_cast<MPI_Info>(&ompi_mpi_info_null)
#define MPI_ERRORS_RETURN reinterpret_cast<MPI_Errhandler>(&ompi_mpi_errors_return)
#define MPI_SUM reinterpret_cast<MPI_Op>(&ompi_mpi_op_sum)
#define MPI_PROD reinterpret_cast<MPI_Op>(&ompi_mpi_op_prod)
#define MPI_MIN reinterpret_cast<MPI_Op>(&ompi_mpi_op_min)
#define MPI_MAX reinterpret_cast<MPI_Op>(&ompi_mpi_op_max)
#define MPI_BYTE reinterpret_cast<MPI_Datatype>(&ompi_mpi_byte)
#define MPI_FLOAT reinterpret_cast<MPI_Datatype>(&ompi_mpi_float)
#define MPI_DOUBLE reinterpret_cast<MPI_Datatype>(&ompi_mpi_double)
#define MPI_C_FLOAT_COMPLEX reinterpret_cast<MPI_Datatype>(&ompi_mpi_c_float_complex)
#define MPI_C_DOUBLE_COMPLEX reinterpret_cast<MPI_Datatype>(&ompi_mpi_c_double_complex)
#define MPI_UINT8_T reinterpret_cast<MPI_Datatype>(&ompi_mpi_uint8_t)
#define MPI_INT8_T reinterpret_cast<MPI_Datatype>(&ompi_mpi_int8_t)
#define MPI_INT16_T reinterpret_cast<MPI_Datatype>(&ompi_mpi_int16_t)
#define MPI_UINT16_T reinterpret_cast<MPI_Datatype>(&ompi_mpi_uint16_t)
#define MPI_UINT32_T reinterpret_cast<MPI_Datatype>(&ompi_mpi_uint32_t)
#define MPI_UINT64_T reinterpret_cast<MPI_Datatype>(&ompi_mpi_uint64_t)
#define MPI_INT32_T reinterpret_cast<MPI_Datatype>(&ompi_mpi_int32_t)
#define MPI_INT64_T reinterpret_cast<MPI_Datatype>(&ompi_mpi_int64_t)
#define MPI_IN_PLACE reinterpret_cast<void*>(1)
#define MPI_STATUS_IGNORE static_cast<MPI_Status*>(nullptr)
#define MPI_STATUSES_IGNORE static_cast<MPI_Status*>(nullptr)

enum { MPI_SUCCESS = 0 };
enum { MPI_IDENT, MPI_CONGRUENT, MPI_SIMILAR, MPI_UNEQUAL };
enum { MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE };
enum { MPI_ANY_SOURCE = -1, MPI_ANY_TAG = -1, MPI_KEYVAL_INVALID = -1 };
enum { MPI_TAG_UB = 0, MPI_COMM_TYPE_SHARED = 0 };
enum { MPI_MAX_ERROR_STRING = 256, MPI_MAX_LIBRARY_VERSION_STRING = 256 };

using MPI_Comm_copy_attr_function = int(MPI_Comm, int, void*, void*, void*, int*);
using MPI_Comm_delete_attr_function = int(MPI_Comm, int, void*, void*);
MPI_Comm_copy_attr_function OMPI_C_MPI_COMM_NULL_COPY_FN;
#define MPI_COMM_NULL_COPY_FN OMPI_C_MPI_COMM_NULL_COPY_FN

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided);
int MPI_Initialized(int* flag);
int MPI_Finalize();
int MPI_Finalized(int* flag);
int MPI_Query_thread(int* provided);
int MPI_Get_version(int* version, int* subversion);
int MPI_Get_library_version(char* version, int* length);
int MPI_Error_string(int code, char* text, int* length);

MPI_Comm MPI_Comm_f2c(MPI_Fint comm);
int MPI_Comm_compare(MPI_Comm a, MPI_Comm b, int* result);
int MPI_Comm_create_keyval(MPI_Comm_copy_attr_function* copy, MPI_Comm_delete_attr_function* remove, int* keyval,
                           void* extra);
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made);
int MPI_Comm_free(MPI_Comm* comm);
int MPI_Comm_get_attr(MPI_Comm comm, int keyval, void* value, int* flag);
int MPI_Comm_group(MPI_Comm comm, MPI_Group* group);
int MPI_Comm_rank(MPI_Comm comm, int* rank);
int MPI_Comm_set_attr(MPI_Comm comm, int keyval, void* value);
int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler);
int MPI_Comm_size(MPI_Comm comm, int* size);
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made);
int MPI_Comm_test_inter(MPI_Comm comm, int* flag);
int MPI_Group_free(MPI_Group* group);
int MPI_Group_translate_ranks(MPI_Group from, int n, const int ranks[], MPI_Group to, int translated[]);

int MPI_Type_commit(MPI_Datatype* type);
int MPI_Type_contiguous(int count, MPI_Datatype item, MPI_Datatype* type);
int MPI_Type_create_hvector(int count, int length, MPI_Aint stride, MPI_Datatype item, MPI_Datatype* type);
int MPI_Type_create_resized(MPI_Datatype item, MPI_Aint low, MPI_Aint extent, MPI_Datatype* type);
int MPI_Type_create_struct(int count, const int lengths[], const MPI_Aint places[], const MPI_Datatype items[],
                           MPI_Datatype* type);
int MPI_Type_free(MPI_Datatype* type);
int MPI_Type_size(MPI_Datatype type, int* bytes);

int MPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status);
int MPI_Irecv(void* data, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request* request);
int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request);
int MPI_Issend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request);
int MPI_Recv(void* data, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status);
int MPI_Request_free(MPI_Request* request);
int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status);
int MPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]);
int MPI_Testsome(int count, MPI_Request requests[], int* done, int which[], MPI_Status statuses[]);

int MPI_Iallgatherv(const void* from, int count, MPI_Datatype type, void* to, const int counts[], const int offsets[],
                    MPI_Datatype to_type, MPI_Comm comm, MPI_Request* request);
int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request);
int MPI_Ibcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request);
int MPI_Ireduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
                MPI_Request* request);
int MPI_Ireduce_scatter(const void* from, void* to, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                        MPI_Request* request);

}  // extern "C"
