"""A prefix of an S3 bucket: whole objects, put atomically or on a condition, and every error in one line.

Credentials, region and endpoint are botocore's to find (environment, AWS files, instance role; `AWS_ENDPOINT_URL`):
nothing here reads, keeps or prints one.
"""

import mimetypes
import re
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tasks.engine.errors import ConfigError, WorkspaceError

SCHEME: Final = "s3://"
THREADS: Final = 16  # requests under way at once, where many are due
_LARGEST: Final = 5 * 2**30  # bytes that one PUT takes
_TRIES: Final = 6  # of a request that meets 500, 503, a slow or a broken connection; half a minute in all
_READS: Final = 3  # of a body that breaks off
_AGAIN: Final = "run again: it goes on"
_NEEDED: Final = "the credentials need s3:ListBucket, GetObject, PutObject and DeleteObject there"
_WORDS: Final = {
    "NoSuchBucket": ("there is no such bucket", "create it, or correct --workspace"),
    "AccessDenied": (
        "access denied",
        _NEEDED,
    ),
    "403": ("access denied", _NEEDED),
    "InvalidAccessKeyId": ("the access key is not known there", "check the credentials and AWS_ENDPOINT_URL"),
    "SignatureDoesNotMatch": ("the secret key does not fit the access key", "check the credentials"),
    "ExpiredToken": ("the session token has expired", "fetch new credentials, and run again: it goes on"),
    "ExpiredTokenException": ("the session token has expired", "fetch new credentials, and run again: it goes on"),
    "InvalidToken": ("the session token is not valid", "fetch new credentials, and run again: it goes on"),
    "RequestTimeTooSkewed": ("this machine's clock is wrong", "set the clock, and run again"),
    "503": ("the store asks to slow down, and did so to the last try", "wait a little, and run again: it goes on"),
    "SlowDown": ("the store asks to slow down, and did so to the last try", "wait a little, and run again: it goes on"),
    "QuotaExceeded": ("the bucket's quota is used up", "free some space and run again"),
    "PermanentRedirect": ("the bucket lies in another region", "set AWS_REGION to it"),
    "IllegalLocationConstraintException": ("the bucket lies in another region", "set AWS_REGION to it"),
    "AuthorizationHeaderMalformed": ("the bucket lies in another region", "set AWS_REGION to it"),
    "NotImplemented": (
        "the store cannot put an object on a condition",
        "use one that knows If-None-Match",
    ),
}


class Conflict(Exception):
    """An object is not as the condition of a put says."""


class _Broken(WorkspaceError):
    """The connection broke while an object was read."""


@dataclass(frozen=True, slots=True)
class Listed:
    """What a listing says of an object."""

    etag: str
    size: int


@dataclass(frozen=True, slots=True)
class Got:
    """An object: its bytes and ETag, and its age in seconds, by the store's clock alone."""

    data: bytes
    etag: str
    age: float


class Bucket:
    """The objects below a prefix. Thread-safe; the client is made by the first request.

    Args:
        url: "s3://bucket/prefix"; the prefix may be empty.

    Attributes:
        requests: How many were sent, retries not included, by operation.

    Raises:
        ConfigError: The address is no bucket, or the extra is not installed.
        WorkspaceError: On every request: no credentials, no access, no bucket, or it cannot be reached.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.name, self._prefix = parts.netloc, parts.path.strip("/")
        path_is_plain = not {"", ".", ".."} & set(self._prefix.split("/")) or not self._prefix
        if not re.fullmatch(r"[a-z0-9][a-z0-9.\-]{1,61}[a-z0-9]", self.name) or not path_is_plain:
            raise ConfigError(f"'{url}' is no address of a bucket", "write s3://BUCKET/FOLDER")
        self.url = f"{SCHEME}{self.name}/{self._prefix}".rstrip("/")
        self.requests: Counter[str] = Counter()
        self._made: Any = None
        self._making = threading.Lock()

    def key(self, name: str) -> str:
        """The object's key in the bucket."""
        return f"{self._prefix}/{name}" if self._prefix else name

    @property
    def endpoint(self) -> str:
        """Where requests go."""
        return str(self._client.meta.endpoint_url)

    def get(self, name: str, unless: str | None = None) -> Got | None:
        """An object; None where there is none.

        Args:
            name: Below the prefix.
            unless: An ETag.

        Raises:
            Conflict: It still has the ETag of `unless`.
        """
        condition = {"IfNoneMatch": unless} if unless else {}
        for tries_left in range(_READS - 1, -1, -1):
            try:
                with self._asking("GetObject", name):
                    answer = self._client.get_object(Bucket=self.name, Key=self.key(name), **condition)
                    data = answer["Body"].read()
                break
            except FileNotFoundError:
                return None
            except _Broken:
                if not tries_left:
                    raise
        now = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        read = parsedate_to_datetime(now) if now else datetime.now(UTC)
        return Got(data, answer["ETag"], max(0.0, (read - answer["LastModified"]).total_seconds()))

    def put(self, name: str, data: bytes | Path, *, absent: bool = False, matching: str | None = None) -> Listed:
        """Put a whole object: readers see the old one or this one.

        Args:
            name: Below the prefix.
            data: The bytes, or the file that has them.
            absent: Only where there is none of that name.
            matching: Only over one with this ETag.

        Raises:
            Conflict: The condition does not hold.
        """
        condition: dict[str, Any] = {"IfNoneMatch": "*"} if absent else {"IfMatch": matching} if matching else {}
        size = len(data) if isinstance(data, bytes) else data.stat().st_size
        if size > _LARGEST:
            raise WorkspaceError(f"{self.url}/{name} would be larger than 5 GiB", "a single PUT takes no more")
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        common = {"Bucket": self.name, "Key": self.key(name), "ContentType": kind, **condition}
        try:
            with self._asking("PutObject", name):
                if isinstance(data, bytes):
                    answer = self._client.put_object(Body=data, **common)
                else:
                    with data.open("rb") as file:
                        answer = self._client.put_object(Body=file, **common)
        except FileNotFoundError:  # what IfMatch named is gone
            raise Conflict(name) from None
        return Listed(answer["ETag"], size)

    def copy(self, source: str, name: str) -> bool:
        """Copy an object under another name, within the bucket; False where there is none."""
        try:
            with self._asking("CopyObject", source):
                origin = {"Bucket": self.name, "Key": self.key(source)}
                self._client.copy_object(Bucket=self.name, Key=self.key(name), CopySource=origin)
        except FileNotFoundError:
            return False
        return True

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects; one that is not there is no mistake."""
        for name in names:  # one by one: not every store knows how to delete many at once
            with self._asking("DeleteObject", name):
                self._client.delete_object(Bucket=self.name, Key=self.key(name))

    def listing(self, folder: str = "", but: str = "") -> dict[str, Listed]:
        """Everything below a folder, by name, but for one folder in it, which is leapt over."""
        return {name: listed for page in self._pages(folder, but=but) for name, listed in page[0]}

    def folders(self) -> tuple[list[str], dict[str, Listed]]:
        """The first names below the prefix: folders, and objects that lie directly there."""
        pages = list(self._pages("", "/"))
        return [folder for _, inner in pages for folder in inner], dict(one for here, _ in pages for one in here)

    def presigned(self, name: str, seconds: int) -> str:
        """An address from which whoever has it can get the object for so long, without credentials."""
        with self._asking("Presign", name):
            asked = {"Bucket": self.name, "Key": self.key(name)}
            return str(self._client.generate_presigned_url("get_object", Params=asked, ExpiresIn=seconds))

    def _pages(
        self, folder: str, delimiter: str = "", but: str = ""
    ) -> Iterator[tuple[list[tuple[str, Listed]], list[str]]]:
        start = len(self.key(""))
        asked: dict[str, Any] = {"Bucket": self.name, "Prefix": self.key(f"{folder}/" if folder else "")}
        if delimiter:
            asked["Delimiter"] = delimiter
        while True:
            with self._asking("ListObjectsV2", folder):
                page = self._client.list_objects_v2(**asked)
            here = [(one["Key"][start:], Listed(one["ETag"], one["Size"])) for one in page.get("Contents", ())]
            inner = [one["Prefix"][start:].rstrip("/") for one in page.get("CommonPrefixes", ())]
            left_out = bool(but and here and here[-1][0].startswith(f"{but}/"))
            here = [one for one in here if one[0] and not one[0].endswith("/")]
            yield [one for one in here if not but or not one[0].startswith(f"{but}/")], inner
            if not page.get("IsTruncated"):
                return
            asked.pop("ContinuationToken", None)
            # "0" follows "/": the first name after all those of the folder.
            asked |= (
                {"StartAfter": self.key(f"{but}0")}
                if left_out
                else {"ContinuationToken": page["NextContinuationToken"]}
            )

    @property
    def _client(self) -> Any:
        with self._making:
            if self._made is None:
                self._made = _client(self.url)
            return self._made

    @contextmanager
    def _asking(self, operation: str, name: str) -> Iterator[None]:
        """Count a request; its error in words, `Conflict`, or `FileNotFoundError`."""
        self._client  # noqa: B018 - without the extra, this says so
        import botocore.exceptions as errors

        self.requests[operation] += 1
        where = f"{self.url}/{name}" if name else self.url
        try:
            yield
        except errors.ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            if status in (304, 409, 412):
                raise Conflict(name) from None
            if code in ("NoSuchKey", "404"):
                raise FileNotFoundError(name) from None
            what, hint = _WORDS.get(code) or _WORDS.get(str(status)) or (f"the store answers {code or status}", _AGAIN)
            raise WorkspaceError(f"cannot use {where}: {what}", hint) from None
        except (errors.NoCredentialsError, errors.PartialCredentialsError, errors.CredentialRetrievalError):
            hint = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
            raise WorkspaceError(f"cannot use {self.url}: no credentials for S3 are found", hint) from None
        except (errors.IncompleteReadError, errors.ResponseStreamingError):
            raise _Broken(f"cannot read {where}: the connection breaks", _AGAIN) from None
        except (errors.HTTPClientError, errors.ConnectionError) as error:
            words = f"cannot reach the store of {self.url} ({type(error).__name__.removesuffix('Error')})"
            kind = (
                _Broken if operation == "GetObject" and isinstance(error, errors.ReadTimeoutError) else WorkspaceError
            )
            raise kind(words, "check AWS_ENDPOINT_URL and the network, and run again: it goes on") from None
        except errors.BotoCoreError as error:
            words = f"cannot use {where}: {type(error).__name__}"
            raise WorkspaceError(words, "check the AWS config and AWS_ENDPOINT_URL") from None


def _client(url: str) -> Any:
    try:
        from botocore.config import Config
        from botocore.session import get_session
    except ImportError:
        hint = "pip install --no-deps -r requirements/s3.txt"
        raise ConfigError(f"{url}: an object store needs the extra `s3`, which is not installed", hint) from None
    import botocore.exceptions as errors

    def made(style: str) -> Any:
        config = Config(
            # Not "standard": its quota gives up early where many requests at once are asked to slow down.
            retries={"mode": "legacy", "total_max_attempts": _TRIES},
            connect_timeout=10,
            read_timeout=60,
            max_pool_connections=2 * THREADS,
            signature_version="s3v4",
            s3={"addressing_style": style},
            # Other stores than Amazon's do not all know the newer checksums.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        return session.create_client("s3", config=config)

    try:
        session = get_session()
        client = made("auto")
        host = urlsplit(client.meta.endpoint_url).hostname or ""
        # Buckets as host names are Amazon's; elsewhere there is seldom a name or a certificate for them.
        return client if host.endswith((".amazonaws.com", ".amazonaws.com.cn")) else made("path")
    except (errors.BotoCoreError, ValueError) as error:
        words = " ".join(str(error).split())
        raise ConfigError(f"cannot open {url}: {words}", "check AWS_PROFILE, AWS_REGION and AWS_ENDPOINT_URL") from None
