"""Fetches libtorch into a folder: python3 setup_libtorch.py CACHE/torch-VERSION[-cuda].

Wheels come from wherever pip is set up to get packages (pip.conf, PIP_* variables). They are kept beside the folder while they are incomplete, so that an
interrupted download goes on where it stopped; each is checked against the SHA-256 of the index. All are unpacked into a temporary folder that is renamed at
the end: the folder is whole or absent. Only the standard library and pip's own settings are used. Exit 0, or 1 with one line that says how to go on.
"""
import hashlib
import html.parser
import json
import os
import platform
import re
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile

WANTED = {"torch": None, "nvidia-cuda-runtime": "13.5.37", "nvidia-cuda-cupti": "13.5.25"}  # None: of the folder's name
ROOM_GB = {"": 2.2, "-cuda": 13.0}
TRIES = 6
PAUSE = float(os.environ.get("HUAJIN_RETRY_PAUSE", "0.5"))  # seconds before the second try; doubled each time


class Failure(Exception):
    pass


class Progress:
    """One redrawn line on a terminal, else a line every 20 % or 30 seconds."""

    def __init__(self, label, total):
        self.label, self.total, self.start, self.drawn, self.percent = label, total, time.monotonic(), 0.0, 0

    def show(self, done, first=0):
        now, share = time.monotonic(), int(100 * done / self.total) if self.total else 0
        elapsed = now - self.start
        if sys.stderr.isatty():
            if now - self.drawn < 0.2 and done < self.total:
                return
            speed = (done - first) / 1e6 / elapsed if elapsed > 0.2 else 0
            blocks = "█" * (share // 5) + "░" * (20 - share // 5)
            sys.stderr.write(f"\r\033[K{self.label} {blocks} {share:3d} % {elapsed:3.0f} s {done / 1e6:.0f} of {self.total / 1e6:.0f} MB, {speed:.0f} MB/s")
            sys.stderr.flush()
        elif self.total > 5e7 and (share >= self.percent + 20 or now - max(self.drawn, self.start) > 30):
            self.percent = share
            print(f"{self.label}: {share} %, {elapsed:.0f} s", file=sys.stderr, flush=True)
        else:
            return
        self.drawn = now

    def end(self):
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K")
        print(f"{self.label}: done in {time.monotonic() - self.start:.0f} s", file=sys.stderr, flush=True)


def pip_settings():
    """index URLs, local link folders and CA file as this user's pip has them."""
    from pip._internal.configuration import Configuration
    from pip._internal.models.index import PyPI

    settings = Configuration(isolated=False)
    settings.load()
    values = {}
    order = ("global.", "install.", "download.", ":env:.")
    for key, value in sorted(settings.items(), key=lambda item: next((i for i, p in enumerate(order) if item[0].startswith(p)), -1)):
        values[key.split(".", 1)[1]] = value  # later kinds override earlier ones
    indexes = [values.get("index-url", PyPI.simple_url)] + values.get("extra-index-url", "").split()
    folders = [f[7:] if f.startswith("file://") else f for f in values.get("find-links", "").split()]
    if values.get("no-index", "") in ("1", "true", "yes", "on"):
        indexes = []
    return indexes, folders, values.get("cert")


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.files = []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "a" and attributes.get("href") and "data-yanked" not in attributes:
            url, _, fragment = attributes["href"].partition("#")
            name = urllib.parse.unquote(url.rsplit("/", 1)[-1])
            self.files.append({"filename": name, "url": url, "hashes": dict([fragment.split("=", 1)]) if "=" in fragment else {}})


def files_of(index, package, context):
    page = index.rstrip("/") + "/" + package + "/"
    request = urllib.request.Request(page, headers={"Accept": "application/vnd.pypi.simple.v1+json, text/html;q=0.5"})
    with urllib.request.urlopen(request, timeout=60, context=context) as answer:
        kind, body, base = answer.headers.get("Content-Type", ""), answer.read(), answer.geturl()
    if "json" in kind:
        files = [f for f in json.loads(body)["files"] if not f.get("yanked")]
    else:
        links = Links()
        links.feed(body.decode("utf-8", "replace"))
        files = links.files
    for file in files:
        file["url"] = urllib.parse.urljoin(base, file["url"])
    return files


def choose(files, package, version):
    """The wheel for this processor; of several Pythons the running one's, since its libraries are the same in all."""
    stem = re.sub("[-_.]+", "_", package)
    mine = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    fit = []
    for file in files:
        parts = file["filename"][:-4].split("-") if file["filename"].endswith(".whl") else []
        if len(parts) < 5 or re.sub("[-_.]+", "_", parts[0]).lower() != stem or parts[1].split("+")[0] != version:
            continue
        if "manylinux" in parts[-1] and platform.machine() in parts[-1]:
            fit.append((parts[-3] == mine, parts[-3].startswith("py"), file["filename"], file))
    return max(fit, key=lambda f: f[:3])[-1] if fit else None


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def fetch_once(file, part, label, context):
    have = os.path.getsize(part) if os.path.exists(part) else 0
    request = urllib.request.Request(file["url"], headers={"Range": f"bytes={have}-"} if have else {})
    try:
        answer = urllib.request.urlopen(request, timeout=60, context=context)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # all of it is here already, or the file is another one now: the hash decides
            return
        raise
    with answer:
        if have and answer.status != 206:
            have = 0
        total = have + int(answer.headers.get("Content-Length") or 0)
        progress, first = Progress(label, total), have
        with open(part, "ab" if have else "wb") as out:
            while block := answer.read(1 << 20):
                out.write(block)
                have += len(block)
                progress.show(have, first)
        if total and have < total:
            raise urllib.error.URLError(f"the connection ended at {have / 1e6:.0f} of {total / 1e6:.0f} MB")
        progress.end()


def download(file, folder, label, context):
    path = os.path.join(folder, file["filename"])
    wanted = file.get("hashes", {}).get("sha256")
    if os.path.exists(path):
        return path
    part = path + ".part"
    for attempt in range(TRIES):
        try:
            fetch_once(file, part, label, context)
        except (OSError, urllib.error.URLError) as error:
            if isinstance(error, OSError) and error.errno == 28:
                raise Failure(f"the disk of {folder} is full; free 2 GB or set HUAJIN_CACHE=DIR, then run the same command again") from error
            if attempt + 1 == TRIES:
                have = os.path.getsize(part) / 1e6 if os.path.exists(part) else 0
                raise Failure(f"download of {file['filename']} failed {TRIES} times ({error}); {have:.0f} MB are kept, run the same command again to go on from there") from error
            time.sleep(PAUSE * 2**attempt)
            continue
        if not wanted or sha256_of(part) == wanted:
            os.rename(part, path)
            return path
        os.remove(part)  # damaged on the way or in the cache: from the start
    raise Failure(f"{file['filename']} does not have the SHA-256 that the index states, {TRIES} times; is a proxy changing it?")


def wheels_by_index(version, folder):
    indexes, folders, ca_file = pip_settings()
    context = ssl.create_default_context(cafile=ca_file if ca_file and os.path.exists(ca_file) else None)
    paths = []
    for package, fixed in WANTED.items():
        wanted_version, file, problems = fixed or version, None, []
        for local in folders:
            if os.path.isdir(local):
                file = file or choose([{"filename": n, "local": os.path.join(local, n)} for n in os.listdir(local)], package, wanted_version)
        for index in indexes:
            if file:
                break
            try:
                file = choose(files_of(index, package, context), package, wanted_version)
            except (OSError, ValueError, KeyError) as error:
                problems.append(str(error))
        if not file:
            raise LookupError(f"{package} {wanted_version} for {platform.machine()} was not found" + (f" ({'; '.join(problems)})" if problems else ""))
        paths.append(file.get("local") or download(file, folder, f"download {package}", context))
    return paths


def wheels_by_pip(version, folder, why):
    """For settings that only pip itself understands (a login, say). Not resumable."""
    print(f"libtorch: {why}; asking pip itself", file=sys.stderr)
    names = [f"{package}=={fixed or version}" for package, fixed in WANTED.items()]
    if subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--dest", folder, *names], stdout=sys.stderr).returncode:
        raise Failure(f"pip could not download {' '.join(names)} either; mend the network or pip's settings and run the same command again, "
                      "or set HUAJIN_TORCH=DIR to a libtorch that you have")
    return [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".whl")]


def unpack(paths, temporary):
    members = [(path, info) for path in paths for info in zipfile.ZipFile(path).infolist()]
    progress, done = Progress("unpack libtorch", sum(info.file_size for _, info in members)), 0
    archives = {path: zipfile.ZipFile(path) for path in paths}
    for path, info in members:
        archives[path].extract(info, temporary)  # refuses names that lead outside
        done += info.file_size
        progress.show(done)
    progress.end()


def main():
    target = os.path.abspath(sys.argv[1])
    cache, name = os.path.split(target)
    version, kind = re.fullmatch(r"torch-([0-9.]+)(-cuda)?", name).groups(default="")
    for left in os.listdir(cache):
        if left.startswith(".unpacking-"):  # of a set-up that was interrupted; the caller holds the lock
            shutil.rmtree(os.path.join(cache, left), ignore_errors=True)
    free = shutil.disk_usage(cache).free / 1e9
    if free < ROOM_GB[kind]:
        raise Failure(f"{cache} has {free:.1f} GB free, {ROOM_GB[kind]} GB are needed; free some, or set HUAJIN_CACHE=DIR")
    temporary = os.path.join(cache, f".unpacking-{os.getpid()}")
    if kind:
        command = [sys.executable, "-m", "pip", "install", "--target", temporary, f"torch=={version}"]
        if subprocess.run(command, stdout=sys.stderr).returncode:
            raise Failure("pip could not install the full torch; run the same command again, or without HUAJIN_WITH_CUDA")
    else:
        downloads = os.path.join(cache, "downloads")
        os.makedirs(downloads, exist_ok=True)
        try:
            paths = wheels_by_index(version, downloads)
        except (ImportError, LookupError, AttributeError) as error:
            paths = wheels_by_pip(version, downloads, str(error))
        unpack(paths, temporary)
    os.rename(temporary, target)
    shutil.rmtree(os.path.join(cache, "downloads"), ignore_errors=True)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        print(f"huajin: {failure}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        print(f"huajin: libtorch could not be set up: {error}; run the same command again when that is mended", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("\nhuajin: interrupted; what was downloaded is kept, run the same command again to go on", file=sys.stderr)
        sys.exit(130)
