# SPDX-License-Identifier: Apache-2.0
# Kubernetes' API as far as it is asked for pods, over plain HTTP, as `kubectl proxy` serves it.
import contextlib
import http.server
import json
import threading
import urllib.parse


@contextlib.contextmanager
def kubernetes(**pods):
    """Serves pods by the value of their label `app`: {"worker": {"job-1": "127.0.0.2"}}.  Gives HOST:PORT."""

    class Api(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            (selector,) = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)["labelSelector"]
            chosen = pods[selector.removeprefix("app=")]
            items = [{"metadata": {"name": name}, "status": {"phase": "Running", "podIP": address}}
                     for name, address in chosen.items()]
            body = json.dumps({"kind": "PodList", "items": items}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api) as api:
        threading.Thread(target=api.serve_forever, daemon=True).start()
        try:
            yield f"127.0.0.1:{api.server_port}"
        finally:
            api.shutdown()
