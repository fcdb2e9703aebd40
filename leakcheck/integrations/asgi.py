"""An ASGI server's requests as the steps of leakcheck, whichever the framework.

    from leakcheck.integrations.asgi import LeakcheckMiddleware

    app = LeakcheckMiddleware(app)  # or app.add_middleware(LeakcheckMiddleware)

A request is aborted if its client disconnects before the response is complete, or if the
application raises. What is no request, as a websocket or the server's lifespan, goes through
untouched.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from leakcheck.runtime.requests import Requests, request

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class LeakcheckMiddleware:
    """Counts each HTTP request of `app` as one step when it ends.

    `requests`: those of a server with a sentinel of its own.
    """

    def __init__(self, app: App, requests: Requests | None = None) -> None:
        self.app = app
        self.requests = requests

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Hand one connection to the application."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        complete = False

        async def received() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect" and not complete:
                counted.abort()
            return message

        async def sent(message: Message) -> None:
            nonlocal complete
            await send(message)
            ends = message["type"] == "http.response.body" and not message.get("more_body", False)
            complete = complete or ends

        with request(self.requests) as counted:
            await self.app(scope, received, sent)
