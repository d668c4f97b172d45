"""What is in infra/: closed, pinned, without a secret, in step with the code. No container engine is needed."""

import re
import shutil
import subprocess
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from flows.places import CPU, GPU

ROOT: Final = Path(__file__).parents[2]
INFRA: Final = ROOT / "infra"
COMPOSE: Final[dict[str, Any]] = yaml.safe_load((INFRA / "compose.yaml").read_text())
SERVICES: Final[dict[str, dict[str, Any]]] = COMPOSE["services"]
LASTING: Final = [name for name, service in SERVICES.items() if service["restart"] != "no"]
DOCKERFILE: Final = (INFRA / "Dockerfile").read_text()


def network_names(service: dict[str, Any]) -> list[str]:
    return list(service["networks"])


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_pinned_and_may_do_little(name: str) -> None:
    service = SERVICES[name]
    image, _, tag = service["image"].partition(":")
    assert re.search(r"\d+\.\d+", tag) or (tag == "local" and service["build"]["target"] in DOCKERFILE), image
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["mem_limit"]
    assert service["pids_limit"]
    assert not {"privileged", "network_mode", "pid", "devices"} & service.keys()


@pytest.mark.parametrize("name", LASTING)
def test_a_lasting_service_says_whether_it_is_well(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"]
    assert SERVICES[name]["restart"] == "unless-stopped"


def test_every_service_waits_for_what_it_needs() -> None:
    for name, service in SERVICES.items():
        for other, how in service.get("depends_on", {}).items():
            wanted = "service_healthy" if other in LASTING else "service_completed_successfully"
            assert how["condition"] == wanted, f"{name} → {other}"


def test_only_the_two_pages_can_be_reached_and_only_from_this_machine() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published.keys() == {"prefect", "studio"}
    assert all(port.startswith("127.0.0.1:") for ports in published.values() for port in ports)


def test_databases_and_store_have_no_way_out() -> None:
    closed = {name for name, network in COMPOSE["networks"].items() if network.get("internal")}
    assert closed == COMPOSE["networks"].keys() - {"front"}
    for name in ("prefect-db", "studio-db", "store", "deploy", "studio-init"):
        assert set(network_names(SERVICES[name])) <= closed
    for name in ("prefect-db", "studio-db"):
        users = [other for other, service in SERVICES.items() if name in network_names(service)]
        assert all(other.startswith(name.removesuffix("-db")) for other in users), users


def test_secrets_come_from_files_that_one_script_makes(tmp_path: Path) -> None:
    (tmp_path / "infra").mkdir()
    script = Path(shutil.copy(INFRA / "secrets.sh", tmp_path / "infra"))
    for _ in range(2):
        subprocess.run([script], check=True, capture_output=True)
    folder = tmp_path / "infra" / "secrets"
    made = {path.name: path.read_text() for path in folder.iterdir()}
    assert {f"secrets/{name}" for name in made} == {secret["file"] for secret in COMPOSE["secrets"].values()}
    assert folder.stat().st_mode & 0o077 == 0, "only its owner may enter"
    assert {name for name, text in made.items() if not text} == {"studio_token", "gemini_api_key"}
    subprocess.run([script], check=True, capture_output=True)
    assert made == {path.name: path.read_text() for path in folder.iterdir()}, "a second run changes none"
    mounted = {name for service in SERVICES.values() for name in service.get("secrets", ())}
    assert mounted == COMPOSE["secrets"].keys()


@pytest.mark.parametrize("name", SERVICES)
def test_no_secret_is_written_down(name: str) -> None:
    service = SERVICES[name]
    for variable, value in (service.get("environment") or {}).items():
        if re.search(r"PASSWORD|TOKEN|SECRET|KEY|AUTH|CREDENTIALS", variable):
            assert variable.endswith("_FILE"), variable
            secret = value.removeprefix("/run/secrets/")
            assert secret in service["secrets"], f"{variable}: {value}"


def test_the_entry_point_gives_a_file_as_a_variable_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("geheim with 'quotes' $HOME\n")

    def run(**env: str) -> subprocess.CompletedProcess[str]:
        command = [
            INFRA / "entrypoint.sh",
            "sh",
            "-c",
            'echo "$POSTGRE_PASSWORD|${POSTGRE_PASSWORD_FILE-}|$OTHER_FILE"',
        ]
        plain = {"PATH": "/usr/bin:/bin", "OTHER_FILE": "stays"}
        return subprocess.run(command, env=plain | env, capture_output=True, text=True, check=False)

    assert run(POSTGRE_PASSWORD_FILE=str(tmp_path / "s")).stdout == "geheim with 'quotes' $HOME||stays\n"
    assert run(POSTGRE_PASSWORD="plain").stdout == "plain||stays\n"
    missing = run(POSTGRE_PASSWORD_FILE=str(tmp_path / "none"))
    assert (missing.returncode, missing.stdout) == (78, "")
    assert "POSTGRE_PASSWORD_FILE" in missing.stderr


def test_every_variable_that_the_entry_point_reads_is_wanted_by_somebody() -> None:
    listed = re.search(r"for name in (.*?); do", (INFRA / "entrypoint.sh").read_text(), re.DOTALL)
    assert listed
    names = {f"{name}_FILE" for name in listed[1].replace("\\", "").split()}
    used = {name for service in SERVICES.values() for name in service.get("environment") or {}}
    # Postgres's own image and fedbench read these two kinds themselves.
    assert names == {name for name in used if name.endswith("_FILE")} - {
        *("POSTGRES_PASSWORD_FILE", "AWS_SHARED_CREDENTIALS_FILE"),
        *(name for name in used if name.endswith(("_API_KEY_FILE", "_TOKEN_FILE"))),
    }


def test_every_pool_of_the_deployments_has_a_worker_and_is_made() -> None:
    deployments = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
    pools = {one["work_pool"]["name"] for one in deployments}
    said = [" ".join(map(str, service.get("command", ()))) for service in SERVICES.values()]
    for pool in pools:
        assert any("worker start" in words and f"--pool {pool}" in words for words in said), pool
    assert pools <= {CPU, GPU}  # which `server deploy` makes
    assert any("server deploy" in words for words in said)


def stages() -> dict[str, str]:
    parts = re.split(r"^FROM \S+ AS (\S+)$", DOCKERFILE, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_images_are_made_from_hashed_locks_and_run_as_nobody() -> None:
    assert stages().keys() == {"packages", "studio-packages", "fedbench", "studio"}
    for name in ("packages", "studio-packages"):
        installs = re.findall(r"pip install (.*)", stages()[name])
        assert installs
        assert all(words.startswith("--no-deps --require-hashes") for words in installs)
    for name in ("fedbench", "studio"):
        assert re.search(r"^USER 10001:10001$", stages()[name], re.MULTILINE)
        assert "pip" not in stages()[name], "the tools stay behind in the first stage"
    assert re.search(r"^ARG PYTHON=python:3\.11\.\d+-slim-\w+$", DOCKERFILE, re.MULTILINE)


def test_the_context_holds_what_is_copied_and_no_more() -> None:
    wanted = {
        source.rstrip("/")
        for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE)
        for source in line.split()[:-1]
    }
    rules = [line for line in (INFRA / "Dockerfile.dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert rules[0] == "*"
    let_in = {rule[1:] for rule in rules if rule.startswith("!")}
    assert all(any(name == rule or fnmatch(name, f"{rule}/*") for rule in let_in) for name in wanted)
    assert all(any(name == rule or fnmatch(name, f"{rule}/*") for name in wanted) for rule in let_in)
    assert all((ROOT / name).exists() for name in wanted | let_in)
