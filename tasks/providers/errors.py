"""What a provider's error means: try again, never for this request, or never at all."""

import re
from collections.abc import Mapping
from typing import Any, Final

from schemas.outcomes import FailureKind
from schemas.routes import Route
from tasks.engine.errors import FatalError, PermanentError, ProviderError, TransientError

# Seconds a provider may ask us to wait before the run rather stops, to be resumed.
LONGEST_WAIT_S: Final = 600.0
_TRANSIENT: Final = {200, 408, 409, 425, 429, 499, 500, 502, 503, 504, 520, 522, 524, 529}
_OVERLOAD: Final = {429, 503, 529}
_POLICY_STATUS: Final = {400, 403, 422, 451, 500}
_POLICY: Final = re.compile(
    r"content.?(policy|filter|management|moderation|safety)|moderation|safety (system|filter|settings|policy)|flagged"
    r"|sensitive|inappropriate|prohibited|responsible.?ai|data_inspection|unsafe|contentFilter|违规|敏感",
    re.IGNORECASE,
)
_QUOTA: Final = re.compile(
    r"insufficient.?(quota|balance|credit|funds)|billing.?(hard|not.?active)|quota.?(exhausted|used up)|PerDay|per day"
    r"|exceeded_current_quota|exceeded your current quota|out of credits?|arrears|余额不足|欠费",
    re.IGNORECASE,
)
# Gemini calls every limit a quota; only the one per day is worth stopping for.
_MINUTE: Final = re.compile(r"PerMinute|RESOURCE_EXHAUSTED(?!.*PerDay)", re.IGNORECASE | re.DOTALL)
_KEY: Final = re.compile(
    r"(api.?key|access.?token|credential)\S* .{0,40}(invalid|incorrect|expired|revoked|not valid|missing)"
    r"|(invalid|incorrect|expired|revoked|no) (api.?key|credential|token)|API_KEY_INVALID",
    re.IGNORECASE,
)
_MODEL: Final = re.compile(
    r"model\S*[ :`'\"]+.{0,80}"
    r"(not.?(found|exist|support|available)|does not exist|deprecated|retired|unknown|invalid)"
    r"|(unknown|invalid|no such|unsupported|not a valid) model|model_not_found",
    re.IGNORECASE | re.DOTALL,
)
_PARAMETER: Final = re.compile(
    r"(temperature|response_format|json_schema|max_(completion_)?tokens|extra_body|thinking|unsupported parameter"
    r"|unknown (parameter|field|name)|unrecognized (request )?argument|UnsupportedParamsError)",
    re.IGNORECASE,
)
# What litellm says, as a mistake of ours (422), where Gemini's answer was cut on the way.
_TORN: Final = re.compile(r"Error converting to valid response", re.IGNORECASE)
_RETRY_DELAY: Final = re.compile(r"retryDelay\W+(\d+(?:\.\d+)?)s|try again in (\d+(?:\.\d+)?) ?s", re.IGNORECASE)


def classed(route: Route, status: int | None, message: str, headers: Mapping[str, Any]) -> ProviderError:
    """A provider's error as one of our three.

    Args:
        route: Who was asked.
        status: HTTP status, or None where there was none.
        message: What the provider or the client said, without secrets.
        headers: Of the answer; `retry-after` is honoured.
    """
    said = f"{status or 'no answer'}: {message}"
    if _TORN.search(message):
        return TransientError(said)
    if hint := _hint_if_fatal(route, status, message):
        return FatalError(said, hint)
    if status in _POLICY_STATUS and _POLICY.search(message):
        return PermanentError(said, kind=FailureKind.REFUSED)
    if status is None or status in _TRANSIENT or status >= 500:
        wait = _wait(headers, message)
        if wait is not None and wait > LONGEST_WAIT_S:
            return FatalError(said, f"{route.provider} asks to wait {wait:g} s: run again then")
        return TransientError(said, retry_after=wait, overload=status in _OVERLOAD)
    return PermanentError(said)


def _hint_if_fatal(route: Route, status: int | None, message: str) -> str:
    """How to mend what every further request would meet, too; "" where this is no such error."""
    key, wrong = route.key_env or "key_env of the route", status in (400, 422)
    if status == 402 or (status in (400, 403, 429) and _QUOTA.search(message) and not _MINUTE.search(message)):
        return "top up the account or wait for its quota, then run again; nothing is paid twice"
    if status == 401 or (status in (400, 403) and _KEY.search(message)):
        return f"check the key in {key}"
    if status == 403 and not _POLICY.search(message):
        return f"the key in {key} may not use {route.model}"
    if status == 404 or (wrong and _MODEL.search(message)):
        return f"is the model of the route right, and still served? {route.model} at {route.api_base or route.provider}"
    if wrong and _PARAMETER.search(message) and not _POLICY.search(message):
        return f"{route.model} takes other settings: see temperature, structured and extra_body of its route"
    return ""


def _wait(headers: Mapping[str, Any], message: str) -> float | None:
    """Seconds the provider asks to wait: of its header (seconds or a date), else of its words."""
    from email.utils import parsedate_to_datetime

    value = str(headers.get("retry-after") or "")
    if re.fullmatch(r"\d+(\.\d+)?", value):
        return float(value)
    if value:
        try:
            due, now = parsedate_to_datetime(value), parsedate_to_datetime(str(headers.get("date") or ""))
            return max(0.0, (due - now).total_seconds())
        except ValueError:
            return None  # no time that can be read is no time
    found = _RETRY_DELAY.search(message)
    return float(found[1] or found[2]) if found else None
