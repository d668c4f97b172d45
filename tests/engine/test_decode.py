"""The door for pictures: what enters, how it looks inside, what is refused and why."""

import io
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, ImageCms, ImageFile, ImageOps

from tasks.engine.decode import decode, decode_png, encode_png
from tasks.engine.errors import UnreadableImage
from tasks.engine.fingerprint import sha256
from tests import nasty

NASTY = nasty.nasty_bytes()


@pytest.mark.parametrize("name", sorted(NASTY))
def test_every_nasty_file_has_its_fate(name: str) -> None:
    data, fate = NASTY[name]
    if fate.door:
        with pytest.raises(UnreadableImage) as caught:
            decode(data)
        assert caught.value.reason == fate.door
        return
    pixels = decode(data)
    assert pixels.dtype == np.uint8
    assert pixels.ndim == 3
    assert pixels.shape[2] == 3
    assert pixels.flags.c_contiguous
    assert pixels.flags.writeable


@pytest.mark.parametrize(
    "name", ["png-named.jpg", "rgb16.png", "broken-profile.jpg", "gps.jpg", "rotated.jpg", "cmyk.jpg"]
)
def test_other_wrappings_show_the_same_photo(name: str) -> None:
    difference = np.abs(decode(NASTY[name][0]).astype(int) - decode(NASTY["plain.jpg"][0]))
    assert difference.mean() < (0.01 if name.endswith("16.png") or name == "png-named.jpg" else 3)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_orientation_is_that_of_pillow(orientation: int, kind: str) -> None:
    image = nasty.photo().crop((100, 100, 180, 220))
    options = {"lossless": True} if kind == "WEBP" else {}
    data = nasty.saved(image, kind, exif=nasty.tagged(orientation=orientation), **options)
    with Image.open(io.BytesIO(data)) as opened:
        expected = np.asarray(ImageOps.exif_transpose(opened).convert("RGB"))
    np.testing.assert_array_equal(decode(data), expected)


@given(st.integers(0, 65535))
@settings(max_examples=30, deadline=None)
def test_sixteen_bits_are_scaled_and_rounded(value: int) -> None:
    for shape in ((16, 16), (16, 16, 3)):
        pixels = decode(nasty.png(np.full(shape, value, np.uint16)))
        assert (pixels == round(value / 257)).all()


def test_clear_pixels_become_white() -> None:
    clear = Image.new("RGBA", (20, 20), (10, 20, 30, 0))
    for image in (clear, clear.convert("LA"), clear.quantize(2)):
        assert (decode(nasty.saved(image, "PNG")) == 255).all()
    keyed = Image.new("RGB", (20, 20), (10, 20, 30))
    assert (decode(nasty.saved(keyed, "PNG", transparency=(10, 20, 30))) == 255).all()


def test_a_profile_is_converted_and_srgb_is_left_alone() -> None:
    image = nasty.photo()
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    np.testing.assert_array_equal(decode(nasty.saved(image, "PNG", icc_profile=srgb)), np.asarray(image))
    # A photo of a package brings a display's profile of its own; Pillow's one-shot conversion is the oracle.
    data = nasty.photo_bytes("feat", "tests/data/single_face.jpg")
    with Image.open(io.BytesIO(data)) as opened:
        profile = ImageCms.ImageCmsProfile(io.BytesIO(opened.info["icc_profile"]))
        expected = ImageCms.profileToProfile(opened, profile, ImageCms.createProfile("sRGB"), outputMode="RGB")
    assert expected is not None
    np.testing.assert_array_equal(decode(data), np.asarray(expected))


def test_profile_of_another_colour_space_is_ignored() -> None:
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    grey = nasty.photo().convert("L")
    pixels = decode(nasty.saved(grey, "PNG", icc_profile=srgb))
    np.testing.assert_array_equal(pixels, np.asarray(grey.convert("RGB")))


def test_a_bomb_is_refused_before_anything_is_allocated() -> None:
    data = NASTY["bomb.png"][0]
    tracemalloc.start()
    with pytest.raises(UnreadableImage, match="900000000"):
        decode(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * len(data)


def test_limits_are_the_callers_and_sizes_are_named() -> None:
    data = NASTY["plain.jpg"][0]
    with pytest.raises(UnreadableImage, match="512 × 512") as caught:
        decode(data, max_pixels=1000)
    assert caught.value.reason == "too_large"


def decoded_or_none(data: bytes) -> NDArray[np.uint8] | None:
    """None where the door refuses; any other error passes, and fails the test."""
    try:
        return decode(data)
    except UnreadableImage:
        return None


def test_a_cut_file_is_refused_at_every_length() -> None:
    """From some tail on JPEG loses nothing but its end mark; whatever opens must be the whole photo."""
    for kind in ("JPEG", "PNG", "GIF"):
        data = nasty.saved(nasty.photo().resize((64, 64)), kind)
        whole = decode(data)
        for length in range(1, len(data), max(1, len(data) // 40)):
            pixels = decoded_or_none(data[:length])
            assert pixels is None or (pixels == whole).all()
    assert not ImageFile.LOAD_TRUNCATED_IMAGES


@given(st.binary(min_size=1, max_size=200), st.integers(0, 3000))
@settings(max_examples=150, deadline=None)
def test_damaged_bytes_give_pixels_or_a_reason(junk: bytes, at: int) -> None:
    data = bytearray(nasty.saved(Image.new("RGB", (48, 48), (9, 9, 9)), "PNG"))
    data[at % len(data) : at % len(data) + len(junk)] = junk
    pixels = decoded_or_none(bytes(data))
    assert pixels is None or pixels.shape[2] == 3


def test_metadata_does_not_reach_the_stored_png() -> None:
    stored = encode_png(decode(NASTY["gps.jpg"][0]))
    with Image.open(io.BytesIO(stored)) as image:
        assert not image.info
        assert not image.getexif()


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_stored_png_round_trips_and_is_the_same_each_time(height: int, width: int, seed: int) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    data = encode_png(pixels)
    assert data == encode_png(np.asfortranarray(pixels))
    np.testing.assert_array_equal(decode_png(data), pixels)
    with pytest.raises(UnreadableImage):
        decode_png(data[:-3])


def test_the_stored_png_is_one_that_everybody_reads_and_the_same_on_every_machine() -> None:
    rows, columns = np.mgrid[:97, :131]
    pixels = np.stack([rows * columns // 60, rows + columns, np.abs(rows - columns)], -1).astype(np.uint8)
    data = encode_png(pixels)
    with Image.open(io.BytesIO(data)) as image:
        assert (image.format, image.mode, image.info) == ("PNG", "RGB", {})
        np.testing.assert_array_equal(np.asarray(image), pixels)
    assert sha256(data) == "3b4c0f7ae1cfba0cbb33ad38408e56f55784f5ed0ab7d86c848ef66fc8b46200"


@pytest.mark.parametrize("shape", [(8, 8), (8, 8, 4), (0, 8, 3), (8, 0, 3)])
def test_encode_refuses_other_layouts(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="expected RGB"):
        encode_png(np.zeros(shape, np.uint8))


def test_a_phone_photo_of_several_pictures_gives_the_first() -> None:
    face = nasty.photo()
    buffer = io.BytesIO()
    face.save(buffer, "MPO", save_all=True, append_images=[face.rotate(180)], quality=95)
    assert np.abs(decode(buffer.getvalue()).astype(int) - np.asarray(face)).mean() < 3
