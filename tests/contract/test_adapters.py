"""What every registered adapter must keep, of whatever kind; a new one is covered by its registry line.

An adapter whose weights are absent is skipped, with the word of `weights.state`.
"""

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pytest
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from schemas.answers import Ballot
from schemas.expressions import EXPRESSIONS, Expression, Polarity, others
from schemas.outcomes import Abstention, FailureKind
from schemas.records import Finalist, Key, Opinion, Source
from schemas.routes import CallSettings
from schemas.sections import Adapter as Spec
from tasks.boards import BOARDS
from tasks.describers import CHECKERS, DESCRIBERS
from tasks.editors import EDITORS, Edit, EditRequest
from tasks.engine import weights
from tasks.engine.calls import Calls
from tasks.engine.decode import encode_png
from tasks.engine.errors import ConfigError, ItemFailed, UnreadableImage, WorkspaceError
from tasks.engine.images import Picture
from tasks.engine.registry import Adapter, Registry
from tasks.faces import ANALYZERS, EMBEDDERS, Face
from tasks.judges import JUDGES
from tasks.sources import POOLS
from tasks.study.comparers import COMPARERS
from tasks.voters import VOTERS
from tasks.voters.ballots import Poll
from tests.doors import SHUT, expert, routes, warped
from tests.photos import file_of, frame, photo, picture
from tests.providers.loopback import Loopback
from tests.providers.loopback_images import ImageLoopback
from tests.trees import shared_root

REGISTRIES: tuple[Registry[Any], ...] = (
    VOTERS,
    EDITORS,
    POOLS,
    DESCRIBERS,
    CHECKERS,
    JUDGES,
    ANALYZERS,
    EMBEDDERS,
    BOARDS,
    COMPARERS,
)
# What adapters cannot do without and a test can give them: a folder of photos, as their data set lies on a disk.
NEEDED: dict[tuple[str, str], dict[str, Any]] = {("pool", "folder"): {"root": str(file_of("happy").parent)}}
# A model outside is a provider on this machine, which knows faces by the embedded experts.
PROVIDER = Loopback(answer=expert)
MLLM = ("voter", "describer", "checker", "judge")
NEEDED |= {(kind, "mllm"): {"name": "Expert", "routes": []} for kind in MLLM}
# An editor outside is one that warps behind image edits.
DRAWER = ImageLoopback(drawn=warped)
NEEDED["editor", "api"] = {"name": "Warp", "routes": []}
NEEDED |= {("pool", kind): {"root": shared_root(kind)} for kind in ("sfew", "dfew", "rafdb")}

Name = tuple[Registry[Any], str]


@pytest.fixture(scope="module", autouse=True)
def _provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    NEEDED["editor", "outputs"] = {"root": str(outputs(tmp_path_factory.mktemp("outputs")))}
    with PROVIDER, DRAWER:
        for kind in MLLM:
            NEEDED[kind, "mllm"]["routes"][:] = routes(PROVIDER, "expert")
        NEEDED["editor", "api"]["routes"][:] = routes(DRAWER, "warp")
        yield


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Calls]:
    """The one door; what was asked through it once is answered from its store."""
    calls = Calls(tmp_path_factory.mktemp("calls") / "answers.sqlite", CallSettings(backoff_s=0.01), "contract")
    yield calls
    calls.close()


def every(*registries: Registry[Any]) -> Any:
    """Parametrise a test with all names of registries."""
    names = [(registry, name) for registry in registries for name in registry.names()]
    return pytest.mark.parametrize("adapter", names, ids=[f"{registry.kind} {name}" for registry, name in names])


def needed(adapter: Name) -> dict[str, Any]:
    """Its required parameters; a stand-in where only the name of a folder is asked, which no identity opens."""
    registry, name = adapter
    required = [field for field, info in registry.adapter_class(name).Params.model_fields.items() if info.is_required()]
    return NEEDED.get((registry.kind, name), dict.fromkeys(required, "photos"))


def here(adapter: Name) -> None:
    """Skip if its weights are not on this machine."""
    registry, name = adapter
    for weight in registry.adapter_class(name).weights:
        if weights.state(weight) not in ("ready", "derivable"):
            pytest.skip(f"{weight}: {weights.state(weight)}")


def get(adapter: Name, params: Mapping[str, Any] | None = None) -> Any:
    here(adapter)
    registry, name = adapter
    if needed(adapter) and (registry.kind, name) not in NEEDED:
        pytest.skip(f"{registry.kind} '{name}' needs {', '.join(needed(adapter))}: give it one in NEEDED")
    return registry.get(name, needed(adapter) | dict(params or {}))


def flat(level: int, height: int = 300, width: int = 300) -> Picture:
    return picture(np.full((height, width, 3), level, np.uint8))


@cache
def odd_pictures() -> dict[str, Picture]:
    """Pictures without a face that anybody could judge."""
    noise = np.random.default_rng(0).integers(0, 256, (200, 200, 3), np.uint8)
    return {
        "grey": flat(128),
        "black": flat(0),
        "tiny": flat(90, 16, 16),
        "strip": flat(90, 16, 2000),
        "noise": picture(noise),
        "landscape": photo("landscape"),
        "thumbnail of a face": picture(photo("happy").pixels[::32, ::32]),
    }


# -- all kinds --------------------------------------------------------------------------------------------------


@every(*REGISTRIES)
def test_identity_is_stable_plain_and_says_who(adapter: Name) -> None:
    here(adapter)
    registry, name = adapter
    identity = registry.identity(name, needed(adapter))
    assert identity == registry.identity(name, needed(adapter))
    assert json.loads(json.dumps(identity, allow_nan=False)) == identity
    assert (identity["kind"], identity["name"]) == (registry.kind, name)
    assert identity["version"] >= 1
    assert identity["weights"].keys() == set(registry.adapter_class(name).weights)
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in identity["weights"].values())


@every(*REGISTRIES)
def test_identity_moves_with_every_parameter_and_the_version(adapter: Name, monkeypatch: pytest.MonkeyPatch) -> None:
    here(adapter)
    registry, name = adapter
    before = registry.identity(name, needed(adapter))
    local = registry.adapter_class(name).local
    params = {
        field: info for field, info in registry.adapter_class(name).Params.model_fields.items() if field not in local
    }
    assert before["params"].keys() == params.keys(), "defaults are spelled out, so that a changed default shows"
    for field in local:
        moved = registry.identity(name, needed(adapter) | {field: "elsewhere"})
        assert moved | {"contents": ""} == before | {"contents": ""}, field
    for field, info in params.items():
        moved = registry.identity(name, needed(adapter) | {field: another(registry, name, field, info)})
        assert moved != before, field
    monkeypatch.setattr(registry.adapter_class(name), "version", before["version"] + 1)
    assert registry.identity(name, needed(adapter)) != before


def another(registry: Registry[Any], name: str, field: str, info: FieldInfo) -> Any:
    """A valid value of a parameter that is not its default."""
    default = needed((registry, name))[field] if info.is_required() else info.default
    choices: list[Any] = [not default] if isinstance(default, bool) else []
    if get_origin(info.annotation) is Literal:
        choices = [choice for choice in get_args(info.annotation) if choice != default]
    elif not choices and isinstance(default, int | float):
        choices = [default + 1, default - 1, default + 0.25, default - 0.25]
    elif field == "routes":
        choices = [[default[0] | {"model": "openai/another"}]]
    elif isinstance(default, dict):
        choices = [{"x": 1}]
    elif field == "loras":
        choices = [[{"repository": "x"}]]
    elif not choices:
        choices = [f"{default}x"]
    for choice in choices:
        try:
            registry.parse(name, needed((registry, name)) | {field: choice})
        except ConfigError:
            continue
        return choice
    raise AssertionError(f"no other value of {field} found, teach this test one")


@every(*REGISTRIES)
def test_unknown_and_wrong_parameters_are_refused_by_name(adapter: Name) -> None:
    registry, name = adapter
    with pytest.raises(ConfigError, match="strange_parameter") as caught:
        registry.identity(name, needed(adapter) | {"strange_parameter": 1})
    assert f"{registry.kind} '{name}'" in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match="strange_parameter"):
        registry.get(name, needed(adapter) | {"strange_parameter": 1})
    for field, info in registry.adapter_class(name).Params.model_fields.items():
        wrong = ["no value"] if isinstance(info.default, dict) else {"no": "value"}
        with pytest.raises(ConfigError, match=field):
            registry.parse(name, needed(adapter) | {field: wrong})


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.kind)
def test_an_unknown_name_lists_the_known_ones(registry: Registry[Any]) -> None:
    with pytest.raises(ConfigError, match=f"unknown {registry.kind} 'nobody'") as caught:
        registry.identity("nobody", {})
    assert all(name in str(caught.value) for name in registry.names())


@every(*REGISTRIES)
def test_it_is_declared_as_adapters_are(adapter: Name) -> None:
    registry, name = adapter
    declared = registry.adapter_class(name)
    assert issubclass(declared, Adapter)
    assert set(declared.local) <= declared.Params.model_fields.keys()
    for weight in declared.weights:
        weights.entry(weight)
    params = registry.parse(name, needed(adapter))
    assert params == registry.parse(name, json.loads(params.model_dump_json())), "a config in a file says the same"
    for field in declared.Params.model_fields:
        with pytest.raises(ValidationError):
            setattr(params, field, None)


@every(*REGISTRIES)
def test_it_is_made_once_for_equal_parameters(adapter: Name) -> None:
    assert get(adapter) is get(adapter)


def by_hand(registry: Registry[Any], name: str) -> list[str]:
    """The weights that no package carries and nobody downloads for the user."""
    return [weight for weight in registry.adapter_class(name).weights if weights.entry(weight).by_hand]


@pytest.mark.parametrize(
    ("registry", "name"),
    [(registry, name) for registry in REGISTRIES for name in registry.names() if by_hand(registry, name)],
    ids=lambda value: getattr(value, "kind", value),
)
def test_absent_weights_are_one_line(
    registry: Registry[Any], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (weight,) = by_hand(registry, name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FEDBENCH_CACHE", str(tmp_path))
    assert weights.state(weight) == "missing"
    for ask in (lambda: registry.adapter_class(name)(registry.parse(name, {})), lambda: registry.identity(name, {})):
        with pytest.raises(WorkspaceError, match=weight) as caught:
            ask()
        assert "\n" not in str(caught.value)
        assert caught.value.hint
    assert not list(tmp_path.iterdir())


# -- voters -----------------------------------------------------------------------------------------------------


def judged(adapter: Name, shown: Picture, call: Calls, **params: Any) -> Ballot:
    """A ballot, checked in itself, and asked for again under another name of the same pixels."""
    voter = get(adapter, params)
    ballot = voter.vote(shown, call)
    assert isinstance(ballot, Ballot)
    assert ballot == voter.vote(shown, call)
    assert ballot == voter.vote(Picture(f"{shown.digest} again", shown.pixels), call)
    kind = {"fine": Expression, "coarse": Polarity}[voter.granularity]
    assert ballot.answer is None or isinstance(ballot.answer, kind)
    assert ballot.abstained is None or isinstance(ballot.abstained, Abstention)
    assert ballot.confidence is None or 0 <= ballot.confidence <= 1
    return ballot


@every(VOTERS)
@pytest.mark.parametrize("name", ["happy", "hopper", "surprised", "turned_left", "six_people"])
def test_a_voter_answers_on_faces(adapter: Name, name: str, call: Calls) -> None:
    assert judged(adapter, photo(name), call).answer is not None


@every(VOTERS)
def test_a_voter_abstains_where_nothing_can_be_said(adapter: Name, call: Calls) -> None:
    for name, shown in odd_pictures().items():
        ballot = judged(adapter, shown, call)
        assert ballot.answer is None, name
        assert ballot.confidence is None, name


@every(VOTERS)
def test_both_granularities_agree_on_a_plain_smile(adapter: Name, call: Calls) -> None:
    if "granularity" not in VOTERS.adapter_class(adapter[1]).Params.model_fields:
        pytest.skip("it has one granularity")
    assert judged(adapter, photo("happy"), call, granularity="fine").answer is Expression.HAPPY
    assert judged(adapter, photo("happy"), call, granularity="coarse").answer is Polarity.POSITIVE


@every(VOTERS)
def test_a_voter_can_be_given_a_picture_and_nothing_else(adapter: Name) -> None:
    vote = VOTERS.adapter_class(adapter[1]).vote  # type: ignore[attr-defined]
    assert list(inspect.signature(vote).parameters) == ["self", "picture", "call"]


def test_a_panel_is_given_the_picture_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    class Spy(Adapter):
        granularity = "coarse"

        def vote(self, *args: Any, **kwargs: Any) -> Ballot:
            given.append((args, kwargs))
            return Ballot(answer=Polarity.NEUTRAL)

    monkeypatch.setitem(VOTERS._entries, "spy", Spy)
    shown = flat(1)
    poll = Poll([Spec(name="spy")], {shown.digest: shown}.__getitem__, SHUT)
    poll.show(shown)
    ((vote,),) = poll.votes()  # type: ignore[misc]
    assert given == [((shown, SHUT), {})]
    assert [field.name for field in fields(shown)] == ["digest", "pixels"], "neither target nor source can travel in it"
    assert (vote.voter, vote.polarity) == ("spy", Polarity.NEUTRAL)


# -- editors ----------------------------------------------------------------------------------------------------


def requests(source: Picture, expression: Expression, name: str = "hopper") -> list[EditRequest]:
    return [
        EditRequest(
            source,
            expression,
            target,
            f"change the expression from {expression} to {target}",
            seed,
            Key("contract", name, target, "editor", 0),
        )
        for seed, target in enumerate(others(expression))
    ]


def outputs(folder: Path) -> Path:
    """What a user's own model may have left of the photo: six pictures, named by source and target."""
    for level, target in enumerate(others(Expression.NEUTRAL)):
        file = folder / "contract" / "hopper" / f"{target}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(encode_png(photo("hopper").pixels // np.uint8(2 + level)))
    return folder


def pixels(results: Any) -> list[Any]:
    """The pictures of an editor's results, however it wraps them."""
    return [result.pixels if isinstance(result, Edit) else result for result in results]


@every(EDITORS)
def test_an_editor_gives_one_picture_per_request_in_order_and_the_same_again(adapter: Name, call: Calls) -> None:
    editor, source = get(adapter), photo("hopper")
    door = call if EDITORS.remote(adapter[1]) else SHUT
    before = source.pixels.copy()
    wanted = requests(source, Expression.NEUTRAL)
    together = pixels(editor.edit(wanted, door))
    assert len(together) == len(wanted)
    for request, edit in zip(wanted, together, strict=True):
        assert isinstance(edit, np.ndarray)
        assert edit.dtype == np.uint8
        assert edit.ndim == 3
        assert edit.shape[2] == 3
        assert not np.shares_memory(edit, source.pixels)
        (alone,) = pixels(editor.edit([request], door))
        assert np.array_equal(alone, edit), "neither order, company nor repetition changes an edit"
    assert len({edit.tobytes() for edit in together}) == len(wanted) or not heeds_target(adapter)
    assert np.array_equal(source.pixels, before)
    assert [edit.tobytes() for edit in pixels(editor.edit(wanted[::-1], door))] == [
        edit.tobytes() for edit in together[::-1]
    ]
    assert editor.edit([], door) == []


def heeds_target(adapter: Name) -> bool:
    return EDITORS.adapter_class(adapter[1]).heeds_target


@every(EDITORS)
def test_an_editor_returns_a_failure_for_each_request_without_a_face(adapter: Name, call: Calls) -> None:
    editor = get(adapter)
    remote = EDITORS.remote(adapter[1])
    door, kind = (call, FailureKind.REFUSED) if remote else (SHUT, FailureKind.NO_FACE)
    for name, source in odd_pictures().items():
        results = editor.edit(requests(source, Expression.HAPPY, name), door)
        assert len(results) == 6
        failed = [result for result in results if isinstance(result, ItemFailed)]
        assert all(str(result) and "\n" not in str(result) for result in failed)
        if EDITORS.adapter_class(adapter[1]).needs_face:
            assert len(failed) == 6, name
            assert {result.kind for result in failed} == {kind}


# -- pools ------------------------------------------------------------------------------------------------------


@every(POOLS)
def test_a_pool_lists_the_same_twice_without_opening_a_picture(adapter: Name, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = get(adapter)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a picture was opened")

    monkeypatch.setattr("PIL.Image.open", refuse)
    monkeypatch.setattr("cv2.imdecode", refuse)
    sources = list(pool.list())
    assert sources
    assert sources == list(pool.list())
    assert len({source.key for source in sources}) == len(sources)
    assert {source.key.pool for source in sources} == {pool.params.pool}, "the run finds the pool of a key by it"
    for source in sources:
        assert (source.key.target, source.key.editor, source.key.attempt) == ("", "", 0)
        assert source.licence
        assert Source.model_validate_json(source.model_dump_json()) == source


@every(POOLS)
def test_a_pool_loads_upright_rgb_or_says_why_not(adapter: Name) -> None:
    pool, seen = get(adapter), 0
    for source in list(pool.list())[:12]:
        try:
            loaded = pool.load(Source.model_validate_json(source.model_dump_json()))
        except UnreadableImage:
            continue
        seen += 1
        assert loaded.pixels.dtype == np.uint8
        assert loaded.pixels.ndim == 3
        assert loaded.pixels.shape[2] == 3
        assert loaded.pixels.flags.c_contiguous
        assert re.fullmatch("[0-9a-f]{64}", loaded.file_sha256)
        again = pool.load(source)
        assert again.file_sha256 == loaded.file_sha256
        assert np.array_equal(again.pixels, loaded.pixels)
    assert seen


@every(POOLS)
def test_a_pool_has_a_reason_for_a_source_that_is_gone(adapter: Name) -> None:
    pool = get(adapter)
    with pytest.raises(UnreadableImage) as caught:
        pool.load(Source(key=Key(pool.params.pool, "gone"), path="gone.jpg"))
    assert caught.value.reason == "missing"


# -- describers -------------------------------------------------------------------------------------------------


@every(DESCRIBERS)
def test_a_describer_speaks_of_the_picture_it_is_shown(adapter: Name, call: Calls) -> None:
    describer = get(adapter)
    captions = {name: describer.caption(photo(name), call) for name in ("surprised", "happy", "angry")}
    assert len(set(captions.values())) == 3, "other faces, other words"
    for name, text in captions.items():
        assert describer.caption(Picture(f"{photo(name).digest} again", photo(name).pixels), call) == text
        assert text.strip() == text != ""
        assert not [expression for expression in EXPRESSIONS if re.search(rf"\b{expression}\b", text.lower())]


@every(DESCRIBERS)
def test_a_describer_turns_round_with_its_pictures(adapter: Name, call: Calls) -> None:
    describer = get(adapter)
    for one, other in (("angry", "surprised"), ("happy", "angry"), ("surprised", "happy")):
        there, back = (
            describer.instruct(photo(first), photo(second), call) for first, second in ((one, other), (other, one))
        )
        assert there.strip()
        assert there != back
        assert there == describer.instruct(photo(one), photo(other), call)


@every(DESCRIBERS)
def test_a_describer_fails_where_there_is_no_face_or_no_difference(adapter: Name, call: Calls) -> None:
    describer, face = get(adapter), photo("happy")
    for shown in odd_pictures().values():
        for ask in (
            lambda shown=shown: describer.caption(shown, call),
            lambda shown=shown: describer.instruct(shown, face, call),
            lambda shown=shown: describer.instruct(face, shown, call),
        ):
            with pytest.raises(ItemFailed) as caught:
                ask()
            assert caught.value.kind is FailureKind.NO_FACE
    assert describer.instruct(face, face, call) == ""


@every(CHECKERS)
def test_a_checker_follows_a_text_to_its_picture(adapter: Name, call: Calls) -> None:
    checker = get(adapter)
    shown = [photo("angry"), photo("surprised"), photo("happy")]
    text = DESCRIBERS.get("mllm", needed((DESCRIBERS, "mllm"))).instruct(shown[0], shown[1], call)
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 0]):
        choice = checker.pick(text, [shown[place] for place in order], call)
        assert choice.place == order.index(1)
    lost = checker.pick("Do something else.", shown, call)
    assert (lost.place, lost.abstained) == (None, Abstention.CANNOT_TELL)


@every(JUDGES)
def test_a_judge_is_shown_what_its_score_is_about(adapter: Name, call: Calls) -> None:
    judge, source, output, truth = get(adapter), photo("angry"), photo("surprised"), photo("happy")
    before = len(PROVIDER.asked)
    scores = [
        judge.quality(output, call),
        judge.consistency(source, output, "open the jaw", call),
        judge.alignment(output, truth, call),
    ]
    asked = PROVIDER.asked[before:]
    assert [len(each.pictures) for each in asked] == [1, 2, 2]
    assert [asked[0].pictures[0], asked[2].pictures[0]] == [asked[1].pictures[1]] * 2, "the output"
    assert ["open the jaw" in each.text for each in asked] == [False, True, False]
    swapped = len(PROVIDER.asked)
    scores.append(judge.consistency(source, output, "open the jaw", call, swapped=True))
    scores.append(judge.alignment(output, truth, call, swapped=True))
    for given, other in zip(asked[1:], PROVIDER.asked[swapped:], strict=True):
        assert other.pictures == given.pictures[::-1]
        assert other.text != given.text, "it says which picture is which"
    for score in scores:
        assert score.value is not None
        assert 0 <= score.value <= 10
        assert score.reason
        assert score.abstained is None


# -- faces ------------------------------------------------------------------------------------------------------


def measured(faces: tuple[Face, ...]) -> list[bytes]:
    return [
        face.box.tobytes() + face.landmarks.tobytes() + repr((face.blendshapes, face.score, face.yaw)).encode()
        for face in faces
    ]


@every(ANALYZERS)
@pytest.mark.parametrize(("name", "least"), [("happy", 1), ("six_people", 6), ("turned_left", 1)])
def test_an_analyzer_measures_faces_in_pixels_the_largest_first(adapter: Name, name: str, least: int) -> None:
    analyzer, shown = get(adapter), photo(name)
    faces = analyzer.analyze(shown)
    assert len(faces) >= least
    areas = [float(face.box[2] * face.box[3]) for face in faces]
    assert areas == sorted(areas, reverse=True)
    for face in faces:
        assert (face.landmarks.shape, face.landmarks.dtype) == ((478, 3), np.float32)
        assert (face.box.shape, face.box.dtype) == ((4,), np.float32)
        x, y, width, height = face.box
        nose = face.landmarks[1]
        assert x < nose[0] < x + width
        assert y < nose[1] < y + height
        assert all(0 <= share <= 1 for share in face.blendshapes.values())
        assert all(abs(angle) <= 180 for angle in (face.yaw, face.pitch, face.roll))
    assert measured(faces) == measured(analyzer.analyze(Picture(f"again {name}", shown.pixels)))


@every(ANALYZERS)
def test_an_analyzer_finds_no_face_where_there_is_none(adapter: Name) -> None:
    analyzer = get(adapter)
    assert {name: analyzer.analyze(shown) for name, shown in odd_pictures().items()} == dict.fromkeys(
        odd_pictures(), ()
    )


@every(EMBEDDERS)
def test_an_embedder_puts_one_person_nearer_than_another(adapter: Name) -> None:
    embedder = get(adapter)

    def embed(shown: Picture) -> Any:
        return embedder.embed(shown, ANALYZERS.get("mediapipe", {}).analyze(shown)[0])

    man = [embed(frame(number)) for number in (0, 30)]
    strangers = [embed(photo(name)) for name in ("astronaut", "hopper", "surprised", "happy", "angry")]
    for vector in [*man, *strangers]:
        assert vector.dtype == np.float32
        assert vector.shape == man[0].shape
        assert vector.ndim == 1
        assert float(np.linalg.norm(vector)) == pytest.approx(1, abs=1e-5)
    assert float(man[0] @ man[1]) > max(float(man[0] @ stranger) for stranger in strangers) + 0.1
    shown = photo("hopper")
    assert np.array_equal(embed(Picture("again", shown.pixels)), embed(shown))


# -- boards -----------------------------------------------------------------------------------------------------


def finalists(count: int) -> Iterator[Finalist]:
    for rank, target in enumerate(others(Expression.NEUTRAL)[:count], 1):
        yield Finalist(
            key=Key("pool", "one", target, "warp", 0),
            source_image="0" * 64,
            source_expression=Expression.NEUTRAL,
            image=f"{rank}" * 64,
            instruction=f"change the expression from neutral to {target}",
            rank=rank,
            score=1 / rank,
            caption="The mouth is open.",
        )


@every(BOARDS)
@pytest.mark.parametrize("count", [1, 2, 6])
def test_a_board_has_one_opinion_per_finalist(adapter: Name, count: int) -> None:
    board, shown = get(adapter), list(finalists(count))
    opinions = board.review(shown)
    assert len(opinions) == count
    assert all(isinstance(opinion, Opinion) for opinion in opinions)
    assert list(opinions) == list(board.review(shown))
    assert {opinion.mode for opinion in opinions} <= {"auto", "sample", "human"}
    assert all(opinion.note for opinion in opinions), "a row says who decided"
    decided = [opinion for opinion in opinions if opinion.chosen is not None]
    if any(opinion.mode == "auto" for opinion in opinions):
        assert decided == list(opinions), "nobody is waited for"
        assert opinions[0].chosen, "the best rank is never refused by nobody"
