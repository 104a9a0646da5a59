"""What LLVM refuses is an error of Tilewave's that says so, and harms nothing that is compiled after it."""

import gc
import random
import threading

import numpy as np
import pytest

import tilewave as tw
from tilewave.kernel import processor

#: A value is used where it may not have been computed.
WRONG = """define i32 @f(i32 %a, i1 %c) {
entry:
  br i1 %c, label %one, label %both
one:
  %b = add i32 %a, 1
  br label %both
both:
  ret i32 %b
}
"""


def test_threads_go_on_after_errors():
    def refused():
        for _ in range(5):
            with pytest.raises(RuntimeError, match="dominate") as error:
                processor.object_code(WRONG)
            error.value.circle = error.value  # only the garbage collector frees what the traceback holds
            del error
            gc.collect()

    threads = [threading.Thread(target=refused) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def test_what_users_see(monkeypatch):
    factor = random.randrange(1 << 40) / 1024  # a kernel that no cache has
    nest = tw.nest_from(f"def body(A, i):\n    A[i] = {factor} * A[i]")
    with monkeypatch.context() as patch:
        patch.setattr(processor, "object_code", lambda text, made=processor.object_code: made(WRONG))
        with pytest.raises(tw.ConfigError, match=r":1: nest 'body' does not compile: .*TILEWAVE_WITHOUT"):
            tw.run(nest, A=np.ones(5))
    A = np.ones(5)
    tw.run(nest, A=A)
    assert (A == factor).all()
