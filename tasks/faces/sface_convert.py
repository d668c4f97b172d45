"""Makes the runnable SFace (fp32, any batch) of the distributed int8 file, which onnxruntime cannot load.

The distributed graph lists every weight as an input and stores the weights block-quantised behind
DequantizeLinear nodes that would run again at every call. Folding them once is exact (same fp32 products),
twice as fast to run, and leaves a graph with the one input `data`. Writing each PRelu as four plain operations is
exact as well, and twice as fast again: onnxruntime's own spends more time than all convolutions together.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def convert(source: Path, target: Path) -> None:
    """Write the fp32 form of an int8 block-quantised ONNX network.

    Args:
        source: The OpenCV Zoo file `face_recognition_sface_2021dec_int8bq.onnx`.
        target: Where the result goes: input `data` (N, 3, 112, 112) float32 RGB in 0..255, output (N, 128).
    """
    import onnx
    from onnx import numpy_helper

    model = onnx.load(str(source))
    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    kept = []
    renamed: dict[str, str] = {}
    for node in graph.node:
        for index, name in enumerate(node.input):
            node.input[index] = renamed.get(name, name)
        if node.op_type == "DequantizeLinear":
            tensors = [numpy_helper.to_array(constants[name]) for name in node.input]
            constants[node.output[0]] = numpy_helper.from_array(_dequantise(node, tensors), node.output[0])
        elif node.op_type == "Reshape" and all(name in constants for name in node.input):
            values, shape = (numpy_helper.to_array(constants[name]) for name in node.input)
            constants[node.output[0]] = numpy_helper.from_array(values.reshape(shape), node.output[0])
        elif node.op_type == "PRelu":
            kept.extend(_without_prelu(node))
        elif node.op_type == "Dropout":  # nothing to do at inference
            renamed[node.output[0]] = node.input[0]
        else:
            kept.append(node)

    data = next(value for value in graph.input if value.name == "data")
    used = {name for node in kept for name in node.input}
    del graph.node[:], graph.input[:], graph.value_info[:], graph.initializer[:]
    graph.node.extend(kept)
    graph.input.append(data)
    graph.initializer.extend(tensor for name, tensor in constants.items() if name in used)
    for value in (*graph.input, *graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    onnx.checker.check_model(model)
    target.write_bytes(model.SerializeToString(deterministic=True))


def _without_prelu(node: Any) -> list[Any]:
    """relu(x) + slope · (x − relu(x)): bit for bit what PRelu gives, since one of the two summands is always 0."""
    from onnx import helper

    (data, slope), (result,) = node.input, node.output
    above, below, scaled = (f"{result}_{part}" for part in ("above", "below", "scaled"))
    return [
        helper.make_node("Relu", [data], [above]),
        helper.make_node("Sub", [data, above], [below]),
        helper.make_node("Mul", [below, slope], [scaled]),
        helper.make_node("Add", [above, scaled], [result]),
    ]


def _dequantise(node: Any, tensors: list[NDArray[Any]]) -> NDArray[np.float32]:
    """(x − zero point) · scale, per tensor, per channel or per block along the node's axis, as ONNX defines it."""
    from onnx import helper

    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    axis, block = attributes.get("axis", 1), attributes.get("block_size", 0)
    values, *rest = tensors

    def spread(parameter: NDArray[Any]) -> NDArray[Any]:
        if block:
            return np.repeat(parameter, block, axis=axis).take(range(values.shape[axis]), axis=axis)
        if parameter.ndim == 1 and parameter.size > 1:
            return parameter.reshape([-1 if index == axis else 1 for index in range(values.ndim)])
        return parameter

    scale, zero = spread(rest[0]), spread(rest[1]) if len(rest) > 1 else np.zeros((), np.float32)
    return np.asarray((values.astype(np.float32) - zero.astype(np.float32)) * scale, np.float32)
