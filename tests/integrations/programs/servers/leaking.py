"""A server that forgets the state of requests whose client went away."""

import asyncio
import socket

import uvicorn

from leakcheck.integrations.asgi import LeakcheckMiddleware


class State:
    def __init__(self, request_id):
        self.request_id = request_id
        self.tokens = [float(i) for i in range(64)]


class Engine:
    def __init__(self):
        self.states = {}

    def register(self, request_id):
        self.states[request_id] = State(request_id)

    def finish(self, request_id):
        del self.states[request_id]


engine = Engine()
served = 0


async def gone(receive):
    while (await receive())["type"] != "http.disconnect":
        pass


async def generated(path):
    if path == "/long":
        await asyncio.Event().wait()
    await asyncio.sleep(0.001)


async def answer(scope, receive, send):
    global served
    if scope["type"] != "http":
        return
    if scope["path"] == "/stop":
        server.should_exit = True
    served += 1
    request_id = served
    engine.register(request_id)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"first", "more_body": True})
    work = asyncio.ensure_future(generated(scope["path"]))
    away = asyncio.ensure_future(gone(receive))
    await asyncio.wait({work, away}, return_when=asyncio.FIRST_COMPLETED)
    aborted = not work.done()
    for task in (work, away):
        task.cancel()
    if aborted:
        return
    engine.finish(request_id)
    await send({"type": "http.response.body", "body": b"last"})


listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
server = uvicorn.Server(
    uvicorn.Config(LeakcheckMiddleware(answer), log_level="error", lifespan="off")
)
server.run(sockets=[listening])
