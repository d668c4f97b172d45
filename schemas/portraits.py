"""What the leakage guard keeps of a source: enough to see it again in another set, and no picture."""

from schemas.records import KeyField, Record


class Portrait(Record):
    """A source as the guard compares it. A field that could not be had is empty.

    Attributes:
        clip: "dfew/00123": the pool and its clip.
        person: "folder/anna": the pool and its own word for the person.
        pixel_sha256: Of the decoded RGB bytes.
        phash, mirror_phash: 64-bit perceptual hashes of the whole picture and of its mirror image, 16 hexadecimal
            digits each.
        face_phash, face_mirror_phash: The same of the aligned face.
        embedding: (D,) float32 little-endian bytes of a length-1 identity vector; never published.
        model: Which face analyzer and identity model made the vector; vectors of two models are not compared.
        lacking: Why there is no vector: "no picture", "no face found", "not readable".
    """

    key: KeyField
    clip: str = ""
    person: str = ""
    pixel_sha256: str = ""
    phash: str = ""
    mirror_phash: str = ""
    face_phash: str = ""
    face_mirror_phash: str = ""
    embedding: bytes | None = None
    model: str = ""
    lacking: str = ""
