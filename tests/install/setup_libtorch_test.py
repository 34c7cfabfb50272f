"""tools/setup_libtorch.py against an index of its own on this machine: cut connections are continued, damaged files refused, the folder whole or absent."""
import hashlib
import http.server
import io
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "setup_libtorch.py")
PACKAGES = {"torch": "9.9.9", "nvidia-cuda-runtime": "13.5.37", "nvidia-cuda-cupti": "13.5.25"}


def wheel(package, size):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(f"{package}/lib/data.bin", hashlib.shake_128(package.encode()).digest(size))
    return out.getvalue()


class Index(http.server.BaseHTTPRequestHandler):
    files, cut_after, ranges, html, wrong_hash = {}, [], [], False, False

    def log_message(self, *_):
        pass

    def do_GET(self):
        name = self.path.rstrip("/").rsplit("/", 1)[-1]
        if self.path.startswith("/simple/"):
            self.list(name)
        else:
            self.send(name)

    def list(self, package):
        names = [n for n in self.files if n.startswith(package.replace("-", "_") + "-")]
        digest = {n: "0" * 64 if self.wrong_hash else hashlib.sha256(self.files[n]).hexdigest() for n in names}
        if self.html:
            kind, body = "text/html", "".join(f'<a href="../../files/{n}#sha256={digest[n]}">{n}</a>' for n in names)
        else:
            kind = "application/vnd.pypi.simple.v1+json"
            body = json.dumps({"files": [{"filename": n, "url": f"/files/{n}", "hashes": {"sha256": digest[n]}} for n in names]})
        self.send_response(200 if names else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def send(self, name):
        data, start = self.files[name], 0
        if self.headers.get("Range"):
            start = int(self.headers["Range"][6:-1])
            self.ranges.append((name, start))
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        part = data[start:]
        if name.startswith("torch") and self.cut_after:
            part = part[: self.cut_after.pop(0)]
        self.wfile.write(part)
        self.close_connection = True


class SetupLibtorch(unittest.TestCase):
    def setUp(self):
        tag = f"manylinux_2_28_{platform.machine()}"
        Index.files = {f"{p.replace('-', '_')}-{v}-{'cp311-cp311' if p == 'torch' else 'py3-none'}-{tag}.whl": wheel(p, 3_000_000) for p, v in PACKAGES.items()}
        Index.files["torch-9.9.9-cp311-cp311-win_amd64.whl"] = b"not this one"
        Index.cut_after, Index.ranges, Index.html, Index.wrong_hash = [], [], False, False
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.folder = tempfile.TemporaryDirectory()
        self.target = os.path.join(self.folder.name, "torch-9.9.9")

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()
        self.folder.cleanup()

    def run_script(self, target=None):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PIP_") and not k.lower().endswith("_proxy")}
        environment["HUAJIN_RETRY_PAUSE"] = "0.01"
        environment["PIP_INDEX_URL"] = f"http://127.0.0.1:{self.server.server_port}/simple"
        return subprocess.run([sys.executable, SCRIPT, target or self.target], env=environment, capture_output=True, text=True)

    def check_whole(self):
        for package in PACKAGES:
            with open(os.path.join(self.target, package, "lib", "data.bin"), "rb") as file:
                self.assertEqual(file.read(), hashlib.shake_128(package.encode()).digest(3_000_000))
        self.assertEqual(os.listdir(self.folder.name), ["torch-9.9.9"])

    def test_fetches_and_unpacks(self):
        result = self.run_script()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.check_whole()

    def test_index_in_html(self):
        Index.html = True
        result = self.run_script()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.check_whole()

    def test_continues_where_a_connection_ended(self):
        Index.cut_after = [1_000_000, 500_000]
        result = self.run_script()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([start for _, start in Index.ranges], [1_000_000, 1_500_000])
        self.check_whole()

    def test_continues_in_the_next_call(self):
        Index.cut_after = [400_000] + [0] * 5
        result = self.run_script()
        self.assertEqual(result.returncode, 1)
        self.assertIn("run the same command again to go on", result.stderr)
        self.assertFalse(os.path.exists(self.target))
        Index.ranges.clear()
        result = self.run_script()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(Index.ranges[0][1], 400_000)
        self.check_whole()

    def test_refuses_a_file_with_another_hash(self):
        Index.wrong_hash = True
        result = self.run_script()
        self.assertEqual(result.returncode, 1)
        self.assertIn("SHA-256", result.stderr)
        self.assertFalse(os.path.exists(self.target))

    def test_an_interrupted_unpacking_leaves_nothing_behind(self):
        os.makedirs(os.path.join(self.folder.name, ".unpacking-1", "torch"))
        self.assertEqual(self.run_script().returncode, 0)
        self.check_whole()

    def test_a_version_that_does_not_exist(self):
        result = self.run_script(os.path.join(self.folder.name, "torch-1.2.3"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("HUAJIN_TORCH=DIR", result.stderr)
        self.assertFalse(os.path.exists(self.target))


unittest.main()
