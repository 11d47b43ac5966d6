// For builds whose library has products only: convolutions go through im2col.
#include "convolution.h"

bool tpk_library_conv(const tpk_convolution&, const float*, const float*, const float*, float*) { return false; }
bool tpk_library_conv_backward_input(const tpk_convolution&, const float*, const float*, float*) { return false; }
bool tpk_library_conv_backward_weight(const tpk_convolution&, const float*, const float*, float*) { return false; }
