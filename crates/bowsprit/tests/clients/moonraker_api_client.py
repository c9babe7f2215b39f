"""What a program built on the library moonraker-api does with a server: connect, say who it is, watch the printer, look around, leave.

usage: moonraker_api_client.py PORT API_KEY

Prints a line of JSON for each step; the test that runs it compares them. Ends with 0 when every step came to its end.
"""

import asyncio
import json
import sys

from moonraker_api import MoonrakerClient, MoonrakerListener

PATIENCE = 10  # seconds for anything that has to happen


class Ears(MoonrakerListener):
    """Keeps what the library tells."""

    def __init__(self):
        self.states = []
        self.faults = []
        self.heard = asyncio.Queue()

    async def state_changed(self, state):
        self.states.append(state)

    async def on_exception(self, exception):
        self.faults.append(repr(exception))

    async def on_notification(self, method, data):
        await self.heard.put((method, data))

    async def wait_for(self, method, fits):
        """The data of the first notification of this name that fits."""

        async def look():
            while True:
                name, data = await self.heard.get()
                if name == method and fits(data):
                    return data

        return await asyncio.wait_for(look(), PATIENCE)


def tell(step, value):
    print(json.dumps({step: value}), flush=True)


async def main(port, api_key):
    ears = Ears()
    client = MoonrakerClient(ears, "127.0.0.1", port, api_key=api_key, timeout=PATIENCE)
    tell("connected", await client.connect())
    identity = {"client_name": "library", "version": "1.0", "type": "other", "url": "http://127.0.0.1"}
    identified = await client.call_method("server.connection.identify", **identity)
    socket = await client.get_websocket_id()
    tell("identified", identified["connection_id"] == socket["websocket_id"])
    tell("state", await client.get_klipper_status())
    tell("software", (await client.get_host_info())["state"])
    tell("toolhead", "toolhead" in await client.get_supported_modules())
    subscribed = await client.call_method("printer.objects.subscribe", objects={"heater_bed": ["target"]})
    tell("subscribed", subscribed["status"])
    await client.call_method("printer.gcode.script", script="M140 S41")
    update = await ears.wait_for("notify_status_update", lambda data: "heater_bed" in data[0])
    tell("update", update[0])
    await client.call_method("printer.gcode.script", script="M118 from the library")
    await ears.wait_for("notify_gcode_response", lambda data: "from the library" in data[0])
    tell("notified", True)
    await ears.wait_for("notify_proc_stat_update", lambda data: "moonraker_stats" in data[0])
    tell("statistics", True)
    files = await client.call_method("server.files.list", root="gcodes")
    tell("files", [file["path"] for file in files])
    tell("unknown", (await client.call_method("no.such.method"))["error"]["code"])
    await client.disconnect()
    tell("ended", [ears.states[-1], ears.faults])
    if client.session:
        await client.session.close()


asyncio.run(asyncio.wait_for(main(int(sys.argv[1]), sys.argv[2]), 6 * PATIENCE))
