"""The converted identity network computes what the distributed one says, bit for bit."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from tasks.faces.sface_convert import convert


def outputs(model: Path, data: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    (result,) = session.run(None, {"data": data})
    return np.asarray(result)


def test_a_network_without_prelu_gives_the_same_bits(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    weight = numpy_helper.from_array(random.normal(size=(8, 3, 3, 3)).astype(np.float32), "weight")
    slope = numpy_helper.from_array(np.linspace(-0.6, 1.2, 8, dtype=np.float32).reshape(8, 1, 1), "slope")
    nodes = [
        helper.make_node("Conv", ["data", "weight"], ["seen"]),
        helper.make_node("PRelu", ["seen", "slope"], ["result"]),
    ]
    sides = (
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, [1, 3, 16, 16])],
        [helper.make_tensor_value_info("result", TensorProto.FLOAT, [1, 8, 14, 14])],
    )
    graph = helper.make_graph(nodes, "net", *sides, [weight, slope])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, str(tmp_path / "before.onnx"))
    convert(tmp_path / "before.onnx", tmp_path / "after.onnx")
    assert "PRelu" not in {node.op_type for node in onnx.load(str(tmp_path / "after.onnx")).graph.node}
    data = random.normal(size=(2, 3, 16, 16)).astype(np.float32)
    before = np.concatenate([outputs(tmp_path / "before.onnx", one[None]) for one in data])
    assert (before < 0).any(), "both sides of zero are seen"
    assert np.array_equal(outputs(tmp_path / "after.onnx", data), before)
