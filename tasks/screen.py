"""Screen: what each source photo is like, then which of them pass, alone and beside the others."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from schemas.outcomes import Reason
from schemas.records import Key, Photo, Source, SourceFacts
from schemas.screening import ScreenCut, ScreenMeasure
from tasks.engine.errors import UnreadableImage
from tasks.engine.images import Picture
from tasks.engine.stage import Context, Cutter, Failed, Item, Kept, Outcome, Rejected, Scope, Stage
from tasks.engine.tombstones import NOBODY, WITHDRAWN, WORDS, Withdrawn
from tasks.faces import ANALYZERS, EMBEDDERS, Face
from tasks.faces.geometry import inter_eye_distance
from tasks.faces.quality import exposure_shares, second_face_ratio, sharpness
from tasks.leakage.compare import Guard
from tasks.leakage.eye import Eye
from tasks.leakage.hashes import face_hashes, picture_hashes, pixel_sha256
from tasks.leakage.places import portrait_of
from tasks.sources import SourcePool
from tasks.voters import VOTERS
from tasks.voters.ballots import Poll
from tasks.voters.labels import doubted, label_of


class Screen(Stage[Source, SourceFacts]):
    """Never rejects an expression, an open mouth or closed eyes."""

    name = "screen"
    version = 4
    scope = Scope.RUN
    measurement = SourceFacts
    output = Photo
    measure_params: ScreenMeasure
    cut_params: ScreenCut

    def __init__(
        self,
        measure_params: ScreenMeasure,
        cut_params: ScreenCut,
        pools: Mapping[str, SourcePool] | None = None,
        guard: Guard | None = None,
        withdrawn: Withdrawn = NOBODY,
    ) -> None:
        super().__init__(measure_params, cut_params)
        self.pools = pools or {}
        self.guard = guard
        self.withdrawn = withdrawn

    def identities(self) -> list[object]:
        faces, identity = self.measure_params.faces, self.measure_params.identity
        return [
            ANALYZERS.identity(faces.name, faces.params),
            EMBEDDERS.identity(identity.name, identity.params),
            *(VOTERS.identity(voter.name, voter.params) for voter in self.measure_params.label_panel),
        ]

    def cut_identity(self) -> list[object]:
        identity = [*super().cut_identity(), self.guard.digest if self.guard else ""]
        return [*identity, self.withdrawn.digest] if self.withdrawn.digest else identity

    def measure(self, rows: Sequence[Source], ctx: Context) -> Iterator[tuple[Key, SourceFacts | Failed]]:
        poll = Poll(self.measure_params.label_panel, ctx.images.get, ctx.call)
        shown: list[tuple[Key, SourceFacts]] = []
        for row in rows:
            if row.stamp == WITHDRAWN:
                yield row.key, SourceFacts(problem=WITHDRAWN)
                continue
            try:
                loaded = self.pools[row.key.pool].load(row)
            except UnreadableImage as error:
                yield row.key, SourceFacts(problem=error.reason, detail=str(error))
                continue
            if self.withdrawn.pixels and self.withdrawn.shows(pixel_sha256(loaded.pixels)):
                yield row.key, SourceFacts(problem=WITHDRAWN)
                continue
            picture = ctx.images.put(loaded.pixels)
            facts = self._facts(picture, loaded.file_sha256).model_copy(update={"detail": loaded.note})
            if row.label is None or self.measure_params.check_labels:
                poll.show(picture)
                shown.append((row.key, facts))
            else:
                yield row.key, facts
        for (key, facts), votes in zip(shown, poll.votes(), strict=True):
            yield key, votes if isinstance(votes, Failed) else facts.model_copy(update={"votes": votes})

    def _facts(self, picture: Picture, file_sha256: str) -> SourceFacts:
        params = self.measure_params
        faces = ANALYZERS.get(params.faces.name, params.faces.params).analyze(picture)
        height, width = picture.pixels.shape[:2]
        facts = SourceFacts(
            image=picture.digest,
            width=width,
            height=height,
            file_sha256=file_sha256,
            faces=len(faces),
        )
        found = self._face_facts(picture, faces) if faces else {}
        return facts.model_copy(update=picture_hashes(picture.pixels) | found)

    def _face_facts(self, picture: Picture, faces: Sequence[Face]) -> dict[str, object]:
        spec = self.measure_params.identity
        over, under = exposure_shares(picture.pixels, faces[0])
        return {
            **face_hashes(picture.pixels, faces[0]),
            "second_face": second_face_ratio(faces),
            "inter_eye": inter_eye_distance(faces[0]),
            "yaw": faces[0].yaw,
            "pitch": faces[0].pitch,
            "roll": faces[0].roll,
            "sharpness": sharpness(picture.pixels, faces[0]),
            "overexposed": over,
            "underexposed": under,
            "embedding": EMBEDDERS.get(spec.name, spec.params).embed(picture, faces[0]).astype("<f4").tobytes(),
        }

    def cut(self, items: Sequence[Item[Source, SourceFacts]]) -> Iterable[tuple[Key, Outcome]]:
        """Thresholds and what is excluded, row by row; then duplicates, persons and caps in plan order.

        There the earlier source wins. A source that leaks is never admitted, so it takes nobody's place.
        """
        return self.cutter()(items)

    def cutter(self) -> Cutter:
        return partial(self._cut, Admitted(self.cut_params))

    def _cut(self, admitted: "Admitted", items: Sequence[Item[Source, SourceFacts]]) -> Iterator[tuple[Key, Outcome]]:
        outcomes = {
            item.key: self._withdrawn(item.measurement) or unfit(item.row, item.measurement, self.cut_params)
            for item in items
        }
        leaking = self._leaking([item for item in items if outcomes[item.key] is None])
        for item in items:
            yield item.key, outcomes[item.key] or leaking.get(item.key) or admitted.offer(item)

    def _withdrawn(self, facts: SourceFacts) -> Rejected | None:
        if facts.problem == WITHDRAWN or self.withdrawn.shows(facts.pixel_sha256):
            return Rejected(Reason.WITHDRAWN, WORDS)
        return None

    def _leaking(self, items: Sequence[Item[Source, SourceFacts]]) -> dict[Key, Rejected]:
        """By key, the first rule against a source that shares something with what is excluded."""
        if self.guard is None or not items:
            return {}
        model = Eye.of(self.measure_params).model
        found = self.guard.leaks(portrait_of(item.row, item.measurement, model) for item in items)
        return {leaks[0].b: Rejected(leaks[0].reason, leaks[0].evidence) for leaks in found if leaks}


def unfit(row: Source, facts: SourceFacts, cut: ScreenCut) -> Rejected | None:
    """Why a source cannot be used, looked at alone; None if it can. The first of several reasons counts."""
    if facts.problem:
        return Rejected(Reason.UNREADABLE, f"{facts.problem}: {facts.detail}")
    if facts.faces == 0:
        return Rejected(Reason.NO_FACE, "no face is found")
    if facts.second_face > cut.max_second_face:
        return Rejected(
            Reason.SEVERAL_FACES, f"second face {facts.second_face:.2f} of the first, at most {cut.max_second_face:g}"
        )
    measures = (
        (Reason.FACE_TOO_SMALL, "inter-eye px", facts.inter_eye, cut.min_inter_eye_px, None),
        (Reason.POSE, "yaw", abs(facts.yaw or 0), None, cut.max_yaw),
        (Reason.POSE, "pitch", abs(facts.pitch or 0), None, cut.max_pitch),
        (Reason.POSE, "roll", abs(facts.roll or 0), None, cut.max_roll),
        (Reason.BLURRED, "sharpness", facts.sharpness, cut.min_sharpness, None),
        (Reason.EXPOSURE, "over-exposed share", facts.overexposed, None, cut.max_overexposed),
        (Reason.EXPOSURE, "under-exposed share", facts.underexposed, None, cut.max_underexposed),
        (Reason.LOW_LABEL_CONFIDENCE, "label confidence", row.label_confidence, cut.min_label_confidence, None),
    )
    for reason, what, value, least, most in measures:
        if value is not None and least is not None and value < least:
            return Rejected(reason, f"{what} {value:.4g}, needs {least:g}")
        if value is not None and most is not None and value > most:
            return Rejected(reason, f"{what} {value:.4g}, at most {most:g}")
    if label_of(row, facts.votes)[0] is None:
        named = ", ".join(str(vote.expression or vote.abstained) for vote in facts.votes) or "nobody asked"
        return Rejected(Reason.UNLABELLED, f"no label, and the panel does not agree: {named}")
    return doubted(row, facts.votes, cut.label_check)


class Admitted:
    """The sources admitted so far, about 1 kB of each: greedy, so that a longer list changes no earlier decision."""

    def __init__(self, cut: ScreenCut) -> None:
        self._cut = cut
        self._keys: list[Key] = []
        self._pixels: dict[str, Key] = {}
        self._hashes = np.zeros(0, np.uint64)
        self._faces = np.zeros((0, 0), np.float32)
        self._subjects: list[Key] = []
        self._counts: Counter[tuple[str, str]] = Counter()

    def offer(self, item: Item[Source, SourceFacts]) -> Outcome:
        """Admit a source, or say which earlier one or which cap stands against it."""
        row, facts = item.row, item.measurement
        face = np.frombuffer(facts.embedding or b"", "<f4")
        subject = self._subject(item.key, row, face)
        rejection = self._duplicate(facts) or self._over_cap(row, subject)
        if rejection:
            return rejection
        self._admit(item.key, row, facts, face, subject)
        expression, label_source = label_of(row, facts.votes)
        assert expression is not None
        assert facts.image is not None
        return Kept(
            Photo(
                key=item.key,
                image=facts.image,
                width=facts.width,
                height=facts.height,
                file_sha256=facts.file_sha256,
                pixel_sha256=facts.pixel_sha256,
                expression=expression,
                label_source=label_source,
                subject=str(subject),
                path=row.path,
                split=row.split,
                clip=row.clip,
                movie=row.movie,
                licence=row.licence,
                traits=row.traits,
            )
        )

    def _duplicate(self, facts: SourceFacts) -> Rejected | None:
        if not self._cut.duplicates:
            return None
        if facts.pixel_sha256 in self._pixels:
            return Rejected(Reason.DUPLICATE, f"same pixels as {self._pixels[facts.pixel_sha256]}")
        if self._keys:
            bits = np.bitwise_count(self._hashes[: len(self._keys)] ^ np.uint64(int(facts.phash, 16)))
            nearest = int(bits.argmin())
            if bits[nearest] <= self._cut.near_duplicate_bits:
                return Rejected(
                    Reason.NEAR_DUPLICATE,
                    f"{bits[nearest]} of 64 hash bits differ from {self._keys[nearest]}, "
                    f"needs more than {self._cut.near_duplicate_bits}",
                )
        return None

    def _subject(self, key: Key, row: Source, face: NDArray[np.float32]) -> Key:
        """The first admitted source of the same person: the pool's own word for it, else the closest face."""
        if row.identity:
            return Key(row.key.pool, f"identity {row.identity}")
        if self._keys:
            cosines = self._faces[: len(self._keys)] @ face
            closest = int(cosines.argmax())
            if cosines[closest] >= self._cut.same_identity:
                return self._subjects[closest]
        return key

    def _caps(self, row: Source, subject: Key) -> list[tuple[Reason, tuple[str, str], int | None]]:
        cut, pool = self._cut, row.key.pool
        return [
            (Reason.CAP_CLIP, ("clip", f"{pool}/{row.clip}" if row.clip else ""), cut.max_per_clip),
            (Reason.CAP_MOVIE, ("movie", f"{pool}/{row.movie}" if row.movie else ""), cut.max_per_movie),
            (Reason.CAP_IDENTITY, ("subject", str(subject)), cut.max_per_identity),
        ]

    def _over_cap(self, row: Source, subject: Key) -> Rejected | None:
        for reason, group, most in self._caps(row, subject):
            if most is not None and group[1] and self._counts[group] >= most:
                return Rejected(reason, f"{group[0]} {group[1]} already has {most}")
        return None

    def _admit(self, key: Key, row: Source, facts: SourceFacts, face: NDArray[np.float32], subject: Key) -> None:
        place = len(self._keys)
        if place == len(self._hashes):
            room = max(64, 2 * place)
            self._hashes.resize(room, refcheck=False)
            self._faces.resize((room, len(face)), refcheck=False)
        self._hashes[place], self._faces[place] = np.uint64(int(facts.phash, 16)), face
        self._keys.append(key)
        self._subjects.append(subject)
        self._pixels[facts.pixel_sha256] = key
        for _, group, _ in self._caps(row, subject):
            self._counts[group] += 1
