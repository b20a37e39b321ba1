# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A model folder comes from the Hub; a local server stands in for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest
from huggingface_hub import constants

from uncertainty_depth import Predictor
from uncertainty_depth.cli.main import main
from uncertainty_depth.model_location import SHIPPED_MODEL

NAME = "somebody/rooms"
SHA = "0123456789012345678901234567890123456789"


class StandIn(BaseHTTPRequestHandler):
    """As much of the Hub as one model needs: info and files."""

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
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, bytes]]:
    """The files of an empty Hub, which the library is sent to."""
    StandIn.files = {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    yield StandIn.files
    server.shutdown()
    server.server_close()


def test_a_published_model_folder_is_used_as_the_folder_is(hub):
    hub |= {path.name: path.read_bytes() for path in SHIPPED_MODEL.iterdir()}
    image = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    published = Predictor(NAME, samples=2)
    assert published.model.name == NAME
    here = Predictor("demo", samples=2).predict(image)
    np.testing.assert_array_equal(published.predict(image).sigma_m, here.sigma_m)
    hub.clear()  # what is in the cache needs no hub
    np.testing.assert_array_equal(Predictor(NAME, samples=2).predict(image).depth_m, here.depth_m)


def test_no_calibration_is_written_into_the_cache(hub, capsys):
    hub |= {path.name: path.read_bytes() for path in SHIPPED_MODEL.iterdir()}
    assert main(["calibrate", NAME, "synthetic:"]) == 1
    assert f"`hf download {NAME} --local-dir MODEL`" in capsys.readouterr().err
