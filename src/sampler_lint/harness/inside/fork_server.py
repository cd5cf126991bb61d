"""The process that has imported torch once, and those forked from it that run the scenarios.

Started by :class:`sampler_lint.harness.world.World` in a fresh interpreter. For every socket that
it is sent it forks a launcher, which reads one JSON request from there, forks the ranks of the
scenario, answers with one line and ends.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import ctypes
import datetime
import gc
import importlib
import importlib.util
import io
import json
import os
import random
import resource
import select
import signal
import socket
import sys
import threading
import traceback
import warnings
import weakref
from types import ModuleType, TracebackType
from typing import Any

from . import recorder, supervise
from .log import DUMP_SIGNAL

#: Bytes of address space a rank may take: a sampler that never ends must not take the machine.
MEMORY = 8 << 30


def main() -> None:
    """Import torch, then fork a launcher for every socket sent, until there are no more."""
    control = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)

    if not _imported(control, "torch", "torch.distributed"):
        return
    torch = sys.modules["torch"]
    # The first optimizer imports it, for 1.7 s, in every rank of every scenario. It warns where
    # NumPy is not installed, which concerns nobody here.
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module("torch._dynamo")
    torch.set_num_threads(1)
    with contextlib.suppress(Exception):
        _warm_up(torch)
    # What every rank needs is done once: each page that a rank writes is a page copied.
    recording = recorder.install("")
    tame_gloo()
    _look_up_no_names()
    # Recorded as they import torch's names, which would otherwise escape.
    if not _imported(control, *sys.argv[1:]):
        return
    _forget_finalizers()
    gc.freeze()
    with contextlib.suppress(Exception):
        _make_pages_huge()
    _answer(control, {"torch": torch.__version__})
    while True:
        data, sockets, _, _ = socket.recv_fds(control, 1, 1)
        with contextlib.suppress(ChildProcessError):
            # Launchers that have ended, or are about to: only so their CPU time is counted.
            while os.waitpid(-1, os.WNOHANG if data else 0)[0]:
                pass
        if not data:
            return
        if os.fork() == 0:
            control.close()
            with contextlib.suppress(KeyboardInterrupt, OSError):
                launch(socket.socket(fileno=sockets[0]), recording)
            os._exit(0)
        os.close(sockets[0])


def _imported(control: socket.socket, *names: str) -> bool:
    """Whether these modules could be imported; the first that could not is told."""
    name = ""
    try:
        for name in names:
            importlib.import_module(name)
    except Exception as error:  # a broken module raises whatever it likes
        missing = isinstance(error, ModuleNotFoundError) and error.name == "torch"
        told = f"{type(error).__name__}: {error}"
        _answer(control, {"missing": missing, "module": name, "error": told})
        return False
    return True


def _answer(connection: socket.socket, value: dict[str, Any]) -> None:
    connection.sendall(json.dumps(value).encode("ascii") + b"\n")


def launch(connection: socket.socket, recording: recorder.Recorder) -> None:
    """Run the scenario that the request names, and answer what became of its ranks."""
    supervise.prctl(supervise.SET_SUBREAPER, 1)  # the parent of whatever a rank leaves behind
    request = json.loads(connection.makefile("rb").readline())
    _answer(connection, scenario(request, recording, connection.fileno()))


def _forget_finalizers() -> None:
    """Spare every rank the tidying up after torch's own imports.

    At exit torch takes its operators out of the dispatcher one by one, a tenth of a second in
    which a forked process copies all the memory it touches. What a program registers is run.
    """
    with contextlib.suppress(Exception):
        weakref.finalize._registry.clear()  # type: ignore[attr-defined]


def _look_up_no_names() -> None:
    """Know only the hosts in ``/etc/hosts``: no proof asks the network for a name (glibc only).

    torch's store asks for the name of whoever connects, which is ``::ffff:127.0.0.1``; where the
    name server is slow to say that it has none, every rank waits for it, up to ten seconds.
    """
    with contextlib.suppress(Exception):
        ctypes.CDLL(None).__nss_configure_lookup(b"hosts", b"files")


def _warm_up(torch: Any) -> None:
    """Take a step of training, but for the gradients: what torch does once is done here.

    Autograd may start threads, after which a process cannot be forked.
    """
    nn, data = torch.nn, torch.utils.data
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        samples = data.TensorDataset(torch.randn(8, 2), torch.zeros(8, dtype=torch.long))
        model = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        sampler = data.distributed.DistributedSampler(samples, 2, 0)
        for inputs, labels in data.DataLoader(samples, batch_size=4, sampler=sampler):
            nn.functional.cross_entropy(model(inputs), labels)
            for parameter in model.parameters():
                parameter.grad = torch.zeros_like(parameter)
            optimizer.step()
            optimizer.zero_grad()


def _make_pages_huge() -> None:
    """Have the memory that ranks inherit in pages of 2 MB (Linux 6.1 and later).

    To fork and to end a rank takes a third of the time, for it is spent on the page tables.
    """
    size, collapse = 2 << 20, 25
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    with open("/proc/self/maps", encoding="utf-8") as file:
        areas = [line.split() for line in file]
    for span, rights, _, _, _, *name in areas:
        if rights == "rw-p" and name in ([], ["[heap]"]):
            begin, end = (int(one, 16) for one in span.split("-"))
            for page in range(-(-begin // size) * size, end // size * size, size):
                advise(page, size, collapse)


def scenario(
    request: dict[str, Any], recording: recorder.Recorder, connection: int
) -> dict[str, Any]:
    """Run one program on all ranks; what became of each."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ended, alive = os.pipe()
    children = []
    for rank in range(request["world_size"]):
        out, err = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            for descriptor in (connection, out[0], err[0]):
                os.close(descriptor)
            os.dup2(out[1], 1)
            os.dup2(err[1], 2)
            os.close(out[1])
            os.close(err[1])
            os.close(ended if rank else alive)
            be_rank(rank, port, request, recording, ended)
        os.close(out[1])
        os.close(err[1])
        children.append(supervise.Child(pid, supervise.Sink(out[0]), supervise.Sink(err[0])))

    os.close(ended)
    os.close(alive)

    def dump(child: supervise.Child) -> None:
        if DUMP_SIGNAL:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, DUMP_SIGNAL)

    try:
        supervise.watch(children, request["timeout"], dump=dump, abort=connection)
    finally:
        for child in children:
            os.close(child.out.descriptor)
            os.close(child.err.descriptor)
        # What the ranks left behind.
        supervise.kill(supervise.descendants(os.getpid()))
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
    return {
        "ranks": [
            {
                "pid": child.pid,
                "status": child.status,
                "hung": child.hung,
                "stdout": child.out.text,
                "stderr": child.err.text,
            }
            for child in children
        ]
    }


def be_rank(
    rank: int, port: int, request: dict[str, Any], recording: recorder.Recorder, ended: int
) -> None:
    """Become one rank, run the program, end the process as an interpreter would.

    Rank 0 keeps the store, which torchrun's agent does elsewhere, so it leaves after the others:
    when ``ended``, which they hold the other end of, comes to its end.
    """
    status = 1
    try:
        os.setsid()
        # No rank outlives its launcher (on Linux).
        supervise.prctl(supervise.SET_DEATH_SIGNAL, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _set_environment(rank, port, request)
        random.seed()
        if "numpy" in sys.modules:  # forked, the ranks would share numpy's global generator
            importlib.import_module("numpy").random.seed()
        # A collective that nobody joins fails then, not in 30 minutes.
        _limits.append(datetime.timedelta(seconds=request["gloo_timeout"]))
        recording.record_in(request["record"])
        status = _run(request)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            threading._shutdown()  # type: ignore[attr-defined]
        with contextlib.suppress(BaseException):
            atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(BaseException):
                stream.flush()
        if rank == 0 and status == 0:
            select.select([ended], [], [], supervise.GRACE)
        os._exit(status)


def _set_environment(rank: int, port: int, request: dict[str, Any]) -> None:
    """What torchrun sets for a rank of a one-node job (torch/distributed/elastic/agent)."""
    size = str(request["world_size"])
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        ROLE_RANK=str(rank),
        GROUP_RANK="0",
        WORLD_SIZE=size,
        LOCAL_WORLD_SIZE=size,
        ROLE_WORLD_SIZE=size,
        GROUP_WORLD_SIZE="1",
        ROLE_NAME="default",
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        TORCHELASTIC_RUN_ID="sampler-lint",
        TORCHELASTIC_RESTART_COUNT="0",
        TORCHELASTIC_MAX_RESTARTS="0",
        # There is no agent: rank 0 keeps the store itself.
        TORCHELASTIC_USE_AGENT_STORE="False",
    )
    os.environ.update(request["env"])


#: The timeout of collectives, in a rank.
_limits: list[datetime.timedelta] = []


def tame_gloo() -> None:
    """Put :data:`_limits` in place, and let no group die before its process.

    When DDP's reducer takes the last reference with it, ``~ProcessGroupGloo`` joins threads that
    may wait for the interpreter lock which the joining thread holds (torch 2.13; one short run
    in seven hung).
    """
    c10d: Any = importlib.import_module("torch.distributed.distributed_c10d")
    default, make = c10d._get_default_timeout, c10d._new_process_group_helper
    kept = []

    def keep(*args: Any, **kwargs: Any) -> Any:
        made = make(*args, **kwargs)
        kept.append(made)
        return made

    c10d._get_default_timeout = lambda backend: min([default(backend), *_limits])
    c10d._new_process_group_helper = keep


def _run(request: dict[str, Any]) -> int:
    """Run the script as ``__main__``, or call a function of a file; the exit status."""
    script = request["script"]
    folder = os.path.dirname(script)
    os.chdir(folder)
    sys.path.insert(0, folder)
    sys.argv = [script, *request["args"]]
    try:
        if request["function"] is None:
            _run_main(script)
        else:
            name = os.path.splitext(os.path.basename(script))[0]
            # Under its own name and registered, so that what it defines can be pickled.
            spec = importlib.util.spec_from_file_location(name, script)
            assert spec is not None
            assert spec.loader is not None
            module: ModuleType = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            spec.loader.exec_module(module)
            getattr(module, request["function"])(*request["args"])
    except SystemExit as leave:
        if leave.code is None or isinstance(leave.code, int):
            return (leave.code or 0) & 0xFF
        print(leave.code, file=sys.stderr)  # noqa: T201  # what the interpreter does
        return 1
    except BaseException as error:
        # As the interpreter does, for exit handlers to see; our own frames are none of its trace.
        trace: TracebackType | None = error.__traceback__
        while trace is not None and (
            trace.tb_frame.f_code.co_filename.startswith((__file__, "<frozen "))
        ):
            trace = trace.tb_next
        sys.last_value = error
        traceback.print_exception(type(error), error, trace)
        return 1
    return 0


def _run_main(script: str) -> None:
    """Run ``script`` as the interpreter would.

    Unlike ``runpy.run_path``, which empties the module when the script ends.
    """
    module = ModuleType("__main__")
    vars(module).update(__file__=script, __builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = module
    with io.open_code(script) as file:
        code = compile(file.read(), script, "exec", dont_inherit=True)
    exec(code, vars(module))
