// Convolutions through oneDNN primitives: created once per shape, run on pieces of the batch by our pool. The library
// chooses its own layouts; inputs are reordered into them and results back. Weights are reordered once per call and not
// kept: an optimizer changes them in place, and nothing tells a kernel about it.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "convolution.h"
#include "onednn.h"

namespace {

constexpr size_t kMaxCached = 256;             // shapes; the least recently used one goes first
constexpr double kPieceFlops = 8e6;            // what a piece of the batch should at least cost
constexpr int64_t kMaxPieces = 64;
constexpr int64_t kPartialBytes = 32 << 20;    // for all partial weight gradients together

enum Direction { kForward, kBackwardInput, kBackwardWeight };

struct Key {
  tpk_convolution shape;
  int64_t direction, bias;
};

// A primitive with its memory for intermediate results described, and whether it is needed at all.
struct Step {
  dnnl_primitive_t primitive = nullptr;
  const_dnnl_memory_desc_t scratch = nullptr;
  size_t scratch_bytes = 0;
  dnnl_primitive_desc_t description = nullptr;
};

// The three tensors of a convolution: input side, weights, output side. Which one is the result depends on the
// direction.
struct Plan {
  Key key;
  Step convolution, reorder[3];
  dnnl_memory_desc_t plain[3] = {}, bias = nullptr;
  const_dnnl_memory_desc_t chosen[3] = {};
  size_t bytes[3] = {}, plain_bytes[3] = {};
  const OneDnn* library;

  ~Plan() {
    for (Step* step : {&convolution, &reorder[0], &reorder[1], &reorder[2]}) {
      if (step->primitive) library->primitive_destroy(step->primitive);
      if (step->description) library->primitive_desc_destroy(step->description);
    }
    for (dnnl_memory_desc_t md : {plain[0], plain[1], plain[2], bias})
      if (md) library->memory_desc_destroy(md);
  }
  int result() const { return key.direction == kForward ? 2 : key.direction == kBackwardInput ? 0 : 1; }
};

std::mutex cache_mutex;
std::vector<std::shared_ptr<Plan>> cache; // most recently used first
const int fork_registered = pthread_atfork(nullptr, nullptr, [] { new (&cache_mutex) std::mutex; });

dnnl_engine_t engine(const OneDnn* library) {
  static dnnl_engine_t const shared = [library] {
    dnnl_engine_t created = nullptr;
    return library->engine_create(&created, dnnl_cpu, 0) == dnnl_success ? created : nullptr;
  }();
  return shared;
}

struct Stream {
  const OneDnn* library = nullptr;
  dnnl_stream_t stream = nullptr;
  ~Stream() {
    if (stream) library->stream_destroy(stream);
  }
};

dnnl_stream_t stream(const OneDnn* library) {
  static thread_local Stream mine;
  if (!mine.stream && library->stream_create(&mine.stream, engine(library), dnnl_stream_default_flags) == dnnl_success)
    mine.library = library;
  return mine.stream;
}

struct Attributes { // intermediate memory comes from us: then one primitive may run in many threads at once
  const OneDnn* library;
  dnnl_primitive_attr_t attr = nullptr;
  explicit Attributes(const OneDnn* library) : library(library) {
    if (library->primitive_attr_create(&attr) == dnnl_success)
      library->primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
  }
  ~Attributes() { library->primitive_attr_destroy(attr); }
};

bool finish_step(const OneDnn* library, Step* step) {
  if (library->primitive_create(&step->primitive, step->description) != dnnl_success) return false;
  step->scratch = library->primitive_desc_query_md(step->description, dnnl_query_scratchpad_md, 0);
  step->scratch_bytes = step->scratch ? library->memory_desc_get_size(step->scratch) : 0;
  return true;
}

int dense_descriptions(const OneDnn* library, const Key& key, dnnl_memory_desc_t* md, dnnl_format_tag_t const tags[3]) {
  const tpk_convolution& c = key.shape;
  const int spatial = c.in[0] == 1 && c.kernel[0] == 1 && c.out[0] == 1 ? 2 : 3, skip = 3 - spatial;
  dnnl_dims_t input = {c.batch, c.in_channels}, output = {c.batch, c.out_channels}, weight = {};
  int w = 0;
  if (c.groups > 1) weight[w++] = c.groups;
  weight[w++] = c.out_channels / c.groups, weight[w++] = c.in_channels / c.groups;
  for (int d = 0; d < spatial; d++) {
    input[2 + d] = c.in[skip + d], output[2 + d] = c.out[skip + d];
    weight[w + d] = c.kernel[skip + d];
  }
  const int ranks[3] = {2 + spatial, w + spatial, 2 + spatial};
  const int64_t* dims[3] = {input, weight, output};
  const auto plain_tag = [](int rank) {
    return rank == 4 ? dnnl_abcd : rank == 5 ? dnnl_abcde : dnnl_abcdef;
  };
  for (int i = 0; i < 3; i++)
    if (library->memory_desc_create_with_tag(&md[i], ranks[i], dims[i], dnnl_f32,
                                             tags ? tags[i] : plain_tag(ranks[i])) != dnnl_success)
      return 0;
  return spatial;
}

// Describes the convolution with layouts of the library's choice.
bool describe(const OneDnn* library, Plan* plan, dnnl_memory_desc_t* any, int spatial) {
  const tpk_convolution& c = plan->key.shape;
  const int skip = 3 - spatial;
  dnnl_dims_t strides, dilates, padding;
  for (int d = 0; d < spatial; d++) {
    strides[d] = c.stride[skip + d], padding[d] = c.padding[skip + d];
    dilates[d] = c.dilation[skip + d] - 1;
  }
  Attributes user(library);
  const bool forward = plan->key.direction == kForward;
  dnnl_primitive_desc_t first = nullptr; // the backward descriptions want the forward one as a hint
  if (library->convolution_forward_primitive_desc_create(
          &first, engine(library), forward ? dnnl_forward_inference : dnnl_forward_training, dnnl_convolution_direct,
          any[0], any[1], plan->bias, any[2], strides, dilates, padding, padding, user.attr) != dnnl_success)
    return false;
  if (forward) {
    plan->convolution.description = first;
    return true;
  }
  dnnl_status_t status;
  if (plan->key.direction == kBackwardInput)
    status = library->convolution_backward_data_primitive_desc_create(
        &plan->convolution.description, engine(library), dnnl_convolution_direct, any[0], any[1], any[2], strides,
        dilates, padding, padding, first, user.attr);
  else
    status = library->convolution_backward_weights_primitive_desc_create(
        &plan->convolution.description, engine(library), dnnl_convolution_direct, any[0], any[1], nullptr, any[2],
        strides, dilates, padding, padding, first, user.attr);
  library->primitive_desc_destroy(first);
  return status == dnnl_success;
}

bool add_reorder(const OneDnn* library, Plan* plan, int i) {
  if (library->memory_desc_equal(plan->plain[i], plan->chosen[i])) return true;
  Attributes user(library);
  const bool back = i == plan->result();
  const_dnnl_memory_desc_t from = back ? plan->chosen[i] : plan->plain[i], to = back ? plan->plain[i] : plan->chosen[i];
  return library->reorder_primitive_desc_create(&plan->reorder[i].description, from, engine(library), to,
                                                engine(library), user.attr) == dnnl_success &&
         finish_step(library, &plan->reorder[i]);
}

std::shared_ptr<Plan> make_plan(const OneDnn* library, const Key& key) {
  OneThread one(library); // the library lays its work out for as many threads as it sees now
  auto plan = std::make_shared<Plan>();
  plan->key = key;
  plan->library = library;
  const dnnl_format_tag_t free_choice[3] = {dnnl_format_tag_any, dnnl_format_tag_any, dnnl_format_tag_any};
  dnnl_memory_desc_t any[3] = {};
  dnnl_dims_t channels = {key.shape.out_channels};
  const int spatial = dense_descriptions(library, key, plan->plain, nullptr);
  bool good =
      engine(library) && spatial && dense_descriptions(library, key, any, free_choice) &&
      (!key.bias || library->memory_desc_create_with_tag(&plan->bias, 1, channels, dnnl_f32, dnnl_a) == dnnl_success) &&
      describe(library, plan.get(), any, spatial) && finish_step(library, &plan->convolution);
  const dnnl_query_t queries[3][3] = {{dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md},
                                      {dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md},
                                      {dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md}};
  for (int i = 0; i < 3; i++) {
    if (any[i]) library->memory_desc_destroy(any[i]);
    if (!good) continue;
    plan->chosen[i] = library->primitive_desc_query_md(plan->convolution.description, queries[key.direction][i], 0);
    plan->bytes[i] = library->memory_desc_get_size(plan->chosen[i]);
    plan->plain_bytes[i] = library->memory_desc_get_size(plan->plain[i]);
    good = add_reorder(library, plan.get(), i);
  }
  return good ? plan : nullptr;
}

std::shared_ptr<Plan> plan_for(const OneDnn* library, const Key& key) {
  {
    std::lock_guard<std::mutex> held(cache_mutex);
    for (size_t i = 0; i < cache.size(); i++)
      if (!std::memcmp(&cache[i]->key, &key, sizeof key)) {
        std::rotate(cache.begin(), cache.begin() + long(i), cache.begin() + long(i) + 1);
        return cache[0];
      }
  }
  std::shared_ptr<Plan> made = make_plan(library, key);
  if (!made) return nullptr;
  std::lock_guard<std::mutex> held(cache_mutex);
  if (cache.size() >= kMaxCached) cache.pop_back();
  cache.insert(cache.begin(), made);
  return made;
}

struct Buffer { // from the caching allocator
  void* data;
  size_t bytes;
  explicit Buffer(size_t bytes) : data(bytes ? tpk_alloc(bytes) : nullptr), bytes(bytes) {}
  ~Buffer() { tpk_free(data, bytes); }
  bool missing() const { return bytes && !data; }
};

struct Argument {
  int name;
  const_dnnl_memory_desc_t md;
  const void* data;
};

bool execute(const OneDnn* library, const Step& step, const Argument* arguments, int count) {
  Buffer scratch(step.scratch_bytes);
  if (scratch.missing()) return false;
  dnnl_exec_arg_t list[6];
  int made = 0;
  bool good = true;
  for (int i = 0; i <= count && good; i++) {
    const Argument argument = i < count ? arguments[i] : Argument{DNNL_ARG_SCRATCHPAD, step.scratch, scratch.data};
    if (!argument.data) continue;
    list[made].arg = argument.name;
    good = library->memory_create(&list[made].memory, argument.md, engine(library), const_cast<void*>(argument.data)) ==
           dnnl_success;
    if (good) made++;
  }
  good = good && stream(library) &&
         library->primitive_execute(step.primitive, stream(library), made, list) == dnnl_success;
  for (int i = 0; i < made; i++) library->memory_destroy(list[i].memory);
  return good;
}

// Tensors of one call: input side, weights, output side. `weights` are already in the chosen layout unless a result.
struct Call {
  const Plan* plan;
  void* data[3];
  const float* bias;
  float* partial; // weight gradients of all pieces but the first
  std::atomic<int> failed{0};
};

bool reorder(const Plan& plan, int i, const void* from, void* to) {
  const bool back = i == plan.result();
  const Argument arguments[2] = {{DNNL_ARG_FROM, back ? plan.chosen[i] : plan.plain[i], from},
                                 {DNNL_ARG_TO, back ? plan.plain[i] : plan.chosen[i], to}};
  return execute(plan.library, plan.reorder[i], arguments, 2);
}

bool run_piece(const Plan& plan, void* const* data, const float* bias) {
  static const int names[3][3] = {{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
                                  {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
                                  {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
  OneThread one(plan.library);
  const int result = plan.result();
  const auto own = [&](int i) { // weights that are read were reordered before the pieces
    return plan.reorder[i].primitive && (i != 1 || result == 1) ? plan.bytes[i] : 0;
  };
  Buffer copies[3] = {Buffer(own(0)), Buffer(own(1)), Buffer(own(2))};
  Argument arguments[4];
  for (int i = 0; i < 3; i++) {
    if (copies[i].missing()) return false;
    if (copies[i].data && i != result && !reorder(plan, i, data[i], copies[i].data)) return false;
    arguments[i] = {names[plan.key.direction][i], plan.chosen[i], copies[i].data ? copies[i].data : data[i]};
  }
  arguments[3] = {DNNL_ARG_BIAS, plan.bias, bias};
  if (!execute(plan.library, plan.convolution, arguments, 4)) return false;
  return !copies[result].data || reorder(plan, result, copies[result].data, data[result]);
}

void run_pieces(void* context, int64_t begin, int64_t end) {
  Call* call = static_cast<Call*>(context);
  const Plan& plan = *call->plan;
  for (int64_t i = begin; i < end; i++) {
    void* data[3];
    for (int t = 0; t < 3; t++) {
      data[t] = t == 1 ? call->data[1] : static_cast<char*>(call->data[t]) + size_t(i) * plan.plain_bytes[t];
      if (t == 1 && plan.result() == 1 && i)
        data[1] = call->partial + size_t(i - 1) * plan.plain_bytes[1] / sizeof(float);
    }
    if (!run_piece(plan, data, call->bias)) call->failed.store(1);
  }
}

// Into how many pieces the batch is cut: a divisor of it, from the shape alone, so that every piece has one shape.
int64_t pieces_of(const tpk_convolution& c, Direction direction) {
  double flops = 2.0 * double(c.batch) * double(c.out_channels) * double(c.in_channels / c.groups);
  double weights = double(c.out_channels) * double(c.in_channels / c.groups) * sizeof(float);
  for (int d = 0; d < 3; d++) flops *= double(c.out[d] * c.kernel[d]), weights *= double(c.kernel[d]);
  int64_t wanted = int64_t(std::min(flops / kPieceFlops, double(kMaxPieces)));
  if (direction == kBackwardWeight)
    wanted = std::min(wanted, std::min<int64_t>(8, 1 + int64_t(double(kPartialBytes) / weights)));
  int64_t pieces = std::max<int64_t>(1, std::min(wanted, c.batch));
  while (c.batch % pieces) pieces--;
  return pieces;
}

bool run(const tpk_convolution& c, Direction direction, void* input, void* weight, void* output, const float* bias) {
  const OneDnn* library = tpk_onednn();
  if (!library) return false;
  const int64_t pieces = pieces_of(c, direction);
  Key key;
  std::memset(&key, 0, sizeof key);
  key.shape = c;
  key.shape.batch = c.batch / pieces;
  key.direction = direction, key.bias = bias != nullptr;
  std::shared_ptr<Plan> plan = plan_for(library, key);
  if (!plan) return false;
  Buffer packed(direction != kBackwardWeight && plan->reorder[1].primitive ? plan->bytes[1] : 0);
  Buffer partial(direction == kBackwardWeight ? plan->plain_bytes[1] * size_t(pieces - 1) : 0);
  if (packed.missing() || partial.missing()) return false;
  if (packed.data) {
    OneThread one(library);
    if (!reorder(*plan, 1, weight, packed.data)) return false;
  }
  Call call;
  call.plan = plan.get();
  call.data[0] = input, call.data[1] = packed.data ? packed.data : weight, call.data[2] = output;
  call.bias = bias;
  call.partial = static_cast<float*>(partial.data);
  tpk_parallel(pieces, 1, run_pieces, &call);
  if (direction == kBackwardWeight) { // in the order of the pieces, whoever computed them
    const size_t elements = plan->plain_bytes[1] / sizeof(float);
    float* target = static_cast<float*>(weight);
    for (int64_t p = 0; p + 1 < pieces; p++)
      for (size_t i = 0; i < elements; i++) target[i] += call.partial[size_t(p) * elements + i];
  }
  return !call.failed.load();
}

}  // namespace

bool tpk_library_conv(const tpk_convolution& c, const float* input, const float* weight, const float* bias,
                      float* out) {
  return run(c, kForward, const_cast<float*>(input), const_cast<float*>(weight), out, bias);
}

bool tpk_library_conv_backward_input(const tpk_convolution& c, const float* grad, const float* weight, float* dinput) {
  return run(c, kBackwardInput, dinput, const_cast<float*>(weight), const_cast<float*>(grad), nullptr);
}

bool tpk_library_conv_backward_weight(const tpk_convolution& c, const float* grad, const float* input, float* dweight) {
  return run(c, kBackwardWeight, const_cast<float*>(input), dweight, const_cast<float*>(grad), nullptr);
}
