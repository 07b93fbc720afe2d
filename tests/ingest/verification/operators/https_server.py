"""Local HTTPS server with a certificate of its own authority."""

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from threading import Thread

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.ingest.verification.operators.signing import CREATED_S, time_of

Answer = Callable[[BaseHTTPRequestHandler], None]


def certificate(folder: Path, *names: str) -> Path:
    """Write a certificate for host names and 127.0.0.1, with its key, and return the file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    alternatives = [*map(x509.DNSName, names), x509.IPAddress(ip_address("127.0.0.1"))]
    built = (
        x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=key.public_key(), serial_number=1)
        .not_valid_before(time_of(0))
        .not_valid_after(time_of(CREATED_S) + timedelta(days=36_500))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / "certificate.pem"
    file.write_bytes(built.public_bytes(serialization.Encoding.PEM) + private)
    return file


class Server(ThreadingHTTPServer):
    """Server that ignores clients that end a connection early."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing."""


@contextmanager
def serving(file: Path, answers: dict[str, Answer]) -> Iterator[int]:
    """Yield the port of a server that answers each path with a function of the request, and others with 404."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 10

        def do_GET(self) -> None:
            answers.get(self.path, not_found)(self)

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    with Server(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def body(content: bytes, **headers: str) -> Answer:
    """Return an answer with status 200."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(content)

    return answer


def redirect(location: str) -> Answer:
    """Return an answer that redirects."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(302)
        request.send_header("Location", location)
        request.send_header("Content-Length", "0")
        request.end_headers()

    return answer


def not_found(request: BaseHTTPRequestHandler) -> None:
    request.send_response(404)
    request.send_header("Content-Length", "0")
    request.end_headers()
