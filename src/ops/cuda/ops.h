// The operations as the module's files implement them: one family a file, named as in
// ops/backend.h, with the shapes and formulas written there. They throw Failure.
#pragma once

#include "ops/cuda/module/context.h"

namespace finetune::cuda {

// memory.cu
void allocate(Context& context, size_t bytes, void** memory);
void release(Context& context, void* memory);
void memory_use(Context& context, MemoryUse* use);
void upload(Context& context, void* to, const void* host, size_t bytes);
void download(Context& context, void* host, const void* from, size_t bytes);
void fill_zero(Context& context, void* memory, int64_t rows, size_t width, size_t pitch);
void synchronize(Context& context);
void post(Context& context, const void* from, size_t bytes);
void collect(Context& context, void* host, size_t bytes);

// linear.cu
void linear(Context& context, AnyMatrix x, Matrix w, Matrix bias, AnyMatrix y);
void linear_backward_input(Context& context, AnyMatrix dy, Matrix w, AnyMatrix dx, bool accumulate);
void linear_backward_weight(Context& context, AnyMatrix dy, AnyMatrix x, Matrix dw, Matrix dbias,
                            bool accumulate);

// activation.cu
void activation(Context& context, int kind, AnyMatrix x, AnyMatrix y);
void activation_backward(Context& context, int kind, AnyMatrix x, AnyMatrix dy, AnyMatrix dx,
                         AnyMatrix y);

// elementwise.cu
void dropout(Context& context, Matrix x, Dropout dropout, RowNames names, Matrix y);
void add(Context& context, Matrix x, Matrix y);
void gather_rows(Context& context, Matrix x, const int32_t* index, Matrix y);
void scatter_rows_add(Context& context, Matrix dy, const int32_t* index, Matrix x);
void scatter_rows(Context& context, Matrix x, const int32_t* index, Matrix y);

// embedding.cu
void embed(Context& context, Tokens tokens, Matrix word, Matrix position, Matrix type, Matrix y);
void embed_backward(Context& context, Matrix dy, Tokens tokens, Matrix dword, Matrix dposition,
                    Matrix dtype);

// layer_norm.cu
void add_layer_norm(Context& context, Matrix x, Matrix residual, Dropout dropout, RowNames names,
                    Matrix gamma, Matrix beta, float epsilon, Matrix s, Matrix stats, Matrix y,
                    Bf16Matrix rounded);
void add_layer_norm_backward(Context& context, Matrix dy, Matrix s, Matrix stats, Matrix gamma,
                             Dropout dropout, RowNames names, Matrix ds, AnyMatrix dx,
                             Matrix dgamma, Matrix dbeta, bool accumulate);

// attention.cu, attention_backward.cu
void attention(Context& context, AttentionShape shape, Dropout dropout, AnyMatrix q, AnyMatrix k,
               AnyMatrix v, AnyMatrix out, Matrix lse);
void attention_backward(Context& context, AttentionShape shape, Dropout dropout, AnyMatrix q,
                        AnyMatrix k, AnyMatrix v, AnyMatrix out, Matrix lse, AnyMatrix dout,
                        AnyMatrix dq, AnyMatrix dk, AnyMatrix dv);

// loss.cu
void cross_entropy(Context& context, Matrix logits, const int32_t* labels, Matrix weights,
                   float smoothing, LossScale scale, Matrix losses, Matrix dlogits);
void binary_cross_entropy(Context& context, Matrix logits, Matrix targets, Matrix weights,
                          LossScale scale, Matrix losses, Matrix dlogits);
void squared_error(Context& context, Matrix logits, Matrix targets, LossScale scale, Matrix losses,
                   Matrix dlogits);
void span_cross_entropy(Context& context, Matrix logits, Segments segments, const int32_t* starts,
                        const int32_t* ends, LossScale scale, Matrix losses, Matrix dlogits);

// merge.cu
void merge(Context& context, Addition addition, int64_t count);
void merge_rows(Context& context, Addition addition, RowList rows, int64_t cols);

// optimizer.cu
void block_square_sums(Context& context, Matrix x, int64_t block, double* sums);
void add_losses(Context& context, Matrix losses, bool accumulate, double* sum);
void step_outcome(Context& context, StepSums sums, StepOutcome* outcome);
void adamw_parts(Context& context, AdamWPart* parts, int64_t count, Matrix parameter,
                 Matrix gradient, Matrix m, Matrix v);
void adamw_rows(Context& context, AdamWStep step, RowList rows, Matrix parameter, Matrix gradient,
                Matrix m, Matrix v);
void adamw_catch_up(Context& context, const AdamWStep* steps, int64_t count, RowList rows,
                    const int32_t* missed, Matrix parameter, Matrix m, Matrix v);

// graphs.cu
void begin_replay(Context& context, const int64_t* key, int64_t count, Replay* replay);
void end_replay(Context& context, bool* done);
void give_up_replay(Context& context, const char* why);

// comm/nccl/peers.cu
void device_id(Context& context, char* id);
void make_peer_id(Context& context, PeerId* id);
void connect_peers(Context& context, const PeerId* id, int rank, int size, double seconds,
                   Peers** peers);
void disconnect_peers(Peers* peers);
void exchange(Context& context, Peers* peers, const PeerPart* out, int64_t out_count,
              const PeerPart* in, int64_t in_count, bool bf16);
void reduce(Context& context, Peers* peers, const PeerPart* parts, int64_t count);
void waited_for_peers(Context& context, Peers* peers, double* seconds);
void mark(Context& context, Peers* peers, int place);
void begin_beside(Context& context, Peers* peers, int place);
void end_beside(Context& context, Peers* peers);

}  // namespace finetune::cuda
