"""Every nasty file a folder of photos can hold, written on demand; and what should come of each.

Photo bytes come from installed packages, so nothing is committed.
"""

import importlib.util
import io
import os
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from schemas.outcomes import Reason

FACE = ("feat", "tests/data/0-f15-hao-ph.jpg")  # 512 × 512, one large frontal face
PROFILE = ("feat", "tests/data/45-m7-di-ph.jpg")
GROUP = ("insightface", "data/images/t1.jpg")
NO_FACE = ("skimage", "data/coffee.png")


class Fate(NamedTuple):
    """What should come of a file.

    Attributes:
        door: The reason of `UnreadableImage` at load, or "" where the file opens.
        screen: The reason the screen should reject an opened file for, or None where it says nothing here.
    """

    door: str = ""
    screen: Reason | None = None


def photo_bytes(package: str, path: str) -> bytes:
    """A photo inside an installed package, found without importing it."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return (Path(spec.submodule_search_locations[0]) / path).read_bytes()


def photo(package: str = FACE[0], path: str = FACE[1]) -> Image.Image:
    return Image.open(io.BytesIO(photo_bytes(package, path))).convert("RGB")


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)  # type: ignore[arg-type]
    return buffer.getvalue()


def png(pixels: NDArray[np.uint8] | NDArray[np.uint16], size: tuple[int, int] | None = None) -> bytes:
    """A PNG by hand: also 16-bit RGB, which Pillow cannot write, and headers that lie about the size."""
    height, width = pixels.shape[:2]
    rows = pixels.astype(f">u{pixels.itemsize}").reshape(height, -1).view(np.uint8)
    raw = zlib.compress(np.hstack([np.zeros((height, 1), np.uint8), rows]).tobytes(), 1)
    kind = {2: 0, 3: 2}[pixels.ndim]
    header = struct.pack(">IIBBBBB", *(size or (width, height)), 8 * pixels.itemsize, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", raw) + _chunk(b"IEND", b"")


def bomb(side: int = 30_000) -> bytes:
    """A valid grey PNG of side × side zeros in about a megabyte."""
    deflate = zlib.compressobj(1)
    row = bytes(side + 1)
    raw = b"".join([deflate.compress(row) for _ in range(side)] + [deflate.flush()])
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", raw) + _chunk(b"IEND", b"")


def drawing() -> Image.Image:
    """A cartoon face of a few circles."""
    image = Image.new("RGB", (512, 512), (120, 180, 230))
    draw = ImageDraw.Draw(image)
    draw.ellipse((96, 64, 416, 448), fill=(255, 220, 60), outline="black", width=8)
    for x in (190, 322):
        draw.ellipse((x - 24, 180, x + 24, 240), fill="white", outline="black", width=5)
        draw.ellipse((x - 8, 205, x + 8, 225), fill="black")
    draw.arc((180, 260, 332, 380), 20, 160, fill="black", width=10)
    return image


def tagged(**tags: int) -> Image.Exif:
    """EXIF with an orientation, and with a place where gps=1."""
    exif = Image.Exif()
    exif[0x0112] = tags.get("orientation", 1)
    if tags.get("gps"):
        exif.get_ifd(0x8825).update({1: "N", 2: (52.0, 31.0, 12.0), 3: "E", 4: (13.0, 24.0, 18.0)})
    return exif


def nasty_bytes() -> dict[str, tuple[bytes, Fate]]:
    """Name → content and fate, for everything that is only bytes."""
    jpeg = photo_bytes(*FACE)
    face = photo()
    pixels = np.asarray(face)
    deep = pixels.astype(np.uint16) * 257
    clear = face.convert("RGBA")
    clear.putalpha(Image.fromarray(np.tile(np.linspace(0, 255, face.width).astype(np.uint8), (face.height, 1))))
    frames = [face.resize((64, 64)), face.rotate(90).resize((64, 64))]
    two = Image.new("RGB", (1024, 512))
    two.paste(face, (0, 0))
    two.paste(face, (512, 0))
    faceless = Fate(screen=Reason.NO_FACE)
    return {
        "plain.jpg": (jpeg, Fate()),
        "byte-equal.jpg": (jpeg, Fate(screen=Reason.DUPLICATE)),
        "encoded-again.jpg": (saved(face, "JPEG", quality=60), Fate(screen=Reason.NEAR_DUPLICATE)),
        "truncated.jpg": (jpeg[: len(jpeg) // 2], Fate("truncated")),
        "header-only.jpg": (jpeg[:40], Fate("truncated")),
        "truncated.png": (saved(face, "PNG")[:50_000], Fate("truncated")),
        "truncated.webp": (saved(face, "WEBP")[:5_000], Fate("truncated")),
        "zero.jpg": (b"", Fate("empty")),
        "text.jpg": (b"this is no picture", Fate("not_an_image")),
        "png-named.jpg": (saved(face, "PNG"), Fate()),
        "cmyk.jpg": (saved(face.convert("CMYK"), "JPEG", quality=95), Fate()),
        "grey16.png": (png(deep.mean(axis=2).astype(np.uint16)), Fate()),
        "rgb16.png": (png(deep), Fate()),
        "palette-alpha.png": (saved(clear.quantize(64), "PNG"), Fate()),
        "alpha.png": (saved(clear, "PNG"), Fate()),
        "grey.jpg": (saved(face.convert("L"), "JPEG"), Fate()),
        "animated.gif": (saved(frames[0], "GIF", save_all=True, append_images=frames[1:]), Fate("animated")),
        "animated.webp": (saved(frames[0], "WEBP", save_all=True, append_images=frames[1:]), Fate("animated")),
        "still.gif": (saved(face, "GIF"), Fate()),
        "rotated.jpg": (saved(face.rotate(90), "JPEG", exif=tagged(orientation=6)), Fate()),
        "gps.jpg": (saved(face, "JPEG", exif=tagged(gps=1)), Fate()),
        "broken-profile.jpg": (saved(face, "JPEG", icc_profile=b"no profile"), Fate()),
        "one-pixel.png": (png(pixels[:1, :1]), Fate("too_small")),
        "bomb.png": (bomb(), Fate("too_large")),
        "no-face.png": (photo_bytes(*NO_FACE), faceless),
        "two-faces.jpg": (saved(two, "JPEG", quality=95), Fate(screen=Reason.SEVERAL_FACES)),
        "group.jpg": (photo_bytes(*GROUP), Fate(screen=Reason.SEVERAL_FACES)),
        "profile.jpg": (photo_bytes(*PROFILE), Fate(screen=Reason.POSE)),
        "cartoon.png": (saved(drawing(), "PNG"), faceless),
        "SHOUTING.JPG": (jpeg, Fate(screen=Reason.DUPLICATE)),
        "naïve 笑顔 😀.jpg": (jpeg, Fate(screen=Reason.DUPLICATE)),
        "caf\u00e9.jpg": (jpeg, Fate(screen=Reason.DUPLICATE)),
        "cafe\u0301.jpg": (jpeg, Fate(screen=Reason.DUPLICATE)),
        "n" * 246 + ".jpg": (jpeg, Fate(screen=Reason.DUPLICATE)),
        "back\\xffslash.jpg": (jpeg, Fate(screen=Reason.DUPLICATE)),
    }


def write_nasty(folder: Path) -> dict[str, Fate]:
    """Fill an empty folder with all of it.

    A sibling `outside.jpg` is made for the link that leaves. The names `.hidden.jpg`, `notes.txt` and the linked
    folder `loop` should not be listed at all, and have no fate.

    Returns:
        Path below the folder, as `os.walk` gives it (undecodable bytes as surrogates) → fate.
    """
    fates: dict[str, Fate] = {}
    for name, (data, fate) in nasty_bytes().items():
        (folder / name).write_bytes(data)
        fates[name] = fate
    plain = (folder / "plain.jpg").read_bytes()
    undecodable = os.fsdecode(b"latin-\xe9.jpg")
    try:
        (folder / undecodable).write_bytes(plain)
        fates[undecodable] = Fate(screen=Reason.DUPLICATE)
    except OSError:
        pass  # some file systems take only UTF-8
    (folder.parent / "outside.jpg").write_bytes(plain)
    (folder / "inside-link.jpg").symlink_to("plain.jpg")
    (folder / "outside-link.jpg").symlink_to(folder.parent / "outside.jpg")
    (folder / "dangling.jpg").symlink_to("nowhere.jpg")
    (folder / "itself.jpg").symlink_to("itself.jpg")
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    os.mkfifo(folder / "pipe.jpg")
    (folder / "folder.jpg").mkdir()
    (folder / ".hidden.jpg").write_bytes(plain)
    (folder / "notes.txt").write_text("not an image")
    return fates | {
        "inside-link.jpg": Fate(screen=Reason.DUPLICATE),
        "outside-link.jpg": Fate("outside_root"),
        "dangling.jpg": Fate("missing"),
        "itself.jpg": Fate("unreadable"),
        "pipe.jpg": Fate("not_a_file"),
        "folder.jpg": Fate("not_a_file"),
    }


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
