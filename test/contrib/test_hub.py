# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A model goes to the Hub with a card and comes back; a local server stands in for the Hub."""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import huggingface_hub
import numpy as np
import pytest
from huggingface_hub import constants

from uncertainty_depth import Evaluation, Predictor
from uncertainty_depth.cli.main import main
from uncertainty_depth.contrib.hub import push
from uncertainty_depth.core.errors import ModelError, SourceError

NAME = "somebody/rooms"
SHA = "0123456789012345678901234567890123456789"


class StandIn(BaseHTTPRequestHandler):
    """As much of the Hub as one model needs: create, commit, info, and files."""

    files: dict[str, bytes]

    def log_message(self, *_: object) -> None: ...

    def answer(self, content: object, status: int = 200, **headers: str) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if "denied" in self.path or b"denied" in body:
            self.answer({"error": "you may not write here"}, 403)
        elif self.path.endswith("/repos/create"):
            self.answer({"url": f"{constants.ENDPOINT}/{NAME}", "name": NAME})
        elif self.path.endswith("/validate-yaml"):
            self.answer({"errors": [], "warnings": []})
        elif "/preupload/" in self.path:
            files = [
                {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}
                for file in json.loads(body)["files"]
            ]
            self.answer({"files": files})
        else:
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    content = base64.b64decode(line["value"]["content"])
                    self.files[line["value"]["path"]] = content
            self.answer(
                {"commitUrl": f"{constants.ENDPOINT}/{NAME}/commit/{SHA}", "commitOid": SHA}
            )

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        if "/resolve/" in self.path:
            content = self.files.get(name)
            if content is None:
                self.answer({}, 404, X_Error_Code="EntryNotFound")
                return
            self.answer(content, ETag=f'"{hash(content) % 2**32:040x}"', X_Repo_Commit=SHA)
        elif "/tree/" in self.path:
            kinds = {"type": "file", "oid": SHA}
            self.answer(
                [{"path": name, "size": len(file), **kinds} for name, file in self.files.items()]
            )
        elif "/api/models/" in self.path:
            siblings = [{"rfilename": name} for name in self.files]
            self.answer({"id": NAME, "modelId": NAME, "sha": SHA, "siblings": siblings})
        else:
            self.answer({}, 404)

    do_HEAD = do_GET


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The files of an empty Hub on this machine, which the library is sent to."""
    StandIn.files = {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setenv("HF_TOKEN", "hf_of_a_test")
    yield StandIn.files
    server.shutdown()
    server.server_close()


@pytest.fixture
def report(tmp_path):
    """A report's summary, of a drive in somebody's home folder."""
    lines = [{"name": "depth", "color": "green", "text": "a1 0.9 beats the best constant depth"}]
    summary = {
        "source": "/home/somebody/secret/my_drive",
        "notes": [],
        "model": {"method": "mc_dropout", "samples": 8},
        "geometry": {},
        "frames": {"evaluated": 60, "skipped": {}},
        "depth": {"mae": 0.31, "a1": 0.9},
        "uncertainty": {},
        "verdict": {
            "color": "green",
            "text": "good: depth, order, size",
            "numbers": "Mean error 0.1 m",
            "lines": lines,
        },
    }
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    return tmp_path


def test_a_model_comes_back_from_the_hub_bit_for_bit(hub, report):
    address = push("demo", NAME, report)
    assert address.endswith(SHA)
    assert {"README.md", "model.json", "best.safetensors"} <= hub.keys()
    image = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    published = Predictor(NAME, samples=2)
    assert published.model.name == NAME
    here = Predictor("demo", samples=2).predict(image)
    np.testing.assert_array_equal(published.predict(image).sigma_m, here.sigma_m)
    hub.clear()  # what is in the cache needs no hub
    np.testing.assert_array_equal(Predictor(NAME, samples=2).predict(image).depth_m, here.depth_m)


def test_the_card_says_what_the_report_found_and_not_where(hub, report):
    push("demo", NAME, report, license_id="apache-2.0")
    card = hub["README.md"].decode()
    assert card.startswith("---\n")
    assert "license: apache-2.0" in card
    assert "good: depth, order, size" in card
    assert "a1 0.9 beats the best constant depth" in card
    assert "my_drive" in card
    assert "secret" not in card
    push("demo", NAME)
    assert "Not evaluated" in hub["README.md"].decode()


def test_the_card_of_a_report_without_frames_says_so(hub, tmp_path):
    Evaluation().write(tmp_path)
    push("demo", NAME, tmp_path)
    card = hub["README.md"].decode()
    assert "**no frame could be scored: none was read** (0 frames)" in card
    assert "rmse" not in card


def test_what_cannot_be_published_is_one_sentence(hub, tmp_path):
    with pytest.raises(ModelError, match=r"the hub did not take .* as somebody/denied: "):
        push("demo", "somebody/denied")
    with pytest.raises(SourceError, match="holds no report"):
        push("demo", NAME, tmp_path)
    with pytest.raises(ModelError, match="does not exist"):
        push(tmp_path / "missing", NAME)
    assert not hub


def test_no_calibration_is_written_into_the_cache(hub, capsys):
    push("demo", NAME)
    assert main(["calibrate", NAME, "synthetic:"]) == 1
    assert f"`hf download {NAME} --local-dir MODEL`" in capsys.readouterr().err
