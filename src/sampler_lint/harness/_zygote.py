"""The process that has imported torch once and forks the ranks of every scenario.

Started by :class:`sampler_lint.harness.world.World` as a script in a fresh interpreter; it reads
one JSON request a line and answers each with one line. Standard library, torch and the two
modules beside it only, loaded by path: nothing of this package may shadow what a user imports.
"""

from __future__ import annotations

import sys

# Run as a script, Python puts this file's folder first; its modules are not the user's.
if __name__ == "__main__":
    sys.path.pop(0)

import atexit
import builtins
import contextlib
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
import threading
import traceback
import warnings
import weakref
from types import ModuleType, TracebackType
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))

#: Seconds that rank 0, when it is done, waits for the other ranks.
LAST = 2.0

#: Bytes of address space a rank may take: a sampler that never ends must not take the machine.
MEMORY = 8 << 30


def load(name: str) -> Any:
    """The module beside this file, under a name no user's module has."""
    path = os.path.join(HERE, f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"_sampler_lint_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Serve requests until there are no more."""
    requests = os.fdopen(os.dup(0), "rb", buffering=0)
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)

    def answer(value: dict[str, Any]) -> None:
        answers.write(json.dumps(value).encode("ascii") + b"\n")

    record, supervise = load("record"), load("supervise")
    try:
        torch = importlib.import_module("torch")
        importlib.import_module("torch.distributed")
    except Exception as error:  # a broken torch raises whatever it likes
        missing = isinstance(error, ModuleNotFoundError) and error.name == "torch"
        answer({"missing": missing, "error": f"{type(error).__name__}: {error}"})
        return
    # The first optimizer imports it, for 1.7 s, in every rank of every scenario. It warns where
    # NumPy is not installed, which concerns nobody here.
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module("torch._dynamo")
    torch.set_num_threads(1)
    _forget_finalizers()
    _adopt_orphans()
    gc.freeze()
    answer({"torch": torch.__version__})
    for line in requests:
        request = json.loads(line)
        try:
            reply = scenario(request, record, supervise, [requests.fileno(), answers.fileno()])
        except KeyboardInterrupt:
            return
        answer(reply)


def _forget_finalizers() -> None:
    """Spare every rank the tidying up after torch's own imports.

    At exit torch takes its operators out of the dispatcher one by one, a tenth of a second in
    which a forked process copies all the memory it touches. What a program registers is run.
    """
    with contextlib.suppress(Exception):
        for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]
            finalizer.atexit = False


def _adopt_orphans() -> None:
    """Make this process the parent of whatever a rank leaves behind (Linux only)."""
    with contextlib.suppress(Exception):
        import ctypes

        pr_set_child_subreaper = 36
        ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)


def scenario(
    request: dict[str, Any], record: Any, supervise: Any, descriptors: list[int]
) -> dict[str, Any]:
    """Run one program on all ranks; what became of each."""
    port = _free_port()
    ended, alive = os.pipe()
    children = []
    for rank in range(request["world_size"]):
        out, err = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            for descriptor in (*descriptors, out[0], err[0]):
                os.close(descriptor)
            os.dup2(out[1], 1)
            os.dup2(err[1], 2)
            os.close(out[1])
            os.close(err[1])
            os.close(ended if rank else alive)
            be_rank(rank, port, request, record, ended)
        os.close(out[1])
        os.close(err[1])
        children.append(supervise.Child(pid, supervise.Sink(out[0]), supervise.Sink(err[0])))

    os.close(ended)
    os.close(alive)

    def dump(child: Any) -> None:
        if record.DUMP_SIGNAL:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, record.DUMP_SIGNAL)

    try:
        supervise.watch(children, request["timeout"], dump=dump, abort=descriptors[0])
    finally:
        for child in children:
            os.close(child.out.descriptor)
            os.close(child.err.descriptor)
        _reap(supervise)
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


def _reap(supervise: Any) -> None:
    """Kill what the ranks left behind, and take its status."""
    supervise.kill(supervise.descendants(os.getpid()))
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def be_rank(rank: int, port: int, request: dict[str, Any], record: Any, ended: int) -> None:
    """Become one rank, run the program, end the process as an interpreter would.

    Rank 0 keeps the store, which torchrun's agent does elsewhere, so it leaves after the others:
    when ``ended``, which they hold the other end of, comes to its end.
    """
    status = 1
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(
                number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler
            )
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _set_environment(rank, port, request)
        random.seed()
        if "numpy" in sys.modules:  # forked, the ranks would share numpy's global generator
            importlib.import_module("numpy").random.seed()
        _tame_gloo(request["gloo_timeout"])
        record.install(request["record"])
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
            select.select([ended], [], [], LAST)
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


def _tame_gloo(seconds: float) -> None:
    """Make a collective that nobody joins fail in ``seconds``, not in torch's 30 minutes.

    And let no process group die before its process: when DDP's reducer takes the last reference
    with it, ``~ProcessGroupGloo`` joins threads that may wait for the interpreter lock which the
    joining thread holds (torch 2.13; one short run in seven hung).
    """
    c10d: Any = importlib.import_module("torch.distributed.distributed_c10d")
    limit = datetime.timedelta(seconds=seconds)
    default, make = c10d._get_default_timeout, c10d._new_process_group_helper
    kept = []

    def keep(*args: Any, **kwargs: Any) -> Any:
        made = make(*args, **kwargs)
        kept.append(made)
        return made

    c10d._get_default_timeout = lambda backend: min(default(backend), limit)
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
        _report(error, request["record"], folder)
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


def _report(error: BaseException, directory: str, folder: str) -> None:
    """Print the traceback without our own frames; leave what and where to the reader."""
    trace: TracebackType | None = error.__traceback__
    while trace is not None and (
        trace.tb_frame.f_code.co_filename.startswith((__file__, "<frozen "))
    ):
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace)
    place = None
    for frame, line in traceback.walk_tb(trace):
        if frame.f_code.co_filename.startswith(folder + os.sep):
            place = f"{os.path.relpath(frame.f_code.co_filename, folder)}:{line}"
    if isinstance(error, SyntaxError) and error.filename and place is None:
        place = f"{os.path.relpath(error.filename, folder)}:{error.lineno}"
    with open(os.path.join(directory, f"{os.getpid()}.error"), "w", encoding="utf-8") as file:
        json.dump({"error": _one_line(error), "place": place}, file)


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    name = type(error).__name__
    return f"{name}: {text[:300]}" if text else name


if __name__ == "__main__":
    main()
