"""The PDF that a real browser prints."""

import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from conftest import OWN_PAGE

from nummodel.reports import pdf


def test_a_page_is_printed_on_its_own(made):
    assert made.said.splitlines() == ["report/index.html", f"report/{OWN_PAGE}.pdf"]
    printed = (made.folder / f"{OWN_PAGE}.pdf").read_bytes()
    assert printed.startswith(b"%PDF-") and b"/Title (Where does your system stop" in printed
    assert 4 <= len(re.findall(rb"/Type /Page\b", printed)) <= 12
    assert [path.name for path in made.folder.glob("*.pdf")] == [f"{OWN_PAGE}.pdf"]


def test_nothing_is_asked_of_the_network(tmp_path):
    """Even if a page wants to, as a notebook of somebody else's may."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    hosts = [f"http://{host}:{server.server_port}" for host in ("127.0.0.1", "localhost")]
    page = tmp_path / "one.html"
    page.write_text("".join(f'<img src="{host}/image">' for host in hosts))
    try:
        assert pdf.write(page, pdf.browser()).exists()
    finally:
        server.shutdown()
    assert asked == []
