#!/usr/bin/env python3
"""A small agent: a program that stays connected to the print server, offers a method to clients and another to gcode macros.

Needs Python 3.9 and one package: pip install websockets

    python3 agent.py ws://127.0.0.1:7125/websocket [--api-key KEY]

Then any client may call it ...

    server.extensions.request {"agent": "greeter", "method": "greet", "arguments": {"name": "Ada"}}

... and so may a macro of the printer:

    [gcode_macro GREET]
    gcode: {action_call_remote_method("greeter_say", text="layer done")}
"""

import argparse
import asyncio
import json
import sys

import websockets

NAME = "greeter"


class Agent:
    def __init__(self, socket):
        self.socket = socket
        self.last_id = 0
        self.waiting = {}

    async def call(self, method, **params):
        """Calls the server and waits for its answer."""
        self.last_id += 1
        answer = self.waiting[self.last_id] = asyncio.get_running_loop().create_future()
        await self.send(method=method, params=params, id=self.last_id)
        return await answer

    async def send(self, **message):
        await self.socket.send(json.dumps({"jsonrpc": "2.0", **message}))

    async def listen(self):
        async for text in self.socket:
            message = json.loads(text)
            if "method" not in message:
                self.take_answer(message)
            elif "id" in message:
                await self.answer(message)
            elif message["method"] == "greeter_say":
                # A macro calls: there is no id, and nothing to answer.
                await self.send(method="connection.send_event", params={"event": "said", "data": message.get("params", {})})
            # Everything else is a notification of the server.

    def take_answer(self, message):
        answer = self.waiting.pop(message.get("id"), None)
        if answer is None:
            return
        if "error" in message:
            answer.set_exception(RuntimeError(message["error"]["message"]))
        else:
            answer.set_result(message["result"])

    async def answer(self, message):
        """Answers a request that a client sent through the server."""
        if message["method"] == "greet":
            name = message.get("params", {}).get("name", "world")
            await self.send(id=message["id"], result={"text": f"Hello {name}"})
        else:
            error = {"code": -32601, "message": f"no method {message['method']}"}
            await self.send(id=message["id"], error=error)


async def run(url, api_key):
    async with websockets.connect(url) as socket:
        agent = Agent(socket)
        listening = asyncio.create_task(agent.listen())
        credentials = {"api_key": api_key} if api_key else {}
        await agent.call(
            "server.connection.identify", client_name=NAME, version="1.0", type="agent", url="https://example.com/greeter", **credentials
        )
        await agent.call("connection.register_remote_method", method_name="greeter_say")
        print("ready", flush=True)
        await listening


def main():
    parser = argparse.ArgumentParser(description="Example of an agent.")
    parser.add_argument("url", help="for example ws://127.0.0.1:7125/websocket")
    parser.add_argument("--api-key", help="when the server does not trust this address")
    arguments = parser.parse_args()
    try:
        asyncio.run(run(arguments.url, arguments.api_key))
    except (OSError, RuntimeError, websockets.WebSocketException) as error:
        sys.exit(f"{NAME}: {error}")
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
