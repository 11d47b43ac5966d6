// A convolution as the library and the im2col fallback see it: three spatial sizes, missing ones are 1.
#pragma once
#include "tpk.h"

struct tpk_convolution {
  int64_t batch, groups, in_channels, out_channels;
  int64_t in[3], kernel[3], out[3], stride[3], padding[3], dilation[3];
};

// All tensors dense, channels first. False: not available, nothing was written.
bool tpk_library_conv(const tpk_convolution& c, const float* input, const float* weight, const float* bias, float* out);
bool tpk_library_conv_backward_input(const tpk_convolution& c, const float* grad, const float* weight, float* dinput);
bool tpk_library_conv_backward_weight(const tpk_convolution& c, const float* grad, const float* input, float* dweight);
