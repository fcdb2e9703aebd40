from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import cloudpickle
import pytest

from leakcheck.runtime.clock import ticks
from leakcheck.runtime.script import find_script


@pytest.fixture
def run_ticking(tmp_path):
    """Run source with ticks; returns its namespace and the lines of the loops that ticked."""
    heard: list[int] = []

    def run(source: str) -> tuple[dict[str, object], list[int]]:
        path = tmp_path / "program.py"
        path.write_text(source)
        code = ticks.compile_with_ticks(source, str(path))
        namespace: dict[str, object] = {"__name__": "program"}
        ticks.give_names(namespace)
        ticks.listen(lambda loop: heard.append(ticks.loops[loop].line))
        exec(code, namespace)
        return namespace, heard

    yield run
    ticks.stop_listening()


def test_every_iteration_of_every_loop_ticks(run_ticking):
    _, heard = run_ticking("for i in range(2):\n    j = 0\n    while j < 2:\n        j += 1\n")

    assert heard == [1, 3, 3, 1, 3, 3]


def test_a_loop_that_is_switched_off_is_silent(run_ticking):
    namespace, heard = run_ticking("def f():\n    for i in range(3): pass\n")
    ticks.switch_off(len(ticks.loops) - 1)

    namespace["f"]()

    assert heard == []


def test_lines_of_a_traceback_stay_the_same(run_ticking):
    source = "for i in range(3):\n\n    x = 1\n    y = 1 / (i - 1)\n"

    with pytest.raises(ZeroDivisionError) as caught:
        run_ticking(source)

    assert caught.traceback[-1].lineno + 1 == 4


def test_functions_that_something_else_compiles_are_left_alone(run_ticking):
    _, heard = run_ticking(
        "def njit(f): return f\n@njit\ndef fast():\n    for i in range(3): pass\nfast()\n"
    )

    assert heard == []


def test_the_forward_pass_of_a_module_is_left_alone_but_its_fit_is_not(run_ticking):
    _, heard = run_ticking(
        "class Module: pass\n"
        "class Net(Module):\n"
        "    def forward(self):\n"
        "        for i in range(3): pass\n"
        "    def fit(self):\n"
        "        for i in range(2): self.forward()\n"
        "Net().fit()\n"
    )

    assert heard == [6, 6]


def test_name_mangling_in_a_class_does_not_hide_the_tick(run_ticking):
    _, heard = run_ticking("class __C:\n    for i in range(2): pass\n")

    assert heard == [2, 2]


def test_code_run_under_other_globals_still_ticks(run_ticking, tmp_path):
    namespace, heard = run_ticking("def f():\n    for i in range(2): pass\n")
    ticks.install(tmp_path)
    sys.meta_path[:] = [each for each in sys.meta_path if not isinstance(each, ticks.OwnFiles)]

    exec(namespace["f"].__code__, {})

    assert heard == [2, 2]


def test_a_loop_that_yields_is_a_source_and_never_forever(run_ticking):
    before = len(ticks.loops)
    run_ticking(
        "def batches():\n"
        "    while True:\n"
        "        for i in range(3):\n"
        "            yield i\n"
        "def train():\n"
        "    while True:\n"
        "        def inner(): yield 1\n"
        "        key = lambda: (yield)\n"
        "        for i in batches(): pass\n"
    )

    loops = [(loop.line, loop.over, loop.is_source) for loop in ticks.loops[before:]]
    assert loops == [
        (2, "while", True),
        (3, "range", True),
        (6, "forever", False),
        (9, "data", False),
    ]


def test_the_loops_around_a_frame_are_found_innermost_first(run_ticking):
    found: list[list[int]] = []
    namespace, _ = run_ticking(
        "def inner(note):\n"
        "    for i in range(1):\n"
        "        note()\n"
        "def outer(note):\n"
        "    for i in range(1):\n"
        "        inner(note)\n"
    )

    namespace["outer"](
        lambda: found.append([ticks.loops[n].line for n in ticks.enclosing(inspect.currentframe())])
    )

    assert found == [[2, 5]]


def test_the_switches_are_a_list_and_no_class_of_ours_which_torch_2_4_does_not_compile():
    copied = pickle.loads(pickle.dumps(ticks._on))

    assert type(ticks._on) is type(copied) is list


def test_a_function_pickled_by_value_runs_where_there_is_no_leakcheck(run_ticking):
    namespace, _ = run_ticking("def job(n):\n    for i in range(n):\n        print(i)\n")
    pickled = cloudpickle.dumps(namespace["job"])
    code = "import sys; sys.modules['leakcheck'] = None; import pickle\n"
    code += "pickle.load(sys.stdin.buffer)(2)"
    run = [sys.executable, "-I", "-c", code]
    done = subprocess.run(run, input=pickled, capture_output=True, check=False)

    assert (done.stdout, done.stderr) == (b"0\n1\n", b"")


def test_only_the_users_own_files_are_rewritten(tmp_path):
    assert ticks.is_own(str(tmp_path / "helpers.py"), tmp_path)
    assert not ticks.is_own(str(tmp_path / "venv/lib/python3.11/site-packages/x.py"), tmp_path)
    assert not ticks.is_own("/usr/lib/python3/x.py", tmp_path)


@pytest.mark.parametrize("mark", ["setup.py", "pyproject.toml", ".git"])
def test_a_script_in_a_folder_of_its_own_is_one_of_its_project(tmp_path, mark):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "train.py").touch()
    program = find_script(str(tmp_path / "tools" / "train.py"), ())

    assert program.folder == tmp_path / "tools"
    (tmp_path / mark).touch()
    assert program.folder == tmp_path


def test_what_we_are_made_of_is_not_the_users(tmp_path):
    inside = Path(ticks.__file__)

    assert not ticks.is_own(str(inside), inside.parents[3])  # as of a script of this checkout


def test_a_module_beside_the_script_ticks_and_leaves_no_bytecode(tmp_path):
    (tmp_path / "helper.py").write_text("def f():\n    for i in range(3): pass\n")
    script = (
        "import sys\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "from pathlib import Path\n"
        "from leakcheck.runtime.clock import ticks\n"
        f"ticks.install(Path({str(tmp_path)!r}))\n"
        "heard = []\n"
        "ticks.listen(heard.append)\n"
        "import helper\n"
        "helper.f()\n"
        "print(len(heard), helper.__loader__.get_source('helper')[:5])\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout == "3 def f\n"
    assert not (Path(tmp_path) / "__pycache__").exists()


def test_torch_compile_sees_no_graph_break(run_ticking):
    torch = pytest.importorskip("torch")
    namespace, _ = run_ticking(
        "def f(x):\n    for i in range(3):\n        x = x + i\n    return x\n"
    )

    compiled = torch.compile(namespace["f"], fullgraph=True, backend="eager")

    assert compiled(torch.zeros(2)).tolist() == [3.0, 3.0]
