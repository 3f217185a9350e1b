# SPDX-License-Identifier: Apache-2.0
"""An interpreter of ONNX graphs in numpy, for the operators that sgpctl writes.

Each function below is an operator, written from its specification (https://onnx.ai/onnx/operators): of operator set 13 of
ai.onnx, and of set 1 of ai.onnx.ml. Its positional arguments are the inputs, and its keywords the attributes with their defaults.
An attribute that is not here is an error. Sums are made in float64, and rounded to the type of the result."""
import numpy as np
import onnx
from onnx import numpy_helper

TYPES = {onnx.TensorProto.FLOAT: np.float32, onnx.TensorProto.DOUBLE: np.float64, onnx.TensorProto.INT64: np.int64,
         onnx.TensorProto.BOOL: np.bool_, onnx.TensorProto.STRING: np.object_}


def same(*arrays):
    """Operators take tensors of one type: nothing is converted on the way."""
    assert len({a.dtype for a in arrays}) == 1, [a.dtype for a in arrays]
    return arrays[0].dtype


# ---- element by element ----

def Add(a, b):
    same(a, b)
    return a + b


def Sub(a, b):
    same(a, b)
    return a - b


def Mul(a, b):
    same(a, b)
    return a * b


def Div(a, b):
    same(a, b)
    return a / b


def Relu(x):
    return np.maximum(x, 0).astype(x.dtype)


def Tanh(x):
    return np.tanh(x)


def Sigmoid(x):
    return (1 / (1 + np.exp(-x.astype("f8")))).astype(x.dtype)


def Identity(x):
    return x


def IsNaN(x):
    return np.isnan(x)


def Greater(a, b):
    same(a, b)
    return a > b


def Where(condition, x, y):
    assert condition.dtype == np.bool_
    return np.where(condition, x, y).astype(same(x, y))


def Clip(x, least, most):
    same(x, least, most)
    return np.minimum(np.maximum(x, least), most)


def Cast(x, *, to):
    return x.astype(TYPES[to])


# ---- shapes ----

def Reshape(x, shape, *, allowzero=0):
    assert allowzero == 0
    return x.reshape([x.shape[i] if size == 0 else size for i, size in enumerate(shape)])


def Flatten(x, *, axis=1):
    return x.reshape(int(np.prod(x.shape[:axis])), -1)


def Transpose(x, *, perm):
    return x.transpose(perm)


def Concat(*parts, axis):
    same(*parts)
    return np.concatenate(parts, axis)


def Gather(data, indices, *, axis=0):
    assert indices.dtype == np.int64
    return np.take(data, indices, axis)


# ---- rows ----

def ReduceMax(x, *, axes, keepdims=1):
    return x.max(axis=tuple(axes), keepdims=bool(keepdims))


def ArgMax(x, *, axis=0, keepdims=1, select_last_index=0):
    assert select_last_index == 0
    return x.argmax(axis=axis, keepdims=bool(keepdims))


def Softmax(x, *, axis=-1):
    z = np.exp(x.astype("f8") - x.max(axis=axis, keepdims=True))
    return (z / z.sum(axis=axis, keepdims=True)).astype(x.dtype)


def OneHotEncoder(x, *, cats_strings, zeros=1):
    """A one where the word is; all zeros for another word, or an error of the operator."""
    assert x.dtype == np.object_
    names = np.array([name.decode() for name in cats_strings], np.object_)
    found = (x[..., None] == names).astype(np.float32)
    if not zeros and not found.any(axis=-1).all():
        raise ValueError("unknown category")
    return found


# ---- layers ----

def Gemm(a, b, c, *, alpha=1.0, beta=1.0, transA=0, transB=0):
    kind = same(a, b, c)
    a, b = (m.astype("f8").T if turned else m.astype("f8") for m, turned in ((a, transA), (b, transB)))
    return (alpha * (a @ b) + beta * c).astype(kind)


def windows(x, kernel, strides, pads, value):
    """[rows, channels, windows down, windows across, height, width] of an image with a frame of values."""
    x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])), constant_values=value)
    x = np.lib.stride_tricks.sliding_window_view(x, tuple(kernel), axis=(2, 3))
    return x[:, :, ::strides[0], ::strides[1]]


def Conv(x, w, b, *, kernel_shape, strides, pads, dilations=(1, 1), group=1):
    assert tuple(dilations) == (1, 1) and group == 1 and list(w.shape[2:]) == list(kernel_shape)
    seen = windows(x.astype("f8"), kernel_shape, strides, pads, 0)
    return (np.einsum("nchwij,ocij->nohw", seen, w.astype("f8")) + b[:, None, None]).astype(same(x, w, b))


def MaxPool(x, *, kernel_shape, strides, pads, ceil_mode=0):
    assert ceil_mode == 0
    return windows(x, kernel_shape, strides, pads, -np.inf).max(axis=(4, 5))


def AveragePool(x, *, kernel_shape, strides, pads, ceil_mode=0, count_include_pad=0):
    assert ceil_mode == 0 and count_include_pad == 0
    return np.nanmean(windows(x.astype("f8"), kernel_shape, strides, pads, np.nan), axis=(4, 5)).astype(x.dtype)


def GlobalMaxPool(x):
    return x.max(axis=tuple(range(2, x.ndim)), keepdims=True)


def GlobalAveragePool(x):
    return x.astype("f8").mean(axis=tuple(range(2, x.ndim)), keepdims=True).astype(x.dtype)


def channelwise(x, vector):
    return vector.astype("f8").reshape((1, -1) + (1,) * (x.ndim - 2))


def BatchNormalization(x, scale, shift, mean, variance, *, epsilon=1e-5, momentum=0.9):
    kind = same(x, scale, shift, mean, variance)
    deviation = np.sqrt(channelwise(x, variance) + epsilon)
    return ((x - channelwise(x, mean)) / deviation * channelwise(x, scale) + channelwise(x, shift)).astype(kind)


def InstanceNormalization(x, scale, shift, *, epsilon=1e-5):
    assert x.ndim >= 3
    kind, axes, x = same(x, scale, shift), tuple(range(2, x.ndim)), x.astype("f8")
    normal = (x - x.mean(axis=axes, keepdims=True)) / np.sqrt(x.var(axis=axes, keepdims=True) + epsilon)
    return (normal * channelwise(x, scale) + channelwise(x, shift)).astype(kind)


# ---- graphs ----

DOMAINS = {"OneHotEncoder": "ai.onnx.ml"}  # of all others: ai.onnx, whose name is empty


def constant(tensor):
    values = numpy_helper.to_array(tensor)
    return np.array([text.decode() for text in tensor.string_data], np.object_) if values.dtype == np.object_ else values


def check_input(value, array):
    """Type and shape are those that the graph declares."""
    kind = value.type.tensor_type
    sizes = [dim.dim_value or dim.dim_param for dim in kind.shape.dim]
    assert array.dtype == TYPES[kind.elem_type], (value.name, array.dtype)
    assert len(sizes) == array.ndim and all(a == b or isinstance(b, str) for a, b in zip(array.shape, sizes)), (value.name, array.shape)


def run(model, inputs):
    """The outputs of a model by their names."""
    sets = {entry.domain: entry.version for entry in model.opset_import}
    values = {tensor.name: constant(tensor) for tensor in model.graph.initializer}
    assert set(inputs) == {value.name for value in model.graph.input}
    for value in model.graph.input:
        check_input(value, inputs[value.name])
    values |= inputs
    for node in model.graph.node:
        assert DOMAINS.get(node.op_type, "") == node.domain and node.domain in sets, node
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        name, = node.output
        assert name not in values
        values[name] = np.asarray(globals()[node.op_type](*(values[i] for i in node.input), **attributes))
    for value in model.graph.output:
        check_input(value, values[value.name])
    return {value.name: values[value.name] for value in model.graph.output}
