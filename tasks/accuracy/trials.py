"""Showing a panel pictures whose truth is known: chosen, checked and priced first, then asked, chunk by chunk."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

from schemas.config import BuildConfig, GenerateMeasure
from schemas.expressions import EXPRESSIONS, Expression
from schemas.records import Candidate, Photo, Source
from schemas.routes import routes_in
from tasks.accuracy.plants import Verdicts, plants
from tasks.accuracy.sub_panels import MOST_VOTERS
from tasks.accuracy.tally import Tally
from tasks.editors import EDITORS
from tasks.engine.calls import Calls
from tasks.engine.errors import ConfigError, UnreadableImage
from tasks.engine.images import ImageStore
from tasks.engine.shards import order
from tasks.engine.shown import Showing, note
from tasks.engine.stage import Context, Failed, Stage
from tasks.engine.store import Store
from tasks.engine.tombstones import Withdrawn, check_finished, pixels_mark
from tasks.generate import Generate
from tasks.leakage.hashes import pixel_sha256
from tasks.outside import check_adapters, check_outside
from tasks.pipeline import open_pools
from tasks.providers.routes import check_routes
from tasks.sources import SourcePool
from tasks.verify import Verify
from tasks.voters import VOTERS
from tasks.voters.ballots import Poll

RUN: Final = "panel-accuracy"  # what the ledger calls it: its spending is not a build's
CHUNK: Final = 64  # sources that are held at once
_PERSON: Final = " identity "


@dataclass(frozen=True)
class Trial:
    """What is to be tried: sources whose expression the pools give, in the order of a seeded hash.

    Attributes:
        config: Panel, cuts, editor and pools.
        planted: Whether edits are made of them, and put before the verdict.
        store: The workspace, where it is noted whose pictures went to models outside.
        sources: The photos.
        listed, labelled: How many the pools list, and how many of these have a label.
    """

    config: BuildConfig
    planted: bool
    store: Store
    pools: dict[str, SourcePool]
    withdrawn: Withdrawn
    sources: tuple[Source, ...]
    listed: int
    labelled: int

    @property
    def pictures(self) -> int:
        """How many pictures the panel will see, at most."""
        return len(self.sources) * (len(EXPRESSIONS) if self.planted else 1)


@dataclass
class Tried:
    """What came of it.

    Attributes:
        photos: Votes on the labelled photos.
        edits: Votes on the edits of them; their truth is the target that the editor was given.
        verdicts: Of the planted edits; None where none were planted.
        unreadable: Photos that could not be shown, by reason.
        unmade: Edits that the editor did not make, by kind.
        unreached: Pictures on which a voter could not be reached, by what was wrong. They count nowhere, and the next
            run asks again.
    """

    photos: Tally = field(default_factory=Tally)
    edits: Tally = field(default_factory=Tally)
    verdicts: Verdicts | None = None
    unreadable: Counter[str] = field(default_factory=Counter)
    unmade: Counter[str] = field(default_factory=Counter)
    unreached: Counter[str] = field(default_factory=Counter)


def prepare(config: BuildConfig, workspace: Path, limit: int | None, *, planted: bool) -> Trial:
    """Check everything that can be checked before anything is asked, and choose the sources.

    Args:
        config: `pools`, `verify` and, for plants, `generate.measure.editor` and `rank` are used.
        workspace: Whose withdrawn sources are left out.
        limit: So many labelled sources; None for all.
        planted: Whether edits are made, too.

    Raises:
        ConfigError: A pool, voter, key or licence stands against it, or no source has a label.
    """
    measure = config.verify.measure
    if len(measure.panel) > MOST_VOTERS:
        raise ConfigError(f"{len(measure.panel)} voters have too many sub-panels", f"ask at most {MOST_VOTERS}")
    stages: list[Stage[Any, Any]] = [Verify(measure, config.verify.cut)]
    if planted:
        editor = GenerateMeasure(editor=config.generate.measure.editor)
        stages.append(Generate(editor, config.generate.cut))
    check_outside(config, stages)
    check_adapters(stages)
    if not config.calls.replay_only:
        used = [stage.measure_params.model_dump(mode="json") for stage in stages]
        check_routes(list(routes_in(used)))
    store = Store(workspace)
    check_finished(store)
    pools, withdrawn = open_pools(config), Withdrawn.of(store)
    listed = [source for pool in pools.values() for source in pool.list() if source.key not in withdrawn.keys]
    labelled = [source for source in order(config.seed, listed) if source.label is not None]
    if not labelled:
        raise ConfigError(
            f"no source of {', '.join(pools)} has a label, so nobody knows what is right",
            "use a labelled pool: rafdb, dfew, sfew, or a folder of class folders (happy/, angry/, ...)",
        )
    return Trial(config, planted, store, pools, withdrawn, tuple(labelled[:limit]), len(listed), len(labelled))


def attempt(trial: Trial, call: Calls, tell: Callable[[int, int], None]) -> Tried:
    """Ask the panel. Pictures lie in a temporary folder, chunk by chunk; the door keeps those that it paid for.

    Args:
        trial: As `prepare` gives it.
        call: The door to models outside; what it has stored is not asked again.
        tell: Is told how many sources are done, of how many.

    Raises:
        StoppedError: A budget, a key or a quota; run it again when that is mended.
        WorkspaceError: Another process holds the workspace.
    """
    tried = Tried(verdicts=Verdicts(trial.config) if trial.planted else None)
    # Whoever holds the lock next empties `tmp`, so that no face stays behind a kill.
    with trial.store.lock():
        held = trial.store.path("tmp")
        for start in range(0, len(trial.sources), CHUNK):
            held.mkdir(exist_ok=True)
            with TemporaryDirectory(dir=held) as folder:
                images = ImageStore(Store(Path(folder)))
                context = Context(trial.config.seed, images, call, lambda _: None)
                photos = list(_photos(trial, trial.sources[start : start + CHUNK], images, tried))
                _ask(trial, photos, context, tried)
            tell(min(start + CHUNK, len(trial.sources)), len(trial.sources))
    return tried


def _photos(trial: Trial, sources: Sequence[Source], images: ImageStore, tried: Tried) -> Iterator[Photo]:
    for source in sources:
        try:
            loaded = trial.pools[source.key.pool].load(source)
        except UnreadableImage as error:
            tried.unreadable[error.reason] += 1
            continue
        pixels = pixel_sha256(loaded.pixels)
        if trial.withdrawn.shows(pixels):
            tried.unreadable["withdrawn"] += 1
            continue
        assert source.label is not None
        height, width = loaded.pixels.shape[:2]
        yield Photo(
            key=source.key,
            image=images.put(loaded.pixels).digest,
            width=width,
            height=height,
            file_sha256=loaded.file_sha256,
            pixel_sha256=pixels,
            expression=source.label,
            label_source="given",
            subject=f"{source.key.pool}{_PERSON}{source.identity}" if source.identity else str(source.key),
            path=source.path,
            split=source.split,
            clip=source.clip,
            movie=source.movie,
            licence=source.licence,
        )


def _ask(trial: Trial, photos: Sequence[Photo], context: Context, tried: Tried) -> None:
    """Show a chunk to the panel, every picture once, whatever it is planted as."""
    voters_outside = any(VOTERS.remote(spec.name) for spec in trial.config.verify.measure.panel)
    if trial.planted and EDITORS.remote(trial.config.generate.measure.editor.name):
        note(trial.store, [_showing(photo, {}) for photo in photos])
    edits = _edits(trial, photos, context, tried) if trial.planted else {}
    shown = [(photo.image, tried.photos, photo.expression) for photo in photos]
    for made in edits.values():
        shown += [(candidate.image, tried.edits, target) for target, candidate in made.items()]
    digests = list(dict.fromkeys(digest for digest, _, _ in shown))
    if voters_outside:
        note(trial.store, [_showing(photo, edits.get(str(photo.key), {})) for photo in photos])
    poll = Poll(trial.config.verify.measure.panel, context.images.get, context.call)
    for digest in digests:
        poll.show(context.images.get(digest))
    votes = dict(zip(digests, poll.votes(), strict=True))
    for digest, tally, truth in shown:
        said = votes[digest]
        if isinstance(said, Failed):
            tried.unreached[said.message] += 1
        else:
            tally.add(truth, said)
    if tried.verdicts is None:
        return
    for plant in plants(edits, photos):
        said = votes[plant.image]
        if not isinstance(said, Failed):
            tried.verdicts.judge(plant, said, context.images)


def _showing(photo: Photo, made: Mapping[Expression, Candidate]) -> Showing:
    """What goes to models outside of a source, for the day it is withdrawn."""
    _, _, identity = photo.subject.partition(_PERSON)
    images = (photo.image, *(candidate.image for candidate in made.values()))
    return Showing(
        key=photo.key, clip=photo.clip, identity=identity, pixels=pixels_mark(photo.pixel_sha256), images=images
    )


def _edits(
    trial: Trial, photos: Sequence[Photo], context: Context, tried: Tried
) -> dict[str, dict[Expression, Candidate]]:
    """Every photo's edits to all other expressions, by key and target."""
    stage = Generate(GenerateMeasure(editor=trial.config.generate.measure.editor), trial.config.generate.cut)
    made: dict[str, dict[Expression, Candidate]] = {str(photo.key): {} for photo in photos}
    for key, answer in stage.measure(photos, context):
        if isinstance(answer, Failed):
            tried.unmade[str(answer.kind)] += 1
        else:
            made[str(key.source())][Expression(key.target)] = answer
    return made


def asked_outside(trial: Trial) -> tuple[int, float | None]:
    """How many questions go to models outside at most, and what they may cost in dollars; None if one has no price.

    What is stored already is neither asked nor paid, so it may be much less.
    """
    measure, edits = trial.config.generate.measure, trial.pictures - len(trial.sources)
    asks = [(VOTERS, spec, trial.pictures) for spec in trial.config.verify.measure.panel if VOTERS.remote(spec.name)]
    if edits and EDITORS.remote(measure.editor.name):
        asks.append((cast(Any, EDITORS), measure.editor, edits))
    prices = [
        (registry.adapter_class(spec.name).dollars(registry.parse(spec.name, spec.params)), times)
        for registry, spec, times in asks
    ]
    known = [price * times for price, times in prices if price is not None]
    return sum(times for _, times in prices), sum(known) if len(known) == len(prices) else None
