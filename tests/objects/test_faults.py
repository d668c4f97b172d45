"""What the store answers when it is not well: tried again, or told in one line; and never half an object."""

import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectionClosedError, EndpointConnectionError, ReadTimeoutError

from tasks.engine import bucket as buckets
from tasks.engine.bucket import Bucket
from tasks.engine.errors import ConfigError, FedbenchError, WorkspaceError
from tasks.engine.places import place
from tests import fakes
from tests.objects.conftest import SECRET, elsewhere, forget

pytestmark = pytest.mark.s3
SEED: Final = 5
ERROR: Final = "<Error><Code>{code}</Code><Message>no</Message></Error>"


class _Raw:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self.data


def answer(status: int, code: str) -> AWSResponse:
    raw: Any = _Raw(ERROR.format(code=code).encode())
    return AWSResponse("http://store", status, {"content-type": "application/xml"}, raw)


def words_of(work: Callable[[], object]) -> str:
    """What stopped it, in words; nothing where it came to its end."""
    try:
        work()
    except WorkspaceError as error:
        return str(error)
    return ""


def faulty(monkeypatch: pytest.MonkeyPatch, fault: Callable[[Any], Any]) -> None:
    """Have every client ask `fault` of each request about to be sent: an answer, an exception, or None."""
    made = buckets._client

    def client(url: str) -> Any:
        one = made(url)

        def before(request: Any, **_: Any) -> Any:
            found = fault(request)
            if isinstance(found, Exception):
                raise found
            return found

        one.meta.events.register("before-send.s3", before)
        return one

    monkeypatch.setattr(buckets, "_client", client)
    forget()


def test_a_store_that_is_unwell_is_asked_again(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    luck, met = random.Random(SEED), Counter[str]()
    monkeypatch.setattr("botocore.retryhandler.delay_exponential", lambda *_, **__: 0.0)
    faults: list[Any] = [
        lambda: answer(503, "SlowDown"),
        lambda: answer(500, "InternalError"),
        lambda: ConnectionClosedError(endpoint_url="http://store"),
        lambda: ReadTimeoutError(endpoint_url="http://store"),
        lambda: EndpointConnectionError(endpoint_url="http://store"),
    ]

    def fault(_: Any) -> Any:
        if luck.random() > 0.1:
            return None
        made = luck.choice(faults)()
        met[type(made).__name__] += 1
        return made

    faulty(monkeypatch, fault)
    far = fakes.build(place(bucket.url), fakes.config(), threads=2)
    local = fakes.build(tmp_path / "local", fakes.config(), threads=2)
    print(f"faults met: {dict(met)}")
    assert met.total() > 10
    assert far.counts == local.counts
    elsewhere(monkeypatch, tmp_path / "other")
    assert fakes.tree(place(bucket.url, everything=True) / "datasets") == fakes.tree(tmp_path / "local" / "datasets")


def test_a_store_that_fails_for_good_stops_the_build_and_the_next_one_ends_it(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("botocore.retryhandler.delay_exponential", lambda *_, **__: 0.0)
    luck, stops = random.Random(SEED), 0
    left = [0]

    def fault(request: Any) -> Any:
        left[0] -= 1
        return answer(503, "SlowDown") if left[0] < 0 and request.method == "PUT" else None

    faulty(monkeypatch, fault)
    for round_ in range(40):
        left[0] = luck.randrange(20, 120) * (1 + round_ // 10)
        elsewhere(monkeypatch, tmp_path / f"machine-{round_}")
        monkeypatch.setenv("FEDBENCH_LEASE_S", "1")
        told = words_of(lambda: fakes.build(place(bucket.url), fakes.config()))
        if not told:
            break
        stops += 1
        assert "\n" not in told
        assert "slow down" in told or "is lost" in told
    print(f"{stops} stops")
    assert stops > 1
    local = fakes.build(tmp_path / "local", fakes.config())
    left[0] = 10**6
    elsewhere(monkeypatch, tmp_path / "other")
    assert fakes.tree(place(f"{bucket.url}/datasets/fakes/v1", everything=True)) == local.tree()


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (404, "NoSuchBucket", "no such bucket"),
        (403, "AccessDenied", "access denied"),
        (403, "InvalidAccessKeyId", "access key is not known"),
        (403, "SignatureDoesNotMatch", "secret key does not fit"),
        (400, "ExpiredToken", "session token has expired"),
        (403, "RequestTimeTooSkewed", "clock is wrong"),
        (301, "PermanentRedirect", "another region"),
        (507, "SomethingOfTheirOwn", "the store answers SomethingOfTheirOwn"),
    ],
)
def test_what_a_user_can_mend_is_one_line(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, status: int, code: str, words: str
) -> None:
    # botocore itself asks for the bucket's region with a HEAD where it lies elsewhere.
    faulty(monkeypatch, lambda request: None if request.method == "HEAD" else answer(status, code))
    with pytest.raises(WorkspaceError, match=words) as raised:
        place(bucket.url)
    assert bucket.url in str(raised.value)
    assert raised.value.hint
    assert "\n" not in str(raised.value)


def test_no_credentials_no_server_no_address(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.retryhandler.delay_exponential", lambda *_, **__: 0.0)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    forget()
    with pytest.raises(WorkspaceError, match="cannot reach the store"):
        place(bucket.url)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "none")
    forget()
    with pytest.raises(WorkspaceError, match="no credentials"):
        place(bucket.url)
    for address in ("s3://", "s3://UPPER/x", "s3://bucket/a/../b", "s3://b"):
        with pytest.raises(ConfigError, match="no address of a bucket"):
            Bucket(address)


def test_a_body_that_breaks_off_is_read_again_or_told(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    from botocore.response import StreamingBody

    bucket.put("name", b"0123456789")
    read, broken = StreamingBody.read, [2]

    def short(self: Any, amt: int | None = None) -> bytes:
        if broken[0]:
            broken[0] -= 1
            raise ReadTimeoutError(endpoint_url="http://store")
        return read(self, amt)  # type: ignore[no-any-return]

    monkeypatch.setattr(StreamingBody, "read", short)
    assert (bucket.get("name") or pytest.fail("gone")).data == b"0123456789"
    broken[0] = 9
    with pytest.raises(FedbenchError, match="cannot"):
        bucket.get("name")


def test_no_secret_is_shown(bucket: Bucket, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    root = place(bucket.url)
    fakes.build(root, fakes.config(sources=3))
    objects = b"".join((bucket.get(name) or pytest.fail("gone")).data for name in bucket.listing())
    assert SECRET not in caplog.text + repr(bucket) + repr(vars(bucket))
    assert SECRET.encode() not in objects
    assert all(SECRET.encode() not in path.read_bytes() for path in root.parent.rglob("*") if path.is_file())
