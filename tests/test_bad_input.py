"""Nonsense from Python: one line a case, with the class of the error and all of what it says.

The `file:line` at the end of every message is taken off before the comparison, after a check that it is this file's."""
from __future__ import annotations

import re
import tracemalloc

import pytest

import tensorplay as tp
from tensorplay import nn

F = nn.functional
z, t = tp.zeros, tp.tensor
HERE = re.compile(r"(?:\S*/)?test_bad_input\.py:\d+")


def i(*shape: int) -> tp.Tensor:
    return tp.zeros(*shape, dtype=tp.int64)


def g(*shape: int) -> tp.Tensor:
    return tp.ones(*shape, requires_grad=True)


def twice() -> None:
    x = g(2)
    loss = (x * x).sum()
    loss.backward()
    loss.backward()


def changed() -> None:
    y = g(2) * 2
    loss = (y * y).sum()
    y.add_(1)
    loss.backward()


def nan_backward() -> None:
    with tp.autograd.detect_anomaly():
        x = tp.zeros(2, requires_grad=True)
        (x / x).sum().backward()


def nan_of_the_square_root() -> None:
    with tp.autograd.detect_anomaly():
        x = tp.zeros(2, requires_grad=True)
        (x.sqrt() * 0).sum().backward()


SHAPES = [  # Shapes that do not fit, in every family of operators.
    (lambda: z(2, 3) + z(4, 5), "ShapeError",
     "add: input[2, 3], other[4, 5] do not broadcast: sizes must be equal or 1, compared from the last dimension"),
    (lambda: z(2, 3).add_(z(4, 3)), "ShapeError",
     "add: input[2, 3], other[4, 3] do not broadcast: sizes must be equal or 1, compared from the last dimension"),
    (lambda: z(3).add_(z(2, 3)), "ShapeError", "add_: the result has shape [2, 3] but the tensor written to has [3]"),
    (lambda: tp.add(z(2), 1, out=z(3)), "ShapeError",
     "add(out=): the result has shape [2] but the tensor written to has [3]"),
    (lambda: tp.where(z(2) > 0, z(3), z(2)), "ShapeError",
     "where: condition[2], input[3], other[2] do not broadcast: sizes must be equal or 1, compared from the last "
     "dimension"),
    (lambda: z(2, 3).masked_fill(z(2, 2) > 0, 1), "ShapeError",
     "where: condition[2, 2], other[2, 3] do not broadcast: sizes must be equal or 1, compared from the last "
     "dimension"),
    (lambda: z(2, 3) @ z(4, 5), "ShapeError", "matmul: input[2, 3] @ other[4, 5]: inner sizes 3 and 4 differ"),
    (lambda: z(3) @ z(4), "ShapeError", "matmul: input[3] @ other[4]: inner sizes 3 and 4 differ"),
    (lambda: z(2, 3) @ z(4), "ShapeError", "matmul: input[2, 3] @ other[4]: inner sizes 3 and 4 differ"),
    (lambda: z(()) @ z(4), "ShapeError",
     "matmul: needs at least one dimension on both sides, got [] @ [4]; use * for scalars"),
    (lambda: tp.bmm(z(2, 3, 4), z(3, 4, 5)), "ShapeError",
     "bmm: input[2, 3, 4] @ mat2[3, 4, 5]: batch sizes 2 and 3 differ"),
    (lambda: tp.mm(z(2), z(2, 3)), "ShapeError", "mm: input must have 2 dimension(s), got [2]"),
    (lambda: tp.dot(z(2), z(3)), "ShapeError", "matmul: input[2] @ other[3]: inner sizes 2 and 3 differ"),
    (lambda: tp.outer(z(2, 2), z(3)), "ShapeError", "outer: input must have 1 dimension(s), got [2, 2]"),
    (lambda: tp.einsum("ij,jk->ik", z(2, 3), z(4, 5)), "ShapeError",
     "einsum: 'ij,jk->ik' with shapes [2, 3], [4, 5]: sizes 3 and 4 under 'j' differ"),
    (lambda: F.linear(z(8, 32), z(10, 64)), "ShapeError",
     "linear: input[8, 32] has 32 features but weight[10, 64] takes 64"),
    (lambda: F.linear(z(8, 64), z(10, 64), z(11)), "ShapeError",
     "linear: bias[11] does not fit weight[10, 64]; expected [10]"),
    (lambda: tp.conv2d(z(1, 3, 8, 8), z(4, 2, 3, 3)), "ShapeError",
     "conv: input[1, 3, 8, 8] has 3 channels and weight[4, 2, 3, 3] takes 2 in each of 1 groups; the channels out, "
     "4, must be a multiple of the groups"),
    (lambda: F.layer_norm(z(2, 3), (4,)), "ShapeError",
     "layer_norm: normalized_shape [4] must be the last sizes of input[2, 3]"),
    (lambda: F.layer_norm(z(2, 3), (3,), z(4)), "ShapeError",
     "layer_norm: weight[4] must have the normalized_shape [3]"),
    (lambda: F.rms_norm(z(2, 3), (4,)), "ShapeError",
     "rms_norm: normalized_shape [4] must be the last sizes of input[2, 3]"),
    (lambda: F.cross_entropy(z(2, 3), t([0, 1, 2])), "ShapeError",
     "cross_entropy: input[2, 3] (classes in dimension 1) needs target[2], got target[3]"),
    (lambda: F.cross_entropy(z(2, 3), z(2)), "ShapeError",
     "cross_entropy: probabilities must have input's shape [2, 3], got target[2]"),
    (lambda: F.nll_loss(z(2, 3), t([0, 1, 2])), "ShapeError",
     "nll_loss: input[2, 3] and target[3] do not fit: target has the sizes of input without the classes"),
    (lambda: F.mse_loss(z(2, 3), z(2, 4)), "ShapeError",
     "mse_loss: input[2, 3] and target[2, 4] must have the same shape"),
    (lambda: F.binary_cross_entropy_with_logits(z(2), z(3)), "ShapeError",
     "binary_cross_entropy_with_logits: input[2] and target[3] must have the same shape"),
    (lambda: F.scaled_dot_product_attention(z(1, 2, 3, 4), z(1, 2, 3, 5), z(1, 2, 3, 4)), "ShapeError",
     "scaled_dot_product_attention: query[1, 2, 3, 4], key[1, 2, 3, 5], value[1, 2, 3, 4]: batch sizes, key and "
     "value lengths and query and key features must be equal, and query heads a multiple of key heads"),
    (lambda: tp.cat([z(2, 3), z(2, 4)]), "ShapeError",
     "cat: tensor 1 has shape [2, 4], the first [2, 3]; all sizes but that of dimension 0 must be equal"),
    (lambda: tp.stack([z(2), z(3)]), "ShapeError", "stack: tensor 1 has shape [3], the first [2]; all must be equal"),
    (lambda: z(2, 3).reshape(4, 2), "ShapeError", "view: shape [2, 3] has 6 elements, [4, 2] has 8"),
    (lambda: z(2, 3).view(-1, -1), "ValueRangeError", "view: only one size can be -1, got [-1, -1]"),
    (lambda: z(2, 3).t().view(6), "ShapeError",
     "view: a tensor of shape [3, 2] with strides (1, 3) cannot be seen as [6] without a copy; use reshape"),
    (lambda: z(2, 3).expand(3, 3), "ShapeError",
     "expand: size 2 at dimension 0 of [2, 3] cannot become 3 of [3, 3]; only size 1 can"),
    (lambda: z(2, 3).permute(0), "ShapeError", "permute: 1 dims (0,) given for a tensor with 2 dimensions"),
    (lambda: z(2, 3).unflatten(1, (2, 2)), "ShapeError", "unflatten: shape [3] has 3 elements, [2, 2] has 4"),
    (lambda: z(2, 3).split([1, 1], 1), "ShapeError",
     "split: sections [1, 1] must add up to 3, the size of dimension 1"),
    (lambda: z(2, 3).narrow(0, 1, 5), "ShapeError",
     "narrow: 5 entries from 1 on do not lie within dimension 0 of size 2"),
    (lambda: z(2, 3).unfold(0, 5, 1), "ValueRangeError",
     "unfold: windows of size 5 every 1 do not fit dimension 0 of size 2"),
    (lambda: z(2, 3).gather(1, i(3, 3)), "ShapeError",
     "gather: index[3, 3] is larger than input[2, 3] in dimension 0"),
    (lambda: z(2, 3).topk(4), "ShapeError", "topk: k=4 is outside 0..3, the size of dimension 1 of input[2, 3]"),
    (lambda: z(2).copy_(z(3)), "ShapeError", "copy_: source[3] does not broadcast to input[2]"),
    (lambda: z(2, 3).repeat(2), "ShapeError", "repeat: 1 repetitions for a tensor with 2 dimensions"),
    (lambda: tp.tril(z(2)), "ShapeError", "tril: needs at least two dimensions, got [2]"),
    (lambda: tp.as_strided(z(4), (3, 3), (2, 1)), "ValueRangeError",
     "as_strided: size [3, 3] with strides (2, 1) from element 0 on reaches outside the tensor's memory of 4 elements"),
    (lambda: z(2).item(), "ShapeError",
     "item() takes a tensor with one element, this one has 2 (shape [2]); tolist() gives all of them"),
    (lambda: bool(z(2)), "ShapeError",
     "the truth value of a tensor with 2 elements is ambiguous; use x.any() or x.all()"),
    (lambda: len(z(())), "ArgumentError", "len() of a 0-d tensor"),
]
DTYPES = [  # Wrong dtypes, and values that a dtype cannot hold.
    (lambda: z(2) & z(2), "DTypeError",
     "bitwise_and: takes bool or integer operands, but input is float32, other is float32; convert with .long()"),
    (lambda: ~z(2), "DTypeError",
     "bitwise_not: takes bool or integer operands, but input is float32; convert with .long()"),
    (lambda: z(2) << 1, "DTypeError",
     "shift_left: takes integer operands, but input is float32; convert with .long()"),
    (lambda: -(z(2) > 0), "DTypeError", "neg: bool has no negative; use ~input or logical_not(input)"),
    (lambda: (z(2) > 0) - (z(2) > 0), "DTypeError",
     "sub: bools have no difference; use input ^ other or logical_xor(input, other)"),
    (lambda: i(3).mean(), "DTypeError",
     "mean: the result of averaging int64 is not an integer; use x.float().mean() or give a floating point dtype"),
    (lambda: i(2).add_(1.5), "DTypeError",
     "add_: the result is float32 and cannot be stored in a int64 tensor; use the form without '_' or convert the "
     "tensor first"),
    (lambda: t([1]).div_(2), "DTypeError",
     "div_: the result is float32 and cannot be stored in a int64 tensor; use the form without '_' or convert the "
     "tensor first"),
    (lambda: tp.add(z(2), 1, out=i(2)), "DTypeError",
     "add(out=): the result is float32 and cannot be stored in a int64 tensor; use the form without '_' or convert "
     "the tensor first"),
    (lambda: z(2, 3).masked_fill(z(2, 3), 1), "DTypeError",
     "where: condition must be bool, got float32; compare it, e.g. condition != 0"),
    (lambda: z(2, 3).gather(1, z(2, 3)), "DTypeError",
     "gather: index must be int64 (or int32), got float32; convert with .long()"),
    (lambda: F.embedding(z(2), z(3, 2)), "DTypeError",
     "embedding: indices must be int64 or int32, got float32; convert with .long()"),
    (lambda: i(2).requires_grad_(), "DTypeError",
     "only floating point and complex tensors can require gradients, this one is int64; convert it first, e.g. "
     "x.float()"),
    (lambda: tp.zeros(2, dtype=tp.int64, requires_grad=True), "DTypeError",
     "only floating point and complex tensors can require gradients, this one is int64; convert it first, e.g. "
     "x.float()"),
    (lambda: z(2, dtype="float33"), "DTypeError",
     "dtype must be a tensorplay dtype such as tensorplay.float32, got 'float33'"),
    (lambda: tp.set_default_dtype(tp.int32), "DTypeError",
     "set_default_dtype takes a floating point dtype, got tensorplay.int32"),
    (lambda: t(1.5).__index__(), "ArgumentError", "only integer tensors of one element can be used as an index"),
    (lambda: t([300], dtype=tp.uint8), "ValueRangeError",
     "a value does not fit into uint8: 300 is outside the range of uint8"),
    (lambda: t(2 ** 70), "ValueRangeError",
     "a value does not fit into int64: 1180591620717411303424 is outside the range of int64"),
    (lambda: i(2) // 0, "DivisionByZeroError", "floor_div: division by zero"),
]
DEVICES = [  # Unknown and mixed devices.
    (lambda: z(2, device="warp"), "DeviceUnavailable", "there is no device 'warp'. Devices here: DEVICES"),
    (lambda: z(2).to("warp"), "DeviceUnavailable", "there is no device 'warp'. Devices here: DEVICES"),
    (lambda: z(2, device="cuda"), "DeviceUnavailable",
     "device 'cuda' is provided by tp-cuda, which is not installed: pip install tp-cuda. Devices here: DEVICES"),
    (lambda: z(2, device="cpu:3"), "DeviceUnavailable", "cpu:3 does not exist: cpu has 1 device(s), numbered from 0"),
    (lambda: z(2, device=""), "ArgumentError",
     "a device is given as a string such as 'cpu' or 'cuda:0', or a tensorplay.device; got ''"),
    (lambda: z(2, device=3), "ArgumentError",
     "a device is given as a string such as 'cpu' or 'cuda:0', or a tensorplay.device; got 3"),
    (lambda: z(2) + z(2, device="meta"), "DeviceError",
     "add: input is on cpu but other is on meta; move one of them, e.g. other.to('cpu')"),
    (lambda: z(2, 2) @ z(2, device="meta"), "DeviceError",
     "matmul: input is on cpu but other is on meta; move one of them, e.g. other.to('cpu')"),
    (lambda: z(2, device="meta").tolist(), "DeviceError",
     "a tensor on device 'meta' has a shape and a dtype but no data; make it on another device, for example with "
     "tp.empty_like(x, device='cpu')"),
    (lambda: bool(z((), device="meta")), "DeviceError",
     "a tensor on device 'meta' has a shape and a dtype but no data; make it on another device, for example with "
     "tp.empty_like(x, device='cpu')"),
]
DIMS = [  # Dimensions out of range, and dimensions without entries.
    (lambda: z(2, 3).sum(5), "DimError",
     "sum: dim 5 is out of range for a tensor with 2 dimension(s): expected -2 to 1"),
    (lambda: z(2, 3).mean(-4), "DimError",
     "mean: dim -4 is out of range for a tensor with 2 dimension(s): expected -2 to 1"),
    (lambda: z(2, 3).sum((0, 0)), "DimError", "sum: a dimension appears twice in dim=(0, 0)"),
    (lambda: z(2, 3).softmax(3), "DimError",
     "softmax: dim 3 is out of range for a tensor with 2 dimension(s): expected -2 to 1"),
    (lambda: z(2, 3).cumsum(2), "DimError",
     "cumsum: dim 2 is out of range for a tensor with 2 dimension(s): expected -2 to 1"),
    (lambda: z(2, 3).sort(2), "DimError",
     "sort: dim 2 is out of range for a tensor with 2 dimension(s): expected -2 to 1"),
    (lambda: z(2, 3).transpose(0, 5), "DimError",
     "transpose: dim 5 is out of range for a tensor with 2 dimension(s): expected -2 to 1"),
    (lambda: z(2, 3).permute(0, 0), "DimError", "permute: a dimension appears twice in dim=(0, 0)"),
    (lambda: z(2, 3).squeeze(4), "DimError",
     "squeeze: dim 4 is out of range for a tensor with 2 dimension(s): expected -2 to 1"),
    (lambda: z(2, 3).diagonal(0, 0, 0), "ArgumentError", "diagonal: dim1 and dim2 are both 0; they must differ"),
    (lambda: tp.flip(z(2), 3), "DimError",
     "flip: dim 3 is out of range for a tensor with 1 dimension(s): expected -1 to 0"),
    (lambda: tp.roll(z(2), 1, 3), "DimError",
     "roll: dim 3 is out of range for a tensor with 1 dimension(s): expected -1 to 0"),
    (lambda: tp.cat([z(2), z(2)], 1), "DimError",
     "cat: dim 1 is out of range for a tensor with 1 dimension(s): expected -1 to 0"),
    (lambda: z(0).max(), "IndexRangeError",
     "amax: dimension 0 has size 0, so there is no value to choose; shape [0]"),
    (lambda: z(0).argmax(), "IndexRangeError", "argmax: the tensor has no elements; give a dim with a size above 0"),
    (lambda: z(2, 0).amax(1), "IndexRangeError",
     "amax: dimension 1 has size 0, so there is no value to choose; shape [2, 0]"),
]
INDICES = [  # Indices out of range or of the wrong kind.
    (lambda: z(2, 3)[5], "IndexRangeError", "index 5 is out of range for dimension 0 of size 2 (shape [2, 3])"),
    (lambda: z(2, 3)[0, 0, 0], "IndexRangeError",
     "too many indices: 3 for a tensor with 2 dimension(s) of shape [2, 3]"),
    (lambda: z(2, 3)["a"], "ArgumentError",
     "cannot index with 'a'; use ints, slices, None, '...', or integer or boolean tensors and lists"),
    (lambda: z(2, 3)[1.5], "ArgumentError",
     "cannot index with 1.5; use ints, slices, None, '...', or integer or boolean tensors and lists"),
    (lambda: z(2, 3)[None, ..., ...], "ArgumentError", "an index can contain only one '...'"),
    (lambda: z(2, 3)[t([4])], "IndexRangeError", "index: index 4 is out of range for dimension 0 of size 2"),
    (lambda: z(2, 3)[t([True, False, True])], "IndexRangeError",
     "a mask of shape [3] cannot index dimensions of sizes [2] (shape [2, 3])"),
    (lambda: z(2, 3)[t([0, 1]), t([0, 1, 2])], "ShapeError",
     "index: index tensors of shapes [2], [3] do not broadcast"),
    (lambda: z(2, 3).select(0, 7), "IndexRangeError",
     "index 7 is out of range for dimension 0 of size 2 (shape [2, 3])"),
    (lambda: z(2, 3).gather(1, t([[5]])), "IndexRangeError",
     "gather: index 5 is out of range for dimension 1 of size 3"),
    (lambda: z(2, 3).scatter(1, t([[7]]), z(2, 3)), "IndexRangeError",
     "scatter: index 7 is out of range for dimension 1 of size 3"),
    (lambda: z(2, 3).index_select(0, t([3])), "IndexRangeError",
     "index_select: index 3 is out of range for dimension 0 of size 2"),
    (lambda: F.embedding(t([5]), z(3, 2)), "IndexRangeError",
     "embedding: index 5 at position 0 is outside 0..2 (the table has 3 rows)"),
    (lambda: F.embedding(t([[0, 1], [2, -1]]), z(3, 2)), "IndexRangeError",
     "embedding: index -1 at position 3 is outside 0..2 (the table has 3 rows)"),
    (lambda: F.cross_entropy(z(2, 3), t([0, 3])), "IndexRangeError",
     "cross_entropy: target 3 at position 1 is outside 0..2"),
    (lambda: F.cross_entropy(z(2, 3), t([0, -1])), "IndexRangeError",
     "cross_entropy: target -1 at position 1 is outside 0..2"),
    (lambda: F.nll_loss(z(2, 3), t([0, 5])), "IndexRangeError",
     "nll_loss: a target is outside 0..2, the classes of input[2, 3]; gather: index 5 is out of range for dimension "
     "1 of size 3"),
    (lambda: F.one_hot(t([5]), 3), "ValueRangeError", "one_hot: indices must lie in 0..2"),
]
DATA = [  # Python data that is no tensor.
    (lambda: t([[1, 2], [3]]), "ShapeError",
     "ragged nested list: item [0] has shape [2] but item [1] has shape [1]; all items of a list must be alike"),
    (lambda: t([1, [2]]), "ShapeError",
     "ragged nested list: item [0] has shape [] but item [1] has shape [1]; all items of a list must be alike"),
    (lambda: t([[[1], [2]], [[3], [4, 5]]]), "ShapeError",
     "ragged nested list: item [1, 0] has shape [1] but item [1, 1] has shape [2]; all items of a list must be alike"),
    (lambda: t("abc"), "ArgumentError",
     "cannot make a tensor from the string 'abc'; encode it first, e.g. tp.tensor(list(text.encode()))"),
    (lambda: t(None), "ArgumentError",
     "cannot make a tensor from NoneType None; expected numbers, nested lists of numbers, an array, a buffer or a "
     "tensor"),
    (lambda: t([1, None]), "ArgumentError",
     "cannot make a tensor from NoneType None at index [1]; expected numbers, nested lists of numbers, an array, a "
     "buffer or a tensor"),
    (lambda: t([1, "a"]), "ArgumentError",
     "cannot make a tensor from str 'a' at index [1]; expected numbers, nested lists of numbers, an array, a buffer "
     "or a tensor"),
    (lambda: t({1: 2}), "ArgumentError",
     "cannot make a tensor from dict {1: 2}; expected numbers, nested lists of numbers, an array, a buffer or a "
     "tensor"),
    (lambda: tp.full((2,), "a"), "ArgumentError", "full: fill_value must be a number, got str 'a'"),
    (lambda: tp.frombuffer(b"123", dtype=tp.int32), "ValueRangeError",
     "frombuffer: count=-1 elements of 4 bytes at offset=0 do not fit the buffer of 3 bytes"),
    (lambda: tp.from_numpy([1]), "ArgumentError",
     "from_numpy takes a numpy.ndarray, got list; tp.tensor(data) takes numbers, lists and buffers"),
    (lambda: z(2) + "a", "ArgumentError", "add: argument 'other' must be a Tensor or a number, got str"),
    (lambda: z(2) + None, "ArgumentError", "add: argument 'other' must be a Tensor or a number, got None"),
    (lambda: z(2) + [1, 2], "ArgumentError",
     "add: argument 'other' must be a Tensor or a number, got list; make it one with tp.tensor(other)"),
    (lambda: tp.exp("a"), "ArgumentError", "exp: argument 'input' must be a Tensor or a number, got str"),
    (lambda: tp.exp(None), "ArgumentError", "exp: argument 'input' must be a Tensor or a number, got None"),
    (lambda: tp.sum([1, 2]), "ArgumentError",
     "sum: argument 'input' must be a Tensor, got list; make it one with tp.tensor(input)"),
    (lambda: tp.cat([]), "ArgumentError",
     "cat: got no tensor to work on: cat(Tensor[] tensors, int dim=0) -> Tensor"),
    (lambda: tp.cat([z(2), 3]), "ArgumentError",
     "cat: argument 'tensors' must be a list of Tensors, got int; make it one with tp.tensor(3)"),
    (lambda: z(2).pow("a"), "ArgumentError", "pow: argument 'exponent' must be a Tensor or a number, got str"),
    (lambda: z(2).clamp(), "ArgumentError", "clamp: at least one of min and max must be given"),
]
SIZES = [  # Sizes that make no sense.
    (lambda: z(-1), "ValueRangeError", "zeros: negative size -1 in shape [-1]"),
    (lambda: z(2, -3), "ValueRangeError", "zeros: negative size -3 in shape [2, -3]"),
    (lambda: z(2.5), "ArgumentError", "size must be an int, got 2.5 (float)"),
    (lambda: z("a"), "ArgumentError", "size must be an int, got 'a' (str)"),
    (lambda: z(2 ** 62, 2 ** 62), "ValueRangeError",
     "shape [4611686018427387904, 4611686018427387904] has 21267647932558653966460912964485513216 elements of 4 "
     "bytes in 2 dimensions; at most 4611686018427387904 bytes and 64 dimensions are possible"),
    (lambda: z(0, 2 ** 61, 2 ** 61), "ValueRangeError",
     "shape [0, 2305843009213693952, 2305843009213693952] has 0 elements of 4 bytes in 3 dimensions; at most "
     "4611686018427387904 bytes and 64 dimensions are possible"),
    (lambda: z(2 ** 100), "ValueRangeError",
     "shape [1267650600228229401496703205376] has 1267650600228229401496703205376 elements of 4 bytes in 1 "
     "dimensions; at most 4611686018427387904 bytes and 64 dimensions are possible"),
    (lambda: z(2).repeat(-1), "ValueRangeError", "repeat: repetitions must not be negative, got [-1]"),
    (lambda: tp.repeat_interleave(z(2), -1), "ValueRangeError",
     "repeat_interleave: repeats must not be negative, got -1"),
    (lambda: tp.randperm(-1), "ValueRangeError", "randperm: n must not be negative, got -1"),
    (lambda: tp.linspace(0, 1, -1), "ValueRangeError", "linspace: steps must not be negative, got -1"),
    (lambda: tp.arange(0, 1, 0), "ValueRangeError", "arange: step must not be 0"),
    (lambda: tp.arange(1, 0), "ValueRangeError", "arange: end 0 cannot be reached from start 1 with step 1"),
    (lambda: tp.arange(0, float("nan")), "ValueRangeError",
     "arange: start, end and step must be finite, got 0, nan and 1"),
    (lambda: z(2, 3).split(0), "ArgumentError", "split: split_size must be positive, got 0"),
    (lambda: z(2, 3).chunk(0), "ArgumentError", "chunk: chunks must be positive, got 0"),
]
MEMORY = [  # Sizes beyond memory: refused before anything is allocated.
    (lambda: z(2 ** 40, 2 ** 20), "MemoryLimitError", "out of memory: 4611686018427387904 bytes asked for"),
    (lambda: z(2 ** 44), "MemoryLimitError", "out of memory: 70368744177664 bytes asked for"),
    (lambda: tp.empty(2 ** 42), "MemoryLimitError", "out of memory: 17592186044416 bytes asked for"),
    (lambda: tp.ones(2 ** 40, dtype=tp.float64), "MemoryLimitError", "out of memory: 8796093022208 bytes asked for"),
    (lambda: z(2 ** 20).expand(2 ** 24, 2 ** 20).contiguous(), "MemoryLimitError",
     "out of memory: 70368744177664 bytes asked for"),
    (lambda: z(2 ** 22, 1) + z(2 ** 22), "MemoryLimitError", "out of memory: 70368744177664 bytes asked for"),
    (lambda: tp.eye(2 ** 24), "MemoryLimitError", "out of memory: 281474976710656 bytes asked for"),
    (lambda: tp.randn(2 ** 42), "MemoryLimitError", "out of memory: 17592186044416 bytes asked for"),
    (lambda: tp.arange(2 ** 42), "MemoryLimitError", "out of memory: 35184372088832 bytes asked for"),
    (lambda: tp.tensor([0.0]).repeat(2 ** 42), "MemoryLimitError", "out of memory: 17592186044416 bytes asked for"),
]
NUMBERS = [  # Settings out of range.
    (lambda: tp.manual_seed("a"), "ArgumentError", "manual_seed takes an int, got 'a'"),
    (lambda: tp.manual_seed(2 ** 65), "ValueRangeError", "a seed has 64 bits, 36893488147419103232 does not fit"),
    (lambda: tp.multinomial(t([-1.0, 1.0]), 1), "ValueRangeError",
     "multinomial: probabilities must be finite and not negative"),
    (lambda: tp.multinomial(t([1.0, 1.0]), 5), "ValueRangeError",
     "multinomial: cannot draw 5 samples from 2 categories without replacement"),
    (lambda: tp.multinomial(t([0.0, 0.0]), 1), "ValueRangeError",
     "multinomial: the probabilities of a row add up to 0"),
    (lambda: tp.randint(5, 2, (2,)), "ValueRangeError", "randint: high 2 must be above low 5"),
    (lambda: z(2).normal_(0, -1), "ValueRangeError", "normal_: std must not be negative, got -1"),
    (lambda: z(2).uniform_(1, 0), "ValueRangeError",
     "uniform_: the range must go from a low to a higher number, got 1 to 0"),
    (lambda: F.dropout(z(2), 1.5), "ValueRangeError", "dropout: p is a probability between 0 and 1, got 1.5"),
    (lambda: F.gelu(z(2), approximate="x"), "ValueRangeError", "gelu: approximate must be 'none' or 'tanh', got 'x'"),
    (lambda: F.cross_entropy(z(2, 3), t([0, 1]), reduction="avg"), "ArgumentError",
     "cross_entropy: reduction must be 'mean', 'sum' or 'none', got 'avg'"),
    (lambda: tp.set_num_threads(0), "ValueRangeError", "set_num_threads takes a whole number from 1 to 1024, got 0"),
    (lambda: tp.set_num_threads("a"), "ValueRangeError",
     "set_num_threads takes a whole number from 1 to 1024, got 'a'"),
]
PLUGINS = [  # Plugins that are not installed.
    (lambda: tp.stax, "MissingAttributeError",
     "tensorplay.stax is provided by tp-stax, which is not installed: pip install tp-stax"),
    (lambda: tp.data, "MissingAttributeError",
     "tensorplay.data is provided by tp-data, which is not installed: pip install tp-data"),
    (lambda: z(2, device="vulkan"), "DeviceUnavailable",
     "device 'vulkan' is provided by tp-vulkan, which is not installed: pip install tp-vulkan. Devices here: DEVICES"),
]
AUTOGRAD = [  # Misuse of gradients.
    (lambda: g(2).add_(1), "AutogradError",
     "add_: a leaf tensor that requires grad cannot be changed in place while gradients are recorded; do it under "
     "tp.no_grad(), or use the form without '_'"),
    (lambda: g(2)[0].mul_(2), "AutogradError",
     "mul_: this tensor is a view of a leaf tensor that requires grad, which cannot be changed in place while "
     "gradients are recorded; do it under tp.no_grad(), or write to a .clone()"),
    (lambda: g(2).__setitem__(0, 1), "AutogradError",
     "copy_: this tensor is a view of a leaf tensor that requires grad, which cannot be changed in place while "
     "gradients are recorded; do it under tp.no_grad(), or write to a .clone()"),
    (lambda: g(2).view(2, 1).copy_(z(2, 1)), "AutogradError",
     "copy_: this tensor is a view of a leaf tensor that requires grad, which cannot be changed in place while "
     "gradients are recorded; do it under tp.no_grad(), or write to a .clone()"),
    (lambda: z(1).expand(3).add_(1), "AutogradError",
     "add_: several elements of the tensor share one memory cell (it was expanded); call .clone() first"),
    (lambda: (g(2) * 2).backward(), "AutogradError",
     "backward: this tensor has shape [2], and only a scalar has an implicit gradient; reduce it, e.g. with .sum(), "
     "or pass its gradient"),
    (lambda: (g(2) * 2).backward(tp.ones(3)), "AutogradError",
     "backward: the gradient has shape [3], but the tensor that it belongs to has shape [2]"),
    (lambda: tp.ones(()).backward(), "AutogradError",
     "backward: this tensor has no graph: nothing it was computed from requires grad, or it was computed under "
     "no_grad()"),
    (lambda: twice(), "AutogradError",
     "MulBackward0: cannot go backward a second time: the tensors that it saved were freed by the first backward "
     "pass; pass retain_graph=True to the first one"),
    (lambda: changed(), "AutogradError",
     "Mul saved 'other' [2] for the backward pass but it was changed in place by add_ at LINE after "
     "that (it is at version 1, saved was version 0); use the form without '_', or change a .clone()"),
    (lambda: tp.autograd.grad(g(2).sum(), g(3)), "AutogradError",
     "grad: the outputs do not depend on input 0 (shape [3]); pass allow_unused=True to get None for it"),
    (lambda: (g(2) * 2).requires_grad_(False), "AutogradError",
     "requires_grad can only be turned off on leaf tensors; x.detach() gives a tensor without history"),
    (lambda: g(2).numpy(), "AutogradError",
     "a tensor that requires grad cannot share its memory with NumPy; use x.detach().numpy()"),
    (lambda: tp.add(g(2), 1, out=z(2)), "AutogradError",
     "add: out= does not support automatic differentiation, but an argument or out requires grad; use the returned "
     "value instead, or tp.no_grad()"),
    (lambda: nan_backward(), "AutogradError",
     "DivBackward0 returned NaN as the gradient of its input 1; it was recorded at LINE"),
    (lambda: nan_of_the_square_root(), "AutogradError",
     "SqrtBackward0 returned NaN as the gradient of its input 0; it was recorded at LINE"),
    (lambda: F.cross_entropy(z(2, 3), t([0, 1]), weight=g(3)).backward(), "AutogradError",
     "cross_entropy has no gradient for its class weights; pass weight.detach()"),
]

ALL = [*SHAPES, *DTYPES, *DEVICES, *DIMS, *INDICES, *DATA, *SIZES, *NUMBERS, *PLUGINS, *AUTOGRAD]


@pytest.mark.parametrize(("call", "error", "message"), ALL, ids=[case[2][:60] for case in ALL])
def test_bad_input(call, error, message) -> None:
    with pytest.raises(tp.TensorPlayError) as caught:
        call()
    text = HERE.sub("LINE", re.sub("Devices here: [a-z, ]+", "Devices here: DEVICES ", str(caught.value)))
    assert type(caught.value).__name__ == error
    assert text.endswith(" (LINE)") and text.removesuffix(" (LINE)") == message


@pytest.mark.parametrize(("call", "error", "start"), MEMORY)
def test_nothing_is_allocated(call, error, start) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(tp.TensorPlayError) as caught:
            call()
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert type(caught.value).__name__ == error and str(caught.value).startswith(start)


CLASSES = [  # programs written for torch or plain Python catch these
    (lambda: z(2) @ z(3), (RuntimeError, ValueError)), (lambda: z(2).sum(3), IndexError), (lambda: z(2)[5], IndexError),
    (lambda: z(2) & z(2), (RuntimeError, TypeError)), (lambda: z(2) + "a", TypeError), (lambda: z(-1), ValueError),
    (lambda: z(2 ** 44), MemoryError), (lambda: i(2) // 0, ZeroDivisionError),
    (lambda: z(2, device="warp"), RuntimeError), (lambda: tp.ones(()).backward(), RuntimeError),
    (lambda: tp.stax, AttributeError),
]


@pytest.mark.parametrize(("call", "errors"), CLASSES)
def test_classes_are_those_one_would_catch(call, errors) -> None:
    for error in errors if isinstance(errors, tuple) else (errors,):
        with pytest.raises(error):
            call()


def test_a_failed_call_leaves_its_operands_alone() -> None:
    x = t([1.0, 2.0])
    version = x._version
    for call in (lambda: x.add_(z(3)), lambda: x.copy_(z(5)), lambda: x.__setitem__(7, 1.0), lambda: x.div_("a")):
        with pytest.raises(tp.TensorPlayError):
            call()
    assert x.tolist() == [1.0, 2.0] and x._version == version
