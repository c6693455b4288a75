import threading

import pytest

from lumctl.workers import Workers


@pytest.fixture
def workers():
    made = Workers("test")
    yield made
    made.close()


def test_results_and_errors_come_back(workers):
    assert workers.submit(lambda: 6 * 7).result(5) == 42
    with pytest.raises(ZeroDivisionError):
        workers.submit(lambda: 1 // 0).result(5)


def test_a_call_that_hangs_keeps_nobody_waiting(workers):
    let_go = threading.Event()
    hung = [workers.submit(lambda: let_go.wait(30)) for _ in range(20)]
    assert workers.submit(lambda: "done").result(5) == "done"
    let_go.set()
    assert all(call.result(5) for call in hung)


def test_threads_are_used_again(workers):
    names = {workers.submit(lambda: threading.current_thread().name).result(5) for _ in range(50)}
    # A thread may still be on its way back when the next call comes, so a few are made, and not fifty.
    assert len(names) < 10
    assert threading.current_thread().name not in names


def test_an_idle_thread_ends_and_the_next_call_has_another():
    workers = Workers("test", idle_s=0.02)
    first = workers.submit(threading.current_thread).result(5)
    first.join(5)
    assert not first.is_alive()
    assert workers.submit(threading.current_thread).result(5) is not first
    workers.close()


def test_a_thread_that_is_about_to_end_takes_the_call_that_counts_on_it():
    workers = Workers("test", idle_s=0.0005)
    assert [workers.submit(lambda at=at: at).result(5) for at in range(500)] == list(range(500))
    workers.close()


def test_they_do_not_hold_up_the_end_of_the_program(workers):
    assert workers.submit(lambda: threading.current_thread().daemon).result(5)


def test_after_close_nothing_starts(workers):
    workers.submit(lambda: None).result(5)
    workers.close()
    workers.close()
    with pytest.raises(RuntimeError):
        workers.submit(lambda: None)
