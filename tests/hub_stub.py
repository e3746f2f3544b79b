"""A loopback stand-in for the Hub's HTTP API: enough to create, push to, list and download repos.

It shows how the clients (huggingface_hub, transformers, datasets) behave, not what the real Hub
validates. Every commit is kept as a snapshot, so that a revision can be pinned. Uploads go the
regular way for text and the LFS way for the rest; Xet is not offered.
"""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

Repo = list[tuple[str, dict[str, bytes]]]  # (commit id, path -> content), oldest first
LFS_SUFFIXES = (".safetensors", ".parquet", ".bin", ".pt", ".png", ".npz")


class NotFoundError(Exception):
    """A 404 that carries the code by which the client picks its exception."""


class HubStub(ThreadingHTTPServer):
    """Bound at once, so that the address is known; answers only between `start` and `close`."""

    daemon_threads = True
    token = "hf_stub_token"

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler, bind_and_activate=False)
        self.server_bind()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.repos: dict[tuple[str, str], Repo] = {}
        self.blobs: dict[str, bytes] = {}
        self.lock = threading.Lock()

    def environment(self, hf_home: str) -> dict[str, str]:
        """What a process needs in its environment, before it imports huggingface_hub."""
        return {
            "HF_ENDPOINT": self.url,
            "HF_TOKEN": self.token,
            "HF_HOME": hf_home,
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
        }

    def start(self) -> None:
        self.server_activate()
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()

    def files(self, repo_id: str, kind: str = "model") -> dict[str, bytes]:
        """Path -> content of the newest commit."""
        return self.snapshot(kind, repo_id, "main")[1]

    def snapshot(self, kind: str, repo_id: str, revision: str) -> tuple[str, dict[str, bytes]]:
        repo = self.repos.get((kind, repo_id))
        if repo is None:
            raise NotFoundError("RepoNotFound")
        if revision == "main":
            return repo[-1]
        for commit in repo:
            if commit[0] == revision:
                return commit
        raise NotFoundError("RevisionNotFound")

    def commit(self, kind: str, repo_id: str, actions: list[dict[str, Any]]) -> str:
        """Applies the actions of one commit (ndjson `key`/`value` pairs); returns its id."""
        files = dict(self.files(repo_id, kind))
        for action in actions:
            key, value = action["key"], action["value"]
            if key == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif key == "lfsFile":
                files[value["path"]] = self.blobs[value["oid"]]
            elif key == "deletedFile":
                del files[value["path"]]
            elif key == "deletedFolder":
                folder = value["path"].rstrip("/") + "/"
                files = {path: data for path, data in files.items() if not path.startswith(folder)}
        return self.append(kind, repo_id, files)

    def append(self, kind: str, repo_id: str, files: dict[str, bytes]) -> str:
        repo = self.repos.setdefault((kind, repo_id), [])
        # Contents count: clients keep what they know of a commit, also beyond a test's end.
        content = sorted((path, hashlib.sha1(data).hexdigest()) for path, data in files.items())
        oid = hashlib.sha1(f"{kind} {repo_id} {len(repo)} {content}".encode()).hexdigest()
        repo.append((oid, files))
        return oid


REPO = r"(?P<kind>model|dataset|space)s/(?P<repo>[^/]+/[^/]+)"
FILES = r"/(?P<kind>datasets/|spaces/)?(?P<repo>[^/]+/[^/]+)"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HubStub

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def create(self) -> None:
        body = json.loads(self.body)
        kind = body.get("type", "model")
        repo_id = f"{body.get('organization') or 'me'}/{body['name']}"
        exists = (kind, repo_id) in self.server.repos
        if not exists:
            self.server.append(kind, repo_id, {})
        prefix = "" if kind == "model" else f"{kind}s/"
        self.json({"url": f"{self.server.url}/{prefix}{repo_id}"}, status=409 if exists else 200)

    def validate_yaml(self) -> None:
        self.json({"errors": [], "warnings": []})

    def whoami(self) -> None:
        self.json({"type": "user", "name": "me", "orgs": []})

    def preupload(self, kind: str, repo: str, revision: str) -> None:
        self.server.snapshot(kind, repo, revision)
        modes = [
            {
                "path": file["path"],
                "uploadMode": "lfs" if file["path"].endswith(LFS_SUFFIXES) else "regular",
                "shouldIgnore": False,
            }
            for file in json.loads(self.body)["files"]
        ]
        self.json({"files": modes})

    def lfs_batch(self, kind: str | None, repo: str) -> None:
        objects = [
            {**item, "actions": {"upload": {"href": f"{self.server.url}/lfs/{item['oid']}"}}}
            for item in json.loads(self.body)["objects"]
        ]
        self.json({"transfer": "basic", "objects": objects})

    def lfs_put(self, oid: str) -> None:
        if hashlib.sha256(self.body).hexdigest() != oid:
            return self.json({"error": "the content does not have this sha256"}, status=400)
        self.server.blobs[oid] = self.body
        self.json({})

    def commit(self, kind: str, repo: str, revision: str) -> None:
        actions = [json.loads(line) for line in self.body.splitlines() if line.strip()]
        oid = self.server.commit(kind, repo, actions)
        url = f"{self.server.url}/{repo}/commit/{oid}"
        self.json({"success": True, "commitOid": oid, "commitUrl": url})

    def info(self, kind: str, repo: str, revision: str | None) -> None:
        oid, files = self.server.snapshot(kind, repo, revision or "main")
        siblings = [{"rfilename": path} for path in sorted(files)]
        self.json({"id": repo, "sha": oid, "private": False, "tags": [], "siblings": siblings})

    def tree(self, kind: str, repo: str, revision: str, folder: str | None) -> None:
        files = self.server.snapshot(kind, repo, revision)[1]
        prefix = f"{folder}/" if folder else ""
        below = {path: data for path, data in files.items() if path.startswith(prefix)}
        if prefix and not below:
            raise NotFoundError("EntryNotFound")
        if "recursive=true" in self.path.lower():
            return self.json([_file_entry(path, data) for path, data in sorted(below.items())])
        entries = {}
        for path, data in sorted(below.items()):
            head, nested, _ = path[len(prefix) :].partition("/")
            folder_entry = {"type": "directory", "path": prefix + head, "oid": "0" * 40, "size": 0}
            entries[head] = folder_entry if nested else _file_entry(path, data)
        self.json(list(entries.values()))

    def paths_info(self, kind: str, repo: str, revision: str) -> None:
        files = self.server.snapshot(kind, repo, revision)[1]
        wanted = json.loads(self.body)["paths"]
        self.json([_file_entry(path, files[path]) for path in wanted if path in files])

    def resolve(self, kind: str | None, repo: str, revision: str, path: str) -> None:
        snapshot = self.server.snapshot((kind or "models/").rstrip("s/"), repo, revision)
        oid, files = snapshot
        if path not in files:
            raise NotFoundError("EntryNotFound")
        digest = hashlib.sha256(files[path]).hexdigest()
        self.reply(200, files[path], {"X-Repo-Commit": oid, "ETag": f'"{digest}"'})

    routes: tuple[tuple[str, str, Callable[..., None]], ...] = (
        ("POST", r"/api/repos/create", create),
        ("POST", r"/api/validate-yaml", validate_yaml),
        ("GET", r"/api/whoami-v2", whoami),
        ("POST", rf"/api/{REPO}/preupload/(?P<revision>[^/]+)", preupload),
        ("POST", rf"/api/{REPO}/commit/(?P<revision>[^/]+)", commit),
        ("POST", rf"/api/{REPO}/paths-info/(?P<revision>[^/]+)", paths_info),
        ("GET", rf"/api/{REPO}(?:/revision/(?P<revision>[^/]+))?", info),
        ("GET", rf"/api/{REPO}/tree/(?P<revision>[^/]+)(?:/(?P<folder>.+))?", tree),
        ("POST", rf"{FILES}\.git/info/lfs/objects/batch", lfs_batch),
        ("PUT", r"/lfs/(?P<oid>[0-9a-f]{64})", lfs_put),
        ("GET", rf"{FILES}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", resolve),
    )

    def answer(self) -> None:
        """Answers one request. The body is read first: what is left over breaks keep-alive."""
        self.body = self._read_body()
        method = "GET" if self.command == "HEAD" else self.command
        if method != "GET" and not self.path.startswith("/lfs/") and not self._has_token():
            return self.json({"error": "a write needs the token"}, status=401)
        path = urlsplit(self.path).path
        for verb, pattern, handler in self.routes:
            if verb == method and (match := re.fullmatch(pattern, path)):
                # Unquoted after the split into groups: a quoted slash belongs to a revision.
                groups = {key: text and unquote(text) for key, text in match.groupdict().items()}
                try:
                    with self.server.lock:
                        return handler(self, **groups)
                except NotFoundError as error:
                    return self.reply(404, b"{}", {"X-Error-Code": str(error)})
        self.reply(404, b"{}")

    do_GET = do_HEAD = do_POST = do_PUT = answer

    def json(self, value: Any, status: int = 200) -> None:
        self.reply(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def reply(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _has_token(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {self.server.token}"

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)


def _file_entry(path: str, data: bytes) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "type": "file",
        "path": path,
        "size": len(data),
        "oid": hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest(),
    }
    if path.endswith(LFS_SUFFIXES):
        oid = hashlib.sha256(data).hexdigest()
        entry["lfs"] = {"oid": oid, "size": len(data), "pointerSize": 130}
    return entry
