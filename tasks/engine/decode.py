"""The one door for pictures: bytes of an image file in, upright sRGB 8-bit pixels out; and our own stored PNGs.

Reasons of `UnreadableImage`, from here: `empty`, `not_an_image`, `truncated`, `broken`, `animated`, `too_large`,
`too_small`, `unsupported`.
"""

import io
import struct
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from tasks.engine.errors import UnreadableImage

if TYPE_CHECKING:
    from PIL import Image, ImageCms

MIN_SIDE: Final = 16
MAX_PIXELS: Final = 50_000_000

# Named, because Pillow would otherwise try forty formats, one of which starts Ghostscript.
_FORMATS: Final = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")
_MAGIC: Final = (b"\xff\xd8\xff", b"\x89PNG", b"RIFF", b"BM", b"GIF8", b"II*\0", b"MM\0*")
_ORIENTATION: Final = 0x0112
_FLIPS: Final = {2: (1, -1), 3: (-1, -1), 4: (-1, 1), 6: (1, -1), 7: (-1, -1), 8: (-1, 1)}
_PNG_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_PNG_UP: Final = 2  # the filter "difference from the row above"


def decode(data: bytes, max_pixels: int = MAX_PIXELS) -> NDArray[np.uint8]:
    """The pixels of an image file, as they should be seen: EXIF orientation applied and all metadata dropped.

    An embedded ICC profile is converted to sRGB; a broken one, or one of another colour space than the pixels', is
    ignored and the numbers are taken for sRGB. CMYK becomes RGB, grey is repeated, 16 bits are scaled to 8
    (v / 257, rounded), and alpha, also a palette's, is composited over white. Of a multi-picture JPEG (MPO: many
    phones and cameras) the first picture is taken; any other file of several frames is refused.

    Args:
        data: The whole file; JPEG, PNG, WebP, BMP, GIF or TIFF, whatever its name says.
        max_pixels: More than these are refused from the header, before anything is allocated.

    Returns:
        RGB (H, W, 3) uint8, C-contiguous, writable, both sides at least 16.

    Raises:
        UnreadableImage: With one of the reasons above; never a partly decoded picture.
    """
    if not data:
        raise UnreadableImage("empty", "the file has no bytes")
    try:
        with _open(data, max_pixels) as image:
            pixels = _rgb(image, data)
            orientation = _orientation(image)  # after the pixels: asking a PNG decodes it, and a TIFF turns itself
    except (UnreadableImage, MemoryError):
        raise
    except Exception as error:  # on hostile bytes the decoders raise whatever they like
        reason = "truncated" if _says_truncated(error, data) else "broken"
        raise UnreadableImage(reason, f"{len(data)} bytes: {error}") from error
    return np.array(_upright(pixels, orientation), dtype=np.uint8, order="C")


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """The PNG we store: the same bytes for the same pixels on every machine, no metadata, fast rather than small.

    Each row is stored as its difference from the row above, deflated by libdeflate at level 1. Filter and level are
    part of every digest: others give other bytes for the same pixels. OpenCV's encoder takes twice the time for a
    larger file; ISA-L's deflate would take half, but its bytes depend on the processor.

    Args:
        pixels: RGB (H, W, 3) uint8.
    """
    import deflate

    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or 0 in pixels.shape:
        raise ValueError(f"expected RGB (H, W, 3) uint8, got {pixels.shape} {pixels.dtype}")
    height, width = pixels.shape[:2]
    rows = np.ascontiguousarray(pixels).reshape(height, 3 * width)
    filtered = np.empty((height, 1 + 3 * width), np.uint8)
    filtered[:, 0] = _PNG_UP
    filtered[0, 1:] = rows[0]
    np.subtract(rows[1:], rows[:-1], out=filtered[1:, 1:])
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits, RGB, not interlaced
    chunks = ((b"IHDR", header), (b"IDAT", deflate.zlib_compress(filtered, 1)), (b"IEND", b""))
    return _PNG_SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(name)))
        for name, data in chunks
    )


def decode_png(data: bytes) -> NDArray[np.uint8]:
    """The pixels of a PNG that `encode_png` made: RGB (H, W, 3) uint8. Foreign files come in by `decode`.

    Raises:
        UnreadableImage: The file was cut or damaged in the store (`truncated`, `broken`).
    """
    import cv2

    # OpenCV gives the rows it has of a cut file, and black for the rest; a whole PNG ends with this chunk.
    if not data.endswith(b"IEND\xaeB`\x82"):
        raise UnreadableImage("truncated", f"the stored PNG ends after {len(data)} bytes")
    bgr = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    if bgr is None:
        raise UnreadableImage("broken", f"OpenCV cannot read the stored PNG of {len(data)} bytes")
    return np.asarray(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB), np.uint8)


def _open(data: bytes, max_pixels: int) -> "Image.Image":
    """The opened file, its size and frames checked; no pixel is decoded yet."""
    from PIL import Image, UnidentifiedImageError

    try:
        image = Image.open(io.BytesIO(data), formats=_FORMATS)
    except UnidentifiedImageError:
        if data.startswith(_MAGIC):
            raise UnreadableImage("truncated", f"only {len(data)} bytes, which begin like an image") from None
        raise UnreadableImage("not_an_image", f"{len(data)} bytes, none of {', '.join(_FORMATS)}") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise UnreadableImage("too_large", f"more than {max_pixels} pixels: {error}") from None
    width, height = image.size
    if width * height > max_pixels:
        raise UnreadableImage("too_large", f"{width} × {height} is more than {max_pixels} pixels")
    if min(width, height) < MIN_SIDE:
        raise UnreadableImage("too_small", f"{width} × {height}: less than {MIN_SIDE} pixels a side")
    if image.format != "MPO" and getattr(image, "is_animated", False):
        raise UnreadableImage("animated", f"{image.format} of more than one frame")
    return image


def _rgb(image: "Image.Image", data: bytes) -> NDArray[np.uint8]:
    """(H, W, 3) uint8 as stored, not yet turned upright."""
    from PIL import Image

    profile = image.info.get("icc_profile")
    if image.mode.startswith("I;16") or _deep_colour(image):
        image = Image.fromarray(_to_8_bit(_deep_pixels(image, data)))
    elif image.mode in ("I", "F"):
        raise UnreadableImage("unsupported", f"pixels of mode {image.mode} have no defined white")
    image.load()
    if image.mode == "1":
        image = image.convert("L")
    elif image.mode == "P" or "transparency" in image.info or image.mode.endswith(("A", "a")):
        image = image.convert("RGBA")
    alpha = image.getchannel("A") if image.mode == "RGBA" else None
    colour = image.convert("RGB") if alpha is not None else image
    colour = _to_srgb(colour, profile)
    if alpha is not None:
        white = Image.new("RGB", colour.size, (255, 255, 255))
        colour = Image.composite(colour, white, alpha)
    return np.asarray(colour, np.uint8)


def _deep_colour(image: "Image.Image") -> bool:
    """Whether the file has 16 bits a channel where Pillow would keep only the upper eight."""
    return any(";16" in str(tile[3]) for tile in getattr(image, "tile", []))


def _deep_pixels(image: "Image.Image", data: bytes) -> NDArray[np.uint16]:
    """(H, W) or (H, W, 3 or 4) uint16; colour through OpenCV, since Pillow has no such mode."""
    if image.mode.startswith("I;16"):
        return np.asarray(image).astype(np.uint16)
    image.load()  # OpenCV gives a cut file's rows without a word; Pillow's decoder says that it is cut
    import cv2

    deep = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    if deep is None or deep.dtype != np.uint16:
        raise UnreadableImage("unsupported", "16 bits a channel in a layout that OpenCV cannot read")
    if deep.ndim == 3:
        deep = cv2.cvtColor(deep, cv2.COLOR_BGRA2RGBA if deep.shape[2] == 4 else cv2.COLOR_BGR2RGB)
    return np.asarray(deep, np.uint16)


def _to_8_bit(deep: NDArray[np.uint16]) -> NDArray[np.uint8]:
    """65535 → 255 and halves rounded; a plain shift would lose up to one step."""
    return ((deep.astype(np.uint32) * 255 + 32767) // 65535).astype(np.uint8)


def _to_srgb(image: "Image.Image", profile: bytes | None) -> "Image.Image":
    """The colours of an opaque image in sRGB, mode RGB."""
    from PIL import ImageCms

    if profile:
        try:
            transform = _transform(profile, image.mode)
            if transform is not None:
                converted = ImageCms.applyTransform(image, transform)
                if converted is not None:
                    return converted
        except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
            pass  # a profile that is broken or not of these pixels: the numbers are taken for sRGB, as browsers do
    return image.convert("RGB")


@lru_cache(maxsize=32)
def _transform(profile: bytes, mode: str) -> "ImageCms.ImageCmsTransform | None":
    """Profile → sRGB for pixels of `mode`; None where the profile is sRGB itself, whose round trip only adds noise."""
    from PIL import Image, ImageCms

    source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
    transform = ImageCms.buildTransform(source, ImageCms.createProfile("sRGB"), mode, "RGB")
    if mode == "RGB":
        steps = np.arange(0, 256, 17, dtype=np.uint8)
        cube = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(-1, 16, 3)
        moved = ImageCms.applyTransform(Image.fromarray(cube), transform)
        if moved is not None and np.abs(np.asarray(moved, np.int16) - cube).max() <= 1:
            return None
    return transform


def _orientation(image: "Image.Image") -> int:
    """EXIF orientation 1..8; 1 where the tag is missing, senseless or its block broken."""
    try:
        value = image.getexif().get(_ORIENTATION, 1)
    except Exception:  # noqa: BLE001 - the parser raises anything on a broken block, and the pixels are still good
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _upright(pixels: NDArray[np.uint8], orientation: int) -> NDArray[np.uint8]:
    """Undo how the camera was held: values 5 to 8 swap the axes, then the table says which axes are flipped."""
    if orientation >= 5:
        pixels = pixels.transpose(1, 0, 2)
    rows, columns = _FLIPS.get(orientation, (1, 1))
    return pixels[::rows, ::columns]


def _says_truncated(error: Exception, data: bytes) -> bool:
    if data.startswith(b"RIFF"):  # WebP's decoder only says that it failed, but the header knows the file's length
        return int.from_bytes(data[4:8], "little") + 8 > len(data)
    said = str(error).lower()
    return isinstance(error, EOFError) or "truncated" in said or "broken data stream" in said
