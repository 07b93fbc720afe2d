"""Scripted model server on loopback, with the streaming chat completions and responses of OpenAI's API.

    with ModelServer([Call("write", {"filePath": "/work/a.txt", "content": "a"}), Text("Done.")]) as server:
        ...  # run an agent at server.url with the key server.key

Each request with tools gets the next answer; the last answer is repeated. A request without tools, with which an agent
asks for a title, gets a fixed answer. A wrong key gets status 401, as from OpenAI.
"""

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-the-real-model-key-0123456789"


@dataclass(frozen=True, slots=True)
class Text:
    """Text of the model that ends its turn."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """Call of one of the agent's tools."""

    tool: str
    arguments: dict[str, object]


@dataclass(frozen=True, slots=True)
class Silence:
    """Request that the model server never answers."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Error response of the model server."""

    status: int
    message: str


Answer = Text | Call | Silence | Fault


@dataclass(slots=True)
class ModelServer:
    """Server with scripted answers. `requests` has path, headers and decoded body of each request."""

    answers: Sequence[Answer]
    key: str = KEY
    requests: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)
    _next: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ends: threading.Event = field(default_factory=threading.Event)
    _http: ThreadingHTTPServer | None = None

    def __enter__(self) -> "ModelServer":
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._http is not None
        self._ends.set()
        self._http.shutdown()
        self._http.server_close()

    @property
    def url(self) -> str:
        assert self._http is not None
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    @property
    def prompts(self) -> list[str]:
        """Return the JSON body of each request that has tools."""
        return [json.dumps(body) for _, _, body in self.requests if body.get("tools")]

    def answer(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Answer:
        with self._lock:
            self.requests.append((path, headers, body))
            if headers.get("authorization") != f"Bearer {self.key}":
                return Fault(401, "Incorrect API key provided")
            if not body.get("tools"):
                return Text("A title")
            self._next += 1
            return self.answers[min(self._next, len(self.answers)) - 1]

    def wait(self) -> None:
        self._ends.wait()


def _handler(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = server.answer(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            if isinstance(answer, Silence):
                server.wait()
            elif isinstance(answer, Fault):
                self._send(answer.status, "application/json", [json.dumps({"error": {"message": answer.message}})])
            elif self.path.endswith("/responses"):
                self._send(200, "text/event-stream", _responses(answer))
            elif body.get("stream"):
                self._send(200, "text/event-stream", _chat(answer))
            else:
                self._send(200, "application/json", [json.dumps(_chat_whole(answer))])

        def _send(self, status: int, media_type: str, pieces: Sequence[str] | Iterator[str]) -> None:
            self.send_response(status)
            self.send_header("Content-Type", media_type)
            self.send_header("Connection", "close")
            self.close_connection = True
            self.end_headers()
            for piece in pieces:
                self.wfile.write(piece.encode())
                self.wfile.flush()

    return Handler


USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def _message(answer: Text | Call) -> tuple[dict[str, Any], str]:
    if isinstance(answer, Text):
        return {"role": "assistant", "content": answer.text}, "stop"
    function = {"name": answer.tool, "arguments": json.dumps(answer.arguments)}
    call = {"index": 0, "id": "call_1", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"


def _chat(answer: Text | Call) -> Iterator[str]:
    """Yield the stream of a chat completion: https://platform.openai.com/docs/api-reference/chat/streaming"""
    delta, reason = _message(answer)
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    for choice in ({"delta": delta, "finish_reason": None}, {"delta": {}, "finish_reason": reason}):
        yield f"data: {json.dumps({**head, 'choices': [{'index': 0, **choice}]})}\n\n"
    yield f"data: {json.dumps({**head, 'choices': [], 'usage': USAGE})}\n\n"
    yield "data: [DONE]\n\n"


def _chat_whole(answer: Text | Call) -> dict[str, Any]:
    message, reason = _message(answer)
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [choice],
        "usage": USAGE,
    }


def _responses(answer: Text | Call) -> Iterator[str]:
    """Yield the events of a response that agents need.

    https://platform.openai.com/docs/api-reference/responses-streaming
    """
    if isinstance(answer, Text):
        content = [{"type": "output_text", "text": answer.text, "annotations": []}]
        item: dict[str, Any] = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
    else:
        arguments = json.dumps(answer.arguments)
        item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": answer.tool, "arguments": arguments}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "resp_1"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "resp_1", "usage": usage, "output": [item]}},
    ]
    for event in events:
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
