"""Runs in .venv-studio, where Label Studio is and fedbench is not: makes accounts, and serves.

    server.py people        JSON on stdin: [{"name", "email", "password", "admin", "token"}]; `token` asks for one
    server.py serve PORT    the development server on 127.0.0.1
    gunicorn --chdir infra/studio server:application    for teams, after one `people`

All settings come from the environment, which `fedbench review up` makes.
"""

import hashlib
import json
import os
import re
import sys
from pathlib import Path

import label_studio
import requests

sys.path.insert(0, str(Path(label_studio.__file__).parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "label_studio.core.settings.label_studio")

from django.core.management import call_command
from django.core.wsgi import get_wsgi_application

application = get_wsgi_application()

from core.utils.io import ssrf_safe_post, validate_url_for_ssrf
from django.core.exceptions import SuspiciousFileOperation
from django.core.servers import basehttp
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from io_storages.localfiles import views
from webhooks import serializers as hook_serializers
from webhooks import utils as hook_utils

_joined = views.safe_join


def _inside(root: str, *parts: str) -> str:
    """Django's `safe_join` looks at the text of a path; here links are followed first, so none leads out."""
    path = _joined(root, *parts)
    if not Path(path).resolve().is_relative_to(Path(root).resolve()):
        raise SuspiciousFileOperation("a link leads out of the image folder")
    return path


views.safe_join = _inside
_served = views.build_localfile_response


def _tagged(request: HttpRequest, full_path: str, if_none_match_header: str | None) -> HttpResponse:
    """Label Studio's tag says when a file was made, which tells a gold task; no picture changes under its name."""
    tag = f'W/"{hashlib.sha256(full_path.encode()).hexdigest()}"'
    known = tag in (if_none_match_header or "")
    response = HttpResponseNotModified() if known else _served(request, full_path, None)
    response["ETag"] = tag
    return response


views.build_localfile_response = _tagged
# Where `fedbench review listen` waits. Label Studio's guard refuses this machine as a whole, and should: webhooks and
# imports by URL would reach whatever listens here, for everybody with an account. This one door leads to nothing else.
_WAKE_UP = re.compile(r"http://127\.0\.0\.1:\d{1,5}/fedbench-wake-up")


def _checked(url: str, **more: object) -> None:
    if not _WAKE_UP.fullmatch(url):
        validate_url_for_ssrf(url, **more)


def _posted(url: str, **more: object) -> requests.Response:
    if not _WAKE_UP.fullmatch(url):
        return ssrf_safe_post(url, **more)
    with requests.Session() as session:
        session.trust_env = False  # the proxy that is not there
        return session.post(url, allow_redirects=False, **more)


hook_serializers.validate_url_for_ssrf = _checked
hook_utils.ssrf_safe_post = _posted

# Head and body of an answer leave in two writes; without this the second waits 40 ms for the first's receipt.
basehttp.WSGIRequestHandler.disable_nagle_algorithm = True


def people() -> None:
    """Migrate the database and make the accounts that are not there; their ids and new tokens on stdout.

    A token cannot be read again: its signature is not stored. An account that is there keeps its password.
    """
    call_command("migrate", "--no-color", verbosity=0)
    from jwt_auth.models import LSAPIToken
    from organizations.models import Organization
    from users.models import User

    made = {}
    # All or none: of an account that is made before a failure nobody would ever learn the password.
    with transaction.atomic():
        for person in json.load(sys.stdin):
            user = User.objects.filter(email=person["email"].lower()).first()
            fresh = user is None
            if fresh:
                user = User.objects.create_user(email=person["email"].lower(), password=person["password"])
                user.first_name = person["name"]
            user.is_staff = user.is_superuser = person["admin"]
            organization = Organization.objects.first()
            if organization is None:
                organization = Organization.create_organization(
                    created_by=user, title="fedbench", legacy_api_tokens_enabled=False
                )
            else:
                organization.add_user(user)
            user.active_organization = organization
            user.save()
            made[person["name"]] = {"id": user.id, "email": user.email, "fresh": fresh}
            if fresh or person["token"]:
                made[person["name"]]["token"] = LSAPIToken.for_user(user).get_full_jwt()
    # Label Studio prints while it starts; the last line is ours.
    sys.stdout.write("\n" + json.dumps(made) + "\n")


if __name__ == "__main__":
    if sys.argv[1] == "people":
        people()
    else:
        call_command("runserver", "--noreload", f"127.0.0.1:{int(sys.argv[2])}")
