"""A management controller of somebody else: sushy-tools' emulator, in a process of its own."""

import contextlib
import socket
import subprocess
import sys
import threading

EMULATOR = """\
# Its fake machines take between 1 and 11 seconds to follow: here as long as they are told. Each order is recorded.
import sys
from sushy_tools.emulator import main
from sushy_tools.emulator.resources.systems import fakedriver

path, follows_s = sys.argv[3:]
fakedriver.random.randint = lambda least, most: int(follows_s)
acts = fakedriver.FakeDriver.set_power_state

def noted(self, identity, state):
    with open(path, "a") as orders:
        orders.write(f"{identity} {state}\\n")
    return acts(self, identity, state)

fakedriver.FakeDriver.set_power_state = noted
sys.argv[1:] = ["--fake", *sys.argv[1:3]]
main.main()
"""


@contextlib.contextmanager
def emulator(folder, machines, *, follows_s):
    """Run it for machines (id: name), all off, that follow orders after ``follows_s``: its address, and its orders."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    orders = folder / "orders"
    orders.touch()
    known = [{"uuid": uuid, "name": name, "power_state": "Off", "nics": []} for uuid, name in machines.items()]
    config = folder / "config.py"
    config.write_text(
        f"SUSHY_EMULATOR_LISTEN_IP = '127.0.0.1'\nSUSHY_EMULATOR_LISTEN_PORT = {port}\n"
        f"SUSHY_EMULATOR_STATE_DIR = {str(folder)!r}\nSUSHY_EMULATOR_FAKE_SYSTEMS = {known!r}\n"
    )
    command = [sys.executable, "-c", EMULATOR, "--config", str(config), str(orders), str(follows_s)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        try:
            said = []
            while "Running on" not in "".join(said[-1:]):
                said.append(process.stderr.readline())
                assert said[-1], f"the emulator ended: {''.join(said)}"
            drained = threading.Thread(target=process.stderr.read)
            drained.start()
            yield f"http://127.0.0.1:{port}", orders
        finally:
            process.terminate()
            process.wait(10)
        drained.join()
