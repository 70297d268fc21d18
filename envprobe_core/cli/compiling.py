"""``envprobe compile``: compile the engine before it is needed."""

import time


def compile_engine() -> None:
    """Compile the engine and keep it; whatever needs it would otherwise compile its part at first use."""
    from envprobe_core.engine.compiling import INTERPRETED, cache_folder

    folder = cache_folder()
    if INTERPRETED or folder is None:
        why = "NUMBA_DISABLE_JIT is set" if INTERPRETED else "no folder can be written to"
        print(f"nothing is compiled ahead of time: {why}")
        return
    from envprobe_core.compilation import compile_everything

    print("compiling the engine for the three worlds, once; about a minute ...", end=" ", flush=True)
    before, begin = set(folder.rglob("*.nbc")), time.monotonic()
    compile_everything()
    took = f"{time.monotonic() - begin:.0f} s"
    print(f"done in {took}" if set(folder.rglob("*.nbc")) - before else "it was there already")
