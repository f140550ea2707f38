# SPDX-License-Identifier: Apache-2.0
"""Whether Weights & Biases' own client uploads what nxrun wrote for it.

usage: check_wandb.py RUN...      (folders of runs whose plans have run.wandb: RUN; needs the package wandb)

Starts a server on this machine that answers as theirs does to `wandb sync`, as far as a run goes, and
compares what the client sends with the metrics.jsonl of each folder: each step once, each number the same."""

import glob
import http.server
import json
import os
import subprocess
import sys
import threading

received = {"history": {}, "config": None, "run": {}, "exit": None}


class Server(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def answer(self, value):
        text = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_PUT(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer({})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            import gzip

            body = gzip.decompress(body)
        if not self.path.endswith(("/file_stream", "/graphql")):
            return self.answer({})
        sent = json.loads(body)
        if self.path.endswith("/file_stream"):
            keep(sent)
            return self.answer({})
        if os.environ.get("NX_VERBOSE"):
            print(sent.get("operationName"), json.dumps(sent.get("variables"))[:300])
        self.answer(graphql(sent.get("query", ""), sent.get("variables") or {}))


def keep(sent):
    """Of a stream of a run's files: rows of its history, and how it ended."""
    part = sent.get("files", {}).get("wandb-history.jsonl")
    for line in part["content"] if part else []:
        row = json.loads(line)
        received["history"].setdefault(row["_step"], []).append(row)
    if sent.get("complete"):
        received["exit"] = sent.get("exitcode")


def graphql(query, variables):
    entity = {"id": "e", "name": "me"}
    if "upsertBucket" in query:
        received["run"].update({key: value for key, value in variables.items() if value is not None})
        received["config"] = json.loads(variables.get("config") or "{}")
        bucket = {"id": "b", "name": variables["name"], "displayName": variables.get("displayName"),
                  "description": None, "config": "{}", "sweepName": None, "historyLineCount": 0,
                  "project": {"id": "p", "name": variables.get("project") or "p", "entity": entity}}
        return {"data": {"upsertBucket": {"bucket": bucket, "inserted": True}}}
    if "createRunFiles" in query:
        return {"data": {"createRunFiles": {"runID": "b", "uploadHeaders": [], "files": []}}}
    viewer = {"id": "v", "entity": "me", "username": "me", "flags": "{}", "teams": {"edges": []}}
    versions = {"cliVersionInfo": {"max_cli_version": "9.0.0"}, "latestLocalVersionInfo": None,
                "features": []}
    return {"data": {"viewer": viewer, "serverInfo": versions, "model": {"bucket": None},
                     "project": {"run": None, "bucket": None}}}


def sync(folder, port, home):
    environment = dict(os.environ, WANDB_BASE_URL=f"http://127.0.0.1:{port}", WANDB_API_KEY="0" * 40,
                       HOME=home, NETRC=os.path.join(home, "none"))
    client = os.path.join(os.path.dirname(sys.executable), "wandb")
    done = subprocess.run([client, "sync", "--yes", "--include-synced", folder], env=environment,
                          capture_output=True, text=True, timeout=120, cwd=home)
    if done.returncode != 0 or os.environ.get("NX_VERBOSE"):
        print(done.stdout, done.stderr)
    return done.returncode == 0


def compare(run):
    """The numbers of a folder of a run, beside those that the client has sent."""
    wrong = 0
    for line in open(os.path.join(run, "metrics.jsonl")):
        row = json.loads(line)
        rows = received["history"].get(row["step"], [])
        part = row.get("set", "train")
        for name, value in row.items():
            if name in ("step", "set"):
                continue
            if len(rows) != 1 or rows[0].get(f"{part}/{name}") != value:
                wrong += 1
                print(f"step {row['step']} {part}/{name}: {value}, sent in {len(rows)} rows")
    return wrong


def main(runs):
    import tempfile

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    wrong = 0
    with tempfile.TemporaryDirectory() as home:
        for run in runs:
            received.update(history={}, config=None, run={}, exit=None)
            for folder in sorted(glob.glob(os.path.join(os.path.abspath(run), "wandb", "offline-run-*"))):
                wrong += not sync(folder, server.server_port, home)
            found = compare(run)
            names = ("name", "project", "entity", "displayName", "groupName", "tags")
            said = {name: received["run"].get(name) for name in names}
            layers = (received["config"] or {}).get("model", {}).get("value", {}).get("layers")
            print(f"{run}: {len(received['history'])} steps, exit {received['exit']}, {said}, "
                  f"model.layers {layers}; {found} wrong")
            wrong += found + (layers is None) + (not received["history"])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
