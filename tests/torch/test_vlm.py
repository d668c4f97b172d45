"""The `vlm` voter on a tiny Qwen2.5-VL: random, and taught to call light pictures happy and dark ones sad."""

import json
import math
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import prompts
from schemas.answers import Ballot
from schemas.expressions import Expression, Polarity
from schemas.outcomes import Abstention
from tasks.engine.errors import ConfigError
from tasks.engine.images import Picture
from tasks.providers import in_process
from tasks.providers.in_process import Model, Place, digest_of, load
from tasks.voters import VOTERS
from tests import fakes
from tests.commands import environment, run
from tests.doors import SHUT
from tests.photos import picture
from tests.torch import tiny

pytestmark = pytest.mark.torch
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def flat(level: int) -> Picture:
    return picture(np.full((56, 56, 3), level, np.uint8))


LESSONS = ((flat(230), "happy"), (flat(20), "sad"))


def teach(model: Any, processor: Any) -> None:
    """A few steps on the fine prompt, until the answers are learned by heart."""
    import torch
    from PIL import Image

    lessons = []
    for shown, word in LESSONS:
        told = [{"type": "image", "image": Image.fromarray(shown.pixels)},
                {"type": "text", "text": prompts.render("vote_fine")}]  # fmt: skip
        asked = processor.apply_chat_template(
            [{"role": "user", "content": told}],
            add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt",
        )  # fmt: skip
        answer = json.dumps({"expression": word}) + "<|im_end|>"
        tokens = processor.tokenizer(answer, return_tensors="pt").input_ids
        start = asked["input_ids"].shape[1]
        asked["input_ids"] = torch.cat([asked["input_ids"], tokens], dim=1)
        asked["attention_mask"] = torch.ones_like(asked["input_ids"])
        asked["mm_token_type_ids"] = torch.cat([asked["mm_token_type_ids"], torch.zeros_like(tokens)], dim=1)
        lessons.append((asked, start, tokens[0]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(50):
        for asked, start, tokens in lessons:
            logits = model(**asked).logits[0, start - 1 : -1]
            torch.nn.functional.cross_entropy(logits, tokens).backward()
            optimizer.step()
            optimizer.zero_grad()


@pytest.fixture(scope="module")
def random(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an untaught model."""
    folder = tmp_path_factory.mktemp("models") / "random"
    for part in tiny.vlm():
        part.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "taught"
    model, processor = tiny.vlm()
    teach(model, processor)
    for part in (model, processor):
        part.save_pretrained(folder)
    return folder


def params(folder: Path, **more: Any) -> dict[str, Any]:
    return {"model": "tiny", "revision": digest_of(folder), "folder": str(folder), "max_new_tokens": 40} | more


def vote(folder: Path, shown: Picture, **more: Any) -> Ballot:
    return VOTERS.get("vlm", params(folder, **more)).vote(shown, SHUT)


def test_it_says_what_it_was_taught(taught: Path) -> None:
    for shown, word in LESSONS:
        ballot = vote(taught, shown, granularity="fine")
        assert ballot == Ballot(answer=Expression(word), raw=json.dumps({"expression": word}))
        assert vote(taught, shown, granularity="fine") == ballot


def test_words_that_compete_give_the_same_answer_and_a_confidence(taught: Path) -> None:
    for shown, word in LESSONS:
        ballot = vote(taught, shown, granularity="fine", answer="likelihood")
        shares = json.loads(ballot.raw)
        assert ballot.answer is Expression(word)
        assert ballot.confidence == shares[word] > 0.5
        assert shares.keys() == {*map(str, Expression), "cannot tell"}
        assert math.fsum(shares.values()) == pytest.approx(1, abs=1e-3)


def test_a_likelihood_is_the_probability_of_saying_it(taught: Path) -> None:
    import torch

    model, text, shown = load(Place("tiny", digest_of(taught), str(taught))), prompts.render("vote_fine"), LESSONS[0][0]
    said = model.say(shown.pixels, [{"text": text}], 1)
    letters = [chr(code) for code in range(32, 127)]
    logs = model.likelihoods(shown.pixels, text, letters)
    assert (said.text, said.finish) == (letters[int(np.argmax(logs))], "length")
    assert sum(map(math.exp, logs)) <= 1
    # The chain rule, by the model's own scores of what it generates.
    inputs = model._inputs(shown.pixels, [{"text": text}])
    made = model._model.generate(
        **inputs, max_new_tokens=8, do_sample=False, output_scores=True, return_dict_in_generate=True
    )
    tokens = made.sequences[0, -8:]
    expected = sum(torch.log_softmax(score[0], -1)[token] for score, token in zip(made.scores, tokens, strict=True))
    (log,) = model.likelihoods(shown.pixels, text, [model._processor.decode(tokens)])
    assert log == pytest.approx(float(expected), abs=1e-3)


@pytest.mark.parametrize("granularity", ["fine", "coarse"])
def test_babble_is_an_abstention_with_what_was_said(random: Path, granularity: str) -> None:
    ballot = vote(random, flat(120), granularity=granularity)
    assert ballot.answer is None
    assert ballot.abstained in (Abstention.UNPARSABLE, Abstention.TRUNCATED)
    assert ballot.repaired
    assert ballot.raw
    weighed = vote(random, flat(120), granularity=granularity, answer="likelihood")
    kind = {"fine": Expression, "coarse": Polarity}[granularity]
    assert weighed.abstained is Abstention.CANNOT_TELL or isinstance(weighed.answer, kind)


def test_a_picture_it_cannot_be_shown_is_an_abstention(random: Path) -> None:
    ballot = vote(random, picture(np.zeros((2, 900, 3), np.uint8)))
    assert ballot.abstained is Abstention.NOT_TAKEN
    assert "aspect ratio" in ballot.raw


def test_a_large_picture_is_shown_smaller(taught: Path) -> None:
    shown = picture(np.full((3000, 3000, 3), 230, np.uint8))
    assert vote(taught, shown, granularity="fine", side=64).answer is Expression.HAPPY


def test_it_is_loaded_once_for_all_threads_and_voters(
    random: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(random, tmp_path / "copy")
    made: list[Place] = []
    start = Model.__init__
    monkeypatch.setattr(Model, "__init__", lambda self, place: (made.append(place), start(self, place))[1])
    kinds = ["fine", "coarse", "fine", "coarse"]
    with ThreadPoolExecutor(4) as pool:
        ballots = list(pool.map(lambda kind: vote(folder, flat(90), granularity=kind, answer="likelihood"), kinds))
    assert len(made) == 1
    assert ballots[:2] == ballots[2:]


@pytest.mark.parametrize("ruin", ["weights", "torn", "torn tokenizer", "pickle", "code", "chat"])
def test_what_cannot_be_trusted_is_one_line(random: Path, tmp_path: Path, ruin: str) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(random, tmp_path / "ruined")
    file = folder / "model.safetensors"
    if ruin == "weights":
        tensors = load_file(file)
        save_file(dict(sorted(tensors.items())[1:]), file, {"format": "pt"})
        expected = "lacks weights"
    elif ruin.startswith("torn"):
        torn = folder / ("tokenizer.json" if ruin == "torn tokenizer" else "model.safetensors")
        torn.write_bytes(torn.read_bytes()[: torn.stat().st_size // 2])
        expected = "cannot be loaded.*fetch it anew"
    elif ruin == "pickle":
        torch.save(load_file(file), folder / "pytorch_model.bin")
        file.unlink()
        expected = "safetensors"
    elif ruin == "code":
        config = json.loads((folder / "config.json").read_text())
        config |= {"model_type": "new", "auto_map": {"AutoConfig": "code.New", "AutoModelForImageTextToText": "code.M"}}
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "code.py").write_text("raise SystemExit('ran code from the folder')\n")
        expected = "trust_remote_code|custom code"
    else:
        (folder / "chat_template.jinja").unlink()
        expected = "takes no pictures in a chat"
    with pytest.raises(ConfigError, match=expected) as caught:
        VOTERS.get("vlm", params(folder))
    assert "\n" not in str(caught.value)
    assert not any(place.folder == str(folder) for place in in_process._loaded)


def test_a_build_with_it_keeps_what_it_said(taught: Path, tmp_path: Path) -> None:
    fakes.install()
    told = json.dumps(params(taught, answer="likelihood"))
    sets = f"verify.measure.panel=[{{name: vlm, params: {told}}}]"
    made = fakes.build(tmp_path, fakes.config(sets, sources=3))
    assert made.published is not None
    files = sorted(made.published.folder.glob("*/*.parquet"))
    votes = [vote for file in files for row in pq.read_table(file).to_pylist() for vote in row["votes"] or ()]
    assert votes
    for vote in votes:
        assert (vote["voter"], vote["granularity"]) == ("vlm", "coarse")
        assert json.loads(vote["raw"]).keys() == {*map(str, Polarity), "cannot tell"}


def test_a_build_that_could_not_vote_spends_nothing(taught: Path, tmp_path: Path) -> None:
    world = fakes.install()
    told = json.dumps(params(taught, revision="main"))
    with pytest.raises(ConfigError, match="not those of revision 'main'") as caught:
        fakes.build(tmp_path, fakes.config(f"verify.measure.panel=[{{name: vlm, params: {told}}}]"))
    assert digest_of(taught) in caught.value.hint
    assert world.asked == []


def test_an_id_of_the_hub_is_read_from_its_cache_alone(taught: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "hub/hub/models--somebody--tiny/snapshots" / COMMIT
    shutil.copytree(taught, snapshot)
    code = (
        "import sys, numpy as np\n"
        "from tasks.engine.errors import ConfigError\n"
        "from tasks.engine.images import Picture\n"
        "from tasks.voters import VOTERS\n"
        "told = {'revision': sys.argv[1], 'granularity': 'fine'}\n"
        "try: VOTERS.get('vlm', told | {'model': 'somebody/other'})\n"
        "except ConfigError as error: print(error)\n"
        "voter = VOTERS.get('vlm', told | {'model': 'somebody/tiny'})\n"
        "print(voter.vote(Picture('', np.full((56, 56, 3), 230, np.uint8)), None).answer)"
    )
    env = environment(tmp_path, HF_HOME=str(tmp_path / "hub"), HTTPS_PROXY="http://127.0.0.1:9")
    told = run([sys.executable, "-c", code, COMMIT], env, tmp_path)
    missing, answer = told.stdout.splitlines()
    assert f"hf download somebody/other --revision {COMMIT}" in missing
    assert answer == "happy"
